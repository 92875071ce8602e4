/* Shapes of every value of a graph, by abstract interpretation in a mixed domain (DistIR, section 3.3 and figure 4): a
 * value is a type and a shape, or, where that is known, its numbers. Shape gives numbers of an abstract value,
 * Reshape takes them; ops that know all their operands' numbers compute theirs. Of an op's rules the most precise one
 * that applies is taken: numbers, else a shape. What depends on data that only a run knows stays a shape.
 *
 * Open dimensions of the inputs are bound first: the first one of each input counts samples, the second one of integers
 * counts tokens. One sample that was written down is taken for any number of them, where the nodes allow it.
 */
#ifndef PL_WORKLOADS_ONNX_INFER_H
#define PL_WORKLOADS_ONNX_INFER_H

#include "workloads/onnx/onnx_file.h"

enum { PL_ONNX_NUMBERS_MAX = 1 << 22 /* of one value */, PL_ONNX_ALL_NUMBERS_MAX = 1 << 25 };

typedef struct pl_onnx_abstract {
  int32_t type, rank; /* rank -1: not known yet */
  int64_t dims[PL_ONNX_RANK_MAX];
  const double *numbers;               /* NULL: not known */
  const struct pl_onnx_tensor *weight; /* that it is, or is a copy of; NULL: computed */
  int64_t outside; /* of a dimension with samples that the file has one of: elements outside of them in it; 0: one */
} pl_onnx_abstract;

typedef struct pl_onnx_binding {
  int64_t batch, seq; /* samples of a microbatch; tokens of a sample */
} pl_onnx_binding;

typedef struct pl_onnx_inference {
  const pl_onnx_graph *graph;
  pl_arena *arena;
  pl_onnx_abstract *values; /* by value of the graph */
  /* Of a file that was exported for one sample, where the job has more: the values as the file has them. A Reshape
   * whose target is written down gets the samples where the operand has them, and parts of a Concat that have none
   * spread. */
  const pl_onnx_abstract *exported;
  int32_t *handed_on;    /* by node: the operand that its output is, under the binding; PL_ONNX_NONE: it computes one */
  pl_hash_index numbers; /* each set of numbers once */
  int64_t n_numbers;
  pl_error *error;
} pl_onnx_inference;

double pl_onnx_elements(const pl_onnx_abstract *value);
/* "[2, 16, 32]" */
enum { PL_ONNX_SHAPE_TEXT_BYTES = 200 };
const char *pl_onnx_shape_text(const pl_onnx_abstract *value, char text[PL_ONNX_SHAPE_TEXT_BYTES]);

/* PL_UNSUPPORTED: an op that is not known, with its node and how many nodes were understood; PL_BAD_INPUT: operands
 * that do not fit, inputs whose shape stays open or is not what the binding says. Memory from `arena`; numbers that
 * would not fit into PL_ONNX_ALL_NUMBERS_MAX are forgotten: the value is abstract then. */
pl_code pl_onnx_infer(const pl_onnx_graph *graph, const pl_onnx_binding *binding, pl_arena *arena,
                      pl_onnx_inference *inference, pl_error *error);

/* Whether dimension k of an input counts samples, or tokens of one: the first; the second one of integers that have
 * two, and an open second one of reals that have three and more. */
bool pl_onnx_counts_samples(const pl_onnx_port *port, int32_t k);
bool pl_onnx_counts_tokens(const pl_onnx_port *port, int32_t k);

/* Inputs that are a decoder's cache of keys and values, which is empty (onnx_cache.c). */
bool pl_onnx_is_cache(const pl_onnx_graph *graph, const pl_onnx_port *port);
bool pl_onnx_has_cache(const pl_onnx_graph *graph);

/* What a graph leaves open: whether its inputs have samples and tokens in symbols, and what they are if not. */
typedef struct pl_onnx_openness {
  bool open_batch, open_seq, has_seq;
  int64_t batch, seq; /* where they are fixed */
} pl_onnx_openness;
pl_onnx_openness pl_onnx_openness_of(const pl_onnx_graph *graph);

/* ---- internal to workloads/onnx: onnx_infer.c, onnx_shape.c, onnx_evaluate.c ---- */
typedef struct pl_onnx_op {
  pl_onnx_inference *own;
  const pl_onnx_node *node;
  const pl_onnx_abstract *in[16]; /* NULL: left out */
  pl_onnx_abstract out;           /* of the first output */
  int32_t n_in;
} pl_onnx_op;

/* What a shape rule says of operands that do not fit: names the node. */
pl_code pl_onnx_op_fail(const pl_onnx_op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Integers of operand k, or of attribute `name` where older operator sets have it there. False: neither, or not known.
 */
bool pl_onnx_op_integers(const pl_onnx_op *op, int32_t k, const char *name, int64_t values[PL_ONNX_RANK_MAX * 8],
                         int32_t *n);
/* Axis `axis` of a value of this rank, from its end if negative; -1: out of range. */
int32_t pl_onnx_axis(int64_t axis, int32_t rank);
int64_t pl_onnx_integer(double number); /* limited to what an int64 holds */
/* Where Slice begins, steps, and how many it takes along each axis of operand 0. False: not known. */
bool pl_onnx_slice(const pl_onnx_op *op, int64_t first[PL_ONNX_RANK_MAX], int64_t step[PL_ONNX_RANK_MAX],
                   int64_t count[PL_ONNX_RANK_MAX]);
/* Which axes Reduce* goes over. False: not known. */
bool pl_onnx_reduced(const pl_onnx_op *op, bool over[PL_ONNX_RANK_MAX]);
bool pl_onnx_is_reduction(const char *op);

/* What Pad adds along each axis; less than nothing cuts off. False: not known. */
bool pl_onnx_pads(const pl_onnx_op *op, int64_t before[PL_ONNX_RANK_MAX], int64_t behind[PL_ONNX_RANK_MAX]);
/* onnx_cache.c: dimensions of a cache; mask and places beside it, whose shape is bound (numbers NULL: asked for the
 * shape alone); whether a tensor is frequencies, or cosines or sines of places; what a node hands on. */
void pl_onnx_cache_bind(const pl_onnx_port *port, int64_t batch, pl_onnx_abstract *to);
bool pl_onnx_cache_input(const pl_onnx_graph *graph, const pl_onnx_port *port, pl_onnx_abstract *to, double *numbers);
bool pl_onnx_is_rotation(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor);
/* Whether all of its elements are 0 or one number far below: what is added to scores to hide them. Only such are read
 * to their end, and none that lies in another file. */
bool pl_onnx_is_mask(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor);
int32_t pl_onnx_handed_on(const pl_onnx_op *op);

typedef pl_code (*pl_onnx_shape_rule)(pl_onnx_op *op);
/* NULL: the op is not known. */
pl_onnx_shape_rule pl_onnx_shape_rule_of(const char *op);
/* Numbers of the first output, whose shape is known, into `numbers`; false: the op has no rule for that. */
bool pl_onnx_evaluate(const pl_onnx_op *op, double *numbers);

#endif
