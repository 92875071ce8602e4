/* Reads the text form of a strategy (see workloads/strategy/strategy.h). One table of keys; each message names key and
 * value. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "workloads/strategy/listed_schedule.h"

enum { LARGEST_DEGREE = 1 << 24 };

typedef struct key_value {
  const char *key;
  const char *value;
} key_value;

typedef struct parsing {
  const pl_model *model;
  pl_arena *arena;
  pl_strategy *strategy;
  const char *assign, *placement, *split; /* read last: they need the degrees */
  bool schedule_given, vpp_given, etp_is_tmp;
  pl_error *error;
} parsing;

static pl_code read_integer(parsing *state, const key_value *pair, int64_t lowest, int64_t highest, int32_t *value) {
  char what[64];
  snprintf(what, sizeof what, "strategy: %s", pair->key);
  int64_t number = 0;
  PL_TRY(pl_parse_integer(pair->value, what, lowest, highest, &number, state->error));
  *value = (int32_t)number;
  return PL_OK;
}

static pl_code read_choice(parsing *state, const key_value *pair, const char *const *choices, int *chosen) {
  *chosen = pl_words_find(choices, pair->value);
  if (*chosen >= 0) return PL_OK;
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  return pl_fail(state->error, PL_BAD_INPUT, "strategy: %s=%s is unknown; choose one of %s%s", pair->key, pair->value,
                 pl_words_list(choices, list, sizeof list), pl_words_hint(choices, pair->value, hint));
}

static pl_code read_degree(parsing *state, const key_value *pair) {
  pl_strategy *strategy = state->strategy;
  int32_t *target = strcmp(pair->key, "pp") == 0    ? &strategy->pp
                    : strcmp(pair->key, "dp") == 0  ? &strategy->dp
                    : strcmp(pair->key, "tmp") == 0 ? &strategy->tmp
                    : strcmp(pair->key, "mbs") == 0 ? &strategy->mbs
                    : strcmp(pair->key, "cp") == 0  ? &strategy->cp
                    : strcmp(pair->key, "ep") == 0  ? &strategy->ep
                    : strcmp(pair->key, "etp") == 0 ? &strategy->etp
                                                    : &strategy->vpp;
  state->vpp_given |= target == &strategy->vpp;
  if (target == &strategy->etp && strcmp(pair->value, "tmp") == 0) {
    state->etp_is_tmp = true;
    return PL_OK;
  }
  return read_integer(state, pair, 1, LARGEST_DEGREE, target);
}

static pl_code read_flag(parsing *state, const key_value *pair) {
  int32_t value = 0;
  PL_TRY(read_integer(state, pair, 0, 1, &value));
  if (strcmp(pair->key, "sp") == 0) {
    state->strategy->sp = value != 0;
  } else if (strcmp(pair->key, "idle") == 0) {
    state->strategy->idle = value != 0;
  } else {
    state->strategy->overlap = value != 0;
    state->strategy->overlap_is_given = true;
  }
  return PL_OK;
}

static pl_code read_ep_overlap(parsing *state, const key_value *pair) {
  static const char *const columns[] = {"0", "1", "2", "3", NULL}; /* as results have it */
  static const char *const offered[] = {"off", "on", NULL};        /* as spaces of candidates have it */
  int found = pl_words_find(pl_ep_overlap_names, pair->value);
  if (found < 0) found = pl_words_find(columns, pair->value);
  if (found < 0) found = pl_words_find(offered, pair->value);
  if (found < 0)
    return pl_fail(state->error, PL_BAD_INPUT,
                   "strategy: ep_overlap='%.32s': 0, 1 (a pass beside another), delayed (likewise, with gradients of "
                   "weights put off) or shared (shared experts beside the exchange)",
                   pair->value);
  state->strategy->ep_overlap = (uint8_t)found;
  return PL_OK;
}

static pl_code read_zero(parsing *state, const key_value *pair) {
  return read_integer(state, pair, 0, 3, &state->strategy->zero);
}

static pl_code read_shard(parsing *state, const key_value *pair) {
  return read_integer(state, pair, 0, LARGEST_DEGREE, &state->strategy->shard);
}

static pl_code read_schedule(parsing *state, const key_value *pair) {
  int chosen = 0;
  if (pair->value[0] == '@') {
    state->strategy->schedule = PL_SCHEDULE_LISTED;
    state->schedule_given = true;
    return pl_listed_schedule_read(pair->value + 1, state->arena, &state->strategy->listed, state->error);
  }
  PL_TRY(read_choice(state, pair, pl_schedule_names, &chosen));
  state->strategy->schedule = (pl_schedule_kind)chosen;
  state->schedule_given = true;
  return PL_OK;
}

static pl_code read_recompute(parsing *state, const key_value *pair) {
  int chosen = 0;
  PL_TRY(read_choice(state, pair, pl_recompute_names, &chosen));
  state->strategy->recompute = (pl_recompute)chosen;
  return PL_OK;
}

static pl_code read_offload(parsing *state, const key_value *pair) {
  int chosen = 0;
  PL_TRY(read_choice(state, pair, pl_offload_names, &chosen));
  pl_strategy_set_offload(state->strategy, chosen);
  return PL_OK;
}

static pl_code read_recompute_layers(parsing *state, const key_value *pair) {
  return read_integer(state, pair, 0, LARGEST_DEGREE, &state->strategy->recompute_layers);
}

bool pl_strategy_text_is_of_programs(const char *text) {
  static const char *const keys[] = {"offload=", "recompute_layers="}, *const nothing[] = {"none", "0"};
  static const char dualpipe[] = "schedule=dualpipe";
  for (const char *at = text; (at = strstr(at, dualpipe)) != NULL; at++) {
    char end = at[strlen(dualpipe)];
    if ((at == text || at[-1] == ',') && (end == '\0' || end == ',')) return true;
  }
  for (int i = 0; i < 2; i++)
    for (const char *at = text; (at = strstr(at, keys[i])) != NULL; at++) {
      const char *value = at + strlen(keys[i]);
      size_t length = strlen(nothing[i]);
      bool is_nothing = strncmp(value, nothing[i], length) == 0 && (value[length] == 0 || value[length] == ',');
      if ((at == text || at[-1] == ',') && !is_nothing) return true;
    }
  return false;
}

bool pl_strategy_is_order(const char *text) {
  size_t length = strlen(text);
  if (length != 3 && length != 4) return false;
  return strchr(text, 't') && strchr(text, 'd') && strchr(text, 'p') && (length == 3 || strchr(text, 'c'));
}

static pl_code read_order(parsing *state, const key_value *pair) {
  const char *order = pair->value;
  if (!pl_strategy_is_order(order))
    return pl_fail(state->error, PL_BAD_INPUT,
                   "strategy: order=%s is not a permutation of t, d, p (innermost first, e.g. tdp) or of t, c, d, p",
                   order);
  memcpy(state->strategy->order, order, strlen(order) + 1);
  return PL_OK;
}

static pl_code read_context_communication(parsing *state, const key_value *pair) {
  static const char *const names[] = {"p2p", "gather", NULL};
  int chosen = 0;
  PL_TRY(read_choice(state, pair, names, &chosen));
  state->strategy->cp_gather = chosen == 1;
  return PL_OK;
}

static pl_code read_assign(parsing *state, const key_value *pair) {
  state->assign = pair->value;
  return PL_OK;
}

static pl_code read_split(parsing *state, const key_value *pair) {
  state->split = pair->value;
  return PL_OK;
}

static pl_code read_placement(parsing *state, const key_value *pair) {
  state->placement = pair->value;
  return PL_OK;
}

static const struct {
  const char *key;
  pl_code (*read)(parsing *state, const key_value *pair);
} keys[] = {
    {"pp", read_degree},
    {"dp", read_degree},
    {"tmp", read_degree},
    {"mbs", read_degree},
    {"assign", read_assign},
    {"schedule", read_schedule},
    {"vpp", read_degree},
    {"sp", read_flag},
    {"recompute", read_recompute},
    {"zero", read_zero},
    {"overlap", read_flag},
    {"order", read_order},
    {"cp", read_degree},
    {"ep", read_degree},
    {"etp", read_degree},
    {"cp_comm", read_context_communication},
    {"idle", read_flag},
    {"placement", read_placement},
    {"split", read_split},
    {"shard", read_shard},
    {"offload", read_offload},
    {"recompute_layers", read_recompute_layers},
    {"ep_overlap", read_ep_overlap},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static pl_code read_pair(parsing *state, char *item, uint32_t *seen) {
  char *equals = strchr(item, '=');
  if (equals == NULL)
    return strpbrk(item, "./") != NULL && access(item, F_OK) == 0
               ? pl_fail(state->error, PL_BAD_INPUT,
                         "strategy: '%s' is a file; of files trees are read (.yaml), and a tuple is given as it is "
                         "(e.g. pp=4,dp=4,tmp=1,mbs=1)",
                         item)
               : pl_fail(state->error, PL_BAD_INPUT,
                         "strategy: '%s' is not key=value (e.g. pp=4,dp=4,tmp=1,mbs=1), nor a strategy tree ('paceline "
                         "list strategies' lists those that come with Paceline)",
                         item);
  *equals = '\0';
  const key_value pair = {item, equals + 1};
  for (uint32_t i = 0; i < N_KEYS; i++) {
    if (strcmp(pair.key, keys[i].key) != 0) continue;
    if (*seen & (1u << i)) return pl_fail(state->error, PL_BAD_INPUT, "strategy: %s is given twice", pair.key);
    *seen |= 1u << i;
    return keys[i].read(state, &pair);
  }
  const char *names[N_KEYS + 1] = {NULL};
  char hint[PL_WORDS_HINT_BYTES];
  for (uint32_t i = 0; i < N_KEYS; i++)
    names[i] = keys[i].key;
  return pl_fail(
      state->error, PL_BAD_INPUT,
      "strategy: unknown key '%s'; known are pp, dp, tmp, mbs, assign, schedule, vpp, sp, recompute, zero, "
      "overlap, order, cp, cp_comm, ep, etp, ep_overlap, placement, idle, split, shard, offload, recompute_layers%s",
      pair.key, pl_words_hint(names, pair.key, hint));
}

/* ---- the assignment ---- */

static pl_code count_boundaries(parsing *state, int32_t n_given) {
  int32_t n_chunks = pl_strategy_n_chunks(state->strategy);
  if (n_given == n_chunks + 1) return PL_OK;
  return pl_fail(state->error, PL_BAD_INPUT,
                 "strategy: assign=%s has %d boundaries; pp=%d * vpp=%d stages need %d (from 0 to the last layer)",
                 state->assign, n_given, state->strategy->pp, state->strategy->vpp, n_chunks + 1);
}

/* Counted in layers two boundaries may be the same: in front of the layers are two blocks and behind them four, and the
 * first stage may hold those alone, or the last. "0:0:12:24:24" of 24 layers are four stages. */
static bool holds_ends_alone(const parsing *state, const int32_t *boundary, int32_t n, int32_t i) {
  int32_t n_layers = state->model->n_layers;
  if (boundary[n - 1] != n_layers || boundary[i] != boundary[i - 1]) return false;
  return (i == 1 && boundary[i] == 0) || (i == n - 1 && n > 2);
}

static pl_code check_boundaries(parsing *state, const int32_t *boundary, int32_t n) {
  const pl_model *model = state->model;
  if (boundary[0] != 0)
    return pl_fail(state->error, PL_BAD_INPUT, "strategy: assign=%s must start at 0, not %d", state->assign,
                   boundary[0]);
  for (int32_t i = 1; i < n; i++)
    if (boundary[i] <= boundary[i - 1] && !holds_ends_alone(state, boundary, n, i))
      return pl_fail(state->error, PL_BAD_INPUT, "strategy: assign=%s is not increasing: %d comes after %d",
                     state->assign, boundary[i], boundary[i - 1]);
  int32_t last = boundary[n - 1];
  if (last != model->n_layers && last != pl_model_n_blocks(model))
    return pl_fail(
        state->error, PL_BAD_INPUT,
        "strategy: assign=%s ends at %d; %s has %d transformer layer%s (%d blocks with embedding, norm, head "
        "and loss): end at one of these",
        state->assign, last, model->name, model->n_layers, model->n_layers == 1 ? "" : "s", pl_model_n_blocks(model));
  return PL_OK;
}

static void store_boundaries(parsing *state, int32_t *boundary, int32_t n) {
  pl_strategy *strategy = state->strategy;
  strategy->counts_layers = boundary[n - 1] == state->model->n_layers;
  if (strategy->counts_layers) {
    for (int32_t i = 1; i < n - 1; i++)
      boundary[i] += PL_MODEL_BLOCKS_BEFORE_LAYERS;
    boundary[n - 1] = pl_model_n_blocks(state->model);
  }
  strategy->recipe = PL_ASSIGN_GIVEN;
  strategy->boundary = boundary;
}

static pl_code check_chunks(const parsing *state) {
  int64_t n_chunks = (int64_t)state->strategy->pp * state->strategy->vpp;
  if (n_chunks <= LARGEST_DEGREE) return PL_OK;
  return pl_fail(state->error, PL_BAD_INPUT, "strategy: pp=%d * vpp=%d = %" PRId64 " stages are more than %d",
                 state->strategy->pp, state->strategy->vpp, n_chunks, LARGEST_DEGREE);
}

static pl_code parse_assign(parsing *state) {
  pl_strategy *strategy = state->strategy;
  strategy->assign_is_given = state->assign != NULL;
  strategy->recipe = PL_ASSIGN_UNIFORM;
  if (state->assign == NULL) return PL_OK;
  for (int recipe = PL_ASSIGN_UNIFORM; pl_assign_names[recipe] != NULL; recipe++)
    if (strcmp(state->assign, pl_assign_names[recipe]) == 0) {
      strategy->recipe = (pl_assign_recipe)recipe;
      return PL_OK;
    }
  int32_t n = 1;
  for (const char *c = state->assign; *c != '\0'; c++)
    n += *c == ':';
  PL_TRY(count_boundaries(state, n));
  int32_t *boundary = PL_TAKE(state->arena, int32_t, n);
  char *text = pl_arena_strdup(state->arena, state->assign);
  if (boundary == NULL || text == NULL) return pl_fail_memory(state->error, "the layer assignment");
  char *rest = text;
  for (int32_t i = 0; i < n; i++) {
    const key_value pair = {"assign", strsep(&rest, ":")};
    PL_TRY(read_integer(state, &pair, 0, LARGEST_DEGREE, &boundary[i]));
  }
  PL_TRY(check_boundaries(state, boundary, n));
  store_boundaries(state, boundary, n);
  return PL_OK;
}

/* Degrees are at most 2^24 each: their product may overflow. */
static pl_code parse_placement(parsing *state) {
  const pl_strategy *own = state->strategy;
  const int32_t degrees[] = {own->pp, own->dp, own->tmp, pl_strategy_cp(own)};
  if (state->placement == NULL) return PL_OK;
  int64_t n_ranks = 1;
  for (int i = 0; i < 4 && n_ranks <= LARGEST_DEGREE; i++)
    n_ranks *= degrees[i];
  if (n_ranks > LARGEST_DEGREE)
    return pl_fail(state->error, PL_BAD_INPUT, "strategy: placement= of more than %d ranks", LARGEST_DEGREE);
  return pl_strategy_parse_placement(state->placement, n_ranks, state->arena, &state->strategy->placement,
                                     state->error);
}

/* The first four keys are degrees. */
static pl_code assume_degrees(parsing *state, uint32_t seen) {
  pl_strategy *strategy = state->strategy;
  int32_t *const degrees[] = {&strategy->pp, &strategy->dp, &strategy->tmp};
  static const uint8_t bits[] = {PL_ASSUMED_PP, PL_ASSUMED_DP, PL_ASSUMED_TMP};
  if (!(seen & 8u))
    return pl_fail(state->error, PL_BAD_INPUT,
                   "strategy: mbs is missing, the sequences of a microbatch (e.g. pp=4,tmp=2,mbs=1; of pp, tmp and dp "
                   "what is left out is 1, 1 and the devices that are left)");
  for (uint32_t i = 0; i < 3; i++) {
    if (seen & (1u << i)) continue;
    *degrees[i] = 1;
    strategy->assumed |= bits[i];
  }
  if ((strategy->assumed & PL_ASSUMED_DP) == 0 || (state->split == NULL && state->placement == NULL)) return PL_OK;
  return pl_fail(state->error, PL_BAD_INPUT, "strategy: dp is missing, which %s= is about",
                 state->split != NULL ? "split" : "placement");
}

pl_code pl_strategy_parse(const char *text, const pl_model *model, pl_arena *arena, pl_strategy *strategy,
                          pl_error *error) {
  *strategy = (pl_strategy){.vpp = 1,
                            .cp = 1,
                            .ep = 1,
                            .etp = 1,
                            .schedule = PL_SCHEDULE_1F1B,
                            .overlap = true,
                            .order = "tdp",
                            .counts_layers = true};
  parsing state = {.model = model, .arena = arena, .strategy = strategy, .error = error};
  char *copy = pl_arena_strdup(arena, text);
  if (copy == NULL) return pl_fail_memory(error, "the strategy");
  uint32_t seen = 0;
  for (char *item; (item = strsep(&copy, ",")) != NULL;)
    PL_TRY(read_pair(&state, item, &seen));
  PL_TRY(assume_degrees(&state, seen));
  if (!state.schedule_given && strategy->vpp > 1) strategy->schedule = PL_SCHEDULE_INTERLEAVED;
  if (state.etp_is_tmp) strategy->etp = strategy->tmp;
  if (!state.vpp_given && strategy->listed != NULL) strategy->vpp = strategy->listed->vpp;
  if (!state.vpp_given && pl_strategy_is_v(strategy)) strategy->vpp = 2;
  PL_TRY(check_chunks(&state));
  PL_TRY(parse_placement(&state));
  if (state.split != NULL) PL_TRY(pl_strategy_parse_split(state.split, strategy->dp, arena, &strategy->split, error));
  return parse_assign(&state);
}
