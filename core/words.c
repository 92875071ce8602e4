#include "core/words.h"

#include <stdio.h>
#include <string.h>

int pl_words_find(const char *const *words, const char *word) {
  for (int i = 0; words != NULL && words[i] != NULL; i++)
    if (strcmp(words[i], word) == 0) return i;
  return -1;
}

const char *pl_words_list(const char *const *words, char *text, size_t size) {
  text[0] = '\0';
  for (int i = 0; words[i] != NULL; i++) {
    size_t used = strlen(text);
    if (words[i][0] != '\0') snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", words[i]);
  }
  return text;
}
