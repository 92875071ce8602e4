/* See search/hdf5/hdf5_file.h. The innermost entry of the stack names the cause; where it quotes the operating
 * system, that quote alone is kept: the rest (buffers, offsets, times) helps nobody who reads an error line. */
#include "search/hdf5/hdf5_file.h"

#include <stdio.h>
#include <string.h>

void pl_hdf5_quiet(void) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

enum { CAUSE_BYTES = 160 };

static herr_t take_first(unsigned depth, const H5E_error2_t *entry, void *cause) {
  static const char quote[] = "error message = '";
  if (depth != 0 || entry->desc == NULL) return 0;
  const char *begin = strstr(entry->desc, quote);
  const char *end = begin ? strchr(begin + sizeof quote - 1, '\'') : NULL;
  if (end != NULL) {
    begin += sizeof quote - 1;
    snprintf(cause, CAUSE_BYTES, "%.*s", (int)(end - begin), begin);
  } else {
    snprintf(cause, CAUSE_BYTES, "%s", entry->desc);
  }
  return 0;
}

pl_code pl_hdf5_fail(const char *path, const char *what, pl_code code, pl_error *error) {
  char cause[CAUSE_BYTES] = "HDF5 gives no cause";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, cause);
  return pl_fail(error, code, "%s: %s: %s", path, what, cause);
}

hid_t pl_hdf5_create(const char *name) {
  hid_t plist = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_file_locking(plist, false, true);
  hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, plist);
  H5Pclose(plist);
  return file;
}
