/* See workloads/ir/chain.h. A recursive descent over the text: a chain is items with commas between them, an item is a
 * layer, a residual block or branches, whose insides are chains again. */
#include "workloads/ir/chain.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8, WIDTH_MAX = 1 << 20, FILTER_MAX = 255 };

typedef struct parser {
  const char *text, *at;
  bool norm;
  int depth;
  pl_picture input; /* of the whole chain */
  pl_chain_step steps[PL_CHAIN_STEPS_MAX];
  uint32_t n_steps;
  uint8_t last; /* what the next layer reads */
  pl_error *error;
} parser;

static pl_code fail(const parser *in, const char *why) {
  return pl_fail(in->error, PL_BAD_INPUT, "'%.80s', at '%.24s': %s", in->text, in->at, why);
}

static pl_picture made_by(const parser *in, uint8_t reads) {
  return reads == 0 ? in->input : in->steps[reads - 1].out;
}

/* ---- steps ---- */

static pl_code add_step(parser *in, const pl_chain_step *step) {
  if (in->n_steps == PL_CHAIN_STEPS_MAX) return fail(in, "more layers than a block may have; make two blocks of it");
  in->steps[in->n_steps++] = *step;
  in->last = (uint8_t)in->n_steps;
  return PL_OK;
}

/* A step that leaves the picture as it is. */
static pl_code add_pointwise(parser *in, pl_chain_step_kind kind) {
  pl_picture picture = made_by(in, in->last);
  return add_step(in, &(pl_chain_step){.kind = (uint8_t)kind, .first = in->last, .in = picture, .out = picture});
}

static int32_t side_behind(int32_t side, int32_t filter, int32_t stride, bool padded) {
  return padded ? (side + stride - 1) / stride : side < filter ? 0 : (side - filter) / stride + 1;
}

/* `window`: kind, filter and stride; the picture in and out is filled in. */
static pl_code add_window(parser *in, pl_chain_step window, int32_t channels, bool padded) {
  window.first = in->last;
  window.in = made_by(in, in->last);
  window.out = (pl_picture){channels > 0 ? channels : window.in.channels,
                            side_behind(window.in.height, window.filter_height, window.stride, padded),
                            side_behind(window.in.width, window.filter_width, window.stride, padded)};
  if (window.out.height < 1 || window.out.width < 1) return fail(in, "the picture is smaller than the filter");
  return add_step(in, &window);
}

static pl_code add_convolution(parser *in, pl_chain_step window, int32_t channels, bool padded, bool relu) {
  window.kind = PL_STEP_CONVOLUTION;
  window.bias = !in->norm;
  PL_TRY(add_window(in, window, channels, padded));
  if (in->norm) PL_TRY(add_pointwise(in, PL_STEP_NORM));
  return relu ? add_pointwise(in, PL_STEP_RELU) : PL_OK;
}

/* ---- words ---- */

static void skip(parser *in) {
  while (isspace((unsigned char)*in->at))
    in->at++;
}

static bool take(parser *in, const char *word) {
  skip(in);
  size_t length = strlen(word);
  if (strncmp(in->at, word, length) != 0) return false;
  if (isalpha((unsigned char)word[0]) && isalnum((unsigned char)in->at[length])) return false;
  in->at += length;
  return true;
}

static pl_code number(parser *in, int32_t highest, int32_t *value) {
  skip(in);
  char *end;
  long long given = isdigit((unsigned char)*in->at) ? strtoll(in->at, &end, 10) : 0;
  if (given < 1 || given > highest) return fail(in, "a positive number is missing here, or is too large");
  in->at = end;
  *value = (int32_t)given;
  return PL_OK;
}

/* "7x7/2v"; a pool's "3/2v". */
static pl_code read_window(parser *in, pl_chain_step *window, bool *padded) {
  window->stride = 1;
  PL_TRY(number(in, FILTER_MAX, &window->filter_height));
  window->filter_width = window->filter_height;
  if (*in->at == 'x') {
    in->at++;
    PL_TRY(number(in, FILTER_MAX, &window->filter_width));
  }
  if (*in->at == '/') {
    in->at++;
    PL_TRY(number(in, FILTER_MAX, &window->stride));
  }
  *padded = *in->at != 'v';
  in->at += !*padded;
  return PL_OK;
}

static pl_code read_convolution(parser *in) {
  pl_chain_step window = {0};
  int32_t channels;
  bool padded;
  PL_TRY(number(in, WIDTH_MAX, &channels));
  PL_TRY(read_window(in, &window, &padded));
  return add_convolution(in, window, channels, padded, true);
}

static pl_code read_pool(parser *in, pl_chain_step_kind kind) {
  pl_chain_step window = {.kind = (uint8_t)kind};
  bool padded;
  PL_TRY(read_window(in, &window, &padded));
  return add_window(in, window, 0, padded);
}

static pl_code add_mean(parser *in) {
  pl_picture picture = made_by(in, in->last);
  return add_step(in, &(pl_chain_step){.kind = PL_STEP_MEAN_POOL,
                                       .first = in->last,
                                       .filter_height = picture.height,
                                       .filter_width = picture.width,
                                       .stride = 1,
                                       .in = picture,
                                       .out = {picture.channels, 1, 1}});
}

static pl_code read_linear(parser *in) {
  int32_t width;
  pl_picture picture = made_by(in, in->last);
  PL_TRY(number(in, WIDTH_MAX, &width));
  return add_step(
      in,
      &(pl_chain_step){.kind = PL_STEP_LINEAR, .bias = true, .first = in->last, .in = picture, .out = {width, 1, 1}});
}

/* ---- residual blocks and branches ---- */

static pl_code read_chain(parser *in);

/* The way around the block: a 1x1 convolution with the stride that the block had in all. */
static pl_code add_shortcut(parser *in, pl_picture from, pl_picture to) {
  int32_t stride = (from.height + to.height - 1) / to.height;
  pl_chain_step window = {.filter_height = 1, .filter_width = 1, .stride = stride};
  PL_TRY(add_convolution(in, window, to.channels, true, false));
  return pl_picture_equal(made_by(in, in->last), to) ? PL_OK : fail(in, "no stride makes the sizes of both ways equal");
}

static pl_code read_residual(parser *in) {
  uint8_t start = in->last;
  PL_TRY(read_chain(in));
  if (!take(in, "]")) return fail(in, "']' is missing here");
  if (in->last == start) return fail(in, "a residual block without a layer");
  if (in->steps[in->last - 1].kind == PL_STEP_RELU && in->last == in->n_steps) in->last = (uint8_t)--in->n_steps;
  uint8_t end = in->last, around = start;
  pl_picture from = made_by(in, start), to = made_by(in, end);
  if (!pl_picture_equal(from, to)) {
    in->last = start;
    PL_TRY(add_shortcut(in, from, to));
    around = in->last;
  }
  PL_TRY(add_step(in, &(pl_chain_step){.kind = PL_STEP_ADD, .first = end, .second = around, .in = to, .out = to}));
  return add_pointwise(in, PL_STEP_RELU);
}

static pl_code join(parser *in, uint8_t first, uint8_t second) {
  pl_picture a = made_by(in, first), b = made_by(in, second);
  if (a.height != b.height || a.width != b.width) return fail(in, "branches end in pictures of unlike sizes");
  int64_t channels = (int64_t)a.channels + b.channels;
  if (channels > WIDTH_MAX) return fail(in, "the branches end in more than 1048576 channels together");
  pl_picture both = {(int32_t)channels, a.height, a.width};
  return add_step(in, &(pl_chain_step){.kind = PL_STEP_JOIN, .first = first, .second = second, .in = a, .out = both});
}

static pl_code read_branches(parser *in) {
  uint8_t start = in->last, ends[PL_CHAIN_STEPS_MAX];
  uint32_t n = 0;
  do {
    if (n == PL_CHAIN_STEPS_MAX) return fail(in, "too many branches");
    in->last = start;
    PL_TRY(read_chain(in));
    ends[n++] = in->last;
  } while (take(in, "|"));
  if (!take(in, ")")) return fail(in, "')' is missing here");
  in->last = ends[0];
  for (uint32_t i = 1; i < n; i++)
    PL_TRY(join(in, in->last, ends[i]));
  return PL_OK;
}

/* ---- chains ---- */

static pl_code read_item(parser *in) {
  if (take(in, "conv")) return read_convolution(in);
  if (take(in, "max")) return read_pool(in, PL_STEP_MAX_POOL);
  if (take(in, "average")) return read_pool(in, PL_STEP_MEAN_POOL);
  if (take(in, "mean")) return add_mean(in);
  if (take(in, "linear")) return read_linear(in);
  if (take(in, "relu")) return add_pointwise(in, PL_STEP_RELU);
  if (take(in, "dropout")) return add_pointwise(in, PL_STEP_DROPOUT);
  if (take(in, "[")) return read_residual(in);
  if (take(in, "(")) return read_branches(in);
  return fail(in, "unknown layer; there are conv, max, average, mean, linear, relu, dropout, [...] and (...|...)");
}

static bool ends_chain(char c) {
  return c == '\0' || c == ']' || c == ')' || c == '|';
}

/* Empty between bars: what goes in comes out. */
static pl_code read_chain(parser *in) {
  skip(in);
  if (in->depth > 0 && ends_chain(*in->at)) return PL_OK;
  if (in->depth == DEPTH_MAX) return fail(in, "brackets inside each other are too deep");
  in->depth++;
  do
    PL_TRY(read_item(in));
  while (take(in, ","));
  in->depth--;
  skip(in);
  return ends_chain(*in->at) ? PL_OK : fail(in, "a comma or the end of the block is missing here");
}

pl_code pl_chain_parse(const char *text, pl_picture in, bool norm, pl_arena *arena, pl_chain *chain, pl_error *error) {
  parser own = {.text = text, .at = text, .norm = norm, .input = in, .error = error};
  PL_TRY(read_chain(&own));
  if (*own.at != '\0') return fail(&own, "a bracket that was not opened");
  const pl_chain_step *steps = PL_COPY(arena, pl_chain_step, own.steps, own.n_steps);
  if (steps == NULL) return pl_fail_memory(error, "the layers of a block");
  *chain = (pl_chain){.steps = steps, .n_steps = own.n_steps, .in = in, .out = made_by(&own, own.last)};
  return own.last == own.n_steps ? PL_OK : fail(&own, "the last layer's output is not used");
}

/* ---- what follows from the shapes ---- */

void pl_chain_step_product(const pl_chain_step *step, int64_t pictures, int64_t *m, int64_t *n, int64_t *k) {
  bool linear = step->kind == PL_STEP_LINEAR;
  *m = pictures * pl_picture_points(&step->out);
  *n = step->out.channels;
  *k = step->in.channels * (linear ? pl_picture_points(&step->in) : (int64_t)step->filter_height * step->filter_width);
}

static bool is_product(const pl_chain_step *step) {
  return step->kind == PL_STEP_CONVOLUTION || step->kind == PL_STEP_LINEAR;
}

double pl_chain_parameters(const pl_chain *chain) {
  double sum = 0;
  for (uint32_t i = 0; i < chain->n_steps; i++) {
    const pl_chain_step *step = &chain->steps[i];
    int64_t m, n, k;
    pl_chain_step_product(step, 1, &m, &n, &k);
    if (is_product(step)) sum += (double)n * (double)k + (step->bias ? (double)n : 0);
    if (step->kind == PL_STEP_NORM) sum += 2.0 * step->out.channels;
  }
  return sum;
}

double pl_chain_flops(const pl_chain *chain) {
  double sum = 0;
  for (uint32_t i = 0; i < chain->n_steps; i++) {
    int64_t m, n, k;
    pl_chain_step_product(&chain->steps[i], 1, &m, &n, &k);
    if (is_product(&chain->steps[i])) sum += 2 * (double)m * (double)n * (double)k;
  }
  return sum;
}
