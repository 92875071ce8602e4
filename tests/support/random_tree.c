/* See tests/support/random_tree.h. */
#include "tests/support/random_tree.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/status.h"
#include "tests/support/random.h"

/* ---- models ---- */

random_tree_shape random_tree_shape_of(uint64_t *random) {
  static const int32_t extents[] = {4, 8, 12, 16, 24};
  random_tree_shape own = {0};
  own.s = extents[random_below(random, 3)];
  own.h = extents[random_below(random, 4)];
  own.f = extents[random_below(random, 5)];
  own.g = extents[random_below(random, 2)];
  own.d = extents[random_below(random, 2)];
  own.n_kinds = (int32_t)random_between(random, 1, RANDOM_TREE_KINDS);
  own.n_layers = (int32_t)random_between(random, 2, 5);
  for (int32_t i = 0; i < own.n_kinds; i++)
    own.body[i] = random_u64(random);
  for (int32_t i = 0; i < own.n_layers; i++) {
    own.kind_of[i] = (int32_t)random_below(random, (uint32_t)own.n_kinds);
    own.skips[i] = i > 0 && random_below(random, 4) == 0;
  }
  return own;
}

/* One random step from %in [b,s,h] to %out [b,s,h]; names end with the step's number. */
static void write_step(FILE *to, uint64_t *random, const random_tree_shape *of, int64_t b, int32_t n, const char *in) {
  int32_t h = of->h, f = of->f, g = of->g, d = of->d;
  static const char *const pointwise[] = {"gelu", "tanh", "silu"};
  switch (random_below(random, 10)) {
  case 0: /* a perceptron of two layers */
    fprintf(to, "  %%up%d.weight = param \"up%d.weight\"() : fp32[h=%d, f=%d]\n", n, n, h, f);
    fprintf(to, "  %%up%d = product(%%%s, %%up%d.weight) {over=h}\n", n, in, n);
    fprintf(to, "  %%up%d.bias = param \"up%d.bias\"() : fp32[f=%d]\n", n, n, f);
    fprintf(to, "  %%up%d.sum = add(%%up%d, %%up%d.bias)\n", n, n, n);
    fprintf(to, "  %%active%d = %s(%%up%d.sum)\n", n, pointwise[random_below(random, 3)], n);
    fprintf(to, "  %%down%d.weight = param \"down%d.weight\"() : fp32[f=%d, h=%d]\n", n, n, f, h);
    fprintf(to, "  %%out%d = product(%%active%d, %%down%d.weight) {over=f}\n", n, n, n);
    break;
  case 1: /* heads and back */
    fprintf(to, "  %%q%d.weight = param \"q%d.weight\"() : fp32[h=%d, g=%d, d=%d]\n", n, n, h, g, d);
    fprintf(to, "  %%q%d = product(%%%s, %%q%d.weight) {over=h}\n", n, in, n);
    fprintf(to, "  %%soft%d = softmax(%%q%d) {over=d}\n", n, n);
    fprintf(to, "  %%o%d.weight = param \"o%d.weight\"() : fp32[g=%d, d=%d, h=%d]\n", n, n, g, d, h);
    fprintf(to, "  %%out%d = product(%%soft%d, %%o%d.weight) {over=(g, d)}\n", n, n, n);
    break;
  case 2: /* every token sees every token */
    fprintf(to, "  %%keys%d = rename(%%%s) {from=s, to=t}\n", n, in);
    fprintf(to, "  %%scores%d = product(%%%s, %%keys%d) {over=h}\n", n, in, n);
    fprintf(to, "  %%scaled%d = scale(%%scores%d) {by=%g}\n", n, n, 0.25 / h);
    fprintf(to, "  %%seen%d = softmax(%%scaled%d) {over=t}\n", n, n);
    fprintf(to, "  %%out%d = product(%%seen%d, %%keys%d) {over=t}\n", n, n, n);
    break;
  case 3:
    fprintf(to, "  %%norm%d.scale = param \"norm%d.scale\"() : fp32[h=%d]\n", n, n, h);
    fprintf(to, "  %%out%d = rms_norm(%%%s, %%norm%d.scale) {over=h, epsilon=1e-05}\n", n, in, n);
    break;
  case 4: /* a gate */
    fprintf(to, "  %%gate%d.weight = param \"gate%d.weight\"() : fp32[h=%d, f=%d]\n", n, n, h, f);
    fprintf(to, "  %%gate%d = product(%%%s, %%gate%d.weight) {over=h}\n", n, in, n);
    fprintf(to, "  %%most%d = sum(%%gate%d) {over=f}\n", n, n);
    fprintf(to, "  %%half%d = scale(%%most%d) {by=0.1}\n", n, n);
    fprintf(to, "  %%open%d = tanh(%%half%d)\n", n, n);
    fprintf(to, "  %%out%d = multiply(%%%s, %%open%d)\n", n, in, n);
    break;
  case 5: /* windows of tokens: halos where these are cut */
    fprintf(to, "  %%window%d.weight = param \"window%d.weight\"() : fp32[f=%d, h=%d, k=3]\n", n, n, f, h);
    fprintf(to, "  %%window%d = convolution(%%%s, %%window%d.weight) {over=h, window=s, kernel=k, padding=\"1\"}\n", n,
            in, n);
    fprintf(to, "  %%shut%d.weight = param \"shut%d.weight\"() : fp32[f=%d, h=%d]\n", n, n, f, h);
    fprintf(to, "  %%out%d = product(%%window%d, %%shut%d.weight) {over=f}\n", n, n, n);
    break;
  case 6:
    fprintf(to, "  %%out%d = %s_pool(%%%s) {window=s, size=\"3\", padding=\"1\"}\n", n,
            random_below(random, 2) == 0 ? "max" : "average", in);
    break;
  case 7: /* bags of embeddings */
    fprintf(to, "  %%ids%d = input \"ids%d\"() {below=8} : i32[b=%lld, s=%d, l=2]\n", n, n, (long long)b, of->s);
    fprintf(to, "  %%table%d.weight = param \"table%d.weight\"() : fp32[v=8, h=%d]\n", n, n, h);
    fprintf(to, "  %%rows%d = embedding(%%ids%d, %%table%d.weight) {over=v, sum=l}\n", n, n, n);
    fprintf(to, "  %%out%d = add(%%%s, %%rows%d)\n", n, in, n);
    break;
  case 8: /* pairs of tokens */
    fprintf(to, "  %%other%d = rename(%%%s) {from=s, to=t}\n", n, in);
    fprintf(to, "  %%meet%d = product(%%%s, %%other%d) {over=h}\n", n, in, n);
    fprintf(to, "  %%pairs%d = triangle(%%meet%d) {from=(s, t), to=w}\n", n, n);
    fprintf(to, "  %%all%d = sum(%%pairs%d) {over=w}\n", n, n);
    fprintf(to, "  %%few%d = scale(%%all%d) {by=%g}\n", n, n, 0.1 / (h * of->s));
    fprintf(to, "  %%wide%d = tanh(%%few%d)\n", n, n);
    fprintf(to, "  %%out%d = multiply(%%%s, %%wide%d)\n", n, in, n);
    break;
  default:
    fprintf(to, "  %%out%d = %s(%%%s)\n", n, pointwise[random_below(random, 3)], in);
  }
}

static void write_function(FILE *to, const random_tree_shape *of, int32_t kind, int64_t b, bool skips) {
  uint64_t random = of->body[kind];
  int32_t n_steps = (int32_t)random_between(&random, 1, 4);
  char in[24] = "x";
  fprintf(to, "func @layer%d%s(%%x: fp32[b=%lld, s=%d, h=%d]", kind, skips ? "s" : "", (long long)b, of->s, of->h);
  if (skips) fprintf(to, ", %%z: fp32[b=%lld, s=%d, h=%d]", (long long)b, of->s, of->h);
  fprintf(to, ") {\n");
  for (int32_t n = 0; n < n_steps; n++) {
    write_step(to, &random, of, b, n, in);
    snprintf(in, sizeof(in), "out%d", n);
    if (random_below(&random, 2) == 0) {
      fprintf(to, "  %%left%d = add(%%%s, %%x)\n", n, in);
      snprintf(in, sizeof(in), "left%d", n);
    }
  }
  if (skips) fprintf(to, "  %%joined = add(%%%s, %%z)\n", in);
  fprintf(to, "  return %%%s\n}\n", skips ? "joined" : in);
}

char *random_tree_model(const random_tree_shape *of, int32_t n_microbatches) {
  char *text;
  size_t size;
  int64_t b = RANDOM_TREE_BATCH / n_microbatches;
  FILE *to = open_memstream(&text, &size);
  PL_ASSERT(to != NULL);
  fprintf(to, "plir 1 model \"random\"\nmicrobatches %d\n", n_microbatches);
  fprintf(to, "func @data() {\n  %%x = input \"vectors\"() : fp32[b=%lld, s=%d, h=%d]\n  return %%x\n}\n", (long long)b,
          of->s, of->h);
  for (int32_t kind = 0; kind < of->n_kinds; kind++)
    for (int32_t skips = 0; skips < 2; skips++)
      for (int32_t i = 0, written = 0; i < of->n_layers && written == 0; i++)
        if (of->kind_of[i] == kind && of->skips[i] == (skips == 1)) {
          write_function(to, of, kind, b, skips == 1);
          written = 1;
        }
  fprintf(to, "func @loss(%%x: fp32[b=%lld, s=%d, h=%d]) {\n  %%square = multiply(%%x, %%x)\n", (long long)b, of->s,
          of->h);
  fprintf(to, "  %%total = sum(%%square) {over=(b, s, h)}\n  %%mean = scale(%%total) {by=%.17g}\n  loss(%%mean)\n}\n",
          1.0 / (RANDOM_TREE_BATCH * of->s));
  fprintf(to, "func @main() {\n  %%x0 = call @data \"data\"()\n");
  for (int32_t i = 0; i < of->n_layers; i++) {
    fprintf(to, "  %%x%d = call @layer%d%s \"h.%d\"(%%x%d", i + 1, of->kind_of[i], of->skips[i] ? "s" : "", i, i);
    if (of->skips[i]) fprintf(to, ", %%x%d", i - 1);
    fprintf(to, ")\n");
  }
  fprintf(to, "  call @loss \"loss\"(%%x%d)\n}\nclass all {\n  chunk 0 forward @main\n  steps", of->n_layers);
  for (int32_t m = 0; m < n_microbatches; m++)
    fprintf(to, " F0.%d", m);
  fprintf(to, "\n}\n");
  fclose(to);
  return text;
}

/* ---- trees ---- */

/* "{b: 2, f|h: 4}" of `devices` or some of them, of batches of `b`. */
static void write_partition(FILE *to, uint64_t *random, int32_t devices, int32_t b, bool *cuts_batch) {
  static const char *const dims[] = {"b",     "f|g|h", "g|f|h", "h|f",   "f|h", "d|f|h",    "g|s|h",
                                     "f|g|s", "s",     "b|s",   "v|f|g", "s|b", "replicate"};
  uint32_t used[4];
  int32_t n_used = 0;
  fprintf(to, "{");
  while (devices > 1 && n_used < 3) {
    int32_t degree = random_divisor(random, devices);
    uint32_t dim = random_below(random, random_below(random, 3) > 0 ? 3 : sizeof(dims) / sizeof(dims[0]));
    bool again = degree == 1 || (dims[dim][0] == 'b' && b % degree != 0);
    for (int32_t i = 0; i < n_used; i++)
      again = again || dims[used[i]][0] == dims[dim][0];
    if (again && random_below(random, 8) > 0) continue;
    if (again) break;
    fprintf(to, "%s%s: %d", n_used > 0 ? ", " : "", dims[dim], degree);
    *cuts_batch = *cuts_batch || dims[dim][0] == 'b';
    used[n_used++] = dim;
    devices /= degree;
  }
  fprintf(to, "}");
}

/* NULL: nothing is said. */
static const char *random_memory(uint64_t *random) {
  static const char *const memories[] = {
      "{states: b}",  "{states: b, gradients: b}",           "{states: b, gradients: b, parameters: b}", "{kept: b}",
      "{kept: host}", "{states: [b, host], kept: [b, host]}"};
  uint32_t which = random_below(random, 18), n = sizeof memories / sizeof memories[0];
  return which < n ? memories[which] : NULL;
}

/* Of a layer, of an op in it or in all layers, of all products. */
static void write_child(FILE *to, uint64_t *random, uint32_t layer, int32_t devices, int32_t b, bool *cuts_batch) {
  static const char *const inside[] = {".out0", ".out*", ".left*", ".up0", ".gate*"};
  static const char *const recompute[] = {"full", "selective", "none"};
  uint32_t what = random_below(random, 8);
  if (what == 0)
    fprintf(to, "  - {match: h.*, ops: [product, gelu]");
  else if (what < 4)
    fprintf(to, "  - {match: h.%u%s", layer, inside[random_below(random, what == 1 ? 5 : 2)]);
  else
    fprintf(to, "  - {match: h.%u", layer);
  fprintf(to, ", partition: ");
  write_partition(to, random, devices, b, cuts_batch);
  const char *memory = random_memory(random);
  if (*cuts_batch && memory != NULL) fprintf(to, ", memory: %s", memory);
  if (what >= 4 && random_below(random, 3) == 0)
    fprintf(to, ", schedule: {recompute: %s}", recompute[random_below(random, 3)]);
  if (what < 4 && random_below(random, 2) == 0) /* of these ops alone: made again, or kept where the layer is not */
    fprintf(to, ", schedule: {recompute: %s}", recompute[2 * random_below(random, 2)]);
  fprintf(to, "}\n");
}

/* Two stages of unlike numbers of devices, one a divisor of the other, in any order: children of the root. */
static void write_unlike_stages(FILE *to, uint64_t *random, const random_tree_shape *of, int32_t large, int32_t b,
                                bool *cuts_batch) {
  int32_t small = random_divisor(random, large), cut = (int32_t)random_between(random, 1, (uint32_t)of->n_layers - 1);
  bool first_is_small = random_below(random, 2) == 0, turned = random_below(random, 2) == 0;
  int32_t first = first_is_small ? small : large, second = first_is_small ? large : small;
  fprintf(to, "  - {match: [data, h.0-%d], devices: ", cut - 1);
  if (turned) { /* the platform's devices the other way round */
    fprintf(to, "[");
    for (int32_t i = first; i-- > 0;)
      fprintf(to, "%d%s", second + i, i > 0 ? ", " : "], partition: ");
  } else {
    fprintf(to, "0-%d, partition: ", first - 1);
  }
  write_partition(to, random, first, b, cuts_batch);
  fprintf(to, "}\n  - {match: [h.%d-%d, loss], devices: %d-%d, partition: ", cut, of->n_layers - 1, turned ? 0 : first,
          (turned ? 0 : first) + second - 1);
  write_partition(to, random, second, b, cuts_batch);
  fprintf(to, "}\n");
}

/* Some layers in pieces of a microbatch, one of them perhaps in pieces of these. */
static void write_pieces(FILE *to, uint64_t *random, int32_t n_layers) {
  uint32_t first = random_below(random, (uint32_t)n_layers);
  uint32_t last = (uint32_t)random_between(random, first, (uint32_t)n_layers - 1), inner = random_below(random, 2);
  fprintf(to, "  - {match: [h.%u-%u%s], schedule: {microbatches: 2%s}", first, last,
          random_below(random, 2) == 0 && last + 1 == (uint32_t)n_layers ? ", loss" : "",
          random_below(random, 2) == 0 ? ", kind: breadth-first" : "");
  if (inner) fprintf(to, ", children: [{match: h.%u, schedule: {microbatches: 2, recompute: full}}]", last);
  fprintf(to, "}\n");
}

char *random_tree_text(uint64_t *random, const random_tree_shape *of, int32_t *n_microbatches) {
  static const char *const kinds[] = {"1f1b", "gpipe", "fifo"};
  char *text;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  PL_ASSERT(to != NULL);
  int32_t stages = random_below(random, 2) == 0 ? 1 : (int32_t)random_between(random, 2, (uint32_t)of->n_layers);
  int32_t each = (int32_t)random_between(random, stages == 1 ? 2 : 1, (uint32_t)(16 / stages));
  if (random_below(random, 4) > 0) /* 6 and 12 are hard to refine */
    while ((each & (each - 1)) != 0)
      each--;
  *n_microbatches = 1 << random_below(random, 3);
  bool chunked = stages == 2 && of->n_layers >= 4 && *n_microbatches >= 2 && random_below(random, 3) == 0;
  bool unlike = stages == 2 && !chunked && random_below(random, 2) == 0;
  if (stages > 1 && !unlike) fprintf(to, "pipeline: {stages: %d%s}\n", stages, chunked ? ", chunks: 2" : "");
  if (!unlike) fprintf(to, "devices: 0-%d\n", stages * each - 1);
  fprintf(to, "schedule: {microbatches: %d", *n_microbatches);
  if (!chunked) fprintf(to, ", kind: %s", kinds[random_below(random, 3)]);
  fprintf(to, "}\npartition: ");
  bool cuts_batch = false;
  write_partition(to, random, each, RANDOM_TREE_BATCH / *n_microbatches, &cuts_batch);
  fprintf(to, "\n");
  const char *memory = random_memory(random);
  if (cuts_batch && memory != NULL) fprintf(to, "memory: %s\n", memory);
  int32_t n_children = (int32_t)random_below(random, 3), first = (int32_t)random_below(random, 5);
  bool pieces = random_below(random, 3) == 0;
  if (n_children > 0 || unlike || pieces) fprintf(to, "children:\n");
  if (unlike) write_unlike_stages(to, random, of, each, RANDOM_TREE_BATCH / *n_microbatches, &cuts_batch);
  for (int32_t i = 0; i < n_children; i++)
    write_child(to, random, (uint32_t)((i + first) % of->n_layers), each, RANDOM_TREE_BATCH / *n_microbatches,
                &cuts_batch);
  if (pieces) write_pieces(to, random, of->n_layers);
  fclose(to);
  return text;
}
