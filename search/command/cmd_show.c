/* `paceline show`. Tables are for reading: rounded, units in the header. CSV and JSON are for programs: exact, units as
 * in the file. */
#include "search/command/cmd_show.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/system/child.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "search/command/selection.h"
#include "search/results/column_text.h"
#include "search/run/run_options.h"
#include "workloads/strategy/strategy.h"

enum {
  KEY_TOP = 'n',
  KEY_SORT = 's',
  KEY_WHERE = 'w',
  KEY_COLUMNS = 'c',
  KEY_JSON = 'j',
  KEY_CSV = 0x500,
  MOST_COLUMNS = PL_RESULT_MOST,
  LONGEST_ASSIGN = 24
};

typedef struct show_options {
  const char *path, *sort, *where, *columns;
  int64_t top;
  bool json, csv;
  pl_error error;
} show_options;

static const struct argp_option option_table[] = {
    {"top", KEY_TOP, "N", 0, "only the first N rows; 0: all (the default)", 0},
    {"sort", KEY_SORT, "COLUMN", 0, "sort by COLUMN, by -COLUMN downwards (default iter_time_s)", 0},
    {"where", KEY_WHERE, "EXPR", 0,
     "only rows for which EXPR holds, e.g. 'fits and tmp<=8', \"schedule=='1f1b' or pp==1\", true (default: those that "
     "were simulated and fit, status == 'done')",
     0},
    {"columns", KEY_COLUMNS, "LIST", 0, "columns to print, e.g. pp,tmp,iter_time_s; 'all' for every one", 0},
    {"json", KEY_JSON, NULL, 0, "print JSON: exact values, names and units as in the file", 0},
    {"csv", KEY_CSV, NULL, 0, "print CSV, likewise", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  show_options *options = state->input;
  switch (key) {
  case KEY_TOP:
    pl_parse_integer(value, "--top", 0, INT32_MAX, &options->top, &options->error);
    return 0;
  case KEY_SORT:
    options->sort = value;
    return 0;
  case KEY_WHERE:
    options->where = value;
    return 0;
  case KEY_COLUMNS:
    options->columns = value;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case KEY_CSV:
    options->csv = true;
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
  show_options options;
  pl_arena arena;
  pl_results_reader *reader;
  pl_where *where;
  pl_column_list known; /* the file's */
  uint32_t columns[MOST_COLUMNS], n_columns;
  uint32_t sort;
  bool descending, all;
  pl_selection selection;
  FILE *out, *notes;
} session;

/* ---- what is asked ---- */

/* What a command was asked about as a whole is no column. */
static pl_code find_column(session *own, const char *name, const char *what, uint32_t *column, pl_error *error) {
  pl_code code = pl_where_column(name, own->known, what, column, NULL);
  const char *value = code != PL_OK ? pl_results_reader_attribute(own->reader, name, &own->arena) : NULL;
  if (value == NULL) return code == PL_OK ? PL_OK : pl_where_column(name, own->known, what, column, error);
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: %.40s is no column: it is %.80s in all rows (--json has it in \"attributes\")", what, name,
                 pl_printable_name(value, &own->arena));
}

static pl_code choose_columns(session *own, const char *list, pl_error *error) {
  char *copy = pl_arena_strdup(&own->arena, list), *rest = copy;
  if (copy == NULL) return pl_fail_memory(error, "the columns");
  for (const char *name = strsep(&rest, ","); name != NULL; name = strsep(&rest, ",")) {
    if (own->n_columns == MOST_COLUMNS) return pl_fail(error, PL_BAD_INPUT, "--columns: more than %d", MOST_COLUMNS);
    PL_TRY(find_column(own, name, "--columns", &own->columns[own->n_columns++], error));
  }
  return PL_OK;
}

static void choose_all_columns(session *own) {
  own->columns[own->n_columns++] = PL_RESULT_CANDIDATE;
  bool features = pl_results_reader_has_features(own->reader), search = pl_results_reader_has_search(own->reader);
  for (uint32_t c = 0; c < own->known.n; c++)
    if (c < PL_RESULT_CANDIDATE || c >= PL_RESULT_FIRST_PROGRAM ||
        (c >= PL_RESULT_FIRST_SEARCH ? search : features && c > PL_RESULT_CANDIDATE))
      own->columns[own->n_columns++] = c;
}

static pl_code judge(const show_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->path == NULL) return pl_fail(error, PL_BAD_INPUT, "which results file? paceline show FILE");
  if (options->json && options->csv) return pl_fail(error, PL_BAD_INPUT, "--json and --csv exclude each other");
  return PL_OK;
}

/* Whether some row has degrees: a strategy in words, if it is a program; trees have none. */
static pl_code has_degrees(session *own, bool *has, pl_error *error) {
  uint32_t tmp, n = pl_results_reader_n_rows(own->reader);
  void *values;
  *has = own->known.n <= PL_RESULT_FIRST_PROGRAM + 1;
  if (*has) return PL_OK; /* nothing was chosen of a file */
  PL_TRY(pl_where_column("tmp", own->known, "the table", &tmp, error));
  pl_arena_mark mark = pl_arena_mark_here(&own->arena);
  PL_TRY(pl_results_reader_column(own->reader, &own->known.at[tmp], &own->arena, &values, error));
  for (uint32_t i = 0; i < n; i++)
    *has = *has || ((const int32_t *)values)[i] > 0;
  pl_arena_release_to(&own->arena, mark);
  return PL_OK;
}

/* Of a table, when none are asked for. */
static pl_code choose_table_columns(session *own, pl_error *error) {
  static const char of_tuples[] =
      "candidate,iter_time_s,tokens_per_s,mfu,pp,dp,tmp,mbs,schedule,vpp,sp,recompute,zero,overlap,"
      "peak_mem_bytes,fits,assign";
  static const char of_spaces[] = "candidate,iter_time_s,samples_per_s,compute_s,bubble_s,peak_mem_bytes,fits";
  bool tuples;
  PL_TRY(has_degrees(own, &tuples, error));
  PL_TRY(choose_columns(own, tuples ? of_tuples : of_spaces, error));
  for (uint32_t c = PL_RESULT_FIRST_PROGRAM + 1; !tuples && c < own->known.n; c++)
    own->columns[own->n_columns++] = c;
  return PL_OK;
}

/* With the columns that the file has. */
static pl_code resolve(session *own, pl_error *error) {
  const show_options *options = &own->options;
  own->known = pl_results_reader_columns(own->reader);
  const char *sort = options->sort != NULL ? options->sort : "iter_time_s";
  own->descending = sort[0] == '-';
  PL_TRY(find_column(own, sort + own->descending, "--sort", &own->sort, error));
  PL_TRY(pl_where_take(options->where != NULL ? options->where : "status == 'done'", own->known, &own->arena,
                       &own->where, error));
  bool all = options->columns != NULL && strcmp(options->columns, "all") == 0;
  own->all = all || (options->columns == NULL && (options->json || options->csv));
  if (own->all) choose_all_columns(own);
  if (own->all) return PL_OK;
  return options->columns != NULL ? choose_columns(own, options->columns, error) : choose_table_columns(own, error);
}

/* ---- table ---- */

typedef struct table_column {
  const char *name;
  const char *unit;
  double scale; /* of the value as printed */
  int decimals; /* negative: significant digits */
} table_column;

/* How the table prints a column: bytes in GiB, MFU in per cent, times and rates to five digits. */
static table_column table_form(const session *own, uint32_t column) {
  if (column == PL_RESULT_CANDIDATE) return (table_column){.name = "candidate", .unit = "", .scale = 1};
  const pl_column_info *info = &own->known.at[column];
  table_column form = {.name = info->name, .unit = info->unit, .scale = 1, .decimals = -5};
  if (strcmp(info->unit, "1") == 0) form.unit = "";
  if (strcmp(info->name, "mfu") == 0) form = (table_column){"mfu", "%", 100, 1};
  if (strcmp(info->unit, "B") == 0) form = (table_column){info->name, "GiB", 0x1p-30, 2};
  if (strcmp(info->unit, "sequences") == 0 || strcmp(info->unit, "tokens/s") == 0) form.unit = "";
  return form;
}

enum { CELL_BYTES = 6 * PL_RESULT_WIDEST_BYTES + 8 }; /* an escape takes up to six bytes for one */

/* A value for people and terminals: texts in a file that is not ours may hold anything. */
static size_t printable_text(const pl_column_info *info, const void *value, char text[CELL_BYTES]) {
  char exact[PL_RESULT_WIDEST_BYTES + 8];
  pl_column_text(info, value, exact, sizeof exact);
  return strlen(pl_printable(exact, text, CELL_BYTES));
}

/* Times, rates and bytes, which are scaled and rounded; -1 bytes are not known. */
static bool is_measure(const pl_column_info *info, const void *value, double *number) {
  int64_t bytes;
  if (info->type == PL_COLUMN_f64) {
    memcpy(number, value, sizeof *number);
    return true;
  }
  if (info->type != PL_COLUMN_i64 || strcmp(info->unit, "B") != 0) return false;
  memcpy(&bytes, value, sizeof bytes);
  *number = bytes >= 0 ? (double)bytes : (double)NAN;
  return true;
}

/* Whether a row that is shown has something else than `plain` in `column`. */
static pl_code is_used(session *own, uint32_t column, const char *plain, bool *used, pl_error *error) {
  _Alignas(8) unsigned char value[PL_RESULT_WIDEST_BYTES];
  char text[CELL_BYTES];
  *used = false;
  for (uint32_t i = 0; i < own->selection.n_rows && !*used; i++) {
    PL_TRY(pl_selection_value(&own->selection, column, own->selection.rows[i], value, error));
    printable_text(&own->known.at[column], value, text);
    *used = strcmp(text, plain) != 0 && strcmp(text, "-1") != 0 && text[0] != '\0'; /* -1, nothing: not known */
  }
  return PL_OK;
}

/* What few jobs use, beside the tensor-parallel degree, and what the host holds: only where a row has it. Without it
 * the row says another. */
static pl_code choose_rare_columns(session *own, pl_error *error) {
  static const char *const rare[][2] = {{"cp", "1"}, {"ep", "1"}, {"etp", "1"}, {"ep_overlap", "0"}, {"order", "tdp"}};
  uint32_t at = 0, tmp, column;
  PL_TRY(pl_where_column("tmp", own->known, "the table", &tmp, error));
  while (at < own->n_columns && own->columns[at] != tmp)
    at++;
  if (at == own->n_columns) return PL_OK; /* not of tuples */
  for (size_t r = 0; r < sizeof rare / sizeof rare[0] && own->n_columns < MOST_COLUMNS; r++) {
    bool used;
    PL_TRY(pl_where_column(rare[r][0], own->known, "the table", &column, error));
    PL_TRY(is_used(own, column, rare[r][1], &used, error));
    if (!used) continue;
    at++;
    memmove(&own->columns[at + 1], &own->columns[at], (own->n_columns++ - at) * sizeof own->columns[0]);
    own->columns[at] = column;
  }
  for (uint32_t c = PL_RESULT_FIRST_PROGRAM + 1; c < own->known.n && own->n_columns < MOST_COLUMNS; c++) {
    bool used;
    PL_TRY(is_used(own, c, pl_offload_names[0], &used, error));
    if (used) own->columns[own->n_columns++] = c;
  }
  return PL_OK;
}

/* NULL: of another column. Files keep numbers, as --where, --csv and --json have them. */
static const char *ep_overlap_word(const pl_column_info *info, const void *value) {
  int32_t number;
  if (info->type != PL_COLUMN_i32 || strcmp(info->name, "ep_overlap") != 0) return NULL;
  memcpy(&number, value, sizeof number);
  return pl_ep_overlap_word(number);
}

static pl_code cell(session *own, uint32_t column, uint32_t row, char text[CELL_BYTES], pl_error *error) {
  _Alignas(8) unsigned char value[PL_RESULT_WIDEST_BYTES];
  if (column == PL_RESULT_CANDIDATE) {
    snprintf(text, CELL_BYTES, "%u", row);
    return PL_OK;
  }
  const pl_column_info *info = &own->known.at[column];
  double number;
  PL_TRY(pl_selection_value(&own->selection, column, row, value, error));
  if (!is_measure(info, value, &number)) {
    /* Boundaries of many chunks would push a line past any terminal; asked for by name they come whole. */
    bool cut = printable_text(info, value, text) > LONGEST_ASSIGN && own->options.columns == NULL;
    if (info->type < PL_COLUMN_f64 && strcmp(text, "-1") == 0) memcpy(text, "-", 2); /* not known */
    const char *word = ep_overlap_word(info, value);
    if (word != NULL) snprintf(text, CELL_BYTES, "%s", word);
    if (cut) memcpy(text + LONGEST_ASSIGN - 3, "...", 4);
    return PL_OK;
  }
  table_column form = table_form(own, column);
  if (isnan(number)) {
    snprintf(text, CELL_BYTES, "-");
  } else if (form.decimals >= 0) {
    snprintf(text, CELL_BYTES, "%.*f", form.decimals, number * form.scale);
  } else {
    snprintf(text, CELL_BYTES, "%.*g", number >= 1e5 && number < 1e9 ? 9 : -form.decimals,
             number >= 1e5 && number < 1e9 ? round(number) : number);
  }
  return PL_OK;
}

static bool is_text_column(const session *own, uint32_t column) {
  return own->known.at[column].type >= PL_COLUMN_u64;
}

static void print_cell(const session *own, uint32_t k, const char *text, int width) {
  bool last = k + 1 == own->n_columns;
  if (is_text_column(own, own->columns[k])) {
    fprintf(own->out, "%s%-*s", k ? "  " : "", last ? 0 : width, text);
  } else {
    fprintf(own->out, "%s%*s", k ? "  " : "", width, text);
  }
}

static void header(const session *own, uint32_t column, char text[CELL_BYTES]) {
  table_column form = table_form(own, column);
  snprintf(text, CELL_BYTES, form.unit[0] ? "%s[%s]" : "%s", form.name, form.unit);
  char *tail = strstr(text, "_bytes[");
  if (tail == NULL) tail = strstr(text, "_per_s[");
  if (tail == NULL) tail = strstr(text, "_s[s]");
  char *bracket = tail != NULL ? strchr(tail, '[') : NULL;
  if (bracket != NULL) memmove(tail, bracket, strlen(bracket) + 1); /* the unit stands in the brackets already */
}

static pl_code print_table(session *own, pl_error *error) {
  char *cells = PL_TAKE(&own->arena, char, (size_t)CELL_BYTES);
  int widths[MOST_COLUMNS] = {0};
  if (cells == NULL) return pl_fail_memory(error, "the table");
  for (uint32_t k = 0; k < own->n_columns; k++) {
    header(own, own->columns[k], cells);
    widths[k] = (int)strlen(cells);
    for (uint32_t i = 0; i < own->selection.n_rows; i++) {
      PL_TRY(cell(own, own->columns[k], own->selection.rows[i], cells, error));
      if ((int)strlen(cells) > widths[k]) widths[k] = (int)strlen(cells);
    }
  }
  for (uint32_t k = 0; k < own->n_columns; k++) {
    header(own, own->columns[k], cells);
    print_cell(own, k, cells, widths[k]);
  }
  fputc('\n', own->out);
  for (uint32_t i = 0; i < own->selection.n_rows; i++) {
    for (uint32_t k = 0; k < own->n_columns; k++) {
      PL_TRY(cell(own, own->columns[k], own->selection.rows[i], cells, error));
      print_cell(own, k, cells, widths[k]);
    }
    fputc('\n', own->out);
  }
  return PL_OK;
}

/* ---- CSV and JSON ---- */

static const char *column_name(const session *own, uint32_t column) {
  return own->known.at[column].name;
}

/* Strategies hold commas; a text of a damaged file may hold quotes. */
static void put_csv(FILE *out, const char *text) {
  if (strpbrk(text, ",\"\r\n") == NULL) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

static pl_code print_csv(session *own, pl_error *error) {
  _Alignas(8) unsigned char value[PL_RESULT_WIDEST_BYTES];
  char text[CELL_BYTES];
  for (uint32_t k = 0; k < own->n_columns; k++)
    fprintf(own->out, "%s%s", k ? "," : "", column_name(own, own->columns[k]));
  fputc('\n', own->out);
  for (uint32_t i = 0; i < own->selection.n_rows; i++) {
    uint32_t row = own->selection.rows[i];
    for (uint32_t k = 0; k < own->n_columns; k++) {
      snprintf(text, sizeof text, "%u", row);
      if (own->columns[k] != PL_RESULT_CANDIDATE) {
        PL_TRY(pl_selection_value(&own->selection, own->columns[k], row, value, error));
        printable_text(&own->known.at[own->columns[k]], value, text);
      }
      if (k) fputc(',', own->out);
      put_csv(own->out, text);
    }
    fputc('\n', own->out);
  }
  return PL_OK;
}

static pl_code json_row(session *own, pl_json *json, uint32_t row, pl_error *error) {
  _Alignas(8) unsigned char value[PL_RESULT_WIDEST_BYTES];
  pl_json_open_object(json);
  for (uint32_t k = 0; k < own->n_columns; k++) {
    uint32_t column = own->columns[k];
    if (column == PL_RESULT_CANDIDATE) {
      pl_json_put_integer(json, "candidate", row);
      continue;
    }
    PL_TRY(pl_selection_value(&own->selection, column, row, value, error));
    pl_json_key(json, column_name(own, column));
    pl_column_json(json, &own->known.at[column], value);
  }
  pl_json_close_object(json);
  return PL_OK;
}

static pl_code print_json(session *own, pl_error *error) {
  pl_json json;
  pl_json_init(&json, own->out, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "file", own->options.path);
  pl_json_put_integer(&json, "candidates", pl_results_reader_n_rows(own->reader));
  pl_json_put_integer(&json, "pending", own->selection.n_pending);
  pl_json_put_integer(&json, "matching", own->selection.n_matching);
  pl_json_key(&json, "attributes");
  pl_json_open_object(&json);
  PL_TRY(pl_results_reader_attributes_json(own->reader, &json, error));
  pl_json_close_object(&json);
  pl_json_key(&json, "rows");
  pl_json_open_array(&json);
  for (uint32_t i = 0; i < own->selection.n_rows; i++)
    PL_TRY(json_row(own, &json, own->selection.rows[i], error));
  pl_json_close_array(&json);
  pl_json_close_object(&json);
  return PL_OK;
}

/* ---- the command ---- */

/* What the table leaves out is said; on stderr, beside formats that programs read. */
static void print_notes(session *own) {
  const pl_selection *s = &own->selection;
  uint32_t n = pl_results_reader_n_rows(own->reader);
  bool table = !own->options.json && !own->options.csv;
  FILE *stream = table ? own->out : own->notes;
  const char *types = table ? pl_results_reader_types(own->reader, &own->arena) : NULL;
  if (table) fprintf(stream, "\n%u of %u matching rows; %u candidates in the file", s->n_rows, s->n_matching, n);
  if (types != NULL) fprintf(stream, ", all in %s", pl_printable_name(types, &own->arena));
  if (table) fputc('\n', stream);
  if (table && own->options.where == NULL)
    fputs("(only those that were simulated and fit in memory; --where true shows all)\n", stream);
  if (s->n_pending == 0) return;
  fprintf(stream, "%s%u candidates are not computed yet; ", table ? "" : "paceline show: ", s->n_pending);
  const char *command = pl_results_reader_command(own->reader, &own->arena);
  if (command != NULL) command = pl_run_options_again(command, own->options.path, &own->arena);
  fputs("this goes on: ", stream);
  pl_printable_put(stream, command != NULL ? command : "the command that made the file, with --resume");
  fputc('\n', stream);
}

/* In a process of its own: the file is anybody's, and nothing is printed of one that cannot be read to its end. */
static pl_code show(void *session_, FILE *out, FILE *notes, pl_error *error) {
  session *own = session_;
  own->out = out;
  own->notes = notes;
  PL_TRY(pl_results_reader_create(own->options.path, &own->reader, error));
  PL_TRY(resolve(own, error));
  PL_TRY(pl_selection_take(own->reader, own->where, own->sort, own->descending, (uint32_t)own->options.top, &own->arena,
                           &own->selection, error));
  if (own->options.json) {
    PL_TRY(print_json(own, error));
  } else if (own->options.csv) {
    PL_TRY(print_csv(own, error));
  } else {
    if (own->options.columns == NULL) PL_TRY(choose_rare_columns(own, error));
    PL_TRY(print_table(own, error));
  }
  print_notes(own);
  pl_results_reader_destroy(own->reader);
  return PL_OK;
}

int pl_cmd_show(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .args_doc = "FILE",
      .doc = "Shows rows of a sweep's results.\v"
             "Example:\n  paceline show sweep.h5 --top 10 --sort iter_time_s --where 'fits and tmp<=8'"};
  session own = {0};
  char name[] = "paceline show";
  if (argc > 0) argv[0] = name; /* what argp calls the program */
  pl_arena_init(&own.arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("show", &argp, argc, argv, false, &own.options, &error);
  if (code == PL_OK) code = judge(&own.options, &error);
  const pl_child child = {.path = own.options.path, .kind = "HDF5", .work = show, .context = &own};
  if (code == PL_OK) code = pl_child_run(&child, stdout, stderr, &error);
  int status = code == PL_OK ? 0 : pl_command_report("show", &error);
  pl_arena_release(&own.arena);
  return pl_command_finish("show", status);
}
