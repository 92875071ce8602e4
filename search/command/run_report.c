/* See search/command/run_report.h. */
#include "search/command/run_report.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/text/json_writer.h"
#include "workloads/cost/ir_cost.h"
#include "workloads/language/ir_table.h"

/* ---- words ---- */

const char *pl_run_processor(pl_arena *arena) {
  char line[512];
  const char *name = "";
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char *value = strchr(line, ':');
    if (strncmp(line, "model name", strlen("model name")) != 0 || value == NULL) continue;
    value += 1 + strspn(value + 1, " ");
    value[strcspn(value, "\n")] = 0;
    name = pl_arena_strdup(arena, value);
    break;
  }
  if (file != NULL) fclose(file);
  return name;
}

/* `path` as seen from the folder of the file `from`: relative where it lies in it or below, else in full. */
static const char *seen_from(const char *path, const char *from, pl_arena *arena) {
  char full[PATH_MAX], folder[PATH_MAX];
  if (strchr(path, '/') == NULL && access(path, F_OK) != 0) return path; /* a name that comes with Paceline */
  if (realpath(path, full) == NULL) return pl_arena_strdup(arena, path);
  const char *slash = strrchr(from, '/');
  const char *where = slash == NULL ? "." : pl_arena_printf(arena, "%.*s", (int)(slash - from) + 1, from);
  if (where == NULL || realpath(where, folder) == NULL) return pl_arena_strdup(arena, full);
  size_t n = strlen(folder);
  bool below = strncmp(full, folder, n) == 0 && full[n] == '/';
  return pl_arena_strdup(arena, below ? full + n + 1 : full);
}

static void put(FILE *stream, const char *text) {
  if (strpbrk(text, ",\"\n") == NULL) {
    fputs(text, stream);
    return;
  }
  putc('"', stream);
  for (; *text != 0; text++) {
    if (*text == '"') putc('"', stream);
    putc(*text, stream);
  }
  putc('"', stream);
}

static const char *precision_of(const pl_run_report *report) {
  return report->options->single ? "fp32" : "fp64";
}

pl_code pl_run_write_csv(const pl_run_report *report, FILE *stream, pl_arena *arena, pl_error *error) {
  const pl_run_spread *spread = &report->times->iteration;
  const char *processor = pl_run_processor(arena), *program = seen_from(report->program_path, report->csv_path, arena);
  const char *platform = report->platform_path != NULL ? seen_from(report->platform_path, report->csv_path, arena) : "";
  if (processor == NULL || program == NULL || platform == NULL) return pl_fail_memory(error, "the row");
  int32_t last = report->options->warmup + report->options->iterations - 1;
  fprintf(
      stream,
      "# paceline run %s: %s of %d iterations, %d in front; half of them from %.9g to %.9g s; %d ranks on %ld cores; "
      "loss %.17g, at the end %.17g\n",
      program, report->least ? "least" : "median", report->options->iterations, report->options->warmup, spread->low_s,
      spread->high_s, report->times->n_ranks, sysconf(_SC_NPROCESSORS_ONLN), report->times->losses[0],
      report->times->losses[last]);
  fputs("family,model,program,platform,gpu,n_gpus,framework,precision,step_time_s\npaceline-run,", stream);
  put(stream, report->module->name);
  putc(',', stream);
  put(stream, program);
  putc(',', stream);
  put(stream, platform);
  putc(',', stream);
  put(stream, processor);
  fprintf(stream, ",%d,paceline,%s,%.9g\n", report->times->n_ranks, precision_of(report),
          report->least ? spread->least_s : spread->median_s);
  return PL_OK;
}

/* ---- ops ---- */

static const pl_ir_class *class_of(const pl_ir_module *module, int32_t rank) {
  for (int32_t c = 0; c < module->n_classes; c++)
    if (pl_ir_class_has(module, &module->classes[c], (uint32_t)rank)) return &module->classes[c];
  return NULL;
}

/* What a kernel of the op takes, NaN: it has none, or nothing is predicted. A function's pass is told by its name only
 * where profiles tell passes apart; its forward cost is taken. */
static double predicted_op_s(const pl_run_report *report, int32_t rank, const pl_ir_function *f, const pl_ir_op *op) {
  pl_op kernel;
  pl_op_time time;
  pl_category category = strstr(f->name, ".backward") != NULL ? PL_CATEGORY_BACKWARD : PL_CATEGORY_FORWARD;
  if (report->cluster == NULL) return NAN;
  const pl_device_profile *profile = pl_cluster_profile(report->cluster, (uint32_t)rank);
  return pl_ir_op_time(profile, &report->module->mesh, f, op, category, &kernel, &time) ? time.time_s : NAN;
}

static void put_number(FILE *stream, double value) {
  if (!isnan(value)) fprintf(stream, ",%.9g", value);
  if (isnan(value)) putc(',', stream);
}

static void write_op(const pl_run_report *report, FILE *stream, int32_t rank, const pl_ir_function *f,
                     const pl_ir_op *op, int32_t at) {
  const pl_run_program_times *times = report->times;
  size_t index = (size_t)rank * (size_t)times->n_ops + (size_t)at;
  const pl_run_spread *spread = &times->ops[index];
  int32_t runs = times->runs[index];
  if (runs == 0 || pl_ir_row_at(op->row)->effect == PL_IR_CALLS) return;
  const pl_ir_class *class = class_of(report->module, rank);
  pl_op kernel = {0};
  bool computes = pl_ir_kernel(&report->module->mesh, f, op, PL_CATEGORY_FORWARD, &kernel);
  fprintf(stream, "%d,%s,", rank, class != NULL ? class->name : "");
  put(stream, f->name);
  fprintf(stream, ",%d,%s,", op->place.line, pl_ir_row_at(op->row)->name);
  put(stream, op->n_outputs > 0 ? f->values[op->first_output].name : "");
  fprintf(stream, ",%d,%.9g,%.9g,%.9g", runs, spread->median_s, spread->low_s, spread->high_s);
  put_number(stream, computes ? runs * kernel.flops : NAN);
  put_number(stream, computes ? runs * kernel.bytes : NAN);
  put_number(stream, runs * predicted_op_s(report, rank, f, op));
  putc('\n', stream);
}

pl_code pl_run_write_ops(const pl_run_report *report, FILE *stream, pl_error *error) {
  (void)error;
  fputs("rank,class,function,line,op,value,runs,time_s,time_low_s,time_high_s,flops,bytes,predicted_s\n", stream);
  for (int32_t rank = 0; rank < report->times->n_ranks; rank++)
    for (int32_t f = 0, at = 0; f < report->module->n_functions; f++)
      for (int32_t k = 0; k < report->module->functions[f]->n_ops; k++, at++)
        write_op(report, stream, rank, report->module->functions[f], &report->module->functions[f]->ops[k], at);
  return PL_OK;
}

/* ---- summary ---- */

enum { SHARES = 4 };
static const char *const share_names[SHARES] = {"products and attention", "other kernels", "collectives and sends",
                                                "state, data, views"};

static int share_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  pl_op kernel;
  if (row->effect == PL_IR_SENDS || (row->effect == PL_IR_COLLECTIVE && strncmp(row->name, "ring_", 5) != 0)) return 2;
  if (!pl_ir_kernel(&module->mesh, f, op, PL_CATEGORY_FORWARD, &kernel)) return 3;
  return kernel.kind == PL_OP_GEMM || kernel.kind == PL_OP_ATTENTION || kernel.kind == PL_OP_CONVOLUTION ? 0 : 1;
}

/* Seconds of an iteration, mean over ranks; medians of ops added up. */
static void add_shares(const pl_run_report *report, double shares[SHARES]) {
  const pl_run_program_times *times = report->times;
  for (int32_t rank = 0; rank < times->n_ranks; rank++)
    for (int32_t f = 0, at = 0; f < report->module->n_functions; f++)
      for (int32_t k = 0; k < report->module->functions[f]->n_ops; k++, at++) {
        const pl_ir_function *function = report->module->functions[f];
        shares[share_of(report->module, function, &function->ops[k])] +=
            times->ops[(size_t)rank * (size_t)times->n_ops + (size_t)at].median_s / times->n_ranks;
      }
}

void pl_run_print(const pl_run_report *report) {
  const pl_run_program_times *times = report->times;
  const pl_run_spread *spread = &times->iteration;
  char text[4][PL_UNIT_TEXT_BYTES];
  double shares[SHARES] = {0};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  add_shares(report, shares);
  printf("program          %s: %d rank%s, %s, one thread each\n", report->program_path, times->n_ranks,
         times->n_ranks == 1 ? "" : "s", precision_of(report));
  if (times->n_ranks > cores)
    printf("cores            %ld: ranks share them, and the times are those of shared cores\n", cores);
  printf("iteration        %s (median of %d; half of them %s to %s, all %s", pl_format_time(spread->median_s, text[0]),
         report->options->iterations, pl_format_time(spread->low_s, text[1]), pl_format_time(spread->high_s, text[2]),
         pl_format_time(spread->least_s, text[3]));
  printf(" to %s); %d in front not counted\n", pl_format_time(spread->most_s, text[0]), report->options->warmup);
  if (!isnan(report->predicted_s))
    printf("predicted        %s on %s (%+.1f %%)\n", pl_format_time(report->predicted_s, text[0]),
           report->platform_path,
           100 * (report->predicted_s / (report->least ? spread->least_s : spread->median_s) - 1));
  if (report->csv_path != NULL && report->platform_path == NULL)
    printf("platform         none: that of the row in %s is empty, and paceline validate asks for --platform\n",
           report->csv_path);
  printf("loss             %.6g in the first iteration, %.6g in the last\n", times->losses[0],
         times->losses[report->options->warmup + report->options->iterations - 1]);
  printf("\nwhere the time goes (medians of ops, mean over ranks; waiting counts where it happens)\n");
  for (int i = 0; i < SHARES; i++)
    printf("  %-22s %10s  %5.1f %%\n", share_names[i], pl_format_time(shares[i], text[0]),
           100 * shares[i] / spread->median_s);
}

void pl_run_print_json(const pl_run_report *report) {
  const pl_run_program_times *times = report->times;
  int32_t n = report->options->warmup + report->options->iterations;
  double shares[SHARES] = {0};
  pl_json json;
  add_shares(report, shares);
  pl_json_init(&json, stdout, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "program", report->module->name);
  pl_json_put_integer(&json, "n_ranks", times->n_ranks);
  pl_json_put_integer(&json, "n_cores", sysconf(_SC_NPROCESSORS_ONLN));
  pl_json_put_string(&json, "precision", precision_of(report));
  pl_json_put_integer(&json, "n_iterations", report->options->iterations);
  pl_json_put_number(&json, "iter_time_s", times->iteration.median_s);
  pl_json_put_number(&json, "iter_time_low_s", times->iteration.low_s);
  pl_json_put_number(&json, "iter_time_high_s", times->iteration.high_s);
  pl_json_put_number(&json, "iter_time_least_s", times->iteration.least_s);
  pl_json_put_number(&json, "iter_time_most_s", times->iteration.most_s);
  if (!isnan(report->predicted_s)) pl_json_put_number(&json, "predicted_s", report->predicted_s);
  static const char *const keys[SHARES] = {"products_s", "kernels_s", "communication_s", "state_s"};
  for (int i = 0; i < SHARES; i++)
    pl_json_put_number(&json, keys[i], shares[i]);
  pl_json_key(&json, "losses");
  pl_json_open_array(&json);
  for (int32_t i = 0; i < n; i++)
    pl_json_number(&json, times->losses[i]);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}
