/* `paceline launch`: what starts a strategy in a training framework. The strategy is the best of a file of results, or
 * the one of --strategy; a file's job is that of its recorded command, and options beside it are stronger. */
#include "search/command/cmd_launch.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "search/command/recorded_job.h"
#include "search/command/recorded_rows.h"
#include "workloads/command/job_session.h"
#include "workloads/import/model_file.h"
#include "workloads/launch/launch_write.h"

enum { KEY_AS = 0x570, KEY_OUTPUT = 'o', KEY_STRATEGY = 'S', KEY_FORCE = 'f', KEY_ROW = 0x571 };

typedef struct launch_options {
  pl_job_options job;
  const char *path, *as, *output, *strategy, *row;
  bool force;
} launch_options;

static const struct argp_option option_table[] = {
    {"as", KEY_AS, "FRAMEWORK", 0, "megatron (a script), torchtitan (TOML), nemo (YAML) or deepspeed (JSON)", 0},
    {"output", KEY_OUTPUT, "FILE", 0, "the file to write (default: standard output)", 0},
    {"row", KEY_ROW, "N", 0, "of the results this row, from 0 on (default: the fastest that fits)", 0},
    {"strategy", KEY_STRATEGY, "TEXT", 0,
     "instead of results: this strategy, of a platform, a model and a batch that are given as well", 0},
    {"force", KEY_FORCE, NULL, 0, "replace an existing file", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  launch_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    return 0;
  case KEY_AS:
    options->as = value;
    return 0;
  case KEY_OUTPUT:
    options->output = value;
    return 0;
  case KEY_ROW:
    options->row = value;
    return 0;
  case KEY_STRATEGY:
    options->strategy = value;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case ARGP_KEY_ARG:
    if (options->path != NULL) pl_command_line_refuse_argument(value, &options->job.error);
    options->path = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = option_table,
    .parser = read_option,
    .children = children,
    .args_doc = "[FILE]",
    .doc =
        "Writes what starts a strategy in a training framework: of the best row of a sweep's or a search's FILE, or of "
        "--strategy. 'paceline simulate --from' reads such files.\v"
        "Example:\n  paceline launch sweep.h5 --as megatron -o train.sh"};

typedef struct session {
  launch_options options;
  pl_job_session job;
  char *rows; /* of the file: "ROW SECONDS STRATEGY", a line each, best first; NULL: --strategy is written */
} session;

/* ---- what a file of results says ---- */

static pl_code adopt_results(session *own, int argc, char **argv, pl_error *error) {
  char *kept[2 * PL_RECORDED_WORDS + 2], *words[PL_RECORDED_WORDS + 1], name[] = "paceline launch";
  pl_recorded_rows rows;
  PL_TRY(pl_recorded_rows_take(own->options.path, own->options.row, &own->job.arena, &rows, error));
  own->rows = rows.lines;
  int n_kept = 1, n = pl_recorded_words(rows.command, words);
  kept[0] = name;
  pl_recorded_job(words, n, kept, &n_kept);
  kept[n_kept] = NULL;
  own->options = (launch_options){0};
  pl_job_options_init(&own->options.job);
  PL_TRY(pl_command_line_parse("launch", &argp, n_kept, kept, false, &own->options, error));
  PL_TRY(pl_command_line_parse("launch", &argp, argc, argv, false, &own->options, error));
  if (own->options.strategy != NULL) own->rows = NULL;
  return PL_OK;
}

/* ---- the command ---- */

static pl_code find_nodes(const session *own, pl_launched *launched, pl_error *error) {
  const pl_cluster *cluster = pl_platform_cluster(own->job.platform);
  uint32_t per_node = cluster->nodes[0].n_devices, ranks = pl_strategy_n_ranks(&own->job.strategy);
  for (uint32_t i = 1; i < cluster->n_nodes; i++)
    if (cluster->nodes[i].n_devices != per_node)
      return pl_fail(error, PL_UNSUPPORTED, "%s: nodes have unlike numbers of GPUs, which no launcher here can say",
                     own->options.job.platform_path);
  if (ranks > per_node && ranks % per_node != 0)
    return pl_fail(error, PL_UNSUPPORTED, "%u ranks do not fill nodes of %u GPUs", ranks, per_node);
  launched->gpus_per_node = ranks < per_node ? ranks : per_node;
  launched->n_nodes = ranks / launched->gpus_per_node;
  return PL_OK;
}

static bool is_older(const pl_framework *framework) {
  int permutation = framework->kernels.permutation;
  bool known = permutation == PL_PERMUTATION_FUSED || permutation == PL_PERMUTATION_SCATTERED;
  return !known || framework->kernels.experts == PL_EXPERTS_SLICED;
}

/* What was asked for and the file has no word for: who exchanges tokens by NCCL has its multiprocessors, and PyTorch
 * ops of before Megatron Core 0.13 are read as those since. */
static void tell_left_out(const session *own, pl_launch_form form) {
  enum { OF_ALLTOALL = 16 }; /* as pl_megatron_take_dispatcher reads it */
  double taken = own->options.job.exchange_sms;
  const pl_framework *framework = pl_framework_or_ideal(own->options.job.job.framework);
  if (form == PL_LAUNCH_MEGATRON && own->job.model.moe.n_experts > 0 && is_older(framework))
    fprintf(stderr,
            "paceline launch: how framework %s moves tokens of experts is not in the file: it is read as what "
            "Megatron Core has since 0.13\n",
            framework->name);
  if (form != PL_LAUNCH_MEGATRON || taken < 0 || taken == OF_ALLTOALL || own->job.model.moe.n_experts == 0 ||
      framework->pipeline.sends_tokens_per_node)
    return;
  fprintf(
      stderr,
      "paceline launch: --exchange-sms %g is not in the file: the dispatcher alltoall, which this framework has, says "
      "none and is read as NCCL's %d\n",
      taken, OF_ALLTOALL);
}

/* The strategy on the platform, as text in *text, which the caller frees. */
static pl_code make(session *own, const char *strategy, pl_launch_form form, char **text, pl_error *error) {
  launch_options *options = &own->options;
  pl_launched launched = {.model = &own->job.model, .job = &options->job.job, .strategy = &own->job.strategy};
  size_t size = 0;
  PL_TRY(pl_strategy_parse(strategy, &own->job.model, &own->job.arena, &own->job.strategy, error));
  pl_strategy_adopt(&own->job.strategy, &options->job.job);
  PL_TRY(pl_job_session_place(&own->job, &options->job, error));
  PL_TRY(find_nodes(own, &launched, error));
  char *whole = pl_strategy_text(&own->job.strategy, &own->job.model);
  launched.comment = whole == NULL ? NULL
                                   : pl_arena_printf(&own->job.arena, "%s on %s: %s", own->job.model.name,
                                                     options->job.platform_path, whole);
  free(whole);
  FILE *stream = launched.comment != NULL ? open_memstream(text, &size) : NULL;
  if (stream == NULL) return pl_fail_memory(error, "a launch file");
  pl_code code = pl_launch_write(stream, form, &launched, error);
  if (fclose(stream) != 0 && code == PL_OK) code = pl_fail_memory(error, "a launch file");
  if (code == PL_OK) tell_left_out(own, form);
  return code;
}

/* Of the rows the fastest that the framework can say; how it compares with the fastest of all is said. */
static pl_code make_best(session *own, pl_launch_form form, char **text, pl_error *error) {
  const char *name = pl_launch_form_names[form];
  pl_error first = PL_ERROR_INIT;
  uint32_t first_row = 0, n = 0;
  double first_s = 0;
  for (char *line = own->rows; *line != '\0'; n++) {
    char *end = line + strcspn(line, "\n");
    bool more = *end != '\0';
    *end = '\0';
    char *behind;
    uint32_t row = (uint32_t)strtoul(line, &behind, 10);
    double time_s = strtod(behind, &behind);
    const char *strategy = behind + strspn(behind, " ");
    if (*strategy == '?')
      return pl_fail(error, PL_UNSUPPORTED, "%s: row %u is of a tree, and launch files say tuples", own->options.path,
                     row);
    pl_error why = PL_ERROR_INIT;
    free(*text);
    *text = NULL;
    pl_code code = make(own, strategy, form, text, &why);
    if (code == PL_OK && n > 0)
      fprintf(stderr, "paceline launch: row %u, %.3g %% slower than row %u, the fastest, which %s cannot say: %s\n",
              row, 100 * (time_s / first_s - 1), first_row, name, first.message);
    if (code == PL_OK) return PL_OK;
    if (code != PL_UNSUPPORTED) return pl_fail(error, code, "row %u: %s", row, why.message);
    if (n == 0) {
      first = why;
      first_row = row;
      first_s = time_s;
    }
    line = more ? end + 1 : end;
  }
  return pl_fail(error, PL_UNSUPPORTED, "%s cannot say any of the %u best rows that fit; row %u: %s", name, n,
                 first_row, first.message);
}

/* Before anything is said of what will be in it. */
static pl_code check_output(const launch_options *options, pl_error *error) {
  if (options->output == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(options->output, options->path != NULL ? options->path : "", error));
  return pl_output_file_check(options->output, options->force, error);
}

static pl_code put_out(const launch_options *options, const char *text, pl_error *error) {
  if (options->output == NULL) {
    fputs(text, stdout);
    return PL_OK;
  }
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, options->output, options->force, error));
  fputs(text, file.stream);
  PL_TRY(pl_output_file_close(&file, PL_OK, error));
  pl_command_print_written(options->output, NULL);
  return PL_OK;
}

static pl_code launch(session *own, int argc, char **argv, pl_error *error) {
  launch_options *options = &own->options;
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  if (options->job.error.code != PL_OK)
    return pl_fail(error, options->job.error.code, "%s", options->job.error.message);
  if (options->as == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--as is missing: one of %s",
                   pl_words_list(pl_launch_form_names, list, sizeof list));
  int form = pl_words_find(pl_launch_form_names, options->as);
  if (form < 0)
    return pl_fail(error, PL_BAD_INPUT, "--as %s: known are %s%s", options->as,
                   pl_words_list(pl_launch_form_names, list, sizeof list),
                   pl_words_hint(pl_launch_form_names, options->as, hint));
  if (options->path == NULL && options->strategy == NULL)
    return pl_fail(
        error, PL_BAD_INPUT,
        "of which strategy? paceline launch RESULTS.h5 --as %s, or --platform, --model, --gbs and --strategy",
        options->as);
  if (options->path != NULL) PL_TRY(adopt_results(own, argc, argv, error));
  PL_TRY(pl_job_options_check(&options->job, error));
  PL_TRY(pl_model_load(options->job.model_path, &own->job.arena, &own->job.model, error));
  PL_TRY(pl_job_options_adopt(&options->job, &own->job.model, &own->job.arena, error));
  PL_TRY(check_output(options, error));
  char *text = NULL;
  pl_code code = own->rows != NULL ? make_best(own, (pl_launch_form)form, &text, error)
                                   : make(own, options->strategy, (pl_launch_form)form, &text, error);
  if (code == PL_OK) code = put_out(options, text, error);
  free(text);
  return code;
}

int pl_cmd_launch(int argc, char **argv) {
  session own = {0};
  char name[] = "paceline launch";
  if (argc > 0) argv[0] = name; /* what argp calls the program */
  pl_job_options_init(&own.options.job);
  pl_job_session_init(&own.job);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("launch", &argp, argc, argv, false, &own.options, &error);
  if (code == PL_OK) code = launch(&own, argc, argv, &error);
  int status = code == PL_OK ? 0 : pl_command_report("launch", &error);
  pl_job_session_release(&own.job);
  return pl_command_finish("launch", status);
}
