/* See workloads/command/beside_jobs.h. */
#include "workloads/command/beside_jobs.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "core/text/document.h"
#include "netmodel/platform/platform_part.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/tree_prices.h"

enum { KEY_BESIDE = 0x520 };

static const struct argp_option option_table[] = {
    {"beside", KEY_BESIDE, "JOB.yaml", 0,
     "another job on other devices of the same fabric, in one run: its model, strategy, gbs, devices, offset "
     "(may be given several times)",
     3},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_beside_options *options = state->input;
  if (key != KEY_BESIDE) return ARGP_ERR_UNKNOWN;
  if (options->n_paths < PL_BESIDE_JOBS_MAX) options->paths[options->n_paths] = value;
  options->n_paths++;
  return 0;
}

const struct argp pl_beside_options_argp = {.options = option_table, .parser = read_option};

struct pl_beside_entry {
  pl_document *document;
  pl_job_session session;
  pl_job_options options;
  const char *name, *strategy;
  double offset_s;
  int64_t n_iterations;
  pl_strategy_tree tree; /* of a job that one says */
  pl_tree_plan plan;
  pl_ir_module program, launched;
};

/* Jobs while they are read. */
typedef struct reading {
  pl_beside_options *options;
  const pl_beside_main *main;
  const pl_cluster *cluster;
  const char **owner; /* per device of the cluster: name of the job that has it; NULL: nobody */
  pl_error *error;
} reading;

/* ---- the file ---- */

static const char *const keys[] = {"name",      "model",   "strategy", "gbs",        "seq", "dtype",
                                   "framework", "devices", "offset",   "iterations", NULL};

static pl_code check_keys(const pl_document *document, const pl_node *root, pl_error *error) {
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  if (!pl_node_is_mapping(root))
    return pl_document_fail(document, root, error, "a job is a mapping of %s", pl_words_list(keys, list, sizeof(list)));
  for (size_t i = 0; i < pl_node_count(root); i++) {
    const char *key;
    pl_node_entry(document, root, i, &key);
    if (pl_words_find(keys, key) < 0)
      return pl_document_fail(document, pl_node_key(root, i), error, "'%.64s' is no key of a job; there are %s%s", key,
                              pl_words_list(keys, list, sizeof(list)), pl_words_hint(keys, key, hint));
  }
  return PL_OK;
}

static pl_code read_text(const pl_beside_entry *entry, const pl_node *root, const char *key, const char **text,
                         pl_error *error) {
  return pl_node_get(root, key) == NULL ? PL_OK : pl_node_name(entry->document, root, key, text, error);
}

static pl_code read_dtype(pl_beside_entry *entry, const pl_node *root, pl_error *error) {
  const char *text = NULL;
  PL_TRY(read_text(entry, root, "dtype", &text, error));
  if (text == NULL) return PL_OK;
  int dtype = pl_dtype_from_alias(text);
  if (dtype < 0 || dtype >= PL_DTYPE_FP8)
    return pl_document_fail(entry->document, pl_node_get(root, "dtype"), error,
                            "dtype '%.32s' is none of fp32, tf32, fp16, bf16", text);
  entry->options.job.dtype = (pl_dtype)dtype;
  entry->options.origin.dtype_is_given = true;
  return PL_OK;
}

static pl_code read_offset(pl_beside_entry *entry, const pl_node *root, pl_error *error) {
  const pl_node *node = pl_node_get(root, "offset");
  pl_error cause = PL_ERROR_INIT;
  if (node == NULL) return PL_OK;
  const char *text = pl_node_text(node);
  if (text == NULL) return pl_document_fail(entry->document, node, error, "offset is a time (200ms)");
  if (pl_parse_time(text, "offset", &entry->offset_s, &cause) == PL_OK) return PL_OK;
  return pl_document_fail(entry->document, node, error, "%s", cause.message);
}

static pl_code read_file(pl_beside_entry *entry, const char *path, pl_error *error) {
  pl_job_options *options = &entry->options;
  PL_TRY(pl_document_load(path, &entry->document, error));
  const pl_document *document = entry->document;
  const pl_node *root = pl_document_root(document);
  PL_TRY(check_keys(document, root, error));
  const char *slash = strrchr(path, '/');
  entry->name = slash == NULL ? path : slash + 1;
  PL_TRY(read_text(entry, root, "name", &entry->name, error));
  PL_TRY(pl_node_name(document, root, "model", &options->model_path, error));
  PL_TRY(pl_node_name(document, root, "strategy", &entry->strategy, error));
  PL_TRY(pl_node_integer(document, root, "gbs", 1, INT32_MAX, &options->job.gbs, error));
  PL_TRY(read_text(entry, root, "framework", &options->framework_choice, error));
  PL_TRY(read_dtype(entry, root, error));
  PL_TRY(read_offset(entry, root, error));
  if (pl_node_get(root, "iterations") != NULL)
    PL_TRY(pl_node_integer(document, root, "iterations", 1, PL_BESIDE_ITERATIONS_MAX, &entry->n_iterations, error));
  if (pl_node_get(root, "seq") == NULL) return PL_OK;
  options->origin.seq_is_given = true;
  return pl_node_integer(document, root, "seq", 1, INT32_MAX, &options->job.seq, error);
}

/* ---- devices ---- */

static pl_code claim(const reading *own, const pl_beside_entry *entry, const pl_node *node, const char *pattern,
                     bool *has) {
  const pl_cluster *cluster = own->cluster;
  bool is_known = false;
  for (uint32_t d = 0; d < cluster->n_devices; d++) {
    const char *node_name = cluster->nodes[cluster->devices[d].node].name;
    if (fnmatch(pattern, cluster->devices[d].name, 0) != 0 &&
        (node_name == NULL || fnmatch(pattern, node_name, 0) != 0))
      continue;
    is_known = true;
    if (has[d]) continue;
    if (own->owner[d] != NULL)
      return pl_document_fail(entry->document, node, own->error,
                              "device '%s' belongs to %s already: jobs beside each "
                              "other have devices of their own",
                              cluster->devices[d].name, own->owner[d]);
    has[d] = true;
    own->owner[d] = entry->name;
  }
  if (is_known) return PL_OK;
  return pl_document_fail(entry->document, node, own->error,
                          "no device and no node of %s is '%.64s'; devices are '%s' to '%s'", cluster->path, pattern,
                          cluster->devices[0].name, cluster->devices[cluster->n_devices - 1].name);
}

static pl_code claim_named(const reading *own, const pl_beside_entry *entry, const pl_node *node, bool *has) {
  bool is_list = pl_node_is_sequence(node);
  for (size_t i = 0; i < (is_list ? pl_node_count(node) : 1); i++) {
    const pl_node *item = is_list ? pl_node_at(node, i) : node;
    const char *pattern;
    PL_TRY(pl_node_as_string(entry->document, item, &pattern, own->error));
    PL_TRY(claim(own, entry, item, pattern, has));
  }
  return PL_OK;
}

static void claim_free(const reading *own, const pl_beside_entry *entry, uint32_t n, bool *has) {
  for (uint32_t d = 0; d < own->cluster->n_devices && n > 0; d++) {
    if (own->owner[d] != NULL) continue;
    has[d] = true;
    own->owner[d] = entry->name;
    n--;
  }
}

/* The devices of the job, rising, and as a cluster of their own. */
static pl_code take_part(const reading *own, pl_beside_entry *entry, uint32_t wanted, pl_beside_job *job) {
  pl_arena *arena = &entry->session.arena;
  uint32_t n = 0;
  bool *has = PL_TAKE(arena, bool, own->cluster->n_devices);
  uint32_t *devices = PL_TAKE(arena, uint32_t, own->cluster->n_devices);
  if (arena->failed) return pl_fail_memory(own->error, "the jobs");
  const pl_node *root = pl_document_root(entry->document), *node = pl_node_get(root, "devices");
  if (node != NULL)
    PL_TRY(claim_named(own, entry, node, has));
  else
    claim_free(own, entry, wanted, has);
  for (uint32_t d = 0; d < own->cluster->n_devices; d++)
    if (has[d]) devices[n++] = d;
  if (n != wanted)
    return pl_document_fail(entry->document, node != NULL ? node : pl_node_get(root, "strategy"), own->error,
                            "the strategy needs %" PRIu32 " devices, and %s %" PRIu32, wanted,
                            node != NULL ? "'devices' names" : "free are", n);
  job->devices = devices;
  return pl_cluster_part_take(own->cluster, devices, n, arena, &job->part, own->error);
}

/* ---- jobs ---- */

/* What others say of the job, in front of it the file. */
static pl_code in_file(const pl_beside_entry *entry, pl_code code, const pl_error *cause, pl_error *error) {
  if (code == PL_OK) return PL_OK;
  return pl_fail(error, code, "--beside %s: %s", pl_document_name(entry->document), cause->message);
}

static pl_code place(pl_beside_entry *entry, const pl_cluster *part, pl_error *error) {
  pl_error cause = PL_ERROR_INIT;
  return in_file(entry, pl_job_session_place_on(&entry->session, &entry->options, part, &cause), &cause, error);
}

/* ---- jobs that a strategy tree says ---- */

/* Model and tree, and how many devices it is for. */
static pl_code read_tree(pl_beside_entry *entry, uint32_t *n_devices, pl_error *error) {
  pl_job_session *session = &entry->session;
  PL_TRY(pl_model_load_any(entry->options.model_path, &session->arena, &session->model, error));
  PL_TRY(pl_job_options_adopt(&entry->options, &session->model, &session->arena, error));
  PL_TRY(pl_tree_load(entry->strategy, &session->arena, &entry->tree, error));
  PL_TRY(pl_program_of_tree(&session->model, &entry->options.job, &entry->tree, PL_IR_MODEL, &session->arena,
                            &entry->plan, &entry->program, error));
  *n_devices = entry->plan.places != NULL ? (uint32_t)entry->plan.n_places : pl_ir_mesh_devices(&entry->plan.mesh);
  return PL_OK;
}

static pl_code place_tree(pl_beside_entry *entry, const pl_cluster *part, pl_error *error) {
  pl_job_session *session = &entry->session;
  const pl_job *job = &entry->options.job;
  PL_TRY(pl_job_options_complete(&entry->options, &session->model, part, error));
  session->model = pl_model_held_by_plan(&session->model, job->framework, &entry->plan);
  PL_TRY(pl_tree_prices_adopt(&entry->tree, part, &entry->options.simulate, false, &session->arena, error));
  PL_TRY(pl_program_of_tree(&session->model, job, &entry->tree, PL_IR_DISTRIBUTED, &session->arena, &entry->plan,
                            &entry->program, error));
  PL_TRY(pl_ir_check(&entry->program, error));
  return pl_program_launched(part, &entry->program, job->framework, &session->arena, &entry->launched, error);
}

static pl_code read_tree_job(const reading *own, pl_beside_entry *entry, pl_beside_job *job) {
  pl_error cause = PL_ERROR_INIT;
  uint32_t n_devices = 0;
  pl_code code = read_tree(entry, &n_devices, &cause);
  PL_TRY(in_file(entry, code, &cause, own->error));
  PL_TRY(take_part(own, entry, n_devices, job));
  code = place_tree(entry, job->part, &cause);
  PL_TRY(in_file(entry, code, &cause, own->error));
  job->program = &entry->launched;
  job->strategy_text = entry->strategy;
  return PL_OK;
}

static pl_code read_tuple_job(const reading *own, pl_beside_entry *entry, pl_beside_job *job) {
  pl_error cause = PL_ERROR_INIT;
  pl_code code = pl_job_session_read(&entry->session, &entry->options, entry->strategy, &cause);
  PL_TRY(in_file(entry, code, &cause, own->error));
  PL_TRY(take_part(own, entry, pl_strategy_n_ranks(&entry->session.strategy), job));
  job->strategy = &entry->session.strategy;
  return place(entry, job->part, own->error);
}

static pl_code read_job(const reading *own, const pl_job_options *main, const char *path, pl_beside_entry *entry,
                        pl_beside_job *job) {
  pl_job_options_init(&entry->options);
  pl_job_session_init(&entry->session);
  entry->options.platform_path = main->platform_path;
  entry->options.collective_choice = main->collective_choice;
  entry->options.simulate = pl_simulate_options_quiet(&main->simulate);
  PL_TRY(read_file(entry, path, own->error));
  PL_TRY((pl_tree_is_file(entry->strategy) ? read_tree_job : read_tuple_job)(own, entry, job));
  job->name = entry->name;
  job->model = &entry->session.model;
  job->job = &entry->options.job;
  job->collectives = entry->options.simulate.collective_profile;
  job->offset_s = entry->offset_s;
  job->n_iterations = (uint32_t)entry->n_iterations;
  return PL_OK;
}

/* Devices of a program that the cluster lacks are refused when its graph is made. */
static pl_code claim_for_program(const reading *own, const char *name) {
  const pl_ir_module *program = own->main->program;
  const uint32_t *places = pl_ir_places_take(program, own->main->arena);
  if (places == NULL) return pl_fail_memory(own->error, "the jobs");
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&program->mesh); d++)
    if (places[d] != PL_IR_NOWHERE && places[d] < own->cluster->n_devices) own->owner[places[d]] = name;
  return PL_OK;
}

static pl_code take_main(const reading *own, const pl_job_options *options, pl_beside_job *job) {
  static const char *const name = "the job of the command line";
  uint32_t *devices = PL_TAKE(own->main->arena, uint32_t, own->cluster->n_devices);
  if (devices == NULL) return pl_fail_memory(own->error, "the jobs");
  for (uint32_t d = 0; d < own->cluster->n_devices; d++)
    devices[d] = d;
  const pl_strategy *strategy = own->main->strategy;
  for (uint32_t rank = 0; strategy != NULL && rank < pl_strategy_n_ranks(strategy); rank++)
    own->owner[pl_strategy_device_of_rank(strategy, rank)] = name;
  if (strategy == NULL) PL_TRY(claim_for_program(own, name));
  *job = (pl_beside_job){.name = own->main->model->name,
                         .model = own->main->model,
                         .job = &options->job,
                         .strategy = strategy,
                         .program = own->main->program,
                         .strategy_text = own->main->strategy_text,
                         .part = own->cluster,
                         .devices = devices,
                         .collectives = options->simulate.collective_profile,
                         .n_iterations = 1};
  return PL_OK;
}

pl_code pl_beside_options_read(pl_beside_options *options, const pl_beside_main *main, const pl_job_options *job,
                               pl_error *error) {
  if (options->n_paths == 0) return PL_OK;
  if (options->n_paths > PL_BESIDE_JOBS_MAX)
    return pl_fail(error, PL_BAD_INPUT, "--beside: at most %d jobs", PL_BESIDE_JOBS_MAX);
  reading own = {.options = options, .main = main, .cluster = main->cluster, .error = error};
  own.owner = PL_TAKE(main->arena, const char *, main->cluster->n_devices);
  options->result.jobs = PL_TAKE(main->arena, pl_beside_job, options->n_paths + 1);
  options->entries = PL_TAKE(main->arena, pl_beside_entry, options->n_paths);
  if (main->arena->failed) return pl_fail_memory(error, "the jobs");
  PL_TRY(take_main(&own, job, &options->result.jobs[0]));
  for (options->result.n_jobs = 1; options->result.n_jobs <= options->n_paths;) {
    uint32_t number = options->result.n_jobs++;
    PL_TRY(
        read_job(&own, job, options->paths[number - 1], &options->entries[number - 1], &options->result.jobs[number]));
  }
  return PL_OK;
}

pl_code pl_beside_options_run(pl_beside_options *options, const pl_beside_main *main, const pl_job_options *job,
                              FILE *trace, pl_error *error) {
  if (options->result.n_jobs == 0) return PL_OK;
  pl_simulate_options simulate = job->simulate;
  simulate.trace = trace;
  return pl_beside_run(main->cluster, options->result.jobs, options->result.n_jobs, &simulate, main->arena,
                       &options->result.report, error);
}

void pl_beside_options_release(pl_beside_options *options) {
  for (uint32_t i = 0; i + 1 < options->result.n_jobs; i++) {
    pl_job_session_release(&options->entries[i].session);
    pl_document_destroy(options->entries[i].document);
  }
  options->result.n_jobs = 0;
}
