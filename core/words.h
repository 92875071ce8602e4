/* Words that an option or a key may be: NULL-terminated lists, as enumerations have beside them. */
#ifndef PL_CORE_WORDS_H
#define PL_CORE_WORDS_H

#include <stddef.h>

/* Index of `word` in `words`, -1 if it is none of them; `words` NULL: there are none. */
int pl_words_find(const char *const *words, const char *word);
/* "flow, analytic, simgrid": all of them but empty ones, for messages; cut to `size` bytes. Returns `text`. */
const char *pl_words_list(const char *const *words, char *text, size_t size);

/* Index of the word that `word` was probably meant to be, whatever the case: the least number of letters put in, left
 * out, changed or swapped (Damerau and Levenshtein), at most a third of the longer word's; of two that are as near the
 * first one, and words of which one begins as the other does are near. -1: none is near. O(words * length^2), for
 * messages. */
int pl_words_nearest(const char *const *words, const char *word);

enum { PL_WORDS_BYTES = 256 }; /* of a list in a message */

#endif
