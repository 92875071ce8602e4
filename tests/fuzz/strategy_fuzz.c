/* Strategies: any text is either refused with one message or gives a strategy that can be printed, read again and
 * printed alike; and what passes the check for a small job can be assigned and made into a program. */
#include <stdint.h>
#include <string.h>

#include "workloads/import/model_file.h"
#include "workloads/program/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load_model(pl_arena *arena, pl_model *model) {
  static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":24,\"n_head\":8,\"n_positions\":128,"
                               "\"vocab_size\":1000}";
  pl_error error = PL_ERROR_INIT;
  PL_ASSERT(pl_model_parse("fuzz.json", config, sizeof config - 1, arena, model, &error) == PL_OK);
}

static void check_round_trip(const pl_strategy *strategy, const pl_model *model, pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  pl_strategy again;
  int length = pl_strategy_format(strategy, model, NULL, 0);
  char *text = pl_arena_take(arena, (size_t)length + 1, 1), *second = pl_arena_take(arena, (size_t)length + 1, 1);
  PL_ASSERT(text != NULL && second != NULL);
  PL_ASSERT(pl_strategy_format(strategy, model, text, (size_t)length + 1) == length);
  PL_ASSERT(pl_strategy_parse(text, model, arena, &again, &error) == PL_OK);
  PL_ASSERT(pl_strategy_format(&again, model, second, (size_t)length + 1) == length && strcmp(text, second) == 0);
}

static void check_use(pl_strategy *strategy, const pl_model *model, pl_arena *arena) {
  static const pl_device_profile profile = {.memory_bytes = 1e9,
                                            .bandwidth_Bps = 1e12,
                                            .peak_flops = {1e12, 1e12, 1e12, 1e12, 1e12},
                                            .compute_efficiency = 1,
                                            .attention_efficiency = 1,
                                            .bandwidth_efficiency = 1};
  static const pl_device devices[64] = {{.profile = 0}};
  const pl_cluster cluster = {.n_devices = 64, .devices = devices, .n_profiles = 1, .profiles = &profile};
  const pl_job job = {.gbs = 16, .seq = 128, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 1e5};
  pl_error error = PL_ERROR_INIT;
  int64_t product = (int64_t)strategy->pp * strategy->dp, inside = (int64_t)pl_strategy_cp(strategy) * strategy->tmp;
  uint32_t n_devices =
      product > 0 && product <= 64 && inside <= 64 && product * inside <= 64 ? (uint32_t)(product * inside) : 16;
  PL_ASSERT(pl_strategy_spread(strategy, n_devices, &error) == error.code);
  if (error.code != PL_OK) return;
  pl_code code = pl_strategy_check(strategy, model, &job, n_devices, &error);
  PL_ASSERT(code == error.code);
  if (code != PL_OK) return;
  if (strategy->recipe == PL_ASSIGN_OPTIMAL || strategy->recipe == PL_ASSIGN_AMP) return; /* need routes */
  pl_program program;
  PL_ASSERT(pl_strategy_assign(strategy, model, &job, &cluster, arena, &error) == PL_OK);
  for (int32_t c = 0; c < pl_strategy_n_chunks(strategy); c++)
    PL_ASSERT(strategy->boundary[c] < strategy->boundary[c + 1]);
  PL_ASSERT(pl_program_take(model, &job, strategy, arena, &program, &error) == PL_OK);
  check_round_trip(strategy, model, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  pl_model model;
  load_model(&arena, &model);
  char *text = pl_arena_take(&arena, size + 1, 1);
  PL_ASSERT(text != NULL);
  memcpy(text, data, size);
  text[size] = '\0';
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_strategy_parse(text, &model, &arena, &strategy, &error);
  PL_ASSERT(code == error.code);
  if (code != PL_OK) {
    bool lists = strstr(text, "schedule=@") != NULL; /* then the message may be about the file */
    PL_ASSERT(code == PL_BAD_INPUT && (lists || strncmp(error.message, "strategy: ", 10) == 0));
  } else {
    check_round_trip(&strategy, &model, &arena);
    check_use(&strategy, &model, &arena);
  }
  pl_arena_release(&arena);
  return 0;
}
