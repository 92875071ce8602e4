/* The front door: one table of commands. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/build_id.h"
#include "core/base/words.h"
#include "core/system/command.h"
#include "netmodel/show/cmd_platform.h"
#include "search/command/cmd_compare.h"
#include "search/command/cmd_launch.h"
#include "search/command/cmd_report.h"
#include "search/command/cmd_run.h"
#include "search/command/cmd_search.h"
#include "search/command/cmd_show.h"
#include "search/command/cmd_sweep.h"
#include "search/command/row_again.h"
#include "search/optimize/cmd_optimize.h"
#include "search/parallel/ranks.h"
#include "search/trace/cmd_diagnose.h"
#include "search/trace/cmd_replay.h"
#include "search/trace/cmd_trace.h"
#include "validation/command/cmd_calibrate.h"
#include "validation/command/cmd_validate.h"
#include "workloads/command/cmd_list.h"
#include "workloads/command/cmd_model.h"
#include "workloads/command/cmd_program.h"
#include "workloads/command/cmd_strategy.h"
#include "workloads/command/cmd_verify.h"

static const pl_command commands[] = {
    {"calibrate", "profiles from measurements, and how far they are off", pl_cmd_calibrate},
    {"compare", "two strategies, clusters or results: what differs, where the seconds come from", pl_cmd_compare},
    {"diagnose", "where the time of a recorded step goes, and what would shorten it", pl_cmd_diagnose},
    {"explain", "where each second of one strategy comes from, op by op", pl_cmd_explain_again},
    {"launch", "the file that starts a strategy in a training framework", pl_cmd_launch},
    {"list", "the models, platforms, frameworks and devices that come with Paceline", pl_cmd_list},
    {"model", "show what a model (a Hugging Face config.json) is made of", pl_cmd_model},
    {"optimize", "what would shorten a recorded step: buckets, pieces, fused ops", pl_cmd_optimize},
    {"platform", "check, show or make platform files", pl_cmd_platform},
    {"program", "what devices run, as text: check or print a program", pl_cmd_program},
    {"replay", "steps of a recorded job, as they were and as they would be", pl_cmd_replay},
    {"report", "the results of a sweep as a page: time over memory, the best, filters", pl_cmd_report},
    {"run", "a distributed program for real, every device an MPI rank, with times per op", pl_cmd_run},
    {"search", "the fastest strategy of a space, by one of several methods", pl_cmd_search},
    {"show", "rows of a sweep's results, filtered and sorted", pl_cmd_show},
    {"simulate", "one strategy in full: time, memory, breakdown, timeline", pl_cmd_simulate_again},
    {"strategy", "strategies as trees: check one, show what it says of a model", pl_cmd_strategy},
    {"sweep", "every strategy of a space, over MPI ranks and threads, into HDF5", pl_cmd_sweep},
    {"trace", "what the ranks of a real job recorded: import and check", pl_cmd_trace},
    {"validate", "predictions beside measured training runs: how far off, and where", pl_cmd_validate},
    {"verify", "whether a strategy computes what the model says, with real numbers", pl_cmd_verify},
    {NULL, NULL, NULL},
};

static void print_help(FILE *stream) {
  fputs("Usage: paceline COMMAND [OPTION...]\n"
        "Predicts how fast a distributed DNN training job runs, before anyone pays for the GPUs.\n\nCommands:\n",
        stream);
  for (const pl_command *command = commands; command->name != NULL; command++)
    fprintf(stream, "  %-10s %s\n", command->name, command->summary);
  fputs(
      "\n'paceline help COMMAND' and 'paceline COMMAND --help' say more; -h is short for --help, -V for --version.\n\n"
      "Example, two seconds on a laptop:\n"
      "  paceline search --model llama-3.1-8b --platform dgx-h100:16 --gbs 512\n",
      stream);
}

/* These share their work among ranks. Of the others every rank would do the same: the first does it, so that
 * `mpirun -n 2 paceline simulate` prints once and writes its files once. */
static bool uses_ranks(const pl_command *command) {
  return command->run == pl_cmd_sweep || command->run == pl_cmd_search || command->run == pl_cmd_run ||
         command->run == pl_cmd_calibrate;
}

/* The command sees "paceline <name>" as its argv[0], which is what its usage message shows. */
static int run(const pl_command *command, int argc, char **argv) {
  char name[64];
  if (!uses_ranks(command) && pl_ranks_must_be_silent()) return 0;
  snprintf(name, sizeof name, "paceline %s", command->name);
  argv[1] = name;
  return command->run(argc - 1, argv + 1);
}

/* Output that is not for eyes is written in large pieces: help and reports are in one, whose failure still has its
 * cause when the command ends (a full disk, not "write failed"). */
static void widen_output(void) {
  if (!isatty(STDOUT_FILENO)) setvbuf(stdout, NULL, _IOFBF, 1 << 16);
}

static const pl_command *find(const char *name) {
  for (const pl_command *command = commands; command->name != NULL; command++)
    if (strcmp(name, command->name) == 0) return command;
  return NULL;
}

static int refuse(const char *name) {
  const char *names[sizeof commands / sizeof commands[0]];
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    names[i] = commands[i].name;
  char hint[PL_WORDS_HINT_BYTES];
  fprintf(stderr, "paceline: '%s' is not a command; 'paceline --help' lists them%s\n", name,
          pl_words_hint(names, name, hint));
  return 2;
}

/* paceline help COMMAND [WORD]: as paceline COMMAND [WORD] --help. */
static int help(int argc, char **argv) {
  char word[] = "--help", *words[5] = {argv[0]};
  if (argc > 2 && find(argv[2]) == NULL) return refuse(argv[2]);
  if (argc > 4) {
    fprintf(stderr, "paceline help: '%s' is one argument too many\n", argv[4]);
    return 2;
  }
  if (argc == 2) {
    print_help(stdout);
    return pl_command_finish("help", 0);
  }
  for (int i = 2; i < argc; i++)
    words[i - 1] = argv[i];
  words[argc - 1] = word;
  return run(find(argv[2]), argc, words);
}

static bool is_one_of(const char *word, const char *a, const char *b) {
  return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

int main(int argc, char **argv) {
  widen_output();
  if (argc < 2) {
    print_help(stderr);
    return 2;
  }
  if (is_one_of(argv[1], "--help", "-h")) {
    print_help(stdout);
    return pl_command_finish("help", 0);
  }
  if (strcmp(argv[1], "help") == 0) return help(argc, argv);
  if (is_one_of(argv[1], "--version", "-V")) {
    printf("paceline " PACELINE_VERSION " (build %s)\n", pl_build_id());
    return pl_command_finish("version", 0);
  }
  const pl_command *command = find(argv[1]);
  return command != NULL ? run(command, argc, argv) : refuse(argv[1]);
}
