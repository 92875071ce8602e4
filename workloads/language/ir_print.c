/* See workloads/language/ir_text.h: programs and types in their canonical text. */
#include <string.h>

#include "core/base/printable.h"
#include "core/base/units.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"

enum { LINE_COLUMNS = 118, MORE_INDENT = 6, REASON_BYTES = 1024 /* what is longer is cut */ };

/* Pieces of text one behind the other; where a line is full it goes on in the next, at pieces that allow it. */
typedef struct writer {
  FILE *stream;
  const pl_ir_module *module;
  size_t column;
} writer;

/* Before a piece of `length`: a space or nothing, or a new line where the piece `may_break`. */
static void make_room(writer *out, bool space, bool may_break, size_t length) {
  if (may_break && out->column + space + length > LINE_COLUMNS && out->column > MORE_INDENT) {
    fprintf(out->stream, "\n%*s", MORE_INDENT, "");
    out->column = MORE_INDENT;
  } else if (space) {
    fputc(' ', out->stream);
    out->column++;
  }
  out->column += length;
}

enum { GLUED = 0, SPACED = 1, BREAKS = 2 };

static void put(writer *out, int how, const char *prefix, const char *text, const char *suffix) {
  make_room(out, (how & SPACED) != 0, (how & BREAKS) != 0, strlen(prefix) + strlen(text) + strlen(suffix));
  fprintf(out->stream, "%s%s%s", prefix, text, suffix);
}

static void put_integer(writer *out, int how, const char *prefix, int64_t value, const char *suffix) {
  char text[PL_UNIT_TEXT_BYTES];
  snprintf(text, sizeof text, "%lld", (long long)value);
  put(out, how, prefix, text, suffix);
}

static void end_line(writer *out) {
  fputc('\n', out->stream);
  out->column = 0;
}

/* ---- strings and numbers ---- */

/* In quotes; `stream` NULL: only counts. What cannot be printed is written as its bytes, so that any text comes back.
 */
static size_t put_quoted(FILE *stream, const char *text) {
  size_t n = 2;
  if (stream != NULL) fputc('"', stream);
  while (*text != '\0') {
    uint32_t code_point;
    size_t length = pl_utf8_next(text, &code_point);
    bool plain = code_point != PL_NOT_UTF8 && pl_code_point_is_printable(code_point);
    bool quoted = *text == '"' || *text == '\\';
    n += quoted ? 2 : plain ? length : 4 * length;
    if (stream != NULL && quoted) fputc('\\', stream);
    for (size_t i = 0; stream != NULL && i < length; i++)
      fprintf(stream, plain ? "%c" : "\\x%02x", plain ? text[i] : (unsigned char)text[i]);
    text += length;
  }
  if (stream != NULL) fputc('"', stream);
  return n;
}

static void put_string(writer *out, int how, const char *text) {
  make_room(out, (how & SPACED) != 0, (how & BREAKS) != 0, put_quoted(NULL, text));
  put_quoted(out->stream, text);
}

/* A real is told from an integer by its point or exponent. */
static void put_real(writer *out, double value, const char *suffix) {
  char text[PL_UNIT_TEXT_BYTES];
  pl_format_exact(value, text);
  put(out, GLUED, text, strpbrk(text, ".e") == NULL ? ".0" : "", suffix);
}

/* ---- types ---- */

bool pl_ir_is_name(const char *text) {
  if (*text == '\0' || (*text >= '0' && *text <= '9')) return false;
  for (; *text != '\0'; text++)
    if (!((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9') ||
          *text == '_' || *text == '.'))
      return false;
  return true;
}

/* "b=8/dp/ep" */
static void format_dim(const pl_ir_mesh *mesh, const pl_ir_type *type, int32_t dim, char text[PL_IR_TYPE_TEXT_BYTES]) {
  size_t used = (size_t)snprintf(text, PL_IR_TYPE_TEXT_BYTES, "%s=%lld", type->dims[dim].name.text,
                                 (long long)type->dims[dim].extent);
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (type->on[axis] == dim)
      used += (size_t)snprintf(text + used, PL_IR_TYPE_TEXT_BYTES - used, "/%s", mesh->axes[axis].name.text);
}

/* "partial(dp, tp)"; "" where no axis holds that. */
static void format_held(const pl_ir_mesh *mesh, const pl_ir_type *type, int8_t what, const char *word,
                        char text[PL_IR_TYPE_TEXT_BYTES]) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (type->on[axis] != what) continue;
    used += (size_t)snprintf(text + used, PL_IR_TYPE_TEXT_BYTES - used, "%s%s%s", used == 0 ? word : ", ",
                             used == 0 ? "(" : "", mesh->axes[axis].name.text);
  }
  if (used > 0) snprintf(text + used, PL_IR_TYPE_TEXT_BYTES - used, ")");
}

static void put_type(writer *out, int how, const pl_ir_type *type, const char *suffix) {
  const pl_ir_mesh *mesh = &out->module->mesh;
  char text[PL_IR_TYPE_TEXT_BYTES], sums[PL_IR_TYPE_TEXT_BYTES], maxima[PL_IR_TYPE_TEXT_BYTES];
  format_held(mesh, type, PL_IR_PARTIAL, "partial", sums);
  format_held(mesh, type, PL_IR_MAXIMUM, "maximum", maxima);
  const char *end = sums[0] == '\0' && maxima[0] == '\0' ? suffix : "";
  const char *name = pl_ir_element_name((pl_ir_element)type->element);
  if (type->rank == 0) put(out, how, name, "[]", end);
  for (int32_t i = 0; i < type->rank; i++) {
    format_dim(mesh, type, i, text);
    char first[PL_IR_NAME_MAX], last[PL_IR_NAME_MAX];
    snprintf(first, sizeof first, "%s%s", i == 0 ? name : "", i == 0 ? "[" : "");
    snprintf(last, sizeof last, "%s%s", i + 1 < type->rank ? "," : "]", i + 1 < type->rank ? "" : end);
    put(out, i == 0 ? how : SPACED | BREAKS, first, text, last);
  }
  if (sums[0] != '\0') put(out, SPACED, sums, maxima[0] == '\0' ? suffix : "", "");
  if (maxima[0] != '\0') put(out, SPACED, maxima, suffix, "");
}

const char *pl_ir_type_text(const pl_ir_mesh *mesh, const pl_ir_type *type, char text[PL_IR_TYPE_TEXT_BYTES]) {
  char piece[PL_IR_TYPE_TEXT_BYTES];
  size_t used = (size_t)snprintf(text, PL_IR_TYPE_TEXT_BYTES, "%s[", pl_ir_element_name((pl_ir_element)type->element));
  for (int32_t i = 0; i < type->rank; i++) {
    format_dim(mesh, type, i, piece);
    used += (size_t)snprintf(text + used, PL_IR_TYPE_TEXT_BYTES - used, "%s%s", i > 0 ? ", " : "", piece);
  }
  used += (size_t)snprintf(text + used, PL_IR_TYPE_TEXT_BYTES - used, "]");
  format_held(mesh, type, PL_IR_PARTIAL, " partial", piece);
  used += (size_t)snprintf(text + used, PL_IR_TYPE_TEXT_BYTES - used, "%s", piece);
  format_held(mesh, type, PL_IR_MAXIMUM, " maximum", piece);
  snprintf(text + used, PL_IR_TYPE_TEXT_BYTES - used, "%s", piece);
  return text;
}

/* ---- functions ---- */

static void put_names(writer *out, const pl_ir_attribute *attribute, const char *suffix) {
  if (attribute->n_names == 1) {
    put(out, GLUED, attribute->names[0].text, suffix, "");
    return;
  }
  put(out, GLUED, "(", "", "");
  for (int32_t i = 0; i < attribute->n_names; i++)
    put(out, i == 0 ? GLUED : SPACED | BREAKS, attribute->names[i].text, i + 1 < attribute->n_names ? "," : "", "");
  put(out, GLUED, ")", suffix, "");
}

static void put_attribute(writer *out, int how, const pl_ir_attribute *attribute, const char *suffix) {
  put(out, how, attribute->name.text, "=", "");
  switch ((pl_ir_attribute_kind)attribute->kind) {
  case PL_IR_INTEGER:
    put_integer(out, GLUED, "", attribute->integer, suffix);
    break;
  case PL_IR_REAL:
    put_real(out, attribute->real, suffix);
    break;
  case PL_IR_NAMES:
    put_names(out, attribute, suffix);
    break;
  case PL_IR_TEXT:
    put_string(out, GLUED, attribute->text);
    put(out, GLUED, suffix, "", "");
    break;
  }
}

static void put_attributes(writer *out, const pl_ir_op *op) {
  if (op->n_attributes == 0) return;
  put(out, SPACED, "{", "", "");
  for (int32_t i = 0; i < op->n_attributes; i++)
    put_attribute(out, i == 0 ? GLUED : SPACED | BREAKS, &op->attributes[i], i + 1 < op->n_attributes ? "," : "}");
}

static void put_values(writer *out, int how, const pl_ir_function *function, int32_t n, const int32_t *values) {
  for (int32_t i = 0; i < n; i++)
    put(out, i == 0 ? how : SPACED | BREAKS, "%", function->values[values[i]].name, i + 1 < n ? "," : "");
}

/* Without blanks at its ends, as comments are read. */
static void put_reason(const writer *out, const char *reason) {
  char text[REASON_BYTES];
  if (reason == NULL) return;
  pl_printable(reason + strspn(reason, " "), text, sizeof text);
  size_t length = strlen(text);
  while (length > 0 && text[length - 1] == ' ')
    text[--length] = '\0';
  if (length > 0) fprintf(out->stream, "  # %s", text);
}

static void put_op(writer *out, const pl_ir_function *function, const pl_ir_op *op) {
  put(out, GLUED, " ", "", "");
  for (int32_t i = 0; i < op->n_outputs; i++)
    put(out, i == 0 ? SPACED : SPACED | BREAKS, "%", function->values[op->first_output + i].name,
        i + 1 < op->n_outputs ? "," : " =");
  put(out, SPACED, pl_ir_row_at(op->row)->name, "", "");
  if (op->callee != PL_IR_NONE) put(out, SPACED, "@", out->module->functions[op->callee]->name, "");
  if (op->path != NULL && (op->path[0] != '\0' || op->callee == PL_IR_NONE)) put_string(out, SPACED, op->path);
  put(out, GLUED, "(", "", "");
  put_values(out, BREAKS, function, op->n_inputs, op->inputs);
  put(out, GLUED, ")", "", "");
  put_attributes(out, op);
  if (op->n_outputs > 0) put(out, SPACED, ":", "", "");
  for (int32_t i = 0; i < op->n_outputs; i++)
    put_type(out, SPACED | BREAKS, &function->values[op->first_output + i].type, i + 1 < op->n_outputs ? "," : "");
  put_reason(out, op->reason);
  end_line(out);
}

static void put_function(writer *out, const pl_ir_function *function) {
  put(out, GLUED, "\nfunc @", function->name, "(");
  out->column--; /* of the new line */
  for (int32_t i = 0; i < function->n_arguments; i++) {
    put(out, i == 0 ? BREAKS : SPACED | BREAKS, "%", function->values[i].name, ":");
    put_type(out, SPACED | BREAKS, &function->values[i].type, i + 1 < function->n_arguments ? "," : "");
  }
  put(out, GLUED, ") {", "", "");
  end_line(out);
  for (int32_t i = 0; i < function->n_ops; i++)
    put_op(out, function, &function->ops[i]);
  if (function->n_results > 0) {
    put(out, GLUED, "  return", "", "");
    put_values(out, SPACED, function, function->n_results, function->results);
    end_line(out);
  }
  put(out, GLUED, "}", "", "");
  end_line(out);
}

/* ---- classes and the module ---- */

static void put_callee(writer *out, const char *word, int32_t function) {
  if (function != PL_IR_NONE) put(out, SPACED, word, " @", out->module->functions[function]->name);
}

static void put_steps(writer *out, const pl_ir_class *own) {
  put(out, GLUED, "  steps", "", "");
  for (int32_t i = 0; i < own->n_steps; i++) {
    char text[PL_UNIT_TEXT_BYTES];
    bool is_beside = i > 0 && own->steps[i - 1].joined;
    snprintf(text, sizeof text, "%c%d.%d", "FBW"[own->steps[i].kind], own -> steps[i].chunk, own->steps[i].microbatch);
    put(out, is_beside ? GLUED : SPACED | BREAKS, text, own->steps[i].joined ? "+" : "", "");
  }
  end_line(out);
}

static void put_coordinates(writer *out, const int32_t at[PL_IR_AXES_MAX]) {
  bool any = false;
  for (int32_t axis = 0; axis < out->module->mesh.n_axes; axis++) {
    if (at[axis] == PL_IR_NONE) continue;
    put(out, GLUED, any ? ", " : " at ", out->module->mesh.axes[axis].name.text, "=");
    put_integer(out, GLUED, "", at[axis], "");
    any = true;
  }
}

static void put_class(writer *out, const pl_ir_class *own) {
  put(out, GLUED, "\nclass ", own->name, "");
  put_coordinates(out, own->at);
  put(out, GLUED, " {", "", "");
  end_line(out);
  for (int32_t i = 0; i < own->n_chunks; i++) {
    put_integer(out, GLUED, "  chunk ", own->chunks[i].chunk, "");
    put_callee(out, "forward", own->chunks[i].forward);
    put_callee(out, "backward", own->chunks[i].backward);
    put_callee(out, "weights", own->chunks[i].weights);
    if (own->chunks[i].n_microbatches > 0) {
      put_integer(out, SPACED, "microbatches ", own->chunks[i].first_microbatch, "");
      put_integer(out, SPACED, "to ", pl_ir_chunk_end(&own->chunks[i], 0) - 1, "");
    }
    end_line(out);
  }
  put_steps(out, own);
  if (own->update != PL_IR_NONE) {
    put(out, GLUED, "  update @", out->module->functions[own->update]->name, "");
    end_line(out);
  }
  put(out, GLUED, "}", "", "");
  end_line(out);
}

static void put_launcher(writer *out, const pl_ir_launcher *launcher) {
  if (launcher->name == NULL) return;
  put(out, GLUED, "framework ", "", "");
  put_string(out, GLUED, launcher->name);
  if (launcher->overlap != PL_IR_NONE) put_integer(out, SPACED, "overlap=", launcher->overlap, "");
  if (launcher->tokens > 0) put(out, SPACED, "tokens=", pl_ir_token_orders[launcher->tokens], "");
  end_line(out);
}

static void put_head(writer *out) {
  const pl_ir_module *module = out->module;
  put(out, GLUED, "plir 1 ", pl_ir_level_names[module->level], " ");
  if (pl_ir_is_name(module->name)) {
    put(out, GLUED, module->name, "", "");
  } else {
    put_string(out, GLUED, module->name);
  }
  end_line(out);
  put_launcher(out, &module->launcher);
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++) {
    put(out, GLUED, axis == 0 ? "mesh " : ", ", module->mesh.axes[axis].name.text, "=");
    put_integer(out, GLUED, "", module->mesh.axes[axis].extent, "");
  }
  if (module->mesh.n_axes > 0) end_line(out);
  for (int32_t i = 0; i < module->n_places; i++)
    put_integer(out, i == 0 ? GLUED : SPACED | BREAKS, i == 0 ? "devices " : "", module->places[i],
                i + 1 < module->n_places ? "," : "");
  if (module->n_places > 0) end_line(out);
  put_integer(out, GLUED, "microbatches ", module->n_microbatches, "");
  end_line(out);
  for (int32_t i = 0; i < module->n_fewer; i++) {
    put_integer(out, GLUED, "microbatches ", module->fewer[i].n_microbatches, "");
    put_coordinates(out, module->fewer[i].at);
    end_line(out);
  }
}

void pl_ir_print(FILE *stream, const pl_ir_module *module) {
  writer out = {.stream = stream, .module = module};
  put_head(&out);
  for (int32_t i = 0; i < module->n_functions; i++)
    put_function(&out, module->functions[i]);
  for (int32_t i = 0; i < module->n_classes; i++)
    put_class(&out, &module->classes[i]);
}
