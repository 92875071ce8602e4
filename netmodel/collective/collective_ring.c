/* Rings: all-reduce, reduce-scatter, all-gather, broadcast.
 *
 * Each of C channels carries S / C. Volume per hop (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", JPDC 2009; Thakur, Rabenseifner and Gropp, IJHPCA 2005, sections 4.1 to 4.5): all-reduce
 * 2 (n - 1) / n * S / C   in 2 (n - 1) messages of S / (n C) reduce-scatter, all-gather     (n - 1) / n * S / C   in n
 * - 1 messages broadcast                                  S / C     pipelined along the ring from the root; nothing
 * enters the root Latency: every message goes over that many consecutive hops, so the term is the largest sum of as
 * many consecutive hop latencies (step overhead included). On equal hops that is steps * (latency + overhead), and on
 * unlike hops it is NCCL's tuning model (src/graph/tuning.cc), which charges inner steps and network steps each their
 * own latency. */
#include "netmodel/collective/collective_internal.h"

static const uint32_t *ring_of(const pl_collective_group *group, uint32_t channel) {
  return group->rings + (size_t)channel * group->n;
}

static uint32_t position_of(const uint32_t *ring, uint32_t n, uint32_t device) {
  uint32_t at = 0;
  while (at < n && ring[at] != device)
    at++;
  PL_ASSERT(at < n);
  return at;
}

double pl_ring_progress_bytes(const pl_collective_group *group, pl_collective_kind kind, double size_bytes) {
  double share_bytes = size_bytes / group->n_channels, n = group->n;
  if (kind == PL_ALL_REDUCE) return 2 * (n - 1) / n * share_bytes;
  return kind == PL_BROADCAST ? share_bytes : (n - 1) / n * share_bytes;
}

static pl_code broadcast_usage(const pl_collective_group *group, pl_arena *arena, pl_usage *usage, pl_ticks *latency,
                               pl_error *error) {
  uint32_t n = group->n;
  pl_usage_builder builder;
  PL_TRY(pl_usage_begin(&builder, group->cluster, 2 * group->n_channels * n, arena, error));
  *latency = 0;
  for (uint32_t c = 0; c < group->n_channels; c++) {
    const uint32_t *ring = ring_of(group, c);
    uint32_t root = position_of(ring, n, group->root);
    pl_ticks chain = 0;
    for (uint32_t i = 0; i + 1 < n; i++) {
      uint32_t at = (root + i) % n;
      PL_TRY(pl_usage_hop(&builder, ring[at], ring[(at + 1) % n], 1, NULL, error));
      chain = pl_ticks_sum(chain, group->hop_latency[(size_t)c * n + at]);
    }
    if (chain > *latency) *latency = chain;
  }
  return pl_usage_end(&builder, usage, error);
}

pl_code pl_ring_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                      pl_fluid_collective *fluid, pl_error *error) {
  pl_usage usage = group->ring;
  pl_ticks latency = kind == PL_ALL_REDUCE ? group->twice_round : group->once_round;
  if (kind == PL_BROADCAST) PL_TRY(broadcast_usage(group, arena, &usage, &latency, error));
  pl_fluid_from_usage(group, &usage, latency, pl_ring_progress_bytes(group, kind, size_bytes), fluid);
  return PL_OK;
}

/* ---- chunked ---- */

static uint32_t *slot_of(const pl_step_chain *chain, const pl_collective_group *group, uint32_t device) {
  uint32_t member = position_of(group->members, group->n, device);
  return chain->steps + (size_t)(chain->base + chain->stride * member) * chain->width;
}

static pl_code after_slot(pl_step_builder *steps, const pl_step_chain *before, const pl_collective_group *group,
                          uint32_t device, pl_error *error) {
  if (before == NULL) return PL_OK;
  const uint32_t *slot = slot_of(before, group, device);
  for (uint32_t i = 0; i < before->width; i++)
    PL_TRY(pl_steps_after(steps, slot[i], error));
  return PL_OK;
}

/* Shape of the list: message number `message` of every channel on every hop, two steps each. */
typedef struct ring_shape {
  uint32_t n, n_channels, chunks, messages, base;
} ring_shape;

/* The step with which message `message` has crossed hop `hop` of channel `channel`. */
static uint32_t arrival(const ring_shape *shape, uint32_t message, uint32_t channel, uint32_t hop) {
  return shape->base + 2 * ((message * shape->n_channels + channel) * shape->n + hop) + 1;
}

/* Piece p of round k is message k * chunks + p; it can leave once the same piece of the round before has come in. */
static pl_code add_message(const pl_collective_group *group, const ring_shape *shape, uint32_t message, uint32_t c,
                           uint32_t i, double piece_bytes, pl_step_builder *steps, const pl_step_chain *before,
                           pl_error *error) {
  const uint32_t *ring = ring_of(group, c);
  uint32_t n = shape->n;
  PL_TRY(pl_steps_latency(steps, ring[i], ring[(i + 1) % n], group->hop_latency[(size_t)c * n + i], error));
  if (message >= shape->chunks) {
    PL_TRY(pl_steps_after(steps, arrival(shape, message - shape->chunks, c, (i + n - 1) % n), error));
  } else {
    PL_TRY(after_slot(steps, before, group, ring[i], error));
  }
  return pl_steps_bytes(steps, piece_bytes, message > 0 ? arrival(shape, message - 1, c, i) : PL_NONE, NULL, error);
}

/* The last message into a member has come in after all others of its channel. */
static void note_last_steps(const pl_collective_group *group, const ring_shape *shape, const pl_step_chain *after) {
  for (uint32_t c = 0; c < shape->n_channels; c++)
    for (uint32_t i = 0; i < shape->n; i++) {
      uint32_t *slot = slot_of(after, group, ring_of(group, c)[(i + 1) % shape->n]);
      slot[c] = arrival(shape, shape->messages - 1, c, i);
    }
}

static pl_code broadcast_chunked(const pl_collective_group *group, double size_bytes, uint32_t chunks,
                                 pl_step_builder *steps, pl_error *error) {
  uint32_t n = group->n, row = 2 * group->n_channels * (n - 1);
  double piece_bytes = size_bytes / group->n_channels / chunks;
  for (uint32_t piece = 0; piece < chunks; piece++)
    for (uint32_t c = 0; c < group->n_channels; c++) {
      const uint32_t *ring = ring_of(group, c);
      uint32_t root = position_of(ring, n, group->root), arrived = PL_NONE;
      for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t at = (root + i) % n, previous = piece > 0 ? steps->n_steps + 1 - row : PL_NONE;
        pl_ticks latency = group->hop_latency[(size_t)c * n + at];
        PL_TRY(pl_steps_latency(steps, ring[at], ring[(at + 1) % n], latency, error));
        PL_TRY(pl_steps_after(steps, arrived, error));
        PL_TRY(pl_steps_bytes(steps, piece_bytes, previous, &arrived, error));
      }
    }
  return PL_OK;
}

pl_code pl_ring_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, uint32_t chunks,
                        pl_step_builder *steps, const pl_step_chain *before, const pl_step_chain *after,
                        pl_error *error) {
  if (kind == PL_BROADCAST) return broadcast_chunked(group, size_bytes, chunks, steps, error);
  ring_shape shape = {.n = group->n,
                      .n_channels = group->n_channels,
                      .chunks = chunks,
                      .messages = (kind == PL_ALL_REDUCE ? 2 : 1) * (group->n - 1) * chunks,
                      .base = steps->n_steps};
  double piece_bytes = size_bytes / ((double)shape.n_channels * shape.n * chunks);
  for (uint32_t message = 0; message < shape.messages; message++)
    for (uint32_t c = 0; c < shape.n_channels; c++)
      for (uint32_t i = 0; i < shape.n; i++)
        PL_TRY(add_message(group, &shape, message, c, i, piece_bytes, steps, before, error));
  if (after != NULL) note_last_steps(group, &shape, after);
  return PL_OK;
}
