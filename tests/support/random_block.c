/* See tests/support/random_block.h. */
#include "tests/support/random_block.h"

static const char *const families[] = {"gpt2", "gpt_neox", "bert", "llama", "mistral"};

pl_model random_block_model(uint64_t *state) {
  pl_model model = {.name = "random", .family = families[random_below(state, 5)], .n_layers = 2};
  model.width.vocab = 2048 * (1 + random_below(state, 5));
  model.attention.n_heads = 16 * (1 + random_below(state, 3));
  model.attention.n_kv_heads = random_coin(state) ? model.attention.n_heads : 16;
  model.attention.head_size = 8 * (1 + random_below(state, 16));
  model.attention.value_size = model.attention.head_size;
  model.width.hidden =
      random_coin(state) ? model.attention.n_heads * model.attention.head_size : 32 * (1 + random_below(state, 40));
  model.width.ffn_hidden = 16 * (1 + random_below(state, 300));
  model.positions.max_positions = 1 << 20;
  model.width.type_vocab = random_below(state, 3);
  model.norms.norm_bias = random_coin(state);
  model.mlp.gated_mlp = random_coin(state);
  model.attention.causal = random_coin(state);
  model.ends.tied_embeddings = random_coin(state);
  model.positions.rotary = random_coin(state);
  model.positions.learned_positions = random_coin(state);
  model.attention.attention_bias = random_coin(state);
  model.attention.output_bias = random_coin(state);
  model.mlp.mlp_bias = random_coin(state);
  model.norms.final_norm = random_coin(state);
  model.ends.pooler = model.ends.next_sentence = random_coin(state);
  model.ends.lm_transform = random_coin(state);
  model.norms.embedding_norm = random_coin(state);
  model.norms.parallel_residual = random_below(state, 3) == 0;
  model.norms.post_norm = !model.norms.parallel_residual && random_coin(state);
  model.dropout.embedding_dropout = random_coin(state);
  model.dropout.attention_dropout = random_coin(state);
  model.dropout.hidden_dropout = random_coin(state);
  return model;
}

pl_block_shard random_block_shard(uint64_t *state) {
  pl_block_shard shard = {.tmp = (int32_t)random_power(state, 4), .mbs = 1 + (int32_t)random_below(state, 4)};
  shard.sp = random_coin(state);
  shard.seq = 16 * (1 + random_below(state, 64));
  shard.recompute = (pl_recompute)random_below(state, PL_RECOMPUTE_COUNT);
  shard.dtype = (pl_dtype)random_below(state, PL_DTYPE_FP8);
  shard.flash = random_coin(state);
  shard.fp8 = pl_dtype_bytes(shard.dtype) == 2 && random_coin(state);
  shard.fp4 = shard.fp8 && random_coin(state);
  return shard;
}
