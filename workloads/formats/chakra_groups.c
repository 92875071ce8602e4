/* ASTRA-sim's comm_group.json: {"0": [0, 1], "1": [2, 3]}. See workloads/formats/chakra.h. */
#include <stdlib.h>

#include "core/base/growing.h"
#include "core/base/order.h"
#include "workloads/formats/chakra.h"

typedef struct reading {
  const char *path;
  pl_trace *trace;
  pl_chakra_groups *groups;
  uint32_t depth, name;
  int64_t *members;
  uint32_t n_members, member_room;
} reading;

static pl_code end_group(reading *own, pl_error *error) {
  if (own->n_members > 1) qsort(own->members, own->n_members, sizeof *own->members, pl_by_int64);
  for (uint32_t m = 1; m < own->n_members; m++)
    if (own->members[m] == own->members[m - 1])
      return pl_fail(error, PL_BAD_INPUT, "%s: group '%s' has rank %lld twice", own->path, own->trace->names[own->name],
                     (long long)own->members[m]);
  pl_chakra_groups *groups = own->groups;
  uint32_t room = groups->room, group = pl_trace_add_group(own->trace, own->name, own->members, own->n_members);
  if (group == PL_NONE || !PL_GROW(groups->names, groups->n, room) || !PL_GROW(groups->groups, groups->n, groups->room))
    return pl_fail_memory(error, own->path);
  groups->names[groups->n] = own->name;
  groups->groups[groups->n++] = group;
  return PL_OK;
}

static pl_code take(void *context, pl_json_token token, const char *text, size_t size, pl_error *error) {
  reading *own = context;
  int64_t member;
  switch (token) {
  case PL_JSON_OPEN_OBJECT:
    if (own->depth++ == 0) return PL_OK;
    break;
  case PL_JSON_OPEN_ARRAY:
    own->n_members = 0;
    if (own->depth++ == 1) return PL_OK;
    break;
  case PL_JSON_CLOSE_ARRAY:
    own->depth--;
    return end_group(own, error);
  case PL_JSON_CLOSE_OBJECT:
    own->depth--;
    return PL_OK;
  case PL_JSON_KEY:
    own->name = pl_trace_name(own->trace, text, size);
    return own->name == PL_NONE ? pl_fail_memory(error, own->path) : PL_OK;
  case PL_JSON_NUMBER:
    if (own->depth != 2 || !pl_fixed_point(text, size, 0, &member) || member < 0 || member > INT32_MAX) break;
    if (!PL_GROW(own->members, own->n_members, own->member_room)) return pl_fail_memory(error, own->path);
    own->members[own->n_members++] = member;
    return PL_OK;
  default:
    break;
  }
  return pl_fail(error, PL_BAD_INPUT, "%s: is no list of groups, as in {\"0\": [0, 1], \"1\": [2, 3]}", own->path);
}

static pl_code load(reading *own, const char *data, size_t size, pl_error *error) {
  const pl_json_reader reader = {take, NULL, own};
  pl_json_end end = {.is_cut = false};
  pl_code code = data != NULL ? pl_json_events_parse(own->path, data, size, &reader, &end, error)
                              : pl_json_events_read(own->path, &reader, &end, error);
  free(own->members);
  if (code == PL_OK && (end.is_cut || end.is_gzip_cut))
    return pl_fail(error, PL_BAD_INPUT, "%s: ends too early: groups may be missing", own->path);
  return code;
}

pl_code pl_chakra_groups_load(const char *path, pl_trace *trace, pl_chakra_groups *groups, pl_error *error) {
  reading own = {.path = path, .trace = trace, .groups = groups};
  return load(&own, NULL, 0, error);
}

pl_code pl_chakra_groups_parse(const char *name, const char *data, size_t size, pl_trace *trace,
                               pl_chakra_groups *groups, pl_error *error) {
  reading own = {.path = name, .trace = trace, .groups = groups};
  static const char nothing = '\0';
  return load(&own, size > 0 ? data : &nothing, size, error);
}

void pl_chakra_groups_release(pl_chakra_groups *groups) {
  free(groups->names);
  free(groups->groups);
  *groups = (pl_chakra_groups){.n = 0};
}
