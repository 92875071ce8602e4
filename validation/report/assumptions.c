/* What was assumed, as text, HTML and JSON (see validation/report/assumptions.h). */
#include <inttypes.h>
#include <string.h>

#include "validation/report/assumptions.h"

static bool says_something(const pl_case *c) {
  return c->assumptions != NULL && c->assumptions[0] != '\0';
}

static bool is_alike(const pl_case *a, const pl_case *b) {
  return says_something(b) && strcmp(a->row->file, b->row->file) == 0 && strcmp(a->assumptions, b->assumptions) == 0;
}

/* How many cases of its file say the same; 0: none, or an earlier one has counted this. */
static uint32_t count_alike(const pl_cases *cases, uint32_t index) {
  const pl_case *c = &cases->cases[index];
  uint32_t n = 1;
  if (!says_something(c)) return 0;
  for (uint32_t i = index; i-- > 0 && strcmp(cases->cases[i].row->file, c->row->file) == 0;)
    if (is_alike(c, &cases->cases[i])) return 0;
  for (uint32_t i = index + 1; i < cases->n_cases && strcmp(cases->cases[i].row->file, c->row->file) == 0; i++)
    n += is_alike(c, &cases->cases[i]);
  return n;
}

/* The columns that the case's file has and nobody reads, said at its first case; NULL: nothing to say. */
static const char *ignored_at(const pl_cases *cases, uint32_t index) {
  const pl_measured_row *row = cases->cases[index].row;
  bool first = index == 0 || strcmp(cases->cases[index - 1].row->file, row->file) != 0;
  return first && row->table != NULL && row->table->ignored[0] != '\0' ? row->table->ignored : NULL;
}

void pl_ignored_print(FILE *stream, const char *prefix, const pl_cases *cases) {
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (ignored_at(cases, i) != NULL)
      fprintf(stream, "%s%s: columns not read: %s\n", prefix, cases->cases[i].row->file, ignored_at(cases, i));
}

void pl_assumptions_print(FILE *stream, const pl_cases *cases) {
  fprintf(stream, "assumed where rows say nothing\n");
  pl_ignored_print(stream, "  ", cases);
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    const pl_case *c = &cases->cases[i];
    uint32_t n = count_alike(cases, i);
    if (n > 0)
      fprintf(stream, "  %s:%" PRIu32 ", %u configuration%s: %s\n", c->row->file, c->row->line, n, n == 1 ? "" : "s",
              c->assumptions);
  }
  fputc('\n', stream);
}

void pl_assumptions_html(FILE *stream, const pl_cases *cases) {
  fputs("<h2>Assumed where rows say nothing</h2>\n<details><summary>by table</summary><div "
        "class=\"scroll\"><table><tr><th>first row</th>"
        "<th>configurations</th><th>assumed</th></tr>\n",
        stream);
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    const pl_case *c = &cases->cases[i];
    uint32_t n = count_alike(cases, i);
    if (n == 0) continue;
    fputs("<tr><td>", stream);
    pl_xml_text(stream, c->row->file);
    fprintf(stream, ":%" PRIu32 "</td><td>%u</td><td>", c->row->line, n);
    pl_xml_text(stream, c->assumptions);
    fputs("</td></tr>\n", stream);
  }
  fputs("</table></div></details>\n", stream);
}

void pl_assumptions_json(pl_json *json, const pl_cases *cases) {
  pl_json_key(json, "assumptions");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    const pl_case *c = &cases->cases[i];
    uint32_t n = count_alike(cases, i);
    if (n == 0) continue;
    pl_json_open_object(json);
    pl_json_put_string(json, "file", c->row->file);
    pl_json_put_integer(json, "line", c->row->line);
    pl_json_put_integer(json, "configurations", n);
    pl_json_put_string(json, "assumed", c->assumptions);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}
