/* See workloads/language/ir_parse.h: classes, their chunks and steps. */
#include <string.h>

#include "core/base/digest.h"

#include "workloads/language/ir_parse.h"

/* ---- where it is ---- */

static pl_code read_coordinate(pl_ir_reader *reader, const char *who, int32_t coordinates[PL_IR_AXES_MAX]) {
  const pl_ir_mesh *mesh = &reader->module->mesh;
  pl_ir_place place = reader->token.place;
  pl_ir_name name;
  int64_t at;
  PL_TRY(pl_ir_read_name(reader, "an axis of the mesh", &name));
  int32_t axis = pl_ir_mesh_find(mesh, name);
  if (axis < 0) {
    const char *words[PL_IR_AXES_MAX + 1] = {NULL};
    char hint[PL_IR_HINT_BYTES];
    for (int32_t i = 0; i < mesh->n_axes; i++)
      words[i] = mesh->axes[i].name.text;
    return pl_ir_read_fail(reader, place, "'%s' is not an axis of the mesh%s", name.text,
                           pl_ir_hint(name.text, words, hint));
  }
  if (coordinates[axis] != PL_IR_NONE)
    return pl_ir_read_fail(reader, place, "axis %s is given twice: %s at one coordinate", name.text, who);
  PL_TRY(pl_ir_read_mark(reader, '=', "'=' and a coordinate"));
  PL_TRY(pl_ir_read_integer(reader, "a coordinate on this axis", 0, mesh->axes[axis].extent - 1, &at));
  coordinates[axis] = (int32_t)at;
  return PL_OK;
}

pl_code pl_ir_read_at(pl_ir_reader *reader, const char *who, int32_t at[PL_IR_AXES_MAX]) {
  for (int axis = 0; axis < PL_IR_AXES_MAX; axis++)
    at[axis] = PL_IR_NONE;
  if (!pl_ir_read_sees_word(reader, "at")) return PL_OK;
  PL_TRY(pl_ir_read_next(reader));
  for (bool more = true; more;) {
    PL_TRY(read_coordinate(reader, who, at));
    PL_TRY(pl_ir_read_comma(reader, &more));
  }
  return PL_OK;
}

/* ---- chunks ---- */

static pl_code read_chunk_function(pl_ir_reader *reader, int32_t *function) {
  if (*function != PL_IR_NONE)
    return pl_ir_read_fail(reader, reader->token.place, "'%.*s' is given twice", (int)reader->token.length,
                           reader->token.text);
  PL_TRY(pl_ir_read_next(reader));
  return pl_ir_read_callee(reader, function);
}

/* "microbatches 4 to 7", behind all else. */
static pl_code read_microbatches(pl_ir_reader *reader, pl_ir_chunk *chunk) {
  int64_t first, last;
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_integer(reader, "the chunk's first microbatch", 0, INT32_MAX - 1, &first));
  if (!pl_ir_read_sees_word(reader, "to")) return pl_ir_read_expected(reader, "'to' and the chunk's last microbatch");
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_integer(reader, "the chunk's last microbatch", first, INT32_MAX - 1, &last));
  chunk->first_microbatch = (int32_t)first;
  chunk->n_microbatches = (int32_t)(last - first + 1);
  return PL_OK;
}

static pl_code read_chunk(pl_ir_reader *reader) {
  int64_t number;
  pl_ir_chunk chunk = {
      .forward = PL_IR_NONE, .backward = PL_IR_NONE, .weights = PL_IR_NONE, .place = reader->token.place};
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_integer(reader, "the chunk's number", 0, INT32_MAX, &number));
  chunk.chunk = (int32_t)number;
  while (reader->token.kind == PL_IR_TOKEN_NAME) {
    if (pl_ir_read_sees_word(reader, "microbatches")) {
      PL_TRY(read_microbatches(reader, &chunk));
      break;
    }
    int32_t *which = pl_ir_read_sees_word(reader, "forward")    ? &chunk.forward
                     : pl_ir_read_sees_word(reader, "backward") ? &chunk.backward
                     : pl_ir_read_sees_word(reader, "weights")  ? &chunk.weights
                                                                : NULL;
    if (which == NULL)
      return pl_ir_read_expected(reader, "'forward', 'backward' or 'weights' and a function, or 'microbatches'");
    PL_TRY(read_chunk_function(reader, which));
  }
  pl_ir_chunk *room = (pl_ir_chunk *)pl_ir_list_add(reader, &reader->chunks, sizeof chunk);
  if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
  *room = chunk;
  return pl_ir_read_statement_end(reader);
}

/* ---- steps ---- */

/* Digits up to `end`; false: none, or more than fit. */
static bool read_digits(const char **at, const char *end, int32_t *number) {
  int64_t value = 0;
  const char *begin = *at;
  for (; *at < end && **at >= '0' && **at <= '9' && value <= INT32_MAX; (*at)++)
    value = value * 10 + (**at - '0');
  *number = (int32_t)(value <= INT32_MAX ? value : 0);
  return *at > begin && value <= INT32_MAX;
}

/* "F0.12"; to the reader of words a name. */
static bool is_step(const pl_ir_token *token, pl_ir_step *step) {
  const char *at = token->text + 1, *end = token->text + token->length;
  const char *kind = token->kind == PL_IR_TOKEN_NAME ? strchr("FBW", *token->text) : NULL;
  if (kind == NULL) return false;
  step->joined = false;
  step->kind = (uint8_t)(*kind == 'F' ? PL_IR_STEP_F : *kind == 'B' ? PL_IR_STEP_B : PL_IR_STEP_W);
  step->place = token->place;
  if (!read_digits(&at, end, &step->chunk) || at == end || *at++ != '.') return false;
  return read_digits(&at, end, &step->microbatch) && at == end;
}

static pl_code read_steps(pl_ir_reader *reader) {
  if (!pl_ir_read_sees_word(reader, "steps"))
    return pl_ir_read_expected(reader, "'chunk' or 'steps' and a list such as F0.0 B0.0");
  PL_TRY(pl_ir_read_next(reader));
  PL_TRY(pl_ir_read_lines(reader));
  pl_ir_step step;
  while (is_step(&reader->token, &step)) {
    pl_ir_step *room = (pl_ir_step *)pl_ir_list_add(reader, &reader->steps, sizeof step);
    if (room == NULL) return pl_fail_memory(reader->error, reader->lexer.name);
    *room = step;
    PL_TRY(pl_ir_read_next(reader));
    if (pl_ir_read_sees(reader, '+')) {
      room->joined = true;
      PL_TRY(pl_ir_read_next(reader));
      PL_TRY(pl_ir_read_lines(reader));
      if (!is_step(&reader->token, &step))
        return pl_ir_read_expected(reader, "a step that runs beside the one in front of '+' (B or W: B0.0)");
    }
    PL_TRY(pl_ir_read_lines(reader));
  }
  return PL_OK;
}

static pl_code read_end(pl_ir_reader *reader, pl_ir_class *own) {
  if (pl_ir_read_sees_word(reader, "update")) {
    PL_TRY(pl_ir_read_next(reader));
    PL_TRY(pl_ir_read_callee(reader, &own->update));
    PL_TRY(pl_ir_read_statement_end(reader));
  } else if (!pl_ir_read_sees(reader, '}')) {
    return pl_ir_read_expected(reader, "a step (F, B or W with chunk and microbatch: F0.0), 'update' or '}'");
  }
  if (!pl_ir_read_sees(reader, '}')) return pl_ir_read_expected(reader, "'}'");
  PL_TRY(pl_ir_read_next(reader));
  return pl_ir_read_statement_end(reader);
}

/* ---- the class ---- */

static bool is_taken(const pl_ir_reader *reader, pl_ir_name name) {
  uint32_t probe = 0;
  uint64_t hash = pl_hash_bytes(name.text, PL_IR_NAME_MAX, 0);
  for (const char *other; (other = pl_hash_index_find(&reader->class_names, hash, &probe)) != NULL;)
    if (strcmp(other, name.text) == 0) return true;
  return false;
}

static pl_code read_class_head(pl_ir_reader *reader, pl_ir_class *own) {
  pl_ir_name name;
  PL_TRY(pl_ir_read_next(reader));
  own->place = reader->token.place;
  PL_TRY(pl_ir_read_name(reader, "the class's name", &name));
  if (is_taken(reader, name)) return pl_ir_read_fail(reader, own->place, "class %s is there already", name.text);
  own->name = pl_arena_strdup(reader->arena, name.text);
  if (own->name == NULL ||
      !pl_hash_index_put(&reader->class_names, pl_hash_bytes(name.text, PL_IR_NAME_MAX, 0), own->name, reader->arena))
    return pl_fail_memory(reader->error, reader->lexer.name);
  PL_TRY(pl_ir_read_at(reader, "a class is", own->at));
  PL_TRY(pl_ir_read_mark(reader, '{', "'at' and a coordinate, or '{' and the class's chunks"));
  return pl_ir_read_lines(reader);
}

static void *copied(pl_ir_reader *reader, const pl_ir_list *list, size_t size) {
  return pl_arena_copy(reader->arena, list->items, (size_t)list->n * size, _Alignof(max_align_t));
}

static pl_code add_class(pl_ir_reader *reader, pl_ir_class *own) {
  own->chunks = (pl_ir_chunk *)copied(reader, &reader->chunks, sizeof(pl_ir_chunk));
  own->steps = (pl_ir_step *)copied(reader, &reader->steps, sizeof(pl_ir_step));
  own->n_chunks = reader->chunks.n;
  own->n_steps = reader->steps.n;
  pl_ir_class *room = (pl_ir_class *)pl_ir_list_add(reader, &reader->classes, sizeof *own);
  if (own->chunks == NULL || own->steps == NULL || room == NULL)
    return pl_fail_memory(reader->error, reader->lexer.name);
  *room = *own;
  reader->module->classes = (pl_ir_class *)reader->classes.items;
  reader->module->n_classes = reader->classes.n;
  return PL_OK;
}

pl_code pl_ir_read_class(pl_ir_reader *reader) {
  pl_ir_class own = {.update = PL_IR_NONE};
  reader->chunks.n = reader->steps.n = 0;
  PL_TRY(read_class_head(reader, &own));
  while (pl_ir_read_sees_word(reader, "chunk"))
    PL_TRY(read_chunk(reader));
  PL_TRY(read_steps(reader));
  PL_TRY(read_end(reader, &own));
  return add_class(reader, &own);
}
