/* See workloads/formats/import.h. */
#include "workloads/formats/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/order.h"
#include "workloads/formats/byteps.h"
#include "workloads/formats/chakra.h"
#include "workloads/formats/dpro.h"
#include "workloads/formats/execution.h"
#include "workloads/formats/import_files.h"
#include "workloads/formats/nsys.h"
#include "workloads/formats/perfetto.h"
#include "workloads/formats/plain.h"
#include "workloads/trace/meeting_gaps.h"

typedef struct importing {
  pl_import_files files;
  size_t common; /* of the paths */
  const pl_trace_import_options *options;
  pl_trace *trace;
  pl_chakra_groups groups;
  pl_byteps servers;
  uint32_t n_of[PL_IMPORT_DPRO + 1]; /* files of each format */
} importing;

static uint32_t host_of(const importing *own, const char *path, int64_t number) {
  return pl_import_host_of(own->trace, own->common, path, number, own->options->ranks_per_host);
}

/* A reader may have left the rank's host open: the empty name. */
static pl_code choose_host(const importing *own, const char *path, pl_error *error) {
  pl_trace_rank *rank = &own->trace->ranks[own->trace->n_ranks - 1];
  if (own->options->ranks_per_host > 0 || own->trace->names[rank->host][0] == '\0')
    rank->host = host_of(own, path, rank->number);
  return rank->host == PL_NONE ? pl_fail_memory(error, path) : PL_OK;
}

/* The execution trace of the same rank: of its number, or the only one beside the only profile. */
static const char *find_execution(const importing *own, int64_t number) {
  for (uint32_t k = 0; k < own->files.n; k++) {
    if (own->files.formats[k] != PL_IMPORT_EXECUTION) continue;
    int64_t of = pl_import_rank_of_path(own->files.paths[k], true);
    bool alone = own->n_of[PL_IMPORT_EXECUTION] == 1 && own->n_of[PL_IMPORT_KINETO] == 1;
    if (of == number || (of < 0 && alone)) return own->files.paths[k];
  }
  return NULL;
}

static pl_code join_execution(const importing *own, int64_t number, pl_kineto *kineto, pl_error *error) {
  const char *path = find_execution(own, number);
  if (path == NULL) return PL_OK;
  pl_execution_trace execution = {.n = 0};
  pl_code code = pl_execution_read(&execution, path, own->trace, error);
  if (code == PL_OK) code = pl_execution_join(&execution, kineto, error);
  pl_execution_release(&execution);
  return code;
}

static pl_code add_kineto(const importing *own, const char *path, pl_kineto *kineto, pl_error *error) {
  int64_t number = kineto->rank;
  if (number < 0) {
    int64_t named = pl_import_rank_of_path(path, false);
    number = named < 0 && own->n_of[PL_IMPORT_KINETO] == 1 ? 0 : named;
    if (number >= 0)
      pl_trace_add_note(own->trace, "%s: does not say its rank; taken as rank %lld %s", path, (long long)number,
                        named >= 0 ? "by its name" : "of one");
  }
  if (number < 0 || number > INT32_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: says no rank; name it after its rank, as in rank3.json", path);
  PL_TRY(join_execution(own, number, kineto, error));
  bool says_host = kineto->host != PL_NONE && own->options->ranks_per_host == 0;
  uint32_t host = says_host ? kineto->host : host_of(own, path, number);
  return host == PL_NONE ? pl_fail_memory(error, path) : pl_kineto_add_rank(kineto, number, host, own->trace, error);
}

/* Profilers and servers leave other lists in JSON beside their traces. */
static pl_code load_kineto(importing *own, const char *path, pl_error *error) {
  pl_kineto kineto = {.path = path};
  pl_code code = pl_kineto_read(&kineto, path, own->trace, own->options->progress, error);
  if (code == PL_OK && kineto.n_events > 0) {
    code = add_kineto(own, path, &kineto, error);
  } else if (code == PL_OK && own->files.n == 1 && kineto.n_foreign > 0) {
    code =
        pl_fail(error, PL_BAD_INPUT,
                "%s: none of its events is one of PyTorch's profiler. Is it a timeline, for looking at? Paceline's own "
                "runs come back with --trace-format perfetto, chakra or kineto",
                path);
  } else if (code == PL_OK && own->files.n == 1) {
    code = pl_fail(error, PL_BAD_INPUT, "%s: none of its events has a duration: nothing was recorded", path);
  } else if (code == PL_OK) {
    pl_trace_add_note(own->trace, "%s: none of its events has a duration; left out", path);
    own->n_of[PL_IMPORT_KINETO]--;
  }
  pl_kineto_release(&kineto);
  return code;
}

static pl_code load_plain(const importing *own, const char *path, pl_error *error) {
  PL_TRY(pl_plain_load(path, own->trace, own->options->progress, error));
  return choose_host(own, path, error);
}

/* Ranks of one file; their hosts stand in it. */
static pl_code load_perfetto(const importing *own, const char *path, pl_error *error) {
  uint32_t first = own->trace->n_ranks;
  PL_TRY(pl_perfetto_load(path, own->trace, own->options->progress, error));
  for (uint32_t r = first; r < own->trace->n_ranks; r++) {
    pl_trace_rank *rank = &own->trace->ranks[r];
    if (own->options->ranks_per_host > 0 || own->trace->names[rank->host][0] == '\0')
      rank->host = host_of(own, path, rank->number);
    if (rank->host == PL_NONE) return pl_fail_memory(error, path);
  }
  return PL_OK;
}

static pl_code load_chakra(const importing *own, const char *path, pl_error *error) {
  int64_t number = pl_import_rank_of_path(path, true);
  if (number < 0 && own->n_of[PL_IMPORT_CHAKRA] == 1) number = 0;
  PL_TRY(pl_chakra_load(path, number, &own->groups, own->trace, own->options->progress, error));
  return choose_host(own, path, error);
}

/* Of a file with several processes the number in its name is that of the host: report2.sqlite has ranks 2 n to 3 n - 1.
 */
static int64_t nsys_rank(void *context, const char *path, uint32_t place, uint32_t n) {
  const importing *own = context;
  int64_t number = pl_import_rank_of_path(path, true);
  if (own->n_of[PL_IMPORT_NSYS] == 1 && n > 1) return place;
  if (own->n_of[PL_IMPORT_NSYS] == 1 && number < 0) return 0;
  return number < 0 ? -1 : n * number + place;
}

static uint32_t nsys_host(void *context, const char *path, int64_t rank, uint32_t n) {
  const importing *own = context;
  char text[64];
  if (n == 1 || own->options->ranks_per_host > 0) return host_of(own, path, rank);
  const long long first = (long long)rank / n * n, last = first + n - 1;
  int size = snprintf(text, sizeof text, "host of ranks %lld to %lld", first, last);
  return pl_trace_name(own->trace, text, (size_t)size); /* one file, one clock */
}

static pl_code load_nsys(importing *own, const char *path, pl_error *error) {
  const pl_nsys_names names = {nsys_rank, nsys_host, own};
  return pl_nsys_load(path, &names, own->trace, error);
}

/* A folder named by its rank, or with it as files are. */
static int64_t number_of_folder(const char *path) {
  char text[4096];
  int n = snprintf(text, sizeof text, "%s/", path);
  int64_t number = n > 0 && n < (int)sizeof text ? pl_import_rank_of_path(text, false) : -1;
  return number >= 0 ? number : pl_import_rank_of_path(path, false);
}

/* dPRO counts ranks within a host, Horovod over all of them: where numbers come twice, folders count in their order. */
static int64_t dpro_rank(const importing *own, uint32_t k) {
  int64_t number = number_of_folder(own->files.paths[k]), place = 0;
  bool twice = false;
  for (uint32_t o = 0; o < own->files.n; o++) {
    if (own->files.formats[o] != PL_IMPORT_DPRO) continue;
    place += o < k;
    for (uint32_t p = 0; p < o; p++)
      twice |= own->files.formats[p] == PL_IMPORT_DPRO &&
               number_of_folder(own->files.paths[o]) == number_of_folder(own->files.paths[p]);
  }
  return twice || number < 0 ? place : number;
}

static size_t host_size(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? (size_t)(slash - path) : 0;
}

/* BytePS has a worker on each host: the first rank there; -1: another. */
static int32_t worker_of(const importing *own, uint32_t k) {
  int32_t n_hosts = 0;
  const char *before = "";
  for (uint32_t o = 0; o <= k; o++) {
    const char *path = own->files.paths[o];
    if (own->files.formats[o] != PL_IMPORT_DPRO) continue;
    bool same =
        host_size(path) == host_size(before) && strncmp(path, before, host_size(path)) == 0 && before[0] != '\0';
    if (o == k && same) return -1;
    n_hosts += !same;
    before = path;
  }
  return n_hosts - 1;
}

static const char *byteps_path(const importing *own) {
  for (uint32_t k = 0; k < own->files.n; k++)
    if (own->files.formats[k] == PL_IMPORT_BYTEPS) return own->files.paths[k];
  return NULL;
}

static pl_code load_byteps(importing *own, pl_error *error) {
  const char *path = byteps_path(own);
  if (path == NULL) return PL_OK;
  if (own->n_of[PL_IMPORT_DPRO] == 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: BytePS' timeline alone; the workers' folders beside it, HOST/RANK/trace.json, are missing",
                   path);
  if (own->n_of[PL_IMPORT_BYTEPS] > 1)
    return pl_fail(error, PL_BAD_INPUT, "%s: comm_timeline.json is in more than one folder: two jobs in one", path);
  int64_t last = 0;
  for (uint32_t k = 0; k < own->files.n; k++)
    if (own->files.formats[k] == PL_IMPORT_DPRO && dpro_rank(own, k) > last) last = dpro_rank(own, k);
  own->servers.first_server = last + 1;
  return pl_byteps_load(&own->servers, path, own->trace, error);
}

static pl_code load_dpro(importing *own, uint32_t k, pl_error *error) {
  const char *path = own->files.paths[k];
  int64_t number = dpro_rank(own, k);
  if (number != number_of_folder(path))
    pl_trace_add_note(own->trace, "%s: taken as rank %lld, by the order of the folders", path, (long long)number);
  bool byteps = own->n_of[PL_IMPORT_BYTEPS] > 0;
  PL_TRY(pl_dpro_load(path, number, byteps ? &own->servers : NULL, byteps ? worker_of(own, k) : -1, own->trace, error));
  return choose_host(own, path, error);
}

static pl_code load(importing *own, uint32_t k, pl_error *error) {
  const char *path = own->files.paths[k];
  switch ((pl_import_format)own->files.formats[k]) {
  case PL_IMPORT_KINETO:
    return load_kineto(own, path, error);
  case PL_IMPORT_PLAIN:
    return load_plain(own, path, error);
  case PL_IMPORT_PERFETTO:
    return load_perfetto(own, path, error);
  case PL_IMPORT_CHAKRA:
    return load_chakra(own, path, error);
  case PL_IMPORT_NSYS:
    return load_nsys(own, path, error);
  case PL_IMPORT_DPRO:
    return load_dpro(own, k, error);
  case PL_IMPORT_GROUPS:
  case PL_IMPORT_EXECUTION:
  case PL_IMPORT_BYTEPS:
    return PL_OK;
  default:
    if (own->files.n == 1)
      return pl_fail(error, PL_BAD_INPUT, "%s: is no trace: neither traceEvents nor paceline_trace in it", path);
    pl_trace_add_note(own->trace, "%s: is no trace; left out", path);
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

/* Numbers of the steps [first, first + n), ascending, each once; returns how many. */
static uint32_t list_steps(const pl_trace *trace, uint32_t first, uint32_t n, int64_t *numbers) {
  uint32_t n_listed = 0;
  for (uint32_t s = 0; s < n; s++)
    numbers[s] = trace->steps[first + s].number;
  if (n > 0) qsort(numbers, n, sizeof *numbers, pl_by_int64);
  for (uint32_t s = 0; s < n; s++)
    if (n_listed == 0 || numbers[n_listed - 1] != numbers[s]) numbers[n_listed++] = numbers[s];
  return n_listed;
}

static void note_lacking(pl_trace *trace, uint32_t r, const int64_t *all, uint32_t n, const int64_t *own,
                         uint32_t n_own) {
  int64_t number = trace->ranks[r].number, first = 0;
  uint32_t n_lost = 0;
  for (uint32_t k = 0, o = 0; k < n; k++) {
    if (o < n_own && own[o] == all[k])
      o++;
    else if (n_lost++ == 0)
      first = all[k];
  }
  if (n_lost == 1)
    pl_trace_add_note(trace, "rank %lld lacks step %lld, which other ranks recorded; left out of replay",
                      (long long)number, (long long)first);
  if (n_lost > 1)
    pl_trace_add_note(trace,
                      "rank %lld lacks %u steps that other ranks recorded, the first being step %lld; left out of "
                      "replay",
                      (long long)number, n_lost, (long long)first);
}

/* Steps that others recorded, a line for each rank that lacks some. A rank without any is one that marked none. */
static pl_code note_steps(pl_trace *trace, pl_error *error) {
  int64_t *all = malloc(((size_t)trace->n_steps + 1) * sizeof *all);
  int64_t *own = malloc(((size_t)trace->n_steps + 1) * sizeof *own);
  bool good = all != NULL && own != NULL;
  uint32_t n = good ? list_steps(trace, 0, trace->n_steps, all) : 0;
  for (uint32_t r = 0; good && r < trace->n_ranks; r++) {
    uint32_t n_own = list_steps(trace, trace->ranks[r].first_step, trace->ranks[r].n_steps, own);
    if (n_own > 0) note_lacking(trace, r, all, n, own, n_own);
  }
  free(all);
  free(own);
  return good ? PL_OK : pl_fail_memory(error, "the steps of a job");
}

/* Ranks that do not fit together can be looked at all the same: what is wrong is said, a line for each. */
static pl_code note_gaps(pl_trace *trace, pl_error *error) {
  pl_error parts = PL_ERROR_INIT;
  pl_trace_meetings meetings;
  bool noted = true;
  pl_code code = pl_trace_meetings_make(trace, &meetings, &parts);
  if (code == PL_OK)
    noted = pl_trace_gaps_note(trace, &meetings);
  else if (code == PL_BAD_INPUT)
    noted = pl_trace_add_note(trace, "%s", parts.message) != PL_NONE;
  pl_trace_meetings_release(&meetings);
  return noted && (code == PL_OK || code == PL_BAD_INPUT) ? PL_OK : pl_fail_memory(error, "the messages of a job");
}

static pl_code load_groups(importing *own, pl_error *error) {
  for (uint32_t k = 0; k < own->files.n; k++)
    if (own->files.formats[k] == PL_IMPORT_GROUPS)
      PL_TRY(pl_chakra_groups_load(own->files.paths[k], own->trace, &own->groups, error));
  return PL_OK;
}

/* What was found and had nothing to complete. */
static void note_unused(importing *own) {
  for (uint32_t k = 0; k < own->files.n; k++) {
    if (own->files.formats[k] != PL_IMPORT_EXECUTION) continue;
    int64_t number = pl_import_rank_of_path(own->files.paths[k], true);
    bool alone = number < 0 && own->n_of[PL_IMPORT_EXECUTION] == 1 && own->n_of[PL_IMPORT_KINETO] == 1;
    if (!alone && (number < 0 || pl_trace_find_rank(own->trace, number) == PL_NONE))
      pl_trace_add_note(own->trace,
                        "%s: is an execution trace, which has no times, and no profile is of its rank; left out",
                        own->files.paths[k]);
  }
}

static pl_code load_all(const char *job, importing *own, pl_error *error) {
  pl_trace *trace = own->trace;
  own->common = pl_import_common_folder(&own->files);
  for (uint32_t k = 0; k < own->files.n; k++)
    own->n_of[own->files.formats[k]]++;
  PL_TRY(load_groups(own, error));
  PL_TRY(load_byteps(own, error));
  for (uint32_t k = 0; k < own->files.n; k++)
    PL_TRY(load(own, k, error));
  if (own->servers.n_messages > 0) PL_TRY(pl_byteps_add_servers(&own->servers, byteps_path(own), trace, error));
  if (trace->n_ranks == 0 && own->n_of[PL_IMPORT_EXECUTION] > 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: only execution traces, which have no times; the profiler's trace of the same run is needed",
                   job);
  if (trace->n_ranks == 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: no trace in it (files that end in .json, .json.gz, .et or .sqlite)", job);
  PL_TRY(sort_ranks(trace, error));
  PL_TRY(check_one_job(trace, error));
  note_unused(own);
  note_missing(trace);
  PL_TRY(note_steps(trace, error));
  return note_gaps(trace, error);
}

pl_code pl_trace_import(const char *path, const pl_trace_import_options *options, pl_trace *trace, pl_error *error) {
  importing own = {.options = options, .trace = trace};
  pl_code code = pl_import_files_find(path, &own.files, error);
  if (code == PL_OK) code = load_all(path, &own, error);
  pl_chakra_groups_release(&own.groups);
  pl_byteps_release(&own.servers);
  pl_import_files_release(&own.files);
  if (code == PL_OK) PL_ASSERT(pl_trace_is_valid(trace));
  return code;
}
