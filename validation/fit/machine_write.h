/* A fitted machine as files that every command loads: FOLDER/platform.xml, FOLDER/devices/NAME.json and
 * FOLDER/collectives/nccl.json (netmodel/platform, netmodel/device, netmodel/collective say where they look). */
#ifndef PL_VALIDATION_MACHINE_WRITE_H
#define PL_VALIDATION_MACHINE_WRITE_H

#include <stdio.h>

#include "validation/fit/machine_fit.h"

typedef struct pl_machine_text {
  const pl_machine_fit *fit;
  const char *device;     /* name of the profile: letters, digits and dashes */
  const char *provenance; /* one line */
  int n_ranks, n_cores;
  double memory_bytes; /* of a rank */
} pl_machine_text;

void pl_machine_write_device(const pl_machine_text *text, FILE *stream);
void pl_machine_write_collectives(const pl_machine_text *text, FILE *stream);
void pl_machine_write_platform(const pl_machine_text *text, FILE *stream);

#endif
