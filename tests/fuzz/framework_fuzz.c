/* Framework profiles: what is accepted has switches that stand for something; what is refused has a message that begins
 * with the file. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/framework/framework.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in document_fuzz.c: libfyaml loses a little on some malformed input. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libfyaml.so";
}

static void check_framework(const pl_framework *f) {
  PL_ASSERT(f->name[0] != '\0' && strlen(f->name) <= PL_FRAMEWORK_NAME_MAX);
  PL_ASSERT(f->kernels.vocab_multiple >= 1);
  PL_ASSERT((unsigned)f->kernels.loss <= PL_LOSS_FUSED && (unsigned)f->update.optimizer <= PL_OPTIMIZER_LOOP);
  PL_ASSERT((unsigned)f->gathers.gather_unit <= PL_GATHER_TENSOR &&
            (unsigned)f->gradients.bucket_unit <= PL_BUCKET_TENSOR && (unsigned)f->update.weights <= PL_WEIGHTS_FP32);
  PL_ASSERT((unsigned)f->gradients.gradient_path <= PL_GRADIENTS_CHUNKED);
  PL_ASSERT((unsigned)f->launch.host_window <= PL_HOST_PASS);
  PL_ASSERT((unsigned)f->kernels.attention_kernel < PL_ATTENTION_KERNEL_COUNT);
  PL_ASSERT(f->gradients.gradient_dtype >= -1 && f->gradients.gradient_dtype < PL_DTYPE_FP8);
  PL_ASSERT(f->gradients.reduce_dtype >= -1 && f->gradients.reduce_dtype < PL_DTYPE_FP8);
  PL_ASSERT(f->gradients.bucket_bytes >= 0 && f->launch.launch_s >= 0 && f->launch.backward_launch_s >= 0 &&
            f->launch.collective_s >= 0);
  PL_ASSERT(f->launch.layer_s >= 0 && f->memory.communicator_bytes >= 0 && f->memory.workspace_bytes >= 0 &&
            f->memory.context_bytes >= -1);
  PL_ASSERT(f->gradients.passes >= 0 && isfinite(f->gradients.passes));
  PL_ASSERT(f->memory.fragmentation >= 0 && f->memory.fragmentation < 1 && f->gathers.reuse_parameters >= 0);
  PL_ASSERT(isfinite(f->gradients.bucket_bytes) && isfinite(f->memory.workspace_bytes) &&
            isfinite(f->gathers.reuse_parameters));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 14);
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_framework_parse("fuzz", (const char *)data, size, &arena, &framework, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK)
    check_framework(&framework);
  else
    PL_ASSERT(strncmp(error.message, "fuzz:", 5) == 0);
  pl_arena_release(&arena);
  return 0;
}
