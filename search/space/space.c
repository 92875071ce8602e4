/* See search/space/space.h. One loop per dimension, each a function that fixes its dimension and calls the next; the
 * innermost one judges the whole combination, so that every combination that a rule removes is counted exactly once,
 * under the first rule of pl_space_reason's order that it breaks. */
#include "search/space/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"

void pl_space_choices_init(pl_space_choices *choices) {
  uint32_t schedules = 1u << PL_SCHEDULE_GPIPE | 1u << PL_SCHEDULE_1F1B | 1u << PL_SCHEDULE_INTERLEAVED;
  *choices = (pl_space_choices){.schedules = schedules,
                                .recomputes = 7,
                                .sp = 3,
                                .overlap = 3,
                                .offloads = 1,
                                .etps = 1,
                                .ep_overlaps = 1,
                                .n_orders = 1};
  choices->recipes = 1u << PL_ASSIGN_UNIFORM | 1u << PL_ASSIGN_BALANCED;
  memcpy(choices->orders[0], "tdp", 4);
}

/* A picture, or a row of clicks, is less work than a sequence of tokens: hundreds at once are usual. */
static void allow_batches_of_samples(pl_int_set *mbs, int64_t gbs) {
  static const int32_t ranges[][2] = {{1, PL_SPACE_DEFAULT_MBS}, {16, 16}, {32, 32}, {64, 64}, {128, 128}, {256, 256}};
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && ranges[i][0] <= gbs; i++) {
    mbs->lowest[i] = ranges[i][0];
    mbs->highest[i] = ranges[i][1];
    mbs->n_ranges++;
  }
}

void pl_space_choices_adopt(pl_space_choices *choices, const pl_job *job) {
  choices->only_offered = choices->only_offered && job->framework != NULL && job->framework->offers.known;
  if (job->framework != NULL && !choices->overlap_is_given)
    choices->overlap = 1u << (job->framework->gradients.overlaps_gradients ? 1 : 0);
  if (job->seq == 1 && choices->mbs.n_ranges == 0) allow_batches_of_samples(&choices->mbs, job->gbs);
}

pl_code pl_space_choices_for_programs(pl_space_choices *choices, const char *what, pl_error *error) {
  if (choices->overlap_is_given && choices->overlap != 2)
    return pl_fail(error, PL_BAD_INPUT,
                   "--overlap: %s is simulated as a program, whose gradients are reduced beside whatever does not wait "
                   "for them; leave it out, or say on",
                   what);
  if (choices->recipes_are_given && choices->recipes != 1u << PL_ASSIGN_UNIFORM)
    return pl_fail(error, PL_BAD_INPUT,
                   "--assign: %s is simulated as a program, and nothing of it is priced before; leave it out, or say "
                   "uniform",
                   what);
  choices->overlap = 2;
  choices->overlap_is_given = true;
  choices->recipes = 1u << PL_ASSIGN_UNIFORM;
  return PL_OK;
}

/* The enumeration in progress. */
typedef struct walk {
  pl_space *space;
  const pl_space_rules *rules;
  pl_arena *arena;
  pl_error *error;
  pl_candidate *found;
  size_t capacity;
  uint32_t n_devices;
  bool asked, differs; /* the answer of balanced_differs for the dimensions outside zero */
} walk;

static bool has_bit(uint32_t mask, uint32_t bit) {
  return (mask >> bit & 1u) != 0;
}

static bool leaves_idle(const pl_space *space, const pl_candidate *c) {
  return (uint32_t)(c->pp * c->dp * c->cp * c->tmp) < space->n_devices;
}

static pl_strategy strategy_of(const pl_space *space, const pl_candidate *candidate) {
  pl_strategy strategy = {.pp = candidate->pp,
                          .dp = candidate->dp,
                          .tmp = candidate->tmp,
                          .cp = candidate->cp,
                          .ep = candidate->ep,
                          .etp = candidate->cuts_experts ? candidate->tmp : 1,
                          .ep_overlap = candidate->ep_overlap,
                          .mbs = candidate->mbs,
                          .vpp = candidate->vpp,
                          .schedule = (pl_schedule_kind)candidate->schedule,
                          .sp = candidate->sp != 0,
                          .overlap = candidate->overlap != 0,
                          .recompute = (pl_recompute)candidate->recompute,
                          .zero = candidate->zero,
                          .recipe = (pl_assign_recipe)candidate->recipe,
                          .counts_layers = true};
  memcpy(strategy.order, space->choices.orders[candidate->order], sizeof strategy.order);
  strategy.idle = leaves_idle(space, candidate);
  pl_strategy_set_offload(&strategy, candidate->offload);
  return strategy;
}

/* Answers from memory while only dimensions that do not change the assignment move. */
static pl_code balanced_differs(walk *w, const pl_candidate *candidate, bool *differs) {
  *differs = candidate->pp * candidate->vpp > 1;
  if (!*differs || w->rules == NULL || w->rules->balanced_differs == NULL) return PL_OK;
  if (!w->asked) {
    pl_strategy strategy = strategy_of(w->space, candidate);
    PL_TRY(w->rules->balanced_differs(w->rules->context, &strategy, &w->differs, w->error));
    w->asked = true;
  }
  *differs = w->differs;
  return PL_OK;
}

/* ---- the loops, innermost first ---- */

static pl_code keep(walk *w, const pl_candidate *candidate) {
  if (w->space->n_candidates == w->capacity) {
    size_t capacity = w->capacity ? 2 * w->capacity : 1024;
    pl_candidate *more = capacity < UINT32_MAX ? realloc(w->found, capacity * sizeof *more) : NULL;
    if (more == NULL) return pl_fail_memory(w->error, "the candidates; restrict the space");
    w->found = more;
    w->capacity = capacity;
  }
  w->found[w->space->n_candidates++] = *candidate;
  return PL_OK;
}

/* Keeps the candidate or counts why not. `alternative`: a balanced assignment whose uniform twin is in the space too.
 */
static pl_code judge(walk *w, const pl_candidate *candidate, bool alternative) {
  pl_space_reason reason = PL_DROP_BALANCED;
  bool broken = pl_space_breaks_rule(w->space, candidate, &reason);
  if (!broken && alternative) {
    bool differs;
    PL_TRY(balanced_differs(w, candidate, &differs));
    broken = !differs;
  }
  if (!broken) return keep(w, candidate);
  w->space->dropped[reason]++;
  return PL_OK;
}

static pl_code walk_recipe(walk *w, pl_candidate candidate) {
  uint32_t recipes = w->space->choices.recipes;
  candidate.recipe = PL_ASSIGN_UNIFORM;
  bool uniform = candidate.pp == 1 || has_bit(recipes, PL_ASSIGN_UNIFORM); /* one stage: nothing to assign */
  if (uniform) PL_TRY(judge(w, &candidate, false));
  for (uint32_t recipe = PL_ASSIGN_BALANCED; candidate.pp > 1 && recipe <= PL_ASSIGN_AMP; recipe++) {
    if (!has_bit(recipes, recipe)) continue;
    candidate.recipe = (uint8_t)recipe;
    PL_TRY(judge(w, &candidate, uniform && recipe == PL_ASSIGN_BALANCED));
  }
  return PL_OK;
}

/* The order without dimensions of degree 1: two orders with the same rest place every rank on the same device. */
static void effective_order(const pl_candidate *candidate, const char *order, char rest[5]) {
  bool has_context = strchr(order, 'c') != NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; order[i] != '\0'; i++) {
    int32_t degree = order[i] == 't'   ? candidate->tmp
                     : order[i] == 'd' ? candidate->dp
                     : order[i] == 'c' ? candidate->cp
                                       : candidate->pp;
    if (degree > 1) rest[n++] = order[i];
    if (order[i] == 't' && !has_context && candidate->cp > 1) rest[n++] = 'c';
  }
  rest[n] = '\0';
}

static bool is_first_of_its_kind(const pl_space_choices *choices, const pl_candidate *candidate, uint32_t order) {
  char rest[5], other[5];
  effective_order(candidate, choices->orders[order], rest);
  for (uint32_t earlier = 0; earlier < order; earlier++) {
    effective_order(candidate, choices->orders[earlier], other);
    if (strcmp(rest, other) == 0) return false;
  }
  return true;
}

static pl_code walk_order(walk *w, pl_candidate candidate) {
  for (uint32_t order = 0; order < w->space->choices.n_orders; order++) {
    if (!is_first_of_its_kind(&w->space->choices, &candidate, order)) continue;
    candidate.order = (uint8_t)order;
    PL_TRY(walk_recipe(w, candidate));
  }
  return PL_OK;
}

static pl_code walk_offload(walk *w, pl_candidate candidate) {
  for (uint8_t offload = 0; offload < PL_OFFLOAD_COUNT; offload++) {
    if (!has_bit(w->space->choices.offloads, offload)) continue;
    candidate.offload = offload;
    PL_TRY(walk_order(w, candidate));
  }
  return PL_OK;
}

/* As pl_strategy_check has it. */
static bool may_hide_tokens(const pl_model *model, const pl_candidate *c, pl_ep_overlap how) {
  bool pairs = c->schedule == (c->pp > 1 ? PL_SCHEDULE_INTERLEAVED : PL_SCHEDULE_1F1B) && c->zero < 3;
  bool has_pairs = c->schedule == PL_SCHEDULE_DUALPIPE_V || c->schedule == PL_SCHEDULE_DUALPIPE;
  if (how == PL_EP_OVERLAP_NONE) return true;
  if (c->ep <= 1 || c->recompute >= PL_RECOMPUTE_FULL || (how >= PL_EP_OVERLAP_DELAYED && c->cuts_experts))
    return false;
  return how == PL_EP_OVERLAP_SHARED ? !has_pairs && model->moe.shared_ffn > 0 : pairs;
}

static pl_code walk_pairs(walk *w, pl_candidate candidate) {
  uint32_t asked = 0;
  for (uint8_t how = 0; how < PL_EP_OVERLAP_COUNT; how++)
    if (has_bit(w->space->choices.ep_overlaps, how) && may_hide_tokens(w->space->model, &candidate, (pl_ep_overlap)how))
      asked |= 1u << how;
  for (uint8_t how = 0; how < PL_EP_OVERLAP_COUNT; how++) {
    if (!has_bit(asked != 0 ? asked : 1, how)) continue;
    candidate.ep_overlap = how;
    PL_TRY(walk_offload(w, candidate));
  }
  return PL_OK;
}

static pl_code walk_zero(walk *w, pl_candidate candidate) {
  const pl_space_choices *choices = &w->space->choices;
  w->asked = false;
  if (candidate.dp * candidate.cp == 1) return walk_pairs(w, candidate);
  for (uint8_t zero = 0; zero <= 3; zero++) {
    if (!pl_int_set_has(&choices->zero, zero)) continue;
    for (uint8_t overlap = 0; overlap <= 1; overlap++) {
      if (!has_bit(choices->overlap, overlap)) continue;
      candidate.zero = zero;
      candidate.overlap = overlap;
      PL_TRY(walk_pairs(w, candidate));
    }
  }
  return PL_OK;
}

static pl_code walk_recompute(walk *w, pl_candidate candidate) {
  const pl_space_choices *choices = &w->space->choices;
  for (uint8_t sp = 0; sp <= 1; sp++) {
    if (candidate.tmp == 1 ? sp == 1 : !has_bit(choices->sp, sp)) continue;
    for (uint8_t recompute = 0; recompute < PL_RECOMPUTE_COUNT; recompute++) {
      if (!has_bit(choices->recomputes, recompute)) continue;
      candidate.sp = sp;
      candidate.recompute = recompute;
      PL_TRY(walk_zero(w, candidate));
    }
  }
  return PL_OK;
}

static pl_code walk_interleaved(walk *w, pl_candidate candidate) {
  const pl_int_set *set = &w->space->choices.vpp;
  int32_t highest = set->n_ranges ? pl_int_set_highest(set) : PL_SPACE_DEFAULT_VPP;
  if (highest > w->space->model->n_layers) highest = w->space->model->n_layers;
  for (candidate.vpp = 2; candidate.vpp <= highest; candidate.vpp++)
    if (pl_int_set_has(set, candidate.vpp)) PL_TRY(walk_recompute(w, candidate));
  return PL_OK;
}

/* Chunks per stage are a choice, two, or one. */
static pl_code walk_chunks(walk *w, pl_candidate candidate) {
  const pl_strategy strategy = {.schedule = (pl_schedule_kind)candidate.schedule};
  if (pl_schedule_is_chunked(strategy.schedule)) return walk_interleaved(w, candidate);
  if (pl_strategy_is_v(&strategy)) candidate.vpp = 2;
  return walk_recompute(w, candidate);
}

static pl_code walk_schedule(walk *w, pl_candidate candidate) {
  if (candidate.pp == 1) {
    candidate.schedule = PL_SCHEDULE_1F1B;
    return walk_recompute(w, candidate);
  }
  for (uint8_t schedule = 0; schedule <= PL_SCHEDULE_DUALPIPE; schedule++) {
    if (!has_bit(w->space->choices.schedules, schedule)) continue;
    candidate.schedule = schedule;
    PL_TRY(walk_chunks(w, candidate));
  }
  return PL_OK;
}

static pl_code walk_mbs(walk *w, pl_candidate candidate) {
  const pl_int_set *set = &w->space->choices.mbs;
  int64_t highest = set->n_ranges ? pl_int_set_highest(set) : PL_SPACE_DEFAULT_MBS;
  if (highest > w->space->job->gbs) highest = w->space->job->gbs;
  for (candidate.mbs = 1; candidate.mbs <= highest; candidate.mbs++)
    if (pl_int_set_has(set, candidate.mbs)) PL_TRY(walk_schedule(w, candidate));
  return PL_OK;
}

/* Where nothing is said, cp is 1 and ep all that a model's experts and the ranks beside each other can be spread over.
 */
static bool allows_context(const pl_int_set *set, int32_t cp) {
  return set->n_ranges > 0 ? pl_int_set_has(set, cp) : cp == 1;
}

/* Whole, or cut over the tensor ranks, where there are both. */
static pl_code walk_expert_cuts(walk *w, pl_candidate candidate) {
  bool may = candidate.tmp > 1 && w->space->model->moe.n_experts > 0;
  for (uint8_t cuts = 0; cuts <= 1; cuts++) {
    if (may ? !has_bit(w->space->choices.etps, cuts) : cuts == 1) continue;
    candidate.cuts_experts = cuts;
    PL_TRY(walk_mbs(w, candidate));
  }
  return PL_OK;
}

static bool allows_experts(const pl_space *space, int32_t ep, int32_t ranks) {
  if (space->choices.ep.n_ranges > 0) return pl_int_set_has(&space->choices.ep, ep);
  int64_t n_experts = space->model->moe.n_experts;
  return ep == 1 || (n_experts % ep == 0 && n_experts >= ep && ranks % ep == 0);
}

static pl_code walk_experts(walk *w, pl_candidate candidate) {
  int32_t ranks = candidate.dp * candidate.cp * candidate.tmp;
  for (candidate.ep = 1; candidate.ep <= ranks; candidate.ep++)
    if (allows_experts(w->space, candidate.ep, ranks)) PL_TRY(walk_expert_cuts(w, candidate));
  return PL_OK;
}

/* Over the `n` devices that pp and tmp leave. */
static pl_code walk_context(walk *w, pl_candidate candidate, int32_t n) {
  for (candidate.cp = 1; candidate.cp <= n; candidate.cp++) {
    if (n % candidate.cp != 0 || !allows_context(&w->space->choices.cp, candidate.cp)) continue;
    candidate.dp = n / candidate.cp;
    if (pl_int_set_has(&w->space->choices.dp, candidate.dp)) PL_TRY(walk_experts(w, candidate));
  }
  return PL_OK;
}

static pl_code walk_degrees(walk *w) {
  const pl_space_choices *choices = &w->space->choices;
  int32_t n = (int32_t)w->n_devices;
  bool idle = choices->allow_idle;
  for (int32_t pp = 1; pp <= n; pp++) {
    if ((n % pp != 0 && !idle) || !pl_int_set_has(&choices->pp, pp)) continue;
    for (int32_t tmp = 1; tmp <= n / pp; tmp++) {
      int32_t most = n / pp / tmp;
      if ((n % (pp * tmp) != 0 && !idle) || !pl_int_set_has(&choices->tmp, tmp)) continue;
      for (int32_t left = most; left >= (idle ? 1 : most); left--)
        PL_TRY(walk_context(w, (pl_candidate){.pp = pp, .tmp = tmp, .vpp = 1}, left));
    }
  }
  return PL_OK;
}

/* Field by field: the struct's padding must not reach the digest. */
static void digest_candidate(pl_digest *digest, const pl_space *space, const pl_candidate *c) {
  const int32_t degrees[] = {c->pp, c->dp, c->tmp, c->mbs, c->vpp};
  const uint8_t kinds[] = {c->schedule, c->sp, c->recompute, c->zero, c->overlap, c->recipe};
  const int32_t extras[] = {c->cp, c->ep};
  pl_digest_bytes(digest, degrees, sizeof degrees);
  if (c->cp > 1 || c->ep > 1) pl_digest_bytes(digest, extras, sizeof extras);
  pl_digest_bytes(digest, kinds, sizeof kinds);
  if (c->offload != 0) pl_digest_bytes(digest, &c->offload, 1);
  if (c->cuts_experts || c->ep_overlap) pl_digest_bytes(digest, (const uint8_t[]){c->cuts_experts, c->ep_overlap}, 2);
  const char *order = space->choices.orders[c->order];
  pl_digest_bytes(digest, order, strlen(order) == 3 ? 4 : 5);
}

static pl_code finish(walk *w) {
  pl_space *space = w->space;
  pl_candidate *kept = PL_TAKE(w->arena, pl_candidate, space->n_candidates);
  if (kept == NULL) return pl_fail_memory(w->error, "the candidates; restrict the space");
  if (space->n_candidates > 0 && w->found != NULL) memcpy(kept, w->found, space->n_candidates * sizeof *kept);
  space->candidates = kept;
  pl_digest digest;
  pl_digest_init(&digest);
  for (uint32_t i = 0; i < space->n_candidates; i++)
    digest_candidate(&digest, space, &kept[i]);
  space->digest = digest.value;
  return PL_OK;
}

pl_code pl_space_take(const pl_model *model, const pl_job *job, uint32_t n_devices, const pl_space_choices *choices,
                      const pl_space_rules *rules, pl_arena *arena, pl_space *space, pl_error *error) {
  *space = (pl_space){.model = model, .job = job, .choices = *choices, .n_devices = n_devices};
  walk w = {.space = space, .rules = rules, .arena = arena, .error = error, .n_devices = n_devices};
  pl_code code = walk_degrees(&w);
  if (code == PL_OK) code = finish(&w);
  free(w.found);
  return code;
}

void pl_space_of_trees(const pl_tree_space *trees, const pl_model *model, const pl_job *job, uint32_t n_devices,
                       pl_space *space) {
  *space = (pl_space){.model = model,
                      .job = job,
                      .trees = trees,
                      .n_candidates = trees->n_candidates,
                      .n_devices = n_devices,
                      .digest = pl_tree_space_digest(trees)};
}

/* ---- what others ask of it ---- */

void pl_space_strategy(const pl_space *space, uint32_t index, pl_strategy *strategy) {
  PL_ASSERT(index < space->n_candidates && space->trees == NULL);
  *strategy = strategy_of(space, &space->candidates[index]);
}

pl_code pl_space_refuse_empty(const pl_space *space, uint32_t n_devices, pl_error *error) {
  char text[PL_ERROR_MESSAGE_BYTES] = "", reason[128];
  PL_TRY(pl_strategy_check_layers(space->model, error));
  for (int r = 0; r < PL_DROP_COUNT; r++) {
    if (space->dropped[r] == 0) continue;
    pl_space_format_reason(space, (pl_space_reason)r, reason, sizeof reason);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s (%" PRIu64 " dropped)", used ? "; " : ": ", reason,
             space->dropped[r]);
  }
  return pl_fail(
      error, PL_BAD_INPUT, "no candidate is left for %u devices%s; loosen the restrictions%s or change --gbs",
      n_devices,
      text[0] ? text
              : ": no pp, dp and tmp that are allowed multiply to them, or every mbs that is allowed exceeds gbs",
      space->choices.only_offered ? " (--any-strategy)" : "");
}

int pl_space_format(const pl_space *space, char *text, size_t size) {
  if (space->trees != NULL) return snprintf(text, size, "%s", space->trees->name);
  return pl_space_format_choices(&space->choices, text, size);
}

int pl_space_format_candidate(const pl_space *space, uint32_t index, char *text, size_t size) {
  PL_ASSERT(index < space->n_candidates);
  if (space->trees != NULL) return pl_tree_space_format(space->trees, index, text, size);
  const pl_candidate *c = &space->candidates[index];
  char extras[128] = "";
  if (c->cp > 1) snprintf(extras, sizeof extras, ",cp=%d", c->cp);
  if (c->ep > 1) snprintf(extras + strlen(extras), sizeof extras - strlen(extras), ",ep=%d", c->ep);
  if (c->cuts_experts) snprintf(extras + strlen(extras), sizeof extras - strlen(extras), ",etp=%d", c->tmp);
  if (c->ep_overlap)
    snprintf(extras + strlen(extras), sizeof extras - strlen(extras), ",ep_overlap=%s",
             pl_ep_overlap_names[c->ep_overlap]);
  if (c->offload != 0)
    snprintf(extras + strlen(extras), sizeof extras - strlen(extras), ",offload=%s", pl_offload_names[c->offload]);
  if (leaves_idle(space, c)) snprintf(extras + strlen(extras), sizeof extras - strlen(extras), ",idle=1");
  return snprintf(
      text, size,
      "pp=%d,dp=%d,tmp=%d%s,mbs=%d,assign=%s,schedule=%s,vpp=%d,sp=%d,recompute=%s,zero=%d,overlap=%d,order=%s", c->pp,
      c->dp, c->tmp, extras, c->mbs, pl_assign_names[c->recipe], pl_schedule_names[c->schedule], c->vpp, c->sp,
      pl_recompute_names[c->recompute], c->zero, c->overlap, space->choices.orders[c->order]);
}

/* Tasks of a pass. Sharded gradients and parameters (ZeRO 2, 3) communicate per layer. Tensor groups that leave the
 * node, taken to have 8 devices, have more classes of devices that contend with each other. */
static double pass_cost(const pl_space *space, const pl_candidate *c) {
  static const double per_layer[2][2] = {{1, 4}, {4, 8}};              /* [zero - 2][overlap] */
  if (c->cp > 1 || c->ep > 1) return 1 + 4.0 * space->model->n_layers; /* exchanges are tasks of their own */
  if (c->dp > 1 && c->zero >= 2) return 1 + per_layer[c->zero - 2][c->overlap] * space->model->n_layers;
  double nodes = c->tmp / 8.0;
  return nodes > 1 ? nodes * nodes : 1;
}

double pl_space_cost(const pl_space *space, uint32_t index) {
  if (space->trees != NULL || pl_space_choices_are_programs(&space->choices))
    return 30000; /* programs of one model: nobody knows before */
  const pl_candidate *c = &space->candidates[index];
  int64_t n_microbatches = space->job->gbs / c->dp / c->mbs;
  double passes = (double)n_microbatches * c->pp * c->vpp;
  return 300 + passes * pass_cost(space, c);
}
