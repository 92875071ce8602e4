/* What strategies a framework runs, as its own source or documentation says: the section "offers" of its profile. Times
 * do not depend on it; searches leave out what is not offered. */
#ifndef PL_WORKLOADS_FRAMEWORK_OFFERS_H
#define PL_WORKLOADS_FRAMEWORK_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/text/document.h"

/* Lists of words end in NULL. */
typedef struct pl_offers {
  bool known;                 /* the profile has the section; else everything is offered */
  const char *const *degrees; /* of pp, tmp, cp and ep those that may be above 1 */
  const char *const *schedules, *const *recomputes, *const *sp; /* sp: "off", "on", where tmp > 1 */
  uint32_t zero, zero_with_pp; /* bit i: stage i, where dp > 1; with one pipeline stage, and with more */
} pl_offers;

pl_code pl_offers_read(const pl_document *document, const pl_node *section, pl_arena *arena, pl_offers *offers,
                       pl_error *error);

#endif
