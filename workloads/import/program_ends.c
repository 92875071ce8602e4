/* Embedding, final norm, head and loss in the program language, in whole values. */
#include <math.h>
#include <string.h>

#include "workloads/import/program_write.h"
#include "workloads/ir/stack.h"

/* Gemma multiplies embeddings by the root of their width. */
static bool scales_embeddings(const pl_model *model) {
  return strncmp(model->family, "gemma", 5) == 0;
}

static int32_t looked_up(pl_program_writer *to, const char *path, const char *table, char over, int32_t ids) {
  const char letters[] = {over, '\0'};
  return pl_write_two_over(to, "embedding", path, ids, pl_write_param(to, path, table), letters);
}

void pl_program_embedding(pl_program_writer *to) {
  const pl_model *model = to->model;
  if (pl_write_function(to, "embedding") == NULL) return;
  int32_t x = looked_up(to, "table", "vh", 'v', pl_write_input(to, "tokens", "bs", model->width.vocab));
  if (scales_embeddings(model)) x = pl_write_scale(to, "scaled", x, sqrt((double)model->width.hidden));
  if (model->positions.learned_positions) {
    int32_t places = looked_up(to, "positions", "ph", 'p', pl_write_input(to, "positions", "s", to->options->seq));
    x = pl_write_two(to, "add", "placed", x, places);
  }
  if (model->positions.learned_positions && model->width.type_vocab > 0)
    x = pl_write_two(
        to, "add", "placed", x,
        looked_up(to, "segments", "yh", 'y', pl_write_input(to, "segments", "bs", model->width.type_vocab)));
  if (model->norms.embedding_norm) x = pl_write_norm(to, "norm", x, "h");
  pl_write_result(to, pl_write_dropout(to, "x", x, model->numbers.embedding_dropout));
}

void pl_program_final_norm(pl_program_writer *to) {
  if (!to->model->norms.final_norm || pl_write_function(to, "final_norm") == NULL) return;
  pl_write_result(to, pl_write_norm(to, "norm", pl_write_argument(to, "x", "bsh"), "h"));
}

/* Exponentials are of differences from the
 * greatest logit, which the derivative does not see. */
int32_t pl_program_cross_entropy(pl_program_writer *to, int32_t logits, int32_t targets, const char *over) {
  logits = pl_write_cast(to, "logits.fp32", logits, PL_IR_F32);
  int32_t shifted =
      pl_write_two(to, "subtract", "shifted", logits, pl_write_over(to, "maximum", "greatest", logits, over));
  int32_t sum = pl_write_over(to, "sum", "sum", pl_write_one(to, "exp", "exponentials", shifted), over);
  int32_t target = pl_write_two_over(to, "pick", "target", shifted, targets, over);
  return pl_write_two(to, "subtract", "token_loss", pl_write_one(to, "log", "log_sum", sum), target);
}

/* Paths of the head: whole where it reads the embedding's table too, since it is called without an instance then. */
static const char *own(pl_program_writer *to, const char *path) {
  if (!to->model->ends.tied_embeddings) return path;
  const char *whole = pl_arena_printf(to->module->arena, "head.%s", path);
  return whole != NULL ? whole : path;
}

/* BERT's pooler: the first token of each sequence (input "first": its place) through a dense layer and tanh; with
 * BertForPreTraining a classifier of two classes, whose loss is a mean over sequences. */
static void pooler(pl_program_writer *to, int32_t x) {
  x = pl_write_chosen(to, "first_token", x, pl_write_input(to, "first", "b", 1), "b", "s");
  x = pl_write_linear(to, own(to, "pooler"), x, "hj", "h", true);
  x = pl_write_rename(to, pl_write_one(to, "tanh", "pooled", x), "j", "h");
  if (!to->model->ends.next_sentence) return;
  x = pl_write_linear(to, own(to, "next_sentence"), x, "ho", "h", true);
  pl_write_loss(to, pl_program_cross_entropy(to, x, pl_write_input(to, "next_sentence", "b", 2), "o"), "b",
                (double)to->options->gbs);
}

static bool predicts_some(const pl_program_writer *to) {
  return to->model->ends.predictions > 0 && to->model->ends.predictions < to->options->seq;
}

/* What the head predicts of a sequence: all tokens, or as many as are masked (input "masked": their places). */
static const char *predicted(const pl_program_writer *to) {
  return predicts_some(to) ? "bm" : "bs";
}

void pl_program_head(pl_program_writer *to) {
  const pl_model *model = to->model;
  if (pl_write_function(to, "head") == NULL) return;
  int32_t x = pl_write_argument(to, "x", "bsh");
  if (model->ends.pooler) pooler(to, x);
  if (predicts_some(to))
    x = pl_write_chosen(to, "masked_tokens", x, pl_write_input(to, "masked", "bm", to->options->seq), "bm", "s");
  if (model->ends.lm_transform) {
    x = pl_write_linear(to, own(to, "transform"), x, "hj", "h", true);
    x = pl_write_rename(to, pl_write_activation(to, "active", x), "j", "h");
    x = pl_write_norm(to, own(to, "transform_norm"), x, "h");
  }
  bool scaled = model->program.stack != NULL && model->program.stack->kind == PL_STACK_ENCODER_DECODER &&
                model->ends.tied_embeddings;
  if (scaled) x = pl_write_scale(to, "scaled", x, 1 / sqrt((double)model->width.hidden));
  int32_t table = pl_write_param(to, model->ends.tied_embeddings ? "embedding.table" : "weight", "vh");
  int32_t logits = pl_write_product(to, "logits", x, table, "h");
  if (model->ends.lm_transform || model->ends.head_bias) logits = pl_write_bias(to, own(to, "bias"), logits, "v");
  pl_write_result(to, logits);
}

void pl_program_loss(pl_program_writer *to) {
  if (pl_write_function(to, "loss") == NULL) return;
  const char *dims = predicted(to);
  int32_t logits = pl_write_argument(to, "logits", predicts_some(to) ? "bmv" : "bsv");
  int64_t tokens = predicts_some(to) ? to->model->ends.predictions : to->options->seq;
  int32_t losses =
      pl_program_cross_entropy(to, logits, pl_write_input(to, "targets", dims, to->model->width.vocab), "v");
  pl_write_loss(to, losses, dims, (double)to->options->gbs * (double)tokens);
}
