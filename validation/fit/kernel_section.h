/* The sections "attention" and "kernels" of a profile made from timings: fits, what is said about them, and how the
 * sections are written. */
#ifndef PL_VALIDATION_KERNEL_SECTION_H
#define PL_VALIDATION_KERNEL_SECTION_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "validation/fit/kernel_fit.h"

/* Fits every attention kernel in the table `path` (validation/fit/kernel_fit.h) that `device` has rows of, and puts the
 * fits in the place of the kernels of these names in `device`, or behind its others. Prints parameters and errors to
 * `out`. Everything in `arena`. */
pl_code pl_attention_section_take(pl_device_profile *device, const char *path, pl_arena *arena, FILE *out,
                                  pl_error *error);
/* The same for memory-bound kernels, by kind and pass. */
pl_code pl_kernel_section_take(pl_device_profile *device, const char *path, pl_arena *arena, FILE *out,
                               pl_error *error);

/* One JSON value each; `content` is the pl_device_profile. Numbers have three significant digits. */
void pl_attention_section_write(pl_json *json, const void *content);
void pl_kernel_section_write(pl_json *json, const void *content);

#endif
