/* See workloads/command/simulate_report.h. */
#include "workloads/command/simulate_report.h"
#include "workloads/lower/block_program.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/text/json_writer.h"
#include "workloads/command/job_options.h"
#include "workloads/compile/compile.h"
#include "workloads/cost/op_profile.h"

static void print_types(FILE *stream, const pl_job *job, double narrow_share) {
  fprintf(stream, " per iteration, %s", pl_dtype_name(job->dtype));
  if (job->fp8) fprintf(stream, " with %s%s products", narrow_share > 0 ? "" : "no ", job->fp4 ? "fp4" : "fp8");
  putc('\n', stream);
}

void pl_simulate_model_print(FILE *stream, const pl_model *model, const pl_job *job, const pl_job_origin *origin,
                             double narrow_share) {
  char figure[PL_UNIT_TEXT_BYTES];
  double parameters = model->count.parameters;
  bool is_large = parameters >= 1e9;
  fprintf(stream, "model            %s, %s %s parameters, %" PRId64, model->name,
          pl_format_figure(parameters / (is_large ? 1e9 : 1e6), figure), is_large ? "billion" : "million", job->gbs);
  if (job->seq == 1)
    fputs(" samples", stream);
  else
    fprintf(stream, " sequences of %" PRId64 " tokens", job->seq);
  print_types(stream, job, narrow_share);
  pl_job_origin_print(stream, 17, model, job, origin, narrow_share);
}

void pl_simulate_platform_print(FILE *stream, const pl_cluster *cluster) {
  fputs("platform         ", stream);
  pl_printable_put(stream, cluster->path);
  putc(':', stream);
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    uint32_t n = 0;
    for (uint32_t d = 0; d < cluster->n_devices; d++)
      n += cluster->devices[d].profile == p;
    fprintf(stream, "%s %" PRIu32 " x %s", p == 0 ? "" : " +", n, cluster->profiles[p].name);
  }
  fprintf(stream, " in %" PRIu32 " node%s\n", cluster->n_nodes, cluster->n_nodes == 1 ? "" : "s");
}

void pl_simulate_idle_print(FILE *stream, const pl_cluster *cluster, uint32_t n_used) {
  uint32_t n_idle = cluster->n_devices - n_used;
  if (n_idle > 0) fprintf(stream, "idle             %" PRIu32 " of %" PRIu32 " GPUs\n", n_idle, cluster->n_devices);
}

static double narrow_share_of(const pl_simulate_subject *subject) {
  const pl_job *job = subject->job;
  return job->fp8 ? pl_model_narrow_share(subject->model, job->dtype, job->fp4, job->seq) : 0;
}

void pl_simulate_narrow_json(pl_json *json, const pl_job *job, double narrow_share) {
  if (!job->fp8) return;
  pl_json_put_boolean(json, job->fp4 ? "fp4" : "fp8", true);
  pl_json_put_number(json, "narrow_share", narrow_share);
}

void pl_simulate_subject_print(FILE *stream, const pl_simulate_subject *subject) {
  const pl_cluster *cluster = subject->cluster;
  if (subject->launch != NULL) pl_launch_print(stream, subject->launch);
  pl_simulate_model_print(stream, subject->model, subject->job, subject->origin, narrow_share_of(subject));
  pl_simulate_platform_print(stream, cluster);
  char *text = pl_strategy_text(subject->strategy, subject->model);
  fprintf(stream, "strategy         %s\n", text == NULL ? "" : text);
  free(text);
  pl_strategy_assumed_print(stream, 17, subject->strategy);
  pl_simulate_idle_print(stream, cluster, pl_strategy_n_ranks(subject->strategy));
  if (subject->job->framework != NULL) fprintf(stream, "framework        %s\n", subject->job->framework->name);
  if (subject->job->op_profile == NULL) return;
  fputs("op profile       ", stream);
  pl_printable_put(stream, subject->job->op_profile->path);
  putc('\n', stream);
}

static void print_share(FILE *stream, const char *name, double time_s, double total_s) {
  char text[PL_UNIT_TEXT_BYTES];
  fprintf(stream, "  %-24s %10s  %5.1f %%\n", name, pl_format_time(time_s, text), 100 * time_s / total_s);
}

/* A time without the memory that it takes is no prediction: so this comes first. */
void pl_simulate_verdict_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report) {
  const pl_result_row *row = &report->row;
  char need[PL_UNIT_TEXT_BYTES], have[PL_UNIT_TEXT_BYTES], lack[PL_UNIT_TEXT_BYTES];
  pl_format_bytes((double)row->peak_mem_bytes, need);
  pl_format_bytes((double)row->mem_capacity_bytes, have);
  if (row->fits) {
    fprintf(stream, "memory           fits: %s of %s at the fullest, stage %d\n", need, have, row->peak_stage);
    return;
  }
  int32_t n_short = 0;
  for (int32_t s = 0; s < report->n_stages; s++)
    n_short += report->stages[s].peak > report->stages[s].capacity;
  fprintf(stream, "memory           DOES NOT FIT: stage %d needs %s of %s, %s are lacking; %d of %d stages lack some\n",
          row->peak_stage, need, have, pl_format_bytes((double)(row->peak_mem_bytes - row->mem_capacity_bytes), lack),
          n_short, report->n_stages);
  if (subject->nearest.changes == NULL) {
    fputs("nearest fit      none was found on these GPUs; 'paceline search' looks further\n", stream);
  } else {
    fprintf(stream, "nearest fit      %s: %s\n", subject->nearest.changes, subject->nearest.strategy);
  }
}

void pl_simulate_time_print(FILE *stream, double iter_time_s, const pl_interval *interval, bool fits) {
  char text[PL_UNIT_TEXT_BYTES], range[PL_INTERVAL_TEXT_BYTES];
  bool is_long = iter_time_s >= 1;
  fprintf(stream, "\niteration time   %s %s", pl_format_figure(iter_time_s * (is_long ? 1 : 1e3), text),
          is_long ? "s" : "ms");
  if (!isnan(interval->low_s)) fprintf(stream, " (80 %%: %s)", pl_interval_format(interval, range));
  if (!fits) fputs(", if memory sufficed", stream);
  fputc('\n', stream);
}

void pl_simulate_throughput_print(FILE *stream, double samples_per_s, double tokens_per_s) {
  char text[PL_UNIT_TEXT_BYTES], tokens[PL_UNIT_TEXT_BYTES];
  if (samples_per_s == tokens_per_s)
    fprintf(stream, "throughput       %s samples/s\n", pl_format_figure(samples_per_s, text));
  else
    fprintf(stream, "throughput       %s sequences/s, %s tokens/s\n", pl_format_figure(samples_per_s, text),
            pl_format_figure(tokens_per_s, tokens));
}

void pl_simulate_mfu_print(FILE *stream, double mfu) {
  fprintf(stream, "MFU              %.1f %%\n", 100 * mfu);
}

void pl_simulate_speed_print(FILE *stream, const pl_result_row *row, const pl_interval *interval) {
  pl_simulate_time_print(stream, row->iter_time_s, interval, row->fits);
  pl_simulate_throughput_print(stream, row->samples_per_s, row->tokens_per_s);
  pl_simulate_mfu_print(stream, row->mfu);
}

static pl_configuration configuration_of(const pl_simulate_subject *subject) {
  return pl_configuration_of(subject->cluster->profiles[0].name,
                             pl_configuration_size(subject->model, subject->job->seq), subject->job, subject->strategy);
}

static pl_remaining remaining_of(const pl_simulate_subject *subject) {
  const pl_configuration at = configuration_of(subject);
  return pl_remaining_at(subject->remains, &at);
}

void pl_simulate_stranger_print(FILE *stream, const pl_site_remains *remains, const char *const name[PL_SITE_NAMES]) {
  char text[PL_STRANGE_TEXT_BYTES];
  if (pl_remains_strange(remains, name, text)[0] != '\0')
    fprintf(stream, "not of the site  %s: %s\n", text,
            remains->is_elsewhere
                ? "figures are what sites of one owner share, and the interval has the doubt of the rest"
                : "its figures act all the same, and the interval does not know (a file of before: calibrate --runs)");
}

void pl_simulate_remains_print(FILE *stream, const pl_simulate_subject *subject) {
  char text[PL_REMAINING_TEXT_BYTES];
  if (subject->remains == NULL) return;
  const pl_remaining remaining = remaining_of(subject);
  fprintf(stream, "of it the site   %s\n", pl_remaining_format(&remaining, subject->remains->n, text));
  const pl_configuration at = configuration_of(subject);
  pl_simulate_stranger_print(stream, subject->remains, at.name);
}

static void put_remains(pl_json *json, const pl_simulate_subject *subject) {
  if (subject->remains == NULL) return;
  const pl_remaining remaining = remaining_of(subject);
  const pl_configuration at = configuration_of(subject);
  pl_remaining_json(json, &remaining, subject->remains, at.name);
}

static void print_times(FILE *stream, const pl_result_row *row) {
  fprintf(stream, "\nwhere the time goes (mean over devices)\n");
  print_share(stream, "compute", row->compute_s, row->iter_time_s);
  print_share(stream, "tensor communication", row->tensor_comm_s, row->iter_time_s);
  if (row->cp > 1) print_share(stream, "context communication", row->context_comm_s, row->iter_time_s);
  if (row->ep > 1) print_share(stream, "expert communication", row->expert_comm_s, row->iter_time_s);
  print_share(stream, "pipeline communication", row->pipeline_comm_s, row->iter_time_s);
  print_share(stream, "data communication", row->data_comm_s, row->iter_time_s);
  print_share(stream, "bubble", row->bubble_s, row->iter_time_s);
}

static void print_memory(FILE *stream, const pl_simulate_report *report) {
  char text[7][PL_UNIT_TEXT_BYTES];
  fprintf(stream, "\nmemory at the peak (worst device of each stage)\n  stage  parameters  gradients  optimizer  "
                  "activations    buffers       peak     usable\n");
  for (int32_t s = 0; s < report->n_stages; s++) {
    const pl_stage_memory *stage = &report->stages[s];
    if (s > 0 && s < report->n_stages - 1 && memcmp(stage, stage - 1, sizeof *stage) == 0)
      continue; /* as the one above */
    fprintf(stream, "  %5d  %10s %10s %10s  %11s %10s %10s %10s%s\n", s, pl_format_bytes(stage->parameters, text[0]),
            pl_format_bytes(stage->gradients, text[1]), pl_format_bytes(stage->optimizer, text[2]),
            pl_format_bytes(stage->activations, text[3]), pl_format_bytes(stage->buffers, text[4]),
            pl_format_bytes(stage->peak, text[5]), pl_format_bytes(stage->capacity, text[6]),
            stage->peak > stage->capacity ? "  OUT OF MEMORY" : "");
  }
}

void pl_simulate_exchange_print(FILE *stream, const pl_cluster *cluster, const pl_framework *framework) {
  double taken = pl_framework_or_ideal(framework)->pipeline.exchange_multiprocessors;
  const pl_device_profile *first = &cluster->profiles[0];
  if (taken <= 0 || pl_framework_crowding(framework, first) <= 0) return;
  fprintf(stream, "exchanges take   %g of %u multiprocessors (%s) from what computes beside them\n", taken,
          first->gemm.multiprocessors, first->name);
}

void pl_simulate_products_print(FILE *stream, const pl_simulate_subject *subject) {
  const pl_device_profile *first = &subject->cluster->profiles[0];
  if (!pl_compile_crowds_products(subject->job, subject->strategy) || pl_tensor_crowding(first) <= 0) return;
  fprintf(stream, "collectives take %u of %u multiprocessors (%s) from products beside them%s\n", first->channels,
          first->gemm.multiprocessors, first->name,
          first->fills_device ? ", which need a second round of thread blocks" : "");
}

void pl_simulate_report_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report) {
  pl_simulate_subject_print(stream, subject);
  pl_simulate_verdict_print(stream, subject, report);
  pl_simulate_speed_print(stream, &report->row, &report->interval);
  pl_simulate_remains_print(stream, subject);
  if (subject->cost != NULL)
    pl_training_cost_print(stream, 17, subject->cost, report->row.tokens_per_s, subject->cluster);
  print_times(stream, &report->row);
  print_memory(stream, report);
  fputc('\n', stream);
  if (report->bottleneck_link != NULL)
    fprintf(stream, "busiest link     %s, %.1f %% of its capacity over the iteration\n", report->bottleneck_link,
            100 * report->bottleneck_utilisation);
  if (report->entries.n > 0) {
    fprintf(stream, "collectives as   ");
    pl_collective_entries_print(stream, &report->entries);
    fputc('\n', stream);
  }
  if (pl_strategy_hides_tokens(subject->strategy))
    pl_simulate_exchange_print(stream, subject->cluster, subject->job->framework);
  pl_simulate_products_print(stream, subject);
  fprintf(stream,
          "simulated        %" PRIu32 " device classes for %" PRIu32 " devices, %" PRIu32 " transfer classes, %" PRId64
          " tasks\n",
          report->n_device_classes, report->n_devices, report->n_transfer_classes, report->row.n_tasks);
  if (report->n_played < report->row.n_microbatches)
    fprintf(stream, "microbatches     %d of %d played, the others repeat them exactly\n", report->n_played,
            report->row.n_microbatches);
}

static void put_column(pl_json *json, const pl_column_info *column, const pl_result_row *row) {
  const char *field = (const char *)row + column->offset;
  char text[PL_DIGEST_TEXT_BYTES];
  switch (column->type) {
  case PL_COLUMN_i32:
    if (strcmp(column->name, "status") == 0) {
      pl_json_put_string(json, column->name, pl_result_status_names[row->status]);
      break;
    }
    pl_json_put_integer(json, column->name, *(const int32_t *)(const void *)field);
    break;
  case PL_COLUMN_i64:
    pl_json_put_integer(json, column->name, *(const int64_t *)(const void *)field);
    break;
  case PL_COLUMN_f64:
    pl_json_put_number(json, column->name, *(const double *)(const void *)field);
    break;
  case PL_COLUMN_u64:
    pl_json_put_string(json, column->name, pl_digest_format(*(const uint64_t *)(const void *)field, text));
    break;
  case PL_COLUMN_text:
    pl_json_put_string(json, column->name, field);
    break;
  }
}

void pl_simulate_row_json(pl_json *json, const pl_result_row *row) {
  for (uint32_t c = 0; c < pl_result_n_columns; c++)
    put_column(json, &pl_result_columns[c], row);
}

static void put_stage(pl_json *json, int32_t index, const pl_stage_memory *stage, const pl_stage_times *times) {
  pl_json_open_object(json);
  pl_json_put_integer(json, "stage", index);
  pl_json_put_integer(json, "mem_parameters_bytes", llrint(stage->parameters));
  pl_json_put_integer(json, "mem_gradients_bytes", llrint(stage->gradients));
  pl_json_put_integer(json, "mem_optimizer_bytes", llrint(stage->optimizer));
  pl_json_put_integer(json, "mem_activations_bytes", llrint(stage->activations));
  pl_json_put_integer(json, "mem_buffers_bytes", llrint(stage->buffers));
  pl_json_put_integer(json, "peak_mem_bytes", llrint(stage->peak));
  pl_json_put_integer(json, "reserved_mem_bytes", llrint(stage->reserved));
  pl_json_put_integer(json, "device_mem_bytes", llrint(stage->device));
  pl_json_put_integer(json, "mem_capacity_bytes", llrint(stage->capacity));
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    pl_json_put_number(json, pl_stage_part_names[part], times->part_s[part]);
  pl_json_close_object(json);
}

/* Half-widths of ln(time) by what they come from; their squares add up. */
static void put_interval(pl_json *json, const pl_interval *interval) {
  if (isnan(interval->low_s)) return;
  pl_json_key(json, "interval");
  pl_json_open_object(json);
  pl_json_put_number(json, "share", PL_INTERVAL_SHARE);
  pl_json_key(json, "half_widths");
  pl_json_open_object(json);
  for (int kind = 0; kind < PL_DOUBT_COUNT; kind++)
    pl_json_put_number(json, pl_doubt_names[kind], interval->half[kind]);
  pl_json_close_object(json);
  pl_json_key(json, "unseen");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < interval->unseen.n; i++)
    pl_json_string(json, interval->unseen.text[i]);
  pl_json_close_array(json);
  pl_json_close_object(json);
}

/* With the names of the attributes of results files. */
static void put_way(pl_json *json, const pl_simulate_subject *subject) {
  const pl_simulate_options *way = subject->way;
  char text[PL_DIGEST_TEXT_BYTES];
  pl_json_put_string(json, "platform_digest", pl_digest_format(subject->cluster->digest, text));
  pl_json_put_string(json, "model_digest", pl_digest_format(subject->model->digest, text));
  pl_json_put_string(json, "attention", subject->job->flash ? "flash" : "unfused");
  pl_json_put_number(json, "bucket_bytes", subject->job->bucket_bytes);
  pl_json_put_string(json, "pipeline_sends", pl_send_form_names[subject->job->split_sends]);
  double taken = pl_framework_or_ideal(subject->job->framework)->pipeline.exchange_multiprocessors;
  if (taken > 0) pl_json_put_number(json, "exchange_sms", taken);
  if (way == NULL) return;
  const pl_collective_profile *profile = way->collective_profile;
  pl_json_put_string(json, "network", pl_network_names[way->network]);
  pl_json_put_string(json, "sharing", pl_sharing_names[way->sharing]);
  pl_json_put_string(json, "collective_profile", profile != NULL ? profile->path : "ideal");
  pl_json_put_string(json, "collectives", pl_collective_form_names[way->chunked]);
  pl_json_put_string(json, "algorithm", pl_algorithm_names[way->algorithm]);
  pl_json_put_string(json, "streams", pl_stream_policy_names[way->streams]);
}

/* The slowest link of each kind, and the fastest where they differ. */
static void put_links(pl_json *json, const pl_cluster *cluster) {
  char text[2 * PL_UNIT_TEXT_BYTES + 8], rate[PL_UNIT_TEXT_BYTES];
  pl_json_key(json, "links");
  pl_json_open_object(json);
  for (int kind = 0; kind < PL_LINK_KIND_COUNT; kind++) {
    double least = (double)INFINITY, most = 0;
    for (uint32_t l = 0; l < cluster->n_links; l++) {
      if (cluster->links[l].kind != kind) continue;
      least = fmin(least, cluster->links[l].capacity_Bps);
      most = fmax(most, cluster->links[l].capacity_Bps);
    }
    if (most == 0) continue;
    int used = least < most ? snprintf(text, sizeof text, "%s to ", pl_format_rate(least, rate)) : 0;
    snprintf(text + used, sizeof text - (size_t)used, "%s", pl_format_rate(most, rate));
    pl_json_put_string(json, pl_link_kind_name((pl_link_kind)kind), text);
  }
  pl_json_close_object(json);
}

static void put_cluster(pl_json *json, const pl_cluster *cluster, pl_dtype dtype) {
  pl_json_put_integer(json, "n_nodes", cluster->n_nodes);
  pl_json_key(json, "devices");
  pl_json_open_array(json);
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    const pl_device_profile *profile = &cluster->profiles[p];
    uint32_t n = 0;
    for (uint32_t d = 0; d < cluster->n_devices; d++)
      n += cluster->devices[d].profile == p;
    pl_json_open_object(json);
    pl_json_put_string(json, "name", profile->name);
    pl_json_put_integer(json, "count", n);
    pl_json_put_number(json, "memory_bytes", profile->memory_bytes);
    pl_json_put_number(json, "bandwidth_Bps", profile->bandwidth_Bps);
    pl_json_put_number(json, "peak_flops", profile->peak_flops[dtype]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
  put_links(json, cluster);
}

void pl_simulate_subject_json(pl_json *json, const pl_simulate_subject *subject, const pl_simulate_report *report) {
  if (subject->launch != NULL) {
    pl_json_key(json, "from");
    pl_launch_json(json, subject->launch);
  }
  pl_json_put_string(json, "model", subject->model->name);
  pl_json_put_string(json, "platform", subject->cluster->path);
  pl_json_put_integer(json, "n_devices", subject->cluster->n_devices);
  if (report->n_devices < subject->cluster->n_devices)
    pl_json_put_integer(json, "n_idle_devices", subject->cluster->n_devices - report->n_devices);
  pl_json_put_integer(json, "gbs", subject->job->gbs);
  pl_json_put_integer(json, "seq", subject->job->seq);
  pl_json_put_string(json, "dtype", pl_dtype_name(subject->job->dtype));
  pl_simulate_narrow_json(json, subject->job, narrow_share_of(subject));
  pl_job_origin_json(json, subject->model, subject->origin);
  char assumed[PL_ASSUMED_TEXT_BYTES];
  if (subject->strategy->assumed != 0)
    pl_json_put_string(json, "strategy_assumed", pl_strategy_assumed(subject->strategy, assumed));
  pl_json_put_string(json, "framework", pl_framework_or_ideal(subject->job->framework)->name);
  if (subject->job->op_profile != NULL) pl_json_put_string(json, "op_profile", subject->job->op_profile->path);
  put_way(json, subject);
  put_remains(json, subject);
  put_cluster(json, subject->cluster, subject->job->dtype);
  pl_simulate_row_json(json, &report->row);
  if (!report->row.fits) {
    pl_json_put_integer(json, "shortfall_bytes", report->row.peak_mem_bytes - report->row.mem_capacity_bytes);
    pl_json_put_string(json, "nearest_fit", subject->nearest.strategy);
  }
  put_interval(json, &report->interval);
  if (subject->stragglers != NULL) pl_stragglers_json(json, subject->stragglers, subject->cluster);
  if (subject->beside != NULL) pl_beside_json(json, subject->beside);
}

void pl_simulate_report_json(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report,
                             const pl_sensitivity *sensitivity) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_simulate_subject_json(&json, subject, report);
  pl_json_key(&json, "stages");
  pl_json_open_array(&json);
  for (int32_t s = 0; s < report->n_stages; s++)
    put_stage(&json, s, &report->stages[s], &report->times[s]);
  pl_json_close_array(&json);
  pl_collective_entries_json(&json, &report->entries);
  pl_sensitivity_json(&json, sensitivity);
  pl_json_put_string(&json, "bottleneck_link", report->bottleneck_link);
  pl_json_put_number(&json, "bottleneck_utilisation", report->bottleneck_utilisation);
  pl_json_put_integer(&json, "n_transfer_classes", report->n_transfer_classes);
  pl_json_put_integer(&json, "n_events", (int64_t)report->n_events);
  pl_json_put_integer(&json, "n_played_microbatches", report->n_played);
  if (subject->cost != NULL) pl_training_cost_json(&json, subject->cost, report->row.tokens_per_s, subject->cluster);
  pl_json_close_object(&json);
}
