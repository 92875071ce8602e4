/* See validation/fit/kernel_section.h. */
#include "validation/fit/kernel_section.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/csv.h"
#include "validation/fit/fit_table.h"

/* ---- fits ---- */

static void print_attention(const pl_attention_fit *fit, FILE *out) {
  const pl_attention_profile *p = &fit->profile;
  fprintf(out, "attention %s: %u parameters; tiles %g x %g, efficiency", pl_attention_kernel_name(p->kernel),
          fit->n_parameters, p->query_tile, p->key_tile);
  for (uint32_t i = 0; i < p->n_head_sizes; i++)
    fprintf(out, "%s %.3g (%g)", i > 0 ? "," : "", p->efficiency[i], p->head_size[i]);
  fprintf(out, ", prologue %.3g keys, tail %.3g, overhead %.3g us\n", p->prologue_keys, p->tail, 1e6 * p->overhead_s);
  fprintf(out, "  backward%s: %.3g times the forward, prologue %.3g keys, overhead %.3g us\n",
          fit->has_backward ? "" : " (no rows: of the base profile, or a default)", p->backward_ratio,
          p->backward_prologue_keys, 1e6 * p->backward_overhead_s);
  if (fit->cache_copies > 0)
    fprintf(out, "  left out of the profile: %.3g passes over keys and values for the cache of the serving stack\n",
            fit->cache_copies);
  static const char *const passes[] = {"forward", "backward"};
  for (int pass = 0; pass < 2; pass++) {
    char what[64];
    snprintf(what, sizeof what, "%s, fitted", passes[pass]);
    pl_fit_print_error(out, what, fit->fitted[pass]);
    snprintf(what, sizeof what, "%s, held out", passes[pass]);
    pl_fit_print_error(out, what, fit->held_out[pass]);
    snprintf(what, sizeof what, "%s, held out, 100 us and more", passes[pass]);
    pl_fit_print_error(out, what, fit->held_out_long[pass]);
  }
}

static void round_attention(pl_attention_profile *p) {
  for (uint32_t i = 0; i < p->n_head_sizes; i++)
    p->efficiency[i] = pl_fit_rounded(p->efficiency[i]);
  double *const values[] = {
      &p->prologue_keys,      &p->tail, &p->overhead_s, &p->backward_ratio, &p->backward_prologue_keys,
      &p->backward_overhead_s};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    *values[i] = pl_fit_rounded(*values[i]);
}

pl_code pl_attention_section_take(pl_device_profile *device, const char *path, pl_arena *arena, FILE *out,
                                  pl_error *error) {
  pl_csv csv;
  const pl_attention_fit *fits;
  uint32_t n_fits, n = device->n_attention;
  PL_TRY(pl_csv_load(path, arena, &csv, error));
  PL_TRY(pl_attention_fit_take(&csv, device, arena, &fits, &n_fits, error));
  pl_attention_profile *list = PL_TAKE(arena, pl_attention_profile, (size_t)n + n_fits);
  if (list == NULL) return pl_fail_memory(error, "the attention kernels of a device profile");
  if (n > 0) memcpy(list, device->attention, n * sizeof *list);
  for (uint32_t i = 0; i < n_fits; i++) {
    uint32_t at = 0;
    while (at < n && list[at].kernel != fits[i].profile.kernel)
      at++;
    n += at == n;
    list[at] = fits[i].profile;
    round_attention(&list[at]);
    for (int pass = 0; pass < 2; pass++)
      list[at].held_out[pass] = pl_fit_held_out(fits[i].held_out_long[pass].n_rows > 0 ? fits[i].held_out_long[pass]
                                                                                       : fits[i].held_out[pass]);
    print_attention(&fits[i], out);
  }
  device->attention = list;
  device->n_attention = n;
  return PL_OK;
}

pl_code pl_kernel_section_take(pl_device_profile *device, const char *path, pl_arena *arena, FILE *out,
                               pl_error *error) {
  pl_csv csv;
  const pl_kernel_fit *fits;
  uint32_t n_fits;
  PL_TRY(pl_csv_load(path, arena, &csv, error));
  PL_TRY(pl_kernel_fit_take(&csv, device, arena, &fits, &n_fits, error));
  for (uint32_t i = 0; i < n_fits; i++) {
    const pl_kernel_fit *fit = &fits[i];
    fprintf(out, "%s, %s: %u parameters; %.3g of the bandwidth, overhead %.3g us\n", pl_kernel_kind_name(fit->kind),
            fit->backward ? "backward" : "forward", fit->n_parameters, fit->profile.bandwidth_efficiency,
            1e6 * fit->profile.overhead_s);
    if (fit->host_floor_s > 0)
      fprintf(out, "  left out of the profile: the host needed %.3g us a call\n", 1e6 * fit->host_floor_s);
    pl_fit_print_error(out, "fitted", fit->fitted);
    pl_fit_print_error(out, "held out", fit->held_out);
    device->kernels[fit->kind][fit->backward] =
        (pl_kernel_profile){.bandwidth_efficiency = pl_fit_rounded(fit->profile.bandwidth_efficiency),
                            .overhead_s = pl_fit_rounded(fit->profile.overhead_s),
                            .held_out = pl_fit_held_out(fit->held_out)};
  }
  return PL_OK;
}

/* ---- writing ---- */

static void write_attention(pl_json *json, const pl_attention_profile *p) {
  pl_json_open_object(json);
  pl_json_put_string(json, "kernel", pl_attention_kernel_name(p->kernel));
  pl_json_put_number(json, "multiprocessors", p->multiprocessors);
  pl_json_put_number(json, "query_tile", p->query_tile);
  pl_json_put_number(json, "key_tile", p->key_tile);
  pl_json_key(json, "efficiency");
  pl_json_open_object(json);
  for (uint32_t i = 0; i < p->n_head_sizes; i++) {
    char size[32];
    snprintf(size, sizeof size, "%g", p->head_size[i]);
    pl_json_put_number(json, size, p->efficiency[i]);
  }
  pl_json_close_object(json);
  pl_json_put_number(json, "prologue_keys", p->prologue_keys);
  pl_json_put_number(json, "tail", p->tail);
  pl_fit_put_us(json, "overhead", p->overhead_s);
  pl_json_key(json, "backward");
  pl_json_open_object(json);
  pl_json_put_number(json, "ratio", p->backward_ratio);
  pl_json_put_number(json, "prologue_keys", p->backward_prologue_keys);
  pl_fit_put_us(json, "overhead", p->backward_overhead_s);
  pl_json_close_object(json);
  if (p->held_out[0].n + p->held_out[1].n > 0) {
    pl_json_key(json, "held_out");
    pl_json_open_object(json);
    pl_fit_put_held_out(json, "forward", &p->held_out[0]);
    pl_fit_put_held_out(json, "backward", &p->held_out[1]);
    pl_json_close_object(json);
  }
  pl_json_close_object(json);
}

void pl_attention_section_write(pl_json *json, const void *content) {
  const pl_device_profile *device = content;
  pl_json_open_array(json);
  for (uint32_t i = 0; i < device->n_attention; i++)
    write_attention(json, &device->attention[i]);
  pl_json_close_array(json);
}

void pl_kernel_section_write(pl_json *json, const void *content) {
  static const char *const passes[] = {"forward", "backward"};
  const pl_device_profile *device = content;
  pl_json_open_object(json);
  for (int kind = 0; kind < PL_KERNEL_KIND_COUNT; kind++) {
    const pl_kernel_profile *kernels = device->kernels[kind];
    if (kernels[0].bandwidth_efficiency <= 0 && kernels[1].bandwidth_efficiency <= 0) continue;
    pl_json_key(json, pl_kernel_kind_name((pl_kernel_kind)kind));
    pl_json_open_object(json);
    for (int pass = 0; pass < 2; pass++) {
      if (kernels[pass].bandwidth_efficiency <= 0) continue;
      pl_json_key(json, passes[pass]);
      pl_json_open_object(json);
      pl_json_put_number(json, "bandwidth", kernels[pass].bandwidth_efficiency);
      pl_fit_put_us(json, "overhead", kernels[pass].overhead_s);
      pl_fit_put_held_out(json, "held_out", &kernels[pass].held_out);
      pl_json_close_object(json);
    }
    pl_json_close_object(json);
  }
  pl_json_close_object(json);
}
