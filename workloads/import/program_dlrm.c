/* Recommendation models as programs (workloads/ir/dlrm.h): @bottom, @tables (@tables1 ... of further groups),
 * @interaction, @top and @loss, called under their own names. Dimensions: n tables, v their rows, h the width of an
 * embedding, l ids of a bag; f and o widths of MLPs, w what the interaction gives.
 *
 * The loss is the binary cross entropy of a sigmoid, as that of two classes with logits 0 and z.
 */
#include "workloads/import/program_write.h"
#include "workloads/ir/dlrm.h"

static const char *numbered(pl_program_writer *to, const char *name, int32_t i) {
  if (i == 0) return name;
  const char *made = pl_arena_printf(to->module->arena, "%s%d", name, i);
  return made != NULL ? made : name; /* no memory: the arena says so */
}

/* Layers on x [b,f], each with a bias and, but for the last one if `bare`, a ReLU: [b,f] again. */
static int32_t mlp(pl_program_writer *to, int32_t x, const int64_t *widths, int32_t n_layers, bool bare) {
  for (int32_t i = 0; i < n_layers; i++) {
    const char *path = pl_arena_printf(to->module->arena, "layer.%d", i);
    to->extent['f' - 'a'] = widths[i];
    to->extent['o' - 'a'] = widths[i + 1];
    x = pl_write_linear(to, path != NULL ? path : "layer", x, "fo", "f", true);
    if (!bare || i + 1 < n_layers) x = pl_write_one(to, "relu", "active", x);
    x = pl_write_rename(to, x, "o", "f");
  }
  return x;
}

static int32_t numbers_input(pl_program_writer *to, const char *name, const char *dims) {
  pl_ir_type type = pl_write_type(to, to->options->element, dims);
  return pl_ir_op_typed(to->module, to->function, "input", name, name, 0, NULL, &type, 0, NULL);
}

static void bottom(pl_program_writer *to, const pl_dlrm *dlrm) {
  if (pl_write_function(to, "bottom") == NULL) return;
  to->extent['f' - 'a'] = dlrm->bottom[0];
  int32_t x = mlp(to, numbers_input(to, "dense", "bf"), dlrm->bottom, dlrm->n_bottom, false);
  pl_write_result(to, pl_write_rename(to, x, "f", "h"));
}

static void set_group(pl_program_writer *to, const pl_dlrm_group *group) {
  to->extent['n' - 'a'] = group->tables;
  to->extent['v' - 'a'] = group->rows;
}

static void tables(pl_program_writer *to, const pl_dlrm *dlrm, int32_t i) {
  static const pl_ir_name over = {"v"}, sum = {"l"};
  if (pl_write_function(to, numbered(to, "tables", i)) == NULL) return;
  set_group(to, &dlrm->groups[i]);
  bool bags = dlrm->lookups > 1;
  const int32_t inputs[] = {pl_write_input(to, numbered(to, "ids", i), bags ? "bnl" : "bn", dlrm->groups[i].rows),
                            pl_write_param(to, "weight", "nvh")};
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &over), pl_ir_names("sum", 1, &sum)};
  pl_write_result(to,
                  pl_ir_op_infer(to->module, to->function, "embedding", "rows", 2, inputs, bags ? 2 : 1, attributes));
}

/* Operands one behind the other along `over`. */
static int32_t behind(pl_program_writer *to, const char *name, int32_t n, const int32_t *values, const char *over) {
  const pl_ir_name dim = pl_ir_name_of(over);
  const pl_ir_attribute attribute = pl_ir_names("over", 1, &dim);
  return pl_ir_op_infer(to->module, to->function, "concatenate", name, n, values, 1, &attribute);
}

static int32_t two_as_one(pl_program_writer *to, const char *row, const char *name, int32_t x, const pl_ir_name from[2],
                          bool itself) {
  static const pl_ir_name w = {"w"};
  const pl_ir_attribute attributes[] = {pl_ir_names("from", 2, from), pl_ir_names("to", 1, &w),
                                        pl_ir_integer("itself", 1)};
  return pl_ir_op_infer(to->module, to->function, row, name, 1, &x, itself ? 3 : 2, attributes);
}

static void interaction(pl_program_writer *to, const pl_dlrm *dlrm) {
  static const pl_ir_name pairs[] = {{"n"}, {"m"}}, all[] = {{"n"}, {"h"}};
  if (pl_write_function(to, "interaction") == NULL) return;
  int32_t vectors[1 + PL_DLRM_GROUPS_MAX], x = pl_write_argument(to, "x", "bh");
  for (int32_t i = 0; i < dlrm->n_groups; i++) {
    set_group(to, &dlrm->groups[i]);
    vectors[1 + i] = pl_write_argument(to, numbered(to, "rows", i), "bnh");
  }
  to->extent['n' - 'a'] = 1;
  vectors[0] = pl_write_spread(to, "vector", x, "bnh");
  int32_t together = behind(to, "vectors", 1 + dlrm->n_groups, vectors, "n");
  if (dlrm->concatenates) {
    pl_write_result(to, pl_write_rename(to, two_as_one(to, "join", "features", together, all, false), "w", "f"));
    return;
  }
  int32_t products = pl_write_product(to, "products", together, pl_write_rename(to, together, "n", "m"), "h");
  const int32_t features[] = {pl_write_rename(to, x, "h", "w"),
                              two_as_one(to, "triangle", "pairs", products, pairs, dlrm->itself)};
  pl_write_result(to, pl_write_rename(to, behind(to, "features", 2, features, "w"), "w", "f"));
}

static void top(pl_program_writer *to, const pl_dlrm *dlrm) {
  if (pl_write_function(to, "top") == NULL) return;
  to->extent['f' - 'a'] = dlrm->top[0];
  pl_write_result(to, mlp(to, pl_write_argument(to, "features", "bf"), dlrm->top, dlrm->n_top, true));
}

static void loss(pl_program_writer *to) {
  if (pl_write_function(to, "loss") == NULL) return;
  to->extent['f' - 'a'] = 1;
  int32_t z = pl_write_argument(to, "logit", "bf");
  to->extent['f' - 'a'] = 2;
  int32_t logits = pl_write_padded(to, "logits", z, "f", 1, "bf");
  pl_write_loss(to, pl_program_cross_entropy(to, logits, pl_write_input(to, "targets", "b", 2), "f"), "b",
                (double)to->options->gbs);
}

void pl_program_dlrm(pl_program_writer *to) {
  const pl_dlrm *dlrm = to->model->program.dlrm;
  int32_t vectors[1 + PL_DLRM_GROUPS_MAX];
  to->extent['h' - 'a'] = dlrm->width;
  to->extent['l' - 'a'] = dlrm->lookups;
  bottom(to, dlrm);
  for (int32_t i = 0; i < dlrm->n_groups; i++)
    tables(to, dlrm, i);
  interaction(to, dlrm);
  top(to, dlrm);
  loss(to);
  if (pl_write_function(to, "main") == NULL) return;
  vectors[0] = pl_write_call(to, "bottom", "bottom", PL_IR_NONE);
  for (int32_t i = 0; i < dlrm->n_groups; i++)
    vectors[1 + i] = pl_write_call(to, numbered(to, "tables", i), numbered(to, "tables", i), PL_IR_NONE);
  int32_t features = pl_write_call_of(to, "interaction", "interaction", vectors);
  pl_write_call(to, "loss", "loss", pl_write_call(to, "top", "top", features));
}
