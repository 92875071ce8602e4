/* See netmodel/platform/plain_xml.h. */
#include "netmodel/platform/plain_xml.h"

#include <string.h>

/* What may stand between double quotes, between single quotes, in a comment. */
enum { BLANK = 1, NAME_FIRST = 2, NAME = 4, IN_DOUBLE = 8, IN_SINGLE = 16, COMMENT = 32 };

static void set_classes(uint8_t classes[256], const char *bytes, uint8_t class) {
  for (; *bytes != '\0'; bytes++)
    classes[(unsigned char)*bytes] |= class;
}

static void fill_classes(uint8_t classes[256]) {
  memset(classes, 0, 256);
  for (int c = ' '; c < 0x7f; c++)
    classes[c] = IN_DOUBLE | IN_SINGLE | COMMENT;
  classes['&'] = classes['<'] = classes['>'] = COMMENT;
  classes['"'] &= (uint8_t)~IN_DOUBLE;
  classes['\''] &= (uint8_t)~IN_SINGLE;
  set_classes(classes, " \t\n", BLANK | COMMENT);
  set_classes(classes, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", NAME_FIRST | NAME);
  set_classes(classes, "0123456789.-", NAME);
}

static inline bool is(const pl_plain_xml *r, const char *at, uint8_t class) {
  return (r->classes[(unsigned char)*at] & class) != 0;
}

/* ---- between tags ---- */

static bool starts_with(const pl_plain_xml *r, const char *word) {
  size_t length = strlen(word);
  return r->at <= r->end && (size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
}

/* Also inside a tag; nothing stands behind the last '>' but blanks. */
static const char *pass_blanks(pl_plain_xml *r, const char *at) {
  for (; at <= r->end && is(r, at, BLANK); at++)
    r->end_line += *at == '\n';
  return at;
}

static bool pass_comment(pl_plain_xml *r) {
  const char *at = r->at + 4;
  for (; at + 2 <= r->end && !(at[0] == '-' && at[1] == '-'); at++) {
    if (!is(r, at, COMMENT)) return false;
    r->end_line += *at == '\n';
  }
  r->at = at + 3;
  return at + 2 <= r->end && at[2] == '>';
}

static bool pass_blanks_and_comments(pl_plain_xml *r) {
  while ((r->at = pass_blanks(r, r->at)) < r->end && starts_with(r, "<!--"))
    if (!pass_comment(r)) return false;
  return true;
}

/* ---- before the outermost element ---- */

static bool pass_declaration(pl_plain_xml *r) {
  static const char *const known[] = {"<?xml version=\"1.0\"?>", "<?xml version='1.0'?>",
                                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (starts_with(r, known[i])) {
      r->at += strlen(known[i]);
      return true;
    }
  return !starts_with(r, "<?");
}

/* `word` and at least one blank. */
static bool pass_word(pl_plain_xml *r, const char *word) {
  if (!starts_with(r, word)) return false;
  const char *at = r->at + strlen(word);
  r->at = pass_blanks(r, at);
  return r->at > at;
}

/* The quote that ends what begins with the quote at `at`; NULL: not plain. */
static const char *find_quote(const pl_plain_xml *r, const char *at) {
  char quote = *at++;
  if (quote != '"' && quote != '\'') return NULL;
  uint8_t class = quote == '"' ? IN_DOUBLE : IN_SINGLE;
  while (is(r, at, class))
    at++;
  return *at == quote ? at : NULL;
}

static bool pass_doctype(pl_plain_xml *r) {
  if (!pass_word(r, "<!DOCTYPE") || !pass_word(r, "platform") || !pass_word(r, "SYSTEM")) return false;
  const char *at = find_quote(r, r->at);
  if (at == NULL) return false;
  at = pass_blanks(r, at + 1);
  r->at = at + 1;
  return *at == '>';
}

bool pl_plain_xml_begin(pl_plain_xml *r, const char *text, size_t size) {
  while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t' || text[size - 1] == '\n'))
    size--;
  if (size == 0 || text[size - 1] != '>') return false;
  r->text = r->at = r->tag = text;
  r->end = text + size - 1;
  r->line = r->end_line = 1;
  r->depth = 0;
  r->has_root = false;
  fill_classes(r->classes);
  return pass_declaration(r) && pass_blanks_and_comments(r) && pass_doctype(r);
}

/* ---- tags ---- */

static const char *pass_name(const pl_plain_xml *r, const char *at) {
  if (!is(r, at, NAME_FIRST)) return at;
  while (is(r, at, NAME))
    at++;
  return at;
}

static pl_plain_kind end_tag(pl_plain_xml *r) {
  if (r->depth == 0) return PL_PLAIN_NOT;
  const pl_plain_open *open = &r->open[r->depth - 1];
  const char *at = r->at + 2;
  if ((size_t)(r->end - at) < open->length || memcmp(at, open->text, open->length) != 0) return PL_PLAIN_NOT;
  at = pass_blanks(r, at + open->length);
  if (*at != '>') return PL_PLAIN_NOT;
  r->depth--;
  r->at = at + 1;
  return PL_PLAIN_END;
}

/* Where the names and values of a tag begin and end. */
typedef struct tag_spans {
  const char *begin[2 * PL_PLAIN_ATTRIBUTES], *end[2 * PL_PLAIN_ATTRIBUTES];
  uint32_t n;
} tag_spans;

static bool is_new_name(const tag_spans *spans, const char *begin, const char *end) {
  for (uint32_t i = 0; i < spans->n; i += 2)
    if (spans->end[i] - spans->begin[i] == end - begin && memcmp(spans->begin[i], begin, (size_t)(end - begin)) == 0)
      return false;
  return true;
}

/* The next attribute of a tag; NULL if that is not plain. */
static const char *pass_attribute(pl_plain_xml *r, const char *at, tag_spans *spans) {
  const char *name = at, *name_end = at = pass_name(r, at);
  if (name == name_end || spans->n == 2 * PL_PLAIN_ATTRIBUTES || !is_new_name(spans, name, name_end)) return NULL;
  at = pass_blanks(r, at);
  if (*at != '=') return NULL;
  const char *value = pass_blanks(r, at + 1), *value_end = find_quote(r, value);
  if (value_end == NULL) return NULL;
  spans->begin[spans->n] = name;
  spans->end[spans->n++] = name_end;
  spans->begin[spans->n] = value + 1;
  spans->end[spans->n++] = value_end;
  return value_end + 1;
}

/* Copies the tag and ends its names and values where they end. */
static bool keep_tag(pl_plain_xml *r, const char *name_end, const tag_spans *spans, const char *end) {
  if (end - r->tag > PL_PLAIN_TAG_BYTES) return false;
  memcpy(r->kept, r->tag, (size_t)(end - r->tag));
  r->name = r->kept + 1;
  r->kept[name_end - r->tag] = '\0';
  for (uint32_t i = 0; i < spans->n; i++) {
    r->pairs[i] = r->kept + (spans->begin[i] - r->tag);
    r->kept[spans->end[i] - r->tag] = '\0';
  }
  r->pairs[spans->n] = NULL;
  return true;
}

static pl_plain_kind start_tag(pl_plain_xml *r) {
  tag_spans spans;
  spans.n = 0;
  const char *name = r->at + 1, *name_end = pass_name(r, name), *at = name_end;
  if (name == name_end || (r->depth == 0 && r->has_root)) return PL_PLAIN_NOT;
  for (;;) {
    const char *behind = pass_blanks(r, at);
    bool has_blank = behind > at;
    at = behind;
    if (*at == '>' || *at == '/') break;
    if (!has_blank || (at = pass_attribute(r, at, &spans)) == NULL) return PL_PLAIN_NOT;
  }
  bool is_empty = *at == '/';
  if (is_empty && *++at != '>') return PL_PLAIN_NOT;
  if (!keep_tag(r, name_end, &spans, at + 1)) return PL_PLAIN_NOT;
  r->at = at + 1;
  r->has_root = true;
  if (is_empty) return PL_PLAIN_EMPTY;
  if (r->depth == PL_PLAIN_DEPTH) return PL_PLAIN_NOT;
  r->open[r->depth++] = (pl_plain_open){name, (size_t)(name_end - name)};
  return PL_PLAIN_START;
}

pl_plain_kind pl_plain_xml_next(pl_plain_xml *r) {
  if (!pass_blanks_and_comments(r)) return PL_PLAIN_NOT;
  if (r->at > r->end) return r->has_root && r->depth == 0 ? PL_PLAIN_DONE : PL_PLAIN_NOT;
  if (*r->at != '<') return PL_PLAIN_NOT;
  r->tag = r->at;
  r->line = r->end_line;
  return r->at < r->end && r->at[1] == '/' ? end_tag(r) : start_tag(r);
}

uint32_t pl_plain_xml_column(const pl_plain_xml *r) {
  const char *line = r->tag;
  while (line > r->text && line[-1] != '\n')
    line--;
  return (uint32_t)(r->tag - line) + 1;
}
