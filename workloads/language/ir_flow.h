/* Running all lists to their end (ir_flow.c): what is under way. Internal to ir_flow*.c. */
#ifndef PL_WORKLOADS_IR_FLOW_H
#define PL_WORKLOADS_IR_FLOW_H

#include "core/base/digest.h"
#include "workloads/language/ir_checking.h"

/* A send, a receive or a sum over classes of a function, those inside of calls included. */
typedef struct pl_flow_meeting {
  const pl_ir_function *function;
  const pl_ir_op *op;
  int32_t other,
      tag; /* class and number of the tag; of a sum PL_IR_NONE, and the number of instance, tag and classes */
  struct pl_flow_route *route; /* the last that it was on */
} pl_flow_meeting;

typedef struct pl_flow_meetings {
  pl_flow_meeting *list;
  int32_t n;
  bool known;
} pl_flow_meetings;

/* Messages under way with one key, and who waits for one. */
typedef struct pl_flow_channel {
  const struct pl_flow_route *on;
  const pl_flow_meeting *sent; /* NULL: not yet */
  int32_t microbatch;
  bool is_known, waits, received;
} pl_flow_channel;

/* Of one pair and tag. */
typedef struct pl_flow_route {
  int32_t from, to, tag;
  pl_flow_channel *channels; /* by microbatch; NULL: none has been on it */
  pl_flow_channel of_update;
  const pl_flow_meeting *sent, *received; /* whose types were found to be one, the last two */
} pl_flow_route;

/* Those that have come to a sum over classes. */
typedef struct pl_flow_gathering {
  const pl_flow_meeting *first;
  int32_t n_come; /* all of them: it is done */
} pl_flow_gathering;

typedef struct pl_flow_lane {
  int32_t step; /* n_steps: the update */
  int32_t at;   /* in the step's meetings */
  bool sends;   /* of steps that are joined: all has been received, now they send */
  const pl_flow_meeting *waits;
} pl_flow_lane;

typedef struct pl_flow {
  pl_ir_checking *checking;
  const pl_ir_picked *picked;
  pl_flow_meetings *by_function;
  const pl_ir_chunk **chunks; /* by number */
  pl_hash_index tags, routes;
  int32_t n_tags;
  pl_flow_gathering *gatherings; /* by tag */
  pl_flow_lane *lanes;           /* by class */
  int32_t *ready, n_ready;
  pl_flow_channel **all; /* by first use */
  int64_t n_all, room_all;
} pl_flow;

/* Those of a step of a class (n_steps: of its update); NULL: none. */
const pl_flow_meetings *pl_flow_meetings_at(const pl_flow *state, int32_t c, int32_t step);
/* PL_IR_NONE: of the update. */
int32_t pl_flow_microbatch_at(const pl_flow *state, int32_t c, int32_t step);
/* Where a class is. */
const char *pl_flow_step_text(const pl_flow *state, int32_t c, char text[PL_IR_WHERE_BYTES]);
/* Nobody runs any more: whether all have got to their end, and all that was sent was received. ir_flow_end.c */
pl_code pl_flow_check_end(const pl_flow *state);

#endif
