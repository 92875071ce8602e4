/* See search/method.h. */
#include "search/method.h"

#include <string.h>

const pl_method *const pl_methods[] = {
    NULL,
};

const pl_method *pl_method_find(const char *name) {
  for (const pl_method *const *method = pl_methods; *method != NULL; method++)
    if (strcmp((*method)->name, name) == 0) return *method;
  return NULL;
}
