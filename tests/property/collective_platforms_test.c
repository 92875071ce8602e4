/* Ring channels on the machines of platforms/, against what NCCL finds on the real ones. SimGrid holds one platform per
 * process, so each machine is looked at in a child of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "netmodel/platform/platform.h"

typedef struct machine_case {
  const char *path;
  uint32_t n, stride; /* members 0, stride, 2 stride ... */
  uint32_t channels;
  double total_Bps;
  double spine_uses; /* links of kind fabric that the ring crosses; negative = not looked at */
} machine_case;

enum { MOST_MEMBERS = 128 };

/* 0 when as expected, else 1 with a line on stderr. */
static int look(const machine_case *machine) {
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(machine->path, NULL, &platform, &error) != PL_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  const pl_cluster *cluster = pl_platform_cluster(platform);
  uint32_t members[MOST_MEMBERS];
  for (uint32_t i = 0; i < machine->n; i++)
    members[i] = i * machine->stride;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_collective_options options = {.algorithm = PL_ALGORITHM_RING};
  pl_collective_group *group;
  pl_fluid_collective fluid;
  if (pl_collective_group_take(cluster, members, machine->n, &options, &arena, &group, &error) != PL_OK ||
      pl_collective_fluid(group, PL_ALL_REDUCE, 1e9, &arena, &fluid, &error) != PL_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  double rate_Bps = fluid.spec.rate_cap_Bps, spine = 0;
  for (uint32_t i = 0; i < fluid.spec.n_uses; i++) {
    const pl_link *link = &cluster->links[fluid.uses[i].link];
    rate_Bps = fmin(rate_Bps, link->capacity_Bps / fluid.uses[i].weight);
    if (link->kind == PL_LINK_FABRIC) spine += fluid.uses[i].weight;
  }
  uint32_t channels = pl_collective_group_channels(group);
  fprintf(stderr, "%s, %u members: %u channels, %g GB/s, fabric crossings %g\n", machine->path, machine->n, channels,
          channels * rate_Bps / 1e9, spine);
  bool good = channels == machine->channels && fabs(channels * rate_Bps / machine->total_Bps - 1) < 1e-9 &&
              (machine->spine_uses < 0 || spine == machine->spine_uses);
  pl_arena_release(&arena);
  pl_platform_destroy(platform);
  return good ? 0 : 1;
}

static void check(const machine_case *machine) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(look(machine));
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("%s is not as expected", machine->path);
}

/* "6 rings" of NCCL on eight V100; nccl-tests reaches 129 to 135.5 GB/s of bus bandwidth there, 86 to 90 % of these
 * nominal 150. */
static void cube_mesh_has_three_double_rings(void **unused) {
  (void)unused;
  check(&(machine_case){"platforms/dgx-1v.xml", 8, 1, 6, 150e9, -1});
  check(&(machine_case){"platforms/dgx-1v.xml", 4, 1, 4, 100e9, -1});
  check(&(machine_case){"platforms/dgx-1v.xml", 2, 4, 1, 50e9, -1}); /* GPUs 0 and 4: two links */
}

static void switched_nodes_have_their_port(void **unused) {
  (void)unused;
  check(&(machine_case){"platforms/dgx-2.xml", 16, 1, 1, 150e9, -1});
  check(&(machine_case){"platforms/dgx-a100.xml", 8, 1, 1, 300e9, -1});
  check(&(machine_case){"platforms/dgx-h100.xml", 8, 1, 1, 450e9, -1});
}

/* 16 nodes on rails: one channel per NIC, and no hop that changes rails (which would cross the spine). */
static void whole_nodes_use_every_nic(void **unused) {
  (void)unused;
  check(&(machine_case){"platforms/dgx-a100-16.xml", 128, 1, 8, 200e9, 0});
  check(&(machine_case){"platforms/dgx-a100-16.xml", 16, 8, 1, 25e9, -1});
  check(&(machine_case){"platforms/dgx-h100-16.xml", 128, 1, 8, 400e9, 0});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cube_mesh_has_three_double_rings),
      cmocka_unit_test(switched_nodes_have_their_port),
      cmocka_unit_test(whole_nodes_use_every_nic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
