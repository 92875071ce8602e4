/* See workloads/formats/nsys.h. Databases come from outside: views, triggers and functions in their schema stay off, a
 * table is read row by row, and a query that goes on for too long ends. */
#include "workloads/formats/nsys.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/kineto_rank.h"

typedef struct nsys {
  const char *path;
  sqlite3 *database;
  pl_trace *trace;
} nsys;

static pl_code fail(const nsys *own, const char *doing, pl_error *error) {
  int code = sqlite3_errcode(own->database) & 0xff;
  if (code == SQLITE_NOMEM) /* also what a damaged schema asks for */
    return pl_fail(error, PL_NO_MEMORY, "%s: SQLite is out of memory; is the file damaged?", own->path);
  if (code == SQLITE_IOERR || code == SQLITE_FULL)
    return pl_fail(error, PL_IO, "%s: %s", own->path, sqlite3_errmsg(own->database));
  return pl_fail(error, PL_BAD_INPUT, "%s: %s: %.200s", own->path, doing, sqlite3_errmsg(own->database));
}

/* A real table of that name with that column; virtual ones and views run code of their own. */
static pl_code has_column(const nsys *own, const char *table, const char *column, bool *yes, pl_error *error) {
  sqlite3_stmt *query = NULL;
  static const char text[] = "SELECT 1 FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND "
                             "m.name = ?1 AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND c.name = ?2";
  *yes = false;
  if (sqlite3_prepare_v2(own->database, text, -1, &query, NULL) != SQLITE_OK)
    return fail(own, "is no database that SQLite can read", error);
  sqlite3_bind_text(query, 1, table, -1, SQLITE_STATIC);
  sqlite3_bind_text(query, 2, column, -1, SQLITE_STATIC);
  int status = sqlite3_step(query);
  *yes = status == SQLITE_ROW;
  pl_code code = status == SQLITE_ROW || status == SQLITE_DONE ? PL_OK : fail(own, "its schema cannot be read", error);
  sqlite3_finalize(query);
  return code;
}

static pl_code has_all(const nsys *own, const char *table, const char *const *columns, bool *yes, pl_error *error) {
  *yes = true;
  for (; *columns != NULL && *yes; columns++)
    PL_TRY(has_column(own, table, *columns, yes, error));
  return PL_OK;
}

/* ---- rows ---- */

typedef struct reading {
  nsys *own;
  pl_kineto *kineto;
  pl_kineto_category category;
  pl_error *error;
} reading;

enum { NAME = 0, START, END, CORRELATION, THREAD, DEVICE, N_COLUMNS };

static uint32_t number_name(pl_trace *trace, int64_t number) {
  char text[32];
  int n = snprintf(text, sizeof text, "%lld", (long long)number);
  return pl_trace_name(trace, text, (size_t)n);
}

static pl_code take_row(reading *now, sqlite3_stmt *row) {
  static const int64_t most = (int64_t)2.2e18;
  pl_trace *trace = now->own->trace;
  const char *path = now->own->path;
  const char *name = (const char *)sqlite3_column_text(row, NAME);
  int64_t start = sqlite3_column_int64(row, START), end = sqlite3_column_int64(row, END);
  if (name == NULL || sqlite3_column_type(row, START) != SQLITE_INTEGER ||
      sqlite3_column_type(row, END) != SQLITE_INTEGER) {
    now->kineto->n_without_time++;
    return PL_OK;
  }
  if (start < -most || start > most || end < -most || end > most)
    return pl_fail(now->error, PL_BAD_INPUT, "%s: '%.60s' starts at %lld ns: out of range", path, name,
                   (long long)start);
  bool on_device = now->category == PL_KINETO_KERNEL || now->category == PL_KINETO_COPY;
  uint32_t interned = pl_trace_name(trace, name, strlen(name));
  uint32_t process = on_device ? number_name(trace, sqlite3_column_int64(row, DEVICE)) : pl_trace_name(trace, "", 0);
  uint32_t thread = number_name(trace, sqlite3_column_int64(row, THREAD));
  if (interned == PL_NONE || process == PL_NONE || thread == PL_NONE) return pl_fail_memory(now->error, path);
  now->kineto->n_negative += end < start;
  const pl_kineto_event event = {.start_ns = start,
                                 .duration_ns = end < start ? 0 : end - start,
                                 .name = interned,
                                 .correlation = (uint32_t)sqlite3_column_int64(row, CORRELATION),
                                 .category = (unsigned)now->category & 15};
  if (!pl_kineto_add_event(now->kineto, process, thread, on_device, &event)) return pl_fail_memory(now->error, path);
  return PL_OK;
}

static pl_code read_rows(reading *now, const char *text, int64_t process) {
  sqlite3_stmt *query = NULL;
  if (sqlite3_prepare_v2(now->own->database, text, -1, &query, NULL) != SQLITE_OK)
    return fail(now->own, "its tables are not those of nsys", now->error);
  sqlite3_bind_int64(query, 1, process);
  pl_code code = PL_OK;
  int status;
  while ((status = sqlite3_step(query)) == SQLITE_ROW && code == PL_OK)
    code = take_row(now, query);
  if (code == PL_OK && status != SQLITE_DONE) code = fail(now->own, "cannot be read", now->error);
  sqlite3_finalize(query);
  return code;
}

/* ---- tables: what they are called, and how a row is asked for. ?1 is the process. ---- */

/* The upper half of a thread's global id is its process's. */
#define OF_THREAD  "(?1 = -1 OR (t.globalTid & ~16777215) = ?1)"
#define OF_PROCESS "(?1 = -1 OR t.globalPid = ?1)"

typedef struct table {
  const char *name;
  const char *columns[7];
  pl_kineto_category category;
  const char *query;
} table;

static const table tables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     {"start", "end", "correlationId", "streamId", "deviceId", "globalPid", NULL},
     PL_KINETO_KERNEL,
     "SELECT s.value, t.start, t.end, t.correlationId, t.streamId, t.deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL t "
     "LEFT JOIN StringIds s ON s.id = t.demangledName WHERE " OF_PROCESS},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     {"start", "end", "correlationId", "streamId", "deviceId", "globalPid", NULL},
     PL_KINETO_COPY,
     "SELECT 'Memcpy', t.start, t.end, t.correlationId, t.streamId, t.deviceId FROM CUPTI_ACTIVITY_KIND_MEMCPY t "
     "WHERE " OF_PROCESS},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     {"start", "end", "correlationId", "streamId", "deviceId", "globalPid", NULL},
     PL_KINETO_COPY,
     "SELECT 'Memset', t.start, t.end, t.correlationId, t.streamId, t.deviceId FROM CUPTI_ACTIVITY_KIND_MEMSET t "
     "WHERE " OF_PROCESS},
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     {"start", "end", "correlationId", "globalTid", "nameId", NULL},
     PL_KINETO_CALL,
     "SELECT CASE WHEN instr(s.value, '_v') > 0 THEN substr(s.value, 1, instr(s.value, '_v') - 1) ELSE s.value END, "
     "t.start, t.end, t.correlationId, t.globalTid & 16777215, 0 FROM CUPTI_ACTIVITY_KIND_RUNTIME t "
     "LEFT JOIN StringIds s ON s.id = t.nameId WHERE " OF_THREAD},
    {"NVTX_EVENTS",
     {"start", "end", "text", "textId", "globalTid", NULL},
     PL_KINETO_ANNOTATION,
     "SELECT 'ProfilerStep#' || CAST(substr(n.x, instr(n.x, n.c) + 1) AS INTEGER), n.start, n.end, 0, n.tid, 0 FROM "
     "(SELECT coalesce(t.text, s.value) AS x, CASE WHEN coalesce(t.text, s.value) LIKE 'ProfilerStep#%' THEN '#' ELSE "
     "' ' END AS c, t.start, t.end, t.globalTid & 16777215 AS tid FROM NVTX_EVENTS t LEFT JOIN StringIds s ON s.id = "
     "t.textId WHERE " OF_THREAD ") n WHERE n.x GLOB 'ProfilerStep#[0-9]*' OR lower(n.x) GLOB 'step [0-9]*' OR "
     "lower(n.x) GLOB 'iteration [0-9]*'"},
};

static pl_code read_process(nsys *own, int64_t process, pl_kineto *kineto, pl_error *error) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
    bool there;
    PL_TRY(has_all(own, tables[t].name, tables[t].columns, &there, error));
    if (!there && tables[t].category == PL_KINETO_KERNEL)
      return pl_fail(error, PL_BAD_INPUT,
                     "%s: has no table %s of a known layout: is an export of nsys with CUDA traced (2020.3 or later)?",
                     own->path, tables[t].name);
    if (!there) continue;
    reading now = {own, kineto, tables[t].category, error};
    PL_TRY(read_rows(&now, tables[t].query, process));
  }
  return PL_OK;
}

static pl_code add_rank(nsys *own, int64_t process, uint32_t place, uint32_t n, const pl_nsys_names *names,
                        pl_error *error) {
  pl_kineto kineto;
  int64_t number = names->rank(names->context, own->path, place, n);
  if (number < 0 || number > INT32_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: says no rank; name it after its rank, as in rank3.sqlite", own->path);
  pl_kineto_begin(&kineto, own->path, own->trace);
  pl_code code = read_process(own, process, &kineto, error);
  if (code == PL_OK && kineto.n_events == 0)
    code = pl_fail(error, PL_BAD_INPUT, "%s: rank %lld: no kernel, copy or call", own->path, (long long)number);
  uint32_t host = code == PL_OK ? names->host(names->context, own->path, number, n) : 0;
  if (code == PL_OK && host == PL_NONE) code = pl_fail_memory(error, own->path);
  if (code == PL_OK) code = pl_kineto_add_rank(&kineto, number, host, own->trace, error);
  pl_kineto_release(&kineto);
  return code;
}

/* ---- a file ---- */

enum { MOST_PROCESSES = 64 };

/* Processes with kernels, by their device and then by id, which is how launchers number ranks. */
static pl_code find_processes(nsys *own, int64_t *ids, uint32_t *n, pl_error *error) {
  sqlite3_stmt *query = NULL;
  static const char text[] =
      "SELECT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY globalPid ORDER BY min(deviceId), globalPid";
  bool there;
  *n = 0;
  PL_TRY(has_all(own, tables[0].name, tables[0].columns, &there, error));
  if (there) PL_TRY(has_column(own, "StringIds", "value", &there, error));
  if (!there)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: has no kernels of nsys: is it an export of nsys (2020.3 or later) with CUDA traced?",
                   own->path);
  if (sqlite3_prepare_v2(own->database, text, -1, &query, NULL) != SQLITE_OK)
    return fail(own, "its tables are not those of nsys", error);
  int status;
  while ((status = sqlite3_step(query)) == SQLITE_ROW && *n < MOST_PROCESSES)
    ids[(*n)++] = sqlite3_column_type(query, 0) == SQLITE_INTEGER ? sqlite3_column_int64(query, 0) : -1;
  pl_code code = status == SQLITE_DONE ? PL_OK
                 : status == SQLITE_ROW
                     ? pl_fail(error, PL_BAD_INPUT, "%s: more than %d processes", own->path, MOST_PROCESSES)
                     : fail(own, "cannot be read", error);
  sqlite3_finalize(query);
  if (code == PL_OK && *n == 0) return pl_fail(error, PL_BAD_INPUT, "%s: no kernel was recorded", own->path);
  return code;
}

static pl_code read_all(nsys *own, const pl_nsys_names *names, pl_error *error) {
  int64_t ids[MOST_PROCESSES];
  uint32_t n;
  PL_TRY(find_processes(own, ids, &n, error));
  uint32_t first = own->trace->n_ranks;
  for (uint32_t p = 0; p < n; p++)
    PL_TRY(add_rank(own, n == 1 ? -1 : ids[p], p, n, names, error));
  if (n > 1)
    pl_trace_add_note(own->trace, "%s: %u processes; taken as ranks %lld to %lld in the order of their devices",
                      own->path, n, (long long)own->trace->ranks[first].number,
                      (long long)own->trace->ranks[own->trace->n_ranks - 1].number);
  pl_trace_add_note(own->trace, "%s: nsys says neither sizes nor groups of messages; taken as of all ranks", own->path);
  return PL_OK;
}

/* Ends what takes more than some minutes of SQLite's virtual machine: no query here needs more than a few steps a row.
 */
static int go_on(void *context) {
  uint64_t *n = context;
  return ++*n > 20000; /* times a million */
}

static pl_code open_and_read(nsys *own, const uint8_t *data, size_t size, const pl_nsys_names *names, pl_error *error) {
  uint64_t n_steps = 0;
  if (sqlite3_open_v2(data != NULL ? ":memory:" : own->path, &own->database,
                      data != NULL ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
    return own->database == NULL ? pl_fail_memory(error, own->path) : fail(own, "cannot be opened", error);
  if (data != NULL && sqlite3_deserialize(own->database, "main", (unsigned char *)(uintptr_t)data, (sqlite3_int64)size,
                                          (sqlite3_int64)size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    return fail(own, "is no database that SQLite can read", error);
  sqlite3_db_config(own->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(own->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(own->database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  sqlite3_db_config(own->database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  sqlite3_limit(own->database, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_progress_handler(own->database, 1000000, go_on, &n_steps);
  return read_all(own, names, error);
}

static pl_code load(nsys *own, const uint8_t *data, size_t size, const pl_nsys_names *names, pl_error *error) {
  pl_code code = open_and_read(own, data, size, names, error);
  sqlite3_close(own->database);
  return code;
}

pl_code pl_nsys_load(const char *path, const pl_nsys_names *names, pl_trace *trace, pl_error *error) {
  nsys own = {.path = path, .trace = trace};
  return load(&own, NULL, 0, names, error);
}

pl_code pl_nsys_parse(const char *name, const uint8_t *data, size_t size, const pl_nsys_names *names, pl_trace *trace,
                      pl_error *error) {
  nsys own = {.path = name, .trace = trace};
  static const uint8_t nothing = 0;
  return load(&own, size > 0 ? data : &nothing, size, names, error);
}
