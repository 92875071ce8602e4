/* See workloads/run/explain_rows.h. */
#include "workloads/run/explain_rows.h"

#include <stdlib.h>
#include <string.h>

const char *pl_family_role_name(pl_family_kind kind) {
  switch (kind) {
  case PL_FAMILY_TENSOR:
    return "tensor";
  case PL_FAMILY_HEADS:
    return "heads";
  case PL_FAMILY_DATA:
    return "data";
  case PL_FAMILY_COPIES:
    return "data, across copies";
  case PL_FAMILY_DOWN:
  case PL_FAMILY_UP:
  case PL_FAMILY_DOWN_2:
  case PL_FAMILY_UP_2:
    return "pipeline";
  case PL_FAMILY_EMBEDDING:
    return "embedding";
  case PL_FAMILY_CONTEXT:
    return "context";
  case PL_FAMILY_EXPERT:
    return "expert";
  case PL_FAMILY_EXPERT_DATA:
    return "expert data";
  case PL_FAMILY_KIND_COUNT:
    break;
  }
  return "unknown";
}

const char *pl_explained_kind_name(const pl_explained_op *op) {
  if (op->op != NULL) return pl_op_kind_name((pl_op_kind)op->op->kind);
  if (pl_category_is_communication((pl_category)op->category)) return "copy";
  if (op->category == PL_CATEGORY_HOST) return "host";
  return op->category == PL_CATEGORY_OPTIMIZER ? "optimizer" : "other";
}

/* ---- sums by kind ---- */

/* Kinds of ops by their enumerator, then optimizer and other, then the categories of communication, then the bubble. */
enum {
  KIND_OPTIMIZER = PL_OP_KIND_COUNT,
  KIND_HOST,
  KIND_OTHER,
  KIND_FIRST_COMMUNICATION,
  KIND_BUBBLE = KIND_FIRST_COMMUNICATION + PL_CATEGORY_COUNT,
  KIND_COUNT
};

static int kind_of(const pl_explained_op *op) {
  /* Kernels that only copy what was communicated are filed with it. */
  if (pl_category_is_communication((pl_category)op->category)) return KIND_FIRST_COMMUNICATION + op->category;
  if (op->op != NULL) return op->op->kind;
  if (op->category == PL_CATEGORY_HOST) return KIND_HOST;
  return op->category == PL_CATEGORY_OPTIMIZER ? KIND_OPTIMIZER : KIND_OTHER;
}

static pl_explain_kind named_kind(int kind) {
  if (kind < PL_OP_KIND_COUNT) return (pl_explain_kind){.name = pl_op_kind_name((pl_op_kind)kind), .computes = true};
  switch (kind) {
  case KIND_OPTIMIZER:
    return (pl_explain_kind){.name = "optimizer", .computes = true};
  case KIND_HOST:
    return (pl_explain_kind){.name = "host", .computes = true};
  case KIND_OTHER:
    return (pl_explain_kind){.name = "other", .computes = true};
  case KIND_FIRST_COMMUNICATION + PL_CATEGORY_TENSOR:
    return (pl_explain_kind){.name = "tensor communication", .column = "tensor_comm_s"};
  case KIND_FIRST_COMMUNICATION + PL_CATEGORY_PIPELINE:
    return (pl_explain_kind){.name = "pipeline communication", .column = "pipeline_comm_s"};
  case KIND_FIRST_COMMUNICATION + PL_CATEGORY_DATA:
    return (pl_explain_kind){.name = "data communication", .column = "data_comm_s"};
  case KIND_FIRST_COMMUNICATION + PL_CATEGORY_CONTEXT:
    return (pl_explain_kind){.name = "context communication", .column = "context_comm_s"};
  case KIND_FIRST_COMMUNICATION + PL_CATEGORY_EXPERT:
    return (pl_explain_kind){.name = "expert communication", .column = "expert_comm_s"};
  case KIND_BUBBLE:
    return (pl_explain_kind){.name = "bubble", .column = "bubble_s"};
  default:
    return (pl_explain_kind){.name = "other communication"};
  }
}

static void add_to_kind(pl_explain_kind *kind, const pl_explained_time *time) {
  kind->calls += time->calls;
  kind->flops += time->flops;
  kind->bytes += time->bytes;
  kind->alone = time->alone < 0 ? -1 : kind->alone + time->alone;
  kind->time += time->exposed;
  if (!kind->computes) kind->hidden += pl_explained_hidden(time);
}

/* The columns of the breakdown, but for those that only some strategies have. */
static bool is_always_shown(int kind, const pl_explain_kind *entry) {
  return entry->column != NULL && kind != KIND_FIRST_COMMUNICATION + PL_CATEGORY_CONTEXT &&
         kind != KIND_FIRST_COMMUNICATION + PL_CATEGORY_EXPERT;
}

static bool sum_kinds(const pl_explanation *explanation, pl_arena *arena, pl_explain_rows *rows) {
  const pl_explained_time *times = pl_explained_times(explanation, rows->device_class);
  pl_explain_kind *kinds = PL_TAKE(arena, pl_explain_kind, KIND_COUNT);
  if (kinds == NULL) return false;
  for (int kind = 0; kind < KIND_COUNT; kind++)
    kinds[kind] = named_kind(kind);
  for (uint32_t op = 0; op < explanation->n_ops; op++)
    add_to_kind(&kinds[kind_of(&explanation->ops[op])], &times[op]);
  kinds[KIND_BUBBLE].time = explanation->idle[rows->device_class];
  for (int kind = 0; kind < KIND_COUNT; kind++)
    if (kinds[kind].calls > 0 || kinds[kind].time > 0 || is_always_shown(kind, &kinds[kind]))
      kinds[rows->n_kinds++] = kinds[kind];
  rows->kinds = kinds;
  return true;
}

/* ---- single ops ---- */

static pl_ticks hidden_of(const pl_explain_row *row) {
  return pl_explained_hidden(row->time);
}

static int longest_first(const void *left, const void *right) {
  const pl_explain_row *a = left, *b = right;
  if (a->time->exposed != b->time->exposed) return a->time->exposed < b->time->exposed ? 1 : -1;
  if (hidden_of(a) != hidden_of(b)) return hidden_of(a) < hidden_of(b) ? 1 : -1;
  return a->op < b->op ? -1 : a->op > b->op; /* of one array */
}

static pl_code list_ops(const pl_explanation *explanation, pl_arena *arena, pl_explain_rows *rows, pl_error *error) {
  const pl_explained_time *times = pl_explained_times(explanation, rows->device_class);
  pl_explain_row *compute = PL_TAKE(arena, pl_explain_row, explanation->n_ops),
                 *communication = PL_TAKE(arena, pl_explain_row, explanation->n_ops);
  if (arena->failed) return pl_fail_memory(error, "the rows of the explanation");
  for (uint32_t at = 0; at < explanation->n_ops; at++) {
    if (times[at].calls == 0 && times[at].exposed == 0) continue;
    const pl_explained_op *op = &explanation->ops[at];
    bool computes = op->family == PL_NONE;
    pl_explain_row *row = computes ? &compute[rows->n_compute++] : &communication[rows->n_communication++];
    *row = (pl_explain_row){.op = op, .time = &times[at]};
    if (!computes && times[at].group_class != PL_NONE)
      PL_TRY(pl_explained_group_take(explanation, op, times[at].group_class, arena, &row->group, error));
  }
  qsort(compute, rows->n_compute, sizeof *compute, longest_first);
  qsort(communication, rows->n_communication, sizeof *communication, longest_first);
  rows->compute = compute;
  rows->communication = communication;
  return PL_OK;
}

pl_code pl_explain_rows_take(const pl_explanation *explanation, uint32_t device_class, pl_arena *arena,
                             pl_explain_rows *rows, pl_error *error) {
  *rows =
      (pl_explain_rows){.device_class = device_class, .stage = explanation->plan->device_classes[device_class].stage};
  if (!sum_kinds(explanation, arena, rows)) return pl_fail_memory(error, "the rows of the explanation");
  return list_ops(explanation, arena, rows, error);
}
