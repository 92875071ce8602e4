/* The framework of a program that is read: its own word, and --framework. */
#ifndef PL_WORKLOADS_COMMAND_PROGRAM_FRAMEWORK_H
#define PL_WORKLOADS_COMMAND_PROGRAM_FRAMEWORK_H

#include "workloads/command/job_options.h"
#include "workloads/language/ir_module.h"

/* As pl_job_options_adopt_framework. The framework that the program names is that of the options, unless they name
 * another: which is said on standard error under the command's name, and refused for a program of level kernels, whose
 * kernels are its framework's. What the program says besides is stronger than a profile. `module` was read, and
 * outlives the options. */
pl_code pl_program_framework_adopt(pl_job_options *options, const pl_ir_module *module, const char *command,
                                   pl_arena *arena, pl_error *error);

#endif
