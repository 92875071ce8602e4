/* Which files of a folder are traces, of which format, of which rank and host. */
#ifndef PL_WORKLOADS_FORMATS_IMPORT_FILES_H
#define PL_WORKLOADS_FORMATS_IMPORT_FILES_H

#include "workloads/trace/trace.h"

typedef enum pl_import_format {
  PL_IMPORT_UNKNOWN = 0,
  PL_IMPORT_KINETO,
  PL_IMPORT_PLAIN,
  PL_IMPORT_EXECUTION, /* PyTorch's execution trace: no times; joined with Kineto */
  PL_IMPORT_CHAKRA,
  PL_IMPORT_GROUPS, /* comm_group.json beside Chakra traces */
  PL_IMPORT_NSYS,
  PL_IMPORT_PERFETTO,
  PL_IMPORT_BYTEPS, /* comm_timeline.json, with server_timeline.json beside it */
  PL_IMPORT_DPRO    /* a folder of files of one rank */
} pl_import_format;

typedef struct pl_import_files {
  char **paths;
  uint8_t *formats; /* pl_import_format */
  uint32_t n, room, format_room;
} pl_import_files;

/* A file, or what a folder and those in it hold, three levels deep, by name. Release it also after a failure. */
pl_code pl_import_files_find(const char *path, pl_import_files *files, pl_error *error);
void pl_import_files_release(pl_import_files *files);

/* "rank-3", "rank_3", "rank3", "worker3" in the file's name, a number as the last part of it ("trace.3.et",
 * "eg_3.json") if `last_number`, or a folder that is but a number. -1: none. */
int64_t pl_import_rank_of_path(const char *path, bool last_number);
/* How much of the paths is common to all files: the length of their folder, with its slash. */
size_t pl_import_common_folder(const pl_import_files *files);
/* The folder between the files' common one and the file, or, with `ranks_per_host` > 0, the host of that many ranks.
 * Into names; PL_NONE: no memory. */
uint32_t pl_import_host_of(pl_trace *trace, size_t common, const char *path, int64_t number, int64_t ranks_per_host);

#endif
