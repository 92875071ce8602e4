/* Context parallelism in a block that is noted by its kernels (launched_kernels.h): fused attention of sequences that
 * are cut over cp ranks (Liu et al. 2023, "Ring Attention"; Transformer Engine's context parallelism).
 *
 * A causal sequence is cut into 2 cp chunks and rank i holds chunks i and 2 cp - 1 - i, so that all ranks have the same
 * work in each of cp steps: in step 0 on their own keys and values, then on those of the others. Ring (p2p): step j
 * works on what came while step j - 1 ran, so a pass takes
 *
 *   (cp - 1) * max(step, send) + step
 *
 * written down as two ops, of cp - 1 steps beside the whole exchange and of one step behind it. The exchange is a
 * ring all-gather: each rank sends cp - 1 shares, one per step. Backward the gradients of keys and values go round with
 * them, so twice as much is sent; their last step home is left out. Each step is a kernel that reads queries, one share
 * of keys and values, and writes a partial result; the rescaling of partial results is left out.
 *
 * Gather: keys and values are all-gathered before attention, in the backward pass once more, and their gradients
 * reduce-scattered behind it; nothing runs beside these.
 *
 * Gather in steps, as PyTorch's context_parallel does with SDPA that is told to gather (torch/distributed/tensor/
 * experimental/_attention.py, _templated_ring_attention and its backward pass): keys and values come with a copy for
 * each head of queries (torchtitan repeats them first), the gather runs beside the first step, which needs none of it,
 * and the gradients of keys and values go round in fp32 while the next step runs: cp - 1 steps beside them, and one
 * behind. The gather of the backward pass, of which the first step hides a part, is left in the open.
 *
 * Here the ring and the gather in steps are written down, each of whose kernels is one of a step. Of a plain gather the
 * collectives are the function's own ops, keys and values each by itself (AttnFuncWithCPAndKVAllGather of Transformer
 * Engine).
 */
#include "core/cluster/cluster.h"
#include "workloads/lower/launched_kernels.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

static bool gathers_in_steps(const pl_launching *own) {
  return own->tape->cp > 1 && own->tape->shard->cp_gather && !own->tape->framework->kernels.fuses_context;
}

/* A pass of attention over the whole sequence, of a rank's queries. */
typedef struct attending {
  pl_launching *own;
  int32_t index;       /* its op */
  bool rings;          /* else it gathers in steps */
  bool derives;        /* backward */
  double keys_values;  /* of a rank, elements */
  double element;      /* bytes */
  int64_t repeats;     /* of each head of keys and values */
  pl_tensor_kind kind; /* of what is exchanged */
} attending;

static const pl_ir_op *find_attention(const pl_ir_launched_ops *of) {
  for (int32_t i = 0; i < of->n; i++)
    if (pl_ir_row_at(of->ops[i].row)->launches == PL_IR_LAUNCHES_ATTENTION) return &of->ops[i];
  return NULL;
}

static int64_t local_extent(const pl_launching *own, const pl_ir_type *type, const char *dim) {
  int32_t at = pl_ir_type_find(type, pl_ir_name_of(dim));
  return at >= 0 ? pl_ir_type_local_extent(&own->kernels->mesh, type, at) : 1;
}

static bool take(pl_launching *own, int32_t index, attending *made) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, &own->f->ops[index]);
  const pl_ir_op *op = own->tape->cp > 1 ? find_attention(&of) : NULL;
  if (op == NULL) return false;
  bool rings = is(op, "ring_attention") || is(op, "ring_attention_backward");
  if (!rings && !gathers_in_steps(own)) return false;
  const pl_ir_mesh *mesh = &own->kernels->mesh;
  const pl_ir_type *q = &of.f->values[op->inputs[0]].type, *k = &of.f->values[op->inputs[1]].type,
                   *v = &of.f->values[op->inputs[2]].type;
  double elements = pl_ir_type_local_elements(mesh, k) + pl_ir_type_local_elements(mesh, v);
  bool derives = own->backward && !own->again[index];
  *made = (attending){.own = own,
                      .index = index,
                      .rings = rings,
                      .derives = derives,
                      .keys_values = rings ? elements : elements / (double)own->tape->cp,
                      .element = pl_ir_element_bytes((pl_ir_element)k->element),
                      .repeats = rings ? 1 : local_extent(own, q, "r"),
                      .kind = derives ? PL_TENSOR_GRADIENT : PL_TENSOR_ACTIVATION};
  return true;
}

/* Shares of keys and values: two under way for the ring, all of them when gathered; gradients beside them. */
static uint32_t take_room(const attending *of) {
  pl_tape *tape = of->own->tape;
  int64_t shares = (of->derives ? 2 : 1) * (of->rings ? 2 : tape->cp);
  const int64_t rows = shares * tape->seq,
                width = (int64_t)(of->keys_values * (double)of->repeats / (double)(tape->mbs * tape->seq));
  const int64_t extent[] = {tape->mbs, rows, width};
  return pl_tape_tensor(tape, "keys_values", of->kind, tape->shard->dtype, "bsh", extent);
}

static pl_op *exchange(const attending *of, const char *name, pl_collective_kind kind, double shares, uint32_t from,
                       uint32_t to) {
  pl_tape *tape = of->own->tape;
  double bytes = shares * (double)tape->cp * (double)of->repeats * of->keys_values * of->element;
  pl_tape_group_collective(tape, name, kind, PL_GROUP_CONTEXT, of->own->backward, bytes, from, to);
  return of->own->backward ? &tape->backward[tape->n_backward - 1] : &tape->forward[tape->n_forward - 1];
}

/* So many of the cp steps, a kernel each, in one op; the last ones add to what the others made. */
static void attend(const attending *of, const pl_op *step, int64_t steps, bool last) {
  pl_op op = *step;
  op.times = (int32_t)steps;
  op.flops *= (double)steps;
  op.bytes *= (double)steps;
  op.name = of->derives ? "attention_backward" : "attention";
  if (last) {
    op.name = of->derives ? "attention_backward_last" : "attention_last";
    op.overlap = PL_OVERLAP_AWAITS;
    if (!of->derives) pl_launching_read(of->own, &op, op.output); /* else there are more than an op has room for */
    if (!of->derives) pl_launching_read(of->own, &op, op.auxiliary);
  }
  pl_launching_append(of->own, &op);
}

/* Of what a kernel does with keys and values of all ranks, that with one rank's. */
static void as_step(const attending *of, pl_op *kernel) {
  int64_t cp = of->own->tape->cp;
  double touched = (of->derives ? 2 : 1) * of->keys_values * of->element;
  if (of->rings) return; /* as programs have it */
  kernel->n /= cp;
  kernel->flops /= (double)cp;
  kernel->bytes -= (double)(cp - 1) * touched;
}

bool pl_launching_defers(const pl_launching *own, const pl_ir_op *op) {
  bool gathers = is(op, "all_gather") || is(op, "reduce_scatter");
  return gathers && gathers_in_steps(own) && pl_ir_text_of(op, "over")[0] == 'c';
}

bool pl_launching_context(pl_launching *own, int32_t index, const pl_op *kernel) {
  attending of;
  if (!take(own, index, &of)) return false;
  int64_t cp = own->tape->cp;
  uint32_t given = own->tensor[own->f->ops[index].inputs[1]], room = take_room(&of);
  pl_op step = *kernel;
  as_step(&of, &step);
  pl_launching_read(own, &step, room);
  if (of.rings) {
    exchange(&of, of.derives ? "keys_values_and_gradients_exchange" : "keys_values_exchange", PL_ALL_GATHER,
             of.derives ? 2 : 1, given, room)
        ->overlap = PL_OVERLAP_BEGINS;
  } else if (!of.derives) {
    exchange(&of, "keys_values_exchange", PL_ALL_GATHER, 1, given, room)->overlap = PL_OVERLAP_BEGINS;
    attend(&of, &step, 1, false);
    attend(&of, &step, cp - 1, true);
    return true;
  } else {
    double wide = pl_dtype_bytes(PL_DTYPE_FP32) / of.element;
    exchange(&of, "keys_values_regather", PL_ALL_GATHER, 1, given, room);
    exchange(&of, "keys_values_reduce_scatter", PL_REDUCE_SCATTER, wide, room, step.output)->overlap =
        PL_OVERLAP_BEGINS;
  }
  attend(&of, &step, cp - 1, false);
  attend(&of, &step, 1, true);
  return true;
}
