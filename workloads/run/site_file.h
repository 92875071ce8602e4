/* A site as a file: what `paceline calibrate --runs` writes and --site reads, and workloads/sites.json, what is known
 * of a site before any of its runs.
 *
 *   {"about": TEXT, "runs": 3, "peaks": 0,
 *    "figures": {"compute": {"factor": 1.12, "half_width": 0.05}, ... "step": {"seconds": 0.01, "half_width": 0.02}},
 *    "covariance": [[8 numbers] x 8],                  of ln(factor) and seconds, in the order of the figures
 *    "scatter": [{"sd": 0.01, "weight": 0.1}, ...],    of ln(time) around them: PL_SITE_SCATTERS entries
 *    "shared": 0.6,                                    sites.json: of the covariance, what an owner's sites share
 *    "degrees": 4,                                     sites.json: of Student's t around that scatter
 *    "remains": {...},                                 workloads/run/site_remains_file.h
 *    "memory": {"bytes": 1e9, "sd": 2e9, "scatter": 1e9,
 *               "degrees": 0.5},                   sites.json: how well that scatter is known of another site
 *    "elsewhere": {"figures": {...}, "covariance": [...],   of the owner's next GPU, software or precision
 *                  "with_runs": [[8 numbers] for each run]}} covariance of these figures with what remains at the runs
 *
 * half_width (80 %) is for the reader: it follows from the covariance. A file without "elsewhere" has its figures act
 * anywhere.
 */
#ifndef PL_WORKLOADS_SITE_FILE_H
#define PL_WORKLOADS_SITE_FILE_H

#include <stdio.h>

#include "workloads/run/site.h"

/* A mistake is one message with file, line and value. What remains lies in `arena`. */
pl_code pl_site_load(const char *path, pl_arena *arena, pl_site *site, pl_error *error);
pl_code pl_site_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_site *site, pl_error *error);
/* What is known of any site: workloads/sites.json, or the file that PACELINE_SITES names. */
pl_code pl_site_load_prior(pl_arena *arena, pl_site *site, pl_error *error);
void pl_site_write(FILE *stream, const pl_site *site, const char *about);

#endif
