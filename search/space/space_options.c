/* See search/space/space_options.h. */
#include "search/space/space_options.h"

#include <string.h>

#include "core/base/words.h"

enum {
  KEY_PP = 0x440,
  KEY_DP,
  KEY_TMP,
  KEY_CP,
  KEY_EP,
  KEY_ETP,
  KEY_EP_OVERLAP,
  KEY_MBS,
  KEY_VPP,
  KEY_ZERO,
  KEY_SCHEDULE,
  KEY_RECOMPUTE,
  KEY_SP,
  KEY_OVERLAP,
  KEY_OFFLOAD,
  KEY_ASSIGN,
  KEY_ORDER,
  KEY_STRATEGY_SPACE,
  KEY_ANY_STRATEGY
};

static const struct argp_option option_table[] = {
    {"pp", KEY_PP, "LIST", 0, "pipeline degrees, e.g. 1,2,4 or 1-8 (default: all; likewise below)", 4},
    {"dp", KEY_DP, "LIST", 0, "data-parallel degrees", 4},
    {"tmp", KEY_TMP, "LIST", 0, "tensor-parallel degrees", 4},
    {"cp", KEY_CP, "LIST", 0, "context-parallel degrees (default 1)", 4},
    {"ep", KEY_EP, "LIST", 0, "expert-parallel degrees, of models with experts (default: all)", 4},
    {"etp", KEY_ETP, "LIST", 0,
     "expert-tensor-parallel degrees where tmp > 1, of 1 (default) and tmp: each expert whole, or cut over them", 4},
    {"ep-overlap", KEY_EP_OVERLAP, "LIST", 0,
     "what runs beside experts' exchange of tokens, where ep > 1: off (default); on, another pass, and delayed, "
     "likewise "
     "with gradients of weights put off, where pp = 1 or the schedule is interleaved; shared, shared experts; both is "
     "off,on",
     4},
    {"mbs", KEY_MBS, "LIST", 0, "microbatch sizes (default 1-8; of samples without tokens also 16, 32 to 256)", 4},
    {"schedule", KEY_SCHEDULE, "LIST", 0,
     "of gpipe, 1f1b, interleaved (these three by default), fifo, breadth-first, zb-h1, zb-h2, zb-v, dualpipe-v, "
     "dualpipe (which makes all of them programs)",
     4},
    {"vpp", KEY_VPP, "LIST", 0, "model chunks per stage of interleaved and breadth-first schedules (default 2-4)", 4},
    {"sp", KEY_SP, "WHICH", 0, "sequence parallelism where tmp > 1: on, off or both (default)", 4},
    {"recompute", KEY_RECOMPUTE, "LIST", 0, "of none, selective, full, alternate", 4},
    {"zero", KEY_ZERO, "LIST", 0, "ZeRO stages where dp > 1, of 0-3 (default: 0-3, but with pp > 1 only 0 and 1)", 4},
    {"overlap", KEY_OVERLAP, "WHICH", 0,
     "overlap of gradient reduction where dp > 1: on, off or both (default: both, or what --framework does)", 4},
    {"offload", KEY_OFFLOAD, "LIST", 0,
     "what lies in the memory of the host, of none (default), states, kept, both, gradients (and states), all; "
     "candidates are then simulated as programs",
     4},
    {"assign", KEY_ASSIGN, "LIST", 0, "layer assignments, of uniform, balanced, optimal, amp-dp", 4},
    {"any-strategy", KEY_ANY_STRATEGY, NULL, 0,
     "with --framework also strategies that its profile says it does not offer", 4},
    {"order", KEY_ORDER, "LIST", 0, "placement orders, innermost first (default tdp)", 4},
    {"strategy-space", KEY_STRATEGY_SPACE, "FILE", 0,
     "in place of all these: a strategy tree with choices (YAML); its combinations are the candidates", 4},
    {0},
};

/* Calls `use` for every element of a comma-separated list; false when one is empty, too long or refused. */
static bool for_each_word(const char *list, bool (*use)(const char *word, void *data), void *data) {
  for (;;) {
    size_t length = strcspn(list, ",");
    char word[32];
    if (length == 0 || length >= sizeof word) return false;
    memcpy(word, list, length);
    word[length] = '\0';
    if (!use(word, data)) return false;
    if (list[length] == '\0') return true;
    list += length + 1;
  }
}

typedef struct word_set {
  const char *const *names;
  uint32_t mask;
} word_set;

static bool use_name(const char *word, void *data) {
  word_set *set = data;
  int found = pl_words_find(set->names, word);
  if (found >= 0) set->mask |= 1u << found;
  return found >= 0;
}

static void read_words(pl_error *error, const char *option, const char *value, const char *const *names,
                       uint32_t *mask) {
  word_set set = {.names = names};
  if (for_each_word(value, use_name, &set)) {
    *mask = set.mask;
    return;
  }
  char list[PL_WORDS_BYTES];
  pl_fail(error, PL_BAD_INPUT, "%s: '%.64s' is not a list of %s", option, value,
          pl_words_list(names, list, sizeof list));
}

/* Of the recipes those that every strategy may have; a framework's own way of cutting goes with the framework. */
static void read_recipes(pl_error *error, const char *value, pl_space_choices *choices) {
  static const char *const names[] = {"uniform", "balanced", "optimal", "amp-dp", NULL};
  static const pl_assign_recipe recipes[] = {PL_ASSIGN_UNIFORM, PL_ASSIGN_BALANCED, PL_ASSIGN_OPTIMAL, PL_ASSIGN_AMP};
  uint32_t mask = 0;
  read_words(error, "--assign", value, names, &mask);
  choices->recipes = 0;
  for (uint32_t i = 0; names[i] != NULL; i++)
    if (mask & 1u << i) choices->recipes |= 1u << recipes[i];
}

static void read_switch(pl_error *error, const char *option, const char *value, uint32_t *mask) {
  *mask = strcmp(value, "both") == 0 ? 3 : strcmp(value, "on") == 0 ? 2 : strcmp(value, "off") == 0 ? 1 : 0;
  if (*mask == 0) pl_fail(error, PL_BAD_INPUT, "%s: '%.64s' is not on, off or both", option, value);
}

static bool use_order(const char *word, void *data) {
  pl_space_choices *choices = data;
  if (!pl_strategy_is_order(word)) return false;
  for (uint32_t i = 0; i < choices->n_orders; i++)
    if (strcmp(choices->orders[i], word) == 0) return true;
  memcpy(choices->orders[choices->n_orders++], word, strlen(word) + 1);
  return true;
}

static void read_orders(pl_error *error, const char *value, pl_space_choices *choices) {
  choices->n_orders = 0;
  if (!for_each_word(value, use_order, choices))
    pl_fail(error, PL_BAD_INPUT,
            "--order: '%.64s' is not a list of permutations of t, d, p or t, c, d, p such as tdp,tpd", value);
}

static const char *const etp_names[] = {"1", "tmp", NULL};

static void read_ep_overlaps(pl_error *error, const char *value, uint32_t *mask) {
  static const char *const names[] = {"off", "on", "delayed", "shared", NULL};
  if (strcmp(value, "both") == 0) {
    *mask = 3;
  } else {
    read_words(error, "--ep-overlap", value, names, mask);
  }
}

/* One dimension; false: not one of them. */
static bool read_choice(int key, const char *value, pl_space_choices *choices, pl_error *error) {
  switch (key) {
  case KEY_PP:
    pl_int_set_parse(value, "--pp", 1, INT32_MAX, &choices->pp, error);
    return true;
  case KEY_DP:
    pl_int_set_parse(value, "--dp", 1, INT32_MAX, &choices->dp, error);
    return true;
  case KEY_TMP:
    pl_int_set_parse(value, "--tmp", 1, INT32_MAX, &choices->tmp, error);
    return true;
  case KEY_CP:
    pl_int_set_parse(value, "--cp", 1, INT32_MAX, &choices->cp, error);
    return true;
  case KEY_EP:
    pl_int_set_parse(value, "--ep", 1, INT32_MAX, &choices->ep, error);
    return true;
  case KEY_ETP:
    read_words(error, "--etp", value, etp_names, &choices->etps);
    return true;
  case KEY_EP_OVERLAP:
    read_ep_overlaps(error, value, &choices->ep_overlaps);
    return true;
  case KEY_MBS:
    pl_int_set_parse(value, "--mbs", 1, PL_SPACE_MBS_LIMIT, &choices->mbs, error);
    return true;
  case KEY_VPP:
    pl_int_set_parse(value, "--vpp (chunks of interleaved and breadth-first; of other schedules vpp is 1 anyway)", 2,
                     INT32_MAX, &choices->vpp, error);
    return true;
  case KEY_ZERO:
    pl_int_set_parse(value, "--zero", 0, 3, &choices->zero, error);
    return true;
  case KEY_SCHEDULE:
    read_words(error, "--schedule", value, pl_schedule_names, &choices->schedules);
    return true;
  case KEY_RECOMPUTE:
    read_words(error, "--recompute", value, pl_recompute_names, &choices->recomputes);
    return true;
  case KEY_SP:
    read_switch(error, "--sp", value, &choices->sp);
    return true;
  case KEY_OVERLAP:
    read_switch(error, "--overlap", value, &choices->overlap);
    choices->overlap_is_given = true;
    return true;
  case KEY_OFFLOAD:
    read_words(error, "--offload", value, pl_offload_names, &choices->offloads);
    return true;
  case KEY_ASSIGN:
    read_recipes(error, value, choices);
    choices->order_is_given = choices->recipes_are_given = true;
    return true;
  case KEY_ANY_STRATEGY:
    choices->only_offered = false;
    return true;
  case KEY_ORDER:
    read_orders(error, value, choices);
    choices->order_is_given = true;
    return true;
  default:
    return false;
  }
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  pl_space_options *options = state->input;
  if (key == KEY_STRATEGY_SPACE) {
    options->trees = value;
    return 0;
  }
  if (!read_choice(key, value, &options->choices, options->error)) return ARGP_ERR_UNKNOWN;
  options->choices.is_given = true;
  return 0;
}

const struct argp pl_space_options_argp = {.options = option_table, .parser = read_option};

pl_code pl_space_options_check(const pl_space_options *options, pl_error *error) {
  if (options->trees == NULL || !options->choices.is_given) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "--strategy-space: the file says what differs between candidates; leave out --pp, --dp, --mbs and the "
                 "like");
}

void pl_space_options_init(pl_space_options *options, pl_error *error) {
  *options = (pl_space_options){.error = error};
  pl_space_choices_init(&options->choices);
  options->choices.only_offered = true;
}
