/* See workloads/execute/executor_internal.h: attention over a ring of devices. Every pair of one device's queries and
 * another's keys is attended by the ordinary op; answers over two sets of keys are merged by their log-sum-exps, and
 * gradients of keys and values are terms that the device that owns them adds up. */
#include <string.h>

#include "workloads/execute/executor_internal.h"
#include "workloads/execute/remote.h"

typedef struct ring {
  pl_execution *execution;
  pl_member *member;
  pl_frame *frame;
  const pl_ir_op *op;
  pl_error *error;
} ring;

static pl_ir_tensor part_of(const ring *own, int32_t value, uint32_t d) {
  return own->frame->values[value]->parts[d];
}

static bool meets(const ring *own, uint32_t d, uint32_t other) {
  const pl_crew *crew = &own->member->crew;
  return pl_ir_op_joins(crew->mesh, own->op, crew->devices[d], crew->devices[other]);
}

/* One of the ordinary ops on device `d` of the crew, with the attributes of the ring's. */
static pl_code compute(const ring *own, uint32_t d, const char *row, uint16_t n_inputs, const pl_ir_tensor *inputs,
                       uint16_t n_outputs, pl_ir_tensor *outputs) {
  pl_ir_op op = *own->op;
  op.row = (uint16_t)pl_ir_row_of(row);
  op.n_inputs = n_inputs;
  op.n_outputs = n_outputs;
  const pl_ir_computing computing = {.op = &op,
                                     .inputs = inputs,
                                     .outputs = outputs,
                                     .single = own->execution->options.single,
                                     .scratch = &own->execution->scratch,
                                     .iteration = (uint64_t)own->execution->iteration,
                                     .turn = own->member->turns[d],
                                     .piece = own->frame->piece};
  return pl_ir_row_at(op.row)->compute(&computing, own->error);
}

/* The same shape and place, zeroed, in scratch. */
static bool like(const ring *own, const pl_ir_tensor *part, pl_ir_tensor *made) {
  *made = *part;
  made->data = PL_TAKE(&own->execution->scratch, double, part->n);
  return made->data != NULL;
}

static void copy_to(pl_ir_tensor *to, const pl_ir_tensor *from) {
  if (from->n > 0) memcpy(to->data, from->data, (size_t)from->n * sizeof(double));
}

/* Whether operand `i` goes round: it has the keys' dimension of this op, and not that of the queries. */
static bool goes_round(const ring *own, int32_t i) {
  const pl_ir_type *keys = &own->frame->function->values[own->op->inputs[1]].type;
  const pl_ir_type *queries = &own->frame->function->values[own->op->inputs[0]].type;
  const pl_ir_type *type = &own->frame->function->values[own->op->inputs[i]].type;
  for (int32_t k = 0; k < type->rank; k++) {
    pl_ir_name dim = type->dims[k].name;
    if (pl_ir_type_find(keys, dim) >= 0 && pl_ir_type_find(queries, dim) < 0) return true;
  }
  return false;
}

static void gather_inputs(const ring *own, uint32_t d, uint32_t other, pl_ir_tensor *inputs) {
  for (int32_t i = 0; i < own->op->n_inputs; i++)
    inputs[i] = part_of(own, own->op->inputs[i], goes_round(own, i) ? other : d);
}

static pl_code forward(const ring *own, uint32_t d) {
  pl_ir_tensor inputs[16], y = part_of(own, own->op->first_output, d), l = part_of(own, own->op->first_output + 1, d);
  bool first = true;
  for (uint32_t other = 0; other < own->member->crew.n_devices; other++) {
    if (!meets(own, d, other)) continue;
    pl_ir_tensor piece[2], merged[2];
    if (!like(own, &y, &piece[0]) || !like(own, &l, &piece[1]) || !like(own, &y, &merged[0]) ||
        !like(own, &l, &merged[1]))
      return pl_execution_no_memory(own->error);
    gather_inputs(own, d, other, inputs);
    PL_TRY(compute(own, d, "attention", own->op->n_inputs, inputs, 2, piece));
    if (!first) {
      const pl_ir_tensor both[] = {y, l, piece[0], piece[1]};
      PL_TRY(compute(own, d, "attention_merge", 4, both, 2, merged));
    }
    copy_to(&y, first ? &piece[0] : &merged[0]);
    copy_to(&l, first ? &piece[1] : &merged[1]);
    first = false;
  }
  return PL_OK;
}

static pl_code backward(const ring *own, uint32_t d) {
  pl_ir_tensor inputs[16];
  for (uint32_t other = 0; other < own->member->crew.n_devices; other++) {
    if (!meets(own, d, other)) continue;
    pl_ir_tensor terms[3], sums[3];
    for (int32_t k = 0; k < 3; k++) {
      sums[k] = part_of(own, own->op->first_output + k, k == 0 ? d : other);
      if (!like(own, &sums[k], &terms[k])) return pl_execution_no_memory(own->error);
    }
    gather_inputs(own, d, other, inputs);
    PL_TRY(compute(own, d, "attention_backward", own->op->n_inputs, inputs, 3, terms));
    for (int32_t k = 0; k < 3; k++)
      for (int64_t i = 0; i < sums[k].n; i++)
        sums[k].data[i] += terms[k].data[i];
  }
  return PL_OK;
}

/* ---- one device of many: what goes round is sent on before it is worked on ---- */

typedef struct round {
  pl_peer_group group;
  uint32_t at;
  pl_ir_tensor here[16], next[16]; /* operands: of this step, of the next */
} round;

static pl_code begin_round(const ring *own, round *r) {
  PL_TRY(pl_remote_group(own->execution, own->op, &r->group, &r->at, own->error));
  for (int32_t i = 0; i < own->op->n_inputs; i++) {
    pl_ir_tensor part = part_of(own, own->op->inputs[i], 0);
    r->here[i] = r->next[i] = part;
    if (!goes_round(own, i)) continue;
    if (!like(own, &part, &r->here[i]) || !like(own, &part, &r->next[i])) return pl_execution_no_memory(own->error);
    copy_to(&r->here[i], &part);
  }
  return PL_OK;
}

static pl_code send_on(const ring *own, const round *r, const pl_ir_tensor *part) {
  const pl_peers *peers = own->execution->options.peers;
  return peers->ops->send(peers->own, r->group.devices[(r->at + 1) % r->group.n], 0,
                          pl_remote_is_narrow(own->execution, &part->type), part->data, part->n, own->error);
}

static pl_code get(const ring *own, const round *r, pl_ir_tensor *part) {
  const pl_peers *peers = own->execution->options.peers;
  return peers->ops->receive(peers->own, r->group.devices[(r->at + r->group.n - 1) % r->group.n], 0,
                             pl_remote_is_narrow(own->execution, &part->type), part->data, part->n, own->error);
}

static pl_code send_operands(const ring *own, const round *r) {
  for (int32_t i = 0; i < own->op->n_inputs; i++)
    if (goes_round(own, i)) PL_TRY(send_on(own, r, &r->here[i]));
  return PL_OK;
}

/* Those of `step`, which began `step` places back. */
static pl_code get_operands(const ring *own, round *r, uint32_t step) {
  const pl_ir_mesh *mesh = own->member->crew.mesh;
  uint32_t owner = r->group.devices[(r->at + r->group.n - step) % r->group.n];
  for (int32_t i = 0; i < own->op->n_inputs; i++) {
    if (!goes_round(own, i)) continue;
    PL_TRY(get(own, r, &r->next[i]));
    for (int32_t dim = 0; dim < r->next[i].type.rank; dim++)
      r->next[i].origin[dim] = pl_ir_type_local_origin(mesh, &r->next[i].type, dim, owner);
    pl_ir_tensor before = r->here[i];
    r->here[i] = r->next[i];
    r->next[i] = before;
  }
  return PL_OK;
}

static pl_code forward_apart(const ring *own) {
  round r;
  pl_ir_tensor y = part_of(own, own->op->first_output, 0), l = part_of(own, own->op->first_output + 1, 0);
  pl_ir_tensor piece[2], merged[2];
  PL_TRY(begin_round(own, &r));
  if (!like(own, &y, &piece[0]) || !like(own, &l, &piece[1]) || !like(own, &y, &merged[0]) ||
      !like(own, &l, &merged[1]))
    return pl_execution_no_memory(own->error);
  for (uint32_t step = 0; step < r.group.n; step++) {
    bool last = step + 1 == r.group.n;
    if (!last) PL_TRY(send_operands(own, &r));
    for (int k = 0; k < 2; k++)
      memset(piece[k].data, 0, (size_t)piece[k].n * sizeof(double));
    PL_TRY(compute(own, 0, "attention", own->op->n_inputs, r.here, 2, piece));
    if (step > 0) {
      const pl_ir_tensor both[] = {y, l, piece[0], piece[1]};
      PL_TRY(compute(own, 0, "attention_merge", 4, both, 2, merged));
    }
    copy_to(&y, step == 0 ? &piece[0] : &merged[0]);
    copy_to(&l, step == 0 ? &piece[1] : &merged[1]);
    if (!last) PL_TRY(get_operands(own, &r, step + 1));
  }
  return PL_OK;
}

/* Gradients of keys and values follow their piece, and come home with the last step. */
static pl_code backward_apart(const ring *own) {
  round r;
  pl_ir_tensor sums[3], terms[3];
  PL_TRY(begin_round(own, &r));
  for (int32_t k = 0; k < 3; k++) {
    sums[k] = part_of(own, own->op->first_output + k, 0);
    if (!like(own, &sums[k], &terms[k])) return pl_execution_no_memory(own->error);
  }
  for (uint32_t step = 0; step < r.group.n; step++) {
    bool last = step + 1 == r.group.n;
    if (!last) PL_TRY(send_operands(own, &r));
    for (int k = 0; k < 3; k++)
      memset(terms[k].data, 0, (size_t)terms[k].n * sizeof(double));
    PL_TRY(compute(own, 0, "attention_backward", own->op->n_inputs, r.here, 3, terms));
    for (int32_t k = 0; k < 3; k++)
      for (int64_t i = 0; i < sums[k].n; i++)
        sums[k].data[i] += terms[k].data[i];
    for (int32_t k = 1; k < 3 && r.group.n > 1; k++)
      PL_TRY(send_on(own, &r, &sums[k]));
    if (!last) PL_TRY(get_operands(own, &r, step + 1));
    for (int32_t k = 1; k < 3 && r.group.n > 1; k++)
      PL_TRY(get(own, &r, &sums[k]));
  }
  return PL_OK;
}

static pl_code run_apart(const ring *own) {
  pl_arena_mark mark = pl_arena_mark_here(&own->execution->scratch);
  PL_TRY(own->op->n_outputs == 2 ? forward_apart(own) : backward_apart(own));
  pl_arena_release_to(&own->execution->scratch, mark);
  return PL_OK;
}

pl_code pl_execution_run_ring(pl_execution *execution, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  const ring own = {.execution = execution, .member = m, .frame = f, .op = op, .error = error};
  PL_ASSERT(op->n_inputs <= 16);
  if (execution->options.peers != NULL) return run_apart(&own);
  for (uint32_t d = 0; d < m->crew.n_devices; d++) {
    pl_arena_mark mark = pl_arena_mark_here(&execution->scratch);
    PL_TRY(op->n_outputs == 2 ? forward(&own, d) : backward(&own, d));
    pl_arena_release_to(&execution->scratch, mark);
  }
  return PL_OK;
}
