/* Launch files as people have them: arguments of Megatron-LM, alone or in the shell script around them, torchtitan's
 * TOML, YAML of NeMo and of Primus, DeepSpeed's JSON. Reading one gives a job, a model and a strategy, and says of
 * every setting whether it was taken, is without effect on the time of a step, or is not understood; what the file
 * leaves open and Paceline fills in is said, too.
 *
 * The number of GPUs is the platform's, whatever the file says (examples say one node): data parallelism follows from
 * it, as it does in the frameworks.
 */
#ifndef PL_WORKLOADS_LAUNCH_H
#define PL_WORKLOADS_LAUNCH_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "workloads/framework/job.h"
#include "workloads/ir/model.h"
#include "workloads/launch/settings.h"
#include "workloads/strategy/strategy.h"

typedef enum pl_launch_form {
  PL_LAUNCH_MEGATRON = 0,
  PL_LAUNCH_TORCHTITAN,
  PL_LAUNCH_NEMO,
  PL_LAUNCH_DEEPSPEED,
  PL_LAUNCH_FORMS
} pl_launch_form;

/* "megatron" ..., by enumerator; NULL ends them. */
extern const char *const pl_launch_form_names[];

/* The dimensions that a launch file states of a model; 0 = not stated. */
typedef struct pl_launch_model {
  int64_t n_layers, hidden, ffn, n_heads, n_kv_heads, head_size, vocab, positions;
  int64_t n_experts, topk, expert_ffn, shared_ffn;
  int64_t n_dense_layers, expert_step, expert_phase;         /* as pl_model's first, step and phase; step 0: 1 */
  int64_t q_rank, kv_rank, nope_size, rope_size, value_size; /* latent attention if kv_rank > 0 */
  bool bert, gated, rms_norm, rotary, squared_relu;
  bool bias, qkv_bias, qk_norm, untied;
  double attention_dropout, hidden_dropout, capacity_factor;
} pl_launch_model;

typedef struct pl_launch {
  pl_launch_form form;
  const char *path, *title; /* "arguments of Megatron-LM" */
  const char *framework;    /* profile; NULL: ideal */
  const char *model_name;   /* one that comes with Paceline; NULL: `model`, or the file does not say */
  bool has_model;
  pl_launch_model model;
  int64_t n_gpus;           /* as the file says; 0: it does not */
  int64_t gbs, seq;         /* 0: not stated */
  int64_t n_accumulated;    /* microbatches per replica, where a file states these instead of gbs; 0: it does not */
  pl_strategy strategy;     /* dp is 0 until pl_launch_strategy; assign is uniform */
  int64_t layers_per_chunk; /* of interleaving; 0: strategy.vpp says it */
  bool dtype_is_stated, mbs_is_stated, fp8;
  pl_dtype dtype;
  int flash;                 /* -1: not stated */
  int sends_tokens_per_node; /* whether its dispatcher does (workloads/framework/framework.h); -1: not stated */
  double exchange_sms;       /* multiprocessors that exchanges take; negative: not stated */
  int permutation, experts;  /* pl_permutation_form, pl_expert_form; -1: not stated */
  pl_settings settings;
  const char **assumed; /* sentences */
  uint32_t n_assumed;
} pl_launch;

/* Reads the file. What it is, its name and its content say: *.sh and what has a line "--num-layers", *.toml, *.yaml,
 * *.json. Everything in `arena`. PL_BAD_INPUT: file:line, the setting and the way out. */
pl_code pl_launch_load(const char *path, pl_arena *arena, pl_launch *launch, pl_error *error);
/* The same from memory, with a NUL behind `text`; `path` says the form, and where other files are looked for. */
pl_code pl_launch_parse(const char *path, const char *text, size_t size, pl_arena *arena, pl_launch *launch,
                        pl_error *error);

/* What the model is called that a file describes. */
#define PL_LAUNCH_MODEL_NAME "launched"

/* The model that the file describes, as a config.json; NULL in *text where `model_name` stands for it or the file says
 * nothing of a model. */
pl_code pl_launch_model_text(pl_launch *launch, pl_arena *arena, const char **text, pl_error *error);

/* The strategy as --strategy has it, and the batch, on so many GPUs; completes `launch`. PL_BAD_INPUT: the degrees do
 * not divide the GPUs. `text` in `arena`. */
pl_code pl_launch_strategy(pl_launch *launch, uint32_t n_gpus, int64_t n_layers, pl_arena *arena, const char **text,
                           pl_error *error);

/* One more sentence on what was assumed. */
pl_code pl_launch_assume(pl_launch *launch, pl_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "from ..." and what was taken, assumed, ignored, not understood. */
void pl_launch_print(FILE *stream, const pl_launch *launch);
/* The same, as the value of "from". */
void pl_launch_json(pl_json *json, const pl_launch *launch);

#endif
