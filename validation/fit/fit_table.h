/* Cells of a calibration table, checked; internal to the fits. */
#ifndef PL_VALIDATION_FIT_TABLE_H
#define PL_VALIDATION_FIT_TABLE_H

#include <stdio.h>

#include "core/text/csv.h"
#include "core/text/json_writer.h"
#include "validation/fit/kernel_fit.h"

/* The column, or PL_BAD_INPUT naming the file. */
pl_code pl_fit_column(const pl_csv *csv, const char *name, uint32_t *column, pl_error *error);
/* A number of at least `lowest`; an empty cell is refused. */
pl_code pl_fit_number(const pl_csv *csv, uint32_t row, uint32_t column, double lowest, double *value, pl_error *error);
/* Index of the cell in the list of `n` names. */
pl_code pl_fit_choice(const pl_csv *csv, uint32_t row, uint32_t column, const char *const *names, uint32_t n,
                      uint32_t *choice, pl_error *error);

/* One row of five, by a hash of all its cells but the time: known before anything is looked at, the same for ever. */
bool pl_fit_holds_out(const pl_csv *csv, uint32_t row, uint32_t time_column);

/* Median and 90th percentile (the smallest error that 90 % do not exceed) of `n` errors, which are sorted in place. */
pl_fit_error pl_fit_error_of(double *errors, uint32_t n);

/* To three significant digits, as profiles have it. */
double pl_fit_rounded(double value);
/* A line of the report; nothing without rows. */
void pl_fit_print_error(FILE *out, const char *what, pl_fit_error e);
/* What the profile says of its own errors, and how it is written: {"calls": ...}; nothing without calls. */
pl_held_out pl_fit_held_out(pl_fit_error e);
void pl_fit_put_held_out(pl_json *json, const char *key, const pl_held_out *held_out);
/* "8.25us" */
void pl_fit_put_us(pl_json *json, const char *key, double time_s);

/* "No row of FILE is about DEVICE; it has A, B." */
pl_code pl_fit_no_rows(const pl_csv *csv, const char *device, pl_error *error);

#endif
