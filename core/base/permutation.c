/* See core/base/permutation.h. */
#include "core/base/permutation.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/status.h"

/* Along each cycle, which ends where an element is in its place. */
void pl_permute(void *array, uint32_t n, size_t size, uint32_t *order) {
  PL_ASSERT(size <= PL_PERMUTED_MOST_BYTES);
  char *bytes = array, held[PL_PERMUTED_MOST_BYTES];
  for (uint32_t first = 0; first < n; first++) {
    if (order[first] == first) continue;
    memcpy(held, bytes + first * size, size);
    uint32_t k = first;
    while (order[k] != first) {
      uint32_t from = order[k];
      memcpy(bytes + k * size, bytes + from * size, size);
      order[k] = k;
      k = from;
    }
    memcpy(bytes + k * size, held, size);
    order[k] = k;
  }
}

size_t pl_give_back(void *array, size_t size, size_t from, size_t to) {
  enum { LEAST_BYTES = 1 << 17 };
  if ((to - from) * size < LEAST_BYTES) return from;
  long page = sysconf(_SC_PAGESIZE);
  if (page <= 0) return to;
  uintptr_t mask = (uintptr_t)page - 1, begin = ((uintptr_t)array + from * size + mask) & ~mask,
            end = ((uintptr_t)array + to * size) & ~mask;
  if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* a hint: nothing is lost if it fails */
  return to;
}
