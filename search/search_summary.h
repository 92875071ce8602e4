/* What `paceline search` prints at its end. */
#ifndef PL_SEARCH_SEARCH_SUMMARY_H
#define PL_SEARCH_SEARCH_SUMMARY_H

#include <stdio.h>

#include "search/search.h"

/* `path` NULL: no file was written. */
void pl_search_summary_print(FILE *stream, const char *path, const char *method, const pl_search_outcome *outcome,
                             bool json);

#endif
