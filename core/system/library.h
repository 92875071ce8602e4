/* Functions of a shared library of our own, which lies where the program's RPATH says and is opened when one of them is
 * first needed: what it brings along costs a start of the program nothing. It stays open until the process ends, and
 * what it brings along is of no use to others (RTLD_LOCAL). To find a function again costs a microsecond or two. */
#ifndef PL_CORE_LIBRARY_H
#define PL_CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Sets the pointer to a function at `function` to the one that `library` ("libpaceline_x.so") exports as `name`. False:
 * the library is not there, is another one, or needs one of the system that is not there; `reason` says what the loader
 * says and which of these it is. */
bool pl_library_find(const char *library, const char *name, void *function, char *reason, size_t reason_bytes);

#endif
