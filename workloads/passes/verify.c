/* See workloads/passes/verify.h. */
#include "workloads/passes/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/derive/differentiate.h"
#include "workloads/passes/adapting.h"

double pl_verify_tolerance(const pl_verify_options *options) {
  return options->single ? 2e-4 : 1e-10;
}

bool pl_verification_holds(const pl_verification *v, const pl_verify_options *options) {
  double most = pl_verify_tolerance(options), weights = most;
  /* Adam divides a gradient by its own size: one that is nothing but rounding moves its weight by the rate, either way.
   */
  if (options->single) weights += 2 * pl_differentiate_defaults().rate * options->iterations;
  return v->loss_error <= most && v->gradient_error <= most && v->weight_error <= weights && v->copies_error <= most;
}

/* NaN counts as infinite. */
static void raise_to(double *most, double value) {
  if (!(value <= *most)) *most = isnan(value) ? HUGE_VAL : value;
}

static double largest_of(const double *a, size_t n) {
  double largest = 0;
  for (size_t i = 0; i < n; i++)
    raise_to(&largest, fabs(a[i]));
  return largest;
}

static double largest_difference(const double *a, const double *b, size_t n, double least) {
  double largest = fmax(largest_of(a, n), least), difference = 0;
  for (size_t i = 0; i < n; i++)
    raise_to(&difference, fabs(a[i] - b[i]));
  return largest > 0 ? difference / largest : difference;
}

/* The largest element of all values of a kind. */
static double largest_of_all(const pl_execution *plain, pl_execution_kind kind) {
  double largest = 0;
  const char *path;
  for (int32_t i = 0; (path = pl_execution_path(plain, kind, i)) != NULL; i++) {
    pl_ir_type type;
    double *whole = pl_execution_whole(plain, kind, path, &type, NULL);
    if (whole != NULL) raise_to(&largest, largest_of(whole, (size_t)pl_ir_type_elements(&type)));
    free(whole);
  }
  return largest;
}

/* Every value of a kind that either has; *worst is the path of the largest error. */
static pl_code compare_kind(const pl_execution *plain, const pl_execution *other, pl_execution_kind kind, bool single,
                            pl_arena *arena, pl_verification *v, double *error_of_kind, const char **worst,
                            pl_error *error) {
  /* What should be zero, as the gradient of a key's bias, is rounding: it is measured by what is not. */
  double least = (single ? PL_VERIFY_NOISE_SINGLE : PL_VERIFY_NOISE) * largest_of_all(plain, kind);
  const char *path;
  for (int32_t i = 0; (path = pl_execution_path(plain, kind, i)) != NULL; i++) {
    pl_ir_type type, other_type;
    double copies;
    double *a = pl_execution_whole(plain, kind, path, &type, NULL);
    double *b = pl_execution_whole(other, kind, path, &other_type, &copies);
    other_type.element = type.element; /* gradients may be kept in a wider type */
    bool same = a != NULL && b != NULL && pl_ir_type_same_shape(&type, &other_type);
    double difference = same ? largest_difference(a, b, (size_t)pl_ir_type_elements(&type), least) : HUGE_VAL;
    free(a);
    free(b);
    if (same) raise_to(&v->copies_error, copies);
    if (difference <= *error_of_kind && *worst != NULL) continue;
    *error_of_kind = difference;
    *worst = pl_arena_strdup(arena, path);
    if (*worst == NULL) return pl_fail_memory(error, "a path");
  }
  if (kind == PL_EXECUTION_PARAMETER)
    while (pl_execution_path(plain, kind, v->n_parameters) != NULL)
      v->n_parameters++;
  return PL_OK;
}

static void count_ops(const pl_ir_module *module, pl_verification *v) {
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_row *row = pl_ir_row_at(module->functions[f]->ops[i].row);
      v->n_collectives += row->effect == PL_IR_COLLECTIVE && strcmp(row->name, "cut") != 0;
      v->n_sends += strcmp(row->name, "send") == 0;
      v->norms_batches = v->norms_batches || pl_adapt_is_norm(&module->functions[f]->ops[i]);
    }
}

/* Where loss and all gradients are zero anything is equal. */
static pl_code check_something(const pl_execution *plain, const pl_verify_options *options, const char *name,
                               pl_error *error) {
  bool any = largest_of_all(plain, PL_EXECUTION_GRADIENT) != 0;
  for (int32_t i = 0; i < options->iterations; i++)
    any = any || pl_execution_loss(plain, i) != 0;
  if (any) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: the plain program's loss and all of its gradients are zero, so that there is nothing to compare",
                 name);
}

static pl_code compare(const pl_execution *plain, const pl_execution *other, const pl_verify_options *options,
                       pl_arena *arena, pl_verification *v, pl_error *error) {
  for (int32_t i = 0; i < options->iterations; i++) {
    v->loss = pl_execution_loss(plain, i);
    v->other_loss = pl_execution_loss(other, i);
    raise_to(&v->loss_error, largest_difference(&v->loss, &v->other_loss, 1, 0));
  }
  PL_TRY(compare_kind(plain, other, PL_EXECUTION_GRADIENT, options->single, arena, v, &v->gradient_error,
                      &v->worst_gradient, error));
  return compare_kind(plain, other, PL_EXECUTION_PARAMETER, options->single, arena, v, &v->weight_error,
                      &v->worst_weight, error);
}

pl_code pl_verify(const pl_ir_module *plain, const pl_ir_module *distributed, const pl_verify_options *options,
                  pl_arena *arena, pl_verification *v, pl_error *error) {
  *v = (pl_verification){.n_devices = pl_ir_module_devices(distributed),
                         .n_classes = distributed->n_classes,
                         .n_functions = distributed->n_functions,
                         .n_microbatches = distributed->n_microbatches};
  count_ops(distributed, v);
  pl_execution_options run = {.seed = options->seed,
                              .iterations = options->iterations,
                              .single = options->single,
                              .source = options->source,
                              .tolerance = pl_verify_tolerance(options)};
  pl_execution *first = NULL, *second = NULL;
  pl_code code = pl_execute(plain, &run, &first, error);
  if (options->other_source != NULL) run.source = options->other_source;
  if (code == PL_OK) code = pl_execute(distributed, &run, &second, error);
  for (int32_t c = 0; code == PL_OK && c < distributed->n_classes; c++)
    v->peak_bytes = fmax(v->peak_bytes, pl_execution_peak_bytes(second, c));
  if (code == PL_OK) code = check_something(first, options, plain->name, error);
  if (code == PL_OK) code = compare(first, second, options, arena, v, error);
  pl_execution_destroy(first);
  pl_execution_destroy(second);
  return code;
}
