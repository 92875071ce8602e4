/* See workloads/strategy/job_defaults.h. */
#include "workloads/strategy/job_defaults.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "workloads/ir/stack.h"
#include "workloads/onnx/onnx_program.h"

const char *const pl_job_source_names[] = {
    [PL_SOURCE_OPTION] = "option", [PL_SOURCE_MODEL] = "model", [PL_SOURCE_ASSUMED] = "assumed"};

static bool is_for_training(int dtype) {
  return dtype >= 0 && dtype < PL_DTYPE_FP8;
}

int64_t pl_model_default_seq(const pl_model *model) {
  int64_t made_for = model->positions.max_positions;
  if (model->positions.original_positions > 0 && (made_for == 0 || model->positions.original_positions < made_for))
    made_for = model->positions.original_positions;
  return made_for < PL_DEFAULT_SEQ_MOST ? made_for : PL_DEFAULT_SEQ_MOST;
}

static pl_code take_type(const pl_model *model, const char *path, pl_job *job, pl_job_origin *origin, pl_error *error) {
  origin->dtype = PL_SOURCE_OPTION;
  if (origin->dtype_is_given) return PL_OK;
  origin->dtype = model->types.dtype_name != NULL ? PL_SOURCE_MODEL : PL_SOURCE_ASSUMED;
  if (model->types.dtype_name == NULL) return PL_OK;
  int dtype = pl_dtype_from_alias(model->types.dtype_name);
  if (!is_for_training(dtype))
    return pl_fail(
        error, PL_BAD_INPUT,
        "%s: %s is '%.32s', which nothing is trained in here; name the type with --dtype: one of fp32, tf32, "
        "fp16, bf16",
        path, model->types.dtype_key, model->types.dtype_name);
  job->dtype = (pl_dtype)dtype;
  return PL_OK;
}

static pl_code take_products(const pl_model *model, const char *path, pl_job *job, pl_job_origin *origin,
                             pl_error *error) {
  origin->uses_quantization = false;
  if (model->types.quantization == NULL || origin->products_are_given || origin->dtype_is_given) return PL_OK;
  if (strcmp(model->types.quantization, "fp8") != 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: quantization_config: weights kept by '%.32s' are for inference and not trained; name what is "
                   "trained in with --dtype (bf16, for one), and the quantization is left out",
                   path, model->types.quantization);
  job->fp8 = origin->uses_quantization = true;
  return PL_OK;
}

/* Whose tokens are patches: as many as the file says. */
static bool is_of_pictures(const pl_model *model) {
  return model->program.stack != NULL && model->program.stack->kind == PL_STACK_PATCHES;
}

/* A length that its file does not take is wrong before any strategy is. */
static pl_code check_exported(const pl_onnx_model *onnx, const char *path, const pl_job *job, pl_error *error) {
  if (!onnx->has_seq && job->seq != 1)
    return pl_fail(error, PL_BAD_INPUT, "--seq %" PRId64 ": the inputs of %s have no tokens; leave --seq out", job->seq,
                   path);
  if (onnx->has_seq && onnx->seq > 0 && job->seq != onnx->seq)
    return pl_fail(error, PL_BAD_INPUT,
                   "--seq %" PRId64 ": %s was exported for %" PRId64
                   " tokens only; leave --seq out, or export it with dynamic_axes",
                   job->seq, path, onnx->seq);
  return PL_OK;
}

pl_code pl_job_defaults_take(const pl_model *model, const char *path, pl_job *job, pl_job_origin *origin,
                             pl_error *error) {
  PL_TRY(take_type(model, path, job, origin, error));
  PL_TRY(take_products(model, path, job, origin, error));
  origin->seq = origin->seq_is_given ? PL_SOURCE_OPTION : PL_SOURCE_ASSUMED;
  if (origin->seq_is_given && is_of_pictures(model) && job->seq != model->positions.max_positions)
    return pl_fail(error, PL_BAD_INPUT, "--seq %" PRId64 ": a picture is %" PRId64 " tokens for %s; leave --seq out",
                   job->seq, model->positions.max_positions, path);
  if (origin->seq_is_given && model->program.onnx != NULL)
    PL_TRY(check_exported(model->program.onnx, path, job, error));
  if (origin->seq_is_given) return PL_OK;
  job->seq = pl_model_default_seq(model);
  if (job->seq > 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--seq N is missing, and %s does not say how many positions the model has", path);
}

/* ---- saying ---- */

static void print_type(FILE *stream, int width, const pl_model *model, const pl_job *job, const pl_job_origin *origin) {
  const char *name = pl_dtype_name(job->dtype);
  if (origin->dtype == PL_SOURCE_MODEL) {
    fprintf(stream, "%-*s%s, the %s of the model\n", width, "type", name, model->types.dtype_key);
  } else if (origin->dtype == PL_SOURCE_ASSUMED) {
    fprintf(stream, "%-*s%s, assumed: the model's file names none (--dtype changes it)\n", width, "type", name);
  } else if (model->types.dtype_name != NULL && pl_dtype_from_alias(model->types.dtype_name) != (int)job->dtype) {
    fprintf(stream, "%-*s%s, as asked for; the model's %s is %s\n", width, "type", name, model->types.dtype_key,
            model->types.dtype_name);
  }
}

static void print_products(FILE *stream, int width, const pl_model *model, const pl_job *job,
                           const pl_job_origin *origin) {
  bool is_fp8 = model->types.quantization != NULL && strcmp(model->types.quantization, "fp8") == 0;
  if (model->types.quantization == NULL || (is_fp8 && job->fp8 && !job->fp4 && !origin->uses_quantization)) return;
  if (origin->uses_quantization) {
    fprintf(stream, "%-*sin fp8, as the model's quantization_config says (--dtype bf16 trains without)\n", width,
            "products");
  } else {
    fprintf(stream, "%-*sthe model's quantization_config (%s) is left out\n", width, "products",
            model->types.quantization);
  }
}

/* What is computed narrower than `type` says, and against which peaks the MFU is. */
static void print_narrow(FILE *stream, int width, const pl_job *job, double share) {
  const char *narrow = job->fp4 ? "fp4" : "fp8";
  if (!job->fp8 || isnan(share)) return;
  const char *wide = pl_dtype_name(job->dtype);
  if (share > 0)
    fprintf(stream,
            "%-*s%.3g %% of the products' work: layers' weights (attention, convolutions, routers and the head stay "
            "%s); the MFU counts each at its own peak\n",
            width, narrow, 100 * share, wide);
  else
    fprintf(
        stream,
        "%-*snone of the products: it is for the weights of Transformers' layers, of which this model has none; all is "
        "%s\n",
        width, narrow, wide);
}

/* Pictures and vectors have no length to choose. */
static void print_sequence(FILE *stream, int width, const pl_model *model, const pl_job *job,
                           const pl_job_origin *origin) {
  if (origin->seq != PL_SOURCE_ASSUMED || model->unlike.parts != NULL || is_of_pictures(model) ||
      model->positions.max_positions == 1)
    return;
  fprintf(stream, "%-*s%" PRId64 " tokens, assumed: ", width, "sequence", job->seq);
  if (job->seq == model->positions.max_positions) {
    fputs("all positions of the model", stream);
  } else if (job->seq == model->positions.original_positions) {
    fprintf(stream, "the model's %" PRId64 " positions before they were stretched",
            model->positions.original_positions);
  } else {
    fprintf(stream, "the model has %" PRId64 " positions, which few train on", model->positions.max_positions);
  }
  fputs(" (--seq changes it)\n", stream);
}

void pl_job_origin_print(FILE *stream, int width, const pl_model *model, const pl_job *job, const pl_job_origin *origin,
                         double narrow_share) {
  if (model->is_text_part)
    fprintf(stream, "%-*s%s\n", width, "part",
            "the language model of the file's text_config; towers and projectors of "
            "pictures and sound are left out");
  if (model->ends.n_predictions > 0)
    fprintf(stream, "%-*s%d %s of %.0f parameters; programs and strategy trees have them, tuples leave them out\n",
            width, "multi-token", model->ends.n_predictions, model->ends.n_predictions == 1 ? "module" : "modules",
            pl_model_prediction_parameters(model) / model->ends.n_predictions);
  print_type(stream, width, model, job, origin);
  print_products(stream, width, model, job, origin);
  print_narrow(stream, width, job, narrow_share);
  print_sequence(stream, width, model, job, origin);
  if (model->of_one_sample)
    fprintf(stream, "%-*sany number of them, assumed: the file was exported for 1\n", width, "samples");
}

void pl_job_origin_json(pl_json *json, const pl_model *model, const pl_job_origin *origin) {
  if (model->is_text_part) pl_json_put_boolean(json, "text_part", true);
  if (model->ends.n_predictions > 0) pl_json_put_integer(json, "multi_token_modules", model->ends.n_predictions);
  pl_json_put_string(json, "dtype_from", pl_job_source_names[origin->dtype]);
  pl_json_put_string(json, "seq_from", pl_job_source_names[origin->seq]);
  if (model->types.quantization == NULL) return;
  pl_json_put_string(json, "quantization", model->types.quantization);
  pl_json_put_boolean(json, "quantization_used", origin->uses_quantization);
}
