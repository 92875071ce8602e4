/* See workloads/command/simulate_program.h. */
#include "workloads/command/simulate_program.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/units.h"
#include "core/engine/timeline_perfetto.h"
#include "core/system/command.h"
#include "core/system/gzip_stream.h"
#include "core/system/output_file.h"
#include "core/text/json_writer.h"
#include "netmodel/platform/platform.h"
#include "workloads/command/show_program_model.h"
#include "workloads/command/simulate_report.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"
#include "workloads/lower/block_program.h"
#include "workloads/onnx/onnx_program.h"
#include "workloads/passes/partition.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/program_interval.h"
#include "workloads/run/simulate_program.h"
#include "workloads/run/tree_prices.h"
#include "workloads/tree/tree_show.h"

/* Of what is simulated, a program as it is written or as a tree makes it. */
static const char *what_of(const pl_program_request *request) {
  if (request->program_path != NULL) return "--program";
  if (request->tree_path != NULL) return "a strategy tree";
  return request->inference ? "--inference" : "a strategy that is simulated as a program";
}

static pl_code check_job(const pl_job_options *options, const pl_program_request *request, pl_error *error) {
  if (request->program_path != NULL) {
    bool says_job = options->model_path != NULL || options->job.gbs != 0 || options->job.seq != 0,
         says_ops = options->origin.dtype_is_given || options->origin.products_are_given || options->attention_is_given;
    if (says_job)
      return pl_fail(error, PL_BAD_INPUT, "--program says model and batch itself: leave out --model, --gbs and --seq");
    if (says_ops)
      return pl_fail(error, PL_BAD_INPUT,
                     "--program says types and ops itself: leave out --dtype, --fp8, --fp4 and --attention, which are "
                     "for 'paceline program print'");
    return PL_OK;
  }
  if (options->model_path == NULL) return pl_fail(error, PL_BAD_INPUT, "--model is missing (a config.json)");
  if (options->job.gbs == 0) return pl_fail(error, PL_BAD_INPUT, "--gbs is missing (sequences per iteration)");
  if (request->tree_path == NULL && request->strategy == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--strategy is missing (e.g. --strategy pp=4,dp=4,tmp=1,mbs=1)");
  return PL_OK;
}

pl_code pl_program_options_check(const pl_job_options *options, const char *what, pl_error *error) {
  if (options->op_profile_path != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--op-profile: measured layers are not known of programs, and %s is simulated as one; leave it out",
                   what);
  if (options->bucket_is_given || options->sends_are_given)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s has the framework's buckets (\"bucket_bytes\" of a profile) and sends what its program says; "
                   "leave out --bucket-bytes and --pipeline-sends",
                   what);
  if (options->simulate.streams != PL_STREAMS_IN_ORDER)
    return pl_fail(error, PL_UNSUPPORTED, "%s runs with --streams in-order", what);
  if (options->simulate.network == PL_NETWORK_SIMGRID || options->simulate.chunked)
    return pl_fail(error, PL_UNSUPPORTED, "%s runs on --network flow or analytic, with fluid collectives", what);
  return PL_OK;
}

static pl_code check_options(const pl_job_options *options, const pl_program_request *request, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->platform_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--platform is missing: the devices that the program runs on");
  PL_TRY(check_job(options, request, error));
  return pl_program_options_check(options, what_of(request), error);
}

/* What was made of a model. */
typedef struct subject {
  const pl_job_options *options;
  const pl_program_request *request;
  const pl_cluster *cluster;
  pl_model model;
  pl_tree_plan plan;     /* its notes, where a tree was read */
  pl_ir_module module;   /* as it was read or made */
  pl_ir_module launched; /* what of it is simulated */
  pl_program_explanation explanation;
  const char *schedule; /* of several lists */
  pl_strategy tuple;    /* what was assumed of it */
} subject;

typedef struct share {
  const char *name;
  pl_category category;
} share;

static const share shares[] = {{"forward", PL_CATEGORY_FORWARD},
                               {"made again", PL_CATEGORY_RECOMPUTE},
                               {"backward", PL_CATEGORY_BACKWARD},
                               {"optimizer", PL_CATEGORY_OPTIMIZER},
                               {"tensor communication", PL_CATEGORY_TENSOR},
                               {"context communication", PL_CATEGORY_CONTEXT},
                               {"expert communication", PL_CATEGORY_EXPERT},
                               {"pipeline communication", PL_CATEGORY_PIPELINE},
                               {"data communication", PL_CATEGORY_DATA}};
enum { N_SHARES = sizeof(shares) / sizeof(shares[0]) };

/* What a model's program was made of, and what was assumed. */
static void print_model(const subject *of) {
  char loss[PL_ONNX_LOSS_TEXT_BYTES];
  const pl_model *model = &of->model;
  pl_simulate_model_print(stdout, model, &of->options->job, &of->options->origin);
  if (pl_program_kernels_assumed(model) != NULL) printf("kernels          %s\n", pl_program_kernels_assumed(model));
  if (of->request->inference) {
    printf("pass             forward alone: no backward pass, no gradients, no optimizer\n");
  } else if (model->program.onnx != NULL) {
    printf("loss             %s\n", pl_onnx_loss_text(model, loss));
  }
  if (model->program.onnx != NULL && model->program.onnx->empty_cache)
    printf("cache            %s\n", PL_ONNX_EMPTY_CACHE);
}

static void print_verdict(const subject *of, const pl_program_report *report) {
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
static void print_offload(const subject *of, const pl_program_report *report) {
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

static void print_memory(const subject *of, const pl_program_report *report) {
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

static void put_memory(pl_json *json, const subject *of, const pl_program_report *report) {
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
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static const char *what_is_run(const pl_program_request *request) {
  return request->program_path != NULL ? request->program_path
         : request->tree_path != NULL  ? request->tree_path
                                       : request->strategy;
}

/* What a program says is played, whatever framework or option would have it otherwise. */
static void print_attention(const subject *of) {
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

/* MFU of models whose FLOPs have a formula. */
static void print_speed(const subject *of, const pl_program_report *report) {
  const pl_job *job = &of->options->job;
  pl_simulate_time_print(stdout, report->iter_time_s, &report->interval, report->fits);
  if (of->request->program_path != NULL) return;
  double samples_per_s = (double)job->gbs / report->iter_time_s;
  pl_simulate_throughput_print(stdout, samples_per_s, samples_per_s * (double)job->seq);
  double peak_flops = pl_program_peak_flops(of->cluster, report, job->dtype);
  if (of->request->inference || !pl_model_has_blocks(&of->model) || !(peak_flops > 0)) return;
  pl_simulate_mfu_print(stdout, pl_model_flops_per_sequence(&of->model, job->seq) * samples_per_s / peak_flops);
}

static void print_text(const subject *of, const pl_program_report *report) {
  const pl_program_request *request = of->request;
  const pl_ir_module *module = &of->module;
  char text[PL_UNIT_TEXT_BYTES], digest[PL_DIGEST_TEXT_BYTES];
  bool file = request->program_path != NULL;
  if (!file) print_model(of);
  pl_simulate_platform_print(stdout, of->cluster);
  printf("%-16s %s, %s: %u devices, %u list%s, %d microbatch%s\n", file ? "program" : "strategy", what_is_run(request),
         file ? pl_ir_level_names[module->level] : module->name, report->n_devices, report->n_classes,
         report->n_classes == 1 ? "" : "s", module->n_microbatches, module->n_microbatches == 1 ? "" : "es");
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
  if (request->beside != NULL) pl_beside_print(stdout, &request->beside->result);
  if (request->digest) printf("\nrun digest       %s\n", pl_digest_format(report->run_digest, digest));
  if (request->trace_path != NULL)
    printf("\ntimeline         %s (open it in https://ui.perfetto.dev)\n", request->trace_path);
  if (request->svg_path != NULL) printf("\ndrawing          %s\n", request->svg_path);
}

static void print_json(const subject *of, const pl_program_report *report) {
  const pl_ir_module *module = &of->module;
  pl_json json;
  pl_json_init(&json, stdout, true);
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
  pl_json_put_number(&json, "iter_time_s", report->iter_time_s);
  pl_json_put_number(&json, "iter_time_low_s", report->interval.low_s);
  pl_json_put_number(&json, "iter_time_high_s", report->interval.high_s);
  for (int category = 0; category < PL_CATEGORY_COUNT; category++) {
    char name[64];
    snprintf(name, sizeof(name), "%s_s", pl_category_name((pl_category)category));
    pl_json_put_number(&json, name, report->spent_s[category]);
  }
  pl_json_put_number(&json, "idle_s", report->idle_s);
  char digest[PL_DIGEST_TEXT_BYTES];
  pl_json_put_string(&json, "run_digest", pl_digest_format(report->run_digest, digest));
  pl_stragglers_json(&json, of->request->stragglers, of->cluster);
  if (of->request->beside != NULL) pl_beside_json(&json, &of->request->beside->result);
  pl_json_close_object(&json);
}

static pl_code print_explanation(const subject *of, const pl_program_report *report, pl_error *error) {
  uint32_t first, end, top = of->request->explain->top;
  PL_TRY(pl_explain_program_choose(of->request->explain, &of->explanation, &first, &end, error));
  if (of->request->json) {
    pl_explain_program_json(stdout, of->cluster, &of->explanation, first, end, top);
    return PL_OK;
  }
  print_text(of, report);
  pl_explain_program_print(stdout, of->cluster, &of->explanation, first, end, top);
  return PL_OK;
}

static pl_code open_trace(const pl_job_options *options, const pl_program_request *request, pl_output_file *file,
                          FILE **stream, pl_error *error) {
  *stream = NULL;
  if (request->trace_path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(request->trace_path, options->platform_path, error));
  if (request->tree_path != NULL) PL_TRY(pl_command_refuse_input(request->trace_path, request->tree_path, error));
  const char *source = request->program_path != NULL ? request->program_path : options->model_path;
  PL_TRY(pl_command_refuse_input(request->trace_path, source, error));
  PL_TRY(pl_output_file_open(file, request->trace_path, request->force, error));
  *stream = pl_gzip_is_wanted(request->trace_path) ? pl_gzip_stream_open(file->stream) : file->stream;
  if (*stream != NULL) return PL_OK;
  return pl_output_file_close(file, pl_fail_memory(error, "the timeline"), error);
}

static pl_code open_svg(pl_job_options *options, const pl_program_request *request, const subject *of,
                        pl_output_file *file, pl_error *error) {
  if (request->svg_path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(request->svg_path, options->platform_path, error));
  if (request->tree_path != NULL) PL_TRY(pl_command_refuse_input(request->svg_path, request->tree_path, error));
  const char *source = request->program_path != NULL ? request->program_path : options->model_path;
  PL_TRY(pl_command_refuse_input(request->svg_path, source, error));
  PL_TRY(pl_output_file_open(file, request->svg_path, request->force, error));
  options->simulate.diagram = file->stream;
  options->simulate.diagram_title = request->program_path != NULL ? of->module.name : of->model.name;
  options->simulate.diagram_subtitle = what_is_run(request);
  return PL_OK;
}

/* Forward passes alone are priced op by op, unless a framework is named. */
static bool is_lowered(const subject *of) {
  return !of->request->inference || of->options->framework_choice != NULL;
}

static pl_code make_of_tree(subject *to, const char *path, const pl_cluster *cluster, pl_arena *arena,
                            pl_tree_plan *plan, pl_ir_module *module, pl_error *error) {
  pl_strategy_tree *tree = PL_TAKE(arena, pl_strategy_tree, 1);
  pl_ir_module *forward = PL_TAKE(arena, pl_ir_module, 1);
  if (tree == NULL || forward == NULL) return pl_fail_memory(error, "a strategy tree");
  pl_ir_level level = to->request->inference ? PL_IR_MODEL : PL_IR_DISTRIBUTED;
  pl_ir_module *made = to->request->inference ? forward : module;
  PL_TRY(pl_tree_load(path, arena, tree, error));
  PL_TRY(pl_tree_prices_adopt(tree, cluster, &to->options->simulate, arena, error));
  if (is_lowered(to))
    PL_TRY(pl_program_of_tree_held(&to->model, &to->options->job, tree, level, arena, plan, made, error));
  else
    PL_TRY(pl_program_of_tree(&to->model, &to->options->job, tree, level, arena, plan, made, error));
  return to->request->inference ? pl_ir_partition(forward, plan, to->model.ends.tied_embeddings, arena, module, error)
                                : PL_OK;
}

/* What a tuple says of gradients' reductions is stronger than the profile, which is all that a program has. */
static pl_code adopt_overlap(pl_job_options *options, const pl_strategy *strategy, pl_arena *arena, pl_error *error) {
  if (!strategy->overlap_is_given) return PL_OK;
  pl_framework *framework = PL_TAKE(arena, pl_framework, 1);
  if (framework == NULL) return pl_fail_memory(error, "a framework's profile");
  *framework = *pl_framework_or_ideal(options->job.framework);
  framework->gradients.overlaps_gradients = strategy->overlap;
  options->job.framework = framework;
  return PL_OK;
}

static pl_code make_of_strategy(pl_job_options *options, subject *to, const pl_cluster *cluster, pl_arena *arena,
                                pl_ir_module *module, pl_error *error) {
  pl_strategy strategy;
  const pl_job *job = &options->job;
  PL_TRY(pl_strategy_parse(to->request->strategy, &to->model, arena, &strategy, error));
  pl_strategy_adopt(&strategy, job);
  PL_TRY(adopt_overlap(options, &strategy, arena, error));
  PL_TRY(pl_strategy_spread(&strategy, cluster->n_devices, error));
  PL_TRY(pl_strategy_check(&strategy, &to->model, job, cluster->n_devices, error));
  to->tuple = strategy;
  to->schedule = pl_schedule_name(strategy.schedule);
  PL_TRY(pl_strategy_assign_unplaced(
      &strategy, &to->model, job, ": nothing is priced for programs; give boundaries, uniform or ends", arena, error));
  if (is_lowered(to)) to->model = pl_model_held(&to->model, job->framework, strategy.tmp);
  return (to->request->inference ? pl_inference_program_of : pl_program_of)(&to->model, job, &strategy,
                                                                            PL_IR_DISTRIBUTED, arena, module, error);
}

static pl_code take_module(pl_job_options *options, subject *to, const pl_cluster *cluster, pl_arena *arena,
                           pl_error *error) {
  const pl_program_request *request = to->request;
  if (request->program_path != NULL) {
    PL_TRY(pl_ir_load(request->program_path, arena, &to->module, error));
    PL_TRY(pl_job_options_adopt_framework(options, arena, error));
    return pl_job_options_adopt_collectives(options, arena, error);
  }
  PL_TRY(pl_model_load_any(options->model_path, arena, &to->model, error));
  PL_TRY(pl_job_options_adopt(options, &to->model, arena, error));
  PL_TRY(pl_job_options_complete(options, &to->model, cluster, error));
  if (request->tree_path == NULL) return make_of_strategy(options, to, cluster, arena, &to->module, error);
  PL_TRY(make_of_tree(to, request->tree_path, cluster, arena, &to->plan, &to->module, error));
  to->schedule = pl_schedule_name(to->plan.schedule.schedule);
  return PL_OK;
}

/* With a site, whose figures say how far a strategy's time may lie off, programs have no interval. */
static pl_code ask_for_interval(pl_job_options *options, const subject *of, pl_arena *arena, pl_error *error) {
  if (options->site_path != NULL) return PL_OK;
  const pl_program_kind kind = {.job = &options->job,
                                .schedule = of->schedule != NULL ? of->schedule : "of a program",
                                .experts = of->model.moe.n_experts > 0,
                                .trains = !of->request->inference};
  pl_residuals *residuals = PL_TAKE(arena, pl_residuals, 1);
  pl_aspects *aspects = PL_TAKE(arena, pl_aspects, 1);
  if (residuals == NULL || aspects == NULL) return pl_fail_memory(error, "an interval");
  PL_TRY(pl_residuals_load(arena, residuals, error));
  *aspects = pl_aspects_of_program(of->cluster, &of->launched, &kind);
  options->simulate.residuals = residuals;
  options->simulate.program_aspects = aspects;
  return PL_OK;
}

/* The program by itself, and once more beside the other jobs, whose timeline it is then. */
static pl_code run(pl_job_options *options, const subject *of, FILE *trace, pl_arena *arena, pl_program_report *report,
                   pl_error *error) {
  pl_beside_options *beside = of->request->beside;
  const pl_beside_main main = {.cluster = of->cluster,
                               .arena = arena,
                               .model = &of->model,
                               .program = &of->launched,
                               .strategy_text = of->request->tree_path};
  options->simulate.trace = beside == NULL ? trace : NULL;
  if (beside != NULL) PL_TRY(pl_beside_options_read(beside, &main, options, error));
  PL_TRY(pl_simulate_program(of->cluster, &of->launched, options->job.framework, &options->simulate, arena, report,
                             error));
  return beside != NULL ? pl_beside_options_run(beside, &main, options, trace, error) : PL_OK;
}

static pl_code simulate(pl_job_options *options, const pl_program_request *request, const pl_platform *platform,
                        pl_arena *arena, pl_error *error) {
  subject of = {.options = options, .request = request, .cluster = pl_platform_cluster(platform)};
  pl_program_report report;
  pl_output_file file = {0}, svg = {0};
  FILE *trace;
  PL_TRY(pl_straggler_options_parse(request->stragglers, arena, error));
  PL_TRY(take_module(options, &of, of.cluster, arena, error));
  if (request->program_path != NULL) PL_TRY(pl_ir_check(&of.module, error)); /* before anything is made of it */
  uint32_t n_devices = pl_ir_mesh_devices(&of.module.mesh);
  if (n_devices > of.cluster->n_devices) n_devices = of.cluster->n_devices; /* refused when the graph is made */
  PL_TRY(
      pl_straggler_options_place(request->stragglers, of.cluster, NULL, n_devices, arena, &options->simulate, error));
  of.launched = of.module;
  if (is_lowered(&of))
    PL_TRY(pl_program_launched(of.cluster, &of.module, options->job.framework, arena, &of.launched, error));
  if (request->program_path == NULL || of.launched.level != of.module.level) PL_TRY(pl_ir_check(&of.launched, error));
  PL_TRY(ask_for_interval(options, &of, arena, error));
  PL_TRY(open_trace(options, request, &file, &trace, error));
  const pl_timeline_view view = {.is_perfetto = trace != NULL && pl_timeline_is_perfetto(request->trace_path)};
  options->simulate.view = &view;
  if (request->explain != NULL) options->simulate.of_program = &of.explanation;
  pl_code code = open_svg(options, request, &of, &svg, error);
  if (code == PL_OK) code = run(options, &of, trace, arena, &report, error);
  code = pl_output_file_close(&svg, code, error);
  if (trace != file.stream && fclose(trace) != 0 && code == PL_OK)
    code = pl_fail(error, PL_IO, "cannot write %s: %s", request->trace_path, strerror(errno));
  PL_TRY(pl_output_file_close(&file, code, error));
  if (request->explain != NULL) return print_explanation(&of, &report, error);
  (request->json ? print_json : print_text)(&of, &report);
  if (!options->must_fit || report.fits) return PL_OK;
  return pl_fail(error, PL_DOES_NOT_FIT, "--must-fit: the program does not fit in memory");
}

pl_code pl_simulate_program_command(pl_job_options *options, const pl_program_request *request, pl_error *error) {
  PL_TRY(check_options(options, request, error));
  pl_platform *platform = NULL;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = pl_platform_load(options->platform_path, NULL, &platform, error);
  if (code == PL_OK) code = simulate(options, request, platform, &arena, error);
  if (request->beside != NULL) pl_beside_options_release(request->beside); /* which has memory from the arena */
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
  return code;
}
