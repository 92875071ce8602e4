/* See workloads/memory/buffer_memory.h. */
#include "workloads/memory/buffer_memory.h"

#include <math.h>

static const double fp32_bytes = 4, fp64_bytes = 8;

/* No freed activation is as large as they are, so that the allocator takes them from the device and keeps them: they
 * stand beside everything else. */
double pl_copied_bytes(const pl_buffer_facts *of) {
  bool narrow = of->bytes.gradient_bytes < fp32_bytes; /* gradients are kept in 16 bits */
  double sum = 0, flat = fmin(of->parameters, of->framework->memory.flat_elements);
  if (of->shares) {
    if (narrow) sum += flat * of->bytes.gradient_bytes;
    if (of->zero >= 1) sum += flat * of->bytes.gathered_bytes;
    /* The type of travel: one bucket at a time. */
    bool converted = of->zero < 2 && of->bytes.reduced_bytes < of->bytes.gradient_bytes;
    double bucket = of->bucket_bytes > 0 ? of->bucket_bytes / of->bytes.reduced_bytes : INFINITY;
    if (converted) sum += fmin(of->parameters, bucket) * of->bytes.reduced_bytes;
  }
  if (!of->framework->memory.copies_gradient) return sum;
  if (!narrow || of->zero == 0) return sum + of->largest_parameters * fp32_bytes;
  return sum + fmin(of->largest_parameters, of->sharded) * fp64_bytes;
}

bool pl_buffer_counts_pairs(const pl_framework *framework) {
  return framework->gathers.gathers_ahead && framework->gradients.gradient_path == PL_GRADIENTS_CHUNKED;
}

double pl_kept_gathered(const pl_framework *framework, double largest, bool recomputes) {
  double under_way = (framework->gathers.gathers_ahead ? 2 : 1) * largest;
  double uses = recomputes ? 3 : 2, most = framework->gathers.reuse_parameters;
  return most > 0 ? fmax(under_way, most / uses + largest) : under_way;
}

static double largest_unit(const pl_buffer_facts *of) {
  bool by_tensor =
      of->framework->gathers.gather_unit == PL_GATHER_TENSOR; /* its gradients are reduced one by one too */
  return by_tensor ? of->largest_parameters : of->largest_block;
}

double pl_unsharded_unit_bytes(const pl_buffer_facts *of) {
  double largest = largest_unit(of);
  return fmin(fmax(of->bucket_bytes, largest * of->bytes.gradient_bytes),
              fmax(of->parameters, largest) * of->bytes.gradient_bytes);
}

/* FSDP's units in particular. FSDP 2 gathers into a tensor of the stream of its all-gathers, of which two are there in
 * the forward pass, that of the unit before until this one is copied out (_fsdp_param_group.py, wait_for_unshard), and
 * copies out to the parameters; of a gradient that autograd has made it makes a copy in the type of its reduction
 * (_fsdp_collectives.py, foreach_reduce; so does FSDP 1 if that is another type, _runtime_utils.py, _reduce_grad). What
 * one stream has freed serves no other, so that these stand beside each other; and the shards of gradients, which are
 * made on the stream of the reductions, stay there from the first step on whether they are set to None or not. */
double pl_unsharded_bytes(const pl_buffer_facts *of) {
  const pl_framework *framework = of->framework;
  pl_gradient_path path = framework->gradients.gradient_path;
  double largest = largest_unit(of);
  double sum = 0, ahead = framework->gathers.gathers_ahead ? 2 : 1;
  if (!of->shares) return 0;
  if (path == PL_GRADIENTS_CHUNKED && of->zero >= 2)
    sum += (pl_buffer_counts_pairs(framework) ? of->largest_pair : largest) * of->bytes.gathered_bytes;
  if (of->zero >= 3 && path == PL_GRADIENTS_CHUNKED) sum += largest * of->bytes.gathered_bytes;
  if (of->zero >= 3 && path != PL_GRADIENTS_CHUNKED)
    sum += fmax(fmin(pl_kept_gathered(framework, largest, of->recomputes), of->parameters), ahead * largest) *
           of->bytes.gathered_bytes;
  if (of->zero < 2) return sum;
  double unit_bytes = pl_unsharded_unit_bytes(of);
  if (path == PL_GRADIENTS_ADDED) return sum + (framework->memory.copies_scattered ? 2 : 1) * unit_bytes;
  bool copied = path == PL_GRADIENTS_CHUNKED || of->bytes.reduced_bytes != of->made_bytes;
  return sum + unit_bytes / of->bytes.gradient_bytes * (of->made_bytes + (copied ? of->bytes.reduced_bytes : 0));
}

double pl_narrow_copies_bytes(const pl_buffer_facts *of) {
  return of->framework->memory.caches_narrow_weights ? 2 * of->narrow : 0;
}

double pl_extra_gradient_bytes(const pl_buffer_facts *of) {
  return (of->zero >= 2 ? of->sharded : of->parameters) * of->bytes.extra_gradient_bytes;
}
