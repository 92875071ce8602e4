/* What an op works on, as explanations of tuples and of programs say it. */
#ifndef PL_WORKLOADS_COMMAND_EXPLAIN_SHAPE_H
#define PL_WORKLOADS_COMMAND_EXPLAIN_SHAPE_H

#include "core/text/json_writer.h"
#include "workloads/ir/op.h"

enum { PL_EXPLAIN_SHAPE_BYTES = 64 };

/* "1x4096x28672x4096" of a matrix product, "4096x4096" else; "-": NULL. */
const char *pl_explain_format_shape(const pl_op *op, char text[PL_EXPLAIN_SHAPE_BYTES]);
/* Its type and the same, member by member. */
void pl_explain_put_shape(pl_json *json, const pl_op *op);

#endif
