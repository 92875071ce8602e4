/* See workloads/execute/executor_internal.h: kept values go with the last of the ops that read them. How often a
 * microbatch reads each is counted before anything runs: its backward and weights functions run once. */
#include "workloads/execute/executor_internal.h"

static pl_kept *reads_of(pl_execution *own, pl_member *m, int32_t chunk, pl_ir_piece piece, const char *path) {
  const char *key =
      path == NULL ? NULL : pl_arena_printf(&own->arena, "%d/%lld/%s", chunk, (long long)piece.index, path);
  return key == NULL ? NULL : pl_store_entry(&m->reads, PL_EXECUTION_KEPT, key, &own->arena);
}

static pl_code count(pl_execution *own, pl_member *m, int32_t chunk, int32_t function, const char *prefix,
                     pl_ir_piece piece, int32_t depth, pl_error *error) {
  if (function == PL_IR_NONE) return PL_OK;
  if (depth >= PL_FRAMES_MAX) return PL_OK; /* refused where it runs */
  const pl_ir_function *f = own->module->functions[function];
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    pl_special what = (pl_special)own->special[op->row];
    if (what != PL_SPECIAL_CALL && what != PL_SPECIAL_KEPT) continue;
    const char *path = pl_execution_joined(own, prefix, op->path);
    if (path == NULL) return pl_execution_no_memory(error);
    if (what == PL_SPECIAL_CALL) {
      PL_TRY(count(own, m, chunk, op->callee, path, pl_ir_piece_inside(piece, op), depth + 1, error));
      continue;
    }
    pl_kept *reads = reads_of(own, m, chunk, piece, path);
    if (reads == NULL) return pl_execution_no_memory(error);
    reads->n_reads++;
  }
  return PL_OK;
}

pl_code pl_execution_count_reads(pl_execution *own, pl_member *m, pl_error *error) {
  const pl_ir_piece whole = {0};
  for (int32_t i = 0; i < m->class->n_chunks; i++) {
    const pl_ir_chunk *chunk = &m->class->chunks[i];
    PL_TRY(count(own, m, chunk->chunk, chunk->backward, "", whole, 0, error));
    PL_TRY(count(own, m, chunk->chunk, chunk->weights, "", whole, 0, error));
  }
  return PL_OK;
}

pl_code pl_execution_keep(pl_execution *own, pl_member *m, const pl_frame *f, const pl_ir_op *op, pl_kept *entry,
                          pl_error *error) {
  const pl_kept *reads = reads_of(own, m, m->chunk, f->piece, pl_execution_joined(own, f->prefix, op->path));
  if (reads == NULL) return pl_execution_no_memory(error);
  entry->n_reads = reads->n_reads;
  return PL_OK;
}

void pl_execution_let_go(pl_member *m, pl_kept *entry) {
  if (entry->n_reads <= 0 || --entry->n_reads > 0) return;
  pl_holding_drop(&m->crew, entry->holding);
  entry->holding = NULL;
}
