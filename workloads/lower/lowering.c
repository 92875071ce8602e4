/* See workloads/lower/lowering.h. */
#include "workloads/lower/lowering.h"

#include <string.h>

#include "core/cluster/cluster.h"

/* ---- reading ---- */

static int32_t find(const pl_ir_type *type, char dim) {
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i].name.text[0] == dim && type->dims[i].name.text[1] == '\0') return i;
  return -1;
}

int64_t pl_lower_extent(const pl_lowering *to, int32_t value, char dim) {
  const pl_ir_type *type = pl_read_type(&to->read, value);
  int32_t at = find(type, dim);
  return at < 0 ? 1 : pl_ir_type_local_extent(to->read.mesh, type, at) * (dim == 'b' ? to->tape->mbs : 1);
}

double pl_lower_whole(const pl_lowering *to, int32_t value, char dim) {
  const pl_ir_type *type = pl_read_type(&to->read, value);
  int32_t at = find(type, dim);
  if (at < 0) return 1;
  int64_t whole = to->block->whole[dim - 'a'];
  return (double)(whole != 0 ? whole : type->dims[at].extent);
}

bool pl_lower_is_param(const pl_lowering *to, int32_t value) {
  return pl_read_is(&to->read, pl_read_maker(&to->read, value), "param");
}

/* ---- writing ---- */

static char letter_of(char dim) {
  return dim == 'm' ? 's' : dim == 'j' ? 'h' : dim == 'x' ? 'e' : dim;
}

static bool has_dim(const pl_ir_type *type, char dim) {
  return find(type, dim) >= 0;
}

/* Outputs of dense layers and of chains are o, what a dense layer is given i. */
char pl_lower_last_letter(const pl_lowering *to, int32_t value) {
  pl_block_kind kind = to->block->kind;
  const pl_ir_type *type = pl_read_type(&to->read, value);
  bool given = pl_read_maker(&to->read, value) == PL_IR_NONE;
  if (kind == PL_BLOCK_DENSE_OUT || kind == PL_BLOCK_DENSE_IN) return given ? 'i' : 'o';
  if (kind == PL_BLOCK_CHAIN) return 'o';
  return kind == PL_BLOCK_MEAN ? 'h' : letter_of(type->dims[type->rank - 1].name.text[0]);
}

/* Pictures have their points for tokens, vectors one. */
uint32_t pl_lower_tensor(pl_lowering *to, const char *name, int32_t value) {
  const pl_ir_type *type = pl_read_type(&to->read, value);
  bool picture = has_dim(type, 'y') && has_dim(type, 'x');
  if (picture)
    return pl_tape_activation(to->tape, name, pl_lower_extent(to, value, 'y') * pl_lower_extent(to, value, 'x'),
                              pl_lower_last_letter(to, value),
                              pl_lower_extent(to, value, has_dim(type, 'c') ? 'c' : 'o'));
  PL_ASSERT(type->rank == 2 || type->rank == 3);
  char last = type->dims[type->rank - 1].name.text[0];
  int64_t rows = type->rank == 2 ? 1 : pl_lower_extent(to, value, type->dims[1].name.text[0]);
  return pl_tape_activation(to->tape, name, rows, pl_lower_last_letter(to, value), pl_lower_extent(to, value, last));
}

void pl_lower_nothing(pl_lowering *to, int32_t op) {
  (void)to;
  (void)op;
}

void pl_lower_same(pl_lowering *to, int32_t op) {
  pl_lower_set(to, op, 0, pl_lower_input(to, op, 0));
}

void pl_lower_sweep(pl_lowering *to, int32_t op) {
  const pl_ir_op *own = pl_read_op(&to->read, op);
  uint32_t given[3] = {PL_NONE, PL_NONE, PL_NONE};
  uint32_t n = 0;
  for (int32_t i = 0; i < own->n_inputs && n < 3; i++)
    if (to->tensor[own->inputs[i]] != PL_NONE) given[n++] = to->tensor[own->inputs[i]];
  if (n == 0) return; /* of data or parameters alone: read where it is used */
  uint32_t output =
      pl_tape_like(to->tape, given[0], pl_ir_row_at(own->row)->name, PL_TENSOR_ACTIVATION, to->tape->shard->dtype);
  pl_tape_sweep(to->tape, pl_ir_row_at(own->row)->name, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, given[0], given[1],
                given[2], output, PL_NONE);
  pl_tape_note(to->tape, PL_RULE_POINTWISE, (pl_tape_names){.backward = pl_ir_row_at(own->row)->name}, given[0], output)
      ->second = given[1];
  pl_lower_set(to, op, 0, output);
}

/* ---- the block ---- */

void pl_lower_block(const pl_block_function *block, pl_tape *tape, pl_lowering *to) {
  const pl_ir_function *function = block->function;
  PL_ASSERT(function->n_values <= PL_LOWERING_VALUES && function->n_ops <= PL_LOWERING_VALUES);
  to->tape = tape;
  to->block = block;
  to->read = block->read;
  to->read.mesh = &block->module.mesh;
  to->read.f = function;
  memset(to->done, 0, (size_t)function->n_ops);
  memset(to->head, 0, (size_t)function->n_ops * sizeof *to->head);
  for (int32_t i = 0; i < function->n_values; i++)
    to->tensor[i] = PL_NONE;
  for (int32_t i = 0; i < function->n_arguments; i++)
    to->tensor[i] = pl_lower_tensor(to, strcmp(function->values[i].name, "x") == 0 ? "input" : "logits", i);
  bool streams = block->kind == PL_BLOCK_LAYER || block->kind == PL_BLOCK_EXPERT_LAYER ||
                 block->kind == PL_BLOCK_FINAL_NORM || block->kind == PL_BLOCK_HEAD;
  if (function->n_arguments > 0 && streams)
    pl_tape_retype(tape, to->tensor[0], block->kind == PL_BLOCK_HEAD ? tape->normed : tape->stream);
  if (function->n_arguments > 0 && block->kind != PL_BLOCK_LATENT) /* whose vectors come from the data loader too */
    *(block->takes_data ? &tape->data : &tape->input) = to->tensor[0];
  for (int32_t i = 0; i < function->n_ops; i++) {
    if (to->done[i]) continue;
    tape->head = tape->of = to->head[i] = i;
    pl_lowers_of((pl_ir_kernel_kind)block->kernels[i])(to, i);
  }
  if (function->n_results > 0) tape->output = to->tensor[function->results[0]];
}
