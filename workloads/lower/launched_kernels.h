/* Kernels of a block that is noted by them (launched_block.h), one by one: what they read and write, in which tensors,
 * and what becomes of gradients. Internal to workloads/lower/launched_*.c. */
#ifndef PL_WORKLOADS_LAUNCHED_KERNELS_H
#define PL_WORKLOADS_LAUNCHED_KERNELS_H

#include "workloads/lower/launched_tensors.h"

/* The kernel of an op of the pass, at the end of its list; nothing for an op that launches none, which hands on what it
 * reads. */
void pl_launching_kernel(pl_launching *own, int32_t op);

/* At the end of the pass's list. */
pl_op *pl_launching_append(pl_launching *own, const pl_op *kernel);

/* Attention with keys and values of other ranks, in steps beside their exchange: the kernels of what is one in the
 * function, with its tensors. False: it is one kernel here, too. launched_context.c */
bool pl_launching_context(pl_launching *own, int32_t op, const pl_op *kernel);
/* Whether a collective of the function is among what these steps exchange. */
bool pl_launching_defers(const pl_launching *own, const pl_ir_op *op);

/* Tensors of a kernel; PL_NONE: nothing. Parameters and their gradients stay: a kernel names as many as it has room
 * for. */
bool pl_launching_must_name(const pl_launching *own, uint32_t tensor);
void pl_launching_read(const pl_launching *own, pl_op *kernel, uint32_t tensor);
void pl_launching_write(const pl_launching *own, pl_op *kernel, uint32_t tensor);
/* What op `op` gives, and what its kernel writes besides. launched_outputs.c */
void pl_launching_note_outputs(pl_launching *own, int32_t op, const char *name, pl_op *kernel);
void pl_launching_note_beside(pl_launching *own, int32_t op, pl_op *kernel);

/* Of a framework that reduces a block's gradients together: whether an op is casts and additions to buffers alone, and
 * what it adds is handed over. */
bool pl_launching_only_adds(const pl_launching *own, const pl_ir_op *op);
void pl_launching_hand_over(pl_launching *own, const pl_ir_op *op);

/* Rows that hold a single one, what only picks rows by them, and a product that does. */
bool pl_launching_is_placed(const pl_launching *own, int32_t value);
bool pl_launching_only_picks(const pl_launching *own, const pl_ir_op *place);
void pl_launching_pick_rows(pl_launching *own, int32_t op);

#endif
