/* See search/optimize/passes.h. */
#include "search/optimize/passes.h"

#include <string.h>

#include "core/base/words.h"

const pl_graph_pass pl_passes[] = {
    [PL_PASS_OP_FUSION] = {"op-fusion", "ops that follow one another become one"},
    [PL_PASS_TENSOR_FUSION] = {"tensor-fusion", "gradients that are synchronised as one"},
    [PL_PASS_TENSOR_PARTITION] = {"tensor-partition", "gradients that are synchronised in pieces"},
    [PL_PASS_RECOMPUTE] = {"recompute", "activations that are computed again, where memory does not hold them"},
    [PL_PASS_ACCUMULATE] = {"accumulate", "gradients of smaller batches that are added up, likewise"},
    [PL_PASS_MIXED_PRECISION] = {"mixed-precision", "ops in half precision"},
    [PL_PASS_COUNT] = {NULL, NULL},
};

static pl_code add(const char *word, pl_pass_list *list, pl_error *error) {
  const char *names[PL_PASS_COUNT + 1];
  char all[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  for (int k = 0; k <= PL_PASS_COUNT; k++)
    names[k] = pl_passes[k].name;
  int found = pl_words_find(names, word);
  if (found < 0)
    return pl_fail(error, PL_BAD_INPUT, "--passes: '%.60s' is none of %s%s", word,
                   pl_words_list(names, all, sizeof all), pl_words_hint(names, word, hint));
  if (list->has[found]) return pl_fail(error, PL_BAD_INPUT, "--passes: '%s' is there twice", word);
  list->has[found] = true;
  return PL_OK;
}

pl_code pl_pass_list_parse(char *text, pl_pass_list *list, pl_error *error) {
  for (char *rest = text, *word; (word = strsep(&rest, ",")) != NULL;)
    PL_TRY(add(word, list, error));
  return PL_OK;
}
