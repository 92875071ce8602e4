/* Text from outside (names in files, paths) on its way to a terminal, a message or a document.
 *
 * Printable is valid UTF-8 without what moves the cursor, changes colours, begins a line or turns the direction of
 * reading: control characters (U+0000 to U+001F, U+007F to U+009F), line and paragraph separators, marks of direction
 * (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: "Trojan Source", CVE-2021-42574), the byte order mark
 * and invisible tags. A name with one of these could forge a line of output or hide a part of itself.
 */
#ifndef PL_CORE_PRINTABLE_H
#define PL_CORE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/arena.h"

/* The character at the front of `text`, which is not empty: its number of bytes (1 to 4) and its code point. Returns 1
 * and PL_NOT_UTF8 for a byte that begins no valid character (overlong forms and surrogates are none). */
enum { PL_NOT_UTF8 = 0xffffffff };
size_t pl_utf8_next(const char *text, uint32_t *code_point);
bool pl_code_point_is_printable(uint32_t code_point);

/* The first thing in `text` that is not printable, its end if there is none. */
const char *pl_printable_end(const char *text);
/* Writes `text` with the rest escaped: \n, \t, \r, \u001b, \U000e0041, and \xff for what is not UTF-8. Cut to `size` >
 * 0 bytes with the final NUL, never inside a character or an escape. Returns `out`. */
enum { PL_PRINTABLE_BYTES = 256 }; /* for a name in a table */
char *pl_printable(const char *text, char *out, size_t size);
void pl_printable_put(FILE *stream, const char *text);
char *pl_printable_strdup(pl_arena *arena, const char *text); /* NULL: no memory */
/* `text` itself if all of it can be printed, else an escaped copy; NULL: no memory. */
const char *pl_printable_name(const char *text, pl_arena *arena);

#endif
