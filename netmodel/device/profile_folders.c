/* Where device profiles lie. See netmodel/device/device_profile.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netmodel/device/device_profile.h"

pl_code pl_profile_folders_take(const char *chosen, const char *platform_path, pl_arena *arena,
                                pl_profile_folders *folders, pl_error *error) {
  *folders = (pl_profile_folders){.paths = {chosen}};
  if (chosen != NULL) return PL_OK;
  const char *slash = strrchr(platform_path, '/');
  int length = slash != NULL ? (int)(slash - platform_path) + 1 : 0;
  const char *environment = getenv("PACELINE_DEVICES");
  folders->paths[0] = pl_arena_printf(arena, "%.*sdevices", length, platform_path);
  folders->paths[1] = pl_arena_strdup(arena, environment != NULL ? environment : PACELINE_DEVICES_DIR);
  bool complete = folders->paths[0] != NULL && folders->paths[1] != NULL;
  return complete ? PL_OK : pl_fail_memory(error, "the names of the profile folders");
}

const char *pl_profile_folders_find(const pl_profile_folders *folders, const char *type, pl_arena *arena) {
  for (int i = 0; i < PL_PROFILE_FOLDERS_MAX; i++) {
    if (folders->paths[i] == NULL) continue;
    const char *path = pl_arena_printf(arena, "%s/%s.json", folders->paths[i], type);
    if (path != NULL && access(path, F_OK) == 0) return path;
  }
  return NULL;
}

typedef struct name_list {
  const char **names;
  size_t n, capacity;
} name_list;

static void add_name(name_list *list, const char *file, pl_arena *arena) {
  size_t length = strlen(file);
  if (length <= 5 || strcmp(file + length - 5, ".json") != 0) return;
  char *name = pl_arena_strdup(arena, file);
  if (list->n == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 32;
    const char **larger = PL_TAKE(arena, const char *, capacity);
    if (larger == NULL) return;
    if (list->n > 0) memcpy(larger, list->names, list->n * sizeof *larger);
    list->names = larger;
    list->capacity = capacity;
  }
  if (name == NULL) return;
  name[length - 5] = '\0';
  list->names[list->n++] = name;
}

static int compare_names(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

const char *pl_profile_folders_list(const pl_profile_folders *folders, pl_arena *arena) {
  name_list list = {0};
  for (int i = 0; i < PL_PROFILE_FOLDERS_MAX; i++) {
    DIR *folder = folders->paths[i] != NULL ? opendir(folders->paths[i]) : NULL;
    if (folder == NULL) continue;
    /* Safe in any thread: the stream is this call's own. readdir_r, which cppcheck proposes, is deprecated. */
    /* cppcheck-suppress readdirCalled */
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
      add_name(&list, entry->d_name, arena);
    closedir(folder);
  }
  if (list.n > 1) qsort(list.names, list.n, sizeof *list.names, compare_names);
  const char *text = NULL;
  for (size_t i = 0; i < list.n; i++)
    if (i == 0 || strcmp(list.names[i], list.names[i - 1]) != 0)
      text = text == NULL ? list.names[i] : pl_arena_printf(arena, "%s, %s", text, list.names[i]);
  return arena->failed ? NULL : text == NULL ? "none" : text;
}
