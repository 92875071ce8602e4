/* Units: any text either parses to a finite, non-negative figure or gives a message, and what is accepted prints again.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef pl_code (*parser)(const char *text, const char *what, double *value, pl_error *error);
typedef const char *(*printer)(double value, char text[PL_UNIT_TEXT_BYTES]);

static void check(const char *text, parser parse, printer print) {
  double value = NAN;
  char printed[PL_UNIT_TEXT_BYTES];
  pl_error error = PL_ERROR_INIT;
  pl_code code = parse(text, "--fuzz", &value, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK) {
    PL_ASSERT(isfinite(value) && value >= 0.0);
    if (print != NULL) PL_ASSERT(strlen(print(value, printed)) < PL_UNIT_TEXT_BYTES);
  } else {
    PL_ASSERT(code == PL_BAD_INPUT && isnan(value) && strstr(error.message, "--fuzz") == error.message);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  if (text == NULL) return 0;
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';
  check(text, pl_parse_bytes, pl_format_bytes);
  check(text, pl_parse_rate, pl_format_rate);
  check(text, pl_parse_flops, NULL);
  check(text, pl_parse_time, pl_format_time);
  check(text, pl_parse_number, NULL);
  int64_t integer = 7;
  pl_error error = PL_ERROR_INIT;
  if (pl_parse_integer(text, "--fuzz", -5, 5000, &integer, &error) == PL_OK)
    PL_ASSERT(integer >= -5 && integer <= 5000);
  else
    PL_ASSERT(integer == 7);
  free(text);
  return 0;
}
