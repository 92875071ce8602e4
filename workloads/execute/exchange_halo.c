/* See workloads/execute/exchange.h: parts of a dimension and what lies beside them. */
#include <float.h>

#include "workloads/execute/exchange.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_walk.h"

typedef struct haloing {
  const pl_crew *crew;
  const pl_ir_op *op;
  pl_ir_name dim, parts, rows;
  int64_t first, step;
} haloing;

/* Whether two devices have other parts of the same. */
static bool meets(const haloing *own, uint32_t d, uint32_t other) {
  return pl_ir_op_joins(own->crew->mesh, own->op, own->crew->devices[d], own->crew->devices[other]);
}

typedef struct lying {
  int64_t origin, extent, step;
} lying;

static lying lying_of(const pl_ir_tensor *tensor, pl_ir_name dim) {
  int32_t at = pl_ir_type_find(&tensor->type, dim);
  return (lying){tensor->origin[at], tensor->extent[at], pl_ir_tensor_step(tensor, dim)};
}

/* Rows that `apart` has and `whole` has too, one way or back (then added up). Returns how many. */
static int64_t bring(const haloing *own, const pl_ir_tensor *whole, const pl_ir_tensor *apart, bool back) {
  const lying y = lying_of(whole, own->dim), p = lying_of(apart, own->parts), i = lying_of(apart, own->rows);
  const pl_ir_type rest = pl_ir_type_without_dim(&whole->type, own->dim);
  int64_t n = 0;
  for (int64_t part = 0; part < p.extent; part++)
    for (int64_t row = 0; row < i.extent; row++) {
      int64_t at = own->first + (p.origin + part) * own->step + row - y.origin;
      if (at < 0 || at >= y.extent) continue;
      pl_ir_walk walk = pl_ir_walk_over(rest.rank, rest.dims, 2, (const pl_ir_tensor *[]){whole, apart});
      n++;
      do {
        double *in = &whole->data[walk.at[0] + at * y.step];
        double *out = &apart->data[walk.at[1] + part * p.step + row * i.step];
        if (back)
          *in += *out;
        else
          *out = *in;
      } while (pl_ir_walk_next(&walk));
    }
  return n;
}

/* Rows of a part that lie in the picture. */
static int64_t rows_inside(const haloing *own, const pl_ir_tensor *whole, const pl_ir_tensor *apart) {
  const lying p = lying_of(apart, own->parts), i = lying_of(apart, own->rows);
  int64_t n = 0, extent = whole->type.dims[pl_ir_type_find(&whole->type, own->dim)].extent;
  for (int64_t part = 0; part < p.extent; part++)
    for (int64_t row = 0; row < i.extent; row++) {
      int64_t at = own->first + (p.origin + part) * own->step + row;
      n += at >= 0 && at < extent;
    }
  return n;
}

pl_code pl_exchange_halo(const pl_crew *crew, const pl_ir_op *op, const pl_holding *from, pl_holding *to,
                         pl_error *error) {
  const pl_ir_attribute *names = pl_ir_attribute_find(op, "to");
  const haloing own = {.crew = crew,
                       .op = op,
                       .dim = pl_ir_one_name_of(op, "dim"),
                       .parts = names->names[0],
                       .rows = names->names[1],
                       .first = pl_ir_integer_of(op, "first", 0),
                       .step = pl_ir_integer_of(op, "step", 1)};
  bool back = pl_ir_type_find(&to->type, own.dim) >= 0;
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    pl_ir_tensor *part = &to->parts[d];
    int64_t n = 0;
    for (int64_t i = 0; pl_ir_integer_of(op, "lowest", 0) != 0 && !back && i < part->n; i++)
      part->data[i] = -FLT_MAX;
    for (uint32_t other = 0; other < crew->n_devices; other++)
      if (meets(&own, d, other))
        n += back ? bring(&own, part, &from->parts[other], true) : bring(&own, &from->parts[other], part, false);
    if (back || n == rows_inside(&own, &from->parts[d], part)) continue;
    return pl_fail(error, PL_BAD_INPUT, "device %u needs %lld rows of %s and those that meet it hold %lld of them",
                   crew->devices[d], (long long)rows_inside(&own, &from->parts[d], part), own.dim.text, (long long)n);
  }
  return PL_OK;
}
