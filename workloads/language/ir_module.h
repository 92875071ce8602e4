/* Programs: what runs, as text (.plir) and in memory. One language from the model to the devices' lists.
 *
 *   level         what it says                                        mesh            made by
 *   model         the forward pass, whole values                      none            import/ (build)
 *   training      forward, backward, update                           none            derive/differentiate
 *   distributed   the same for the devices of a mesh: values have     the strategy's  passes/partition
 *                 layouts, collectives and sends stand where layouts
 *                 need them
 *   kernels       the same as a framework launches it: ops that are one    the strategy's  fuse/kernels
 *                 kernel are functions that `kernel` calls
 *
 * A module has functions and classes. A function is a list of ops in program order over values that are assigned once
 * (SSA); what repeats, a layer, is one function that is called several times. A call names an INSTANCE, "h.3", a prefix
 * of all paths inside it: `param "mlp.up"` in a function called as "h.3" from one called as "decoder" is the parameter
 * "decoder.h.3.mlp.up". A function without an instance of its own adds nothing.
 *
 * A class is the devices that run one list (a pipeline stage): which part of the mesh it has, the functions of its
 * model chunks, and its steps, F (forward), B (backward) and W (backward for weights, where that is apart) per chunk
 * and microbatch. Behind the steps it runs its update function once. Sends and receives are ops of the chunks'
 * functions: a step waits for what it receives. Model and training programs have one class, with one step F0.0 (and
 * B0.0).
 *
 * State of a device: parameters, gradients (zero when an iteration begins), optimizer state by path; kept values by
 * instance, chunk and microbatch, from the forward function that keeps them to the backward function that reads them.
 */
#ifndef PL_WORKLOADS_IR_MODULE_H
#define PL_WORKLOADS_IR_MODULE_H

#include "core/base/arena.h"
#include "core/base/hash_index.h"
#include "core/base/status.h"
#include "workloads/language/ir_type.h"

enum { PL_IR_NONE = -1, PL_IR_OPERANDS_MAX = 64 /* inputs or outputs of an op */, PL_IR_ATTRIBUTES_MAX = 16 };

typedef enum pl_ir_level {
  PL_IR_MODEL = 0,
  PL_IR_TRAINING,
  PL_IR_DISTRIBUTED,
  PL_IR_KERNELS,
  PL_IR_LEVEL_COUNT
} pl_ir_level;
extern const char *const pl_ir_level_names[]; /* by enumerator; NULL ends them */

/* Attributes of an op, by name; a row of the op table (ir_table.h) says which it takes. */
typedef enum pl_ir_attribute_kind {
  PL_IR_INTEGER = 0,
  PL_IR_REAL,
  PL_IR_NAMES, /* of dimensions, axes or classes: over=(b, s) or over=h */
  PL_IR_TEXT   /* "..." */
} pl_ir_attribute_kind;

typedef struct pl_ir_attribute {
  pl_ir_name name;
  uint8_t kind; /* pl_ir_attribute_kind */
  uint8_t n_names;
  int64_t integer;
  double real;
  const char *text;
  const pl_ir_name *names;
} pl_ir_attribute;

typedef struct pl_ir_place {
  int32_t line, column; /* 1 and more; 0: made by a pass */
} pl_ir_place;

typedef struct pl_ir_op {
  uint16_t row; /* of the op table */
  uint16_t n_inputs, n_outputs, n_attributes;
  const int32_t *inputs; /* values of the function */
  int32_t first_output;  /* its outputs are values first_output, first_output + 1 ... */
  const pl_ir_attribute *attributes;
  const char *path;   /* of ops with state, and the instance of a call ("" = none); else NULL */
  int32_t callee;     /* function of a call; else PL_IR_NONE */
  const char *reason; /* why a pass put it there; NULL: it was there. Printed as a comment */
  const char *origin; /* of a derived op: what the op that it was derived from gives, by name; NULL: itself */
  pl_ir_place place;
} pl_ir_op;

typedef struct pl_ir_value {
  const char *name; /* printed behind %; unique in its function */
  pl_ir_type type;
  int32_t op; /* that makes it; PL_IR_NONE: an argument */
} pl_ir_value;

typedef struct pl_ir_function {
  const char *name;
  pl_ir_op *ops;
  pl_ir_value *values; /* arguments first */
  int32_t n_ops, n_values, n_arguments;
  uint32_t room_ops, room_values; /* capacity */
  pl_hash_index names;            /* of values; a value keeps the name that it was made with */
  const int32_t *results;         /* values handed back, in the function's last line */
  int32_t n_results;
  pl_ir_place place;
} pl_ir_function;

typedef enum pl_ir_step_kind { PL_IR_STEP_F = 0, PL_IR_STEP_B, PL_IR_STEP_W } pl_ir_step_kind;

/* Steps that are joined (F0.3+B1.2+W1.2) are a forward pass and, beside it, backward passes in their order. Both have
 * all that they receive when they begin; each computes while the other waits for tokens of experts on their way, as
 * DualPipe's pairs do. What they compute is what it would be one after the other. */
typedef struct pl_ir_step {
  uint8_t kind;  /* pl_ir_step_kind */
  bool joined;   /* with the next one: a forward pass beside what follows it (below) */
  int32_t chunk; /* of the whole model, counted from its first block */
  int32_t microbatch;
  pl_ir_place place;
} pl_ir_step;

/* Functions of a chunk; PL_IR_NONE = none. They take no arguments and give no results: receives and sends are inside.
 */
typedef struct pl_ir_chunk {
  int32_t chunk, forward, backward, weights;
  pl_ir_place place;
  /* Those that it runs; n 0: all. A model that is there twice has the chunks of each copy run theirs. */
  int32_t first_microbatch, n_microbatches;
} pl_ir_chunk;

/* The first microbatch of a chunk, and the one behind its last. */
static inline int32_t pl_ir_chunk_end(const pl_ir_chunk *chunk, int32_t n_microbatches) {
  return chunk->n_microbatches > 0 ? chunk->first_microbatch + chunk->n_microbatches : n_microbatches;
}

typedef struct pl_ir_class {
  const char *name;
  int32_t at[PL_IR_AXES_MAX]; /* coordinate on the mesh; PL_IR_NONE: all along that axis */
  pl_ir_chunk *chunks;
  pl_ir_step *steps;
  int32_t n_chunks, n_steps;
  int32_t update; /* function, behind the steps; PL_IR_NONE = none */
  pl_ir_place place;
} pl_ir_class;

/* Devices that run fewer microbatches than all others (ir_fewer.h). */
typedef struct pl_ir_fewer {
  int32_t at[PL_IR_AXES_MAX]; /* coordinate on the mesh; PL_IR_NONE: all along that axis */
  int32_t n_microbatches;
  pl_ir_place place;
} pl_ir_fewer;

/* Which framework launches the program (a name of workloads/frameworks/ or a file), with what its strategy says
 * otherwise than the framework's profile. */
typedef struct pl_ir_launcher {
  const char *name; /* NULL: it does not say */
  int8_t overlap;   /* whether gradients are reduced beside computing; PL_IR_NONE: as in the profile */
  uint8_t tokens;   /* index into pl_ir_token_orders; 0: as in the profile */
  pl_ir_place place;
} pl_ir_launcher;
/* How a layer's ops stand around the exchanges of tokens with its experts; NULL ends them. */
extern const char *const pl_ir_token_orders[];

typedef struct pl_ir_module {
  const char *name;
  const char *source; /* the file that it was read from; NULL: made by a pass */
  pl_ir_level level;
  pl_ir_launcher launcher;
  pl_ir_mesh mesh;
  /* Devices of the platform, in the order of the devices of the mesh that some class has; NULL: every device of the
   * mesh has a class, and is the platform's of the same number. */
  const uint32_t *places;
  int32_t n_places;
  int32_t n_microbatches;
  const pl_ir_fewer *fewer; /* no device is at two of them */
  int32_t n_fewer;
  pl_ir_function **functions; /* callees before callers */
  int32_t n_functions;
  uint32_t room_functions;
  pl_hash_index function_names;
  pl_ir_class *classes;
  int32_t n_classes;
  pl_arena *arena; /* owns everything */
} pl_ir_module;

/* An empty module in `arena`, which outlives it. */
void pl_ir_module_init(pl_ir_module *module, pl_arena *arena, const char *name, pl_ir_level level);
/* The same for the devices and microbatches of `like`, which outlives it too. */
void pl_ir_module_init_like(pl_ir_module *module, pl_arena *arena, const pl_ir_module *like, pl_ir_level level);
/* Room for so many of a function that is empty, at once. No promise. */
void pl_ir_function_expect(pl_ir_module *module, pl_ir_function *function, int32_t n_ops, int32_t n_values);
/* NULL: no memory (arena->failed). Names are copied. */
pl_ir_function *pl_ir_function_add(pl_ir_module *module, const char *name);
/* Adds a function that was written apart, in memory of the module's arena, so that its callees could be added first.
 * Returns its index, PL_IR_NONE: no memory. */
int32_t pl_ir_function_append(pl_ir_module *module, pl_ir_function *function);
int32_t pl_ir_function_find(const pl_ir_module *module, const char *name);  /* PL_IR_NONE = none; O(1) */
int32_t pl_ir_value_find(const pl_ir_function *function, const char *name); /* PL_IR_NONE = none; O(1) */

/* ---- writing a function; a failed allocation sets arena->failed and gives PL_IR_NONE, so that makers check once ----
 */
/* Before any op. */
int32_t pl_ir_argument(pl_ir_module *module, pl_ir_function *function, const char *name, const pl_ir_type *type);
/* Appends an op whose outputs are values of the given names and types; a name that is taken gets a number. Returns the
 * first output (PL_IR_NONE without outputs). Inputs, attributes and texts are copied. */
typedef struct pl_ir_making {
  int32_t row;
  int32_t n_inputs, n_outputs, n_attributes;
  const int32_t *inputs;
  const pl_ir_attribute *attributes;
  const char *const *output_names; /* NULL: the op's name */
  const pl_ir_type *output_types;
  const char *path, *reason, *origin;
  int32_t callee;
  pl_ir_place place;
} pl_ir_making;
int32_t pl_ir_op_add(pl_ir_module *module, pl_ir_function *function, const pl_ir_making *making);
/* An op like `op` of `from`, all but its inputs, which are the caller's to set. `names` and `types` have room for its
 * outputs, live as long as the making, and may be changed before it is added. */
pl_ir_making pl_ir_making_like(const pl_ir_function *from, const pl_ir_op *op, const char **names, pl_ir_type *types);
void pl_ir_results_set(pl_ir_module *module, pl_ir_function *function, int32_t n, const int32_t *values);

/* ---- attributes ---- */
pl_ir_attribute pl_ir_integer(const char *name, int64_t value);
pl_ir_attribute pl_ir_real(const char *name, double value);
pl_ir_attribute pl_ir_text(const char *name, const char *text);
pl_ir_attribute pl_ir_names(const char *name, int32_t n, const pl_ir_name *names); /* names live as long as the call */
/* NULL: the op has none of this name. */
const pl_ir_attribute *pl_ir_attribute_find(const pl_ir_op *op, const char *name);
int64_t pl_ir_integer_of(const pl_ir_op *op, const char *name, int64_t otherwise);
double pl_ir_real_of(const pl_ir_op *op, const char *name, double otherwise);
/* Its text, or the first of its names; "": the op has none of this name. */
const char *pl_ir_text_of(const pl_ir_op *op, const char *name);
bool pl_ir_op_has_name(const pl_ir_op *op, const char *attribute, pl_ir_name name);

/* The op that makes a value; NULL: it is handed in. */
static inline const pl_ir_op *pl_ir_maker_of(const pl_ir_function *f, int32_t value) {
  return f->values[value].op != PL_IR_NONE ? &f->ops[f->values[value].op] : NULL;
}

/* ---- devices ---- */
/* Whether a device is at these coordinates; PL_IR_NONE: all along that axis. */
bool pl_ir_mesh_is_at(const pl_ir_mesh *mesh, const int32_t *at, uint32_t device);
/* Whether a device of the mesh is in the class's part of it. */
bool pl_ir_class_has(const pl_ir_module *module, const pl_ir_class *class, uint32_t device);
/* The device of class `of` that a device of another class sends to and receives from: it has the same coordinates, but
 * for those that `of` has alone. */
uint32_t pl_ir_class_partner(const pl_ir_module *module, const pl_ir_class *of, uint32_t device);
/* Whether steps of some class run beside each other. */
bool pl_ir_module_joins_steps(const pl_ir_module *module);
/* How many devices of the mesh some class has. */
uint32_t pl_ir_module_devices(const pl_ir_module *module);
/* Per device of the mesh that of the platform; PL_IR_NOWHERE: no class has it. NULL: no memory. */
#define PL_IR_NOWHERE UINT32_MAX
const uint32_t *pl_ir_places_take(const pl_ir_module *module, pl_arena *arena);
/* Whether a collective joins two devices: they differ along axes of its `over` only. */
bool pl_ir_op_joins(const pl_ir_mesh *mesh, const pl_ir_op *op, uint32_t device, uint32_t other);

#endif
