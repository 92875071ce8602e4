/* See netmodel/make/platform_make.h. */
#include "netmodel/make/platform_make.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"

enum { KIND_BYTES = 256, NAMES_MAX = 128 };

typedef struct request {
  const char *kind, *nodes, *gpus_per_node, *fabric, *pod_nodes, *oversubscription, *nic_rate, *delay, *transport,
      *sockets, *device, *output;
  bool force, list;
  pl_error error;
} request;

enum {
  KEY_FORCE = 'f',
  KEY_FABRIC = 256,
  KEY_GPUS_PER_NODE,
  KEY_POD_NODES,
  KEY_OVERSUBSCRIPTION,
  KEY_NIC_RATE,
  KEY_DELAY,
  KEY_SOCKETS,
  KEY_DEVICE,
  KEY_TRANSPORT,
  KEY_LIST
};

static const struct argp_option options[] = {
    {"nodes", 'n', "N", 0, "Number of nodes (default: as the machine is usually described, mostly 1)", 0},
    {"gpus-per-node", KEY_GPUS_PER_NODE, "N", 0,
     "Only the first N GPUs of every node: a job that leaves the others idle (default: all)", 0},
    {"fabric", KEY_FABRIC, "rail|fat-tree|single", 0,
     "Network between nodes (default: rail for DGX, single for the others)", 0},
    {"pod-nodes", KEY_POD_NODES, "K", 0,
     "Nodes under one group of leaf switches (default: by machine, e.g. 20 for dgx-a100)", 0},
    {"oversubscription", KEY_OVERSUBSCRIPTION, "R", 0,
     "Node-facing over spine-facing capacity of a leaf, at least 1 (default 1)", 0},
    {"nic-rate", KEY_NIC_RATE, "RATE", 0, "Rate of every NIC per direction, e.g. 200Gbps or 25GBps", 0},
    {"delay", KEY_DELAY, "TIME", 0,
     "What a message between nodes takes beside the machines' own latencies, e.g. 10ms: nodes far apart", 0},
    {"transport", KEY_TRANSPORT, "rdma|socket", 0,
     "How NCCL reaches other nodes: over TCP sockets all GPUs of a node share one interface (default rdma)", 0},
    {"sockets", KEY_SOCKETS, "always|never|auto", 0,
     "CPU sockets as hosts, with their PCIe uplinks and the bus between them (default auto: up to 256 nodes)", 0},
    {"device", KEY_DEVICE, "PROFILE", 0, "Another GPU in the same machine, e.g. A100-SXM4-40GB", 0},
    {"output", 'o', "FILE", 0, "Where to write; - is standard output (default)", 0},
    {"force", KEY_FORCE, NULL, 0, "Replace an existing file", 0},
    {"list", KEY_LIST, NULL, 0, "List the machines and stop", 0},
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state) {
  request *r = state->input;
  switch (key) {
  case 'n':
    r->nodes = argument;
    return 0;
  case KEY_GPUS_PER_NODE:
    r->gpus_per_node = argument;
    return 0;
  case KEY_FABRIC:
    r->fabric = argument;
    return 0;
  case KEY_POD_NODES:
    r->pod_nodes = argument;
    return 0;
  case KEY_OVERSUBSCRIPTION:
    r->oversubscription = argument;
    return 0;
  case KEY_NIC_RATE:
    r->nic_rate = argument;
    return 0;
  case KEY_DELAY:
    r->delay = argument;
    return 0;
  case KEY_TRANSPORT:
    r->transport = argument;
    return 0;
  case KEY_SOCKETS:
    r->sockets = argument;
    return 0;
  case KEY_DEVICE:
    r->device = argument;
    return 0;
  case 'o':
    r->output = argument;
    return 0;
  case KEY_FORCE:
    r->force = true;
    return 0;
  case KEY_LIST:
    r->list = true;
    return 0;
  case ARGP_KEY_ARG:
    if (r->kind != NULL) pl_fail(&r->error, PL_BAD_INPUT, "one KIND only, not also '%s'", argument);
    r->kind = argument;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {
    options,
    parse_option,
    "KIND",
    "Writes a SimGrid platform file of N machines.\v"
    "KIND is a machine (--list shows them) or a mixture such as p3.8xlarge:3,g4dn.12xlarge:1, whose counts take the "
    "place "
    "of --nodes. Figures, their sources and the way the network is modelled are in the written file.\n\n"
    "Example:\n  paceline platform make dgx-h100 --nodes 64 -o h100-512.xml",
    NULL,
    NULL,
    NULL};

static pl_code unknown_kind(const char *name, pl_error *error) {
  char text[PL_WORDS_BYTES];
  char hint[PL_WORDS_HINT_BYTES];
  const char *names[NAMES_MAX + 1] = {NULL};
  for (uint32_t i = 0; i < NAMES_MAX && pl_node_kind_at(i) != NULL; i++)
    names[i] = pl_node_kind_at(i)->name;
  return pl_fail(error, PL_BAD_INPUT, "'%s' is not a machine; known are %s%s", name,
                 pl_words_list(names, text, sizeof text), pl_words_hint(names, name, hint));
}

static pl_code check_device(const char *name, pl_error *error) {
  if (name == NULL || pl_device_speed(name) != NULL) return PL_OK;
  char text[PL_WORDS_BYTES];
  char hint[PL_WORDS_HINT_BYTES];
  const char *names[NAMES_MAX + 1] = {NULL};
  for (uint32_t i = 0; i < NAMES_MAX && pl_device_name_at(i) != NULL; i++)
    names[i] = pl_device_name_at(i);
  return pl_fail(error, PL_BAD_INPUT, "--device %s is unknown; known are %s%s", name,
                 pl_words_list(names, text, sizeof text), pl_words_hint(names, name, hint));
}

static pl_code parse_fabric(const char *text, pl_fabric *fabric, pl_error *error) {
  for (int f = PL_FABRIC_RAIL; f <= PL_FABRIC_SINGLE; f++)
    if (strcmp(text, pl_fabric_name((pl_fabric)f)) == 0) {
      *fabric = (pl_fabric)f;
      return PL_OK;
    }
  return pl_fail(error, PL_BAD_INPUT, "--fabric %s: must be rail, fat-tree or single", text);
}

static pl_code parse_sockets(const char *text, pl_sockets *sockets, pl_error *error) {
  for (int s = PL_SOCKETS_AUTO; s <= PL_SOCKETS_NEVER; s++)
    if (strcmp(text, pl_sockets_name((pl_sockets)s)) == 0) {
      *sockets = (pl_sockets)s;
      return PL_OK;
    }
  return pl_fail(error, PL_BAD_INPUT, "--sockets %s: must be always, never or auto", text);
}

/* "NAME" or "NAME:COUNT,NAME:COUNT..." */
static pl_code parse_kinds(const request *r, pl_platform_plan *plan, pl_error *error) {
  char text[KIND_BYTES];
  if (strlen(r->kind) >= sizeof text) return pl_fail(error, PL_BAD_INPUT, "KIND is too long: '%.40s...'", r->kind);
  strcpy(text, r->kind); /* NOLINT: length checked above */
  bool mixture = strchr(text, ':') != NULL || strchr(text, ',') != NULL;
  if (mixture && r->nodes != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--nodes %s: '%s' already has counts", r->nodes, r->kind);
  for (char *rest = text, *part; (part = strsep(&rest, ",")) != NULL;) {
    char *count = strchr(part, ':');
    if (count != NULL) *count++ = '\0';
    const pl_node_kind *kind = pl_node_kind_find(part);
    if (kind == NULL) return unknown_kind(part, error);
    if (plan->n_parts == PL_PLAN_PARTS_MAX)
      return pl_fail(error, PL_BAD_INPUT, "'%s' has more than %d machines", r->kind, PL_PLAN_PARTS_MAX);
    const char *number = mixture ? count : r->nodes;
    if (mixture && count == NULL) return pl_fail(error, PL_BAD_INPUT, "'%s' lacks a count: write %s:N", r->kind, part);
    int64_t n = kind->default_nodes;
    char what[64];
    snprintf(what, sizeof what, "nodes of %.40s", part);
    if (number != NULL) PL_TRY(pl_parse_integer(number, mixture ? what : "--nodes", 1, PL_PLAN_NODES_MAX, &n, error));
    plan->parts[plan->n_parts].kind = kind;
    plan->parts[plan->n_parts++].n_nodes = (uint32_t)n;
  }
  return PL_OK;
}

static pl_code parse_delay(const char *text, uint32_t *delay_ns, pl_error *error) {
  double delay_s;
  PL_TRY(pl_parse_time(text, "--delay", &delay_s, error));
  if (!(delay_s >= 0 && delay_s <= 1e-9 * PL_PLAN_DELAY_NS_MAX))
    return pl_fail(error, PL_BAD_INPUT, "--delay %s: must be from 0 to 2s", text);
  *delay_ns = (uint32_t)(delay_s * 1e9 + 0.5);
  return PL_OK;
}

static pl_code parse_numbers(const request *r, pl_platform_plan *plan, pl_error *error) {
  if (r->gpus_per_node != NULL) {
    int64_t n;
    PL_TRY(pl_parse_integer(r->gpus_per_node, "--gpus-per-node", 1, PL_NODE_GPUS_MAX, &n, error));
    plan->gpus_per_node = (uint32_t)n;
  }
  if (r->pod_nodes != NULL) {
    int64_t k;
    PL_TRY(pl_parse_integer(r->pod_nodes, "--pod-nodes", 1, PL_PLAN_POD_NODES_MAX, &k, error));
    plan->pod_nodes = (uint32_t)k;
  }
  if (r->oversubscription != NULL) {
    PL_TRY(pl_parse_number(r->oversubscription, "--oversubscription", &plan->oversubscription, error));
    if (!(plan->oversubscription >= 1 && plan->oversubscription <= 1000))
      return pl_fail(error, PL_BAD_INPUT, "--oversubscription %s: must be from 1 (non-blocking) to 1000",
                     r->oversubscription);
  }
  if (r->nic_rate != NULL) {
    double rate_Bps;
    PL_TRY(pl_parse_rate(r->nic_rate, "--nic-rate", &rate_Bps, error));
    if (!(rate_Bps >= 1e6 && rate_Bps <= 1e14))
      return pl_fail(error, PL_BAD_INPUT, "--nic-rate %s: must be from 1MBps to 100TBps", r->nic_rate);
    plan->nic_GBps = rate_Bps / 1e9;
  }
  return r->delay != NULL ? parse_delay(r->delay, &plan->delay_ns, error) : PL_OK;
}

static pl_code parse_transport(const char *text, pl_transport *transport, pl_error *error) {
  int found = pl_words_find(pl_transport_names, text);
  if (found < 0) return pl_fail(error, PL_BAD_INPUT, "--transport %s: must be rdma or socket", text);
  *transport = (pl_transport)found;
  return PL_OK;
}

/* An option that would change nothing is refused rather than ignored. */
static pl_code check_leaves(const request *r, const pl_platform_plan *plan, pl_error *error) {
  uint32_t n_nodes = pl_platform_plan_nodes(plan);
  if (plan->fabric == PL_FABRIC_SINGLE) {
    if (r->pod_nodes != NULL)
      return pl_fail(error, PL_BAD_INPUT, "--pod-nodes %s: --fabric single has no pods", r->pod_nodes);
    if (r->oversubscription != NULL)
      return pl_fail(error, PL_BAD_INPUT, "--oversubscription %s: --fabric single has no uplinks", r->oversubscription);
  }
  if (plan->transport == PL_TRANSPORT_SOCKET && n_nodes == 1)
    return pl_fail(error, PL_BAD_INPUT, "--transport socket: one node has no other to reach; say --nodes N");
  if (plan->transport != PL_TRANSPORT_SOCKET && plan->delay_ns > 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "--delay %s: collectives over distant InfiniBand or RoCE were not measured; say --transport socket",
                   r->delay);
  if (plan->transport == PL_TRANSPORT_SOCKET && plan->fabric == PL_FABRIC_RAIL)
    return pl_fail(error, PL_BAD_INPUT, "--fabric rail: over sockets a node has one interface and no rails");
  if (plan->oversubscription > 1 && n_nodes <= plan->pod_nodes)
    return pl_fail(error, PL_BAD_INPUT,
                   "--oversubscription %s: %u nodes fit into one pod of %u and use no uplink; lower --pod-nodes",
                   r->oversubscription, n_nodes, plan->pod_nodes);
  return PL_OK;
}

/* Only what the user asked for, so that the same request always writes the same file. */
static const char *record_command(const request *r, pl_arena *arena) {
  const char *const names[] = {"nodes",    "gpus-per-node", "fabric",    "pod-nodes", "oversubscription",
                               "nic-rate", "delay",         "transport", "sockets",   "device"};
  const char *const values[] = {r->nodes,    r->gpus_per_node, r->fabric,    r->pod_nodes, r->oversubscription,
                                r->nic_rate, r->delay,         r->transport, r->sockets,   r->device};
  const char *command = pl_arena_printf(arena, "paceline platform make %s", r->kind);
  for (size_t i = 0; i < sizeof names / sizeof names[0] && command != NULL; i++) {
    const char *value = values[i] != NULL ? pl_command_quote(values[i], arena) : NULL;
    if (value != NULL) command = pl_arena_printf(arena, "%s --%s %s", command, names[i], value);
  }
  return arena->failed ? NULL : command;
}

static pl_code make_plan(const request *r, pl_platform_plan *plan, pl_arena *arena, pl_error *error) {
  enum { GROUP_NODES = 32 };
  *plan = (pl_platform_plan){.oversubscription = 1, .device = r->device};
  if (r->kind == NULL) return pl_fail(error, PL_BAD_INPUT, "which machine? --list shows them");
  PL_TRY(parse_kinds(r, plan, error));
  PL_TRY(check_device(r->device, error));
  const pl_node_kind *kind = plan->parts[0].kind;
  PL_ASSERT(kind != NULL);
  plan->fabric = kind->pod_nodes > 0 && plan->n_parts == 1 ? PL_FABRIC_RAIL : PL_FABRIC_SINGLE;
  if (r->sockets != NULL) PL_TRY(parse_sockets(r->sockets, &plan->sockets, error));
  if (r->transport != NULL) PL_TRY(parse_transport(r->transport, &plan->transport, error));
  if (plan->transport == PL_TRANSPORT_SOCKET) plan->fabric = PL_FABRIC_SINGLE; /* no rails: a node has one interface */
  if (r->fabric != NULL) PL_TRY(parse_fabric(r->fabric, &plan->fabric, error));
  plan->pod_nodes = plan->fabric != PL_FABRIC_SINGLE && kind->pod_nodes > 0 ? kind->pod_nodes : GROUP_NODES;
  PL_TRY(parse_numbers(r, plan, error));
  PL_TRY(check_leaves(r, plan, error));
  plan->command = record_command(r, arena);
  if (plan->command == NULL) return pl_fail_memory(error, "the command");
  return pl_platform_plan_check(plan, error);
}

pl_code pl_platform_make_file(const pl_platform_plan *plan, const char *path, bool force, pl_error *error) {
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, path, force, error));
  pl_platform_write(plan, file.stream);
  return pl_output_file_close(&file, PL_OK, error);
}

pl_code pl_platform_make_text(const char *kind, char **text, size_t *size, pl_error *error) {
  const request r = {.kind = kind};
  pl_platform_plan plan;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = make_plan(&r, &plan, &arena, error);
  FILE *stream = code == PL_OK ? open_memstream(text, size) : NULL;
  if (stream != NULL) pl_platform_write(&plan, stream);
  bool is_written = stream != NULL && !ferror(stream);
  if ((stream == NULL || fclose(stream) != 0 || !is_written) && code == PL_OK)
    code = pl_fail_memory(error, "the platform");
  pl_arena_release(&arena);
  return code;
}

static void print_list(void) {
  for (uint32_t i = 0; pl_node_kind_at(i) != NULL; i++) {
    const pl_node_kind *kind = pl_node_kind_at(i);
    printf("%-14s %2u x %-15s %s\n", kind->name, kind->n_gpus, kind->device, kind->title);
  }
}

static pl_code write_plan(const request *r, pl_arena *arena, pl_error *error) {
  pl_platform_plan plan;
  PL_TRY(make_plan(r, &plan, arena, error));
  if (r->output != NULL && strcmp(r->output, "-") != 0) {
    PL_TRY(pl_platform_make_file(&plan, r->output, r->force, error));
    pl_command_print_written(r->output, NULL);
    return PL_OK;
  }
  pl_platform_write(&plan, stdout);
  return PL_OK;
}

int pl_platform_make_run(int argc, char **argv) {
  static const char name[] = "platform make";
  request r = {0};
  pl_command_line_parse(name, &argp, argc, argv, false, &r, &r.error);
  if (r.error.code != PL_OK) return pl_command_report(name, &r.error);
  if (r.list) {
    print_list();
    return pl_command_finish(name, 0);
  }
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = write_plan(&r, &arena, &r.error);
  pl_arena_release(&arena);
  return code != PL_OK ? pl_command_report(name, &r.error) : pl_command_finish(name, 0);
}
