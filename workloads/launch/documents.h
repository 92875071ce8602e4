/* Launch files that are documents, as flat settings: keys joined by dots ("model.optim.lr"). */
#ifndef PL_WORKLOADS_LAUNCH_DOCUMENTS_H
#define PL_WORKLOADS_LAUNCH_DOCUMENTS_H

#include "core/text/document.h"
#include "workloads/launch/settings.h"

/* TOML: tables, dotted and quoted keys, strings, numbers, booleans, dates as text; arrays and inline tables are one
 * value, as written. PL_BAD_INPUT with the line. `text` ends in a NUL and must outlive the settings. */
pl_code pl_launch_toml_read(const char *path, const char *text, pl_settings *settings, pl_error *error);

/* `text` with y in place of every "${X:y}", nothing in place of "${X}", as Primus has it. NULL: no memory. */
const char *pl_launch_plain(const char *text, pl_arena *arena);

/* `text` of a scalar whose `depth` mappings are `within` (outermost first), with values in place of OmegaConf's
 * references: "${.hidden}" of the same mapping (one more dot: of the one around it), "${model.hidden}" from the
 * outermost, and "${multiply:A, B}", NeMo's, as their product. References that name nothing, or each other, stay.
 * Strings of the document or of `arena`. NULL: no memory. */
const char *pl_launch_follow(const pl_node *const *within, int depth, const char *text, pl_arena *arena);

/* Everything under `node`, each key behind `prefix`; sequences are one value, their scalars joined by commas.
 * pl_launch_follow and pl_launch_plain are applied to them. Strings are copied. */
pl_code pl_launch_document_read(const pl_document *document, const pl_node *node, const char *prefix,
                                pl_settings *settings, pl_error *error);

/* A mapping of command-line arguments: "--num-layers: 24"; a flag is true, one that is false is not there. */
pl_code pl_launch_arguments_read(const pl_document *document, const pl_node *node, pl_settings *settings,
                                 pl_error *error);

#endif
