/* See workloads/strategy/listed_schedule.h. The file is read into one list of passes with where each stands, which is
 * then dealt out to the stages; what the checker finds is said with the place of the pass. */
#include "workloads/strategy/listed_schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/text_file.h"

enum {
  MOST_BYTES = 64 << 20,
  LEAST_PASS_BYTES = 5 /* F0.0 and a space */,
  MOST_STAGES = 1 << 16,
  MOST_CHUNKS = 1 << 16,
  MOST_MICROBATCHES = 1 << 22
};

typedef struct place {
  int32_t line, column;
} place;

typedef struct word {
  const char *text;
  size_t length;
  place at;
} word;

typedef struct pass {
  int32_t stage;
  pl_schedule_step step;
  place at;
} pass;

typedef struct reading {
  const char *path, *rest; /* what has not been read */
  place here;
  pl_arena *arena;
  pl_listed_schedule *schedule;
  pass *passes;
  int64_t n_passes;
  const place *const *places; /* by stage and step */
  place end;                  /* of the last pass of the file */
  pl_error *error;
} reading;

__attribute__((format(printf, 3, 4))) static pl_code fail_at(const reading *state, place where, const char *format,
                                                             ...) {
  char message[PL_ERROR_MESSAGE_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pl_fail(state->error, PL_BAD_INPUT, "%s:%d:%d: %s", state->path, where.line, where.column, message);
}

/* ---- words ---- */

static void step_over(reading *state) {
  bool ends = *state->rest++ == '\n';
  state->here.column = ends ? 1 : state->here.column + 1;
  state->here.line += ends;
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; false: the line is over. */
static bool next_word(reading *state, word *own) {
  while (is_space(*state->rest))
    step_over(state);
  if (*state->rest == '#')
    while (*state->rest != '\n' && *state->rest != '\0')
      step_over(state);
  *own = (word){.text = state->rest, .at = state->here};
  while (!is_space(*state->rest) && *state->rest != '\n' && *state->rest != '\0' && *state->rest != '#')
    step_over(state);
  own->length = (size_t)(state->rest - own->text);
  return own->length > 0;
}

static bool is_word(const word *own, const char *text) {
  return own->length == strlen(text) && memcmp(own->text, text, own->length) == 0;
}

/* Digits at `text`, as many as `end` leaves; -1: none, or more than `most`. */
static int32_t read_digits(const char **text, const char *end, int32_t most) {
  int64_t value = 0;
  const char *first = *text;
  for (; *text < end && **text >= '0' && **text <= '9'; (*text)++)
    if (value <= most) value = 10 * value + (**text - '0');
  return *text == first || value > most ? -1 : (int32_t)value;
}

/* What of a word is shown. */
enum { MOST_SHOWN = 40 };
static int shown(const word *own) {
  return own->length < MOST_SHOWN ? (int)own->length : MOST_SHOWN;
}

/* ---- lines ---- */

static pl_code read_pass(const reading *state, const word *own, pl_schedule_step *step) {
  const char *at = own->text, *end = own->text + own->length;
  int kind = -1;
  for (int k = 0; k < PL_STEP_KIND_COUNT; k++) {
    const char *name = pl_step_name((pl_step_kind)k);
    size_t length = strlen(name);
    if (own->length > length && memcmp(own->text, name, length) == 0 && at[length] >= '0' && at[length] <= '9')
      kind = k;
  }
  if (kind >= 0) at += strlen(pl_step_name((pl_step_kind)kind));
  int32_t chunk = kind < 0 ? -1 : read_digits(&at, end, MOST_CHUNKS - 1), microbatch = -1;
  if (chunk >= 0 && at < end && *at++ == '.') microbatch = read_digits(&at, end, MOST_MICROBATCHES - 1);
  if (microbatch < 0 || at != end)
    return fail_at(state, own->at,
                   "'%.*s' is no pass; write F, B, W or BW, the chunk of the stage (below %d), a point and the "
                   "microbatch (below %d), as in F0.1",
                   shown(own), own->text, MOST_CHUNKS, MOST_MICROBATCHES);
  *step = (pl_schedule_step){.kind = (uint8_t)kind, .chunk = chunk, .microbatch = microbatch};
  return PL_OK;
}

static pl_code read_stage(reading *state, const word *number) {
  const char *at = number->text;
  int32_t stage = read_digits(&at, at + number->length, MOST_STAGES - 1);
  if (stage < 0 || at != number->text + number->length - 1 || *at != ':')
    return fail_at(state, number->at,
                   "'%.*s' begins no line; write the number of a stage (below %d) and a colon, `chunks loop`, "
                   "`chunks v` or `holds N`",
                   shown(number), number->text, MOST_STAGES);
  if (stage >= state->schedule->pp) state->schedule->pp = stage + 1;
  for (word own; next_word(state, &own);) {
    pass *made = &state->passes[state->n_passes++];
    *made = (pass){.stage = stage, .at = own.at};
    PL_TRY(read_pass(state, &own, &made->step));
    state->end = own.at;
  }
  return PL_OK;
}

static pl_code read_setting(reading *state, const word *key) {
  word value, more;
  bool chunks = is_word(key, "chunks");
  if (state->n_passes > 0)
    return fail_at(state, key->at, "'%.*s' stands behind the first pass; write it before", shown(key), key->text);
  next_word(state, &value);
  const char *at = value.text;
  int32_t holds = read_digits(&at, value.text + value.length, INT32_MAX / 2);
  bool valid = chunks ? is_word(&value, "loop") || is_word(&value, "v") : holds > 0 && at == value.text + value.length;
  if (!valid || next_word(state, &more))
    return fail_at(state, valid ? more.at : value.at, "'%.*s' cannot stand behind %s; write %s",
                   shown(valid ? &more : &value), valid ? more.text : value.text, chunks ? "chunks" : "holds",
                   chunks ? "`chunks loop` or `chunks v`" : "`holds N`, N from 1");
  if (chunks)
    state->schedule->is_v = is_word(&value, "v");
  else
    state->schedule->most_held = holds;
  return PL_OK;
}

static pl_code read_lines(reading *state) {
  while (*state->rest != '\0') {
    word first;
    if (next_word(state, &first))
      PL_TRY(is_word(&first, "chunks") || is_word(&first, "holds") ? read_setting(state, &first)
                                                                   : read_stage(state, &first));
    if (*state->rest == '\n') step_over(state);
  }
  if (state->n_passes == 0) return fail_at(state, state->here, "no pass is listed; write e.g. 0: F0.0 BW0.0");
  return PL_OK;
}

/* ---- the whole ---- */

/* How many chunks and microbatches there are; a number that only a file many times as long could mean is a slip. */
static pl_code count(reading *state) {
  pl_listed_schedule *own = state->schedule;
  for (int64_t i = 0; i < state->n_passes; i++) {
    const pass *at = &state->passes[i];
    if (at->step.chunk >= own->vpp) own->vpp = at->step.chunk + 1;
    if (at->step.microbatch >= own->n_microbatches) own->n_microbatches = at->step.microbatch + 1;
    own->splits |= at->step.kind == PL_STEP_INPUTS || at->step.kind == PL_STEP_WEIGHTS;
    if (own->n_microbatches > state->n_passes || own->vpp > state->n_passes || own->pp > state->n_passes)
      return fail_at(state, at->at, "%s%d.%d of stage %d: the file lists only %" PRId64 " passes",
                     pl_step_name((pl_step_kind)at->step.kind), at->step.chunk, at->step.microbatch, at->stage,
                     state->n_passes);
  }
  if (own->is_v && own->vpp != 2)
    return fail_at(state, state->end, "the stages have %d chunks; `chunks v` means 2", own->vpp);
  int64_t least = 2 * (int64_t)own->pp * own->vpp;
  if (least * own->n_microbatches > state->n_passes)
    return fail_at(state, state->end,
                   "the file ends after %" PRId64 " passes; %d stages of %d chunks and %d microbatches have at least "
                   "%" PRId64,
                   state->n_passes, own->pp, own->vpp, own->n_microbatches, least * own->n_microbatches);
  return PL_OK;
}

static bool mark_last(const reading *state, pl_schedule_step *steps, int64_t n) {
  bool *later = PL_TAKE(state->arena, bool, state->schedule->vpp);
  if (later == NULL) return false;
  for (int64_t i = n; i-- > 0;) {
    if (!pl_step_makes_weights(&steps[i])) continue;
    steps[i].last = !later[steps[i].chunk];
    later[steps[i].chunk] = true;
  }
  return true;
}

static pl_code deal_out(reading *state) {
  pl_listed_schedule *own = state->schedule;
  int64_t *n_steps = PL_TAKE(state->arena, int64_t, own->pp);
  pl_schedule_step **steps = PL_TAKE(state->arena, pl_schedule_step *, own->pp);
  place **places = PL_TAKE(state->arena, place *, own->pp);
  if (state->arena->failed) return pl_fail_memory(state->error, "a listed schedule");
  for (int64_t i = 0; i < state->n_passes; i++)
    n_steps[state->passes[i].stage]++;
  for (int32_t stage = 0; stage < own->pp; stage++) {
    steps[stage] = PL_TAKE(state->arena, pl_schedule_step, n_steps[stage] + 1);
    places[stage] = PL_TAKE(state->arena, place, n_steps[stage] + 1);
    n_steps[stage] = 0;
  }
  if (state->arena->failed) return pl_fail_memory(state->error, "a listed schedule");
  for (int64_t i = 0; i < state->n_passes; i++) {
    const pass *at = &state->passes[i];
    places[at->stage][n_steps[at->stage]] = at->at;
    steps[at->stage][n_steps[at->stage]++] = at->step;
  }
  for (int32_t stage = 0; stage < own->pp; stage++) {
    places[stage][n_steps[stage]] = n_steps[stage] > 0 ? places[stage][n_steps[stage] - 1] : state->end;
    if (!mark_last(state, steps[stage], n_steps[stage])) return pl_fail_memory(state->error, "a listed schedule");
  }
  own->steps = (const pl_schedule_step *const *)steps;
  own->n_steps = n_steps;
  state->places = (const place *const *)places;
  return PL_OK;
}

static pl_code say_fault(const reading *state, const pl_schedule_fault *fault) {
  const pl_schedule_step *step = &fault->step, *own = &state->schedule->steps[fault->stage][fault->at];
  place where = state->places[fault->stage][fault->at];
  const char *name = pl_step_name((pl_step_kind)step->kind), *own_name = pl_step_name((pl_step_kind)own->kind);
  switch (fault->kind) {
  case PL_SCHEDULE_SOUND:
    return PL_OK;
  case PL_SCHEDULE_TWICE:
    return fail_at(state, where, "%s%d.%d is there twice, in whole or in part; B and W are the halves of BW", own_name,
                   own->chunk, own->microbatch);
  case PL_SCHEDULE_MISSING:
    return fail_at(state, where, "stage %d ends here without %s%d.%d%s", fault->stage, name, step->chunk,
                   step->microbatch, step->kind == PL_STEP_BACKWARD ? " (or B and W)" : "");
  case PL_SCHEDULE_TOO_EARLY:
    return fail_at(state, where, "%s%d.%d needs %s%d.%d of its stage, which is not before it", own_name, own->chunk,
                   own->microbatch, name, step->chunk, step->microbatch);
  case PL_SCHEDULE_DEADLOCK:
    return fail_at(state, where, "deadlock: %s%d.%d waits for ever for %s%d.%d of stage %d", own_name, own->chunk,
                   own->microbatch, name, step->chunk, step->microbatch, fault->other);
  case PL_SCHEDULE_OVERTAKING:
    return fail_at(state, where,
                   "%s%d.%d comes before %s%d.%d, but stage %d sends what they take in the other order; messages "
                   "between two stages arrive as they are sent",
                   own_name, own->chunk, own->microbatch, name, step->chunk, step->microbatch, fault->other);
  case PL_SCHEDULE_HOLDS_MORE:
    return fail_at(state, where, "with %s%d.%d stage %d holds more than the %d passes of `holds`", own_name, own->chunk,
                   own->microbatch, fault->stage, state->schedule->most_held);
  case PL_SCHEDULE_NO_MEMORY:
    break;
  }
  return pl_fail_memory(state->error, "a listed schedule");
}

static pl_code read_all(reading *state, size_t size) {
  PL_TRY(pl_text_check(state->path, state->rest, size, state->error));
  state->passes = pl_arena_take(state->arena, (size / LEAST_PASS_BYTES + 2) * sizeof *state->passes, _Alignof(pass));
  if (state->passes == NULL) return pl_fail_memory(state->error, "a listed schedule");
  PL_TRY(read_lines(state));
  PL_TRY(count(state));
  PL_TRY(deal_out(state));
  const pl_schedule_fault fault = pl_schedule_check(state->schedule, state->arena);
  return say_fault(state, &fault);
}

pl_code pl_listed_schedule_parse(const char *name, const char *text, size_t size, pl_arena *arena,
                                 const pl_listed_schedule **schedule, pl_error *error) {
  pl_listed_schedule *made = PL_TAKE(arena, pl_listed_schedule, 1);
  char *copy = pl_arena_strdup(arena, name);
  *schedule = made;
  if (made == NULL || copy == NULL) return pl_fail_memory(error, "a listed schedule");
  made->path = copy;
  reading state = {
      .path = copy, .rest = text, .here = {1, 1}, .end = {1, 1}, .arena = arena, .schedule = made, .error = error};
  return read_all(&state, size);
}

pl_code pl_listed_schedule_read(const char *path, pl_arena *arena, const pl_listed_schedule **schedule,
                                pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  *schedule = NULL;
  PL_TRY(pl_text_file_load(path, MOST_BYTES, &text, &size, error));
  pl_code code = pl_listed_schedule_parse(path, text, size, arena, schedule, error);
  free(text);
  return code;
}
