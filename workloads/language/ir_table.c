/* See workloads/language/ir_table.h. */
#include "workloads/language/ir_table.h"

#include <string.h>

typedef struct kind {
  const pl_ir_row *rows;
  const int32_t *n; /* counting would take most of a sweep: every pass asks of every op what it is */
} kind;

static const kind kinds[] = {{pl_ir_rows_state, &pl_ir_n_rows_state},
                             {pl_ir_rows_product, &pl_ir_n_rows_product},
                             {pl_ir_rows_pointwise, &pl_ir_n_rows_pointwise},
                             {pl_ir_rows_norm, &pl_ir_n_rows_norm},
                             {pl_ir_rows_attention, &pl_ir_n_rows_attention},
                             {pl_ir_rows_token, &pl_ir_n_rows_token},
                             {pl_ir_rows_collective, &pl_ir_n_rows_collective},
                             {pl_ir_rows_update, &pl_ir_n_rows_update},
                             {pl_ir_rows_shape, &pl_ir_n_rows_shape},
                             {pl_ir_rows_picture, &pl_ir_n_rows_picture},
                             {pl_ir_rows_join, &pl_ir_n_rows_join},
                             {pl_ir_rows_halo, &pl_ir_n_rows_halo},
                             {pl_ir_rows_scan, &pl_ir_n_rows_scan},
                             {pl_ir_rows_mask, &pl_ir_n_rows_mask}};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

int32_t pl_ir_n_rows(void) {
  int32_t n = 0;
  for (int32_t k = 0; k < N_KINDS; k++)
    n += *kinds[k].n;
  return n;
}

const pl_ir_row *pl_ir_row_at(int32_t index) {
  int32_t k = 0;
  for (; k < N_KINDS && index >= *kinds[k].n; k++)
    index -= *kinds[k].n;
  return k < N_KINDS ? &kinds[k].rows[index] : NULL;
}

int32_t pl_ir_row_find(const char *name) {
  int32_t index = 0;
  for (int32_t k = 0; k < N_KINDS; k++)
    for (const pl_ir_row *row = kinds[k].rows; row->name != NULL; row++, index++)
      if (strcmp(row->name, name) == 0) return index;
  return -1;
}

/* Whether a list of words, with spaces between them, has this one. */
static bool has_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; at != NULL && (at = strstr(at, word)) != NULL; at += length)
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0)) return true;
  return false;
}

int32_t pl_ir_row_of_onnx(const char *name) {
  for (int32_t row = 0; row < pl_ir_n_rows(); row++)
    if (has_word(pl_ir_row_at(row)->onnx, name)) return row;
  return -1;
}

int32_t pl_ir_row_of(const char *name) {
  int32_t row = pl_ir_row_find(name);
  PL_ASSERT(row >= 0);
  return row;
}

static int32_t op_made(pl_ir_module *module, pl_ir_function *function, const char *name, const pl_ir_type *types,
                       const pl_ir_making *making) {
  const char *names[PL_IR_OPERANDS_MAX];
  pl_ir_making own = *making;
  for (int32_t i = 0; i < own.n_outputs; i++)
    names[i] = name;
  own.output_names = names;
  own.output_types = types;
  own.callee = PL_IR_NONE;
  return pl_ir_op_add(module, function, &own);
}

int32_t pl_ir_op_infer(pl_ir_module *module, pl_ir_function *function, const char *row_name, const char *name,
                       int32_t n_inputs, const int32_t *inputs, int32_t n_attributes,
                       const pl_ir_attribute *attributes) {
  pl_ir_type in[PL_IR_OPERANDS_MAX], out[PL_IR_OPERANDS_MAX];
  int32_t index = pl_ir_row_of(row_name);
  const pl_ir_row *row = pl_ir_row_at(index);
  PL_ASSERT(n_inputs <= PL_IR_OPERANDS_MAX && row->n_outputs >= 0 && row->n_outputs <= PL_IR_OPERANDS_MAX &&
            !row->typed);
  for (int32_t i = 0; i < n_inputs; i++) {
    if (inputs[i] == PL_IR_NONE) return PL_IR_NONE; /* no memory before */
    in[i] = function->values[inputs[i]].type;
  }
  const pl_ir_op op = {.row = (uint16_t)index,
                       .inputs = inputs,
                       .n_inputs = (uint16_t)n_inputs,
                       .n_outputs = (uint16_t)row->n_outputs,
                       .n_attributes = (uint16_t)n_attributes,
                       .attributes = attributes};
  if (row->infer != NULL) PL_ASSERT(row->infer(&op, in, out, NULL) == PL_OK);
  return op_made(module, function, name, out,
                 &(pl_ir_making){.row = index,
                                 .n_inputs = n_inputs,
                                 .inputs = inputs,
                                 .n_outputs = row->n_outputs,
                                 .n_attributes = n_attributes,
                                 .attributes = attributes});
}

int32_t pl_ir_op_typed(pl_ir_module *module, pl_ir_function *function, const char *row_name, const char *name,
                       const char *path, int32_t n_inputs, const int32_t *inputs, const pl_ir_type *type,
                       int32_t n_attributes, const pl_ir_attribute *attributes) {
  for (int32_t i = 0; i < n_inputs; i++)
    if (inputs[i] == PL_IR_NONE) return PL_IR_NONE;
  return op_made(module, function, name, type,
                 &(pl_ir_making){.row = pl_ir_row_of(row_name),
                                 .n_inputs = n_inputs,
                                 .inputs = inputs,
                                 .n_outputs = type != NULL ? 1 : 0,
                                 .n_attributes = n_attributes,
                                 .attributes = attributes,
                                 .path = path});
}
