/* Words that an option or a key may be: NULL-terminated lists, as enumerations have beside them. */
#ifndef PL_CORE_WORDS_H
#define PL_CORE_WORDS_H

#include <stddef.h>

/* Index of `word` in `words`, -1 if it is none of them; `words` NULL: there are none. */
int pl_words_find(const char *const *words, const char *word);
/* "flow, analytic, simgrid": all of them but empty ones, for messages; cut to `size` bytes. Returns `text`. */
const char *pl_words_list(const char *const *words, char *text, size_t size);

enum { PL_WORDS_BYTES = 256 }; /* of a list in a message */

#endif
