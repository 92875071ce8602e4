/* The name of a model that is no Hugging Face configuration: see workloads/ir/model.h. */
#include <string.h>

#include "core/base/printable.h"
#include "core/text/document.h"
#include "workloads/import/model_file.h"
#include "workloads/ir/model.h"

pl_code pl_model_read_name(const pl_document *document, pl_arena *arena, pl_model *model, pl_error *error) {
  const pl_node *root = pl_document_root(document);
  const char *path = pl_document_name(document), *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  if (pl_node_get(root, "name") != NULL) PL_TRY(pl_node_name(document, root, "name", &name, error));
  model->name = pl_printable_strdup(arena, name);
  return model->name != NULL ? PL_OK : pl_fail_memory(error, "the model's name");
}
