/* Large arrays put into another order where they stand: sorting them through their indices takes 8 bytes an element
 * beside them, whatever their size, where qsort takes a copy.
 */
#ifndef PL_CORE_BASE_PERMUTATION_H
#define PL_CORE_BASE_PERMUTATION_H

#include <stddef.h>
#include <stdint.h>

enum { PL_PERMUTED_MOST_BYTES = 64 };

/* Element k becomes what was element order[k]. `order` holds each of 0 .. n - 1 once and is used up. Elements of `size`
 * bytes, PL_PERMUTED_MOST_BYTES at most. O(n). */
void pl_permute(void *array, uint32_t n, size_t size, uint32_t *order);

/* Memory of an array that is not read again before it is freed, elements [from, to) of `size` bytes: its whole pages go
 * back to the system, what was in them is lost. `to` = how far it is given back now (pass it as `from` the next time).
 * Nothing happens below some 100 kB. */
size_t pl_give_back(void *array, size_t size, size_t from, size_t to);

#endif
