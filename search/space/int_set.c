/* See search/space/int_set.h. Numbers are read by hand: strtol would take signs, blanks and 0x, which nobody means
 * here. */
#include "search/space/int_set.h"

#include <stddef.h>

/* Digits at *text, which is moved past them; -1 when there is none or the number is too large. */
static int64_t read_digits(const char **text) {
  int64_t value = -1;
  for (; **text >= '0' && **text <= '9'; (*text)++) {
    value = (value < 0 ? 0 : value) * 10 + (**text - '0');
    if (value > INT32_MAX) return -1;
  }
  return value;
}

static pl_code refuse(const char *text, const char *what, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT, "%s: '%s' is not a list of integers and ranges such as 1,2,4 or 1-8", what, text);
}

static pl_code read_range(const char *text, const char **here, const char *what, int64_t bounds[2], pl_error *error) {
  bounds[0] = bounds[1] = read_digits(here);
  if (bounds[0] >= 0 && **here == '-') {
    (*here)++;
    bounds[1] = read_digits(here);
  }
  if (bounds[0] < 0 || bounds[1] < 0 || (**here != ',' && **here != '\0')) return refuse(text, what, error);
  return PL_OK;
}

pl_code pl_int_set_parse(const char *text, const char *what, int32_t lowest, int32_t highest, pl_int_set *set,
                         pl_error *error) {
  *set = (pl_int_set){0};
  const char *here = text;
  for (;;) {
    int64_t bounds[2];
    PL_TRY(read_range(text, &here, what, bounds, error));
    if (bounds[0] > bounds[1])
      return pl_fail(error, PL_BAD_INPUT, "%s: '%s' has a range that runs backwards", what, text);
    if (bounds[0] < lowest || bounds[1] > highest)
      return pl_fail(error, PL_BAD_INPUT, "%s: '%s' must stay within %d to %d", what, text, lowest, highest);
    if (set->n_ranges == PL_INT_SET_RANGES)
      return pl_fail(error, PL_BAD_INPUT, "%s: more than %d entries; use ranges such as 1-8", what, PL_INT_SET_RANGES);
    set->lowest[set->n_ranges] = (int32_t)bounds[0];
    set->highest[set->n_ranges++] = (int32_t)bounds[1];
    if (*here == '\0') return PL_OK;
    here++;
  }
}

bool pl_int_set_has(const pl_int_set *set, int32_t value) {
  if (set->n_ranges == 0) return true;
  for (uint32_t i = 0; i < set->n_ranges; i++)
    if (value >= set->lowest[i] && value <= set->highest[i]) return true;
  return false;
}

int32_t pl_int_set_highest(const pl_int_set *set) {
  int32_t highest = 0;
  for (uint32_t i = 0; i < set->n_ranges; i++)
    if (set->highest[i] > highest) highest = set->highest[i];
  return highest;
}
