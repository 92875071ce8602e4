/* See workloads/run/features.h. Means over devices count each device class as often as it stands for devices. Numbers
 * are summed in the order of classes and ops, which come from the candidate: the same bytes whoever computes it. */
#include "workloads/run/features.h"

#include <math.h>
#include <string.h>

typedef struct filling {
  const pl_explanation *explanation;
  const pl_model *model;
  const pl_simulate_report *report;
  pl_feature_values *values;
  double *features;
  int n_stages;
} filling;

static const pl_program *program_of(const filling *state) {
  return state->explanation->program;
}

/* ---- computing ---- */

typedef struct kind_columns {
  double *time_s, *calls, *bytes, *flops; /* NULL: none */
} kind_columns;

static kind_columns columns_of(pl_feature_values *v, const pl_explained_op *op) {
  if (op->op == NULL && op->category == PL_CATEGORY_OPTIMIZER)
    return (kind_columns){.time_s = &v->optimizer_s, .bytes = &v->optimizer_bytes};
  if (op->op == NULL && op->category == PL_CATEGORY_HOST) return (kind_columns){.time_s = &v->host_s};
  if (op->op == NULL) return (kind_columns){.time_s = &v->other_ops_s};
  switch (op->op->kind) {
  case PL_OP_GEMM:
  case PL_OP_CONVOLUTION:
    return (kind_columns){&v->gemm_s, &v->gemm_calls, &v->gemm_bytes, &v->gemm_flops};
  case PL_OP_ATTENTION:
    return (kind_columns){&v->attention_s, &v->attention_calls, &v->attention_bytes, &v->attention_flops};
  case PL_OP_NORM:
    return (kind_columns){&v->norm_s, &v->norm_calls, &v->norm_bytes, NULL};
  case PL_OP_SOFTMAX:
    return (kind_columns){&v->softmax_s, &v->softmax_calls, &v->softmax_bytes, NULL};
  case PL_OP_ELEMENTWISE:
    return (kind_columns){&v->elementwise_s, &v->elementwise_calls, &v->elementwise_bytes, NULL};
  case PL_OP_EMBEDDING:
    return (kind_columns){&v->embedding_s, &v->embedding_calls, &v->embedding_bytes, NULL};
  case PL_OP_CROSS_ENTROPY:
    return (kind_columns){&v->cross_entropy_s, &v->cross_entropy_calls, &v->cross_entropy_bytes, NULL};
  default:
    return (kind_columns){.time_s = &v->other_ops_s};
  }
}

static void add(double *sum, double value) {
  if (sum != NULL) *sum += value;
}

static void add_computing(pl_feature_values *v, const pl_explained_op *op, const pl_explained_time *time,
                          double share) {
  kind_columns columns = columns_of(v, op);
  double calls = (double)time->calls;
  v->flops += share * time->flops;
  v->traffic_bytes += share * time->bytes;
  v->kernel_calls += share * calls;
  add(columns.time_s, share * pl_ticks_to_s(time->alone));
  add(columns.calls, share * calls);
  add(columns.bytes, share * time->bytes);
  add(columns.flops, share * time->flops);
}

/* What computing took, and by how much that is more than its parts take alone. */
static void add_passes(filling *state, uint32_t class, double share, pl_ticks alone) {
  const pl_ticks *spent = state->explanation->spent + (size_t) class * PL_CATEGORY_COUNT;
  pl_feature_values *v = state->values;
  v->forward_s += share * pl_ticks_to_s(spent[PL_CATEGORY_FORWARD]);
  v->backward_s += share * pl_ticks_to_s(spent[PL_CATEGORY_BACKWARD]);
  v->recompute_s += share * pl_ticks_to_s(spent[PL_CATEGORY_RECOMPUTE]);
  pl_ticks computing = 0;
  for (int category = 0; category < PL_CATEGORY_COUNT; category++)
    if (!pl_category_is_communication((pl_category)category)) computing += spent[category];
  v->overlap_slowdown_s += share * pl_ticks_to_s(computing - alone);
}

/* ---- communication ---- */

typedef struct communication_columns {
  double *calls, *bytes, *alone_s;
} communication_columns;

#define COLUMNS(v, name) ((communication_columns){&(v)->name##_calls, &(v)->name##_bytes, &(v)->name##_alone_s})

static communication_columns communication_of(pl_feature_values *v, pl_family_kind role, pl_collective_kind kind) {
  bool reduces = kind == PL_ALL_REDUCE, gathers = kind == PL_ALL_GATHER, scatters = kind == PL_REDUCE_SCATTER;
  if (role == PL_FAMILY_HEADS) role = PL_FAMILY_TENSOR;
  if (role == PL_FAMILY_TENSOR && reduces) return COLUMNS(v, tensor_all_reduce);
  if (role == PL_FAMILY_TENSOR && gathers) return COLUMNS(v, tensor_all_gather);
  if (role == PL_FAMILY_TENSOR && scatters) return COLUMNS(v, tensor_reduce_scatter);
  if ((role == PL_FAMILY_DATA || role == PL_FAMILY_COPIES) && reduces) return COLUMNS(v, data_all_reduce);
  if (role == PL_FAMILY_DATA && scatters) return COLUMNS(v, data_reduce_scatter);
  if (role == PL_FAMILY_DATA && gathers) return COLUMNS(v, data_all_gather);
  if (pl_family_is_wire(role)) return COLUMNS(v, pipeline_send);
  if (role == PL_FAMILY_EMBEDDING && reduces) return COLUMNS(v, embedding_all_reduce);
  if (role == PL_FAMILY_CONTEXT) return COLUMNS(v, context_comm);
  if (role == PL_FAMILY_EXPERT && kind == PL_ALL_TO_ALL) return COLUMNS(v, expert_all_to_all);
  if (role == PL_FAMILY_EXPERT_DATA && gathers) return COLUMNS(v, expert_data_all_gather);
  if (role == PL_FAMILY_EXPERT_DATA && (reduces || scatters)) return COLUMNS(v, expert_data_reduce);
  return COLUMNS(v, other_comm);
}

static void add_communication(filling *state, const pl_explained_op *op, const pl_explained_time *time, double share) {
  pl_feature_values *v = state->values;
  const pl_family *family = &program_of(state)->families[op->family];
  const pl_communication *own = &family->ops[op->family_op];
  communication_columns columns = communication_of(v, family->kind, own->kind);
  double calls = (double)time->calls;
  *columns.calls += share * calls;
  *columns.bytes += share * calls * own->size_bytes;
  *columns.alone_s += time->alone < 0 ? (double)NAN : share * pl_ticks_to_s(time->alone);
  double hidden_s = share * pl_ticks_to_s(pl_explained_hidden(time));
  if (op->category == PL_CATEGORY_TENSOR) v->tensor_comm_hidden_s += hidden_s;
  if (op->category == PL_CATEGORY_PIPELINE) v->pipeline_comm_hidden_s += hidden_s;
  if (op->category == PL_CATEGORY_DATA) v->data_comm_hidden_s += hidden_s;
  if (op->category == PL_CATEGORY_CONTEXT) v->context_comm_hidden_s += hidden_s;
  if (op->category == PL_CATEGORY_EXPERT) v->expert_comm_hidden_s += hidden_s;
}

/* Kernels that copy what was communicated. */
static void add_copies(pl_feature_values *v, const pl_explained_time *time, double share) {
  v->other_comm_calls += share * (double)time->calls;
  v->other_comm_bytes += share * time->bytes;
  v->other_comm_alone_s += share * pl_ticks_to_s(time->alone);
}

static void add_class(filling *state, uint32_t class) {
  const pl_explanation *explanation = state->explanation;
  const pl_explained_time *times = pl_explained_times(explanation, class);
  const pl_strategy *strategy = explanation->program->strategy;
  double share = explanation->plan->device_classes[class].multiplicity / (double)pl_strategy_n_ranks(strategy);
  pl_ticks alone = 0;
  for (uint32_t op = 0; op < explanation->n_ops; op++) {
    if (times[op].calls == 0) continue;
    if (explanation->ops[op].family != PL_NONE) {
      add_communication(state, &explanation->ops[op], &times[op], share);
    } else if (pl_category_is_communication((pl_category)explanation->ops[op].category)) {
      add_copies(state->values, &times[op], share);
    } else {
      alone += times[op].alone;
      add_computing(state->values, &explanation->ops[op], &times[op], share);
    }
  }
  add_passes(state, class, share, alone);
}

/* ---- groups ---- */

/* `stamps` per node, of which none is `stamp`. */
static uint32_t count_nodes(const pl_cluster *cluster, const uint32_t *members, uint32_t n, uint32_t *stamps,
                            uint32_t stamp) {
  uint32_t n_nodes = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t *own = &stamps[cluster->devices[members[i]].node];
    n_nodes += *own != stamp;
    *own = stamp;
  }
  return n_nodes;
}

static void note_group(pl_feature_values *v, pl_family_kind role, uint32_t size, uint32_t n_nodes) {
  switch (role) {
  case PL_FAMILY_TENSOR:
    v->tensor_group_size = fmax(v->tensor_group_size, size);
    v->tensor_group_nodes = fmax(v->tensor_group_nodes, n_nodes);
    break;
  case PL_FAMILY_DATA:
    v->data_group_size = fmax(v->data_group_size, size);
    v->data_group_nodes = fmax(v->data_group_nodes, n_nodes);
    break;
  case PL_FAMILY_CONTEXT:
    v->context_group_size = fmax(v->context_group_size, size);
    v->context_group_nodes = fmax(v->context_group_nodes, n_nodes);
    break;
  case PL_FAMILY_EXPERT:
    v->expert_group_size = fmax(v->expert_group_size, size);
    v->expert_group_nodes = fmax(v->expert_group_nodes, n_nodes);
    break;
  case PL_FAMILY_DOWN:
  case PL_FAMILY_UP:
  case PL_FAMILY_DOWN_2:
  case PL_FAMILY_UP_2:
    v->pipeline_group_nodes = fmax(v->pipeline_group_nodes, n_nodes);
    break;
  default:
    break;
  }
}

static bool add_groups(filling *state, pl_arena *arena) {
  const pl_communication_plan *plan = state->explanation->plan;
  const pl_cluster *cluster = state->explanation->cluster;
  uint32_t *stamps = PL_TAKE(arena, uint32_t, cluster->n_nodes);
  if (stamps == NULL) return false;
  state->values->tensor_group_size = state->values->tensor_group_nodes = 1;
  state->values->data_group_size = state->values->data_group_nodes = 1;
  state->values->context_group_size = state->values->context_group_nodes = 1;
  state->values->expert_group_size = state->values->expert_group_nodes = 1;
  for (uint32_t g = 0; g < plan->n_group_classes; g++) {
    const pl_family *family = &program_of(state)->families[plan->group_classes[g].family];
    const uint32_t *members = family->members + (size_t)plan->group_classes[g].group * family->group_size;
    note_group(state->values, family->kind, family->group_size,
               count_nodes(cluster, members, family->group_size, stamps, g + 1));
  }
  return true;
}

/* ---- shapes ---- */

static void note_shape(pl_feature_values *v, const pl_op *op) {
#define SHAPE(called, prefix)                                                                                          \
  if (op->kind == PL_OP_GEMM && strcmp(op->name, called) == 0) {                                                       \
    v->prefix##_m = (double)op->m;                                                                                     \
    v->prefix##_n = (double)op->n;                                                                                     \
    v->prefix##_k = (double)op->k;                                                                                     \
  }
  SHAPE("qkv", qkv)
  SHAPE("attention_out", attention_out)
  SHAPE("mlp_up", mlp_up)
  SHAPE("mlp_down", mlp_down)
  SHAPE("expert_up", expert_up)
  SHAPE("expert_down", expert_down)
  SHAPE("logits", logits)
#undef SHAPE
  if (op->kind == PL_OP_GEMM && strcmp(op->name, "expert_up") == 0) v->expert_batch = (double)op->batch;
  if (op->kind == PL_OP_ATTENTION || (op->kind == PL_OP_GEMM && strcmp(op->name, "scores") == 0)) {
    v->attention_batch = (double)op->batch;
    v->attention_seq = (double)op->m;
    v->attention_head_size = (double)op->k;
  }
}

static void add_shapes(filling *state) {
  pl_feature_values *v = state->values;
  double *const unset[] = {
      &v->expert_batch,    &v->expert_up_m,     &v->expert_up_n,     &v->expert_up_k,   &v->expert_down_m,
      &v->expert_down_n,   &v->expert_down_k,   &v->qkv_m,           &v->qkv_n,         &v->qkv_k,
      &v->attention_out_m, &v->attention_out_n, &v->attention_out_k, &v->mlp_up_m,      &v->mlp_up_n,
      &v->mlp_up_k,        &v->mlp_down_m,      &v->mlp_down_n,      &v->mlp_down_k,    &v->logits_m,
      &v->logits_n,        &v->logits_k,        &v->attention_batch, &v->attention_seq, &v->attention_head_size};
  for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
    *unset[i] = (double)NAN; /* a model may lack it */
  for (uint32_t op = 0; op < state->explanation->n_ops; op++) {
    const pl_explained_op *own = &state->explanation->ops[op];
    if (own->op != NULL && own->category == PL_CATEGORY_FORWARD) note_shape(v, own->op);
  }
}

/* ---- stages ---- */

static void put(filling *state, int feature, int32_t stage, double value) {
  pl_stage_feature(state->features, feature, state->n_stages)[stage] = value;
}

static void add_contents(filling *state, int32_t stage) {
  const pl_program *program = program_of(state);
  const pl_strategy *strategy = program->strategy;
  double saved_bytes = 0, n_layers = 0;
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(strategy, stage, chunk);
    for (int32_t block = strategy->boundary[global]; block < strategy->boundary[global + 1]; block++) {
      pl_block_kind kind = pl_model_block_kind(state->model, block);
      saved_bytes += program->blocks[pl_model_block_class(state->model, block)].saved_bytes;
      n_layers += kind == PL_BLOCK_LAYER;
    }
  }
  put(state, PL_FEATURE_stage_parameters, stage, program->stages[stage].parameters);
  put(state, PL_FEATURE_stage_saved_bytes, stage, saved_bytes);
  put(state, PL_FEATURE_stage_layers, stage, n_layers);
  put(state, PL_FEATURE_stage_peak_mem_bytes, stage, state->report->stages[stage].peak);
}

static void add_stage(filling *state, int32_t stage) {
  const pl_explanation *explanation = state->explanation;
  uint32_t class = pl_explanation_busiest(explanation, stage);
  const pl_explained_time *times = pl_explained_times(explanation, class);
  const pl_ticks *spent = explanation->spent + (size_t) class * PL_CATEGORY_COUNT;
  double flops = 0, bytes = 0;
  for (uint32_t op = 0; op < explanation->n_ops; op++) {
    flops += times[op].flops;
    bytes += times[op].bytes;
  }
  pl_ticks computing = 0;
  for (int category = 0; category < PL_CATEGORY_COUNT; category++)
    if (!pl_category_is_communication((pl_category)category)) computing += spent[category];
  put(state, PL_FEATURE_stage_flops, stage, flops);
  put(state, PL_FEATURE_stage_traffic_bytes, stage, bytes);
  put(state, PL_FEATURE_stage_compute_s, stage, pl_ticks_to_s(computing));
  put(state, PL_FEATURE_stage_tensor_comm_s, stage, pl_ticks_to_s(spent[PL_CATEGORY_TENSOR]));
  put(state, PL_FEATURE_stage_pipeline_comm_s, stage, pl_ticks_to_s(spent[PL_CATEGORY_PIPELINE]));
  put(state, PL_FEATURE_stage_context_comm_s, stage, pl_ticks_to_s(spent[PL_CATEGORY_CONTEXT]));
  put(state, PL_FEATURE_stage_expert_comm_s, stage, pl_ticks_to_s(spent[PL_CATEGORY_EXPERT]));
  put(state, PL_FEATURE_stage_data_comm_s, stage, pl_ticks_to_s(spent[PL_CATEGORY_DATA]));
  put(state, PL_FEATURE_stage_bubble_s, stage, pl_ticks_to_s(explanation->idle[class]));
  add_contents(state, stage);
}

pl_code pl_features_fill(const pl_explanation *explanation, const pl_model *model, const pl_simulate_report *report,
                         int n_stages, pl_arena *arena, double *features, pl_error *error) {
  int32_t pp = explanation->program->strategy->pp;
  PL_ASSERT(n_stages >= pp && report->n_stages == pp);
  pl_feature_values values = {0};
  filling state = {.explanation = explanation,
                   .model = model,
                   .report = report,
                   .values = &values,
                   .features = features,
                   .n_stages = n_stages};
  for (uint32_t class = 0; class < explanation->plan->n_device_classes; class ++)
    add_class(&state, class);
  if (!add_groups(&state, arena)) return pl_fail_memory(error, "the features");
  add_shapes(&state);
  values.n_transfer_classes = report->n_transfer_classes;
  values.n_group_classes = explanation->plan->n_group_classes;
  values.n_events = (double)report->n_events;
  memcpy(features, &values, sizeof values);
  for (int i = 0; i < PL_N_STAGE_FEATURES * n_stages; i++)
    features[PL_N_FEATURES + i] = (double)NAN;
  for (int32_t stage = 0; stage < pp; stage++)
    add_stage(&state, stage);
  return PL_OK;
}
