/* What the readers of models of several kinds of layers (workloads/ir/stack.h) share. Internal to workloads/import. */
#ifndef PL_WORKLOADS_MODEL_STACK_H
#define PL_WORKLOADS_MODEL_STACK_H

#include "workloads/import/model_reader.h"
#include "workloads/ir/model.h"
#include "workloads/ir/stack.h"

/* One model_type: who reads it, and its classes, the default first. */
typedef struct pl_stack_family {
  const char *type, *title;
  const char *classes[3];
  pl_code (*read)(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);
} pl_stack_family;

extern const pl_stack_family pl_stack_families[];
extern const size_t pl_stack_n_families;

/* NULL: no model of several kinds of layers is called so. */
const pl_stack_family *pl_stack_family_find(const char *type);

/* Name, type and positions are read by the caller; here everything else, and the parameters are counted by the model's
 * program. */
pl_code pl_model_stack_read(const pl_model_reader *in, const pl_stack_family *family, pl_arena *arena, pl_model *model);

/* hidden_size, num_hidden_layers, and with `vocabulary` vocab_size and tie_word_embeddings (`tied`). */
pl_code pl_stack_read_widths(const pl_model_reader *in, bool vocabulary, bool tied, pl_model *model);
/* Heads of attention: num_attention_heads, num_key_value_heads (as many), head_dim (hidden / heads). */
pl_code pl_stack_read_heads(const pl_model_reader *in, pl_model *model);
/* A number from `least` to `most`; `value` stays where the key is absent. */
pl_code pl_stack_read_number(const pl_model_reader *in, const char *key, double least, double most, double *value);

/* model_vit.c, model_mamba.c, model_t5.c, model_linear_attention.c */
pl_code pl_stack_read_vit(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);
pl_code pl_stack_read_mamba2(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);
pl_code pl_stack_read_bamba(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);
pl_code pl_stack_read_nemotron_h(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);
pl_code pl_stack_read_falcon_h1(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);
pl_code pl_stack_read_qwen3_next(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);
pl_code pl_stack_read_t5(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack);

#endif
