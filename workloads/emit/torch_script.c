/* See workloads/emit/torch_script.h. */
#include "workloads/emit/torch_script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/system/data_folder.h"
#include "core/system/text_file.h"
#include "workloads/language/ir_fewer.h"
#include "workloads/language/ir_table.h"

/* Rows that torch_runtime.py has, under their own names or another where the name is taken. */
static const struct {
  const char *row, *method;
} methods[] = {{"input", NULL},
               {"param", NULL},
               {"keep", NULL},
               {"kept", NULL},
               {"accumulate", NULL},
               {"gradient", NULL},
               {"state", NULL},
               {"store", "store_value"},
               {"loss", NULL},
               {"product", NULL},
               {"add", NULL},
               {"subtract", NULL},
               {"multiply", NULL},
               {"divide", NULL},
               {"scale", NULL},
               {"copy", NULL},
               {"sum", NULL},
               {"maximum", NULL},
               {"spread", NULL},
               {"rename", NULL},
               {"cast", NULL},
               {"constant", NULL},
               {"part", NULL},
               {"pad", NULL},
               {"gelu", NULL},
               {"silu", NULL},
               {"relu", NULL},
               {"tanh", NULL},
               {"exp", NULL},
               {"log", NULL},
               {"reciprocal", NULL},
               {"sigmoid", NULL},
               {"hard_sigmoid", NULL},
               {"hard_swish", NULL},
               {"gelu_backward", NULL},
               {"silu_backward", NULL},
               {"relu_backward", NULL},
               {"tanh_backward", NULL},
               {"sigmoid_backward", NULL},
               {"hard_sigmoid_backward", NULL},
               {"hard_swish_backward", NULL},
               {"dropout", NULL},
               {"softmax", NULL},
               {"softmax_backward", NULL},
               {"top_k", NULL},
               {"top_k_backward", NULL},
               {"layer_norm", NULL},
               {"rms_norm", NULL},
               {"layer_norm_backward", NULL},
               {"rms_norm_backward", NULL},
               {"rotary", NULL},
               {"mask", NULL},
               {"attention", NULL},
               {"attention_backward", NULL},
               {"embedding", NULL},
               {"embedding_backward", NULL},
               {"pick", NULL},
               {"place", NULL},
               {"all_reduce", NULL},
               {"all_gather", NULL},
               {"reduce_scatter", NULL},
               {"all_to_all", NULL},
               {"cut", NULL},
               {"send", NULL},
               {"receive", NULL},
               {"sum_classes", NULL},
               {"adam", NULL},
               {"sgd", NULL}};

static const char *method_of(const pl_ir_op *op) {
  const char *row = pl_ir_row_at(op->row)->name;
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    if (strcmp(methods[i].row, row) == 0) return methods[i].method != NULL ? methods[i].method : row;
  return NULL;
}

static bool calls(const pl_ir_op *op) {
  return pl_ir_row_at(op->row)->effect == PL_IR_CALLS;
}

/* Data that the runtime does not make. */
static bool is_unknown_data(const pl_ir_op *op) {
  static const char *const names[] = {"buckets", "causal_buckets", "relative_positions"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (pl_ir_op_is(op, "input") && strcmp(op->path, names[i]) == 0) return true;
  return false;
}

pl_code pl_torch_script_check(const pl_ir_module *module, pl_error *error) {
  if (module->places != NULL)
    return pl_fail(error, PL_UNSUPPORTED,
                   "%s: devices in another order, or stages of unlike numbers of them, cannot be "
                   "written for PyTorch",
                   module->name);
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t k = 0; k < module->functions[f]->n_ops; k++) {
      const pl_ir_op *op = &module->functions[f]->ops[k];
      if (is_unknown_data(op))
        return pl_fail(error, PL_UNSUPPORTED, "%s:%d: input \"%s\" of @%s cannot be written for PyTorch",
                       module->source != NULL ? module->source : module->name, op->place.line, op->path,
                       module->functions[f]->name);
      bool in_blocks = pl_ir_attribute_find(op, "blocks") != NULL;
      bool in_pieces = calls(op) && pl_ir_integer_of(op, PL_IR_PIECES, 1) > 1;
      if (calls(op) ? !in_pieces : method_of(op) != NULL && !in_blocks) continue;
      return pl_fail(error, PL_UNSUPPORTED, "%s:%d: %s%s of @%s cannot be written for PyTorch",
                     module->source != NULL ? module->source : module->name, op->place.line,
                     pl_ir_row_at(op->row)->name,
                     in_blocks   ? " in blocks"
                     : in_pieces ? " in pieces"
                                 : "",
                     module->functions[f]->name);
    }
  return PL_OK;
}

/* ---- words ---- */

static void put_text(FILE *out, const char *text) {
  putc('"', out);
  for (; *text != 0; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') putc('\\', out);
    if (c < 0x20 || c >= 0x7f)
      fprintf(out, "\\x%02x", c);
    else
      putc(c, out);
  }
  putc('"', out);
}

/* One name as a text, others as a tuple. */
static void put_names(FILE *out, int32_t n, const pl_ir_name *names) {
  if (n == 1) {
    put_text(out, names[0].text);
    return;
  }
  putc('(', out);
  for (int32_t i = 0; i < n; i++) {
    put_text(out, names[i].text);
    fputs(i + 1 < n ? ", " : "", out);
  }
  putc(')', out);
}

/* f3_layer_backward: numbers keep names apart whose letters Python does not take. */
static void put_function(FILE *out, const pl_ir_module *module, int32_t index) {
  if (index == PL_IR_NONE) {
    fputs("None", out);
    return;
  }
  fprintf(out, "f%d_", index);
  for (const char *c = module->functions[index]->name; *c != 0; c++)
    putc(isalnum((unsigned char)*c) ? *c : '_', out);
}

/* ---- types: each once ---- */

typedef struct writing {
  const pl_ir_module *module;
  FILE *out;
  pl_arena *arena;
  const pl_ir_type **types;
  uint32_t n_types, room_types;
} writing;

static bool note_type(writing *own, const pl_ir_type *type) {
  for (uint32_t i = 0; i < own->n_types; i++)
    if (pl_ir_type_equal(own->types[i], type)) return true;
  void *types =
      pl_arena_grown(own->arena, (const void *)own->types, own->n_types, 1, sizeof(*own->types), &own->room_types);
  if (types == NULL) return false;
  own->types = (const pl_ir_type **)types;
  own->types[own->n_types++] = type;
  return true;
}

static uint32_t index_of(const writing *own, const pl_ir_type *type) {
  uint32_t i = 0;
  while (!pl_ir_type_equal(own->types[i], type))
    i++;
  return i;
}

static void write_type(const writing *own, uint32_t index) {
  const pl_ir_type *type = own->types[index];
  const pl_ir_mesh *mesh = &own->module->mesh;
  fprintf(own->out, "    t%u = r.type(\"%s\", (", index, pl_ir_element_name((pl_ir_element)type->element));
  for (int32_t dim = 0; dim < type->rank; dim++) {
    fprintf(own->out, "(\"%s\", %lld, (", type->dims[dim].name.text, (long long)type->dims[dim].extent);
    for (int32_t axis = 0; axis < mesh->n_axes; axis++)
      if (type->on[axis] == dim) fprintf(own->out, "\"%s\", ", mesh->axes[axis].name.text);
    fputs(")), ", own->out);
  }
  fputs("), {", own->out);
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == PL_IR_PARTIAL || type->on[axis] == PL_IR_MAXIMUM)
      fprintf(own->out, "\"%s\": \"%s\", ", mesh->axes[axis].name.text,
              type->on[axis] == PL_IR_PARTIAL ? "partial" : "maximum");
  fputs("})\n", own->out);
}

/* ---- functions ---- */

static void put_values(FILE *out, int32_t n, const int32_t *values, int32_t first) {
  for (int32_t i = 0; i < n; i++)
    fprintf(out, "%sv%d", i > 0 ? ", " : "", values != NULL ? values[i] : first + i);
}

static void write_attribute(FILE *out, const pl_ir_attribute *attribute) {
  bool is_keyword = strcmp(attribute->name.text, "from") == 0;
  fprintf(out, ", %s%s=", attribute->name.text, is_keyword ? "_" : "");
  switch ((pl_ir_attribute_kind)attribute->kind) {
  case PL_IR_INTEGER:
    fprintf(out, "%lld", (long long)attribute->integer);
    return;
  case PL_IR_REAL:
    fprintf(out, "%.17g", attribute->real);
    return;
  case PL_IR_NAMES:
    put_names(out, attribute->n_names, attribute->names);
    return;
  case PL_IR_TEXT:
    put_text(out, attribute->text);
    return;
  }
}

static void write_call(const writing *own, const pl_ir_op *op) {
  put_function(own->out, own->module, op->callee);
  fputs("(r, r.path(prefix, ", own->out);
  put_text(own->out, op->path != NULL ? op->path : "");
  fputs(op->n_inputs > 0 ? "), " : ")", own->out);
  put_values(own->out, op->n_inputs, op->inputs, 0);
  fputs(")\n", own->out);
}

static void write_op(const writing *own, const pl_ir_function *f, const pl_ir_op *op) {
  FILE *out = own->out;
  fputs("        ", out);
  put_values(out, op->n_outputs, NULL, op->first_output);
  if (op->n_outputs > 0) fputs(calls(op) && op->n_outputs == 1 ? ", = " : " = ", out);
  if (calls(op)) {
    write_call(own, op);
    return;
  }
  bool has_path = pl_ir_row_at(op->row)->has_path;
  fprintf(out, "r.%s(", method_of(op));
  if (has_path) {
    fputs("prefix, ", out);
    put_text(out, op->path != NULL ? op->path : "");
    fputs(op->n_inputs > 0 ? ", " : "", out);
  }
  put_values(out, op->n_inputs, op->inputs, 0);
  if (op->n_outputs > 0) fputs(has_path || op->n_inputs > 0 ? ", types=(" : "types=(", out);
  for (int32_t i = 0; i < op->n_outputs; i++)
    fprintf(out, "t%u,%s", index_of(own, &f->values[op->first_output + i].type), i + 1 < op->n_outputs ? " " : "");
  if (op->n_outputs > 0) putc(')', out);
  for (int32_t i = 0; i < op->n_attributes; i++)
    write_attribute(out, &op->attributes[i]);
  fputs(")\n", out);
}

static void write_function(const writing *own, int32_t index) {
  const pl_ir_function *f = own->module->functions[index];
  fputs("\n    def ", own->out);
  put_function(own->out, own->module, index);
  fputs("(r, prefix", own->out);
  for (int32_t i = 0; i < f->n_arguments; i++)
    fprintf(own->out, ", v%d", i);
  fputs("):\n", own->out);
  for (int32_t k = 0; k < f->n_ops; k++)
    write_op(own, f, &f->ops[k]);
  fputs("        return (", own->out);
  put_values(own->out, f->n_results, f->results, 0);
  fputs(f->n_results == 1 ? ",)\n" : ")\n", own->out);
}

/* ---- lists, groups, tags ---- */

static void write_class(const writing *own, const pl_ir_class *class) {
  fprintf(own->out, "        \"%s\": ({\n", class->name);
  for (int32_t i = 0; i < class->n_chunks; i++) {
    const pl_ir_chunk *chunk = &class->chunks[i];
    const int32_t functions[] = {chunk->forward, chunk->backward, chunk->weights};
    fprintf(own->out, "            %d: {", chunk->chunk);
    for (int k = 0; k < 3; k++) {
      fprintf(own->out, "\"%c\": ", "FBW"[k]);
      put_function(own->out, own->module, functions[k]);
      fputs(k < 2 ? ", " : "},\n", own->out);
    }
  }
  fputs("        }, [", own->out);
  for (int32_t i = 0; i < class->n_steps; i++)
    fprintf(own->out, "%s(\"%c\", %d, %d)", i > 0 ? ", " : "", "FBW"[class->steps[i].kind], class -> steps[i].chunk,
            class->steps[i].microbatch);
  fputs("], ", own->out);
  put_function(own->out, own->module, class->update);
  fputs("),\n", own->out);
}

static void put_axes(const writing *own, const pl_ir_op *op, const pl_ir_type *summed) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  fputs("    (", own->out);
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    bool sums = summed == NULL || summed->on[axis] == PL_IR_PARTIAL || summed->on[axis] == PL_IR_MAXIMUM;
    if (sums && pl_ir_op_has_name(op, "over", mesh->axes[axis].name))
      fprintf(own->out, "\"%s\", ", mesh->axes[axis].name.text);
  }
  fputs("),\n", own->out);
}

/* What every rank has to know before it begins: axes that collectives go over, classes that sum, tags. Python's dict
 * takes what comes twice. */
static void write_meetings(const writing *own, const char *name) {
  fprintf(own->out, "%s = list(dict.fromkeys([\n", name);
  for (int32_t f = 0; f < own->module->n_functions; f++)
    for (int32_t k = 0; k < own->module->functions[f]->n_ops; k++) {
      const pl_ir_function *function = own->module->functions[f];
      const pl_ir_op *op = &function->ops[k];
      const char *row = pl_ir_row_at(op->row)->name;
      const pl_ir_attribute *classes = pl_ir_attribute_find(op, "classes");
      bool sends = strcmp(row, "send") == 0 || strcmp(row, "receive") == 0;
      if (strcmp(name, "GROUPS") == 0 && pl_ir_row_at(op->row)->effect == PL_IR_COLLECTIVE)
        put_axes(own, op, strcmp(row, "all_reduce") == 0 ? &function->values[op->inputs[0]].type : NULL);
      if (strcmp(name, "SUMS") == 0 && strcmp(row, "sum_classes") == 0) {
        fputs("    (", own->out);
        for (int32_t i = 0; i < classes->n_names; i++)
          fprintf(own->out, "\"%s\", ", classes->names[i].text);
        fputs("),\n", own->out);
      }
      if (strcmp(name, "TAGS") == 0 && sends) {
        fputs("    ", own->out);
        put_text(own->out, pl_ir_text_of(op, "tag"));
        fputs(",\n", own->out);
      }
    }
  fputs("]))\n", own->out);
}

static void write_devices(const writing *own) {
  const pl_ir_module *module = own->module;
  fputs("MESH = {", own->out);
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
    fprintf(own->out, "\"%s\": %d, ", module->mesh.axes[axis].name.text, module->mesh.axes[axis].extent);
  fputs("}\nCLASSES = {", own->out);
  for (int32_t c = 0; c < module->n_classes; c++) {
    fprintf(own->out, "\"%s\": {", module->classes[c].name);
    for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
      if (module->classes[c].at[axis] != PL_IR_NONE)
        fprintf(own->out, "\"%s\": %d, ", module->mesh.axes[axis].name.text, module->classes[c].at[axis]);
    fputs("}, ", own->out);
  }
  fputs("}\n", own->out);
}

/* Places of the mesh with fewer microbatches, and axes that cut samples. */
static void write_fewer(const writing *own) {
  const pl_ir_module *module = own->module;
  uint32_t axes = pl_ir_sample_axes(module);
  if (module->n_fewer == 0) return;
  fputs("FEWER = [", own->out);
  for (int32_t i = 0; i < module->n_fewer; i++) {
    fputs("({", own->out);
    for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
      if (module->fewer[i].at[axis] != PL_IR_NONE)
        fprintf(own->out, "\"%s\": %d, ", module->mesh.axes[axis].name.text, module->fewer[i].at[axis]);
    fprintf(own->out, "}, %d), ", module->fewer[i].n_microbatches);
  }
  fputs("]\nSAMPLE_AXES = [", own->out);
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
    if ((axes >> axis & 1) != 0) fprintf(own->out, "\"%s\", ", module->mesh.axes[axis].name.text);
  fputs("]\n", own->out);
}

static bool take_types(writing *own) {
  for (int32_t f = 0; f < own->module->n_functions; f++)
    for (int32_t i = 0; i < own->module->functions[f]->n_values; i++)
      if (!note_type(own, &own->module->functions[f]->values[i].type)) return false;
  return true;
}

static pl_code write_runtime(FILE *stream, pl_arena *arena, pl_error *error) {
  const char *path;
  char *text;
  size_t size;
  PL_TRY(pl_data_find("torch_runtime.py", arena, &path, error));
  PL_TRY(pl_text_file_load(path, 1 << 20, &text, &size, error));
  fwrite(text, 1, size, stream);
  free(text);
  return PL_OK;
}

pl_code pl_torch_script_write(const pl_ir_module *module, FILE *stream, pl_arena *arena, pl_error *error) {
  writing own = {.module = module, .out = stream, .arena = arena};
  if (!take_types(&own)) return pl_fail_memory(error, "the script");
  PL_TRY(write_runtime(stream, arena, error));
  fputs("\n", stream);
  write_devices(&own);
  write_fewer(&own);
  write_meetings(&own, "GROUPS");
  write_meetings(&own, "SUMS");
  write_meetings(&own, "TAGS");
  fputs("\n\ndef lists(r):\n", stream);
  for (uint32_t i = 0; i < own.n_types; i++)
    write_type(&own, i);
  for (int32_t f = 0; f < module->n_functions; f++)
    write_function(&own, f);
  fputs("\n    return {\n", stream);
  for (int32_t c = 0; c < module->n_classes; c++)
    write_class(&own, &module->classes[c]);
  fprintf(stream, "    }\n\n\nif __name__ == \"__main__\":\n    main(MESH, CLASSES, %d, GROUPS, SUMS, TAGS, lists%s)\n",
          module->n_microbatches, module->n_fewer > 0 ? ", FEWER, SAMPLE_AXES" : "");
  return PL_OK;
}
