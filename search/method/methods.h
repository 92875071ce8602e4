/* The methods that search/method/method.c lists; each is a file method_NAME.c. */
#ifndef PL_SEARCH_METHODS_H
#define PL_SEARCH_METHODS_H

#include "search/method/method.h"

extern const pl_method pl_method_amp, pl_method_anneal, pl_method_bound, pl_method_exhaustive, pl_method_megatron,
    pl_method_placement, pl_method_random;

#endif
