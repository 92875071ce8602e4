/* What of a space a framework offers (workloads/framework/framework_offers.h): see search/space/space.h. */
#include <stdio.h>

#include "core/base/words.h"
#include "search/space/space.h"

static bool has(const char *const *words, const char *word) {
  return pl_words_find(words, word) >= 0;
}

bool pl_space_breaks_offer(const pl_space *space, const pl_candidate *c, pl_space_reason *reason) {
  if (!space->choices.only_offered || space->job->framework == NULL || !space->job->framework->offers.known)
    return false;
  const pl_offers *offers = &space->job->framework->offers;
  if ((c->pp > 1 && !has(offers->degrees, "pp")) || (c->tmp > 1 && !has(offers->degrees, "tmp")) ||
      (c->cp > 1 && !has(offers->degrees, "cp")) || (c->ep > 1 && !has(offers->degrees, "ep")))
    return *reason = PL_DROP_OFFER_DEGREE, true;
  if (c->pp > 1 && !has(offers->schedules, pl_schedule_name((pl_schedule_kind)c->schedule)))
    return *reason = PL_DROP_OFFER_SCHEDULE, true;
  if (!has(offers->recomputes, pl_recompute_names[c->recompute])) return *reason = PL_DROP_OFFER_RECOMPUTE, true;
  if (c->tmp > 1 && !has(offers->sp, c->sp ? "on" : "off")) return *reason = PL_DROP_OFFER_SP, true;
  uint32_t stages = c->pp > 1 ? offers->zero_with_pp : offers->zero;
  if (c->dp > 1 && (stages >> c->zero & 1u) == 0) return *reason = PL_DROP_OFFER_ZERO, true;
  return false;
}

static void list_stages(uint32_t stages, char *text, size_t size) {
  pl_word_list list = pl_word_list_begin(text, size);
  for (int stage = 0; stage < 4; stage++) {
    const char digit[] = {(char)('0' + stage), '\0'};
    if (stages >> stage & 1u) pl_word_list_add(&list, digit);
  }
  pl_word_list_end(&list);
}

int pl_space_format_offer(const pl_space *space, pl_space_reason reason, char *text, size_t size) {
  char list[PL_WORDS_BYTES], piped[PL_WORDS_BYTES];
  const pl_framework *framework = pl_framework_or_ideal(space->job->framework);
  const pl_offers *offers = &framework->offers;
  switch (reason) {
  case PL_DROP_OFFER_DEGREE:
    return snprintf(text, size, "%s has of pp, tmp, cp and ep: %s", framework->name,
                    offers->degrees[0] != NULL ? pl_words_list(offers->degrees, list, sizeof list) : "none");
  case PL_DROP_OFFER_SCHEDULE:
    return snprintf(text, size, "%s has the schedules %s", framework->name,
                    pl_words_list(offers->schedules, list, sizeof list));
  case PL_DROP_OFFER_RECOMPUTE:
    return snprintf(text, size, "%s has the recomputations %s", framework->name,
                    pl_words_list(offers->recomputes, list, sizeof list));
  case PL_DROP_OFFER_SP:
    return snprintf(text, size, "%s has sequence parallelism only %s", framework->name, offers->sp[0]);
  default:
    break;
  }
  list_stages(offers->zero, list, sizeof list);
  list_stages(offers->zero_with_pp, piped, sizeof piped);
  return snprintf(text, size, "%s has zero %s; with a pipeline %s", framework->name, list,
                  piped[0] != '\0' ? piped : "none");
}
