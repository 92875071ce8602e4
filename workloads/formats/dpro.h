/* dPRO's job folders (Hu et al. 2022): JOB/HOST/RANK/ with TensorFlow's profile (trace.json), Horovod's timeline
 * (comm.json), the messages of a patched NCCL (comm_detail.json) and its rings and trees
 * (nccl_rank_graph.json).
 *
 * A group of tensors that Horovod fuses becomes: a barrier for each tensor's negotiation (Sync), copies into and out of
 * the fusion buffer, and between them the chunks that NCCL sent and received around its rings or along its trees, or
 * where these were not recorded one all-reduce. Queueing is no op: it is what lies between.
 */
#ifndef PL_WORKLOADS_FORMATS_DPRO_H
#define PL_WORKLOADS_FORMATS_DPRO_H

#include "workloads/trace/trace.h"

/* Holds a rank of such a job: trace.json(.gz) beside one of the others. */
bool pl_dpro_is_rank(const char *folder);

struct pl_byteps;

/* Adds the rank. Its host is the empty name. `servers`: of a job with BytePS its timelines, else NULL; `worker`: which
 * of its workers the rank is, -1: none. */
pl_code pl_dpro_load(const char *folder, int64_t number, struct pl_byteps *servers, int32_t worker, pl_trace *trace,
                     pl_error *error);

/* The same from texts, each NULL if it is not there; for fuzzing. */
typedef struct pl_dpro_texts {
  const char *computing, *timeline, *messages, *rings;
  size_t computing_size, timeline_size, messages_size, rings_size;
} pl_dpro_texts;
pl_code pl_dpro_parse(const char *name, const pl_dpro_texts *texts, int64_t number, struct pl_byteps *servers,
                      int32_t worker, pl_trace *trace, pl_error *error);

#endif
