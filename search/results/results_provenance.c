/* What a results file says of itself, and whether there may be one at a path (see search/results/results_file.h): no
 * HDF5 yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "search/results/results_file.h"

static void add(pl_provenance *provenance, pl_attribute attribute) {
  PL_ASSERT(provenance->n_attributes < PL_RESULTS_ATTRIBUTES);
  provenance->attributes[provenance->n_attributes++] = attribute;
}

void pl_provenance_text(pl_provenance *provenance, const char *name, const char *text, bool identifies) {
  add(provenance, (pl_attribute){.name = name, .kind = PL_ATTRIBUTE_TEXT, .identifies = identifies, .text = text});
}

void pl_provenance_integer(pl_provenance *provenance, const char *name, int64_t value, bool identifies) {
  add(provenance,
      (pl_attribute){.name = name, .kind = PL_ATTRIBUTE_INTEGER, .identifies = identifies, .integer = value});
}

void pl_provenance_number(pl_provenance *provenance, const char *name, double value, bool identifies) {
  add(provenance, (pl_attribute){.name = name, .kind = PL_ATTRIBUTE_NUMBER, .identifies = identifies, .number = value});
}

pl_code pl_results_check_absent(const char *path, bool replace, pl_error *error) {
  struct stat info;
  if (stat(path, &info) == 0) {
    if (!S_ISREG(info.st_mode)) return pl_fail(error, PL_BAD_INPUT, "%s: exists and is not a regular file", path);
    if (replace) return PL_OK;
    return pl_fail(error, PL_BAD_INPUT, "%s: exists; --resume goes on with it, --force replaces it", path);
  }
  if (errno != ENOENT) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  const char *slash = strrchr(path, '/');
  size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
  char *folder = length ? strndup(path, length) : strdup(".");
  if (folder == NULL) return pl_fail_memory(error, "a path");
  int failed = access(folder, W_OK | X_OK) == 0 ? 0 : errno;
  free(folder);
  return failed ? pl_fail(error, PL_BAD_INPUT, "%s: cannot be created there: %s", path, strerror(failed)) : PL_OK;
}
