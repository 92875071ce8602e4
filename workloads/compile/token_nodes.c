/* See workloads/compile/token_nodes.h.
 *
 * Some of a token's k experts are on a given one of N nodes with probability 1 - (1 - 1/N)^k. If they are out of M of G
 * groups of neighbours, drawn evenly, a node that holds j of these M groups has j/M of the experts in question; of the
 * G/N groups to a node j are among the M with probability C(G/N, j) C(G - G/N, M - j) / C(G, M). Groups and nodes of
 * which neither is a multiple of the other: as without groups. */
#include "workloads/compile/token_nodes.h"

#include <math.h>

/* n choose k, as far as double goes. */
static double choose(int64_t n, int64_t k) {
  double product = 1;
  for (int64_t i = 1; i <= k; i++)
    product *= (double)(n - k + i) / (double)i;
  return k < 0 || k > n ? 0 : product;
}

static double meets_node(const pl_token_choice *choice, int64_t n) {
  int64_t groups = choice->n_groups, chosen = choice->chosen_groups;
  double k = (double)choice->k, met = 0;
  if (groups <= 1 || (groups % n != 0 && n % groups != 0)) return 1 - pow(1 - 1.0 / (double)n, k);
  if (n > groups) /* several nodes to a group */
    return (double)chosen / (double)groups * (1 - pow(1 - (double)groups / (double)(n * chosen), k));
  int64_t own = groups / n;
  for (int64_t j = 1; j <= own && j <= chosen; j++)
    met += choose(own, j) * choose(groups - own, chosen - j) / choose(groups, chosen) *
           (1 - pow(1 - (double)j / (double)chosen, k));
  return met;
}

double pl_token_copies_sent(const pl_token_choice *choice, uint32_t n_nodes) {
  if (n_nodes <= 1) return 1;
  double elsewhere = 1 - 1.0 / n_nodes;
  return (n_nodes - 1) * meets_node(choice, n_nodes) / ((double)choice->k * elsewhere);
}
