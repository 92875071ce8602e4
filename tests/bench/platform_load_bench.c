/* How long big platform files take to write and to load, in relation to the smallest: a rail-optimised fat tree of DGX
 * A100, without CPU sockets; and the same with them, in relation to the same size without. Ratios of one run, the
 * smaller of three loads each; a child per load, since SimGrid holds one platform per process. "per node" is 1 when the
 * cost is linear. And what expat takes for the scan of the largest, in relation to the scan as plain XML. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_choice.h"
#include "netmodel/platform/platform_scan.h"
#include "tests/support/bench.h"

typedef struct sample {
  double make_s, load_s, size_bytes, scan_s, expat_s;
  int status;
} sample;

typedef pl_code scan_function(const char *name, const char *text, size_t size, const pl_platform_sink *sink,
                              pl_arena *arena, pl_platform_scan *scan, pl_error *error);

static double measure_scan(const char *path, scan_function *scan_text) {
  pl_platform_text file;
  pl_platform_scan scan;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  if (pl_platform_text_read(path, &file, &error) != PL_OK) return NAN;
  double start_s = bench_cpu_s();
  pl_code code = scan_text(path, file.text, file.size, NULL, &arena, &scan, &error);
  double scan_s = bench_cpu_s() - start_s;
  free(file.text);
  pl_arena_release(&arena);
  return code == PL_OK ? scan_s : NAN;
}

static void measure(uint32_t n_nodes, pl_sockets sockets, sample *s) {
  char path[] = "/tmp/paceline_bench_XXXXXX.xml";
  int file = mkstemps(path, 4);
  if (file < 0) return;
  close(file);
  pl_error error = PL_ERROR_INIT;
  pl_platform *platform = NULL;
  pl_platform_plan plan = {.n_parts = 1,
                           .fabric = PL_FABRIC_RAIL,
                           .pod_nodes = 20,
                           .oversubscription = 1,
                           .sockets = sockets,
                           .command = "bench"};
  plan.parts[0].kind = pl_node_kind_find("dgx-a100");
  plan.parts[0].n_nodes = n_nodes;
  double start_s = bench_cpu_s();
  pl_code code = pl_platform_make_file(&plan, path, true, &error);
  s->make_s = bench_cpu_s() - start_s;
  struct stat status;
  s->size_bytes = stat(path, &status) == 0 ? (double)status.st_size : 0;
  start_s = bench_cpu_s();
  if (code == PL_OK) code = pl_platform_load(path, PACELINE_SOURCE_DIR "/platforms/devices", &platform, &error);
  s->load_s = bench_cpu_s() - start_s;
  if (code != PL_OK) fprintf(stderr, "%s\n", error.message);
  s->scan_s = measure_scan(path, pl_platform_scan_text);
  s->expat_s = measure_scan(path, pl_platform_scan_text_by_expat);
  s->status = code == PL_OK && s->scan_s > 0 && s->expat_s > 0 ? 0 : 1;
  unlink(path);
}

/* In a child, three times: the shortest of each. */
static int measure_apart(uint32_t n_nodes, pl_sockets sockets, sample *shared, sample *best) {
  *best = (sample){.make_s = 1e9, .load_s = 1e9, .scan_s = 1e9, .expat_s = 1e9};
  for (int trial = 0; trial < 3; trial++) {
    shared->status = 1;
    pid_t child = fork();
    if (child == 0) {
      measure(n_nodes, sockets, shared);
      _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child || shared->status != 0) return 1;
    if (shared->make_s < best->make_s) best->make_s = shared->make_s;
    if (shared->load_s < best->load_s) best->load_s = shared->load_s;
    if (shared->scan_s < best->scan_s) best->scan_s = shared->scan_s;
    if (shared->expat_s < best->expat_s) best->expat_s = shared->expat_s;
    best->size_bytes = shared->size_bytes;
  }
  return 0;
}

int main(int argc, char **argv) {
  static const uint32_t sizes[] = {64, 256, 512, 1024, 2048};
  enum { MOST = sizeof sizes / sizeof sizes[0] };
  bench b = bench_begin("platform_load_bench", &argc, argv);
  const int n = b.is_small ? 2 : MOST;
  sample plain[MOST], sockets[MOST];
  sample *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  for (int i = 0; i < n; i++)
    if (measure_apart(sizes[i], PL_SOCKETS_NEVER, shared, &plain[i]) != 0 ||
        measure_apart(sizes[i], PL_SOCKETS_ALWAYS, shared, &sockets[i]) != 0)
      return 1;
  printf("%6s %8s %10s %10s %12s %12s %18s %18s\n", "nodes", "MB", "make", "load", "make/node", "load/node",
         "size with sockets", "load with sockets");
  for (int i = 0; i < n; i++) {
    const sample *s = &plain[i], *first = &plain[0];
    double nodes = (double)sizes[i] / sizes[0];
    printf("%6u %8.1f %9.2fx %9.2fx %11.2fx %11.2fx %17.2fx %17.2fx\n", sizes[i], s->size_bytes / 1e6,
           s->make_s / first->make_s, s->load_s / first->load_s, s->make_s / first->make_s / nodes,
           s->load_s / first->load_s / nodes, sockets[i].size_bytes / s->size_bytes, sockets[i].load_s / s->load_s);
  }
  double nodes = (double)sizes[n - 1] / sizes[0];
  char what[64];
  snprintf(what, sizeof what, "load time of %u nodes, per node", sizes[n - 1]);
  bench_figure(&b, what, "of 64 nodes", plain[n - 1].load_s / plain[0].load_s / nodes);
  bench_figure(&b, "load time with CPU sockets", "without", sockets[n - 1].load_s / plain[n - 1].load_s);
  snprintf(what, sizeof what, "scan of %u nodes by expat", sizes[n - 1]);
  bench_figure(&b, what, "as plain XML", plain[n - 1].expat_s / plain[n - 1].scan_s);
  return bench_end(&b);
}
