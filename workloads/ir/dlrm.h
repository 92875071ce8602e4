/* A recommendation model as DLRM has it (Naumov et al. 2019, arXiv:1906.00091): dense features go through the bottom
 * MLP, ids through embedding tables, whose rows are added up per bag; the vectors that come out are multiplied with
 * each other, pair by pair, or put one behind the other, and the top MLP makes one number of that.
 *
 * Tables of as many rows that stand beside each other in the file are one group: a parameter [tables, rows, width], so
 * that tables can be cut over devices. */
#ifndef PL_WORKLOADS_DLRM_H
#define PL_WORKLOADS_DLRM_H

#include <stdbool.h>
#include <stdint.h>

enum { PL_DLRM_LAYERS_MAX = 32, PL_DLRM_GROUPS_MAX = 28 };

typedef struct pl_dlrm_group {
  int64_t tables, rows;
} pl_dlrm_group;

typedef struct pl_dlrm {
  int64_t width;                          /* of an embedding */
  int64_t lookups;                        /* ids in a bag */
  int32_t n_bottom, n_top;                /* layers */
  int64_t bottom[PL_DLRM_LAYERS_MAX + 1]; /* widths: of the dense features, then of each layer */
  int64_t top[PL_DLRM_LAYERS_MAX + 1];    /* of what the interaction gives, then of each layer */
  int32_t n_groups;
  pl_dlrm_group groups[PL_DLRM_GROUPS_MAX];
  bool concatenates; /* vectors are put one behind the other, not multiplied */
  bool itself;       /* vectors are multiplied with themselves too */
} pl_dlrm;

int64_t pl_dlrm_n_tables(const pl_dlrm *dlrm);
/* What the interaction gives: of v vectors (bottom MLP's and tables') the bottom MLP's, and v (v - 1) / 2 products. */
int64_t pl_dlrm_interaction_width(const pl_dlrm *dlrm);
double pl_dlrm_parameters(const pl_dlrm *dlrm);

#endif
