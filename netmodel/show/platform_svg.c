/* See netmodel/show/platform_svg.h. One card per kind of node (alike nodes are one card with a stack behind it), cards
 * in rows, above them the network between nodes. */
#include "netmodel/show/platform_svg.h"

#include <stdio.h>
#include <string.h>

#include "core/system/output_file.h"
#include "netmodel/show/platform_svg_draw.h"

enum {
  MARGIN = 28,
  PAGE_MIN = 560,
  ROW_MAX = 1500, /* cards beyond this width go to the next row */
  GAP = 34,
  PAD = 22,
  CARDS_MAX = 24,
  NETWORK_LINES_MAX = 14
};

/* ---- the network between the nodes ---- */

static bool is_network(const pl_outline_zone *zone) {
  return zone->node == PL_NONE && zone->n_links > 0;
}

static int count_network_lines(const pl_svg *d) {
  int lines = 0;
  for (uint32_t e = 0; e < d->outline->n_zones; e++)
    if (is_network(&d->outline->zones[e])) lines += (int)d->outline->zones[e].n_links;
  return lines;
}

static void draw_network(const pl_svg *d) {
  if (d->network_height == 0) return;
  pl_svg_box(d, MARGIN, MARGIN + 44, d->width - 2 * MARGIN, d->network_height, "network");
  pl_svg_text(d, MARGIN + PAD, MARGIN + 44 + 25, "netname", "Network");
  int line = 0, y = MARGIN + 44 + 32;
  for (uint32_t e = 0; e < d->outline->n_zones; e++) {
    const pl_outline_zone *zone = &d->outline->zones[e];
    for (uint32_t i = 0; is_network(zone) && i < zone->n_links && line < NETWORK_LINES_MAX; i++) {
      line++;
      pl_svg_links(d, MARGIN + PAD, y + PL_SVG_LINE_H * line - 6, &zone->links[i]);
      char text[128];
      if (zone->alike > 1)
        snprintf(text, sizeof text, "in each of %u zones like %.60s", zone->alike, zone->name);
      else
        snprintf(text, sizeof text, "in %.60s", zone->name);
      pl_svg_text(d, d->width - MARGIN - PAD, y + PL_SVG_LINE_H * line - 6, "right", text);
    }
  }
  if (count_network_lines(d) > line) pl_svg_text(d, MARGIN + PAD, y + PL_SVG_LINE_H * (line + 1) - 6, "body", "…");
}

/* A line above each row of cards, to which their NICs rise, and one trunk that ties the rows to the network. */
static void draw_buses(const pl_svg *d) {
  if (d->network_height == 0 || d->n_cards == 0) return;
  int top = MARGIN + 44 + d->network_height;
  for (uint32_t i = 0; i < d->n_cards; i++) {
    int y = d->cards[i].y - PL_SVG_BUS_H / 2;
    if (i > 0 && d->cards[i].y == d->cards[i - 1].y) continue;
    pl_svg_line(d, MARGIN + 8, y, MARGIN + 8, top, PL_LINK_FABRIC, 3);
    fprintf(d->stream, "<path d=\"M%d %dH%d\" stroke=\"%s\" stroke-width=\"3\"/>\n", MARGIN + 8, y,
            d->width - MARGIN - 8, pl_svg_color(PL_LINK_FABRIC));
  }
}

/* ---- the page ---- */

static pl_code find_cards(pl_svg *d, pl_error *error) {
  for (uint32_t e = 0; e < d->outline->n_zones; e++) {
    if (d->outline->zones[e].node == PL_NONE) continue;
    if (d->n_cards == CARDS_MAX) {
      d->n_hidden++;
      continue;
    }
    pl_svg_card *c = &d->cards[d->n_cards++];
    c->entry = e;
    PL_TRY(pl_node_wiring_find(d->platform, d->outline->zones[e].node, &c->wiring, error));
    pl_svg_card_measure(d, c);
  }
  return PL_OK;
}

static void place(pl_svg *d) {
  int lines = count_network_lines(d);
  if (lines > NETWORK_LINES_MAX) lines = NETWORK_LINES_MAX + 1;
  d->network_height = lines > 0 ? 32 + PL_SVG_LINE_H * lines + 12 : 0;
  int x = MARGIN, y = MARGIN + 44 + d->network_height + (lines > 0 ? PL_SVG_BUS_H : 0), row_height = 0;
  d->width = PAGE_MIN;
  for (uint32_t i = 0; i < d->n_cards; i++) {
    pl_svg_card *c = &d->cards[i];
    if (x > MARGIN && x + c->width > ROW_MAX) {
      x = MARGIN;
      y += row_height + GAP + PL_SVG_BUS_H;
      row_height = 0;
    }
    c->x = x;
    c->y = y;
    x += c->width + GAP;
    if (x - GAP + 10 + MARGIN > d->width) d->width = x - GAP + 10 + MARGIN;
    if (c->height > row_height) row_height = c->height;
  }
  d->height = y + row_height + 10 + MARGIN + (d->n_hidden > 0 ? PL_SVG_LINE_H : 0);
}

static void draw_page(const pl_svg *d) {
  fprintf(d->stream,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
          "font-family=\"Inter,Helvetica,Arial,sans-serif\" font-size=\"13\">\n",
          d->width, d->height, d->width, d->height);
  fputs("<style>.page{fill:#fff}.card{fill:#fff;stroke:#8b93a1;stroke-width:1.3}.stack{fill:#f4f5f7;stroke:#b9bfc9}"
        ".network{fill:#fbf3f4;stroke:#b8324a;stroke-width:1.3}.blank{fill:#fff}.gpu{fill:#eef1f5;stroke:#4a5160}"
        ".head{font-size:19px;font-weight:600;fill:#1d222b}.title{font-size:15px;font-weight:600;fill:#1d222b}"
        ".halo,.title,.badge{paint-order:stroke;stroke:#fff;stroke-width:7px;stroke-linejoin:round}.netname{font-size:"
        "15px;font-weight:600;fill:#1d222b}.badge{font-size:14px;fill:#5b6470;text-anchor:end}.body{"
        "fill:#333a45}.kind{fill:#333a45;font-"
        "weight:600}"
        ".name{fill:#7a818d;font-size:12px}.right{fill:#7a818d;font-size:12px;text-anchor:end}"
        ".small{font-size:12px;fill:#1d222b;text-anchor:middle}.gpuname{font-size:12.5px;font-weight:600;fill:#1d222b;"
        "text-anchor:middle}.tiny{font-size:10px;fill:#7a818d;text-anchor:middle}</style>\n",
        d->stream);
  fprintf(d->stream, "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", d->width, d->height);
  const char *slash = strrchr(d->cluster->path, '/');
  pl_svg_text(d, MARGIN, MARGIN + 16, "head", slash != NULL ? slash + 1 : d->cluster->path);
  char text[160];
  snprintf(text, sizeof text, "%u GPU%s in %u node%s, %u directed links", d->cluster->n_devices,
           d->cluster->n_devices == 1 ? "" : "s", d->cluster->n_nodes, d->cluster->n_nodes == 1 ? "" : "s",
           d->cluster->n_links);
  pl_svg_text(d, d->width - MARGIN, MARGIN + 16, "right", text);
  draw_buses(d);
  draw_network(d);
  for (uint32_t i = 0; i < d->n_cards; i++)
    pl_svg_card_draw(d, &d->cards[i]);
  if (d->n_hidden > 0) {
    snprintf(text, sizeof text, "… and %u more kinds of node", d->n_hidden);
    pl_svg_text(d, MARGIN, d->height - MARGIN, "body", text);
  }
  fputs("</svg>\n", d->stream);
}

static pl_code draw(FILE *stream, const pl_platform *platform, const pl_outline *outline, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_svg d = {.stream = stream, .platform = platform, .cluster = pl_platform_cluster(platform), .outline = outline};
  d.cards = PL_TAKE(&arena, pl_svg_card, CARDS_MAX);
  pl_code code = d.cards != NULL ? find_cards(&d, error) : pl_fail_memory(error, "the drawing");
  if (code == PL_OK) {
    place(&d);
    draw_page(&d);
  }
  pl_arena_release(&arena);
  return code;
}

pl_code pl_platform_svg_draw(FILE *stream, const pl_platform *platform, pl_error *error) {
  pl_arena arena;
  pl_outline outline;
  pl_arena_init(&arena, 0);
  pl_code code = pl_platform_outline_take(platform, &arena, &outline, error);
  if (code == PL_OK) code = draw(stream, platform, &outline, error);
  pl_arena_release(&arena);
  return code;
}

pl_code pl_platform_svg_store(const pl_platform *platform, const pl_outline *outline, const char *path, bool force,
                              pl_error *error) {
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, path, force, error));
  return pl_output_file_close(&file, draw(file.stream, platform, outline, error), error);
}
