/* Programs: any text is either refused with one message that has a place in it, or gives a module that prints, reads
 * again and prints alike; the check of what is read passes it or names what is wrong. What passes is run by
 * the reference executor, where it is small: it comes to its end, or meets an op that cannot be computed; and it is
 * simulated on a node of eight GPUs, where its time is a number. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/synthetic_cluster.h"
#include "workloads/execute/executor.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/run/simulate_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *printed(const pl_ir_module *module, size_t *size) {
  char *text = NULL;
  FILE *stream = open_memstream(&text, size);
  PL_ASSERT(stream != NULL);
  pl_ir_print(stream, module);
  PL_ASSERT(fclose(stream) == 0);
  return text;
}

static void check_round_trip(const pl_ir_module *module, pl_arena *arena) {
  pl_ir_module again;
  pl_error error = PL_ERROR_INIT;
  size_t first_size, second_size;
  char *first = printed(module, &first_size);
  PL_ASSERT(pl_ir_parse("again", first, first_size, arena, &again, &error) == PL_OK);
  PL_ASSERT(pl_ir_module_equal(module, &again));
  char *second = printed(&again, &second_size);
  PL_ASSERT(first_size == second_size && memcmp(first, second, first_size) == 0);
  free(first);
  free(second);
}

static void check_refusal(const pl_error *error, const char *text, size_t size) {
  pl_ir_place place;
  PL_ASSERT(error->code == PL_BAD_INPUT);
  PL_ASSERT(pl_ir_error_place(error, "fuzz.plir", &place));
  size_t shown_size;
  char *shown = NULL;
  FILE *stream = open_memstream(&shown, &shown_size);
  PL_ASSERT(stream != NULL);
  pl_ir_source_show(stream, text, size, place);
  PL_ASSERT(fclose(stream) == 0 && shown_size > 0);
  free(shown);
}

/* Elements that all functions make, each by each device, for every call and step there is: more than is made. */
static double work_of(const pl_ir_module *module) {
  double elements = 0, calls = 1;
  for (int32_t f = 0; f < module->n_functions; f++) {
    const pl_ir_function *function = module->functions[f];
    for (int32_t i = 0; i < function->n_values; i++)
      elements += pl_ir_type_elements(&function->values[i].type);
    for (int32_t i = 0; i < function->n_ops; i++)
      calls += function->ops[i].callee != PL_IR_NONE;
  }
  for (int32_t c = 0; c < module->n_classes; c++)
    calls += module->classes[c].n_steps;
  return elements * calls * pl_ir_mesh_devices(&module->mesh);
}

static void check_run(const pl_ir_module *module) {
  static const pl_execution_options options = {.seed = 1, .iterations = 2};
  static const double most = 3e7;
  pl_execution *execution;
  pl_error error = PL_ERROR_INIT;
  if (work_of(module) > most) return;
  pl_code code = pl_execute(module, &options, &execution, &error);
  /* Data are what the program says they are below, which may be more than a table has rows. */
  bool data = code == PL_BAD_INPUT && strstr(error.message, "is outside of dimension") != NULL;
  if (code != PL_OK && code != PL_UNSUPPORTED && !data) fprintf(stderr, "%s\n", error.message);
  PL_ASSERT(code == PL_OK || code == PL_UNSUPPORTED || data);
  pl_execution_destroy(execution);
}

/* Streams may make a deadlock that lists do not have: then it is refused. */
static void check_simulation(const pl_ir_module *module, pl_arena *arena) {
  static const double most = 3e7;
  if (work_of(module) > most || pl_ir_mesh_devices(&module->mesh) > 8) return;
  const pl_simulate_options options = {.network = PL_NETWORK_FLOW};
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 1, .gpus_per_node = 8});
  pl_program_report report;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_simulate_program(cluster, module, NULL, &options, arena, &report, &error);
  PL_ASSERT(code == error.code && (code == PL_OK || code == PL_BAD_INPUT || code == PL_UNSUPPORTED));
  PL_ASSERT(code != PL_OK || (isfinite(report.iter_time_s) && report.iter_time_s >= 0));
  synthetic_cluster_release(cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_ir_parse("fuzz.plir", (const char *)data, size, &arena, &module, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK) {
    check_round_trip(&module, &arena);
    code = pl_ir_check(&module, &error);
    PL_ASSERT(code == error.code);
  }
  if (code == PL_OK) {
    check_run(&module);
    check_simulation(&module, &arena);
  } else {
    check_refusal(&error, (const char *)data, size);
  }
  pl_arena_release(&arena);
  return 0;
}
