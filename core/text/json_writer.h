/* Writes JSON to a stream, piece by piece, with the commas and escapes right.
 *
 * Doubles are written so that reading them back gives the same double (shortest of %.15g/%.16g/%.17g); NaN and
 * infinities become null. In strings, what a terminal should not get (core/base/printable.h) is escaped, and bytes that
 * are no UTF-8 become U+FFFD. Caller's storage. Errors of the stream are seen by the command at exit (ferror).
 */
#ifndef PL_CORE_JSON_WRITER_H
#define PL_CORE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PL_JSON_DEPTH = 32 };

typedef struct pl_json {
  FILE *stream;
  bool pretty; /* two-space indentation and a final newline after the outermost value */
  uint32_t depth;
  bool has_entry[PL_JSON_DEPTH];
  bool after_key;
} pl_json;

void pl_json_init(pl_json *json, FILE *stream, bool pretty);
void pl_json_open_object(pl_json *json);
void pl_json_close_object(pl_json *json);
void pl_json_open_array(pl_json *json);
void pl_json_close_array(pl_json *json);
void pl_json_key(pl_json *json, const char *key);
void pl_json_string(pl_json *json, const char *text); /* NULL becomes null */
void pl_json_number(pl_json *json, double value);
void pl_json_integer(pl_json *json, int64_t value);
/* value / 1000 with its three decimals, exactly: nanoseconds as microseconds. */
void pl_json_thousandths(pl_json *json, int64_t value);
void pl_json_boolean(pl_json *json, bool value);
/* key and value in one call */
void pl_json_put_string(pl_json *json, const char *key, const char *text);
void pl_json_put_number(pl_json *json, const char *key, double value);
void pl_json_put_integer(pl_json *json, const char *key, int64_t value);
void pl_json_put_thousandths(pl_json *json, const char *key, int64_t value);
void pl_json_put_boolean(pl_json *json, const char *key, bool value);

#endif
