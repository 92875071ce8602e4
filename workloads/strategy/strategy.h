/* Strategy: how a model is cut and placed. This flat object is what recipes fill; the strategy tree will stand behind
 * the same accessors.
 *
 * Text form, key=value pairs separated by commas:
 *   pp=4,dp=4,tmp=1,mbs=1,assign=0:9:15:21:30,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=0,overlap=1,order=tdp
 * and cp=1,cp_comm=p2p,ep=1,etp=1,placement=0-7:12:8-11,idle=0,split=3:1,shard=8. pp * dp * cp * tmp must be the number
 * of devices, unless a placement or idle=1 leaves some out. The ep ranks that share the experts of a layer are
 * neighbours among the dp * cp * tmp ranks of a stage, in that order with tmp innermost, whatever `order` says
 * (Megatron Core's, with expert-tensor-parallel-size 1): ep divides dp * cp * tmp. etp=tmp cuts each expert over the
 * tensor ranks as dense layers are (Megatron Core's default): the ep ranks are neighbours among the dp * cp replicas,
 * and ep divides these. assign: pp * vpp + 1 strictly increasing boundaries from 0 to the number of transformer layers
 * (embedding goes with the first, head with the last stage; 0:0 or 24:24 of 24 is a stage of these alone) or to the
 * number of blocks (AMP's way of counting); "uniform", "balanced", "optimal" and others are recipes. order: placement,
 * innermost first, a permutation of t, d, p, or of t, c, d, p; without c, context ranks come right behind t. It numbers
 * the ranks; rank i is on device i of the cluster, or on the i-th device of `placement`: devices and ranges of them
 * (7-4 runs down), each device at most once. idle=1: without a placement the first devices are used and the others left
 * idle. split: microbatches of each of the dp replicas (3x8 = eight times 3), in all gbs / mbs; without it they have
 * equally many. overlap=0: gradients are reduced when the last backward pass is over; ZeRO 2 and 3 reduce each bucket
 * at once all the same, and computing waits for it. shard: so many neighbours among the dp * cp ranks share a copy of
 * what ZeRO shards, and their shares of gradients are all-reduced with those of the other copies (PyTorch's
 * HYBRID_SHARD, MiCS, Megatron's distributed optimizer instances); without it all of them share one. ep_overlap=1: a
 * forward pass and a backward pass of another microbatch run beside each other, so that experts exchange the tokens of
 * one while the other computes (Megatron Core's combined 1F1B, --overlap-moe-expert-parallel-comm); delayed: with the
 * experts' gradients of weights behind the exchange (--delay-wgrad-compute); shared: of one pass by itself, in which
 * shared experts run beside the exchange (--moe-shared-expert-overlap). offload: none,
 * states (of the optimizer, which the host then updates), kept (activations), both, gradients (states and gradients) or
 * all in the memory of the host (workloads/tree/README.md). recompute_layers: of each chunk so many layers, the first,
 * are recomputed, not all (Megatron's --recompute-method block). The last two are simulated as programs
 * (pl_strategy_is_of_programs).
 */
#ifndef PL_WORKLOADS_STRATEGY_H
#define PL_WORKLOADS_STRATEGY_H

#include <stdio.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/cluster.h"
#include "workloads/framework/job.h"
#include "workloads/ir/model.h"

/* workloads/strategy/schedule.h says what each is. */
typedef enum pl_schedule_kind {
  PL_SCHEDULE_GPIPE = 0,
  PL_SCHEDULE_1F1B,
  PL_SCHEDULE_INTERLEAVED,
  PL_SCHEDULE_FIFO,
  PL_SCHEDULE_BREADTH_FIRST,
  PL_SCHEDULE_ZB_H1,
  PL_SCHEDULE_ZB_H2,
  PL_SCHEDULE_ZB_V,
  PL_SCHEDULE_DUALPIPE_V,
  PL_SCHEDULE_DUALPIPE, /* two copies of the weights; of programs alone */
  PL_SCHEDULE_LISTED,   /* of a file: schedule=@FILE */
  PL_SCHEDULE_COUNT
} pl_schedule_kind;
/* As users write them, by enumerator; NULL ends them. */
extern const char *const pl_schedule_names[], *const pl_recompute_names[];
/* The same, and "listed" for what a file lists. */
const char *pl_schedule_name(pl_schedule_kind kind);
/* Of vpp chunks per stage, in loops. */
static inline bool pl_schedule_is_chunked(pl_schedule_kind kind) {
  return kind == PL_SCHEDULE_INTERLEAVED || kind == PL_SCHEDULE_BREADTH_FIRST;
}

typedef enum pl_assign_recipe {
  PL_ASSIGN_GIVEN = 0,
  PL_ASSIGN_UNIFORM,
  PL_ASSIGN_BALANCED,
  PL_ASSIGN_ENDS,    /* as uniform, with the embedding and the head counted as a layer each */
  PL_ASSIGN_FILLED,  /* a stage takes blocks until those so far have passed its share of the matrices: nanotron */
  PL_ASSIGN_OPTIMAL, /* the least time by the pipeline objective: workloads/assign/assign.h */
  PL_ASSIGN_AMP      /* AMP's dynamic program on AMP's costs: workloads/assign/assign.h */
} pl_assign_recipe;
/* As users write them, by enumerator; NULL ends them. */
extern const char *const pl_assign_names[];

/* What runs beside the exchange of tokens with experts. */
typedef enum pl_ep_overlap {
  PL_EP_OVERLAP_NONE = 0,
  PL_EP_OVERLAP_PASSES,  /* a pass of another microbatch */
  PL_EP_OVERLAP_DELAYED, /* likewise, and gradients of weights that are put off */
  PL_EP_OVERLAP_SHARED,  /* shared experts of the same pass */
  PL_EP_OVERLAP_COUNT
} pl_ep_overlap;
/* As users write them, by enumerator; NULL ends them. */
extern const char *const pl_ep_overlap_names[];
/* As tables have it, and spaces of candidates: off, on, delayed, shared; NULL: it is none. */
const char *pl_ep_overlap_word(int64_t ep_overlap);

/* Degrees that a text may leave out: pp and tmp are 1 then, and dp takes the devices that are left. */
typedef enum pl_assumed_degree { PL_ASSUMED_PP = 1, PL_ASSUMED_DP = 2, PL_ASSUMED_TMP = 4 } pl_assumed_degree;

typedef struct pl_strategy {
  int32_t pp, dp, tmp, mbs, vpp;
  int32_t cp, ep, etp; /* 0 counts as 1; etp, expert tensor parallelism: 1 or tmp */
  uint8_t assumed;     /* of pl_assumed_degree: what the text left out */
  bool cp_gather;      /* cp_comm=gather */
  pl_schedule_kind schedule;
  const struct pl_listed_schedule *listed; /* of PL_SCHEDULE_LISTED (workloads/strategy/listed_schedule.h) */
  bool sp, overlap;
  uint8_t ep_overlap;    /* pl_ep_overlap */
  bool assign_is_given;  /* false: as the framework cuts, or uniform (pl_strategy_adopt) */
  bool overlap_is_given; /* false: what the framework does, or 1 (pl_strategy_adopt) */
  pl_recompute recompute;
  int32_t recompute_layers; /* of each chunk; 0: all */
  bool offload_states, offload_gradients, offload_kept;
  int32_t zero;
  int32_t shard; /* 0: all replicas */
  char order[5]; /* "tdp", "tcdp" */
  bool idle;     /* devices may be left over; a placement may always leave some */
  /* Device of each rank (pl_strategy_n_ranks of them, by pl_strategy_rank), each at most once; NULL: rank i is on
   * device i. */
  const uint32_t *placement;
  /* Microbatches of each data-parallel replica (dp of them, all together gbs / mbs); NULL: gbs / (dp * mbs) each. */
  const int32_t *split;
  pl_assign_recipe recipe;
  bool counts_layers; /* how assign was, and is to be, written: layers or blocks */
  /* Boundaries in BLOCKS: chunk c of the model (0 <= c < pp * vpp) is blocks [boundary[c], boundary[c+1]); it lives on
   * stage pl_strategy_stage_of(c). */
  const int32_t *boundary;
} pl_strategy;

/* What offload= may be: names, NULL ends them, and which of them a strategy has. */
enum { PL_OFFLOAD_COUNT = 6 };
extern const char *const pl_offload_names[PL_OFFLOAD_COUNT + 1];
void pl_strategy_set_offload(pl_strategy *strategy, int offload);
int pl_strategy_offload(const pl_strategy *strategy);

/* Whether only programs can say it: offload, recompute_layers, schedule=dualpipe. */
static inline bool pl_strategy_is_of_programs(const pl_strategy *strategy) {
  return strategy->schedule == PL_SCHEDULE_DUALPIPE || strategy->offload_states || strategy->offload_kept ||
         strategy->recompute_layers > 0;
}
/* The same of its text form. */
bool pl_strategy_text_is_of_programs(const char *text);

static inline int32_t pl_strategy_n_chunks(const pl_strategy *strategy) {
  return strategy->pp * strategy->vpp;
}

/* Whether the chunks lie in a V: two per stage, down the stages and back up, so that the first stage has the first and
 * the last; else in loops, chunk c on stage c % pp. */
bool pl_strategy_is_v(const pl_strategy *strategy);
/* Chunk of the model that is `chunk` of a stage; and the other way round. */
int32_t pl_strategy_chunk_at(const pl_strategy *strategy, int32_t stage, int32_t chunk);
int32_t pl_strategy_stage_of(const pl_strategy *strategy, int32_t model_chunk);
static inline int32_t pl_strategy_place_of(const pl_strategy *strategy, int32_t model_chunk) {
  return model_chunk / strategy->pp;
}
/* Whether its schedule runs the backward pass for inputs and that for weights apart. */
bool pl_strategy_splits_backward(const pl_strategy *strategy);
/* Whether ep_overlap has passes run beside each other. */
static inline bool pl_strategy_pairs_passes(const pl_strategy *strategy) {
  return strategy->ep_overlap == PL_EP_OVERLAP_PASSES || strategy->ep_overlap == PL_EP_OVERLAP_DELAYED;
}
/* Whether products with parameters are made again in the backward pass. */
static inline bool pl_strategy_multiplies_again(const pl_strategy *strategy) {
  return strategy->recompute == PL_RECOMPUTE_FULL || strategy->recompute == PL_RECOMPUTE_ALTERNATE;
}
/* Whether something computes while experts exchange tokens: another pass, or shared experts. */
static inline bool pl_strategy_hides_tokens(const pl_strategy *strategy) {
  bool hides = strategy->ep_overlap != PL_EP_OVERLAP_NONE || strategy->schedule == PL_SCHEDULE_DUALPIPE_V ||
               strategy->schedule == PL_SCHEDULE_DUALPIPE;
  return hides && strategy->ep > 1;
}
static inline pl_token_order pl_strategy_token_order(const pl_strategy *strategy) {
  return strategy->ep_overlap == PL_EP_OVERLAP_DELAYED  ? PL_TOKENS_DELAYED
         : strategy->ep_overlap == PL_EP_OVERLAP_SHARED ? PL_TOKENS_SHARED
                                                        : PL_TOKENS_AS_MADE;
}

static inline int32_t pl_strategy_cp(const pl_strategy *strategy) {
  return strategy->cp > 1 ? strategy->cp : 1;
}
static inline int32_t pl_strategy_ep(const pl_strategy *strategy) {
  return strategy->ep > 1 ? strategy->ep : 1;
}
/* Ranks that hold the same weights, and so reduce their gradients together: dp * cp. Replica r is context rank r % cp
 * of data rank r / cp. */
static inline int32_t pl_strategy_replicas(const pl_strategy *strategy) {
  return strategy->dp * pl_strategy_cp(strategy);
}
/* Of these, how many share one copy of what ZeRO shards; and how many copies there are. */
static inline int32_t pl_strategy_sharers(const pl_strategy *strategy) {
  return strategy->shard > 0 ? strategy->shard : pl_strategy_replicas(strategy);
}
static inline int32_t pl_strategy_copies(const pl_strategy *strategy) {
  return pl_strategy_replicas(strategy) / pl_strategy_sharers(strategy);
}
/* Microbatches that data rank `data` has in an iteration. */
static inline int64_t pl_strategy_microbatches(const pl_strategy *strategy, const pl_job *job, int32_t data) {
  return strategy->split != NULL ? strategy->split[data] : job->gbs / ((int64_t)strategy->dp * strategy->mbs);
}
/* Whether each expert is cut over the tensor ranks. */
static inline bool pl_strategy_cuts_experts(const pl_strategy *strategy) {
  return strategy->etp > 1;
}
/* Ranks of a stage that hold the same experts, or the same parts of them. */
static inline int32_t pl_strategy_expert_replicas(const pl_strategy *strategy) {
  int32_t ranks = pl_strategy_replicas(strategy) * (pl_strategy_cuts_experts(strategy) ? 1 : strategy->tmp);
  return ranks / pl_strategy_ep(strategy);
}

/* Parses the text form; syntax only (unknown key, number, missing mbs). Recipes leave boundary NULL. pp and tmp that
 * are left out are 1, and so is dp until pl_strategy_spread knows the devices. */
pl_code pl_strategy_parse(const char *text, const pl_model *model, pl_arena *arena, pl_strategy *strategy,
                          pl_error *error);
/* Of a text without dp: as many replicas as there are devices for. Says what would do where pp, cp and tmp do not
 * divide them and none may be left over. */
pl_code pl_strategy_spread(pl_strategy *strategy, uint32_t n_devices, pl_error *error);
/* "pp=1, tmp=1, dp=8" of what was left out; "": nothing was. */
enum { PL_ASSUMED_TEXT_BYTES = 64 };
const char *pl_strategy_assumed(const pl_strategy *strategy, char text[PL_ASSUMED_TEXT_BYTES]);
/* The same as a line of a summary whose values begin in column `column`; no line if nothing was. */
void pl_strategy_assumed_print(FILE *stream, int column, const pl_strategy *strategy);
/* What the text leaves to the framework: `overlap`, `assign`. */
void pl_strategy_adopt(pl_strategy *strategy, const pl_job *job);
/* Whether `text` is a permutation of t, d, p or of t, c, d, p. */
bool pl_strategy_is_order(const char *text);
/* Everything that must hold between strategy, model, job and cluster; says which limit is broken and what would do. */
pl_code pl_strategy_check(const pl_strategy *strategy, const pl_model *model, const pl_job *job, uint32_t n_devices,
                          pl_error *error);
/* Whether the model has a stack of layers; one without (DLRM) takes strategy trees only. */
pl_code pl_strategy_check_layers(const pl_model *model, pl_error *error);
/* Whether the recipe has something for each of pp * vpp chunks: a layer; with `ends` the embedding and the head too. */
pl_code pl_strategy_check_chunks(const pl_strategy *strategy, const pl_model *model, pl_error *error);
/* How the blocks are cut under this strategy and job. */
pl_block_shard pl_strategy_shard(const pl_strategy *strategy, const pl_job *job);
/* Turns a recipe into boundaries. balanced: minimises the time of the largest chunk, each on the devices of its stage;
 * exact, O(devices + layers * profiles * log). PL_UNSUPPORTED for the recipes that need the price of communication:
 * those are pl_assign's (workloads/assign/assign.h), which commands call. */
pl_code pl_strategy_assign(pl_strategy *strategy, const pl_model *model, const pl_job *job, const pl_cluster *cluster,
                           pl_arena *arena, pl_error *error);
/* Without devices, for what no platform is given for: checks the strategy on as many as it has ranks and cuts by
 * recipes that look at the model alone. PL_BAD_INPUT: the recipe needs devices; the message ends with `way_out`. */
pl_code pl_strategy_assign_unplaced(pl_strategy *strategy, const pl_model *model, const pl_job *job,
                                    const char *way_out, pl_arena *arena, pl_error *error);
/* Boundaries begin at 0, end at the number of blocks and rise strictly: what every recipe gives and a given assignment
 * must have. `boundary` is there. */
bool pl_strategy_is_cut(const pl_strategy *strategy, const pl_model *model);
/* The same with prices from a cache (workloads/lower/block_cache.h), which begins anew; NULL = none. */
struct pl_block_cache;
pl_code pl_strategy_assign_cached(pl_strategy *strategy, const pl_model *model, const pl_job *job,
                                  const pl_cluster *cluster, struct pl_block_cache *cache, pl_arena *arena,
                                  pl_error *error);
/* For what prints a strategy: where the rest of a text goes that is `length` long so far; `text` NULL and `size` 0 when
 * only the length is asked for. */
static inline char *pl_strategy_rest(char *text, size_t size, int length, size_t *left) {
  size_t at = (size_t)length < size ? (size_t)length : size;
  *left = size - at;
  return size == 0 ? text : text + at;
}
/* "0:9:15:21:30" in the form in which it was given; returns the length that was needed, like snprintf. */
int pl_strategy_format_assign(const pl_strategy *strategy, const pl_model *model, char *text, size_t size);
/* The whole text form. */
int pl_strategy_format(const pl_strategy *strategy, const pl_model *model, char *text, size_t size);
/* The same, however long, in memory from malloc; NULL: no memory. */
char *pl_strategy_text(const pl_strategy *strategy, const pl_model *model);

/* ---- placement (strategy_placement.c) ---- */

/* Devices that work: pp * dp * cp * tmp. */
static inline uint32_t pl_strategy_n_ranks(const pl_strategy *strategy) {
  return (uint32_t)(strategy->pp * pl_strategy_replicas(strategy) * strategy->tmp);
}
/* Number of the rank at coordinates (pipeline stage, replica, tensor rank) under strategy->order; without context
 * parallelism the replica is the data rank. */
uint32_t pl_strategy_rank(const pl_strategy *strategy, int32_t stage, int32_t replica, int32_t tensor);
/* For loops over many ranks. */
typedef struct pl_rank_strides {
  int32_t cp;
  uint32_t stage, data, context, tensor;
} pl_rank_strides;
pl_rank_strides pl_strategy_rank_strides(const pl_strategy *strategy);
static inline uint32_t pl_rank_at(const pl_rank_strides *strides, int32_t stage, int32_t replica, int32_t tensor) {
  return (uint32_t)stage * strides->stage + (uint32_t)(replica / strides->cp) * strides->data +
         (uint32_t)(replica % strides->cp) * strides->context + (uint32_t)tensor * strides->tensor;
}
static inline uint32_t pl_strategy_device_of_rank(const pl_strategy *strategy, uint32_t rank) {
  return strategy->placement == NULL ? rank : strategy->placement[rank];
}
/* Device of the cluster at these coordinates. */
uint32_t pl_strategy_device(const pl_strategy *strategy, int32_t stage, int32_t replica, int32_t tensor);
/* Reads "0-7:12:8-11", exactly `n` devices; memory from `arena`. Duplicates are found by pl_strategy_check_placement.
 */
pl_code pl_strategy_parse_placement(const char *text, int64_t n, pl_arena *arena, const uint32_t **placement,
                                    pl_error *error);
/* Every device of the placement is one of the `n_devices`, and in it once. */
pl_code pl_strategy_check_placement(const pl_strategy *strategy, uint32_t n_devices, pl_error *error);
/* "0-7:12:8-11", "" without a placement; returns the length that was needed, like snprintf. */
int pl_strategy_format_placement(const pl_strategy *strategy, char *text, size_t size);

/* ---- uneven replicas (strategy_split.c) ---- */

/* Reads "3x2:1": exactly `n` numbers, 1 or more; memory from `arena`. */
pl_code pl_strategy_parse_split(const char *text, int32_t n, pl_arena *arena, const int32_t **split, pl_error *error);
/* The split gives out the whole batch, and nothing that a strategy does once per microbatch joins replicas with
 * different numbers of them: ZeRO 2 and 3, expert groups across replicas. */
pl_code pl_strategy_check_split(const pl_strategy *strategy, const pl_job *job, pl_error *error);
/* "3x2:1", "" without a split; returns the length that was needed, like snprintf. */
int pl_strategy_format_split(const pl_strategy *strategy, char *text, size_t size);

#endif
