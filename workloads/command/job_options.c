/* See workloads/command/job_options.h. */
#include "workloads/command/job_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "workloads/run/site_file.h"
#include "workloads/run/site_remains.h"

enum {
  KEY_PLATFORM = 'p',
  KEY_MODEL = 'm',
  KEY_GBS = 'b',
  KEY_SEQ = 's',
  KEY_DTYPE = 0x200,
  KEY_FP8,
  KEY_FP4,
  KEY_ATTENTION,
  KEY_BUCKET,
  KEY_SENDS,
  KEY_EXCHANGE_SMS,
  KEY_ALLOCATOR,
  KEY_FRAMEWORK,
  KEY_OP_PROFILE,
  KEY_NETWORK,
  KEY_SHARING,
  KEY_COLLECTIVES,
  KEY_ALGORITHM,
  KEY_COLLECTIVE_PROFILE,
  KEY_STREAMS,
  KEY_NO_FOLD,
  KEY_NO_FUSE,
  KEY_NO_LEAP,
  KEY_MUST_FIT,
  KEY_SITE
};

static const struct argp_option option_table[] = {
    {"platform", KEY_PLATFORM, "PLATFORM", 0,
     "SimGrid platform XML, or a name: of 'paceline list platforms', or a machine with its nodes, dgx-h100:16", 1},
    {"model", KEY_MODEL, "MODEL", 0,
     "Hugging Face config.json, a name of 'paceline list models', or an ONNX file (for its program)", 1},
    {"gbs", KEY_GBS, "N", 0, "global batch size: sequences per iteration", 1},
    {"seq", KEY_SEQ, "N", 0, "sequence length (default: the positions that the model was trained with, at most 8192)",
     1},
    {"fp8", KEY_FP8, NULL, 0,
     "the products of the layers' weights in fp8, all else in --dtype (default: what the model's quantization_config "
     "says)",
     1},
    {"fp4", KEY_FP4, NULL, 0, "as --fp8, in NVFP4", 1},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "fp32, tf32, fp16 or bf16 (default: the model's torch_dtype, else fp16); every GPU must compute in it", 1},
    {"attention", KEY_ATTENTION, "KIND", 0, "flash (default) or unfused", 1},
    {"bucket-bytes", KEY_BUCKET, "SIZE", 0, "gradient bucket (default 25MB)", 1},
    {"pipeline-sends", KEY_SENDS, "FORM", 0,
     "split (default): each tensor rank sends its share and the receivers gather; or whole", 1},
    {"exchange-sms", KEY_EXCHANGE_SMS, "N", 0,
     "multiprocessors that exchanges of experts keep busy while something computes beside them (default: as the "
     "framework has it)",
     1},
    {"allocator", KEY_ALLOCATOR, "KIND", 0,
     "how memory beyond the tensors is found: exact (the framework's allowance), caching or expandable (PyTorch's "
     "allocator, against which the training of every stage is replayed, without and with expandable segments); "
     "default: "
     "as the framework has it, and exact in sweeps and searches, which take some eight times as long with a replay",
     1},
    {"framework", KEY_FRAMEWORK, "NAME", 0,
     "what the training framework does: a name of workloads/frameworks/ or a file (default ideal: nothing waits, what "
     "can be one kernel is one, arithmetic as usual in mixed precision); options named beside it are stronger",
     1},
    {"op-profile", KEY_OP_PROFILE, "FILE", 0,
     "measured times of layers (CSV), which take the place of the sum of their ops' costs", 1},
    {"site", KEY_SITE, "FILE", 0,
     "what paceline calibrate --runs learnt of your machines and software from a few measured steps", 1},
    {"network", KEY_NETWORK, "KIND", 0,
     "flow (default), analytic (no contention) or simgrid (reference; chunked, unfolded)", 2},
    {"sharing", KEY_SHARING, "RULE", 0, "equal (default) or rtt (SimGrid's CM02)", 2},
    {"collectives", KEY_COLLECTIVES, "FORM", 0,
     "fluid (default) or chunked (every step a transfer; unfolded, and the overlap factor of profiles does not act)",
     2},
    {"algorithm", KEY_ALGORITHM, "NAME", 0, "auto (default), ring, tree, hierarchical, direct or nvls", 2},
    {"collective-profile", KEY_COLLECTIVE_PROFILE, "FILE", 0,
     "what collectives cost beyond the wires: a file, or ideal (default: collectives/nccl.json beside the platform, "
     "else "
     "Paceline's; chunked collectives are ideal)",
     2},
    {"streams", KEY_STREAMS, "POLICY", 0, "in-order (default) or ready (Proteus's executor; unfolded)", 2},
    {"no-fold", KEY_NO_FOLD, NULL, 0, "simulate every device instead of one per class", 2},
    {"no-fuse", KEY_NO_FUSE, NULL, 0, "simulate every op instead of fused passes", 2},
    {"no-leap", KEY_NO_LEAP, NULL, 0, "simulate every microbatch instead of leaping over those that repeat others", 2},
    {"must-fit", KEY_MUST_FIT, NULL, 0, "exit status 3 if it does not fit in memory (a search: if nothing does)", 2},
    {0},
};

const char *const pl_send_form_names[] = {"whole", "split", NULL};
const char *const pl_network_names[] = {"flow", "analytic", "simgrid", NULL};
const char *const pl_sharing_names[] = {"equal", "rtt", NULL};
const char *const pl_stream_policy_names[] = {"in-order", "ready", NULL};
const char *const pl_collective_form_names[] = {"fluid", "chunked", NULL};

static void choose(pl_job_options *options, const char *option, const char *value, const char *const *choices,
                   int *chosen) {
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  int found = pl_words_find(choices, value);
  if (found >= 0) {
    *chosen = found;
  } else {
    pl_fail(&options->error, PL_BAD_INPUT, "%s: '%s' is unknown; choose one of %s%s", option, value,
            pl_words_list(choices, list, sizeof list), pl_words_hint(choices, value, hint));
  }
}

static void read_count(pl_job_options *options, const char *option, const char *value, int64_t *count) {
  pl_parse_integer(value, option, 1, INT32_MAX, count, &options->error);
}

static void read_simulation_key(pl_job_options *options, int key, const char *value) {
  pl_simulate_options *simulate = &options->simulate;
  int chosen = 0;
  switch (key) {
  case KEY_NETWORK:
    choose(options, "--network", value, pl_network_names, &chosen);
    simulate->network = (pl_network_kind)chosen;
    break;
  case KEY_SHARING:
    choose(options, "--sharing", value, pl_sharing_names, &chosen);
    simulate->sharing = (pl_sharing)chosen;
    break;
  case KEY_COLLECTIVES:
    choose(options, "--collectives", value, pl_collective_form_names, &chosen);
    simulate->chunked = chosen == 1;
    break;
  case KEY_ALGORITHM:
    choose(options, "--algorithm", value, pl_algorithm_names, &chosen);
    simulate->algorithm = (pl_collective_algorithm)chosen;
    break;
  case KEY_STREAMS:
    choose(options, "--streams", value, pl_stream_policy_names, &chosen);
    simulate->streams = (pl_stream_policy)chosen;
    break;
  case KEY_NO_FOLD:
    simulate->fold = false;
    break;
  case KEY_NO_LEAP:
    simulate->leap = false;
    break;
  default:
    simulate->fuse = false;
    break;
  }
}

static void read_dtype(pl_job_options *options, const char *value) {
  int dtype = pl_dtype_from_alias(value);
  if (dtype < 0 || dtype >= PL_DTYPE_FP8) {
    pl_fail(&options->error, PL_BAD_INPUT, "--dtype: '%s' is %s; choose one of fp32, tf32, fp16, bf16%s", value,
            dtype < 0 ? "unknown" : "not supported for training",
            dtype < 0 ? "" : " (--fp8 and --fp4 are for the products alone)");
    return;
  }
  options->job.dtype = (pl_dtype)dtype;
  options->origin.dtype_is_given = true;
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  static const char *const kinds[] = {"flash", "unfused", NULL};
  pl_job_options *options = state->input;
  int chosen = 0;
  int64_t number;
  switch (key) {
  case KEY_PLATFORM:
    options->platform_path = value;
    return 0;
  case KEY_MODEL:
    options->model_path = value;
    return 0;
  case KEY_GBS:
    read_count(options, "--gbs", value, &options->job.gbs);
    return 0;
  case KEY_SEQ:
    read_count(options, "--seq", value, &options->job.seq);
    options->origin.seq_is_given = true;
    return 0;
  case KEY_DTYPE:
    read_dtype(options, value);
    return 0;
  case KEY_FP8:
    options->job.fp8 = options->origin.products_are_given = true;
    return 0;
  case KEY_FP4:
    options->job.fp8 = options->job.fp4 = options->origin.products_are_given = true;
    return 0;
  case KEY_ATTENTION:
    choose(options, "--attention", value, kinds, &chosen);
    options->job.flash = chosen == 0;
    options->attention_is_given = true;
    return 0;
  case KEY_BUCKET:
    pl_parse_bytes(value, "--bucket-bytes", &options->job.bucket_bytes, &options->error);
    options->bucket_is_given = true;
    return 0;
  case KEY_SENDS:
    choose(options, "--pipeline-sends", value, pl_send_form_names, &chosen);
    options->job.split_sends = chosen == 1;
    options->sends_are_given = true;
    return 0;
  case KEY_EXCHANGE_SMS:
    if (pl_parse_integer(value, "--exchange-sms", 0, INT32_MAX, &number, &options->error) == PL_OK)
      options->exchange_sms = (double)number;
    options->exchange_is_given = true;
    return 0;
  case KEY_ALLOCATOR:
    choose(options, "--allocator", value, pl_allocator_names, &options->allocator);
    return 0;
  case KEY_FRAMEWORK:
    options->framework_choice = value;
    return 0;
  case KEY_OP_PROFILE:
    options->op_profile_path = value;
    return 0;
  case KEY_COLLECTIVE_PROFILE:
    options->collective_choice = value;
    return 0;
  case KEY_SITE:
    options->site_path = value;
    return 0;
  case KEY_MUST_FIT:
    options->must_fit = true;
    return 0;
  case KEY_NETWORK:
  case KEY_SHARING:
  case KEY_COLLECTIVES:
  case KEY_ALGORITHM:
  case KEY_STREAMS:
  case KEY_NO_FOLD:
  case KEY_NO_FUSE:
  case KEY_NO_LEAP:
    read_simulation_key(options, key, value);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp pl_job_options_argp = {.options = option_table, .parser = read_option};

void pl_job_options_init(pl_job_options *options) {
  *options = (pl_job_options){.job = {.dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 25e6, .split_sends = true},
                              .exchange_sms = -1,
                              .allocator = -1,
                              .sends_tokens_per_node = -1,
                              .permutation = -1,
                              .experts = -1,
                              .simulate = PL_SIMULATE_OPTIONS_DEFAULT};
}

void pl_job_options_count_memory(pl_job_options *options) {
  if (options->allocator >= 0) return;
  options->allocator = PL_ALLOCATOR_EXACT;
  options->counts_memory = true;
}

void pl_job_options_print_memory(FILE *stream, int width, const pl_job_options *options) {
  if (options->passed_over == PL_ALLOCATOR_EXACT) return;
  fprintf(stream, "%-*sof tensors and what %s adds; simulate replays its allocator, as --allocator %s does here\n",
          width, "memory", options->framework.name, pl_allocator_names[options->passed_over]);
}

pl_code pl_job_options_check(pl_job_options *options, pl_error *error) {
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->platform_path == NULL)
    return pl_fail(
        error, PL_BAD_INPUT,
        "--platform is missing: a file, or a name such as dgx-a100-16 or dgx-h100:16 ('paceline list platforms')");
  if (options->model_path == NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--model is missing: a config.json, or a name such as gpt3-175b ('paceline list models')");
  if (options->job.gbs == 0)
    return pl_fail(error, PL_BAD_INPUT, "--gbs N is missing: the number of sequences per iteration");
  return PL_OK;
}

pl_code pl_job_options_adopt_collectives(pl_job_options *options, pl_arena *arena, pl_error *error) {
  const char *path;
  bool chunked = options->simulate.chunked || options->simulate.network == PL_NETWORK_SIMGRID;
  PL_TRY(pl_collective_profile_path(options->collective_choice, options->platform_path, arena, &path, error));
  if (path == NULL) return PL_OK;
  if (chunked && options->collective_choice != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--collective-profile %s: chunked collectives, which --network simgrid plays too, are always ideal; "
                   "leave it out",
                   path);
  if (chunked) return PL_OK;
  PL_TRY(pl_collective_profile_load(path, arena, &options->collective_profile, error));
  options->simulate.collective_profile = &options->collective_profile;
  return PL_OK;
}

/* What is named beside the framework. */
static void adopt_named(pl_job_options *options) {
  const pl_framework *named = pl_framework_or_ideal(options->job.framework);
  bool allocates = options->allocator >= 0 && options->allocator != (int)named->memory.allocator;
  if (options->exchange_sms < 0 && options->sends_tokens_per_node < 0 && options->permutation < 0 &&
      options->experts < 0 && !allocates)
    return;
  if (options->job.framework != &options->framework)
    options->framework = *pl_framework_or_ideal(options->job.framework);
  options->job.framework = &options->framework;
  if (options->exchange_sms >= 0) options->framework.pipeline.exchange_multiprocessors = options->exchange_sms;
  if (options->sends_tokens_per_node >= 0)
    options->framework.pipeline.sends_tokens_per_node = options->sends_tokens_per_node == 1;
  if (options->permutation >= 0) options->framework.kernels.permutation = options->permutation;
  if (options->experts >= 0) options->framework.kernels.experts = options->experts;
  if (allocates && options->counts_memory) options->passed_over = (int)options->framework.memory.allocator;
  if (allocates) options->framework.memory.allocator = (pl_allocator_form)options->allocator;
}

pl_code pl_job_options_adopt_framework(pl_job_options *options, pl_arena *arena, pl_error *error) {
  if (options->framework_choice == NULL) {
    adopt_named(options);
    return PL_OK;
  }
  PL_TRY(pl_framework_load(options->framework_choice, arena, &options->framework, error));
  const pl_job given = options->job;
  pl_framework_apply(&options->framework, &options->job);
  if (options->attention_is_given) options->job.flash = given.flash;
  if (options->bucket_is_given) options->job.bucket_bytes = given.bucket_bytes;
  if (options->sends_are_given) options->job.split_sends = given.split_sends;
  adopt_named(options);
  return PL_OK;
}

pl_code pl_job_options_adopt_site(pl_job_options *options, pl_arena *arena, pl_error *error) {
  if (options->site_path == NULL) return PL_OK;
  if (options->simulate.network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_UNSUPPORTED, "--site: SimGrid has the platform file's figures only; use --network flow");
  return pl_site_load(options->site_path, arena, &options->site, error);
}

pl_code pl_job_options_adopt(pl_job_options *options, const pl_model *model, pl_arena *arena, pl_error *error) {
  PL_TRY(pl_job_defaults_take(model, options->model_path, &options->job, &options->origin, error));
  if (options->platform_path != NULL) PL_TRY(pl_job_options_adopt_collectives(options, arena, error));
  if (options->op_profile_path != NULL) {
    PL_TRY(pl_op_profile_load(options->op_profile_path, arena, &options->op_profile, error));
    options->job.op_profile = &options->op_profile;
  }
  PL_TRY(pl_job_options_adopt_framework(options, arena, error));
  return pl_job_options_adopt_site(options, arena, error);
}

pl_code pl_job_options_visit(pl_job_options *options, const pl_cluster **cluster, pl_arena *arena, pl_error *error) {
  if (options->site_path == NULL) return PL_OK;
  pl_site_view view;
  bool has_job = options->model_path != NULL || options->model_text != NULL; /* a program by itself has none */
  const char *const name[PL_SITE_NAMES] = {(*cluster)->profiles[0].name,
                                           pl_framework_or_ideal(options->job.framework)->name,
                                           has_job ? pl_configuration_precision(&options->job) : NULL};
  options->site = *pl_site_of(&options->site, name);
  options->framework = pl_site_framework(&options->site, options->job.framework);
  options->job.framework = &options->framework;
  if (options->site.remains != NULL && options->site.remains->n > 0) options->simulate.remains = options->site.remains;
  PL_TRY(pl_site_view_take(&options->site, *cluster, options->simulate.collective_profile, arena, &view, error));
  *cluster = view.cluster;
  options->simulate.collective_profile = view.collectives;
  return PL_OK;
}
/* The first device that does not compute in `dtype`, or NULL. */
static const pl_device_profile *without(const pl_cluster *cluster, pl_dtype dtype) {
  for (uint32_t i = 0; i < cluster->n_profiles; i++)
    if (!(cluster->profiles[i].peak_flops[dtype] > 0)) return &cluster->profiles[i];
  return NULL;
}

static pl_code check_dtype(const pl_job_options *options, const pl_model *model, const pl_cluster *cluster,
                           pl_error *error) {
  const pl_job_source source = options->origin.dtype;
  pl_dtype dtype = options->job.dtype;
  const pl_device_profile *profile = without(cluster, dtype);
  if (profile == NULL) return PL_OK;
  char list[64] = "";
  for (int other = 0; other < PL_DTYPE_FP8; other++)
    if (without(cluster, (pl_dtype)other) == NULL)
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? ", " : "",
               pl_dtype_name((pl_dtype)other));
  return pl_fail(error, PL_BAD_INPUT, "%s %s%s: %s does not compute in it; what every GPU here does%s: %s",
                 source == PL_SOURCE_MODEL ? model->types.dtype_key : "--dtype", pl_dtype_name(dtype),
                 source == PL_SOURCE_MODEL     ? " of the model"
                 : source == PL_SOURCE_ASSUMED ? ", which is assumed"
                                               : "",
                 profile->name, source == PL_SOURCE_OPTION ? "" : ", for --dtype",
                 list[0] ? list : "nothing in common");
}

static pl_code check_products(const pl_job_options *options, const pl_cluster *cluster, pl_error *error) {
  pl_dtype narrow = options->job.fp4 ? PL_DTYPE_FP4 : PL_DTYPE_FP8;
  const pl_device_profile *profile = options->job.fp8 ? without(cluster, narrow) : NULL;
  if (profile == NULL) return PL_OK;
  if (options->origin.uses_quantization)
    return pl_fail(error, PL_BAD_INPUT,
                   "quantization_config of the model asks for products in fp8, in which %s does not compute; name the "
                   "type to train in with --dtype, and it is left out",
                   profile->name);
  return pl_fail(error, PL_BAD_INPUT, "--%s: %s does not compute in it", pl_dtype_name(narrow), profile->name);
}

/* A profile of something else is a mistake, not a profile without effect. */
static pl_code check_op_profile(const pl_job_options *options, const pl_model *model, const pl_cluster *cluster,
                                pl_error *error) {
  const pl_job *job = &options->job;
  if (job->op_profile == NULL || pl_op_profile_applies(job->op_profile, model, job->dtype, job->seq, cluster))
    return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "--op-profile %s: no row is of a block of %s (hidden %" PRId64 ") in %s at %" PRId64
                 " tokens on a GPU of this platform (%s ...)",
                 job->op_profile->path, model->name, model->width.hidden, pl_dtype_name(job->dtype), job->seq,
                 cluster->profiles[0].name);
}

pl_code pl_job_options_check_exchange(const pl_job_options *options, const pl_cluster *cluster, pl_error *error) {
  const pl_framework *framework = pl_framework_or_ideal(options->job.framework);
  double taken = framework->pipeline.exchange_multiprocessors;
  for (uint32_t i = 0; taken > 0 && i < cluster->n_profiles; i++) {
    double all = cluster->profiles[i].gemm.multiprocessors;
    if (all <= 0 && options->exchange_is_given)
      return pl_fail(error, PL_BAD_INPUT,
                     "--exchange-sms %g: of how many multiprocessors is not known of %s, so that they would be taken "
                     "from nobody; its profile needs gemm.multiprocessors ('paceline calibrate --gemm'), or leave the "
                     "option out",
                     taken, cluster->profiles[i].name);
    if (all <= 0 || taken < all) continue;
    char said[128];
    if (options->exchange_sms > 0)
      snprintf(said, sizeof said, "--exchange-sms %g", taken);
    else
      snprintf(said, sizeof said, "framework %.60s, exchange_multiprocessors %g", framework->name, taken);
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: %s has %g multiprocessors, and computes beside exchanges on those that are left; DeepEP takes "
                   "20, NCCL 16",
                   said, cluster->profiles[i].name, all);
  }
  return PL_OK;
}

pl_code pl_job_options_complete(pl_job_options *options, const pl_model *model, const pl_cluster *cluster,
                                pl_error *error) {
  PL_TRY(check_dtype(options, model, cluster, error));
  PL_TRY(pl_job_options_check_exchange(options, cluster, error));
  PL_TRY(check_op_profile(options, model, cluster, error));
  return check_products(options, cluster, error);
}

pl_code pl_job_options_demand_fit(const pl_job_options *options, const pl_result_row *row, pl_error *error) {
  char lack[PL_UNIT_TEXT_BYTES];
  if (!options->must_fit || row->fits) return PL_OK;
  return pl_fail(error, PL_DOES_NOT_FIT, "--must-fit: stage %d lacks %s of memory", row->peak_stage,
                 pl_format_bytes((double)(row->peak_mem_bytes - row->mem_capacity_bytes), lack));
}
