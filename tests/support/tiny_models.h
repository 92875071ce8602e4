/* Models small enough to be run with numbers, as config.json has them. */
#ifndef PL_TESTS_SUPPORT_TINY_MODELS_H
#define PL_TESTS_SUPPORT_TINY_MODELS_H

#define TINY_GPT2                                                                                                      \
  "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 16, \"n_head\": 4, \"n_positions\": 16, "                    \
  "\"vocab_size\": 32}"
#define TINY_LLAMA                                                                                                     \
  "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 32, "                                        \
  "\"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"intermediate_size\": 24, "                                \
  "\"vocab_size\": 32, \"max_position_embeddings\": 16}"
#define TINY_MIXTRAL                                                                                                   \
  "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 2, \"hidden_size\": 16, "                                      \
  "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"intermediate_size\": 24, "                                \
  "\"vocab_size\": 32, \"max_position_embeddings\": 16, \"num_local_experts\": 4, "                                    \
  "\"num_experts_per_tok\": 2}"
#define TINY_MLP "{\"model_type\": \"mlp\", \"num_hidden_layers\": 8, \"hidden_size\": 16}"

#endif
