/* See workloads/formats/export.h. */
#include "workloads/formats/export.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/words.h"
#include "core/system/gzip_stream.h"
#include "core/system/output_file.h"
#include "core/text/json_writer.h"
#include "workloads/formats/chakra.h"
#include "workloads/formats/perfetto.h"

const char *const pl_export_format_names[] = {"timeline", "chakra", "kineto", "perfetto", NULL};

pl_code pl_export_format_parse(const char *text, pl_export_format *format, pl_error *error) {
  int found = pl_words_find(pl_export_format_names, text);
  if (found < 0)
    return pl_fail(error, PL_BAD_INPUT, "--trace-format: '%.64s' is none of timeline, perfetto, chakra and kineto",
                   text);
  *format = (pl_export_format)found;
  return PL_OK;
}

static pl_code check_folder(const char *folder, bool force, pl_error *error) {
  struct stat info;
  if (stat(folder, &info) != 0) return PL_OK; /* it is made */
  if (!S_ISDIR(info.st_mode))
    return pl_fail(error, PL_BAD_INPUT, "%s is a file; traces of ranks need a folder", folder);
  DIR *open = opendir(folder);
  if (open == NULL) return pl_fail(error, PL_BAD_INPUT, "%s: %s", folder, strerror(errno));
  bool empty = true;
  for (const struct dirent *entry; (entry = readdir(open)) != NULL;)
    empty &= entry->d_name[0] == '.';
  closedir(open);
  if (!empty && !force)
    return pl_fail(error, PL_BAD_INPUT, "%s is not empty; --force replaces the files of the ranks in it", folder);
  return PL_OK;
}

pl_code pl_export_check(const char *path, pl_export_format format, bool force, pl_error *error) {
  if (format == PL_EXPORT_PERFETTO) return pl_output_file_check(path, force, error);
  return check_folder(path, force, error);
}

static pl_code put_rank(const char *path, pl_export_format format, bool force, const pl_trace *trace, uint32_t rank,
                        pl_error *error) {
  pl_output_file file = {0};
  PL_TRY(pl_output_file_open(&file, path, force, error));
  pl_code code = format == PL_EXPORT_CHAKRA ? pl_chakra_write(file.stream, trace, rank, error)
                                            : pl_kineto_write(file.stream, trace, rank, error);
  return pl_output_file_close(&file, code, error);
}

/* ASTRA-sim's --comm-group-configuration: members by the number that nodes call their group by. */
static pl_code put_groups(const char *path, bool force, const pl_trace *trace, pl_error *error) {
  pl_output_file file = {0};
  pl_json json;
  char number[16];
  PL_TRY(pl_output_file_open(&file, path, force, error));
  pl_json_init(&json, file.stream, true);
  pl_json_open_object(&json);
  for (uint32_t g = 0; g < trace->n_groups; g++) {
    const pl_trace_group *group = &trace->groups[g];
    if (group->n_members == 0) continue;
    snprintf(number, sizeof number, "%u", g + PL_CHAKRA_FIRST_GROUP);
    pl_json_key(&json, number);
    pl_json_open_array(&json);
    for (uint32_t m = 0; m < group->n_members; m++)
      pl_json_integer(&json, trace->members[group->first_member + m]);
    pl_json_close_array(&json);
  }
  pl_json_close_object(&json);
  return pl_output_file_close(&file, PL_OK, error);
}

static pl_code store_one(const char *path, bool force, const pl_trace *trace, pl_error *error) {
  pl_output_file file = {0};
  PL_TRY(pl_output_file_open(&file, path, force, error));
  FILE *stream = pl_gzip_is_wanted(path) ? pl_gzip_stream_open(file.stream) : file.stream;
  pl_code code = stream != NULL ? pl_perfetto_write(stream, trace, error) : pl_fail_memory(error, "a compressed file");
  if (stream != NULL && stream != file.stream && fclose(stream) != 0 && code == PL_OK)
    code = pl_fail(error, PL_IO, "%s: cannot be written: %s", path, strerror(errno));
  return pl_output_file_close(&file, code, error);
}

pl_code pl_export_store(const char *path, pl_export_format format, bool force, const pl_trace *trace, pl_error *error) {
  PL_ASSERT(format != PL_EXPORT_TIMELINE && format < PL_EXPORT_FORMAT_COUNT);
  if (format == PL_EXPORT_PERFETTO) return store_one(path, force, trace, error);
  PL_TRY(check_folder(path, force, error));
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    return pl_fail(error, PL_BAD_INPUT, "%s: cannot be made: %s", path, strerror(errno));
  pl_code code = PL_OK;
  for (uint32_t r = 0; r <= trace->n_ranks && code == PL_OK; r++) {
    char *name = NULL;
    bool groups = r == trace->n_ranks;
    if (groups && format != PL_EXPORT_CHAKRA) break;
    int n = groups ? asprintf(&name, "%s/comm_group.json", path)
                   : asprintf(&name, format == PL_EXPORT_CHAKRA ? "%s/trace.%lld.et" : "%s/rank%lld.json", path,
                              (long long)trace->ranks[r].number);
    if (n < 0) return pl_fail_memory(error, "a path");
    code = groups ? put_groups(name, force, trace, error) : put_rank(name, format, force, trace, r, error);
    free(name);
  }
  return code;
}
