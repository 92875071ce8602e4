/* Drawings of a page of results: the fastest strategy's iteration, stages over time, and the platform, as SVG. Both are
 * made anew from the recorded command: a file of results holds no timeline. */
#ifndef PL_SEARCH_REPORT_DRAWINGS_H
#define PL_SEARCH_REPORT_DRAWINGS_H

#include "core/base/status.h"

typedef struct pl_report_drawings {
  char *pipeline, *platform; /* SVG, freed by the caller; NULL: none */
  pl_error why_not;          /* PL_OK: both are there; else what stood in the way (a platform file that has moved) */
} pl_report_drawings;

/* Of the results at `path`, which may be anybody's: read in a process of its own. Fails only where the file cannot be
 * read, or there is no memory. */
pl_code pl_report_drawings_take(const char *path, pl_report_drawings *drawings, pl_error *error);
void pl_report_drawings_release(pl_report_drawings *drawings);

#endif
