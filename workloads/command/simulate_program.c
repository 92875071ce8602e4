/* See workloads/command/simulate_program.h. */
#include "workloads/command/simulate_program.h"

#include <errno.h>
#include <string.h>

#include "core/engine/timeline_perfetto.h"
#include "core/system/command.h"
#include "core/system/gzip_stream.h"
#include "core/system/output_file.h"
#include "netmodel/platform/platform.h"
#include "workloads/command/program_framework.h"
#include "workloads/command/simulate_program_report.h"
#include "workloads/command/trace_window.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_product.h"
#include "workloads/language/ir_recurrence.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/partition.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/program_interval.h"
#include "workloads/run/site_interval.h"
#include "workloads/run/tree_prices.h"

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
  if (options->allocator > (int)PL_ALLOCATOR_EXACT)
    return pl_fail(error, PL_UNSUPPORTED,
                   "--allocator %s: of %s tensors are counted, no allocator is replayed; leave it out, or say exact",
                   pl_allocator_names[options->allocator], what);
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

static pl_code print_explanation(const pl_program_subject *of, const pl_program_report *report, pl_error *error) {
  uint32_t first, end, top = of->request->explain->top;
  PL_TRY(pl_explain_program_choose(of->request->explain, &of->explanation, &first, &end, error));
  if (of->request->json) {
    pl_explain_program_json(stdout, of->cluster, &of->explanation, report->remains_factor, first, end, top);
    return PL_OK;
  }
  pl_program_report_print(of, report);
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

static pl_code open_svg(pl_job_options *options, const pl_program_request *request, const pl_program_subject *of,
                        pl_output_file *file, pl_error *error) {
  if (request->svg_path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(request->svg_path, options->platform_path, error));
  if (request->tree_path != NULL) PL_TRY(pl_command_refuse_input(request->svg_path, request->tree_path, error));
  const char *source = request->program_path != NULL ? request->program_path : options->model_path;
  PL_TRY(pl_command_refuse_input(request->svg_path, source, error));
  PL_TRY(pl_output_file_open(file, request->svg_path, request->force, error));
  options->simulate.diagram = file->stream;
  options->simulate.diagram_title = request->program_path != NULL ? of->module.name : of->model.name;
  options->simulate.diagram_subtitle = pl_program_report_what(request);
  return PL_OK;
}

/* Forward passes alone are priced op by op, unless a framework is named. */
static bool is_lowered(const pl_program_subject *of) {
  return !of->request->inference || of->options->framework_choice != NULL;
}

static pl_code make_of_tree(pl_program_subject *to, const char *path, const pl_cluster *cluster, pl_arena *arena,
                            pl_tree_plan *plan, pl_ir_module *module, pl_error *error) {
  pl_strategy_tree *tree = PL_TAKE(arena, pl_strategy_tree, 1);
  pl_ir_module *forward = PL_TAKE(arena, pl_ir_module, 1);
  if (tree == NULL || forward == NULL) return pl_fail_memory(error, "a strategy tree");
  pl_ir_level level = to->request->inference ? PL_IR_MODEL : PL_IR_DISTRIBUTED;
  pl_ir_module *made = to->request->inference ? forward : module;
  const pl_model given = to->model;
  PL_TRY(pl_tree_load(path, arena, tree, error));
  PL_TRY(pl_tree_prices_adopt(tree, cluster, &to->options->simulate, false, arena, error));
  if (is_lowered(to))
    PL_TRY(pl_program_of_tree_held(&to->model, &to->options->job, tree, level, arena, plan, made, error));
  else
    PL_TRY(pl_program_of_tree(&to->model, &to->options->job, tree, level, arena, plan, made, error));
  const pl_batch_cut cut = pl_batch_cut_evenly(&to->options->job, plan->n_microbatches);
  PL_TRY(pl_program_flops_take(&given, &to->options->job, cut, arena, &to->flops, error));
  return to->request->inference ? pl_ir_partition(forward, plan, to->model.ends.tied_embeddings, arena, module, error)
                                : PL_OK;
}

static pl_code make_of_strategy(pl_job_options *options, pl_program_subject *to, const pl_cluster *cluster,
                                pl_arena *arena, pl_ir_module *module, pl_error *error) {
  pl_strategy strategy;
  const pl_job *job = &options->job;
  PL_TRY(pl_strategy_parse(to->request->strategy, &to->model, arena, &strategy, error));
  pl_strategy_adopt(&strategy, job);
  options->job.framework = pl_framework_of_tuple(job->framework, &strategy, arena);
  if (options->job.framework == NULL) return pl_fail_memory(error, "a framework's profile");
  PL_TRY(pl_strategy_spread(&strategy, cluster->n_devices, error));
  PL_TRY(pl_strategy_check(&strategy, &to->model, job, cluster->n_devices, error));
  to->tuple = strategy;
  to->schedule = pl_schedule_name(strategy.schedule);
  PL_TRY(pl_strategy_assign_unplaced(
      &strategy, &to->model, job, ": nothing is priced for programs; give boundaries, uniform or ends", arena, error));
  PL_TRY(pl_program_flops_take(&to->model, job, pl_batch_cut_of(job, &strategy), arena, &to->flops, error));
  if (pl_model_has_blocks(&to->model))
    to->at =
        pl_configuration_of(cluster->profiles[0].name, pl_configuration_size(&to->model, job->seq), job, &strategy);
  if (is_lowered(to)) to->model = pl_model_held(&to->model, job->framework, strategy.tmp);
  return (to->request->inference ? pl_inference_program_of : pl_program_of)(&to->model, job, &strategy,
                                                                            PL_IR_DISTRIBUTED, arena, module, error);
}

/* Every device must be able to multiply in the types that a program's products say; of one that was measured op by op
 * the ops say so. */
static pl_code check_products(const pl_program_subject *of, pl_error *error) {
  for (int32_t f = 0; f < of->module.n_functions; f++) {
    const pl_ir_function *function = of->module.functions[f];
    for (int32_t i = 0; i < function->n_ops; i++) {
      const pl_ir_op *op = &function->ops[i];
      if (!pl_ir_op_is(op, "product")) continue;
      pl_ir_element element = pl_ir_product_element(op, &function->values[op->inputs[0]].type);
      for (uint32_t p = 0; element != PL_IR_I32 && p < of->cluster->n_profiles; p++)
        if (of->cluster->profiles[p].n_programs == 0 && !(of->cluster->profiles[p].peak_flops[element] > 0))
          return pl_fail(error, PL_BAD_INPUT, "%s:%d:%d: this product is in %s, in which %s does not compute",
                         of->request->program_path, op->place.line, op->place.column, pl_ir_element_name(element),
                         of->cluster->profiles[p].name);
    }
  }
  return PL_OK;
}

/* And the cluster as a site has it. */
static pl_code take_module(pl_job_options *options, pl_program_subject *to, pl_arena *arena, pl_error *error) {
  const pl_program_request *request = to->request;
  if (request->program_path != NULL) {
    PL_TRY(pl_ir_load(request->program_path, arena, &to->module, error));
    PL_TRY(pl_program_framework_adopt(options, &to->module, "simulate", arena, error));
    PL_TRY(pl_job_options_check_exchange(options, to->cluster, error));
    PL_TRY(pl_job_options_adopt_collectives(options, arena, error));
    PL_TRY(pl_job_options_adopt_site(options, arena, error));
    return pl_job_options_visit(options, &to->cluster, arena, error);
  }
  PL_TRY(pl_model_load_any(options->model_path, arena, &to->model, error));
  PL_TRY(pl_job_options_adopt(options, &to->model, arena, error));
  PL_TRY(pl_job_options_complete(options, &to->model, to->cluster, error));
  PL_TRY(pl_job_options_visit(options, &to->cluster, arena, error));
  if (request->tree_path == NULL) return make_of_strategy(options, to, to->cluster, arena, &to->module, error);
  PL_TRY(make_of_tree(to, request->tree_path, to->cluster, arena, &to->plan, &to->module, error));
  to->schedule = pl_schedule_name(to->plan.schedule.schedule);
  return PL_OK;
}

/* With a site it is what that leaves open (see run). */
static pl_code ask_for_interval(pl_job_options *options, const pl_program_subject *of, pl_arena *arena,
                                pl_error *error) {
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

enum { N_HEADER = 6 };

/* As of strategies. */
static void take_header(const pl_program_subject *of, pl_timeline_entry header[N_HEADER], pl_timeline_view *view) {
  const pl_program_request *request = of->request;
  const char *what = pl_program_report_what(request);
  const pl_timeline_entry entries[N_HEADER] = {
      {"program", "paceline " PACELINE_VERSION},
      {"command", request->command},
      {"model", request->program_path != NULL ? of->module.name : of->model.name},
      {"platform", of->options->platform_path},
      {"strategy", what != NULL ? what : ""},
      {"microbatches", request->trace_microbatches != NULL ? request->trace_microbatches : "all"}};
  memcpy(header, entries, sizeof entries);
  view->header = header;
  view->n_header = N_HEADER;
}

/* The program by itself, and once more beside the other jobs, whose timeline it is then. */
static pl_code run(pl_job_options *options, const pl_program_subject *of, FILE *trace, pl_arena *arena,
                   pl_program_report *report, pl_error *error) {
  pl_beside_options *beside = of->request->beside;
  const pl_beside_main main = {.cluster = of->cluster,
                               .arena = arena,
                               .model = &of->model,
                               .program = &of->launched,
                               .strategy_text = of->request->tree_path};
  options->simulate.trace = beside == NULL ? trace : NULL;
  if (beside != NULL) PL_TRY(pl_beside_options_read(beside, &main, options, error));
  pl_simulate_options own = options->simulate;
  own.recurrence = &of->recurrence;
  own.program_times = true;
  if (of->at.name[0] != NULL) own.program_configuration = &of->at;
  PL_TRY(pl_simulate_program(of->cluster, &of->launched, options->job.framework, &own, arena, report, error));
  if (options->site_path != NULL) {
    double x[PL_SITE_COUNT];
    PL_TRY(pl_site_sensitivities_of_program_take(of->cluster, &of->launched, options->job.framework, &own,
                                                 report->iter_time_s / report->remains_factor, arena, x, error));
    const pl_remaining remaining = of->at.name[0] != NULL ? pl_remaining_at(options->site.remains, &of->at)
                                                          : pl_remaining_far(options->site.remains);
    report->interval = pl_site_interval(&options->site, x, &remaining, report->iter_time_s);
  }
  return beside != NULL ? pl_beside_options_run(beside, &main, options, trace, error) : PL_OK;
}

static pl_code simulate(pl_job_options *options, const pl_program_request *request, const pl_platform *platform,
                        pl_arena *arena, pl_error *error) {
  pl_program_subject of = {.options = options, .request = request, .cluster = pl_platform_cluster(platform)};
  pl_program_report report = {.fits = false};
  pl_output_file file = {0}, svg = {0};
  FILE *trace;
  PL_TRY(pl_straggler_options_parse(request->stragglers, arena, error));
  PL_TRY(take_module(options, &of, arena, error));
  if (request->program_path != NULL) { /* before anything is made of it */
    PL_TRY(pl_ir_check(&of.module, error));
    PL_TRY(check_products(&of, error));
  }
  uint32_t n_devices = pl_ir_mesh_devices(&of.module.mesh);
  if (n_devices > of.cluster->n_devices) n_devices = of.cluster->n_devices; /* refused when the graph is made */
  PL_TRY(
      pl_straggler_options_place(request->stragglers, of.cluster, NULL, n_devices, arena, &options->simulate, error));
  of.launched = of.module;
  if (is_lowered(&of))
    PL_TRY(pl_program_launched(of.cluster, &of.module, options->job.framework, arena, &of.launched, error));
  if (!pl_ir_recurrence_find(&of.launched, 0, arena, &of.recurrence))
    return pl_fail_memory(error, "what recurs in a program");
  if (request->program_path == NULL || of.launched.level != of.module.level)
    PL_TRY(pl_ir_check_recurring(&of.launched, &of.recurrence, of.model.program.onnx == NULL, error));
  PL_TRY(ask_for_interval(options, &of, arena, error));
  pl_timeline_view view = {.is_perfetto = false};
  PL_TRY(
      pl_trace_window_of(request->trace_microbatches, request->trace_path, of.launched.n_microbatches, &view, error));
  PL_TRY(open_trace(options, request, &file, &trace, error));
  pl_timeline_entry header[N_HEADER];
  if (trace != NULL) take_header(&of, header, &view);
  view.is_perfetto = trace != NULL && pl_timeline_is_perfetto(request->trace_path);
  options->simulate.view = &view;
  if (request->explain != NULL) options->simulate.of_program = &of.explanation;
  pl_code code = open_svg(options, request, &of, &svg, error);
  if (code == PL_OK) code = run(options, &of, trace, arena, &report, error);
  code = pl_output_file_close(&svg, code, error);
  if (trace != file.stream && fclose(trace) != 0 && code == PL_OK)
    code = pl_fail(error, PL_IO, "cannot write %s: %s", request->trace_path, strerror(errno));
  PL_TRY(pl_output_file_close(&file, code, error));
  if (request->explain != NULL) return print_explanation(&of, &report, error);
  if (request->json)
    pl_program_report_json(request->stream != NULL ? request->stream : stdout, &of, &report);
  else
    pl_program_report_print(&of, &report);
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
