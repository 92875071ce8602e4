/* What an event is, by the words of its category; these differ between versions. See workloads/formats/kineto_events.h.
 */
#include <string.h>

#include "workloads/formats/kineto_events.h"

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

bool pl_kineto_is_message(const char *name) {
  return begins(name, "nccl:") || begins(name, "gloo:") || strcmp(name, "record_param_comms") == 0;
}

bool pl_kineto_find_category(const char *said, const char *name, pl_kineto_category *category) {
  static const struct {
    const char *word;
    pl_kineto_category category;
  } words[] = {
      {"cpu_op", PL_KINETO_OP},         {"Operator", PL_KINETO_OP},      {"user_annotation", PL_KINETO_ANNOTATION},
      {"cuda_runtime", PL_KINETO_CALL}, {"cuda_driver", PL_KINETO_CALL}, {"hip_runtime", PL_KINETO_CALL},
      {"Runtime", PL_KINETO_CALL},      {"kernel", PL_KINETO_KERNEL},    {"Kernel", PL_KINETO_KERNEL},
      {"gpu_memcpy", PL_KINETO_COPY},   {"gpu_memset", PL_KINETO_COPY},  {"Memcpy", PL_KINETO_COPY},
      {"Memset", PL_KINETO_COPY}};
  if (said == NULL) { /* the list of PyTorch without Kineto: host only */
    bool noted = begins(name, "ProfilerStep#") || pl_kineto_is_message(name);
    *category = noted ? PL_KINETO_ANNOTATION : PL_KINETO_OP;
    return true;
  }
  for (size_t w = 0; w < sizeof words / sizeof *words; w++)
    if (strcmp(words[w].word, said) == 0) {
      *category = words[w].category;
      return true;
    }
  return false;
}
