/* See netmodel/platform/platform_choice.h. */
#include "netmodel/platform/platform_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/system/data_folder.h"
#include "netmodel/make/node_kind.h"
#include "netmodel/make/platform_make.h"

enum { FILE_BYTES_MAX = 1 << 30 };

static pl_code read_stream(FILE *stream, const char *path, pl_platform_text *file, pl_error *error) {
  struct stat status;
  if (fstat(fileno(stream), &status) != 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode))
    return pl_fail(error, PL_BAD_INPUT, "%s: %s", path,
                   S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file");
  if (status.st_size > FILE_BYTES_MAX) return pl_fail(error, PL_BAD_INPUT, "%s: has more than 1 GiB", path);
  size_t expected = (size_t)status.st_size;
  file->text = malloc(expected + 1);
  if (file->text == NULL) return pl_fail_memory(error, "the platform file");
  file->size = fread(file->text, 1, expected, stream);
  if (ferror(stream) || file->size != expected) return pl_fail(error, PL_IO, "%s: cannot be read to its end", path);
  return PL_OK;
}

static pl_code read_file(const char *path, pl_platform_text *file, pl_error *error) {
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  pl_code code = read_stream(stream, path, file, error);
  fclose(stream);
  return code;
}

/* "dgx-h100" of "dgx-h100:16" and of "dgx-h100:1,dgx-a100:1". */
static bool is_machine(const char *choice) {
  char name[64];
  size_t length = strcspn(choice, ":,");
  if (length >= sizeof name) return false;
  memcpy(name, choice, length);
  name[length] = '\0';
  return pl_node_kind_find(name) != NULL;
}

static pl_code refuse(const char *choice, pl_arena *arena, pl_error *error) {
  const char *const *names = pl_platform_choices(arena);
  if (names == NULL) return pl_fail_memory(error, "the names of platforms");
  char name[128];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(choice, ":,"), choice);
  return pl_data_refuse(name, "a platform", names, "paceline list platforms", error);
}

static pl_code read_choice(const char *choice, pl_arena *arena, pl_platform_text *text, pl_error *error) {
  const char *path;
  PL_TRY(pl_data_choose(choice, "platforms", ".xml", arena, &path, error));
  if (path != NULL) return read_file(path, text, error);
  if (is_machine(choice)) return pl_platform_make_text(choice, &text->text, &text->size, error);
  return refuse(choice, arena, error);
}

pl_code pl_platform_text_read(const char *choice, pl_platform_text *text, pl_error *error) {
  *text = (pl_platform_text){0};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = read_choice(choice, &arena, text, error);
  pl_arena_release(&arena);
  return code;
}

const char *const *pl_platform_choices(pl_arena *arena) {
  pl_data_names files = {0};
  const char *folder = pl_data_path("platforms", arena);
  if (folder != NULL) pl_data_names_add(&files, folder, ".xml", arena);
  pl_data_names_end(&files, arena);
  size_t n = 0;
  while (pl_node_kind_at((uint32_t)n) != NULL)
    n++;
  const char **names = PL_TAKE(arena, const char *, files.n + n + 1);
  if (names == NULL || arena->failed) return NULL;
  for (size_t i = 0; i < files.n; i++)
    names[i] = files.names[i];
  for (size_t i = 0; i < n; i++)
    names[files.n + i] = pl_node_kind_at((uint32_t)i)->name;
  return names;
}
