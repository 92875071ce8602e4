/* See workloads/command/simulate_request.h. */
#include "workloads/command/simulate_request.h"

#include "core/base/words.h"
#include "core/system/command_line.h"
#include "workloads/import/model_file.h"
#include "workloads/tree/tree.h"

enum {
  KEY_STRATEGY = 'S',
  KEY_TRACE = 't',
  KEY_FORCE = 'f',
  KEY_JSON = 'j',
  KEY_PROGRAM = 0x300,
  KEY_DIGEST,
  KEY_VARY,
  KEY_SENSITIVITY,
  KEY_MICROBATCHES,
  KEY_TRACE_OPS,
  KEY_READ_PROGRAM,
  KEY_SVG,
  KEY_FORMAT,
  KEY_FROM,
  KEY_INFERENCE,
  KEY_AS_PROGRAM,
  KEY_EXECUTOR
};

static const struct argp_option option_table[] = {
    {"strategy", KEY_STRATEGY, "TEXT", 0, "key=value,...: pp, dp, tmp, mbs and, if wanted, others (see below)", 0},
    {"program", KEY_READ_PROGRAM, "FILE", 0,
     "instead of a model and a strategy: a program as 'paceline program print' writes it, edited or not", 0},
    {"from", KEY_FROM, "FILE", 0,
     "job, model and strategy as a launch file has them: a script with Megatron-LM's arguments, torchtitan's TOML, "
     "YAML of NeMo or Primus, DeepSpeed's JSON; options beside it are stronger, and dp follows from the platform. Or a "
     "row of a sweep's or a search's results, as it was simulated: FILE.h5 (the fastest that fits), FILE.h5:N",
     0},
    {"inference", KEY_INFERENCE, NULL, 0,
     "the forward pass alone, as a program: op by op, nothing fused, unless --framework is given", 0},
    {"as-program", KEY_AS_PROGRAM, NULL, 0,
     "simulate the program that the strategy makes, in the framework's kernels: as offload and trees always are", 0},
    {"trace", KEY_TRACE, "FILE", 0,
     "write the timeline as a Chrome trace (Perfetto, chrome://tracing), or in Perfetto's own format, which is much "
     "smaller, if its name ends in .pftrace; compressed if it ends in .gz",
     0},
    {"trace-format", KEY_FORMAT, "FORMAT", 0,
     "of --trace: timeline (default), for looking at; or what 'paceline trace import' reads back, of all ranks and "
     "ops: "
     "perfetto (one file), or a folder with a file per rank: chakra (ASTRA-sim), kineto (HolisticTraceAnalysis)",
     0},
    {"trace-microbatches", KEY_MICROBATCHES, "A-B", 0,
     "of the timeline only these microbatches, from 0 on, and what belongs to none", 0},
    {"trace-ops", KEY_TRACE_OPS, "A-B", 0,
     "in the timeline the ops of microbatches A to B alone; passes and layers of all", 0},
    {"svg", KEY_SVG, "FILE", 0, "draw the iteration: stages over time and their memory, for a slide", 0},
    {"force", KEY_FORCE, NULL, 0, "overwrite the files of --trace and --svg", 0},
    {"print-program", KEY_PROGRAM, NULL, 0, "print the program: one op list per pipeline stage", 0},
    {"json", KEY_JSON, NULL, 0, "print the result as JSON; names and units as the columns of a sweep's HDF5", 0},
    {"digest", KEY_DIGEST, NULL, 0, "print the digest of the run", 0},
    {"vary", KEY_VARY, "WHAT=VALUES", 0,
     "also on variations of the platform, e.g. link:nic.bandwidth=100Gbps,x2 (several make a grid; see below)", 0},
    {"executor", KEY_EXECUTOR, "NAME", 0,
     "engine (default), or proteus: the rules of Proteus's executor; proteus-plain, -overlap and -sharing leave rules "
     "out (unfolded, ready streams)",
     0},
    {"sensitivity", KEY_SENSITIVITY, NULL, 0,
     "also how far the time moves when all bandwidths change by one part in 10^9 (8 more simulations)", 0},
    {0},
};

static void read_executor(const char *value, pl_job_options *options) {
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  int found = pl_words_find(pl_executor_names, value);
  if (found >= 0) {
    options->simulate.executor = (pl_executor)found;
    return;
  }
  pl_fail(&options->error, PL_BAD_INPUT, "--executor: '%s' is unknown; choose one of %s%s", value,
          pl_words_list(pl_executor_names, list, sizeof(list)), pl_words_hint(pl_executor_names, value, hint));
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_simulate_request *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    state->child_inputs[1] = &options->cost;
    state->child_inputs[2] = &options->stragglers;
    state->child_inputs[3] = &options->beside;
    return 0;
  case KEY_STRATEGY:
    options->strategy = value;
    return 0;
  case KEY_TRACE:
    options->trace_path = value;
    return 0;
  case KEY_FORMAT:
    pl_export_format_parse(value, &options->format, &options->job.error);
    return 0;
  case KEY_SVG:
    options->svg_path = value;
    return 0;
  case KEY_TRACE_OPS:
    options->trace_ops = value;
    return 0;
  case KEY_MICROBATCHES:
    options->microbatches = value;
    return 0;
  case KEY_READ_PROGRAM:
    options->program_path = value;
    return 0;
  case KEY_FROM:
    options->launch_path = value;
    return 0;
  case KEY_INFERENCE:
    options->inference = true;
    return 0;
  case KEY_AS_PROGRAM:
    options->as_program = true;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case KEY_PROGRAM:
    options->print_program = true;
    return 0;
  case KEY_DIGEST:
    options->digest = true;
    return 0;
  case KEY_EXECUTOR:
    read_executor(value, &options->job);
    return 0;
  case KEY_SENSITIVITY:
    options->sensitivity = true;
    return 0;
  case KEY_VARY:
    if (options->n_vary < PL_VARY_AXES_MAX) options->vary[options->n_vary] = value;
    options->n_vary++;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->job.error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* ---- what goes together ---- */

/* A format of recordings. */
pl_code pl_simulate_request_check_export(const pl_simulate_request *options, pl_error *error) {
  const pl_simulate_options *simulate = &options->job.simulate;
  if (options->trace_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--trace-format: of what? Add --trace FILE or FOLDER");
  if (options->microbatches != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches is of the format timeline; the others are whole");
  if (simulate->chunked || simulate->network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_BAD_INPUT,
                   "--trace-format %s: has collectives whole, not in chunks; leave out --collectives chunked and "
                   "--network simgrid",
                   pl_export_format_names[options->format]);
  return pl_export_check(options->trace_path, options->format, options->force, error);
}

pl_code pl_simulate_request_check_executor(const pl_simulate_request *options, pl_error *error) {
  const pl_simulate_options *simulate = &options->job.simulate;
  if (simulate->executor == PL_EXECUTOR_ENGINE) return PL_OK;
  if (!simulate->chunked && simulate->network != PL_NETWORK_SIMGRID && options->format == PL_EXPORT_TIMELINE)
    return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "--executor %s: collectives are whole; leave out --collectives chunked, --network simgrid and "
                 "--trace-format",
                 pl_executor_names[simulate->executor]);
}

/* Runs of the one job, and drawings of it, have no neighbours. */
pl_code pl_simulate_request_check_beside(const pl_simulate_request *options, pl_error *error) {
  if (options->beside.n_paths == 0) return PL_OK;
  if (options->n_vary > 0 || options->sensitivity || options->svg_path != NULL || options->job.site_path != NULL ||
      options->format != PL_EXPORT_TIMELINE || pl_straggler_options_are_given(&options->stragglers))
    return pl_fail(
        error, PL_BAD_INPUT,
        "--beside: leave out --vary, --sensitivity, --svg, --site, --trace-format, --slow and --jitter, which "
        "are of one job");
  return PL_OK;
}

/* ---- by a program ---- */

bool pl_simulate_request_is_of_tree(const pl_simulate_request *options) {
  return options->strategy != NULL && pl_tree_is_file(options->strategy);
}

/* A tuple that says what only programs can. */
static bool is_of_programs(const pl_simulate_request *options) {
  return options->strategy != NULL && pl_strategy_text_is_of_programs(options->strategy);
}

bool pl_simulate_request_is_by_program(const pl_simulate_request *options) {
  return options->as_program || options->program_path != NULL || pl_simulate_request_is_of_tree(options) ||
         options->inference || is_of_programs(options) ||
         (options->job.model_path != NULL && pl_model_is_program_alone(options->job.model_path));
}

const char *pl_simulate_request_why_by_program(const pl_simulate_request *options) {
  if (options->program_path != NULL) return "--program is simulated as it is written";
  if (pl_simulate_request_is_of_tree(options)) return "a strategy tree is simulated as the program that it makes";
  if (is_of_programs(options)) return "a strategy with offload, recompute_layers or dualpipe is simulated as a program";
  if (options->as_program) return "--as-program";
  return options->inference ? "--inference is simulated as a program"
                            : "a model without blocks is simulated as a program";
}

/* ---- the whole of it ---- */

static const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0},
                                             {&pl_training_cost_argp, 0, NULL, 0},
                                             {&pl_straggler_options_argp, 0, NULL, 0},
                                             {&pl_beside_options_argp, 0, NULL, 0},
                                             {0}};
const struct argp pl_simulate_request_argp = {
    .options = option_table,
    .parser = read_option,
    .doc = "Simulates one training iteration of a model on a platform under one strategy.\v"
           "A strategy has the degrees pp * dp * tmp = number of GPUs and the microbatch mbs. pp and tmp that are left "
           "out are 1, dp takes the GPUs that are left. Optional keys, first value is the default:\n"
           "  assign=uniform|balanced|optimal|amp-dp|0:9:15:21:30   layers (or blocks) of the stages\n"
           "    (balanced, optimal and amp-dp are best by a closed form, not by simulated time)\n"
           "  schedule=1f1b|gpipe|interleaved|fifo|breadth-first|zb-h1|zb-h2|zb-v|dualpipe-v|dualpipe|@FILE\n"
           "    vpp=2: chunks per stage (interleaved, breadth-first); FILE lists the passes of each stage\n"
           "  recompute=none|selective|full|alternate  activation recomputation\n"
           "  sp=0|1  zero=0|1|2|3  overlap=1|0      order=tdp: placement, innermost first\n"
           "  cp=1  ep=1  etp=1: ranks of a sequence, of experts; tensor ranks of each expert (1 or tmp)\n"
           "Or FILE.yaml, a strategy tree ('paceline strategy --help'): what its program takes, in --framework's "
           "kernels.\n\n"
           "What --vary may change: link:KIND.bandwidth and .latency (nvlink, pcie, cpu, nic, fabric, or a pattern of "
           "names; nic+fabric for both), device:TYPE.memory, .bandwidth, .peak and .power, device:TYPE=OTHER, nodes. "
           "Values "
           "have a unit, or are a factor: x2.\n\n"
           "Example:\n"
           "  paceline simulate --platform dgx-a100-16 \\\n"
           "    --model gpt3-175b --gbs 1536 --seq 2048 \\\n"
           "    --strategy pp=8,dp=2,tmp=8,mbs=1,recompute=full",
    .children = children};
