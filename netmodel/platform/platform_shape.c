/* See netmodel/platform/platform_shape.h. */
#include "netmodel/platform/platform_shape.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pl_code refuse(char *why, size_t size, const char *format, const char *value) {
  snprintf(why, size, format, value);
  return PL_BAD_INPUT;
}

/* A whole number of at most nine digits, blanks around it; *at moves behind it. */
static bool take_number(const char **at, uint32_t *number) {
  const char *c = *at + strspn(*at, " ");
  size_t digits = strspn(c, "0123456789");
  if (digits == 0 || digits > 9) return false;
  *number = 0;
  for (size_t i = 0; i < digits; i++)
    *number = *number * 10 + (uint32_t)(c[i] - '0');
  *at = c + digits + strspn(c + digits, " ");
  return true;
}

/* ---- radicals ---- */

static bool take_range(const char **at, uint32_t *first, uint32_t *last) {
  if (!take_number(at, first)) return false;
  *last = *first;
  if (**at != '-') return true;
  ++*at;
  return take_number(at, last);
}

pl_code pl_radical_count(const char *radical, uint32_t *n_hosts, char *why, size_t size) {
  uint64_t n = 0;
  for (const char *at = radical;; at++) {
    uint32_t first, last;
    if (!take_range(&at, &first, &last) || (*at != ',' && *at != '\0'))
      return refuse(why, size, "radical=\"%.64s\" is no list of numbers and ranges like \"0-7,9\"", radical);
    if (last < first)
      return refuse(why, size, "radical=\"%.64s\": a range ends before it begins and names no host", radical);
    n += last - first + 1;
    if (*at == '\0') break;
  }
  if (n > PL_PLATFORM_HOSTS_MAX) {
    snprintf(why, size, "radical=\"%.64s\" names %llu hosts; a platform may have %d", radical, (unsigned long long)n,
             PL_PLATFORM_HOSTS_MAX);
    return PL_UNSUPPORTED;
  }
  *n_hosts = (uint32_t)n;
  return PL_OK;
}

int pl_radical_next(const char **at, pl_radical_state *state, uint32_t *number) {
  if (!state->is_inside) {
    if (**at == '\0' || !take_range(at, &state->next, &state->last)) return false;
    if (**at == ',') ++*at;
    state->is_inside = true;
  }
  *number = state->next;
  state->is_inside = state->next++ < state->last;
  return true;
}

/* ---- topologies ---- */

/* "4,2,8": at least one number, at most PL_TOPOLOGY_LEVELS_MAX, each 1 or more; stops at ';' or the end. */
static bool take_list(const char **at, uint32_t *numbers, uint32_t *n) {
  for (*n = 0; *n < PL_TOPOLOGY_LEVELS_MAX; ++*at) {
    if (!take_number(at, &numbers[*n]) || numbers[*n] == 0) return false;
    ++*n;
    if (**at != ',') return **at == ';' || **at == '\0';
  }
  return false;
}

/* `n_lists` lists between semicolons. */
static bool take_lists(const char *text, uint32_t n_lists, uint32_t numbers[][PL_TOPOLOGY_LEVELS_MAX], uint32_t *n) {
  for (uint32_t i = 0; i < n_lists; i++) {
    if (!take_list(&text, numbers[i], &n[i])) return false;
    if (*text != (i + 1 < n_lists ? ';' : '\0')) return false;
    text += *text == ';';
  }
  return true;
}

/* Saturates at 2^62. */
static uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) || product >> 62 ? (uint64_t)1 << 62 : product;
}

static uint64_t product_of(const uint32_t *numbers, uint32_t begin, uint32_t end) {
  uint64_t product = 1;
  for (uint32_t i = begin; i < end; i++)
    product = times(product, numbers[i]);
  return product;
}

pl_code pl_fat_tree_parse(const char *parameters, pl_fat_tree_shape *shape, char *why, size_t size) {
  uint32_t numbers[4][PL_TOPOLOGY_LEVELS_MAX], n[4];
  if (!take_lists(parameters, 4, numbers, n) || n[0] != 1 || n[1] != numbers[0][0] || n[2] != n[1] || n[3] != n[1])
    return refuse(why, size,
                  "topo_parameters=\"%.64s\": a FAT_TREE has \"LEVELS;DOWN,...;UP,...;PORTS,...\", one number of 1 or "
                  "more per level and list",
                  parameters);
  shape->n_levels = numbers[0][0];
  memcpy(shape->down, numbers[1], sizeof shape->down);
  memcpy(shape->up, numbers[2], sizeof shape->up);
  memcpy(shape->ports, numbers[3], sizeof shape->ports);
  return PL_OK;
}

typedef struct shape_count {
  uint64_t hosts, switches, wires;
  uint64_t steps; /* that SimGrid takes to wire it: every node with every node of the next level */
} shape_count;

static pl_code count_fat_tree(const char *parameters, shape_count *count, char *why, size_t size) {
  pl_fat_tree_shape shape;
  PL_TRY(pl_fat_tree_parse(parameters, &shape, why, size));
  uint64_t below = count->hosts = product_of(shape.down, 0, shape.n_levels);
  for (uint32_t level = 0; level < shape.n_levels; level++) {
    uint64_t nodes = times(product_of(shape.up, 0, level + 1), product_of(shape.down, level + 1, shape.n_levels));
    count->switches += nodes;
    count->wires += times(times(below, shape.up[level]), shape.ports[level]);
    count->steps += times(below, nodes);
    below = nodes;
  }
  return PL_OK;
}

static pl_code count_torus(const char *parameters, shape_count *count, char *why, size_t size) {
  uint32_t numbers[1][PL_TOPOLOGY_LEVELS_MAX], n[1];
  if (!take_lists(parameters, 1, numbers, n))
    return refuse(why, size, "topo_parameters=\"%.64s\": a TORUS has the size of each dimension, like \"4,4,2\"",
                  parameters);
  count->hosts = product_of(numbers[0], 0, n[0]);
  count->wires = times(count->hosts, n[0]);
  return PL_OK;
}

static pl_code count_dragonfly(const char *parameters, shape_count *count, char *why, size_t size) {
  uint32_t numbers[4][PL_TOPOLOGY_LEVELS_MAX], n[4];
  if (!take_lists(parameters, 4, numbers, n) || n[0] != 2 || n[1] != 2 || n[2] != 2 || n[3] != 1)
    return refuse(
        why, size,
        "topo_parameters=\"%.64s\": a DRAGONFLY has \"GROUPS,LINKS;CHASSIS,LINKS;BLADES,LINKS;NODES\", each 1 "
        "or more",
        parameters);
  uint64_t groups = numbers[0][0], chassis = numbers[1][0], blades = numbers[2][0], nodes = numbers[3][0];
  if (groups > 1 && groups > blades)
    return refuse(why, size,
                  "topo_parameters=\"%.64s\": a DRAGONFLY has at most as many groups as blades in a chassis, because "
                  "blade j leads to group j",
                  parameters);
  count->switches = times(times(groups, chassis), blades);
  count->hosts = times(count->switches, nodes);
  uint64_t per_router = blades / 2 + chassis / 2 + 2; /* green, black and blue, each wire at one of its ends */
  count->wires = times(count->switches, per_router) + count->hosts;
  return PL_OK;
}

static pl_code check_count(const shape_count *count, uint32_t n_hosts, const char *topology, const char *parameters,
                           char *why, size_t size) {
  if (count->hosts > PL_PLATFORM_HOSTS_MAX || count->switches > PL_PLATFORM_SWITCHES_MAX ||
      count->wires > PL_PLATFORM_WIRES_MAX || count->steps > (uint64_t)1 << 34) {
    snprintf(why, size, "topo_parameters=\"%.64s\": a %s of %llu hosts, %llu switches and %llu wires is too large",
             parameters, topology, (unsigned long long)count->hosts, (unsigned long long)count->switches,
             (unsigned long long)count->wires);
    return PL_UNSUPPORTED;
  }
  if (count->hosts == n_hosts) return PL_OK;
  snprintf(why, size, "topo_parameters=\"%.64s\": this %s has %llu hosts, but the radical names %u", parameters,
           topology, (unsigned long long)count->hosts, n_hosts);
  return PL_BAD_INPUT;
}

pl_code pl_cluster_shape_check(const pl_platform_element *cluster, uint32_t *n_hosts, char *why, size_t size) {
  const char *radical = pl_platform_value(cluster, PL_ATTRIBUTE_RADICAL);
  const char *topology = pl_platform_value(cluster, PL_ATTRIBUTE_TOPOLOGY);
  const char *parameters = pl_platform_value(cluster, PL_ATTRIBUTE_TOPO_PARAMETERS);
  if (radical == NULL) return refuse(why, size, "<cluster> without %s", "radical");
  PL_TRY(pl_radical_count(radical, n_hosts, why, size));
  if (topology == NULL || strcmp(topology, "FLAT") == 0) return PL_OK;
  if (parameters == NULL) return refuse(why, size, "a %.32s <cluster> without topo_parameters", topology);
  shape_count count = {0};
  if (strcmp(topology, "FAT_TREE") == 0)
    PL_TRY(count_fat_tree(parameters, &count, why, size));
  else if (strcmp(topology, "TORUS") == 0)
    PL_TRY(count_torus(parameters, &count, why, size));
  else if (strcmp(topology, "DRAGONFLY") == 0)
    PL_TRY(count_dragonfly(parameters, &count, why, size));
  else
    return refuse(why, size, "topology=\"%.32s\" is none of FLAT, FAT_TREE, TORUS and DRAGONFLY", topology);
  return check_count(&count, *n_hosts, topology, parameters, why, size);
}
