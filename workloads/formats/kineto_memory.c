/* What the allocator gave out, from the profiler's memory events (profile_memory=True): a block from where an address
 * is given out to where it comes back. Of a rank with GPU the device's blocks only. See
 * workloads/formats/kineto_rank.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/kineto_rank.h"

static int by_address_and_date(const void *a_, const void *b_) {
  const pl_kineto_memory *a = a_, *b = b_;
  if (a->of_device != b->of_device) return a->of_device ? 1 : -1;
  if (a->address != b->address) return a->address < b->address ? -1 : 1;
  if (a->date_ns != b->date_ns) return a->date_ns < b->date_ns ? -1 : 1;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes); /* given back, then out again */
}

/* The stream of the thread's ops; PL_NONE: it has none. */
static uint32_t stream_of(const pl_kineto_rank *own, uint32_t thread) {
  const pl_kineto_thread *t = &own->kineto->threads[thread];
  char text[128];
  snprintf(text, sizeof text, "thread %.60s", t->thread == PL_NONE ? "?" : own->trace->names[t->thread]);
  for (uint32_t s = own->trace->n_streams; s-- > 0 && own->trace->streams[s].rank == own->rank;)
    if (strcmp(own->trace->names[own->trace->streams[s].name], text) == 0) return s;
  return PL_NONE;
}

pl_code pl_kineto_memory_blocks(pl_kineto_rank *own, bool of_device, pl_error *error) {
  pl_kineto *kineto = own->kineto;
  if (kineto->n_memory == 0) return PL_OK;
  uint32_t *streams = malloc(((size_t)kineto->n_threads + 1) * sizeof *streams), n_elsewhere = 0;
  if (streams == NULL) return pl_fail_memory(error, "the memory of a trace");
  for (uint32_t t = 0; t < kineto->n_threads; t++)
    streams[t] = stream_of(own, t);
  qsort(kineto->memory, kineto->n_memory, sizeof *kineto->memory, by_address_and_date);
  bool good = true;
  for (uint32_t k = 0; good && k < kineto->n_memory; k++) {
    const pl_kineto_memory *taken = &kineto->memory[k], *freed = taken + 1;
    if (taken->of_device != of_device || taken->bytes < 0) continue;
    bool is_freed = k + 1 < kineto->n_memory && freed->of_device == of_device && freed->address == taken->address &&
                    freed->bytes < 0 && streams[freed->thread] != PL_NONE;
    n_elsewhere += streams[taken->thread] == PL_NONE;
    if (streams[taken->thread] == PL_NONE) continue;
    const pl_trace_block block = {taken->date_ns, is_freed ? freed->date_ns : INT64_MAX, streams[taken->thread],
                                  is_freed ? streams[freed->thread] : PL_NONE, taken->bytes};
    good = pl_trace_add_block(own->trace, block) != PL_NONE;
  }
  free(streams);
  if (n_elsewhere > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u allocations of threads without ops, left out", kineto->path,
                      (long long)own->number, n_elsewhere);
  return good ? PL_OK : pl_fail_memory(error, "the memory of a trace");
}
