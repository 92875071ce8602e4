/* What every command does with its arguments: argp parses and prints the help, this says what is wrong, in one line. */
#ifndef PL_CORE_COMMAND_LINE_H
#define PL_CORE_COMMAND_LINE_H

#include <argp.h>
#include <stdbool.h>

#include "core/base/status.h"

/* Parses with `argp`, after finding the first option that it does not know, that is short for several, or whose value
 * is missing or too much; the message names the way out ("did you mean --platform?", `'paceline sweep --help' lists
 * them`). `command` is what follows "paceline". The parsers of `argp` get `input`; they keep what they find wrong with
 * a value in an error of their own, for the caller to look at, and never call argp_error, which takes three lines. Help
 * is printed and ends the process, with status 1 if it cannot be written; a `silent` process ends without printing.
 * -h is --help; --print-options alone prints the table of options for programs, as completions are made from
 * (.package/texts.sh).
 * Options may be shortened and values attached as getopt_long allows. Reorders argv. O(words * options). Not for argp's
 * optional arguments, aliases and argp_program_version, which no command uses. */
pl_code pl_command_line_parse(const char *command, const struct argp *argp, int argc, char **argv, bool silent,
                              void *input, pl_error *error);

/* For ARGP_KEY_ARG of a command that takes no such argument, or no more. */
void pl_command_line_refuse_argument(const char *argument, pl_error *error);

#endif
