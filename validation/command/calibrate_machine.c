/* See validation/command/calibrate_machine.h. */
#include "validation/command/calibrate_machine.h"

#include <ctype.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/system/output_file.h"
#include "search/command/run_report.h"
#include "search/parallel/mpi_command.h"
#include "validation/fit/machine_write.h"

typedef struct session {
  const pl_calibrate_machine *options;
  pl_machine_samples samples;
  pl_machine_fit fit;
  pl_arena arena;
  pl_interrupt interrupt;
  int n_ranks;
} session;

/* ---- files ---- */

static const char *path_of(session *own, const char *file) {
  return pl_arena_printf(&own->arena, "%s/%s", own->options->output, file);
}

static pl_code make_folder(const char *path, pl_error *error) {
  struct stat is;
  if (path == NULL) return pl_fail_memory(error, "a file name");
  if (mkdir(path, 0777) == 0) return PL_OK;
  if (errno == EEXIST && stat(path, &is) == 0 && S_ISDIR(is.st_mode)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, errno == EEXIST ? "is there and no folder" : strerror(errno));
}

typedef void (*writer)(const pl_machine_text *text, FILE *stream);

static pl_code write_file(session *own, const char *name, writer write, const pl_machine_text *text, pl_error *error) {
  const char *path = path_of(own, name);
  pl_output_file file = {0};
  if (path == NULL) return pl_fail_memory(error, "a file name");
  PL_TRY(pl_output_file_open(&file, path, own->options->force, error));
  write(text, file.stream);
  return pl_output_file_close(&file, PL_OK, error);
}

/* "AMD EPYC 7763" as a name for files. */
static const char *device_name(session *own, const char *processor) {
  char name[64];
  size_t n = 0;
  for (const char *c = processor; *c != 0 && n < sizeof name - 8; c++) {
    if (isalnum((unsigned char)*c)) name[n++] = *c;
    if (!isalnum((unsigned char)*c) && n > 0 && name[n - 1] != '-') name[n++] = '-';
  }
  while (n > 0 && name[n - 1] == '-')
    n--;
  return n > 0 ? pl_arena_printf(&own->arena, "%.*s-core", (int)n, name) : "core";
}

static pl_code write_all(session *own, const pl_machine_text *text, pl_error *error) {
  const char *device = pl_arena_printf(&own->arena, "devices/%s.json", text->device);
  if (device == NULL) return pl_fail_memory(error, "a file name");
  PL_TRY(make_folder(own->options->output, error));
  PL_TRY(make_folder(path_of(own, "devices"), error));
  PL_TRY(make_folder(path_of(own, "collectives"), error));
  PL_TRY(write_file(own, device, pl_machine_write_device, text, error));
  PL_TRY(write_file(own, "collectives/nccl.json", pl_machine_write_collectives, text, error));
  return write_file(own, "platform.xml", pl_machine_write_platform, text, error);
}

/* Nothing is in the way of what will be written. */
static pl_code check_output(session *own, pl_error *error) {
  const char *path = path_of(own, "platform.xml");
  if (own->options->output == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--this-machine needs -o FOLDER: where the platform goes");
  if (path == NULL) return pl_fail_memory(error, "a file name");
  if (access(own->options->output, F_OK) != 0) return pl_output_file_check(own->options->output, true, error);
  return pl_output_file_check(path, own->options->force, error);
}

/* ---- what is said ---- */

static void print_move(const char *what, const pl_move_fit *move) {
  char text[3][PL_UNIT_TEXT_BYTES];
  if (move->n == 0) return;
  printf("%-26s %s + %s a step, %s; %u measured", what, pl_format_time(move->start_s, text[0]),
         pl_format_time(move->step_s, text[1]), pl_format_rate(move->rate_Bps, text[2]), move->n);
  if (move->held_out.n > 0)
    printf(", of %u kept out half are within %.0f %%", move->held_out.n, 100 * move->held_out.median_error);
  putchar('\n');
}

static void print_ops(const pl_machine_fit *fit) {
  char text[3][PL_UNIT_TEXT_BYTES];
  printf("\n%-26s %10s %12s %12s %10s %8s %8s\n", "op", "overhead", "FLOP/s", "bytes/s", "kept out", "median%", "p90%");
  for (uint32_t i = 0; i < fit->n_ops; i++) {
    const pl_program_kernel *op = &fit->ops[i];
    printf("%-26s %10s %12s %12s", op->op, pl_format_time(op->overhead_s, text[0]),
           op->flops_rate > 0 ? pl_format_figure(op->flops_rate, text[1]) : "-",
           op->bytes_rate > 0 ? pl_format_figure(op->bytes_rate, text[2]) : "-");
    if (op->held_out.n > 0)
      printf(" %10u %8.0f %8.0f\n", op->held_out.n, 100 * op->held_out.median_error, 100 * op->held_out.p90_error);
    else
      puts("          -        -        -");
  }
}

static const char *provenance_of(session *own, const char *processor) {
  char day[32] = "";
  time_t now = time(NULL);
  struct tm parts;
  if (gmtime_r(&now, &parts) != NULL) strftime(day, sizeof day, "%Y-%m-%d", &parts);
  return pl_arena_printf(&own->arena,
                         "measured by paceline calibrate on %s: %s, %ld cores, %d rank%s at once, %u ops and %u moves "
                         "timed",
                         day, processor[0] != 0 ? processor : "a processor without a name",
                         sysconf(_SC_NPROCESSORS_ONLN), own->n_ranks, own->n_ranks == 1 ? "" : "s", own->samples.n_ops,
                         own->samples.n_moves);
}

static pl_code print(void *session_, pl_error *error) {
  session *own = session_;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const char *processor = pl_run_processor(&own->arena);
  PL_TRY(pl_machine_fit_take(&own->samples, &own->arena, &own->fit, error));
  const pl_machine_text text = {.fit = &own->fit,
                                .device = processor != NULL ? device_name(own, processor) : NULL,
                                .provenance = processor != NULL ? provenance_of(own, processor) : NULL,
                                .n_ranks = own->n_ranks,
                                .n_cores = (int)cores,
                                .memory_bytes =
                                    (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / own->n_ranks};
  if (text.device == NULL || text.provenance == NULL) return pl_fail_memory(error, "the profile");
  PL_TRY(write_all(own, &text, error));
  printf("%s\n", text.provenance);
  if (own->n_ranks > cores)
    printf(
        "%d ranks share %ld cores: each has %.2g of one, also while it waits for others, so that times are %.3g times "
        "those of a rank that has a core\n",
        own->n_ranks, cores, (double)cores / own->n_ranks, own->n_ranks / (double)cores);
  print_move("reductions, gathers", &own->fit.ring);
  print_move("all-to-all, messages", &own->fit.direct);
  if (own->n_ranks == 1) puts("one rank: nothing is known of moves between ranks; start it with mpirun -n N");
  print_ops(&own->fit);
  printf("\nwritten to %s: --platform %s/platform.xml\n", own->options->output, own->options->output);
  return PL_OK;
}

static pl_code run(void *session_, MPI_Comm comm, pl_error *error) {
  session *own = session_;
  mallopt(M_MMAP_THRESHOLD, 1 << 30); /* as paceline run does */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  own->n_ranks = pl_rank_count(comm);
  if (pl_rank(comm) == 0) check_output(own, error);
  PL_TRY(pl_agree(comm, error));
  return pl_measure_machine(comm, true, own->options->thorough, &own->interrupt, &own->arena, &own->samples, error);
}

int pl_calibrate_machine_run(const pl_calibrate_machine *options) {
  session own = {.options = options};
  own.interrupt = (pl_interrupt){.command = "calibrate", .silent = pl_ranks_must_be_silent()};
  pl_arena_init(&own.arena, 0);
  const pl_mpi_command command = {
      .name = "calibrate", .session = &own, .run = run, .print = print, .interrupt = &own.interrupt};
  int status = pl_mpi_command_run(&command);
  pl_arena_release(&own.arena);
  return status;
}
