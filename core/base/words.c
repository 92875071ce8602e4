#include "core/base/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"

int pl_words_find(const char *const *words, const char *word) {
  for (int i = 0; words != NULL && words[i] != NULL; i++)
    if (strcmp(words[i], word) == 0) return i;
  return -1;
}

pl_word_list pl_word_list_begin(char *text, size_t size) {
  PL_ASSERT(size >= PL_WORDS_LEAST_BYTES);
  text[0] = '\0';
  return (pl_word_list){.text = text, .size = size};
}

/* Room for " and 4294967295 more" stays free until the end. */
void pl_word_list_add(pl_word_list *list, const char *word) {
  size_t length = strlen(word), separator = list->used > 0 ? 2 : 0;
  if (list->n_left_out > 0 || list->used + separator + length + PL_WORDS_LEAST_BYTES > list->size) {
    list->n_left_out++;
    return;
  }
  memcpy(list->text + list->used, ", ", separator);
  memcpy(list->text + list->used + separator, word, length + 1);
  list->used += separator + length;
}

const char *pl_word_list_end(pl_word_list *list) {
  if (list->n_left_out > 0)
    snprintf(list->text + list->used, list->size - list->used, list->used > 0 ? " and %" PRIu32 " more" : "%" PRIu32,
             list->n_left_out);
  return list->text;
}

const char *pl_words_list(const char *const *words, char *text, size_t size) {
  pl_word_list list = pl_word_list_begin(text, size);
  for (int i = 0; words[i] != NULL; i++)
    if (words[i][0] != '\0') pl_word_list_add(&list, words[i]);
  return pl_word_list_end(&list);
}

enum { LONGEST = 63 };

static int least(int a, int b) {
  return a < b ? a : b;
}

static bool same(char a, char b) {
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Optimal string alignment; both at most LONGEST letters. */
static int distance(const char *a, const char *b) {
  int rows[3][LONGEST + 1], n = (int)strlen(a), m = (int)strlen(b);
  int *before = rows[0], *last = rows[1], *row = rows[2];
  for (int j = 0; j <= m; j++)
    last[j] = j;
  for (int i = 1; i <= n; i++) {
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = least(row[j], before[j - 2] + 1);
    }
    int *swap = before;
    before = last;
    last = row;
    row = swap;
  }
  return last[m];
}

/* "seq" of "seq_len"; "recomputation" of "recompute". */
static bool begin_alike(const char *a, const char *b, size_t shorter) {
  enum { LONG = 6 };
  size_t common = 0;
  while (common < shorter && same(a[common], b[common]))
    common++;
  return common == shorter || (common >= LONG && 4 * common >= 3 * shorter);
}

int pl_words_nearest(const char *const *words, const char *word) {
  enum { SHORTEST = 3 };
  size_t length = strlen(word);
  int nearest = -1, least_seen = LONGEST, least_changes = LONGEST;
  for (int i = 0; words != NULL && words[i] != NULL; i++) {
    size_t other = strlen(words[i]), shorter = length < other ? length : other,
           longer = length < other ? other : length;
    if (longer > LONGEST || shorter == 0) continue;
    int changes = distance(word, words[i]), found = changes;
    bool begins = shorter >= SHORTEST && begin_alike(word, words[i], shorter);
    if (begins && found > 1) found = 1;
    if (found > (int)(longer / 3) && !begins) continue;
    if (found > least_seen || (found == least_seen && changes >= least_changes)) continue;
    nearest = i;
    least_changes = changes;
    least_seen = found;
  }
  return nearest;
}

const char *pl_words_hint(const char *const *words, const char *word, char text[PL_WORDS_HINT_BYTES]) {
  int near = pl_words_nearest(words, word);
  text[0] = '\0';
  if (near >= 0) snprintf(text, PL_WORDS_HINT_BYTES, "; did you mean '%s'?", words[near]);
  return text;
}
