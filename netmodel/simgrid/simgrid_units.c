/* See netmodel/simgrid/simgrid_units.h. */
#include "netmodel/simgrid/simgrid_units.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The number in front; *unit is what follows. */
static bool take_number(const char *text, double *value, const char **unit) {
  char *end;
  errno = 0;
  *value = strtod(text, &end);
  *unit = end;
  return errno != ERANGE && end != text;
}

/* `unit` with a prefix of thousands ("k" ...) or of 1024s ("Ki" ...) in front, or alone. */
static bool scale(const char *text, const char *unit, double base, double *factor) {
  static const char letters[] = "kMGTPEZY", binary[] = "KMGTPEZY";
  *factor = base;
  if (strcmp(text, unit) == 0) return true;
  bool is_binary = text[0] != '\0' && text[1] == 'i';
  const char *list = is_binary ? binary : letters, *found = text[0] != '\0' ? strchr(list, text[0]) : NULL;
  if (found == NULL || strcmp(text + 1 + is_binary, unit) != 0) return false;
  for (ptrdiff_t i = 0; i <= found - list; i++)
    *factor *= is_binary ? 1024.0 : 1000.0;
  return true;
}

bool pl_simgrid_bandwidth(const char *text, double *value_Bps) {
  const char *unit;
  double factor;
  if (!take_number(text, value_Bps, &unit)) return false;
  if (!scale(unit, "Bps", 1.0, &factor) && !scale(unit, "bps", 0.125, &factor)) return false;
  *value_Bps *= factor;
  return true;
}

bool pl_simgrid_time(const char *text, double *value_s) {
  static const struct {
    const char *unit;
    double factor;
  } units[] = {{"s", 1.0}, {"ms", 1e-3},   {"us", 1e-6},        {"ns", 1e-9},           {"ps", 1e-12},
               {"m", 60},  {"h", 60 * 60}, {"d", 24 * 60 * 60}, {"w", 7 * 24 * 60 * 60}};
  const char *unit;
  if (!take_number(text, value_s, &unit)) return false;
  if (unit[0] == '\0' && *value_s == 0) return true;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strcmp(unit, units[i].unit) == 0) {
      *value_s *= units[i].factor;
      return true;
    }
  return false;
}

bool pl_simgrid_speed(const char *text, double *value_flops) {
  const char *unit;
  double factor;
  if (!take_number(text, value_flops, &unit) || strchr("+-0123456789.", text[0]) == NULL) return false;
  if (strchr(unit, 'i') != NULL || !scale(unit, "f", 1.0, &factor)) return false;
  *value_flops *= factor;
  return true;
}
