/* See search/optimize/trace_memory.h. */
#include "search/optimize/trace_memory.h"

#include <stdlib.h>

/* A unit's op as its host thread sees it. */
typedef struct begun {
  uint32_t stream, unit, member;
  int64_t date_ns;
} begun;

static int by_stream_and_date(const void *a_, const void *b_) {
  const begun *a = a_, *b = b_;
  if (a->stream != b->stream) return a->stream < b->stream ? -1 : 1;
  if (a->date_ns != b->date_ns) return a->date_ns < b->date_ns ? -1 : 1;
  return (a->member > b->member) - (a->member < b->member);
}

/* Per op the call that launched it; PL_NONE. */
static uint32_t *calls_of(const pl_trace *trace, pl_arena *arena) {
  uint32_t *calls = pl_arena_take(arena, ((size_t)trace->n_ops + 1) * sizeof *calls, _Alignof(uint32_t));
  for (uint32_t k = 0; calls != NULL && k < trace->n_ops; k++)
    calls[k] = PL_NONE;
  for (uint32_t e = 0; calls != NULL && e < trace->n_edges; e++) {
    const pl_trace_edge *edge = &trace->edges[e];
    if (edge->from_start && trace->streams[trace->ops[edge->before].stream].kind == PL_TRACE_HOST)
      calls[edge->after] = edge->before;
  }
  return calls;
}

static uint32_t list_members(const pl_step_model *model, const uint32_t *calls, begun *out) {
  const pl_trace *trace = model->replay->trace;
  uint32_t n = 0;
  for (uint32_t u = 0; u < model->n_units; u++)
    for (uint32_t k = 0; k < model->units[u].n_members; k++) {
      uint32_t member = model->units[u].first_member + k, op = model->members[member].op;
      uint32_t begins = calls[op] != PL_NONE ? calls[op] : op;
      out[n++] = (begun){trace->ops[begins].stream, u, member, trace->ops[begins].start_ns};
    }
  if (n > 1) qsort(out, n, sizeof *out, by_stream_and_date);
  return n;
}

/* How many stand before (stream, date). */
static uint32_t count_before(const begun *all, uint32_t n, uint32_t stream, int64_t date_ns) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (all[middle].stream < stream || (all[middle].stream == stream && all[middle].date_ns < date_ns))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The step of an op on its rank's clock. */
static bool is_within(const pl_trace *trace, uint32_t op, const pl_trace_block *block) {
  if (trace->ops[op].step == PL_NONE) return true;
  const pl_trace_step *step = &trace->steps[trace->ops[op].step];
  return block->taken_ns >= step->start_ns && block->freed_ns <= step->start_ns + step->duration_ns;
}

/* A block that one unit keeps for a later one. */
typedef struct kept {
  const pl_trace_block *block;
  uint32_t unit, member, reader;
} kept;

static bool find_keeper(const pl_step_model *model, const begun *all, uint32_t n, const pl_trace_block *block,
                        kept *out) {
  if (block->freed_stream == PL_NONE) return false;
  uint32_t taken = count_before(all, n, block->taken_stream, block->taken_ns);
  uint32_t freed = count_before(all, n, block->freed_stream, block->freed_ns);
  if (taken == n || all[taken].stream != block->taken_stream) return false;
  if (freed == 0 || all[freed - 1].stream != block->freed_stream) return false;
  *out = (kept){block, all[taken].unit, all[taken].member, all[freed - 1].unit};
  bool alike = model->units[out->unit].class_index == model->units[out->reader].class_index;
  return out->reader > out->unit && alike && is_within(model->replay->trace, model->members[out->member].op, block);
}

typedef struct change {
  int64_t date_ns, bytes;
} change;

static int by_date(const void *a_, const void *b_) {
  const change *a = a_, *b = b_;
  if (a->date_ns != b->date_ns) return a->date_ns < b->date_ns ? -1 : 1;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes); /* given back first */
}

/* When most is kept. */
static int64_t fullest(const kept *all, uint32_t n, change *changes) {
  int64_t held = 0, most = 0, date = INT64_MIN;
  for (uint32_t k = 0; k < n; k++) {
    changes[2 * k] = (change){all[k].block->taken_ns, all[k].block->size_bytes};
    changes[2 * k + 1] = (change){all[k].block->freed_ns, -all[k].block->size_bytes};
  }
  if (n > 0) qsort(changes, 2 * (size_t)n, sizeof *changes, by_date);
  for (uint32_t k = 0; k < 2 * n; k++) {
    held += changes[k].bytes;
    if (held > most) date = changes[k].date_ns;
    if (held > most) most = held;
  }
  return date;
}

typedef struct counting {
  const pl_step_model *model;
  const begun *all;
  uint32_t n;
  kept *found;
  change *changes;
  double *bytes;    /* per member */
  uint32_t *reader; /* per unit */
} counting;

/* Blocks first .. end, of one rank: those that are there when most is. */
static void count_rank(const counting *own, uint32_t first, uint32_t end) {
  uint32_t n = 0;
  for (uint32_t b = first; b < end; b++)
    n += find_keeper(own->model, own->all, own->n, &own->model->replay->trace->blocks[b], &own->found[n]);
  int64_t date = fullest(own->found, n, own->changes);
  for (uint32_t k = 0; k < n; k++) {
    const kept *one = &own->found[k];
    if (one->block->taken_ns > date || one->block->freed_ns <= date) continue;
    own->bytes[one->member] += (double)one->block->size_bytes;
    uint32_t *reader = &own->reader[one->unit];
    if (*reader == PL_NONE || one->reader > *reader) *reader = one->reader;
  }
}

bool pl_unit_memory_take(const pl_step_model *model, pl_arena *arena, pl_unit_memory **memory) {
  const pl_trace *trace = model->replay->trace;
  *memory = PL_TAKE(arena, pl_unit_memory, model->n_units + 1);
  double *bytes = PL_TAKE(arena, double, (size_t)model->n_members + 1);
  uint32_t *reader = PL_TAKE(arena, uint32_t, model->n_units + 1);
  begun *all = PL_TAKE(arena, begun, (size_t)model->n_members + 1);
  uint32_t *calls = calls_of(trace, arena);
  kept *found = PL_TAKE(arena, kept, (size_t)trace->n_blocks + 1);
  change *changes = PL_TAKE(arena, change, 2 * (size_t)trace->n_blocks + 1);
  if (*memory == NULL || found == NULL || changes == NULL || bytes == NULL || reader == NULL || all == NULL ||
      calls == NULL)
    return false;
  for (uint32_t u = 0; u < model->n_units; u++)
    reader[u] = PL_NONE;
  uint32_t n = trace->n_blocks > 0 ? list_members(model, calls, all) : 0;
  const counting own = {model, all, n, found, changes, bytes, reader};
  for (uint32_t a = 0, b; a < trace->n_blocks; a = b) {
    uint32_t rank = trace->streams[trace->blocks[a].taken_stream].rank;
    for (b = a; b < trace->n_blocks && trace->streams[trace->blocks[b].taken_stream].rank == rank;)
      b++;
    count_rank(&own, a, b);
  }
  for (uint32_t u = 0; u < model->n_units; u++) {
    pl_unit_memory *unit = &(*memory)[u];
    unit->reader = reader[u];
    for (uint32_t k = 0; k < model->units[u].n_members; k++)
      if (bytes[model->units[u].first_member + k] > unit->bytes) unit->bytes = bytes[model->units[u].first_member + k];
  }
  return true;
}
