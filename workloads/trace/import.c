/* See workloads/trace/import.h. */
#include "workloads/trace/import.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "workloads/trace/plain.h"

/* ---- which files ---- */

enum { DEEPEST = 3, MOST_FILES = 1 << 17 };

typedef struct files {
  char **paths;
  uint32_t n, room;
} files;

static bool ends(const char *name, const char *with) {
  size_t n = strlen(name), m = strlen(with);
  return n > m && strcasecmp(name + n - m, with) == 0;
}

static pl_code add_file(files *all, const char *path, pl_error *error) {
  if (all->n >= MOST_FILES) return pl_fail(error, PL_BAD_INPUT, "%s: more than %d files", path, MOST_FILES);
  if (all->n == all->room) {
    uint32_t room = all->room == 0 ? 64 : 2 * all->room;
    char **larger = realloc(all->paths, room * sizeof *larger);
    if (larger == NULL) return pl_fail_memory(error, "the files of a job");
    all->paths = larger;
    all->room = room;
  }
  all->paths[all->n] = strdup(path);
  return all->paths[all->n++] != NULL ? PL_OK : pl_fail_memory(error, "the files of a job");
}

static pl_code scan(files *all, const char *folder, int depth, pl_error *error) {
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
        if (S_ISDIR(info.st_mode) && depth < DEEPEST) code = scan(all, path, depth + 1, error);
        if (S_ISREG(info.st_mode) && (ends(name, ".json") || ends(name, ".json.gz"))) code = add_file(all, path, error);
      }
      if (path != NULL) free(path);
    }
    free(entries[k]);
  }
  free(entries);
  return code;
}

/* ---- of which format ---- */

typedef enum dialect { UNKNOWN = 0, KINETO, PLAIN, EXECUTION } dialect;

typedef struct detective {
  uint32_t depth;
  dialect format;
} detective;

static pl_code detect_token(void *context, pl_json_token token, const char *text, size_t size, pl_error *error) {
  static const pl_json_word words[] = {{"traceEvents", KINETO},      {"distributedInfo", KINETO},
                                       {"deviceProperties", KINETO}, {"paceline_trace", PLAIN},
                                       {"nodes", EXECUTION},         {NULL, UNKNOWN}};
  detective *own = context;
  (void)error;
  if (token == PL_JSON_OPEN_ARRAY && own->depth == 0) own->format = KINETO;
  if (token == PL_JSON_OPEN_OBJECT || token == PL_JSON_OPEN_ARRAY) own->depth++;
  if (token == PL_JSON_CLOSE_OBJECT || token == PL_JSON_CLOSE_ARRAY) own->depth--;
  if (token == PL_JSON_KEY && own->depth == 1) own->format = (dialect)pl_json_find_word(words, text, size, UNKNOWN);
  return own->format == UNKNOWN ? PL_OK : PL_UNSUPPORTED; /* found: reads no further */
}

static pl_code detect(const char *path, dialect *format, pl_error *error) {
  detective own = {.format = UNKNOWN};
  const pl_json_reader reader = {detect_token, NULL, &own};
  pl_json_end end;
  pl_error said = PL_ERROR_INIT;
  pl_code code = pl_json_events_read(path, &reader, &end, &said);
  *format = own.format;
  if (own.format != UNKNOWN || code == PL_OK) return PL_OK;
  return pl_fail(error, code, "%s", said.message);
}

/* ---- of which rank ---- */

/* "rank-3", "rank_3", "rank3", "worker3" in the file's name, or a folder that is but a number. -1: none. */
static int64_t rank_of_path(const char *path) {
  static const char *const words[] = {"rank", "worker", "trainer"};
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  for (size_t w = 0; w < sizeof words / sizeof *words; w++)
    for (const char *at = strcasestr(name, words[w]); at != NULL; at = strcasestr(at + 1, words[w])) {
      const char *digits = at + strlen(words[w]);
      digits += *digits == '-' || *digits == '_' || *digits == '.';
      if (isdigit((unsigned char)*digits) && strspn(digits, "0123456789") < 10) return strtoll(digits, NULL, 10);
    }
  if (slash == NULL) return -1;
  const char *folder = slash;
  while (folder > path && folder[-1] != '/')
    folder--;
  size_t n = strspn(folder, "0123456789");
  return n > 0 && n < 10 && folder + n == slash ? strtoll(folder, NULL, 10) : -1;
}

/* How much of the paths is common to all files: the length of their folder, with its slash. */
static size_t common_folder(const files *all) {
  size_t n = strlen(all->paths[0]);
  for (uint32_t k = 1; k < all->n; k++)
    for (size_t at = 0; at < n; at++)
      if (all->paths[k][at] != all->paths[0][at]) n = at;
  while (n > 0 && all->paths[0][n - 1] != '/')
    n--;
  return n;
}

/* The folder between the files' common one and the file. PL_NONE: no memory. */
static uint32_t host_of(pl_trace *trace, size_t common, const char *path, int64_t number, int64_t ranks_per_host) {
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

static pl_code load_kineto(size_t common, const char *path, bool alone, const pl_trace_import_options *options,
                           pl_trace *trace, pl_error *error) {
  pl_kineto kineto = {.path = path};
  pl_code code = pl_kineto_read(&kineto, path, trace, options->progress, error);
  if (code == PL_OK) {
    int64_t number = kineto.rank;
    if (number < 0) {
      number = rank_of_path(path);
      if (number < 0 && alone) number = 0;
      if (number >= 0)
        pl_trace_add_note(trace, "%s: does not say its rank; taken as rank %lld %s", path, (long long)number,
                          rank_of_path(path) >= 0 ? "by its name" : "of one");
    }
    if (number < 0 || number > INT32_MAX)
      code = pl_fail(error, PL_BAD_INPUT, "%s: says no rank; name it after its rank, as in rank3.json", path);
    uint32_t host = code == PL_OK ? host_of(trace, common, path, number, options->ranks_per_host) : 0;
    if (code == PL_OK)
      code = host == PL_NONE ? pl_fail_memory(error, path) : pl_kineto_add_rank(&kineto, number, host, trace, error);
  }
  pl_kineto_release(&kineto);
  return code;
}

static pl_code load_plain(size_t common, const char *path, const pl_trace_import_options *options, pl_trace *trace,
                          pl_error *error) {
  PL_TRY(pl_plain_load(path, trace, options->progress, error));
  pl_trace_rank *rank = &trace->ranks[trace->n_ranks - 1];
  if (options->ranks_per_host > 0 || trace->names[rank->host][0] == '\0')
    rank->host = host_of(trace, common, path, rank->number, options->ranks_per_host);
  return rank->host == PL_NONE ? pl_fail_memory(error, path) : PL_OK;
}

static pl_code load(size_t common, const char *path, bool alone, const pl_trace_import_options *options,
                    pl_trace *trace, uint32_t *n_execution, pl_error *error) {
  dialect format;
  PL_TRY(detect(path, &format, error));
  switch (format) {
  case KINETO:
    return load_kineto(common, path, alone, options, trace, error);
  case PLAIN:
    return load_plain(common, path, options, trace, error);
  case EXECUTION:
    (*n_execution)++;
    pl_trace_add_note(trace, "%s: is an execution trace, which has no times; left out", path);
    return PL_OK;
  default:
    if (alone)
      return pl_fail(error, PL_BAD_INPUT, "%s: is no trace: neither traceEvents nor paceline_trace in it", path);
    pl_trace_add_note(trace, "%s: is no trace; left out", path);
    return PL_OK;
  }
}

/* ---- one job ---- */

typedef struct numbered {
  pl_trace_rank rank;
  uint32_t was;
} numbered;

static int by_number(const void *a_, const void *b_) {
  const numbered *a = a_, *b = b_;
  return (a->rank.number > b->rank.number) - (a->rank.number < b->rank.number);
}

static pl_code sort_ranks(pl_trace *trace, pl_error *error) {
  numbered *sorted = malloc(trace->n_ranks * sizeof *sorted);
  uint32_t *place = malloc(trace->n_ranks * sizeof *place);
  if (sorted == NULL || place == NULL) {
    free(sorted);
    free(place);
    return pl_fail_memory(error, "the ranks of a job");
  }
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    sorted[r] = (numbered){trace->ranks[r], r};
  qsort(sorted, trace->n_ranks, sizeof *sorted, by_number);
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    trace->ranks[r] = sorted[r].rank;
    place[sorted[r].was] = r;
  }
  for (uint32_t s = 0; s < trace->n_streams; s++)
    trace->streams[s].rank = place[trace->streams[s].rank];
  for (uint32_t s = 0; s < trace->n_steps; s++)
    trace->steps[s].rank = place[trace->steps[s].rank];
  free(sorted);
  free(place);
  return PL_OK;
}

static pl_code check_one_job(pl_trace *trace, pl_error *error) {
  int64_t world = 0;
  const pl_trace_rank *said_by = NULL;
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    if (r > 0 && rank[-1].number == rank->number)
      return pl_fail(error, PL_BAD_INPUT,
                     "rank %lld is there twice, in %s and %s: one folder for one recording of one job",
                     (long long)rank->number, trace->names[rank[-1].file], trace->names[rank->file]);
    if (rank->world_size == 0) continue;
    if (world != 0 && rank->world_size != world)
      return pl_fail(error, PL_BAD_INPUT, "%s is of a job of %lld ranks, %s of one of %lld: two jobs in one folder",
                     trace->names[said_by->file], (long long)world, trace->names[rank->file],
                     (long long)rank->world_size);
    world = rank->world_size;
    said_by = rank;
    if (rank->number >= world)
      return pl_fail(error, PL_BAD_INPUT, "%s: is rank %lld of a job of %lld ranks", trace->names[rank->file],
                     (long long)rank->number, (long long)world);
  }
  return PL_OK;
}

/* Runs of ranks that are not there, a line each. */
static void note_missing(pl_trace *trace) {
  int64_t world = 0, next = 0;
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    if (trace->ranks[r].world_size > 0) world = trace->ranks[r].world_size;
  if (world == 0) world = trace->ranks[trace->n_ranks - 1].number + 1;
  for (uint32_t r = 0; r <= trace->n_ranks; r++) {
    int64_t number = r < trace->n_ranks ? trace->ranks[r].number : world;
    if (number - next == 1)
      pl_trace_add_note(trace, "rank %lld of %lld is not recorded", (long long)next, (long long)world);
    else if (number > next)
      pl_trace_add_note(trace, "ranks %lld to %lld of %lld are not recorded", (long long)next, (long long)number - 1,
                        (long long)world);
    next = number + 1;
  }
}

static pl_code load_all(const char *job, const files *all, const pl_trace_import_options *options, pl_trace *trace,
                        pl_error *error) {
  uint32_t n_execution = 0;
  size_t common = all->n > 0 ? common_folder(all) : 0;
  for (uint32_t k = 0; k < all->n; k++)
    PL_TRY(load(common, all->paths[k], all->n == 1, options, trace, &n_execution, error));
  if (trace->n_ranks == 0 && n_execution > 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: only execution traces, which have no times; the profiler's trace of the same run is needed",
                   job);
  if (trace->n_ranks == 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: no trace in it (files that end in .json or .json.gz)", job);
  PL_TRY(sort_ranks(trace, error));
  PL_TRY(check_one_job(trace, error));
  note_missing(trace);
  return PL_OK;
}

pl_code pl_trace_import(const char *path, const pl_trace_import_options *options, pl_trace *trace, pl_error *error) {
  files all = {.n = 0};
  struct stat info;
  if (stat(path, &info) != 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  pl_code code = S_ISDIR(info.st_mode) ? scan(&all, path, 1, error) : add_file(&all, path, error);
  if (code == PL_OK) code = load_all(path, &all, options, trace, error);
  for (uint32_t k = 0; k < all.n; k++)
    free(all.paths[k]);
  free(all.paths);
  if (code == PL_OK) PL_ASSERT(pl_trace_is_valid(trace));
  return code;
}
