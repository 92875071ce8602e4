/* The flat strategy: what must hold between it, the model, the job and the cluster; printing. */
#include "workloads/strategy/strategy.h"
#include "workloads/lower/block_program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/strategy/listed_schedule.h"

const char *const pl_schedule_names[] = {
    "gpipe", "1f1b", "interleaved", "fifo", "breadth-first", "zb-h1", "zb-h2", "zb-v", "dualpipe-v", "dualpipe", NULL};
const char *const pl_ep_overlap_names[] = {"0", "1", "delayed", "shared", NULL};
const char *pl_ep_overlap_word(int64_t ep_overlap) {
  static const char *const switches[] = {"off", "on"};
  if (ep_overlap < 0 || ep_overlap >= PL_EP_OVERLAP_COUNT) return NULL;
  return ep_overlap < 2 ? switches[ep_overlap] : pl_ep_overlap_names[ep_overlap];
}
const char *const pl_recompute_names[] = {"none", "selective", "full", "alternate", NULL};
const char *const pl_assign_names[] = {"given", "uniform", "balanced", "ends", "filled", "optimal", "amp-dp", NULL};

const char *pl_schedule_name(pl_schedule_kind kind) {
  return kind == PL_SCHEDULE_LISTED ? "listed" : pl_schedule_names[kind];
}

/* ---- checks, one limit each ---- */

/* Each degree is below 2^25: more than two of them may overflow. */
static bool multiply_to(const int32_t *degrees, int n, uint32_t wanted, double *shown) {
  int64_t product = 1;
  *shown = 1;
  for (int i = 0; i < n; i++) {
    if (product <= (int64_t)wanted) product *= degrees[i];
    *shown *= degrees[i];
  }
  return product == (int64_t)wanted;
}

/* Some devices may be left over. */
static pl_code check_room(const pl_strategy *strategy, double product, uint32_t n_devices, pl_error *error) {
  if (product <= n_devices) return pl_strategy_check_placement(strategy, n_devices, error);
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: pp=%d * dp=%d * tmp=%d * cp=%d = %.0f ranks, but the platform has only %" PRIu32 " devices",
                 strategy->pp, strategy->dp, strategy->tmp, pl_strategy_cp(strategy), product, n_devices);
}

static pl_code check_degrees(const pl_strategy *strategy, uint32_t n_devices, pl_error *error) {
  const int32_t degrees[] = {strategy->pp, strategy->dp, strategy->tmp, pl_strategy_cp(strategy)};
  double product;
  bool fills = multiply_to(degrees, 4, n_devices, &product);
  if (strategy->placement != NULL || strategy->idle) return check_room(strategy, product, n_devices, error);
  if (fills) return PL_OK;
  const char *idle = product < n_devices ? ", or leave devices idle (idle=1, or placement=)" : "";
  if (strategy->cp > 1)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: pp=%d * dp=%d * tmp=%d * cp=%d = %.0f, but the platform has %" PRIu32
                   " devices; choose degrees whose product is %" PRIu32 "%s",
                   strategy->pp, strategy->dp, strategy->tmp, strategy->cp, product, n_devices, n_devices, idle);
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: pp=%d * dp=%d * tmp=%d = %.0f, but the platform has %" PRIu32
                 " devices; choose degrees whose product is %" PRIu32 "%s",
                 strategy->pp, strategy->dp, strategy->tmp, product, n_devices, n_devices, idle);
}

static pl_code check_batch(const pl_strategy *strategy, const pl_job *job, pl_error *error) {
  if (strategy->split != NULL) return pl_strategy_check_split(strategy, job, error);
  int64_t per_step = (int64_t)strategy->dp * strategy->mbs;
  if (job->gbs % strategy->dp != 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: dp=%d does not divide the global batch of %" PRId64
                   " sequences; choose a dp that does or another --gbs, or say with split= how many microbatches each "
                   "replica gets",
                   strategy->dp, job->gbs);
  if (job->gbs % per_step != 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: dp=%d * mbs=%d = %" PRId64 " does not divide the global batch of %" PRId64
                   " sequences; choose mbs so that dp * mbs divides --gbs",
                   strategy->dp, strategy->mbs, per_step, job->gbs);
  return PL_OK;
}

/* Forward passes that one simulation holds: a hundred times the largest published run (64 stages * 512 microbatches),
 * 1 to 2 GB of tasks. Without a limit a slip in --gbs takes all memory of the machine. */
enum { MOST_PASSES = 1 << 22 };

static pl_code check_size(const pl_strategy *strategy, int64_t n_microbatches, pl_error *error) {
  int64_t per_chunk = MOST_PASSES / pl_strategy_n_chunks(strategy);
  if (n_microbatches <= per_chunk) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "strategy: gbs / (dp * mbs) = %" PRId64 " microbatches on pp * vpp = %d stages are too many to "
                 "simulate; at most %" PRId64 ": choose a larger mbs or a smaller --gbs",
                 n_microbatches, pl_strategy_n_chunks(strategy), per_chunk);
}

static pl_code check_rounds(const pl_strategy *strategy, const pl_job *job, pl_error *error) {
  for (int32_t data = 0; data < (strategy->split != NULL ? strategy->dp : 1); data++) {
    int64_t n_microbatches = pl_strategy_microbatches(strategy, job, data);
    if (n_microbatches % strategy->pp == 0) continue;
    if (strategy->split != NULL)
      return pl_fail(error, PL_BAD_INPUT,
                     "strategy: schedule=interleaved needs numbers of microbatches that pp=%d divides; split gives "
                     "replica %d %" PRId64,
                     strategy->pp, data, n_microbatches);
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: schedule=interleaved needs a number of microbatches (gbs / (dp * mbs) = %" PRId64
                   ") that pp=%d divides",
                   n_microbatches, strategy->pp);
  }
  return PL_OK;
}

/* DualPipe's steps are those of a pipeline that fills in both directions before it drains. */
static pl_code check_fullness(const pl_strategy *strategy, int64_t fewest, pl_error *error) {
  if (strategy->schedule == PL_SCHEDULE_DUALPIPE) {
    if (strategy->pp % 2 != 0 || fewest % 2 != 0 || fewest < 2 * (int64_t)strategy->pp || strategy->split != NULL)
      return pl_fail(
          error, PL_BAD_INPUT,
          "strategy: schedule=dualpipe runs half of the microbatches from either end: pp is even, and "
          "gbs / (dp * mbs) an even number of at least 2 * pp = %d, the same for all replicas; here pp=%d and "
          "%" PRId64 "%s",
          2 * strategy->pp, strategy->pp, fewest, strategy->split != NULL ? " with split=" : "");
    return PL_OK;
  }
  if (strategy->schedule != PL_SCHEDULE_DUALPIPE_V || fewest >= 2 * (int64_t)strategy->pp) return PL_OK;
  return pl_fail(
      error, PL_BAD_INPUT,
      "strategy: schedule=dualpipe-v needs at least 2 * pp = %d microbatches; gbs / (dp * mbs) gives %" PRId64,
      2 * strategy->pp, fewest);
}

static pl_code check_listed(const pl_strategy *strategy, int64_t fewest, int64_t most, pl_error *error) {
  const pl_listed_schedule *listed = strategy->listed;
  if (listed->pp != strategy->pp || listed->vpp != strategy->vpp)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: %s lists %d stages of %d chunks, but the strategy has pp=%d, vpp=%d; use pp=%d,vpp=%d",
                   listed->path, listed->pp, listed->vpp, strategy->pp, strategy->vpp, listed->pp, listed->vpp);
  if (listed->n_microbatches == fewest && listed->n_microbatches == most) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: %s lists %d microbatches, but gbs / (dp * mbs) gives %" PRId64
                 "; list as many, or choose --gbs, dp and mbs for %d",
                 listed->path, listed->n_microbatches, listed->n_microbatches == fewest ? most : fewest,
                 listed->n_microbatches);
}

static pl_code check_chunk_count(const pl_strategy *strategy, pl_error *error) {
  const char *name = pl_schedule_name(strategy->schedule);
  if (pl_schedule_is_chunked(strategy->schedule)) {
    if (strategy->vpp >= 2 && strategy->pp >= 2) return PL_OK;
    return pl_fail(error, PL_BAD_INPUT, "strategy: schedule=%s needs vpp >= 2 and pp >= 2, not vpp=%d, pp=%d", name,
                   strategy->vpp, strategy->pp);
  }
  if (pl_strategy_splits_backward(strategy) && strategy->pp < 2)
    return pl_fail(error, PL_BAD_INPUT, "strategy: schedule=%s needs pp >= 2, not pp=%d", name, strategy->pp);
  if (pl_strategy_is_v(strategy) && strategy->vpp != 2)
    return pl_fail(error, PL_BAD_INPUT, "strategy: schedule=%s has two chunks per stage: vpp=2, not vpp=%d", name,
                   strategy->vpp);
  if (strategy->vpp == 1 || pl_strategy_is_v(strategy)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "strategy: vpp=%d needs schedule=interleaved or breadth-first, not %s",
                 strategy->vpp, name);
}

static pl_code check_schedule(const pl_strategy *strategy, const pl_job *job, pl_error *error) {
  int64_t most = 0, fewest = INT64_MAX;
  for (int32_t data = 0; data < (strategy->split != NULL ? strategy->dp : 1); data++) {
    int64_t n = pl_strategy_microbatches(strategy, job, data);
    most = n > most ? n : most;
    fewest = n < fewest ? n : fewest;
  }
  PL_TRY(check_size(strategy, most, error));
  if (strategy->schedule == PL_SCHEDULE_LISTED) return check_listed(strategy, fewest, most, error);
  PL_TRY(check_chunk_count(strategy, error));
  PL_TRY(check_fullness(strategy, fewest, error));
  return strategy->schedule == PL_SCHEDULE_INTERLEAVED ? check_rounds(strategy, job, error) : PL_OK;
}

static pl_code check_assignment(const pl_strategy *strategy, const pl_model *model, pl_error *error) {
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  if (strategy->boundary == NULL) {
    return pl_strategy_check_chunks(strategy, model, error);
  }
  for (int32_t i = 0; i < n_chunks; i++)
    if (strategy->boundary[i] >= strategy->boundary[i + 1])
      return pl_fail(error, PL_BAD_INPUT,
                     "strategy: assign has boundary %d before %d; boundaries must increase strictly from 0 to %d "
                     "layers or %d blocks",
                     strategy->boundary[i], strategy->boundary[i + 1], model->n_layers, pl_model_n_blocks(model));
  PL_ASSERT(pl_strategy_is_cut(strategy, model));
  return PL_OK;
}

/* Does not depend on the placement: the expert group's ranks are counted inside a stage. */
static pl_code check_experts(const pl_strategy *strategy, const pl_model *model, pl_error *error) {
  bool cuts = pl_strategy_cuts_experts(strategy);
  if (cuts && (model->moe.n_experts == 0 || strategy->etp != strategy->tmp))
    return pl_fail(error, PL_BAD_INPUT, "strategy: etp=%d, but %s; use etp=1%s", strategy->etp,
                   model->moe.n_experts == 0 ? "the model has no experts"
                                             : "experts are cut over all tensor ranks or none",
                   model->moe.n_experts == 0 ? "" : " or etp=tmp");
  int64_t ranks = (int64_t)pl_strategy_replicas(strategy) * (cuts ? 1 : strategy->tmp);
  if (strategy->ep <= 1 || (model->moe.n_experts > 0 && ranks % strategy->ep == 0)) return PL_OK;
  if (model->moe.n_experts == 0)
    return pl_fail(error, PL_BAD_INPUT, "strategy: ep=%d, but %s has no experts; use ep=1", strategy->ep, model->name);
  return pl_fail(error, PL_BAD_INPUT, "strategy: ep=%d does not divide the dp * cp%s = %" PRId64 " %s of a stage",
                 strategy->ep, cuts ? "" : " * tmp", ranks, cuts ? "replicas (etp=tmp)" : "ranks");
}

/* As Megatron Core has it (transformer_config.py): every forward pass beside a backward one must have been received
 * before it, which of pipelines only the interleaved schedule sees to; and tokens are not exchanged once more. */
static pl_code check_pairs(const pl_strategy *strategy, const char *how, pl_error *error) {
  if (strategy->schedule != (strategy->pp > 1 ? PL_SCHEDULE_INTERLEAVED : PL_SCHEDULE_1F1B))
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: ep_overlap=%s with pp=%d is of schedule=%s, not %s: in no other order is every forward "
                   "pass received before the backward pass beside it",
                   how, strategy->pp, strategy->pp > 1 ? "interleaved (vpp=2 or more)" : "1f1b",
                   pl_schedule_name(strategy->schedule));
  if (strategy->zero >= 3)
    return pl_fail(
        error, PL_BAD_INPUT,
        "strategy: ep_overlap=%s with zero=3: both passes would gather parameters at once; use zero=0, 1 or 2", how);
  return PL_OK;
}

/* Of ranks whose experts' tokens go over the tensor group, too, nothing runs beside that. */
static pl_code check_put_off(const pl_strategy *strategy, const pl_model *model, const char *how, pl_error *error) {
  if (strategy->ep_overlap == PL_EP_OVERLAP_SHARED && model->moe.shared_ffn == 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: ep_overlap=shared, but %s has no shared experts to compute meanwhile; use ep_overlap=0 "
                   "or 1",
                   model->name);
  if (strategy->ep_overlap >= PL_EP_OVERLAP_DELAYED && strategy->etp > 1)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: ep_overlap=%s with etp=tmp: tokens are gathered over the tensor ranks behind their "
                   "exchange, beside which nothing runs; use etp=1",
                   how);
  return PL_OK;
}

static pl_code check_hidden_tokens(const pl_strategy *strategy, const pl_model *model, pl_error *error) {
  const char *how = pl_ep_overlap_names[strategy->ep_overlap];
  if (strategy->ep_overlap == PL_EP_OVERLAP_NONE) return PL_OK;
  if (strategy->ep <= 1)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: ep_overlap=%s hides the exchange of tokens between experts' ranks, "
                   "and ep=1 exchanges none; use ep > 1 or ep_overlap=0",
                   how);
  if (strategy->schedule == PL_SCHEDULE_DUALPIPE_V || strategy->schedule == PL_SCHEDULE_DUALPIPE)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: schedule=%s runs passes beside each other by itself; leave out ep_overlap=%s",
                   pl_schedule_name(strategy->schedule), how);
  if (pl_strategy_pairs_passes(strategy)) PL_TRY(check_pairs(strategy, how, error));
  if (pl_strategy_multiplies_again(strategy))
    return pl_fail(
        error, PL_BAD_INPUT,
        "strategy: ep_overlap=%s with recompute=%s: tokens would be exchanged once more in the backward pass; "
        "use recompute=none or selective",
        how, pl_recompute_names[strategy->recompute]);
  return check_put_off(strategy, model, how, error);
}

static pl_code check_shard(const pl_strategy *strategy, const pl_model *model, pl_error *error) {
  int32_t shard = strategy->shard, replicas = pl_strategy_replicas(strategy);
  if (shard == 0) return PL_OK;
  if (strategy->zero == 0)
    return pl_fail(error, PL_BAD_INPUT, "strategy: shard=%d, but zero=0 shards nothing; use zero=1, 2 or 3", shard);
  if (shard == 1 || replicas % shard != 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: shard=%d %s; it divides the dp * cp = %d ranks and is at least 2 (0: all of them)", shard,
                   shard == 1 ? "shards nothing" : "does not divide", replicas);
  if (model->moe.n_experts == 0 || (strategy->tmp == 1 && pl_strategy_ep(strategy) == 1)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: shard=%d with tmp=%d, ep=%d: experts have groups of their own; use shard=0", shard,
                 strategy->tmp, pl_strategy_ep(strategy));
}

static pl_code check_options(const pl_strategy *strategy, const pl_model *model, const pl_job *job, pl_error *error) {
  if (strategy->recompute_layers > 0 && strategy->recompute == PL_RECOMPUTE_NONE)
    return pl_fail(
        error, PL_BAD_INPUT,
        "strategy: recompute_layers=%d of each chunk, and recompute=none; say how: full, selective or alternate",
        strategy->recompute_layers);
  if (strategy->sp && strategy->tmp == 1)
    return pl_fail(error, PL_BAD_INPUT, "strategy: sp=1 (sequence parallelism) needs tmp > 1");
  if (strategy->sp && job->seq / pl_strategy_cp(strategy) % strategy->tmp != 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: sp=1 needs a sequence length that tmp divides; tmp=%d does not divide %" PRId64,
                   strategy->tmp, job->seq / pl_strategy_cp(strategy));
  if (strategy->zero >= 2 && pl_strategy_splits_backward(strategy))
    return pl_fail(error, PL_BAD_INPUT,
                   "strategy: zero=%d shards gradients in every backward pass, which schedule=%s splits in two; use "
                   "zero=1 or schedule=1f1b",
                   strategy->zero, pl_schedule_name(strategy->schedule));
  if (model->positions.learned_positions && job->seq > model->positions.max_positions)
    return pl_fail(error, PL_BAD_INPUT,
                   "sequence length %" PRId64 " exceeds the model's %" PRId64 " learned positions; lower --seq",
                   job->seq, model->positions.max_positions);
  return PL_OK;
}

pl_block_shard pl_strategy_shard(const pl_strategy *strategy, const pl_job *job) {
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  bool scatters = strategy->zero >= 2;
  return (pl_block_shard){.tmp = strategy->tmp,
                          .sp = strategy->sp,
                          .cp = strategy->cp,
                          .cp_gather = strategy->cp_gather,
                          .ep = strategy->ep,
                          .etp = strategy->etp,
                          .mbs = strategy->mbs,
                          .seq = job->seq,
                          .recompute = strategy->recompute,
                          .dtype = job->dtype,
                          .fp8 = job->fp8,
                          .fp4 = job->fp4,
                          .flash = job->flash,
                          .attention_kernel = (pl_attention_kernel)framework->kernels.attention_kernel,
                          .framework = job->framework,
                          .halves = pl_strategy_splits_backward(strategy),
                          .token_order = (uint8_t)pl_strategy_token_order(strategy),
                          .scatters = scatters && strategy->dp * strategy->cp > 1,
                          .scatters_experts = scatters && pl_strategy_expert_replicas(strategy) > 1};
}

void pl_strategy_adopt(pl_strategy *strategy, const pl_job *job) {
  if (!strategy->overlap_is_given)
    strategy->overlap = pl_framework_or_ideal(job->framework)->gradients.overlaps_gradients &&
                        !pl_framework_reduces_whole(job->framework, strategy->zero);
  if (!strategy->assign_is_given && strategy->boundary == NULL)
    strategy->recipe = (pl_assign_recipe)(PL_ASSIGN_UNIFORM + pl_framework_or_ideal(job->framework)->pipeline.assign);
}

pl_code pl_strategy_check(const pl_strategy *strategy, const pl_model *model, const pl_job *job, uint32_t n_devices,
                          pl_error *error) {
  PL_TRY(check_degrees(strategy, n_devices, error));
  PL_TRY(check_batch(strategy, job, error));
  PL_TRY(check_schedule(strategy, job, error));
  PL_TRY(check_options(strategy, model, job, error));
  PL_TRY(check_experts(strategy, model, error));
  PL_TRY(check_hidden_tokens(strategy, model, error));
  PL_TRY(check_shard(strategy, model, error));
  PL_TRY(check_assignment(strategy, model, error));
  const pl_block_shard shard = pl_strategy_shard(strategy, job);
  return pl_block_check_shard(model, &shard, error);
}

/* ---- printing ---- */

/* Layers say where it is cut unless it is among the blocks in front of them, or among those behind. */
static bool is_cut_between_layers(const pl_strategy *strategy, const pl_model *model) {
  const int32_t *boundary = strategy->boundary;
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  return n_chunks == 1 || (boundary[1] >= PL_MODEL_BLOCKS_BEFORE_LAYERS &&
                           boundary[n_chunks - 1] <= PL_MODEL_BLOCKS_BEFORE_LAYERS + model->n_layers);
}

/* Boundary in blocks as the user counts: layers hide the two blocks in front of them and the four behind. */
static int32_t shown_boundary(const pl_strategy *strategy, const pl_model *model, int32_t index) {
  int32_t boundary = strategy->boundary[index];
  if (!strategy->counts_layers || index == 0 || !is_cut_between_layers(strategy, model)) return boundary;
  return index == pl_strategy_n_chunks(strategy) ? model->n_layers : boundary - PL_MODEL_BLOCKS_BEFORE_LAYERS;
}

int pl_strategy_format_assign(const pl_strategy *strategy, const pl_model *model, char *text, size_t size) {
  if (strategy->boundary == NULL) return snprintf(text, size, "%s", pl_assign_names[strategy->recipe]);
  int length = 0;
  for (int32_t i = 0; i <= pl_strategy_n_chunks(strategy); i++) {
    size_t left;
    char *rest = pl_strategy_rest(text, size, length, &left);
    length += snprintf(rest, left, "%s%d", i == 0 ? "" : ":", shown_boundary(strategy, model, i));
  }
  return length;
}

const char *const pl_offload_names[PL_OFFLOAD_COUNT + 1] = {"none", "states", "kept", "both", "gradients", "all", NULL};

/* Bits: states, kept, and gradients, which need states there. */
static const uint8_t offload_bits[PL_OFFLOAD_COUNT] = {0, 1, 2, 3, 5, 7};

void pl_strategy_set_offload(pl_strategy *strategy, int offload) {
  strategy->offload_states = (offload_bits[offload] & 1) != 0;
  strategy->offload_kept = (offload_bits[offload] & 2) != 0;
  strategy->offload_gradients = (offload_bits[offload] & 4) != 0;
}

int pl_strategy_offload(const pl_strategy *strategy) {
  int bits =
      (strategy->offload_states ? 1 : 0) | (strategy->offload_kept ? 2 : 0) | (strategy->offload_gradients ? 4 : 0);
  int offload = 0;
  while (offload + 1 < PL_OFFLOAD_COUNT && offload_bits[offload] != bits)
    offload++;
  return offload;
}

/* What only some strategies have: "" or ",cp=2,cp_comm=gather,ep=8,shard=4". */
enum { EXTRAS_BYTES = 128 };
static void format_extras(const pl_strategy *strategy, char text[EXTRAS_BYTES]) {
  size_t length = 0;
  text[0] = '\0';
  if (strategy->cp > 1)
    length =
        (size_t)snprintf(text, EXTRAS_BYTES, ",cp=%d%s", strategy->cp, strategy->cp_gather ? ",cp_comm=gather" : "");
  if (strategy->ep > 1) length += (size_t)snprintf(text + length, EXTRAS_BYTES - length, ",ep=%d", strategy->ep);
  if (strategy->etp > 1) length += (size_t)snprintf(text + length, EXTRAS_BYTES - length, ",etp=%d", strategy->etp);
  if (strategy->ep_overlap)
    length += (size_t)snprintf(text + length, EXTRAS_BYTES - length, ",ep_overlap=%s",
                               pl_ep_overlap_names[strategy->ep_overlap]);
  if (strategy->shard > 0)
    length += (size_t)snprintf(text + length, EXTRAS_BYTES - length, ",shard=%d", strategy->shard);
  if (strategy->offload_states || strategy->offload_kept)
    length += (size_t)snprintf(text + length, EXTRAS_BYTES - length, ",offload=%s",
                               pl_offload_names[pl_strategy_offload(strategy)]);
  if (strategy->recompute_layers > 0)
    snprintf(text + length, EXTRAS_BYTES - length, ",recompute_layers=%d", strategy->recompute_layers);
}

int pl_strategy_format(const pl_strategy *strategy, const pl_model *model, char *text, size_t size) {
  char extras[EXTRAS_BYTES];
  bool listed = strategy->schedule == PL_SCHEDULE_LISTED;
  format_extras(strategy, extras);
  int length = snprintf(
      text, size, "pp=%d,dp=%d,tmp=%d%s,mbs=%d,schedule=%s%s,vpp=%d,sp=%d,recompute=%s,zero=%d,overlap=%d,order=%s%s,",
      strategy->pp, strategy->dp, strategy->tmp, extras, strategy->mbs, listed ? "@" : "",
      listed ? strategy->listed->path : pl_schedule_name(strategy->schedule), strategy->vpp, strategy->sp,
      pl_recompute_names[strategy->recompute], strategy->zero, strategy->overlap, strategy->order,
      strategy->idle ? ",idle=1" : "");
  size_t left;
  char *rest = pl_strategy_rest(text, size, length, &left);
  if (strategy->split != NULL) {
    length += snprintf(rest, left, "split=");
    rest = pl_strategy_rest(text, size, length, &left);
    length += pl_strategy_format_split(strategy, rest, left);
    rest = pl_strategy_rest(text, size, length, &left);
    length += snprintf(rest, left, ",");
    rest = pl_strategy_rest(text, size, length, &left);
  }
  if (strategy->placement != NULL) {
    length += snprintf(rest, left, "placement=");
    rest = pl_strategy_rest(text, size, length, &left);
    length += pl_strategy_format_placement(strategy, rest, left);
    rest = pl_strategy_rest(text, size, length, &left);
    length += snprintf(rest, left, ",");
    rest = pl_strategy_rest(text, size, length, &left);
  }
  length += snprintf(rest, left, "assign=");
  rest = pl_strategy_rest(text, size, length, &left);
  return length + pl_strategy_format_assign(strategy, model, rest, left);
}

char *pl_strategy_text(const pl_strategy *strategy, const pl_model *model) {
  size_t size = (size_t)pl_strategy_format(strategy, model, NULL, 0) + 1;
  char *text = malloc(size);
  if (text != NULL) pl_strategy_format(strategy, model, text, size);
  return text;
}
