/* The section "gemm" of a profile made from timings: fits, what is said about them, and how the section is written. */
#ifndef PL_VALIDATION_GEMM_SECTION_H
#define PL_VALIDATION_GEMM_SECTION_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "validation/fit/gemm_fit.h"

/* Fits every data type among the samples and puts the fits in front of those that `device` has for other types. Where
 * fp16 and bf16 have the same peak they run in the same units at the same rate: timings of either are taken for both.
 * Prints what came out to `out`. Everything in `arena`; reorders the samples. */
pl_code pl_gemm_section_take(const pl_device_profile *device, pl_gemm_samples *samples, pl_arena *arena, FILE *out,
                             pl_gemm_profile *gemm, pl_error *error);

/* The fits of a relative for the data types that `device` computes in, for one that nothing was measured on. Overheads,
 * shares of bandwidth and unaligned factors are taken as they are, the efficiencies of tiles by the ratio of both
 * profiles' efficiency.compute, the cache's rate by the number of multiprocessors; the residuals, which have the
 * library's taste and clocks that drop under load, if that is less than twice and more than half as many. Untested, so
 * without errors. device->gemm.multiprocessors is set. PL_BAD_INPUT: `from` has no fit that helps. */
pl_code pl_gemm_section_transfer(const pl_device_profile *device, const pl_device_profile *from, pl_arena *arena,
                                 pl_gemm_profile *gemm, pl_error *error);

/* For pl_profile_section; `content` is a pl_gemm_profile. */
void pl_gemm_section_write(pl_json *json, const void *content);

#endif
