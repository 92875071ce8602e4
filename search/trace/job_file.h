/* job.h5: a trace (workloads/trace/trace.h) in HDF5, one dataset per array, compressed. What is read is checked. */
#ifndef PL_SEARCH_TRACE_JOB_FILE_H
#define PL_SEARCH_TRACE_JOB_FILE_H

#include "workloads/trace/trace.h"

enum { PL_JOB_FILE_VERSION = 2 };

/* Writes it whole or not at all; an existing file only with `force`. */
pl_code pl_job_file_store(const char *path, bool force, const pl_trace *trace, pl_error *error);
/* `trace` is empty before; release it also after a failure. First in a process of its own, for HDF5 may crash on a
 * damaged file. */
pl_code pl_job_file_open(const char *path, pl_trace *trace, pl_error *error);
/* The same at once. */
pl_code pl_job_file_load(const char *path, pl_trace *trace, pl_error *error);

#endif
