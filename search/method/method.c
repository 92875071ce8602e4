/* See search/method/method.h. */
#include "search/method/method.h"

#include <string.h>

#include "search/method/methods.h"

const pl_method *const pl_methods[] = {
    &pl_method_amp,      &pl_method_anneal,    &pl_method_bound,  &pl_method_exhaustive,
    &pl_method_megatron, &pl_method_placement, &pl_method_random, NULL,
};

const pl_method *pl_method_find(const char *name) {
  for (const pl_method *const *method = pl_methods; *method != NULL; method++)
    if (strcmp((*method)->name, name) == 0) return *method;
  return NULL;
}

const char *pl_methods_list(char text[PL_WORDS_BYTES]) {
  pl_word_list list = pl_word_list_begin(text, PL_WORDS_BYTES);
  for (const pl_method *const *method = pl_methods; *method != NULL; method++)
    pl_word_list_add(&list, (*method)->name);
  return pl_word_list_end(&list);
}

const char *pl_methods_hint(const char *name, char text[PL_WORDS_HINT_BYTES]) {
  enum { MOST = 32 };
  const char *names[MOST + 1] = {NULL};
  for (int i = 0; i < MOST && pl_methods[i] != NULL; i++)
    names[i] = pl_methods[i]->name;
  return pl_words_hint(names, name, text);
}
