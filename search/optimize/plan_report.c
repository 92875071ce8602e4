/* See search/optimize/plan_report.h. */
#include "search/optimize/plan_report.h"

#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/text/json_writer.h"

static double change(pl_ticks after, pl_ticks before) {
  return before > 0 ? 100 * ((double)after / (double)before - 1) : 0;
}

static int64_t size_of(const pl_step_model *model, uint32_t first, uint32_t end) {
  int64_t size = 0;
  for (uint32_t k = first; k < end; k++) {
    if (model->tensors[k].size_bytes < 0) return -1;
    size += model->tensors[k].size_bytes;
  }
  return size;
}

static const char *unit_name(const pl_step_model *model, uint32_t unit) {
  return model->replay->trace->names[model->units[unit].name];
}

static bool has_memory(const pl_optimize_options *options) {
  return options->passes.has[PL_PASS_RECOMPUTE] || options->passes.has[PL_PASS_ACCUMULATE];
}

/* ---- JSON ---- */

static void put_tensor(pl_json *json, const pl_step_model *model, uint32_t k) {
  pl_json_open_object(json);
  pl_json_put_integer(json, "tensor", k);
  pl_json_put_string(json, "name", model->tensors[k].name);
  if (model->tensors[k].size_bytes >= 0) pl_json_put_integer(json, "bytes", model->tensors[k].size_bytes);
  pl_json_close_object(json);
}

static void put_buckets(pl_json *json, const pl_optimization *job) {
  const pl_step_model *model = &job->whole;
  const pl_step_plan *plan = &job->search.plan;
  pl_json_key(json, "buckets");
  pl_json_open_array(json);
  for (uint32_t k = 0, end; k < model->n_tensors; k = end) {
    end = pl_step_plan_end(model, plan, k);
    int64_t size = size_of(model, k, end);
    uint32_t parts = pl_step_plan_parts(plan, k);
    pl_json_open_object(json);
    pl_json_put_integer(json, "chain", model->tensors[k].chain);
    pl_json_put_integer(json, "pieces", parts);
    if (size >= 0) {
      pl_json_put_integer(json, "bytes", size);
      pl_json_put_integer(json, "piece_bytes", (size + parts - 1) / parts);
    }
    pl_json_key(json, "tensors");
    pl_json_open_array(json);
    for (uint32_t t = k; t < end; t++)
      put_tensor(json, model, t);
    pl_json_close_array(json);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_groups(pl_json *json, const pl_optimization *job) {
  const pl_step_model *model = &job->whole;
  const pl_trace *trace = model->replay->trace;
  pl_json_key(json, "fused_ops");
  pl_json_open_array(json);
  for (uint32_t u = 0, end; u < model->n_units; u = end) {
    end = pl_step_plan_unit_end(model, &job->search.plan, u);
    if (end == u + 1) continue;
    pl_json_open_object(json);
    pl_json_key(json, "ops");
    pl_json_open_array(json);
    for (uint32_t k = u; k < end; k++)
      pl_json_string(json, unit_name(model, k));
    pl_json_close_array(json);
    pl_json_key(json, "ranks");
    pl_json_open_array(json);
    for (uint32_t k = 0; k < model->units[u].n_members; k++) {
      uint32_t op = model->members[model->units[u].first_member + k].op;
      pl_json_integer(json, trace->ranks[pl_trace_rank_of(trace, op)].number);
    }
    pl_json_close_array(json);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_subject(pl_json *json, const pl_step_model *model, const pl_search_step *step) {
  switch ((pl_search_move)step->move) {
  case PL_MOVE_FUSE_MAKERS:
    pl_json_put_integer(json, "tensor", step->subject);
    break;
  case PL_MOVE_PART_OPS:
  case PL_MOVE_FUSE_OPS:
    pl_json_put_string(json, "op", unit_name(model, step->subject));
    pl_json_put_string(json, "with", unit_name(model, step->subject - 1));
    break;
  case PL_MOVE_FUSE_TENSORS:
  case PL_MOVE_PART_TENSORS:
    pl_json_put_integer(json, "tensor", step->subject);
    pl_json_put_integer(json, "with", step->subject - 1);
    break;
  case PL_MOVE_CUT:
    pl_json_put_integer(json, "tensor", step->subject);
    pl_json_put_integer(json, "pieces", step->value);
    break;
  case PL_MOVE_CAP:
  case PL_MOVE_PIECES:
    pl_json_put_integer(json, "bytes", step->value);
    break;
  case PL_MOVE_BUCKETS:
    pl_json_put_integer(json, "tensor", step->subject);
    pl_json_put_integer(json, "tensors", step->value);
    break;
  case PL_MOVE_PASS:
    pl_json_put_integer(json, "round", step->subject);
    pl_json_put_integer(json, "changes", step->value);
    break;
  case PL_MOVE_ANNEAL:
    pl_json_put_integer(json, "run", step->subject);
    pl_json_put_integer(json, "tries", step->value);
    break;
  default:
    pl_json_put_integer(json, "ops", step->value);
  }
}

static void put_steps(pl_json *json, const pl_optimization *job) {
  const pl_plan_search *search = &job->search;
  pl_json_key(json, "search");
  pl_json_open_object(json);
  pl_json_put_integer(json, "replays", search->n_replays);
  pl_json_put_integer(json, "whole_replays", search->n_whole_replays);
  pl_json_put_integer(json, "ruled_out_by_theorems", search->n_ruled_out);
  pl_json_put_integer(json, "tasks", job->whole.n);
  pl_json_put_integer(json, "coarsened_tasks", job->coarse.n);
  pl_json_key(json, "steps");
  pl_json_open_array(json);
  for (uint32_t k = 0; k < search->n_steps; k++) {
    const pl_search_step *step = &search->steps[k];
    pl_json_open_object(json);
    pl_json_put_string(json, "change", pl_search_move_names[step->move]);
    put_subject(json, &job->whole, step);
    pl_json_put_string(json, "why", step->why);
    pl_json_put_number(json, "before_s", pl_ticks_to_s(step->before));
    pl_json_put_number(json, "after_s", pl_ticks_to_s(step->after));
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
  pl_json_close_object(json);
}

static void put_memory(pl_json *json, const pl_optimization *job) {
  static const char *const ways[] = {"none needed", "recompute", "accumulate"};
  const pl_memory_plan *memory = &job->memory;
  pl_json_key(json, "memory");
  pl_json_open_object(json);
  pl_json_put_string(json, "taken", ways[memory->way]);
  pl_json_put_number(json, "before_bytes", memory->before_bytes);
  pl_json_put_number(json, "after_bytes", memory->after_bytes);
  pl_json_put_number(json, "state_bytes", memory->state_bytes);
  pl_json_put_number(json, "before_s", pl_ticks_to_s(memory->before));
  pl_json_put_number(json, "after_s", pl_ticks_to_s(memory->after));
  if (memory->way != PL_MEMORY_AS_IS)
    pl_json_put_integer(json, memory->way == PL_MEMORY_ACCUMULATE ? "batches" : "segments", memory->n);
  if (memory->again != NULL) {
    pl_json_key(json, "computed_again");
    pl_json_open_array(json);
    for (uint32_t u = 0; u < job->whole.n_units; u++)
      if (memory->again[u]) pl_json_string(json, unit_name(&job->whole, u));
    pl_json_close_array(json);
  }
  pl_json_close_object(json);
}

static void put_half(pl_json *json, const pl_optimization *job) {
  pl_json_key(json, "half_precision_ops");
  pl_json_open_array(json);
  for (uint32_t u = 0; u < job->whole.n_units; u++)
    if (job->search.plan.narrows[u]) pl_json_string(json, unit_name(&job->whole, u));
  pl_json_close_array(json);
}

/* Means over the steps that are like that of the plan; how many there are. */
static uint32_t mean_steps(const pl_optimization *job, double *before_s, double *after_s) {
  uint32_t n = 0;
  *before_s = *after_s = 0;
  for (uint32_t k = 0; k < job->n_others; k++)
    n += job->others[k].is_alike;
  for (uint32_t k = 0; k < job->n_others; k++)
    if (job->others[k].is_alike) {
      *before_s += pl_ticks_to_s(job->others[k].before) / n;
      *after_s += pl_ticks_to_s(job->others[k].after) / n;
    }
  return n;
}

static void put_others(pl_json *json, const pl_optimization *job) {
  pl_json_key(json, "steps");
  pl_json_open_array(json);
  for (uint32_t k = 0; k < job->n_others; k++) {
    const pl_other_step *other = &job->others[k];
    pl_json_open_object(json);
    pl_json_put_integer(json, "step", other->number);
    pl_json_put_boolean(json, "is_alike", other->is_alike);
    pl_json_put_boolean(json, "is_behind", other->is_behind);
    if (other->is_alike) {
      pl_json_put_number(json, "before_s", pl_ticks_to_s(other->before));
      pl_json_put_number(json, "after_s", pl_ticks_to_s(other->after));
    }
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_names(pl_json *json, const pl_step_model *model, uint32_t first, uint32_t end) {
  pl_json_open_array(json);
  for (uint32_t k = first; k < end; k++)
    pl_json_string(json, model->tensors[k].name);
  pl_json_close_array(json);
}

static void put_frameworks(pl_json *json, const pl_optimization *job, const pl_optimize_options *options) {
  const pl_step_model *model = &job->whole;
  pl_json_key(json, "frameworks");
  pl_json_open_object(json);
  if (job->ddp.cap_bytes >= 0) {
    pl_json_key(json, "torch_ddp");
    pl_json_open_object(json);
    pl_json_put_number(json, "bucket_cap_mb", (double)job->ddp.cap_bytes / (1 << 20));
    pl_json_put_number(json, "step_s", pl_ticks_to_s(job->ddp.ticks));
    pl_json_close_object(json);
  }
  if (options->passes.has[PL_PASS_TENSOR_FUSION]) {
    pl_json_key(json, "horovod");
    pl_json_open_object(json);
    if (job->horovod.cap_bytes >= 0) {
      pl_json_put_integer(json, "HOROVOD_FUSION_THRESHOLD", job->horovod.cap_bytes);
      pl_json_put_number(json, "step_s", pl_ticks_to_s(job->horovod.ticks));
    }
    pl_json_key(json, "groups");
    pl_json_open_array(json);
    for (uint32_t k = 0, end; k < model->n_tensors; k = end) {
      end = pl_step_plan_end(model, &job->search.plan, k);
      put_names(json, model, k, end);
    }
    pl_json_close_array(json);
    pl_json_close_object(json);
  }
  if (job->byteps.cap_bytes >= 0) {
    pl_json_key(json, "byteps");
    pl_json_open_object(json);
    pl_json_put_integer(json, "BYTEPS_PARTITION_BYTES", job->byteps.cap_bytes);
    pl_json_put_number(json, "step_s", pl_ticks_to_s(job->byteps.ticks));
    pl_json_close_object(json);
  }
  pl_json_close_object(json);
}

/* The first tensor of each kind of message. */
static bool begins_kind(const pl_optimization *job, uint32_t k) {
  const pl_step_tensor *tensors = job->whole.tensors;
  for (uint32_t t = 0; t < k; t++)
    if (tensors[t].kind == tensors[k].kind && tensors[t].n_members == tensors[k].n_members) return false;
  return job->costs.latency[k] >= 0;
}

static void put_latencies(pl_json *json, const pl_optimization *job) {
  pl_json_key(json, "message_latencies");
  pl_json_open_array(json);
  for (uint32_t k = 0; k < job->whole.n_tensors; k++) {
    if (!begins_kind(job, k)) continue;
    pl_json_open_object(json);
    pl_json_put_string(json, "kind", pl_trace_message_kind_names[job->whole.tensors[k].kind]);
    pl_json_put_integer(json, "members", job->whole.tensors[k].n_members);
    pl_json_put_number(json, "latency_s", pl_ticks_to_s(job->costs.latency[k]));
    pl_json_put_number(json, "sd_s", job->costs.latency_sd_s[k]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_assumptions(pl_json *json, const pl_optimization *job, const pl_optimize_options *options) {
  pl_json_key(json, "assumptions");
  pl_json_open_array(json);
  if (job->whole.n_tensors > 0 && job->costs.n_without < job->whole.n_tensors)
    pl_json_string(json, options->costs != NULL && options->costs->message_s >= 0
                             ? "messages: the given latency, and what is left of their recorded time by their size"
                             : "messages: latency of a line through the recorded ones of their kind, the rest of their "
                               "recorded time by their size");
  if (options->passes.has[PL_PASS_OP_FUSION])
    pl_json_string(json,
                   job->costs.launch_given
                       ? "fused ops: the sum of their times less the given launch for each that is saved"
                       : "fused ops: the sum of their times less the median lag between kernels of the device for "
                         "each launch that is saved");
  if (options->passes.has[PL_PASS_MIXED_PRECISION] && options->device != NULL)
    pl_json_string(
        json, "half precision: ops were recorded in fp32; matrix products, told by their names, are as much faster as "
              "the device's peaks, other ops take half as long, for half the bytes; gradients keep their precision");
  if (has_memory(options))
    pl_json_string(json, job->memory.is_recorded
                             ? "memory: activations by the trace's memory events, each of the first op that its thread "
                               "began after it was taken, and the state as so many times the gradients' bytes"
                             : "memory: the given activations, and the state as so many times the gradients' bytes");
  if (job->memory.way == PL_MEMORY_ACCUMULATE)
    pl_json_string(json, "accumulated batches: ops take a share of their time, launches and lags stay as they were");
  pl_json_string(json, "computing does not slow down while messages travel more than it did in the recording");
  pl_json_string(json, "the search holds what the step before left under way to its recorded dates; `steps` are played "
                       "behind one that has the plan, too");
  pl_json_close_array(json);
}

void pl_plan_report_json(FILE *stream, const char *path, const pl_optimization *job,
                         const pl_optimize_options *options) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_integer(&json, "paceline_plan", PL_PLAN_SCHEMA);
  pl_json_put_string(&json, "job", path);
  pl_json_put_integer(&json, "step", job->replay->span.number);
  pl_json_key(&json, "passes");
  pl_json_open_array(&json);
  for (int k = 0; k < PL_PASS_COUNT; k++)
    if (options->passes.has[k]) pl_json_string(&json, pl_passes[k].name);
  pl_json_close_array(&json);
  pl_json_put_number(&json, "measured_s", pl_ticks_to_s(pl_trace_replay_measured(job->replay)));
  pl_json_put_number(&json, "replayed_s", pl_ticks_to_s(job->replayed));
  pl_json_put_number(&json, "before_s", pl_ticks_to_s(job->before));
  pl_json_put_number(&json, "after_s", pl_ticks_to_s(job->search.best));
  if (job->n_others > 1) put_others(&json, job);
  if (job->whole.n_tensors > 0) put_buckets(&json, job);
  if (options->passes.has[PL_PASS_OP_FUSION]) put_groups(&json, job);
  if (has_memory(options)) put_memory(&json, job);
  if (options->passes.has[PL_PASS_MIXED_PRECISION]) put_half(&json, job);
  put_frameworks(&json, job, options);
  put_steps(&json, job);
  put_latencies(&json, job);
  put_assumptions(&json, job, options);
  pl_json_close_object(&json);
}

/* ---- text ---- */

static bool is_faster(const pl_framework_plan *plan, const pl_optimization *job) {
  return plan->cap_bytes >= 0 && plan->ticks < job->search.start;
}

static void put_cap(FILE *out, const char *name, const pl_framework_plan *plan, double value,
                    const pl_optimization *job) {
  char text[PL_UNIT_TEXT_BYTES], figure[PL_UNIT_TEXT_BYTES];
  if (!is_faster(plan, job)) return;
  fprintf(out, "  %-34s %12s %10s %+7.2f %%\n", name, pl_format_figure(value, figure),
          pl_format_time(pl_ticks_to_s(plan->ticks), text), change(plan->ticks, job->before));
}

/* Where steps overlap the step of the search takes another time behind one that has the plan, too. */
static void put_behind(FILE *out, const pl_optimization *job) {
  char a[PL_UNIT_TEXT_BYTES], b[PL_UNIT_TEXT_BYTES];
  for (uint32_t k = 0; k < job->n_others; k++) {
    const pl_other_step *own = &job->others[k];
    pl_ticks off = own->after > job->search.best ? own->after - job->search.best : job->search.best - own->after;
    if (own->number != job->replay->span.number || !own->is_behind || off <= job->search.best / 1000) continue;
    fprintf(out,
            "  behind a step that has the plan, too: %s, %s with the plan (%+.2f %%). Steps overlap, and the search "
            "holds what the one before left under way to its recorded dates.\n",
            pl_format_time(pl_ticks_to_s(own->before), a), pl_format_time(pl_ticks_to_s(own->after), b),
            change(own->after, own->before));
  }
}

void pl_plan_report_text(FILE *out, const pl_optimization *job, const pl_optimize_options *options) {
  char a[PL_UNIT_TEXT_BYTES], b[PL_UNIT_TEXT_BYTES], c[PL_UNIT_TEXT_BYTES];
  const pl_plan_search *search = &job->search;
  const pl_step_model *model = &job->whole;
  uint32_t n_buckets = 0, n_pieces = 0, n_groups = 0;
  for (uint32_t k = 0; k < model->n_tensors; k++)
    if (!search->plan.joins[k]) {
      n_buckets++;
      n_pieces += pl_step_plan_parts(&search->plan, k);
    }
  for (uint32_t u = 0; u < model->n_units; u++)
    n_groups += !search->plan.fuses[u];
  fprintf(out, "step %lld: %s now, %s with the plan (%+.2f %%)\n", (long long)job->replay->span.number,
          pl_format_time(pl_ticks_to_s(job->before), a), pl_format_time(pl_ticks_to_s(search->best), b),
          change(search->best, job->before));
  put_behind(out, job);
  double before_s, after_s;
  uint32_t n_alike = mean_steps(job, &before_s, &after_s);
  if (n_alike > 1)
    fprintf(out, "  in %u of %u steps, each with its own times: %s, %s with the plan (%+.2f %%)\n", n_alike,
            job->n_others, pl_format_time(before_s, a), pl_format_time(after_s, b), 100 * (after_s / before_s - 1));
  else if (job->n_others > 1)
    fputs("  the other steps do not have the same gradients and ops: whether the plan is one for them is not known\n",
          out);
  if (job->replayed != job->before)
    fprintf(
        out,
        "  the replay of the recording takes %s: links serve who is ready first here, which the recording did not\n",
        pl_format_time(pl_ticks_to_s(job->replayed), a));
  if (model->n_tensors > 0)
    fprintf(out, "  gradients: %u in %u buckets, %u pieces\n", model->n_tensors, n_buckets, n_pieces);
  if (model->n_units > 0) fprintf(out, "  ops: %u become %u\n", model->n_units, n_groups);
  if (job->memory.way != PL_MEMORY_AS_IS)
    fprintf(out, "  memory: %s becomes %s by %s in %u %s; that alone takes %s\n",
            pl_format_bytes(job->memory.before_bytes, a), pl_format_bytes(job->memory.after_bytes, b),
            job->memory.way == PL_MEMORY_ACCUMULATE ? "accumulation" : "recomputation", job->memory.n,
            job->memory.way == PL_MEMORY_ACCUMULATE ? "batches" : "segments",
            pl_format_time(pl_ticks_to_s(job->memory.after), c));
  else if (has_memory(options))
    fprintf(out, "  memory: %s, which fit as they are\n", pl_format_bytes(job->memory.before_bytes, a));
  fprintf(out,
          "  %u changes taken of %u replayed, %u more ruled out by theorems; each taken one replayed on all %u tasks\n",
          search->n_steps, search->n_replays, search->n_ruled_out, model->n);
  for (uint32_t k = 0; k < model->n_tensors; k++)
    if (begins_kind(job, k))
      fprintf(out, "  latency of a message (%s, %u ranks): %s%s%s%s\n",
              pl_trace_message_kind_names[model->tensors[k].kind], model->tensors[k].n_members,
              pl_format_time(pl_ticks_to_s(job->costs.latency[k]), a), job->costs.latency_sd_s[k] > 0 ? " +- " : "",
              job->costs.latency_sd_s[k] > 0 ? pl_format_time(job->costs.latency_sd_s[k], b) : "",
              job->costs.latency_sd_s[k] > pl_ticks_to_s(job->costs.latency[k])
                  ? ": the recording does not tell it from none; --op-cost (message) says it"
                  : "");
  bool any = is_faster(&job->ddp, job) || is_faster(&job->horovod, job) || is_faster(&job->byteps, job);
  if (any) fputs("by one number only:\n", out);
  put_cap(out, "torch DDP, bucket_cap_mb", &job->ddp, (double)job->ddp.cap_bytes / (1 << 20), job);
  put_cap(out, "HOROVOD_FUSION_THRESHOLD, bytes", &job->horovod, (double)job->horovod.cap_bytes, job);
  put_cap(out, "BYTEPS_PARTITION_BYTES", &job->byteps, (double)job->byteps.cap_bytes, job);
}
