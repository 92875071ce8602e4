/* See workloads/language/ir_product.h. */
#include "workloads/language/ir_product.h"

#include "workloads/language/ir_table.h"

pl_ir_element pl_ir_product_element(const pl_ir_op *op, const pl_ir_type *first) {
  pl_ir_element said;
  bool narrow = pl_ir_element_of(pl_ir_text_of(op, PL_IR_PRODUCT_NARROW), &said);
  return narrow ? said : (pl_ir_element)first->element;
}

pl_ir_product pl_ir_product_of(const pl_ir_op *op, const pl_ir_type *first, const pl_ir_type *second) {
  pl_ir_product shape = {.batch = 1, .m = 1, .n = 1, .k = 1};
  for (int32_t i = 0; i < first->rank; i++) {
    bool summed = pl_ir_op_has_name(op, "over", first->dims[i].name);
    bool shared = !summed && pl_ir_type_find(second, first->dims[i].name) >= 0;
    *(summed ? &shape.k : shared ? &shape.batch : &shape.m) *= first->dims[i].extent;
  }
  for (int32_t i = 0; i < second->rank; i++)
    if (pl_ir_type_find(first, second->dims[i].name) < 0) shape.n *= second->dims[i].extent;
  shape.transposed = first->rank > 0 && pl_ir_op_has_name(op, "over", first->dims[0].name) &&
                     !pl_ir_op_has_name(op, "over", first->dims[first->rank - 1].name);
  return shape;
}
