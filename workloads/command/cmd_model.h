/* `paceline model`: an entry of the front door's table (core/system/command.h). */
#ifndef PL_WORKLOADS_CMD_MODEL_H
#define PL_WORKLOADS_CMD_MODEL_H

#include "core/system/command.h"

int pl_cmd_model(int argc, char **argv);

#endif
