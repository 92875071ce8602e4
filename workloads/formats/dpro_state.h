/* Within the reader of dPRO's folders: what was recorded, before it is ops. */
#ifndef PL_WORKLOADS_FORMATS_DPRO_STATE_H
#define PL_WORKLOADS_FORMATS_DPRO_STATE_H

#include "workloads/formats/dpro.h"
#include "workloads/formats/dpro_events.h"

typedef enum pl_dpro_kind {
  PL_DPRO_COMPUTING = 0,
  PL_DPRO_SYNC,       /* the tensor is agreed upon by all ranks */
  PL_DPRO_COPY_IN,    /* into the fusion buffer */
  PL_DPRO_SEND,       /* a chunk to the next of the ring */
  PL_DPRO_RECEIVE,    /* one from the one before */
  PL_DPRO_ALL_REDUCE, /* the whole, of which the two are parts */
  PL_DPRO_COPY_OUT,
  /* BytePS, see workloads/formats/byteps.h; each at both of its ends */
  PL_DPRO_PUSH,   /* a gradient to its server */
  PL_DPRO_PUSHED, /* the server's acknowledgement */
  PL_DPRO_PULL,   /* the request for the sum */
  PL_DPRO_PULLED, /* the sum */
  PL_DPRO_WORK    /* of a server: COPY_FIRST, SUM, COPY_MERGED */
} pl_dpro_kind;

typedef struct pl_dpro_event {
  int64_t start_ns, duration_ns;
  int64_t step;     /* group_id; -1: not said */
  uint32_t name;    /* computing: the op */
  uint32_t tensors; /* name: "1+2+3", ascending */
  uint32_t thread;  /* name: computing */
  int32_t loop, channel, chunk, slice;
  int32_t peer; /* rank at the other end of a send or receive; -1: not known */
  uint32_t op;  /* made of it; PL_NONE */
  uint8_t kind;
  bool is_down; /* sends and receives of a tree: away from its root */
  bool sends;   /* of BytePS' messages: this is the sender's end */
} pl_dpro_event;

typedef struct pl_dpro_ring {
  int32_t channel;
  int64_t next, previous; /* ranks; -1: not said */
} pl_dpro_ring;

/* Of NCCL's tree of a channel: where the rank stands in it. */
enum { PL_DPRO_MOST_CHILDREN = 8 };
typedef struct pl_dpro_tree {
  int32_t channel, up; /* up: -1: it is the root */
  int32_t down[PL_DPRO_MOST_CHILDREN];
  uint32_t n_down;
} pl_dpro_tree;

typedef struct pl_dpro_phase {
  uint32_t process, name;
  int64_t start_ns;
} pl_dpro_phase;

typedef struct pl_dpro_process {
  uint32_t process, title, thread; /* names; thread PL_NONE: of the process itself */
} pl_dpro_process;

typedef struct pl_dpro {
  const char *path;
  int64_t number;
  pl_trace *trace;
  pl_dpro_event *events;
  pl_dpro_phase *open;
  pl_dpro_process *processes;
  pl_dpro_ring *rings;
  pl_dpro_tree *trees;
  uint32_t n_events, event_room, n_open, open_room, n_processes, process_room, n_rings, ring_room, n_trees, tree_room;
  uint32_t n_negative, n_without_time, n_unpaired, n_contradictions;
  bool is_cut, has_chunks;
  bool is_byteps, is_server;
  bool along_trees; /* chunks went along trees */
  bool is_tree;     /* and each has its other end */
} pl_dpro;

/* "[0] 1/-1/-1->0->-1|.. [1] ..": the rank's place in the tree of each channel. False: no memory. */
bool pl_dpro_trees_parse(pl_dpro *own, const char *text);
/* Gives sends and receives the other end, if they went along trees; sorts events by start. */
pl_code pl_dpro_trees_follow(pl_dpro *own, pl_error *error);
int pl_dpro_by_start(const void *a, const void *b);

/* It sends, at its own end. */
static inline bool pl_dpro_sends(const pl_dpro_event *event) {
  return event->kind == PL_DPRO_SEND || event->sends;
}
/* A message between two ranks. */
static inline bool pl_dpro_is_transfer(const pl_dpro_event *event) {
  return event->kind == PL_DPRO_SEND || event->kind == PL_DPRO_RECEIVE ||
         (event->kind >= PL_DPRO_PUSH && event->kind <= PL_DPRO_PULLED);
}

/* Events to ops, and the end of the rank. */
pl_code pl_dpro_finish(pl_dpro *own, pl_error *error);

#endif
