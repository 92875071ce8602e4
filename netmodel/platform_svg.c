/* See netmodel/platform_svg.h. One card per kind of node (alike nodes are one card with a stack behind it), cards in
 * rows, above them the network between nodes. In a card, from top to bottom: title, NICs with a line from each GPU that
 * leaves through it, GPUs, the NVLinks between them (arcs for pairs, a bar for a switch), the CPU sockets with a line
 * from each GPU (else a bar for PCIe and the host, where GPUs use it), and the list of wires. Everything is placed from
 * the figures below; text is never measured, so it stands where its length does not matter. */
#include "netmodel/platform_svg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/units.h"
#include "netmodel/node_wiring.h"

enum {
  MARGIN = 28,
  PAGE_MIN = 560,
  ROW_MAX = 1500, /* cards beyond this width go to the next row */
  GAP = 34,
  CARD_PAD = 22,
  CARD_MIN = 520,
  GPU_W = 62,
  GPU_H = 40,
  GPU_GAP = 16,
  TITLE_H = 56,
  NIC_H = 26,
  NIC_RISE = 44, /* between NICs and GPUs, for the lines */
  BAR_DROP = 26, /* between GPUs and the bar below */
  BAR_H = 26,
  SOCKET_MIN = 190,
  BUS_W = 72, /* between two sockets, for the bus and its rate */
  ARC_MAX = 96,
  LINE_H = 21,
  BUS_H = 30, /* between the network and a row of cards */
  CARDS_MAX = 24,
  NETWORK_LINES_MAX = 14
};

typedef struct card {
  uint32_t entry; /* of the outline */
  pl_node_wiring wiring;
  int x, y, width, height;
} card;

typedef struct drawing {
  FILE *stream;
  const pl_platform *platform;
  const pl_cluster *cluster;
  const pl_outline *outline;
  card *cards;
  uint32_t n_cards, n_hidden;
  int width, height, network_height;
} drawing;

static const char *color_of(pl_link_kind kind) {
  static const char *const colors[PL_LINK_KIND_COUNT] = {
      [PL_LINK_OTHER] = "#767b85", [PL_LINK_NVLINK] = "#4d9221", [PL_LINK_PCIE] = "#2f72c4",
      [PL_LINK_CPU] = "#7b4fb5",   [PL_LINK_NIC] = "#d9731a",    [PL_LINK_FABRIC] = "#b8324a"};
  return colors[kind];
}

/* ---- small pieces ---- */

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

static void put_text(const drawing *d, int x, int y, const char *class, const char *text) {
  fprintf(d->stream, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
  put_escaped(d->stream, text);
  fputs("</text>\n", d->stream);
}

static void put_box(const drawing *d, int x, int y, int width, int height, const char *class) {
  fprintf(d->stream, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"7\" class=\"%s\"/>\n", x, y, width,
          height, class);
}

static void put_colored_box(const drawing *d, int x, int y, int width, int height, pl_link_kind kind) {
  fprintf(
      d->stream,
      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\" fill-opacity=\"0.13\" stroke=\"%s\"/>\n",
      x, y, width, height, color_of(kind), color_of(kind));
}

static void put_line(const drawing *d, int x1, int y1, int x2, int y2, pl_link_kind kind, double thickness) {
  fprintf(d->stream, "<path d=\"M%d %dC%d %d %d %d %d %d\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n", x1,
          y1, x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2, color_of(kind), thickness);
}

/* "8 x 300 GB/s each way, 250 ns" with a swatch in front and the names at the end. */
static void put_links(const drawing *d, int x, int y, const pl_outline_links *links) {
  char rate[PL_UNIT_TEXT_BYTES], latency[PL_UNIT_TEXT_BYTES], text[192];
  fprintf(d->stream, "<rect x=\"%d\" y=\"%d\" width=\"11\" height=\"11\" rx=\"2\" fill=\"%s\"/>\n", x, y - 10,
          color_of(links->kind));
  put_text(d, x + 18, y, "kind", pl_link_kind_name(links->kind));
  snprintf(text, sizeof text, "%u × %s%s, %s%s", links->count, pl_format_rate(links->capacity_Bps, rate),
           links->is_duplex ? " each way" : "", pl_format_time(pl_ticks_to_s(links->latency), latency),
           links->policy == PL_LINK_FATPIPE ? ", fatpipe" : "");
  put_text(d, x + 72, y, "body", text);
  snprintf(text, sizeof text, "%.40s%s%.40s", links->first, links->count > 1 ? " … " : "",
           links->count > 1 ? links->last : "");
  put_text(d, x + 326, y, "name", text);
}

/* ---- a card ---- */

static const pl_outline_zone *entry_of(const drawing *d, const card *c) {
  return &d->outline->zones[c->entry];
}

static int gpu_x(const card *c, uint32_t i) {
  int row = (int)c->wiring.n_gpus * (GPU_W + GPU_GAP) - GPU_GAP;
  return c->x + (c->width - row) / 2 + (int)i * (GPU_W + GPU_GAP);
}

/* Spread over the row of GPUs: as many NICs as GPUs stand exactly above them. */
static int nic_x(const card *c, uint32_t nic) {
  int row = (int)c->wiring.n_gpus * (GPU_W + GPU_GAP), n = (int)c->wiring.n_nics;
  return gpu_x(c, 0) - GPU_GAP / 2 + row * (2 * (int)nic + 1) / (2 * n);
}

static int nics_height(const card *c) {
  return c->wiring.n_nics > 0 ? NIC_H + NIC_RISE : 10;
}

static int arcs_height(const card *c) {
  return c->wiring.has_pairs ? ARC_MAX + 8 : 0;
}

static bool has_host_row(const card *c) {
  return c->wiring.has_host || c->wiring.n_sockets > 0;
}

static int bars_height(const card *c) {
  return (c->wiring.has_switch ? BAR_DROP + BAR_H : 0) + (has_host_row(c) ? BAR_DROP + BAR_H : 0);
}

static void measure_card(const drawing *d, card *c) {
  int row = (int)c->wiring.n_gpus * (GPU_W + GPU_GAP) + 2 * CARD_PAD;
  c->width = row > CARD_MIN ? row : CARD_MIN;
  c->height = TITLE_H + nics_height(c) + GPU_H + arcs_height(c) + bars_height(c) + 18 +
              LINE_H * (int)entry_of(d, c)->n_links + 10;
}

static void draw_frame(const drawing *d, const card *c) {
  const pl_outline_zone *zone = entry_of(d, c);
  if (zone->alike > 1) {
    put_box(d, c->x + 10, c->y + 10, c->width, c->height, "stack");
    put_box(d, c->x + 5, c->y + 5, c->width, c->height, "stack");
  }
  put_box(d, c->x, c->y, c->width, c->height, "card");
}

/* How many zones around `zone` are folded into the one that is drawn. */
static uint32_t alike_around(const drawing *d, const pl_outline_zone *zone) {
  uint32_t product = 1;
  for (uint32_t e = zone->parent; e != PL_NONE; e = d->outline->zones[e].parent)
    product *= d->outline->zones[e].alike;
  return product;
}

static void draw_title(const drawing *d, const card *c) {
  const pl_outline_zone *zone = entry_of(d, c);
  char text[256];
  snprintf(text, sizeof text, "%.60s%s%.60s", zone->name, zone->alike > 1 ? " … " : "",
           zone->alike > 1 ? zone->last_name : "");
  put_text(d, c->x + CARD_PAD, c->y + 26, "title", text);
  uint32_t around = alike_around(d, zone);
  if (zone->alike > 1 || around > 1) {
    snprintf(text, sizeof text, around > 1 ? "%u alike in each of %u zones" : "%u alike", zone->alike, around);
    put_text(d, c->x + c->width - CARD_PAD, c->y + 26, "badge", text);
  }
  int used = 0;
  for (uint32_t g = 0; g < zone->n_gpus && used >= 0 && used < 200; g++) {
    char memory[PL_UNIT_TEXT_BYTES];
    const pl_device_profile *profile = &d->cluster->profiles[zone->gpus[g].profile];
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%u × %.60s, %s", g > 0 ? " + " : "",
                     zone->gpus[g].count, profile->name, pl_format_bytes(profile->memory_bytes, memory));
  }
  put_text(d, c->x + CARD_PAD, c->y + 45, "body halo", text);
}

static void draw_nics(const drawing *d, const card *c, int top, int gpu_top) {
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++)
    if (c->wiring.nic[i] != PL_NONE)
      put_line(d, gpu_x(c, i) + GPU_W / 2, gpu_top, nic_x(c, c->wiring.nic[i]), top + NIC_H, PL_LINK_PCIE, 1.6);
  for (uint32_t n = 0; n < c->wiring.n_nics; n++) {
    int width = c->wiring.n_nics > 1 ? 64 : 120;
    char rate[PL_UNIT_TEXT_BYTES], text[64];
    pl_format_rate(d->cluster->links[c->wiring.nics[n]].capacity_Bps, rate);
    snprintf(text, sizeof text, "%s%s", c->wiring.n_nics > 1 ? "" : "NIC ", rate);
    put_line(d, nic_x(c, n), top, nic_x(c, n), c->y - BUS_H / 2, PL_LINK_NIC, 2);
    put_colored_box(d, nic_x(c, n) - width / 2, top, width, NIC_H, PL_LINK_NIC);
    put_text(d, nic_x(c, n), top + 17, "small", text);
  }
}

static void draw_gpus(const drawing *d, const card *c, int top) {
  uint32_t first = d->cluster->nodes[entry_of(d, c)->node].first_device;
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++) {
    char text[32];
    snprintf(text, sizeof text, "GPU %u", i);
    put_box(d, gpu_x(c, i), top, GPU_W, GPU_H, "gpu");
    put_text(d, gpu_x(c, i) + GPU_W / 2, top + 17, "gpuname", text);
    snprintf(text, sizeof text, "%.9s", d->cluster->devices[first + i].name);
    put_text(d, gpu_x(c, i) + GPU_W / 2, top + 32, "tiny", text);
  }
}

/* The widest NVLink of a pair, and the farthest that one reaches in places. */
static double widest_pair(const pl_node_wiring *w, int *reach_max) {
  double widest = 0;
  *reach_max = 1;
  for (uint32_t i = 0; i < w->n_gpus; i++)
    for (uint32_t j = i + 1; j < w->n_gpus; j++) {
      if (w->pair_Bps[i][j] <= 0) continue;
      if (w->pair_Bps[i][j] > widest) widest = w->pair_Bps[i][j];
      if ((int)(j - i) > *reach_max) *reach_max = (int)(j - i);
    }
  return widest;
}

/* Pairs as half ellipses below the GPUs, deeper the farther they reach, as thick as they are wide; ends are spread over
 * the GPU's edge so that they can be told apart. */
static void draw_arcs(const drawing *d, const card *c, int top) {
  const pl_node_wiring *w = &c->wiring;
  int reach_max;
  double widest = widest_pair(w, &reach_max);
  for (uint32_t i = 0; i < w->n_gpus; i++)
    for (uint32_t j = i + 1; j < w->n_gpus; j++) {
      if (w->pair_Bps[i][j] <= 0) continue;
      int reach = (int)(j - i), depth = 14 + (ARC_MAX - 14) * reach / reach_max;
      int x1 = gpu_x(c, i) + GPU_W / 2 + 4 * reach, x2 = gpu_x(c, j) + GPU_W / 2 - 4 * reach;
      fprintf(d->stream, "<path d=\"M%d %dA%d %d 0 0 0 %d %d\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n",
              x1, top, (x2 - x1) / 2, depth, x2, top, color_of(PL_LINK_NVLINK), 0.8 + 2.6 * w->pair_Bps[i][j] / widest);
    }
}

static void draw_bar(const drawing *d, const card *c, int gpu_bottom, int top, const double *rate_Bps,
                     pl_link_kind kind, const char *label) {
  char text[128], rate[PL_UNIT_TEXT_BYTES];
  double lowest = 0;
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++) {
    if (rate_Bps[i] <= 0) continue;
    put_line(d, gpu_x(c, i) + GPU_W / 2, gpu_bottom, gpu_x(c, i) + GPU_W / 2, top, kind, 2);
    if (lowest == 0 || rate_Bps[i] < lowest) lowest = rate_Bps[i];
  }
  int left = gpu_x(c, 0), width = gpu_x(c, c->wiring.n_gpus - 1) + GPU_W - left;
  put_box(d, left, top, width, BAR_H, "blank");
  put_colored_box(d, left, top, width, BAR_H, kind);
  snprintf(text, sizeof text, "%s, %s per GPU", label, pl_format_rate(lowest, rate));
  put_text(d, left + width / 2, top + 17, "small", text);
}

static int row_width(const card *c) {
  return gpu_x(c, c->wiring.n_gpus - 1) + GPU_W - gpu_x(c, 0);
}

/* Below the row of GPUs, or over the whole card when that is short. */
static int sockets_width(const card *c) {
  int n = (int)c->wiring.n_sockets, wanted = n * SOCKET_MIN + (n - 1) * BUS_W;
  return row_width(c) >= wanted ? row_width(c) : c->width - 2 * CARD_PAD;
}

static int socket_width(const card *c) {
  int n = (int)c->wiring.n_sockets;
  return (sockets_width(c) - (n - 1) * BUS_W) / n;
}

static int socket_x(const card *c, uint32_t socket) {
  return c->x + (c->width - sockets_width(c)) / 2 + (int)socket * (socket_width(c) + BUS_W);
}

static void draw_bus(const drawing *d, const card *c, uint32_t left_socket, int top) {
  char rate[PL_UNIT_TEXT_BYTES];
  int left = socket_x(c, left_socket) + socket_width(c), y = top + BAR_H / 2;
  fprintf(d->stream, "<path d=\"M%d %dH%d\" stroke=\"%s\" stroke-width=\"3\"/>\n", left, y, left + BUS_W,
          color_of(PL_LINK_CPU));
  put_text(d, left + BUS_W / 2, y - 6, "small halo", pl_format_rate(c->wiring.bus_Bps, rate));
}

/* Each socket as a box below, with a line from every GPU whose nearest it is. */
static void draw_sockets(const drawing *d, const card *c, int gpu_bottom, int top) {
  uint32_t n_sockets;
  const pl_platform_socket *sockets = pl_platform_sockets(d->platform, &n_sockets);
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++) {
    uint32_t s = c->wiring.socket[i];
    if (s == PL_NONE) continue;
    int x = gpu_x(c, i) + GPU_W / 2, left = socket_x(c, s) + 8, right = socket_x(c, s) + socket_width(c) - 8;
    put_line(d, x, gpu_bottom, x < left ? left : x > right ? right : x, top, PL_LINK_PCIE, 1.6);
  }
  for (uint32_t s = 0; s < c->wiring.n_sockets; s++) {
    const pl_platform_socket *socket = &sockets[c->wiring.sockets[s]];
    char text[96];
    snprintf(text, sizeof text, "%.28s, %u core%s", socket->cpu, socket->n_cores, socket->n_cores == 1 ? "" : "s");
    put_box(d, socket_x(c, s), top, socket_width(c), BAR_H, "blank");
    put_colored_box(d, socket_x(c, s), top, socket_width(c), BAR_H, PL_LINK_CPU);
    put_text(d, socket_x(c, s) + socket_width(c) / 2, top + 17, "small", text);
    if (s + 1 < c->wiring.n_sockets && c->wiring.bus_Bps > 0) draw_bus(d, c, s, top);
  }
}

static void draw_card(const drawing *d, const card *c) {
  const pl_outline_zone *zone = entry_of(d, c);
  draw_frame(d, c);
  int y = c->y + TITLE_H, gpu_top = y + nics_height(c);
  if (c->wiring.n_nics > 0) draw_nics(d, c, y, gpu_top);
  int below = gpu_top + GPU_H;
  int bar = below + arcs_height(c) + BAR_DROP;
  int host = c->wiring.has_switch ? bar + BAR_H + BAR_DROP : bar;
  if (c->wiring.n_sockets > 0)
    draw_sockets(d, c, below, host);
  else if (c->wiring.has_host)
    draw_bar(d, c, below, host, c->wiring.host_Bps, PL_LINK_PCIE, "PCIe and host");
  if (c->wiring.has_pairs) draw_arcs(d, c, below);
  if (c->wiring.has_switch) draw_bar(d, c, below, bar, c->wiring.switch_Bps, PL_LINK_NVLINK, "NVSwitch");
  draw_gpus(d, c, gpu_top);
  draw_title(d, c); /* last: its white rim hides the lines behind it */
  y = below + arcs_height(c) + bars_height(c) + 18;
  for (uint32_t i = 0; i < zone->n_links; i++)
    put_links(d, c->x + CARD_PAD, y + LINE_H * (int)(i + 1) - 6, &zone->links[i]);
}

/* ---- the network between the nodes ---- */

static bool is_network(const pl_outline_zone *zone) {
  return zone->node == PL_NONE && zone->n_links > 0;
}

static int count_network_lines(const drawing *d) {
  int lines = 0;
  for (uint32_t e = 0; e < d->outline->n_zones; e++)
    if (is_network(&d->outline->zones[e])) lines += (int)d->outline->zones[e].n_links;
  return lines;
}

static void draw_network(const drawing *d) {
  if (d->network_height == 0) return;
  put_box(d, MARGIN, MARGIN + 44, d->width - 2 * MARGIN, d->network_height, "network");
  put_text(d, MARGIN + CARD_PAD, MARGIN + 44 + 25, "netname", "Network");
  int line = 0, y = MARGIN + 44 + 32;
  for (uint32_t e = 0; e < d->outline->n_zones; e++) {
    const pl_outline_zone *zone = &d->outline->zones[e];
    for (uint32_t i = 0; is_network(zone) && i < zone->n_links && line < NETWORK_LINES_MAX; i++) {
      line++;
      put_links(d, MARGIN + CARD_PAD, y + LINE_H * line - 6, &zone->links[i]);
      char text[128];
      if (zone->alike > 1)
        snprintf(text, sizeof text, "in each of %u zones like %.60s", zone->alike, zone->name);
      else
        snprintf(text, sizeof text, "in %.60s", zone->name);
      put_text(d, d->width - MARGIN - CARD_PAD, y + LINE_H * line - 6, "right", text);
    }
  }
  if (count_network_lines(d) > line) put_text(d, MARGIN + CARD_PAD, y + LINE_H * (line + 1) - 6, "body", "…");
}

/* A line above each row of cards, to which their NICs rise, and one trunk that ties the rows to the network. */
static void draw_buses(const drawing *d) {
  if (d->network_height == 0 || d->n_cards == 0) return;
  int top = MARGIN + 44 + d->network_height;
  for (uint32_t i = 0; i < d->n_cards; i++) {
    int y = d->cards[i].y - BUS_H / 2;
    if (i > 0 && d->cards[i].y == d->cards[i - 1].y) continue;
    put_line(d, MARGIN + 8, y, MARGIN + 8, top, PL_LINK_FABRIC, 3);
    fprintf(d->stream, "<path d=\"M%d %dH%d\" stroke=\"%s\" stroke-width=\"3\"/>\n", MARGIN + 8, y,
            d->width - MARGIN - 8, color_of(PL_LINK_FABRIC));
  }
}

/* ---- the page ---- */

static pl_code find_cards(drawing *d, pl_error *error) {
  for (uint32_t e = 0; e < d->outline->n_zones; e++) {
    if (d->outline->zones[e].node == PL_NONE) continue;
    if (d->n_cards == CARDS_MAX) {
      d->n_hidden++;
      continue;
    }
    card *c = &d->cards[d->n_cards++];
    c->entry = e;
    PL_TRY(pl_node_wiring_find(d->platform, d->outline->zones[e].node, &c->wiring, error));
    measure_card(d, c);
  }
  return PL_OK;
}

static void place(drawing *d) {
  int lines = count_network_lines(d);
  if (lines > NETWORK_LINES_MAX) lines = NETWORK_LINES_MAX + 1;
  d->network_height = lines > 0 ? 32 + LINE_H * lines + 12 : 0;
  int x = MARGIN, y = MARGIN + 44 + d->network_height + (lines > 0 ? BUS_H : 0), row_height = 0;
  d->width = PAGE_MIN;
  for (uint32_t i = 0; i < d->n_cards; i++) {
    card *c = &d->cards[i];
    if (x > MARGIN && x + c->width > ROW_MAX) {
      x = MARGIN;
      y += row_height + GAP + BUS_H;
      row_height = 0;
    }
    c->x = x;
    c->y = y;
    x += c->width + GAP;
    if (x - GAP + 10 + MARGIN > d->width) d->width = x - GAP + 10 + MARGIN;
    if (c->height > row_height) row_height = c->height;
  }
  d->height = y + row_height + 10 + MARGIN + (d->n_hidden > 0 ? LINE_H : 0);
}

static void draw_page(const drawing *d) {
  fprintf(d->stream,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
          "font-family=\"Inter,Helvetica,Arial,sans-serif\" font-size=\"13\">\n",
          d->width, d->height, d->width, d->height);
  fputs("<style>.page{fill:#fff}.card{fill:#fff;stroke:#8b93a1;stroke-width:1.3}.stack{fill:#f4f5f7;stroke:#b9bfc9}"
        ".network{fill:#fbf3f4;stroke:#b8324a;stroke-width:1.3}.blank{fill:#fff}.gpu{fill:#eef1f5;stroke:#4a5160}"
        ".head{font-size:19px;font-weight:600;fill:#1d222b}.title{font-size:15px;font-weight:600;fill:#1d222b}"
        ".halo,.title,.badge{paint-order:stroke;stroke:#fff;stroke-width:7px;stroke-linejoin:round}.netname{font-size:"
        "15px;font-weight:600;fill:#1d222b}.badge{font-size:14px;font-weight:600;fill:#b8324a;text-anchor:end}.body{"
        "fill:#333a45}.kind{fill:#333a45;font-"
        "weight:600}"
        ".name{fill:#7a818d;font-size:12px}.right{fill:#7a818d;font-size:12px;text-anchor:end}"
        ".small{font-size:12px;fill:#1d222b;text-anchor:middle}.gpuname{font-size:12.5px;font-weight:600;fill:#1d222b;"
        "text-anchor:middle}.tiny{font-size:10px;fill:#7a818d;text-anchor:middle}</style>\n",
        d->stream);
  fprintf(d->stream, "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", d->width, d->height);
  const char *slash = strrchr(d->cluster->path, '/');
  put_text(d, MARGIN, MARGIN + 16, "head", slash != NULL ? slash + 1 : d->cluster->path);
  char text[160];
  snprintf(text, sizeof text, "%u GPU%s in %u node%s, %u directed links", d->cluster->n_devices,
           d->cluster->n_devices == 1 ? "" : "s", d->cluster->n_nodes, d->cluster->n_nodes == 1 ? "" : "s",
           d->cluster->n_links);
  put_text(d, d->width - MARGIN, MARGIN + 16, "right", text);
  draw_buses(d);
  draw_network(d);
  for (uint32_t i = 0; i < d->n_cards; i++)
    draw_card(d, &d->cards[i]);
  if (d->n_hidden > 0) {
    snprintf(text, sizeof text, "… and %u more kinds of node", d->n_hidden);
    put_text(d, MARGIN, d->height - MARGIN, "body", text);
  }
  fputs("</svg>\n", d->stream);
}

static pl_code draw(FILE *stream, const pl_platform *platform, const pl_outline *outline, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  drawing d = {.stream = stream, .platform = platform, .cluster = pl_platform_cluster(platform), .outline = outline};
  d.cards = PL_TAKE(&arena, card, CARDS_MAX);
  pl_code code = d.cards != NULL ? find_cards(&d, error) : pl_fail_memory(error, "the drawing");
  if (code == PL_OK) {
    place(&d);
    draw_page(&d);
  }
  pl_arena_release(&arena);
  return code;
}

static pl_code write_and_close(FILE *stream, const pl_platform *platform, const pl_outline *outline, const char *path,
                               pl_error *error) {
  pl_code code = draw(stream, platform, outline, error);
  bool broken = ferror(stream) != 0;
  if (fclose(stream) != 0) broken = true;
  return code == PL_OK && broken ? pl_fail(error, PL_IO, "%s: cannot be written: %s", path, strerror(errno)) : code;
}

pl_code pl_platform_svg_store(const pl_platform *platform, const pl_outline *outline, const char *path, bool force,
                              pl_error *error) {
  if (!force && access(path, F_OK) == 0) return pl_fail(error, PL_BAD_INPUT, "%s exists; --force replaces it", path);
  pl_arena arena;
  pl_arena_init(&arena, 1024);
  const char *beside = pl_arena_printf(&arena, "%s.part", path);
  FILE *stream = beside != NULL ? fopen(beside, "w") : NULL;
  pl_code code = stream == NULL ? pl_fail(error, PL_IO, "%s: %s", path, strerror(errno))
                                : write_and_close(stream, platform, outline, path, error);
  if (code == PL_OK && rename(beside, path) != 0) code = pl_fail(error, PL_IO, "%s: %s", path, strerror(errno));
  if (code != PL_OK && stream != NULL) unlink(beside);
  pl_arena_release(&arena);
  return code;
}
