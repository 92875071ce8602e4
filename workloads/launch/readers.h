/* What each form of launch file makes of its settings. Internal to workloads/launch. */
#ifndef PL_WORKLOADS_LAUNCH_READERS_H
#define PL_WORKLOADS_LAUNCH_READERS_H

#include "core/text/document.h"
#include "workloads/launch/launch.h"

/* Each takes from launch->settings what it knows and fills the rest of `launch`. */
pl_code pl_launch_megatron_take(pl_launch *launch, pl_error *error);
pl_code pl_launch_torchtitan_take(pl_launch *launch, pl_error *error);
pl_code pl_launch_nemo_take(pl_launch *launch, pl_error *error);
pl_code pl_launch_deepspeed_take(pl_launch *launch, pl_error *error);

/* megatron_tokens.c: the dispatcher of tokens; then, with the strategy, what runs beside it. */
pl_code pl_megatron_take_dispatcher(pl_launch *launch, pl_error *error);
pl_code pl_megatron_take_hidden_tokens(pl_launch *launch, pl_error *error);

/* torchtitan's names for models, and Paceline's; a NULL name ends them. */
typedef struct pl_torchtitan_flavor {
  const char *name, *flavor, *model;
} pl_torchtitan_flavor;

extern const pl_torchtitan_flavor pl_torchtitan_flavors[];

/* primus.c: a YAML file of Primus ("modules: pre_trainer: ..."): its model's and its trainer's files, where they are
 * found above it, and its overrides, as settings of the framework that it names. */
pl_code pl_launch_primus_read(const pl_document *document, pl_launch *launch, pl_error *error);

/* takes.c: what several forms share. */
typedef struct pl_launch_number {
  const char *key;
  int64_t lowest;
  int64_t *value;
} pl_launch_number;

pl_code pl_launch_take_numbers(pl_launch *launch, const pl_launch_number *numbers, size_t n, pl_error *error);
/* The same into 32 bits: degrees. */
pl_code pl_launch_take_degree(pl_launch *launch, const char *key, int32_t *value, pl_error *error);
/* A model that comes with Paceline under a name of other people's: "meta-llama/Llama-3.1-8B", "llama3.1_70B.yaml".
 * NULL: none is called so. */
const char *pl_launch_known_model(const char *name, pl_arena *arena);
/* Where the vocabulary is left to the tokenizer; says what was assumed. */
pl_code pl_launch_take_vocab(pl_launch *launch, const pl_setting *tokenizer, pl_error *error);

#endif
