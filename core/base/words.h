/* Words that an option or a key may be: NULL-terminated lists, as enumerations have beside them. */
#ifndef PL_CORE_WORDS_H
#define PL_CORE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of texts that may be NULL, which is a text of its own. */
static inline bool pl_texts_equal(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Index of `word` in `words`, -1 if it is none of them; `words` NULL: there are none. */
int pl_words_find(const char *const *words, const char *word);
/* "flow, analytic, simgrid": all of them but empty ones, for messages; what `size` bytes do not hold is counted as at
 * pl_word_list. Returns `text`. */
const char *pl_words_list(const char *const *words, char *text, size_t size);

/* Index of the word that `word` was probably meant to be, whatever the case: the least number of letters put in, left
 * out, changed or swapped (Damerau and Levenshtein), at most a third of the longer word's; of two that are as near the
 * first one, and words of which one begins as the other does are near (of several such, the one with least changes).
 * -1: none is near. O(words * length^2), for messages. */
int pl_words_nearest(const char *const *words, const char *word);

/* The end of a message about a word that is not among `words`: "; did you mean 'X'?", or "". Returns `text`. */
enum { PL_WORDS_HINT_BYTES = 96 };
const char *pl_words_hint(const char *const *words, const char *word, char text[PL_WORDS_HINT_BYTES]);

/* A list as pl_words_list makes, from words that come one by one: whole words only, and "a, b and 7 more" where the
 * room ends. */
typedef struct pl_word_list {
  char *text;
  size_t size, used;
  uint32_t n_left_out;
} pl_word_list;

enum { PL_WORDS_BYTES = 768 /* of a list in a message */, PL_WORDS_LEAST_BYTES = 24 };

/* `text`: at least PL_WORDS_LEAST_BYTES; "" until words are added. */
pl_word_list pl_word_list_begin(char *text, size_t size);
void pl_word_list_add(pl_word_list *list, const char *word);
/* Ends the list, which nothing is added to from here on; returns its text. */
const char *pl_word_list_end(pl_word_list *list);

#endif
