/* PyTorch's execution traces: any bytes give messages or one message; joining them with a profile gives a valid rank.
 * comm_group.json, the other JSON beside traces, reads the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/chakra.h"
#include "workloads/formats/execution.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char profile[] =
    "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":1,\"tid\":1,\"ts\":150,\"dur\":20,"
    "\"args\":{\"External id\":77}},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":155,\"dur\":5,"
    "\"args\":{\"correlation\":9}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_Generic\",\"pid\":0,\"tid\":2,\"ts\":218,\"dur\":180,"
    "\"args\":{\"correlation\":9}}]";

static void join(const pl_execution_trace *execution, pl_trace *trace) {
  pl_kineto kineto = {.path = NULL};
  pl_error error = PL_ERROR_INIT;
  PL_ASSERT(pl_kineto_parse(&kineto, "profile.json", profile, sizeof profile - 1, trace, &error) == PL_OK);
  PL_ASSERT(pl_execution_join(execution, &kineto, &error) == PL_OK);
  PL_ASSERT(pl_kineto_add_rank(&kineto, 0, pl_trace_name(trace, "host", 4), trace, &error) == PL_OK);
  PL_ASSERT(pl_trace_is_valid(trace));
  pl_kineto_release(&kineto);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_trace trace;
  pl_execution_trace execution = {.n = 0};
  pl_chakra_groups groups = {.n = 0};
  pl_error error = PL_ERROR_INIT, other = PL_ERROR_INIT;
  pl_trace_init(&trace);
  if (pl_execution_parse(&execution, "fuzz.json", (const char *)data, size, &trace, &error) == PL_OK)
    join(&execution, &trace);
  else
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz.json:") == error.message);
  if (pl_chakra_groups_parse("fuzz.json", (const char *)data, size, &trace, &groups, &other) != PL_OK)
    PL_ASSERT(other.code == PL_BAD_INPUT && strstr(other.message, "fuzz.json:") == other.message);
  pl_chakra_groups_release(&groups);
  pl_execution_release(&execution);
  pl_trace_release(&trace);
  return 0;
}
