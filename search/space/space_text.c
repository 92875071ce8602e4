/* What a space holds, in the words of the options that make it: see search/space/space.h. */
#include <stdio.h>
#include <string.h>

#include "search/space/space.h"

typedef struct space_text {
  char *text;
  size_t size, length;
} space_text;

static void put(space_text *out, const char *part) {
  size_t room = out->length < out->size ? out->size - out->length : 0;
  int n = snprintf(room > 0 ? out->text + out->length : NULL, room, "%s", part);
  out->length += (size_t)n;
}

static void put_key(space_text *out, const char *name) {
  put(out, out->length > 0 ? ", " : "");
  put(out, name);
  put(out, "=");
}

static void put_set(space_text *out, const char *name, const pl_int_set *set, const char *otherwise) {
  char number[32];
  if (set->n_ranges == 0 && otherwise == NULL) return;
  put_key(out, name);
  if (set->n_ranges == 0) put(out, otherwise);
  for (uint32_t r = 0; r < set->n_ranges; r++) {
    snprintf(number, sizeof number, set->lowest[r] == set->highest[r] ? "%s%d" : "%s%d-%d", r > 0 ? "," : "",
             set->lowest[r], set->highest[r]);
    put(out, number);
  }
}

static void put_names(space_text *out, const char *name, const char *const *names, uint32_t mask) {
  put_key(out, name);
  for (uint32_t i = 0, n = 0; names[i] != NULL; i++) {
    if ((mask >> i & 1u) == 0) continue;
    put(out, n++ > 0 ? "," : "");
    put(out, names[i]);
  }
}

static void put_switch(space_text *out, const char *name, uint32_t mask) {
  if (mask == 3) return;
  put_key(out, name);
  put(out, mask == 2 ? "on" : "off");
}

int pl_space_format_choices(const pl_space_choices *choices, char *text, size_t size) {
  space_text out = {.text = text, .size = size};
  if (size > 0) text[0] = '\0';
  put_key(&out, "order");
  for (uint32_t i = 0; i < choices->n_orders; i++) {
    put(&out, i > 0 ? "," : "");
    put(&out, choices->orders[i]);
  }
  put_names(&out, "assign", pl_assign_names, choices->recipes);
  put_set(&out, "pp", &choices->pp, NULL);
  put_set(&out, "dp", &choices->dp, NULL);
  put_set(&out, "tmp", &choices->tmp, NULL);
  put_set(&out, "cp", &choices->cp, "1");
  put_set(&out, "ep", &choices->ep, NULL);
  if (choices->etps != 1) {
    put_key(&out, "etp");
    put(&out, choices->etps == 2 ? "tmp" : "1,tmp");
  }
  if (choices->ep_overlaps != 1) {
    static const char *const names[] = {"off", "on", "delayed", "shared", NULL};
    if (choices->ep_overlaps == 3) {
      put_key(&out, "ep_overlap");
      put(&out, "both");
    } else {
      put_names(&out, "ep_overlap", names, choices->ep_overlaps);
    }
  }
  put_set(&out, "mbs", &choices->mbs, "1-8");
  put_set(&out, "vpp", &choices->vpp, "2-4");
  put_set(&out, "zero", &choices->zero, NULL);
  put_names(&out, "schedule", pl_schedule_names, choices->schedules);
  put_names(&out, "recompute", pl_recompute_names, choices->recomputes);
  put_switch(&out, "sp", choices->sp);
  put_switch(&out, "overlap", choices->overlap);
  if (choices->offloads > 1) put_names(&out, "offload", pl_offload_names, choices->offloads);
  if (choices->only_offered) put(&out, ", of what the framework offers");
  if (choices->allow_idle) put(&out, ", idle devices allowed");
  return (int)out.length;
}
