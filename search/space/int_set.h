/* A set of integers as users write it: "4", "1,2,4", "1-8", "1,4-8". Caller's storage, no memory of its own. */
#ifndef PL_SEARCH_INT_SET_H
#define PL_SEARCH_INT_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

enum { PL_INT_SET_RANGES = 32 };

/* Inclusive ranges in the order in which they were written. No range = every value. */
typedef struct pl_int_set {
  uint32_t n_ranges;
  int32_t lowest[PL_INT_SET_RANGES], highest[PL_INT_SET_RANGES];
} pl_int_set;

/* Values outside [lowest, highest] are refused. `what` names the option in messages: "--pp". */
pl_code pl_int_set_parse(const char *text, const char *what, int32_t lowest, int32_t highest, pl_int_set *set,
                         pl_error *error);
bool pl_int_set_has(const pl_int_set *set, int32_t value);
/* Largest value of a set that is not empty. */
int32_t pl_int_set_highest(const pl_int_set *set);

#endif
