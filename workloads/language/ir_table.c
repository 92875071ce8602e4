/* See workloads/language/ir_table.h. */
#include "workloads/language/ir_table.h"

#include <string.h>

/* The addresses of the first n rows of a kind, whose number ir_table.h has. */
#define ROWS_1(rows)     &(rows)[0]
#define ROWS_2(rows)     ROWS_1(rows), &(rows)[1]
#define ROWS_3(rows)     ROWS_2(rows), &(rows)[2]
#define ROWS_4(rows)     ROWS_3(rows), &(rows)[3]
#define ROWS_5(rows)     ROWS_4(rows), &(rows)[4]
#define ROWS_6(rows)     ROWS_5(rows), &(rows)[5]
#define ROWS_7(rows)     ROWS_6(rows), &(rows)[6]
#define ROWS_8(rows)     ROWS_7(rows), &(rows)[7]
#define ROWS_9(rows)     ROWS_8(rows), &(rows)[8]
#define ROWS_10(rows)    ROWS_9(rows), &(rows)[9]
#define ROWS_11(rows)    ROWS_10(rows), &(rows)[10]
#define ROWS_12(rows)    ROWS_11(rows), &(rows)[11]
#define ROWS_13(rows)    ROWS_12(rows), &(rows)[12]
#define ROWS_14(rows)    ROWS_13(rows), &(rows)[13]
#define ROWS_15(rows)    ROWS_14(rows), &(rows)[14]
#define ROWS_16(rows)    ROWS_15(rows), &(rows)[15]
#define ROWS_17(rows)    ROWS_16(rows), &(rows)[16]
#define ROWS_18(rows)    ROWS_17(rows), &(rows)[17]
#define ROWS_19(rows)    ROWS_18(rows), &(rows)[18]
#define ROWS_20(rows)    ROWS_19(rows), &(rows)[19]
#define ROWS_21(rows)    ROWS_20(rows), &(rows)[20]
#define ROWS_22(rows)    ROWS_21(rows), &(rows)[21]
#define ROWS_23(rows)    ROWS_22(rows), &(rows)[22]
#define ROWS_24(rows)    ROWS_23(rows), &(rows)[23]
#define ROWS_25(rows)    ROWS_24(rows), &(rows)[24]
#define ROWS_26(rows)    ROWS_25(rows), &(rows)[25]
#define ROWS_27(rows)    ROWS_26(rows), &(rows)[26]
#define ROWS_28(rows)    ROWS_27(rows), &(rows)[27]
#define ROWS_29(rows)    ROWS_28(rows), &(rows)[28]
#define ROWS_30(rows)    ROWS_29(rows), &(rows)[29]
#define ROWS_31(rows)    ROWS_30(rows), &(rows)[30]
#define ROWS_32(rows)    ROWS_31(rows), &(rows)[31]
#define ROWS_OF(n, rows) ROWS_##n(rows)
#define ROWS(n, rows)    ROWS_OF(n, rows)

const pl_ir_row *const pl_ir_row_table[PL_IR_N_ROWS] = {ROWS(PL_IR_N_ROWS_STATE, pl_ir_rows_state),
                                                        ROWS(PL_IR_N_ROWS_PRODUCT, pl_ir_rows_product),
                                                        ROWS(PL_IR_N_ROWS_POINTWISE, pl_ir_rows_pointwise),
                                                        ROWS(PL_IR_N_ROWS_NORM, pl_ir_rows_norm),
                                                        ROWS(PL_IR_N_ROWS_ATTENTION, pl_ir_rows_attention),
                                                        ROWS(PL_IR_N_ROWS_TOKEN, pl_ir_rows_token),
                                                        ROWS(PL_IR_N_ROWS_COLLECTIVE, pl_ir_rows_collective),
                                                        ROWS(PL_IR_N_ROWS_UPDATE, pl_ir_rows_update),
                                                        ROWS(PL_IR_N_ROWS_SHAPE, pl_ir_rows_shape),
                                                        ROWS(PL_IR_N_ROWS_PICTURE, pl_ir_rows_picture),
                                                        ROWS(PL_IR_N_ROWS_JOIN, pl_ir_rows_join),
                                                        ROWS(PL_IR_N_ROWS_HALO, pl_ir_rows_halo),
                                                        ROWS(PL_IR_N_ROWS_SCAN, pl_ir_rows_scan),
                                                        ROWS(PL_IR_N_ROWS_MASK, pl_ir_rows_mask)};

int32_t pl_ir_row_find(const char *name) {
  if (name[0] == 0) return -1;
  for (int32_t row = 0; row < PL_IR_N_ROWS; row++) {
    const char *known = pl_ir_row_table[row]->name;
    if (known[0] == name[0] && known[1] == name[1] && strcmp(known, name) == 0) return row;
  }
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
