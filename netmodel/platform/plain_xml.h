/* Reads plain XML tag by tag: what a program writes, in one pass, without copies of the text.
 *
 * Plain is a subset of XML that needs no rules: printable ASCII, tabs and line feeds; `<?xml version="1.0"?>` or
 * nothing, comments, `<!DOCTYPE platform SYSTEM "...">`, then elements with nothing but blanks and comments between
 * them; values without '&', '<' and '>'; no name twice in a tag, tags of at most PL_PLAIN_TAG_BYTES, at most
 * PL_PLAIN_DEPTH inside one another. Everything else, and every mistake, is "not plain": then a real parser (expat) has
 * the text from its beginning, and the words for what is wrong. What is plain means the same to expat, with each tag in
 * the same line and column: tests/property/plain_xml_test.c.
 *
 * Why: of the load of 16,384 GPUs (22 MB) expat was half; tests/bench/platform_load_bench.c has the ratio.
 */
#ifndef PL_NETMODEL_PLAIN_XML_H
#define PL_NETMODEL_PLAIN_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_PLAIN_TAG_BYTES = 4096, PL_PLAIN_ATTRIBUTES = 32, PL_PLAIN_DEPTH = 64 };

typedef enum pl_plain_kind {
  PL_PLAIN_START,
  PL_PLAIN_EMPTY, /* <name/>: begins and ends */
  PL_PLAIN_END,
  PL_PLAIN_DONE, /* the text has ended as it should */
  PL_PLAIN_NOT,  /* not plain; nothing that came before counts */
} pl_plain_kind;

typedef struct pl_plain_open {
  const char *text;
  size_t length;
} pl_plain_open;

/* Of the tag that was read last. */
typedef struct pl_plain_xml {
  const char *name;                               /* of a start or empty tag; until the next tag */
  const char *pairs[2 * PL_PLAIN_ATTRIBUTES + 1]; /* name, value, ..., NULL; until the next tag */
  uint32_t line, end_line;                        /* of its '<' and of what follows it */

  const char *text, *at, *end, *tag; /* `end` is the last '>': whatever scans a tag stops there */
  uint32_t depth;
  bool has_root;
  pl_plain_open open[PL_PLAIN_DEPTH];
  uint8_t classes[256];
  char kept[PL_PLAIN_TAG_BYTES];
} pl_plain_xml;

/* Reads what stands before the outermost element. False: not plain. The text must stay until the last tag. */
bool pl_plain_xml_begin(pl_plain_xml *reader, const char *text, size_t size);
pl_plain_kind pl_plain_xml_next(pl_plain_xml *reader);
/* Of the tag's '<', from 1. */
uint32_t pl_plain_xml_column(const pl_plain_xml *reader);

#endif
