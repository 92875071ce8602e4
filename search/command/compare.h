/* Two predictions side by side: what `paceline compare` reads and prints.
 *
 * Both sides are JSON as `paceline simulate --json` writes it, wherever they come from: simulated now, read from a file
 * of that, or a row of a results file written in the same words. So a figure is the same, to the last bit, whichever
 * way it came.
 */
#ifndef PL_SEARCH_COMPARE_H
#define PL_SEARCH_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/text/document.h"
#include "workloads/run/simulate.h"

enum { PL_COMPARE_KINDS = 5 };
extern const char *const pl_compare_kind_names[PL_COMPARE_KINDS]; /* of memory: "mem_parameters_bytes" */

typedef struct pl_compare_side {
  const char *label; /* as given */
  pl_document *document;
  double iter_time_s, low_s, high_s;                  /* of the 80 % interval; NaN: none */
  double remains_factor;                              /* of it, by what a site's figures leave; 1: nothing */
  double samples_per_s, tokens_per_s, mfu, n_devices; /* samples_per_s NaN: not known */
  double part_s[PL_STAGE_PARTS];                      /* means over devices, in the order of pl_stage_part_names */
  const pl_stage_times *stages;                       /* NULL: not known */
  uint32_t n_stages;
  bool fits, is_program; /* of a tree, or of a tuple that only programs can say */
  bool says_strategy;    /* its degrees, or what was chosen of a strategy space */
  int64_t peak_bytes, capacity_bytes, kind_bytes[PL_COMPARE_KINDS];
  int64_t peak_stage;
} pl_compare_side;

/* A setting that is not the same, as text; NULL: that side does not say. */
typedef struct pl_compare_difference {
  const char *name, *value[2];
} pl_compare_difference;

typedef struct pl_comparison {
  pl_compare_side side[2];
  const pl_compare_difference *differences;
  uint32_t n_differences;
  const char *same; /* "model gpt2-345m, gbs 32 ..." */
  bool same_model;  /* else no side is better */
  int better;       /* 0, 1; -1: neither */
  /* Of what the better one takes for a token: how much longer the other takes. */
  double ratio;
  bool has_intervals, within; /* the time of one lies inside the other's interval, per token */
} pl_comparison;

/* The side from `text`, JSON; `name` stands for the path in messages. Arrays in `arena`; the caller destroys
 * side->document. */
pl_code pl_compare_read(const char *name, const char *text, size_t size, pl_arena *arena, pl_compare_side *side,
                        pl_error *error);
/* Everything of `comparison` behind its two sides. */
pl_code pl_compare_judge(pl_comparison *comparison, pl_arena *arena, pl_error *error);

void pl_compare_print(FILE *stream, const pl_comparison *comparison);
void pl_compare_json(FILE *stream, const pl_comparison *comparison);

/* A row of a results file as JSON in these words. `row` < 0: the fastest that fits. In a process of its own, as the
 * file is anybody's (core/system/child.h). */
pl_code pl_compare_row_json(const char *path, int64_t row, FILE *stream, pl_error *error);

#endif
