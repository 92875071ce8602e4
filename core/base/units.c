/* See core/base/units.h. A figure is a plain decimal number (no hexadecimal, no "nan", no "inf": strtod would take
 * them) and a unit is a prefix and a base looked up in tables; text that is not used up to its end is refused, so
 * "25GB/s" or "1 GB" never silently means 25 or 1. */
#include "core/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
  const char *name;
  double scale;
} unit;

static const unit byte_prefixes[] = {{"", 1.0},      {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                                     {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {NULL, 0.0}};
static const unit flops_units[] = {{"", 1.0},   {"f", 1.0},   {"kf", 1e3},  {"Mf", 1e6},
                                   {"Gf", 1e9}, {"Tf", 1e12}, {"Pf", 1e15}, {NULL, 0.0}};
static const unit power_units[] = {{"W", 1.0}, {"kW", 1e3}, {NULL, 0.0}};
static const unit time_units[] = {{"", 1.0},    {"s", 1.0},    {"ms", 1e-3}, {"us", 1e-6},
                                  {"ns", 1e-9}, {"ps", 1e-12}, {NULL, 0.0}};

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Reads the figure in front of `text`; NULL when there is none, else where the unit begins. */
static const char *read_figure(const char *text, double *value) {
  if (!is_digit(text[0]) && !(text[0] == '.' && is_digit(text[1]))) return NULL;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return NULL;
  char *end;
  *value = strtod(text, &end);
  return end;
}

static bool find_scale(const unit *units, const char *name, size_t length, double *scale) {
  for (const unit *u = units; u->name != NULL; u++)
    if (strlen(u->name) == length && memcmp(u->name, name, length) == 0) {
      *scale = u->scale;
      return true;
    }
  return false;
}

static pl_code refuse(const char *text, const char *what, const char *expected, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT, "%s: '%.64s' is not %s", what, text, expected);
}

static pl_code finish(const char *text, const char *what, double value, double *result, pl_error *error) {
  if (!isfinite(value)) return pl_fail(error, PL_BAD_INPUT, "%s: '%.64s' is too large", what, text);
  *result = value;
  return PL_OK;
}

/* A figure and one of `units`, each optionally followed by `suffix`. */
static pl_code parse_with(const unit *units, const char *text, const char *what, const char *expected, double *result,
                          pl_error *error) {
  double value, scale;
  const char *name = read_figure(text, &value);
  if (name == NULL || !find_scale(units, name, strlen(name), &scale)) return refuse(text, what, expected, error);
  return finish(text, what, value * scale, result, error);
}

/* The scale of "<prefix>suffix". */
static bool find_suffixed(const char *name, const char *suffix, double *scale) {
  size_t length = strlen(name), tail = strlen(suffix);
  return length >= tail && strcmp(name + length - tail, suffix) == 0 &&
         find_scale(byte_prefixes, name, length - tail, scale);
}

pl_code pl_parse_bytes(const char *text, const char *what, double *size_bytes, pl_error *error) {
  double value, scale = 1.0;
  const char *name = read_figure(text, &value);
  if (name == NULL || (name[0] != '\0' && !find_suffixed(name, "B", &scale)))
    return refuse(text, what, "a size in bytes (like 4096, 25MB or 16MiB)", error);
  return finish(text, what, value * scale, size_bytes, error);
}

pl_code pl_parse_rate(const char *text, const char *what, double *rate_Bps, pl_error *error) {
  double value, scale = 1.0;
  const char *name = read_figure(text, &value);
  if (name != NULL && find_suffixed(name, "bps", &scale)) {
    scale /= 8.0;
  } else if (name == NULL || (name[0] != '\0' && !find_suffixed(name, "Bps", &scale))) {
    return refuse(text, what, "a rate (like 25GBps for bytes or 100Gbps for bits per second)", error);
  }
  return finish(text, what, value * scale, rate_Bps, error);
}

pl_code pl_parse_flops(const char *text, const char *what, double *speed_flops, pl_error *error) {
  return parse_with(flops_units, text, what, "a speed in flop/s (like 312Tf)", speed_flops, error);
}

pl_code pl_parse_power(const char *text, const char *what, double *power_W, pl_error *error) {
  return parse_with(power_units, text, what, "a power (like 500W)", power_W, error);
}

pl_code pl_parse_time(const char *text, const char *what, double *time_s, pl_error *error) {
  double value, scale;
  const char *name = read_figure(text, &value);
  if (name == NULL || !find_scale(time_units, name, strlen(name), &scale))
    return refuse(text, what, "a time (like 1.5, 20ms or 3us)", error);
  /* Dividing by the exact power gives the double nearest to 20/1000; multiplying by 1e-3 may miss it by an ulp. */
  return finish(text, what, scale < 1.0 ? value / nearbyint(1.0 / scale) : value, time_s, error);
}

pl_code pl_parse_integer(const char *text, const char *what, int64_t lowest, int64_t highest, int64_t *value,
                         pl_error *error) {
  const char *digits = text + (text[0] == '-');
  if (!is_digit(digits[0]) || digits[strspn(digits, "0123456789")] != '\0')
    return refuse(text, what, "a whole number", error);
  errno = 0;
  long long parsed = strtoll(text, NULL, 10);
  if (errno == ERANGE || parsed < lowest || parsed > highest)
    return pl_fail(error, PL_BAD_INPUT, "%s: %.64s is out of range: %lld to %lld", what, text, (long long)lowest,
                   (long long)highest);
  *value = parsed;
  return PL_OK;
}

pl_code pl_parse_number(const char *text, const char *what, double *value, pl_error *error) {
  double parsed;
  const char *end = read_figure(text, &parsed);
  if (end == NULL || end[0] != '\0') return refuse(text, what, "a non-negative number", error);
  return finish(text, what, parsed, value, error);
}

/* Three significant digits, but never an exponent for figures in [1, 9999]. */
static const char *format(double value, const char *unit_name, char text[PL_UNIT_TEXT_BYTES]) {
  snprintf(text, PL_UNIT_TEXT_BYTES, fabs(value) >= 999.5 && fabs(value) < 9999.5 ? "%.0f %s" : "%.3g %s", value,
           unit_name);
  return text;
}

/* `units` from the smallest to the largest; takes the largest in which the figure, as printed, is at least 1. */
static const char *format_largest(double value, const unit *units, char text[PL_UNIT_TEXT_BYTES]) {
  const unit *best = units;
  for (const unit *u = units; u->name != NULL; u++)
    if (fabs(value) >= u->scale * 0.9995) best = u;
  return format(value / best->scale, best->name, text);
}

const char *pl_format_figure(double value, char text[PL_UNIT_TEXT_BYTES]) {
  double size = fabs(value);
  if (size >= 9999.5 && size < 1e15) {
    double last = pow(10, floor(log10(size)) - 3); /* of the four digits */
    snprintf(text, PL_UNIT_TEXT_BYTES, "%.0f", round(value / last) * last);
  } else {
    snprintf(text, PL_UNIT_TEXT_BYTES, "%.4g", value);
  }
  return text;
}

const char *pl_format_exact(double value, char text[PL_UNIT_TEXT_BYTES]) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, PL_UNIT_TEXT_BYTES, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  return text;
}

const char *pl_format_bytes(double size_bytes, char text[PL_UNIT_TEXT_BYTES]) {
  static const unit units[] = {{"B", 1.0},      {"KiB", 0x1p10}, {"MiB", 0x1p20},
                               {"GiB", 0x1p30}, {"TiB", 0x1p40}, {NULL, 0.0}};
  return format_largest(size_bytes, units, text);
}

const char *pl_format_flops(double flops, char text[PL_UNIT_TEXT_BYTES]) {
  static const char *const prefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  int prefix = 0;
  while (flops >= 999.5 && prefix < 6) {
    flops /= 1000;
    prefix++;
  }
  snprintf(text, PL_UNIT_TEXT_BYTES, "%.3g%s", flops, prefixes[prefix]);
  return text;
}

const char *pl_format_rate(double rate_Bps, char text[PL_UNIT_TEXT_BYTES]) {
  static const unit units[] = {{"B/s", 1.0}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {NULL, 0.0}};
  return format_largest(rate_Bps, units, text);
}

const char *pl_format_time(double time_s, char text[PL_UNIT_TEXT_BYTES]) {
  static const unit units[] = {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {NULL, 0.0}};
  return time_s == 0.0 ? format(0.0, "s", text) : format_largest(time_s, units, text);
}
