/* See netmodel/collective/collective_profile_writer.h. */
#include "netmodel/collective/collective_profile_writer.h"

#include <math.h>

#include "core/text/json_writer.h"

static void put_bounds(pl_json *json, const char *key, double least, double most) {
  if (least <= 0 && isinf(most)) return;
  pl_json_key(json, key);
  pl_json_open_array(json);
  pl_json_number(json, least);
  pl_json_number(json, isinf(most) ? 1e9 : most);
  pl_json_close_array(json);
}

static void put_cost(pl_json *json, const char *name, const pl_protocol_cost *cost) {
  if (!cost->known) return;
  pl_json_key(json, name);
  pl_json_open_object(json);
  pl_json_put_number(json, "start_us", cost->start_us);
  pl_json_put_number(json, "step_us", cost->step_us);
  pl_json_put_number(json, "rate", cost->rate);
  pl_json_put_number(json, "ramp", cost->ramp);
  pl_json_close_object(json);
}

static void put_remark(pl_json *json, const char *key, const char *remark) {
  if (remark != NULL) pl_json_put_string(json, key, remark);
}

static void put_wiring(pl_json *json, const pl_wiring *wiring, bool inside) {
  pl_json_open_object(json);
  pl_json_put_string(json, "name", wiring->name);
  put_remark(json, "like", wiring->like);
  put_remark(json, "provenance", wiring->provenance);
  if (inside) pl_json_put_string(json, "link", wiring->nvlink ? "nvlink" : "pcie");
  put_bounds(json, inside ? "link_GBps" : "nic_GBps", wiring->least_GBps, wiring->most_GBps);
  if (inside && wiring->host) pl_json_put_boolean(json, "host", true);
  if (!inside) {
    put_bounds(json, "nic_us", wiring->least_us, wiring->most_us);
    put_bounds(json, "pcie_GBps", wiring->least_pcie_GBps, wiring->most_pcie_GBps);
    put_bounds(json, "node_gpus", wiring->least_gpus, wiring->most_gpus);
    if (isfinite(wiring->limit_GBps)) pl_json_put_number(json, "limit_GBps", wiring->limit_GBps);
    if (isfinite(wiring->tuner_nic_us)) pl_json_put_number(json, "tuner_nic_us", wiring->tuner_nic_us);
    if (wiring->buffers_sends) pl_json_put_boolean(json, "buffered_sends", true);
  }
  pl_json_put_number(json, "launch_us", wiring->launch_us);
  if (inside) pl_json_put_number(json, "local", wiring->local);
  for (int algorithm = 0; algorithm < PL_TUNED_COUNT; algorithm++) {
    bool any = false;
    for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++)
      any |= wiring->cost[algorithm][protocol].known;
    if (!any) continue;
    pl_json_key(json, pl_tuned_names[algorithm]);
    pl_json_open_object(json);
    for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++)
      put_cost(json, pl_protocol_names[protocol], &wiring->cost[algorithm][protocol]);
    pl_json_close_object(json);
  }
  pl_json_close_object(json);
}

void pl_collective_profile_write(FILE *stream, const pl_collective_profile *profile) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "library", profile->library);
  put_remark(&json, "provenance", profile->provenance);
  for (int inside = 1; inside >= 0; inside--) {
    uint32_t n = inside ? profile->n_inside : profile->n_between;
    pl_json_key(&json, inside ? "inside" : "between");
    pl_json_open_array(&json);
    for (uint32_t i = 0; i < n; i++)
      put_wiring(&json, inside ? &profile->inside[i] : &profile->between[i], inside);
    pl_json_close_array(&json);
  }
  pl_json_close_object(&json);
}
