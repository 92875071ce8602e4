/* Flat clusters in a zone tree: a star of hosts around a router, as sg_platf_new_cluster_flat of SimGrid 3.32 makes it.
 */
#include <stdio.h>
#include <string.h>

#include "netmodel/platform/platform_shape.h"
#include "netmodel/platform/platform_words.h"
#include "netmodel/platform/zone_tree_internal.h"

typedef struct pl_zone_tree tree;

static tree_zone *zone_at(const tree *t, uint32_t zone) {
  return &((tree_zone *)t->zones.items)[zone];
}

static void refuse_optional(tree *t, const pl_platform_element *element, pl_platform_attribute attribute) {
  const char *value = pl_platform_value(element, attribute);
  if (value != NULL && value[0] != '\0') tree_give_up(t, "a cluster with loopback or limiter links");
}

static void read_backbone(tree *t, const pl_platform_element *element) {
  struct tree_open *open = t->open;
  const char *rate = pl_platform_value(element, PL_ATTRIBUTE_BB_BW),
             *delay = pl_platform_value(element, PL_ATTRIBUTE_BB_LAT);
  const char *policy = pl_platform_value(element, PL_ATTRIBUTE_BB_SHARING_POLICY);
  pl_shim_link wire = {.bandwidth_Bps = 0};
  open->backbone_Bps = 0;
  if (rate != NULL && rate[0] != '\0') {
    tree_read_wire(t, rate, delay != NULL ? delay : "0", &wire);
    open->backbone_Bps = wire.bandwidth_Bps;
    open->backbone_s = wire.latency_s;
  } else if (delay != NULL) {
    tree_give_up(t, "a backbone without bandwidth");
  }
  open->backbone_is_fatpipe = policy != NULL && strcmp(policy, "FATPIPE") == 0;
  if (policy != NULL && !open->backbone_is_fatpipe && strcmp(policy, "SHARED") != 0)
    tree_give_up(t, "a strange backbone");
}

void tree_begin_cluster(tree *t, const pl_platform_element *element) {
  struct tree_open *open = t->open;
  const char *topology = pl_platform_value(element, PL_ATTRIBUTE_TOPOLOGY);
  if (topology != NULL && strcmp(topology, "FLAT") != 0) tree_give_up(t, "a cluster with a topology");
  refuse_optional(t, element, PL_ATTRIBUTE_LIMITER_LINK);
  refuse_optional(t, element, PL_ATTRIBUTE_LOOPBACK_BW);
  refuse_optional(t, element, PL_ATTRIBUTE_LOOPBACK_LAT);
  open->host = (pl_shim_host){.n_cores = tree_core_count(t, element)};
  open->link = (pl_shim_link){.is_shareable = 1};
  uint8_t is_fatpipe; /* SimGrid 3.32 makes the links of a FATPIPE cluster SHARED */
  tree_read_policy(t, pl_platform_value(element, PL_ATTRIBUTE_SHARING_POLICY), "SPLITDUPLEX", &open->is_duplex,
                   &is_fatpipe);
  tree_read_wire(t, tree_need(t, element, PL_ATTRIBUTE_BW), tree_need(t, element, PL_ATTRIBUTE_LAT), &open->link);
  tree_check_speed(t, element);
  read_backbone(t, element);
  const char *prefix = pl_platform_value(element, PL_ATTRIBUTE_PREFIX),
             *suffix = pl_platform_value(element, PL_ATTRIBUTE_SUFFIX);
  const char *router = pl_platform_value(element, PL_ATTRIBUTE_ROUTER_ID);
  if (prefix == NULL || suffix == NULL) tree_give_up(t, "a cluster without prefix or suffix");
  if (t->unknown != NULL) return;
  open->cluster_id = tree_keep(t, tree_need(t, element, PL_ATTRIBUTE_ID));
  open->radical = tree_keep(t, tree_need(t, element, PL_ATTRIBUTE_RADICAL));
  open->prefix = tree_keep(t, prefix);
  open->suffix = tree_keep(t, suffix);
  open->router = router != NULL && router[0] != '\0' ? tree_keep(t, router)
                                                     : pl_arena_printf(t->arena, "%s%s_router%s", prefix,
                                                                       tree_need(t, element, PL_ATTRIBUTE_ID), suffix);
  open->owner = OWNER_CLUSTER;
}

static void add_member(tree *t, uint32_t number) {
  struct tree_open *open = t->open;
  char link_name[NAME_BYTES], host_name[NAME_BYTES];
  int host_length = snprintf(host_name, sizeof host_name, "%s%u%s", open->prefix, number, open->suffix);
  int link_length = snprintf(link_name, sizeof link_name, "%s_link_%u", open->cluster_id, number);
  if (host_length >= NAME_BYTES || link_length >= NAME_BYTES) tree_give_up(t, "very long names");
  const char *kept = tree_keep(t, link_name);
  uint32_t link = kept != NULL ? tree_add_link(t, &open->link, kept, open->is_duplex) : PL_SHIM_NONE;
  uint32_t point = tree_add_point(t, host_name, TREE_HOST, link);
  if (link == PL_SHIM_NONE || point == PL_SHIM_NONE) return;
  open->host.name = ((tree_point *)t->points.items)[point].name;
  tree_add_host(t, &open->host, point);
}

void tree_end_cluster(tree *t) {
  struct tree_open *open = t->open;
  open->owner = OWNER_NONE;
  if (t->arena->failed || tree_open_zone(t, open->cluster_id, TREE_STAR) == NULL) return;
  open->host.zone = open->link.zone = open->zone;
  zone_at(t, open->zone)->is_duplex = open->is_duplex;
  if (open->backbone_Bps > 0) {
    pl_shim_link backbone = open->link;
    backbone.bandwidth_Bps = open->backbone_Bps;
    backbone.latency_s = open->backbone_s;
    backbone.is_fatpipe = open->backbone_is_fatpipe;
    const char *name = pl_arena_printf(t->arena, "%s_backbone", open->cluster_id);
    zone_at(t, open->zone)->backbone = name != NULL ? tree_add_link(t, &backbone, name, false) : PL_SHIM_NONE;
  }
  const char *at = open->radical;
  pl_radical_state state = {0};
  for (uint32_t number; t->unknown == NULL && !t->arena->failed && pl_radical_next(&at, &state, &number);)
    add_member(t, number);
  if (t->unknown == NULL) tree_add_point(t, open->router, TREE_ROUTER, 0);
  tree_close_zone(t);
}
