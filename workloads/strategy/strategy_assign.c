/* Recipes for the layer assignment. Both cut between transformer layers only, as frameworks do: embedding goes with the
 * first stage, final norm, head and loss with the last.
 *
 * ends      equal shares of the layers and the two ends, which count as a layer each: the first stage has the embedding
 * and the last one the head in a layer's place, and nothing but them where there are as many stages as that (Megatron
 * Core's account-for-embedding and account-for-loss in the pipeline split; how Llama 3.1 405B's 126 layers divide).
 * uniform   equal layer counts; what is left over is spread so that the last stage, which carries the head, never has
 * more than others. balanced  minimises the largest stage time (forward + backward of the microbatches of an
 * iteration), each stage on the devices that the placement gives it and as slow as the slowest of them: with unlike
 * devices stages get unlike numbers of layers. Exact: the smallest feasible bound is found by bisection on greedy
 * packing, ending on a value that a stage really takes; the cuts under that bound are then spread as evenly as it
 * allows. filled    nanotron's rule: blocks in order, each weighed by the elements of its matrices, the embedding by
 * nothing; a stage takes blocks until those so far have passed its share of the whole (so that early stages have a
 * layer more than their share, and the head may stand alone). Where no block has matrices that the rule knows
 * (convolutional networks, perceptrons) all layers weigh the same.
 *
 * Every recipe ends in pl_strategy_is_cut, which stays on.
 */
#include <math.h>
#include <string.h>

#include "workloads/lower/block_cache.h"
#include "workloads/strategy/strategy.h"

/* One profile is in `prefix` as prefix[p][i]: time of the first i layers on it; embedding in layer 0, the tail in the
 * last. A stage takes as long as the slowest of its devices. */
typedef struct packing {
  const double *const *prefix;
  const double *share; /* [stage][profile]: microbatches of the rank with most that is on this profile, as a share of
                          the most of any; 0: none is */
  const pl_strategy *strategy;
  int32_t n_layers, n_chunks, n_profiles;
} packing;

static double chunk_time_s(const packing *pack, int32_t chunk, int32_t first, int32_t end) {
  if (pack->n_profiles == 1) return pack->prefix[0][end] - pack->prefix[0][first]; /* shares are 1 */
  const double *share = &pack->share[(ptrdiff_t)pl_strategy_stage_of(pack->strategy, chunk) * pack->n_profiles];
  double time_s = 0;
  for (int32_t p = 0; p < pack->n_profiles; p++)
    if (pack->prefix[p] != NULL && share[p] > 0)
      time_s = fmax(time_s, share[p] * (pack->prefix[p][end] - pack->prefix[p][first]));
  return time_s;
}

static double block_time_s(const pl_block_program *program, const pl_op_time *const times[2]) {
  double time_s = 0;
  const pl_op_list lists[2] = {program->forward, program->backward};
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < lists[pass].n_ops; i++)
      if (lists[pass].ops[i].kind != PL_OP_COLLECTIVE) time_s += times[pass][i].time_s;
  return time_s;
}

/* Largest stage when each stage takes as many layers as `bound_s` allows (leaving one for each later stage); INFINITY
 * when it does not fit, and then *next_s is the least bound with which a stage would have taken another layer: below it
 * nothing fits either. */
static double pack_greedily(const packing *pack, double bound_s, double *next_s) {
  double largest_s = 0;
  *next_s = INFINITY;
  int32_t start = 0;
  for (int32_t c = 0; c < pack->n_chunks; c++) {
    int32_t last = pack->n_layers - (pack->n_chunks - 1 - c), end = start + 1;
    double longer_s = 0;
    while (end < last && (longer_s = chunk_time_s(pack, c, start, end + 1)) <= bound_s)
      end++;
    if (longer_s > bound_s) *next_s = fmin(*next_s, longer_s);
    if (c == pack->n_chunks - 1) end = pack->n_layers;
    double time_s = chunk_time_s(pack, c, start, end);
    if (time_s > bound_s) {
      *next_s = fmin(*next_s, time_s);
      return INFINITY;
    }
    largest_s = fmax(largest_s, time_s);
    start = end;
  }
  return largest_s;
}

/* Bisection between bounds that stages really take: a handful of packings. `low` is the least that may do. */
static double smallest_bound(const packing *pack) {
  double next_s, low = 0, high = pack_greedily(pack, INFINITY, &next_s);
  while (low < high) {
    double middle = low + (high - low) / 2; /* neighbours have none */
    double found = pack_greedily(pack, middle < high ? middle : low, &next_s);
    if (isfinite(found)) {
      high = found;
    } else {
      low = next_s;
    }
  }
  return high;
}

/* earliest[c]: the smallest first layer of chunk c from which chunks c.. can still be packed under the bound. */
static void earliest_starts(const packing *pack, double bound_s, int32_t *earliest) {
  int32_t end = pack->n_layers;
  for (int32_t c = pack->n_chunks; c-- > 0;) {
    int32_t start = end - 1;
    while (start > c && chunk_time_s(pack, c, start - 1, end) <= bound_s)
      start--;
    earliest[c] = start;
    end = start;
  }
}

/* How many times the work of chunk c the chunks from c on do in the time in which that one does its own. */
static double work_left(const packing *pack, int32_t c) {
  double own_s = chunk_time_s(pack, c, 0, pack->n_layers), sum = 0;
  if (pack->n_profiles == 1 && own_s > 0) return pack->n_chunks - c;
  for (int32_t other = c; other < pack->n_chunks; other++)
    sum += own_s / chunk_time_s(pack, other, 0, pack->n_layers);
  return sum;
}

static void spread(const packing *pack, double bound_s, const int32_t *earliest, int32_t *cut) {
  cut[0] = 0;
  cut[pack->n_chunks] = pack->n_layers;
  for (int32_t c = 0; c < pack->n_chunks - 1; c++) {
    int32_t start = cut[c], last = pack->n_layers - (pack->n_chunks - 1 - c);
    double target_s = chunk_time_s(pack, c, start, pack->n_layers) / work_left(pack, c);
    int32_t end = earliest[c + 1] > start + 1 ? earliest[c + 1] : start + 1;
    while (end < last && chunk_time_s(pack, c, start, end + 1) <= bound_s &&
           chunk_time_s(pack, c, start, end) + chunk_time_s(pack, c, end, end + 1) / 2 <= target_s)
      end++;
    cut[c + 1] = end;
  }
}

/* ---- times and shares ---- */

/* Of the blocks in front of the layers or behind them. */
static double ends_s(const pl_model *model, const double *time_s, int32_t block, int32_t end) {
  double sum_s = 0;
  for (; block < end; block++)
    sum_s += time_s[pl_model_block_class(model, block)];
  return sum_s;
}

static void layer_times(const pl_model *model, const pl_block_program *programs, const pl_block_prices *prices,
                        double *prefix) {
  double time_s[PL_MODEL_CLASSES_MAX];
  const int32_t first = PL_MODEL_BLOCKS_BEFORE_LAYERS;
  for (int32_t c = 0; c < pl_model_n_classes(model); c++)
    time_s[c] = block_time_s(&programs[c], prices->times[c]);
  for (int32_t i = 0; i < model->n_layers; i++)
    prefix[i + 1] =
        prefix[i] + time_s[pl_model_block_class(model, i + first)] + (i == 0 ? ends_s(model, time_s, 0, first) : 0);
  prefix[model->n_layers] += ends_s(model, time_s, first + model->n_layers, pl_model_n_blocks(model));
}

/* Fills `share` and says which profiles any rank is on. */
static void find_shares(const pl_strategy *strategy, const pl_job *job, const pl_cluster *cluster, double *share,
                        bool *is_used) {
  int64_t most = 0;
  if (cluster->n_profiles == 1) { /* somebody has the most */
    for (int32_t stage = 0; stage < strategy->pp; stage++)
      share[stage] = 1;
    is_used[0] = true;
    return;
  }
  for (int32_t data = 0; data < strategy->dp; data++) {
    int64_t n = pl_strategy_microbatches(strategy, job, data);
    most = n > most ? n : most;
  }
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
      for (int32_t t = 0; t < strategy->tmp; t++) {
        uint32_t profile = cluster->devices[pl_strategy_device(strategy, stage, r, t)].profile;
        double n = (double)pl_strategy_microbatches(strategy, job, r / pl_strategy_cp(strategy));
        double *own = &share[(size_t)stage * cluster->n_profiles + profile];
        *own = fmax(*own, n / (double)most);
        is_used[profile] = true;
      }
}

static pl_code take_packing(const pl_strategy *strategy, const pl_model *model, const pl_job *job,
                            const pl_cluster *cluster, const pl_block_program *programs, pl_block_cache *cache,
                            pl_arena *arena, packing *pack, pl_error *error) {
  double *share = PL_TAKE(arena, double, (size_t)strategy->pp * cluster->n_profiles);
  bool *is_used = PL_TAKE(arena, bool, cluster->n_profiles);
  const double **prefix = PL_TAKE(arena, const double *, cluster->n_profiles);
  if (arena->failed) return pl_fail_memory(error, "the layer assignment");
  find_shares(strategy, job, cluster, share, is_used);
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    double *own = is_used[p] ? PL_TAKE(arena, double, model->n_layers + 1) : NULL;
    prefix[p] = own;
    if (own == NULL) continue;
    const pl_block_prices *prices;
    PL_TRY(pl_block_cache_prices(cache, model, programs, &cluster->profiles[p], arena, &prices, error));
    layer_times(model, programs, prices, own);
  }
  *pack = (packing){.prefix = prefix,
                    .share = share,
                    .strategy = strategy,
                    .n_layers = model->n_layers,
                    .n_chunks = pl_strategy_n_chunks(strategy),
                    .n_profiles = (int32_t)cluster->n_profiles};
  return arena->failed ? pl_fail_memory(error, "the layer assignment") : PL_OK;
}

static pl_code pack_layers(const pl_strategy *strategy, const pl_model *model, const pl_job *job,
                           const pl_cluster *cluster, const pl_block_program *programs, pl_block_cache *cache,
                           pl_arena *arena, int32_t *cut, pl_error *error) {
  int32_t *earliest = PL_TAKE(arena, int32_t, pl_strategy_n_chunks(strategy));
  packing pack;
  if (earliest == NULL) return pl_fail_memory(error, "the layer assignment");
  PL_TRY(take_packing(strategy, model, job, cluster, programs, cache, arena, &pack, error));
  double bound_s = smallest_bound(&pack);
  earliest_starts(&pack, bound_s, earliest);
  spread(&pack, bound_s, earliest, cut);
  return PL_OK;
}

/* On devices of one kind the cut depends on the blocks and the number of chunks alone, wherever these are. */
static pl_code cut_balanced(const pl_strategy *strategy, const pl_model *model, const pl_job *job,
                            const pl_cluster *cluster, pl_block_cache *cache, pl_arena *arena, int32_t *cut,
                            pl_error *error) {
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  const pl_block_shard shard = pl_strategy_shard(strategy, job);
  const pl_block_program *programs;
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  PL_ASSERT(cluster != NULL);
  pl_block_cache_begin(cache, cluster, model);
  PL_TRY(pl_block_cache_programs(cache, model, &shard, arena, &programs, error));
  const int32_t *kept = cluster->n_profiles == 1 ? pl_block_cache_cut(cache, programs, n_chunks) : NULL;
  if (kept != NULL) {
    memcpy(cut, kept, ((size_t)n_chunks + 1) * sizeof *cut);
    return PL_OK;
  }
  PL_TRY(pack_layers(strategy, model, job, cluster, programs, cache, arena, cut, error));
  if (cluster->n_profiles == 1) pl_block_cache_keep_cut(cache, programs, n_chunks, cut);
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}

static void cut_uniformly(int32_t n_layers, int32_t n_chunks, int32_t *cut) {
  for (int32_t c = 0; c <= n_chunks; c++)
    cut[c] = (int32_t)(((int64_t)c * n_layers + n_chunks - 1) / n_chunks);
}

/* Elements of the matrices that a block multiplies by, as nanotron counts them: key-value heads as if all heads had
 * their own (huggingface/nanotron@0e0a27ea83cf, models/llama.py, get_block_compute_costs). */
static double matrix_elements(const pl_model *model, int32_t block) {
  pl_block_kind kind = pl_model_block_kind(model, block);
  if (model->unlike.parts != NULL) model = model->unlike.parts[model->unlike.part_of[block]].model;
  double h = (double)model->width.hidden;
  switch (kind) {
  case PL_BLOCK_LAYER:
  case PL_BLOCK_EXPERT_LAYER:
    return 4 * (double)(model->attention.n_heads * model->attention.head_size) * h +
           (model->mlp.gated_mlp ? 3 : 2) * (double)model->width.ffn_hidden * h;
  case PL_BLOCK_HEAD:
    return (double)model->width.vocab * h;
  default:
    return 0;
  }
}

/* What the blocks in front of the loss weigh, in all of them and one by one. */
typedef struct weights {
  const pl_model *model;
  bool alike; /* no block has matrices */
  double whole;
} weights;

static double weight_of(const weights *w, int32_t block) {
  int32_t layer = block - PL_MODEL_BLOCKS_BEFORE_LAYERS;
  return w->alike ? layer >= 0 && layer < w->model->n_layers : matrix_elements(w->model, block);
}

static bool weigh(const pl_model *model, weights *w) {
  int32_t loss = pl_model_n_blocks(model) - 1;
  *w = (weights){.model = model};
  for (int pass = 0; pass < 2 && !(w->whole > 0); pass++) {
    w->alike = pass > 0;
    for (int32_t block = 0; block < loss; block++)
      w->whole += weight_of(w, block);
  }
  return w->whole > 0;
}

static pl_code refuse_empty_stage(int32_t n_chunks, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: assign=filled leaves the last of %d stages empty; use fewer stages or assign=balanced",
                 n_chunks);
}

/* models/base.py, build_model, there. Between head and loss nanotron casts the logits to fp32, which here is part of
 * the loss: where the cast would have a stage to itself, the head has it. */
static pl_code cut_filled(const pl_model *model, int32_t n_chunks, int32_t *cut, pl_error *error) {
  int32_t loss = pl_model_n_blocks(model) - 1, chunk = 0;
  double sum = 0;
  weights w;
  if (!weigh(model, &w))
    return pl_fail(error, PL_BAD_INPUT, "strategy: assign=filled weighs layers, and %s has none", model->name);
  cut[0] = 0;
  for (int32_t block = 0; block < loss; block++) {
    sum += weight_of(&w, block);
    bool counts = pl_model_block_kind(model, block) != PL_BLOCK_IDENTITY; /* nanotron has no such blocks */
    if (counts && sum > w.whole * ((double)(chunk + 1) / n_chunks)) cut[++chunk] = block + 1;
  }
  if (chunk > 0 && chunk == n_chunks - 2 && cut[chunk - 1] < loss - 1) {
    cut[chunk++] = loss - 1;
    cut[chunk] = loss;
  }
  return chunk == n_chunks - 1 ? PL_OK : refuse_empty_stage(n_chunks, error);
}

/* Unit 0 is the embedding, unit i the i-th layer, the last one the head; the cut is the block that the unit begins. */
static void cut_with_ends(int32_t n_layers, int32_t n_chunks, int32_t *cut) {
  cut_uniformly(n_layers + 2, n_chunks, cut);
  for (int32_t c = 1; c < n_chunks; c++)
    cut[c] += PL_MODEL_BLOCKS_BEFORE_LAYERS - 1;
}

/* Of unlike blocks only the transformer layers are counted, and a chunk begins with its first one: DeepSpeed's
 * partition by type, which AMP's Megatron baseline has (0 14 30 of GPT-2's blocks, 0 41 56 of TransGAN's). */
static bool counts_kind(const pl_model *model, const pl_strategy *strategy) {
  if (pl_model_count_blocks(model, PL_BLOCK_LAYER) == 0) return false; /* MLPs */
  return model->unlike.parts != NULL && (strategy->recipe == PL_ASSIGN_UNIFORM || strategy->recipe == PL_ASSIGN_ENDS);
}

static void cut_by_kind(const pl_model *model, int32_t n_chunks, int32_t *cut) {
  int32_t layer = 0, chunk = 1;
  cut_uniformly(pl_model_count_blocks(model, PL_BLOCK_LAYER), n_chunks, cut);
  for (int32_t block = 0; block < pl_model_n_blocks(model) && chunk < n_chunks; block++) {
    if (pl_model_block_kind(model, block) != PL_BLOCK_LAYER) continue;
    if (layer++ == cut[chunk]) cut[chunk++] = block;
  }
}

pl_code pl_strategy_check_layers(const pl_model *model, pl_error *error) {
  if (model->n_layers > 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: %s has no stack of layers that pp, dp and tmp could cut: name a strategy tree (simulate "
                 "--strategy TREE.yaml), or trees with choices (search, sweep --strategy-space FILE)",
                 model->name);
}

pl_code pl_strategy_check_chunks(const pl_strategy *strategy, const pl_model *model, pl_error *error) {
  int32_t n_chunks = pl_strategy_n_chunks(strategy), n_units = model->n_layers;
  if (strategy->recipe == PL_ASSIGN_ENDS) n_units += 2;
  if (counts_kind(model, strategy)) n_units = pl_model_count_blocks(model, PL_BLOCK_LAYER);
  if (strategy->recipe == PL_ASSIGN_FILLED) { /* says itself what it leaves empty */
    int32_t n_blocks = pl_model_n_blocks(model);
    return n_chunks < n_blocks ? PL_OK : refuse_empty_stage(n_chunks, error);
  }
  if (n_chunks <= n_units) return PL_OK;
  PL_TRY(pl_strategy_check_layers(model, error));
  if (pl_model_count_blocks(model, PL_BLOCK_CHAIN) > 0)
    return pl_fail(
        error, PL_BAD_INPUT,
        "strategy: pp * vpp = %d stages for %s, of whose %d blocks (with the loss) a recipe makes at most %d "
        "stage%s, as it leaves those at the ends together; name the blocks that stages begin with, "
        "assign=0:...:%d",
        n_chunks, model->name, pl_model_n_blocks(model), n_units, n_units == 1 ? "" : "s", pl_model_n_blocks(model));
  int32_t n_layers = counts_kind(model, strategy) ? n_units : model->n_layers;
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: pp * vpp = %d stages for a model of %d layer%s; at most one stage per layer%s", n_chunks,
                 n_layers, n_layers == 1 ? "" : "s", strategy->recipe == PL_ASSIGN_ENDS ? ", embedding and head" : "");
}

bool pl_strategy_is_cut(const pl_strategy *strategy, const pl_model *model) {
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  if (strategy->boundary[0] != 0 || strategy->boundary[n_chunks] != pl_model_n_blocks(model)) return false;
  for (int32_t c = 0; c < n_chunks; c++)
    if (strategy->boundary[c] >= strategy->boundary[c + 1]) return false;
  return true;
}

pl_code pl_strategy_assign(pl_strategy *strategy, const pl_model *model, const pl_job *job, const pl_cluster *cluster,
                           pl_arena *arena, pl_error *error) {
  return pl_strategy_assign_cached(strategy, model, job, cluster, NULL, arena, error);
}

pl_code pl_strategy_assign_cached(pl_strategy *strategy, const pl_model *model, const pl_job *job,
                                  const pl_cluster *cluster, struct pl_block_cache *cache, pl_arena *arena,
                                  pl_error *error) {
  if (strategy->recipe == PL_ASSIGN_GIVEN) return PL_OK;
  if (strategy->recipe == PL_ASSIGN_OPTIMAL || strategy->recipe == PL_ASSIGN_AMP)
    return pl_fail(error, PL_UNSUPPORTED, "assign=%s needs the price of communication",
                   pl_assign_names[strategy->recipe]);
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  PL_TRY(pl_strategy_check_chunks(strategy, model, error));
  int32_t *cut = PL_TAKE(arena, int32_t, n_chunks + 1);
  if (cut == NULL) return pl_fail_memory(error, "the layer assignment");
  bool by_kind = counts_kind(model, strategy);
  bool in_blocks = by_kind || strategy->recipe == PL_ASSIGN_ENDS || strategy->recipe == PL_ASSIGN_FILLED;
  if (by_kind) {
    cut_by_kind(model, n_chunks, cut);
  } else if (strategy->recipe == PL_ASSIGN_FILLED) {
    PL_TRY(cut_filled(model, n_chunks, cut, error));
  } else if (in_blocks) {
    cut_with_ends(model->n_layers, n_chunks, cut);
  } else if (strategy->recipe == PL_ASSIGN_UNIFORM) {
    cut_uniformly(model->n_layers, n_chunks, cut);
  } else {
    PL_TRY(cut_balanced(strategy, model, job, cluster, cache, arena, cut, error));
  }
  for (int32_t c = 1; c < n_chunks && !in_blocks; c++)
    cut[c] += PL_MODEL_BLOCKS_BEFORE_LAYERS;
  cut[n_chunks] = pl_model_n_blocks(model);
  strategy->counts_layers = !in_blocks; /* counted in layers the first and the last chunk might be empty */
  strategy->boundary = cut;
  PL_ASSERT(pl_strategy_is_cut(strategy, model));
  return PL_OK;
}

/* Where no platform says how many there are; as many as a placement may name. */
static pl_code check_ranks(const pl_strategy *strategy, pl_error *error) {
  enum { MOST_RANKS = 1 << 24 };
  double ranks = (double)strategy->pp * strategy->dp * strategy->tmp * pl_strategy_cp(strategy);
  if (ranks <= MOST_RANKS) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "strategy: pp=%d * dp=%d * tmp=%d * cp=%d = %.0f ranks are too many; at most %d are possible",
                 strategy->pp, strategy->dp, strategy->tmp, pl_strategy_cp(strategy), ranks, MOST_RANKS);
}

pl_code pl_strategy_assign_unplaced(pl_strategy *strategy, const pl_model *model, const pl_job *job,
                                    const char *way_out, pl_arena *arena, pl_error *error) {
  PL_TRY(check_ranks(strategy, error));
  PL_TRY(pl_strategy_check(strategy, model, job, pl_strategy_n_ranks(strategy), error));
  if (strategy->recipe == PL_ASSIGN_BALANCED || strategy->recipe == PL_ASSIGN_OPTIMAL ||
      strategy->recipe == PL_ASSIGN_AMP)
    return pl_fail(error, PL_BAD_INPUT, "assign=%s needs a platform's devices%s", pl_assign_names[strategy->recipe],
                   way_out);
  return pl_strategy_assign(strategy, model, job, NULL, arena, error);
}
