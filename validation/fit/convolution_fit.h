/* Fits the section "convolutions" of a device profile (netmodel/device/device_convolutions.h) to measured times.
 *
 * Table, one row per timed call:
 *   device, multiprocessors, dtype, pass (forward, data, weight), batch, channels, height, width (of the pictures),
 *   filters, filter_height, filter_width, stride, out_height, out_width, time_us
 *
 * Rows of other devices than the profile's are passed over. Every fifth row, by a hash of its cells, is held out. Per
 * data type and pass six parameters and one of five tiles; the loss is the mean absolute logarithm of predicted over
 * measured. Deterministic.
 */
#ifndef PL_VALIDATION_CONVOLUTION_FIT_H
#define PL_VALIDATION_CONVOLUTION_FIT_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "validation/fit/kernel_fit.h"

/* Fits every data type and pass that the table `path` has ten rows of for `device`, and puts the fits in the place of
 * those of the same type and pass, or behind the others. Prints parameters and errors to `out`. Everything in `arena`.
 */
pl_code pl_convolution_section_take(pl_device_profile *device, const char *path, pl_arena *arena, FILE *out,
                                    pl_error *error);

/* The fits of a relative, with the multiprocessors that `device` has and without errors: nothing was measured on it. If
 * the relative has none, `device` keeps its own. */
pl_code pl_convolution_section_transfer(pl_device_profile *device, const pl_device_profile *from, pl_arena *arena,
                                        pl_error *error);

/* One JSON value; `content` is the pl_device_profile. */
void pl_convolution_section_write(pl_json *json, const void *content);

#endif
