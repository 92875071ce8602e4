/* The hierarchy of a platform as text and as JSON. */
#ifndef PL_NETMODEL_PLATFORM_TREE_H
#define PL_NETMODEL_PLATFORM_TREE_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "netmodel/show/platform_outline.h"

/* "128 GPUs (128 x A100-SXM4-80GB) in 16 nodes, 769 links". */
void pl_platform_print_summary(FILE *stream, const pl_cluster *cluster);
void pl_platform_print_tree(FILE *stream, const pl_cluster *cluster, const pl_outline *outline);

/* Members of an open object: platform, digest, n_devices, n_nodes, n_links, types. */
void pl_platform_put_summary(pl_json *json, const pl_cluster *cluster);
/* The member "zones": the outline, one object per folded zone. */
void pl_platform_put_tree(pl_json *json, const pl_cluster *cluster, const pl_outline *outline);

#endif
