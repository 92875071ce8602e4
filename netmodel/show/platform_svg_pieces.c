/* See netmodel/show/platform_svg_draw.h. */
#include <string.h>

#include "core/base/units.h"
#include "netmodel/show/platform_svg_draw.h"

const char *pl_svg_color(pl_link_kind kind) {
  static const char *const colors[PL_LINK_KIND_COUNT] = {
      [PL_LINK_OTHER] = "#767b85", [PL_LINK_NVLINK] = "#4d9221", [PL_LINK_PCIE] = "#2f72c4",
      [PL_LINK_CPU] = "#7b4fb5",   [PL_LINK_NIC] = "#d9731a",    [PL_LINK_FABRIC] = "#b8324a"};
  return colors[kind];
}

static void put_escaped(FILE *stream, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '<')
      fputs("&lt;", stream);
    else if (*text == '>')
      fputs("&gt;", stream);
    else if (*text == '&')
      fputs("&amp;", stream);
    else if (*text == '"')
      fputs("&quot;", stream);
    else if ((unsigned char)*text >= 0x20)
      fputc(*text, stream);
  }
}

void pl_svg_text(const pl_svg *d, int x, int y, const char *class, const char *text) {
  fprintf(d->stream, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
  put_escaped(d->stream, text);
  fputs("</text>\n", d->stream);
}

void pl_svg_box(const pl_svg *d, int x, int y, int width, int height, const char *class) {
  fprintf(d->stream, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"7\" class=\"%s\"/>\n", x, y, width,
          height, class);
}

void pl_svg_colored_box(const pl_svg *d, int x, int y, int width, int height, pl_link_kind kind) {
  fprintf(
      d->stream,
      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\" fill-opacity=\"0.13\" stroke=\"%s\"/>\n",
      x, y, width, height, pl_svg_color(kind), pl_svg_color(kind));
}

void pl_svg_line(const pl_svg *d, int x1, int y1, int x2, int y2, pl_link_kind kind, double thickness) {
  fprintf(d->stream, "<path d=\"M%d %dC%d %d %d %d %d %d\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n", x1,
          y1, x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2, pl_svg_color(kind), thickness);
}

void pl_svg_links(const pl_svg *d, int x, int y, const pl_outline_links *links) {
  char rate[PL_UNIT_TEXT_BYTES], latency[PL_UNIT_TEXT_BYTES], text[192];
  fprintf(d->stream, "<rect x=\"%d\" y=\"%d\" width=\"11\" height=\"11\" rx=\"2\" fill=\"%s\"/>\n", x, y - 10,
          pl_svg_color(links->kind));
  pl_svg_text(d, x + 18, y, "kind", pl_link_kind_name(links->kind));
  snprintf(text, sizeof text, "%u × %s%s, %s%s", links->count, pl_format_rate(links->capacity_Bps, rate),
           links->is_duplex ? " each way" : "", pl_format_time(pl_ticks_to_s(links->latency), latency),
           links->policy == PL_LINK_FATPIPE ? ", fatpipe" : "");
  pl_svg_text(d, x + 72, y, "body", text);
  snprintf(text, sizeof text, "%.40s%s%.40s", links->first, links->count > 1 ? " … " : "",
           links->count > 1 ? links->last : "");
  pl_svg_text(d, x + 326, y, "name", text);
}
