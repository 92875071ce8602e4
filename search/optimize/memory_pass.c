/* Which of the passes that save memory is taken (see search/optimize/memory_pass.h). */
#include "search/optimize/memory_pass.h"

#include <string.h>

#include "core/base/units.h"
#include "search/optimize/trace_memory.h"

/* An op that holds activations, and the one that reads them last; units. */
typedef struct holder {
  uint32_t unit, reader, first; /* `first`: with what is run again to make it, units first .. unit */
  double bytes;
} holder;

typedef struct saving {
  pl_step_model *model;
  const pl_step_costs *costs;
  const pl_memory_options *options;
  pl_arena *arena;
  holder *holders; /* class by class, in order */
  uint32_t n_holders;
  double state, activations; /* of the rank that holds most */
  pl_memory_plan *plan;
  pl_error *error;
} saving;

static const char *name_of(const saving *own, uint32_t unit) {
  return own->model->replay->trace->names[own->model->units[unit].name];
}

static uint32_t class_of(const saving *own, uint32_t unit) {
  return own->model->units[unit].class_index;
}

static pl_code find_reader(saving *own, uint32_t unit, const char *name, uint32_t *reader) {
  uint32_t n = 0;
  for (uint32_t u = 0; u < own->model->n_units; u++)
    if (class_of(own, u) == class_of(own, unit) && strcmp(name_of(own, u), name) == 0) {
      *reader = u;
      n++;
    }
  if (n == 1 && *reader > unit) return PL_OK;
  return pl_fail(own->error, PL_BAD_INPUT,
                 "--op-cost: '%.60s' is read by '%.60s', which the step does %s: it must come once, behind it",
                 name_of(own, unit), name,
                 n == 0  ? "nowhere"
                 : n > 1 ? "several times"
                         : "before it");
}

/* As the trace recorded the allocator: what stands between two ops that keep something is run again with the second. */
static pl_code find_recorded(saving *own) {
  const pl_step_model *model = own->model;
  pl_unit_memory *memory;
  if (!pl_unit_memory_take(model, own->arena, &memory)) return pl_fail_memory(own->error, "a memory pass");
  for (uint32_t u = 0; u < model->n_units; u++) {
    if (memory[u].bytes <= 0) continue;
    const holder *last = own->n_holders > 0 ? &own->holders[own->n_holders - 1] : NULL;
    uint32_t first = last != NULL && class_of(own, last->unit) == class_of(own, u) ? last->unit + 1 : u;
    own->holders[own->n_holders++] = (holder){u, memory[u].reader, first, memory[u].bytes};
  }
  own->plan->is_recorded = own->n_holders > 0;
  return PL_OK;
}

static pl_code find_holders(saving *own) {
  const pl_op_costs *given = own->costs->given;
  const pl_step_model *model = own->model;
  own->holders = PL_TAKE(own->arena, holder, model->n_units + 1);
  double *held = PL_TAKE(own->arena, double, model->n_classes + 1);
  if (own->holders == NULL || held == NULL) return pl_fail_memory(own->error, "a memory pass");
  for (uint32_t u = 0; u < model->n_units; u++) {
    const pl_op_cost_row *row = given != NULL ? pl_op_costs_find(given, name_of(own, u)) : NULL;
    if (row == NULL || row->activation_bytes <= 0) continue;
    holder *h = &own->holders[own->n_holders++];
    *h = (holder){u, PL_NONE, u, row->activation_bytes};
    PL_TRY(find_reader(own, u, row->read_by, &h->reader));
  }
  if (own->n_holders == 0) PL_TRY(find_recorded(own));
  for (uint32_t h = 0; h < own->n_holders; h++)
    held[class_of(own, own->holders[h].unit)] += own->holders[h].bytes;
  for (uint32_t c = 0; c < model->n_classes; c++)
    if (held[c] > own->activations) own->activations = held[c];
  return PL_OK;
}

static pl_code count(saving *own) {
  const pl_step_model *model = own->model;
  const char *name = own->options->recompute ? "recompute" : "accumulate";
  double gradients = 0;
  if (own->options->budget_bytes < 0)
    return pl_fail(own->error, PL_BAD_INPUT, "%s: needs --memory-budget BYTES, what a device may hold", name);
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    if (model->tensors[k].size_bytes < 0)
      return pl_fail(own->error, PL_BAD_INPUT,
                     "%s: the gradients' sizes are not recorded, so weights cannot be counted", name);
    gradients += (double)model->tensors[k].size_bytes;
  }
  PL_TRY(find_holders(own));
  if (own->n_holders == 0)
    return pl_fail(
        own->error, PL_BAD_INPUT,
        "%s: the trace has no sizes of activations: record it with profile_memory=True, or --op-cost FILE says them: "
        "columns ops, activation_bytes and read_by",
        name);
  own->state = gradients * (double)own->options->state_copies;
  own->plan->state_bytes = own->state;
  own->plan->before_bytes = own->plan->after_bytes = own->state + own->activations;
  return PL_OK;
}

static pl_ticks play(saving *own, const pl_step_model *model) {
  pl_step_plan nothing;
  if (!pl_step_plan_take(model, own->arena, &nothing)) return -1;
  return pl_step_plan_play(model, own->costs, &nothing, own->arena);
}

/* Takes the way if it is the fastest yet; true. */
static bool offer(saving *own, pl_memory_way way, uint32_t n, double bytes, pl_ticks ticks, bool *again) {
  pl_memory_plan *plan = own->plan;
  if (plan->way != PL_MEMORY_AS_IS && ticks >= plan->after) return false;
  plan->way = way;
  plan->n = n;
  plan->after_bytes = bytes;
  plan->after = ticks;
  plan->again = again;
  return true;
}

/* ---- accumulate: the fewest batches that fit ---- */

static pl_code accumulate(saving *own, pl_step_model *best) {
  for (uint32_t n = 2; n <= PL_MEMORY_MOST_PARTS; n++) {
    double bytes = own->state + own->activations / n;
    pl_step_model model;
    if (bytes > own->options->budget_bytes) continue;
    if (!pl_step_model_repeat(own->model, own->costs, n, own->arena, &model))
      return pl_fail_memory(own->error, "a step of several batches");
    pl_ticks ticks = play(own, &model);
    if (ticks < 0) return pl_fail_memory(own->error, "a step of several batches");
    if (ticks != PL_TICKS_NEVER && offer(own, PL_MEMORY_ACCUMULATE, n, bytes, ticks, NULL)) *best = model;
    return PL_OK;
  }
  return PL_OK;
}

/* ---- recompute ---- */

/* Holders a..b-1 are of one class. Bytes at most at once in `n` segments; marks what is run again. */
static double cut_class(const saving *own, uint32_t a, uint32_t b, uint32_t n, bool *again) {
  double kept = 0, most = 0;
  for (uint32_t s = 0; s < n; s++) {
    uint32_t from = a + (b - a) * s / n, to = a + (b - a) * (s + 1) / n;
    double inside = 0;
    for (uint32_t h = from; h < to; h++) {
      again[own->holders[h].unit] = h + 1 < to;
      if (h + 1 < to)
        inside += own->holders[h].bytes;
      else
        kept += own->holders[h].bytes;
    }
    if (inside > most) most = inside;
  }
  return kept + most;
}

/* One task in front of the first reader of each segment, per rank. */
static uint32_t insert_class(const saving *own, uint32_t a, uint32_t b, uint32_t n, pl_step_insertion *out) {
  const pl_step_model *model = own->model;
  uint32_t made = 0;
  for (uint32_t s = 0; s < n; s++) {
    uint32_t from = a + (b - a) * s / n, to = a + (b - a) * (s + 1) / n, reader = PL_NONE;
    for (uint32_t h = from; h + 1 < to; h++)
      if (own->holders[h].reader < reader) reader = own->holders[h].reader;
    if (reader == PL_NONE) continue;
    for (uint32_t m = 0; m < model->units[reader].n_members; m++) {
      pl_step_insertion *one = &out[made++];
      *one = (pl_step_insertion){model->members[model->units[reader].first_member + m].gate, 0};
      for (uint32_t h = from; h + 1 < to; h++)
        for (uint32_t u = own->holders[h].first; u <= own->holders[h].unit; u++) {
          if (m >= model->units[u].n_members) continue;
          const pl_step_member *op = &model->members[model->units[u].first_member + m];
          one->ticks = pl_ticks_sum(one->ticks, pl_ticks_sum(model->ticks[op->gate], model->ticks[op->body]));
        }
    }
  }
  return made;
}

static pl_code recompute(saving *own, pl_step_model *best) {
  const pl_step_model *model = own->model;
  pl_step_insertion *insertions = PL_TAKE(own->arena, pl_step_insertion, (size_t)model->n_members + 1);
  if (insertions == NULL) return pl_fail_memory(own->error, "a step with recomputation");
  for (uint32_t n = 1; n <= own->n_holders; n++) {
    bool *again = PL_TAKE(own->arena, bool, model->n_units + 1);
    double bytes = 0;
    uint32_t made = 0;
    if (again == NULL) return pl_fail_memory(own->error, "a step with recomputation");
    for (uint32_t a = 0, b; a < own->n_holders; a = b) {
      for (b = a; b < own->n_holders && class_of(own, own->holders[b].unit) == class_of(own, own->holders[a].unit);)
        b++;
      double held = cut_class(own, a, b, n < b - a ? n : b - a, again);
      if (held > bytes) bytes = held;
      made += insert_class(own, a, b, n < b - a ? n : b - a, insertions + made);
    }
    if (own->state + bytes > own->options->budget_bytes || made == 0) continue;
    pl_step_model changed;
    if (!pl_step_model_insert(model, insertions, made, own->arena, &changed))
      return pl_fail_memory(own->error, "a step with recomputation");
    pl_ticks ticks = play(own, &changed);
    if (ticks < 0) return pl_fail_memory(own->error, "a step with recomputation");
    if (ticks != PL_TICKS_NEVER && offer(own, PL_MEMORY_RECOMPUTE, n, own->state + bytes, ticks, again))
      *best = changed;
  }
  return PL_OK;
}

pl_code pl_memory_pass(pl_step_model *model, const pl_step_costs *costs, const pl_memory_options *options,
                       pl_arena *arena, pl_memory_plan *plan, pl_error *error) {
  saving own = {.model = model, .costs = costs, .options = options, .arena = arena, .plan = plan, .error = error};
  pl_step_model best = *model;
  char held[PL_UNIT_TEXT_BYTES], budget[PL_UNIT_TEXT_BYTES];
  *plan = (pl_memory_plan){.way = PL_MEMORY_AS_IS};
  PL_TRY(count(&own));
  plan->before = plan->after = play(&own, model);
  if (plan->before < 0) return pl_fail_memory(error, "a memory pass");
  if (plan->before_bytes <= options->budget_bytes) return PL_OK;
  if (options->accumulate) PL_TRY(accumulate(&own, &best));
  if (options->recompute) PL_TRY(recompute(&own, &best));
  if (plan->way == PL_MEMORY_AS_IS)
    return pl_fail(error, PL_BAD_INPUT,
                   "the step holds %s, of which %s fit, and nothing that was asked for saves enough",
                   pl_format_bytes(plan->before_bytes, held), pl_format_bytes(options->budget_bytes, budget));
  *model = best;
  return PL_OK;
}
