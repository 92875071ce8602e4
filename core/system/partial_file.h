/* A file under construction: it stands beside its place as PLACE.partial-PID-letters until it is whole, and a run that
 * is killed leaves it there. Who makes it holds a lock on it (flock), so that the next one at that place can tell what
 * is left over, and removes it: process numbers tell nothing about other machines and containers that share the folder.
 */
#ifndef PL_CORE_PARTIAL_FILE_H
#define PL_CORE_PARTIAL_FILE_H

#include <stdbool.h>

typedef struct pl_partial_file {
  char *name;      /* NULL: there is none */
  int descriptor;  /* holds the lock; open for writing, as any new file with the rights of one */
  bool is_unnamed; /* nothing has that name before it is published */
} pl_partial_file;

/* 0, or an errno. Left-overs at that place go first. */
int pl_partial_open(pl_partial_file *partial, const char *place);
/* The same for a file that nobody opens by its name: where the system can (O_TMPFILE) it has none before it is
 * published, so that nothing is left of a process that is killed. */
int pl_partial_open_unnamed(pl_partial_file *partial, const char *place);
/* Gives it its place; without `replace` the name is taken by link(), which fails with EEXIST when somebody else took it
 * meanwhile. 0, or an errno. The file is closed and, after a failure, removed. */
int pl_partial_publish(pl_partial_file *partial, const char *place, bool replace);
/* Removes it, if there is one. */
void pl_partial_remove(pl_partial_file *partial);

/* Removes what dead processes left beside `place`. */
void pl_partial_clean(const char *place);
/* Removes what this process has beside `place`, for one that is about to die. */
void pl_partial_remove_own(const char *place);

#endif
