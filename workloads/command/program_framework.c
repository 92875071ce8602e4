/* See workloads/command/program_framework.h. */
#include "workloads/command/program_framework.h"

#include <stdio.h>
#include <string.h>

#include "core/base/printable.h"
#include "workloads/run/launched_program.h"

/* The program's own; of one that cannot be loaded the message has its place in the program, where no option was given.
 */
static pl_code adopt_own(pl_job_options *options, const pl_ir_module *module, pl_arena *arena, pl_error *error) {
  pl_error own = PL_ERROR_INIT;
  const pl_ir_launcher *launcher = &module->launcher;
  options->framework_choice = launcher->name;
  pl_code code = pl_job_options_adopt_framework(options, arena, &own);
  const char *option = "--framework: ", *said = own.message;
  if (code == PL_OK) return PL_OK;
  if (strncmp(said, option, strlen(option)) == 0) said += strlen(option);
  return pl_fail(error, code, "%s:%d:%d: framework: %s", module->source, launcher->place.line, launcher->place.column,
                 said);
}

static pl_code adopt_another(pl_job_options *options, const pl_ir_module *module, const char *command, pl_arena *arena,
                             pl_error *error) {
  const pl_ir_launcher *launcher = &module->launcher;
  if (module->level == PL_IR_KERNELS)
    return pl_fail(
        error, PL_BAD_INPUT,
        "%s:%d:%d: these are the kernels of framework %s, and --framework says %s: leave it out, or print the "
        "program once more under %s",
        module->source, launcher->place.line, launcher->place.column, launcher->name, options->framework_choice,
        options->framework_choice);
  PL_TRY(pl_job_options_adopt_framework(options, arena, error));
  const char *source = pl_printable_name(module->source, arena);
  if (source == NULL) return pl_fail_memory(error, "a name");
  fprintf(stderr, "paceline %s: %s was written for framework %s; launched as --framework %s does\n", command, source,
          launcher->name, options->framework_choice);
  return PL_OK;
}

pl_code pl_program_framework_adopt(pl_job_options *options, const pl_ir_module *module, const char *command,
                                   pl_arena *arena, pl_error *error) {
  const char *own = module->launcher.name, *given = options->framework_choice;
  if (own == NULL || (given != NULL && strcmp(own, given) == 0))
    PL_TRY(pl_job_options_adopt_framework(options, arena, error));
  else if (given == NULL)
    PL_TRY(adopt_own(options, module, arena, error));
  else
    PL_TRY(adopt_another(options, module, command, arena, error));
  options->job.framework = pl_framework_of_launcher(options->job.framework, &module->launcher, arena);
  return options->job.framework != NULL ? PL_OK : pl_fail_memory(error, "a framework's profile");
}
