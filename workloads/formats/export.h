/* A job as the files that other tools read: a folder with one per rank. */
#ifndef PL_WORKLOADS_FORMATS_EXPORT_H
#define PL_WORKLOADS_FORMATS_EXPORT_H

#include "workloads/trace/trace.h"

typedef enum pl_export_format {
  PL_EXPORT_PERFETTO = 0, /* one Chrome trace of all ranks; not of this file */
  PL_EXPORT_CHAKRA,       /* trace.N.et and comm_group.json, as ASTRA-sim reads them */
  PL_EXPORT_KINETO,       /* rankN.json, as HolisticTraceAnalysis reads them */
  PL_EXPORT_FORMAT_COUNT
} pl_export_format;

extern const char *const pl_export_format_names[PL_EXPORT_FORMAT_COUNT + 1];

pl_code pl_export_format_parse(const char *text, pl_export_format *format, pl_error *error);

/* Looked at before long work: PL_BAD_INPUT if `folder` is a file, or is there and not empty and `force` is not given.
 */
pl_code pl_export_check(const char *folder, bool force, pl_error *error);

/* Makes the folder and writes the files, each whole or not at all. */
pl_code pl_export_store(const char *folder, pl_export_format format, bool force, const pl_trace *trace,
                        pl_error *error);

#endif
