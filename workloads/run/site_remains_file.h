/* What remains at a site's runs, as a part of its file (workloads/run/site_file.h):
 *
 *   "remains": {"sd": 0.09,                    of ln(time), far from all runs; 0 where the figures leave nothing
 *     "scales": [0.2, 0.5, 0.3],               how probable a third of that, that and three times that are here
 *     "lengths": {"gpus": 3.4, "size": 1.2, ... "recompute": 0.7},   workloads/run/site_likeness.h
 *     "runs": [                                sites.json has none
 *       {"gpus": 16, "size": 2e9, ... "gpu": "T4", ... "recompute": "none",
 *        "factor": 1.03, "half_width": 0.02,   what remains there
 *        "with_figures": [8 numbers],          covariance of its logarithm with the figures
 *        "with_runs": [a number for each run]} and with what remains at the runs
 *     ]}
 *
 * half_width (80 %) is for the reader. A file without it is of a site whose figures leave nothing.
 */
#ifndef PL_WORKLOADS_SITE_REMAINS_FILE_H
#define PL_WORKLOADS_SITE_REMAINS_FILE_H

#include "core/text/document.h"
#include "core/text/json_writer.h"
#include "workloads/run/site_remains.h"

/* `node` is the value of "remains". All in `arena`. */
pl_code pl_remains_read(const pl_document *document, const pl_node *node, pl_arena *arena,
                        const pl_site_remains **remains, pl_error *error);
void pl_remains_write(pl_json *json, const pl_site_remains *remains);

/* The same where the site's `elsewhere` acts: *remains is the site's, and becomes that. `node` is the value of
 * "elsewhere", which has "with_runs" where there are runs. */
pl_code pl_remains_read_elsewhere(const pl_document *document, const pl_node *node, pl_arena *arena,
                                  const pl_site_remains **remains, pl_error *error);
void pl_remains_write_elsewhere(pl_json *json, const pl_site_remains *remains);

#endif
