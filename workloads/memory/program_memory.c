/* See workloads/memory/program_memory.h. */
#include "workloads/memory/program_memory.h"

#include <math.h>
#include <string.h>

#include "workloads/language/ir_again.h"
#include "workloads/language/ir_alike.h"
#include "workloads/language/ir_table.h"
#include "workloads/memory/pass_walk.h"
#include "workloads/memory/program_communicators.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/program/program.h"

/* What was found in the passes of a class and its update; lists that are alike (ir_alike.h) have it in common. */
typedef struct findings {
  const int32_t *order; /* chunk of the class and kind of pass, as they come first in the list, then PL_IR_NONE; NULL:
                           no findings */
  pl_training_state bytes; /* that it was walked through with */
  const pl_chunk_walk *chunks;
  double parameters, gradients, gradient_elements, elements;
  pl_buffer_facts buffers;
  bool gathers;
} findings;

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* ---- passes ---- */

/* Up and down from what is there now. */
static void repeat(pl_pass_walk *own, const pl_pass_effect *effect) {
  if (own->live + effect->peak > own->peak) own->peak = own->live + effect->peak;
  own->live += effect->net;
  if (own->host_live + effect->host_peak > own->host_peak) own->host_peak = own->host_live + effect->host_peak;
  own->host_live += effect->host_net;
}

static bool walk_step(pl_pass_walk *own, const pl_ir_chunk *chunk, const pl_ir_step *step, pl_pass_effect *effect) {
  own->kind = (pl_ir_step_kind)step->kind;
  own->keeps_for_weights = step->kind == PL_IR_STEP_B && chunk->weights != PL_IR_NONE;
  return pl_pass_walk_through(own,
                              step->kind == PL_IR_STEP_F   ? chunk->forward
                              : step->kind == PL_IR_STEP_B ? chunk->backward
                                                           : chunk->weights,
                              effect);
}

/* A pass is walked through once. NULL: no memory. */
static const pl_pass_effect *effect_of(pl_pass_walk *own, const pl_ir_class *class, const pl_ir_step *step) {
  pl_chunk_walk *of = &own->chunks[step->chunk];
  pl_pass_effect *effect = &of->effects[step->kind];
  own->chunk = step->chunk;
  if (!of->is_known[step->kind]) {
    const pl_ir_chunk *chunk = class->chunks;
    while (chunk->chunk != step->chunk)
      chunk++;
    if (!walk_step(own, chunk, step, effect)) return NULL;
    of->is_known[step->kind] = true;
  }
  return effect;
}

/* Of steps that run beside each other the forward pass, or all others one after the other. */
typedef struct side {
  const pl_ir_step *steps;     /* whose effects are known */
  int32_t n_steps, step, part; /* that it is at */
  double before, live;         /* of the passes that are over, and with what there is of this one */
} side;

/* On to where it waits for tokens, while the other one holds so much. */
static void go_on(pl_pass_walk *own, side *of, double held) {
  for (bool waits = false; !waits && of->step < of->n_steps;) {
    const pl_ir_step *step = &of->steps[of->step];
    const pl_pass_effect *effect = &own->chunks[step->chunk].effects[step->kind];
    const pl_pass_part *part = &effect->parts[of->part++];
    own->peak = fmax(own->peak, held + of->before + part->peak);
    of->live = of->before + part->live;
    waits = of->part < effect->n_parts || effect->ends_waiting;
    if (of->part < effect->n_parts) continue;
    of->before = of->live;
    of->part = 0;
    of->step++;
  }
}

/* In turns, as the graph has them: the backward passes first, if they exchange tokens. */
static bool run_joined(pl_pass_walk *own, const pl_ir_class *class, const pl_ir_step *steps, int32_t n) {
  side sides[2] = {{.steps = steps, .n_steps = 1}, {.steps = steps + 1, .n_steps = n - 1}};
  double held = own->live;
  bool backward_first = false;
  for (int32_t i = 0; i < n; i++) {
    const pl_pass_effect *effect = effect_of(own, class, &steps[i]);
    if (effect == NULL) return false;
    backward_first = backward_first || (i > 0 && effect->exchanges);
    own->host_peak = fmax(own->host_peak, own->host_live + effect->host_peak);
    own->host_live += effect->host_net;
  }
  while (sides[0].step < sides[0].n_steps || sides[1].step < sides[1].n_steps)
    for (int i = 0; i < 2; i++) {
      int which = backward_first ? 1 - i : i;
      go_on(own, &sides[which], held + sides[1 - which].live);
    }
  own->live = held + sides[0].live + sides[1].live;
  return true;
}

/* Alone, or with those that run beside it; *n: how many. */
static bool run_step(pl_pass_walk *own, const pl_ir_class *class, int32_t s, int32_t *n) {
  const pl_ir_step *steps = &class->steps[s];
  *n = 1;
  while (s + *n < class->n_steps && steps[*n - 1].joined)
    ++*n;
  if (*n > 1) return run_joined(own, class, steps, *n);
  const pl_pass_effect *effect = effect_of(own, class, steps);
  if (effect != NULL) repeat(own, effect);
  return effect != NULL;
}

/* From this step on, in front of `end`, as far as passes are known and neither joined nor have a part in the host;
 * returns how many. */
static int32_t run_known(pl_pass_walk *own, const pl_ir_class *class, int32_t s, int32_t end) {
  const pl_ir_step *steps = class->steps;
  const pl_chunk_walk *of = NULL;
  double live = own->live, peak = own->peak;
  int32_t at = s, chunk = PL_IR_NONE;
  for (; at < end && !steps[at].joined; at++) {
    if (steps[at].chunk != chunk) of = &own->chunks[chunk = steps[at].chunk];
    const pl_pass_effect *effect = &of->effects[steps[at].kind];
    if (!of->is_known[steps[at].kind] || effect->host_peak > 0 || effect->host_net != 0) break;
    if (live + effect->peak > peak) peak = live + effect->peak;
    live += effect->net;
  }
  own->live = live;
  own->peak = peak;
  return at - s;
}

/* A phase in which a class's steps recur, while its first period is run; `period` 0: none is. */
typedef struct repeated {
  int32_t end, period, n_left; /* behind the first period, or where one begins; steps; periods behind the first */
  double live, host_live;      /* in front of it */
} repeated;

/* The one that begins at this step, or else where the next one does. */
static repeated begin_phase(const pl_pass_walk *own, const pl_ir_class *class, int32_t s) {
  const pl_ir_recurrence *found = own->recurrence;
  repeated none = {.end = class->n_steps};
  for (int p = 0; found != NULL && own->steps == NULL && p < found->n_phases; p++) {
    const pl_lane_phase *phase = &found->phases[class - own->module->classes][p];
    int32_t period = (int32_t)found->period[p];
    if (phase->from > (uint32_t)s && (int32_t)phase->from < none.end) none.end = (int32_t)phase->from;
    if (phase->from != (uint32_t)s || phase->to < phase->from + 2 * found->period[p]) continue;
    return (repeated){.end = s + period,
                      .period = period,
                      .n_left = (int32_t)(phase->to - phase->from) / period - 1,
                      .live = own->live,
                      .host_live = own->host_live};
  }
  return none;
}

/* Where as much is there as in front of a period, all others are what it was. */
static int32_t left_out(const pl_pass_walk *own, const repeated *of, int32_t s) {
  bool is_one = of->period > 0 && s == of->end && own->live == of->live && own->host_live == of->host_live;
  return is_one ? of->n_left * of->period : 0;
}

/* All steps of a list, one after the other. */
static bool run_steps(pl_pass_walk *own, const pl_ir_class *class) {
  repeated phase = {.end = 0};
  for (int32_t s = 0, n = 0; s < class->n_steps; s += n) {
    if (s >= phase.end) {
      n = left_out(own, &phase, s);
      phase = begin_phase(own, class, s + n);
      if (n > 0) continue;
    }
    if (own->steps == NULL && (n = run_known(own, class, s, phase.end)) > 0) continue;
    const double before = own->live, most = own->peak;
    own->peak = before;
    if (!run_step(own, class, s, &n)) return false;
    if (own->steps != NULL) own->steps[s] = (pl_step_memory){own->live - before, own->peak - before};
    own->peak = fmax(most, own->peak);
  }
  return true;
}

/* What ZeRO shards, as parts show it. */
static int32_t zero_of(const pl_pass_walk *own) {
  const double least = 0.999; /* vectors may be whole */
  double whole = own->buffers.parameters;
  return own->gathers                                         ? 3
         : own->gradient_elements < least * whole             ? 2
         : own->elements + own->host_elements < least * whole ? 1
                                                              : 0;
}

/* Buffers of a static graph between forward and backward passes (pipeline_buffers): more than the schedule needs. */
static double pipeline_buffer_bytes(const pl_pass_walk *own, const pl_ir_class *class) {
  int32_t stage = (int32_t)(class - own->module->classes), pp = own->module->n_classes, n = own->module->n_microbatches;
  double buffers = own->framework->pipeline.pipeline_buffers * pp, needed = pp - stage < n ? pp - stage : n;
  if (buffers <= 0 || pp == 1 || stage == pp - 1 || n == 1 || class->n_chunks != 1) return 0;
  double saved = own->chunks[class->chunks[0].chunk].effects[PL_IR_STEP_F].net;
  return fmax(buffers - needed, 0) * saved + fmax(buffers - 1, 0) * own->buffers.parameters * own->state.cast_bytes;
}

/* Behind the walk. Of other levels than kernels nobody knows what a framework holds. */
static double buffers_of(pl_pass_walk *own, const pl_ir_class *class) {
  if (own->module->level != PL_IR_KERNELS) return 0;
  const pl_job job = {.dtype = own->dtype, .framework = own->framework};
  own->buffers.zero = zero_of(own);
  bool whole = pl_framework_reduces_whole(own->framework, own->buffers.zero); /* without buckets */
  own->buffers.bytes = pl_training_state_of(&job, own->buffers.shares && !whole ? 2 : 1);
  own->buffers.sharded = own->elements + own->host_elements;
  return pl_copied_bytes(&own->buffers) + pipeline_buffer_bytes(own, class) + pl_unsharded_bytes(&own->buffers) +
         pl_narrow_copies_bytes(&own->buffers) + pl_extra_gradient_bytes(&own->buffers);
}

/* ---- classes that are alike ---- */

/* NULL: no memory. */
static int32_t *order_of(pl_pass_walk *own, const pl_ir_class *class) {
  int32_t n = class->n_chunks * PL_WALK_PASSES, n_found = 0, n_wanted = 0;
  for (int32_t c = 0; c < class->n_chunks; c++)
    n_wanted += 1 + (class->chunks[c].backward != PL_IR_NONE) + (class->chunks[c].weights != PL_IR_NONE);
  int32_t *order = PL_TAKE(own->arena, int32_t, n + 1);
  bool *seen = PL_TAKE(own->arena, bool, n + 1);
  for (int32_t s = 0; order != NULL && seen != NULL && s < class->n_steps && n_found < n_wanted; s++) {
    int32_t c = 0;
    while (class->chunks[c].chunk != class->steps[s].chunk)
      c++;
    int32_t pass = c * PL_WALK_PASSES + class->steps[s].kind;
    if (!seen[pass]) order[n_found++] = pass;
    seen[pass] = true;
  }
  if (order == NULL || seen == NULL) return NULL;
  order[n_found] = PL_IR_NONE;
  return order;
}

/* Behind the walk through a class; not where the host has a part in it, which is counted as it comes. */
static bool note_findings(pl_pass_walk *own, const pl_ir_class *class, const pl_training_state *bytes,
                          findings *found) {
  if (own->host_elements > 0 || own->host_gradients > 0 || own->host_peak > 0) return true;
  *found = (findings){.order = order_of(own, class),
                      .bytes = *bytes,
                      .chunks = own->chunks,
                      .parameters = own->made->parameters,
                      .gradients = own->made->gradients,
                      .gradient_elements = own->gradient_elements,
                      .elements = own->elements,
                      .buffers = own->buffers,
                      .gathers = own->gathers};
  return found->order != NULL;
}

/* Puts what a walk through this class would find there; false: it has to be walked through. */
static bool take_over(pl_pass_walk *own, const pl_ir_class *class, const pl_ir_class *like, const findings *found) {
  if (found->order == NULL || memcmp(&found->bytes, &own->buffers.bytes, sizeof found->bytes) != 0) return false;
  const int32_t *order = order_of(own, class);
  int32_t i = 0;
  while (order != NULL && order[i] == found->order[i] && order[i] != PL_IR_NONE)
    i++;
  if (order == NULL || order[i] != found->order[i]) return false;
  for (int32_t c = 0; c < class->n_chunks; c++)
    own->chunks[class->chunks[c].chunk] = found->chunks[like->chunks[c].chunk];
  own->made->parameters = found->parameters;
  own->made->gradients = found->gradients;
  own->gradient_elements = found->gradient_elements;
  own->elements = found->elements;
  own->buffers = found->buffers;
  own->gathers = found->gathers;
  return true;
}

/* ---- a class ---- */

/* `like`: the class that it is like; itself. `found` per class. */
static bool run_class(pl_pass_walk *own, const pl_ir_class *class, const pl_ir_class *like, findings *found) {
  const pl_training_state bytes = own->buffers.bytes;
  uint32_t n_entries = own->entries.count > own->most_entries ? own->entries.count : own->most_entries;
  own->entries = (pl_hash_index){0};
  own->most_entries = n_entries;
  for (int32_t i = 0; i < own->module->n_functions; i++)
    own->is_counted[i] = false;
  own->live = own->peak = own->elements = own->gradient_elements = own->block = own->block_before = own->added = 0;
  own->gathers = false;
  own->buffers.parameters = own->buffers.largest_parameters = own->buffers.largest_block = own->buffers.largest_pair =
      own->buffers.narrow = 0;
  own->host_elements = own->host_gradients = own->host_live = own->host_peak = 0;
  int32_t n_chunks = 0;
  for (int32_t i = 0; i < class->n_chunks; i++)
    if (class->chunks[i].chunk >= n_chunks) n_chunks = class->chunks[i].chunk + 1;
  own->chunks = PL_TAKE(own->arena, pl_chunk_walk, n_chunks + 1);
  if (own->chunks == NULL) return false;
  bool is_taken = like != class && take_over(own, class, like, &found[like - own->module->classes]);
  if (!is_taken && n_entries > 0 && !pl_hash_index_expect(&own->entries, n_entries, own->arena)) return false;
  for (int32_t i = 0; i < class->n_chunks && !is_taken; i++) {
    own->chunk = class->chunks[i].chunk;
    if (class->chunks[i].weights != PL_IR_NONE && !pl_pass_walk_weights(own, class->chunks[i].weights)) return false;
  }
  if (!run_steps(own, class)) return false;
  double peak = own->peak; /* in the update its values are the optimizer's */
  own->kind = PL_IR_STEP_B;
  own->keeps_for_weights = false;
  if (class->update != PL_IR_NONE && !is_taken && !pl_pass_walk_whole(own, class->update)) return false;
  own->made->values = peak;
  own->made->optimizer = own->elements * own->state.optimizer_bytes;
  own->made->host = own->host_elements * own->state.optimizer_bytes + own->host_gradients + own->host_peak;
  own->made->buffers = buffers_of(own, class);
  if (own->buffers.zero == 2 && own->state.cast_bytes > 0) /* FSDP's fp32 weights; what is computed with is a copy */
    own->made->parameters -= (own->buffers.parameters - own->buffers.sharded) * own->state.parameter_bytes;
  double update =
      own->elements * own->state.update_bytes * (own->framework->update.lists_update && own->buffers.zero == 0 ? 2 : 1);
  if (own->framework->update.holds_update) {
    own->made->buffers += update;
    update = 0;
  }
  if (own->steps != NULL) own->steps[class->n_steps] = (pl_step_memory){0, update};
  own->made->steps = own->steps;
  own->made->peak = pl_class_stays_bytes(own->made) + fmax(peak, update);
  return is_taken || note_findings(own, class, &bytes, &found[class - own->module->classes]);
}

static double capacity_of(const pl_pass_walk *own, const pl_cluster *cluster, const pl_ir_class *class,
                          pl_communicators communicators) {
  double least = HUGE_VAL;
  const pl_framework *framework = own->framework;
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&own->module->mesh) && d < cluster->n_devices; d++) {
    const pl_device_profile *profile = &cluster->profiles[cluster->devices[d].profile];
    if (!pl_ir_class_has(own->module, class, d)) continue;
    double outside = pl_memory_outside_bytes(framework, profile, communicators);
    least = fmin(least, (profile->memory_bytes - outside) / (1 + framework->memory.fragmentation) -
                            framework->memory.workspace_bytes);
  }
  return least;
}

/* The type that a program computes in: that of its narrowest parameter. */
pl_dtype pl_program_dtype(const pl_ir_module *module) {
  pl_dtype found = PL_DTYPE_COUNT;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      if (!is(op, "param")) continue;
      pl_dtype dtype = (pl_dtype)module->functions[f]->values[op->first_output].type.element;
      if (found == PL_DTYPE_COUNT || pl_dtype_bytes(dtype) < pl_dtype_bytes(found)) found = dtype;
    }
  return found == PL_DTYPE_COUNT ? PL_DTYPE_FP32 : found;
}

/* Whether several devices hold the same parameters, as data and context ranks do. */
static bool shares(const pl_ir_module *module) {
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++) {
    const char *name = module->mesh.axes[axis].name.text;
    if ((strncmp(name, "dp", 2) == 0 || strncmp(name, "cp", 2) == 0) && module->mesh.axes[axis].extent > 1) return true;
  }
  return false;
}

/* Behind what has no other operand (gathers, cuts, casts, copies): the value that another is made of. */
static int32_t source_of(const pl_ir_function *f, int32_t value) {
  int32_t maker = f->values[value].op;
  while (maker != PL_IR_NONE && f->ops[maker].n_inputs == 1) {
    value = f->ops[maker].inputs[0];
    maker = f->values[value].op;
  }
  return value;
}

/* Whether what an op launches multiplies with a parameter; products of two activations are attention's. */
static bool multiplies_parameter(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_launched_ops of = pl_ir_launched_by(module, f, op);
  for (int32_t i = 0; i < of.n; i++)
    for (int32_t k = 0; pl_ir_op_is(&of.ops[i], "product") && k < of.ops[i].n_inputs; k++) {
      int32_t value = source_of(of.f, of.ops[i].inputs[k]);
      if (of.f != f && value >= of.f->n_arguments) continue; /* made in the kernel */
      if (of.f != f) value = source_of(f, op->inputs[value]);
      int32_t maker = f->values[value].op;
      if (maker != PL_IR_NONE && pl_ir_op_is(&f->ops[maker], "param")) return true;
    }
  return false;
}

/* Whether products with parameters are made again, which are used thrice then. */
static bool recomputes(const pl_ir_module *module, pl_arena *scratch) {
  for (int32_t f = 0; f < module->n_functions; f++) {
    const pl_ir_function *of = module->functions[f];
    const bool *again = pl_ir_again_take_if_derived(of, scratch);
    for (int32_t i = 0; again != NULL && i < of->n_ops; i++)
      if (again[i] && multiplies_parameter(module, of, &of->ops[i])) return true;
  }
  return false;
}

static pl_code take(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                    const pl_ir_recurrence *recurrence, bool steps, pl_arena *arena, pl_class_memory **memory,
                    pl_error *error) {
  const pl_job job = {.dtype = pl_program_dtype(module), .framework = framework};
  *memory = PL_TAKE(arena, pl_class_memory, module->n_classes + 1);
  if (*memory == NULL) return pl_fail_memory(error, "what a program holds");
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  pl_pass_walk own = {.module = module,
                      .recurrence = recurrence,
                      .framework = pl_framework_or_ideal(framework),
                      .dtype = job.dtype,
                      .joins = pl_ir_module_joins_steps(module),
                      .routing = pl_ir_routing_of(module),
                      .state = pl_training_state_of(&job, 1),
                      .arena = &scratch};
  pl_arena_init(&own.frames, 0);
  own.buffers = (pl_buffer_facts){.framework = own.framework,
                                  .bytes = own.state,
                                  .made_bytes = pl_dtype_bytes(job.dtype),
                                  .bucket_bytes = own.framework->gradients.bucket_bytes,
                                  .shares = shares(module),
                                  .recomputes = recomputes(module, &scratch)};
  if (module->level != PL_IR_KERNELS) own.buffers.bytes.pass_gradient_bytes = 0;
  own.outlooks = pl_outlooks_take(module, own.framework, &scratch);
  own.is_counted = PL_TAKE(&scratch, bool, module->n_functions + 1);
  const int32_t *likes = pl_ir_alike_take(module, &scratch);
  findings *found = PL_TAKE(&scratch, findings, module->n_classes + 1);
  const pl_communicators *communicators =
      likes != NULL ? pl_program_communicators_take(cluster, module, likes, &scratch) : NULL;
  bool fits = own.outlooks != NULL && own.is_counted != NULL && communicators != NULL && found != NULL;
  for (int32_t c = 0; fits && c < module->n_classes; c++) {
    own.made = &(*memory)[c];
    own.steps = steps ? PL_TAKE(arena, pl_step_memory, module->classes[c].n_steps + 1) : NULL;
    fits = (!steps || own.steps != NULL) && run_class(&own, &module->classes[c], &module->classes[likes[c]], found);
    own.made->capacity = capacity_of(&own, cluster, &module->classes[c], communicators[c]);
  }
  pl_arena_release(&own.frames);
  pl_arena_release(&scratch);
  return fits ? PL_OK : pl_fail_memory(error, "what a program holds");
}

pl_code pl_program_memory_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                               const pl_ir_recurrence *recurrence, pl_arena *arena, pl_class_memory **memory,
                               pl_error *error) {
  return take(cluster, module, framework, recurrence, false, arena, memory, error);
}

pl_code pl_program_memory_of_steps(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                                   pl_arena *arena, pl_class_memory **memory, pl_error *error) {
  return take(cluster, module, framework, NULL, true, arena, memory, error);
}
