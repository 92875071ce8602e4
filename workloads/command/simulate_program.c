/* See workloads/command/simulate_program.h. */
#include "workloads/command/simulate_program.h"

#include <errno.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/gzip_stream.h"
#include "core/system/output_file.h"
#include "core/text/json_writer.h"
#include "netmodel/platform/platform.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/run/simulate_program.h"

static pl_code check_options(const pl_job_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->platform_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--platform is missing: the devices that the program runs on");
  if (options->model_path != NULL || options->job.gbs != 0 || options->job.seq != 0 ||
      options->framework_choice != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--program says model, batch and what runs itself: leave out --model, --gbs, --seq and --framework");
  if (options->simulate.network == PL_NETWORK_SIMGRID || options->simulate.chunked)
    return pl_fail(error, PL_UNSUPPORTED, "--program runs on --network flow or analytic, with fluid collectives");
  return PL_OK;
}

typedef struct share {
  const char *name;
  pl_category category;
} share;

static const share shares[] = {{"forward", PL_CATEGORY_FORWARD},
                               {"backward", PL_CATEGORY_BACKWARD},
                               {"optimizer", PL_CATEGORY_OPTIMIZER},
                               {"tensor communication", PL_CATEGORY_TENSOR},
                               {"context communication", PL_CATEGORY_CONTEXT},
                               {"expert communication", PL_CATEGORY_EXPERT},
                               {"pipeline communication", PL_CATEGORY_PIPELINE},
                               {"data communication", PL_CATEGORY_DATA}};
enum { N_SHARES = sizeof(shares) / sizeof(shares[0]) };

static void print_text(const pl_ir_module *module, const pl_program_report *report, const pl_program_request *request) {
  char text[PL_UNIT_TEXT_BYTES], digest[PL_DIGEST_TEXT_BYTES];
  printf("program          %s, %s: %u devices, %u lists, %d microbatches\n", request->program_path,
         pl_ir_level_names[module->level], report->n_devices, report->n_classes, module->n_microbatches);
  printf("what runs        %llu kernels, %llu collectives, %llu sends on all devices; nothing is fused\n",
         (unsigned long long)report->n_kernels, (unsigned long long)report->n_collectives,
         (unsigned long long)report->n_sends);
  printf("iteration        %s\n", pl_format_time(report->iter_time_s, text));
  printf("\nwhere the time goes (mean over devices)\n");
  for (int i = 0; i < N_SHARES; i++) {
    double time_s = report->spent_s[shares[i].category];
    if (time_s > 0)
      printf("  %-22s %10s  %5.1f %%\n", shares[i].name, pl_format_time(time_s, text),
             100 * time_s / report->iter_time_s);
  }
  printf("  %-22s %10s  %5.1f %%\n", "idle", pl_format_time(report->idle_s, text),
         100 * report->idle_s / report->iter_time_s);
  if (request->digest) printf("\nrun digest       %s\n", pl_digest_format(report->run_digest, digest));
  if (request->trace_path != NULL)
    printf("\ntimeline         %s (open it in https://ui.perfetto.dev)\n", request->trace_path);
}

static void print_json(const pl_ir_module *module, const pl_program_report *report) {
  pl_json json;
  pl_json_init(&json, stdout, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "program", module->name);
  pl_json_put_string(&json, "level", pl_ir_level_names[module->level]);
  pl_json_put_integer(&json, "n_devices", report->n_devices);
  pl_json_put_integer(&json, "n_lists", report->n_classes);
  pl_json_put_integer(&json, "n_microbatches", module->n_microbatches);
  pl_json_put_integer(&json, "n_kernels", (int64_t)report->n_kernels);
  pl_json_put_integer(&json, "n_collectives", (int64_t)report->n_collectives);
  pl_json_put_integer(&json, "n_sends", (int64_t)report->n_sends);
  pl_json_put_number(&json, "flops", report->flops);
  pl_json_put_number(&json, "iter_time_s", report->iter_time_s);
  for (int category = 0; category < PL_CATEGORY_COUNT; category++) {
    char name[64];
    snprintf(name, sizeof(name), "%s_s", pl_category_name((pl_category)category));
    pl_json_put_number(&json, name, report->spent_s[category]);
  }
  pl_json_put_number(&json, "idle_s", report->idle_s);
  char digest[PL_DIGEST_TEXT_BYTES];
  pl_json_put_string(&json, "run_digest", pl_digest_format(report->run_digest, digest));
  pl_json_close_object(&json);
}

static pl_code open_trace(const pl_job_options *options, const pl_program_request *request, pl_output_file *file,
                          FILE **stream, pl_error *error) {
  *stream = NULL;
  if (request->trace_path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(request->trace_path, options->platform_path, error));
  PL_TRY(pl_command_refuse_input(request->trace_path, request->program_path, error));
  PL_TRY(pl_output_file_open(file, request->trace_path, request->force, error));
  *stream = pl_gzip_is_wanted(request->trace_path) ? pl_gzip_stream_open(file->stream) : file->stream;
  if (*stream != NULL) return PL_OK;
  return pl_output_file_close(file, pl_fail_memory(error, "the timeline"), error);
}

static pl_code simulate(pl_job_options *options, const pl_program_request *request, const pl_platform *platform,
                        pl_arena *arena, pl_error *error) {
  pl_ir_module module;
  pl_program_report report;
  pl_output_file file = {0};
  FILE *trace;
  PL_TRY(pl_ir_load(request->program_path, arena, &module, error));
  PL_TRY(pl_ir_check(&module, error));
  PL_TRY(pl_job_options_adopt_collectives(options, arena, error));
  PL_TRY(open_trace(options, request, &file, &trace, error));
  options->simulate.trace = trace;
  pl_code code = pl_simulate_program(pl_platform_cluster(platform), &module, &options->simulate, arena, &report, error);
  if (trace != file.stream && fclose(trace) != 0 && code == PL_OK)
    code = pl_fail(error, PL_IO, "cannot write %s: %s", request->trace_path, strerror(errno));
  PL_TRY(pl_output_file_close(&file, code, error));
  if (request->json) {
    print_json(&module, &report);
  } else {
    print_text(&module, &report, request);
  }
  return PL_OK;
}

pl_code pl_simulate_program_command(pl_job_options *options, const pl_program_request *request, pl_error *error) {
  PL_TRY(check_options(options, error));
  pl_platform *platform = NULL;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = pl_platform_load(options->platform_path, NULL, &platform, error);
  if (code == PL_OK) code = simulate(options, request, platform, &arena, error);
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
  return code;
}
