/* What passes of a program's lists, and its updates, do to the memory of a device: functions walked through op by op,
 * values alive from the op that makes them to their last reader (workloads/memory/outlook.h). Internal to
 * workloads/memory/: program_memory.c says whose passes, and in what order. */
#ifndef PL_WORKLOADS_PASS_WALK_H
#define PL_WORKLOADS_PASS_WALK_H

#include "core/base/hash_index.h"
#include "workloads/language/ir_piece.h"
#include "workloads/language/ir_routing.h"
#include "workloads/memory/buffer_memory.h"
#include "workloads/memory/outlook.h"
#include "workloads/memory/program_memory.h"

enum { PL_WALK_PATH_BYTES = 1024, PL_WALK_PASSES = PL_IR_STEP_W + 1 };

/* Memory of one or more values. */
typedef struct pl_value_memory {
  double bytes;
  int32_t references;
} pl_value_memory;

/* What a path keeps of the microbatch that is walked through; or that its state is counted. */
typedef struct pl_path_memory {
  const char *path;
  int32_t kind; /* the chunk, or what is counted */
  pl_value_memory *kept;
  bool is_counted, for_weights; /* for_weights: the weights function reads it */
} pl_path_memory;

/* A pass up to where it waits for tokens on their way to experts or back, or to its end. */
typedef struct pl_pass_part {
  double live, peak; /* bytes above what was there when the pass began: at the end of the part, and the most in it */
} pl_pass_part;

/* What a pass of a chunk does to the values on the device, and to those in its host: the same for every microbatch,
 * since it only sees what the passes of its own microbatch before it have kept. */
typedef struct pl_pass_effect {
  double net, peak; /* bytes: what it leaves, and the most above what was there */
  double host_net, host_peak;
  const pl_pass_part *parts; /* of a program whose steps run beside each other; at least one */
  int32_t n_parts;
  bool exchanges, ends_waiting; /* tokens; its last op that does anything does */
} pl_pass_effect;

/* The first pass of each kind is walked through, all others do what it did. */
typedef struct pl_chunk_walk {
  bool is_known[PL_WALK_PASSES];
  pl_pass_effect effects[PL_WALK_PASSES];
  double masks; /* bytes that the forward pass wrote */
} pl_chunk_walk;

typedef struct pl_pass_walk {
  const pl_ir_module *module;
  const pl_ir_recurrence *recurrence; /* of its lists; NULL: not known */
  const pl_framework *framework;
  pl_dtype dtype; /* of the module */
  pl_training_state state;
  pl_arena *arena;
  pl_arena frames; /* values of the functions that are in the middle of it */
  pl_class_memory *made;
  pl_step_memory *steps; /* of it; NULL: not asked for */
  pl_hash_index entries;
  uint32_t most_entries;         /* of a class so far */
  const pl_outlook *outlooks;    /* per function */
  bool *is_counted;              /* per function: its parameters and gradients, in the class at hand */
  char path[PL_WALK_PATH_BYTES]; /* of the calls that it is in */
  size_t path_length;
  pl_value_memory **free_list;
  uint32_t n_free, room_free;
  double live, peak; /* of values */
  bool joins;        /* steps run beside each other: passes are taken in parts */
  pl_ir_routing routing;
  pl_pass_part *parts; /* of the pass that is walked through */
  uint32_t n_parts, room_parts;
  double most; /* in the parts before */
  bool waits;  /* for tokens */
  pl_chunk_walk *chunks;
  int32_t chunk, depth;
  pl_ir_piece piece;
  pl_ir_step_kind kind;
  bool keeps_for_weights, counts;
  double elements; /* of optimizer states on the device */
  pl_buffer_facts buffers;
  double gradient_elements, block, block_before; /* parameters of the call of a chunk that it is in, and before */
  bool gathers;                                  /* parameters */
  double added;                                  /* bytes of gradients that stay until the pass is over */
  double host_elements, host_gradients, host_live, host_peak;
  /* On their way to the host or back: of the function that runs, and of the one before. */
  pl_value_memory **moving[2];
  uint32_t n_moving[2], room_moving[2];
} pl_pass_walk;

/* What a weights function reads, through its calls, is there until then: of `walk->chunk`. False: no memory, of all
 * these, or calls nest too deep. */
bool pl_pass_walk_weights(pl_pass_walk *walk, int32_t function);
/* A function of a chunk or of the update; the next time that it is run there is nothing in it to be counted. */
bool pl_pass_walk_whole(pl_pass_walk *walk, int32_t function);
/* Through a pass as if there were nothing else; what it does. */
bool pl_pass_walk_through(pl_pass_walk *walk, int32_t function, pl_pass_effect *effect);

#endif
