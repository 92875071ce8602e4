/* `paceline model show` of models that are their program alone: ONNX files, recommendation models and
 * models of several kinds of layers. */
#ifndef PL_WORKLOADS_SHOW_PROGRAM_MODEL_H
#define PL_WORKLOADS_SHOW_PROGRAM_MODEL_H

#include <stdio.h>

#include "workloads/framework/job.h"
#include "workloads/ir/model.h"

/* Prints what is in the file, what is assumed of it, and each function of its model program at job->seq and `mbs`
 * samples.
 */
pl_code pl_program_model_show(const pl_model *model, const pl_job *job, int64_t mbs, bool json, pl_arena *arena,
                              pl_error *error);
/* Whether a sample of it is a sequence of tokens, whose number is the job's. */
bool pl_program_model_has_tokens(const pl_model *model);
/* What is assumed of kernels that no device was measured with; NULL: nothing. */
const char *pl_program_kernels_assumed(const pl_model *model);
/* Which loss is put behind which output, in one line; `text` has room for it. */
enum { PL_ONNX_LOSS_TEXT_BYTES = 400 };
const char *pl_onnx_loss_text(const pl_model *model, char text[PL_ONNX_LOSS_TEXT_BYTES]);

#endif
