/* See workloads/formats/import_files.h. */
#include "workloads/formats/import_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/growing.h"
#include "workloads/formats/dpro.h"
#include "workloads/formats/json_events.h"

enum { DEEPEST = 3, MOST_FILES = 1 << 17 };

static bool ends(const char *name, const char *with) {
  size_t n = strlen(name), m = strlen(with);
  return n > m && strcasecmp(name + n - m, with) == 0;
}

/* ---- of which format ---- */

typedef struct detective {
  uint32_t depth;
  pl_import_format format;
} detective;

static pl_code detect_token(void *context, pl_json_token token, const char *text, size_t size, pl_error *error) {
  static const pl_json_word words[] = {{"traceEvents", PL_IMPORT_KINETO},
                                       {"distributedInfo", PL_IMPORT_KINETO},
                                       {"deviceProperties", PL_IMPORT_KINETO},
                                       {"paceline_trace", PL_IMPORT_PLAIN},
                                       {"nodes", PL_IMPORT_EXECUTION},
                                       {"paceline_perfetto", PL_IMPORT_PERFETTO},
                                       {NULL, PL_IMPORT_UNKNOWN}};
  detective *own = context;
  (void)error;
  if (token == PL_JSON_OPEN_ARRAY && own->depth == 0) own->format = PL_IMPORT_KINETO;
  if (token == PL_JSON_OPEN_OBJECT || token == PL_JSON_OPEN_ARRAY) own->depth++;
  if (token == PL_JSON_CLOSE_OBJECT || token == PL_JSON_CLOSE_ARRAY) own->depth--;
  if (token == PL_JSON_KEY && own->depth == 1)
    own->format = (pl_import_format)pl_json_find_word(words, text, size, PL_IMPORT_UNKNOWN);
  return own->format == PL_IMPORT_UNKNOWN ? PL_OK : PL_UNSUPPORTED; /* found: reads no further */
}

static pl_code detect_json(const char *path, pl_import_format *format, pl_error *error) {
  detective own = {.format = PL_IMPORT_UNKNOWN};
  const pl_json_reader reader = {detect_token, NULL, &own};
  pl_json_end end;
  pl_error said = PL_ERROR_INIT;
  pl_code code = pl_json_events_read(path, &reader, &end, &said);
  *format = own.format;
  if (own.format != PL_IMPORT_UNKNOWN || code == PL_OK) return PL_OK;
  return pl_fail(error, code, "%s", said.message);
}

static pl_code is_sqlite(const char *path, bool *yes, pl_error *error) {
  char head[16] = "";
  FILE *file = fopen(path, "rb");
  if (file == NULL) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  *yes = fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, "SQLite format 3", 16) == 0;
  fclose(file);
  return PL_OK;
}

static pl_code detect(const char *path, pl_import_format *format, pl_error *error) {
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  bool database = false;
  PL_TRY(is_sqlite(path, &database, error));
  *format = database                                    ? PL_IMPORT_NSYS
            : ends(name, ".et") || ends(name, ".et.gz") ? PL_IMPORT_CHAKRA
            : strcasestr(name, "comm_group") != NULL    ? PL_IMPORT_GROUPS
                                                        : PL_IMPORT_UNKNOWN;
  if (ends(name, ".nsys-rep") || ends(name, ".qdrep"))
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: is a report that only nsys reads; nsys export --type sqlite makes a file of it", path);
  if (*format == PL_IMPORT_UNKNOWN && (ends(name, ".sqlite") || ends(name, ".db")))
    return pl_fail(error, PL_BAD_INPUT, "%s: is no SQLite database", path);
  return *format == PL_IMPORT_UNKNOWN ? detect_json(path, format, error) : PL_OK;
}

/* ---- which files ---- */

static pl_code add_file(pl_import_files *all, const char *path, pl_import_format format, pl_error *error) {
  if (all->n >= MOST_FILES) return pl_fail(error, PL_BAD_INPUT, "%s: more than %d files", path, MOST_FILES);
  if (!PL_GROW(all->paths, all->n, all->room) || !PL_GROW(all->formats, all->n, all->format_room))
    return pl_fail_memory(error, "the files of a job");
  all->formats[all->n] = (uint8_t)format;
  all->paths[all->n] = strdup(path);
  return all->paths[all->n++] != NULL ? PL_OK : pl_fail_memory(error, "the files of a job");
}

static bool is_trace_name(const char *name) {
  static const char *const endings[] = {".json", ".json.gz", ".et", ".et.gz", ".sqlite", ".nsys-rep", ".qdrep"};
  for (size_t k = 0; k < sizeof endings / sizeof *endings; k++)
    if (ends(name, endings[k])) return true;
  return false;
}

static pl_code scan(pl_import_files *all, const char *folder, int depth, pl_error *error) {
  if (pl_dpro_is_rank(folder)) return add_file(all, folder, PL_IMPORT_DPRO, error);
  struct dirent **entries;
  int n = scandir(folder, &entries, NULL, alphasort);
  if (n < 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", folder, strerror(errno));
  pl_code code = PL_OK;
  for (int k = 0; k < n; k++) {
    const char *name = entries[k]->d_name;
    char *path = NULL;
    struct stat info;
    if (code == PL_OK && name[0] != '.') {
      if (asprintf(&path, "%s/%s", folder, name) < 0) code = pl_fail_memory(error, "a path");
      if (code == PL_OK && stat(path, &info) == 0) {
        pl_import_format format;
        if (S_ISDIR(info.st_mode) && depth < DEEPEST) code = scan(all, path, depth + 1, error);
        bool links = strcmp(name, "comm_timeline.json") == 0, servers = strcmp(name, "server_timeline.json") == 0;
        if (S_ISREG(info.st_mode) && links) {
          code = add_file(all, path, PL_IMPORT_BYTEPS, error);
        } else if (S_ISREG(info.st_mode) && !servers && is_trace_name(name)) {
          bool is_json = ends(name, ".json") || ends(name, ".json.gz");
          format = PL_IMPORT_UNKNOWN; /* of an empty file, of which the import says that it is none */
          if (info.st_size > 0 || !is_json) code = detect(path, &format, error);
          if (code == PL_OK) code = add_file(all, path, format, error);
        }
      }
      if (path != NULL) free(path);
    }
    free(entries[k]);
  }
  free(entries);
  return code;
}

pl_code pl_import_files_find(const char *path, pl_import_files *files, pl_error *error) {
  struct stat info;
  pl_import_format format;
  *files = (pl_import_files){.n = 0};
  if (stat(path, &info) != 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return scan(files, path, 1, error);
  PL_TRY(detect(path, &format, error));
  return add_file(files, path, format, error);
}

void pl_import_files_release(pl_import_files *files) {
  for (uint32_t k = 0; k < files->n; k++)
    free(files->paths[k]);
  free(files->paths);
  free(files->formats);
  *files = (pl_import_files){.n = 0};
}

/* ---- of which rank ---- */

/* The last number of the name in front of its endings, at the end of it or between dots: trace.3.et, dlrm_eg_3.json. */
static int64_t last_number_of(const char *name) {
  size_t end = strlen(name);
  for (int k = 0; k < 3; k++) { /* endings: .json.gz, .et */
    while (end > 0 && name[end - 1] != '.')
      end--;
    if (end == 0) return -1;
    end--;
    size_t digits = end;
    while (digits > 0 && isdigit((unsigned char)name[digits - 1]))
      digits--;
    if (digits < end && end - digits < 10) return strtoll(name + digits, NULL, 10);
  }
  return -1;
}

int64_t pl_import_rank_of_path(const char *path, bool last_number) {
  static const char *const words[] = {"rank", "worker", "trainer"};
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  for (size_t w = 0; w < sizeof words / sizeof *words; w++)
    for (const char *at = strcasestr(name, words[w]); at != NULL; at = strcasestr(at + 1, words[w])) {
      const char *digits = at + strlen(words[w]);
      digits += *digits == '-' || *digits == '_' || *digits == '.';
      if (isdigit((unsigned char)*digits) && strspn(digits, "0123456789") < 10) return strtoll(digits, NULL, 10);
    }
  if (last_number && last_number_of(name) >= 0) return last_number_of(name);
  if (slash == NULL) return -1;
  const char *folder = slash;
  while (folder > path && folder[-1] != '/')
    folder--;
  size_t n = strspn(folder, "0123456789");
  return n > 0 && n < 10 && folder + n == slash ? strtoll(folder, NULL, 10) : -1;
}

size_t pl_import_common_folder(const pl_import_files *all) {
  size_t n = all->n > 0 ? strlen(all->paths[0]) : 0;
  for (uint32_t k = 1; k < all->n; k++)
    for (size_t at = 0; at < n; at++)
      if (all->paths[k][at] != all->paths[0][at]) n = at;
  while (n > 0 && all->paths[0][n - 1] != '/')
    n--;
  return n;
}

uint32_t pl_import_host_of(pl_trace *trace, size_t common, const char *path, int64_t number, int64_t ranks_per_host) {
  char text[64];
  if (ranks_per_host > 0) {
    int n = snprintf(text, sizeof text, "host%lld", (long long)(number / ranks_per_host));
    return pl_trace_name(trace, text, (size_t)n);
  }
  const char *below = path + common, *slash = strchr(below, '/');
  bool is_number = slash != NULL && strspn(below, "0123456789") == (size_t)(slash - below);
  if (slash != NULL && !is_number) return pl_trace_name(trace, below, (size_t)(slash - below));
  int n = snprintf(text, sizeof text, "host of rank %lld", (long long)number);
  return pl_trace_name(trace, text, (size_t)n);
}
