/* See search/command/report_drawings.h. */
#include "search/command/report_drawings.h"

#include <stdlib.h>
#include <string.h>

#include "core/system/child.h"
#include "core/system/command_line.h"
#include "netmodel/show/platform_svg.h"
#include "search/command/recorded_job.h"
#include "search/command/strategy_of_row.h"
#include "search/results/results_reader.h"
#include "search/run/space_session.h"
#include "workloads/command/job_session.h"
#include "workloads/onnx/onnx_file.h"

/* ---- what the file says: the command, and the fastest strategy that fits ---- */

static pl_code put_best(pl_results_reader *reader, FILE *out, pl_arena *arena, pl_error *error) {
  pl_results_summary summary;
  pl_search_values values = {0};
  pl_result_row r = {0};
  bool searched = pl_results_reader_has_search(reader);
  const char *command = pl_results_reader_command(reader, arena);
  PL_TRY(pl_results_reader_summarise(reader, arena, &summary, error));
  fprintf(out, "%s\n", command != NULL ? command : "");
  if (summary.best == UINT32_MAX) return PL_OK;
  PL_TRY(pl_results_reader_rows(reader, summary.best, 1, &r, searched ? &values : NULL, error));
  const char *strategy = pl_strategy_of_row(reader, &r, arena);
  if (strategy == NULL) return pl_fail_memory(error, "a strategy");
  fprintf(out, "%s", strategy);
  return PL_OK;
}

static pl_code read_results(void *path, FILE *out, FILE *notes, pl_error *error) {
  (void)notes;
  pl_results_reader *reader;
  pl_arena arena;
  PL_TRY(pl_results_reader_create(path, &reader, error));
  pl_arena_init(&arena, 0);
  pl_code code = put_best(reader, out, &arena, error);
  pl_arena_release(&arena);
  pl_results_reader_destroy(reader);
  return code;
}

/* ---- drawings ---- */

typedef struct drawing {
  pl_job_options options;
  pl_job_session job;
  pl_space_options space; /* of programs */
  pl_space_session programs;
  pl_report_drawings *drawings;
} drawing;

static error_t read_option(int key, char *value, struct argp_state *state) {
  (void)value;
  if (key != ARGP_KEY_INIT) return ARGP_ERR_UNKNOWN;
  state->child_inputs[0] = state->input;
  return 0;
}

static pl_code parse(drawing *own, char *command, pl_error *error) {
  static const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.parser = read_option, .children = children};
  static const char space[] = "--strategy-space", offload[] = "--offload";
  char *kept[2 * PL_RECORDED_WORDS + 2], *words[PL_RECORDED_WORDS + 1], name[] = "paceline report";
  int n_kept = 1, n = pl_recorded_words(command, words);
  kept[0] = name;
  pl_recorded_job(words, n, kept, &n_kept);
  kept[n_kept] = NULL;
  for (int i = 1; i < n; i++) {
    if (strncmp(words[i], offload, strlen(offload)) == 0) own->space.choices.offloads = 3; /* some, so of programs */
    if (strncmp(words[i], space, strlen(space)) != 0) continue;
    const char *value = words[i][strlen(space)] == '=' ? words[i] + strlen(space) + 1 : i + 1 < n ? words[i + 1] : NULL;
    if (value != NULL) own->space.trees = pl_arena_strdup(&own->programs.arena, value);
  }
  PL_TRY(pl_command_line_parse("report", &argp, n_kept, kept, false, &own->options, error));
  pl_job_options_count_memory(&own->options);
  return pl_job_options_check(&own->options, error);
}

static pl_code draw_pipeline(drawing *own, FILE *stream, const char *strategy, pl_error *error) {
  pl_simulate_options *simulate = &own->options.simulate;
  pl_simulate_report report;
  simulate->diagram = stream;
  simulate->diagram_title = own->job.model.name;
  simulate->diagram_subtitle = strategy;
  return pl_simulate(own->job.cluster, &own->job.model, &own->options.job, &own->job.strategy, simulate,
                     &own->job.arena, &report, error);
}

/* The same of a tree of a strategy space, or of a strategy of an ONNX file. */
static pl_code draw_program(drawing *own, FILE *stream, const char *text, pl_error *error) {
  const pl_evaluation *e = &own->programs.evaluation;
  pl_simulate_options *simulate = &own->options.simulate;
  pl_result_row row = {.pp = 0};
  pl_worker worker;
  pl_strategy strategy;
  uint32_t index = 0;
  pl_worker_init(&worker);
  simulate->diagram = stream;
  simulate->diagram_title = e->model->name;
  simulate->diagram_subtitle = text;
  pl_code code = e->trees != NULL ? pl_tree_space_find(e->trees, text, &index, error)
                                  : pl_strategy_parse(text, e->model, &worker.arena, &strategy, error);
  if (code == PL_OK)
    code = e->trees != NULL ? pl_evaluate_tree(e, index, &worker, &row, error)
                            : pl_evaluate_strategy(e, &strategy, &worker, &row, error);
  pl_worker_release(&worker);
  return code;
}

static bool is_of_programs(const drawing *own) {
  return own->space.trees != NULL || pl_space_choices_are_programs(&own->space.choices) ||
         pl_onnx_is_path(own->options.model_path);
}

/* Into *text, which is there only if all went well. */
static pl_code draw(drawing *own, const char *strategy, char **text, pl_error *error) {
  size_t size = 0;
  FILE *stream = open_memstream(text, &size);
  if (stream == NULL) return pl_fail_memory(error, "a drawing");
  bool programs = is_of_programs(own);
  const pl_platform *platform = programs ? own->programs.platform : own->job.platform;
  pl_code code = strategy == NULL ? pl_platform_svg_draw(stream, platform, error)
                 : programs       ? draw_program(own, stream, strategy, error)
                                  : draw_pipeline(own, stream, strategy, error);
  if (fclose(stream) != 0 && code == PL_OK) code = pl_fail_memory(error, "a drawing");
  if (code == PL_OK) return PL_OK;
  free(*text);
  *text = NULL;
  return code;
}

static pl_code draw_both(drawing *own, char *command, const char *strategy, pl_error *error) {
  PL_TRY(parse(own, command, error));
  if (is_of_programs(own)) {
    PL_TRY(pl_space_session_load(&own->programs, &own->options, &own->space, error));
  } else {
    PL_TRY(pl_job_session_read(&own->job, &own->options, strategy, error));
    PL_TRY(pl_job_session_place(&own->job, &own->options, error));
  }
  PL_TRY(draw(own, NULL, &own->drawings->platform, error));
  return draw(own, strategy, &own->drawings->pipeline, error);
}

pl_code pl_report_drawings_take(const char *path, pl_report_drawings *drawings, pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  *drawings = (pl_report_drawings){.why_not = PL_ERROR_INIT};
  FILE *stream = open_memstream(&text, &size);
  if (stream == NULL) return pl_fail_memory(error, "a drawing");
  const pl_child child = {.path = path, .kind = "HDF5", .work = read_results, .context = (void *)path};
  pl_code code = pl_child_run(&child, stream, stderr, error);
  if (fclose(stream) != 0 && code == PL_OK) code = pl_fail_memory(error, "a drawing");
  char *strategy = code == PL_OK ? strchr(text, '\n') : NULL;
  if (strategy != NULL && strategy[1] != '\0') {
    *strategy++ = '\0';
    drawing own = {.drawings = drawings};
    pl_job_options_init(&own.options);
    pl_job_session_init(&own.job);
    pl_space_session_init(&own.programs);
    pl_space_options_init(&own.space, &drawings->why_not);
    draw_both(&own, text, strategy, &drawings->why_not);
    pl_space_session_release(&own.programs);
    pl_job_session_release(&own.job);
  }
  free(text);
  return code;
}

void pl_report_drawings_release(pl_report_drawings *drawings) {
  free(drawings->pipeline);
  free(drawings->platform);
}
