/* The machines behind a row (see validation/rows/row.h).
 *
 * `gpu` names the device; the machine around it is the vendor's reference machine of that GPU unless `interconnect` or
 * `gpu` name another; rates that `interconnect` states ("800Gbps per node", "8x200Gb") replace the reference's.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/words.h"
#include "validation/rows/row.h"
#include "validation/rows/row_network.h"

/* First match wins: every word of `words` (separated by '+') must be in gpu or interconnect. Without a kind: a GPU that
 * none of ours stands for, and what is nearest (its figures by NVIDIA's data sheets). */
static const struct {
  const char *words, *kind, *device;
} machines[] = {
    {"H100+NVL", NULL, "H100-PCIe-80GB (400 W, 94GB, 3.9TB/s)"},
    {"H200+NVL", NULL, "H200-SXM5-141GB (600 W)"},
    {"GB300", "gb200-nvl72", "GB300"},
    {"GB200", "gb200-nvl72", NULL},
    {"B300", "dgx-b200", "B300"},
    {"B200", "dgx-b200", NULL},
    {"GH200", "gh200-quad", NULL},
    {"H200", "dgx-h100", "H200-SXM5-141GB"},
    {"H800", "hgx-h800", NULL},
    {"H100+PCIe", "pcie5-server", NULL},
    {"H100+EFA", "p5.48xlarge", NULL},
    {"H100", "dgx-h100", NULL},
    {"A800", "hgx-a800", NULL},
    {"A100+PCIe+40GB", "pcie4-server", "A100-PCIe-40GB"},
    {"A100+PCIe", "pcie4-server", NULL}, /* also "A100 80GB PCIe", as the driver calls it */
    {"A100+Omni-Path", "jean-zay-a100", NULL},
    {"A100+EFA+80GB", "p4d.24xlarge", "A100-SXM4-80GB"},
    {"A100+EFA", "p4d.24xlarge", NULL},
    {"A100+40GB", "dgx-a100", "A100-SXM4-40GB"},
    /* Of 2020, when the DGX A100 had 40 GB per GPU. */
    {"A100 (DGX-A100)", "dgx-a100", "A100-SXM4-40GB"},
    {"A100", "dgx-a100", NULL},
    {"V100+DGX-2", "dgx-2", NULL},
    {"V100+HC2", "hc2", NULL},
    {"V100+p3.2xlarge", "p3.2xlarge", NULL},
    {"V100+p3.8xlarge", "p3.8xlarge", NULL},
    {"V100+p3.16xlarge", "p3.16xlarge", NULL},
    {"V100+16GB+cube mesh", "v100-cube-1ib", NULL},
    {"V100+cube mesh", "v100-cube-1ib", "V100-SXM2-32GB"},
    {"V100+16GB", "dgx-1v", "V100-SXM2-16GB"},
    {"V100", "dgx-1v", NULL}, /* 16 of them in a node: see find_machine */
    {"T4", "g4dn.12xlarge", NULL},
    {"L40", "pcie4-server", "L40S"},
    {"A6000", "pcie4-server", "RTX-A6000"},
    {"A40", "pcie4-server", "A40"},
    {"A10G", "g5.48xlarge", NULL},
    {"A10", "pcie4-server", "A10"},
    {"RTX 6000 Ada", "pcie4-server", "RTX-6000-Ada"},
    {"RTX 4090", "pcie4-server", "RTX-4090"}, /* alone: see find_machine */
    {"RTX 3090", "pcie4-server", "RTX-3090"},
    {"L4", "pcie4-server", "L4"},
    {"TITAN", "hc1", NULL},
    /* LiBai's page: "1-GPU rates are consistent with V100"; OneFlow's published machine of that time, with GPUs of 32
     * GB: what ran there needs more than 16 for its tensors. */
    {"not stated", "v100-cube-1ib", "V100-SXM2-32GB"},
};

/* Whether `gpu` has the name of a device, with or without blanks and hyphens in it. The name begins where a word does,
 * or behind a small letter ("8xA100"), and no digit follows: "80GB 300 W" is no GB300, an L40 no L4. */
static bool names_device(const char *gpu, const char *name) {
  for (const char *start = gpu; *start != '\0'; start++) {
    if (start > gpu && isalnum((unsigned char)start[-1]) && !islower((unsigned char)start[-1])) continue;
    if (strchr(" -", *start) != NULL) continue;
    const char *at = start, *wanted = name;
    while (*wanted != '\0' && *at != '\0') {
      if (strchr(" -", *wanted) != NULL) {
        wanted++;
      } else if (strchr(" -", *at) != NULL) {
        at++;
      } else if (tolower((unsigned char)*at++) != tolower((unsigned char)*wanted++)) {
        break;
      } else if (*wanted == '\0' && !isdigit((unsigned char)*at)) {
        return true;
      }
    }
  }
  return false;
}

/* Without blanks and hyphens: "40 GB", "40-GB". */
static void squeeze(const char *text, char *plain, size_t size) {
  size_t n = 0;
  for (; *text != '\0' && n + 1 < size; text++)
    if (*text != ' ' && *text != '-') plain[n++] = *text;
  plain[n] = '\0';
}

/* Sizes of memory also without their B: "A100-40G". Not in the network's words, where "40Gb" is a rate. */
static bool gpu_mentions(const char *gpu, const char *word) {
  if (pl_row_mentions(gpu, word)) return true;
  size_t length = strlen(word);
  if (length < 3 || strcmp(word + length - 2, "GB") != 0) return false;
  const char *at = gpu;
  while ((at = strchr(at, word[0])) != NULL && strncasecmp(at, word, length - 1) != 0)
    at++;
  return at != NULL && !isalpha((unsigned char)at[length - 1]);
}

/* Whether a word belongs to the GPU and not to what stands around it: its board, its size of memory ("40Gb/s" is
 * none). */
static bool is_of_gpu(const char *word) {
  size_t length = strlen(word);
  return strcmp(word, "PCIe") == 0 || strcmp(word, "NVL") == 0 || (length > 2 && strcmp(word + length - 2, "GB") == 0);
}

/* The device, the first word, and what is said of it in `gpu`; what stands around them there or in `interconnect`. */
static bool names_all(const pl_measured_row *row, const char *words) {
  char gpu[128], word[32], plain[32];
  squeeze(row->gpu, gpu, sizeof gpu);
  for (const char *at = words; *at != '\0';) {
    size_t length = strcspn(at, "+");
    snprintf(word, sizeof word, "%.*s", (int)length, at);
    squeeze(word, plain, sizeof plain);
    bool is_named = at == words ? names_device(row->gpu, word) : gpu_mentions(gpu, plain);
    bool is_around = at != words && !is_of_gpu(word) && pl_row_mentions(row->interconnect, word);
    if (!is_named && !is_around) return false;
    at += length + (at[length] == '+');
  }
  return true;
}

/* The word that a row of the table begins with: the device. */
static const char *device_word(size_t i, char word[32]) {
  snprintf(word, 32, "%.*s", (int)strcspn(machines[i].words, "+"), machines[i].words);
  return word;
}

static bool are(const char *a, const char *b, const char *one, const char *other) {
  return (strcmp(a, one) == 0 && strcmp(b, other) == 0) || (strcmp(a, other) == 0 && strcmp(b, one) == 0);
}

/* Names of one device: "A100 (DGX-A100)" is an A100, the GPU of a GH200 an H100, and "A10G" has A10 in it. */
static bool is_same_device(const char *a, const char *b) {
  if (are(a, b, "GH200", "H100") || are(a, b, "A10G", "A10")) return true;
  const char *shorter = strlen(a) < strlen(b) ? a : b, *longer = shorter == a ? b : a;
  size_t length = strlen(shorter);
  return strncmp(shorter, longer, length) == 0 && !isalnum((unsigned char)longer[length]);
}

/* Whether something stands on either side of "&" or " + " that does not merely connect. */
static bool joins_another(const char *gpu) {
  static const char *const wires[] = {"NVLink", "NVSwitch", "PCIe", "InfiniBand", "RoCE", "EFA"};
  const char *plus = strstr(gpu, " + "), *and = strchr(gpu, '&'), *behind = plus != NULL ? plus + 3 : and;
  if (behind == NULL) return false;
  behind += strspn(behind, "& ");
  for (size_t i = 0; i < sizeof wires / sizeof wires[0]; i++)
    if (strncasecmp(behind, wires[i], strlen(wires[i])) == 0) return false;
  return true;
}

/* The first two kinds of GPUs that a cell names; `second` is "" where it names one or none. Whatever stands for a GPU
 * is looked for, and what stands between two: "V100 + K80" has one that nobody here knows. */
static void find_kinds(const char *gpu, char first[32], char second[32]) {
  char word[32];
  first[0] = second[0] = '\0';
  for (size_t i = 0; i < sizeof machines / sizeof machines[0] && second[0] == '\0'; i++) {
    bool is_device = strcmp(device_word(i, word), "not stated") != 0;
    if (!is_device || !names_device(gpu, word)) continue;
    if (first[0] == '\0')
      memcpy(first, word, sizeof word);
    else if (!is_same_device(first, word))
      memcpy(second, word, sizeof word);
  }
  if (first[0] != '\0' && second[0] == '\0' && joins_another(gpu)) memcpy(second, "another", sizeof "another");
}

bool pl_row_gpu_is_mixed(const char *gpu) {
  char first[32], second[32];
  find_kinds(gpu, first, second);
  return second[0] != '\0';
}

/* How many of each there are and what connects them no cell says. */
static pl_code refuse_mixed(const pl_measured_row *row, pl_error *error) {
  char first[32], second[32];
  find_kinds(row->gpu, first, second);
  if (second[0] == '\0') return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "gpu: '%.60s' names %s and %s: how many of each, and what connects them, says a platform file, in "
                 "column 'platform' or by --platform",
                 row->gpu, first, second);
}

/* Cards whose driver offers no access to a peer's memory over PCIe (NVIDIA/nccl, issue 1127: RTX 3090;
 * NVIDIA/nccl-tests, issue 117: RTX 4090). */
static bool is_geforce(const char *device) {
  return device != NULL && (strcmp(device, "RTX-3090") == 0 || strcmp(device, "RTX-4090") == 0);
}

/* "NVLink", but not "PCIe, no NVLink". */
static bool is_bridged(const char *interconnect) {
  return pl_row_mentions(interconnect, "NVLink") && !pl_row_mentions(interconnect, "no NVLink") &&
         !pl_row_mentions(interconnect, "without NVLink");
}

static pl_code find_machine(const pl_measured_row *row, pl_platform_plan *plan, pl_error *error) {
  PL_TRY(refuse_mixed(row, error));
  for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
    if (!names_all(row, machines[i].words)) continue;
    if (machines[i].kind == NULL)
      return pl_fail(error, PL_UNSUPPORTED,
                     "gpu: '%.60s' has no profile; nearest is what the column could say instead: %s", row->gpu,
                     machines[i].device);
    /* Of the machines with V100s one has 16. */
    bool sixteen = strcmp(machines[i].kind, "dgx-1v") == 0 && row->gpus_per_node == 16;
    plan->parts[0].kind = pl_node_kind_find(sixteen ? "dgx-2" : machines[i].kind);
    plan->device = machines[i].device;
    if (plan->parts[0].kind == NULL)
      return pl_fail(error, PL_UNSUPPORTED, "machine: no '%s' among the machines of platform make", machines[i].kind);
    if (row->n_gpus > 1 && is_geforce(plan->device))
      return pl_fail(
          error, PL_UNSUPPORTED,
          "machine: %s do not reach each other's memory, and none of platform make exchanges through the host's; "
          "the column `platform` may name a file of yours",
          plan->device);
    if (row->n_gpus > 1 && strcmp(plan->parts[0].kind->name, "pcie4-server") == 0 && is_bridged(row->interconnect))
      return pl_fail(error, PL_UNSUPPORTED, "machine: cards with NVLink bridges are not among those of platform make");
    if (plan->device != NULL && pl_device_speed(plan->device) == NULL)
      return pl_fail(error, PL_UNSUPPORTED, "machine: no device profile of %s", plan->device);
    return PL_OK;
  }
  char text[PL_WORDS_BYTES];
  pl_word_list known = pl_word_list_begin(text, sizeof text);
  for (uint32_t i = 0; pl_device_name_at(i) != NULL; i++)
    pl_word_list_add(&known, pl_device_name_at(i));
  return pl_fail(error, PL_UNSUPPORTED, "unknown GPU: '%.60s'; known are %s", row->gpu, pl_word_list_end(&known));
}

const char *pl_row_device_named(const char *gpu) {
  if (gpu[0] == '\0') return NULL;
  if (pl_device_speed(gpu) != NULL) return gpu;
  const pl_measured_row row = {.gpu = gpu, .interconnect = ""};
  pl_platform_plan plan = {0};
  pl_error error = PL_ERROR_INIT;
  if (find_machine(&row, &plan, &error) != PL_OK) return NULL;
  return plan.device != NULL ? plan.device : plan.parts[0].kind->device;
}

double pl_row_power_W(const pl_measured_row *row) {
  if (row->power_w > 0) return row->power_w;
  for (const char *at = row->gpu; (at = strchr(at, 'W')) != NULL; at++) {
    const char *start;
    double power_W = isalnum((unsigned char)at[1]) ? 0 : pl_row_number_before(row->gpu, at, &start);
    if (power_W > 0) return power_W;
  }
  return 0;
}

/* "H100 96GB", "H100 (95 GiB)": sizes of HBM are powers of two, whatever the unit is called. */
double pl_row_memory_bytes(const pl_measured_row *row) {
  for (const char *at = row->gpu; (at = strchr(at, 'G')) != NULL; at++) {
    const char *start;
    bool size = strncmp(at, "GB", 2) == 0 || strncmp(at, "GiB", 3) == 0;
    double number = size ? pl_row_number_before(row->gpu, at, &start) : 0;
    if (number > 0) return number * 1024 * 1024 * 1024;
  }
  return 0;
}

double pl_row_bandwidth_Bps(const pl_measured_row *row) {
  const char *at = strcasestr(row->gpu, "TB/s"), *start;
  return at != NULL ? pl_row_number_before(row->gpu, at, &start) * 1e12 : 0;
}

/* Nodes of the machine's size; a job smaller than a node has the first GPUs of one. The racks of NVL72 are used by
 * jobs in blocks of 64 (16 trays), as NVIDIA's own recipes do. */
static pl_code count_nodes(const pl_measured_row *row, pl_platform_plan *plan, pl_error *error) {
  const pl_node_kind *kind = plan->parts[0].kind;
  int64_t per_node = row->gpus_per_node > 0 ? row->gpus_per_node : kind->n_gpus;
  if (kind->n_gpus > 16) per_node = row->n_gpus > 64 && row->n_gpus % 64 == 0 ? 64 : kind->n_gpus;
  if (per_node > kind->n_gpus)
    return pl_fail(error, PL_UNSUPPORTED, "machine: %" PRId64 " GPUs per node; %s has %u", per_node, kind->name,
                   kind->n_gpus);
  if (row->n_gpus < per_node) per_node = row->n_gpus;
  if (row->n_gpus % per_node != 0 || row->n_gpus / per_node > PL_PLAN_NODES_MAX)
    return pl_fail(error, PL_UNSUPPORTED, "machine: %" PRId64 " GPUs are no whole number of nodes of %" PRId64,
                   row->n_gpus, per_node);
  plan->parts[0].n_nodes = (uint32_t)(row->n_gpus / per_node);
  plan->gpus_per_node = per_node == kind->n_gpus ? 0 : (uint32_t)per_node;
  return PL_OK;
}

/* The first GPUs of a machine reach the network through its first NICs. */
static uint32_t n_nics_used(const pl_node_kind *kind, uint32_t n_gpus) {
  uint32_t used = (kind->n_nics * n_gpus + kind->n_gpus - 1) / kind->n_gpus;
  return used > 0 ? used : 1;
}

/* The rate that the row states, shared out over the NICs that are used. One that is not said to be of a node or of each
 * NIC is the machine's own, or a port's. */
static pl_code take_rate(const pl_measured_row *row, const pl_node_kind *kind, uint32_t n_gpus, bool is_socket,
                         pl_platform_plan *plan, pl_error *error) {
  enum { TRAY_GPUS = 4 }; /* of a rack, whose nodes are what tables count NICs of */
  bool is_rack = kind->n_gpus > 16;
  pl_row_rate rate = pl_row_rate_of(row->interconnect, is_rack ? TRAY_GPUS : n_gpus, is_socket);
  if (is_rack) rate.node_GBps *= (double)n_gpus / TRAY_GPUS;
  /* Beside InfiniBand that is not used: the machine's NICs say nothing of it. */
  if (is_socket && rate.node_GBps == 0 && rate.each_GBps == 0 && pl_row_names_ethernet(row->interconnect))
    return pl_fail(error, PL_UNSUPPORTED, "not stated: the rate of an Ethernet, as in '25 Gb/s Ethernet per node'");
  bool is_own = rate.each_GBps == kind->nic_GBps || rate.each_GBps == kind->n_nics * kind->nic_GBps;
  bool is_ports = rate.is_port && rate.each_GBps <= 2 * kind->nic_GBps; /* more is a node's */
  if (rate.each_GBps > 0 && !is_own && !is_ports)
    return pl_fail(error, PL_UNSUPPORTED,
                   "interconnect: %g Gb/s, of a node or of each NIC? ('%g Gb/s per node', '%ux%gGb'; %s has %ux%gGb)",
                   8 * rate.each_GBps, 8 * rate.each_GBps, kind->n_nics, 8 * rate.each_GBps, kind->name, kind->n_nics,
                   8 * kind->nic_GBps);
  plan->nic_GBps = rate.node_GBps / (is_socket ? 1 : n_nics_used(kind, n_gpus));
  if (rate.each_GBps > 0 && !is_own) plan->nic_GBps = rate.each_GBps;
  if (plan->nic_GBps == kind->nic_GBps) plan->nic_GBps = 0;
  return PL_OK;
}

/* Distant or throttled networks are TCP's: no other entry of the collective profile was measured over them. */
static pl_code take_delay(const pl_measured_row *row, bool is_socket, pl_platform_plan *plan, pl_error *error) {
  double delay_s;
  if (!pl_row_delay_of(row->interconnect, &delay_s))
    return pl_fail(error, PL_UNSUPPORTED, "interconnect: 'delay' without a time ('delay 10 ms')");
  if (delay_s > 1e-9 * PL_PLAN_DELAY_NS_MAX)
    return pl_fail(error, PL_UNSUPPORTED, "interconnect: a delay of %g s; 2 s at most", delay_s);
  if (delay_s > 0 && !is_socket)
    return pl_fail(error, PL_UNSUPPORTED, "interconnect: a delay of %g ms over what? only TCP is known ('10 Gb/s TCP')",
                   1e3 * delay_s);
  plan->delay_ns = (uint32_t)(delay_s * 1e9 + 0.5);
  return PL_OK;
}

pl_code pl_row_cluster(const pl_measured_row *row, pl_platform_plan *plan, char name[PL_ROW_PLATFORM_BYTES],
                       pl_error *error) {
  *plan = (pl_platform_plan){.n_parts = 1, .oversubscription = 1, .sockets = PL_SOCKETS_NEVER};
  if (row->n_gpus == 0) return pl_fail(error, PL_UNSUPPORTED, "not stated: n_gpus");
  PL_TRY(find_machine(row, plan, error));
  PL_TRY(count_nodes(row, plan, error));
  const pl_node_kind *kind = plan->parts[0].kind;
  plan->fabric = kind->pod_nodes > 0 ? PL_FABRIC_RAIL : PL_FABRIC_SINGLE;
  plan->pod_nodes = kind->pod_nodes > 0 ? kind->pod_nodes : 32;
  uint32_t n_gpus = plan->gpus_per_node > 0 ? plan->gpus_per_node : kind->n_gpus;
  bool is_networked = plan->parts[0].n_nodes > 1 && kind->n_nics > 0;
  bool is_socket = is_networked && pl_row_runs_over_sockets(row->interconnect);
  static const char *const denies_ib[] = {"NCCL_IB_DISABLE=1", NULL};
  if (is_networked && !is_socket && pl_row_says_one_of(row, denies_ib))
    return pl_fail(error, PL_UNSUPPORTED,
                   "notes: 'NCCL_IB_DISABLE=1': what is used instead goes into `interconnect`, as in '25 Gb/s Ethernet "
                   "per node'");
  if (is_networked) PL_TRY(take_rate(row, kind, n_gpus, is_socket, plan, error));
  if (is_networked) PL_TRY(take_delay(row, is_socket, plan, error));
  if (is_socket) {
    plan->transport = PL_TRANSPORT_SOCKET;
    plan->fabric = PL_FABRIC_SINGLE;
  }
  if (plan->parts[0].n_nodes > 1 && kind->n_nics == 0)
    return pl_fail(error, PL_UNSUPPORTED, "machine: the network between the nodes of %s is not known", kind->name);
  snprintf(name, PL_ROW_PLATFORM_BYTES, "%s --nodes %u --gpus-per-node %u%s%s", kind->name, plan->parts[0].n_nodes,
           plan->gpus_per_node > 0 ? plan->gpus_per_node : kind->n_gpus, plan->device != NULL ? " --device " : "",
           plan->device != NULL ? plan->device : "");
  size_t used = strlen(name);
  if (plan->nic_GBps > 0) snprintf(name + used, PL_ROW_PLATFORM_BYTES - used, " --nic-rate %gGBps", plan->nic_GBps);
  used = strlen(name);
  if (is_socket) snprintf(name + used, PL_ROW_PLATFORM_BYTES - used, " --transport socket");
  used = strlen(name);
  if (plan->delay_ns > 0) snprintf(name + used, PL_ROW_PLATFORM_BYTES - used, " --delay %gms", 1e-6 * plan->delay_ns);
  if (pl_platform_plan_check(plan, error) != PL_OK) return PL_UNSUPPORTED;
  return PL_OK;
}
