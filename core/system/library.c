/* See core/system/library.h. */
#include "core/system/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool pl_library_find(const char *library, const char *name, void *function, char *reason, size_t reason_bytes) {
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *symbol = opened != NULL ? dlsym(opened, name) : NULL;
  if (symbol == NULL) {
    const char *said = dlerror();
    snprintf(reason, reason_bytes, "%s; it comes with the program: build or install both anew",
             said == NULL ? "the library is broken" : said);
  }
  /* ISO C has no cast from a pointer to an object to one to a function. */
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}
