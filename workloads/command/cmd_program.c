/* paceline program check|print|torch: whether a program makes sense, its canonical text, and a script for torchrun that
 * does what it says; of a file, or of a job. */
#include "workloads/command/cmd_program.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/words.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "workloads/command/job_session.h"
#include "workloads/command/program_framework.h"
#include "workloads/emit/torch_script.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/unlike_replicas.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/tree_prices.h"

typedef enum action { ACTION_CHECK = 0, ACTION_PRINT, ACTION_TORCH } action;
static const char *const action_names[] = {"check", "print", "torch", NULL};

typedef struct request {
  const char *action, *file, *output, *strategy;
  pl_ir_level level;
  bool force, level_is_given;
  pl_job_options job;
} request;

enum { KEY_FORCE = 'f', KEY_LEVEL = 256, KEY_OUTPUT = 'o', KEY_STRATEGY = 'S' };

static const struct argp_option option_table[] = {
    {"output", KEY_OUTPUT, "FILE", 0, "print, torch: into this file instead of standard output", 0},
    {"force", KEY_FORCE, NULL, 0, "print, torch: replace the file if it exists", 0},
    {"level", KEY_LEVEL, "LEVEL", 0,
     "model (the forward pass), training (with backward and update), distributed (what the strategy makes of it; "
     "default with --strategy, else training) or kernels (what of it --framework launches; also of a distributed FILE)",
     0},
    {"strategy", KEY_STRATEGY, "TEXT", 0, "key=value,...: as for 'paceline simulate'; or FILE.yaml, a strategy tree",
     0},
    {0},
};

/* ---- the command line ---- */

static void read_level(request *in, const char *text) {
  char hint[PL_WORDS_HINT_BYTES];
  int found = pl_words_find(pl_ir_level_names, text);
  in->level = (pl_ir_level)(found >= 0 ? found : 0);
  in->level_is_given = true;
  if (found < 0)
    pl_fail(&in->job.error, PL_BAD_INPUT,
            "--level: '%s' is unknown; choose one of model, training, distributed, kernels%s", text,
            pl_words_hint(pl_ir_level_names, text, hint));
}

static error_t read_option(int key, char *text, struct argp_state *state) {
  request *in = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &in->job;
    return 0;
  case KEY_OUTPUT:
    in->output = text;
    return 0;
  case KEY_FORCE:
    in->force = true;
    return 0;
  case KEY_LEVEL:
    read_level(in, text);
    return 0;
  case KEY_STRATEGY:
    in->strategy = text;
    return 0;
  case ARGP_KEY_ARG:
    if (state->arg_num > 1) pl_command_line_refuse_argument(text, &in->job.error);
    *(state->arg_num == 0 ? &in->action : &in->file) = text;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* A program comes from a file or from a job, not from both. */
static pl_code check_source(request *in, pl_error *error) {
  const pl_job_options *job = &in->job;
  if (in->file != NULL) {
    const char *beside = in->strategy != NULL                               ? "--strategy"
                         : in->level_is_given && in->level != PL_IR_KERNELS ? "--level"
                         : job->model_path != NULL                          ? "--model"
                         : job->platform_path != NULL                       ? "--platform"
                         : job->job.gbs > 0                                 ? "--gbs"
                                                                            : NULL;
    if (beside == NULL) return PL_OK;
    return pl_fail(error, PL_BAD_INPUT, "%s stands beside the file %s: a program is read, or made of a job", beside,
                   in->file);
  }
  if (job->model_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "%s needs a program: a file (.plir), or --model, --gbs and --strategy",
                   in->action);
  if (job->job.gbs == 0) return pl_fail(error, PL_BAD_INPUT, "--gbs is missing (sequences per iteration)");
  if (!in->level_is_given) in->level = in->strategy != NULL ? PL_IR_DISTRIBUTED : PL_IR_TRAINING;
  if (in->strategy == NULL && in->level >= PL_IR_DISTRIBUTED)
    return pl_fail(
        error, PL_BAD_INPUT,
        "--strategy is missing (e.g. --strategy pp=4,dp=4,tmp=1,mbs=1): it says how a program is distributed");
  if (in->strategy == NULL && job->platform_path != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--platform without --strategy: only a strategy has devices");
  return PL_OK;
}

static pl_code check_request(request *in, pl_error *error) {
  if (in->action == NULL)
    return pl_fail(
        error, PL_BAD_INPUT,
        "what is to be done? paceline program check FILE, paceline program print FILE, paceline program torch FILE");
  if (pl_words_find(action_names, in->action) < 0) {
    char hint[PL_WORDS_HINT_BYTES];
    return pl_fail(error, PL_BAD_INPUT, "'%s' is not an action; there are: check, print, torch%s", in->action,
                   pl_words_hint(action_names, in->action, hint));
  }
  if (in->output != NULL && strcmp(in->action, action_names[ACTION_CHECK]) == 0)
    return pl_fail(error, PL_BAD_INPUT, "--output: %s writes no program; print does", in->action);
  return check_source(in, error);
}

/* ---- the program ---- */

/* A program, and the job that it was made of. */
typedef struct session {
  pl_job_session job;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_ir_module module;
} session;

/* On a platform a tree's layouts are chosen by what collectives take there. */
static pl_code place(session *own, const pl_job_options *options, pl_error *error) {
  if (options->platform_path == NULL) return PL_OK;
  PL_TRY(pl_platform_load(options->platform_path, NULL, &own->job.platform, error));
  return pl_tree_prices_adopt(&own->tree, pl_platform_cluster(own->job.platform), &options->simulate, true,
                              &own->job.arena, error);
}

/* Whether the program has the model as the framework holds it: its kernels, and what a named one makes of it. */
static bool is_held(const request *in) {
  return in->level == PL_IR_KERNELS || (in->level == PL_IR_DISTRIBUTED && in->job.framework_choice != NULL);
}

/* A vocabulary that does not divide stays whole on every tensor rank, which takes them as often as long. */
static void note_vocabulary(const session *own, const request *in) {
  int64_t vocab = own->job.model.width.vocab, tmp = own->job.strategy.tmp;
  if (in->strategy == NULL || in->level != PL_IR_DISTRIBUTED || tmp < 2 || vocab % tmp == 0) return;
  if (vocab == 1) return; /* models without one */
  fprintf(stderr,
          "paceline program: the vocabulary of %" PRId64 " does not divide by tmp=%" PRId64 " and is whole on every "
          "tensor rank; --framework (ideal, or another) pads it to %" PRId64 ", as 'paceline simulate' does\n",
          vocab, tmp, pl_model_held(&own->job.model, in->job.job.framework, tmp).width.vocab);
}

/* Replicas have one list, so that one of fewer microbatches may run them in another order than its schedule's. */
static void note_orders(const session *own, const request *in) {
  int32_t n;
  if (in->strategy == NULL || in->level < PL_IR_DISTRIBUTED || !pl_unlike_replicas_differ(&own->job.strategy, &n))
    return;
  fprintf(
      stderr,
      "paceline program: schedule %s orders %d microbatches otherwise than the others' with some left out, which is "
      "what replicas of %d run here\n",
      pl_schedule_name(own->job.strategy.schedule), n, n);
}

static void note_assumed(const session *own, const request *in) {
  char text[PL_ASSUMED_TEXT_BYTES];
  if (in->strategy != NULL && own->job.strategy.assumed != 0)
    fprintf(stderr, "paceline program: %s: not given\n", pl_strategy_assumed(&own->job.strategy, text));
}

static pl_code make(session *own, request *in, pl_error *error) {
  pl_job_options *options = &in->job;
  pl_ir_level level = in->level < PL_IR_KERNELS ? in->level : PL_IR_DISTRIBUTED;
  if (in->strategy == NULL || pl_tree_is_file(in->strategy)) {
    PL_TRY(pl_model_load_any(options->model_path, &own->job.arena, &own->job.model, error));
    PL_TRY(pl_job_options_adopt(options, &own->job.model, &own->job.arena, error));
  } else {
    PL_TRY(pl_job_session_read_any(&own->job, options, in->strategy, error));
    PL_TRY(options->platform_path != NULL
               ? pl_job_session_place(&own->job, options, error)
               : pl_strategy_assign_unplaced(&own->job.strategy, &own->job.model, &in->job.job,
                                             ": give --platform, or boundaries", &own->job.arena, error));
  }
  if (in->strategy != NULL && pl_tree_is_file(in->strategy)) {
    pl_model *model = &own->job.model;
    PL_TRY(pl_tree_load(in->strategy, &own->job.arena, &own->tree, error));
    PL_TRY(place(own, options, error));
    if (is_held(in))
      return pl_program_of_tree_held(model, &options->job, &own->tree, level, &own->job.arena, &own->plan, &own->module,
                                     error);
    return pl_program_of_tree(model, &options->job, &own->tree, level, &own->job.arena, &own->plan, &own->module,
                              error);
  }
  if (is_held(in)) own->job.model = pl_model_held(&own->job.model, options->job.framework, own->job.strategy.tmp);
  note_vocabulary(own, in);
  note_orders(own, in);
  note_assumed(own, in);
  return pl_program_of(&own->job.model, &options->job, in->strategy != NULL ? &own->job.strategy : NULL, level,
                       &own->job.arena, &own->module, error);
}

/* As it was read or made, and of level kernels what is launched of it. */
static pl_code take(session *own, request *in, pl_error *error) {
  pl_arena *arena = &own->job.arena;
  pl_ir_module distributed;
  bool tuple = in->file == NULL && in->strategy != NULL && !pl_tree_is_file(in->strategy);
  if (in->file != NULL) {
    PL_TRY(pl_ir_load(in->file, arena, &own->module, error));
    PL_TRY(pl_program_framework_adopt(&in->job, &own->module, "program", arena, error));
    if (in->job.framework_choice != NULL) own->module.launcher.name = in->job.framework_choice;
  } else {
    PL_TRY(make(own, in, error));
    if (in->level >= PL_IR_DISTRIBUTED)
      own->module.launcher =
          pl_launcher_of(in->job.framework_choice, in->job.job.framework, tuple ? &own->job.strategy : NULL);
  }
  PL_TRY(pl_ir_check(&own->module, error));
  if (!in->level_is_given || in->level != PL_IR_KERNELS || own->module.level == PL_IR_KERNELS) return PL_OK;
  if (own->module.level != PL_IR_DISTRIBUTED)
    return pl_fail(error, PL_BAD_INPUT, "%s is of level %s: kernels are made of level distributed", in->file,
                   pl_ir_level_names[own->module.level]);
  distributed = own->module;
  const pl_framework *framework = in->job.job.framework;
  if (tuple) framework = pl_framework_of_tuple(framework, &own->job.strategy, arena);
  if (framework == NULL && tuple) return pl_fail_memory(error, "a framework");
  PL_TRY(pl_program_kernels(&distributed, framework, arena, &own->module, error));
  return pl_ir_check(&own->module, error);
}

static const char *plural(int64_t n, const char *one, const char *many) {
  return n == 1 ? one : many;
}

static void print_counts(const pl_ir_module *module, const char *path) {
  int64_t ops = 0, steps = 0;
  for (int32_t i = 0; i < module->n_functions; i++)
    ops += module->functions[i]->n_ops;
  for (int32_t i = 0; i < module->n_classes; i++)
    steps += module->classes[i].n_steps;
  printf("%s: a %s program in order: %d %s of %" PRId64 " %s, %d %s on %u %s, %" PRId64 " %s\n", path,
         pl_ir_level_names[module->level], module->n_functions, plural(module->n_functions, "function", "functions"),
         ops, plural(ops, "op", "ops"), module->n_classes, plural(module->n_classes, "class", "classes"),
         pl_ir_module_devices(module), plural(pl_ir_module_devices(module), "device", "devices"), steps,
         plural(steps, "step", "steps"));
}

static pl_code print_program(const request *in, const pl_ir_module *module, pl_error *error) {
  bool is_torch = pl_words_find(action_names, in->action) == ACTION_TORCH;
  if (is_torch) PL_TRY(pl_torch_script_check(module, error));
  if (in->output == NULL && is_torch) return pl_torch_script_write(module, stdout, module->arena, error);
  if (in->output == NULL) {
    pl_ir_print(stdout, module);
    return PL_OK;
  }
  pl_output_file file = {0};
  if (in->file != NULL) PL_TRY(pl_command_refuse_input(in->output, in->file, error));
  PL_TRY(pl_output_file_open(&file, in->output, in->force, error));
  pl_code code = PL_OK;
  if (is_torch) {
    code = pl_torch_script_write(module, file.stream, module->arena, error);
  } else {
    pl_ir_print(file.stream, module);
  }
  return pl_output_file_close(&file, code, error);
}

static pl_code run(request *in, session *own, pl_error *error) {
  PL_TRY(check_request(in, error));
  if (in->output != NULL) PL_TRY(pl_output_file_check(in->output, in->force, error));
  PL_TRY(take(own, in, error));
  if (pl_words_find(action_names, in->action) != ACTION_CHECK) return print_program(in, &own->module, error);
  print_counts(&own->module, in->file != NULL ? in->file : own->module.name);
  return PL_OK;
}

int pl_cmd_program(int argc, char **argv) {
  static const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .args_doc = "check FILE\nprint FILE\ntorch FILE\ncheck --model M --gbs N --strategy S\nprint --model M --gbs N "
                  "--strategy S",
      .doc = "Programs of the program language (.plir): what each device of a training job runs, as typed text that "
             "can be read, changed and run (workloads/language/README.md). They are read from a file, or made of a "
             "model and a strategy.\n\n"
             "check: whether a program makes sense: ops, types, layouts, state, order of all lists; what is wrong is "
             "shown with its line.\n"
             "print: its canonical text; comments behind ops stay, others go.\n"
             "torch: a script of its own for torchrun, which does what every device of the program does, with the "
             "losses of 'paceline run'.\v"
             "Example:\n"
             "  paceline program check workloads/programs/mlp-2-stages.plir\n"
             "  paceline program print --model tiny-llama --gbs 8 --seq 8 \\\n"
             "    --strategy pp=2,dp=1,tmp=2,mbs=1",
      .children = children};
  request in = {.action = NULL};
  pl_job_options_init(&in.job);
  session own;
  pl_job_session_init(&own.job);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("program", &argp, argc, argv, false, &in, &error);
  if (code == PL_OK)
    code = in.job.error.code != PL_OK ? pl_fail(&error, in.job.error.code, "%s", in.job.error.message)
                                      : run(&in, &own, &error);
  int status = code == PL_OK ? 0 : pl_command_report("program", &error);
  if (code != PL_OK && in.file != NULL) pl_ir_error_show(stderr, &error, in.file);
  if (code != PL_OK && in.file == NULL) pl_tree_error_show(stderr, &error);
  pl_job_session_release(&own.job);
  return pl_command_finish("program", status);
}
