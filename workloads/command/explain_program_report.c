/* See workloads/command/explain_program_report.h. */
#include "workloads/command/explain_program_report.h"

#include <inttypes.h>
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
enum { LINE_COLUMNS = 120, COMPUTING_COLUMNS = 80, COMMUNICATION_COLUMNS = 92, NAME_LEAST = 16, SHAPE_LEAST = 5 };

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

static const char *kind_of(const pl_program_part *part) {
  return common(part->kind, part->kind >= 0 ? pl_collective_name((pl_collective_kind)part->kind) : NULL);
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
  bool kernel = part->kernel != NULL && part->category != PL_CATEGORY_OPTIMIZER;
  return kernel ? pl_op_kind_name((pl_op_kind)part->kernel->kind) : pl_category_name((pl_category)part->category);
}

/* What a list computes by kinds of ops, and what it waits for by what that is for, as of a tuple's stage. */
typedef struct kind_sum {
  const char *name;
  bool computes;
  uint64_t calls;
  double flops, bytes;
  pl_ticks time, hidden;
} kind_sum;
enum { MOST_KINDS = 2 * PL_OP_KIND_COUNT + 2 * PL_CATEGORY_COUNT };

static uint32_t sum_kinds(const pl_program_list *list, kind_sum sums[MOST_KINDS]) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < list->n_parts; i++) {
    const pl_program_part *part = &list->parts[i];
    const char *name = part->computes ? kind_name_of(part) : pl_category_name((pl_category)part->category);
    uint32_t at = 0;
    while (at < n && (sums[at].computes != part->computes || strcmp(sums[at].name, name) != 0))
      at++;
    if (at == n) sums[n++] = (kind_sum){.name = name, .computes = part->computes};
    PL_ASSERT(n <= MOST_KINDS);
    sums[at].calls += part->calls;
    sums[at].flops += part->computes ? part->flops : 0;
    sums[at].bytes += part->bytes;
    sums[at].time += part->time;
    if (!part->computes && part->calls > 0) sums[at].hidden += pl_program_part_hidden(part);
  }
  return n;
}

static void print_kinds(FILE *stream, const pl_program_explanation *explanation, const pl_program_list *list) {
  kind_sum sums[MOST_KINDS];
  char text[4][PL_UNIT_TEXT_BYTES];
  uint32_t n = sum_kinds(list, sums);
  fprintf(stream, "\n  where the time goes          calls       FLOP      bytes       time    share     hidden\n");
  for (uint32_t i = 0; i < n; i++) {
    const kind_sum *sum = &sums[i];
    char name[PL_UNIT_TEXT_BYTES];
    snprintf(name, sizeof name, "%s%s", sum->name, sum->computes ? "" : " communication");
    fprintf(stream, "  %-24s %9" PRIu64 " %10s %10s %10s  %5.1f %%", name, sum->calls,
            sum->computes ? pl_format_flops(sum->flops, text[0]) : "", pl_format_bytes(sum->bytes, text[1]),
            pl_format_time(pl_ticks_to_s(sum->time), text[2]), share_of(explanation, sum->time));
    if (!sum->computes) fprintf(stream, " %10s", pl_format_time(pl_ticks_to_s(sum->hidden), text[3]));
    fputc('\n', stream);
  }
}

static void print_computing(FILE *stream, const pl_program_explanation *explanation, const pl_program_list *list,
                            uint32_t top) {
  char text[4][PL_UNIT_TEXT_BYTES];
  uint32_t n = n_computing(list), most = shown(n, top);
  int shapes = shape_width(list->parts, most);
  int width = name_width(list->parts, most, COMPUTING_COLUMNS + shapes + 1);
  char shape[PL_EXPLAIN_SHAPE_BYTES];
  fprintf(stream, "\n  %-9s %-*s %7s %-*s %6s %8s %8s %8s %8s %-7s %s\n", "computing", width, "what", "calls", shapes,
          "shape", "FLOP", "bytes", "each", "all", "share", "bound", "source");
  for (uint32_t i = 0; i < most; i++) {
    const pl_program_part *part = &list->parts[i];
    double all_s = pl_ticks_to_s(part->time), calls = (double)part->calls;
    bool works = part->bound != PL_PROGRAM_PART_NONE;
    put_named(stream, part, width);
    fprintf(stream, " %7" PRIu64 " %-*s %6s %8s %8s %8s  %5.1f %% %-7s %s\n", part->calls, shapes,
            shape_of(part, shape), works ? pl_format_flops(part->flops / calls, text[0]) : "-",
            works ? pl_format_bytes(part->bytes / calls, text[1]) : "-", pl_format_time(all_s / calls, text[2]),
            pl_format_time(all_s, text[3]), share_of(explanation, part->time), bound_of(part), source_of(part));
  }
  print_more(stream, explanation, list->parts, most, n);
}

static const char *format_group(const pl_program_part *part, char text[PL_UNIT_TEXT_BYTES]) {
  if (part->n_members < 0 || part->n_nodes < 0) return common(part->n_members, "mixed");
  snprintf(text, PL_UNIT_TEXT_BYTES, "%" PRId32 " on %" PRId32, part->n_members, part->n_nodes);
  return text;
}

static void print_communication(FILE *stream, const pl_program_explanation *explanation, const pl_program_list *list,
                                uint32_t top) {
  char text[5][PL_UNIT_TEXT_BYTES];
  uint32_t first = n_computing(list), n = list->n_parts - first, most = shown(n, top);
  int width = name_width(list->parts + first, most, COMMUNICATION_COLUMNS);
  if (n == 0) return;
  fprintf(stream, "\n  %-9s %-*s %7s %8s %8s %8s %8s %8s  %-14s %s\n", "for", width, "communication", "calls", "size",
          "each", "waited", "share", "hidden", "kind", "group");
  for (uint32_t i = first; i < first + most; i++) {
    const pl_program_part *part = &list->parts[i];
    double calls = (double)part->calls;
    put_named(stream, part, width);
    pl_format_time(pl_ticks_to_s(part->time), text[0]);
    if (part->calls == 0) {
      fprintf(stream, " %-25s %8s  %5.1f %%\n", "without a part in it", text[0], share_of(explanation, part->time));
      continue;
    }
    fprintf(stream, " %7" PRIu64 " %8s %8s %8s  %5.1f %% %8s  %-14s %s\n", part->calls,
            pl_format_bytes(part->bytes / calls, text[1]), pl_format_time(pl_ticks_to_s(part->run) / calls, text[2]),
            text[0], share_of(explanation, part->time),
            pl_format_time(pl_ticks_to_s(pl_program_part_hidden(part)), text[3]), kind_of(part),
            format_group(part, text[4]));
  }
  print_more(stream, explanation, list->parts + first, most, n);
}

static void print_sums(FILE *stream, const pl_program_explanation *explanation, const pl_program_list *list) {
  char text[PL_UNIT_TEXT_BYTES];
  pl_ticks computing = 0, waiting = 0;
  for (uint32_t i = 0; i < list->n_parts; i++)
    *(list->parts[i].computes ? &computing : &waiting) += list->parts[i].time;
  const struct {
    const char *name;
    pl_ticks time;
  } sums[] = {{"computing", computing},
              {"waiting for communication", waiting},
              {"idle", list->idle},
              {"iteration", explanation->makespan}};
  fprintf(stream, "\n");
  for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
    fprintf(stream, "  %-68s %9s  %5.1f %%\n", sums[i].name, pl_format_time(pl_ticks_to_s(sums[i].time), text),
            share_of(explanation, sums[i].time));
}

void pl_explain_program_print(FILE *stream, const pl_cluster *cluster, const pl_program_explanation *explanation,
                              uint32_t first, uint32_t end, uint32_t top) {
  for (uint32_t l = first; l < end; l++) {
    const pl_program_list *list = &explanation->lists[l];
    fprintf(stream, "\nlist %u of %u, %s%s, device %s (%s)\n", l, explanation->n_lists, list->name,
            explanation->n_lists > 1 && l == explanation->busiest ? " (the busiest)" : "",
            cluster->devices[list->device].name, pl_cluster_profile(cluster, list->device)->name);
    print_kinds(stream, explanation, list);
    print_computing(stream, explanation, list, top);
    print_communication(stream, explanation, list, top);
    print_sums(stream, explanation, list);
  }
}

/* ---- JSON ---- */

/* Figures of one call; what calls differ in is left out. */
static void put_exchange(pl_json *json, const pl_program_part *part) {
  pl_json_put_number(json, "run_s", pl_ticks_to_s(part->run));
  if (part->calls == 0) return;
  pl_json_put_number(json, "hidden_s", pl_ticks_to_s(pl_program_part_hidden(part)));
  pl_json_put_number(json, "size_bytes", part->bytes / (double)part->calls);
  if (part->kind >= 0) pl_json_put_string(json, "kind", kind_of(part));
  if (part->n_members >= 0) pl_json_put_integer(json, "group_size", part->n_members);
  if (part->n_nodes >= 0) pl_json_put_integer(json, "group_nodes", part->n_nodes);
}

static void put_parts(pl_json *json, const pl_program_list *list, bool computes, uint32_t top) {
  uint32_t n = 0;
  pl_json_key(json, computes ? "computing" : "communication");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < list->n_parts; i++) {
    const pl_program_part *part = &list->parts[i];
    if (part->computes != computes || (top > 0 && n++ == top)) continue;
    pl_json_open_object(json);
    pl_json_put_string(json, "name", part->name);
    pl_json_put_string(json, "category", pl_category_name((pl_category)part->category));
    pl_json_put_integer(json, "calls", (int64_t)part->calls);
    pl_json_put_number(json, computes ? "time_s" : "waited_s", pl_ticks_to_s(part->time));
    if (computes && part->bound != PL_PROGRAM_PART_NONE) {
      pl_json_put_number(json, "flops", part->flops / (double)part->calls);
      pl_json_put_number(json, "bytes", part->bytes / (double)part->calls);
      pl_json_put_string(json, "kind", kind_name_of(part));
      if (!part->unlike) pl_explain_put_shape(json, part->kernel);
      pl_json_put_string(json, "bound", bound_of(part));
      pl_json_put_string(json, "source", source_of(part));
    }
    if (!computes) put_exchange(json, part);
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
    put_parts(&json, list, true, top);
    put_parts(&json, list, false, top);
    pl_json_close_object(&json);
  }
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}
