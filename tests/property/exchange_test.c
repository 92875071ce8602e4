/* Collectives of the reference executor keep the value: whatever layout a value has and whatever other one it is
 * brought to along some axes, what the devices hold together is the same afterwards. Only where an axis that is not the
 * innermost one to cut a dimension takes part may an exchange be refused. PACELINE_SEED repeats a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "workloads/execute/exchange.h"

enum { TRIALS = 3000 };

static pl_ir_mesh random_mesh(uint64_t *state) {
  static const char *const names[] = {"dp", "cp", "tp"};
  pl_ir_mesh mesh = {.n_axes = (int32_t)random_between(state, 1, 3)};
  for (int32_t axis = 0; axis < mesh.n_axes; axis++)
    mesh.axes[axis] = (pl_ir_axis){.name = pl_ir_name_of(names[axis]), .extent = (int32_t)random_between(state, 2, 3)};
  return mesh;
}

static pl_ir_type random_type(uint64_t *state) {
  static const char *const names[] = {"b", "s", "h"};
  pl_ir_dim dims[3];
  int32_t rank = (int32_t)random_between(state, 1, 3);
  for (int32_t i = 0; i < rank; i++)
    dims[i] = (pl_ir_dim){.name = pl_ir_name_of(names[i]), .extent = random_below(state, 2) ? 36 : 6};
  return pl_ir_type_of(PL_IR_F32, rank, dims);
}

static bool parts_divide(const pl_ir_mesh *mesh, const pl_ir_type *type) {
  return pl_ir_type_is_valid(mesh, type);
}

/* The first axis of `over` that cuts `dim` lies left of one that cuts it and is not in `over`. */
static bool is_inner_first(const pl_ir_mesh *mesh, const pl_ir_type *type, const bool *over, int32_t dim) {
  bool seen = false;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (type->on[axis] != dim) continue;
    if (over[axis]) {
      seen = true;
    } else if (seen) {
      return false;
    }
  }
  return true;
}

typedef struct exchange_case {
  pl_ir_mesh mesh;
  pl_ir_type from, to;
  pl_ir_name over[3];
  int32_t n_over;
  bool may_be_refused;
} exchange_case;

static void draw(uint64_t *state, exchange_case *own) {
  bool over[3];
  do {
    own->mesh = random_mesh(state);
    own->from = own->to = random_type(state);
    own->n_over = 0;
    for (int32_t axis = 0; axis < own->mesh.n_axes; axis++) {
      int8_t on = (int8_t)(random_below(state, (uint32_t)own->from.rank + 2) - 2u);
      own->from.on[axis] = own->to.on[axis] = on;
      over[axis] = random_below(state, 2);
      if (!over[axis]) continue;
      own->over[own->n_over++] = own->mesh.axes[axis].name;
      own->to.on[axis] = (int8_t)(random_below(state, (uint32_t)own->from.rank + 1) - 1u);
    }
  } while (own->n_over == 0 || !parts_divide(&own->mesh, &own->from) || !parts_divide(&own->mesh, &own->to));
  own->may_be_refused = false;
  for (int32_t dim = 0; dim < own->from.rank; dim++)
    if (!is_inner_first(&own->mesh, &own->from, over, dim) || !is_inner_first(&own->mesh, &own->to, over, dim))
      own->may_be_refused = true;
}

static void fill(pl_holding *holding, const pl_crew *crew, uint64_t *state) {
  for (uint32_t d = 0; d < crew->n_devices; d++)
    for (int64_t i = 0; i < holding->parts[d].n; i++)
      holding->parts[d].data[i] = random_unit(state) - 0.5;
  for (uint32_t d = 0; d < crew->n_devices; d++) { /* who should hold the same does */
    uint32_t first = crew->devices[d];
    for (int32_t axis = 0; axis < crew->mesh->n_axes; axis++)
      if (holding->type.on[axis] == PL_IR_SAME)
        first -= (uint32_t)pl_ir_mesh_coordinate(crew->mesh, first, axis) * pl_ir_mesh_stride(crew->mesh, axis);
    memcpy(holding->parts[d].data, holding->parts[first].data, (size_t)holding->parts[d].n * sizeof(double));
  }
}

static void the_value_stays(void **unused) {
  (void)unused;
  uint64_t state = test_seed(7);
  int32_t n_refused = 0;
  for (int trial = 0; trial < TRIALS; trial++) {
    exchange_case own;
    draw(&state, &own);
    uint32_t devices[27];
    pl_crew crew = {.mesh = &own.mesh, .devices = devices, .n_devices = pl_ir_mesh_devices(&own.mesh)};
    for (uint32_t d = 0; d < crew.n_devices; d++)
      devices[d] = d;
    pl_holding *from = pl_holding_create(&crew, &own.from), *to = pl_holding_create(&crew, &own.to);
    assert_non_null(from);
    assert_non_null(to);
    fill(from, &crew, &state);
    pl_error error = PL_ERROR_INIT;
    pl_code code = pl_exchange(&crew, own.n_over, own.over, from, to, &error);
    if (code != PL_OK) {
      assert_true(own.may_be_refused);
      n_refused++;
    } else {
      size_t n = (size_t)pl_ir_type_elements(&own.from);
      double *before = malloc(n * sizeof(double)), *after = malloc(n * sizeof(double));
      pl_holding_whole(&crew, from, before);
      pl_holding_whole(&crew, to, after);
      for (size_t i = 0; i < n; i++)
        assert_true(fabs(before[i] - after[i]) < 1e-12);
      assert_true(pl_holding_differs(&crew, to) < 1e-12);
      free(before);
      free(after);
    }
    pl_holding_drop(&crew, from);
    pl_holding_drop(&crew, to);
    assert_true(crew.live_bytes == 0);
  }
  printf("%d exchanges, %d refused\n", TRIALS, n_refused);
  assert_true(n_refused < TRIALS / 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_value_stays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
