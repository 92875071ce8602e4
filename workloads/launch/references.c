/* References of OmegaConf from one setting to another. See workloads/launch/documents.h. */
#include <stdlib.h>
#include <string.h>

#include "workloads/launch/documents.h"

enum { FOLLOWED_MAX = 256, NESTED_MAX = 32, VALUE_MAX = 1000 };

typedef struct place {
  const pl_node *within[NESTED_MAX];
  int depth;
  int *n_left; /* references that may still be followed: those of one scalar may name each other */
} place;

static const char *follow(const place *at, const char *text, pl_arena *arena);

/* The end of what an open brace began: behind its "}"; NULL when none closes it. */
static const char *behind(const char *open) {
  int n_open = 0;
  for (const char *at = open; *at != '\0'; at++) {
    if (*at == '{') n_open++;
    if (*at == '}' && --n_open == 0) return at + 1;
  }
  return NULL;
}

/* The value that `name` (dots and keys) leads to, already followed; NULL when it is no scalar. */
static const char *value_of(const place *at, char *name, pl_arena *arena) {
  place to = *at;
  size_t dots = strspn(name, ".");
  to.depth = dots == 0 ? (at->depth > 0 ? 1 : 0) : at->depth - (int)dots + 1;
  if (to.depth <= 0) return NULL;
  name += dots;
  for (char *rest; (rest = strchr(name, '.')) != NULL; name = rest + 1) {
    *rest = '\0';
    const pl_node *inner = pl_node_get(to.within[to.depth - 1], name);
    if (!pl_node_is_mapping(inner) || to.depth == NESTED_MAX) return NULL;
    to.within[to.depth++] = inner;
  }
  const pl_node *node = pl_node_get(to.within[to.depth - 1], name);
  const char *text = node != NULL ? pl_node_text(node) : NULL;
  return text != NULL && strlen(text) <= VALUE_MAX ? follow(&to, text, arena) : NULL;
}

/* "multiply:A, B": the product as text; NULL when A or B is no number. */
static const char *product_of(const char *factors, pl_arena *arena) {
  char *end, *end_of_all;
  double a = strtod(factors, &end);
  if (end == factors || *end != ',') return NULL;
  double b = strtod(end + 1, &end_of_all);
  return end_of_all == end + 1 || *end_of_all != '\0' ? NULL : pl_arena_printf(arena, "%.17g", a * b);
}

static const char *follow(const place *at, const char *text, pl_arena *arena) {
  static const char multiply[] = "multiply:";
  const char *made = "";
  for (const char *open, *end; made != NULL && (open = strstr(text, "${")) != NULL; text = end) {
    end = behind(open);
    if (end == NULL || --*at->n_left < 0) break;
    char *inner = pl_arena_printf(arena, "%.*s", (int)(end - open) - 3, open + 2);
    if (inner == NULL) return NULL;
    const char *value = NULL;
    if (strncmp(inner, multiply, sizeof multiply - 1) == 0) {
      const char *factors = follow(at, inner + sizeof multiply - 1, arena);
      value = factors != NULL ? product_of(factors, arena) : NULL;
    } else if (strpbrk(inner, ":${") == NULL) {
      value = value_of(at, inner, arena);
    }
    made = value != NULL ? pl_arena_printf(arena, "%s%.*s%s", made, (int)(open - text), text, value)
                         : pl_arena_printf(arena, "%s%.*s", made, (int)(end - text), text);
  }
  return made != NULL ? pl_arena_printf(arena, "%s%s", made, text) : NULL;
}

const char *pl_launch_follow(const pl_node *const *within, int depth, const char *text, pl_arena *arena) {
  int n_left = FOLLOWED_MAX;
  place at = {.depth = depth < NESTED_MAX ? depth : NESTED_MAX, .n_left = &n_left};
  if (depth > 0) memcpy(at.within, within, (size_t)at.depth * sizeof at.within[0]);
  return text != NULL && strstr(text, "${") != NULL ? follow(&at, text, arena) : text;
}
