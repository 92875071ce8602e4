/* The strategy of a row (see validation/rows/row.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/words.h"
#include "core/graph/result.h"
#include "validation/rows/row.h"

/* Stated counts have passed pl_row_check_counts. */
static int32_t degree(int64_t stated) {
  return stated > 0 ? (int32_t)stated : 1;
}

/* Stated; or what the GPUs leave after the other degrees. */
static int32_t data_degree(const pl_measured_row *row) {
  int64_t others = (int64_t)degree(row->tp) * degree(row->pp) * degree(row->cp);
  return row->dp == 0 && row->n_gpus % others == 0 ? degree(row->n_gpus / others) : degree(row->dp);
}

/* Stated; or all that a replica has at once, and with a pipeline one sequence, as in Megatron's own examples. */
static pl_code find_microbatch(const pl_measured_row *row, int32_t *mbs, pl_error *error) {
  int64_t found = row->mbs;
  if (found == 0) found = row->pp > 1 || row->gbs % data_degree(row) != 0 ? 1 : row->gbs / data_degree(row);
  if (found > PL_ROW_RANKS_MAX)
    return pl_fail(error, PL_UNSUPPORTED, "count: no mbs is stated, and gbs / dp = %" PRId64 " is more than %d", found,
                   PL_ROW_RANKS_MAX);
  *mbs = (int32_t)found;
  return PL_OK;
}

/* Words for it besides those of --strategy. Megatron-Core's lists of modules, "norm, act": norms and activation
 * functions alone are small beside the layer and taken as none. */
static const struct {
  const char *word;
  pl_recompute recompute;
  bool alone; /* with a remark behind it it means something else: "block" with a number of layers */
} recompute_words[] = {{"true", PL_RECOMPUTE_FULL, false},
                       {"yes", PL_RECOMPUTE_FULL, false},
                       {"on", PL_RECOMPUTE_FULL, false},
                       {"1", PL_RECOMPUTE_FULL, true},
                       {"enabled", PL_RECOMPUTE_FULL, false},
                       {"uniform", PL_RECOMPUTE_FULL, true},
                       {"block", PL_RECOMPUTE_FULL, true},
                       {"activation checkpointing", PL_RECOMPUTE_FULL, false},
                       {"gradient checkpointing", PL_RECOMPUTE_FULL, false},
                       {"false", PL_RECOMPUTE_NONE, false},
                       {"no", PL_RECOMPUTE_NONE, false},
                       {"off", PL_RECOMPUTE_NONE, false},
                       {"disabled", PL_RECOMPUTE_NONE, false},
                       {"0", PL_RECOMPUTE_NONE, true},
                       {"norm, act", PL_RECOMPUTE_NONE, true},
                       {"minimal", PL_RECOMPUTE_NONE, true}, /* MaxText: all products are kept */
                       {"minimal_flash", PL_RECOMPUTE_NONE, true},
                       {"save_nothing", PL_RECOMPUTE_FULL, true}, /* praxis, AutodiffCheckpointType */
                       {"selective (op)", PL_RECOMPUTE_ALTERNATE, false},
                       {"selective (per op)", PL_RECOMPUTE_ALTERNATE, false},
                       {"selective op", PL_RECOMPUTE_ALTERNATE, false},
                       {"per-op", PL_RECOMPUTE_ALTERNATE, false},
                       {"core_attn", PL_RECOMPUTE_SELECTIVE, true}};

/* The word, and behind it nothing or a remark: "No AC", "yes (every block)". */
static bool begins_with(const char *text, const char *word, bool alone) {
  size_t length = strlen(word);
  if (strncasecmp(text, word, length) != 0) return false;
  return text[length] == '\0' || (!alone && strchr(" (,;:", text[length]) != NULL);
}

/* "selective (layer: every 2nd)", "selective (per layer)": torchtitan's other way; "full, 16 layers". */
static bool skips_layers(const char *text) {
  return pl_row_mentions(text, "layer") && (pl_row_mentions(text, "selective") || strpbrk(text, "0123456789") != NULL);
}

static pl_code find_recompute(const pl_measured_row *row, const pl_row_habits *habits, pl_recompute *recompute,
                              pl_error *error) {
  *recompute = PL_RECOMPUTE_NONE;
  if (row->recompute[0] == '\0') return PL_OK;
  if (skips_layers(row->recompute))
    return pl_fail(error, PL_UNSUPPORTED, "recomputation: of some layers and not of others: '%.40s'", row->recompute);
  for (size_t i = 0; i < sizeof recompute_words / sizeof recompute_words[0]; i++) {
    if (!begins_with(row->recompute, recompute_words[i].word, recompute_words[i].alone)) continue;
    *recompute = recompute_words[i].recompute;
    return PL_OK;
  }
  if (habits->selects_ops && begins_with(row->recompute, "selective", false)) {
    *recompute = PL_RECOMPUTE_ALTERNATE;
    return PL_OK;
  }
  for (int i = 0; pl_recompute_names[i] != NULL; i++) {
    if (!begins_with(row->recompute, pl_recompute_names[i], false)) continue;
    *recompute = (pl_recompute)i;
    return PL_OK;
  }
  int nearest = pl_words_nearest(pl_recompute_names, row->recompute);
  return pl_fail(error, PL_UNSUPPORTED, "recomputation: '%.40s' is unknown%s%s%s", row->recompute,
                 nearest >= 0 ? ", did you mean '" : "", nearest >= 0 ? pl_recompute_names[nearest] : "",
                 nearest >= 0 ? "'?" : "; known are none, selective, full and validation/README.md's words");
}

/* `fsdp` holds PyTorch's words or Megatron's switch (row_words.c). Behind pipelines FSDP2 gathers the
 * weights once per iteration and scatters gradients once (torchtitan parallelize_llama.py, apply_fsdp:
 * reshard_after_forward=not pp_enabled; PyTorch's PipelineStage synchronises gradients with the last microbatch): the
 * traffic of stage 1. */
static int32_t zero_stage(const pl_measured_row *row, const pl_row_habits *habits) {
  if (data_degree(row) == 1 && degree(row->cp) == 1) return 0;
  if (row->pp > 1 && habits->zero == 3) return 1;
  int sharding = pl_row_sharding(row);
  int32_t stage = row->zero_stage >= 0 ? (int32_t)row->zero_stage : sharding >= 0 ? sharding : habits->zero;
  return stage == 3 && pl_row_resharding(row) == 0 ? 2 : stage; /* weights stay gathered until the backward pass */
}

/* HYBRID_SHARD without further words shards inside a node: what its GPUs leave beside the tensor ranks. A job whose
 * nodes that does not fit is sharded as a whole. */
static int32_t shard_of(const pl_measured_row *row, const pl_strategy *strategy) {
  bool hybrid = pl_row_mentions(row->fsdp, "HSDP") || pl_row_mentions(row->fsdp, "HYBRID");
  int64_t local = (row->gpus_per_node > 0 ? row->gpus_per_node : 8) / strategy->tmp;
  if (!hybrid || strategy->zero == 0 || local < 2) return 0;
  return local < pl_strategy_replicas(strategy) && pl_strategy_replicas(strategy) % local == 0 ? (int32_t)local : 0;
}

/* What changes the model or its schedule in a way that no strategy here stands for. */
static pl_code check_method(const pl_measured_row *row, pl_error *error) {
  if (pl_row_mentions(row->framework, "MegaScale") && pl_row_mentions(row->notes, "sliding window"))
    return pl_fail(error, PL_UNSUPPORTED, "algorithm: parallel transformer block, sliding window of unstated width");
  static const char *const spread[] = {"Megatron-LM vocab", "Megatron-LM synctwice", "Megatron-LM interlaced"};
  for (size_t i = 0; i < sizeof spread / sizeof spread[0]; i++)
    if (pl_row_mentions(row->framework, spread[i]))
      return pl_fail(error, PL_UNSUPPORTED, "schedule: '%.40s' spreads the vocabulary over all stages", row->framework);
  return PL_OK;
}

/* nanotron's 1F1B asserts as many microbatches as there are stages before the last
 * (parallel/pipeline_parallel/engine.py): with fewer nothing runs, whatever the memory. */
static pl_code check_microbatches(const pl_measured_row *row, const pl_strategy *strategy, pl_error *error) {
  int64_t n = row->gbs / ((int64_t)strategy->dp * strategy->mbs);
  if (!pl_row_mentions(row->framework, "nanotron") || n >= strategy->pp - 1) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "schedule: nanotron refuses %" PRId64 " microbatches on %d stages", n,
                 strategy->pp);
}

/* Layers that the chunks do not divide: embedding and head count as a layer each (Megatron-Core's
 * account_for_embedding_in_pipeline_split and ..._loss_..., as for the 126 layers of Llama 3.1 405B). */
static pl_assign_recipe recipe_of(const pl_measured_row *row, const pl_strategy *strategy, const pl_model *model) {
  /* "redis": VocabularyParallelism's redistribution of layers, by the time of the stages. */
  if (pl_row_mentions(row->framework, "redis")) return PL_ASSIGN_BALANCED;
  int32_t chunks = pl_strategy_n_chunks(strategy);
  bool ends = model->n_layers % chunks != 0 && (model->n_layers + 2) % chunks == 0;
  return ends ? PL_ASSIGN_ENDS : PL_ASSIGN_UNIFORM;
}

/* Stated; without a word where the ranks of a tensor group hold different tokens anyway, as experts need it. */
static bool has_sequence_parallelism(const pl_measured_row *row, const pl_row_habits *habits, const pl_model *model) {
  if (row->sp >= 0) return row->sp == 1;
  return habits->sequence_parallel || model->moe.n_experts > 0;
}

/* Boundaries as --strategy takes them, in layers or blocks. */
static pl_code given_assignment(const pl_measured_row *row, const pl_model *model, pl_arena *arena,
                                pl_strategy *strategy, pl_error *error) {
  char text[PL_RESULT_ASSIGN_BYTES];
  int length = snprintf(text, sizeof text, "pp=%d,dp=%d,tmp=%d,mbs=%d,vpp=%d,assign=%s", strategy->pp, strategy->dp,
                        strategy->tmp, strategy->mbs, strategy->vpp, row->assign);
  pl_strategy parsed;
  pl_error why = PL_ERROR_INIT;
  if (length < 0 || (size_t)length >= sizeof text) return pl_fail(error, PL_UNSUPPORTED, "assign: too long");
  pl_code code = pl_strategy_parse(text, model, arena, &parsed, &why);
  if (code == PL_NO_MEMORY) return pl_fail(error, code, "%s", why.message);
  if (code != PL_OK) return pl_fail(error, PL_UNSUPPORTED, "assign: %s", why.message);
  strategy->recipe = parsed.recipe;
  strategy->counts_layers = parsed.counts_layers;
  strategy->boundary = parsed.boundary;
  strategy->assign_is_given = true;
  return PL_OK;
}

/* Megatron Core's expert tensor parallelism is the tensor parallelism unless it is said (arguments.py,
 * expert_tensor_parallel_size), where the expert ranks leave room for it; NVIDIA's recipes in NeMo and Megatron-Bridge
 * say 1. */
static int32_t expert_tensor_degree(const pl_measured_row *row, const pl_model *model, const pl_strategy *strategy) {
  if (model->moe.n_experts == 0 || strategy->tmp == 1) return 1;
  if (row->etp > 0) return (int32_t)row->etp;
  static const char *const ones[] = {"NeMo", "Bridge"};
  bool megatron = pl_row_mentions(row->framework, "Megatron");
  for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++)
    megatron = megatron && !pl_row_mentions(row->framework, ones[i]);
  return megatron && pl_strategy_replicas(strategy) % pl_strategy_ep(strategy) == 0 ? strategy->tmp : 1;
}

bool pl_row_overlaps_experts(const pl_measured_row *row) {
  static const char *const words[] = {"overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm",
                                      "moe_a2a_overlap", "1f1b overlap", NULL};
  return degree(row->ep) > 1 && pl_row_says_one_of(row, words);
}

/* Whoever has the combined 1F1B puts gradients of weights off as well: Megatron-Bridge's recipes (perf_recipes, and
 * scripts/performance/utils/overrides.py) and Megatron-MoE-ModelZoo's (sbatch_benchmarking.sh). */
static pl_ep_overlap hidden_tokens(const pl_measured_row *row, const pl_model *model, const pl_strategy *strategy) {
  if (pl_row_overlaps_experts(row)) return strategy->etp > 1 ? PL_EP_OVERLAP_PASSES : PL_EP_OVERLAP_DELAYED;
  bool may = strategy->ep > 1 && strategy->etp <= 1 && strategy->recompute < PL_RECOMPUTE_FULL;
  return may && model->moe.shared_ffn > 0 && pl_row_mentions(row->notes, "moe_shared_expert_overlap=True")
             ? PL_EP_OVERLAP_SHARED
             : PL_EP_OVERLAP_NONE;
}

/* What other columns say beside a strategy is the same. */
static pl_code check_beside(const pl_measured_row *row, const pl_strategy *strategy, pl_error *error) {
  const struct {
    const char *column, *key;
    int64_t stated, absent, value;
  } counts[] = {
      {"pp", "pp", row->pp, 0, strategy->pp},     {"dp", "dp", row->dp, 0, strategy->dp},
      {"tp", "tmp", row->tp, 0, strategy->tmp},   {"cp", "cp", row->cp, 0, strategy->cp},
      {"ep", "ep", row->ep, 0, strategy->ep},     {"etp", "etp", row->etp, 0, strategy->etp},
      {"vpp", "vpp", row->vpp, 0, strategy->vpp}, {"mbs", "mbs", row->mbs, 0, strategy->mbs},
      {"sp", "sp", row->sp, -1, strategy->sp},    {"zero_stage", "zero", row->zero_stage, -1, strategy->zero}};
  const struct {
    const char *column, *stated, *value;
  } words[] = {{"schedule", row->schedule, pl_schedule_names[strategy->schedule]},
               {"recompute", row->recompute, pl_recompute_names[strategy->recompute]},
               {"assign", row->assign, "boundaries of its own, or a recipe"}};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    if (counts[i].stated != counts[i].absent && counts[i].stated != counts[i].value)
      return pl_fail(error, PL_UNSUPPORTED,
                     "column '%s': %" PRId64 ", and 'strategy' has %s=%" PRId64 "; leave one empty", counts[i].column,
                     counts[i].stated, counts[i].key, counts[i].value);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (words[i].stated[0] != '\0' && strcmp(words[i].stated, words[i].value) != 0)
      return pl_fail(error, PL_UNSUPPORTED, "column '%s': '%.60s', and 'strategy' has %s; leave the column empty",
                     words[i].column, words[i].stated, words[i].value);
  return PL_OK;
}

/* As --strategy takes it. */
static pl_code given_strategy(const pl_measured_row *row, const pl_model *model, const pl_job *job, pl_arena *arena,
                              pl_strategy *strategy, pl_error *error) {
  pl_error why = PL_ERROR_INIT;
  pl_code code = pl_strategy_parse(row->strategy, model, arena, strategy, &why);
  if (code == PL_OK) {
    pl_strategy_adopt(strategy, job);
    code = pl_strategy_spread(strategy, (uint32_t)row->n_gpus, &why);
  }
  if (code != PL_OK) return pl_fail(error, code == PL_BAD_INPUT ? PL_UNSUPPORTED : code, "%s", why.message);
  return check_beside(row, strategy, error);
}

pl_code pl_row_strategy(const pl_measured_row *row, const pl_row_habits *habits, const pl_model *model,
                        const pl_job *job, pl_arena *arena, pl_strategy *strategy, pl_error *error) {
  int32_t mbs = 0;
  if (row->strategy[0] != '\0') return given_strategy(row, model, job, arena, strategy, error);
  PL_TRY(find_microbatch(row, &mbs, error));
  PL_TRY(check_method(row, error));
  *strategy = (pl_strategy){.pp = degree(row->pp),
                            .dp = data_degree(row),
                            .tmp = degree(row->tp),
                            .cp = degree(row->cp),
                            .cp_gather = row->cp > 1 && habits->gathers_context,
                            .ep = degree(row->ep),
                            .mbs = mbs,
                            .vpp = pl_row_chunks(row, degree(row->vpp > 0 ? row->vpp : habits->vpp)),
                            .schedule = PL_SCHEDULE_1F1B,
                            .overlap = true,
                            .order = "tdp"};
  strategy->etp = expert_tensor_degree(row, model, strategy);
  PL_TRY(find_recompute(row, habits, &strategy->recompute, error));
  PL_TRY(check_microbatches(row, strategy, error));
  strategy->schedule = pl_row_schedule(row, strategy->vpp);
  strategy->ep_overlap = (uint8_t)hidden_tokens(row, model, strategy);
  if (habits->reduces_after_pipelines && strategy->pp > 1) {
    strategy->overlap = false;
    strategy->overlap_is_given = true;
  }
  strategy->sp = strategy->tmp > 1 && has_sequence_parallelism(row, habits, model);
  strategy->zero = zero_stage(row, habits);
  strategy->shard = model->moe.n_experts == 0 ? shard_of(row, strategy) : 0;
  strategy->recipe = recipe_of(row, strategy, model);
  strategy->assign_is_given = strategy->recipe != PL_ASSIGN_UNIFORM;
  if (row->assign[0] != '\0') PL_TRY(given_assignment(row, model, arena, strategy, error));
  pl_strategy_adopt(strategy, job);
  return PL_OK;
}
