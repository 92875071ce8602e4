/* See core/system/library.h. */
#include "core/system/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* A library that ours needs is named first by the loader, as ours is where that is what is missing. */
static bool is_of_system(const char *said, const char *library) {
  const char *end = strstr(said, ": cannot open shared object file");
  if (end == NULL) return false;
  const char *name = end;
  while (name > said && name[-1] != '/')
    name--;
  return (size_t)(end - name) != strlen(library) || strncmp(name, library, strlen(library)) != 0;
}

static void explain(const char *said, const char *library, char *reason, size_t reason_bytes) {
  if (said != NULL && is_of_system(said, library))
    snprintf(
        reason, reason_bytes,
        "%s, which %s needs; it is the system's: install it (with the package that has it, as where the program was "
        "built) or name its folder in LD_LIBRARY_PATH",
        said, library);
  else
    snprintf(reason, reason_bytes, "%s; it comes with the program: build or install both anew",
             said == NULL ? "the library is broken" : said);
}

bool pl_library_find(const char *library, const char *name, void *function, char *reason, size_t reason_bytes) {
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *symbol = opened != NULL ? dlsym(opened, name) : NULL;
  if (symbol == NULL) explain(dlerror(), library, reason, reason_bytes);
  /* ISO C has no cast from a pointer to an object to one to a function. */
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}
