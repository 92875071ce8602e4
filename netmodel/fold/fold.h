/* Folding: interchangeable devices, links and transfers form classes, so that one member of each can stand for all.
 *
 * The classes are the coarsest equitable partition that refines the given start colours (colour refinement over
 * communicators): every device of a class takes part, with the same roles, in equally many transfers of each class;
 * every link of a class is crossed, with the same weights, by equally many transfers of each class; every transfer of a
 * class has equally many members of each class per role and crosses equally many links of each class per weight. In a
 * max-min fluid network with ticks such classes move in step, so the quotient (netmodel/fold/quotient.h), an ordinary
 * smaller problem, gives the same dates.
 *
 * Start colours must tell apart whatever may make two things behave differently: for a device its program, durations
 * and memory; for a link capacity and policy; for a transfer its operations, sizes, latency, rate cap (FATPIPE bounds
 * included) and sharing weight.
 */
#ifndef PL_NETMODEL_FOLD_H
#define PL_NETMODEL_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/transfer.h"

typedef struct pl_fold_member {
  uint32_t device;
  uint32_t role; /* members with different roles are not interchangeable: 0 sender, 1 receiver; 0 for all of a symmetric
                    collective */
} pl_fold_member;

/* One transfer pattern: members and the shared links that it crosses. */
typedef struct pl_fold_transfer {
  uint64_t colour;
  uint32_t first_member, n_members; /* into members */
  uint32_t first_use, n_uses;       /* into uses */
} pl_fold_transfer;

typedef struct pl_fold_problem {
  uint32_t n_devices, n_links, n_transfers;
  const uint64_t *device_colour;
  const uint64_t *link_colour;
  const pl_fold_transfer *transfers;
  const pl_fold_member *members;
  const pl_link_use *uses;
} pl_fold_problem;

/* A partition of n things: class of each, and per class its first member and its size. Classes are numbered by first
 * member. */
typedef struct pl_partition {
  uint32_t *class_of;
  uint32_t *first;
  uint32_t *size;
  uint32_t n_classes;
} pl_partition;

/* Equal colours, equal class. O(n); memory from `arena`. False: no memory. */
bool pl_partition_of_colours(const uint64_t *colour, uint32_t n, pl_arena *arena, pl_partition *partition);

/* Links that no transfer crosses are all in one class each colour; they play no part. */
typedef struct pl_fold {
  pl_partition devices, links, transfers;
  uint32_t n_rounds;
} pl_fold;

/* O(incidences * rounds). The result is verified exactly (hashes only propose it): should two hashes collide,
 * refinement is repeated with another seed. Memory from `arena`. */
pl_code pl_fold_refine(const pl_fold_problem *problem, pl_arena *arena, pl_fold *fold, pl_error *error);
/* Everything in a class of its own: what --no-fold uses. */
pl_code pl_fold_identity(const pl_fold_problem *problem, pl_arena *arena, pl_fold *fold, pl_error *error);
/* The exact check: O(incidences * log). */
bool pl_fold_is_equitable(const pl_fold_problem *problem, const pl_fold *fold, pl_arena *arena);

#endif
