/* See netmodel/make/repeated_text.h. */
#include "netmodel/make/repeated_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 16 };

/* The next name of the node at or behind `text`; NULL: none. `name`: ="nFIRST */
static const char *find_name(const char *begin, const char *text, const char *name, size_t length) {
  static const char value[] = "value";
  for (const char *at; (at = strstr(text, name)) != NULL; text = at + length) {
    size_t before = (size_t)(at - begin), key = sizeof value - 1;
    bool is_value = before >= key && memcmp(at - key, value, key) == 0;
    if (!is_value && !isdigit((unsigned char)at[length])) return at;
  }
  return NULL;
}

static char *put(char *to, const char *from, size_t size) {
  memcpy(to, from, size);
  return to + size;
}

/* Room for the names of any node: each may be longer than the first's. */
static char *take_room(const char *text, size_t size, const char *name, size_t length) {
  size_t n = 0;
  for (const char *at = find_name(text, text, name, length); at != NULL;
       at = find_name(text, at + length, name, length))
    n++;
  return malloc(size + n * NUMBER_BYTES + 1);
}

bool pl_repeated_text_write(const char *text, size_t size, uint32_t first, uint32_t n, FILE *stream) {
  char name[NUMBER_BYTES + 3], number[NUMBER_BYTES];
  size_t length = (size_t)snprintf(name, sizeof name, "=\"n%" PRIu32, first), mark = 3; /* ="n stays */
  char *room = take_room(text, size, name, length);
  if (room == NULL) return false;
  fwrite(text, 1, size, stream);
  for (uint32_t i = 1; i < n; i++) {
    size_t digits = (size_t)snprintf(number, sizeof number, "%" PRIu32, first + i);
    const char *from = text;
    char *to = room;
    for (const char *at; (at = find_name(text, from, name, length)) != NULL; from = at + length) {
      to = put(to, from, (size_t)(at - from) + mark);
      to = put(to, number, digits);
    }
    to = put(to, from, size - (size_t)(from - text));
    fwrite(room, 1, (size_t)(to - room), stream);
  }
  free(room);
  return true;
}
