/* See tests/support/random_program.h. */
#include "tests/support/random_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/random.h"
#include "workloads/import/model_file.h"

static void check(pl_code code, const pl_error *error) {
  if (code == PL_OK) return;
  fprintf(stderr, "%s\n", error->message);
  abort();
}

void random_program_model(uint64_t *random, pl_arena *arena, pl_model *model) {
  static const char *const kinds[] = {
      "\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":%d,\"n_head\":16,\"n_positions\":128,",
      "\"model_type\":\"mixtral\",\"hidden_size\":256,\"num_hidden_layers\":%d,\"num_attention_heads\":16,"
      "\"num_key_value_heads\":4,\"intermediate_size\":512,\"num_local_experts\":8,\"num_experts_per_tok\":2,",
      "\"model_type\":\"deepseek_v3\",\"hidden_size\":256,\"num_hidden_layers\":%d,\"num_attention_heads\":16,"
      "\"intermediate_size\":512,\"q_lora_rank\":64,\"kv_lora_rank\":32,\"qk_nope_head_dim\":16,"
      "\"qk_rope_head_dim\":8,\"v_head_dim\":16,\"n_routed_experts\":16,\"num_experts_per_tok\":3,"
      "\"moe_intermediate_size\":64,\"n_shared_experts\":1,\"first_k_dense_replace\":1,"};
  char text[1024] = "{";
  int layers = 4 + (int)random_below(random, 9), size = 1;
  const char *tied = random_below(random, 3) == 0 ? "false" : "true";
  uint64_t kind = random_below(random, 4);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  size += snprintf(text + size, sizeof text - (size_t)size, kinds[kind < 2 ? 0 : kind - 1], layers);
#pragma GCC diagnostic pop
  size += snprintf(text + size, sizeof text - (size_t)size, "\"vocab_size\":1000,\"tie_word_embeddings\":%s}", tied);
  pl_error error = PL_ERROR_INIT;
  check(pl_model_parse("random.json", text, (size_t)size, arena, model, &error), &error);
}

/* Strictly increasing cuts of the blocks. */
static const int32_t *random_boundaries(uint64_t *random, const pl_model *model, int32_t n_chunks, pl_arena *arena) {
  int32_t n = pl_model_n_blocks(model), *boundary = PL_TAKE(arena, int32_t, n_chunks + 1);
  boundary[n_chunks] = n;
  for (int32_t c = 1; c < n_chunks; c++) {
    int32_t lowest = boundary[c - 1] + 1, highest = n - (n_chunks - c);
    int32_t even = boundary[c - 1] + (n - boundary[c - 1]) / (n_chunks - c + 1);
    int32_t cut = even - 2 + (int32_t)random_below(random, 5);
    boundary[c] = cut < lowest ? lowest : cut > highest ? highest : cut;
  }
  return boundary;
}

/* One that is not in every space by itself. */
static void random_schedule(uint64_t *random, pl_strategy *strategy, int32_t *n_microbatches) {
  static const pl_schedule_kind kinds[] = {PL_SCHEDULE_FIFO,  PL_SCHEDULE_BREADTH_FIRST, PL_SCHEDULE_ZB_H1,
                                           PL_SCHEDULE_ZB_H2, PL_SCHEDULE_ZB_V,          PL_SCHEDULE_DUALPIPE_V};
  pl_schedule_kind kind = kinds[random_below(random, sizeof kinds / sizeof *kinds)];
  if (strategy->pp == 1 && kind != PL_SCHEDULE_FIFO) return;
  strategy->schedule = kind;
  if (kind == PL_SCHEDULE_BREADTH_FIRST || pl_strategy_is_v(strategy)) strategy->vpp = 2;
  if (kind == PL_SCHEDULE_DUALPIPE_V) *n_microbatches += 2 * strategy->pp;
}

bool random_program_strategy(uint64_t *random, int32_t devices, const pl_model *model, pl_job *job,
                             pl_strategy *strategy, pl_arena *arena) {
  static const char orders[10][5] = {"tdp", "tpd", "dtp", "dpt", "ptd", "pdt", "tcdp", "cdtp", "tdcp", "pcdt"};
  *strategy = (pl_strategy){.vpp = 1};
  strategy->schedule = (pl_schedule_kind)random_below(random, 2);
  strategy->overlap = random_below(random, 4) > 0;
  strategy->tmp = random_divisor(random, devices);
  if (16 % strategy->tmp != 0) strategy->tmp = 1;
  strategy->pp = random_divisor(random, devices / strategy->tmp);
  strategy->cp = devices / strategy->tmp / strategy->pp;
  if (random_below(random, 3) > 0 || strategy->cp > 8 || 128 % (2 * strategy->cp * strategy->tmp) != 0)
    strategy->cp = 1;
  strategy->cp_gather = random_below(random, 2) == 0;
  strategy->dp = devices / strategy->tmp / strategy->pp / strategy->cp;
  if (random_below(random, 2) == 0 && strategy->cp % 2 == 0) { /* some of both */
    strategy->cp /= 2;
    strategy->dp *= 2;
  }
  int32_t ranks = strategy->dp * strategy->cp * strategy->tmp;
  strategy->ep = model->moe.n_experts > 0 ? random_divisor(random, ranks) : 1;
  if (strategy->ep > 1 && model->moe.n_experts % strategy->ep != 0) strategy->ep = ranks % 2 == 0 ? 2 : 1;
  strategy->mbs = 1 + (int32_t)random_below(random, 2);
  int32_t n_microbatches = 1 + (int32_t)random_below(random, 6);
  if (strategy->pp > 1 && strategy->pp <= 4 && random_below(random, 3) == 0) {
    strategy->schedule = PL_SCHEDULE_INTERLEAVED;
    strategy->vpp = 2;
    n_microbatches = strategy->pp * (1 + (int32_t)random_below(random, 2));
  }
  if (strategy->vpp == 1 && random_below(random, 3) == 0) random_schedule(random, strategy, &n_microbatches);
  if (pl_strategy_n_chunks(strategy) > model->n_layers) return false;
  strategy->sp = strategy->tmp > 1 && (random_below(random, 2) == 0 || model->moe.n_experts > 0);
  strategy->recompute = (pl_recompute)random_below(random, 3);
  strategy->zero = (int32_t)random_below(random, strategy->pp > 1 ? 2 : 4);
  if (strategy->zero > 0 && model->moe.n_experts == 0 && random_below(random, 2) == 0)
    strategy->shard = random_divisor(random, pl_strategy_replicas(strategy));
  if (strategy->shard == 1) strategy->shard = 0;
  memcpy(strategy->order, orders[random_below(random, 10)], 5);
  strategy->boundary = random_boundaries(random, model, pl_strategy_n_chunks(strategy), arena);
  *job = (pl_job){.gbs = (int64_t)n_microbatches * strategy->dp * strategy->mbs, .seq = 128, .dtype = PL_DTYPE_FP16};
  job->flash = random_below(random, 2) == 0 || strategy->cp > 1;
  job->bucket_bytes = random_below(random, 2) == 0 ? 1e5 : 1e7;
  job->split_sends = random_below(random, 2) == 0;
  /* Drawn from nothing: programs of before stay what they were. */
  bool pairs = strategy->schedule == (strategy->pp > 1 ? PL_SCHEDULE_INTERLEAVED : PL_SCHEDULE_1F1B);
  bool hides = strategy->ep > 1 && strategy->recompute < PL_RECOMPUTE_FULL && (n_microbatches + strategy->mbs) % 2 == 0;
  if (hides && pairs && strategy->zero < 3)
    strategy->ep_overlap = job->gbs % 3 == 0 ? PL_EP_OVERLAP_DELAYED : PL_EP_OVERLAP_PASSES;
  else if (hides && model->moe.shared_ffn > 0 && strategy->schedule != PL_SCHEDULE_DUALPIPE_V)
    strategy->ep_overlap = PL_EP_OVERLAP_SHARED;
  return true;
}

static void swap(uint32_t *devices, uint32_t a, uint32_t b) {
  uint32_t device = devices[a];
  devices[a] = devices[b];
  devices[b] = device;
}

/* In order, rotated or backwards, so that much still folds; then perhaps with a few ranks swapped, and now and then in
 * no order at all. The first ranks' devices of this are used. */
static const uint32_t *random_placement(uint64_t *random, const pl_cluster *cluster, pl_arena *arena) {
  uint32_t n = cluster->n_devices, *devices = PL_TAKE(arena, uint32_t, n), shift = random_below(random, n);
  if (random_below(random, 2) == 0) shift = shift / cluster->nodes[0].n_devices * cluster->nodes[0].n_devices;
  bool backwards = random_below(random, 3) == 0;
  for (uint32_t i = 0; i < n; i++)
    devices[i] = backwards ? n - 1 - i : (i + shift) % n;
  uint32_t n_swaps = random_below(random, 3) > 0 ? 0 : random_below(random, 4) == 0 ? 4 * n : 1;
  for (uint32_t i = 0; i < n_swaps; i++) {
    uint32_t other = random_below(random, n);
    swap(devices, i % n, other);
  }
  return devices;
}

/* The first replicas have more microbatches than the others; one now and then has a number of its own. */
static void split_unevenly(uint64_t *random, pl_strategy *strategy, pl_job *job, pl_arena *arena) {
  if (strategy->zero >= 2 || strategy->ep > strategy->cp * strategy->tmp || strategy->dp == 1) return;
  if (strategy->schedule == PL_SCHEDULE_DUALPIPE_V) return; /* of few microbatches there is none */
  if (strategy->ep > 1 && strategy->cp * strategy->tmp % strategy->ep != 0) return;
  int32_t *split = PL_TAKE(arena, int32_t, strategy->dp), step = strategy->vpp > 1 ? strategy->pp : 1;
  int32_t few = 1 + (int32_t)random_below(random, 3), many = few + 1 + (int32_t)random_below(random, 3);
  int32_t first = (int32_t)random_below(random, (uint32_t)strategy->dp), sum = 0;
  for (int32_t d = 0; d < strategy->dp; d++)
    split[d] = step * (d < first ? many : few);
  if (random_below(random, 4) == 0) split[first] += 2 * step;
  for (int32_t d = 0; d < strategy->dp; d++)
    sum += split[d];
  job->gbs = (int64_t)sum * strategy->mbs;
  strategy->split = split;
}

bool random_program_placed(uint64_t *random, const pl_cluster *cluster, const pl_model *model, pl_job *job,
                           pl_strategy *strategy, pl_arena *arena) {
  uint32_t n = cluster->n_devices, n_used = random_below(random, 3) == 0 ? n : random_between(random, 1, n);
  if (!random_program_strategy(random, (int32_t)n_used, model, job, strategy, arena)) return false;
  if (random_below(random, 2) == 0) split_unevenly(random, strategy, job, arena);
  strategy->idle = random_below(random, 5) == 0;
  if (!strategy->idle) strategy->placement = random_placement(random, cluster, arena);
  pl_error error = PL_ERROR_INIT;
  check(pl_strategy_check_placement(strategy, n, &error), &error);
  if (strategy->split != NULL) check(pl_strategy_check_split(strategy, job, &error), &error);
  return true;
}

/* The name at `index` of "ideal, a, b", counted around. */
static const char *name_at(const char *list, uint32_t index) {
  uint32_t n = 1;
  for (const char *at = list; (at = strchr(at, ',')) != NULL; at++)
    n++;
  for (index %= n; index > 0; index--)
    list = strchr(list, ',') + 2;
  return list;
}

const pl_framework *random_program_framework(uint32_t index, pl_arena *arena) {
  const char *list = pl_framework_list(arena);
  pl_framework *framework = PL_TAKE(arena, pl_framework, 1);
  if (list == NULL || framework == NULL) abort();
  const char *at = name_at(list, index);
  const char *name = pl_arena_printf(arena, "%.*s", (int)strcspn(at, ","), at);
  pl_error error = PL_ERROR_INIT;
  check(pl_framework_load(name, arena, framework, &error), &error);
  return framework;
}
