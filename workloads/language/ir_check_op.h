/* Whether one op is right by itself: what the table says of its row, against its operands. Messages without place;
 * whoever asks adds that. */
#ifndef PL_WORKLOADS_IR_CHECK_OP_H
#define PL_WORKLOADS_IR_CHECK_OP_H

#include "workloads/language/ir_table.h"

enum { PL_IR_TEXT_MAX = 255 /* letters of a path, a tag, an instance; of a whole path too */ };

/* Number of operands and results, path, callee, attributes: which, of which kind, finite. */
pl_code pl_ir_op_form_check(const pl_ir_module *module, const pl_ir_op *op, pl_error *error);
/* Types of the results where they are not written: inferred, with the layout that the operands' layouts leave. */
pl_code pl_ir_op_types(const pl_ir_module *module, const pl_ir_function *function, const pl_ir_making *making,
                       pl_ir_type *types, pl_error *error);
/* The form, that all types can lie on the mesh, that results are as inferred and layouts fit; of a call that arguments
 * and results are the callee's. */
pl_code pl_ir_op_check(const pl_ir_module *module, const pl_ir_function *function, const pl_ir_op *op, pl_error *error);
/* The axes divide what they cut. Says which does not. */
pl_code pl_ir_type_check(const pl_ir_mesh *mesh, const pl_ir_type *type, pl_error *error);

#endif
