/* `paceline report`: the picture of a sweep or a search, one HTML file that needs no network. The page and its script
 * are a file of the data (report.html); what is written here is what it draws: the columns, as arrays. */
#include "search/command/cmd_report.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/units.h"
#include "core/system/child.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/data_folder.h"
#include "core/system/output_file.h"
#include "core/system/text_file.h"
#include "search/command/report_drawings.h"
#include "search/results/results_reader.h"

enum { KEY_FORCE = 'f', KEY_OUTPUT = 'o', KEY_TITLE = 0x560, PAGE_BYTES_MAX = 1 << 22 };

typedef struct report_options {
  const char *path, *output, *title;
  bool force;
  pl_error error;
} report_options;

static const struct argp_option option_table[] = {
    {"output", KEY_OUTPUT, "FILE", 0, "the page to write (HTML; everything is in it)", 0},
    {"title", KEY_TITLE, "TEXT", 0, "its headline (default: the model and the platform of the recorded command)", 0},
    {"force", KEY_FORCE, NULL, 0, "replace an existing file", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  report_options *options = state->input;
  switch (key) {
  case KEY_OUTPUT:
    options->output = value;
    return 0;
  case KEY_TITLE:
    options->title = value;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case ARGP_KEY_ARG:
    if (options->path != NULL) pl_command_line_refuse_argument(value, &options->error);
    options->path = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

typedef struct session {
  report_options options;
  pl_arena arena;
  pl_results_reader *reader;
  char *page;          /* the template */
  const char *data_at; /* the word in it that the data take the place of */
  FILE *out;
  bool is_left_out[PL_RESULT_N_COLUMNS]; /* of the strategy's columns: no row has anything to say there */
  pl_column_list columns;
  const int32_t *status;          /* of each row: a sweep that goes on, or was killed, has some that are pending (0) */
  uint32_t n_computed, n_pending; /* rows; the page has the former */
  pl_report_drawings drawings;
} session;

static const char marker[] = "/*DATA*/null";

/* What a strategy is written with; cp, ep, etp and ep_overlap only where some row has them. */
static const char *const strategy_keys[] = {"pp",         "dp",      "tmp",      "cp",     "ep", "etp",
                                            "ep_overlap", "mbs",     "schedule", "vpp",    "sp", "recompute",
                                            "zero",       "overlap", "order",    "assign", NULL};
static const char *const measured[] = {"iter_time_s",
                                       "iter_time_low_s",
                                       "iter_time_high_s",
                                       "tokens_per_s",
                                       "mfu",
                                       "compute_s",
                                       "tensor_comm_s",
                                       "pipeline_comm_s",
                                       "data_comm_s",
                                       "context_comm_s",
                                       "expert_comm_s",
                                       "bubble_s",
                                       "peak_mem_bytes",
                                       "mem_capacity_bytes",
                                       "fits",
                                       NULL};

/* ---- JSON inside of a script: no '<', which could end it ---- */

static void put_text(FILE *out, const char *text, size_t most) {
  fputc('"', out);
  for (size_t i = 0; i < most && text[i] != '\0'; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f)
      fprintf(out, "\\u%04x", c);
    else if (c == '"' || c == '\\')
      fprintf(out, "\\%c", c);
    else
      fputc(c, out);
  }
  fputc('"', out);
}

static const pl_column_info *find_column(const char *name) {
  for (uint32_t c = 0; c < pl_result_n_columns; c++)
    if (strcmp(pl_result_columns[c].name, name) == 0) return &pl_result_columns[c];
  return NULL;
}

static void put_number(FILE *out, double value) {
  if (isfinite(value))
    fprintf(out, "%.7g", value);
  else
    fputs("null", out);
}

static void put_element(FILE *out, const pl_column_info *column, const void *at) {
  switch (column->type) {
  case PL_COLUMN_i32:
    fprintf(out, "%d", *(const int32_t *)at);
    break;
  case PL_COLUMN_i64:
    fprintf(out, "%" PRId64, *(const int64_t *)at);
    break;
  case PL_COLUMN_f64:
    put_number(out, *(const double *)at);
    break;
  default:
    put_text(out, at, column->size);
    break;
  }
}

static pl_code put_column(session *own, const pl_column_info *column, bool first, pl_error *error) {
  PL_ASSERT(column != NULL);
  pl_arena_mark mark = pl_arena_mark_here(&own->arena);
  void *values;
  PL_TRY(pl_results_reader_column(own->reader, column, &own->arena, &values, error));
  fputs(first ? "\n" : ",\n", own->out);
  put_text(own->out, column->name, SIZE_MAX);
  fputs(":[", own->out);
  const char *between = "";
  for (uint32_t i = 0; i < pl_results_reader_n_rows(own->reader); i++) {
    if (own->status[i] == 0) continue;
    fputs(between, own->out);
    put_element(own->out, column, (const char *)values + (size_t)i * column->size);
    between = ",";
  }
  fputc(']', own->out);
  pl_arena_release_to(&own->arena, mark);
  return PL_OK;
}

/* Missing everywhere (degrees of strategy trees, which differ from op to op), or a cp, ep or etp of 1, or no
 * ep_overlap. */
static pl_code is_used(session *own, const char *name, bool *used, pl_error *error) {
  const pl_column_info *column = find_column(name);
  bool seldom = strcmp(name, "cp") == 0 || strcmp(name, "ep") == 0 || strcmp(name, "etp") == 0;
  bool is_switch = strcmp(name, "ep_overlap") == 0;
  void *values;
  *used = false;
  PL_TRY(pl_results_reader_column(own->reader, column, &own->arena, &values, error));
  for (uint32_t i = 0; i < pl_results_reader_n_rows(own->reader); i++) {
    const char *at = (const char *)values + (size_t)i * column->size;
    *used |= column->type == PL_COLUMN_i32 ? *(const int32_t *)(const void *)at > (seldom      ? 1
                                                                                   : is_switch ? 0
                                                                                               : -1)
                                           : at[0] != '\0';
  }
  return PL_OK;
}

static pl_code find_used(session *own, pl_error *error) {
  for (int k = 0; strategy_keys[k] != NULL; k++) {
    bool used;
    PL_TRY(is_used(own, strategy_keys[k], &used, error));
    own->is_left_out[k] = !used;
  }
  return PL_OK;
}

static pl_code find_computed(session *own, pl_error *error) {
  void *values;
  PL_TRY(pl_results_reader_column(own->reader, find_column("status"), &own->arena, &values, error));
  own->status = values;
  own->n_pending = 0;
  for (uint32_t i = 0; i < pl_results_reader_n_rows(own->reader); i++)
    own->n_pending += own->status[i] == 0;
  own->n_computed = pl_results_reader_n_rows(own->reader) - own->n_pending;
  return PL_OK;
}

/* What was chosen of a strategy space. */
static bool is_choice(const pl_column_info *column) {
  return strncmp(column->name, "choice_", 7) == 0;
}

static void put_keys(const session *own, const char *name) {
  int n = 0;
  fprintf(own->out, "\"%s\":[", name);
  for (int k = 0; strategy_keys[k] != NULL; k++)
    if (!own->is_left_out[k]) fprintf(own->out, "%s\"%s\"", n++ > 0 ? "," : "", strategy_keys[k]);
  for (uint32_t c = 0; c < own->columns.n; c++)
    if (is_choice(&own->columns.at[c])) {
      fputs(n++ > 0 ? "," : "", own->out);
      put_text(own->out, own->columns.at[c].name, SIZE_MAX);
    }
  fputs("],\n", own->out);
}

/* ---- what the page says of its origin ---- */

/* The value of `option` in the recorded command, or NULL. */
static const char *value_of(const char *command, const char *option, pl_arena *arena) {
  const char *at = strstr(command, option);
  if (at == NULL) return NULL;
  at += strlen(option);
  if (*at != ' ' && *at != '=') return NULL;
  at++;
  size_t length = *at == '\'' ? strcspn(++at, "'") : strcspn(at, " ");
  const char *slash = memrchr(at, '/', length); /* of a path the file, without .xml or .json */
  if (slash != NULL) length -= (size_t)(slash + 1 - at);
  if (slash != NULL) at = slash + 1;
  const char *text = pl_arena_printf(arena, "%.*s", (int)length, at);
  char *dot = text != NULL ? strrchr((char *)text, '.') : NULL;
  if (dot != NULL && (strcmp(dot, ".xml") == 0 || strcmp(dot, ".json") == 0)) *dot = '\0';
  return text;
}

static const char *title_of(session *own, const char *command) {
  if (own->options.title != NULL) return own->options.title;
  const char *model = value_of(command, "--model", &own->arena),
             *platform = value_of(command, "--platform", &own->arena);
  if (model == NULL || platform == NULL) return "Strategies";
  return pl_arena_printf(&own->arena, "%s on %s", model, platform);
}

/* What the MFU is a share of. */
static const char *peak_of(session *own) {
  bool fp4 = pl_results_reader_attribute(own->reader, "fp4", &own->arena) != NULL,
       fp8 = pl_results_reader_attribute(own->reader, "fp8", &own->arena) != NULL;
  const char *share = pl_results_reader_attribute(own->reader, "narrow_share", &own->arena);
  if (share != NULL && !(strtod(share, NULL) > 0)) return "of the GPUs' peak"; /* asked for, and nothing is */
  return fp4   ? "of the GPUs' peaks, fp4 products at theirs"
         : fp8 ? "of the GPUs' peaks, fp8 products at theirs"
               : "of the GPUs' peak";
}

static void put_origin(session *own, const char *command) {
  struct stat status;
  char date[64] = "";
  struct tm local;
  if (stat(own->options.path, &status) == 0 && localtime_r(&status.st_mtime, &local) != NULL)
    strftime(date, sizeof date, "%Y-%m-%d", &local);
  const char *title = title_of(own, command);
  fputs("\"title\":", own->out);
  put_text(own->out, title != NULL ? title : "Strategies", SIZE_MAX);
  fputs(",\n\"command\":", own->out);
  put_text(own->out, command, SIZE_MAX);
  fputs(",\n\"facts\":[", own->out);
  put_text(own->out, own->options.path, SIZE_MAX);
  fprintf(own->out, ",\"of %s\",\"paceline %s\"", date, PACELINE_VERSION);
  const char *types = pl_results_reader_types(own->reader, &own->arena);
  if (types != NULL) fputc(',', own->out);
  if (types != NULL) put_text(own->out, types, SIZE_MAX);
  fprintf(own->out, "],\n\"peak\":\"%s\",\n\"words\":", peak_of(own));
  put_text(own->out,
           "Times are of one training iteration, as simulated. pp: pipeline stages, dp: replicas, tmp: tensor ranks, "
           "mbs: sequences "
           "per microbatch, vpp: chunks per stage, sp: sequence parallelism, zero: ZeRO stage, overlap: gradients are "
           "reduced during the backward pass, order: placement, innermost first, assign: first layer of each stage.",
           SIZE_MAX);
  fputs(",\n", own->out);
}

static pl_code put_data(session *own, pl_error *error) {
  const char *command = pl_results_reader_command(own->reader, &own->arena);
  own->columns = pl_results_reader_columns(own->reader);
  PL_TRY(find_used(own, error));
  PL_TRY(find_computed(own, error));
  fputs("{", own->out);
  put_origin(own, command != NULL ? command : "");
  fputs("\"drawings\":{\"pipeline\":", own->out);
  put_text(own->out, own->drawings.pipeline != NULL ? own->drawings.pipeline : "", SIZE_MAX);
  fputs(",\n\"platform\":", own->out);
  put_text(own->out, own->drawings.platform != NULL ? own->drawings.platform : "", SIZE_MAX);
  fputs("},\n", own->out);
  put_keys(own, "keys");
  put_keys(own, "strategy_keys");
  fprintf(own->out, "\"n_rows\":%u,\n\"n_pending\":%u,\n\"columns\":{", own->n_computed, own->n_pending);
  for (int k = 0; measured[k] != NULL; k++)
    PL_TRY(put_column(own, find_column(measured[k]), k == 0, error));
  for (int k = 0; strategy_keys[k] != NULL; k++)
    if (!own->is_left_out[k]) PL_TRY(put_column(own, find_column(strategy_keys[k]), false, error));
  for (uint32_t c = 0; c < own->columns.n; c++)
    if (is_choice(&own->columns.at[c])) PL_TRY(put_column(own, &own->columns.at[c], false, error));
  fputs("}}", own->out);
  return PL_OK;
}

/* ---- the command ---- */

/* In a process of its own, as the file is anybody's (core/system/child.h). */
static pl_code write_page(void *session_, FILE *out, FILE *notes, pl_error *error) {
  (void)notes;
  session *own = session_;
  own->out = out;
  PL_TRY(pl_results_reader_create(own->options.path, &own->reader, error));
  fwrite(own->page, 1, (size_t)(own->data_at - own->page), out);
  pl_code code = put_data(own, error);
  fputs(own->data_at + strlen(marker), out);
  pl_results_reader_destroy(own->reader);
  return code;
}

static pl_code load_page(session *own, pl_error *error) {
  const char *path;
  size_t size;
  PL_TRY(pl_data_find("report.html", &own->arena, &path, error));
  PL_TRY(pl_text_file_load(path, PAGE_BYTES_MAX, &own->page, &size, error));
  own->data_at = strstr(own->page, marker);
  if (own->data_at != NULL) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: has no %s, where the data go", path, marker);
}

static pl_code report(session *own, pl_error *error) {
  const report_options *options = &own->options;
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->path == NULL) return pl_fail(error, PL_BAD_INPUT, "which results file? paceline report FILE -o PAGE");
  if (options->output == NULL)
    return pl_fail(error, PL_BAD_INPUT, "-o FILE is missing: the page to write, e.g. -o sweep.html");
  PL_TRY(pl_command_refuse_input(options->output, options->path, error));
  PL_TRY(load_page(own, error));
  PL_TRY(pl_report_drawings_take(options->path, &own->drawings, error));
  if (own->drawings.why_not.code != PL_OK)
    fprintf(stderr, "paceline report: %s shows no drawing of %s: %s\n", options->output,
            own->drawings.platform != NULL ? "the iteration" : "platform and iteration", own->drawings.why_not.message);
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, options->output, options->force, error));
  const pl_child child = {.path = options->path, .kind = "HDF5", .work = write_page, .context = own};
  pl_code code = pl_output_file_close(&file, pl_child_run(&child, file.stream, stderr, error), error);
  if (code == PL_OK) pl_command_print_written(options->output, "open it in a browser");
  return code;
}

int pl_cmd_report(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .args_doc = "FILE",
      .doc = "Writes the results of a sweep or a search as a page: time over memory, the best, filters, where the time "
             "goes. One file, which needs no network.\v"
             "Example:\n  paceline report sweep.h5 -o sweep.html"};
  session own = {0};
  char name[] = "paceline report";
  if (argc > 0) argv[0] = name; /* what argp calls the program */
  pl_arena_init(&own.arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("report", &argp, argc, argv, false, &own.options, &error);
  if (code == PL_OK) code = report(&own, &error);
  int status = code == PL_OK ? 0 : pl_command_report("report", &error);
  free(own.page);
  pl_report_drawings_release(&own.drawings);
  pl_arena_release(&own.arena);
  return pl_command_finish("report", status);
}
