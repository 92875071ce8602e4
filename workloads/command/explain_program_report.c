/* See workloads/command/explain_program_report.h. */
#include "workloads/command/explain_program_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/text/json_writer.h"
#include "netmodel/collective/collective.h"
#include "workloads/command/explain_shape.h"
#include "workloads/cost/op_cost.h"

pl_code pl_explain_program_choose(const pl_explain_program_view *view, const pl_program_explanation *explanation,
                                  uint32_t *first, uint32_t *end, pl_error *error) {
  int64_t stage = explanation->busiest;
  bool all = view->stage != NULL && strcmp(view->stage, "all") == 0;
  if (all) stage = 0;
  if (view->stage != NULL && !all) PL_TRY(pl_parse_integer(view->stage, "--stage", 0, INT32_MAX, &stage, error));
  if (stage >= explanation->n_lists)
    return pl_fail(error, PL_BAD_INPUT, "--stage: %lld is out of range: the program has lists 0 to %u",
                   (long long)stage, explanation->n_lists - 1);
  *first = (uint32_t)stage;
  *end = all ? explanation->n_lists : *first + 1;
  return PL_OK;
}

static double share_of(const pl_program_explanation *explanation, pl_ticks time) {
  return 100 * (double)time / (double)explanation->makespan;
}

static uint32_t n_computing(const pl_program_list *list) {
  uint32_t n = 0;
  while (n < list->n_parts && list->parts[n].computes)
    n++;
  return n;
}

/* ---- text ---- */

static void print_more(FILE *stream, const pl_program_explanation *explanation, const pl_program_part *parts,
                       uint32_t from, uint32_t n) {
  char text[PL_UNIT_TEXT_BYTES];
  pl_ticks rest = 0;
  if (from == n) return;
  for (uint32_t i = from; i < n; i++)
    rest += parts[i].time;
  fprintf(stream, "  %u more (--top 0 shows all)  %s, %.1f %%\n", n - from, pl_format_time(pl_ticks_to_s(rest), text),
          share_of(explanation, rest));
}

static uint32_t shown(uint32_t n, uint32_t top) {
  return top > 0 && top < n ? top : n;
}

/* Lines are at most this long; a name that leaves no room for its row stands on a line of its own. */
enum { LINE_COLUMNS = 120, COMPUTING_COLUMNS = 80, COMMUNICATION_NAME = 29, NAME_LEAST = 16, SHAPE_LEAST = 5 };

static int name_width(const pl_program_part *parts, uint32_t n, int others) {
  size_t width = NAME_LEAST, most = (size_t)(LINE_COLUMNS - others);
  for (uint32_t i = 0; i < n; i++)
    if (strlen(parts[i].name) > width) width = strlen(parts[i].name);
  return (int)(width < most ? width : most);
}

static void put_named(FILE *stream, const pl_program_part *part, int width) {
  fprintf(stream, "  %-9s %-*s", pl_category_name((pl_category)part->category), width, part->name);
  if ((int)strlen(part->name) > width) fprintf(stream, "\n  %-9s %-*s", "", width, "");
}

/* What calls have in common. */
static const char *common(int32_t value, const char *name) {
  return value == PL_PROGRAM_PART_NONE ? "-" : value == PL_PROGRAM_PART_MIXED ? "mixed" : name;
}

static const char *bound_of(const pl_program_part *part) {
  return common(part->bound, part->bound >= 0 ? pl_cost_bound_name((pl_cost_bound)part->bound) : NULL);
}

static const char *source_of(const pl_program_part *part) {
  return common(part->source, part->source >= 0 ? pl_cost_source_name((pl_cost_source)part->source) : NULL);
}

static const char *shape_of(const pl_program_part *part, char text[PL_EXPLAIN_SHAPE_BYTES]) {
  return part->unlike ? "mixed" : pl_explain_format_shape(part->kernel, text);
}

static int shape_width(const pl_program_part *parts, uint32_t n) {
  char text[PL_EXPLAIN_SHAPE_BYTES];
  size_t width = SHAPE_LEAST;
  for (uint32_t i = 0; i < n; i++)
    if (strlen(shape_of(&parts[i], text)) > width) width = strlen(text);
  return (int)width;
}

/* "gemm" ... of kernels; of all else what it is for. */
static const char *kind_name_of(const pl_program_part *part) {
  if (part->kernel != NULL && part->category != PL_CATEGORY_OPTIMIZER)
    return pl_op_kind_name((pl_op_kind)part->kernel->kind);
  if (pl_category_is_communication((pl_category)part->category)) return "copy";
  return pl_category_name((pl_category)part->category);
}

/* Kinds of kernels by their enumerator, then optimizer, host and other, then the categories of communication, as of a
 * tuple's stage (workloads/run/explain_rows.c); kernels that only copy what was communicated are filed with it. */
enum {
  KIND_FIRST_CATEGORY = PL_OP_KIND_COUNT,
  KIND_FIRST_COMMUNICATION = KIND_FIRST_CATEGORY + PL_CATEGORY_COUNT,
  KIND_COUNT = KIND_FIRST_COMMUNICATION + PL_CATEGORY_COUNT
};
typedef struct kind_sum {
  uint64_t calls;
  double flops, bytes;
  pl_ticks time, hidden;
} kind_sum;

static int kind_at(const pl_program_part *part) {
  if (pl_category_is_communication((pl_category)part->category)) return KIND_FIRST_COMMUNICATION + part->category;
  if (part->kernel != NULL && part->category != PL_CATEGORY_OPTIMIZER) return part->kernel->kind;
  return KIND_FIRST_CATEGORY + part->category;
}

static void sum_kinds(const pl_program_list *list, kind_sum sums[KIND_COUNT]) {
  for (uint32_t i = 0; i < list->n_parts; i++) {
    const pl_program_part *part = &list->parts[i];
    kind_sum *sum = &sums[kind_at(part)];
    sum->calls += part->calls;
    sum->flops += part->flops;
    sum->bytes += part->bytes;
    sum->time += part->time;
    if (!part->computes && part->calls > 0) sum->hidden += pl_program_part_hidden(part);
  }
}

/* The columns of the breakdown, but for those that only some strategies have. */
static bool is_always_shown(int kind) {
  int category = kind - KIND_FIRST_COMMUNICATION;
  return category == PL_CATEGORY_TENSOR || category == PL_CATEGORY_PIPELINE || category == PL_CATEGORY_DATA;
}

static void print_kind(FILE *stream, const pl_program_explanation *explanation, int kind, const kind_sum *sum) {
  char text[4][PL_UNIT_TEXT_BYTES], name[PL_UNIT_TEXT_BYTES];
  bool computes = kind < KIND_FIRST_COMMUNICATION;
  if (sum->calls == 0 && sum->time == 0 && !is_always_shown(kind)) return;
  snprintf(name, sizeof name, "%s%s",
           kind < KIND_FIRST_CATEGORY ? pl_op_kind_name((pl_op_kind)kind)
           : computes                 ? pl_category_name((pl_category)(kind - KIND_FIRST_CATEGORY))
                                      : pl_category_name((pl_category)(kind - KIND_FIRST_COMMUNICATION)),
           computes ? "" : " communication");
  fprintf(stream, "  %-24s", name);
  if (computes)
    fprintf(stream, " %9" PRIu64 " %10s %10s", sum->calls, pl_format_flops(sum->flops, text[0]),
            pl_format_bytes(sum->bytes, text[1]));
  else if (sum->calls > 0)
    fprintf(stream, " %9" PRIu64 " %21s", sum->calls, "");
  else
    fprintf(stream, " %31s", "");
  fprintf(stream, " %10s  %5.1f %%", pl_format_time(pl_ticks_to_s(sum->time), text[2]),
          share_of(explanation, sum->time));
  if (!computes && sum->calls > 0) fprintf(stream, " %10s", pl_format_time(pl_ticks_to_s(sum->hidden), text[3]));
  fputc('\n', stream);
}

static void print_kinds(FILE *stream, const pl_program_explanation *explanation, const pl_program_list *list) {
  kind_sum sums[KIND_COUNT] = {{0}};
  char text[PL_UNIT_TEXT_BYTES];
  sum_kinds(list, sums);
  fprintf(stream, "\n  where the time goes          calls       FLOP      bytes       time    share     hidden\n");
  for (int kind = 0; kind < KIND_COUNT; kind++)
    print_kind(stream, explanation, kind, &sums[kind]);
  fprintf(stream, "  %-24s %31s %10s  %5.1f %%\n", "bubble", "", pl_format_time(pl_ticks_to_s(list->idle), text),
          share_of(explanation, list->idle));
  fprintf(stream, "  %-24s %31s %10s  %5.1f %%\n", "iteration", "",
          pl_format_time(pl_ticks_to_s(explanation->makespan), text), 100.0);
}

static void print_computing(FILE *stream, const pl_program_explanation *explanation, const pl_program_list *list,
                            uint32_t top) {
  char text[4][PL_UNIT_TEXT_BYTES];
  uint32_t n = n_computing(list), most = shown(n, top);
  int shapes = shape_width(list->parts, most);
  int width = name_width(list->parts, most, COMPUTING_COLUMNS + shapes + 1);
  char shape[PL_EXPLAIN_SHAPE_BYTES];
  fprintf(stream, "\n  %-9s %-*s %7s %-*s %6s %8s %8s %8s %8s %-7s %s\n", "computing", width, "op", "calls", shapes,
          "shape", "FLOP", "bytes", "each", "all", "share", "bound", "source");
  for (uint32_t i = 0; i < most; i++) {
    const pl_program_part *part = &list->parts[i];
    double all_s = pl_ticks_to_s(part->time), each_s = pl_ticks_to_s(part->alone), calls = (double)part->calls;
    bool works = part->bound != PL_PROGRAM_PART_NONE;
    put_named(stream, part, width);
    fprintf(stream, " %7" PRIu64 " %-*s %6s %8s %8s %8s  %5.1f %% %-7s %s\n", part->calls, shapes,
            shape_of(part, shape), works ? pl_format_flops(part->flops / calls, text[0]) : "-",
            works ? pl_format_bytes(part->bytes / calls, text[1]) : "-", pl_format_time(each_s / calls, text[2]),
            pl_format_time(all_s, text[3]), share_of(explanation, part->time), bound_of(part), source_of(part));
  }
  print_more(stream, explanation, list->parts, most, n);
}

static void put_communication(FILE *stream, const pl_program_part *part) {
  fprintf(stream, "  %-9s %-*s", pl_category_name((pl_category)part->category), COMMUNICATION_NAME, part->name);
  if ((int)strlen(part->name) > COMMUNICATION_NAME) fprintf(stream, "\n  %-9s %-*s", "", COMMUNICATION_NAME, "");
}

static const char *communication_bound(const pl_program_part *part) {
  return part->group != NULL ? pl_explained_group_bound(part->group, part->alone, part->calls) : "-";
}

static void print_times(FILE *stream, const pl_program_explanation *explanation, const pl_program_part *part) {
  char text[5][PL_UNIT_TEXT_BYTES];
  double calls = (double)part->calls;
  pl_format_time(pl_ticks_to_s(part->time), text[0]);
  put_communication(stream, part);
  if (part->calls == 0) {
    fprintf(stream, " %-33s %8s  %5.1f %%\n", "waited for, without a part in it", text[0],
            share_of(explanation, part->time));
    return;
  }
  fprintf(stream, " %6" PRIu64 " %8s %8s %8s %8s  %5.1f %% %8s  %s\n", part->calls,
          pl_format_bytes(part->bytes / calls, text[1]),
          part->alone < 0 ? "-" : pl_format_time(pl_ticks_to_s(part->alone) / calls, text[2]),
          pl_format_time(pl_ticks_to_s(part->run) / calls, text[3]), text[0], share_of(explanation, part->time),
          pl_format_time(pl_ticks_to_s(pl_program_part_hidden(part)), text[4]), communication_bound(part));
}

static void print_way(FILE *stream, const pl_program_part *part) {
  enum { BEFORE = 91, INDENT = 4, LINK_BYTES = 128 };
  char members[32], link[LINK_BYTES] = "-", rate[PL_UNIT_TEXT_BYTES];
  const pl_explained_group *group = part->group;
  if (group == NULL || part->calls == 0) return;
  const char *slowed = pl_explained_group_slowed_by(group, part->alone, part->run, part->calls);
  snprintf(members, sizeof members, "%" PRIu32 " on %" PRIu32, group->size, group->n_nodes);
  if (group->link != NULL)
    snprintf(link, sizeof link, "%s, %s", group->link, pl_format_rate(group->link_capacity_Bps, rate));
  put_communication(stream, part);
  fprintf(stream, " %-14s %-12s %-9s %-10s ", pl_collective_name(group->kind), pl_algorithm_names[group->algorithm],
          members, slowed != NULL ? slowed : "-");
  if (BEFORE + strlen(link) > LINE_COLUMNS) fprintf(stream, "\n%*s", INDENT, "");
  fprintf(stream, "%s\n", link);
}

/* Times first, then which way each of them takes, as of a tuple. */
static void print_communication(FILE *stream, const pl_program_explanation *explanation, const pl_program_list *list,
                                uint32_t top) {
  uint32_t first = n_computing(list), n = list->n_parts - first, most = shown(n, top);
  if (n == 0) return;
  fprintf(stream, "\n  %-9s %-29s %6s %8s %8s %8s %8s %8s %8s  %s\n", "role", "communication", "calls", "size", "alone",
          "in run", "exposed", "share", "hidden", "bound");
  for (uint32_t i = first; i < first + most; i++)
    print_times(stream, explanation, &list->parts[i]);
  print_more(stream, explanation, list->parts + first, most, n);
  fprintf(stream, "\n  %-9s %-29s %-14s %-12s %-9s %-10s %s\n", "role", "its way", "kind", "algorithm", "group",
          "slowed by", "slowest link");
  for (uint32_t i = first; i < first + most; i++)
    print_way(stream, &list->parts[i]);
}

void pl_explain_program_print(FILE *stream, const pl_cluster *cluster, const pl_program_explanation *explanation,
                              uint32_t first, uint32_t end, uint32_t top) {
  for (uint32_t l = first; l < end; l++) {
    const pl_program_list *list = &explanation->lists[l];
    fprintf(stream, "\nlist %u of %u, %s%s, device %s (%s)", l, explanation->n_lists, list->name,
            explanation->n_lists > 1 && l == explanation->busiest ? " (the busiest)" : "",
            cluster->devices[list->device].name, pl_cluster_profile(cluster, list->device)->name);
    if (list->n_alike > 1) fprintf(stream, ", one of %" PRIu32 " alike", list->n_alike);
    fputc('\n', stream);
    print_kinds(stream, explanation, list);
    print_computing(stream, explanation, list, top);
    print_communication(stream, explanation, list, top);
  }
}

/* ---- JSON ---- */

/* NAN, which is null: alone is not known. */
static double alone_s(const pl_program_part *part) {
  return part->alone < 0 ? (double)NAN : pl_ticks_to_s(part->alone);
}

static void put_group(pl_json *json, const pl_program_part *part) {
  const pl_explained_group *group = part->group;
  pl_json_put_string(json, "kind", pl_collective_name(group->kind));
  pl_json_put_string(json, "algorithm", pl_algorithm_names[group->algorithm]);
  pl_json_put_integer(json, "group_size", group->size);
  pl_json_put_integer(json, "group_nodes", group->n_nodes);
  pl_json_put_number(json, "latency_s", group->latency_s);
  if (part->calls > 0) {
    pl_json_put_string(json, "bound", communication_bound(part));
    pl_json_put_string(json, "slowed_by", pl_explained_group_slowed_by(group, part->alone, part->run, part->calls));
  }
  pl_json_put_string(json, "link", group->link);
  pl_json_put_number(json, "link_capacity_Bps", group->link == NULL ? (double)NAN : group->link_capacity_Bps);
}

static void put_exchange(pl_json *json, const pl_program_part *part) {
  if (part->calls > 0) {
    if (part->group != NULL) put_group(json, part);
    pl_json_put_number(json, "size_bytes", part->bytes / (double)part->calls);
    pl_json_put_number(json, "each_s", alone_s(part) / (double)part->calls);
    pl_json_put_number(json, "alone_s", alone_s(part));
    pl_json_put_number(json, "run_s", pl_ticks_to_s(part->run));
    pl_json_put_number(json, "hidden_s", pl_ticks_to_s(pl_program_part_hidden(part)));
  }
  pl_json_put_number(json, "exposed_s", pl_ticks_to_s(part->time));
}

static void put_work(pl_json *json, const pl_program_part *part) {
  double calls = (double)part->calls;
  if (part->bound != PL_PROGRAM_PART_NONE) {
    pl_json_put_number(json, "flops", part->flops / calls);
    pl_json_put_number(json, "bytes", part->bytes / calls);
    pl_json_put_string(json, "kind", kind_name_of(part));
    if (!part->unlike) pl_explain_put_shape(json, part->kernel);
    pl_json_put_string(json, "bound", bound_of(part));
    pl_json_put_string(json, "source", source_of(part));
  }
  pl_json_put_number(json, "each_s", alone_s(part) / calls);
  pl_json_put_number(json, "alone_s", alone_s(part));
  pl_json_put_number(json, "time_s", pl_ticks_to_s(part->time));
}

/* Keys as of a tuple's stage. */
static void put_parts(pl_json *json, const pl_program_explanation *explanation, const pl_program_list *list,
                      bool computes, uint32_t top) {
  uint32_t n = 0;
  pl_json_key(json, computes ? "computing" : "communication");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < list->n_parts; i++) {
    const pl_program_part *part = &list->parts[i];
    if (part->computes != computes || (top > 0 && n++ == top)) continue;
    pl_json_open_object(json);
    pl_json_put_string(json, "op", part->name);
    pl_json_put_string(json, computes ? "pass" : "role", pl_category_name((pl_category)part->category));
    pl_json_put_integer(json, "calls", (int64_t)part->calls);
    if (computes)
      put_work(json, part);
    else
      put_exchange(json, part);
    pl_json_put_number(json, "share", share_of(explanation, part->time) / 100);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

void pl_explain_program_json(FILE *stream, const pl_cluster *cluster, const pl_program_explanation *explanation,
                             double remains_factor, uint32_t first, uint32_t end, uint32_t top) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_number(&json, "iter_time_s", pl_ticks_to_s(explanation->makespan) * remains_factor);
  if (remains_factor != 1) pl_json_put_number(&json, "remains_factor", remains_factor);
  pl_json_key(&json, "lists");
  pl_json_open_array(&json);
  for (uint32_t l = first; l < end; l++) {
    const pl_program_list *list = &explanation->lists[l];
    pl_json_open_object(&json);
    pl_json_put_integer(&json, "list", l);
    pl_json_put_string(&json, "name", list->name);
    pl_json_put_string(&json, "device", cluster->devices[list->device].name);
    pl_json_put_number(&json, "idle_s", pl_ticks_to_s(list->idle));
    put_parts(&json, explanation, list, true, top);
    put_parts(&json, explanation, list, false, top);
    pl_json_close_object(&json);
  }
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}
