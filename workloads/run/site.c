/* See workloads/run/site.h. */
#include "workloads/run/site.h"

#include <math.h>
#include <string.h>

#include "core/base/digest.h"
#include "netmodel/platform/platform_vary.h"

const char *const pl_site_figure_names[PL_SITE_COUNT + 1] = {
#define PL_SITE_NAME(name) [PL_SITE_##name] = #name,
    PL_SITE_FIGURES(PL_SITE_NAME)
#undef PL_SITE_NAME
};

const double pl_site_scatters[PL_SITE_SCATTERS] = {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28};

/* ---- the cluster ---- */

typedef struct axes {
  pl_vary_grid grid;
  pl_vary_value values[PL_VARY_AXES_MAX];
} axes;

static void add_axis(axes *own, pl_vary_field field, const char *pattern, double factor) {
  if (factor == 1 || pattern[0] == '\0') return;
  uint32_t a = own->grid.n_axes++;
  own->values[a] = (pl_vary_value){.text = "the site's figure", .number = factor, .is_factor = true};
  own->grid.axes[a] =
      (pl_vary_axis){.name = "site", .pattern = pattern, .field = field, .values = &own->values[a], .n_values = 1};
  own->grid.n_points = 1;
}

/* "nvlink+pcie": those of `kinds` that the platform has; "": none. */
static const char *kinds_of(const pl_cluster *cluster, const pl_link_kind *kinds, size_t n, pl_arena *arena) {
  const char *text = "";
  for (size_t k = 0; k < n && text != NULL; k++)
    for (uint32_t i = 0; i < cluster->n_links; i++)
      if (cluster->links[i].kind == kinds[k]) {
        text = pl_arena_printf(arena, "%s%s%s", text, text[0] != '\0' ? "+" : "", pl_link_kind_name(kinds[k]));
        break;
      }
  return text;
}

static pl_code vary(const pl_site *site, const pl_cluster *base, pl_arena *arena, const pl_cluster **cluster,
                    pl_error *error) {
  static const pl_link_kind inside_kinds[] = {PL_LINK_NVLINK, PL_LINK_PCIE, PL_LINK_CPU},
                            between_kinds[] = {PL_LINK_NIC, PL_LINK_FABRIC};
  const double *log_time = site->mean;
  const char *inside = kinds_of(base, inside_kinds, sizeof inside_kinds / sizeof inside_kinds[0], arena),
             *between = kinds_of(base, between_kinds, sizeof between_kinds / sizeof between_kinds[0], arena);
  if (inside == NULL || between == NULL) return pl_fail_memory(error, "the site");
  axes own = {.grid = {.n_axes = 0}};
  add_axis(&own, PL_VARY_LINK_BANDWIDTH, inside, exp(-log_time[PL_SITE_inside_rate]));
  add_axis(&own, PL_VARY_LINK_LATENCY, inside, exp(log_time[PL_SITE_inside_latency]));
  add_axis(&own, PL_VARY_LINK_BANDWIDTH, between, exp(-log_time[PL_SITE_between_rate]));
  add_axis(&own, PL_VARY_LINK_LATENCY, between, exp(log_time[PL_SITE_between_latency]));
  add_axis(&own, PL_VARY_DEVICE_PEAK, "*", exp(-log_time[PL_SITE_compute]));
  add_axis(&own, PL_VARY_DEVICE_BANDWIDTH, "*", exp(-log_time[PL_SITE_memory]));
  *cluster = base;
  return own.grid.n_axes > 0 ? pl_vary_cluster_take(&own.grid, 0, base, arena, cluster, error) : PL_OK;
}

/* ---- collectives ---- */

static void slow_down(pl_wiring *wiring, double latency) {
  wiring->launch_us *= latency;
  for (int tuned = 0; tuned < PL_TUNED_COUNT; tuned++)
    for (int protocol = 0; protocol < PL_PROTOCOL_COUNT; protocol++) {
      wiring->cost[tuned][protocol].start_us *= latency;
      wiring->cost[tuned][protocol].step_us *= latency;
    }
}

static pl_code slow_collectives(const pl_site *site, const pl_collective_profile *base, pl_arena *arena,
                                const pl_collective_profile **collectives, pl_error *error) {
  *collectives = base;
  double inside = exp(site->mean[PL_SITE_inside_latency]), between = exp(site->mean[PL_SITE_between_latency]);
  double rate = exp(-site->mean[PL_SITE_between_rate]);
  if (base == NULL || (inside == 1 && between == 1 && rate == 1)) return PL_OK;
  pl_collective_profile *own = PL_TAKE(arena, pl_collective_profile, 1);
  pl_wiring *insides = pl_arena_copy(arena, base->inside, base->n_inside * sizeof *insides, _Alignof(pl_wiring));
  pl_wiring *betweens = pl_arena_copy(arena, base->between, base->n_between * sizeof *betweens, _Alignof(pl_wiring));
  if (own == NULL || insides == NULL || betweens == NULL) return pl_fail_memory(error, "the site");
  for (uint32_t i = 0; i < base->n_inside; i++)
    slow_down(&insides[i], inside);
  for (uint32_t i = 0; i < base->n_between; i++) {
    slow_down(&betweens[i], between);
    betweens[i].limit_GBps *= rate;
  }
  *own = *base;
  own->inside = insides;
  own->between = betweens;
  pl_digest digest = {.value = base->digest};
  pl_digest_f64(&digest, inside);
  pl_digest_f64(&digest, between);
  pl_digest_f64(&digest, rate);
  own->digest = digest.value;
  *collectives = own;
  return PL_OK;
}

pl_code pl_site_view_take(const pl_site *site, const pl_cluster *cluster, const pl_collective_profile *collectives,
                          pl_arena *arena, pl_site_view *view, pl_error *error) {
  PL_TRY(vary(site, cluster, arena, &view->cluster, error));
  return slow_collectives(site, collectives, arena, &view->collectives, error);
}

/* ---- the host ---- */

pl_framework pl_site_framework(const pl_site *site, const pl_framework *framework) {
  pl_framework own = *pl_framework_or_ideal(framework);
  double host = exp(site->mean[PL_SITE_host]);
  own.launch.launch_s *= host;
  own.launch.backward_launch_s *= host;
  own.launch.collective_s *= host;
  own.launch.collective_rank_s *= host;
  own.launch.layer_s *= host;
  own.launch.step_s += fmax(0, site->mean[PL_SITE_step]);
  own.memory.workspace_bytes = fmax(0, own.memory.workspace_bytes + site->memory_bytes);
  if (host == 1 && own.launch.step_s == 0 && site->memory_bytes == 0) return own;
  pl_digest digest = {.value = own.digest};
  pl_digest_f64(&digest, host);
  pl_digest_f64(&digest, own.launch.step_s);
  pl_digest_f64(&digest, site->memory_bytes);
  own.digest = digest.value;
  return own;
}
