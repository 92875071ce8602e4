/* See workloads/execute/executor.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "workloads/execute/exchange.h"
#include "workloads/execute/executor_internal.h"
#include "workloads/execute/remote.h"

static const char *const special_names[PL_SPECIAL_COUNT] = {NULL,   "input",      "param",    "keep",        "kept",
                                                            "call", "accumulate", "gradient", "state",       "store",
                                                            "loss", "send",       "receive",  "sum_classes", "kernel"};

/* ---- ops ---- */

static void round_to_single(pl_holding *holding, uint32_t n_devices) {
  for (uint32_t d = 0; d < n_devices; d++)
    for (int64_t i = 0; i < holding->parts[d].n; i++)
      holding->parts[d].data[i] = (float)holding->parts[d].data[i];
}

static pl_code run_compute(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  pl_arena_mark mark = pl_arena_mark_here(&own->scratch);
  pl_ir_tensor *inputs = PL_TAKE(&own->scratch, pl_ir_tensor, op->n_inputs);
  pl_ir_tensor *outputs = PL_TAKE(&own->scratch, pl_ir_tensor, op->n_outputs);
  if (inputs == NULL || outputs == NULL) return pl_execution_no_memory(error);
  pl_ir_computing computing = {.op = op,
                               .inputs = inputs,
                               .outputs = outputs,
                               .single = own->options.single,
                               .scratch = &own->scratch,
                               .iteration = (uint64_t)own->iteration,
                               .piece = f->piece};
  for (uint32_t d = 0; d < m->crew.n_devices; d++) {
    computing.turn = m->turns[d];
    for (int32_t i = 0; i < op->n_inputs; i++)
      inputs[i] = f->values[op->inputs[i]]->parts[d];
    for (int32_t i = 0; i < op->n_outputs; i++)
      outputs[i] = f->values[op->first_output + i]->parts[d];
    pl_arena_mark inner = pl_arena_mark_here(&own->scratch);
    PL_TRY(row->compute(&computing, error));
    pl_arena_release_to(&own->scratch, inner);
  }
  pl_arena_release_to(&own->scratch, mark);
  return PL_OK;
}

static pl_code run_pure(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  for (int32_t i = 0; i < op->n_outputs; i++) {
    int32_t value = op->first_output + i;
    f->values[value] = pl_holding_create(&m->crew, &f->function->values[value].type);
    if (f->values[value] == NULL) return pl_execution_no_memory(error);
  }
  if (pl_ir_row_is_ring(row)) {
    PL_TRY(pl_execution_run_ring(own, m, f, op, error));
  } else if (row->effect == PL_IR_COLLECTIVE && row->compute == NULL && own->options.peers != NULL) {
    PL_TRY(pl_remote_collective(own, m, f, op, error));
  } else if (strcmp(row->name, "shift") == 0) {
    pl_exchange_shift(&m->crew, op, f->values[op->inputs[0]], f->values[op->first_output]);
  } else if (strncmp(row->name, "halo", 4) == 0) {
    PL_TRY(pl_exchange_halo(&m->crew, op, f->values[op->inputs[0]], f->values[op->first_output], error));
  } else if (row->effect == PL_IR_COLLECTIVE && row->compute == NULL) {
    const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
    PL_TRY(pl_exchange(&m->crew, over != NULL ? over->n_names : 0, over != NULL ? over->names : NULL,
                       f->values[op->inputs[0]], f->values[op->first_output], error));
  } else if (row->compute == NULL) {
    return pl_fail(error, PL_UNSUPPORTED, "%s cannot be computed yet", row->name);
  } else {
    PL_TRY(run_compute(own, m, f, op, error));
  }
  for (int32_t i = 0; own->options.single && i < op->n_outputs; i++)
    round_to_single(f->values[op->first_output + i], m->crew.n_devices);
  return PL_OK;
}

static pl_code compare(const pl_execution *own, const pl_member *m, const pl_frame *f, const pl_ir_op *op,
                       pl_error *error) {
  for (int32_t i = 0; own->options.tolerance > 0 && i < op->n_outputs; i++) {
    const pl_holding *value = f->values[op->first_output + i];
    if (value == NULL) continue;
    double differs = pl_holding_differs(&m->crew, value);
    if (!(differs <= own->options.tolerance))
      return pl_fail(error, PL_BAD_INPUT,
                     "devices that should hold the same %%%s differ by %.3g of its largest element",
                     f->function->values[op->first_output + i].name, differs);
  }
  return PL_OK;
}

/* ---- functions ---- */

static pl_code enter(pl_execution *own, pl_member *m, int32_t function, const char *prefix, int32_t call,
                     pl_error *error) {
  if (m->n_frames >= PL_FRAMES_MAX)
    return pl_fail(error, PL_BAD_INPUT, "calls nest deeper than %d", (int)PL_FRAMES_MAX);
  const pl_ir_function *f = own->module->functions[function];
  pl_frame *made = &m->frames[m->n_frames];
  *made = (pl_frame){.function = f, .index = function, .last = own->last[function], .call = call, .prefix = prefix};
  made->values = (pl_holding **)calloc((size_t)f->n_values + 1, sizeof(*made->values));
  if (made->values == NULL || prefix == NULL) return pl_execution_no_memory(error);
  m->n_frames++;
  return PL_OK;
}

static void leave(pl_member *m) {
  pl_frame *f = &m->frames[--m->n_frames];
  for (int32_t i = 0; i < f->function->n_values; i++)
    pl_holding_drop(&m->crew, f->values[i]);
  free((void *)f->values);
}

static pl_code run_call(pl_execution *own, pl_member *m, const pl_frame *f, const pl_ir_op *op, pl_error *error) {
  int32_t index = (int32_t)(op - f->function->ops);
  PL_TRY(enter(own, m, op->callee, pl_execution_joined(own, f->prefix, op->path), index, error));
  pl_frame *inner = &m->frames[m->n_frames - 1];
  inner->piece = pl_ir_piece_inside(f->piece, op);
  for (int32_t i = 0; i < op->n_inputs; i++)
    inner->values[i] = pl_holding_share(f->values[op->inputs[i]]);
  return PL_OK;
}

/* Values that op `index` was the last to read, or that nobody reads. */
static void drop_dead(pl_member *m, pl_frame *f, int32_t index) {
  const pl_ir_op *op = &f->function->ops[index];
  for (int32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    int32_t value = i < op->n_inputs ? op->inputs[i] : op->first_output + i - op->n_inputs;
    if (f->last[value] > index || f->values[value] == NULL) continue;
    pl_holding_drop(&m->crew, f->values[value]);
    f->values[value] = NULL;
  }
}

/* The end of a function: results go to the caller's call. */
static void finish(pl_member *m) {
  pl_frame *f = &m->frames[m->n_frames - 1];
  if (m->n_frames > 1) {
    pl_frame *outer = f - 1;
    const pl_ir_op *call = &outer->function->ops[f->call];
    for (int32_t i = 0; i < call->n_outputs; i++)
      outer->values[call->first_output + i] = pl_holding_share(f->values[f->function->results[i]]);
    int32_t index = f->call;
    leave(m);
    drop_dead(m, outer, index);
  } else {
    leave(m);
  }
}

static pl_code run_op(pl_execution *own, pl_member *m, pl_frame *f, const pl_ir_op *op, pl_error *error) {
  pl_special what = (pl_special)own->special[op->row];
  switch (what) {
  case PL_SPECIAL_CALL:
    return run_call(own, m, f, op, error);
  case PL_SPECIAL_SEND:
  case PL_SPECIAL_RECEIVE:
  case PL_SPECIAL_SUM_CLASSES:
    return own->options.peers != NULL ? pl_remote_mail(own, m, f, op, what, error)
                                      : pl_execution_run_mail(own, m, f, op, what, error);
  case PL_SPECIAL_NONE:
    return run_pure(own, m, f, op, error);
  default:
    return pl_execution_run_state(own, m, f, op, what, error);
  }
}

static pl_code placed(const pl_member *m, const pl_frame *f, const pl_ir_op *op, const pl_error *cause,
                      pl_error *error) {
  char line[32] = ""; /* programs that no file was read for have none */
  if (op->place.line > 0) snprintf(line, sizeof line, " (line %d)", op->place.line);
  return pl_fail(error, cause->code, "%s, @%s%s%s%s, %s%s: %s", m->class->name, f->function->name,
                 f->prefix[0] != 0 ? " as \"" : "", f->prefix, f->prefix[0] != 0 ? "\"" : "",
                 pl_ir_row_at(op->row)->name, line, cause->message);
}

static double now_s(const pl_execution *own) {
  struct timespec now;
  if (!own->options.timed) return 0;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void note_time(pl_execution *own, const pl_frame *f, const pl_ir_op *op, double since_s) {
  if (own->options.timed) {
    int32_t index = own->first_op[f->index] + (int32_t)(op - f->function->ops);
    own->op_s[(size_t)own->iteration * (size_t)own->n_ops + (size_t)index] += now_s(own) - since_s;
    own->op_runs[index]++;
  }
  if (own->options.progress != NULL) own->options.progress(own->options.peers->own);
}

/* Ops until the function list is through or blocked; *moved: at least one was done. */
static pl_code run_frames(pl_execution *own, pl_member *m, bool *moved, pl_error *error) {
  m->blocked = false;
  while (m->n_frames > 0) {
    pl_frame *f = &m->frames[m->n_frames - 1];
    if (f->next == f->function->n_ops) {
      finish(m);
      continue;
    }
    const pl_ir_op *op = &f->function->ops[f->next];
    pl_error cause = PL_ERROR_INIT;
    double since_s = now_s(own);
    pl_code code = run_op(own, m, f, op, &cause);
    if (code == PL_OK && !m->blocked && own->special[op->row] != PL_SPECIAL_CALL) code = compare(own, m, f, op, &cause);
    if (code != PL_OK) return placed(m, f, op, &cause, error);
    if (m->blocked) return PL_OK;
    *moved = true;
    f->next++;
    if (own->special[op->row] == PL_SPECIAL_CALL) continue;
    drop_dead(m, f, f->next - 1);
    note_time(own, f, op, since_s);
  }
  return PL_OK;
}

/* ---- lists ---- */

/* False: none of the devices that are here runs this step. Where all devices of a class are in one process, those that
 * pass over a step compute beside the others, and nothing of it is added to what they hold. */
static bool take_turns(pl_execution *own, pl_member *m, int32_t microbatch) {
  bool any = false;
  for (uint32_t d = 0; d < m->crew.n_devices; d++) {
    m->turns[d] = pl_ir_turn_of(own->module, own->sample_axes, m->crew.devices[d], microbatch);
    bool runs = pl_ir_runs(own->module, m->crew.devices[d], microbatch);
    if (m->absent != NULL) m->absent[d] = !runs;
    any = any || runs;
  }
  return any;
}

static const pl_ir_chunk *chunk_of(const pl_ir_class *class, int32_t chunk) {
  for (int32_t i = 0; i < class->n_chunks; i++)
    if (class->chunks[i].chunk == chunk) return &class->chunks[i];
  return NULL;
}

static pl_code begin_step(pl_execution *own, pl_member *m, pl_error *error) {
  const pl_ir_class *class = m->class;
  if (m->step == class->n_steps) {
    m->step++;
    take_turns(own, m, PL_IR_NONE);
    return class->update != PL_IR_NONE ? enter(own, m, class->update, "", PL_IR_NONE, error) : PL_OK;
  }
  const pl_ir_step *step = &class->steps[m->step++];
  const pl_ir_chunk *chunk = chunk_of(class, step->chunk);
  int32_t function = chunk == NULL                ? PL_IR_NONE
                     : step->kind == PL_IR_STEP_F ? chunk->forward
                     : step->kind == PL_IR_STEP_B ? chunk->backward
                                                  : chunk->weights;
  if (function == PL_IR_NONE) return pl_fail(error, PL_BAD_INPUT, "%s: step %d has no function", class->name, m->step);
  m->chunk = step->chunk;
  m->microbatch = step->microbatch;
  if (!take_turns(own, m, step->microbatch)) return PL_OK;
  return enter(own, m, function, "", PL_IR_NONE, error);
}

static void end_step(pl_member *m) {
  if (m->step < 1 || m->step > m->class->n_steps) return;
  const pl_ir_step *step = &m->class->steps[m->step - 1];
  const pl_ir_chunk *chunk = chunk_of(m->class, step->chunk);
  bool last = step->kind == PL_IR_STEP_W || (step->kind == PL_IR_STEP_B && chunk->weights == PL_IR_NONE);
  if (last) pl_execution_forget_kept(m);
}

static pl_code run_member(pl_execution *own, pl_member *m, bool *moved, pl_error *error) {
  while (!m->finished) {
    if (m->n_frames == 0) {
      if (m->step > m->class->n_steps) {
        m->finished = true;
        break;
      }
      PL_TRY(begin_step(own, m, error));
      if (m->n_frames == 0) continue;
    }
    PL_TRY(run_frames(own, m, moved, error));
    if (m->blocked) return PL_OK;
    end_step(m);
  }
  return PL_OK;
}

static pl_code deadlock(pl_execution *own, pl_error *error) {
  char text[512] = "";
  size_t length = 0;
  for (int32_t c = 0; c < own->module->n_classes && length < sizeof(text); c++) {
    const pl_member *m = &own->members[c];
    if (m->finished) continue;
    const pl_frame *f = &m->frames[m->n_frames - 1];
    const pl_ir_op *op = &f->function->ops[f->next];
    int n = snprintf(text + length, sizeof(text) - length, "%s%s waits in @%s at %s (line %d)", length > 0 ? "; " : "",
                     m->class->name, f->function->name, pl_ir_row_at(op->row)->name, op->place.line);
    length += n > 0 ? (size_t)n : 0;
  }
  return pl_fail(error, PL_BAD_INPUT, "deadlock: %s", text);
}

/* Devices in processes of their own begin together, with their data at hand. */
static pl_code meet(pl_execution *own, pl_error *error) {
  const pl_peers *peers = own->options.peers;
  for (int32_t c = 0; own->makes_early && c < own->module->n_classes; c++)
    if (own->members[c].crew.n_devices > 0) PL_TRY(pl_execution_make_inputs(own, &own->members[c], error));
  return peers != NULL ? peers->ops->meet(peers->own, error) : PL_OK;
}

static pl_code run_iteration(pl_execution *own, pl_error *error) {
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    pl_member *m = &own->members[c];
    m->step = 0;
    m->finished = m->crew.n_devices == 0; /* all of them are elsewhere */
    for (int32_t i = 0; i < m->store.n_entries; i++) {
      pl_kept *entry = m->store.entries[i];
      if (entry->kind != PL_EXECUTION_GRADIENT) continue;
      pl_holding_drop(&m->crew, entry->holding);
      entry->holding = NULL;
    }
  }
  PL_TRY(meet(own, error));
  double since_s = now_s(own);
  for (bool all = false, moved = true; !all;) {
    if (!moved) return deadlock(own, error);
    all = true;
    moved = false;
    for (int32_t c = 0; c < own->module->n_classes; c++) {
      PL_TRY(run_member(own, &own->members[c], &moved, error));
      all = all && own->members[c].finished;
    }
  }
  if (own->options.timed) own->iteration_s[own->iteration] = now_s(own) - since_s;
  return PL_OK;
}

/* ---- making and giving back ---- */

static int32_t *last_reads(const pl_ir_function *function, pl_arena *arena) {
  int32_t *last = PL_TAKE(arena, int32_t, function->n_values + 1);
  if (last == NULL) return NULL;
  for (int32_t i = 0; i < function->n_values; i++)
    last[i] = -1;
  for (int32_t k = 0; k < function->n_ops; k++)
    for (int32_t i = 0; i < function->ops[k].n_inputs; i++)
      last[function->ops[k].inputs[i]] = k;
  for (int32_t i = 0; i < function->n_results; i++)
    last[function->results[i]] = function->n_ops;
  return last;
}

static bool take_crew(pl_execution *own, const pl_ir_class *class, pl_member *m) {
  const pl_peers *peers = own->options.peers;
  pl_crew *crew = &m->crew;
  uint32_t n = pl_ir_mesh_devices(&own->module->mesh);
  uint32_t *devices = PL_TAKE(&own->arena, uint32_t, n);
  m->turns = PL_TAKE(&own->arena, pl_ir_turn, n);
  if (own->module->n_fewer > 0) m->absent = PL_TAKE(&own->arena, bool, n);
  if (own->arena.failed) return false;
  *crew = (pl_crew){.mesh = &own->module->mesh, .devices = devices};
  for (uint32_t device = 0; device < n; device++)
    if (pl_ir_class_has(own->module, class, device)) devices[crew->n_devices++] = device;
  m->all = devices;
  if (peers == NULL) return true;
  while (m->position < crew->n_devices && devices[m->position] != peers->device)
    m->position++;
  bool is_here = m->position < crew->n_devices;
  crew->devices = is_here ? &devices[m->position] : devices;
  crew->n_devices = is_here;
  return true;
}

/* Tags of messages, each once: both sides of a message run the same program. */
static bool take_tags(pl_execution *own) {
  uint32_t n = 0, room = 0;
  for (int32_t i = 0; i < own->module->n_functions; i++) {
    const pl_ir_function *f = own->module->functions[i];
    for (int32_t k = 0; k < f->n_ops; k++) {
      pl_special what = (pl_special)own->special[f->ops[k].row];
      if (what != PL_SPECIAL_SEND && what != PL_SPECIAL_RECEIVE) continue;
      const char *tag = pl_ir_text_of(&f->ops[k], "tag");
      uint32_t at = 0;
      while (at < n && strcmp(own->tags[at], tag) != 0)
        at++;
      if (at < n) continue;
      own->tags = (const char **)pl_arena_grown(&own->arena, (const void *)own->tags, n, 1, sizeof(*own->tags), &room);
      if (own->tags == NULL) return false;
      own->tags[n++] = tag;
    }
  }
  return true;
}

static bool take_times(pl_execution *own) {
  if (!own->options.timed) return true;
  own->first_op = PL_TAKE(&own->arena, int32_t, own->module->n_functions + 1);
  if (own->first_op == NULL) return false;
  for (int32_t i = 0; i < own->module->n_functions; i++) {
    own->first_op[i] = own->n_ops;
    own->n_ops += own->module->functions[i]->n_ops;
  }
  own->op_s = PL_TAKE(&own->arena, double, (size_t)own->options.iterations *(size_t)own->n_ops);
  own->op_runs = PL_TAKE(&own->arena, int32_t, own->n_ops);
  own->iteration_s = PL_TAKE(&own->arena, double, own->options.iterations);
  return !own->arena.failed;
}

static pl_code prepare(pl_execution *own, pl_error *error) {
  const pl_ir_module *module = own->module;
  own->sample_axes = pl_ir_sample_axes(module);
  own->special = PL_TAKE(&own->arena, uint8_t, pl_ir_n_rows());
  own->last = PL_TAKE(&own->arena, int32_t *, module->n_functions + 1);
  own->members = PL_TAKE(&own->arena, pl_member, module->n_classes + 1);
  own->losses = PL_TAKE(&own->arena, double, own->options.iterations + 1);
  if (own->arena.failed) return pl_execution_no_memory(error);
  for (int what = 1; what < PL_SPECIAL_COUNT; what++)
    own->special[pl_ir_row_of(special_names[what])] = (uint8_t)(what == PL_SPECIAL_KERNEL ? PL_SPECIAL_CALL : what);
  for (int32_t i = 0; i < module->n_functions; i++)
    if ((own->last[i] = last_reads(module->functions[i], &own->arena)) == NULL) return pl_execution_no_memory(error);
  for (int32_t c = 0; c < module->n_classes; c++) {
    own->members[c].class = &module->classes[c];
    if (!take_crew(own, &module->classes[c], &own->members[c])) return pl_execution_no_memory(error);
    PL_TRY(pl_execution_count_reads(own, &own->members[c], error));
  }
  own->makes_early = own->options.timed && (own->options.peers != NULL || pl_ir_mesh_devices(&module->mesh) == 1);
  if (!take_tags(own) || !take_times(own)) return pl_execution_no_memory(error);
  return PL_OK;
}

pl_code pl_execute(const pl_ir_module *module, const pl_execution_options *options, pl_execution **execution,
                   pl_error *error) {
  *execution = NULL;
  if (options->peers != NULL && module->places != NULL)
    return pl_fail(error, PL_UNSUPPORTED, "%s: a program that places its devices does not run between processes",
                   module->name);
  pl_execution *own = (pl_execution *)calloc(1, sizeof(*own));
  if (own == NULL) return pl_execution_no_memory(error);
  own->module = module;
  own->options = *options;
  pl_arena_init(&own->arena, 0);
  pl_arena_init(&own->scratch, 0);
  pl_code code = prepare(own, error);
  for (own->iteration = 0; code == PL_OK && own->iteration < options->iterations; own->iteration++)
    code = run_iteration(own, error);
  if (code != PL_OK) {
    pl_execution_destroy(own);
    return code;
  }
  *execution = own;
  return PL_OK;
}

static void drop_store(pl_crew *crew, pl_store *store) {
  for (int32_t i = 0; i < store->n_entries; i++)
    pl_holding_drop(crew, store->entries[i]->holding);
}

void pl_execution_destroy(pl_execution *own) {
  if (own == NULL) return;
  drop_store(&own->nobody, &own->mail);
  for (uint32_t i = 0; i < own->n_inputs; i++)
    pl_holding_drop(&own->nobody, own->inputs[i].holding);
  for (int32_t c = 0; own->members != NULL && c < own->module->n_classes; c++) {
    while (own->members[c].n_frames > 0)
      leave(&own->members[c]);
    drop_store(&own->members[c].crew, &own->members[c].store);
  }
  pl_arena_release(&own->arena);
  pl_arena_release(&own->scratch);
  free(own);
}
