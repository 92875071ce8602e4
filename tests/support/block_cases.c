/* See tests/support/block_cases.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/block_cases.h"
#include "tests/support/random.h"
#include "workloads/import/model_file.h"

static int by_name(const void *a, const void *b) {
  return strcmp(((const pl_model *)a)->name, ((const pl_model *)b)->name);
}

void block_cases_load(block_cases *cases, pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  memset(cases, 0, sizeof *cases);
  cases->frameworks[cases->n_frameworks++] = pl_framework_ideal;
  for (const char *const *name = pl_framework_names(arena); *name != NULL; name++) {
    assert_true(cases->n_frameworks < BLOCK_CASE_FRAMEWORKS);
    if (pl_framework_load(*name, arena, &cases->frameworks[cases->n_frameworks++], &error) != PL_OK)
      fail_msg("%s", error.message);
  }
  DIR *folder = opendir(PACELINE_SOURCE_DIR "/workloads/models");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const char *ending = strrchr(entry->d_name, '.');
    if (ending == NULL || strcmp(ending, ".json") != 0) continue;
    const char *path = pl_arena_printf(arena, PACELINE_SOURCE_DIR "/workloads/models/%s", entry->d_name);
    assert_true(cases->n_models < BLOCK_CASE_MODELS);
    pl_code code = pl_model_load(path, arena, &cases->models[cases->n_models], &error);
    if (code != PL_OK && code != PL_UNSUPPORTED) fail_msg("%s", error.message);
    cases->n_models += code == PL_OK; /* some are programs, without blocks */
  }
  closedir(folder);
  qsort(cases->models, cases->n_models, sizeof *cases->models, by_name);
}

static int64_t power(uint64_t *random, uint32_t highest) {
  return INT64_C(1) << random_below(random, highest + 1);
}

static bool one_of(uint64_t *random, uint32_t n) {
  return random_below(random, n) == 0;
}

pl_block_shard block_cases_shard(uint64_t *random, const pl_model *model, const pl_framework *framework) {
  static const pl_dtype dtypes[] = {PL_DTYPE_BF16, PL_DTYPE_FP16, PL_DTYPE_BF16, PL_DTYPE_FP32, PL_DTYPE_TF32};
  pl_block_shard shard = {.framework = framework};
  shard.tmp = one_of(random, 12) ? (int32_t)random_between(random, 3, 12) : (int32_t)power(random, 4);
  shard.mbs = (int32_t)random_between(random, 1, 5);
  shard.seq = 64 << random_below(random, 8);
  shard.recompute = (pl_recompute)random_below(random, PL_RECOMPUTE_COUNT);
  shard.dtype = dtypes[random_below(random, 5)];
  shard.flash = !one_of(random, 3);
  shard.fp8 = one_of(random, 3) && pl_dtype_bytes(shard.dtype) == 2;
  shard.fp4 = shard.fp8 && one_of(random, 3);
  shard.attention_kernel = (pl_attention_kernel)random_below(random, 3);
  shard.halves = one_of(random, 2);
  if (model->unlike.parts != NULL) {
    shard.seq = model->positions.max_positions;
    if (model->unlike.parts[0].chain != NULL) shard.tmp = 1;
    shard.ep = shard.cp = (int32_t)random_below(random, 2);
    return shard;
  }
  if (model->moe.n_experts > 0) shard.ep = (int32_t)power(random, 4);
  shard.sp = model->moe.n_experts > 0 ? shard.tmp > 1 : one_of(random, 2);
  if (one_of(random, 3)) {
    shard.cp = (int32_t)power(random, 3);
    shard.cp_gather = one_of(random, 2);
    shard.flash = true;
  }
  return shard;
}

static void turn(uint64_t *random, bool *trait) {
  if (one_of(random, 4)) *trait = !*trait;
}

static void turn_dropout(uint64_t *random, bool *trait, double *probability) {
  turn(random, trait);
  *probability = *trait ? 0.1 : 0;
}

pl_model block_cases_turned(uint64_t *random, const pl_model *model) {
  pl_model turned = *model;
  turn(random, &turned.norms.parallel_residual);
  turned.norms.parallel_residual = turned.norms.parallel_residual && model->moe.n_experts == 0;
  turn(random, &turned.attention.attention_bias);
  turn(random, &turned.attention.output_bias);
  turn(random, &turned.mlp.mlp_bias);
  turned.mlp.mlp_bias = turned.mlp.mlp_bias && model->moe.n_experts == 0;
  turn(random, &turned.mlp.gated_mlp);
  turn(random, &turned.attention.causal);
  turn(random, &turned.ends.tied_embeddings);
  turn(random, &turned.positions.learned_positions);
  turned.positions.max_positions = 1 << 20;
  turn(random, &turned.norms.norm_bias);
  turn(random, &turned.norms.sandwich_norms);
  turn(random, &turned.moe.shared_gate);
  turn(random, &turned.norms.final_norm);
  turn(random, &turned.ends.pooler);
  turn(random, &turned.ends.lm_transform);
  turn(random, &turned.ends.next_sentence);
  turn(random, &turned.norms.embedding_norm);
  turn(random, &turned.norms.post_norm);
  bool every_other = model->attention.window_period == 2;
  turn(random, &every_other);
  turned.attention.window_period = every_other ? 2 : 0;
  turned.norms.norm = one_of(random, 2) ? PL_NORM_LAYER : PL_NORM_RMS;
  turned.norms.norm_bias = turned.norms.norm_bias && turned.norms.norm == PL_NORM_LAYER;
  turned.ends.predictions = one_of(random, 3) ? 1 + (int64_t)random_below(random, 200) : 0;
  turned.attention.sliding_window = one_of(random, 3) ? 1 + (int64_t)random_below(random, 5000) : 0;
  turned.mlp.activation = one_of(random, 3) ? "relu2" : "gelu";
  if (model->attention.kv_rank == 0) {
    turn(random, &turned.positions.rotary);
    turn(random, &turned.attention.qk_norm);
  }
  turn_dropout(random, &turned.dropout.embedding_dropout, &turned.numbers.embedding_dropout);
  turn_dropout(random, &turned.dropout.attention_dropout, &turned.numbers.attention_dropout);
  turn_dropout(random, &turned.dropout.hidden_dropout, &turned.numbers.hidden_dropout);
  return turned;
}

static void digest_list(pl_digest *digest, const pl_op_list *list) {
  pl_digest_u64(digest, list->n_ops);
  pl_digest_u64(digest, list->n_overlaps);
  for (uint32_t i = 0; i < list->n_ops; i++) {
    const pl_op *op = &list->ops[i];
    const uint64_t words[] = {op->kind,
                              op->category,
                              op->dtype,
                              op->attention_kernel,
                              op->collective,
                              op->group,
                              op->overlap,
                              op->convolution_pass,
                              op->deterministic,
                              op->transposed,
                              op->host_free,
                              (uint64_t)op->times,
                              op->convolution != NULL,
                              (uint64_t)op->batch,
                              (uint64_t)op->m,
                              (uint64_t)op->n,
                              (uint64_t)op->k,
                              op->output,
                              op->auxiliary,
                              op->third};
    pl_digest_text(digest, op->name != NULL ? op->name : "?");
    pl_digest_bytes(digest, words, sizeof words);
    pl_digest_bytes(digest, op->inputs, sizeof op->inputs);
    pl_digest_f64(digest, op->flops);
    pl_digest_f64(digest, op->bytes);
    pl_digest_f64(digest, op->size_bytes);
    pl_digest_f64(digest, op->filled_bytes);
  }
}

static void digest_tensor(pl_digest *digest, const pl_tensor *tensor) {
  const uint64_t words[] = {tensor->kind, tensor->dtype, tensor->saved, tensor->waits, tensor->expert, tensor->rank};
  pl_digest_text(digest, tensor->name);
  pl_digest_bytes(digest, words, sizeof words);
  pl_digest_bytes(digest, tensor->dims, tensor->rank);
  pl_digest_bytes(digest, tensor->extent, tensor->rank * sizeof *tensor->extent);
  pl_digest_f64(digest, tensor->size_bytes);
}

void block_program_digest(pl_digest *digest, const pl_block_program *p) {
  pl_digest_u64(digest, (uint64_t)p->kind);
  pl_digest_u64(digest, (uint64_t)p->block_class);
  pl_digest_u64(digest, p->n_tensors);
  for (uint32_t i = 0; i < p->n_tensors; i++)
    digest_tensor(digest, &p->tensors[i]);
  const uint64_t ends[] = {p->input, p->output, p->output_gradient, p->input_gradient};
  pl_digest_bytes(digest, ends, sizeof ends);
  digest_list(digest, &p->forward);
  digest_list(digest, &p->backward);
  digest_list(digest, &p->halves[0]);
  digest_list(digest, &p->halves[1]);
  const double numbers[] = {p->parameters,         p->expert_parameters,  p->largest_parameters,  p->tied_parameters,
                            p->saved_bytes,        p->forward_peak_bytes, p->backward_peak_bytes, p->inputs_peak_bytes,
                            p->weights_peak_bytes, p->waiting_bytes,      p->output_bytes,        p->model_flops};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    pl_digest_f64(digest, numbers[i]);
}

void block_shard_print(const pl_block_shard *s) {
  printf("tmp=%d ep=%d cp=%d sp=%d mbs=%d seq=%lld recompute=%d gather=%d %s flash=%d fp8=%d fp4=%d halves=%d "
         "framework=%s\n",
         s->tmp, s->ep, s->cp, s->sp, s->mbs, (long long)s->seq, (int)s->recompute, s->cp_gather,
         pl_dtype_name(s->dtype), s->flash, s->fp8, s->fp4, s->halves, s->framework->name);
}
