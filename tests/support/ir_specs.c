/* See tests/support/ir_specs.h. */
#include "tests/support/ir_specs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/random.h"

/* clang-format off */
#define NORM "over=h, epsilon=0.01"
#define CONVOLUTION "over=c, window=y, kernel=d, padding=5, padding_after=6" /* d is 12: y stays as it is */
#define POOL "window=y, size=3, padding=1"
const ir_spec ir_specs[] = {
    {"product", "over=h", {"bsh", "hf"}, NULL},
    {"product", "over=d, order=(b,g,r,s,t)", {"bsgrd", "btgd"}, NULL},
    {"product", "over=x", {"xbs", "xbsf"}, NULL},
    {"product", "over=h, order=(s,b)", {"hb", "sh"}, NULL},
    {"product", "", {"bs", "bt"}, NULL},
    {"add", "", {"bsh", "bsh"}, NULL}, {"add", "", {"bsh", "hs"}, NULL},
    {"subtract", "", {"bsh", "shb"}, NULL}, {"subtract", "", {"bsh", "h"}, NULL},
    {"multiply", "", {"bsh", "bsh"}, NULL}, {"multiply", "", {"bsh", "hb"}, NULL},
    {"divide", "", {"bsh", "+bsh"}, NULL}, {"divide", "", {"bsh", "+s"}, NULL},
    {"scale", "by=-0.7", {"bsh"}, NULL}, {"copy", "", {"bsh"}, NULL}, {"copy", "launches=8", {"hf"}, NULL},
    {"constant", "value=1.5", {NULL}, "bs"},
    {"part", "over=s, first=2", {"bSh"}, "bsh"}, {"pad", "over=s, first=2", {"bsh"}, "bSh"},
    {"sum", "over=(b,h)", {"bsh"}, NULL},
    {"maximum", "over=(b,h)", {"bsh"}, NULL},
    {"spread", "", {"sh"}, "bhst"},
    {"rename", "from=s, to=t", {"bsh"}, NULL},
    {"cast", "", {"bsh"}, "shb"},
    {"gelu", "", {"bs"}, NULL}, {"silu", "", {"bs"}, NULL}, {"relu", "", {"bs"}, NULL}, {"tanh", "", {"bs"}, NULL},
    {"exp", "", {"bs"}, NULL}, {"log", "", {"+bs"}, NULL}, {"reciprocal", "", {"+bs"}, NULL},
    {"gelu_backward", "", {"bs", "sb"}, NULL}, {"silu_backward", "", {"bs", "bs"}, NULL},
    {"relu_backward", "", {"bs", "bs"}, NULL}, {"signs", "", {"bs"}, NULL}, {"tanh_backward", "", {"bs", "bs"}, NULL},
    {"sigmoid", "", {"bs"}, NULL}, {"softplus", "", {"bs"}, NULL},
    {"hard_sigmoid", "", {"*bs"}, NULL}, {"hard_swish", "", {"*bs"}, NULL},
    {"hard_sigmoid_backward", "", {"*bs", "sb"}, NULL}, {"hard_swish_backward", "", {"*bs", "bs"}, NULL},
    {"sigmoid_backward", "", {"bs", "bs"}, NULL}, {"softplus_backward", "", {"bs", "sb"}, NULL},
    {"state_space_scan", "over=s, chunk=2", {"bsgrd", "bsgr", "gr", "bsgn", "nbsg", "gr"}, NULL},
    {"state_space_scan_backward", "over=s, chunk=2", {"bsgrd", "bsgr", "gr", "bsgn", "nbsg", "rg", "dbsgr"}, NULL},
    {"delta_rule_scan", "over=s, chunk=2", {"bsgd", "gbsd", "bsgre", "bsgr", "bsrg"}, NULL},
    {"delta_rule_scan_backward", "over=s, chunk=2", {"bsgd", "gbsd", "bsgre", "bsgr", "bsrg", "besgr"}, NULL},
    {"dropout", "p=0.3, seed=7", {"bsh"}, NULL},
    {"softmax", "over=v", {"bsv"}, NULL}, {"softmax", "over=s", {"bsv"}, NULL},
    {"mask", "causal=1, otherwise=0.5", {"bsgt", "#s<s", "#t<t"}, NULL},
    {"mask", "window=2, alibi=(g,r), slope=0.5, otherwise=-3", {"tgsbr", "#s<s", "#t<t"}, NULL},
    {"softmax_backward", "over=v", {"bsv", "vbs"}, NULL},
    {"layer_norm", NORM, {"bsh", "h", "h"}, NULL}, {"layer_norm", NORM, {"bsh", "sh", "hs"}, NULL},
    {"rms_norm", NORM, {"bsgh", "h"}, NULL}, {"rms_norm", "over=(g,r), epsilon=0.01", {"bgr", "gr"}, NULL},
    {"layer_norm_backward", NORM, {"bsh", "h", "sbh"}, NULL},
    {"rms_norm_backward", NORM, {"bsh", "sh", "bsh"}, NULL},
    {"adam", "rate=0.1, beta1=0.9, beta2=0.95, epsilon=0.001", {"hf", "fh", "hf", "+hf"}, NULL},
    {"sgd", "rate=0.1", {"hf", "fh"}, NULL},
    {"embedding", "over=v", {"#bs<v", "vh"}, NULL},
    {"embedding_backward", "over=v", {"#bs<v", "bsh"}, "vh"},
    {"embedding", "over=v, sum=l", {"#bxl<v", "xvh"}, NULL},
    {"embedding_backward", "over=v, sum=(s,l)", {"#bxsl<v", "bxh"}, "xvh"},
    {"pick", "over=v", {"bsv", "#bs<v"}, NULL},
    {"place", "over=v", {"bs", "#bs<v"}, "bsv"},
    {"rotary", "over=d", {"bsgd", "#s<s"}, NULL},
    {"top_k", "over=x, k=2, normalise=1", {"+bsx"}, NULL},
    {"top_k_backward", "over=x, k=2, normalise=1", {"+bsx", "+bsx", "bsx"}, NULL},
    {"attention", "causal=1", {"bsgrd", "btgd", "btge", "#s<s", "#t<t"}, NULL},
    {"attention_backward", "", {"bsgrd", "btgd", "btge", "bsgre", "+bsgr", "bsgre"}, NULL},
    {"attention_merge", "", {"bsgre", "bsgr", "bsgre", "bsgr"}, NULL},
    {"attention_merge_backward", "", {"bsgre", "bsgr", "bsgre", "bsgr", "bsgre", "bsgr", "bsgre"}, NULL},
    {"convolution", CONVOLUTION, {"bcy", "ocd"}, NULL},
    {"convolution", "over=c, window=(y,x), kernel=(p,q), stride=2x1, padding=2", {"bycgx", "gqcpo"}, NULL},
    {"convolution_backward_data", CONVOLUTION, {"boy", "ocd"}, "bcy"},
    {"convolution_backward_weights", CONVOLUTION, {"bcy", "yob"}, "ocd"},
    {"max_pool", POOL, {"bcy"}, NULL}, {"max_pool_backward", POOL, {"bcy", "byc"}, NULL},
    {"average_pool", POOL, {"bcy"}, NULL}, {"average_pool_backward", POOL ", inside=1", {"byc"}, "bcy"},
    {"batch_norm", "over=(b,y), epsilon=0.01", {"bcy", "c", "c"}, NULL},
    {"batch_norm_backward", "over=(b,y), epsilon=0.01", {"bcgy", "c", "ycgb"}, NULL},
    {"concatenate", "over=c", {"bcy", "yCb"}, NULL},
    {"deal", "over=d", {"bd"}, NULL}, {"interleave", "over=c", {"bcy", "ycb"}, NULL},
    {"split", "from=d, to=(y,x)", {"bd"}, "x=2 b y=6"},
    {"join", "from=(y,x), to=s", {"xby"}, NULL},
    {"triangle", "from=(y,x), to=t", {"y=5 b x=5"}, NULL},
    {"triangle", "from=(y,x), to=t, itself=1", {"b x=4 y=4 c"}, NULL},
    {"triangle_backward", "from=(x,y), to=t", {"b t=10 c"}, "x=5 b y=5 c"},
    {NULL, NULL, {NULL}, NULL}};
#undef CONVOLUTION
#undef POOL
/* clang-format on */

typedef int64_t letter_extents[128];

/* "b=6 s=2" of "bs"; a capital: six more of that dimension. An extent may be written: "b x=2". */
static const char *dims_text(const char *letters, const letter_extents extents, char text[96]) {
  size_t used = 0;
  text[0] = 0;
  for (; isalpha(*letters); letters += strspn(letters, " ")) {
    int name = tolower(*letters), more = isupper(*letters) ? 6 : 0;
    char *end = NULL;
    long extent = letters[1] == '=' ? strtol(letters + 2, &end, 10) : (long)extents[name] + more;
    used += (size_t)snprintf(text + used, 96 - used, " %c=%ld", name, extent);
    letters = end != NULL ? end : letters + 1;
  }
  return text;
}

static void add_operand(ir_case *one, const char *operand, const letter_extents extents) {
  char text[96];
  const char *below = strchr(operand, '<');
  if (below != NULL) {
    (void)ir_case_integers(one, dims_text(operand + 1, extents, text), (int32_t)extents[(int)below[1]]);
    return;
  }
  bool positive = operand[0] == '+', wide = operand[0] == '*';
  double most = wide ? 6 : 1;
  double *data =
      ir_case_between(one, dims_text(operand + (positive || wide), extents, text), positive ? 0 : -most, most);
  for (int64_t i = 0, n = (int64_t)pl_ir_type_elements(&one->in[one->op.n_inputs - 1]); i < n; i++)
    data[i] += data[i] < 0 ? -0.1 : 0.1; /* relu has no derivative at zero */
}

void ir_spec_case(const ir_spec *spec, uint64_t *random, pl_arena *arena, ir_case *one) {
  static const int64_t choices[] = {2, 3, 6, 6};
  letter_extents extents = {0};
  char text[96];
  for (int letter = 'a'; letter <= 'z'; letter++)
    extents[letter] = letter == 'd' ? 12 : choices[random_below(random, 4)]; /* halves of thirds are whole */
  uint64_t seed = random_u64(random);
  ir_case_init(one, arena, seed, spec->row, spec->attributes != NULL ? spec->attributes : "");
  for (int k = 0; k < IR_CASE_OPERANDS && spec->operands[k] != NULL; k++)
    add_operand(one, spec->operands[k], extents);
  if (spec->written != NULL) ir_case_written(one, dims_text(spec->written, extents, text));
  ir_case_compute(one);
}
