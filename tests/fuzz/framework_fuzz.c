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
  PL_ASSERT(f->vocab_multiple >= 1);
  PL_ASSERT((unsigned)f->loss <= PL_LOSS_FUSED && (unsigned)f->optimizer <= PL_OPTIMIZER_LOOP);
  PL_ASSERT((unsigned)f->gather_unit <= PL_GATHER_TENSOR && (unsigned)f->bucket_unit <= PL_BUCKET_TENSOR &&
            (unsigned)f->weights <= PL_WEIGHTS_FP32);
  PL_ASSERT((unsigned)f->gradient_path <= PL_GRADIENTS_CHUNKED);
  PL_ASSERT((unsigned)f->host_window <= PL_HOST_PASS);
  PL_ASSERT((unsigned)f->attention_kernel < PL_ATTENTION_KERNEL_COUNT);
  PL_ASSERT(f->gradient_dtype >= -1 && f->gradient_dtype < PL_DTYPE_FP8);
  PL_ASSERT(f->reduce_dtype >= -1 && f->reduce_dtype < PL_DTYPE_FP8);
  PL_ASSERT(f->bucket_bytes >= 0 && f->launch_s >= 0 && f->backward_launch_s >= 0 && f->collective_s >= 0);
  PL_ASSERT(f->layer_s >= 0 && f->communicator_bytes >= 0 && f->workspace_bytes >= 0 && f->context_bytes >= -1);
  PL_ASSERT(f->fragmentation >= 0 && f->fragmentation < 1 && f->reuse_parameters >= 0);
  PL_ASSERT(isfinite(f->bucket_bytes) && isfinite(f->workspace_bytes) && isfinite(f->reuse_parameters));
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
