/* Tiny models under one strategy of each kind: what `verify` is proven with. */
#ifndef PL_TESTS_RECIPES_H
#define PL_TESTS_RECIPES_H

#include "tests/support/tiny_models.h"

static const char gpt2[] = TINY_GPT2;
static const char llama[] = TINY_LLAMA;
static const char mixtral[] = TINY_MIXTRAL;
static const char bert[] =
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"intermediate_size\": 32, \"vocab_size\": 32, \"max_position_embeddings\": 16, \"type_vocab_size\": 2}";
static const char nemotron[] =
    "{\"model_type\": \"nemotron\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"hidden_act\": \"relu2\", \"vocab_size\": 32, "
    "\"max_position_embeddings\": 16}";
static const char qwen2[] = /* biases of queries, keys and values */
    "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 32, \"vocab_size\": 32, \"max_position_embeddings\": 16}";
static const char qwen3[] = /* norms per head */
    "{\"model_type\": \"qwen3\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 1, \"head_dim\": 8, \"intermediate_size\": 32, \"vocab_size\": 32, "
    "\"max_position_embeddings\": 16}";
static const char neox[] = "{\"model_type\": \"gpt_neox\", \"rotary_pct\": 0.5, \"num_hidden_layers\": 2, "
                           "\"hidden_size\": 16, \"num_attention_heads\": 4, "
                           "\"intermediate_size\": 32, \"vocab_size\": 32, \"max_position_embeddings\": 16}";
static const char gemma2[] =
    "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"head_dim\": 8, \"intermediate_size\": 32, \"vocab_size\": 32, "
    "\"max_position_embeddings\": 16, \"sliding_window\": 4}";
static const char cohere2[] = /* one norm for both branches, without biases; every second layer sees all */
    "{\"model_type\": \"cohere2\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 32, \"vocab_size\": 32, \"sliding_window\": 4, "
    "\"sliding_window_pattern\": 2}";
static const char gptj[] = "{\"model_type\": \"gptj\", \"n_layer\": 2, \"n_embd\": 16, \"n_head\": 4, "
                           "\"n_positions\": 16, \"rotary_dim\": 2, \"vocab_size\": 32}"; /* head with a bias */
static const char phimoe[] =
    "{\"model_type\": \"phimoe\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 32, \"vocab_size\": 32, \"num_local_experts\": 4, "
    "\"num_experts_per_tok\": 2, \"attention_bias\": true}";
static const char deepseek[] =
    "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 4, \"q_lora_rank\": 8, \"kv_lora_rank\": 8, \"qk_nope_head_dim\": 4, "
    "\"qk_rope_head_dim\": 4, \"v_head_dim\": 4, \"intermediate_size\": 32, \"moe_intermediate_size\": 8, "
    "\"n_routed_experts\": 4, \"num_experts_per_tok\": 2, \"n_shared_experts\": 1, \"first_k_dense_replace\": 1, "
    "\"vocab_size\": 32, \"max_position_embeddings\": 16}";
static const char cnn[] =
    "{\"model_type\": \"cnn\", \"image\": [3, 8, 8], \"norm\": \"none\", \"blocks\": [\"conv 8 3x3\", \"max 2/2\", "
    "\"[conv 4 1x1, conv 8 3x3]\", \"[conv 4 1x1, conv 8 3x3]\", \"(conv 8 1x1 | average 3, conv 8 1x1)\", "
    "\"conv 8 3x3\", \"mean\", \"linear 10\"]}";
static const char resnet[] =
    "{\"model_type\": \"cnn\", \"image\": [3, 8, 8], \"norm\": \"batch\", \"blocks\": [\"conv 8 3x3\", \"max 2/2\", "
    "\"[conv 4 1x1, conv 8 3x3]\", \"[conv 4 1x1, conv 8 3x3/2]\", \"conv 8 3x3\", \"mean\", \"linear 10\"]}";
static const char mlp[] = TINY_MLP;

typedef struct recipe {
  const char *name, *model, *strategy;
  int64_t gbs, seq;
} recipe;

#define RECIPE(model, strategy)                                                                                        \
  { #model, model, strategy, 8, 8 }
static const recipe recipes[] = {
    RECIPE(gpt2, "pp=1,dp=1,tmp=1,mbs=1"),
    RECIPE(gpt2, "pp=1,dp=2,tmp=2,mbs=2"),
    RECIPE(gpt2, "pp=2,dp=2,tmp=2,mbs=1"), /* tied embeddings on two stages */
    RECIPE(gpt2, "pp=2,dp=2,tmp=2,mbs=1,sp=1,zero=1"),
    RECIPE(gpt2, "pp=1,dp=2,tmp=2,mbs=1,sp=1,cp=2,recompute=full"),
    RECIPE(gpt2, "pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe"),
    RECIPE(gpt2, "pp=2,dp=2,tmp=2,mbs=1,recompute=full,recompute_layers=1,offload=both,zero=1"),
    RECIPE(gpt2, "pp=2,dp=2,tmp=2,mbs=1,offload=gradients,zero=2"),
    RECIPE(gpt2, "pp=2,dp=1,tmp=1,mbs=1,assign=0:1:4,recompute=selective"), /* uneven */
    RECIPE(llama, "pp=1,dp=1,tmp=2,mbs=1"),
    RECIPE(llama, "pp=1,dp=2,tmp=4,mbs=1,sp=1"), /* fewer key-value heads than ranks */
    RECIPE(qwen2, "pp=1,dp=2,tmp=4,mbs=1"),
    RECIPE(qwen2, "pp=1,dp=1,tmp=4,cp=2,cp_comm=gather,mbs=2,sp=1,zero=2,recompute=selective"),
    RECIPE(qwen3, "pp=2,dp=1,tmp=4,mbs=1,sp=1,recompute=full"),
    RECIPE(qwen3, "pp=1,dp=2,tmp=4,cp=2,mbs=1,zero=3"),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,zero=1"),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,zero=2"),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,zero=3,sp=1"),
    RECIPE(llama, "pp=1,dp=4,tmp=1,mbs=1,zero=3,recompute=full"),
    RECIPE(llama, "pp=1,dp=4,tmp=1,mbs=1,zero=1,shard=2"),
    RECIPE(llama, "pp=1,dp=4,tmp=1,mbs=1,zero=3,shard=2"),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,zero=2"),
    RECIPE(llama, "pp=2,dp=2,tmp=2,mbs=1,zero=3,sp=1,recompute=full"),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,cp=2,sp=1"),
    RECIPE(llama, "pp=1,dp=2,tmp=1,mbs=1,cp=2,cp_comm=gather,zero=2"),
    RECIPE(llama, "pp=1,dp=1,tmp=1,mbs=1,cp=4"),
    RECIPE(llama, "pp=2,dp=1,tmp=2,mbs=1,vpp=2"),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,schedule=fifo"),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,vpp=2,schedule=breadth-first"),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,schedule=zb-h1"),
    RECIPE(llama, "pp=4,dp=1,tmp=1,mbs=1,schedule=zb-h2"),
    RECIPE(llama, "pp=2,dp=1,tmp=2,mbs=1,vpp=2,schedule=zb-v,sp=1"),
    RECIPE(llama, "pp=2,dp=1,tmp=1,mbs=1,vpp=2,schedule=dualpipe-v"),
    /* two copies of the weights: a table that embedding and head read, shards of the optimizer, experts */
    RECIPE(gpt2, "pp=4,dp=1,tmp=1,mbs=1,schedule=dualpipe"),
    RECIPE(llama, "pp=2,dp=2,tmp=2,mbs=1,sp=1,zero=1,schedule=dualpipe"),
    RECIPE(mixtral, "pp=2,dp=2,tmp=1,mbs=1,ep=2,recompute=full,schedule=dualpipe"),
    RECIPE(llama, "pp=2,dp=2,tmp=2,mbs=1,cp=2,sp=1,zero=1,recompute=full"),
    RECIPE(mixtral, "pp=1,dp=2,tmp=1,mbs=1,ep=2"),
    RECIPE(mixtral, "pp=1,dp=2,tmp=2,mbs=1,ep=2,sp=1"),
    RECIPE(mixtral, "pp=1,dp=2,tmp=2,mbs=1,ep=4,sp=1,zero=1"),
    RECIPE(mixtral, "pp=2,dp=2,tmp=2,mbs=1,ep=4,sp=1,recompute=full"),
    RECIPE(mixtral, "pp=1,dp=4,tmp=1,mbs=1,ep=2,zero=3"),
    RECIPE(bert, "pp=2,dp=2,tmp=2,mbs=1"),
    RECIPE(bert, "pp=1,dp=2,tmp=2,mbs=1,sp=1,zero=2"),
    RECIPE(neox, "pp=2,dp=1,tmp=2,mbs=1,sp=1"),
    RECIPE(gemma2, "pp=2,dp=1,tmp=2,mbs=1"),
    RECIPE(cohere2, "pp=2,dp=1,tmp=2,mbs=1"),
    RECIPE(cohere2, "pp=1,dp=2,tmp=2,mbs=1,sp=1,zero=1,recompute=full"),
    RECIPE(gptj, "pp=2,dp=2,tmp=2,mbs=1,sp=1"),
    RECIPE(phimoe, "pp=1,dp=2,tmp=2,mbs=1,ep=2,sp=1"),
    RECIPE(deepseek, "pp=1,dp=2,tmp=1,mbs=1,ep=2"),
    RECIPE(deepseek, "pp=1,dp=2,tmp=2,mbs=1,ep=4,sp=1,zero=1"),
    {"cnn", cnn, "pp=1,dp=4,tmp=1,mbs=1,zero=2", 8, 1},
    {"cnn", cnn, "pp=2,dp=2,tmp=1,mbs=1,recompute=full", 8, 1},
    {"resnet", resnet, "pp=1,dp=4,tmp=1,mbs=2", 8, 1}, /* each replica has batch norms of its own */
    {"resnet", resnet, "pp=2,dp=2,tmp=1,mbs=2,zero=1", 16, 1},
    /* copies that context ranks share, and a part of them */
    RECIPE(llama, "pp=1,dp=4,cp=2,tmp=1,mbs=1,zero=3,shard=4"),
    RECIPE(llama, "pp=1,dp=2,cp=4,tmp=1,mbs=1,zero=2,shard=2"),
    /* experts cut over the tensor ranks too; experts over ranks that share a key-value head */
    RECIPE(mixtral, "pp=1,dp=2,tmp=2,mbs=1,ep=2,etp=2,sp=1,zero=1"),
    RECIPE(mixtral, "pp=2,dp=2,tmp=2,mbs=1,etp=2,sp=1,recompute=full"),
    RECIPE(phimoe, "pp=1,dp=2,tmp=4,mbs=1,ep=4,sp=1"),
    /* replicas that run unlike numbers of microbatches */
    RECIPE(gpt2, "pp=2,dp=2,tmp=2,mbs=1,split=5:3,zero=1"),
    RECIPE(gpt2, "pp=2,dp=2,tmp=1,mbs=1,split=6:2,schedule=interleaved,vpp=2"),
    RECIPE(llama, "pp=1,dp=2,cp=2,tmp=1,mbs=1,split=5:3"),
    RECIPE(llama, "pp=2,dp=4,tmp=1,mbs=1,split=3:2:1:2,zero=1,shard=2,schedule=zb-h1"),
    RECIPE(mixtral, "pp=1,dp=4,ep=2,tmp=1,mbs=1,split=3:3:1:1"),
    RECIPE(gpt2, "pp=2,vpp=2,dp=2,tmp=1,mbs=1,split=5:3,schedule=zb-v,zero=1"),
    {"gpt2", gpt2, "pp=2,vpp=2,dp=2,tmp=1,mbs=1,split=8:4,schedule=dualpipe-v", 12, 8},
    RECIPE(bert, "pp=2,dp=2,tmp=1,mbs=2,split=3:1,recompute=full"),
    {"resnet", resnet, "pp=1,dp=2,tmp=1,mbs=2,split=3:1", 8, 1},
    {"mlp", mlp, "pp=1,dp=1,tmp=1,mbs=8", 8, 1},
    {"mlp", mlp, "pp=2,dp=2,tmp=2,mbs=1", 8, 1}, /* DistIR's D, T, P */
    RECIPE(nemotron, "pp=2,dp=1,tmp=2,mbs=1,sp=1"),
    RECIPE(nemotron, "pp=1,dp=2,tmp=2,mbs=1,recompute=full"),
    RECIPE(nemotron, "pp=2,dp=2,tmp=1,mbs=1,schedule=zb-h1"),
};

#endif
