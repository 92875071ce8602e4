/* What a job computes in and how long its sequences are where the command line does not say: the model's file does, or
 * something is assumed. Whichever it is, the output says so.
 *
 *   type       --dtype, else the file's dtype or torch_dtype, else fp16 (assumed)
 *   products   --fp8 or --fp4; else with --dtype, all products in it; else fp8 where the file's quantization_config has
 *              quant_method fp8 (as DeepSeek-V3, which was trained so). Other methods keep weights for inference only
 *              and are refused, unless --dtype says what is trained in
 *   sequence   --seq, else the positions before rotary scaling stretched them, else all positions, at most 8192:
 *              what models are trained on, and not what they may be asked afterwards
 */
#ifndef PL_WORKLOADS_JOB_DEFAULTS_H
#define PL_WORKLOADS_JOB_DEFAULTS_H

#include <stdio.h>

#include "core/base/status.h"
#include "core/text/json_writer.h"
#include "workloads/ir/model.h"
#include "workloads/strategy/strategy.h"

enum { PL_DEFAULT_SEQ_MOST = 8192 };

typedef enum pl_job_source { PL_SOURCE_OPTION = 0, PL_SOURCE_MODEL, PL_SOURCE_ASSUMED } pl_job_source;

extern const char *const pl_job_source_names[]; /* "option" ..., by enumerator */

typedef struct pl_job_origin {
  bool dtype_is_given, products_are_given, seq_is_given; /* on the command line */
  pl_job_source dtype, seq;                              /* once pl_job_defaults_take has run */
  bool uses_quantization;                                /* products are as the file's quantization_config says */
} pl_job_origin;

/* The sequence length that a job on `model` has unless told otherwise; 0: the file does not say. */
int64_t pl_model_default_seq(const pl_model *model);

/* Gives `job` what `origin` says is not given. `path`: of the model, for messages. PL_BAD_INPUT: a type that nothing is
 * trained in, a quantization that is not for training, no sequence length. */
pl_code pl_job_defaults_take(const pl_model *model, const char *path, pl_job *job, pl_job_origin *origin,
                             pl_error *error);

/* "type", "products", "fp8" and "sequence": a line each for what the command line left open or overrode. `width`: of
 * the labels' column; `narrow_share`: of the products in fp8 or fp4, if some are asked for (NaN: not known). */
void pl_job_origin_print(FILE *stream, int width, const pl_model *model, const pl_job *job, const pl_job_origin *origin,
                         double narrow_share);
/* "dtype_from", "seq_from" and, where the file has one, "quantization" and whether it is used. */
void pl_job_origin_json(pl_json *json, const pl_model *model, const pl_job_origin *origin);

#endif
