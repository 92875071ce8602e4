/* `paceline verify`: whether a strategy computes what the model says. */
#include "workloads/command/cmd_verify.h"

#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/text/json_writer.h"
#include "netmodel/platform/platform.h"
#include "workloads/command/job_options.h"
#include "workloads/execute/data.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/onnx/onnx_program.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/passes/verify.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/tree_prices.h"
#include "workloads/strategy/job_defaults.h"

enum {
  KEY_MODEL = 'm',
  KEY_STRATEGY = 'S',
  KEY_GBS = 'b',
  KEY_SEQ = 's',
  KEY_STEPS = 'n',
  KEY_SEED = 'r',
  KEY_SINGLE = '1',
  KEY_WEIGHTS = 'w',
  KEY_FRAMEWORK = 'f',
  KEY_PLATFORM = 'P',
  KEY_JSON = 'j'
};

/* The executor is for tiny models: above this a run would take minutes. */
static const double parameters_most = 2e7;

typedef struct verify_request {
  const char *model, *strategy, *gbs, *seq, *steps, *seed, *framework, *platform;
  bool single, json, weights;
  pl_error error;
} verify_request;

static const struct argp_option option_table[] = {
    {"model", KEY_MODEL, "FILE", 0, "a config.json or ONNX file of a tiny model (at most 20 million parameters)", 0},
    {"strategy", KEY_STRATEGY, "TEXT", 0, "key=value,...: as for 'paceline simulate'; or FILE.yaml, a strategy tree",
     0},
    {"gbs", KEY_GBS, "N", 0, "sequences per iteration", 0},
    {"seq", KEY_SEQ, "N", 0, "sequence length (default: as 'paceline simulate' takes it)", 0},
    {"steps", KEY_STEPS, "N", 0, "optimizer steps (default 2)", 0},
    {"seed", KEY_SEED, "N", 0, "of weights and data (default 1)", 0},
    {"fp32", KEY_SINGLE, NULL, 0, "values in single precision instead of double", 0},
    {"weights", KEY_WEIGHTS, NULL, 0, "the weights of an ONNX file instead of random ones", 0},
    {"framework", KEY_FRAMEWORK, "NAME", 0,
     "the kernels that a framework launches for the program: as for 'paceline simulate'; or ideal. Its types are those "
     "of "
     "a model of 16 bits (what is cast where, and kept or sent wider), its values are of 64 bits all the same (--fp32: "
     "32)",
     0},
    {"platform", KEY_PLATFORM, "PLATFORM", 0,
     "of a strategy tree the program that 'paceline simulate' makes for this platform (default: by bytes on the wire)",
     0},
    {"json", KEY_JSON, NULL, 0, "print the result as JSON", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  verify_request *own = state->input;
  switch (key) {
  case KEY_MODEL:
    own->model = value;
    return 0;
  case KEY_FRAMEWORK:
    own->framework = value;
    return 0;
  case KEY_PLATFORM:
    own->platform = value;
    return 0;
  case KEY_STRATEGY:
    own->strategy = value;
    return 0;
  case KEY_GBS:
    own->gbs = value;
    return 0;
  case KEY_SEQ:
    own->seq = value;
    return 0;
  case KEY_STEPS:
    own->steps = value;
    return 0;
  case KEY_SEED:
    own->seed = value;
    return 0;
  case KEY_WEIGHTS:
    own->weights = true;
    return 0;
  case KEY_SINGLE:
    own->single = true;
    return 0;
  case KEY_JSON:
    own->json = true;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &own->error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

typedef struct verify_job {
  pl_model model;
  pl_job job;
  bool by_tree;
  pl_strategy strategy;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_platform *platform;      /* NULL: none */
  pl_job_options collectives; /* its */
  pl_verify_options options;
} verify_job;

static pl_code read_numbers(const verify_request *in, verify_job *own, pl_error *error) {
  int64_t steps = 2, seed = 1;
  if (in->model == NULL) return pl_fail(error, PL_BAD_INPUT, "--model is missing (a config.json, or an ONNX file)");
  if (in->strategy == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--strategy is missing (e.g. --strategy pp=2,dp=2,tmp=2,mbs=1)");
  if (in->gbs == NULL) return pl_fail(error, PL_BAD_INPUT, "--gbs is missing (sequences per iteration)");
  PL_TRY(pl_parse_integer(in->gbs, "--gbs", 1, INT32_MAX, &own->job.gbs, error));
  if (in->seq != NULL) PL_TRY(pl_parse_integer(in->seq, "--seq", 1, INT32_MAX, &own->job.seq, error));
  if (in->steps != NULL) PL_TRY(pl_parse_integer(in->steps, "--steps", 1, 100, &steps, error));
  if (in->seed != NULL) PL_TRY(pl_parse_integer(in->seed, "--seed", 0, INT64_MAX, &seed, error));
  own->options = (pl_verify_options){.seed = (uint64_t)seed, .iterations = (int32_t)steps, .single = in->single};
  return PL_OK;
}

/* The tree's layouts as they are where its collectives take what they take there. */
static pl_code place(const verify_request *in, verify_job *own, pl_arena *arena, pl_error *error) {
  pl_job_options *options = &own->collectives;
  pl_job_options_init(options);
  options->platform_path = in->platform;
  PL_TRY(pl_job_options_adopt_collectives(options, arena, error));
  PL_TRY(pl_platform_load(in->platform, NULL, &own->platform, error));
  return pl_tree_prices_adopt(&own->tree, pl_platform_cluster(own->platform), &options->simulate, false, arena, error);
}

static pl_code read_job(const verify_request *in, verify_job *own, pl_arena *arena, pl_error *error) {
  pl_job_origin origin = {.dtype_is_given = true, .products_are_given = true, .seq_is_given = in->seq != NULL};
  PL_TRY(read_numbers(in, own, error));
  own->job.flash = true;
  PL_TRY(pl_model_load_any(in->model, arena, &own->model, error));
  PL_TRY(pl_job_defaults_take(&own->model, in->model, &own->job, &origin, error));
  if (own->model.count.trained_parameters > parameters_most)
    return pl_fail(
        error, PL_BAD_INPUT,
        "%s has %.0f parameters: programs are run in full, so take a model of the same family with fewer and "
        "smaller layers, as tiny-gpt2, tiny-llama, tiny-mixtral, tiny-deepseek, tiny-vgg and tiny-dlrm have (at most "
        "%.0f)",
        in->model, own->model.count.trained_parameters, parameters_most);
  own->by_tree = pl_tree_is_file(in->strategy);
  if (in->platform != NULL && !own->by_tree)
    return pl_fail(error, PL_BAD_INPUT, "--platform: tuples are laid out alike wherever they run; leave it out");
  if (own->by_tree) PL_TRY(pl_tree_load(in->strategy, arena, &own->tree, error));
  if (own->by_tree) return in->platform != NULL ? place(in, own, arena, error) : PL_OK;
  PL_TRY(pl_strategy_parse(in->strategy, &own->model, arena, &own->strategy, error));
  pl_strategy_adopt(&own->strategy, &own->job);
  return pl_strategy_assign_unplaced(&own->strategy, &own->model, &own->job, "; give boundaries, uniform or ends",
                                     arena, error);
}

static void print_text(const verify_job *own, const pl_verification *v) {
  double most = pl_verify_tolerance(&own->options);
  printf("%s on %u devices: %d lists, %d functions, %d microbatches, %d collectives and %d sends in them\n",
         own->model.name, v->n_devices, v->n_classes, v->n_functions, v->n_microbatches, v->n_collectives, v->n_sends);
  if (own->strategy.assumed != 0) putchar(' '), putchar(' ');
  pl_strategy_assumed_print(stdout, 11, &own->strategy);
  printf("%s, %d steps, beside the plain program (one device, one microbatch of %lld sequences):\n",
         own->options.single ? "fp32" : "fp64", own->options.iterations, (long long)own->job.gbs);
  printf("  loss       %.12g and %.12g, apart by %.1e\n", v->loss, v->other_loss, v->loss_error);
  printf("  gradients  %d, apart by at most %.1e%s%s\n", v->n_parameters, v->gradient_error,
         v->gradient_error > 0 ? ": " : "", v->gradient_error > 0 ? v->worst_gradient : "");
  printf("  weights    %d, apart by at most %.1e%s%s\n", v->n_parameters, v->weight_error,
         v->weight_error > 0 ? ": " : "", v->weight_error > 0 ? v->worst_weight : "");
  char text[PL_UNIT_TEXT_BYTES];
  printf("  copies     apart by at most %.1e\n", v->copies_error);
  printf("  memory     %s of values and state on the fullest device, values freed behind their last reader\n",
         pl_format_bytes(v->peak_bytes, text));
  printf("%s: relative to the largest element, at most %.0e is rounding\n",
         pl_verification_holds(v, &own->options) ? "equal" : "NOT EQUAL", most);
  if (v->norms_batches && own->job.norm_groups > 1)
    printf("  batch norms: over each of %d groups of pictures, a rank's microbatch, as frameworks have them\n",
           own->job.norm_groups);
  if (v->norms_batches && own->job.norm_groups == 0)
    printf("  batch norms: over the pictures of a rank's microbatch in some layers and over more in others, which the "
           "plain program does not have: dividing the batch changes what is computed\n");
}

static void print_json(const verify_job *own, const pl_verification *v) {
  pl_json json;
  pl_json_init(&json, stdout, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "model", own->model.name);
  pl_json_put_boolean(&json, "equal", pl_verification_holds(v, &own->options));
  pl_json_put_number(&json, "tolerance", pl_verify_tolerance(&own->options));
  pl_json_put_integer(&json, "n_devices", v->n_devices);
  pl_json_put_integer(&json, "n_parameters", v->n_parameters);
  pl_json_put_integer(&json, "n_collectives", v->n_collectives);
  pl_json_put_integer(&json, "n_sends", v->n_sends);
  pl_json_put_number(&json, "loss", v->loss);
  pl_json_put_number(&json, "distributed_loss", v->other_loss);
  pl_json_put_number(&json, "loss_error", v->loss_error);
  pl_json_put_number(&json, "gradient_error", v->gradient_error);
  pl_json_put_string(&json, "worst_gradient", v->worst_gradient != NULL ? v->worst_gradient : "");
  pl_json_put_number(&json, "weight_error", v->weight_error);
  pl_json_put_string(&json, "worst_weight", v->worst_weight != NULL ? v->worst_weight : "");
  pl_json_put_number(&json, "copies_error", v->copies_error);
  pl_json_put_number(&json, "peak_bytes", v->peak_bytes);
  pl_json_close_object(&json);
}

/* The program of the job; with --framework with its attention, and what it launches. */
static pl_code take_distributed(const verify_request *in, verify_job *own, pl_arena *arena, pl_ir_module *module,
                                pl_error *error) {
  pl_framework framework;
  pl_ir_module distributed;
  pl_job job = own->job;
  if (in->framework != NULL) {
    PL_TRY(pl_framework_load(in->framework, arena, &framework, error));
    job.flash = framework.kernels.flash;
    job.dtype = PL_DTYPE_BF16; /* what most profiles are about; values are numbers of 64 bits whatever a type says */
  }
  PL_TRY(
      own->by_tree
          ? pl_program_of_tree(&own->model, &job, &own->tree, PL_IR_DISTRIBUTED, arena, &own->plan, &distributed, error)
          : pl_program_of(&own->model, &job, &own->strategy, PL_IR_DISTRIBUTED, arena, &distributed, error));
  *module = distributed;
  if (in->framework == NULL) return PL_OK;
  if (!own->by_tree) framework.pipeline.token_order = pl_strategy_token_order(&own->strategy);
  PL_TRY(pl_program_kernels(&distributed, &framework, arena, module, error));
  return pl_ir_check(module, error);
}

/* A difference is what this command looks for: it is said on standard output, and the status is 2. */
static pl_code verify_job_of(const verify_request *in, verify_job *job, pl_arena *arena, bool *holds, pl_error *error) {
  pl_ir_module plain, distributed;
  pl_verification result;
  PL_TRY(take_distributed(in, job, arena, &distributed, error));
  job->job.norm_groups = pl_norm_groups_of_program(&distributed);
  PL_TRY(pl_program_of(&job->model, &job->job, NULL, PL_IR_TRAINING, arena, &plain, error));
  PL_TRY(pl_verify(&plain, &distributed, &job->options, arena, &result, error));
  (in->json ? print_json : print_text)(job, &result);
  *holds = pl_verification_holds(&result, &job->options);
  return PL_OK;
}

static pl_code verify_with_weights(const verify_request *in, verify_job *own, pl_arena *arena, bool *holds,
                                   pl_error *error) {
  if (!in->weights) return verify_job_of(in, own, arena, holds, error);
  if (own->model.program.onnx == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--weights: %s is no ONNX file, and has none; leave it out", in->model);
  pl_data_source source = {.parameter = pl_onnx_weights_read};
  pl_onnx_weights *weights;
  PL_TRY(pl_onnx_weights_open(own->model.program.onnx, &weights, error));
  source.context = weights;
  own->options.source = &source;
  pl_code code = verify_job_of(in, own, arena, holds, error);
  own->options.source = NULL; /* it goes with the weights */
  pl_onnx_weights_destroy(weights);
  return code;
}

static pl_code verify(const verify_request *in, pl_arena *arena, bool *holds, pl_error *error) {
  verify_job own = {0};
  pl_code code = read_job(in, &own, arena, error);
  if (code == PL_OK) code = verify_with_weights(in, &own, arena, holds, error);
  pl_platform_destroy(own.platform);
  return code;
}

int pl_cmd_verify(int argc, char **argv) {
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc = "Runs the distributed program of a strategy on a tiny model, all devices with real numbers, beside the "
             "plain training program, and compares loss, every gradient and every updated weight. Exit status 2 where "
             "they differ.\v"
             "Example:\n"
             "  paceline verify --model workloads/models/tiny-gpt2.json --gbs 8 \\\n"
             "    --strategy pp=2,dp=2,tmp=2,mbs=1,zero=1"};
  verify_request in = {.error = PL_ERROR_INIT};
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_command_line_parse("verify", &argp, argc, argv, false, &in, &error);
  if (code == PL_OK && in.error.code != PL_OK) {
    error = in.error;
    code = error.code;
  }
  pl_arena arena;
  pl_arena_init(&arena, 0);
  bool holds = true;
  if (code == PL_OK) code = verify(&in, &arena, &holds, &error);
  pl_arena_release(&arena);
  int status = code != PL_OK ? pl_command_report("verify", &error) : holds ? 0 : 2;
  if (code == PL_BAD_INPUT) pl_tree_error_show(stderr, &error);
  return pl_command_finish("verify", status);
}
