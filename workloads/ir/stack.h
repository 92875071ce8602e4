/* Models whose layers are not all one kind of transformer layer: pictures in patches (ViT), state spaces and linear
 * attention, alone or between layers of attention (Mamba 2 and its hybrids, Qwen3-Next), encoders with decoders (T5).
 * They are their program (workloads/import/program_stack.c): nothing else says what a layer computes, costs or holds.
 */
#ifndef PL_WORKLOADS_STACK_H
#define PL_WORKLOADS_STACK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pl_stack_kind { PL_STACK_PATCHES = 0, PL_STACK_MIXERS, PL_STACK_ENCODER_DECODER } pl_stack_kind;

/* What mixes the tokens of a layer. BESIDE: attention and a state space read the same norm and are added up
 * (Falcon-H1). */
typedef enum pl_mixer {
  PL_MIXER_NONE = 0,
  PL_MIXER_ATTENTION,
  PL_MIXER_STATE_SPACE,
  PL_MIXER_BESIDE,
  PL_MIXER_DELTA_RULE,
  PL_MIXER_COUNT
} pl_mixer;

typedef enum pl_feed { PL_FEED_NONE = 0, PL_FEED_MLP, PL_FEED_EXPERTS, PL_FEED_COUNT } pl_feed;

typedef struct pl_stack_layer {
  uint8_t mixer, feed; /* pl_mixer, pl_feed: each behind a norm, added to what came in */
} pl_stack_layer;

typedef struct pl_stack {
  pl_stack_kind kind;
  const char *title; /* "pictures in patches" */
  /* PATCHES: a picture is cut into patches, each a token behind that of the class. */
  int64_t channels, height, width, patch_height, patch_width, classes;
  bool pooler; /* a dense layer with tanh in front of the classes (ViTModel) */
  /* MIXERS */
  const pl_stack_layer *layers;
  /* State space (Mamba 2): heads in groups that share B and C, a head's channels, its state; taps of the causal
   * convolution; tokens that the scan's kernels take at once. */
  int64_t state_heads, state_head_size, state_groups, state_size, taps, chunk;
  bool convolution_bias, in_bias, out_bias;
  bool gated_norm;    /* of what the gate has multiplied (Falcon-H1 may have none) */
  bool norm_by_group; /* over each group alone (Nemotron-H), else over all heads together */
  /* Delta rule (Qwen3-Next's linear attention): heads of keys, and of values for each of those. */
  int64_t key_heads, key_size, value_heads, value_size;
  bool gated_attention; /* the other layers' attention is multiplied by a sigmoid of its own projection */
  /* ENCODER_DECODER: the first `n_encoder` layers are the encoder's. Scores get a number per head and bucket of
   * distances, from a table of each side. */
  int32_t n_encoder;
  int64_t buckets, max_distance;
} pl_stack;

static inline int64_t pl_stack_patches(const pl_stack *stack) {
  return (stack->height / stack->patch_height) * (stack->width / stack->patch_width);
}

#endif
