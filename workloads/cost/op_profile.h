/* Op profiles: measured times of whole blocks of a model, which take the place of the sum of their ops' costs
 * (workloads/program/measured_block.h says how).
 *
 * A profile is a table in CSV, one measurement per row (README.md here, "Op profiles"): a device, a kind of block with
 * the dimensions that it was measured at, tensor degree, microbatch, pass, seconds. Rows that say the same count
 * once, with the mean of their times: a model runs all its layers, whose sum is what the mean stands for (a device
 * whose clock falls from layer to layer has no median layer).
 *
 * Rejected: entries of the device profile's op table. Those are single kernels of one shape, whose dimensions say all;
 * a layer's time belongs to a model, a software stack and the collectives that ran inside.
 */
#ifndef PL_WORKLOADS_OP_PROFILE_H
#define PL_WORKLOADS_OP_PROFILE_H

#include "core/base/arena.h"
#include "core/cluster/cluster.h"
#include "workloads/ir/model.h"

typedef struct pl_pass_time {
  const char *device; /* name of a device profile */
  pl_block_kind block;
  pl_dtype dtype;
  bool backward;
  bool has_collectives;                           /* those of the tensor group are inside the time */
  int64_t hidden, seq;                            /* seq: of the whole sequence */
  int64_t ffn_hidden, n_heads, n_kv_heads, vocab; /* 0: any */
  int32_t tmp, mbs;
  double time_s; /* mean of `n_rows` */
  uint32_t n_rows;
} pl_pass_time;

typedef struct pl_op_profile {
  const char *path;
  uint64_t digest;           /* of the table's texts */
  const pl_pass_time *times; /* in the order of the file */
  uint32_t n_times;
} pl_op_profile;

/* Everything in `arena`. PL_BAD_INPUT with file:line: what pl_csv_load refuses, a column that must be there and is not,
 * a column that is unknown, no rows, a count or a time that is not one, an unknown block, pass or type. O(rows *
 * distinct). */
pl_code pl_op_profile_load(const char *path, pl_arena *arena, pl_op_profile *profile, pl_error *error);
pl_code pl_op_profile_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_op_profile *profile,
                            pl_error *error);

/* Whether the time was measured on blocks of this class: kind, dimensions, type and sequence length (`seq` the job's;
 * of unlike blocks the time's is that of the sequences that attention sees); not device, tmp or mbs. */
bool pl_pass_time_is_of(const pl_pass_time *time, const pl_model *model, int32_t block_class, pl_dtype dtype,
                        int64_t seq);

/* Whether any time is of this model on a device of the cluster. Models of unlike blocks have none: their layers have
 * several widths. */
bool pl_op_profile_applies(const pl_op_profile *profile, const pl_model *model, pl_dtype dtype, int64_t seq,
                           const pl_cluster *cluster);

#endif
