/* Pieces: a pass of a stage compiled for one crew (workloads/compile/compile.h), ready to be emitted for any
 * microbatch. */
#ifndef PL_WORKLOADS_PIECES_H
#define PL_WORKLOADS_PIECES_H

#include "core/graph/graph.h"
#include "workloads/compile/block_scale.h"
#include "workloads/compile/communication.h"
#include "workloads/compile/compile.h"
#include "workloads/lower/block_prices.h"

typedef enum pl_piece_kind {
  PL_PIECE_WORK = 0,   /* segment on the compute stream */
  PL_PIECE_JOINT,      /* joint segment of the crew (workloads/compile/compile.h) */
  PL_PIECE_COLLECTIVE, /* between the work before and the work after it */
  PL_PIECE_BEGIN,      /* starts after the work before it and runs beside the work after it */
  PL_PIECE_COMPLETE,   /* the work after it waits for what has begun */
  PL_PIECE_REDUCE,     /* starts after the work before it; the work behind it waits only without
                          overlap */
  PL_PIECE_GATHER,     /* likewise, awaited later */
  PL_PIECE_AWAIT,
  PL_PIECE_EMBEDDING
} pl_piece_kind;

typedef struct pl_piece {
  uint8_t kind;
  uint8_t category; /* of the work's first part */
  uint32_t segment; /* WORK, JOINT */
  uint32_t effect;  /* WORK, JOINT: PL_NONE = none */
  uint8_t slot;     /* of the communicator (workloads/compile/communication.h) */
  uint32_t op;      /* of its family */
  uint32_t name;    /* PL_NONE = none */
} pl_piece;

/* A device's collectives differ at most by the links that ring, tree and the two phases of a hierarchy use. */
enum { PL_PIECES_CARRIED = 8 };

typedef struct pl_carried {
  uint32_t transfer_class;
  double progress_bytes;
} pl_carried;

typedef struct pl_pieces {
  const pl_piece *pieces;
  uint32_t n;
  pl_carried carried[PL_PIECES_CARRIED]; /* by collectives inside the segments */
  uint32_t n_carried;
} pl_pieces;

/* A pass of some crew (workloads/compile/pieces_known.h). */
typedef struct pl_known_pass {
  const pl_pass *pass;
  pl_category category;
  const pl_device_profile *profile;
  const pl_device_class *device; /* any of the crew */
  pl_pieces pieces;
} pl_known_pass;

enum { PL_KNOWN_PASSES = 12 };

/* Room for the parts of a pass, and the last passes, kept from one pass to the next of a compilation; empty when
 * zeroed. */
typedef struct pl_piece_scratch {
  pl_part *parts;
  struct pl_part_note *notes;
  pl_part_origin *origins;
  uint32_t room;
  pl_known_pass known[PL_KNOWN_PASSES]; /* ring */
  uint32_t n_known;                     /* so far */
} pl_piece_scratch;

typedef struct pl_piece_context {
  const pl_program *program;
  const pl_communication_plan *plan;
  const pl_compile_options *options;
  const pl_device_class *device; /* any of the crew */
  const pl_device_profile *profile;
  const pl_block_prices *prices;     /* of the program's blocks on that profile */
  const pl_block_scale (*scales)[2]; /* by class of blocks and pass; NULL: nothing was measured */
  bool is_crowded;                   /* exchanges of experts take multiprocessors from what runs beside them */
  double late_s;                     /* by how much the host is late in the pass (workloads/compile/host_floor.h) */
  pl_graph_builder *builder;
  pl_piece_scratch *scratch;
  pl_arena *arena;
} pl_piece_context;

/* Memory from the arena; NULL pieces: no memory. Segments, effects and names go into the builder. There is always at
 * least one WORK piece; `category` is for a pass without ops. */
pl_pieces pl_pieces_take(const pl_piece_context *context, const pl_pass *pass, pl_category category);

#endif
