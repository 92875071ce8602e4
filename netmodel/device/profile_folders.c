/* Where device profiles lie. See netmodel/device/device_profile.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/data_folder.h"
#include "netmodel/device/device_profile.h"

pl_code pl_profile_folders_take(const char *chosen, const char *platform_path, pl_arena *arena,
                                pl_profile_folders *folders, pl_error *error) {
  *folders = (pl_profile_folders){.paths = {chosen}};
  if (chosen != NULL) return PL_OK;
  /* A platform by name (netmodel/platform/platform_choice.h) has nothing beside it. */
  const char *slash = strrchr(platform_path, '/');
  bool is_file = slash != NULL || access(platform_path, F_OK) == 0;
  int length = slash != NULL ? (int)(slash - platform_path) + 1 : 0;
  const char *environment = getenv("PACELINE_DEVICES");
  if (is_file) folders->paths[0] = pl_arena_printf(arena, "%.*sdevices", length, platform_path);
  folders->paths[1] =
      pl_arena_strdup(arena, environment != NULL ? environment : pl_data_path("platforms/devices", arena));
  return !arena->failed ? PL_OK : pl_fail_memory(error, "the names of the profile folders");
}

const char *pl_profile_folders_find(const pl_profile_folders *folders, const char *type, pl_arena *arena) {
  for (int i = 0; i < PL_PROFILE_FOLDERS_MAX; i++) {
    if (folders->paths[i] == NULL) continue;
    const char *path = pl_arena_printf(arena, "%s/%s.json", folders->paths[i], type);
    if (path != NULL && access(path, F_OK) == 0) return path;
  }
  return NULL;
}

const char *const *pl_profile_folders_names(const pl_profile_folders *folders, pl_arena *arena) {
  pl_data_names list = {0};
  for (int i = 0; i < PL_PROFILE_FOLDERS_MAX; i++)
    if (folders->paths[i] != NULL) pl_data_names_add(&list, folders->paths[i], ".json", arena);
  pl_data_names_end(&list, arena);
  return arena->failed ? NULL : list.names;
}

const char *pl_profile_folders_list(const pl_profile_folders *folders, pl_arena *arena) {
  const char *const *names = pl_profile_folders_names(folders, arena), *text = NULL;
  for (size_t i = 0; names != NULL && names[i] != NULL; i++)
    text = text == NULL ? names[i] : pl_arena_printf(arena, "%s, %s", text, names[i]);
  return arena->failed ? NULL : text == NULL ? "none" : text;
}
