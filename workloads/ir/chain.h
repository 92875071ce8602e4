/* Chains: what a block of a convolutional network computes, layer by layer, each reading what earlier ones made. A
 * model file writes them as text:
 *
 *   conv 64 7x7/2        convolution to 64 channels, filters of 7 x 7 (height x width), stride 2, then the network's
 *                        norm (or a bias, if it has none) and ReLU
 *   max 3/2  average 3   pooling over 3 x 3, stride 2; stride 1
 *   mean                 over the whole picture, which becomes one point
 *   linear 1000          on all points and channels of the picture at once, with a bias
 *   relu  dropout
 *   [conv 64 1x1, conv 256 3x3]      a residual block: what comes out is added to what went in (through a 1x1
 *                        convolution and norm if channels or stride differ), ReLU behind the sum instead of before it
 *   (conv 64 1x1 | average 3, conv 32 1x1)   branches from one input, joined along the channels
 *
 * in a row with commas between them, brackets inside each other where needed. The picture is padded so that only
 * the stride makes it smaller (ceil(side / stride)); with a "v" behind it, as in "conv 32 3x3/2v", it is not padded.
 */
#ifndef PL_WORKLOADS_CHAIN_H
#define PL_WORKLOADS_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

typedef enum pl_chain_step_kind {
  PL_STEP_CONVOLUTION = 0,
  PL_STEP_NORM,
  PL_STEP_RELU,
  PL_STEP_DROPOUT,
  PL_STEP_MAX_POOL,
  PL_STEP_MEAN_POOL,
  PL_STEP_LINEAR,
  PL_STEP_ADD,
  PL_STEP_JOIN
} pl_chain_step_kind;

/* Channels first, then height and width of the picture. */
typedef struct pl_picture {
  int32_t channels, height, width;
} pl_picture;

typedef struct pl_chain_step {
  uint8_t kind; /* pl_chain_step_kind */
  bool bias;
  uint8_t first, second; /* what it reads: 0 = the chain's input, i = what step i - 1 made; second: ADD and JOIN */
  int32_t filter_height, filter_width, stride;
  pl_picture in, out;
} pl_chain_step;

enum { PL_CHAIN_STEPS_MAX = 36 };

typedef struct pl_chain {
  const pl_chain_step *steps;
  uint32_t n_steps; /* 0: hands its input on */
  pl_picture in, out;
} pl_chain;

/* The chain that `text` says, for pictures like `in`; with `norm` convolutions are normalised, else they have a bias.
 * Steps in `arena`. PL_BAD_INPUT with what is wrong and where in the text: a word that is unknown, a bracket without
 * its fellow, a picture that becomes empty, branches of unlike sizes, more than PL_CHAIN_STEPS_MAX steps. */
pl_code pl_chain_parse(const char *text, pl_picture in, bool norm, pl_arena *arena, pl_chain *chain, pl_error *error);

double pl_chain_parameters(const pl_chain *chain);
/* Forward FLOPs of one picture: convolutions and linear layers. */
double pl_chain_flops(const pl_chain *chain);

/* The matrix product that a convolution is (implicit GEMM): [m, k] x [k, n] for `pictures` pictures. */
void pl_chain_step_product(const pl_chain_step *step, int64_t pictures, int64_t *m, int64_t *n, int64_t *k);

static inline bool pl_picture_equal(pl_picture a, pl_picture b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

static inline int64_t pl_picture_points(const pl_picture *picture) {
  return (int64_t)picture->height * picture->width;
}

#endif
