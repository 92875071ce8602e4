/* torchtitan's TOML and DeepSpeed's JSON. */
#include <inttypes.h>
#include <string.h>

#include "core/base/words.h"
#include "core/text/json_writer.h"
#include "workloads/launch/readers.h"
#include "workloads/launch/writers.h"

/* ---- torchtitan ---- */

static const char *schedule_of(const pl_strategy *s) {
  switch (s->schedule) {
  case PL_SCHEDULE_1F1B:
    return "1F1B";
  case PL_SCHEDULE_GPIPE:
    return "GPipe";
  case PL_SCHEDULE_INTERLEAVED:
    return s->vpp == 2 ? "Interleaved1F1B" : NULL;
  case PL_SCHEDULE_BREADTH_FIRST:
    return s->vpp == 2 ? "LoopedBFS" : NULL;
  case PL_SCHEDULE_ZB_V:
    return "ZBVZeroBubble";
  case PL_SCHEDULE_DUALPIPE_V:
    return "DualPipeV";
  default:
    return NULL;
  }
}

static const pl_torchtitan_flavor *flavor_of(const pl_model *model) {
  for (const pl_torchtitan_flavor *f = pl_torchtitan_flavors; f->name != NULL; f++)
    if (strcmp(f->model, model->name) == 0) return f;
  return NULL;
}

static pl_code check_torchtitan(const pl_launched *l, pl_error *error) {
  const pl_strategy *s = l->strategy;
  char words[PL_WORDS_BYTES];
  pl_word_list list = pl_word_list_begin(words, sizeof words);
  for (const pl_torchtitan_flavor *f = pl_torchtitan_flavors; f->name != NULL; f++)
    pl_word_list_add(&list, f->model);
  if (flavor_of(l->model) == NULL)
    return pl_fail(error, PL_UNSUPPORTED, "%s is none of the models that torchtitan has a name for here: %s",
                   l->model->name, pl_word_list_end(&list));
  if (s->pp > 1 && schedule_of(s) == NULL)
    return pl_fail(error, PL_UNSUPPORTED, "schedule=%s with vpp=%d: torchtitan has no such schedule",
                   pl_schedule_name(s->schedule), s->vpp);
  if (s->tmp > 1 && !s->sp)
    return pl_fail(error, PL_UNSUPPORTED, "sp=0: tensor parallelism is sequence parallel in torchtitan; use sp=1");
  if (s->recompute == PL_RECOMPUTE_SELECTIVE)
    return pl_fail(error, PL_UNSUPPORTED, "recompute=selective is Megatron's; torchtitan has none, alternate and full");
  if (s->zero == 2 || (s->zero == 1 && s->pp == 1) || (s->zero == 3 && s->pp > 1) ||
      (s->zero == 0 && s->pp > 1 && s->dp > 1))
    return pl_fail(error, PL_UNSUPPORTED,
                   "zero=%d with pp=%d: torchtitan shards with FSDP (zero=3; behind a pipeline 1) "
                   "or, with pp=1, not at all (0)",
                   s->zero, s->pp);
  if (s->etp > 1 || s->ep_overlap)
    return pl_fail(error, PL_UNSUPPORTED,
                   "etp=%d, ep_overlap=%s: a file for torchtitan is written of whole experts (etp=1) that exchange "
                   "tokens by themselves (ep_overlap=0)",
                   s->etp, pl_ep_overlap_names[s->ep_overlap]);
  PL_TRY(pl_launch_check_host(l, error));
  if (s->recompute_layers > 0)
    return pl_fail(error, PL_UNSUPPORTED, "recompute_layers=%d: torchtitan recomputes all layers or none",
                   s->recompute_layers);
  if (s->placement != NULL || s->split != NULL || l->job->fp4 || l->job->dtype == PL_DTYPE_FP16)
    return pl_fail(error, PL_UNSUPPORTED, "placement, split, fp16 and fp4: torchtitan has no setting for them");
  return PL_OK;
}

static void put_parallelism(FILE *out, const pl_launched *l) {
  const pl_strategy *s = l->strategy;
  int32_t shards = s->zero == 0 ? 1 : s->shard > 0 ? s->shard / pl_strategy_cp(s) : s->dp;
  fprintf(out, "[parallelism]\ndata_parallel_replicate_degree = %d\ndata_parallel_shard_degree = %d\n",
          shards > 0 ? s->dp / shards : 1, shards > 0 ? shards : s->dp);
  fprintf(out, "tensor_parallel_degree = %d\npipeline_parallel_degree = %d\ncontext_parallel_degree = %d\n", s->tmp,
          s->pp, pl_strategy_cp(s));
  if (s->cp > 1) fprintf(out, "context_parallel_rotate_method = \"%s\"\n", s->cp_gather ? "allgather" : "alltoall");
  if (s->ep > 1) fprintf(out, "expert_parallel_degree = %d\n", s->ep);
  if (s->pp > 1)
    fprintf(out, "pipeline_parallel_schedule = \"%s\"\npipeline_parallel_microbatch_size = %d\n", schedule_of(s),
            s->mbs);
}

pl_code pl_launch_write_torchtitan(FILE *stream, const pl_launched *l, pl_error *error) {
  const pl_strategy *s = l->strategy;
  PL_TRY(check_torchtitan(l, error));
  const pl_torchtitan_flavor *flavor = flavor_of(l->model);
  int64_t local = s->pp > 1 ? l->job->gbs / s->dp : s->mbs;
  fprintf(stream,
          "# %s\n# torchrun --nproc_per_node %u --nnodes %u -m torchtitan.train --job.config_file THIS_FILE\n\n",
          l->comment, l->gpus_per_node, l->n_nodes);
  fprintf(stream, "[model]\nname = \"%s\"\nflavor = \"%s\"\n", flavor->name, flavor->flavor);
  if (l->job->fp8) fprintf(stream, "converters = [\"float8\"]\n");
  fprintf(stream,
          "\n[training]\nlocal_batch_size = %" PRId64 "\nglobal_batch_size = %" PRId64 "\nseq_len = %" PRId64
          "\nmixed_precision_param = \"%s\"\nsteps = 50\ndataset = \"c4_test\"\n\n",
          local, l->job->gbs, l->job->seq, l->job->dtype == PL_DTYPE_BF16 ? "bfloat16" : "float32");
  put_parallelism(stream, l);
  fprintf(stream, "\n[activation_checkpoint]\nmode = \"%s\"\n",
          s->recompute == PL_RECOMPUTE_NONE   ? "none"
          : s->recompute == PL_RECOMPUTE_FULL ? "full"
                                              : "selective");
  if (s->recompute == PL_RECOMPUTE_ALTERNATE) fprintf(stream, "selective_ac_option = \"op\"\n");
  return PL_OK;
}

/* ---- DeepSpeed ---- */

/* With offload_optimizer gradients go to the host as they are made: offload=gradients, and nothing else is. */
static pl_code check_offload(const pl_launched *l, pl_error *error) {
  const pl_strategy *s = l->strategy;
  if (!s->offload_gradients || s->offload_kept) return pl_launch_check_host(l, error);
  if (s->zero > 0) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "offload=gradients,zero=0: DeepSpeed's offload_optimizer goes with ZeRO 1 to 3");
}

static void put_zero(pl_json *json, const pl_strategy *s) {
  pl_json_key(json, "zero_optimization");
  pl_json_open_object(json);
  pl_json_put_integer(json, "stage", s->zero);
  pl_json_put_boolean(json, "overlap_comm", s->overlap);
  if (s->shard > 0) pl_json_put_integer(json, "mics_shard_size", s->shard);
  if (s->offload_gradients) {
    pl_json_key(json, "offload_optimizer");
    pl_json_open_object(json);
    pl_json_put_string(json, "device", "cpu");
    pl_json_put_boolean(json, "pin_memory", true);
    pl_json_close_object(json);
  }
  pl_json_close_object(json);
}

pl_code pl_launch_write_deepspeed(FILE *stream, const pl_launched *l, pl_error *error) {
  const pl_strategy *s = l->strategy;
  if (s->pp > 1 || s->tmp > 1 || s->cp > 1 || s->ep > 1 || s->placement != NULL || s->split != NULL)
    return pl_fail(
        error, PL_UNSUPPORTED,
        "pp=%d, tmp=%d, cp=%d, ep=%d: DeepSpeed's file says data parallelism and ZeRO; the rest is said by the "
        "training script (--as megatron)",
        s->pp, s->tmp, pl_strategy_cp(s), pl_strategy_ep(s));
  if (s->recompute != PL_RECOMPUTE_NONE)
    return pl_fail(error, PL_UNSUPPORTED,
                   "recompute=%s: it is the training script that recomputes, not DeepSpeed's file",
                   pl_recompute_names[s->recompute]);
  PL_TRY(check_offload(l, error));
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "$comment", l->comment);
  pl_json_put_integer(&json, "train_batch_size", l->job->gbs);
  pl_json_put_integer(&json, "train_micro_batch_size_per_gpu", s->mbs);
  pl_json_put_integer(&json, "gradient_accumulation_steps", l->job->gbs / ((int64_t)s->mbs * s->dp));
  put_zero(&json, s);
  const char *const names[] = {"fp16", "bf16"};
  const pl_dtype types[] = {PL_DTYPE_FP16, PL_DTYPE_BF16};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    pl_json_key(&json, names[i]);
    pl_json_open_object(&json);
    pl_json_put_boolean(&json, "enabled", l->job->dtype == types[i]);
    pl_json_close_object(&json);
  }
  pl_json_close_object(&json);
  return PL_OK;
}
