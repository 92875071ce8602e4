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

/* How many NICs of the rate that ends at `at` a node has: "8x200Gb", "4 * 100Gb", "400Gb/s x 8", "per node", "per GPU";
 * a thousand and more are no single NIC's. 0: not said. */
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
  return rate_Gb >= 1000 ? 1 : 0;
}

/* Whether the rate at `at` is of what joins GPUs inside a node, or of NICs that training does not use. */
static bool is_of_another_link(const char *text, const char *at) {
  static const char *const others[] = {"NVLink",          "NVSwitch", "PCIe",      "xGMI",
                                       "Infinity Fabric", "Storage",  "Management"};
  const char *start = at;
  while (start > text && strchr(";,+", start[-1]) == NULL)
    start--;
  char words[96];
  size_t length = (size_t)(at - start) + strcspn(at, ";,+");
  snprintf(words, sizeof words, "%.*s", (int)(length < sizeof words ? length : sizeof words - 1), start);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (pl_row_mentions(words, others[i])) return true;
  return false;
}

/* "ENA", but not in "enabled". */
static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = text; (at = strstr(at, word)) != NULL; at += length)
    if ((at == text || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[length])) return true;
  return false;
}

bool pl_row_runs_over_sockets(const char *text) {
  static const char *const words[] = {"Socket", "TCP", "Ethernet", "GbE"};
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

double pl_row_node_rate_GBps(const char *text, double n_gpus, bool is_socket) {
  for (const char *at = text; *at != '\0'; at++) {
    double unit = unit_Gb(at);
    if (unit <= 0 || is_of_another_link(text, at)) continue;
    const char *start;
    double rate_Gb = unit * pl_row_number_before(text, at, &start);
    double count = rate_Gb > 0 ? nic_count(text, start, at, rate_Gb, n_gpus) : 0;
    if (is_socket && rate_Gb > 0 && count == 0) count = 1; /* a node has one interface */
    if (count > 0) return rate_Gb * count / 8;
  }
  return 0;
}
