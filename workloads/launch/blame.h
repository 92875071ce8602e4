/* A strategy that a launch file makes may be one that is refused, in the words of strategies: here the setting is found
 * that says so, and its line, and what the file calls what the message names. */
#ifndef PL_WORKLOADS_LAUNCH_BLAME_H
#define PL_WORKLOADS_LAUNCH_BLAME_H

#include "workloads/launch/launch.h"

/* "strategy: ep_overlap=1 with ..." becomes "train.sh:7: --overlap-moe-expert-parallel-comm: ep_overlap=1 with ...
 * (ep_overlap=1 is --overlap-moe-expert-parallel-comm)"; what no setting of the file is about, stays as it is. Likewise
 * what the model of that name is said not to take (NULL: none has been read). */
void pl_launch_blame(const pl_launch *launch, const char *model_name, pl_error *error);
/* The same where the key is known ("tmp"); a key that the file does not have: the file. */
void pl_launch_blame_key(const pl_launch *launch, const char *key, pl_error *error);
/* Of the configuration that pl_launch_model_text made, whose lines are not the file's: the file's setting. */
void pl_launch_blame_model(const pl_launch *launch, pl_error *error);

#endif
