/* See search/command/where.h. Recursive descent into an array of nodes; children by index. Types are checked while
 * parsing, so that evaluation cannot fail. */
#include "search/command/where.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"
#include "search/results/column_text.h"

typedef enum node_kind {
  NODE_NUMBER,
  NODE_TEXT,
  NODE_COLUMN,
  NODE_OR,
  NODE_AND,
  NODE_NOT,
  NODE_EQ,
  NODE_NE,
  NODE_LT,
  NODE_LE,
  NODE_GT,
  NODE_GE,
  NODE_ADD,
  NODE_SUB,
  NODE_MUL,
  NODE_DIV,
  NODE_NEGATE
} node_kind;

typedef struct node {
  uint8_t kind;
  bool is_text;
  uint32_t left, right; /* children, or the column in `left` */
  uint32_t at;          /* offset in the text */
  double number;
  const char *text;
  uint32_t length;
} node;

enum { MOST_NODES = 512, MOST_DEPTH = 48, MOST_TEXT = 4096 };

struct pl_where {
  node nodes[MOST_NODES];
  uint32_t n_nodes, root;
};

typedef struct parser {
  const char *text, *here;
  pl_where *where;
  pl_column_list columns;
  uint32_t depth;
  pl_error *error;
} parser;

/* ---- names ---- */

/* Edit distance, for suggestions; both names are short. */
static uint32_t distance(const char *a, size_t n, const char *b) {
  size_t m = strlen(b);
  uint32_t row[64];
  if (n > 40 || m >= 64) return 99;
  for (size_t j = 0; j <= m; j++)
    row[j] = (uint32_t)j;
  for (size_t i = 1; i <= n; i++) {
    uint32_t diagonal = row[0];
    row[0] = (uint32_t)i;
    for (size_t j = 1; j <= m; j++) {
      uint32_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
      if (above + 1 < best) best = above + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = above;
      row[j] = best;
    }
  }
  return row[m];
}

/* Up to three columns: those that contain the name, else the nearest by edit distance. */
static void suggest(pl_column_list columns, const char *name, size_t length, char *list, size_t size) {
  uint32_t n = 0;
  pl_word_list near = pl_word_list_begin(list, size);
  for (uint32_t limit = 0; limit <= 4 && n < 3; limit++)
    for (uint32_t c = 0; c < columns.n && n < 3; c++) {
      const char *column = columns.at[c].name;
      bool contains = length >= 2 && memmem(column, strlen(column), name, length) != NULL;
      uint32_t d = contains ? 0 : distance(name, length, column);
      if (d != limit || d >= length + 1) continue;
      pl_word_list_add(&near, column);
      n++;
    }
  if (n == 0) pl_word_list_add(&near, "one of the columns in search/results/README.md");
  pl_word_list_end(&near);
}

static bool find_column(pl_column_list columns, const char *name, size_t length, uint32_t *column) {
  for (*column = 0; *column < columns.n; (*column)++) {
    const char *known = columns.at[*column].name;
    if (strlen(known) == length && memcmp(known, name, length) == 0) return true;
  }
  return false;
}

pl_code pl_where_column(const char *name, pl_column_list columns, const char *what, uint32_t *column, pl_error *error) {
  if (find_column(columns, name, strlen(name), column)) return PL_OK;
  char list[PL_WORDS_BYTES];
  suggest(columns, name, strlen(name), list, sizeof list);
  return pl_fail(error, PL_BAD_INPUT, "%s: there is no column '%.40s'; near: %s", what, name, list);
}

static bool column_is_text(const pl_column_info *column) {
  return column->type >= PL_COLUMN_u64;
}

/* ---- parsing ---- */

static pl_code fail_at(parser *p, const char *at, const char *message) {
  return pl_fail(p->error, PL_BAD_INPUT, "--where: column %zu of \"%.200s\": %s", (size_t)(at - p->text) + 1, p->text,
                 message);
}

static void skip_blanks(parser *p) {
  while (*p->here == ' ' || *p->here == '\t' || *p->here == '\n')
    p->here++;
}

static bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_length(const char *text) {
  size_t length = 0;
  if (*text >= '0' && *text <= '9') return 0;
  while (is_name_byte(text[length]))
    length++;
  return length;
}

static bool eat_word(parser *p, const char *word) {
  skip_blanks(p);
  size_t length = strlen(word);
  if (name_length(p->here) != length || memcmp(p->here, word, length) != 0) return false;
  p->here += length;
  return true;
}

static bool eat(parser *p, const char *symbol) {
  skip_blanks(p);
  size_t length = strlen(symbol);
  if (strncmp(p->here, symbol, length) != 0) return false;
  p->here += length;
  return true;
}

static pl_code add(parser *p, node new_node, uint32_t *index) {
  if (p->where->n_nodes == MOST_NODES) return fail_at(p, p->here, "the condition is too long");
  *index = p->where->n_nodes++;
  p->where->nodes[*index] = new_node;
  return PL_OK;
}

static const node *node_at(const parser *p, uint32_t index) {
  return &p->where->nodes[index];
}

static pl_code want_number(parser *p, uint32_t index) {
  const node *n = node_at(p, index);
  return n->is_text ? fail_at(p, p->text + n->at, "a text cannot stand here; compare it, as in schedule == '1f1b'")
                    : PL_OK;
}

static pl_code join(parser *p, node_kind kind, uint32_t left, uint32_t right, uint32_t *index) {
  node joined = {.kind = (uint8_t)kind, .left = left, .right = right, .at = node_at(p, left)->at};
  return add(p, joined, index);
}

static pl_code parse_or(parser *p, uint32_t *index);

static pl_code parse_text(parser *p, uint32_t *index) {
  const char *begin = p->here, *end = strchr(begin + 1, *begin);
  if (end == NULL) return fail_at(p, begin, "the text has no closing quote");
  p->here = end + 1;
  node text = {.kind = NODE_TEXT,
               .is_text = true,
               .at = (uint32_t)(begin - p->text),
               .text = begin + 1,
               .length = (uint32_t)(end - begin - 1)};
  return add(p, text, index);
}

static pl_code parse_number(parser *p, uint32_t *index) {
  const char *begin = p->here;
  char *end;
  double value = strtod(begin, &end);
  if (begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X'))
    return fail_at(p, begin, "hexadecimal numbers are not read");
  if (is_name_byte(*end) || *end == '.') return fail_at(p, end, "the number goes on in a way that is not understood");
  p->here = end;
  return add(p, (node){.kind = NODE_NUMBER, .number = value, .at = (uint32_t)(begin - p->text)}, index);
}

static pl_code parse_name(parser *p, size_t length, uint32_t *index) {
  const char *begin = p->here;
  uint32_t at = (uint32_t)(begin - p->text), column;
  p->here += length;
  if ((length == 4 && memcmp(begin, "true", 4) == 0) || (length == 5 && memcmp(begin, "false", 5) == 0))
    return add(p, (node){.kind = NODE_NUMBER, .number = length == 4, .at = at}, index);
  if (find_column(p->columns, begin, length, &column))
    return add(p,
               (node){.kind = NODE_COLUMN, .left = column, .is_text = column_is_text(&p->columns.at[column]), .at = at},
               index);
  char list[PL_WORDS_BYTES], message[PL_ERROR_MESSAGE_BYTES];
  suggest(p->columns, begin, length, list, sizeof list);
  snprintf(message, sizeof message, "there is no column '%.*s'; near: %s", length > 40 ? 40 : (int)length, begin, list);
  return fail_at(p, begin, message);
}

static pl_code parse_operand(parser *p, uint32_t *index) {
  skip_blanks(p);
  const char *begin = p->here;
  if (eat(p, "(")) {
    PL_TRY(parse_or(p, index));
    return eat(p, ")") ? PL_OK : fail_at(p, p->here, "')' is missing");
  }
  if (*begin == '\'' || *begin == '"') return parse_text(p, index);
  if ((*begin >= '0' && *begin <= '9') || (*begin == '.' && begin[1] >= '0' && begin[1] <= '9'))
    return parse_number(p, index);
  size_t length = name_length(begin);
  if (length > 0) return parse_name(p, length, index);
  return fail_at(p, begin,
                 *begin ? "a column, a number or a 'text' is expected here" : "it ends where a value is expected");
}

static pl_code parse_unary(parser *p, uint32_t *index) {
  if (!eat(p, "-")) return parse_operand(p, index);
  uint32_t operand;
  if (++p->depth > MOST_DEPTH) return fail_at(p, p->here, "it is nested too deeply");
  PL_TRY(parse_unary(p, &operand));
  p->depth--;
  PL_TRY(want_number(p, operand));
  return join(p, NODE_NEGATE, operand, operand, index);
}

/* left-associative chain of two operators of one level */
static pl_code parse_chain(parser *p, pl_code (*lower)(parser *, uint32_t *), const char *first, node_kind first_kind,
                           const char *second, node_kind second_kind, uint32_t *index) {
  PL_TRY(lower(p, index));
  for (;;) {
    node_kind kind = first_kind;
    if (!eat(p, first)) {
      if (!eat(p, second)) return PL_OK;
      kind = second_kind;
    }
    uint32_t right;
    PL_TRY(lower(p, &right));
    PL_TRY(want_number(p, *index));
    PL_TRY(want_number(p, right));
    PL_TRY(join(p, kind, *index, right, index));
  }
}

static pl_code parse_product(parser *p, uint32_t *index) {
  return parse_chain(p, parse_unary, "*", NODE_MUL, "/", NODE_DIV, index);
}

static pl_code parse_sum(parser *p, uint32_t *index) {
  return parse_chain(p, parse_product, "+", NODE_ADD, "-", NODE_SUB, index);
}

static bool is_status(const parser *p, uint32_t index) {
  const node *n = node_at(p, index);
  return n->kind == NODE_COLUMN && strcmp(p->columns.at[n->left].name, "status") == 0;
}

/* 'oom' beside the column status becomes its number. */
static pl_code resolve_status(parser *p, uint32_t index) {
  node *n = &p->where->nodes[index];
  if (n->kind != NODE_TEXT) return PL_OK;
  for (uint32_t i = 0; pl_result_status_names[i] != NULL; i++)
    if (strlen(pl_result_status_names[i]) == n->length && memcmp(pl_result_status_names[i], n->text, n->length) == 0) {
      *n = (node){.kind = NODE_NUMBER, .number = i, .at = n->at};
      return PL_OK;
    }
  return fail_at(p, p->text + n->at, "status is one of 'pending', 'done', 'oom', 'failed'");
}

static pl_code parse_compare(parser *p, uint32_t *index) {
  static const struct {
    const char *symbol;
    node_kind kind;
  } operators[] = {{"==", NODE_EQ}, {"!=", NODE_NE}, {"<=", NODE_LE}, {">=", NODE_GE},
                   {"<", NODE_LT},  {">", NODE_GT},  {"=", NODE_EQ}};
  PL_TRY(parse_sum(p, index));
  size_t n = sizeof operators / sizeof operators[0], i = 0;
  while (i < n && !eat(p, operators[i].symbol))
    i++;
  if (i == n) return PL_OK;
  uint32_t right;
  PL_TRY(parse_sum(p, &right));
  if (is_status(p, *index)) PL_TRY(resolve_status(p, right));
  if (is_status(p, right)) PL_TRY(resolve_status(p, *index));
  if (node_at(p, *index)->is_text != node_at(p, right)->is_text)
    return fail_at(p, p->text + node_at(p, right)->at, "a number and a text cannot be compared");
  return join(p, operators[i].kind, *index, right, index);
}

static pl_code parse_not(parser *p, uint32_t *index) {
  if (++p->depth > MOST_DEPTH) return fail_at(p, p->here, "it is nested too deeply");
  if (eat_word(p, "not")) {
    uint32_t operand;
    PL_TRY(parse_not(p, &operand));
    PL_TRY(want_number(p, operand));
    PL_TRY(join(p, NODE_NOT, operand, operand, index));
  } else {
    PL_TRY(parse_compare(p, index));
  }
  p->depth--;
  return PL_OK;
}

static pl_code parse_words(parser *p, pl_code (*lower)(parser *, uint32_t *), const char *word, node_kind kind,
                           uint32_t *index) {
  PL_TRY(lower(p, index));
  while (eat_word(p, word)) {
    uint32_t right;
    PL_TRY(lower(p, &right));
    PL_TRY(want_number(p, *index));
    PL_TRY(want_number(p, right));
    PL_TRY(join(p, kind, *index, right, index));
  }
  return PL_OK;
}

static pl_code parse_and(parser *p, uint32_t *index) {
  return parse_words(p, parse_not, "and", NODE_AND, index);
}

static pl_code parse_or(parser *p, uint32_t *index) {
  return parse_words(p, parse_and, "or", NODE_OR, index);
}

pl_code pl_where_take(const char *text, pl_column_list columns, pl_arena *arena, pl_where **where, pl_error *error) {
  if (strlen(text) > MOST_TEXT)
    return pl_fail(error, PL_BAD_INPUT, "--where: the condition is longer than %d bytes", MOST_TEXT);
  const char *copy = pl_arena_strdup(arena, text);
  *where = PL_TAKE(arena, pl_where, 1);
  if (copy == NULL || *where == NULL) return pl_fail_memory(error, "the condition");
  parser p = {.text = copy, .here = copy, .where = *where, .columns = columns, .error = error};
  PL_TRY(parse_or(&p, &(*where)->root));
  skip_blanks(&p);
  if (*p.here != '\0') return fail_at(&p, p.here, "'and', 'or', a comparison or the end is expected here");
  return want_number(&p, (*where)->root);
}

/* ---- evaluation ---- */

bool pl_where_reads(const pl_where *where, uint32_t column) {
  for (uint32_t i = 0; i < where->n_nodes; i++)
    if (where->nodes[i].kind == NODE_COLUMN && where->nodes[i].left == column) return true;
  return false;
}

static int compare_texts(const pl_where_value *a, const pl_where_value *b) {
  uint32_t shorter = a->length < b->length ? a->length : b->length;
  int order = memcmp(a->text, b->text, shorter);
  return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static bool compare(node_kind kind, const pl_where_value *a, const pl_where_value *b) {
  double left = a->number, right = b->number;
  if (a->text != NULL) {
    left = compare_texts(a, b);
    right = 0;
  }
  switch (kind) {
  case NODE_EQ:
    return left == right;
  case NODE_NE:
    return left != right;
  case NODE_LT:
    return left < right;
  case NODE_LE:
    return left <= right;
  case NODE_GT:
    return left > right;
  default:
    return left >= right;
  }
}

static bool is_true(double number) {
  return number != 0 && !isnan(number);
}

static pl_where_value evaluate(const pl_where *where, uint32_t index, pl_where_get get, void *context) {
  const node *n = &where->nodes[index];
  if (n->kind == NODE_NUMBER || n->kind == NODE_TEXT)
    return (pl_where_value){.number = n->number, .text = n->text, .length = n->length};
  if (n->kind == NODE_COLUMN) return get(context, n->left);
  pl_where_value left = evaluate(where, n->left, get, context);
  if (n->kind == NODE_NOT) return (pl_where_value){.number = !is_true(left.number)};
  if (n->kind == NODE_NEGATE) return (pl_where_value){.number = -left.number};
  pl_where_value right = evaluate(where, n->right, get, context);
  double number = 0;
  switch ((node_kind)n->kind) {
  case NODE_OR:
    number = is_true(left.number) || is_true(right.number);
    break;
  case NODE_AND:
    number = is_true(left.number) && is_true(right.number);
    break;
  case NODE_ADD:
    number = left.number + right.number;
    break;
  case NODE_SUB:
    number = left.number - right.number;
    break;
  case NODE_MUL:
    number = left.number * right.number;
    break;
  case NODE_DIV:
    number = left.number / right.number;
    break;
  default:
    number = compare((node_kind)n->kind, &left, &right);
    break;
  }
  return (pl_where_value){.number = number};
}

bool pl_where_holds(const pl_where *where, pl_where_get get, void *context) {
  return is_true(evaluate(where, where->root, get, context).number);
}
