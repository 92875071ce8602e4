/* Batch norm with the ReLU behind it, and with the addition between the two, in one kernel (`fused_batch_norm` of a
 * profile): cuDNN's of 16-bit pictures whose channels come last (cudnnBatchNormalizationForwardTrainingEx with
 * CUDNN_BATCHNORM_OPS_BN_ACTIVATION or _BN_ADD_ACTIVATION, which MXNet's and OneFlow's fused ops call). It keeps what
 * it reads on chip: one read of the picture and of what is added, one write of the result. What the derivative needs of
 * the result is its signs, a bit an element in cuDNN's reserve space, so that the result is kept for it no longer; that
 * of the addition's other operand is what the ReLU lets through, written beside the picture's gradient.
 * See workloads/fuse/kernel_groups.h, kernel_stepping.h.
 */
#include <stdlib.h>
#include <string.h>

#include "workloads/fuse/kernel_stepping.h"
#include "workloads/language/ir_again.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* A function, and per value operands that it is and results that it is handed back as (pl_kernel_finding.n_readers). */
typedef struct counted {
  const pl_ir_function *f;
  const int32_t *n_readers;
} counted;

static counted counted_of(const pl_kernel_finding *own) {
  return (counted){own->read.f, own->n_readers};
}

/* Parts of a batch that norms are taken of by themselves: the same elements in the same places. */
static bool is_of_parts(const pl_ir_op *op) {
  return is(op, "split") || is(op, "join");
}

/* The norm that makes a value which nothing else reads; PL_IR_NONE: there is none. */
static int32_t norm_of(const counted *in, int32_t value) {
  const pl_ir_function *f = in->f;
  for (int32_t op = f->values[value].op; op != PL_IR_NONE && in->n_readers[value] == 1; op = f->values[value].op) {
    if (is(&f->ops[op], "batch_norm")) return op;
    if (!is_of_parts(&f->ops[op])) return PL_IR_NONE;
    value = f->ops[op].inputs[0];
  }
  return PL_IR_NONE;
}

/* A ReLU that is one kernel with the batch norm in front of it, and the addition between the two (PL_IR_NONE: none). */
typedef struct normed_relu {
  int32_t norm, add;
} normed_relu;

static bool is_normed_relu(const counted *in, int32_t relu, const pl_framework *framework, normed_relu *found) {
  const pl_ir_function *f = in->f;
  if (!framework->kernels.fuses_batch_norm || !is(&f->ops[relu], "relu")) return false;
  int32_t value = f->ops[relu].inputs[0], sum = f->values[value].op;
  if (pl_ir_element_bytes((pl_ir_element)f->values[value].type.element) != 2) return false;
  *found = (normed_relu){.norm = norm_of(in, value), .add = PL_IR_NONE};
  if (found->norm != PL_IR_NONE) return true;
  if (sum == PL_IR_NONE || !is(&f->ops[sum], "add") || in->n_readers[value] != 1) return false;
  found->add = sum;
  for (int32_t i = 0; i < 2 && found->norm == PL_IR_NONE; i++)
    found->norm = norm_of(in, f->ops[sum].inputs[i]);
  return found->norm != PL_IR_NONE;
}

/* ---- signs ---- */

/* What is kept under a path: an op that keeps it or reads it again, and who computes with what is read: derivatives of
 * ReLUs, of the result, and others. */
typedef struct kept_entry {
  const char *path;
  int32_t op, n_relus, n_others;
} kept_entry;

/* Of a function, by path and then by op. */
typedef struct kept_table {
  kept_entry *entries;
  int32_t n;
} kept_table;

/* Taken once per function that is written: each of its `keep` and `kept` looks into them. */
struct pl_step_signs {
  counted forward; /* that the function is derived of; .f NULL: it is none that is derived */
  kept_table keeps;
  kept_table own, backward, weights; /* read by the function itself, and by what is derived of it */
};

static int by_path(const void *a, const void *b) {
  const kept_entry *first = a, *second = b;
  int order = strcmp(first->path, second->path);
  return order != 0 ? order : first->op - second->op;
}

/* `f` may be none: nothing. False: no memory. O(ops log ops). */
static bool take_table(kept_table *table, const pl_ir_function *f, const char *row, pl_arena *scratch) {
  *table = (kept_table){.n = 0};
  if (f == NULL) return true;
  int32_t *entry_of = PL_TAKE(scratch, int32_t, f->n_ops + 1);
  table->entries = PL_TAKE(scratch, kept_entry, f->n_ops + 1);
  if (entry_of == NULL || table->entries == NULL) return false;
  for (int32_t i = 0; i < f->n_ops; i++) {
    entry_of[i] = is(&f->ops[i], row) ? table->n : PL_IR_NONE;
    if (entry_of[i] != PL_IR_NONE) table->entries[table->n++] = (kept_entry){.path = f->ops[i].path, .op = i};
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++) {
      int32_t maker = f->values[f->ops[i].inputs[k]].op;
      if (maker == PL_IR_NONE || entry_of[maker] == PL_IR_NONE) continue;
      kept_entry *entry = &table->entries[entry_of[maker]];
      bool signs = k == 0 && is(&f->ops[i], "relu_backward");
      entry->n_relus += signs;
      entry->n_others += !signs;
    }
  }
  qsort(table->entries, (size_t)table->n, sizeof *table->entries, by_path);
  return true;
}

/* The first of this path; the table's end: there is none. */
static int32_t first_of(const kept_table *table, const char *path) {
  int32_t low = 0, high = table->n;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (strcmp(table->entries[middle].path, path) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < table->n && strcmp(table->entries[low].path, path) == 0 ? low : table->n;
}

static void count_readers(const kept_table *table, const char *path, int32_t *n_relus, int32_t *n_others) {
  for (int32_t i = first_of(table, path); i < table->n && strcmp(table->entries[i].path, path) == 0; i++) {
    *n_relus += table->entries[i].n_relus;
    *n_others += table->entries[i].n_others;
  }
}

static bool count_forward(counted *forward, pl_arena *scratch) {
  if (forward->f == NULL) return true;
  int32_t *n = PL_TAKE(scratch, int32_t, forward->f->n_values + 1);
  if (n == NULL) return false;
  for (int32_t i = 0; i < forward->f->n_ops; i++)
    for (int32_t k = 0; k < forward->f->ops[i].n_inputs; k++)
      n[forward->f->ops[i].inputs[k]]++;
  for (int32_t i = 0; i < forward->f->n_results; i++)
    n[forward->f->results[i]]++;
  forward->n_readers = n;
  return true;
}

bool pl_step_begin_signs(pl_kernel_stepping *own) {
  const pl_ir_function *f = own->finding.read.f;
  own->signs = NULL;
  if (!own->options->framework->kernels.fuses_batch_norm) return true;
  struct pl_step_signs *signs = PL_TAKE(&own->scratch, struct pl_step_signs, 1);
  if (signs == NULL) return false;
  signs->forward.f = pl_ir_forward_of(own->from, f->name);
  own->signs = signs;
  return count_forward(&signs->forward, &own->scratch) &&
         take_table(&signs->keeps, signs->forward.f, "keep", &own->scratch) &&
         take_table(&signs->own, f, "kept", &own->scratch) &&
         take_table(&signs->backward, pl_kernel_derived_of(own->from, f, ".backward"), "kept", &own->scratch) &&
         take_table(&signs->weights, pl_kernel_derived_of(own->from, f, ".weights"), "kept", &own->scratch);
}

/* That `keep` keeps the result of such a ReLU. */
static bool keeps_result(const counted *in, const pl_ir_op *keep, const pl_framework *framework) {
  normed_relu found;
  int32_t maker = is(keep, "keep") ? in->f->values[keep->inputs[0]].op : PL_IR_NONE;
  return maker != PL_IR_NONE && is_normed_relu(in, maker, framework, &found);
}

/* That what `kept` reads is the result of such a ReLU, which the function that this one is derived of keeps. */
static bool reads_result(const pl_kernel_stepping *own, const pl_ir_op *kept) {
  const struct pl_step_signs *signs = own->signs;
  int32_t keep = first_of(&signs->keeps, kept->path);
  if (keep == signs->keeps.n) return false;
  return keeps_result(&signs->forward, &signs->forward.f->ops[signs->keeps.entries[keep].op], own->options->framework);
}

static int32_t append_signs(pl_kernel_stepping *own, int32_t value) {
  if (value == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = own->function->values[value].type;
  type.element = PL_IR_BIT;
  const char *name = pl_arena_printf(own->to->arena, "%s.signs", own->function->values[value].name);
  return name != NULL ? pl_step_append(own, "signs", 1, &value, name, &type, NULL) : PL_IR_NONE;
}

bool pl_step_keeps_signs(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  const counted in = counted_of(&own->finding);
  int32_t n_relus = 0, n_others = 0;
  if (own->signs == NULL) return false;
  if (is(op, "kept")) {
    if (!reads_result(own, op)) return false;
    count_readers(&own->signs->own, op->path, &n_relus, &n_others);
    return n_relus > 0 && n_others == 0;
  }
  if (!keeps_result(&in, op, own->options->framework)) return false;
  count_readers(&own->signs->backward, op->path, &n_relus, &n_others);
  if (n_relus == 0) return false;
  count_readers(&own->signs->weights, op->path, &n_relus, &n_others);
  pl_step_keep_part(own, op, "signs", append_signs(own, own->map[op->inputs[0]]));
  return n_others == 0;
}

int32_t pl_step_read_signs(pl_kernel_stepping *own, int32_t index) {
  const pl_ir_function *f = own->finding.read.f;
  const counted in = counted_of(&own->finding);
  normed_relu found;
  if (own->signs == NULL || !pl_step_is(own, index, "relu_backward")) return PL_IR_NONE;
  int32_t value = f->ops[index].inputs[0], maker = f->values[value].op;
  if (maker == PL_IR_NONE) return PL_IR_NONE;
  if (is_normed_relu(&in, maker, own->options->framework, &found))
    return append_signs(own, own->map[value]); /* made again */
  if (!is(&f->ops[maker], "kept") || !reads_result(own, &f->ops[maker])) return PL_IR_NONE;
  pl_ir_type type = f->values[value].type;
  type.element = PL_IR_BIT;
  return pl_step_kept_part(own, &f->ops[maker], "signs", &type);
}

/* ---- one kernel ---- */

/* All that lies between an operation and what it is made of. */
static void join_down(pl_kernel_finding *own, int32_t op, int32_t value, int32_t norm) {
  for (int32_t at = pl_read_maker(&own->read, value); at != norm; at = pl_read_made(&own->read, at, 0))
    pl_kernel_join(own, op, at);
}

static void join_forward(pl_kernel_finding *own, int32_t relu, const normed_relu *of) {
  const pl_ir_function *f = own->read.f;
  const counted in = counted_of(own);
  int32_t last = of->add != PL_IR_NONE ? of->add : relu;
  for (int32_t i = 0; i < f->ops[last].n_inputs; i++)
    if (norm_of(&in, f->ops[last].inputs[i]) == of->norm) join_down(own, relu, f->ops[last].inputs[i], of->norm);
  pl_kernel_join(own, relu, of->norm);
  pl_kernel_join(own, relu, of->add);
  for (int32_t i = relu + 1; i < f->n_ops; i++)
    if (is(&f->ops[i], "signs") && f->ops[i].inputs[0] == f->ops[relu].first_output) pl_kernel_join(own, relu, i);
}

/* The norm whose derivative is given what a ReLU lets through, perhaps by parts; of two that of the one in front, which
 * comes last. */
static void join_backward(pl_kernel_finding *own, int32_t relu) {
  const pl_ir_function *f = own->read.f;
  int32_t passed = f->ops[relu].first_output, found = PL_IR_NONE, view = PL_IR_NONE;
  for (int32_t i = relu + 1; i < f->n_ops; i++) {
    if (!is(&f->ops[i], "batch_norm_backward")) continue;
    int32_t dy = f->ops[i].inputs[2], maker = f->values[dy].op;
    bool parts = maker != PL_IR_NONE && is_of_parts(&f->ops[maker]) && f->ops[maker].inputs[0] == passed;
    if (dy != passed && !parts) continue;
    found = i;
    view = parts ? maker : PL_IR_NONE;
  }
  if (found == PL_IR_NONE) return;
  pl_kernel_join(own, relu, found);
  pl_kernel_join(own, relu, view);
}

void pl_kernel_batch_norms(pl_kernel_finding *own) {
  const pl_ir_function *f = own->read.f;
  const counted in = counted_of(own);
  normed_relu found;
  for (int32_t i = 0; own->framework->kernels.fuses_batch_norm && i < f->n_ops; i++) {
    if (is_normed_relu(&in, i, own->framework, &found)) join_forward(own, i, &found);
    bool signs = is(&f->ops[i], "relu_backward") && f->values[f->ops[i].inputs[0]].type.element == PL_IR_BIT;
    if (signs) join_backward(own, i);
  }
}
