/* The hierarchy of a platform as a drawing: one self-contained SVG file. */
#ifndef PL_NETMODEL_PLATFORM_SVG_H
#define PL_NETMODEL_PLATFORM_SVG_H

#include <stdio.h>

#include "netmodel/show/platform_outline.h"

/* Draws the platform: one card per kind of node with its GPUs, NVLinks, and the NIC that each GPU leaves through, below
 * the network between the nodes. Into a file, which must not exist unless `force`; written beside it first, so that
 * nothing half-written is left behind. Routes are asked for, so the errors are those of routes and of files. */
pl_code pl_platform_svg_draw(FILE *stream, const pl_platform *platform, pl_error *error);
pl_code pl_platform_svg_store(const pl_platform *platform, const pl_outline *outline, const char *path, bool force,
                              pl_error *error);

#endif
