/* Models: any text either gives a model whose every block can be programmed or refused, or one message; never a crash,
 * a NaN or a negative size. Programs of the program language have as many parameters as the model. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "workloads/derive/differentiate.h"
#include "workloads/import/model_file.h"
#include "workloads/import/program_build.h"
#include "workloads/ir/model.h"
#include "workloads/language/ir_parameters.h"
#include "workloads/lower/block_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_program(const pl_model *model, pl_block_kind kind, const pl_block_shard *shard, pl_arena *arena) {
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_block_program_take(model, kind, shard, arena, &program, &error);
  PL_ASSERT(code == error.code);
  if (code != PL_OK) return;
  PL_ASSERT(isfinite(program.parameters) && program.parameters >= 0);
  PL_ASSERT(program.saved_bytes >= 0 && program.forward_peak_bytes >= program.saved_bytes &&
            program.backward_peak_bytes >= 0);
  for (uint32_t i = 0; i < program.forward.n_ops; i++)
    PL_ASSERT(isfinite(program.forward.ops[i].flops) && program.forward.ops[i].flops >= 0);
}

static void check_training(const pl_model *model, pl_arena *arena) {
  const int32_t layers_max = 200; /* of programs that are written out: time */
  const double exact = 0x1p53;
  if (model->n_layers > layers_max) return;
  const pl_model_program_options job = pl_model_program_defaults(4, 2, 16);
  pl_differentiate_options options = pl_differentiate_defaults();
  pl_ir_module forward, training;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_model_program_build(model, &job, arena, &forward, &error);
  PL_ASSERT(code == error.code && (code == PL_OK || code == PL_UNSUPPORTED || code == PL_BAD_INPUT));
  if (code != PL_OK) return;
  double n = pl_ir_parameters_count(&forward, forward.classes[0].chunks[0].forward, arena);
  PL_ASSERT(n == model->count.trained_parameters || n >= exact);
  options.splits_weights = true;
  PL_ASSERT(pl_ir_differentiate(&forward, &options, arena, &training, &error) == PL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_model_parse("fuzz", (const char *)data, size, &arena, &model, &error);
  PL_ASSERT(code == error.code);
  if (code != PL_OK) {
    PL_ASSERT(model.name == NULL && strncmp(error.message, "fuzz", 4) == 0);
  } else {
    PL_ASSERT(model.n_layers > 0 && model.attention.n_heads % model.attention.n_kv_heads == 0 &&
              model.count.parameters > 0 && isfinite(model.count.parameters));
    PL_ASSERT(pl_model_flops_per_sequence(&model, 16) > 0);
    for (int kind = 0; kind < PL_BLOCK_KIND_COUNT; kind++)
      for (int32_t tmp = 1; tmp <= 4; tmp *= 4) {
        pl_block_shard shard = {
            .tmp = tmp, .sp = tmp > 1, .mbs = 2, .seq = 16, .dtype = PL_DTYPE_BF16, .flash = kind % 2 == 0};
        check_program(&model, (pl_block_kind)kind, &shard, &arena);
      }
    check_training(&model, &arena);
  }
  pl_arena_release(&arena);
  return 0;
}
