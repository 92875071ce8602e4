/* See search/command/compare.h: text of 120 columns, and JSON.
 *
 * Printed figures add up as the exact ones do: a column is rounded at its running sums, and differences are those of
 * the printed figures. */
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "core/text/json_writer.h"
#include "search/command/compare.h"

static const char *const part_words[PL_STAGE_PARTS] = {"compute",
                                                       "tensor communication",
                                                       "pipeline communication",
                                                       "data communication",
                                                       "context communication",
                                                       "expert communication",
                                                       "bubble"};
static const char *const part_heads[PL_STAGE_PARTS] = {"compute", "tensor", "pipeline", "data",
                                                       "context", "expert", "bubble"};
static const char *const kind_words[PL_COMPARE_KINDS] = {"parameters", "gradients", "optimizer", "activations",
                                                         "buffers"};

/* ---- figures that add up ---- */

typedef struct scale {
  double per_unit; /* steps of the last printed digit in a second, or a byte */
  int decimals;
  const char *unit;
} scale;

static scale scale_of_times(double most_s) {
  bool is_s = most_s >= 1, is_ms = most_s >= 1e-3;
  double figure = most_s * (is_s ? 1 : is_ms ? 1e3 : 1e6);
  int decimals = figure >= 1000 ? 1 : figure >= 100 ? 2 : 3;
  return (scale){(is_s ? 1 : is_ms ? 1e3 : 1e6) * pow(10, decimals), decimals, is_s ? "s" : is_ms ? "ms" : "us"};
}

/* Steps of the running sums: what they add up to is the rounded sum. */
static void round_parts(const double *values, int n, scale s, int64_t *steps) {
  double sum = 0;
  int64_t before = 0;
  for (int i = 0; i < n; i++) {
    sum += values[i] * s.per_unit;
    steps[i] = llrint(sum) - before;
    before = llrint(sum);
  }
}

static int64_t total_of(const int64_t *steps, int n) {
  int64_t total = 0;
  for (int i = 0; i < n; i++)
    total += steps[i];
  return total;
}

static const char *figure(int64_t steps, scale s, bool sign, char text[PL_UNIT_TEXT_BYTES]) {
  snprintf(text, PL_UNIT_TEXT_BYTES, sign && steps != 0 ? "%+.*f" : "%.*f", s.decimals,
           (double)steps / pow(10, s.decimals));
  return text;
}

/* A line of a table: A, B, B - A and, where the whole moved, the part's share of that. */
static void print_line(FILE *stream, const char *word, int64_t a, int64_t b, int64_t whole, scale s) {
  char text[3][PL_UNIT_TEXT_BYTES];
  fprintf(stream, "  %-24s %14s %14s %14s", word, figure(a, s, false, text[0]), figure(b, s, false, text[1]),
          figure(b - a, s, true, text[2]));
  if (whole != 0) fprintf(stream, " %9.1f %%", 100 * (double)(b - a) / (double)whole);
  fputc('\n', stream);
}

/* ---- text ---- */

enum { NAME_WIDTH = 22, CELL_WIDTH = 46 };

static int shown(const char *text) {
  return (int)(strlen(text) > CELL_WIDTH ? CELL_WIDTH - 3 : strlen(text));
}

static void print_pair(FILE *stream, const char *name, const char *a, const char *b) {
  if (a == NULL) a = "(not said)";
  if (b == NULL) b = "(not said)";
  const char *cut_a = strlen(a) > CELL_WIDTH ? "..." : "", *cut_b = strlen(b) > CELL_WIDTH ? "..." : "";
  int used = fprintf(stream, "%-*s  %.*s%s", NAME_WIDTH, name, shown(a), a, cut_a);
  fprintf(stream, "%*s%.*s%s\n", NAME_WIDTH + 2 + CELL_WIDTH + 2 - used, "", shown(b), b, cut_b);
}

/* "the same: ..." in lines of at most 118 columns, broken at ", ". */
static void print_same(FILE *stream, const char *same) {
  int column = fprintf(stream, "the same                ");
  for (const char *at = same; *at != '\0';) {
    const char *end = strstr(at, ", ");
    size_t length = end != NULL ? (size_t)(end - at) + 2 : strlen(at);
    if (column + (int)length > 118) column = fprintf(stream, "\n                        ") - 1;
    column += fprintf(stream, "%.*s", (int)length, at);
    at += length;
  }
  fputc('\n', stream);
}

/* Two ways to the same figures, which do not meet everywhere: of 3,600 strategies that tests/crosscheck/
 * tuples_programs.py drew, and tests/golden/as_program.csv. */
static void print_kinds(FILE *stream, const pl_comparison *c) {
  const pl_compare_side *a = &c->side[0], *b = &c->side[1];
  if (a->is_program == b->is_program) return;
  print_pair(stream, "simulated as", a->is_program ? "a program" : "a tuple", b->is_program ? "a program" : "a tuple");
  fputs("                        (of one strategy a program took as long as its tuple to 3 % in 98 of 100 that were "
        "tried, to\n"
        "                        11 % in all: 'simulate --as-program' has the tuple as a program too)\n",
        stream);
}

static void print_differences(FILE *stream, const pl_comparison *c) {
  print_pair(stream, "", "A", "B");
  print_pair(stream, "compared", c->side[0].label, c->side[1].label);
  bool silent =
      (c->side[0].is_program && !c->side[0].says_strategy) || (c->side[1].is_program && !c->side[1].says_strategy);
  bool strategies = silent && strcmp(c->side[0].label, c->side[1].label) != 0;
  if (c->n_differences == 0)
    fprintf(stream, "what differs            %s\n", strategies ? "the strategies" : "nothing that was said of them");
  for (uint32_t i = 0; i < c->n_differences; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", i == 0 ? "differs  " : "         ", c->differences[i].name);
    print_pair(stream, name, c->differences[i].value[0], c->differences[i].value[1]);
  }
  if (c->same[0] != '\0') print_same(stream, c->same);
  print_kinds(stream, c);
}

static void print_times(FILE *stream, const pl_comparison *c, scale s) {
  int64_t steps[2][PL_STAGE_PARTS], total[2];
  for (int side = 0; side < 2; side++) {
    round_parts(c->side[side].part_s, PL_STAGE_PARTS, s, steps[side]);
    total[side] = total_of(steps[side], PL_STAGE_PARTS);
  }
  int64_t whole = total[1] - total[0];
  fprintf(stream, "\nwhere the time goes, %-5s %14s %14s %14s%s\n", s.unit, "A", "B", "B - A",
          whole != 0 ? "  of the whole" : "");
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    if (c->side[0].part_s[part] != 0 || c->side[1].part_s[part] != 0)
      print_line(stream, part_words[part], steps[0][part], steps[1][part], whole, s);
  print_line(stream, "iteration", total[0], total[1], whole, s);
  fputs("  (means over devices)\n", stream);
}

/* ---- stages ---- */

typedef struct stage_table {
  const pl_comparison *comparison;
  scale s;
  bool used[PL_STAGE_PARTS];
} stage_table;

/* Steps of a stage: of one side, or (side -1) of B less A. */
static void stage_steps(const stage_table *table, int side, uint32_t stage, int64_t steps[PL_STAGE_PARTS]) {
  const pl_comparison *c = table->comparison;
  int64_t a[PL_STAGE_PARTS];
  round_parts(c->side[side == 0 ? 0 : 1].stages[stage].part_s, PL_STAGE_PARTS, table->s, steps);
  if (side >= 0) return;
  round_parts(c->side[0].stages[stage].part_s, PL_STAGE_PARTS, table->s, a);
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    steps[part] -= a[part];
}

/* Neighbours that are alike take one line. */
static void print_stages(FILE *stream, const stage_table *table, int side, const char *what) {
  uint32_t n = table->comparison->side[side == 0 ? 0 : 1].n_stages;
  fprintf(stream, "\n%-24s", what);
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    if (table->used[part]) fprintf(stream, " %11s", part_heads[part]);
  fprintf(stream, " %11s\n", "iteration");
  for (uint32_t first = 0; first < n;) {
    int64_t steps[PL_STAGE_PARTS], next[PL_STAGE_PARTS];
    char text[PL_UNIT_TEXT_BYTES];
    uint32_t last = first;
    stage_steps(table, side, first, steps);
    for (; last + 1 < n; last++) {
      stage_steps(table, side, last + 1, next);
      if (memcmp(steps, next, sizeof steps) != 0) break;
    }
    if (last > first)
      snprintf(text, sizeof text, "%u to %u", first, last);
    else
      snprintf(text, sizeof text, "%u", first);
    fprintf(stream, "  %-22s", text);
    for (int part = 0; part < PL_STAGE_PARTS; part++)
      if (table->used[part]) fprintf(stream, " %11s", figure(steps[part], table->s, side < 0, text));
    fprintf(stream, " %11s\n", figure(total_of(steps, PL_STAGE_PARTS), table->s, side < 0, text));
    first = last + 1;
  }
}

static void print_all_stages(FILE *stream, const pl_comparison *c, scale s) {
  const pl_compare_side *a = &c->side[0], *b = &c->side[1];
  if (a->stages == NULL || b->stages == NULL) {
    bool program = (a->stages == NULL && a->is_program) || (b->stages == NULL && b->is_program);
    fprintf(stream, "\nby stage                not known of %s: %s\n",
            a->stages == NULL && b->stages == NULL ? "both"
            : a->stages == NULL                    ? "A"
                                                   : "B",
            program ? "of rows that are programs 'simulate --json' says it"
                    : "'paceline sweep --features' and 'simulate --json' say it");
    return;
  }
  stage_table table = {.comparison = c, .s = s};
  for (int side = 0; side < 2; side++)
    for (uint32_t stage = 0; stage < c->side[side].n_stages; stage++)
      for (int part = 0; part < PL_STAGE_PARTS; part++)
        table.used[part] |= c->side[side].stages[stage].part_s[part] != 0;
  char what[64];
  if (a->n_stages == b->n_stages) {
    snprintf(what, sizeof what, "B - A by stage, %s", s.unit);
    print_stages(stream, &table, -1, what);
  } else {
    for (int side = 0; side < 2; side++) {
      snprintf(what, sizeof what, "%s by stage, %s", side == 0 ? "A" : "B", s.unit);
      print_stages(stream, &table, side, what);
    }
  }
  fprintf(stream, "  (of each stage%s the device that is idle least)\n",
          a->is_program || b->is_program ? ", a program's list," : "");
}

/* ---- memory and the verdict ---- */

static void print_memory(FILE *stream, const pl_comparison *c) {
  const scale s = {100 * 0x1p-30, 2, "GiB"};
  int64_t steps[2][PL_COMPARE_KINDS], total[2];
  char text[2][PL_UNIT_TEXT_BYTES];
  for (int side = 0; side < 2; side++) {
    double bytes[PL_COMPARE_KINDS];
    for (int kind = 0; kind < PL_COMPARE_KINDS; kind++)
      bytes[kind] = (double)c->side[side].kind_bytes[kind];
    round_parts(bytes, PL_COMPARE_KINDS, s, steps[side]);
    total[side] = total_of(steps[side], PL_COMPARE_KINDS);
  }
  fprintf(stream, "\nmemory at the peak, GiB %16s %14s %14s\n", "A", "B", "B - A");
  for (int kind = 0; kind < PL_COMPARE_KINDS; kind++)
    print_line(stream, kind_words[kind], steps[0][kind], steps[1][kind], 0, s);
  print_line(stream, "peak", total[0], total[1], 0, s);
  snprintf(text[0], sizeof text[0], "%.2f", (double)c->side[0].capacity_bytes * 0x1p-30);
  snprintf(text[1], sizeof text[1], "%.2f", (double)c->side[1].capacity_bytes * 0x1p-30);
  fprintf(stream, "  %-24s %14s %14s\n", "usable", text[0], text[1]);
  fprintf(stream, "  (of the device with the least left: stage %d of A, stage %d of B)\n", (int)c->side[0].peak_stage,
          (int)c->side[1].peak_stage);
}

static void print_speed(FILE *stream, const pl_comparison *c) {
  char text[2][96], figure_text[PL_UNIT_TEXT_BYTES];
  for (int i = 0; i < 2; i++)
    snprintf(text[i], sizeof text[i], "%s", pl_format_time(c->side[i].iter_time_s, figure_text));
  fputc('\n', stream);
  print_pair(stream, "iteration time", text[0], text[1]);
  for (int i = 0; i < 2; i++) {
    const pl_interval interval = {.low_s = c->side[i].low_s, .high_s = c->side[i].high_s};
    if (isnan(c->side[i].low_s))
      snprintf(text[i], sizeof text[i], "not known");
    else
      pl_interval_format(&interval, text[i]);
  }
  print_pair(stream, "80 % interval", text[0], text[1]);
  for (int i = 0; i < 2; i++)
    snprintf(text[i], sizeof text[i], "x%.3f, no physics", c->side[i].remains_factor);
  if (c->side[0].remains_factor != 1 || c->side[1].remains_factor != 1)
    print_pair(stream, "of it the site", text[0], text[1]);
  for (int i = 0; i < 2; i++)
    snprintf(text[i], sizeof text[i], "%s %s, MFU %.1f %%", pl_format_figure(c->side[i].tokens_per_s, figure_text),
             pl_throughput_unit(c->side[i].samples_per_s, c->side[i].tokens_per_s), 100 * c->side[i].mfu);
  print_pair(stream, "throughput", text[0], text[1]);
  if (!(c->side[0].n_devices > 0) || !(c->side[1].n_devices > 0) || c->side[0].n_devices == c->side[1].n_devices)
    return;
  for (int i = 0; i < 2; i++)
    snprintf(text[i], sizeof text[i], "%s %s",
             pl_format_figure(c->side[i].tokens_per_s / c->side[i].n_devices, figure_text),
             pl_throughput_unit(c->side[i].samples_per_s, c->side[i].tokens_per_s));
  print_pair(stream, "per GPU", text[0], text[1]);
}

static void print_verdict(FILE *stream, const pl_comparison *c) {
  static const char names[] = "AB";
  fputs("\nbetter                  ", stream);
  if (!c->same_model) {
    fputs("neither can be said to be: they train another model, or other sequences\n", stream);
    return;
  }
  if (c->better < 0) {
    fputs("neither: both are equally fast\n", stream);
    return;
  }
  const pl_compare_side *best = &c->side[c->better], *other = &c->side[1 - c->better];
  if (best->fits != other->fits) {
    char lack[PL_UNIT_TEXT_BYTES];
    pl_format_bytes((double)(other->peak_bytes - other->capacity_bytes), lack);
    fprintf(stream, "%c: %c does not fit in memory, %s are lacking\n", names[c->better], names[1 - c->better], lack);
    return;
  }
  fprintf(stream, "%c%s: for the same tokens %c takes %.3g %% longer\n", names[c->better],
          best->fits ? "" : ", though neither fits in memory", names[1 - c->better], 100 * (c->ratio - 1));
  if (!c->has_intervals) return;
  if (c->within)
    fputs("                        within the interval: one time lies inside the other's. What both predictions get "
          "wrong alike\n                        cancels, so that the order is surer than either time\n",
          stream);
  else
    fputs("                        beyond the interval: neither time lies inside the other's\n", stream);
}

void pl_compare_print(FILE *stream, const pl_comparison *comparison) {
  const scale s = scale_of_times(fmax(comparison->side[0].iter_time_s, comparison->side[1].iter_time_s));
  print_differences(stream, comparison);
  print_speed(stream, comparison);
  print_times(stream, comparison, s);
  print_all_stages(stream, comparison, s);
  print_memory(stream, comparison);
  print_verdict(stream, comparison);
}

/* ---- JSON ---- */

static void put_three(pl_json *json, const char *key, double a, double b) {
  pl_json_key(json, key);
  pl_json_open_object(json);
  pl_json_put_number(json, "a", a);
  pl_json_put_number(json, "b", b);
  pl_json_put_number(json, "difference", b - a);
  pl_json_close_object(json);
}

static void put_stages(pl_json *json, const pl_compare_side *side) {
  pl_json_open_array(json);
  for (uint32_t s = 0; side->stages != NULL && s < side->n_stages; s++) {
    pl_json_open_object(json);
    for (int part = 0; part < PL_STAGE_PARTS; part++)
      pl_json_put_number(json, pl_stage_part_names[part], side->stages[s].part_s[part]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_stage_differences(pl_json *json, const pl_comparison *c) {
  const pl_compare_side *a = &c->side[0], *b = &c->side[1];
  pl_json_key(json, "stages");
  pl_json_open_object(json);
  pl_json_key(json, "a");
  put_stages(json, a);
  pl_json_key(json, "b");
  put_stages(json, b);
  if (a->stages != NULL && b->stages != NULL && a->n_stages == b->n_stages) {
    pl_json_key(json, "difference");
    pl_json_open_array(json);
    for (uint32_t s = 0; s < a->n_stages; s++) {
      pl_json_open_object(json);
      for (int part = 0; part < PL_STAGE_PARTS; part++)
        pl_json_put_number(json, pl_stage_part_names[part], b->stages[s].part_s[part] - a->stages[s].part_s[part]);
      pl_json_close_object(json);
    }
    pl_json_close_array(json);
  }
  pl_json_close_object(json);
}

void pl_compare_json(FILE *stream, const pl_comparison *c) {
  const pl_compare_side *a = &c->side[0], *b = &c->side[1];
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "a", a->label);
  pl_json_put_string(&json, "b", b->label);
  if (a->is_program != b->is_program) pl_json_put_string(&json, "program", a->is_program ? "a" : "b");
  pl_json_key(&json, "differs");
  pl_json_open_array(&json);
  for (uint32_t i = 0; i < c->n_differences; i++) {
    pl_json_open_object(&json);
    pl_json_put_string(&json, "name", c->differences[i].name);
    pl_json_put_string(&json, "a", c->differences[i].value[0]);
    pl_json_put_string(&json, "b", c->differences[i].value[1]);
    pl_json_close_object(&json);
  }
  pl_json_close_array(&json);
  put_three(&json, "iter_time_s", a->iter_time_s, b->iter_time_s);
  put_three(&json, "iter_time_low_s", a->low_s, b->low_s);
  put_three(&json, "iter_time_high_s", a->high_s, b->high_s);
  if (a->remains_factor != 1 || b->remains_factor != 1)
    put_three(&json, "remains_factor", a->remains_factor, b->remains_factor);
  put_three(&json, "tokens_per_s", a->tokens_per_s, b->tokens_per_s);
  put_three(&json, "mfu", a->mfu, b->mfu);
  put_three(&json, "n_devices", a->n_devices, b->n_devices);
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    put_three(&json, pl_stage_part_names[part], a->part_s[part], b->part_s[part]);
  put_stage_differences(&json, c);
  put_three(&json, "peak_mem_bytes", (double)a->peak_bytes, (double)b->peak_bytes);
  put_three(&json, "mem_capacity_bytes", (double)a->capacity_bytes, (double)b->capacity_bytes);
  for (int kind = 0; kind < PL_COMPARE_KINDS; kind++)
    put_three(&json, pl_compare_kind_names[kind], (double)a->kind_bytes[kind], (double)b->kind_bytes[kind]);
  put_three(&json, "fits", a->fits, b->fits);
  pl_json_put_boolean(&json, "same_model", c->same_model);
  pl_json_put_string(&json, "better", c->better < 0 ? NULL : c->better == 0 ? "a" : "b");
  pl_json_put_number(&json, "ratio", c->ratio > 0 ? c->ratio : (double)NAN);
  pl_json_key(&json, "within_interval");
  if (c->has_intervals)
    pl_json_boolean(&json, c->within);
  else
    pl_json_string(&json, NULL);
  pl_json_close_object(&json);
}
