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

/* Watts of all of them; NaN: some profile does not know. */
static double power_of(const pl_cluster *cluster) {
  double power_W = 0;
  for (uint32_t d = 0; d < cluster->n_devices; d++) {
    double own_W = pl_cluster_profile(cluster, d)->power_W;
    if (!(own_W > 0)) return (double)NAN;
    power_W += own_W;
  }
  return power_W;
}

pl_training_bill pl_training_bill_of(const pl_training_cost *cost, double tokens_per_s, const pl_cluster *cluster) {
  const double none = (double)NAN;
  if (!(tokens_per_s > 0)) return (pl_training_bill){none, none, none, none};
  double time_s = cost->tokens / tokens_per_s, hours = time_s / 3600 * cluster->n_devices;
  return (pl_training_bill){.time_s = time_s,
                            .gpu_hours = hours,
                            .money = cost->price > 0 ? hours * cost->price : none,
                            .energy_J = time_s * power_of(cluster)};
}

const char *pl_format_amount(double value, char text[PL_AMOUNT_TEXT_BYTES]) {
  static const char *const words[] = {"", " thousand", " million", " billion", " trillion"};
  int power = 0;
  for (; value >= 999.5 && power < 4; power++)
    value /= 1000;
  snprintf(text, PL_AMOUNT_TEXT_BYTES, "%.3g%s", value, words[power]);
  return text;
}

const char *pl_format_energy(double energy_J, char text[PL_AMOUNT_TEXT_BYTES]) {
  static const char *const units[] = {"kWh", "MWh", "GWh", "TWh"};
  double value = energy_J / 3.6e6;
  int power = 0;
  for (; value >= 999.5 && power < 3; power++)
    value /= 1000;
  snprintf(text, PL_AMOUNT_TEXT_BYTES, "%.3g %s", value, units[power]);
  return text;
}

const char *pl_format_days(double time_s, char text[PL_AMOUNT_TEXT_BYTES]) {
  bool hours = time_s < 86400;
  snprintf(text, PL_AMOUNT_TEXT_BYTES, "%.3g %s", time_s / (hours ? 3600 : 86400), hours ? "hours" : "days");
  return text;
}

void pl_training_cost_print(FILE *stream, int width, const pl_training_cost *cost, double tokens_per_s,
                            const pl_cluster *cluster) {
  char text[4][PL_AMOUNT_TEXT_BYTES];
  if (cost->tokens == 0 || !(tokens_per_s > 0)) return;
  const pl_training_bill bill = pl_training_bill_of(cost, tokens_per_s, cluster);
  fprintf(stream, "%-*s%s tokens: %s without a break, %s GPU hours", width, "training",
          pl_format_amount(cost->tokens, text[0]), pl_format_days(bill.time_s, text[1]),
          pl_format_amount(bill.gpu_hours, text[2]));
  if (cost->price > 0)
    fprintf(stream, ", a cost of %s at %g an hour", pl_format_amount(bill.money, text[3]), cost->price);
  fprintf(stream, "\n%-*s", width, "energy");
  if (isnan(bill.energy_J))
    fputs("not known: the profile of some GPU names no power\n", stream);
  else
    fprintf(stream, "%s of the GPUs, at their power limits all the time; without hosts, switches and cooling\n",
            pl_format_energy(bill.energy_J, text[0]));
}

void pl_training_cost_json(pl_json *json, const pl_training_cost *cost, double tokens_per_s,
                           const pl_cluster *cluster) {
  if (cost->tokens == 0) return;
  const pl_training_bill bill = pl_training_bill_of(cost, tokens_per_s, cluster);
  pl_json_put_number(json, "training_tokens", cost->tokens);
  pl_json_put_number(json, "training_s", bill.time_s);
  pl_json_put_number(json, "training_gpu_hours", bill.gpu_hours);
  if (cost->price > 0) pl_json_put_number(json, "training_cost", bill.money);
  pl_json_put_number(json, "training_energy_J", bill.energy_J);
}
