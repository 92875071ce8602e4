/* What a framework that shards parameters does to a block's gradients between the products that make them and the
 * collective that reduces them: kernels over all of the block's parameters, once per microbatch, however few its tokens
 * are. They are small beside a pass over 16 thousand tokens and a tenth of one over 4 thousand.
 *
 * FSDP 1 (torch/distributed/fsdp, PyTorch 1.12 to 2.x): parameters are views of one flat tensor, whose gradient the
 * derivative of `split` puts together from theirs; _post_backward_hook casts it to the type of the reduction, and
 * _reduce_grad divides it in place by a factor of the number of ranks. FSDP 2 (_fully_shard): foreach_reduce's
 * chunk_cat writes the reduction's input in its type, and the reduction averages. In both it is shards that are added
 * up over microbatches, which is not counted. Where ranks keep gradients whole (below ZeRO-2: behind a pipeline FSDP 2
 * reduces with the last microbatch, pytorch/pytorch@010ae4a89516 _fully_shard/_fsdp_param.py,
 * accumulate_unsharded_grad_if_needed), what a pass makes is added to them instead.
 *
 * They run on a stream of their own beside the next block's backward pass, whose kernels leave them no multiprocessor
 * and no bandwidth to spare; they are counted as if they ran before it.
 */
#include "workloads/block/block_tape.h"

static void sweep(pl_tape *tape, const char *name, double elements, double bytes_each) {
  pl_op *op = pl_tape_op(tape, name, PL_OP_ELEMENTWISE, PL_CATEGORY_BACKWARD, PL_NONE, PL_NONE, PL_NONE, PL_NONE);
  op->m = 1;
  op->n = (int64_t)elements;
  op->flops = elements;
  op->bytes = elements * bytes_each;
}

void pl_block_pass_gradients(pl_tape *tape, double elements) {
  if (elements <= 0) return;
  const pl_framework *framework = tape->framework;
  double made = pl_dtype_bytes(tape->shard->dtype);
  pl_dtype kept = pl_framework_gradient_dtype(framework, tape->shard->dtype);
  int narrow = pl_framework_reduce_dtype(framework, tape->shard->dtype);
  double sent = pl_dtype_bytes(narrow < 0 ? kept : (pl_dtype)narrow);
  if (!tape->shard->scatters) {
    sweep(tape, "gradients_added", elements, made + 2 * pl_dtype_bytes(kept));
    return;
  }
  if (framework->gradients.gradient_path == PL_GRADIENTS_CHUNKED) {
    sweep(tape, "gradients_chunked", elements, made + sent);
    return;
  }
  if (pl_framework_autocast(framework, tape->shard->dtype) == PL_AUTOCAST_ALL) { /* of weights in fp32 */
    double wide = pl_dtype_bytes(PL_DTYPE_FP32);
    sweep(tape, "gradients_autocast", elements, made + wide);
    made = wide;
  }
  sweep(tape, "gradients_flattened", elements, 2 * made);
  if (sent != made) sweep(tape, "gradients_cast", elements, made + sent);
  sweep(tape, "gradients_divided", elements, 2 * sent);
}
