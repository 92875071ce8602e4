/* A launch script read as far as it assigns variables and ends in a command with arguments: what a shell would hand to
 * the training program, without running anything.
 *
 * Understood: assignments (export, local, +=, arrays), quotes, $X, ${X}, ${X:-word}, ${X[@]}, $((...)), comments,
 * continued lines, here-documents (passed over), if and case whose conditions compare words, tests with && and ||.
 * Bodies of loops and functions are read once. What files, commands or the script's own arguments would decide is not
 * known: such a variable is empty, such a branch is not taken.
 */
#ifndef PL_WORKLOADS_LAUNCH_SHELL_H
#define PL_WORKLOADS_LAUNCH_SHELL_H

#include "workloads/launch/settings.h"

/* Appends the arguments ("--num-layers 96" is key num_layers, value 96; dashes within become underscores; several
 * values are joined by spaces) of the last command that has one of `marks` (NULL ends them) among its words, and what
 * #SBATCH lines (sbatch_nodes ...) and variables that slow training down say (env_TORCH_DISTRIBUTED_DEBUG). No such
 * command: PL_BAD_INPUT. `text` ends in a NUL. O(size). */
pl_code pl_launch_shell_read(const char *path, const char *text, const char *const *marks, pl_settings *settings,
                             pl_error *error);

#endif
