/* What the files of the platform drawing share (platform_svg.c: page, network, file; platform_svg_card.c: nodes;
 * platform_svg_pieces.c: text, boxes, lines), and nobody else. */
#ifndef PL_NETMODEL_PLATFORM_SVG_DRAW_H
#define PL_NETMODEL_PLATFORM_SVG_DRAW_H

#include <stdio.h>

#include "netmodel/show/node_wiring.h"
#include "netmodel/show/platform_outline.h"

enum { PL_SVG_LINE_H = 21, PL_SVG_BUS_H = 30 /* between the network and a row of cards */ };

/* A kind of node. */
typedef struct pl_svg_card {
  uint32_t entry; /* of the outline */
  pl_node_wiring wiring;
  int x, y, width, height;
} pl_svg_card;

typedef struct pl_svg {
  FILE *stream;
  const pl_platform *platform;
  const pl_cluster *cluster;
  const pl_outline *outline;
  pl_svg_card *cards;
  uint32_t n_cards, n_hidden;
  int width, height, network_height;
} pl_svg;

/* ---- pieces; y of a text is its base line ---- */
const char *pl_svg_color(pl_link_kind kind);
void pl_svg_text(const pl_svg *d, int x, int y, const char *class, const char *text);
void pl_svg_box(const pl_svg *d, int x, int y, int width, int height, const char *class);
void pl_svg_colored_box(const pl_svg *d, int x, int y, int width, int height, pl_link_kind kind);
/* A curve that leaves and arrives upright. */
void pl_svg_line(const pl_svg *d, int x1, int y1, int x2, int y2, pl_link_kind kind, double thickness);
/* "8 x 300 GB/s each way, 250 ns" with a swatch in front and the names at the end. */
void pl_svg_links(const pl_svg *d, int x, int y, const pl_outline_links *links);

/* ---- cards ---- */
/* Width and height, from entry and wiring. */
void pl_svg_card_measure(const pl_svg *d, pl_svg_card *c);
void pl_svg_card_draw(const pl_svg *d, const pl_svg_card *c);

#endif
