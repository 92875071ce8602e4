/* How the files program_*.c write a function down. Internal to workloads/import.
 *
 * Dimensions have names of one letter, and a text of letters is a shape: "bsh". Their extents are the writer's, by
 * letter:
 *   b sequences of a microbatch   s tokens, t the same as keys   h hidden       g key-value heads   r queries of each
 *   d head of queries and keys    e head of values               f MLP          v vocabulary        x experts
 *   p rows of a table of positions  y token types  m masked tokens  j output of a transform  o classes
 *   u tokens made of one  c channels  y, x points of a picture  i, j of a filter
 *   q, k ranks of compressed queries and key-values   a share of a head that is not rotated   z that is
 *   n tables of embeddings, m the same again  l ids of a bag  w features behind an interaction
 * Of layers of several kinds: n the state of a head  w taps of a convolution along tokens
 */
#ifndef PL_WORKLOADS_PROGRAM_WRITE_H
#define PL_WORKLOADS_PROGRAM_WRITE_H

#include "workloads/import/program_build.h"
#include "workloads/language/ir_table.h"

typedef struct pl_program_writer {
  pl_ir_module *module;
  pl_ir_function *function; /* that is being written */
  const pl_model *model;
  const pl_model_program_options *options;
  int64_t extent[26]; /* by letter */
  int32_t n_dropouts; /* each has a seed of its own */
  bool in_layer;      /* the function is one whose products may be narrower than all else */
  bool alone;         /* one block, for its kernels: what they are not told apart by is left out */
  pl_error *error;
} pl_program_writer;

/* Begins function `name`; NULL: no memory. */
pl_ir_function *pl_write_function(pl_program_writer *to, const char *name);
/* The same of a layer, whose products with weights are computed in the job's narrow type. */
pl_ir_function *pl_write_layer(pl_program_writer *to, const char *name);
/* An argument, before any op. */
int32_t pl_write_argument(pl_program_writer *to, const char *name, const char *dims);
void pl_write_result(pl_program_writer *to, int32_t value);

pl_ir_type pl_write_type(const pl_program_writer *to, pl_ir_element element, const char *dims);
/* "HIGHxWIDE"; the arena knows where there is no memory. */
const char *pl_write_pair(const pl_program_writer *to, int64_t high, int64_t wide);
int32_t pl_write_param(pl_program_writer *to, const char *path, const char *dims);
/* Integers of this microbatch, from 0 to less than `below`. */
int32_t pl_write_input(pl_program_writer *to, const char *name, const char *dims, int64_t below);
/* Every element is `value`, in the type of activations. */
int32_t pl_write_constant(pl_program_writer *to, double value, const char *dims);

int32_t pl_write_product(pl_program_writer *to, const char *name, int32_t a, int32_t b, const char *over);
int32_t pl_write_one(pl_program_writer *to, const char *row, const char *name, int32_t a);
int32_t pl_write_two(pl_program_writer *to, const char *row, const char *name, int32_t a, int32_t b);
int32_t pl_write_over(pl_program_writer *to, const char *row, const char *name, int32_t a, const char *over);
int32_t pl_write_two_over(pl_program_writer *to, const char *row, const char *name, int32_t a, int32_t b,
                          const char *over);
int32_t pl_write_scale(pl_program_writer *to, const char *name, int32_t a, double by);
int32_t pl_write_rename(pl_program_writer *to, int32_t a, const char *from, const char *into);
int32_t pl_write_cast(pl_program_writer *to, const char *name, int32_t a, pl_ir_element element);
/* a itself where the probability is 0 or the job has no dropout. */
int32_t pl_write_dropout(pl_program_writer *to, const char *name, int32_t a, double probability);
/* a x `path`, and plus `path`.bias if asked for. `weight` are the letters of the weight. Routers (x among what is made)
 * and products with a vector keep the type of all else. */
int32_t pl_write_linear(pl_program_writer *to, const char *path, int32_t a, const char *weight, const char *over,
                        bool bias);
/* a + `path`. */
int32_t pl_write_bias(pl_program_writer *to, const char *path, int32_t a, const char *dims);
/* The model's norm over `over`, with parameters `path`.scale and, if it has biases, `path`.shift. */
int32_t pl_write_norm(pl_program_writer *to, const char *path, int32_t a, const char *over);
/* The same with parameters of `dims`, which `over` is among. */
int32_t pl_write_norm_of(pl_program_writer *to, const char *path, int32_t a, const char *over, const char *dims);
int32_t pl_write_activation(pl_program_writer *to, const char *name, int32_t a);
int32_t pl_write_spread(pl_program_writer *to, const char *name, int32_t a, const char *dims);
/* a at the places of dimension `over` from `first` on, zero elsewhere. */
int32_t pl_write_padded(pl_program_writer *to, const char *name, int32_t a, const char *over, int64_t first,
                        const char *dims);
/* The elements of a at the places `ids` ([ids' dims]) of dimension `over`: a product with rows that hold a single
 * one. `dims`: those of ids and of `over`. */
int32_t pl_write_chosen(pl_program_writer *to, const char *name, int32_t a, int32_t ids, const char *ids_dims,
                        const char *over);

/* A call of function `name`, which is there; its only result, if it has one. */
int32_t pl_write_call(pl_program_writer *to, const char *name, const char *instance, int32_t x);
/* The same with as many arguments as the function has; the first of its results, which stand side by side. */
int32_t pl_write_call_of(pl_program_writer *to, const char *name, const char *instance, const int32_t *arguments);
/* The loss of the iteration gets the sum of `losses` over their dimensions `over`, divided by n. */
void pl_write_loss(pl_program_writer *to, int32_t losses, const char *over, double n);

/* Blocks. program_layer.c, program_experts.c, program_latent.c, program_ends.c, program_chain.c,
 * program_parts.c, program_prediction.c, program_dlrm.c */
typedef struct pl_layer_kind {
  bool experts, window;
} pl_layer_kind;

pl_code pl_program_check_layer(const pl_model *model, pl_error *error);
void pl_program_layer(pl_program_writer *to, const char *name, pl_layer_kind kind);
/* Attention of x [b,s,h], behind its output projection and without that one's bias. */
int32_t pl_program_attention(pl_program_writer *to, int32_t x, bool window);
/* Gated or not: x [b,s,h] -> [b,s,h]. */
int32_t pl_program_mlp(pl_program_writer *to, const char *path, int32_t x, int64_t width);
int32_t pl_program_experts(pl_program_writer *to, int32_t x);
/* Queries [b,s,g,r,d], keys [b,t,g,d] and values [b,t,g,e] of latent attention. */
void pl_program_latent(pl_program_writer *to, int32_t x, int32_t positions, int32_t qkv[3]);
int32_t pl_program_rotary(pl_program_writer *to, const char *name, int32_t x, int32_t positions, double share);

void pl_program_embedding(pl_program_writer *to);
void pl_program_final_norm(pl_program_writer *to);
void pl_program_head(pl_program_writer *to);
void pl_program_loss(pl_program_writer *to);
/* Multi-token prediction: program_prediction.c. Behind all other functions but @main; in @main, on what the layers
 * made; `layer` is the function of the modules' layers. */
pl_code pl_program_check_predictions(const pl_model *model, pl_error *error);
void pl_program_predictions(pl_program_writer *to);
void pl_program_call_predictions(pl_program_writer *to, const char *layer, int32_t x);
/* Minus the logarithm of the probability of each target, whose logits are along `over`. */
int32_t pl_program_cross_entropy(pl_program_writer *to, int32_t logits, int32_t targets, const char *over);

struct pl_chain;
void pl_program_chain(pl_program_writer *to, const char *name, const struct pl_chain *chain);

/* A recommendation model: all of its functions, @main among them. */
void pl_program_dlrm(pl_program_writer *to);

/* Layers of several kinds (workloads/ir/stack.h): all functions, @main among them. program_stack.c, program_mixers.c */
void pl_program_stack(pl_program_writer *to);
void pl_program_encoder_decoder(pl_program_writer *to); /* program_t5.c */
int32_t pl_program_state_space(pl_program_writer *to, int32_t x);
int32_t pl_program_delta_rule(pl_program_writer *to, int32_t x);

/* A model of unlike blocks: all of its functions, @main among them. */
void pl_program_parts(pl_program_writer *to);
void pl_program_transgan(pl_program_writer *to); /* program_transgan.c */
/* The function of one part alone: a chain, a dense layer, the loss; of TransGAN all but its layers. */
void pl_program_part(pl_program_writer *to, int32_t part);

#endif
