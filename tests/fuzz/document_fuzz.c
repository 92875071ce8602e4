/* Documents, as JSON and as YAML: every node of what is accepted can be visited and read in every way; what is refused
 * has a message that begins with the name of the file. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/text/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libfyaml 0.7.12 loses up to 2 KiB inside itself on some malformed YAML (a plain key after 40 single quotes); our own
 * frames are still watched. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libfyaml.so";
}

static void read_all_ways(const pl_document *document, const pl_node *mapping, const char *key) {
  pl_error error = PL_ERROR_INIT;
  const char *text = NULL;
  double number = 0.0;
  int64_t integer = 0;
  bool boolean = false;
  (void)pl_node_string(document, mapping, key, &text, &error);
  if (pl_node_number(document, mapping, key, &number, &error) == PL_OK) PL_ASSERT(isfinite(number));
  if (pl_node_integer(document, mapping, key, -10, 10, &integer, &error) == PL_OK)
    PL_ASSERT(integer >= -10 && integer <= 10);
  (void)pl_node_boolean(document, mapping, key, &boolean, &error);
  PL_ASSERT(error.code == PL_OK || strncmp(error.message, "fuzz:", 5) == 0);
}

static void visit(const pl_document *document, const pl_node *node) {
  size_t n = pl_node_count(node);
  for (size_t i = 0; i < n; i++) {
    const char *key = NULL;
    const pl_node *child = pl_node_is_mapping(node) ? pl_node_entry(document, node, i, &key) : pl_node_at(node, i);
    PL_ASSERT(child != NULL);
    if (key != NULL) read_all_ways(document, node, key);
    visit(document, child);
  }
  if (n > 0 || pl_node_is_mapping(node) || pl_node_is_sequence(node)) return;
  pl_error error = PL_ERROR_INIT;
  const char *text = NULL;
  double number = 0.0;
  if (pl_node_as_string(document, node, &text, &error) == PL_OK) PL_ASSERT(text != NULL);
  (void)pl_node_as_number(document, node, &number, &error);
}

static void parse(const uint8_t *data, size_t size, bool json) {
  pl_document *document = NULL;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_document_parse("fuzz", (const char *)data, size, json, &document, &error);
  PL_ASSERT(code == error.code && (code == PL_OK) == (document != NULL));
  if (code == PL_OK) {
    PL_ASSERT(pl_document_root(document) != NULL);
    visit(document, pl_document_root(document));
  } else {
    PL_ASSERT(code == PL_BAD_INPUT && strncmp(error.message, "fuzz:", 5) == 0);
  }
  pl_document_destroy(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  parse(data, size, true);
  parse(data, size, false);
  return 0;
}
