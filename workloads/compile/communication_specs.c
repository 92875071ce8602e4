/* The transfers of a communication plan, one per op of each class of groups: see workloads/compile/communication.h. */
#include <math.h>

#include "workloads/compile/communication_state.h"

/* With no other transfer on its links. Classes do not know this rate: the uses of a folded transfer are those of all
 * transfers of its class on a link. The arithmetic is that of pl_transfer_solo_rate. Ops of one pattern have the same
 * links. */
static double alone_rate(const pl_planning *state, const pl_raw_op *raw) {
  pl_pattern *pattern = &state->patterns[raw->pattern];
  double share = raw->share_weight;
  if (pattern->wires_for != share) {
    pattern->wires_for = share;
    pattern->wires_Bps = INFINITY;
    for (uint32_t use = 0; use < pattern->n_uses; use++) {
      double capacity_Bps = state->cluster->links[pattern->uses[use].link].capacity_Bps;
      double own_Bps = capacity_Bps / (pattern->uses[use].weight * share) * share;
      if (own_Bps < pattern->wires_Bps) pattern->wires_Bps = own_Bps;
    }
  }
  return fmin(raw->rate_cap_Bps, pattern->wires_Bps);
}

static pl_transfer_spec alone_spec(const pl_planning *state, const pl_raw_op *raw) {
  return (pl_transfer_spec){.rate_cap_Bps = alone_rate(state, raw),
                            .share_weight = raw->share_weight,
                            .latency = raw->latency - raw->flight,
                            .source = raw->source,
                            .destination = raw->destination};
}

/* Until it has arrived. */
static pl_ticks solo_ticks(const pl_transfer_table *table, uint32_t spec, const pl_raw_op *raw) {
  return pl_ticks_sum(pl_transfer_solo_ticks(table, spec, raw->progress_bytes), raw->flight);
}

pl_code pl_communication_make_specs(pl_planning *state) {
  pl_communication_plan *plan = state->plan;
  uint32_t n_specs = 0;
  for (uint32_t c = 0; c < plan->n_group_classes; c++) {
    state->group_classes[c].first_op = n_specs;
    n_specs += state->program->families[plan->group_classes[c].family].n_ops;
  }
  pl_transfer_spec *specs = PL_TAKE(state->arena, pl_transfer_spec, n_specs);
  pl_lowered_op *ops = PL_TAKE(state->arena, pl_lowered_op, n_specs);
  if (state->arena->failed) return pl_fail_memory(state->error, "the communication plan");
  const pl_quotient *quotient = &plan->quotient;
  plan->table = (pl_transfer_table){.link_capacity_Bps = quotient->link_capacity_Bps,
                                    .link_policy = quotient->link_policy,
                                    .n_links = quotient->n_links,
                                    .specs = specs,
                                    .n_specs = n_specs,
                                    .uses = quotient->uses,
                                    .n_uses = quotient->n_uses};
  PL_ASSERT(state->folding.fold.transfers.class_of != NULL);
  for (uint32_t c = 0; c < plan->n_group_classes; c++) {
    const pl_group_class *class = &plan->group_classes[c];
    const pl_family *family = &state->program->families[class->family];
    for (uint32_t op = 0; op < family->n_ops; op++) {
      const pl_raw_op *raw = &state->raw[state->first_raw[class->family] + class->group * family->n_ops + op];
      uint32_t transfer_class = state->folding.fold.transfers.class_of[raw->pattern], spec = class->first_op + op;
      const pl_quotient_transfer *transfer = &quotient->transfers[transfer_class];
      specs[spec] = (pl_transfer_spec){.first_use = transfer->first_use,
                                       .n_uses = transfer->n_uses,
                                       .rate_cap_Bps = fmin(raw->rate_cap_Bps, transfer->rate_cap_Bps),
                                       .share_weight = raw->share_weight,
                                       .latency = raw->latency - raw->flight,
                                       .source = raw->source,
                                       .destination = raw->destination};
      const pl_transfer_spec alone = alone_spec(state, raw);
      if (state->options->alone) specs[spec] = alone;
      ops[spec] =
          (pl_lowered_op){.spec = spec,
                          .transfer_class = transfer_class,
                          .progress_bytes = raw->progress_bytes,
                          .solo_ticks = solo_ticks(&plan->table, spec, raw),
                          .alone_ticks = solo_ticks(&(pl_transfer_table){.specs = &alone, .n_specs = 1}, 0, raw),
                          .flight_ticks = raw->flight,
                          .has_rivals = !state->options->prune || specs[spec].n_uses > 0};
    }
  }
  plan->ops = ops;
  return PL_OK;
}
