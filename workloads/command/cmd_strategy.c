/* paceline strategy check|show|choose: whether a strategy tree makes sense, what it says of a model after propagation,
 * and one tree out of a strategy space. */
#include "workloads/command/cmd_strategy.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/base/words.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "workloads/command/job_session.h"
#include "workloads/import/model_file.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/tree_prices.h"
#include "workloads/tree/tree_show.h"
#include "workloads/tree/tree_space.h"

typedef enum action { ACTION_CHECK = 0, ACTION_SHOW, ACTION_CHOOSE } action;
static const char *const action_names[] = {"check", "show", "choose", NULL};

enum { KEY_FORCE = 'f', KEY_STRATEGY = 'S', KEY_OUTPUT = 'o', KEY_TAKE = 0x600 };

typedef struct request {
  const char *action, *file, *strategy, *take, *output;
  bool force;
  pl_job_options job;
} request;

static const struct argp_option option_table[] = {
    {"strategy", KEY_STRATEGY, "FILE", 0, "a strategy tree (.yaml); or key=value,... as for 'paceline simulate'", 0},
    {"take", KEY_TAKE, "TEXT", 0, "choose: name=label,...: what is taken of each choice, as results say it", 0},
    {"output", KEY_OUTPUT, "FILE", 0, "choose: where the tree goes (default: printed)", 0},
    {"force", KEY_FORCE, NULL, 0, "replace the file if it exists", 0},
    {0},
};

static error_t read_option(int key, char *text, struct argp_state *state) {
  request *in = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &in->job;
    return 0;
  case KEY_STRATEGY:
    in->strategy = text;
    return 0;
  case KEY_TAKE:
    in->take = text;
    return 0;
  case KEY_OUTPUT:
    in->output = text;
    return 0;
  case KEY_FORCE:
    in->force = true;
    return 0;
  case ARGP_KEY_ARG:
    if (state->arg_num > 1) pl_command_line_refuse_argument(text, &in->job.error);
    *(state->arg_num == 0 ? &in->action : &in->file) = text;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static bool is_tuple(const char *strategy) {
  return !pl_tree_is_file(strategy) && strchr(strategy, '=') != NULL;
}

static pl_code check_request(request *in, pl_error *error) {
  char hint[PL_WORDS_HINT_BYTES];
  if (in->action == NULL)
    return pl_fail(
        error, PL_BAD_INPUT,
        "what is to be done? paceline strategy check FILE, paceline strategy show --model M --strategy FILE, paceline "
        "strategy choose SPACE");
  if (pl_words_find(action_names, in->action) < 0)
    return pl_fail(error, PL_BAD_INPUT, "'%s' is not an action; there are: check, show, choose%s", in->action,
                   pl_words_hint(action_names, in->action, hint));
  if (in->file != NULL && in->strategy != NULL)
    return pl_fail(error, PL_BAD_INPUT, "one strategy, please: --strategy stands beside the file %s", in->file);
  if (in->strategy == NULL) in->strategy = in->file;
  if (in->strategy == NULL) return pl_fail(error, PL_BAD_INPUT, "%s needs a strategy tree (a file, .yaml)", in->action);
  if (in->file != NULL && is_tuple(in->file) && access(in->file, F_OK) != 0)
    return pl_fail(
        error, PL_BAD_INPUT,
        "'%s' is a tuple, and %s reads a file (.yaml); 'paceline strategy show --model M --gbs N --strategy %s' "
        "prints the tree that it fills",
        in->file, in->action, in->file);
  bool chooses = pl_words_find(action_names, in->action) == ACTION_CHOOSE;
  if ((in->take != NULL || in->output != NULL) && !chooses)
    return pl_fail(error, PL_BAD_INPUT, "--%s: of 'strategy choose' alone; leave it out",
                   in->take != NULL ? "take" : "output");
  if (chooses && in->output != NULL && in->take == NULL)
    return pl_fail(error, PL_BAD_INPUT, "-o needs --take: which of the trees; without both the choices are listed");
  if (pl_words_find(action_names, in->action) == ACTION_SHOW && in->job.model_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--model is missing (a config.json): it is its ops that the tree is about");
  return PL_OK;
}

typedef struct session {
  pl_job_session job;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_ir_module module;
} session;

/* Of what a node cuts a batch into, together with those around it. */
static int64_t pieces_of(const pl_strategy_tree *tree, int32_t node) {
  int64_t n = 1;
  for (; node >= 0 && n < PL_TREE_DEGREE_MAX; node = tree->nodes[node].parent)
    if (tree->nodes[node].schedule.microbatches > 0) n *= tree->nodes[node].schedule.microbatches;
  return n;
}

/* A batch that every partition divides, where none is given: a sequence for each device and microbatch, those of inner
 * nodes included. */
static int64_t assumed_batch(const pl_strategy_tree *tree) {
  int64_t most = 1, of_mesh = 1, pieces = 1;
  for (int32_t i = 0; i < tree->n_nodes; i++) {
    int64_t degree = 1;
    for (int32_t c = 0; c < tree->nodes[i].n_cuts && degree < PL_TREE_DEGREE_MAX; c++)
      if (tree->nodes[i].cuts[c].n_axes == 0) degree *= tree->nodes[i].cuts[c].degree;
    if (degree > most) most = degree;
    if (pieces_of(tree, i) > pieces) pieces = pieces_of(tree, i);
  }
  for (int32_t i = 0; i < tree->mesh.n_axes && of_mesh < PL_TREE_DEGREE_MAX; i++)
    of_mesh *= tree->mesh.axes[i].extent;
  return (most > of_mesh ? most : of_mesh) * pieces;
}

static pl_code make_of_tuple(session *own, request *in, pl_error *error) {
  if (in->job.job.gbs == 0)
    return pl_fail(error, PL_BAD_INPUT, "--gbs is missing (sequences per iteration): the tuple has none of its own");
  PL_TRY(pl_job_session_read_any(&own->job, &in->job, in->strategy, error));
  PL_TRY(pl_strategy_assign_unplaced(&own->job.strategy, &own->job.model, &in->job.job, "; give boundaries",
                                     &own->job.arena, error));
  return pl_program_of_strategy(&own->job.model, &in->job.job, &own->job.strategy, PL_IR_DISTRIBUTED, &own->job.arena,
                                &own->tree, &own->plan, &own->module, error);
}

/* On a platform layouts are chosen by what collectives take there. */
static pl_code place(session *own, const request *in, pl_error *error) {
  if (in->job.platform_path == NULL) return PL_OK;
  PL_TRY(pl_platform_load(in->job.platform_path, NULL, &own->job.platform, error));
  return pl_tree_prices_adopt(&own->tree, pl_platform_cluster(own->job.platform), &in->job.simulate, true,
                              &own->job.arena, error);
}

/* A tree without a model: what is given beside it and can be looked at is. */
static pl_code check_alone(const session *own, const request *in, pl_error *error) {
  int32_t n;
  if (in->job.platform_path != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--platform %s: a tree lies there as a model has it; add --model",
                   in->job.platform_path);
  return in->job.job.gbs > 0 ? pl_tree_microbatches(&own->tree, in->job.job.gbs, &n, error) : PL_OK;
}

static pl_code make(session *own, request *in, bool *assumed, pl_error *error) {
  pl_arena *arena = &own->job.arena;
  if (is_tuple(in->strategy) && in->file == NULL) return make_of_tuple(own, in, error);
  PL_TRY(pl_tree_load(in->strategy, arena, &own->tree, error));
  if (in->job.model_path == NULL) return check_alone(own, in, error);
  PL_TRY(pl_model_load_any(in->job.model_path, arena, &own->job.model, error));
  *assumed = in->job.job.gbs == 0;
  if (*assumed) in->job.job.gbs = assumed_batch(&own->tree);
  PL_TRY(pl_job_options_adopt(&in->job, &own->job.model, arena, error));
  PL_TRY(place(own, in, error));
  return pl_program_of_tree(&own->job.model, &in->job.job, &own->tree, PL_IR_DISTRIBUTED, arena, &own->plan,
                            &own->module, error);
}

static void print_check(const session *own, const request *in) {
  printf("%s: a strategy tree in order: %d %s", in->strategy, own->tree.n_nodes,
         own->tree.n_nodes == 1 ? "node" : "nodes");
  if (in->job.model_path != NULL)
    printf("; %s on %u devices: %d %s of %d%s, %d different %s", own->job.model.name,
           pl_ir_module_devices(&own->module), own->plan.schedule.pp, own->plan.schedule.pp == 1 ? "stage" : "stages",
           (int32_t)pl_ir_mesh_devices(&own->plan.mesh) / own->plan.schedule.pp,
           own->plan.fixed_axes != NULL ? " or fewer" : "", own->plan.n_leaves,
           own->plan.n_leaves == 1 ? "leaf" : "leaves");
  printf("%s\n", in->job.model_path == NULL ? " (whether a model's ops fit it: add --model)" : "");
  if (in->job.model_path != NULL) pl_tree_print_notes(stdout, &own->plan);
}

/* ---- one tree out of a space ---- */

/* Every tree of it is read, so that what is wrong with one shows here. */
static pl_code list_choices(const pl_tree_space *space, pl_error *error) {
  for (uint32_t i = 0; i < space->n_candidates; i++) {
    pl_arena arena;
    pl_strategy_tree tree;
    pl_arena_init(&arena, 1 << 14);
    pl_code code = pl_tree_space_take(space, i, &arena, &tree, error);
    pl_arena_release(&arena);
    PL_TRY(code);
  }
  for (int32_t i = 0; i < space->n_choices; i++) {
    printf("%s:", space->choices[i].name);
    for (int32_t k = 0; k < space->choices[i].n_options; k++)
      printf("%s %s", k > 0 ? "," : "", space->choices[i].labels[k]);
    printf("\n");
  }
  printf("%u %s\n", space->n_candidates, space->n_candidates == 1 ? "tree" : "trees");
  return PL_OK;
}

static pl_code write_choice(const request *in, const pl_tree_space *space, pl_error *error) {
  uint32_t index;
  pl_output_file file;
  PL_TRY(pl_tree_space_find(space, in->take, &index, error));
  if (in->output == NULL) return pl_tree_space_write(space, index, stdout, error);
  PL_TRY(pl_command_refuse_input(in->output, space->path, error));
  PL_TRY(pl_output_file_open(&file, in->output, in->force, error));
  return pl_output_file_close(&file, pl_tree_space_write(space, index, file.stream, error), error);
}

static pl_code choose(const request *in, pl_arena *arena, pl_error *error) {
  pl_tree_space space;
  pl_code code = pl_tree_space_load(in->strategy, arena, &space, error);
  if (code == PL_OK) code = in->take == NULL ? list_choices(&space, error) : write_choice(in, &space, error);
  pl_tree_space_release(&space);
  return code;
}

static pl_code run(request *in, session *own, pl_error *error) {
  bool assumed = false;
  PL_TRY(check_request(in, error));
  if (pl_words_find(action_names, in->action) == ACTION_CHOOSE) return choose(in, &own->job.arena, error);
  PL_TRY(make(own, in, &assumed, error));
  if (pl_words_find(action_names, in->action) == ACTION_CHECK) {
    print_check(own, in);
    return PL_OK;
  }
  printf("strategy  %s\nmodel     %s, %" PRId64, in->strategy, own->job.model.name, in->job.job.gbs);
  if (in->job.job.seq == 1)
    fputs(" samples", stdout);
  else
    printf(" sequences of %" PRId64 " tokens", in->job.job.seq);
  printf(" in an iteration%s\n", assumed ? " (assumed; --gbs says it)" : "");
  pl_tree_show(stdout, &own->plan, &own->module);
  return PL_OK;
}

int pl_cmd_strategy(int argc, char **argv) {
  static const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .args_doc = "check FILE\nshow --model M --strategy FILE\nchoose SPACE [--take NAME=LABEL,...]",
      .doc = "Strategy trees: how a model is cut, placed and scheduled, as YAML (workloads/tree/README.md).\n\n"
             "check: whether a tree makes sense, with --model also on that model; what is wrong is shown with its "
             "line.\n"
             "show: what it says of a model after propagation: devices and partition of every op, who said so, and "
             "every collective that follows, with the reason.\n"
             "choose: the choices of a strategy space, as 'paceline sweep --strategy-space' takes it; with --take the "
             "tree that they make.\v"
             "Example:\n"
             "  paceline strategy check workloads/strategies/gpt-megatron-3d.yaml\n"
             "  paceline strategy show --model tiny-gpt2 --seq 16 \\\n"
             "    --strategy workloads/strategies/gpt-megatron-3d.yaml",
      .children = children};
  request in = {.action = NULL};
  session own = {0};
  pl_job_options_init(&in.job);
  pl_job_session_init(&own.job);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("strategy", &argp, argc, argv, false, &in, &error);
  if (code == PL_OK)
    code = in.job.error.code != PL_OK ? pl_fail(&error, in.job.error.code, "%s", in.job.error.message)
                                      : run(&in, &own, &error);
  int status = code == PL_OK ? 0 : pl_command_report("strategy", &error);
  if (code == PL_BAD_INPUT) pl_tree_error_show(stderr, &error);
  pl_job_session_release(&own.job);
  return pl_command_finish("strategy", status);
}
