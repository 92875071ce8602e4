/* See core/engine/timeline_memory.h. */
#include "core/engine/timeline_memory.h"

#include <stdlib.h>

static int compare_steps(const void *left, const void *right) {
  const pl_memory_step *a = left, *b = right;
  if (a->device != b->device) return a->device < b->device ? -1 : 1;
  if (a->time != b->time) return a->time < b->time ? -1 : 1;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* As pl_memory_effect has it. `steps` NULL: only how many there are. */
static size_t list_steps(const pl_graph *graph, const pl_engine_result *result, pl_memory_step *steps) {
  size_t n = 0;
  for (uint32_t at = 0; at < graph->n_tasks; at++) {
    const pl_task *task = &graph->tasks[at];
    if (task->memory == PL_NONE || task->n_streams == 0) continue;
    const pl_memory_effect *effect = &graph->effects[task->memory];
    uint32_t n_members = task->kind == PL_TASK_WORK ? task->n_streams : 1;
    for (uint32_t member = 0; member < n_members; member++, n += 2) {
      if (steps == NULL) continue;
      uint32_t device = graph->streams[graph->task_streams[task->first_stream + member]].device;
      steps[n] = (pl_memory_step){result->start[at], effect->peak_bytes, device, at};
      steps[n + 1] = (pl_memory_step){result->finish[at], effect->net_bytes - effect->peak_bytes, device, at};
    }
  }
  return n;
}

pl_memory_step *pl_memory_steps_list(const pl_graph *graph, const pl_engine_result *result, size_t *n_steps) {
  size_t n = list_steps(graph, result, NULL);
  pl_memory_step *steps = n > 0 ? malloc(n * sizeof *steps) : NULL;
  *n_steps = steps != NULL ? n : 0;
  if (steps == NULL) return NULL;
  list_steps(graph, result, steps);
  qsort(steps, n, sizeof *steps, compare_steps);
  return steps;
}
