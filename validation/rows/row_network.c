/* See validation/rows/row_network.h. */
#include "validation/rows/row_network.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "validation/rows/row.h"

double pl_row_number_before(const char *text, const char *at, const char **start) {
  const char *end = at;
  while (end > text && end[-1] == ' ')
    end--;
  const char *digits = end;
  while (digits > text && (isdigit((unsigned char)digits[-1]) || digits[-1] == '.'))
    digits--;
  *start = digits < end ? digits : at;
  return digits < end ? strtod(digits, NULL) : 0;
}

/* Gb per unit at `at`, "Gb/s", "gbps", "Tbps"; 0: no unit. A small b is bits; memory sizes ("8x V100-SXM2-16GB") have a
 * large one. */
static double unit_Gb(const char *at) {
  if (strncmp(at, "Gb", 2) == 0 || strncasecmp(at, "gbps", 4) == 0) return 1;
  return strncmp(at, "Tb", 2) == 0 || strncasecmp(at, "tbps", 4) == 0 ? 1000 : 0;
}

/* The words between the separators around `at`: "Storage: 2x NDR; Compute: 8x NDR" is two clauses. */
enum { CLAUSE_BYTES = 96 };
static void copy_clause(const char *text, const char *at, char words[CLAUSE_BYTES]) {
  const char *start = at;
  while (start > text && strchr(";,+", start[-1]) == NULL)
    start--;
  size_t length = (size_t)(at - start) + strcspn(at, ";,+");
  snprintf(words, CLAUSE_BYTES, "%.*s", (int)(length < CLAUSE_BYTES ? length : CLAUSE_BYTES - 1), start);
}

static bool is_of_word(char c) {
  return isalpha((unsigned char)c) || c == '_';
}

/* "ENA", but not in "enabled"; "IB", but not in "NCCL_IB_DISABLE". */
static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = text; (at = strstr(at, word)) != NULL; at += length)
    if ((at == text || !is_of_word(at[-1])) && !is_of_word(at[length])) return true;
  return false;
}

/* Ports whose rate is that of one NIC. */
static bool names_port(const char *text) {
  static const char *const ports[] = {"InfiniBand", "RoCE", "RDMA", "Slingshot", "EDR",
                                      "HDR",        "NDR",  "XDR",  "ConnectX"};
  for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
    if (pl_row_mentions(text, ports[i])) return true;
  return has_word(text, "IB");
}

/* Whether the rate at `at` is of what joins GPUs inside a node, or of NICs that training does not use: storage's, or an
 * Ethernet beside InfiniBand. */
static bool is_of_another_link(const char *text, const char *at) {
  static const char *const others[] = {"NVLink",          "NVSwitch", "PCIe",      "xGMI",
                                       "Infinity Fabric", "Storage",  "Management"};
  char words[CLAUSE_BYTES];
  copy_clause(text, at, words);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (pl_row_mentions(words, others[i])) return true;
  return pl_row_mentions(words, "Ethernet") && !names_port(words) && names_port(text);
}

/* Gb per second of a port by the name of its generation, a word at `at`; 0: none is there. */
static double generation_Gb(const char *text, const char *at) {
  static const struct {
    const char *name;
    double rate_Gb;
  } generations[] = {{"FDR", 56},     {"EDR", 100},    {"HDR100", 100}, {"HDR200", 200}, {"HDR", 200},
                     {"NDR200", 200}, {"NDR400", 400}, {"NDR", 400},    {"XDR", 800}};
  if (at > text && isalpha((unsigned char)at[-1]) && at[-1] != 'x') return 0;
  for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++) {
    size_t length = strlen(generations[i].name);
    if (strncmp(at, generations[i].name, length) == 0 && !isalnum((unsigned char)at[length]))
      return generations[i].rate_Gb;
  }
  return 0;
}

/* "8x ConnectX-7 IB NDR" in front of the rate, in its clause, but not "8xA100". */
static double clause_count(const char *text, const char *start) {
  const char *clause = start;
  while (clause > text && strchr(";,+", clause[-1]) == NULL)
    clause--;
  for (const char *at = clause; at < start; at++) {
    const char *first, *counted = at + 1 + strspn(at + 1, " ");
    bool is_gpu = isupper((unsigned char)counted[0]) && isdigit((unsigned char)counted[1]);
    double count = strchr("xX*", *at) != NULL && !is_gpu ? pl_row_number_before(text, at, &first) : 0;
    if (count > 0) return count;
  }
  return 0;
}

/* How many NICs of the rate that ends at `at` a node has: "8x200Gb", "4 * 100Gb", "400Gb/s x 8", "per node", "per GPU",
 * "8x ConnectX-7 NDR 400Gb/s"; a thousand and more are no single NIC's. 0: not said. */
static double nic_count(const char *text, const char *start, const char *at, double rate_Gb, double n_gpus) {
  const char *times = start, *first;
  while (times > text && times[-1] == ' ')
    times--;
  double count = times > text && strchr("xX*", times[-1]) != NULL ? pl_row_number_before(text, times - 1, &first) : 0;
  if (count > 0) return count;
  char words[64];
  size_t length = strcspn(at, ";,");
  snprintf(words, sizeof words, "%.*s", (int)(length < 63 ? length : 63), at);
  for (const char *by = words; (by = strpbrk(by, "xX*")) != NULL; by++)
    if (by > words && by[-1] == ' ' && isdigit((unsigned char)by[1 + strspn(by + 1, " ")])) return strtod(by + 1, NULL);
  if (pl_row_mentions(words, "per node")) return 1;
  if (pl_row_mentions(words, "per GPU")) return n_gpus;
  count = clause_count(text, start);
  return count > 0 ? count : rate_Gb >= 1000 || pl_row_mentions(words, "EFA") ? 1 : 0; /* AWS states an instance's */
}

/* "delay 10 ms", "delay 500us". */
bool pl_row_delay_of(const char *text, double *delay_s) {
  static const struct {
    const char *unit;
    double s;
  } units[] = {{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}};
  *delay_s = 0;
  const char *at = strcasestr(text, "delay");
  if (at == NULL) return true;
  char *end;
  double value = strtod(at + strlen("delay"), &end);
  if (end == at + strlen("delay")) return false;
  end += strspn(end, " ");
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strncmp(end, units[i].unit, strlen(units[i].unit)) == 0 && value >= 0) {
      *delay_s = value * units[i].s;
      return true;
    }
  return false;
}

bool pl_row_runs_over_sockets(const char *text) {
  static const char *const words[] = {"Socket", "TCP", "Ethernet", "GbE"};
  if (pl_row_mentions(text, "NCCL_IB_DISABLE=1")) return true;
  static const char *const rdma[] = {"InfiniBand", "RoCE", "RDMA", "EFA", "Omni-Path",
                                     "Slingshot",  "NDR",  "HDR",  "EDR"};
  for (size_t i = 0; i < sizeof rdma / sizeof rdma[0]; i++)
    if (pl_row_mentions(text, rdma[i])) return false;
  if (has_word(text, "IB") || has_word(text, "NVL")) return false;
  if (has_word(text, "ENA")) return true;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    const char *at = strcasestr(text, words[i]);
    if (at != NULL && !is_of_another_link(text, at)) return true;
  }
  return false;
}

bool pl_row_names_ethernet(const char *text) {
  return pl_row_mentions(text, "Ethernet") || pl_row_mentions(text, "NCCL_IB_DISABLE=1");
}

/* The first rate in numbers, or by names of generations, that is said with a count, else the first without. */
static pl_row_rate find_rate(const char *text, double n_gpus, bool is_socket, bool by_name) {
  pl_row_rate rate = {0};
  for (const char *at = text; *at != '\0'; at++) {
    const char *start = at;
    double rate_Gb = by_name ? generation_Gb(text, at) : unit_Gb(at) * pl_row_number_before(text, at, &start);
    if (rate_Gb <= 0 || is_of_another_link(text, at)) continue;
    double count = nic_count(text, start, at, rate_Gb, n_gpus);
    if (is_socket && count == 0) count = 1; /* a node has one interface */
    if (count > 0) return (pl_row_rate){.node_GBps = rate_Gb * count / 8};
    if (rate.each_GBps == 0) rate.each_GBps = rate_Gb / 8;
  }
  return rate;
}

pl_row_rate pl_row_rate_of(const char *text, double n_gpus, bool is_socket) {
  pl_row_rate rate = find_rate(text, n_gpus, is_socket, false);
  if (rate.node_GBps == 0 && rate.each_GBps == 0) rate = find_rate(text, n_gpus, is_socket, true);
  rate.is_port = rate.each_GBps > 0 && names_port(text);
  return rate;
}
