/* `paceline model show` of models that are their program alone: ONNX files and recommendation models. */
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
/* Which loss is put behind which output, in one line; `text` has room for it. */
enum { PL_ONNX_LOSS_TEXT_BYTES = 400 };
const char *pl_onnx_loss_text(const pl_model *model, char text[PL_ONNX_LOSS_TEXT_BYTES]);

#endif
