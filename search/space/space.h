/* The candidate space: every valid strategy for a cluster, a model and a job, in one fixed total order.
 *
 * A candidate is 40 bytes; its index is its row in the results file, so the order is part of the file's meaning and
 * `digest` covers it. The order is lexicographic in (pp, tmp, cp, dp, ep, etp, mbs, schedule, vpp, sp, recompute,
 * zero, overlap, ep_overlap, offload, order, recipe), so that neighbours cost about the same to simulate.
 *
 * What is in the space:
 *   pp * dp * cp * tmp = devices, any factors (not only powers of two); with allow_idle <= devices, the first of which
 * are used (most devices first, within one pp and tmp).
 *   cp is 1 unless asked for: few jobs need it. ep divides dp * cp * tmp and the model's experts; without them it is 1.
 *   etp is 1 unless asked for, and else tmp, where ep divides dp * cp. ep_overlap is off unless asked for, and on where
 * ep > 1, the stage is one or the schedule interleaved, and neither full recomputation nor ZeRO 3 stands in the way.
 *   mbs divides gbs / dp.
 *   Schedules gpipe, 1f1b and interleaved where pp > 1, others (workloads/strategy/schedule.h) when asked for. With one
 * stage there is nothing to schedule: 1f1b, vpp = 1. Of chunks pp * vpp divides the layers: interleaved and
 * breadth-first ones have a vpp >= 2, those in a V 2. Interleaved: the microbatches are a multiple of pp (Megatron's
 * rule). dualpipe-v: there are at least 2 pp of them; dualpipe (as programs, all candidates): an even number of them,
 * and of stages.
 *   sp only with tmp > 1; zero and overlap only with dp > 1.
 *   ZeRO 2 and 3 with pp > 1 only where the stages are named: a pipeline accumulates gradients over its microbatches
 * and reuses its parameters for each of them, so sharding gradients (stage 2) would reduce them once per microbatch and
 * sharding parameters (stage 3) would gather them twice per microbatch; Megatron-LM and DeepSpeed refuse the
 * combination. Named, they are as workloads/strategy has them, but for schedules that split backward passes. Placement
 * orders that differ only in dimensions of degree 1 are one candidate (the first in the list of choices). The balanced
 * assignment only where it differs from the uniform one (the optimal one and AMP's, when asked for, always: whether
 * they differ takes their price to know). Everything that is cut off by a rule of divisibility is counted under its
 * reason. A choice acts where its dimension has one: `--sp on` does not remove tmp = 1, which knows no sequence
 * parallelism.
 *
 * Rejected: decoding candidates from mixed-radix indices without storage. The rules of divisibility make the radices
 * ragged, so decoding would be a search; 40 bytes times 10^6 candidates is nothing.
 */
#ifndef PL_SEARCH_SPACE_H
#define PL_SEARCH_SPACE_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "search/space/int_set.h"
#include "workloads/ir/model.h"
#include "workloads/strategy/strategy.h"
#include "workloads/tree/tree_space.h"

enum { PL_SPACE_ORDERS = 30, PL_SPACE_DEFAULT_MBS = 8, PL_SPACE_DEFAULT_VPP = 4, PL_SPACE_MBS_LIMIT = 65536 };

/* What the user allows per dimension. */
typedef struct pl_space_choices {
  pl_int_set pp, dp, tmp; /* empty: every divisor of the devices */
  pl_int_set cp, ep;      /* empty: 1; every divisor of the model's experts that divides dp * cp * tmp */
  pl_int_set mbs;         /* empty: 1 to PL_SPACE_DEFAULT_MBS, unless pl_space_choices_adopt widens it */
  pl_int_set vpp;         /* of interleaved and breadth-first schedules; empty: 2 to PL_SPACE_DEFAULT_VPP */
  pl_int_set zero;        /* empty: 0 to 3 */
  /* Bit i = value i of the enumeration is allowed (sp, overlap: bit 0 = off, bit 1 = on). */
  uint32_t schedules, recomputes, sp, overlap, recipes;
  uint32_t etps, ep_overlaps; /* bit 0: experts are whole, bit 1: cut over the tensor ranks; likewise off and on */
  uint32_t offloads;          /* of pl_offload_names; where one but none is allowed, candidates are programs */
  bool order_is_given;        /* orders or layers: where a search may place by itself, it does not */
  bool allow_idle;            /* also strategies that leave devices idle */
  bool only_offered;          /* without what the job's framework does not offer, as far as its profile says */
  bool overlap_is_given;      /* false: pl_space_choices_adopt may narrow it */
  bool recipes_are_given, is_given; /* --assign; any of the dimensions */
  uint32_t n_orders;
  char orders[PL_SPACE_ORDERS][5];
} pl_space_choices;

/* What the space holds by itself, and the placement order tdp. */
void pl_space_choices_init(pl_space_choices *choices);
/* A framework named in the job decides whether gradients are reduced beside the backward pass, and the length of its
 * sequences (1: samples) which microbatches are tried, unless these choices are given. */
void pl_space_choices_adopt(pl_space_choices *choices, const pl_job *job);

/* What programs have no choice of (gradients are always reduced beside what does not wait for them; nothing is priced
 * that a balanced assignment would need) is one; PL_BAD_INPUT where another was asked for. */
pl_code pl_space_choices_for_programs(pl_space_choices *choices, const char *what, pl_error *error);

/* Whether some of it only programs can say, so that all of it is simulated as programs: what two ways to the same
 * figures differ by must not choose between candidates. */
static inline bool pl_space_choices_are_programs(const pl_space_choices *choices) {
  return choices->offloads > 1 || (choices->schedules >> PL_SCHEDULE_DUALPIPE & 1u) != 0;
}

typedef struct pl_candidate {
  int32_t pp, dp, tmp, cp, ep, mbs, vpp;
  uint8_t schedule, sp, recompute, zero, overlap, recipe, offload;
  uint8_t cuts_experts, ep_overlap; /* etp is tmp; workloads/strategy/strategy.h */
  uint8_t order;                    /* index into the choices' orders */
} pl_candidate;

typedef enum pl_space_reason {
  PL_DROP_HEADS = 0,
  PL_DROP_KV_HEADS,
  PL_DROP_FFN,
  PL_DROP_GBS,
  PL_DROP_MBS,
  PL_DROP_STAGES,
  PL_DROP_CHUNKS,
  PL_DROP_ROUNDS,
  PL_DROP_ZERO,
  PL_DROP_ZERO_SPLIT,
  PL_DROP_SEQUENCE,
  PL_DROP_BALANCED,
  PL_DROP_CONTEXT,
  PL_DROP_EXPERTS,
  PL_DROP_EXPERT_RANKS,
  PL_DROP_EXPERT_SEQUENCE,
  PL_DROP_FEW_MICROBATCHES,
  PL_DROP_TWO_ENDS,
  PL_DROP_OFFER_DEGREE, /* what the framework has not, with --framework */
  PL_DROP_OFFER_SCHEDULE,
  PL_DROP_OFFER_RECOMPUTE,
  PL_DROP_OFFER_SP,
  PL_DROP_OFFER_ZERO,
  PL_DROP_CONSUMED, /* what an optimizer in the backward pass cannot do */
  PL_DROP_COUNT
} pl_space_reason;

typedef struct pl_space {
  const pl_model *model;
  const pl_job *job;
  pl_space_choices choices;
  const pl_tree_space *trees; /* candidates are its trees, and there are no `candidates`; NULL: strategies */
  const pl_candidate *candidates;
  uint32_t n_candidates, n_devices;
  uint64_t dropped[PL_DROP_COUNT];
  uint64_t digest; /* of the candidates in their order */
} pl_space;

/* Whether the balanced assignment of `strategy` (recipe BALANCED, boundary NULL) differs from the uniform one. Asked
 * once per (pp, tmp, dp, mbs, schedule, vpp, sp, recompute). */
typedef struct pl_space_rules {
  pl_code (*balanced_differs)(void *context, const pl_strategy *strategy, bool *differs, pl_error *error);
  void *context;
} pl_space_rules;

/* Enumerates the space; candidates in `arena`; model and job must outlive it. `rules` NULL: balanced always counts as
 * different where there are two chunks or more. An empty space is not an error here. Cost: about 50 ns per combination,
 * dropped ones included. */
pl_code pl_space_take(const pl_model *model, const pl_job *job, uint32_t n_devices, const pl_space_choices *choices,
                      const pl_space_rules *rules, pl_arena *arena, pl_space *space, pl_error *error);

/* The space of all trees of a strategy space, which outlives it. */
void pl_space_of_trees(const pl_tree_space *trees, const pl_model *model, const pl_job *job, uint32_t n_devices,
                       pl_space *space);

/* The strategy of a candidate (not of trees); boundary NULL (see pl_strategy_assign). */
void pl_space_strategy(const pl_space *space, uint32_t index, pl_strategy *strategy);
/* "tmp does not divide 96 heads": what `dropped[reason]` counts. Returns the length that was needed, like snprintf. */
int pl_space_format_reason(const pl_space *space, pl_space_reason reason, char *text, size_t size);
/* "order=tdp, assign=uniform,balanced, cp=1, ...": what the choices leave in, in the words of the options; dimensions
 * of which everything is in are left out where that does not depend on a default. Returns the length that was needed,
 * like snprintf. */
int pl_space_format_choices(const pl_space_choices *choices, char *text, size_t size);
/* The same of the space, also of trees: the name of their file. */
int pl_space_format(const pl_space *space, char *text, size_t size);
/* Whether a rule removes the candidate; the first of pl_space_reason's order says why (search/space/space_rules.c). */
bool pl_space_breaks_rule(const pl_space *space, const pl_candidate *candidate, pl_space_reason *reason);
/* Of these two: what the job's framework does not offer (search/space/space_offer.c). */
bool pl_space_breaks_offer(const pl_space *space, const pl_candidate *candidate, pl_space_reason *reason);
int pl_space_format_offer(const pl_space *space, pl_space_reason reason, char *text, size_t size);
/* For an empty space: PL_BAD_INPUT with the rules that emptied it. */
pl_code pl_space_refuse_empty(const pl_space *space, uint32_t n_devices, pl_error *error);
/* Short text form of a candidate, with the recipe in place of the boundaries: what --strategy takes. */
int pl_space_format_candidate(const pl_space *space, uint32_t index, char *text, size_t size);
/* Relative cost of simulating a candidate: a constant and microbatches times model chunks times what a pass costs. For
 * balancing and for the time that is left. One is about a microsecond; against the measured times of 14,268 candidates
 * of 128 devices the correlation is 0.82 (0.38 with passes that all cost the same). */
double pl_space_cost(const pl_space *space, uint32_t index);

#endif
