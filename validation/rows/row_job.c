/* Batch, sequence, precision and the job's habits (see validation/rows/row.h). */
#include <string.h>
#include <strings.h>

#include "validation/rows/row.h"

/* Where one of the names of a type is in `text`, NULL if none is. */
static const char *find_name(const char *text, const char *name, const char *other) {
  const char *at = strcasestr(text, name);
  return at != NULL ? at : strcasestr(text, other);
}

/* Software whose fp32 products run in TF32 on GPUs that have it: PyTorch 1.7 to 1.11
 * (torch.backends.cuda.matmul.allow_tf32 was true until 1.12), and NVIDIA's containers of any time, whose builds call
 * themselves "1.13.0a0+936e930" (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1). */
static bool computes_in_tf32(const pl_measured_row *row) {
  static const char *const older[] = {"V100", "P100", "T4", "TITAN"};
  static const char *const versions[] = {"PyTorch 1.7",  "PyTorch 1.8",  "PyTorch 1.9",
                                         "PyTorch 1.10", "PyTorch 1.11", "a0+"};
  for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
    if (pl_row_mentions(row->gpu, older[i])) return false;
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
    if (pl_row_mentions(row->framework, versions[i])) return true;
  return false;
}

/* Where the table has no such column: the type that people train in on this GPU. */
static pl_code assume_dtype(const pl_measured_row *row, pl_dtype *dtype) {
  bool single = pl_row_mentions(row->gpu, "TITAN") || pl_row_mentions(row->gpu, "P100");
  bool half = pl_row_mentions(row->gpu, "V100") || pl_row_mentions(row->gpu, "T4");
  *dtype = single ? PL_DTYPE_FP32 : half ? PL_DTYPE_FP16 : PL_DTYPE_BF16;
  return PL_OK;
}

/* Autocast that is there and off: everything is computed in the type of the weights, fp32 where none is named. */
static bool is_switched_off(const pl_measured_row *row) {
  static const char *const autocast[] = {"autocast off",    "autocast disabled",      "autocast=false",
                                         "autocast: false", "autocast(enabled=false", "no autocast",
                                         "without autocast"},
                           *const amp[] = {"amp off", "amp=false",   "amp: false",
                                           "no amp",  "without amp", "amp disabled"};
  for (size_t i = 0; i < sizeof autocast / sizeof autocast[0]; i++)
    if (pl_row_mentions(row->precision, autocast[i]) || pl_row_mentions(row->notes, autocast[i])) return true;
  for (size_t i = 0; i < sizeof amp / sizeof amp[0]; i++)
    if (pl_row_mentions(row->precision, amp[i])) return true;
  return false;
}

/* "bf16 (fp32 grad accum)", "amp_bf16", "fp16/bf16 mixed": the first name that is there. "amp" alone is fp16, the type
 * of autocast on GPUs where none is given. Megatron-Bridge's tables that name none are in fp8, those in parentheses by
 * another scaling (its docs/performance-summary.md at 35b5ecb74025 says so below the tables). */
static pl_code find_dtype(const pl_measured_row *row, pl_job *job, pl_error *error) {
  pl_dtype *dtype = &job->dtype;
  const char *text = row->precision;
  if (!pl_measured_has_column(row, "precision")) return assume_dtype(row, dtype);
  bool is_stated = text[strspn(text, " ")] != '\0' && text[strspn(text, " ")] != '(';
  if (!is_stated && !pl_row_mentions(row->framework, "Megatron-Bridge"))
    return pl_fail(error, PL_UNSUPPORTED, "not stated: precision");
  job->fp4 = pl_row_mentions(text, "fp4");
  /* Of whatever scaling; beside it bf16 unless fp16 is named. */
  job->fp8 = job->fp4 || find_name(text, "fp8", "float8") != NULL || !is_stated;
  /* "bfloat16" is in front of the "float16" in it. */
  const char *half = find_name(text, "fp16", "float16"), *brain = find_name(text, "bf16", "bfloat16");
  if (is_switched_off(row) && !job->fp8 && !pl_row_mentions(text, "pure") && !pl_row_mentions(text, "-true")) {
    *dtype = computes_in_tf32(row) || pl_row_mentions(text, "tf32") ? PL_DTYPE_TF32 : PL_DTYPE_FP32;
  } else if (half != NULL && (brain == NULL || half < brain)) {
    *dtype = PL_DTYPE_FP16;
  } else if (brain != NULL || job->fp8) {
    *dtype = PL_DTYPE_BF16;
  } else if (pl_row_mentions(text, "tf32")) {
    *dtype = PL_DTYPE_TF32;
  } else if (strncmp(text, "16", 2) == 0 || strncasecmp(text, "half", 4) == 0) { /* Lightning: "16-mixed" */
    *dtype = PL_DTYPE_FP16;
  } else if (find_name(text, "fp32", "float32") != NULL || strncmp(text, "32", 2) == 0) {
    *dtype = computes_in_tf32(row) ? PL_DTYPE_TF32 : PL_DTYPE_FP32;
  } else if (pl_row_mentions(text, "amp") || pl_row_mentions(text, "mixed")) {
    *dtype = PL_DTYPE_FP16;
  } else {
    return pl_fail(error, PL_UNSUPPORTED, "precision: '%.40s' is unknown", text);
  }
  return PL_OK;
}

pl_code pl_row_job(const pl_measured_row *row, const pl_row_habits *habits, const pl_framework *framework, pl_job *job,
                   pl_error *error) {
  *job = (pl_job){.gbs = row->gbs, .seq = row->seq_len, .flash = true, .bucket_bytes = 25e6, .split_sends = true};
  if (framework != NULL) pl_framework_apply(framework, job);
  if (habits->no_flash && row->strategy[0] == '\0') job->flash = false; /* else all is as on the command line */
  if (row->gbs == 0) return pl_fail(error, PL_UNSUPPORTED, "not stated: gbs");
  if (pl_row_is_network(row)) job->seq = 1; /* a sample is a picture */
  if (job->seq == 0) return pl_fail(error, PL_UNSUPPORTED, "not stated: seq_len");
  /* The table has the longest only. */
  if (pl_row_mentions(row->notes, "binned by length"))
    return pl_fail(error, PL_UNSUPPORTED, "not stated: lengths of sequences that are binned");
  return find_dtype(row, job, error);
}
