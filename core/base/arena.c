/* See core/base/arena.h. Chunks form a list in filling order; reset rewinds to the first and reuses the rest, growing
 * chunk sizes geometrically so that a candidate's memory needs O(log) requests to the system. */
#include "core/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/status.h"

typedef struct pl_arena_chunk {
  struct pl_arena_chunk *next;
  size_t size, used;
  _Alignas(64) unsigned char bytes[];
} pl_arena_chunk;

/* Lies at the start of the block that it is about. */
typedef struct pl_arena_spare {
  struct pl_arena_spare *next;
  size_t size;  /* of the block */
  bool is_rest; /* it is what a chunk had left, and not among the bytes that were handed out */
} pl_arena_spare;

enum { DEFAULT_CHUNK_BYTES = 1 << 20, SMALLEST_SPARE_BYTES = 1 << 14, HUGE_PAGE_BYTES = 1 << 21 };

/* Chunks from this size on are mapped, so that what is trimmed is the system's at once. malloc maps blocks likewise,
 * but only until the first of their size is freed: from then on it keeps them, for each thread its own, and four
 * threads that had one large candidate each held 130 MiB more than they used. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) /* leaks are looked for in what malloc knows */
static const size_t SMALLEST_MAPPED_BYTES = SIZE_MAX;
#else
static const size_t SMALLEST_MAPPED_BYTES = (size_t)1 << 22;
#endif

void pl_arena_init(pl_arena *arena, size_t chunk_bytes) {
  *arena = (pl_arena){.chunk_bytes = chunk_bytes ? chunk_bytes : DEFAULT_CHUNK_BYTES, .fail_after = -1};
}

static void free_chunk(pl_arena_chunk *chunk) {
  size_t bytes = sizeof *chunk + chunk->size;
  if (bytes < SMALLEST_MAPPED_BYTES) {
    free(chunk);
  } else {
    munmap(chunk, bytes);
  }
}

static void free_chunks(pl_arena_chunk *chunk) {
  while (chunk != NULL) {
    pl_arena_chunk *next = chunk->next;
    free_chunk(chunk);
    chunk = next;
  }
}

void pl_arena_release(pl_arena *arena) {
  free_chunks(arena->chunks);
  arena->chunks = arena->current = NULL;
  arena->spares = NULL;
  arena->rest_bytes = 0;
}

void pl_arena_reset(pl_arena *arena) {
  for (pl_arena_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next)
    chunk->used = 0;
  arena->current = arena->chunks;
  arena->spares = NULL;
  arena->rest_bytes = 0;
  arena->failed = false;
}

void pl_arena_trim(pl_arena *arena, size_t most_bytes) {
  PL_ASSERT(arena->current == arena->chunks);
  size_t kept = 0;
  for (pl_arena_chunk **at = &arena->chunks; *at != NULL; at = &(*at)->next) {
    kept += (*at)->size;
    if (kept <= most_bytes) continue;
    if ((*at)->size < arena->chunk_bytes) arena->chunk_bytes = sizeof **at + (*at)->size;
    free_chunks(*at);
    *at = NULL;
    break;
  }
  arena->current = arena->chunks;
}

static void *fail(pl_arena *arena) {
  arena->failed = true;
  return NULL;
}

static inline void *take_from(pl_arena_chunk *chunk, size_t size, size_t align) {
  size_t base = (size_t)(uintptr_t)chunk->bytes;
  size_t start = ((base + chunk->used + align - 1) & ~(align - 1)) - base;
  if (start > chunk->size || size > chunk->size - start) return NULL;
  chunk->used = start + size;
  return chunk->bytes + start;
}

static size_t bytes_to_alignment(const void *memory, size_t align) {
  return (size_t)(-(uintptr_t)memory & (align - 1));
}

static void give(pl_arena *arena, void *memory, size_t size, bool is_rest) {
  size_t skipped = bytes_to_alignment(memory, _Alignof(pl_arena_spare));
  if (memory == NULL || size < skipped + SMALLEST_SPARE_BYTES) return;
  pl_arena_spare *spare = (pl_arena_spare *)(void *)((unsigned char *)memory + skipped);
  *spare = (pl_arena_spare){.next = arena->spares, .size = size - skipped, .is_rest = is_rest};
  arena->spares = spare;
}

void pl_arena_give(pl_arena *arena, void *memory, size_t size) {
  give(arena, memory, size, false);
}

/* The first spare block that is large enough; what it has more remains one. */
static void *take_spare(pl_arena *arena, size_t size, size_t align) {
  for (pl_arena_spare **at = &arena->spares; *at != NULL; at = &(*at)->next) {
    pl_arena_spare *spare = *at;
    unsigned char *memory = (unsigned char *)spare + bytes_to_alignment(spare, align);
    unsigned char *end = (unsigned char *)spare + spare->size;
    if (memory > end || size > (size_t)(end - memory)) continue;
    *at = spare->next;
    if (spare->is_rest) arena->rest_bytes += size;
    give(arena, memory + size, (size_t)(end - memory) - size, spare->is_rest);
    return memory;
  }
  return NULL;
}

/* Aligned to huge pages. */
static void *map_pages(size_t bytes) {
  unsigned char *from = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (from == MAP_FAILED) return NULL;
  size_t skipped = bytes_to_alignment(from, HUGE_PAGE_BYTES);
  if (skipped > 0) munmap(from, skipped);
  if (skipped < HUGE_PAGE_BYTES) munmap(from + skipped + bytes, HUGE_PAGE_BYTES - skipped);
  return from + skipped;
}

/* A large chunk is whole huge pages, and asks for them: otherwise the system gives memory 4 KiB by 4 KiB, which was a
 * third of the time of a simulation of some milliseconds. Of the last one up to 2 MiB are not used. */
static pl_arena_chunk *make_chunk(size_t bytes) {
  size_t unit = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : _Alignof(pl_arena_chunk);
  bytes = (bytes + unit - 1) / unit * unit;
  pl_arena_chunk *chunk = bytes < SMALLEST_MAPPED_BYTES ? aligned_alloc(unit, bytes) : map_pages(bytes);
  if (chunk == NULL) return NULL;
  if (unit == HUGE_PAGE_BYTES) madvise(chunk, bytes, MADV_HUGEPAGE); /* where it cannot, all is as before */
  chunk->next = NULL;
  chunk->size = bytes - sizeof *chunk;
  chunk->used = 0;
  return chunk;
}

/* What a chunk that is gone past has left serves large blocks that it has the room for. */
static void give_rest(pl_arena *arena, pl_arena_chunk *chunk) {
  give(arena, chunk->bytes + chunk->used, chunk->size - chunk->used, true);
}

/* Where it is not simply the next piece of the chunk. */
static __attribute__((noinline)) void *take_otherwise(pl_arena *arena, size_t size, size_t align) {
  if (arena->fail_after == 0) return fail(arena);
  if (arena->fail_after > 0) arena->fail_after--;
  if (size > SIZE_MAX / 4) return fail(arena);
  if (arena->spares != NULL && size >= SMALLEST_SPARE_BYTES) {
    void *memory = take_spare(arena, size, align);
    if (memory != NULL) return memory;
  }
  while (arena->current != NULL) {
    void *memory = take_from(arena->current, size, align);
    if (memory != NULL) return memory;
    if (arena->current->next == NULL) break;
    give_rest(arena, arena->current);
    arena->current = arena->current->next;
    arena->current->used = 0;
  }
  size_t least = sizeof(pl_arena_chunk) + size + align;
  pl_arena_chunk *chunk = make_chunk(arena->chunk_bytes > least ? arena->chunk_bytes : least);
  if (chunk == NULL) return fail(arena);
  if (arena->current != NULL) {
    give_rest(arena, arena->current);
    arena->current->next = chunk;
  } else {
    arena->chunks = chunk;
  }
  arena->current = chunk;
  if (arena->chunk_bytes < (size_t)1 << 26) arena->chunk_bytes *= 2;
  return take_from(chunk, size, align);
}

void *pl_arena_take(pl_arena *arena, size_t size, size_t align) {
  if (arena->fail_after < 0 && size < SMALLEST_SPARE_BYTES && arena->current != NULL) {
    void *memory = take_from(arena->current, size, align);
    if (memory != NULL) return memory;
  }
  return take_otherwise(arena, size, align);
}

void *pl_arena_take_zeroed(pl_arena *arena, size_t count, size_t size, size_t align) {
  if (size != 0 && count > SIZE_MAX / 4 / size) return fail(arena);
  void *memory = pl_arena_take(arena, count * size, align);
  if (memory != NULL) memset(memory, 0, count * size);
  return memory;
}

enum { FIRST_ROOM = 16 };

/* What was taken last is longer where it lies, if its chunk has the room. */
static bool lengthen_last(pl_arena *arena, const void *array, size_t size, size_t wanted) {
  pl_arena_chunk *chunk = arena->current;
  if (array == NULL || chunk == NULL || (const unsigned char *)array + size != chunk->bytes + chunk->used) return false;
  if (wanted - size > chunk->size - chunk->used) return false;
  chunk->used += wanted - size;
  return true;
}

void *pl_arena_lengthen(pl_arena *arena, const void *array, size_t n, size_t more, size_t size, uint32_t *room) {
  uint64_t wanted = *room > 0 ? 2 * (uint64_t)*room : FIRST_ROOM;
  if (more > UINT32_MAX - n) return fail(arena);
  while (wanted < (uint64_t)n + more)
    wanted *= 2;
  if (wanted >= UINT32_MAX || wanted > SIZE_MAX / 4 / size) return fail(arena);
  unsigned char *made = (unsigned char *)(uintptr_t)array;
  if (arena->fail_after == 0 || !lengthen_last(arena, array, *room * size, (size_t)wanted * size)) {
    made = pl_arena_take(arena, (size_t)wanted * size, _Alignof(max_align_t));
    if (made == NULL) return NULL;
    if (n > 0) memcpy(made, array, n * size);
  }
  memset(made + n * size, 0, ((size_t)wanted - n) * size);
  *room = (uint32_t)wanted;
  return made;
}

void *pl_arena_copy(pl_arena *arena, const void *from, size_t size, size_t align) {
  void *copy = pl_arena_take(arena, size, align);
  if (copy != NULL && size > 0) memcpy(copy, from, size);
  return copy;
}

char *pl_arena_strdup(pl_arena *arena, const char *text) {
  return pl_arena_copy(arena, text, strlen(text) + 1, 1);
}

enum { INTEGER_BYTES = 12 };

static const char *integer_text(int value, char text[INTEGER_BYTES]) {
  char *at = text + INTEGER_BYTES - 1;
  unsigned rest = value < 0 ? 0u - (unsigned)value : (unsigned)value;
  *at = '\0';
  do
    *--at = (char)('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (value < 0) *--at = '-';
  return at;
}

/* What a format of nothing but texts and integers ("%s.%d, %.*s") gives, as most are; -1: another, or a longer text.
 * Not printf's work: where a library has registered a conversion of its own (libquadmath, which OpenBLAS brings), glibc
 * formats every text the slow way, 1,500 instructions for two names and a dot. */
static int join_texts(char *brief, size_t size, const char *format, va_list arguments) {
  size_t length = 0;
  for (const char *at = format; *at != '\0'; at++) {
    char number[INTEGER_BYTES];
    const char *text = at;
    size_t more = 1;
    if (*at != '%') {
      while (at[1] != '%' && at[1] != '\0')
        at++;
      more = (size_t)(at - text) + 1;
    } else if (at[1] == '.' && at[2] == '*' && at[3] == 's') {
      int most = va_arg(arguments, int);
      text = va_arg(arguments, const char *);
      if (text == NULL || most < 0) return -1;
      more = strnlen(text, (size_t)most);
      at += 3;
    } else if (at[1] == '%') {
      at++;
    } else {
      at++;
      if (*at != 's' && *at != 'd') return -1;
      text = *at == 's' ? va_arg(arguments, const char *) : integer_text(va_arg(arguments, int), number);
      if (text == NULL) return -1;
      more = strlen(text);
    }
    if (more >= size - length) return -1;
    memcpy(brief + length, text, more);
    length += more;
  }
  brief[length] = '\0';
  return (int)length;
}

char *pl_arena_printf(pl_arena *arena, const char *format, ...) {
  va_list arguments, again;
  char brief[256]; /* most texts are formatted once */
  va_start(arguments, format);
  int length = join_texts(brief, sizeof brief, format, arguments);
  va_end(arguments);
  va_start(arguments, format);
  va_copy(again, arguments);
  if (length < 0) length = vsnprintf(brief, sizeof brief, format, arguments);
  va_end(arguments);
  char *text = length < 0 ? NULL : pl_arena_take(arena, (size_t)length + 1, 1);
  if (text != NULL && (size_t)length < sizeof brief) memcpy(text, brief, (size_t)length + 1);
  if (text != NULL && (size_t)length >= sizeof brief) vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

pl_arena_mark pl_arena_mark_here(const pl_arena *arena) {
  return (pl_arena_mark){
      .chunk = arena->current, .used = arena->current ? arena->current->used : 0, .rest_bytes = arena->rest_bytes};
}

void pl_arena_release_to(pl_arena *arena, pl_arena_mark mark) {
  if (mark.chunk == NULL) {
    bool failed = arena->failed;
    pl_arena_reset(arena);
    arena->failed = failed;
    return;
  }
  arena->current = mark.chunk;
  arena->current->used = mark.used;
  arena->spares = NULL;
  arena->rest_bytes = mark.rest_bytes;
}

size_t pl_arena_used_bytes(const pl_arena *arena) {
  size_t used = arena->rest_bytes;
  for (const pl_arena_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next) {
    used += chunk->used;
    if (chunk == arena->current) break;
  }
  return used;
}

size_t pl_arena_held_bytes(const pl_arena *arena) {
  size_t held = 0;
  for (const pl_arena_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next)
    held += chunk->size;
  return held;
}
