/* See workloads/compile/block_scale.h. */
#include "workloads/compile/block_scale.h"

#include <math.h>
#include <string.h>

#include "workloads/compile/host_floor.h"
#include "workloads/lower/block_program.h"

/* ---- what a pass takes, by the cost model ---- */

typedef struct sight {
  const pl_program *program;
  const pl_communication_plan *plan;
  const pl_device_profile *profile;
  const pl_group_class *tensor; /* NULL: none */
  bool knows_collectives;       /* measurements with collectives inside can be told apart from them */
} sight;

typedef struct pass_work {
  double device_s, collectives_s, host_s;
} pass_work;

static double collective_s(const sight *own, const pl_op *op) {
  if (own->tensor == NULL || own->plan->ops == NULL) return 0;
  const pl_family *family = &own->program->families[own->tensor->family];
  for (uint32_t i = 0; i < family->n_ops; i++)
    if (family->ops[i].kind == (pl_collective_kind)op->collective && family->ops[i].size_bytes == op->size_bytes)
      return pl_ticks_to_s(own->plan->ops[own->tensor->first_op + i].alone_ticks);
  return 0;
}

static pass_work work_of(const sight *own, const pl_block_program *block, bool backward) {
  const pl_framework *framework = pl_framework_or_ideal(own->program->job->framework);
  const pl_op_list *list = backward ? &block->backward : &block->forward;
  pass_work work = {0, 0, 0};
  for (uint32_t i = 0; i < list->n_ops; i++) {
    const pl_op *op = &list->ops[i];
    bool is_tensor = op->kind == PL_OP_COLLECTIVE && op->group == PL_GROUP_TENSOR;
    if (op->kind == PL_OP_COLLECTIVE && (!is_tensor || own->tensor == NULL)) continue;
    if (is_tensor) {
      work.collectives_s += collective_s(own, op);
      work.host_s += pl_host_s_of_collective(framework, own->program->families[own->tensor->family].group_size);
      continue;
    }
    work.device_s += pl_op_cost(own->profile, op).time_s;
    work.host_s += pl_host_s_of_op(framework, block, op, backward);
  }
  return work;
}

/* ---- measured passes ---- */

static bool is_mine(const sight *own, const pl_pass_time *time, int32_t block_class, bool backward) {
  const pl_program *program = own->program;
  return time->backward == backward && strcmp(time->device, own->profile->name) == 0 &&
         pl_measured_is_of_job(time, program->model, block_class, program->job, program->strategy) &&
         (!time->has_collectives || own->knows_collectives);
}

static double distance(int32_t a, int32_t b) {
  return fabs(log2((double)a / (double)b));
}

/* Of this tensor degree with the nearest microbatch; NULL: none. `at_most`: none larger than the strategy's. */
static const pl_pass_time *nearest(const sight *own, int32_t block_class, bool backward, int32_t tmp, bool at_most) {
  const pl_op_profile *profile = own->program->job->op_profile;
  const pl_pass_time *best = NULL;
  int32_t mbs = own->program->strategy->mbs;
  for (uint32_t i = 0; i < profile->n_times; i++) {
    const pl_pass_time *time = &profile->times[i];
    if (time->tmp != tmp || (at_most && time->mbs > mbs) || !is_mine(own, time, block_class, backward)) continue;
    if (best == NULL || distance(time->mbs, mbs) < distance(best->mbs, mbs) ||
        (distance(time->mbs, mbs) <= distance(best->mbs, mbs) && time->mbs > best->mbs))
      best = time;
  }
  return best;
}

/* Measured work of the device over the modelled; 0: it cannot be told. */
static double ratio_of(const sight *own, int32_t block_class, const pl_pass_time *time) {
  if (time == NULL) return 0;
  const pl_measured_block *block =
      pl_measured_block_find(own->program->measured, own->program->n_measured, block_class, time);
  PL_ASSERT(block != NULL); /* the program made those that is_of_job lets through */
  pass_work work = work_of(own, &block->program, time->backward);
  double left_s = time->time_s - (time->has_collectives ? work.collectives_s : 0);
  return work.device_s > 0 && left_s > 0 ? left_s / work.device_s : 0;
}

static pl_block_scale scale_of(const sight *own, int32_t block_class, bool backward) {
  const pl_strategy *strategy = own->program->strategy;
  const pl_pass_time *whole = nearest(own, block_class, backward, 1, false);
  const pl_pass_time *split = strategy->tmp > 1 ? nearest(own, block_class, backward, strategy->tmp, false) : NULL;
  const double ratios[] = {ratio_of(own, block_class, whole), ratio_of(own, block_class, split)};
  pl_block_scale scale = {.device = 1, .source = PL_COST_TABLE};
  if (whole == NULL && split == NULL) return scale;
  scale.source = PL_COST_SCALED_BLOCK;
  if (ratios[0] > 0 && ratios[1] > 0)
    scale.device = fmin(ratios[0], ratios[1]);
  else if (ratios[0] > 0 || ratios[1] > 0)
    scale.device = fmax(ratios[0], ratios[1]);
  if (!pl_measured_is_plain(strategy)) return scale;
  const pl_pass_time *floor = nearest(own, block_class, backward, strategy->tmp, true);
  if (floor == NULL) return scale;
  if (floor->mbs == strategy->mbs) scale.source = PL_COST_MEASURED_BLOCK;
  scale.floor_s = floor->time_s;
  if (strategy->tmp > 1 && !floor->has_collectives)
    scale.floor_s += work_of(own, &own->program->blocks[block_class], backward).collectives_s;
  return scale;
}

/* A backward pass that was not measured, of a block whose forward pass was. */
static pl_block_scale derived_scale(const sight *own, int32_t block_class, const pl_block_scale *forward) {
  const pl_block_program *block = &own->program->blocks[block_class];
  pass_work there = work_of(own, block, false), back = work_of(own, block, true);
  double more = there.host_s > 0 ? back.host_s / there.host_s
                                 : (back.device_s + back.collectives_s) / (there.device_s + there.collectives_s);
  return (pl_block_scale){.device = forward->device,
                          .floor_s = isfinite(more) ? more * forward->floor_s : 0,
                          .source = PL_COST_SCALED_BLOCK};
}

static bool is_inside_a_node(const pl_cluster *cluster, const pl_program *program, const pl_group_class *class) {
  const pl_family *family = &program->families[class->family];
  const uint32_t *members = family->members + (size_t) class->group * family->group_size;
  for (uint32_t i = 1; i < family->group_size; i++)
    if (cluster->devices[members[i]].node != cluster->devices[members[0]].node) return false;
  return true;
}

bool pl_block_scales_of(const pl_cluster *cluster, const pl_program *program, const pl_communication_plan *plan,
                        const pl_device_class *device, pl_block_scale scales[PL_MODEL_CLASSES_MAX][2]) {
  if (program->job->op_profile == NULL) return false;
  uint32_t class = device->group_class[PL_SLOT_TENSOR];
  sight own = {.program = program, .plan = plan, .profile = pl_cluster_profile(cluster, device->device)};
  if (class != PL_NONE) own.tensor = &plan->group_classes[class];
  own.knows_collectives = own.tensor != NULL && plan->ops != NULL && is_inside_a_node(cluster, program, own.tensor);
  for (int32_t c = 0; c < pl_model_n_classes(program->model); c++) {
    pl_block_scale *scale = scales[c];
    scale[0] = scale_of(&own, c, false);
    scale[1] = scale_of(&own, c, true);
    if (scale[0].source != PL_COST_TABLE && scale[1].source == PL_COST_TABLE)
      scale[1] = derived_scale(&own, c, &scale[0]);
  }
  return true;
}

pl_op_time pl_block_scaled_cost(pl_op_time cost, const pl_block_scale (*scales)[2], int32_t block_class,
                                const pl_op *op) {
  if (scales == NULL) return cost;
  const pl_block_scale *scale = &scales[block_class][op->category == PL_CATEGORY_BACKWARD];
  if (scale->source == PL_COST_TABLE) return cost;
  cost.time_s *= scale->device;
  cost.source = scale->source;
  return cost;
}
