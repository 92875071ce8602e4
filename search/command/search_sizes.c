/* See search/command/search_sizes.h. */
#include "search/command/search_sizes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/order.h"
#include "core/base/units.h"
#include "search/results/column_text.h"
#include "workloads/run/program_flops.h"

/* ---- the command line ---- */

static pl_code add(pl_search_sizes *sizes, int64_t gpus, pl_error *error) {
  for (uint32_t i = 0; i < sizes->n; i++)
    if (sizes->gpus[i] == gpus) return PL_OK;
  if (sizes->n == PL_SEARCH_MOST_SIZES)
    return pl_fail(error, PL_BAD_INPUT, "--gpus: more than %d sizes", PL_SEARCH_MOST_SIZES);
  sizes->gpus[sizes->n++] = gpus;
  return PL_OK;
}

pl_code pl_search_sizes_read(pl_search_sizes *sizes, const char *text, pl_error *error) {
  static const int64_t MOST = 1 << 20;
  for (const char *at = text;; at++) {
    char *end;
    int64_t first = strtol(at, &end, 10), last = first;
    bool good = end != at && *at != '-' && *at != '+';
    if (good && *end == '-') {
      const char *second = end + 1;
      last = strtol(second, &end, 10);
      good = end != second && *second >= '0' && *second <= '9';
    }
    if (!good || (*end != ',' && *end != '\0') || first < 1 || last < first || last > MOST)
      return pl_fail(error, PL_BAD_INPUT,
                     "--gpus: '%.64s' is no list of numbers of GPUs, such as 64-4096 (doubled from 64 on) or 64,96,128",
                     text);
    for (int64_t gpus = first; gpus < last; gpus *= 2)
      PL_TRY(add(sizes, gpus, error));
    PL_TRY(add(sizes, last, error));
    if (*end == '\0') break;
    at = end;
  }
  qsort(sizes->gpus, sizes->n, sizeof *sizes->gpus, pl_by_int64);
  return PL_OK;
}

pl_code pl_search_sizes_read_deadline(pl_search_sizes *sizes, const char *text, pl_error *error) {
  char *end;
  double value = strtod(text, &end);
  double unit_s = strcmp(end, "d") == 0 ? 86400 : strcmp(end, "h") == 0 ? 3600 : strcmp(end, "w") == 0 ? 604800 : 0;
  if (end == text || unit_s == 0 || !(value > 0) || !isfinite(value))
    return pl_fail(error, PL_BAD_INPUT, "--deadline: '%.64s' is not a time such as 14d, 36h or 2w", text);
  sizes->deadline_s = value * unit_s;
  return PL_OK;
}

/* ---- runs ---- */

/* GPUs of one node of the machine. */
static pl_code count_per_node(const char *machine, uint32_t *per_node, pl_error *error) {
  char name[256];
  pl_platform *platform;
  if (strpbrk(machine, ":/,") != NULL || strstr(machine, ".xml") != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--gpus: --platform must be a machine without its number of nodes, such as dgx-h100 ('paceline list "
                   "platforms'), not %.128s",
                   machine);
  snprintf(name, sizeof name, "%.200s:1", machine);
  if (pl_platform_load(name, NULL, &platform, NULL) != PL_OK)
    return pl_fail(
        error, PL_BAD_INPUT,
        "--gpus: '%.128s' is no machine that there is at any number of nodes; 'paceline list platforms' lists "
        "them",
        machine);
  *per_node = pl_platform_cluster(platform)->n_devices;
  pl_platform_destroy(platform);
  return PL_OK;
}

static pl_code check_sizes(const pl_search_sizes *sizes, const char *machine, uint32_t per_node, pl_error *error) {
  for (uint32_t i = 0; i < sizes->n; i++)
    if (sizes->gpus[i] % per_node != 0)
      return pl_fail(error, PL_BAD_INPUT, "--gpus: %" PRId64 " are no whole nodes of %s, which have %u GPUs each",
                     sizes->gpus[i], machine, per_node);
  return PL_OK;
}

static pl_code keep(pl_search_size *size, const pl_search_outcome *outcome, const pl_training_cost *cost,
                    const pl_cluster *cluster, pl_arena *arena, pl_error *error) {
  char lack[PL_UNIT_TEXT_BYTES] = "";
  const pl_result_row *oom = outcome->nearest_oom;
  size->fits = outcome->n_top > 0;
  if (!size->fits && oom != NULL) pl_format_bytes((double)(oom->peak_mem_bytes - oom->mem_capacity_bytes), lack);
  if (!size->fits) {
    snprintf(size->reason, sizeof size->reason, "none fits in memory%s%s%s", oom != NULL ? ": the nearest lacks " : "",
             lack, "");
    return PL_OK;
  }
  size->best = outcome->top[0];
  size->values = *outcome->top[0].search;
  if (size->values.whole != NULL) {
    size->values.whole = pl_arena_strdup(arena, size->values.whole);
    if (size->values.whole == NULL) return pl_fail_memory(error, "a strategy");
  }
  size->best.search = &size->values;
  size->bill = pl_training_bill_of(cost, size->best.tokens_per_s, cluster);
  return PL_OK;
}

static pl_code search_size(pl_space_session *session, pl_search_size *size, const pl_search *search,
                           pl_job_options *job, pl_space_options *space, const pl_training_cost *cost, pl_arena *arena,
                           MPI_Comm comm, pl_error *error) {
  pl_space_session_load(session, job, space, error);
  if (error->code == PL_OK && session->programs_of != NULL)
    pl_fail(
        error, PL_UNSUPPORTED,
        "--gpus: not known of programs yet, and %s is simulated as one; leave it out and search each size by itself "
        "(--platform %s)",
        session->programs_of, job->platform_path);
  PL_TRY(pl_agree(comm, error));
  pl_search_problem problem = *search->problem;
  problem.cluster = session->evaluation.cluster;
  problem.model = &session->model;
  problem.job = &job->job;
  problem.options = &job->simulate;
  problem.choices = &space->choices;
  problem.n_top = 1;
  pl_search own = *search;
  own.problem = &problem;
  own.n_top = 1;
  pl_search_outcome outcome;
  PL_TRY(pl_search_run(&own, comm, &session->arena, &outcome, error));
  return keep(size, &outcome, cost, problem.cluster, arena, error);
}

/* What the model's file leaves open is assumed at all sizes alike. */
static pl_code keep_origin(pl_search_sizes *sizes, const pl_space_session *session, const pl_job_options *job,
                           pl_arena *arena, pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  if (sizes->origin != NULL || session->evaluation.cluster == NULL) return PL_OK;
  FILE *stream = open_memstream(&text, &size);
  if (stream == NULL) return pl_fail_memory(error, "a text");
  pl_job_origin_print(stream, 14, &session->model, &job->job, &job->origin,
                      pl_job_narrow_share(&session->model, &job->job));
  bool good = fclose(stream) == 0;
  sizes->origin = good ? pl_arena_strdup(arena, text) : NULL;
  free(text);
  return sizes->origin != NULL ? PL_OK : pl_fail_memory(error, "a text");
}

/* A space without candidates is a line of the table; all else that fails is a failure. */
static pl_code run_size(pl_search_sizes *sizes, pl_search_size *size, const pl_search *search,
                        const pl_job_options *given, const pl_space_options *given_space, const pl_training_cost *cost,
                        pl_arena *arena, MPI_Comm comm, pl_error *error) {
  pl_space_session session;
  pl_job_options job = *given;
  pl_space_options space = *given_space;
  pl_error cause = PL_ERROR_INIT;
  job.platform_path = pl_arena_printf(arena, "%s:%u", given->platform_path, size->n_nodes);
  pl_space_session_init(&session);
  if (job.platform_path == NULL) pl_fail_memory(&cause, "the name of a platform");
  if (pl_agree(comm, &cause) == PL_OK) search_size(&session, size, search, &job, &space, cost, arena, comm, &cause);
  keep_origin(sizes, &session, &job, arena, &cause);
  bool loaded = session.evaluation.cluster != NULL;
  pl_space_session_release(&session);
  pl_agree(comm, &cause);
  if (cause.code == PL_BAD_INPUT && loaded) {
    snprintf(size->reason, sizeof size->reason, "%.*s", (int)sizeof size->reason - 1, cause.message);
    return PL_OK;
  }
  if (cause.code == PL_OK) return PL_OK;
  return pl_fail(error, cause.code, "%u GPUs: %s", size->n_devices, cause.message);
}

pl_code pl_search_sizes_run(pl_search_sizes *sizes, const pl_search *search, const pl_job_options *job,
                            const pl_space_options *space, const pl_training_cost *cost, pl_arena *arena, MPI_Comm comm,
                            pl_error *error) {
  uint32_t per_node = 1;
  if (count_per_node(job->platform_path, &per_node, error) == PL_OK)
    check_sizes(sizes, job->platform_path, per_node, error);
  sizes->sizes = PL_TAKE(arena, pl_search_size, sizes->n);
  if (sizes->sizes == NULL) pl_fail_memory(error, "the sizes");
  PL_TRY(pl_agree(comm, error));
  for (uint32_t i = 0; i < sizes->n; i++) {
    pl_search_size *size = &sizes->sizes[i];
    size->n_devices = (uint32_t)sizes->gpus[i];
    size->n_nodes = size->n_devices / per_node;
    PL_TRY(run_size(sizes, size, search, job, space, cost, arena, comm, error));
  }
  return PL_OK;
}

/* ---- the answer ---- */

static bool is_in_time(const pl_search_sizes *sizes, const pl_search_size *size) {
  return size->fits && (sizes->deadline_s == 0 || size->bill.time_s <= sizes->deadline_s);
}

/* Of those in time the one with the fewest GPU hours, the smallest among equals; NULL: none. */
static const pl_search_size *cheapest(const pl_search_sizes *sizes) {
  const pl_search_size *best = NULL;
  for (uint32_t i = 0; i < sizes->n; i++)
    if (is_in_time(sizes, &sizes->sizes[i]) && (best == NULL || sizes->sizes[i].bill.gpu_hours < best->bill.gpu_hours))
      best = &sizes->sizes[i];
  return best;
}

/* The smallest in time, and, where none is, the fastest; NULL: none fits in memory. */
static const pl_search_size *smallest(const pl_search_sizes *sizes) {
  for (uint32_t i = 0; i < sizes->n; i++)
    if (is_in_time(sizes, &sizes->sizes[i])) return &sizes->sizes[i];
  return NULL;
}

static const pl_search_size *fastest(const pl_search_sizes *sizes) {
  const pl_search_size *best = NULL;
  for (uint32_t i = 0; i < sizes->n; i++)
    if (sizes->sizes[i].fits && (best == NULL || sizes->sizes[i].best.tokens_per_s > best->best.tokens_per_s))
      best = &sizes->sizes[i];
  return best;
}

/* ---- text ---- */

static void print_size(FILE *stream, const pl_search_sizes *sizes, const pl_training_cost *cost,
                       const pl_search_size *size) {
  char text[6][PL_AMOUNT_TEXT_BYTES];
  fprintf(stream, "%6u %6u", size->n_devices, size->n_nodes);
  if (!size->fits) {
    fprintf(stream, "  %.100s\n", size->reason);
    return;
  }
  fprintf(stream, " %10s %10s %8s %6.1f", pl_format_time(size->best.iter_time_s, text[0]),
          pl_format_figure(size->best.tokens_per_s, text[1]),
          pl_format_figure(size->best.tokens_per_s / size->n_devices, text[2]), 100 * size->best.mfu);
  if (cost->tokens > 0) {
    bool known = !isnan(size->bill.energy_J);
    fprintf(stream, " %10s %14s", pl_format_days(size->bill.time_s, text[3]),
            pl_format_amount(cost->price > 0 ? size->bill.money : size->bill.gpu_hours, text[4]));
    fprintf(stream, " %9s", known ? pl_format_energy(size->bill.energy_J, text[5]) : "-");
    if (sizes->deadline_s > 0) fprintf(stream, "  %s", is_in_time(sizes, size) ? "in time" : "too late");
  }
  fputc('\n', stream);
}

static void print_choice(FILE *stream, const char *label, const pl_search_size *size, const pl_training_cost *cost) {
  char text[3][PL_AMOUNT_TEXT_BYTES];
  double ratio_low = size->best.iter_time_low_s / size->best.iter_time_s,
         ratio_high = size->best.iter_time_high_s / size->best.iter_time_s;
  fprintf(stream, "%-14s%u GPUs (%u nodes): %s", label, size->n_devices, size->n_nodes,
          pl_format_days(size->bill.time_s, text[0]));
  if (ratio_high > 0)
    fprintf(stream, " (80 %%: %s to %s)", pl_format_days(size->bill.time_s * ratio_low, text[1]),
            pl_format_days(size->bill.time_s * ratio_high, text[2]));
  fprintf(stream, cost->price > 0 ? ", a cost of %s\n" : ", %s GPU hours\n",
          pl_format_amount(cost->price > 0 ? size->bill.money : size->bill.gpu_hours, text[0]));
  fprintf(stream, "              %s\n", pl_search_strategy(&size->values));
}

static void print_answer(FILE *stream, const pl_search_sizes *sizes, const pl_training_cost *cost) {
  char text[PL_AMOUNT_TEXT_BYTES];
  const pl_search_size *cheap = cheapest(sizes), *few = smallest(sizes), *fast = fastest(sizes);
  if (fast == NULL) {
    fputs("answer        at none of these sizes anything fits in memory\n", stream);
    return;
  }
  if (cheap == NULL) {
    fprintf(stream, "answer        none of these sizes is done in %s\n", pl_format_days(sizes->deadline_s, text));
    print_choice(stream, "fastest", fast, cost);
    return;
  }
  print_choice(stream, "cheapest", cheap, cost);
  if (few != cheap) print_choice(stream, "fewest GPUs", few, cost);
  if (sizes->deadline_s > 0 &&
      cheap->best.iter_time_high_s / cheap->best.iter_time_s * cheap->bill.time_s > sizes->deadline_s)
    fputs("              by its interval it may miss the deadline\n", stream);
}

static void print_text(FILE *stream, const pl_search_sizes *sizes, const pl_training_cost *cost) {
  const char *unit = "tokens/s";
  for (uint32_t i = 0; i < sizes->n; i++)
    if (sizes->sizes[i].fits)
      unit = pl_throughput_unit(sizes->sizes[i].best.samples_per_s, sizes->sizes[i].best.tokens_per_s);
  fprintf(stream, "%6s %6s %10s %10s %8s %6s", "GPUs", "nodes", "iteration", unit, "per GPU", "MFU[%]");
  if (cost->tokens > 0) fprintf(stream, " %10s %14s %9s", "training", cost->price > 0 ? "cost" : "GPU hours", "energy");
  fputc('\n', stream);
  for (uint32_t i = 0; i < sizes->n; i++)
    print_size(stream, sizes, cost, &sizes->sizes[i]);
  if (cost->tokens > 0) {
    print_answer(stream, sizes, cost);
    fputs("assumed       no failure and no pause; energy of the GPUs alone, at their power limits all the time\n",
          stream);
  }
  if (sizes->origin != NULL) fputs(sizes->origin, stream);
}

/* ---- JSON ---- */

static void put_size(pl_json *json, const pl_search_sizes *sizes, const pl_training_cost *cost,
                     const pl_search_size *size) {
  pl_json_open_object(json);
  pl_json_put_integer(json, "n_devices", size->n_devices);
  pl_json_put_integer(json, "n_nodes", size->n_nodes);
  pl_json_put_string(json, "reason", size->fits ? NULL : size->reason);
  if (cost->tokens > 0 && size->fits) {
    pl_json_put_number(json, "training_s", size->bill.time_s);
    pl_json_put_number(json, "training_gpu_hours", size->bill.gpu_hours);
    pl_json_put_number(json, "training_cost", size->bill.money);
    pl_json_put_number(json, "training_energy_J", size->bill.energy_J);
    if (sizes->deadline_s > 0) pl_json_put_boolean(json, "in_time", is_in_time(sizes, size));
  }
  pl_json_key(json, "best");
  if (size->fits) {
    pl_json_open_object(json);
    pl_row_json(json, &size->best);
    pl_json_close_object(json);
  } else {
    pl_json_string(json, NULL);
  }
  pl_json_close_object(json);
}

static void put_choice(pl_json *json, const char *key, const pl_search_size *size) {
  pl_json_key(json, key);
  if (size != NULL)
    pl_json_integer(json, size->n_devices);
  else
    pl_json_string(json, NULL);
}

static void print_json(FILE *stream, const pl_search_sizes *sizes, const pl_training_cost *cost) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  if (cost->tokens > 0) pl_json_put_number(&json, "training_tokens", cost->tokens);
  if (sizes->deadline_s > 0) pl_json_put_number(&json, "deadline_s", sizes->deadline_s);
  if (cost->tokens > 0) {
    put_choice(&json, "cheapest_n_devices", cheapest(sizes));
    put_choice(&json, "fewest_n_devices", smallest(sizes));
  }
  pl_json_key(&json, "sizes");
  pl_json_open_array(&json);
  for (uint32_t i = 0; i < sizes->n; i++)
    put_size(&json, sizes, cost, &sizes->sizes[i]);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}

void pl_search_sizes_print(FILE *stream, const pl_search_sizes *sizes, const pl_training_cost *cost, bool json) {
  (json ? print_json : print_text)(stream, sizes, cost);
}
