/* Where the data that come with Paceline lie, found when the program runs, so that an installed or moved copy needs no
 * path of the machine that built it:
 *
 *   platforms/NAME.xml  platforms/devices/  platforms/collectives/  models/NAME.json  frameworks/NAME.json
 *   strategies/NAME.yaml
 *   residuals.json  sites.json  models.csv  report.html  torch_runtime.py
 *
 * That folder is PACELINE_DATA of the environment, else share/paceline in or beside the folder of the running program
 * (a build tree has it there too, as links to the sources).
 */
#ifndef PL_CORE_DATA_FOLDER_H
#define PL_CORE_DATA_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/status.h"

/* The path of `name` ("models", "residuals.json"), whether or not there is such a file. In `arena`; NULL: no memory. */
const char *pl_data_path(const char *name, pl_arena *arena);
/* The same for what must be there: PL_BAD_INPUT, with the way out, if it is not. */
pl_code pl_data_find(const char *name, pl_arena *arena, const char **path, pl_error *error);

/* What an option's `choice` of a model or platform stands for: itself where it is written as a path (with a '/' or
 * `ending`) or a file has that name, else the file NAME`ending` of the folder that comes with Paceline; NULL in *path
 * if that has none, and for OWNER/NAME, as model hubs have it, where no such file is. PL_NO_MEMORY is the only failure.
 */
pl_code pl_data_choose(const char *choice, const char *folder, const char *ending, pl_arena *arena, const char **path,
                       pl_error *error);
/* PL_BAD_INPUT for a choice that stands for nothing: `what` ("a model") says what it should be, `names` are those that
 * it could be (core/base/words.h), of which the nearest is proposed, or one that has the choice in it, `lists` what
 * lists them. */
pl_code pl_data_refuse(const char *choice, const char *what, const char *const *names, const char *lists,
                       pl_error *error);

/* Names of the files of `folder` that end in `ending`, without it, sorted; a folder that cannot be read has none. */
typedef struct pl_data_names {
  const char **names;
  size_t n, capacity;
} pl_data_names;
/* Adds to `list`, which begins as {0}. In `arena`, whose failure is the caller's to see. */
void pl_data_names_add(pl_data_names *list, const char *folder, const char *ending, pl_arena *arena);
/* Sorts the list, drops what is there twice and ends it with a NULL, as lists in core/base/words.h have. */
void pl_data_names_end(pl_data_names *list, pl_arena *arena);

#endif
