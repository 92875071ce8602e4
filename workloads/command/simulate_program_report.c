/* See workloads/command/simulate_program_report.h. */
#include "workloads/command/simulate_program_report.h"

#include <math.h>

#include "core/base/digest.h"
#include "core/base/units.h"
#include "core/text/json_writer.h"
#include "workloads/command/show_program_model.h"
#include "workloads/command/simulate_report.h"
#include "workloads/language/ir_work.h"
#include "workloads/onnx/onnx_program.h"
#include "workloads/run/program_row.h"

typedef struct share {
  const char *name;
  pl_category category;
} share;

static const share shares[] = {{"forward", PL_CATEGORY_FORWARD},
                               {"made again", PL_CATEGORY_RECOMPUTE},
                               {"backward", PL_CATEGORY_BACKWARD},
                               {"optimizer", PL_CATEGORY_OPTIMIZER},
                               {"host", PL_CATEGORY_HOST},
                               {"tensor communication", PL_CATEGORY_TENSOR},
                               {"context communication", PL_CATEGORY_CONTEXT},
                               {"expert communication", PL_CATEGORY_EXPERT},
                               {"pipeline communication", PL_CATEGORY_PIPELINE},
                               {"data communication", PL_CATEGORY_DATA}};
enum { N_SHARES = sizeof(shares) / sizeof(shares[0]) };

/* What a model's program was made of, and what was assumed. */
static void print_model(const pl_program_subject *of) {
  char loss[PL_ONNX_LOSS_TEXT_BYTES];
  const pl_model *model = &of->model;
  pl_simulate_model_print(stdout, model, &of->options->job, &of->options->origin, of->flops.narrow_share);
  if (pl_program_kernels_assumed(model) != NULL) printf("kernels          %s\n", pl_program_kernels_assumed(model));
  if (of->request->inference) {
    printf("pass             forward alone: no backward pass, no gradients, no optimizer\n");
  } else if (model->program.onnx != NULL) {
    printf("loss             %s\n", pl_onnx_loss_text(model, loss));
  }
  if (model->program.onnx != NULL && model->program.onnx->empty_cache)
    printf("cache            %s\n", PL_ONNX_EMPTY_CACHE);
}

static void print_verdict(const pl_program_subject *of, const pl_program_report *report) {
  const pl_class_memory *fullest = &report->memory[report->fullest];
  char need[PL_UNIT_TEXT_BYTES], have[PL_UNIT_TEXT_BYTES], lack[PL_UNIT_TEXT_BYTES];
  const char *name = of->module.classes[report->fullest].name;
  pl_format_bytes(fullest->peak, need);
  pl_format_bytes(fullest->capacity, have);
  if (report->fits)
    printf("memory           fits: %s of %s at the fullest, %s\n", need, have, name);
  else
    printf("memory           DOES NOT FIT: %s needs %s of %s, %s are lacking\n", name, need, have,
           pl_format_bytes(fullest->peak - fullest->capacity, lack));
}

/* What goes to the memory of the hosts, and what was assumed of their processors. */
static void print_offload(const pl_program_subject *of, const pl_program_report *report) {
  char bytes[PL_UNIT_TEXT_BYTES], held[PL_UNIT_TEXT_BYTES], time[PL_UNIT_TEXT_BYTES];
  double most = 0;
  for (int32_t c = 0; c < of->module.n_classes; c++)
    most = fmax(most, report->memory[c].host);
  if (report->n_offloads == 0) return;
  printf("offloading       %s a device and iteration to and from its host, which holds at most %s of one; waits for it "
         "are idle time\n",
         pl_format_bytes(report->offloaded_bytes / report->n_devices, bytes), pl_format_bytes(most, held));
  if (report->host_updates)
    printf(
        "host's update    %s for a thousand million parameters, all processors of a node at it: CPU-Adam on two Xeon "
        "Platinum 8168\n                 (Ren et al. 2021, table 4); that these hosts are as fast is assumed\n",
        pl_format_time(PL_HOST_UPDATE_S * 1e9, time));
}

static void print_memory(const pl_program_subject *of, const pl_program_report *report) {
  char text[6][PL_UNIT_TEXT_BYTES];
  printf(
      "\nmemory at the peak (a device of each list)\n  %-12s parameters  gradients  optimizer  activations       peak "
      "    usable\n",
      "list");
  for (int32_t c = 0; c < of->module.n_classes; c++) {
    const pl_class_memory *memory = &report->memory[c];
    bool alike = c > 0 && c < of->module.n_classes - 1 && memcmp(memory, memory - 1, sizeof *memory) == 0;
    if (alike) continue; /* as the one above */
    printf("  %-12s %10s %10s %10s  %11s %10s %10s%s\n", of->module.classes[c].name,
           pl_format_bytes(memory->parameters, text[0]), pl_format_bytes(memory->gradients, text[1]),
           pl_format_bytes(memory->optimizer, text[2]), pl_format_bytes(memory->values, text[3]),
           pl_format_bytes(memory->peak, text[4]), pl_format_bytes(memory->capacity, text[5]),
           memory->peak > memory->capacity ? "  OUT OF MEMORY" : "");
  }
}

static void put_memory(pl_json *json, const pl_program_subject *of, const pl_program_report *report) {
  pl_json_put_boolean(json, "fits", report->fits);
  pl_json_put_integer(json, "peak_mem_bytes", llrint(report->memory[report->fullest].peak));
  pl_json_put_integer(json, "mem_capacity_bytes", llrint(report->memory[report->fullest].capacity));
  pl_json_key(json, "lists");
  pl_json_open_array(json);
  for (int32_t c = 0; c < of->module.n_classes; c++) {
    const pl_class_memory *memory = &report->memory[c];
    pl_json_open_object(json);
    pl_json_put_string(json, "list", of->module.classes[c].name);
    pl_json_put_integer(json, "mem_parameters_bytes", llrint(memory->parameters));
    pl_json_put_integer(json, "mem_gradients_bytes", llrint(memory->gradients));
    pl_json_put_integer(json, "mem_optimizer_bytes", llrint(memory->optimizer));
    pl_json_put_integer(json, "mem_activations_bytes", llrint(memory->values));
    pl_json_put_integer(json, "peak_mem_bytes", llrint(memory->peak));
    pl_json_put_integer(json, "mem_capacity_bytes", llrint(memory->capacity));
    for (int part = 0; report->times != NULL && part < PL_STAGE_PARTS; part++)
      pl_json_put_number(json, pl_stage_part_names[part], report->times[c].part_s[part]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

const char *pl_program_report_what(const pl_program_request *request) {
  return request->program_path != NULL ? request->program_path
         : request->tree_path != NULL  ? request->tree_path
                                       : request->strategy;
}

/* What a program says is played, whatever framework or option would have it otherwise. */
static void print_attention(const pl_program_subject *of) {
  const pl_framework *framework = pl_framework_or_ideal(of->options->job.framework);
  if (of->launched.level != PL_IR_KERNELS || (framework->kernels.flash && of->options->job.flash)) return;
  for (int32_t f = 0; f < of->module.n_functions; f++)
    for (int32_t i = 0; i < of->module.functions[f]->n_ops; i++) {
      if (of->module.functions[f]->ops[i].row != pl_ir_row_of("attention")) continue;
      if (of->request->program_path == NULL)
        printf("attention        one fused kernel in @%s: with a log-sum-exp that is read, programs have no other\n",
               of->module.functions[f]->name);
      else if (framework->kernels.flash)
        printf("attention        one fused kernel, as the program says; --attention acts where programs are made\n");
      else
        printf("attention        one fused kernel, as the program says, which framework %s's is not\n",
               framework->name);
      return;
    }
}

static void print_remains(const pl_program_subject *of) {
  char text[PL_REMAINING_TEXT_BYTES];
  const pl_site_remains *remains = of->options->simulate.remains;
  if (remains == NULL) return;
  if (of->at.name[0] == NULL) {
    const char *const name[PL_SITE_NAMES] = {of->cluster->profiles[0].name,
                                             pl_framework_or_ideal(of->options->job.framework)->name, NULL};
    puts("of it the site   its figures alone: what they leave at its runs is known of strategies");
    pl_simulate_stranger_print(stdout, remains, name);
    return;
  }
  const pl_remaining remaining = pl_remaining_at(remains, &of->at);
  printf("of it the site   %s\n", pl_remaining_format(&remaining, remains->n, text));
  pl_simulate_stranger_print(stdout, remains, of->at.name);
}

/* A forward pass alone has no MFU. */
static void print_speed(const pl_program_subject *of, const pl_program_report *report) {
  const pl_job *job = &of->options->job;
  pl_simulate_time_print(stdout, report->iter_time_s, &report->interval, report->fits);
  print_remains(of);
  if (of->request->program_path != NULL) return;
  double samples_per_s = (double)job->gbs / report->iter_time_s;
  pl_simulate_throughput_print(stdout, samples_per_s, samples_per_s * (double)job->seq);
  double peak_flops = pl_program_peak_flops(of->cluster, report, job, of->flops.narrow_share);
  if (of->request->inference || !(peak_flops > 0)) return;
  pl_simulate_mfu_print(stdout, of->flops.of_sequence * samples_per_s / peak_flops);
}

void pl_program_report_print(const pl_program_subject *of, const pl_program_report *report) {
  const pl_program_request *request = of->request;
  const pl_ir_module *module = &of->module;
  char text[PL_UNIT_TEXT_BYTES], digest[PL_DIGEST_TEXT_BYTES];
  bool file = request->program_path != NULL;
  if (!file) print_model(of);
  pl_simulate_platform_print(stdout, of->cluster);
  printf("%-16s %s, %s: %u devices, %u list%s, %d microbatch%s\n", file ? "program" : "strategy",
         pl_program_report_what(request), file ? pl_ir_level_names[module->level] : module->name, report->n_devices,
         report->n_classes, report->n_classes == 1 ? "" : "s", module->n_microbatches,
         module->n_microbatches == 1 ? "" : "es");
  pl_strategy_assumed_print(stdout, 17, &of->tuple);
  pl_simulate_idle_print(stdout, of->cluster, report->n_devices);
  pl_tree_print_notes(stdout, &of->plan);
  printf("what runs        %llu kernels, %llu collectives, %llu sends on all devices; ",
         (unsigned long long)report->n_kernels, (unsigned long long)report->n_collectives,
         (unsigned long long)report->n_sends);
  if (of->launched.level == PL_IR_KERNELS)
    printf("kernels of framework %s\n", pl_framework_or_ideal(of->options->job.framework)->name);
  else
    printf("nothing is fused\n");
  print_attention(of);
  if (pl_ir_module_joins_steps(module)) pl_simulate_exchange_print(stdout, of->cluster, of->options->job.framework);
  print_offload(of, report);
  print_verdict(of, report);
  print_speed(of, report);
  printf("\nwhere the time goes (mean over devices)\n");
  for (int i = 0; i < N_SHARES; i++) {
    double time_s = report->spent_s[shares[i].category];
    if (time_s > 0)
      printf("  %-22s %10s  %5.1f %%\n", shares[i].name, pl_format_time(time_s, text),
             100 * time_s / report->iter_time_s);
  }
  printf("  %-22s %10s  %5.1f %%\n", "idle", pl_format_time(report->idle_s, text),
         100 * report->idle_s / report->iter_time_s);
  pl_stragglers_print(stdout, request->stragglers, of->cluster);
  print_memory(of, report);
  if (report->n_played < module->n_microbatches)
    printf("\nmicrobatches     %d of %d played, the others repeat them exactly\n", report->n_played,
           module->n_microbatches);
  if (report->whole == PL_WHOLE_LISTS)
    printf("\nmicrobatches     all %d played: steps of some list do not repeat themselves\n", module->n_microbatches);
  if (report->whole == PL_WHOLE_RUN)
    printf("\nmicrobatches     all %d played: no shorter run came back to a state that it had been in\n",
           module->n_microbatches);
  if (request->beside != NULL) pl_beside_print(stdout, &request->beside->result);
  if (request->digest) printf("\nrun digest       %s\n", pl_digest_format(report->run_digest, digest));
  if (request->trace_path != NULL)
    printf("\ntimeline         %s (open it in https://ui.perfetto.dev)\n", request->trace_path);
  if (request->svg_path != NULL) printf("\ndrawing          %s\n", request->svg_path);
}

/* What results have of it too, by the names of their columns; parts of the time add up to it. */
static void put_columns(pl_json *json, const pl_program_subject *of, const pl_program_report *report) {
  pl_result_row row;
  pl_program_row_clear(&row);
  pl_program_row_say(report, &row);
  const double parts_s[PL_STAGE_PARTS] = {row.compute_s,      row.tensor_comm_s, row.pipeline_comm_s, row.data_comm_s,
                                          row.context_comm_s, row.expert_comm_s, row.bubble_s};
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    pl_json_put_number(json, pl_stage_part_names[part], parts_s[part]);
  pl_json_put_integer(json, "mem_parameters_bytes", row.mem_parameters_bytes);
  pl_json_put_integer(json, "mem_gradients_bytes", row.mem_gradients_bytes);
  pl_json_put_integer(json, "mem_optimizer_bytes", row.mem_optimizer_bytes);
  pl_json_put_integer(json, "mem_activations_bytes", row.mem_activations_bytes);
  pl_json_put_integer(json, "mem_buffers_bytes", row.mem_buffers_bytes);
  pl_json_put_integer(json, "peak_stage", row.peak_stage);
  pl_json_put_string(json, "platform", of->cluster->path);
  if (of->request->program_path != NULL) return;
  const pl_job *job = &of->options->job;
  double samples_per_s = (double)job->gbs / report->iter_time_s;
  double peak_flops = pl_program_peak_flops(of->cluster, report, job, of->flops.narrow_share);
  char digest[PL_DIGEST_TEXT_BYTES];
  pl_json_put_string(json, "model_digest", pl_digest_format(of->model.digest, digest));
  pl_json_put_string(json, "attention", job->flash ? "flash" : "unfused");
  pl_json_put_string(json, "network", pl_network_names[of->options->simulate.network]);
  pl_json_put_integer(json, "seq", job->seq);
  pl_json_put_string(json, "dtype", pl_dtype_name(job->dtype));
  pl_simulate_narrow_json(json, job, of->flops.narrow_share);
  pl_json_put_number(json, "samples_per_s", samples_per_s);
  pl_json_put_number(json, "tokens_per_s", samples_per_s * (double)job->seq);
  if (of->request->inference || !(peak_flops > 0)) return;
  pl_json_put_number(json, "mfu", of->flops.of_sequence * samples_per_s / peak_flops);
}

void pl_program_report_json(FILE *stream, const pl_program_subject *of, const pl_program_report *report) {
  const pl_ir_module *module = &of->module;
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  if (of->request->program_path == NULL) {
    pl_json_put_string(&json, "model", of->model.name);
    pl_json_put_string(&json, "strategy",
                       of->request->strategy != NULL ? of->request->strategy : of->request->tree_path);
    char assumed[PL_ASSUMED_TEXT_BYTES];
    if (of->tuple.assumed != 0) pl_json_put_string(&json, "strategy_assumed", pl_strategy_assumed(&of->tuple, assumed));
    pl_json_put_boolean(&json, "inference", of->request->inference);
    pl_json_put_number(&json, "parameters", of->model.count.parameters);
    pl_json_put_integer(&json, "gbs", of->options->job.gbs);
    pl_json_put_number(&json, "throughput_samples_per_s", (double)of->options->job.gbs / report->iter_time_s);
  }
  pl_json_put_string(&json, "program", module->name);
  pl_json_put_string(&json, "level", pl_ir_level_names[module->level]);
  if (of->launched.level == PL_IR_KERNELS)
    pl_json_put_string(&json, "framework", pl_framework_or_ideal(of->options->job.framework)->name);
  pl_json_put_integer(&json, "n_devices", report->n_devices);
  pl_json_put_integer(&json, "n_lists", report->n_classes);
  pl_json_put_integer(&json, "n_microbatches", module->n_microbatches);
  pl_json_put_integer(&json, "n_played_microbatches", report->n_played);
  pl_json_put_integer(&json, "n_kernels", (int64_t)report->n_kernels);
  pl_json_put_integer(&json, "n_collectives", (int64_t)report->n_collectives);
  pl_json_put_integer(&json, "n_sends", (int64_t)report->n_sends);
  pl_json_put_integer(&json, "n_offloads", (int64_t)report->n_offloads);
  pl_json_put_number(&json, "offloaded_bytes", report->offloaded_bytes);
  pl_json_put_number(&json, "flops", report->flops);
  put_memory(&json, of, report);
  if (of->options->simulate.remains != NULL && of->at.name[0] != NULL) {
    const pl_remaining remaining = pl_remaining_at(of->options->simulate.remains, &of->at);
    pl_remaining_json(&json, &remaining, of->options->simulate.remains, of->at.name);
  }
  pl_json_put_number(&json, "iter_time_s", report->iter_time_s);
  pl_json_put_number(&json, "iter_time_low_s", report->interval.low_s);
  pl_json_put_number(&json, "iter_time_high_s", report->interval.high_s);
  for (int category = 0; category < PL_CATEGORY_COUNT; category++) {
    char name[64];
    snprintf(name, sizeof(name), "%s_s", pl_category_name((pl_category)category));
    pl_json_put_number(&json, name, report->spent_s[category]);
  }
  pl_json_put_number(&json, "idle_s", report->idle_s);
  put_columns(&json, of, report);
  char digest[PL_DIGEST_TEXT_BYTES];
  pl_json_put_string(&json, "run_digest", pl_digest_format(report->run_digest, digest));
  pl_stragglers_json(&json, of->request->stragglers, of->cluster);
  if (of->request->beside != NULL) pl_beside_json(&json, &of->request->beside->result);
  pl_json_close_object(&json);
}
