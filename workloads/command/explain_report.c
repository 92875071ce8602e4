/* See workloads/command/explain_report.h. Times are counts of ticks of 2^-40 s, which doubles hold exactly up to two
 * hours, and their sums too: in the JSON the parts of an iteration add up to it to the last bit. */
#include "workloads/command/explain_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "workloads/command/explain_shape.h"
#include "workloads/run/explain_rows.h"

typedef struct explain_output {
  FILE *stream;
  pl_json *json;
  const pl_explanation *explanation;
  const pl_explain_rows *rows;
  uint32_t top;
} explain_output;

static double share_of(const explain_output *output, pl_ticks time) {
  return (double)time / (double)output->explanation->makespan;
}

static const pl_device_class *class_of(const explain_output *output) {
  return &output->explanation->plan->device_classes[output->rows->device_class];
}

static uint32_t shown(const explain_output *output, uint32_t n) {
  return output->top > 0 && output->top < n ? output->top : n;
}

static pl_ticks sum_exposed(const pl_explain_row *rows, uint32_t first, uint32_t end) {
  pl_ticks sum = 0;
  for (uint32_t at = first; at < end; at++)
    sum += rows[at].time->exposed;
  return sum;
}

static double per_call(const pl_explained_time *time, double sum) {
  return sum / (double)time->calls;
}

static const char *name_of(const pl_explained_op *op) {
  return op->name != NULL ? op->name : "?";
}

static const char *bound_of(const pl_explain_row *row) {
  return pl_explained_group_bound(&row->group, row->time->alone, row->time->calls);
}

static const char *slowed_by(const pl_explain_row *row) {
  return pl_explained_group_slowed_by(&row->group, row->time->alone, row->time->run, row->time->calls);
}

/* ---- text ---- */

static const char *format_ticks(pl_ticks ticks, char text[PL_UNIT_TEXT_BYTES]) {
  return pl_format_time(pl_ticks_to_s(ticks), text);
}

static void print_device(const explain_output *output) {
  const pl_device_class *class = class_of(output);
  const pl_cluster *cluster = output->explanation->cluster;
  int32_t pp = output->explanation->program->strategy->pp;
  fprintf(output->stream, "\nstage %d of %d%s, device %s (%s)", output->rows->stage, pp,
          pp > 1 && output->rows->stage == pl_explanation_worst_stage(output->explanation) ? " (the busiest)" : "",
          cluster->devices[class->device].name, pl_cluster_profile(cluster, class->device)->name);
  if (class->multiplicity > 1) fprintf(output->stream, ", one of %" PRIu32 " alike", class->multiplicity);
  fputc('\n', output->stream);
}

static void print_kinds(const explain_output *output) {
  char text[4][PL_UNIT_TEXT_BYTES];
  fprintf(output->stream,
          "\n  where the time goes          calls       FLOP      bytes       time    share     hidden\n");
  for (uint32_t at = 0; at < output->rows->n_kinds; at++) {
    const pl_explain_kind *kind = &output->rows->kinds[at];
    fprintf(output->stream, "  %-24s", kind->name);
    if (kind->computes) {
      fprintf(output->stream, " %9" PRIu64 " %10s %10s", kind->calls, pl_format_flops(kind->flops, text[0]),
              pl_format_bytes(kind->bytes, text[1]));
    } else if (kind->calls > 0) {
      fprintf(output->stream, " %9" PRIu64 " %21s", kind->calls, "");
    } else {
      fprintf(output->stream, " %31s", "");
    }
    fprintf(output->stream, " %10s  %5.1f %%", format_ticks(kind->time, text[2]), 100 * share_of(output, kind->time));
    if (!kind->computes && kind->calls > 0) fprintf(output->stream, " %10s", format_ticks(kind->hidden, text[3]));
    fputc('\n', output->stream);
  }
  fprintf(output->stream, "  %-24s %31s %10s  %5.1f %%\n", "iteration", "",
          format_ticks(output->explanation->makespan, text[0]), 100.0);
}

static void print_more(const explain_output *output, const pl_explain_row *rows, uint32_t n) {
  char text[PL_UNIT_TEXT_BYTES], label[64];
  uint32_t first = shown(output, n);
  if (first == n) return;
  pl_ticks rest = sum_exposed(rows, first, n);
  snprintf(label, sizeof label, "%" PRIu32 " more (--top 0 shows all)", n - first);
  fprintf(output->stream, "  %-36s %s, %.1f %%\n", label, format_ticks(rest, text), 100 * share_of(output, rest));
}

/* Lines are at most this long; a name that leaves no room for its row stands on a line of its own. */
enum { LINE_COLUMNS = 120, COMMUNICATION_NAME = 29 };

static void put_named(FILE *stream, const char *role, const char *name, int width) {
  fprintf(stream, "  %-9s %-*s", role, width, name);
  if ((int)strlen(name) > width) fprintf(stream, "\n  %-9s %-*s", "", width, "");
}

/* Columns of names and shapes as wide as they must be, and names no wider than what the others leave. */
static void measure_compute(const explain_output *output, int *name_width, int *shape_width) {
  enum { OTHER_COLUMNS = 78 };
  const pl_explain_rows *rows = output->rows;
  char shape[PL_EXPLAIN_SHAPE_BYTES];
  *name_width = 16;
  *shape_width = 12;
  for (uint32_t at = 0; at < shown(output, rows->n_compute); at++) {
    const pl_explained_op *op = rows->compute[at].op;
    int name_length = (int)strlen(name_of(op)), shape_length = (int)strlen(pl_explain_format_shape(op->op, shape));
    if (name_length > *name_width) *name_width = name_length;
    if (shape_length > *shape_width) *shape_width = shape_length;
  }
  if (*name_width > LINE_COLUMNS - OTHER_COLUMNS - *shape_width)
    *name_width = LINE_COLUMNS - OTHER_COLUMNS - *shape_width;
  if (*name_width < 16) *name_width = 16;
}

static void print_compute(const explain_output *output) {
  const pl_explain_rows *rows = output->rows;
  int name_width, shape_width;
  if (rows->n_compute == 0) return;
  measure_compute(output, &name_width, &shape_width);
  fprintf(output->stream, "\n  %-9s %-*s %6s %-*s %6s %8s %7s %7s %8s %-7s %s\n", "computing", name_width, "op",
          "calls", shape_width, "shape", "FLOP", "bytes", "each", "all", "share", "bound", "source");
  for (uint32_t at = 0; at < shown(output, rows->n_compute); at++) {
    const pl_explained_op *op = rows->compute[at].op;
    const pl_explained_time *time = rows->compute[at].time;
    char shape[PL_EXPLAIN_SHAPE_BYTES], text[4][PL_UNIT_TEXT_BYTES];
    put_named(output->stream, pl_category_name((pl_category)op->category), name_of(op), name_width);
    fprintf(output->stream, " %6" PRIu64 " %-*s %6s %8s %7s %7s  %5.1f %% %-7s %s\n", time->calls, shape_width,
            pl_explain_format_shape(op->op, shape), pl_format_flops(per_call(time, time->flops), text[0]),
            pl_format_bytes(per_call(time, time->bytes), text[1]),
            pl_format_time(per_call(time, pl_ticks_to_s(time->alone)), text[2]), format_ticks(time->run, text[3]),
            100 * share_of(output, time->run), pl_cost_bound_name(time->cost.bound),
            pl_cost_source_name(time->cost.source));
  }
  print_more(output, rows->compute, rows->n_compute);
}

static const char *format_link(const pl_explain_row *row, char text[128]) {
  char rate[PL_UNIT_TEXT_BYTES];
  if (row->group.link == NULL) return "-";
  snprintf(text, 128, "%s, %s", row->group.link, pl_format_rate(row->group.link_capacity_Bps, rate));
  return text;
}

enum { COMMUNICATION_BYTES = 96 };

/* What it is called, a send with the stages that it is between. */
static const char *format_communication(const explain_output *output, const pl_explain_row *row,
                                        char text[COMMUNICATION_BYTES]) {
  const pl_program *program = output->explanation->program;
  const pl_family *family = &program->families[row->op->family];
  if (family->kind == PL_FAMILY_DOWN || family->kind == PL_FAMILY_UP) {
    snprintf(text, COMMUNICATION_BYTES, "%s %d > %d", name_of(row->op), family->stage,
             pl_program_receiver(program, family->kind, family->stage));
  } else if (row->time->group_class == PL_NONE) {
    snprintf(text, COMMUNICATION_BYTES, "%s, stage %d", name_of(row->op), family->stage);
  } else {
    snprintf(text, COMMUNICATION_BYTES, "%s", name_of(row->op));
  }
  return text;
}

static const char *role_of(const explain_output *output, const pl_explain_row *row) {
  return pl_family_role_name(output->explanation->program->families[row->op->family].kind);
}

static void print_times(const explain_output *output, const pl_explain_row *row) {
  const pl_explained_time *time = row->time;
  double calls = (double)time->calls;
  char text[5][PL_UNIT_TEXT_BYTES], name[COMMUNICATION_BYTES];
  put_named(output->stream, role_of(output, row), format_communication(output, row, name), COMMUNICATION_NAME);
  fputc(' ', output->stream);
  if (time->group_class == PL_NONE) {
    fprintf(output->stream, "%-33s %8s  %5.1f %%\n", "waited for, without a part in it",
            format_ticks(time->exposed, text[0]), 100 * share_of(output, time->exposed));
    return;
  }
  fprintf(output->stream, "%6" PRIu64 " %8s %8s %8s %8s  %5.1f %% %8s  %s\n", time->calls,
          pl_format_bytes(row->group.size_bytes, text[0]),
          time->alone < 0 ? "-" : pl_format_time(pl_ticks_to_s(time->alone) / calls, text[1]),
          pl_format_time(pl_ticks_to_s(time->run) / calls, text[2]), format_ticks(time->exposed, text[3]),
          100 * share_of(output, time->exposed), format_ticks(pl_explained_hidden(time), text[4]), bound_of(row));
}

static void print_way(const explain_output *output, const pl_explain_row *row) {
  char group[32], link[128], name[COMMUNICATION_BYTES];
  if (row->time->group_class == PL_NONE) return;
  snprintf(group, sizeof group, "%" PRIu32 " on %" PRIu32, row->group.size, row->group.n_nodes);
  put_named(output->stream, role_of(output, row), format_communication(output, row, name), COMMUNICATION_NAME);
  enum { BEFORE = 91, INDENT = 4 };
  const char *slowest = format_link(row, link);
  fprintf(output->stream, " %-14s %-12s %-9s %-10s ", pl_collective_name(row->group.kind),
          pl_algorithm_names[row->group.algorithm], group, slowed_by(row) != NULL ? slowed_by(row) : "-");
  if (BEFORE + strlen(slowest) > LINE_COLUMNS) fprintf(output->stream, "\n%*s", INDENT, "");
  fprintf(output->stream, "%s\n", slowest);
}

/* Times first, then which way each of them takes: in one table lines would be too long for a terminal. */
static void print_communication(const explain_output *output) {
  const pl_explain_rows *rows = output->rows;
  if (rows->n_communication == 0) return;
  fprintf(output->stream, "\n  %-9s %-29s %6s %8s %8s %8s %8s %8s %8s  %s\n", "role", "communication", "calls", "size",
          "alone", "in run", "exposed", "share", "hidden", "bound");
  for (uint32_t at = 0; at < shown(output, rows->n_communication); at++)
    print_times(output, &rows->communication[at]);
  print_more(output, rows->communication, rows->n_communication);
  fprintf(output->stream, "\n  %-9s %-29s %-14s %-12s %-9s %-10s %s\n", "role", "its way", "kind", "algorithm", "group",
          "slowed by", "slowest link");
  for (uint32_t at = 0; at < shown(output, rows->n_communication); at++)
    print_way(output, &rows->communication[at]);
}

/* Words that follow each other in lines of at most LINE columns, the later ones set in. */
typedef struct wrapped {
  FILE *stream;
  int column;
} wrapped;

static void put_word(wrapped *text, const char *word) {
  enum { LINE = LINE_COLUMNS - 4, INDENT = 17 };
  int length = (int)strlen(word);
  if (text->column > INDENT && text->column + 1 + length > LINE) {
    fprintf(text->stream, "\n%*s", INDENT, "");
    text->column = INDENT;
  }
  text->column += fprintf(text->stream, text->column > INDENT ? " %s" : "%s", word);
}

static void print_interval(FILE *stream, const pl_interval *interval) {
  if (isnan(interval->low_s)) return;
  wrapped text = {.stream = stream, .column = fprintf(stream, "interval         half-widths of ln(time):")};
  int last = -1;
  char word[160];
  for (int kind = 0; kind < PL_DOUBT_COUNT; kind++)
    if (interval->half[kind] >= 5e-4) last = kind;
  for (int kind = 0; kind <= last; kind++) {
    if (interval->half[kind] < 5e-4) continue;
    snprintf(word, sizeof word, "%s %.3f%s", pl_doubt_names[kind], interval->half[kind],
             kind < last              ? ","
             : interval->unseen.n > 0 ? ";"
                                      : "");
    put_word(&text, word);
  }
  for (uint32_t i = 0; i < interval->unseen.n; i++) {
    snprintf(word, sizeof word, "%s%s%s", i == 0 ? "calibration saw no " : "", interval->unseen.text[i],
             i + 1 < interval->unseen.n ? "," : "");
    put_word(&text, word);
  }
  fputc('\n', stream);
}

pl_code pl_explain_report_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report,
                                const pl_explanation *explanation, const pl_explain_view *view, pl_arena *arena,
                                pl_error *error) {
  pl_simulate_subject_print(stream, subject);
  pl_simulate_verdict_print(stream, subject, report);
  pl_simulate_speed_print(stream, &report->row, &report->interval);
  pl_simulate_remains_print(stream, subject);
  if (pl_strategy_hides_tokens(subject->strategy))
    pl_simulate_exchange_print(stream, subject->cluster, subject->job->framework);
  pl_simulate_products_print(stream, subject);
  print_interval(stream, &report->interval);
  for (int32_t stage = view->first_stage; stage < view->first_stage + view->n_stages; stage++) {
    pl_explain_rows rows;
    PL_TRY(pl_explain_rows_take(explanation, pl_explanation_busiest(explanation, stage), arena, &rows, error));
    const explain_output output = {.stream = stream, .explanation = explanation, .rows = &rows, .top = view->top};
    print_device(&output);
    print_kinds(&output);
    print_compute(&output);
    print_communication(&output);
  }
  if (subject->stragglers != NULL) pl_stragglers_print(stream, subject->stragglers, subject->cluster);
  return PL_OK;
}

/* ---- JSON ---- */

static void put_time(pl_json *json, const char *key, pl_ticks time) {
  pl_json_put_number(json, key, pl_ticks_to_s(time));
}

static void put_count(pl_json *json, const char *key, uint64_t n) {
  pl_json_put_integer(json, key, (int64_t)n);
}

static void put_kind(const explain_output *output, const pl_explain_kind *kind) {
  pl_json *json = output->json;
  pl_json_open_object(json);
  pl_json_put_string(json, "kind", kind->name);
  if (kind->column == NULL || strcmp(kind->column, "bubble_s") != 0) put_count(json, "calls", kind->calls);
  if (kind->computes) {
    pl_json_put_number(json, "flops", kind->flops);
    pl_json_put_number(json, "bytes", kind->bytes);
    put_time(json, "alone_s", kind->alone);
  }
  put_time(json, "time_s", kind->time);
  if (!kind->computes && kind->calls > 0) put_time(json, "hidden_s", kind->hidden);
  pl_json_put_number(json, "share", share_of(output, kind->time));
  pl_json_close_object(json);
}

static void put_compute(const explain_output *output, const pl_explain_row *row) {
  pl_json *json = output->json;
  const pl_explained_time *time = row->time;
  pl_json_open_object(json);
  pl_json_put_string(json, "op", row->op->name);
  pl_json_put_string(json, "block", row->op->block < 0 ? NULL : pl_block_kind_name((pl_block_kind)row->op->block));
  pl_json_put_string(json, "pass", pl_category_name((pl_category)row->op->category));
  pl_json_put_string(json, "kind", pl_explained_kind_name(row->op));
  put_count(json, "calls", time->calls);
  if (row->op->op != NULL) pl_explain_put_shape(json, row->op->op);
  pl_json_put_number(json, "flops", per_call(time, time->flops));
  pl_json_put_number(json, "bytes", per_call(time, time->bytes));
  pl_json_put_number(json, "each_s", per_call(time, pl_ticks_to_s(time->alone)));
  put_time(json, "alone_s", time->alone);
  put_time(json, "time_s", time->run);
  pl_json_put_number(json, "share", share_of(output, time->run));
  pl_json_put_string(json, "bound", pl_cost_bound_name(time->cost.bound));
  pl_json_put_string(json, "source", pl_cost_source_name(time->cost.source));
  pl_json_close_object(json);
}

static void put_group(pl_json *json, const pl_explain_row *row) {
  pl_json_put_string(json, "kind", pl_collective_name(row->group.kind));
  pl_json_put_string(json, "algorithm", pl_algorithm_names[row->group.algorithm]);
  pl_json_put_integer(json, "group_size", row->group.size);
  pl_json_put_integer(json, "group_nodes", row->group.n_nodes);
  pl_json_put_number(json, "size_bytes", row->group.size_bytes);
  pl_json_put_number(json, "each_s",
                     row->time->alone < 0 ? (double)NAN : pl_ticks_to_s(row->time->alone) / (double)row->time->calls);
  pl_json_put_number(json, "latency_s", row->group.latency_s);
  pl_json_put_number(json, "alone_s", row->time->alone < 0 ? (double)NAN : pl_ticks_to_s(row->time->alone));
  put_time(json, "run_s", row->time->run);
  put_time(json, "hidden_s", pl_explained_hidden(row->time));
  pl_json_put_string(json, "bound", bound_of(row));
  pl_json_put_string(json, "slowed_by", slowed_by(row));
  pl_json_put_string(json, "link", row->group.link);
  pl_json_put_number(json, "link_capacity_Bps", row->group.link == NULL ? (double)NAN : row->group.link_capacity_Bps);
}

static void put_communication(const explain_output *output, const pl_explain_row *row) {
  pl_json *json = output->json;
  const pl_program *program = output->explanation->program;
  const pl_family *family = &program->families[row->op->family];
  pl_json_open_object(json);
  pl_json_put_string(json, "op", row->op->name);
  pl_json_put_string(json, "role", pl_family_role_name(family->kind));
  pl_json_put_integer(json, "stage", family->stage);
  if (pl_family_is_wire(family->kind))
    pl_json_put_integer(json, "to_stage", pl_program_receiver(program, family->kind, family->stage));
  put_count(json, "calls", row->time->calls);
  if (row->time->group_class != PL_NONE) put_group(json, row);
  put_time(json, "exposed_s", row->time->exposed);
  pl_json_put_number(json, "share", share_of(output, row->time->exposed));
  pl_json_close_object(json);
}

typedef void (*put_row)(const explain_output *output, const pl_explain_row *row);

static void put_rows(const explain_output *output, const char *key, const pl_explain_row *rows, uint32_t n,
                     put_row put) {
  pl_json_key(output->json, key);
  pl_json_open_array(output->json);
  for (uint32_t at = 0; at < shown(output, n); at++)
    put(output, &rows[at]);
  pl_json_close_array(output->json);
}

static void put_stage(const explain_output *output) {
  pl_json *json = output->json;
  const pl_explain_rows *rows = output->rows;
  const pl_device_class *class = class_of(output);
  const pl_cluster *cluster = output->explanation->cluster;
  pl_json_open_object(json);
  pl_json_put_integer(json, "stage", rows->stage);
  pl_json_put_string(json, "device", cluster->devices[class->device].name);
  pl_json_put_string(json, "device_type", pl_cluster_profile(cluster, class->device)->name);
  pl_json_put_integer(json, "n_alike", class->multiplicity);
  put_time(json, "iter_time_s", output->explanation->makespan);
  pl_ticks computing = 0;
  for (uint32_t at = 0; at < rows->n_kinds; at++)
    if (rows->kinds[at].computes) computing += rows->kinds[at].time;
  put_time(json, "compute_s", computing);
  for (uint32_t at = 0; at < rows->n_kinds; at++)
    if (rows->kinds[at].column != NULL) put_time(json, rows->kinds[at].column, rows->kinds[at].time);
  pl_json_key(json, "kinds");
  pl_json_open_array(json);
  for (uint32_t at = 0; at < rows->n_kinds; at++)
    put_kind(output, &rows->kinds[at]);
  pl_json_close_array(json);
  put_rows(output, "computing", rows->compute, rows->n_compute, put_compute);
  put_rows(output, "communication", rows->communication, rows->n_communication, put_communication);
  pl_json_close_object(json);
}

pl_code pl_explain_report_json(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report,
                               const pl_explanation *explanation, const pl_explain_view *view, pl_arena *arena,
                               pl_error *error) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_simulate_subject_json(&json, subject, report);
  pl_json_put_integer(&json, "worst_stage", pl_explanation_worst_stage(explanation));
  pl_json_key(&json, "stages");
  pl_json_open_array(&json);
  for (int32_t stage = view->first_stage; stage < view->first_stage + view->n_stages; stage++) {
    pl_explain_rows rows;
    PL_TRY(pl_explain_rows_take(explanation, pl_explanation_busiest(explanation, stage), arena, &rows, error));
    const explain_output output = {.json = &json, .explanation = explanation, .rows = &rows, .top = view->top};
    put_stage(&output);
  }
  pl_json_close_array(&json);
  pl_json_close_object(&json);
  return PL_OK;
}
