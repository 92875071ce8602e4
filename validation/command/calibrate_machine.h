/* `paceline calibrate --this-machine`: measure, fit, write a platform. */
#ifndef PL_VALIDATION_CALIBRATE_MACHINE_H
#define PL_VALIDATION_CALIBRATE_MACHINE_H

#include <stdbool.h>

#include "core/base/status.h"

typedef struct pl_calibrate_machine {
  bool wanted, thorough, force;
  const char *output; /* a folder */
} pl_calibrate_machine;

/* By all ranks that mpirun started; returns the exit status. */
int pl_calibrate_machine_run(const pl_calibrate_machine *options);

#endif
