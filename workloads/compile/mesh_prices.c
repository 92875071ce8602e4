/* See workloads/compile/mesh_prices.h. */
#include "workloads/compile/mesh_prices.h"

#include <math.h>
#include <string.h>

static bool is_of_stages(const pl_ir_mesh *mesh, int32_t axis) {
  return axis == 0 && strcmp(mesh->axes[0].name.text, "pp") == 0;
}

static int32_t stages_of(const pl_ir_mesh *mesh) {
  return mesh->n_axes > 0 && is_of_stages(mesh, 0) ? mesh->axes[0].extent : 1;
}

/* The devices of the mesh that share the coordinates of `first` but for these axes, in the mesh's order. */
static uint32_t take_group(const pl_ir_mesh *mesh, uint32_t axes, uint32_t first, uint32_t *members) {
  uint32_t n = 1;
  members[0] = first;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if ((axes >> axis & 1) == 0) continue;
    uint32_t extent = (uint32_t)mesh->axes[axis].extent, stride = pl_ir_mesh_stride(mesh, axis);
    for (uint32_t i = n; i-- > 0;)
      for (uint32_t at = extent; at-- > 0;)
        members[i * extent + at] = members[i] + at * stride;
    n *= extent;
  }
  return n;
}

static bool find(const pl_mesh_prices *own, uint64_t hash, pl_collective_kind kind, uint32_t axes, double size_bytes,
                 double *time_s) {
  uint32_t probe = 0;
  const pl_mesh_price *known;
  while ((known = (const pl_mesh_price *)pl_hash_index_find(&own->known, hash, &probe)) != NULL)
    if (known->kind == kind && known->axes == axes && known->size_bytes == size_bytes) {
      *time_s = known->time_s;
      return true;
    }
  return false;
}

/* The `index`-th device of a stage's that has coordinate 0 along all of these axes: the first of a group. */
static uint32_t origin_of_group(const pl_ir_mesh *mesh, uint32_t axes, uint32_t index) {
  uint32_t device = 0;
  for (int32_t axis = mesh->n_axes; axis-- > 0;) {
    if ((axes >> axis & 1) != 0 || is_of_stages(mesh, axis)) continue;
    uint32_t extent = (uint32_t)mesh->axes[axis].extent;
    device += index % extent * pl_ir_mesh_stride(mesh, axis);
    index /= extent;
  }
  return device;
}

/* Devices of the platform in all groups of a stage; NULL: no memory. */
static uint32_t *members_of_stage(const pl_mesh_prices *own, const pl_ir_mesh *mesh, uint32_t axes, uint32_t first,
                                  uint32_t n_groups, uint32_t size) {
  uint32_t *members = PL_TAKE(own->arena, uint32_t, (size_t)n_groups * size + 1);
  for (uint32_t g = 0; members != NULL && g < n_groups; g++) {
    take_group(mesh, axes, first + origin_of_group(mesh, axes, g), members + (size_t)g * size);
    for (uint32_t i = 0; i < size && own->transfers.places != NULL; i++)
      members[(size_t)g * size + i] = own->transfers.places[members[(size_t)g * size + i]];
  }
  return members;
}

/* Which stages lie as the first does, found once for each choice of axes: these take what it takes. */
static pl_code find_like_first(pl_mesh_prices *own, const pl_ir_mesh *mesh, uint32_t axes, uint32_t n_stages,
                               uint32_t each, const bool **like_first, pl_error *error) {
  if ((*like_first = own->like_first[axes]) != NULL) return PL_OK;
  bool *made = PL_TAKE(own->arena, bool, n_stages);
  if (made == NULL) return pl_fail_memory(error, "prices of collectives");
  uint32_t size = take_group(mesh, axes, 0, own->members);
  PL_ASSERT(size > 0);
  pl_group_row rows[2] = {{.n_groups = each / size, .size = size}, {.n_groups = each / size, .size = size}};
  for (uint32_t stage = 0; stage < n_stages && n_stages > 1; stage++) {
    pl_group_row *row = &rows[stage > 0];
    row->members = members_of_stage(own, mesh, axes, stage * each, row->n_groups, size);
    if (row->members == NULL) return pl_fail_memory(error, "prices of collectives");
    if (stage > 0)
      PL_TRY(pl_groups_are_alike(&own->comparing, own->cluster, &rows[0], row, own->arena, &made[stage], error));
  }
  *like_first = own->like_first[axes] = made;
  return PL_OK;
}

/* Adds what the transfer takes of links. */
static void add_uses(pl_mesh_prices *own, uint32_t spec, double progress, double *alone_s) {
  const pl_transfer_spec *is = &own->transfers.specs[spec];
  for (uint32_t i = 0; i < is->n_uses; i++) {
    const pl_link_use *use = &own->transfers.uses[is->first_use + i];
    double bytes = use->weight * progress;
    if (own->bytes[use->link] == 0 && bytes > 0) own->busy[own->n_busy++] = use->link;
    own->bytes[use->link] += bytes;
  }
  *alone_s = fmax(*alone_s, pl_ir_transfers_alone_s(&own->transfers, spec, progress));
}

/* What the busiest link takes; behind it none is. */
static double busiest_s(pl_mesh_prices *own) {
  double longest_s = 0;
  while (own->n_busy > 0) {
    uint32_t link = own->busy[--own->n_busy];
    double time_s = own->bytes[link] / own->cluster->links[link].capacity_Bps;
    if (time_s > longest_s) longest_s = time_s;
    own->bytes[link] = 0;
  }
  return longest_s;
}

/* All groups of a stage at once: the slowest alone, or as long as the busiest link takes for all of them behind the
 * latency. */
static pl_code measure_stage(pl_mesh_prices *own, const pl_ir_module *module, pl_mesh_price *made, uint32_t first,
                             uint32_t n_devices, pl_error *error) {
  uint32_t size = take_group(&module->mesh, made->axes, 0, own->members), spec = PL_NONE;
  double alone_s = 0;
  for (uint32_t g = 0; g < n_devices / size; g++) {
    double progress;
    take_group(&module->mesh, made->axes, first + origin_of_group(&module->mesh, made->axes, g), own->members);
    PL_TRY(pl_ir_transfers_collective(&own->transfers, made->kind, own->members, size, made->size_bytes, &spec,
                                      &progress, error));
    add_uses(own, spec, progress, &alone_s);
  }
  double together_s = busiest_s(own);
  if (spec != PL_NONE) together_s += pl_ticks_to_s(own->transfers.specs[spec].latency);
  made->time_s = fmax(made->time_s, fmax(alone_s, together_s));
  return PL_OK;
}

static pl_code take_room(pl_mesh_prices *own, uint32_t n_devices, pl_error *error) {
  if (own->members != NULL) return PL_OK;
  own->bytes = PL_TAKE(own->arena, double, own->cluster->n_links + 1);
  own->busy = PL_TAKE(own->arena, uint32_t, own->cluster->n_links + 1);
  own->like_first = PL_TAKE(own->arena, const bool *, (size_t)1 << PL_IR_AXES_MAX);
  own->members = PL_TAKE(own->arena, uint32_t, n_devices);
  return own->arena->failed ? pl_fail_memory(error, "prices of collectives") : PL_OK;
}

/* The slowest of the stages. */
static pl_code measure(pl_mesh_prices *own, const pl_ir_module *module, pl_mesh_price *made, pl_error *error) {
  const pl_ir_mesh *mesh = &module->mesh;
  uint32_t n_devices = pl_ir_mesh_devices(mesh), n_stages = (uint32_t)stages_of(mesh), each = n_devices / n_stages;
  PL_TRY(take_room(own, n_devices, error));
  bool placed = module->places != NULL && (uint32_t)module->n_places == n_devices;
  own->transfers.places = placed ? module->places : NULL;
  if (module->places != NULL && !placed) n_stages = 1;
  const bool *like_first;
  PL_TRY(find_like_first(own, mesh, made->axes, n_stages, each, &like_first, error));
  for (uint32_t stage = 0; stage < n_stages; stage++)
    if (!like_first[stage]) PL_TRY(measure_stage(own, module, made, stage * each, each, error));
  return PL_OK;
}

static pl_code price(void *context, const pl_ir_module *module, pl_collective_kind kind, uint32_t axes,
                     double size_bytes, double *time_s, pl_error *error) {
  pl_mesh_prices *own = context;
  uint64_t bits;
  memcpy(&bits, &size_bytes, sizeof bits);
  uint64_t hash = pl_hash_word(pl_hash_word(pl_hash_word(5, (uint64_t)kind), axes), bits);
  if (find(own, hash, kind, axes, size_bytes, time_s)) return PL_OK;
  pl_mesh_price *made = PL_TAKE(own->arena, pl_mesh_price, 1);
  if (made == NULL) return pl_fail_memory(error, "prices of collectives");
  *made = (pl_mesh_price){.kind = kind, .axes = axes, .size_bytes = size_bytes};
  PL_TRY(measure(own, module, made, error));
  *time_s = made->time_s;
  return pl_hash_index_put(&own->known, hash, made, own->arena) ? PL_OK
                                                                : pl_fail_memory(error, "prices of collectives");
}

void pl_mesh_prices_init(pl_mesh_prices *own, const pl_cluster *cluster, const pl_collective_options *options,
                         pl_arena *arena) {
  *own = (pl_mesh_prices){.cluster = cluster, .options = *options, .arena = arena};
  own->prices = (pl_layout_prices){.context = own, .n_devices = cluster->n_devices, .seconds = price};
  pl_ir_transfers_init(&own->transfers, cluster, &own->options, arena);
}
