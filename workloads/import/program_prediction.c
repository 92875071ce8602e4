/* Multi-token prediction in the program language (DeepSeek-AI 2024, DeepSeek-V3 Technical Report, section 2.2).
 *
 * Module k = 0, 1 ... predicts the token k + 2 places further from h, what the layers made (in front of the final
 * norm), and the embedding of the token k + 1 places further:
 *
 *   h' = M [norm(h); norm(Emb(t))]    @mtpK_in      (eq. 21)
 *   h  = TRM(h')                      @layer as "mtp.K"  (eq. 22)
 *   p  = Head(norm(h))                @mtpK_head    (eq. 23), loss weighed by lambda / modules  (eq. 24, 25)
 *
 * Emb and Head are the model's own: their functions are called without an instance, so that the paths inside are whole.
 * Every place has a target: data go on behind the end of a sequence. */
#include <stdio.h>

#include "workloads/import/program_write.h"

/* Of the first 10 T of DeepSeek-V3's 14.8 T tokens (section 4.2); no file says it, and no time depends on it. */
static const double prediction_weight = 0.3;

static const char *named(const pl_program_writer *to, const char *format, int32_t k) {
  char name[64];
  snprintf(name, sizeof name, format, k);
  const char *made = pl_arena_strdup(to->module->arena, name);
  return made != NULL ? made : "";
}

pl_code pl_program_check_predictions(const pl_model *model, pl_error *error) {
  if (model->ends.n_predictions == 0) return PL_OK;
  if (model->attention.causal && model->positions.rotary && !model->norms.embedding_norm && !model->norms.post_norm &&
      model->norms.final_norm)
    return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "%s: num_nextn_predict_layers = %d: modules of multi-token prediction are those of DeepSeek-V3, for "
                 "decoders with rotary positions and norms in front",
                 model->name, model->ends.n_predictions);
}

/* h' of the module. */
static void write_in(pl_program_writer *to, int32_t k) {
  if (pl_write_function(to, named(to, "mtp%d_in", k)) == NULL) return;
  int64_t *h = &to->extent['h' - 'a'], hidden = *h;
  int32_t x = pl_write_norm(to, named(to, "mtp.%d.hidden_norm", k), pl_write_argument(to, "x", "bsh"), "h");
  int32_t ids = pl_write_input(to, named(to, "tokens%d", k + 1), "bs", to->model->width.vocab);
  int32_t table = pl_write_param(to, "embedding.table", "vh");
  int32_t e = pl_write_two_over(to, "embedding", "embedded", ids, table, "v");
  e = pl_write_norm(to, named(to, "mtp.%d.embedding_norm", k), e, "h");
  const pl_ir_name over = pl_ir_name_of("h");
  const pl_ir_attribute attribute = pl_ir_names("over", 1, &over);
  if (x == PL_IR_NONE || e == PL_IR_NONE) return;
  int32_t both =
      pl_ir_op_infer(to->module, to->function, "concatenate", "both", 2, (const int32_t[]){x, e}, 1, &attribute);
  *h = 2 * hidden;
  int32_t y = pl_write_linear(to, named(to, "mtp.%d.projection", k), both, "hj", "h", false);
  *h = hidden;
  pl_write_result(to, pl_write_rename(to, y, "j", "h"));
}

static void write_head(pl_program_writer *to, int32_t k) {
  if (pl_write_function(to, named(to, "mtp%d_head", k)) == NULL) return;
  int32_t x = pl_write_norm(to, named(to, "mtp.%d.norm", k), pl_write_argument(to, "x", "bsh"), "h");
  int32_t table = pl_write_param(to, to->model->ends.tied_embeddings ? "embedding.table" : "head.weight", "vh");
  pl_write_result(to, pl_write_product(to, "logits", x, table, "h"));
}

static void write_loss(pl_program_writer *to, int32_t k) {
  if (pl_write_function(to, named(to, "mtp%d_loss", k)) == NULL) return;
  int32_t logits = pl_write_argument(to, "logits", "bsv");
  int32_t targets = pl_write_input(to, named(to, "targets%d", k + 1), "bs", to->model->width.vocab);
  pl_write_loss(to, pl_program_cross_entropy(to, logits, targets, "v"), "bs",
                (double)to->options->gbs * (double)to->options->seq * to->model->ends.n_predictions /
                    prediction_weight);
}

void pl_program_predictions(pl_program_writer *to) {
  for (int32_t k = 0; k < to->model->ends.n_predictions; k++) {
    write_in(to, k);
    write_head(to, k);
    write_loss(to, k);
  }
}

void pl_program_call_predictions(pl_program_writer *to, const char *layer, int32_t x) {
  for (int32_t k = 0; k < to->model->ends.n_predictions; k++) {
    x = pl_write_call(to, named(to, "mtp%d_in", k), "", x);
    x = pl_write_call(to, layer, named(to, "mtp.%d", k), x);
    pl_write_call(to, named(to, "mtp%d_loss", k), "", pl_write_call(to, named(to, "mtp%d_head", k), "", x));
  }
}
