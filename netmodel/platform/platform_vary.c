/* What --vary says, read and printed. What it does: netmodel/platform/platform_varied.c. */
#include "netmodel/platform/platform_vary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"

/* Subject and field of an axis; how its values are read (NULL: as they are) and an example for messages. */
typedef struct field_info {
  const char *subject, *field;
  pl_code (*parse)(const char *text, const char *what, double *value, pl_error *error);
  const char *example;
} field_info;

static const field_info fields[PL_VARY_FIELD_COUNT] = {
    [PL_VARY_LINK_BANDWIDTH] = {"link", "bandwidth", pl_parse_rate, "100Gbps, 12.5GBps or x2"},
    [PL_VARY_LINK_LATENCY] = {"link", "latency", pl_parse_time, "2us or x0.5"},
    [PL_VARY_DEVICE_MEMORY] = {"device", "memory", pl_parse_bytes, "80GiB or x2"},
    [PL_VARY_DEVICE_BANDWIDTH] = {"device", "bandwidth", pl_parse_rate, "2TBps or x1.5"},
    [PL_VARY_DEVICE_PEAK] = {"device", "peak", NULL, "x2 (of every data type)"},
    [PL_VARY_DEVICE_POWER] = {"device", "power", pl_parse_power, "500W or x0.8"},
    [PL_VARY_DEVICE_TYPE] = {"device", "", NULL, "H100-SXM5-80GB"},
    [PL_VARY_NODES] = {"nodes", "", NULL, "4"},
};

static const char usage[] = "write link:KIND.bandwidth=, link:KIND.latency=, device:TYPE.memory=, "
                            "device:TYPE.bandwidth=, device:TYPE.peak=, device:TYPE.power=, "
                            "device:TYPE= or nodes=, and values with commas between them";

static bool starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

/* ---- values ---- */

static pl_code parse_nodes(const pl_vary_axis *axis, pl_vary_value *value, pl_error *error) {
  int64_t count;
  PL_TRY(pl_parse_integer(value->text, axis->name, 1, INT32_MAX, &count, error));
  value->number = (double)count;
  return PL_OK;
}

static pl_code parse_quantity(const pl_vary_axis *axis, pl_vary_value *value, pl_error *error) {
  const field_info *info = &fields[axis->field];
  value->is_factor = value->text[0] == 'x';
  if (value->is_factor) {
    PL_TRY(pl_parse_number(value->text + 1, axis->name, &value->number, error));
  } else if (info->parse == NULL || strspn(value->text, "0123456789.") == strlen(value->text)) {
    return pl_fail(error, PL_BAD_INPUT, "--vary %s: '%.64s' has %s: write %s", axis->name, value->text,
                   info->parse == NULL ? "no factor" : "no unit", info->example);
  } else {
    PL_TRY(info->parse(value->text, axis->name, &value->number, error));
  }
  bool may_be_zero = axis->field == PL_VARY_LINK_LATENCY;
  if (value->number > 0 || (may_be_zero && value->number == 0)) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--vary %s: '%.64s' must be more than zero", axis->name, value->text);
}

static pl_code parse_value(const pl_vary_axis *axis, pl_vary_value *value, pl_error *error) {
  if (value->text[0] == '\0')
    return pl_fail(error, PL_BAD_INPUT, "--vary %s: a value is empty: write %s", axis->name,
                   fields[axis->field].example);
  if (axis->field == PL_VARY_NODES) return parse_nodes(axis, value, error);
  if (axis->field != PL_VARY_DEVICE_TYPE) return parse_quantity(axis, value, error);
  if (strchr(value->text, '/') == NULL) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--vary %s: '%.64s' is not the name of a device profile", axis->name,
                 value->text);
}

static pl_code refuse_repeated(const pl_vary_axis *axis, const pl_vary_value *values, uint32_t n, pl_error *error) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(values[i].text, values[n].text) == 0)
      return pl_fail(error, PL_BAD_INPUT, "--vary %s: the value '%.64s' is there twice", axis->name, values[n].text);
  return PL_OK;
}

/* `list` is cut into its values in place. */
static pl_code parse_values(char *list, pl_arena *arena, pl_vary_axis *axis, pl_error *error) {
  pl_vary_value *values = PL_TAKE(arena, pl_vary_value, PL_VARY_VALUES_MAX);
  if (values == NULL) return pl_fail_memory(error, "the variations");
  for (char *text = list, *comma; text != NULL; text = comma) {
    if (axis->n_values == PL_VARY_VALUES_MAX)
      return pl_fail(error, PL_BAD_INPUT, "--vary %s: more than %d values", axis->name, PL_VARY_VALUES_MAX);
    comma = strchr(text, ',');
    if (comma != NULL) *comma++ = '\0';
    pl_vary_value *value = &values[axis->n_values];
    *value = (pl_vary_value){.text = text};
    PL_TRY(parse_value(axis, value, error));
    PL_TRY(refuse_repeated(axis, values, axis->n_values, error));
    axis->n_values++;
  }
  axis->values = values;
  return PL_OK;
}

/* ---- axes ---- */

/* The field behind the last dot of `name`, which is cut off from the pattern; a device type may itself hold dots. */
static pl_code find_field(const char *subject, char *pattern, pl_vary_axis *axis, pl_error *error) {
  char *dot = strrchr(pattern, '.');
  const char *field = dot != NULL ? dot + 1 : "";
  for (int f = 0; f < PL_VARY_NODES; f++) {
    if (strcmp(fields[f].subject, subject) != 0 || strcmp(fields[f].field, field) != 0) continue;
    if (dot != NULL) *dot = '\0';
    axis->field = (pl_vary_field)f;
    axis->pattern = pattern;
    if (pattern[0] != '\0') return PL_OK;
    return pl_fail(error, PL_BAD_INPUT, "--vary %s: which %s? %s", axis->name, subject, usage);
  }
  if (strcmp(subject, "device") == 0 && dot != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--vary %s: a device has no '%s': it has memory, bandwidth, peak and power, or another "
                   "type takes its place (device:TYPE=OTHER)",
                   axis->name, field);
  return pl_fail(error, PL_BAD_INPUT, "--vary %s: a link has no '%s': it has bandwidth and latency", axis->name, field);
}

static pl_code parse_axis(const char *given, pl_arena *arena, pl_vary_axis *axis, pl_error *error) {
  *axis = (pl_vary_axis){.pattern = ""};
  char *text = pl_arena_strdup(arena, given), *name = pl_arena_strdup(arena, given);
  if (text == NULL || name == NULL) return pl_fail_memory(error, "the variations");
  char *equals = strchr(text, '=');
  if (equals == NULL || equals == text)
    return pl_fail(error, PL_BAD_INPUT, "--vary '%.200s': no '='; %s", given, usage);
  *equals = '\0';
  name[equals - text] = '\0';
  axis->name = name;
  if (starts_with(text, "link:")) {
    PL_TRY(find_field("link", text + strlen("link:"), axis, error));
  } else if (starts_with(text, "device:")) {
    PL_TRY(find_field("device", text + strlen("device:"), axis, error));
  } else if (strcmp(text, "nodes") == 0) {
    axis->field = PL_VARY_NODES;
  } else {
    return pl_fail(error, PL_BAD_INPUT, "--vary %.200s: unknown; %s", name, usage);
  }
  return parse_values(equals + 1, arena, axis, error);
}

pl_code pl_vary_grid_parse(const char *const *texts, uint32_t n, pl_arena *arena, pl_vary_grid *grid, pl_error *error) {
  *grid = (pl_vary_grid){.n_points = n > 0};
  if (n > PL_VARY_AXES_MAX) return pl_fail(error, PL_BAD_INPUT, "--vary: more than %d of them", PL_VARY_AXES_MAX);
  for (uint32_t i = 0; i < n; i++) {
    pl_vary_axis *axis = &grid->axes[i];
    PL_TRY(parse_axis(texts[i], arena, axis, error));
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(grid->axes[k].name, axis->name) == 0)
        return pl_fail(error, PL_BAD_INPUT, "--vary %s is there twice; write all its values into one", axis->name);
    grid->n_axes++;
    grid->n_points *= axis->n_values;
    if (grid->n_points > PL_VARY_POINTS_MAX)
      return pl_fail(error, PL_BAD_INPUT, "--vary: more than %d variations in all", PL_VARY_POINTS_MAX);
  }
  return PL_OK;
}

/* ---- points ---- */

const pl_vary_value *pl_vary_value_at(const pl_vary_grid *grid, uint32_t point, uint32_t axis) {
  for (uint32_t a = grid->n_axes - 1; a > axis; a--)
    point /= grid->axes[a].n_values;
  return &grid->axes[axis].values[point % grid->axes[axis].n_values];
}

int pl_vary_format(const pl_vary_grid *grid, uint32_t point, char *text, size_t size) {
  int used = 0;
  if (size > 0) text[0] = '\0';
  for (uint32_t a = 0; a < grid->n_axes; a++) {
    bool full = (size_t)used >= size;
    used += snprintf(full ? NULL : text + used, full ? 0 : size - (size_t)used, "%s%s=%s", a > 0 ? " " : "",
                     grid->axes[a].name, pl_vary_value_at(grid, point, a)->text);
  }
  return used;
}
