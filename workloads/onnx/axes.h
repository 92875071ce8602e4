/* Dimensions by meaning. ONNX counts a tensor's axes; programs name them. An axis is followed through the graph: what
 * two ops must have equal is one axis (union-find), and where a reshape takes an axis apart, [b, s, 768] as [b, s, 12,
 * 64], it is made of parts from then on, in every tensor that has it, the weights included: so reshapes, transposes and
 * squeezes are nothing but other lists of the same parts, and no op is left of them.
 *
 * A part is called LEAF here; an axis is a leaf or a list of leaves, outermost first, or, of extent 1, nothing
 * (PL_AXIS_NONE). Keys' positions are a COPY of the queries': the same extent, never the same axis, since scores have
 * both. Groups of leaves share a name though their extents differ (rows of a picture before and after a convolution).
 */
#ifndef PL_WORKLOADS_ONNX_AXES_H
#define PL_WORKLOADS_ONNX_AXES_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "workloads/language/ir_type.h"

enum { PL_AXIS_NONE = -1, PL_AXIS_LEAVES_MAX = 32 };

/* What a group is used for: says how it is called (axes_name.c). */
enum {
  PL_AXIS_BATCH = 1,       /* samples */
  PL_AXIS_TOKENS = 2,      /* of a sample */
  PL_AXIS_FIXED = 4,       /* normalised over, added to itself, taken in parts: not to be cut over tensor ranks */
  PL_AXIS_CUT = 8,         /* columns of one product with weights and rows of the next */
  PL_AXIS_HEADS = 16,      /* the same, with other leaves behind it in its axis */
  PL_AXIS_VOCABULARY = 32, /* rows of a table of words, columns of logits */
  PL_AXIS_TABLE = 64,      /* rows of another table */
  PL_AXIS_HIDDEN = 128,    /* normalised over, or columns of a table */
  PL_AXIS_CHANNELS = 256,
  PL_AXIS_ROWS = 512,
  PL_AXIS_COLUMNS = 1024,
  PL_AXIS_FILTER_ROWS = 2048,
  PL_AXIS_FILTER_COLUMNS = 4096,
  PL_AXIS_DEPTH = 8192,   /* of a head of queries and keys */
  PL_AXIS_VALUES = 16384, /* of a head of values */
  PL_AXIS_QUERIES = 32768 /* heads of queries of one head of keys */
};

typedef struct pl_axis {
  int64_t extent;
  int32_t parent;                           /* union-find; itself: a root */
  int32_t n_parts, first_part;              /* of a root that is taken apart: in `parts` */
  int32_t copy_of;                          /* PL_AXIS_NONE */
  int32_t first_apart, last_apart, n_apart; /* of a root: axes that it never becomes one with, in `apart` */
  int32_t group;                            /* union-find of names */
  int32_t roles;                            /* of a group's root */
  pl_ir_name name;                          /* likewise, once there is one */
} pl_axis;

typedef struct pl_apart {
  int32_t axis, next;
} pl_apart;

typedef struct pl_axes {
  pl_axis *all;
  int32_t *parts;
  pl_apart *apart;
  int32_t n, n_parts, n_apart;
  uint32_t room, room_parts, room_apart;
  pl_arena *arena; /* ->failed: no memory */
} pl_axes;

typedef struct pl_axis_list {
  int32_t n;
  int32_t leaf[PL_AXIS_LEAVES_MAX];
} pl_axis_list;

/* A leaf of its own. */
int32_t pl_axis_new(pl_axes *axes, int64_t extent);
int32_t pl_axis_find(const pl_axes *axes, int32_t axis);
/* An axis of these leaves; PL_AXIS_NONE of none, the leaf itself of one. */
int32_t pl_axis_of(pl_axes *axes, const pl_axis_list *list);
/* The leaves of an axis, as they are now, appended; false: too many. */
bool pl_axis_leaves(const pl_axes *axes, int32_t axis, pl_axis_list *list);
/* Takes a leaf apart into `outer` times the rest; outer divides its extent. */
void pl_axis_take_apart(pl_axes *axes, int32_t leaf, int64_t outer);
/* They are never one: rows and columns of a weight, queries and keys. */
void pl_axis_keep_apart(pl_axes *axes, int32_t a, int32_t b);
/* They are one. False: they are not (kept apart, extents that do not nest): who uses both converts. */
bool pl_axis_unite(pl_axes *axes, int32_t a, int32_t b);
/* Axes of the same extents that are never the same. */
int32_t pl_axis_copy(pl_axes *axes, int32_t axis);
/* Leaves that the axis shares with the list, or is a copy of one of. */
bool pl_axis_meets(const pl_axes *axes, int32_t axis, const pl_axis_list *list);

/* ---- names ---- */
int32_t pl_axis_group(const pl_axes *axes, int32_t leaf);
void pl_axis_same_name(pl_axes *axes, int32_t leaf, int32_t other);
void pl_axis_mark(pl_axes *axes, int32_t axis, int32_t roles); /* all of its leaves */
bool pl_axis_is(const pl_axes *axes, int32_t leaf, int32_t role);
static inline pl_ir_name pl_axis_name(const pl_axes *axes, int32_t leaf) {
  return axes->all[pl_axis_group(axes, leaf)].name;
}

/* Gives every leaf's group a name: meeting groups (two of a list) get different ones. `lists` are what ops see at once.
 */
void pl_axes_name_all(pl_axes *axes, int32_t n_lists, const pl_axis_list *lists);

#endif
