/* Collective profiles back into files (netmodel/collective/collective_profile.h), for `paceline calibrate`. */
#ifndef PL_NETMODEL_COLLECTIVE_PROFILE_WRITER_H
#define PL_NETMODEL_COLLECTIVE_PROFILE_WRITER_H

#include <stdio.h>

#include "netmodel/collective/collective_profile.h"

/* JSON that pl_collective_profile_load reads. Figures as they are: the caller rounds. */
void pl_collective_profile_write(FILE *stream, const pl_collective_profile *profile);

#endif
