/* See workloads/onnx/onnx_program.h. */
#include "workloads/onnx/onnx_program.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/printable.h"
#include "workloads/language/ir_parameters.h"
#include "workloads/onnx/flat.h"
#include "workloads/onnx/onnx_data.h"

/* ---- the loss ---- */

typedef struct writer {
  pl_ir_module *module;
  pl_ir_function *function;
} writer;

static int32_t op(writer *to, const char *row, const char *name, int32_t n, const int32_t *inputs,
                  const pl_ir_name *over) {
  const pl_ir_attribute attribute = pl_ir_names("over", 1, over);
  return pl_ir_op_infer(to->module, to->function, row, name, n, inputs, over != NULL, &attribute);
}

/* Minus the logarithm of the probability of each target; exponentials of differences from the greatest logit. */
static int32_t cross_entropy(writer *to, int32_t logits, const pl_ir_type *type) {
  const pl_ir_dim *last = &type->dims[type->rank - 1];
  const pl_ir_type targets = pl_ir_type_of(PL_IR_I32, type->rank - 1, type->dims);
  const pl_ir_attribute below = pl_ir_integer("below", last->extent);
  int32_t greatest = op(to, "maximum", "greatest", 1, &logits, &last->name);
  int32_t shifted = op(to, "subtract", "shifted", 2, (const int32_t[]){logits, greatest}, NULL);
  int32_t exponentials = op(to, "exp", "exponentials", 1, &shifted, NULL);
  int32_t sum = op(to, "sum", "sum", 1, &exponentials, &last->name), log = op(to, "log", "log_sum", 1, &sum, NULL);
  int32_t ids = pl_ir_op_typed(to->module, to->function, "input", "targets", "targets", 0, NULL, &targets, 1, &below);
  int32_t target = op(to, "pick", "target", 2, (const int32_t[]){shifted, ids}, &last->name);
  return op(to, "subtract", "token_loss", 2, (const int32_t[]){log, target}, NULL);
}

/* The output's last axis is that of the value's dimensions which is named so. */
static pl_ir_type with_last(const pl_ir_type *type, pl_ir_name last) {
  pl_ir_type made = *type;
  int32_t at = pl_ir_type_find(type, last), n = 0;
  for (int32_t i = 0; i < type->rank; i++)
    if (i != at) made.dims[n++] = type->dims[i];
  made.dims[n] = type->dims[at];
  return made;
}

static void write_loss(pl_ir_module *module, const pl_ir_type *of, bool entropy, pl_ir_name last,
                       const pl_onnx_job *job) {
  writer to = {module, pl_ir_function_add(module, "loss")};
  if (to.function == NULL) return;
  pl_ir_type type = entropy ? with_last(of, last) : *of;
  pl_ir_name names[PL_IR_RANK_MAX];
  int32_t x = pl_ir_argument(module, to.function, "x", of);
  if (of->element != PL_IR_F32) {
    pl_ir_type single = *of;
    single.element = PL_IR_F32;
    x = pl_ir_op_typed(module, to.function, "cast", "x.fp32", NULL, 1, &x, &single, 0, NULL);
  }
  int32_t losses = entropy ? cross_entropy(&to, x, &type) : x, n = type.rank - entropy;
  double count = (double)job->gbs;
  for (int32_t i = 0; i < n; i++) {
    names[i] = type.dims[i].name;
    if (strcmp(names[i].text, "b") != 0) count *= (double)type.dims[i].extent;
  }
  const pl_ir_attribute over = pl_ir_names("over", n, names), by = pl_ir_real("by", 1 / count);
  if (n > 0) losses = pl_ir_op_infer(module, to.function, "sum", "sum", 1, &losses, 1, &over);
  losses = pl_ir_op_infer(module, to.function, "scale", "mean", 1, &losses, 1, &by);
  pl_ir_op_typed(module, to.function, "loss", "loss", NULL, 1, &losses, NULL, 0, NULL);
}

/* ---- the program ---- */

typedef struct built {
  pl_onnx_inference inference;
  pl_flat flat;
  int32_t output; /* value of the graph */
  bool entropy;
} built;

static pl_code find_output(const pl_onnx_inference *inference, int32_t *output) {
  const pl_onnx_graph *graph = inference->graph;
  for (int32_t i = 0; i < graph->n_outputs; i++) {
    const pl_onnx_abstract *shape = &inference->values[graph->outputs[i].value];
    if (!pl_onnx_type_is_real(shape->type) || shape->rank < 0 || shape->numbers != NULL) continue;
    *output = graph->outputs[i].value;
    return PL_OK;
  }
  return pl_fail(inference->error, PL_UNSUPPORTED, "%s: none of its %d outputs is a real tensor that follows from data",
                 graph->path, graph->n_outputs);
}

/* Everything of one value is written down: what it is the same along too. */
static int32_t whole(pl_flat *flat, int32_t value, int32_t made) {
  pl_axis_list leaves = {0};
  (void)pl_flat_leaves(flat, value, 0, pl_flat_shape(flat, value)->rank, &leaves);
  pl_ir_type type = *pl_flat_type(flat, made);
  int32_t before = type.rank;
  for (int32_t i = 0; i < leaves.n && type.rank < PL_IR_RANK_MAX; i++)
    if (!pl_flat_has(flat, made, leaves.leaf[i])) type.dims[type.rank++] = pl_flat_dim(flat, leaves.leaf[i]);
  if (type.rank == before) return made;
  return pl_ir_op_typed(flat->module, flat->function, "spread", "spread", NULL, 1, &made, &type, 0, NULL);
}

/* One sample: the graph for two. NULL where the file takes one alone. */
static const pl_flat *related_for_two(const pl_onnx_graph *graph, const pl_onnx_job *job, pl_arena *arena) {
  const pl_onnx_binding binding = {2, job->seq};
  built *two = PL_TAKE(arena, built, 1);
  pl_error *why = PL_TAKE(arena, pl_error, 1);
  if (two == NULL || why == NULL) return NULL;
  bool is = pl_onnx_infer(graph, &binding, arena, &two->inference, why) == PL_OK &&
            find_output(&two->inference, &two->output) == PL_OK &&
            pl_flat_relate(&two->flat, &two->inference, two->output, NULL, why) == PL_OK;
  return is ? &two->flat : NULL;
}

static pl_code write_flat(const pl_onnx_graph *graph, const pl_onnx_job *job, pl_arena *arena, built *own,
                          pl_ir_module *flat, int32_t *result, pl_error *error) {
  const pl_onnx_binding binding = {job->batch, job->seq};
  PL_TRY(pl_onnx_infer(graph, &binding, arena, &own->inference, error));
  PL_TRY(find_output(&own->inference, &own->output));
  const pl_flat *larger = job->batch == 1 ? related_for_two(graph, job, arena) : NULL;
  PL_TRY(pl_flat_relate(&own->flat, &own->inference, own->output, larger, error));
  pl_ir_module_init(flat, arena, "flat", PL_IR_MODEL);
  pl_ir_function *function = pl_ir_function_add(flat, "flat");
  if (function == NULL) return pl_fail_memory(error, "the program of an ONNX graph");
  PL_TRY(pl_flat_write(&own->flat, flat, function, job->element));
  int32_t made = own->flat.made[own->output];
  if (made == PL_IR_NONE)
    return pl_fail(error, PL_UNSUPPORTED, "%s: its output is no value of the program", graph->path);
  *result = whole(&own->flat, own->output, made);
  own->entropy = pl_flat_is_logits(&own->flat, own->output);
  return *result != PL_IR_NONE ? PL_OK : pl_fail_memory(error, "the program of an ONNX graph");
}

/* The last axis of the logits: one dimension, or the outermost of several would be asked for. */
static bool last_of(built *own, pl_ir_name *last) {
  pl_axis_list leaves = {0};
  int32_t rank = pl_flat_shape(&own->flat, own->output)->rank;
  (void)pl_flat_leaves(&own->flat, own->output, rank - 1, 1, &leaves);
  if (leaves.n != 1) return false;
  *last = pl_axis_name(&own->flat.axes, leaves.leaf[0]);
  return true;
}

static pl_code prefixed(pl_code code, const pl_onnx_graph *graph, const pl_error *why, pl_error *error) {
  return code == PL_OK ? code : pl_fail(error, code, "%s: %s", graph->path, why->message);
}

static pl_code build(const pl_onnx_graph *graph, const pl_onnx_job *job, pl_arena *scratch, built *own,
                     pl_ir_module *module, pl_outlined *outlined, pl_error *error) {
  pl_ir_module flat;
  pl_ir_name last;
  pl_error why = PL_ERROR_INIT;
  int32_t result, x;
  PL_TRY(write_flat(graph, job, scratch, own, &flat, &result, error));
  own->entropy = own->entropy && last_of(own, &last);
  pl_ir_function *main = PL_TAKE(module->arena, pl_ir_function, 1);
  if (main == NULL || (main->name = pl_arena_strdup(module->arena, "main")) == NULL)
    return pl_fail_memory(error, "the program of an ONNX graph");
  PL_TRY(prefixed(pl_outline(flat.functions[0], result, module, main, &x, outlined, &why), graph, &why, error));
  const pl_ir_type type = main->values[x].type;
  write_loss(module, &type, own->entropy, last, job);
  int32_t loss = pl_ir_function_find(module, "loss");
  if (module->arena->failed || loss == PL_IR_NONE) return pl_fail_memory(error, "the program of an ONNX graph");
  pl_ir_op_add(
      module, main,
      &(pl_ir_making){.row = pl_ir_row_of("call"), .n_inputs = 1, .inputs = &x, .path = "loss", .callee = loss});
  pl_ir_function_append(module, main);
  return module->arena->failed ? pl_fail_memory(error, "the program of an ONNX graph") : PL_OK;
}

/* Names of tensors live as long as the module. */
static void keep_sources(pl_outlined *outlined, pl_arena *arena) {
  for (int32_t i = 0; i < outlined->n_weights; i++)
    outlined->weights[i].source = pl_arena_strdup(arena, outlined->weights[i].source);
}

static pl_code build_graph(const pl_onnx_graph *graph, const char *name, const pl_onnx_job *job, pl_arena *arena,
                           built *own, pl_arena *scratch, pl_ir_module *module, pl_outlined *outlined,
                           pl_error *error) {
  pl_ir_module_init(module, arena, name, PL_IR_MODEL);
  module->n_microbatches = job->n_microbatches;
  PL_TRY(build(graph, job, scratch, own, module, outlined, error));
  keep_sources(outlined, arena);
  return arena->failed ? pl_fail_memory(error, "the program of an ONNX graph") : PL_OK;
}

pl_code pl_onnx_program_build(const pl_onnx_model *model, const pl_onnx_job *job, pl_arena *arena, pl_ir_module *module,
                              pl_outlined *outlined, pl_error *error) {
  pl_onnx_graph graph;
  pl_outlined own_outlined;
  built own;
  pl_error why = PL_ERROR_INIT;
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  pl_code code = pl_onnx_graph_open(model->path, &scratch, &graph, &why);
  if (code == PL_OK && graph.digest != model->digest)
    code = pl_fail(&why, PL_BAD_INPUT, "%s: another file than a moment ago", model->path);
  if (code == PL_OK) {
    code = build_graph(&graph, model->name, job, arena, &own, &scratch, module,
                       outlined != NULL ? outlined : &own_outlined, &why);
    pl_onnx_graph_close(&graph);
  }
  pl_arena_release(&scratch);
  return code == PL_OK ? code : pl_fail(error, code, "%s", why.message);
}

/* ---- the model ---- */

static const char *name_of(const char *path, pl_arena *arena) {
  const char *slash = strrchr(path, '/');
  char *made = pl_printable_strdup(arena, slash != NULL ? slash + 1 : path);
  size_t n = made != NULL ? strlen(made) : 0;
  if (n > 5 && strcmp(made + n - 5, ".onnx") == 0) made[n - 5] = 0;
  return made;
}

/* Rows of tables that tokens' places are looked up in. */
static int64_t rows_of_positions(const pl_ir_module *module) {
  int64_t least = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *at = &module->functions[f]->ops[i];
      if (!pl_ir_op_is(at, "embedding")) continue;
      const pl_ir_function *function = module->functions[f];
      const pl_ir_op *ids = &function->ops[function->values[at->inputs[0]].op];
      const pl_ir_type *table = &function->values[at->inputs[1]].type;
      if (ids->path == NULL || strcmp(ids->path, "positions") != 0) continue;
      int64_t rows = table->dims[pl_ir_type_find(table, pl_ir_attribute_find(at, "over")->names[0])].extent;
      if (least == 0 || rows < least) least = rows;
    }
  return least;
}

/* Whether a file that was exported for one sample lets more of them through. */
static bool takes_more(const pl_onnx_graph *graph, int64_t seq) {
  const pl_onnx_job job = {.gbs = 2, .batch = 2, .seq = seq, .n_microbatches = 1, .element = PL_IR_F32};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_ir_module module;
  pl_outlined outlined;
  built own;
  pl_error why = PL_ERROR_INIT;
  bool does = build_graph(graph, "model", &job, &arena, &own, &arena, &module, &outlined, &why) == PL_OK;
  pl_arena_release(&arena);
  return does;
}

/* A small job shows what does not depend on its size. */
static pl_code look(const pl_onnx_graph *graph, pl_arena *scratch, pl_arena *arena, pl_onnx_model *model,
                    pl_error *error) {
  enum { BATCH = 2, SEQ = 8 };
  pl_onnx_openness open = pl_onnx_openness_of(graph);
  model->has_seq = open.has_seq;
  model->empty_cache = pl_onnx_has_cache(graph);
  model->batch = open.open_batch ? 0 : open.batch;
  model->seq = open.open_seq ? 0 : open.seq;
  model->one_sample = model->batch == 1;
  if (model->one_sample && takes_more(graph, model->seq > 0 ? model->seq : SEQ)) model->batch = 0;
  int64_t batch = model->batch > 0 ? model->batch : BATCH;
  const pl_onnx_job job = {.gbs = batch,
                           .batch = batch,
                           .seq = model->seq > 0 ? model->seq : SEQ,
                           .n_microbatches = 1,
                           .element = PL_IR_F32};
  pl_ir_module module;
  pl_outlined outlined;
  built own;
  PL_TRY(build_graph(graph, "model", &job, scratch, &own, scratch, &module, &outlined, error));
  model->path = pl_arena_strdup(arena, graph->path);
  model->name = name_of(graph->path, arena);
  model->producer = pl_arena_strdup(arena, graph->producer != NULL ? graph->producer : "");
  model->output = pl_arena_strdup(arena, graph->values[own.output].name);
  model->digest = graph->digest;
  model->opset = graph->opset;
  model->n_nodes = graph->n_nodes;
  model->n_outputs = graph->n_outputs;
  model->n_layers = outlined.n_layers;
  model->n_functions = module.n_functions;
  model->tied = outlined.tied;
  model->cross_entropy = own.entropy;
  model->parameters = pl_ir_parameters_count(&module, module.n_functions - 1, scratch);
  model->rows = rows_of_positions(&module);
  return arena->failed || scratch->failed ? pl_fail_memory(error, "an ONNX model") : PL_OK;
}

pl_code pl_onnx_model_parse(const char *name, const void *data, size_t size, pl_arena *arena, pl_onnx_model *model,
                            pl_error *error) {
  pl_onnx_graph graph;
  pl_error why = PL_ERROR_INIT;
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  *model = (pl_onnx_model){.path = NULL};
  pl_code code = pl_onnx_graph_parse(name, data, size, &scratch, &graph, &why);
  if (code == PL_OK) code = look(&graph, &scratch, arena, model, &why);
  pl_arena_release(&scratch);
  return code == PL_OK ? code : pl_fail(error, code, "%s", why.message);
}

pl_code pl_onnx_model_load(const char *path, pl_arena *arena, pl_onnx_model *model, pl_error *error) {
  pl_onnx_graph graph;
  pl_error why = PL_ERROR_INIT;
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  *model = (pl_onnx_model){.path = NULL};
  pl_code code = pl_onnx_graph_open(path, &scratch, &graph, &why);
  if (code == PL_OK) {
    code = look(&graph, &scratch, arena, model, &why);
    pl_onnx_graph_close(&graph);
  }
  pl_arena_release(&scratch);
  return code == PL_OK ? code : pl_fail(error, code, "%s", why.message);
}
