/* What lists do to a graph, act by act, and the passes that acts are noted in. Internal to workloads/compile/. */
#ifndef PL_WORKLOADS_IR_GRAPH_ACTS_H
#define PL_WORKLOADS_IR_GRAPH_ACTS_H

#include "workloads/compile/ir_graph.h"

enum { PL_IR_GRAPH_PROFILES_MAX = 16, PL_IR_GRAPH_CATEGORIES = 3 };

/* A kernel's time, per profile of the cluster. */
typedef struct pl_ir_price {
  bool known, computes;
  bool is_update; /* one launch for all of them */
  double flops;
  const char *name;
  pl_ticks *ticks;
  pl_op kernel;
  uint8_t *sources;           /* pl_cost_source, likewise */
  uint8_t *bounds;            /* pl_cost_bound, likewise */
  const pl_ir_origin *origin; /* all this, where names are asked for */
  uint64_t n_runs;            /* on each device of the class that is made */
  uint64_t n_on_all;          /* on all its devices together */
} pl_ir_price;

/* A collective to be. */
typedef struct pl_ir_meeting {
  pl_collective_kind kind;
  pl_category category;
  pl_stream_kind stream;
  uint32_t axes;  /* one bit each */
  bool of_tokens; /* on their way to experts and back */
  double bytes;
  const char *label;
} pl_ir_meeting;

/* What one class sends another under a tag: tasks of each microbatch, made by whoever comes first. */
typedef struct pl_ir_message {
  int32_t from, to; /* classes */
  const char *tag;
  uint32_t graph;   /* whose tasks these are */
  uint32_t **tasks; /* per microbatch, and in front what belongs to none; per device of `to`. NULL: not yet made */
} pl_ir_message;

/* What is computed between two meetings, as parts, per profile of the cluster; of a fused one per device of the crew.
 */
typedef struct pl_ir_stretch {
  uint32_t n_parts, n_kinds;
  const pl_part **parts;
  const pl_ir_origin **origins; /* of the parts of each kind; NULL: nobody asks */
  bool is_fused;
  uint32_t graph; /* whose segments these are */
  uint32_t *segments;
} pl_ir_stretch;

typedef enum pl_ir_act_kind {
  PL_IR_ACT_WORK,    /* of a stretch, behind what is awaited; without one a point in time */
  PL_IR_ACT_MEET,    /* behind what `behind` says and the input */
  PL_IR_ACT_SEND,    /* behind the last work and the input */
  PL_IR_ACT_RECEIVE, /* waits for nothing here */
  PL_IR_ACT_SUM,     /* over classes; as a send */
  PL_IR_ACT_UNIT     /* another function whose parameters were gathered begins */
} pl_ir_act_kind;

/* What a collective waits for but its input: the last work, or where a unit began. */
typedef enum pl_ir_behind { PL_IR_BEHIND_WORK, PL_IR_BEHIND_UNIT, PL_IR_BEHIND_UNIT_BEFORE } pl_ir_behind;

/* One thing that a list does to the graph, on all devices of its crew. Tasks are per device of the crew, in arrays that
 * every microbatch fills anew. */
typedef struct pl_ir_act {
  uint8_t kind;       /* pl_ir_act_kind */
  uint8_t behind;     /* MEET: pl_ir_behind */
  bool everybody;     /* MEET: pl_ir_graphing's */
  uint8_t category;   /* WORK without a stretch */
  uint32_t n_awaited; /* WORK */
  uint32_t *const *awaited;
  pl_ir_stretch *stretch; /* WORK; NULL: nothing is computed */
  pl_ir_meeting meeting;  /* MEET */
  pl_ir_message *message; /* SEND, RECEIVE */
  double bytes;           /* SEND, RECEIVE, SUM */
  const char *key;        /* SUM */
  const pl_ir_attribute *classes;
  const uint32_t *input; /* NULL: nothing else to wait for */
  uint32_t *output;
  uint32_t pattern; /* of the fold, + 1; 0: to be found */
} pl_ir_act;

/* What a step of a class does, whatever the microbatch; or what follows its list. */
typedef struct pl_ir_pass {
  pl_ir_act *acts;
  uint32_t n_acts, room_acts;
  pl_ir_price **runs; /* kernels */
  uint32_t n_runs, room_runs;
  pl_ticks late[PL_IR_GRAPH_PROFILES_MAX]; /* that the host is */
  bool updates;                            /* parameters, behind a launch that takes so long */
  pl_ticks launch[PL_IR_GRAPH_PROFILES_MAX];
  uint64_t times, times_on_all; /* that it was done, on one device and on all of them */
  pl_ir_within *insides;
  uint32_t n_insides, room_insides;
  uint64_t n_collectives; /* inside, on all devices */
} pl_ir_pass;

/* Of a class. */
typedef struct pl_ir_passes {
  pl_ir_pass *steps; /* by chunk of the class, kind of step, and whether it is the last of its kind; then the update */
  bool *is_noted;
  bool *is_front;          /* all its steps come before the first that is the last of its kind */
  int32_t *noted, n_noted; /* in which order they were: indices into `steps` */
  int32_t like;            /* class whose passes these were, + 1: the same arrays of tasks; 0: its own */
} pl_ir_passes;

#endif
