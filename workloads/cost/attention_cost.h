/* Time of fused attention from its shape: thread blocks over multiprocessors.
 *
 * A thread block of such a kernel (Dao 2023, sections 3.2 and 3.3) holds one tile of query rows of one head and walks
 * over the keys that they may see, a tile of keys at a time. So
 *
 *   blocks    B = batch * heads * ceil(m / query_tile)
 *   keys      W = sum over blocks of (keys of the block, whole tiles + prologue_keys); w = the longest block's
 *   one key   e = 4 * query_tile * head size / (peak / multiprocessors * efficiency(head size))
 *   forward   max(e * max(w, W / multiprocessors + tail * W / B), bytes / bandwidth) + overhead
 *
 * The tail only counts where blocks queue (B > multiprocessors); without a mask all blocks are alike, and instead
 * ceil(B / multiprocessors) of them run one after another. What short sequences lose follows from geometry, not from a
 * table: whole tiles on the diagonal of a causal mask, the prologue, multiprocessors without work. The backward pass is
 * the same with e * ratio, its own prologue and its own overhead, and small kernels around it that wait for each other:
 * row sums of the output's gradient times the output (2 + 2 bytes read per element), the fp32 accumulator of the
 * queries' gradient set to zero (4), read and rounded to 16 bits (4 + 2): 14 bytes per element of the output at the
 * bandwidth of copies (Dao 2023, algorithm 2).
 *
 * FlashAttention 2's deterministic backward pass (Dao-AILab/flash-attention, flash_bwd_launch_template.h) has one
 * thread block per head and share of the key tiles instead of one per key tile: as many shares as make at least one
 * block per multiprocessor, ceil(multiprocessors / heads). These rarely come out even: on 108 multiprocessors 32 heads
 * are 128 blocks, and the 20 of the second round take as long as the first. Other kernels keep their time: cuDNN's
 * deterministic one was measured up to 20 % slower on Blackwell with grouped queries, and no different without.
 *
 * Masks: pl_op says how many query-key pairs count (flops), and the mask is read back from that: all of m * n, the half
 * of a causal square, or a sliding window w with m w - w^2 / 2 pairs.
 *
 * Efficiency between two head sizes is interpolated linearly; above the largest it stays; below the smallest it falls
 * in proportion (the work per key shrinks, its exponential does not).
 */
#ifndef PL_WORKLOADS_ATTENTION_COST_H
#define PL_WORKLOADS_ATTENTION_COST_H

#include <stdbool.h>

#include "core/cluster/device_profile.h"

/* One attention kernel call. */
typedef struct pl_attention_shape {
  double heads;         /* batch * query heads */
  double queries, keys; /* lengths */
  double head_size;
  double pairs; /* query-key pairs of one head that the mask leaves */
  double bytes; /* tensors read and written */
  bool backward;
  bool deterministic; /* the backward pass adds up in a fixed order */
} pl_attention_shape;

typedef struct pl_attention_time {
  double compute_s, memory_s;   /* of the kernel: the larger counts */
  double helpers_s, overhead_s; /* on top of that */
} pl_attention_time;

/* The profile's entry for `kernel`, else that of the nearest generation (the order of the enumeration; of two, the
 * earlier in the profile); its first one for PL_ATTENTION_ANY; NULL when it has none at all. */
const pl_attention_profile *pl_attention_choose(const pl_device_profile *profile, pl_attention_kernel kernel);

/* `peak_flops` and `bandwidth_Bps` as reached by nothing: the device's nominal peak of the data type, and the bandwidth
 * that plain copies reach. O(1). */
pl_attention_time pl_attention_time_of(const pl_attention_profile *attention, double peak_flops, double bandwidth_Bps,
                                       const pl_attention_shape *shape);

#endif
