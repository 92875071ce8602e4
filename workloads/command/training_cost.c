/* See workloads/command/training_cost.h. */
#include "workloads/command/training_cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TOKENS = 0x5a0, KEY_PRICE };

static const struct argp_option option_table[] = {
    {"tokens", KEY_TOKENS, "N", 0, "also what training on so many tokens takes (300B, 15T)", 1},
    {"price", KEY_PRICE, "MONEY", 0, "with --tokens: of an hour of one GPU, and so what it costs", 1},
    {0},
};

/* 1e12, "300B", "15T": thousand, million, billion (G too), trillion; 0: none of these. */
static double read_amount(const char *text) {
  static const char units[] = "KMBT";
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (end == text || errno != 0 || !isfinite(value) || value <= 0) return 0;
  if (*end == '\0') return value;
  const char *unit = *end == 'G' ? units + 2 : strchr(units, *end == 'k' ? 'K' : *end);
  return unit != NULL && end[1] == '\0' ? value * pow(1000, (double)(unit - units + 1)) : 0;
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_training_cost *cost = state->input;
  switch (key) {
  case KEY_TOKENS:
    cost->tokens = read_amount(value);
    if (cost->tokens == 0)
      pl_fail(&cost->error, PL_BAD_INPUT, "--tokens: '%.64s' is not a number of tokens such as 3e11, 300B or 15T",
              value);
    return 0;
  case KEY_PRICE:
    cost->price = read_amount(value);
    if (cost->price == 0)
      pl_fail(&cost->error, PL_BAD_INPUT, "--price: '%.64s' is not a price above 0, of one GPU for an hour", value);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp pl_training_cost_argp = {.options = option_table, .parser = read_option};

pl_code pl_training_cost_check(const pl_training_cost *cost, pl_error *error) {
  if (cost->error.code != PL_OK) return pl_fail(error, cost->error.code, "%s", cost->error.message);
  if (cost->price > 0 && cost->tokens == 0)
    return pl_fail(error, PL_BAD_INPUT, "--price %g: of what? add --tokens N, the length of the training", cost->price);
  return PL_OK;
}

static double seconds(const pl_training_cost *cost, double tokens_per_s) {
  return cost->tokens / tokens_per_s;
}

static double gpu_hours(const pl_training_cost *cost, double tokens_per_s, uint32_t n_devices) {
  return seconds(cost, tokens_per_s) / 3600 * n_devices;
}

/* "12.3 million", three figures. */
static const char *format_amount(double value, char text[48]) {
  static const char *const words[] = {"", " thousand", " million", " billion", " trillion"};
  int power = 0;
  for (; value >= 999.5 && power < 4; power++)
    value /= 1000;
  snprintf(text, 48, "%.3g%s", value, words[power]);
  return text;
}

void pl_training_cost_print(FILE *stream, int width, const pl_training_cost *cost, double tokens_per_s,
                            uint32_t n_devices) {
  char text[3][48];
  if (cost->tokens == 0 || !(tokens_per_s > 0)) return;
  double time_s = seconds(cost, tokens_per_s), hours = gpu_hours(cost, tokens_per_s, n_devices);
  fprintf(stream, "%-*s%s tokens: ", width, "training", format_amount(cost->tokens, text[0]));
  fprintf(stream, time_s < 86400 ? "%.3g hours" : "%.3g days", time_s < 86400 ? time_s / 3600 : time_s / 86400);
  fprintf(stream, " without a break, %s GPU hours", format_amount(hours, text[1]));
  if (cost->price > 0)
    fprintf(stream, ", a cost of %s at %g an hour", format_amount(hours * cost->price, text[2]), cost->price);
  fputc('\n', stream);
}

void pl_training_cost_json(pl_json *json, const pl_training_cost *cost, double tokens_per_s, uint32_t n_devices) {
  if (cost->tokens == 0) return;
  bool known = tokens_per_s > 0;
  double hours = gpu_hours(cost, tokens_per_s, n_devices);
  pl_json_put_number(json, "training_tokens", cost->tokens);
  pl_json_put_number(json, "training_s", known ? seconds(cost, tokens_per_s) : (double)NAN);
  pl_json_put_number(json, "training_gpu_hours", known ? hours : (double)NAN);
  if (cost->price > 0) pl_json_put_number(json, "training_cost", known ? hours * cost->price : (double)NAN);
}
