/* Arrays that grow by halves with realloc: of large ones the system moves pages, not bytes. For what is read from files
 * and belongs to no arena; the owner frees it.
 */
#ifndef PL_CORE_BASE_GROWING_H
#define PL_CORE_BASE_GROWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` elements behind the `n` that are there, of `size` bytes; `array` points to the pointer to the first
 * one and `held` counts the room. False: no memory, or more than 2^30 elements; all is as it was then. */
static inline bool pl_grow(void *array, uint32_t n, uint32_t more, uint32_t *held, size_t size) {
  if (more <= *held - n) return true;
  if (n >= UINT32_MAX / 4 || more >= UINT32_MAX / 4) return false;
  uint32_t next = n + more > 64 ? (n + more) / 2 * 3 : 128;
  void *old, *larger;
  memcpy(&old, array, sizeof old);
  larger = realloc(old, next * size);
  if (larger == NULL) return false;
  memcpy(array, &larger, sizeof larger);
  *held = next;
  return true;
}
#define PL_GROW(array, n, held) pl_grow(&(array), n, 1, &(held), sizeof *(array))

#endif
