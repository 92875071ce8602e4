/* See workloads/launch/expert_layers.h. */
#include "workloads/launch/expert_layers.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN_BYTES = 128 };

/* The next run of a list of layers, "[0]*3", "[0, 1]*12" or "[1]": what is in the brackets, each one digit, and how
 * often. Past it and a plus, or NULL: it is none. */
static const char *read_run(const char *text, char pattern[PATTERN_BYTES], int *times) {
  size_t n = 0;
  if (*text++ != '[') return NULL;
  for (; *text != ']'; text++) {
    if (*text == ',') continue;
    if ((*text != '0' && *text != '1') || n + 1 == PATTERN_BYTES) return NULL;
    pattern[n++] = *text;
  }
  pattern[n] = '\0';
  *times = 1;
  int end = 0;
  text++;
  if (*text == '*' && (sscanf(text, "*%d%n", times, &end) != 1 || *times < 0 || *times > PL_EXPERT_LAYERS_MAX))
    return NULL;
  text += end;
  return *text == '+' ? text + 1 : text;
}

bool pl_expert_layers_read(const char *list, int64_t *n_dense, int64_t *step, int64_t *phase) {
  char text[4096], pattern[PATTERN_BYTES], layers[PL_EXPERT_LAYERS_MAX];
  int times, n = 0, length = 0;
  for (; *list != '\0'; list++) {
    if (length == (int)sizeof text - 1) return false;
    if (strchr("('\") ", *list) == NULL) text[length++] = *list;
  }
  text[length] = '\0';
  for (const char *at = text; *at != '\0' || n == 0;) {
    if ((at = read_run(at, pattern, &times)) == NULL) return false;
    for (int i = 0; i < times; i++)
      for (const char *layer = pattern; *layer != '\0'; layer++) {
        if (n == PL_EXPERT_LAYERS_MAX) return false;
        layers[n++] = *layer;
      }
  }
  int first = 0;
  while (first < n && layers[first] == '0')
    first++;
  int second = first + 1;
  while (second < n && layers[second] == '0')
    second++;
  *n_dense = first;
  *step = second < n ? second - first : n;
  *phase = first % *step;
  for (int i = 0; i < n; i++)
    if ((layers[i] == '1') != (i >= first && i % *step == *phase)) return false;
  return first < n;
}
