/* Preloaded: the PACELINE_FAIL_AT-th allocation that the program's own code asks for returns NULL, in the rank
 * PACELINE_FAIL_RANK; libraries' own are let through. How many there were goes to the file PACELINE_FAIL_COUNT. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static uintptr_t code_begin, code_end; /* of the program; 0: this rank is not the one */
static long fail_at, n_calls;

static int find_program(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  (void)data;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
    code_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    code_end = code_begin + info->dlpi_phdr[i].p_memsz;
  }
  return 1; /* the program comes first */
}

__attribute__((constructor)) static void start(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *wanted = getenv("PACELINE_FAIL_RANK");
  const char *at = getenv("PACELINE_FAIL_AT");
  if (rank == NULL || wanted == NULL || strcmp(rank, wanted) != 0) return;
  fail_at = at != NULL ? strtol(at, NULL, 10) : 0;
  dl_iterate_phdr(find_program, NULL);
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("PACELINE_FAIL_COUNT");
  FILE *file = path != NULL && code_begin != 0 ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%ld\n", n_calls);
  fclose(file);
}

static int fails(const void *caller) {
  uintptr_t at = (uintptr_t)caller;
  if (at < code_begin || at >= code_end) return 0;
  if (__atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED) != fail_at) return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

char *strdup(const char *text) {
  char *copy = fails(__builtin_return_address(0)) ? NULL : __libc_malloc(strlen(text) + 1);
  return copy != NULL ? strcpy(copy, text) : NULL;
}
