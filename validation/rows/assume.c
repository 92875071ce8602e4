/* See validation/rows/assume.h. Read off the row and what became of it, one line per thing that a row may leave
 * out. */
#include "validation/rows/assume.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "validation/rows/row_network.h"

typedef struct writer {
  FILE *stream;
  const pl_case *c;
  const pl_measured_row *row;
  bool any;
} writer;

static void say(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(writer *w, const char *format, ...) {
  va_list arguments;
  if (w->any) fputs("; ", w->stream);
  w->any = true;
  va_start(arguments, format);
  vfprintf(w->stream, format, arguments);
  va_end(arguments);
}

static bool is_blank(const char *text) {
  return text[strspn(text, " ")] == '\0';
}

/* ---- machines ---- */

static void say_machines(writer *w) {
  const pl_platform_plan *plan = &w->c->plan;
  const pl_node_kind *kind = plan->parts[0].kind;
  if (kind == NULL) return; /* --platform */
  const char *device = plan->device != NULL ? plan->device : kind->device;
  if (strcasestr(w->row->gpu, device) == NULL) say(w, "gpu: %s", device);
  if (is_blank(w->row->interconnect))
    say(w, "interconnect: %s", kind->name);
  else if (strcasestr(w->row->interconnect, kind->name) == NULL)
    say(w, "machine: %s", kind->name);
  bool rated = plan->nic_GBps > 0;
  if (plan->parts[0].n_nodes > 1 && !rated && !is_blank(w->row->interconnect))
    say(w, "network: %u NICs of %g Gb/s per node", kind->n_nics, 8 * kind->nic_GBps);
  if (rated && pl_row_rate_of(w->row->interconnect, 1, plan->transport == PL_TRANSPORT_SOCKET).each_GBps > 0)
    say(w, "network: %g Gb/s for each of the NICs", 8 * plan->nic_GBps);
  if (w->row->gpus_per_node == 0 && w->row->n_gpus >= (int64_t)kind->n_gpus) say(w, "gpus_per_node: %u", kind->n_gpus);
}

/* ---- software ---- */

static void say_software(writer *w) {
  if (!w->c->habits.is_named && !pl_row_framework_is_known(w->row))
    say(w, "framework: %s%s%s", w->c->habits.framework, is_blank(w->row->framework) ? "" : " for ", w->row->framework);
  const char *names = w->row->framework;
  bool says_attention = strcasestr(names, "flash") != NULL || strcasestr(names, "attention") != NULL;
  bool attends = w->c->model->unlike.parts == NULL;
  if (attends && !says_attention) say(w, "attention: %s", w->c->job.flash ? "fused" : "unfused");
  if (attends && w->c->model->norms.norm == PL_NORM_RMS && pl_row_fused_norms(w->row) < 0)
    say(w, "norms: %s", w->c->framework.kernels.fuses_norm ? "fused" : "eager");
  if (is_blank(w->row->precision) || w->row->precision[0] == '(')
    say(w, "precision: %s%s", pl_dtype_name(w->c->job.dtype), w->c->job.fp8 ? " with fp8" : "");
  else if (w->c->job.dtype == PL_DTYPE_TF32 && strcasestr(w->row->precision, "tf32") == NULL)
    say(w, "precision: tf32 for '%s'", w->row->precision);
}

/* ---- model ---- */

static void say_model(writer *w) {
  const pl_model *model = w->c->model;
  const pl_measured_row *row = w->row;
  if (model->unlike.parts != NULL || !is_blank(row->model_file)) return;
  if (row->ffn_hidden == 0) say(w, "ffn_hidden: %" PRId64, model->width.ffn_hidden);
  if (row->n_kv_heads == 0 && model->attention.n_kv_heads != model->attention.n_heads)
    say(w, "n_kv_heads: %" PRId64, model->attention.n_kv_heads);
  if (row->vocab == 0) say(w, "vocab: %" PRId64, model->width.vocab);
  if (pl_row_gated(row) < 0) say(w, "mlp_type: %s", model->mlp.gated_mlp ? "gated" : "2-matrix");
  if (pl_row_tied(row) < 0) say(w, "tied_embeddings: %s", model->ends.tied_embeddings ? "tied" : "untied");
  if (model->dropout.hidden_dropout || model->dropout.attention_dropout) say(w, "dropout: 0.1");
}

/* ---- strategy ---- */

static void say_pipeline(writer *w) {
  const pl_measured_row *row = w->row;
  const pl_strategy *strategy = &w->c->strategy;
  if (strategy->pp == 1) return;
  if (row->vpp == 0 && strategy->vpp > 1) say(w, "vpp: %d, NVIDIA's recipe", strategy->vpp);
  if (row->vpp == 0 && strategy->vpp <= 1 && is_blank(row->schedule)) say(w, "schedule: 1f1b");
  if (is_blank(row->assign)) say(w, "assign: %s", pl_assign_names[strategy->recipe]);
  bool sharded = w->c->habits.zero == 3 || row->zero_stage == 3 || pl_row_sharding(row) == 3;
  if (sharded) say(w, "reshard_after_forward: off behind a pipeline, as zero_stage 1");
}

static void say_strategy(writer *w) {
  const pl_measured_row *row = w->row;
  const pl_strategy *strategy = &w->c->strategy;
  int32_t replicas = pl_strategy_replicas(strategy);
  if (!is_blank(row->strategy)) return;
  if (row->dp == 0 && strategy->dp > 1) say(w, "dp: %d", strategy->dp);
  if (row->mbs == 0) say(w, "mbs: %d", strategy->mbs);
  if (row->sp < 0 && strategy->tmp > 1) say(w, "sp: %d", strategy->sp);
  if (row->zero_stage < 0 && pl_row_sharding(row) < 0 && replicas > 1) say(w, "zero_stage: %d", strategy->zero);
  if (is_blank(row->recompute)) say(w, "recompute: %s", pl_recompute_names[strategy->recompute]);
  if (w->c->model->moe.n_experts > 0 && strategy->tmp > 1 && row->etp == 0) say(w, "etp: %d", strategy->etp);
  say_pipeline(w);
}

pl_code pl_case_assume(pl_case *c, pl_arena *arena, pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (stream == NULL) return pl_fail_memory(error, "the assumptions");
  writer w = {.stream = stream, .c = c, .row = c->row};
  say_machines(&w);
  say_software(&w);
  say_model(&w);
  say_strategy(&w);
  bool written = fclose(stream) == 0;
  c->assumptions = written ? pl_arena_strdup(arena, text) : NULL;
  free(text);
  return c->assumptions != NULL ? PL_OK : pl_fail_memory(error, "the assumptions");
}
