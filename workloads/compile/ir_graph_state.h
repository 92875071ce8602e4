/* What the files of the graph of a program share. Internal to workloads/compile/. */
#ifndef PL_WORKLOADS_IR_GRAPH_STATE_H
#define PL_WORKLOADS_IR_GRAPH_STATE_H

#include "core/base/hash_index.h"
#include "netmodel/collective/topology_cache.h"
#include "workloads/compile/compile_lanes.h"
#include "workloads/compile/ir_graph.h"
#include "workloads/compile/ir_graph_acts.h"
#include "workloads/compile/ir_transfers.h"
#include "workloads/language/ir_fewer.h"
#include "workloads/language/ir_routing.h"

/* Devices of a class, parted by the axes over which collectives join them: groups in the order of their first devices,
 * `size` members each, as positions in the crew, rising. */
typedef struct pl_ir_groups {
  uint32_t axes; /* one bit each */
  uint32_t size;
  const uint32_t *members;
} pl_ir_groups;

typedef struct pl_ir_crew {
  const pl_ir_class *class;
  uint32_t *devices; /* of the mesh */
  uint32_t *numbers; /* in the graph; the same unless it is folded */
  uint32_t n_devices;
  uint32_t *last; /* per device: its last task on the compute stream; PL_NONE: none yet */
  pl_ir_groups *groups;
  uint32_t n_groups, room_groups;
} pl_ir_crew;

/* A value: computed here, or on its way. NULL tasks: computed. */
typedef struct pl_ir_arrival {
  uint32_t *tasks; /* per device of the crew */
  bool is_there;   /* gathered and waited for in front of the function */
  bool began;      /* with the product whose output it takes (ir_graph_beside.c) */
  uint8_t shard;   /* of a gradient, whose reduction is still to begin: which of pl_ir_graphing's shards, from 1; or: */
} pl_ir_arrival;
enum { PL_IR_SHARD_LATER = 255 }; /* with what another function adds to the same gradient */

/* Copies to the memory of the host and back, and what is computed there, per device of the crew; PL_NONE: none yet.
 * Those one way run one after the other, as on a stream. */
typedef struct pl_ir_offload {
  uint32_t *out, *back, *host;    /* the last ones */
  uint32_t *left, *left_before;   /* the last that a function which keeps in the host sent out, and the one before */
  uint32_t *began, *began_before; /* where the last function that reads from the host began, and the one before */
  pl_hash_index kept;             /* by path, chunk and microbatch */
  pl_hash_index states;           /* by path */
} pl_ir_offload;

/* Reductions of gradients of one class (ir_graph_gradients.c). */
typedef struct pl_ir_reduction {
  const char *path;        /* of the parameter */
  pl_ir_meeting meeting;   /* of its gradient in the update; no axes: none */
  uint32_t *tasks;         /* per device of the crew; NULL: not begun */
  bool in_host;            /* there it is added up */
  bool at_once;            /* with all others, behind the passes (reduces_whole) */
  bool is_packed;          /* in one tensor with another that comes before it: queries, keys and values */
  int32_t n_adds, n_added; /* functions that add to it in their last passes (a table that embedding and head read has
                              two), and how many have */
  int32_t n_passed;        /* shards of it in all passes so far */
} pl_ir_reduction;

/* All of a class, kept from graph to graph of one program. */
typedef struct pl_ir_reductions {
  bool known, sums_in_host; /* some of them are sums in the host */
  pl_hash_index index;      /* by path */
  pl_ir_reduction **list;
  uint32_t n, room;
} pl_ir_reductions;

enum { PL_IR_BUCKETS_MAX = 8, PL_IR_BESIDE_MAX = 4 };
typedef struct pl_ir_bucket {
  pl_ir_meeting meeting; /* bytes: so far */
  bool at_once;          /* as its members */
  pl_ir_reduction **members;
  uint32_t n, room;
  uint32_t *tasks; /* of a sum, that has begun */
} pl_ir_bucket;

/* What a function takes of device and host in a pass, through its calls. */
typedef struct pl_ir_load {
  bool known;
  double host_s, device_s[PL_IR_GRAPH_PROFILES_MAX];
  double tokens_s; /* exchanges of tokens beside which another pass computes */
} pl_ir_load;

/* What classes of a program do together again and again: a collective inside of one, messages from one to another, or a
 * sum over several. The transfers of it over all devices are numbers `first` ... of the fold. */
typedef struct pl_ir_pattern {
  int32_t class;                  /* where it is; of messages the receivers */
  int32_t from;                   /* of messages the senders; else PL_IR_NONE */
  const pl_ir_attribute *classes; /* of a sum; else NULL */
  uint32_t axes;
  pl_collective_kind kind;
  bool of_tokens;
  double bytes;
  uint32_t first, n_transfers;
  uint32_t *transfer_of; /* per device of the mesh; PL_NONE: it takes part in none, or keeps the message to itself */
} pl_ir_pattern;

typedef struct pl_ir_folding {
  pl_arena *arena;
  pl_ir_crew *whole; /* per class of the program all its devices */
  pl_ir_pattern *patterns;
  uint32_t n_patterns, room_patterns, n_transfers;
  uint32_t *specs; /* per transfer, of the unfolded table */
  double *progress_bytes;
  pl_folding folding;
  uint32_t *place_of; /* per class of devices, its position in the crew of its class of the program */
  pl_transfer_table *table;
  const pl_ir_sent *sent;                /* per spec of it */
  bool is_fused;                         /* ir_graph_fuse.c */
  const uint32_t *rival_offset, *rivals; /* pl_graph\'s; NULL: none */
  uint32_t *member_of; /* per class of transfers: the class of all devices that it joins; PL_NONE: there are several */
} pl_ir_folding;

/* What an op does in a graph besides computing. */
typedef enum pl_ir_does {
  PL_IR_DOES_CALL = 1,
  PL_IR_DOES_MOVE = 2,
  PL_IR_DOES_OFFLOAD = 4,
  PL_IR_DOES_READ_GRADIENT = 8,
  PL_IR_DOES_STORE = 16,
  PL_IR_DOES_REDUCE_SCATTER = 32,
  PL_IR_DOES_ALL_GATHER = 64,
  PL_IR_DOES_ADD = 128,      /* to gradients; or as a kernel of several ops */
  PL_IR_DOES_ONLY_ADD = 256, /* nothing else */
  PL_IR_DOES_BESIDE = 512,   /* runs beside a product */
  PL_IR_DOES_IDLE = 1024     /* and the next two bits: in passes of a category that it is known to do nothing in but
                                wait for its operands */
} pl_ir_does;

/* Of a function: bits of the above by op; what it does as a whole. */
typedef struct pl_ir_doing {
  uint16_t *ops;
  int32_t *readers;            /* pl_ir_graph_readers */
  pl_ir_meeting *meetings;     /* by op, in a pass; without a label: not yet asked for */
  pl_ir_reduction *reductions; /* by op, of those that read gradients, without what is of an instance; without a path:
                                  not yet asked for */
  const pl_ir_function *unit;  /* whose parameters are gathered for it: of a backward function its forward function's */
  bool gathers_params, gathers_matrices; /* of the unit */
  bool reads_gathered;                   /* it gathers some itself */
  bool keeps_in_host, reads_from_host;
} pl_ir_doing;

/* The instances of the calls that are open, innermost first; its text when somebody has asked for it. */
typedef struct pl_ir_prefix {
  struct pl_ir_prefix *outer;
  const char *segment, *text;
} pl_ir_prefix;

typedef struct pl_ir_graphing {
  const pl_cluster *cluster;
  const pl_ir_module *module;
  const uint32_t *places; /* per device of the mesh that of the cluster */
  const pl_ir_graph_options *options;
  pl_arena *arena;
  pl_graph_builder *builder;
  pl_ir_transfers transfers;
  pl_ir_crew *crews, *whole; /* per class; with all its devices */
  pl_ir_crew *now;
  pl_ir_graph *made;
  pl_error *error;
  const pl_ir_played *played; /* `module` is this one's; NULL: it is whole */
  pl_lane_making lanes;
  uint64_t times; /* that what is made counts, with what is left out */
  int32_t microbatch, depth;
  bool everybody; /* meets, though some may pass over this step: gradients */
  pl_category category;
  const pl_framework *framework;
  pl_ir_routing routing; /* of the module */
  bool overlaps_tensor;  /* collectives of the tensor group run beside products */
  bool overlaps_split;   /* those of column splits' derivatives do */
  bool has_pairs;        /* steps run beside each other */
  bool crowds_products;  /* collectives that run beside products take multiprocessors from them */
  bool is_crowded;       /* exchanges of experts, beside which something computes, take multiprocessors from it */
  double token_bytes;    /* of a number that goes to experts; 0: as its type has it */
  int32_t kernel;        /* row */
  bool updates;          /* the launch of this class's optimizer step is counted */
  pl_ticks late_ticks[PL_IR_GRAPH_PROFILES_MAX], launch_ticks[PL_IR_GRAPH_PROFILES_MAX]; /* of this class, so far */
  uint32_t room_spendings, room_insides;
  int32_t function;     /* that runs */
  pl_ir_prefix *prefix; /* NULL: of no instance */
  pl_ir_doing *doings;  /* per function; filled when it first runs */
  pl_ir_price **prices; /* per function and category, by op; NULL: not yet asked for */
  const bool **again;   /* per function, by op: made again in a backward pass; NULL: not yet asked for */
  double used;          /* gathered parameters since the forward pass began, by the list's one chunk */
  double used_forward;  /* by the forward pass */
  pl_hash_index uses;   /* by path: what was used when the forward pass had used it */
  pl_ir_load *loads;    /* per function, forward and backward */
  const pl_ir_load *step;
  bool is_late;
  double late_s[PL_IR_GRAPH_PROFILES_MAX]; /* of this step, by profile */
  /* Of a program of level kernels: gradients on their way. */
  pl_ir_reductions *reductions; /* per class */
  pl_ir_reductions *reduced;    /* of the class that is made */
  pl_ir_bucket buckets[PL_IR_BUCKETS_MAX];
  uint32_t n_buckets;
  pl_ir_bucket shards[PL_IR_BUCKETS_MAX]; /* by axes: that go out behind the next function's gathers */
  uint32_t n_shards;
  pl_ir_meeting gathers[PL_IR_BUCKETS_MAX]; /* of the update, by axes: new parameters on their way to be stored */
  uint32_t n_gathers, n_gathered[PL_IR_BUCKETS_MAX]; /* of each, tensors of parameters */
  pl_ir_bucket sums[PL_IR_BUCKETS_MAX]; /* of the update, by axes: what is added up of shards of gradients */
  uint32_t n_sums;
  pl_ir_arrival
      *beside[PL_IR_BESIDE_MAX]; /* of the function that runs: on their way until its next product is through */
  uint32_t n_beside;
  bool is_last;                 /* no later pass adds to the gradients of this one */
  uint32_t units_forward;       /* of the last forward pass */
  uint32_t n_units;             /* of this step, that have begun: functions whose matrices were gathered */
  uint32_t *unit, *unit_before; /* per device: its last task when the function began whose matrices were gathered
                                   last, and when the one before began */
  /* What has been computed since the last task was made, as parts, per profile of the cluster. */
  pl_part *parts[PL_IR_GRAPH_PROFILES_MAX];
  const pl_ir_origin **origins;                                             /* of them, where names are asked for */
  uint32_t n_parts, room_parts, room_origins, n_origins, room_made_origins; /* the latter two: of the graph's parts */
  pl_hash_index segments;                                                   /* by their parts */
  /* Tasks, per device, that what is computed next waits for. */
  uint32_t **awaited;
  uint32_t n_awaited, room_awaited;
  pl_hash_index heard;              /* tasks that work behind the list has waited for */
  pl_hash_index promises, messages; /* sums by keys; messages by classes and tags */
  uint32_t graph;                   /* number of the one that is made */
  pl_ir_passes *passes;             /* per class; NULL: what steps do is done at once */
  pl_ir_pass *noted;                /* that is being noted; NULL: none */
  pl_ir_offload offload;            /* of the class that is made */
  int32_t chunk;
  pl_ir_folding *fold; /* NULL: every device is in the graph */
  pl_ir_piece piece;   /* of the samples, that the function which runs is on */
} pl_ir_graphing;

pl_code pl_ir_graph_no_memory(const pl_ir_graphing *own);
/* Whether a device of the mesh passes over the step that is made (language/ir_fewer.h): it has no tasks there. */
static inline bool pl_ir_graph_is_absent(const pl_ir_graphing *own, uint32_t device) {
  return !own->everybody && !pl_ir_runs(own->module, device, own->microbatch);
}

/* ---- ir_graph_walk.c: lists ---- */
pl_code pl_ir_graph_take_lanes(pl_ir_graphing *own);
/* A step of the list of own->now, or what follows its steps. */
pl_code pl_ir_graph_walk(pl_ir_graphing *own, int32_t step, bool is_last);
/* The whole list, with its lane. */
pl_code pl_ir_graph_run_list(pl_ir_graphing *own);

/* ---- ir_graph_doing.c: names, read once ---- */
bool pl_ir_graph_gathers_param(const pl_ir_function *f, const pl_ir_op *op);
/* Whether the op gathers a vector where matrices are gathered one by one: every rank has it whole. */
bool pl_ir_graph_stays_whole(const pl_framework *framework, const pl_ir_function *f, const pl_ir_op *op);
const pl_ir_doing *pl_ir_graph_doing(pl_ir_graphing *own, int32_t function); /* NULL: no memory */
/* Per value the index of the one op that reads it, once; negative: there is none, or there are several. NULL: no
 * memory.
 */
const int32_t *pl_ir_graph_readers(pl_ir_graphing *own, int32_t function);
/* The one op that reads a value of the function that runs; NULL: none, or several, or a result. */
const pl_ir_op *pl_ir_graph_reader_of(pl_ir_graphing *own, const pl_ir_function *f, int32_t value);
/* "decoder.h.3", of the calls that are open; "": none has an instance. */
const char *pl_ir_graph_prefix(pl_ir_graphing *own, pl_ir_prefix *prefix);
/* "a.b"; either may be empty. NULL: no memory. */
const char *pl_ir_graph_join(pl_ir_graphing *own, const char *outer, const char *inner);
/* The path of an op of state in there. NULL: no memory. */
const char *pl_ir_graph_path(pl_ir_graphing *own, const char *path);

/* ---- ir_graph_work.c: stretches of computing ---- */
/* The op's kernel behind those that were computed before; nothing of an op without one. */
bool pl_ir_graph_compute(pl_ir_graphing *own, const pl_ir_op *op);
/* Which of PL_IR_GRAPH_CATEGORIES the pass at hand is. */
static inline int32_t pl_ir_graph_pass(const pl_ir_graphing *own) {
  return own->category == PL_CATEGORY_FORWARD ? 0 : own->category == PL_CATEGORY_BACKWARD ? 1 : 2;
}
/* What was computed since becomes one task per device, behind all that it waits for; or an act that is noted. */
pl_code pl_ir_graph_flush(pl_ir_graphing *own);
/* What is computed from here on waits for these tasks. */
pl_code pl_ir_graph_await(pl_ir_graphing *own, pl_ir_arrival *value);

/* Per op of a backward function: it makes a forward value again. NULL: no memory. */
const bool *pl_ir_graph_again(pl_ir_graphing *own, int32_t function);
/* An op's price; NULL: no memory. Of the function and pass that run. */
const pl_ir_price *pl_ir_graph_price(pl_ir_graphing *own, const pl_ir_op *op);
/* A stretch of time more, by profile; `bounds` NULL: computing bounds it nowhere; `origin` NULL: it is no kernel.
 * False: no memory. */
bool pl_ir_graph_part(pl_ir_graphing *own, pl_category category, const pl_ticks *ticks, const uint8_t *bounds,
                      uint32_t name, const pl_ir_origin *origin);

/* ---- ir_graph_spending.c: what a class computed, as its list was made ---- */
/* Behind its list: FLOPs, and what options->spendings asks for. */
pl_code pl_ir_graph_spend(pl_ir_graphing *own, int32_t class);

/* ---- ir_graph_host.c: a host that is late ---- */
pl_code pl_ir_graph_begin_step(pl_ir_graphing *own, const pl_ir_chunk *chunk, pl_ir_step_kind kind);
/* Behind a call of a chunk's function. */
pl_code pl_ir_graph_wait_for_host(pl_ir_graphing *own, int32_t function);

/* ---- ir_graph_gradients.c: gradients and parameters on their way beside computing ---- */
/* What the class's update reduces, by path. In front of its list. */
pl_code pl_ir_graph_find_reductions(pl_ir_graphing *own);
/* Behind an op: gradients that it has added up for the last time go into buckets. */
pl_code pl_ir_graph_added(pl_ir_graphing *own, const pl_ir_op *op, const pl_ir_arrival *values);
/* Whether the op, which does this, only adds to gradients what comes from a collective, which nothing waits for. */
bool pl_ir_graph_adds_shards(const pl_ir_graphing *own, const pl_ir_op *op, uint16_t does, const pl_ir_arrival *values);
/* Buckets that are full, or all of them, begin their way. */
pl_code pl_ir_graph_send_buckets(pl_ir_graphing *own, bool all);
/* The gradient of a path that is on its way since the backward pass: as the update reads it. */
void pl_ir_graph_gradient(pl_ir_graphing *own, const pl_ir_op *op, pl_ir_arrival *values);
/* A reduction whose shard is only added up: it goes out with those of its function, behind what the next one gathers,
 * which would else wait on their stream for the end of this one; or, where a framework does not overlap reductions,
 * with all that fit into a bucket, and is waited for. *deferred false: it goes at once. */
pl_code pl_ir_graph_defer_shard(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *values,
                                bool *deferred);
/* `all`: a step is over. */
pl_code pl_ir_graph_send_shards(pl_ir_graphing *own, bool all);
/* What an update adds up of gradients that were reduced: of one tensor with all others over the same axes, before any
 * is read (_allreduce_layernorm_grads of megatron/core/distributed/finalize_model_grads.py); not of FSDP, which reduces
 * the gradients of each unit as they are. Behind the buckets. */
pl_code pl_ir_graph_send_sums(pl_ir_graphing *own);
/* Of the axes of a reduction of gradients those of tensor ranks, over which they are added up behind it; 0: over all at
 * once. */
uint32_t pl_ir_graph_tensor_axes(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, uint32_t axes);
/* Where the op is one of them: what it gives is on its way. */
bool pl_ir_graph_is_summed(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                           pl_ir_arrival *output);
/* Of the gradient of the parameter in the class that is made; NULL: none. */
pl_ir_reduction *pl_ir_graph_reduction_of(const pl_ir_graphing *own, const char *path);

/* ---- ir_graph_gather.c: parameters ---- */
/* What an update gathers to store it: once for all parameters that lie over the same axes, behind the optimizer's one
 * launch. False: the op is none of these, or there is no room. */
bool pl_ir_graph_defer_gather(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                              const pl_ir_arrival *values);
pl_code pl_ir_graph_send_gathers(pl_ir_graphing *own);
/* What is gathered for a function, a unit or a matrix at a time, while the function before it runs or behind it. */
pl_code pl_ir_graph_gather(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_arrival *values);

/* ---- ir_graph_reuse.c: parameters that ZeRO-3 has gathered and does not let go of ---- */
/* Whether the op, of the function that runs, gathers a parameter that is there since the forward pass. */
bool pl_ir_graph_is_kept(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op);
/* In front of a step. */
void pl_ir_graph_begin_uses(pl_ir_graphing *own, pl_ir_step_kind kind);
/* Behind a function: it has used what it gathers. */
pl_code pl_ir_graph_use_params(pl_ir_graphing *own, int32_t function);

/* ---- ir_graph_beside.c: tensor collectives beside products ---- */
/* Whether the op is one of these. */
bool pl_ir_graph_runs_beside(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op);
pl_code pl_ir_graph_begin_beside(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                                 pl_ir_arrival *values);
/* Whether the op is a matrix product, of a framework that has collectives beside them. */
bool pl_ir_graph_is_product(pl_ir_graphing *own, const pl_ir_op *op);
/* The product, what runs beside it, and behind it all that does. */
pl_code pl_ir_graph_run_product(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                                pl_ir_arrival *values);

/* ---- ir_graph_offload.c: to the memory of the host and back ---- */
/* In front of a class's list. */
pl_code pl_ir_graph_begin_offload(pl_ir_graphing *own);
/* In front of a function: waits until what the one before the last sent out has left the device, so that two at most
 * are on their way; and sends for what this one reads from the host, while the function before it runs. */
pl_code pl_ir_graph_enter_offload(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_arrival *values);
/* Behind one that keeps in the host. */
void pl_ir_graph_leave_offload(pl_ir_graphing *own);
/* A gradient that nothing is added to any more, `ready` behind these tasks (per device of the crew; NULL: behind all
 * that was computed), goes out, if the host has the state of its parameter. */
pl_code pl_ir_graph_offload_gradient(pl_ir_graphing *own, const char *path, const uint32_t *ready);
/* A gradient that is added up in the host, `ready` likewise: what is there of it comes back, this is added to it, and
 * unless it is `whole` it goes out again; the whole does by pl_ir_graph_offload_gradient. */
pl_code pl_ir_graph_offload_sum(pl_ir_graphing *own, const char *path, const uint32_t *ready, bool whole);
/* Whether the op is one that the host has its part in: keep and kept there, and updates of states that lie there. */
bool pl_ir_graph_is_offloaded(const pl_ir_function *f, const pl_ir_op *op);
pl_code pl_ir_graph_offload(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *values);

/* ---- ir_graph_move.c: communication ---- */
pl_ir_meeting pl_ir_graph_meeting_of(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op);
/* Whether the op is the first part of an exchange with experts that lie over several axes: all of it meets in the last
 * part, among the devices of all these axes. */
bool pl_ir_graph_is_leg(const pl_ir_function *f, const pl_ir_op *op);
/* Whether what it gathers is where the tokens stand, which every rank knows. */
bool pl_ir_graph_is_known(const pl_ir_function *f, const pl_ir_op *op);
/* A name for timelines; PL_NONE: there are none. */
uint32_t pl_ir_graph_label(pl_ir_graphing *own, const char *text);
/* Seconds of such a collective in the first group of the crew, alone on the network. */
pl_code pl_ir_graph_meeting_alone(pl_ir_graphing *own, const pl_ir_meeting *meeting, double *time_s);
/* One transfer per group of devices along its axes, behind what `behind` says and what the
 * value waits for (NULL: nothing). */
pl_code pl_ir_graph_meet(pl_ir_graphing *own, const pl_ir_meeting *meeting, pl_ir_behind behind,
                         const pl_ir_arrival *input, pl_ir_arrival *output);
/* Devices by groups along axes: of the crew, or of all where the graph is folded. NULL: no memory. */
const pl_ir_groups *pl_ir_graph_groups_over(pl_ir_graphing *own, uint32_t axes);
const pl_ir_crew *pl_ir_graph_crew_named(const pl_ir_graphing *own, const char *name); /* of a class; NULL: none */
/* Whether the op moves something (`cut` does not). Such ops await their operands themselves. */
bool pl_ir_graph_moves(const pl_ir_op *op);
pl_code pl_ir_graph_move(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *values);

/* ---- ir_graph_acts.c: what acts make of the graph ---- */
/* At once, or it is noted. */
pl_code pl_ir_graph_act(pl_ir_graphing *own, const pl_ir_act *act);
/* At once. */
pl_code pl_ir_graph_do(pl_ir_graphing *own, const pl_ir_act *act);
/* Between classes under a tag; the same one whoever asks. NULL: no memory. */
pl_ir_message *pl_ir_graph_message(pl_ir_graphing *own, const pl_ir_crew *from, const pl_ir_crew *to, const char *tag);

/* ---- ir_graph_pass.c: steps, noted once and done for every microbatch ---- */
/* Per step of the list, and for what follows it, which pass it is: its place in pl_ir_passes.steps. NULL: no memory. */
const int32_t *pl_ir_graph_places(pl_ir_graphing *own, const pl_ir_class *class);
/* Whether no later step adds to the gradients of this one's chunk. */
static inline bool pl_ir_graph_is_last(int32_t place) {
  return place % 2 == 1;
}
pl_code pl_ir_graph_note(pl_ir_graphing *own, const pl_ir_act *act);
/* False: no memory. */
bool pl_ir_graph_note_run(pl_ir_graphing *own, pl_ir_price *price);
/* Goes through a step of own->now's class, or through what follows its list. */
typedef pl_code (*pl_ir_step_walk)(pl_ir_graphing *own, int32_t step, bool is_last);
/* Notes what the lists' steps do where that is not yet known; own->crews has all devices of each class. A program whose
 * steps end with something that the next ones are to wait for is not noted: own->passes becomes NULL. */
pl_code pl_ir_graph_note_passes(pl_ir_graphing *own, pl_ir_step_walk walk);
/* The list of own->now's class, and what follows it. */
pl_code pl_ir_graph_do_list(pl_ir_graphing *own, void (*begin_step)(pl_ir_graphing *own, int32_t step));
/* How many devices of the class, folded or not, do not pass over the step that is made. */
uint64_t pl_ir_graph_present(const pl_ir_graphing *own);

/* ---- ir_graph_fold.c: one device per class ---- */
/* Once passes are noted: *folds false, they are to be done on all devices. */
pl_code pl_ir_graph_fold(pl_ir_graphing *own, bool *folds);
/* The rest where own->fold. */
/* All devices of the class that is made. */
pl_ir_crew *pl_ir_graph_whole_crew(const pl_ir_graphing *own);
pl_code pl_ir_graph_meet_folded(pl_ir_graphing *own, const pl_ir_act *act, const uint32_t *after);
/* What the receivers hear: one task each. PL_NONE: theirs is a message to themselves. */
void pl_ir_graph_message_folded(pl_ir_graphing *own, const pl_ir_act *act, uint32_t *tasks);
/* The sum of a device of the crew: its task among `known`, per class of transfers, made where it is not. */
uint32_t pl_ir_graph_sum_folded(pl_ir_graphing *own, const pl_ir_act *act, uint32_t *known, uint32_t d);
/* How many there may be. */
uint32_t pl_ir_graph_folded_transfers(const pl_ir_graphing *own);
/* Of a collective, a message or a sum. */
const pl_ir_pattern *pl_ir_graph_pattern(const pl_ir_graphing *own, const pl_ir_act *act);
/* What the device of the mesh takes part in. PL_NONE: in none. */
uint32_t pl_ir_graph_class_of_transfer(const pl_ir_graphing *own, const pl_ir_pattern *pattern, uint32_t device);
double pl_ir_graph_progress_of_class(const pl_ir_graphing *own, uint32_t class);

/* ---- ir_graph_fuse.c: collectives inside of work ---- */
/* Of a folded graph, whose representatives are in the crews. */
pl_code pl_ir_graph_fuse(pl_ir_graphing *own);

/* ---- ir_graph_pace.c: how long a microbatch takes ---- */
/* Of what is noted of a folded graph, each list with one chunk. False: it cannot be told. */
bool pl_ir_graph_pace_of(pl_ir_graphing *own, pl_ir_pace *pace);
/* Whether a pass may hand something on to later ones. */
bool pl_ir_graph_carries(const pl_ir_graphing *own);

#endif
