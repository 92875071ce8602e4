/* Arena: all memory of one simulation.
 *
 * Memory is handed out from chunks and not given back one by one, but for large blocks (`give`), which also go to what
 * chunks have left where a larger one did not fit; `reset` makes everything reusable for the next candidate without
 * returning chunks to the system, `mark`/`release` frees what was taken since a point (scratch space). An arena belongs
 * to one thread.
 *
 * A failed allocation returns NULL and sets the sticky `failed` flag; callers in hot loops may check the
 * flag once at the end of a phase. `fail_after` lets tests make the k-th chunk request fail.
 */
#ifndef PL_CORE_ARENA_H
#define PL_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pl_arena_chunk;
struct pl_arena_spare;

typedef struct pl_arena {
  struct pl_arena_chunk *chunks; /* all chunks, in the order they are filled */
  struct pl_arena_chunk *current;
  struct pl_arena_spare *spares; /* blocks that were given back, the last one first */
  size_t chunk_bytes;            /* size of the next ordinary chunk */
  size_t rest_bytes;             /* handed out in what chunks had left that were gone past */
  int64_t fail_after;            /* tests: number of takes that still succeed; negative = no limit */
  bool failed;
} pl_arena;

typedef struct pl_arena_mark {
  struct pl_arena_chunk *chunk;
  size_t used, rest_bytes;
} pl_arena_mark;

/* Caller's storage; takes no memory yet. `chunk_bytes` = 0 picks the default (1 MiB). */
void pl_arena_init(pl_arena *arena, size_t chunk_bytes);
/* Returns every chunk to the system. Safe on a zeroed or released arena. */
void pl_arena_release(pl_arena *arena);
/* Keeps the chunks, forgets the content, clears `failed`. */
void pl_arena_reset(pl_arena *arena);

/* Of an arena that was reset: returns to the system what it holds beyond some `most_bytes` (whole chunks). */
void pl_arena_trim(pl_arena *arena, size_t most_bytes);

/* `size` uninitialised bytes aligned to `align` (a power of two). size = 0 returns a valid pointer. */
void *pl_arena_take(pl_arena *arena, size_t size, size_t align);
/* The same, zeroed, for `count` elements; detects overflow of count * size. */
void *pl_arena_take_zeroed(pl_arena *arena, size_t count, size_t size, size_t align);
/* Room for `more` elements behind the `n` of an array that grows: the array itself, longer in place if nothing was
 * taken since and its chunk has the room, or a copy; with at least twice the room, zeroed behind `n`. NULL: no memory,
 * or more than 2^32 - 2 elements (`failed` is set); array and room are as they were. An array that was copied is not
 * given back. */
static inline void *pl_arena_grown(pl_arena *arena, const void *array, size_t n, size_t more, size_t size,
                                   uint32_t *room);
/* `memory`, taken from the arena with `size` bytes, is no longer needed: a later take of a large block may have it.
 * What is small is left where it is. Forgotten at reset and at any release_to. */
void pl_arena_give(pl_arena *arena, void *memory, size_t size);
/* A copy of `size` bytes, aligned as pl_arena_take's; of none a valid pointer, and `from` is not read. */
void *pl_arena_copy(pl_arena *arena, const void *from, size_t size, size_t align);
char *pl_arena_strdup(pl_arena *arena, const char *text);
char *pl_arena_printf(pl_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

pl_arena_mark pl_arena_mark_here(const pl_arena *arena);
void pl_arena_release_to(pl_arena *arena, pl_arena_mark mark);
/* Bytes handed out since the last reset, and bytes held from the system. */
size_t pl_arena_used_bytes(const pl_arena *arena);
size_t pl_arena_held_bytes(const pl_arena *arena);

/* The slow half of pl_arena_grown: there is no room. */
void *pl_arena_lengthen(pl_arena *arena, const void *array, size_t n, size_t more, size_t size, uint32_t *room);

static inline void *pl_arena_grown(pl_arena *arena, const void *array, size_t n, size_t more, size_t size,
                                   uint32_t *room) {
  if (*room > 0 && n <= *room && more <= *room - n) return (void *)(uintptr_t)array;
  return pl_arena_lengthen(arena, array, n, more, size, room);
}

#define PL_TAKE(arena, type, count)                                                                                    \
  ((type *)pl_arena_take_zeroed((arena), (size_t)(count), sizeof(type), _Alignof(type)))

/* The `count` elements of that type at `from`, in the arena. */
#define PL_COPY(arena, type, from, count)                                                                              \
  ((type *)pl_arena_copy((arena), 1 ? (from) : (const type *)NULL, (size_t)(count) * sizeof(type), _Alignof(type)))

#endif
