/* See netmodel/show/platform_svg_draw.h. In a card, from top to bottom: NICs, each with a line to the PCIe switch or
 * socket that it hangs on, else to the GPUs that leave through it, GPUs, the NVLinks between them (arcs for pairs, a
 * bar for a switch), the PCIe switches that GPUs share, the CPU sockets (else a bar for PCIe and the host, where GPUs
 * use it), title and list of wires. The title stands below, since above it lines to the network would cross it.
 * Everything is placed from the figures below; text is never measured, so it stands where its length does not matter.
 */
#include <stdio.h>

#include "core/base/units.h"
#include "netmodel/show/platform_svg_draw.h"

enum {
  CARD_PAD = 22,
  CARD_MIN = 520,
  CARD_TOP = 20,
  GPU_W = 62,
  GPU_H = 40,
  GPU_GAP = 16,
  TITLE_H = 50,
  NIC_H = 26,
  NIC_RISE = 44, /* between NICs and GPUs, for the lines */
  BAR_DROP = 26, /* between GPUs and the bar below */
  BAR_H = 26,
  SOCKET_MIN = 190,
  BUS_W = 72, /* between two sockets, for the bus and its rate */
  ARC_MAX = 96
};

static const pl_outline_zone *entry_of(const pl_svg *d, const pl_svg_card *c) {
  return &d->outline->zones[c->entry];
}

static int gpu_x(const pl_svg_card *c, uint32_t i) {
  int row = (int)c->wiring.n_gpus * (GPU_W + GPU_GAP) - GPU_GAP;
  return c->x + (c->width - row) / 2 + (int)i * (GPU_W + GPU_GAP);
}

/* Spread over the row of GPUs: as many NICs as GPUs stand exactly above them. */
static int nic_x(const pl_svg_card *c, uint32_t nic) {
  int row = (int)c->wiring.n_gpus * (GPU_W + GPU_GAP), n = (int)c->wiring.n_nics;
  return gpu_x(c, 0) - GPU_GAP / 2 + row * (2 * (int)nic + 1) / (2 * n);
}

static int nics_height(const pl_svg_card *c) {
  return c->wiring.n_nics > 0 ? NIC_H + NIC_RISE : 10;
}

static int arcs_height(const pl_svg_card *c) {
  return c->wiring.has_pairs ? ARC_MAX + 8 : 0;
}

static bool has_host_row(const pl_svg_card *c) {
  return c->wiring.has_host || c->wiring.n_sockets > 0;
}

/* Drawn where the GPUs of every switch stand side by side. */
static bool has_switch_row(const pl_svg_card *c) {
  const pl_node_wiring *w = &c->wiring;
  uint32_t runs = 0;
  for (uint32_t i = 0; i < w->n_gpus; i++)
    runs += w->pcie_switch[i] != PL_NONE && (i == 0 || w->pcie_switch[i] != w->pcie_switch[i - 1]);
  return w->n_pcie_switches > 0 && runs == w->n_pcie_switches;
}

static int bars_height(const pl_svg_card *c) {
  return (has_switch_row(c) ? BAR_DROP + BAR_H : 0) + (c->wiring.has_switch ? BAR_DROP + BAR_H : 0) +
         (has_host_row(c) ? BAR_DROP + BAR_H : 0);
}

void pl_svg_card_measure(const pl_svg *d, pl_svg_card *c) {
  int row = (int)c->wiring.n_gpus * (GPU_W + GPU_GAP) + 2 * CARD_PAD;
  c->width = row > CARD_MIN ? row : CARD_MIN;
  c->height = CARD_TOP + TITLE_H + nics_height(c) + GPU_H + arcs_height(c) + bars_height(c) + 18 +
              PL_SVG_LINE_H * (int)entry_of(d, c)->n_links + 10;
}

static void draw_frame(const pl_svg *d, const pl_svg_card *c) {
  const pl_outline_zone *zone = entry_of(d, c);
  if (zone->alike > 1) {
    pl_svg_box(d, c->x + 10, c->y + 10, c->width, c->height, "stack");
    pl_svg_box(d, c->x + 5, c->y + 5, c->width, c->height, "stack");
  }
  pl_svg_box(d, c->x, c->y, c->width, c->height, "card");
}

/* How many zones around `zone` are folded into the one that is drawn. */
static uint32_t alike_around(const pl_svg *d, const pl_outline_zone *zone) {
  uint32_t product = 1;
  for (uint32_t e = zone->parent; e != PL_NONE; e = d->outline->zones[e].parent)
    product *= d->outline->zones[e].alike;
  return product;
}

static void draw_title(const pl_svg *d, const pl_svg_card *c, int y) {
  const pl_outline_zone *zone = entry_of(d, c);
  char text[256];
  snprintf(text, sizeof text, "%.60s%s%.60s", zone->name, zone->alike > 1 ? " … " : "",
           zone->alike > 1 ? zone->last_name : "");
  pl_svg_text(d, c->x + CARD_PAD, y + 24, "title", text);
  uint32_t around = alike_around(d, zone);
  if (zone->alike > 1 || around > 1) {
    snprintf(text, sizeof text, around > 1 ? "%u such nodes in each of %u zones" : "%u such nodes", zone->alike,
             around);
    pl_svg_text(d, c->x + c->width - CARD_PAD, y + 24, "badge", text);
  }
  int used = 0;
  for (uint32_t g = 0; g < zone->n_gpus && used >= 0 && used < 200; g++) {
    char memory[PL_UNIT_TEXT_BYTES];
    const pl_device_profile *profile = &d->cluster->profiles[zone->gpus[g].profile];
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%u × %.60s, %s", g > 0 ? " + " : "",
                     zone->gpus[g].count, profile->name, pl_format_bytes(profile->memory_bytes, memory));
  }
  pl_svg_text(d, c->x + CARD_PAD, y + 43, "body", text);
}

/* The row of switches, or of sockets, below the GPUs: what a NIC that is not wired to its GPUs alone hangs on. */
static bool nic_is_below(const pl_svg_card *c, uint32_t nic) {
  return c->wiring.n_sockets > 0 &&
         ((has_switch_row(c) && c->wiring.nic_switch[nic] != PL_NONE) || c->wiring.nic_socket[nic] != PL_NONE);
}

static bool shares_place(const pl_node_wiring *w, uint32_t nic, uint32_t other) {
  return w->nic_switch[nic] == w->nic_switch[other] && w->nic_socket[nic] == w->nic_socket[other];
}

/* Between two GPUs of its switch or socket, so that the line crosses none; NICs of one switch side by side. */
static int nic_channel(const pl_svg_card *c, uint32_t nic) {
  const pl_node_wiring *w = &c->wiring;
  uint32_t first = PL_NONE, n_gpus = 0, before = 0, n_nics = 0;
  for (uint32_t i = 0; i < w->n_gpus; i++) {
    bool is_here =
        w->nic_switch[nic] != PL_NONE ? w->pcie_switch[i] == w->nic_switch[nic] : w->socket[i] == w->nic_socket[nic];
    if (is_here && first == PL_NONE) first = i;
    n_gpus += is_here;
  }
  for (uint32_t n = 0; n < w->n_nics; n++) {
    if (n < nic && shares_place(w, nic, n)) before++;
    n_nics += shares_place(w, nic, n);
  }
  uint32_t gap = n_gpus > 1 ? before * (n_gpus - 1) / n_nics : 0, in_gap = 0, index = 0;
  for (uint32_t n = 0; n < n_nics; n++) {
    if ((n_gpus > 1 ? n * (n_gpus - 1) / n_nics : 0) != gap) continue;
    index += n < before;
    in_gap++;
  }
  int middle = n_gpus > 1 ? gpu_x(c, first + gap + 1) - GPU_GAP / 2 : gpu_x(c, first) - GPU_GAP / 2;
  return middle + (GPU_GAP - 4) * (2 * (int)index + 1 - (int)in_gap) / (2 * (int)in_gap);
}

/* How far aside of the channel at `x` the line ends: the box below one GPU is no wider than that. */
static int nic_landing(const pl_svg_card *c, uint32_t nic, int x) {
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++)
    if (c->wiring.nic_switch[nic] != PL_NONE && c->wiring.pcie_switch[i] == c->wiring.nic_switch[nic])
      return x < gpu_x(c, i) ? gpu_x(c, i) + 8 - x : 0;
  return 0;
}

/* From each NIC to the switch or socket that it hangs on; behind everything that is drawn later. */
static void draw_nic_ways(const pl_svg *d, const pl_svg_card *c, int top, int gpu_top, int switch_top, int socket_top) {
  for (uint32_t n = 0; n < c->wiring.n_nics; n++) {
    if (!nic_is_below(c, n)) continue;
    int x = nic_channel(c, n), end = c->wiring.nic_switch[n] != PL_NONE ? switch_top : socket_top;
    pl_svg_line(d, nic_x(c, n), top + NIC_H, x, gpu_top, PL_LINK_PCIE, 1.6);
    pl_svg_line(d, x, gpu_top, x, gpu_top + GPU_H, PL_LINK_PCIE, 1.6);
    pl_svg_line(d, x, gpu_top + GPU_H, x + nic_landing(c, n, x), end, PL_LINK_PCIE, 1.6);
  }
}

static void draw_nics(const pl_svg *d, const pl_svg_card *c, int top, int gpu_top) {
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++)
    if (c->wiring.nic[i] != PL_NONE && !nic_is_below(c, c->wiring.nic[i]))
      pl_svg_line(d, gpu_x(c, i) + GPU_W / 2, gpu_top, nic_x(c, c->wiring.nic[i]), top + NIC_H, PL_LINK_PCIE, 1.6);
  for (uint32_t n = 0; n < c->wiring.n_nics; n++) {
    int width = c->wiring.n_nics > 1 ? 64 : 120;
    char rate[PL_UNIT_TEXT_BYTES], text[64];
    pl_format_rate(d->cluster->links[c->wiring.nics[n]].capacity_Bps, rate);
    snprintf(text, sizeof text, "%s%s", c->wiring.n_nics > 1 ? "" : "NIC ", rate);
    pl_svg_line(d, nic_x(c, n), top, nic_x(c, n), c->y - PL_SVG_BUS_H / 2, PL_LINK_NIC, 2);
    pl_svg_colored_box(d, nic_x(c, n) - width / 2, top, width, NIC_H, PL_LINK_NIC);
    pl_svg_text(d, nic_x(c, n), top + 17, "small", text);
  }
}

static void draw_gpus(const pl_svg *d, const pl_svg_card *c, int top) {
  uint32_t first = d->cluster->nodes[entry_of(d, c)->node].first_device;
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++) {
    char text[32];
    snprintf(text, sizeof text, "GPU %u", i);
    pl_svg_box(d, gpu_x(c, i), top, GPU_W, GPU_H, "gpu");
    pl_svg_text(d, gpu_x(c, i) + GPU_W / 2, top + 17, "gpuname", text);
    snprintf(text, sizeof text, "%.9s", d->cluster->devices[first + i].name);
    pl_svg_text(d, gpu_x(c, i) + GPU_W / 2, top + 32, "tiny", text);
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
static void draw_arcs(const pl_svg *d, const pl_svg_card *c, int top) {
  const pl_node_wiring *w = &c->wiring;
  int reach_max;
  double widest = widest_pair(w, &reach_max);
  for (uint32_t i = 0; i < w->n_gpus; i++)
    for (uint32_t j = i + 1; j < w->n_gpus; j++) {
      if (w->pair_Bps[i][j] <= 0) continue;
      int reach = (int)(j - i), depth = 14 + (ARC_MAX - 14) * reach / reach_max;
      int x1 = gpu_x(c, i) + GPU_W / 2 + 4 * reach, x2 = gpu_x(c, j) + GPU_W / 2 - 4 * reach;
      fprintf(d->stream, "<path d=\"M%d %dA%d %d 0 0 0 %d %d\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n",
              x1, top, (x2 - x1) / 2, depth, x2, top, pl_svg_color(PL_LINK_NVLINK),
              0.8 + 2.6 * w->pair_Bps[i][j] / widest);
    }
}

static void draw_bar(const pl_svg *d, const pl_svg_card *c, int gpu_bottom, int top, const double *rate_Bps,
                     pl_link_kind kind, const char *label) {
  char text[128], rate[PL_UNIT_TEXT_BYTES];
  double lowest = 0;
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++) {
    if (rate_Bps[i] <= 0) continue;
    pl_svg_line(d, gpu_x(c, i) + GPU_W / 2, gpu_bottom, gpu_x(c, i) + GPU_W / 2, top, kind, 2);
    if (lowest == 0 || rate_Bps[i] < lowest) lowest = rate_Bps[i];
  }
  int left = gpu_x(c, 0), width = gpu_x(c, c->wiring.n_gpus - 1) + GPU_W - left;
  pl_svg_box(d, left, top, width, BAR_H, "blank");
  pl_svg_colored_box(d, left, top, width, BAR_H, kind);
  snprintf(text, sizeof text, "%s, %s per GPU", label, pl_format_rate(lowest, rate));
  pl_svg_text(d, left + width / 2, top + 17, "small", text);
}

static int row_width(const pl_svg_card *c) {
  return gpu_x(c, c->wiring.n_gpus - 1) + GPU_W - gpu_x(c, 0);
}

/* Below the row of GPUs, or over the whole card when that is short. */
static int sockets_width(const pl_svg_card *c) {
  int n = (int)c->wiring.n_sockets, wanted = n * SOCKET_MIN + (n - 1) * BUS_W;
  return row_width(c) >= wanted ? row_width(c) : c->width - 2 * CARD_PAD;
}

static int socket_width(const pl_svg_card *c) {
  int n = (int)c->wiring.n_sockets;
  return (sockets_width(c) - (n - 1) * BUS_W) / n;
}

static int socket_x(const pl_svg_card *c, uint32_t socket) {
  return c->x + (c->width - sockets_width(c)) / 2 + (int)socket * (socket_width(c) + BUS_W);
}

static void draw_bus(const pl_svg *d, const pl_svg_card *c, uint32_t left_socket, int top) {
  char rate[PL_UNIT_TEXT_BYTES];
  int left = socket_x(c, left_socket) + socket_width(c), y = top + BAR_H / 2;
  fprintf(d->stream, "<path d=\"M%d %dH%d\" stroke=\"%s\" stroke-width=\"3\"/>\n", left, y, left + BUS_W,
          pl_svg_color(PL_LINK_CPU));
  pl_svg_text(d, left + BUS_W / 2, y - 6, "small halo", pl_format_rate(c->wiring.bus_Bps, rate));
}

/* From `x` to the nearest place on the upper edge of a socket. */
static void draw_to_socket(const pl_svg *d, const pl_svg_card *c, uint32_t socket, int x, int bottom, int top,
                           double thickness) {
  int left = socket_x(c, socket) + 8, right = socket_x(c, socket) + socket_width(c) - 8;
  pl_svg_line(d, x, bottom, x < left ? left : x > right ? right : x, top, PL_LINK_PCIE, thickness);
}

/* Below the GPUs that share it, with a line from each and one to their socket. */
static void draw_pcie_switch(const pl_svg *d, const pl_svg_card *c, uint32_t index, int gpu_bottom, int top,
                             int socket_top) {
  const pl_node_wiring *w = &c->wiring;
  uint32_t first = 0, end;
  while (w->pcie_switch[first] != index)
    first++;
  for (end = first; end < w->n_gpus && w->pcie_switch[end] == index; end++)
    pl_svg_line(d, gpu_x(c, end) + GPU_W / 2, gpu_bottom, gpu_x(c, end) + GPU_W / 2, top, PL_LINK_PCIE, 1.6);
  int left = gpu_x(c, first), width = gpu_x(c, end - 1) + GPU_W - left;
  char rate[PL_UNIT_TEXT_BYTES], text[64];
  pl_format_rate(d->cluster->links[w->pcie_switches[index]].capacity_Bps, rate);
  snprintf(text, sizeof text, "%s%s", end - first > 1 ? "PCIe " : "", rate);
  draw_to_socket(d, c, w->socket[first], left + width / 2, top + BAR_H, socket_top, 2.4);
  pl_svg_box(d, left, top, width, BAR_H, "blank");
  pl_svg_colored_box(d, left, top, width, BAR_H, PL_LINK_PCIE);
  pl_svg_text(d, left + width / 2, top + 17, "small", text);
}

/* Each socket as a box below, with a line from every switch, or GPU without one, whose nearest it is. */
static void draw_sockets(const pl_svg *d, const pl_svg_card *c, int gpu_bottom, int switch_top, int top) {
  uint32_t n_sockets;
  const pl_platform_socket *sockets = pl_platform_sockets(d->platform, &n_sockets);
  bool with_switches = has_switch_row(c);
  for (uint32_t s = 0; with_switches && s < c->wiring.n_pcie_switches; s++)
    draw_pcie_switch(d, c, s, gpu_bottom, switch_top, top);
  for (uint32_t i = 0; i < c->wiring.n_gpus; i++) {
    if (c->wiring.socket[i] == PL_NONE || (with_switches && c->wiring.pcie_switch[i] != PL_NONE)) continue;
    draw_to_socket(d, c, c->wiring.socket[i], gpu_x(c, i) + GPU_W / 2, gpu_bottom, top, 1.6);
  }
  for (uint32_t s = 0; s < c->wiring.n_sockets; s++) {
    const pl_platform_socket *socket = &sockets[c->wiring.sockets[s]];
    char text[96];
    snprintf(text, sizeof text, "%.28s, %u core%s", socket->cpu, socket->n_cores, socket->n_cores == 1 ? "" : "s");
    pl_svg_box(d, socket_x(c, s), top, socket_width(c), BAR_H, "blank");
    pl_svg_colored_box(d, socket_x(c, s), top, socket_width(c), BAR_H, PL_LINK_CPU);
    pl_svg_text(d, socket_x(c, s) + socket_width(c) / 2, top + 17, "small", text);
    if (s + 1 < c->wiring.n_sockets && c->wiring.bus_Bps > 0) draw_bus(d, c, s, top);
  }
}

void pl_svg_card_draw(const pl_svg *d, const pl_svg_card *c) {
  const pl_outline_zone *zone = entry_of(d, c);
  draw_frame(d, c);
  int y = c->y + CARD_TOP, gpu_top = y + nics_height(c);
  int below = gpu_top + GPU_H;
  int bar = below + arcs_height(c) + BAR_DROP;
  int switches = c->wiring.has_switch ? bar + BAR_H + BAR_DROP : bar;
  int host = has_switch_row(c) ? switches + BAR_H + BAR_DROP : switches;
  draw_nic_ways(d, c, y, gpu_top, switches, host);
  if (c->wiring.n_nics > 0) draw_nics(d, c, y, gpu_top);
  if (c->wiring.n_sockets > 0)
    draw_sockets(d, c, below, switches, host);
  else if (c->wiring.has_host)
    draw_bar(d, c, below, host, c->wiring.host_Bps, PL_LINK_PCIE, "PCIe and host");
  if (c->wiring.has_pairs) draw_arcs(d, c, below);
  if (c->wiring.has_switch) draw_bar(d, c, below, bar, c->wiring.switch_Bps, PL_LINK_NVLINK, "NVSwitch");
  draw_gpus(d, c, gpu_top);
  y = below + arcs_height(c) + bars_height(c) + 8;
  draw_title(d, c, y);
  y += TITLE_H + 10;
  for (uint32_t i = 0; i < zone->n_links; i++)
    pl_svg_links(d, c->x + CARD_PAD, y + PL_SVG_LINE_H * (int)(i + 1) - 6, &zone->links[i]);
}
