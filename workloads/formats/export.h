/* A job as the files that other tools read: a folder with one per rank, or one file of all. */
#ifndef PL_WORKLOADS_FORMATS_EXPORT_H
#define PL_WORKLOADS_FORMATS_EXPORT_H

#include "workloads/trace/trace.h"

typedef enum pl_export_format {
  PL_EXPORT_TIMELINE = 0, /* a Chrome trace for looking at, which does not come back; not of this file */
  PL_EXPORT_CHAKRA,       /* trace.N.et and comm_group.json, as ASTRA-sim reads them */
  PL_EXPORT_KINETO,       /* rankN.json, as HolisticTraceAnalysis reads them */
  PL_EXPORT_PERFETTO,     /* one Chrome trace of all ranks (workloads/formats/perfetto.h), .gz too */
  PL_EXPORT_FORMAT_COUNT
} pl_export_format;

extern const char *const pl_export_format_names[PL_EXPORT_FORMAT_COUNT + 1];

pl_code pl_export_format_parse(const char *text, pl_export_format *format, pl_error *error);

/* Looked at before long work: PL_BAD_INPUT if a folder is wanted and `path` is a file, or what is there may not be
 * replaced: a folder that is not empty, a file, without `force`. */
pl_code pl_export_check(const char *path, pl_export_format format, bool force, pl_error *error);

/* Makes the folder and writes the files, each whole or not at all. */
pl_code pl_export_store(const char *path, pl_export_format format, bool force, const pl_trace *trace, pl_error *error);

#endif
