/* The front door: one table of commands. */
#include <stdio.h>
#include <string.h>

#include "core/command.h"
#include "netmodel/cmd_platform.h"
#include "workloads/cmd_model.h"

static const pl_command commands[] = {
    {"model", "show what a model (a Hugging Face config.json) is made of", pl_cmd_model},
    {"platform", "check, show or make platform files", pl_cmd_platform},
    {NULL, NULL, NULL},
};

static void print_help(FILE *stream) {
  fputs("Usage: paceline COMMAND [OPTION...]\n"
        "Predicts how fast a distributed DNN training job runs, before anyone pays for the GPUs.\n\nCommands:\n",
        stream);
  for (const pl_command *command = commands; command->name != NULL; command++)
    fprintf(stream, "  %-10s %s\n", command->name, command->summary);
  fputs("\n'paceline COMMAND --help' says more. 'paceline --version' prints the version.\n", stream);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return 2;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
    print_help(stdout);
    return pl_command_finish("help", 0);
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("paceline " PACELINE_VERSION);
    return pl_command_finish("version", 0);
  }
  for (const pl_command *command = commands; command->name != NULL; command++)
    if (strcmp(argv[1], command->name) == 0) return command->run(argc - 1, argv + 1);
  fprintf(stderr, "paceline: '%s' is not a command; 'paceline --help' lists them\n", argv[1]);
  return 2;
}
