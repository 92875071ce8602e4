/* Tokens on their way to experts and back: sorted where they are exchanged, and what moves them where a framework has
 * no one kernel for it (`permutation` and `experts` of a profile). Counted in readings and writings ("passes") of the
 * tokens as often as they go to experts, P, and of the tokens themselves, T, beside those of the kernels that are there
 * anyhow: a copy out of T into P or a sum of P into T at either end, and 2 P for each sorting. By Megatron Core's
 * token_dispatcher.py, moe_utils.py and experts.py, and by what PyTorch runs for them (the operators of each way, as
 * its dispatcher sees them; a tensor of zeros is written, what is added to one in place is read and written):
 *
 *                      to experts         answers                     back to experts           home
 *   gathered (0.6)     gather, gather     zeros, copied, scattered;   gather; times answers,    zeros, scatter_add;
 *                                         times weights; zeros,       times weights, summed     zeros, scatter_add
 *                                         copied, scatter_add         up; gather
 *   indexed (0.6-0.9)  index_select,      zeros, index_copy, sum of   times answers, times      zeros, index_add;
 *                      sorted             one; zeros, index_copy,     weights, summed up;       zeros, index_add
 *                                         times weights, sum          index_select, twice
 *   weighted           index_select,      sorted; times weights;      gather; times answers,    sorted; zeros,
 *     (0.10-0.12)      sorted             zeros, scatter_add          times weights, summed     index_add
 *                                                                     up; sorted
 *   scattered (0.13-)  index_select,      sorted; zeros,              gather, sorted            sorted; zeros,
 *                      sorted             scatter_add                                           index_add
 *
 * Answers that are weighed at the end are kept for it. Experts one after the other (`sliced`) are cut out of P and
 * copied into zeros, 3 P; back each copy makes one of the whole gradient (CopySlices), 2 n + 5 in all for n experts of
 * the device, and each cut a whole tensor of zeros that is added to the others, 4 n - 1; `joined` (split and cat) reads
 * and writes P either way. `gathered` has all tokens of the tensor group on each of its ranks, where they are spread.
 *
 * The kernels of these steps say what is moved, and compute nothing that anybody reads. They are fewer than PyTorch's.
 * See workloads/fuse/kernel_stepping.h. */
#include "workloads/fuse/kernel_stepping.h"
#include "workloads/language/ir_again.h"
#include "workloads/language/ir_operands.h"

static const pl_ir_name experts = {"x"};

/* ---- sorting ---- */

/* Whether these are tokens of several experts on this device, which lie by the device that they came from where they
 * are exchanged and by their expert where they are computed with. */
static bool is_sorted(const pl_kernel_stepping *own, int32_t value) {
  const pl_ir_type *type = &own->finding.read.f->values[value].type;
  int32_t at = pl_ir_type_find(type, experts);
  return at >= 0 && pl_ir_type_find(type, pl_ir_name_of("h")) >= 0 &&
         pl_ir_type_local_extent(&own->to->mesh, type, at) > 1;
}

bool pl_step_exchanges(const pl_kernel_stepping *own, int32_t op, const char *which) {
  return pl_step_is(own, op, "all_to_all") && pl_ir_op_has_name(pl_read_op(&own->finding.read, op), which, experts);
}

static bool is_of_tokens(const pl_kernel_stepping *own, int32_t value) {
  return pl_read_is_of_tokens(pl_read_type(&own->finding.read, value));
}

/* Tokens of experts go this way: to them by exchanges, gathered over tensor ranks that have a part of each expert, and
 * back by scattered sums and exchanges. */
static bool brings(const pl_kernel_stepping *own, int32_t op) {
  bool one = op != PL_IR_NONE && (pl_step_exchanges(own, op, "to") || pl_step_is(own, op, "all_gather"));
  return one && is_of_tokens(own, pl_read_op(&own->finding.read, op)->first_output);
}

static bool takes_back(const pl_kernel_stepping *own, int32_t op) {
  bool one = op != PL_IR_NONE && (pl_step_exchanges(own, op, "from") || pl_step_is(own, op, "reduce_scatter"));
  return one && is_of_tokens(own, pl_read_op(&own->finding.read, op)->first_output);
}

/* The last op of those that bring: others go on. */
static bool ends_way(const pl_kernel_stepping *own, int32_t op) {
  return !brings(own, own->finding.read.user[pl_read_op(&own->finding.read, op)->first_output]);
}

int32_t pl_step_sort_tokens(pl_kernel_stepping *own, int32_t index, int32_t made) {
  int32_t value = pl_read_op(&own->finding.read, index)->first_output;
  if (!brings(own, index) || !ends_way(own, index) || !is_sorted(own, value)) return made;
  return pl_step_append_same(own, "copy", made, "by their expert", NULL);
}

int32_t pl_step_sort_answers(pl_kernel_stepping *own, int32_t index) {
  if (!takes_back(own, index)) return PL_IR_NONE;
  int32_t value = pl_read_op(&own->finding.read, index)->inputs[0];
  if (takes_back(own, pl_read_maker(&own->finding.read, value)) || !is_sorted(own, value)) return PL_IR_NONE;
  int32_t before = own->map[value];
  own->map[value] = pl_step_append_same(own, "copy", before, "by the device that they go to", NULL);
  return before;
}

/* ---- in steps ---- */

typedef enum place { TO_EXPERTS, ANSWERS, BACK_TO_EXPERTS, HOME, N_PLACES } place;

/* Passes beside those of the kernels that are there: over P; more of it where a kernel sorts, and where none does;
 * more where the tensor group's tokens are gathered; over T, and more of it there. One of those back to experts reads
 * what was kept of the answers. */
typedef struct passed {
  int8_t over_p, sorted, unsorted, gathered, over_t, gathered_t;
} passed;

static const passed table[][N_PLACES] = {
    [PL_PERMUTATION_FUSED] = {{0}},
    [PL_PERMUTATION_GATHERED] = {[TO_EXPERTS] = {.unsorted = 2, .gathered = 1},
                                 [ANSWERS] = {.over_p = 5, .unsorted = 2, .over_t = 4, .gathered_t = 1},
                                 [BACK_TO_EXPERTS] = {.over_p = 6, .unsorted = 2, .gathered = 1},
                                 [HOME] = {.over_p = 2, .unsorted = 2, .over_t = 2, .gathered_t = 1}},
    [PL_PERMUTATION_INDEXED] = {[ANSWERS] = {.over_p = 5, .sorted = 3},
                                [BACK_TO_EXPERTS] = {.over_p = 5, .over_t = 1},
                                [HOME] = {.sorted = 2, .over_t = 2}},
    [PL_PERMUTATION_WEIGHTED] =
        {[ANSWERS] = {.over_p = 2, .over_t = 2}, [BACK_TO_EXPERTS] = {.over_p = 6}, [HOME] = {.over_t = 2}},
    [PL_PERMUTATION_SCATTERED] = {[ANSWERS] = {.over_t = 2}, [HOME] = {.over_t = 2}}};

/* What experts one after the other move besides, n of them on the device. */
static int64_t passes_of_experts(int form, place at, int64_t n) {
  if (form == PL_EXPERTS_JOINED) return n > 1 && (at == ANSWERS || at == HOME) ? 2 : 0;
  if (form != PL_EXPERTS_SLICED) return 0;
  return at == ANSWERS ? 3 : at == BACK_TO_EXPERTS ? 2 * n + 5 : at == HOME ? 4 * n - 1 : 0;
}

static bool weighs_at_the_end(int form) {
  return form == PL_PERMUTATION_GATHERED || form == PL_PERMUTATION_INDEXED || form == PL_PERMUTATION_WEIGHTED;
}

/* As sums of it with itself, which partial sums have, too: each reads it and writes one as large. */
static void move(pl_kernel_stepping *own, const char *name, int32_t value, int64_t passes) {
  for (; passes > 1 && value != PL_IR_NONE; passes -= 2) {
    const int32_t pair[] = {value, value};
    const pl_ir_type type = own->function->values[value].type;
    value = pl_step_append(own, "add", 2, pair, name, &type, PL_READ_TOKEN_STEPS);
  }
  if (passes > 0) pl_step_sum(own, value, name, PL_READ_TOKEN_STEPS);
}

/* Of a pass backward, what is no forward value made again. */
static bool is_derived(const pl_kernel_stepping *own, int32_t index) {
  return pl_ir_is_derived(own->finding.read.f) && !own->again[index];
}

/* Tokens as often as they go to experts, made of each once. */
static bool begins_way(const pl_kernel_stepping *own, int32_t index) {
  if (!pl_step_is(own, index, "spread")) return false;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  const pl_ir_type *of = pl_read_type(&own->finding.read, op->inputs[0]);
  return pl_read_is_of_experts(pl_read_type(&own->finding.read, op->first_output)) && pl_read_is_of_tokens(of) &&
         pl_ir_type_find(of, experts) < 0;
}

static bool adds_up(const pl_ir_function *f, const pl_ir_op *op) {
  return pl_ir_op_is(op, "sum") && pl_ir_op_has_name(op, "over", experts) &&
         pl_read_is_of_experts(&f->values[op->inputs[0]].type);
}

/* How tokens go: from where they are spread to where they are computed with, or from there to where they are added up.
 */
typedef struct way {
  int32_t first, last; /* values of the function that is read */
  bool is_sorted, is_gathered;
} way;

static way way_to(const pl_kernel_stepping *own, int32_t spread) {
  way to = {.first = pl_read_op(&own->finding.read, spread)->first_output};
  to.last = to.first;
  for (int32_t user; brings(own, user = own->finding.read.user[to.last]);) {
    to.is_gathered = to.is_gathered || pl_step_is(own, user, "all_gather");
    to.last = pl_read_op(&own->finding.read, user)->first_output;
  }
  to.is_sorted = to.last != to.first && is_sorted(own, to.last);
  return to;
}

static way way_from(const pl_kernel_stepping *own, int32_t sum) {
  way from = {.last = pl_read_op(&own->finding.read, sum)->inputs[0]};
  from.first = from.last;
  for (int32_t maker; takes_back(own, maker = pl_read_maker(&own->finding.read, from.first));)
    from.first = pl_read_op(&own->finding.read, maker)->inputs[0];
  from.is_sorted = from.first != from.last && is_sorted(own, from.first);
  from.is_gathered = takes_back(own, own->finding.read.user[pl_read_op(&own->finding.read, sum)->first_output]);
  return from;
}

static int64_t n_experts(const pl_kernel_stepping *own, int32_t value) {
  const pl_ir_type *type = pl_read_type(&own->finding.read, value);
  return pl_ir_type_local_extent(&own->to->mesh, type, pl_ir_type_find(type, experts));
}

/* Of the forward function, whose `keep` of tokens has the answers beside it, read again. False: none was kept. */
static bool read_answers(pl_kernel_stepping *own) {
  const pl_ir_function *f = own->finding.read.f, *forward = pl_ir_forward_of(own->from, f->name);
  const pl_ir_type *type = NULL;
  for (int32_t i = 0; forward != NULL && i < forward->n_ops; i++)
    if (adds_up(forward, &forward->ops[i])) type = &forward->values[forward->ops[i].inputs[0]].type;
  for (int32_t i = 0; type != NULL && i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if (!pl_ir_op_is(op, "kept") || !pl_read_is_of_experts(&f->values[op->first_output].type)) continue;
    pl_step_sum(own, pl_step_kept_part(own, op, "answers", type), "danswers", PL_READ_TOKEN_STEPS);
    return true;
  }
  return false;
}

static void bring(pl_kernel_stepping *own, int32_t index) {
  const pl_framework *framework = own->options->framework;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool derived = is_derived(own, index);
  place at = derived ? BACK_TO_EXPERTS : TO_EXPERTS;
  way to = way_to(own, index);
  const passed *p = &table[framework->kernels.permutation][at];
  int64_t over_p = p->over_p + (to.is_sorted ? p->sorted : p->unsorted) + (to.is_gathered ? p->gathered : 0) +
                   passes_of_experts(framework->kernels.experts, at, n_experts(own, to.last));
  const char *name = derived ? "danswers" : "dispatched";
  if (derived && weighs_at_the_end(framework->kernels.permutation) && read_answers(own)) over_p--;
  move(own, name, own->map[to.last] != PL_IR_NONE ? own->map[to.last] : own->map[to.first], over_p);
  move(own, name, own->map[op->inputs[0]], p->over_t);
}

static void put_together(pl_kernel_stepping *own, int32_t index) {
  const pl_framework *framework = own->options->framework;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool derived = is_derived(own, index);
  place at = derived ? HOME : ANSWERS;
  way from = way_from(own, index);
  const passed *p = &table[framework->kernels.permutation][at];
  int64_t over_p = p->over_p + (from.is_sorted ? p->sorted : p->unsorted) +
                   passes_of_experts(framework->kernels.experts, at, n_experts(own, from.first));
  const char *name = derived ? "ddispatched" : "answers";
  move(own, name, own->map[op->inputs[0]], over_p);
  move(own, name, own->map[op->first_output], p->over_t + (from.is_gathered ? p->gathered_t : 0));
  if (!derived) own->answers = own->map[op->inputs[0]];
}

/* What was gathered is spread where it has come, what was exchanged where it goes from. */
static int32_t beginning_of(const pl_kernel_stepping *own, int32_t index) {
  while (brings(own, index))
    index = pl_read_made(&own->finding.read, index, 0);
  return begins_way(own, index) ? index : PL_IR_NONE;
}

void pl_step_dispatch(pl_kernel_stepping *own, int32_t index) {
  const pl_framework *framework = own->options->framework;
  bool fused = framework->kernels.permutation == PL_PERMUTATION_FUSED;
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  if (fused && framework->kernels.experts == PL_EXPERTS_GROUPED) return;
  if (adds_up(own->finding.read.f, op)) put_together(own, index);
  bool tokens = op->n_outputs == 1 && (begins_way(own, index) || brings(own, index));
  if (tokens && ends_way(own, index) && beginning_of(own, index) != PL_IR_NONE) bring(own, beginning_of(own, index));
  bool keeps =
      pl_step_is(own, index, "keep") && own->answers != PL_IR_NONE && weighs_at_the_end(framework->kernels.permutation);
  if (keeps && pl_read_is_of_experts(pl_read_type(&own->finding.read, op->inputs[0])))
    pl_step_keep_part(own, op, "answers", own->answers);
}
