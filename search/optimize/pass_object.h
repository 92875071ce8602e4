/* Passes of the user's, as shared objects (search/optimize/pass_interface.h). */
#ifndef PL_SEARCH_PASS_OBJECT_H
#define PL_SEARCH_PASS_OBJECT_H

#include "search/optimize/pass_interface.h"
#include "search/optimize/plan_search.h"

enum { PL_PASS_MOST_OBJECTS = 16, PL_PASS_MOST_ROUNDS = 10000, PL_PASS_MOST_CHANGES = 4096 };

typedef struct pl_pass_object {
  const char *path;
  void *handle;
  const paceline_pass_interface *pass;
} pl_pass_object;

/* PL_BAD_INPUT: no shared object, without the symbol, of another version or without what a pass needs. Close it also
 * after a failure. */
pl_code pl_pass_object_open(const char *path, pl_pass_object *object, pl_error *error);
void pl_pass_object_close(pl_pass_object *object);
/* Runs its rounds on the search's plan. PL_BAD_INPUT: it proposes what cannot be. */
pl_code pl_pass_object_run(const pl_pass_object *object, pl_plan_search *search);

#endif
