/* See workloads/compile/ir_graph_state.h: what devices send each other. */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/cost/ir_cost.h"
#include "workloads/language/ir_work.h"

/* Behind casts, the op that makes what `op` moves. */
static const pl_ir_op *source_of(const pl_ir_function *f, const pl_ir_op *op) {
  int32_t at = op->n_inputs > 0 ? f->values[op->inputs[0]].op : PL_IR_NONE;
  while (at != PL_IR_NONE && pl_ir_op_is(&f->ops[at], "cast"))
    at = f->values[f->ops[at].inputs[0]].op;
  return at != PL_IR_NONE ? &f->ops[at] : NULL;
}

/* The op that reads a value if there is one only; NULL: else, or it is handed back. */
static const pl_ir_op *reader_of(const pl_ir_function *f, int32_t value) {
  const pl_ir_op *found = NULL;
  for (int32_t i = 0; i < f->n_results; i++)
    if (f->results[i] == value) return NULL;
  for (int32_t i = f->values[value].op + 1; i < f->n_ops; i++) /* of an argument from the first op on */
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++) {
      if (f->ops[i].inputs[k] != value) continue;
      if (found != NULL) return NULL;
      found = &f->ops[i];
    }
  return found;
}

/* Whether the expert group gathers tokens, or gradients of them: on axes that cut experts of a layer, and neither a
 * parameter nor what is added to a gradient buffer. */
static bool gathers_tokens(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, const char *axis) {
  bool of_experts = strcmp(axis, "dpe") == 0 || strcmp(axis, "cpe") == 0;
  if (!of_experts || own->microbatch == PL_IR_NONE || !pl_ir_op_is(op, "all_gather")) return false;
  const pl_ir_op *source = source_of(f, op);
  return source == NULL || !pl_ir_op_is(source, "param");
}

static bool only_adds(const pl_ir_function *kernel) {
  bool only = kernel->n_results == 0;
  for (int32_t i = 0; i < kernel->n_ops; i++)
    only = only && (pl_ir_op_is(&kernel->ops[i], "accumulate") || pl_ir_op_is(&kernel->ops[i], "cast"));
  return only;
}

/* Whether it moves parameters or gradients of them, whatever the axis: experts that tensor ranks have whole are reduced
 * and gathered among these too. */
static bool is_of_parameters(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_op *source = source_of(f, op), *reader = op->n_outputs > 0 ? reader_of(f, op->first_output) : NULL;
  if (source != NULL && (pl_ir_op_is(source, "param") || pl_ir_op_is(source, "gradient"))) return true;
  while (reader != NULL && pl_ir_op_is(reader, "cast"))
    reader = reader_of(f, reader->first_output);
  if (reader == NULL) return false;
  if (reader->row == own->kernel) return only_adds(own->module->functions[reader->callee]);
  return pl_ir_op_is(reader, "accumulate") || pl_ir_op_is(reader, "store");
}

static pl_category category_of(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                               pl_stream_kind *stream) {
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
  const char *axis = over != NULL && over->n_names > 0 ? over->names[0].text : "";
  if (pl_ir_op_is(op, "all_to_all") || gathers_tokens(own, f, op, axis)) {
    *stream = PL_STREAM_EXPERT;
    return PL_CATEGORY_EXPERT;
  }
  if (strncmp(axis, "dp", 2) == 0 || is_of_parameters(own, f, op)) {
    *stream = PL_STREAM_GRADIENT;
    return PL_CATEGORY_DATA;
  }
  *stream = strncmp(axis, "cp", 2) == 0 ? PL_STREAM_CONTEXT : PL_STREAM_FEATURE;
  return strncmp(axis, "cp", 2) == 0 ? PL_CATEGORY_CONTEXT : PL_CATEGORY_TENSOR;
}

/* Whether they are experts', whose group is not that of all other parameters: a communicator of their own, and so a
 * stream. */
static bool is_of_experts(const pl_ir_mesh *mesh, const pl_ir_type *type, uint32_t axes) {
  uint32_t of_others = 0;
  if (pl_ir_type_find(type, pl_ir_name_of("x")) < 0) return false;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    const char *name = mesh->axes[axis].name.text;
    if (mesh->axes[axis].extent > 1 && (strncmp(name, "dp", 2) == 0 || strncmp(name, "cp", 2) == 0))
      of_others |= 1u << axis;
  }
  return axes != of_others;
}

static pl_collective_kind collective_of(const pl_ir_op *op) {
  const char *name = pl_ir_row_at(op->row)->name;
  return strcmp(name, "all_reduce") == 0       ? PL_ALL_REDUCE
         : strcmp(name, "reduce_scatter") == 0 ? PL_REDUCE_SCATTER
         : strcmp(name, "all_to_all") == 0     ? PL_ALL_TO_ALL
                                               : PL_ALL_GATHER;
}

/* Axes that the op goes over, one bit each. */
static uint32_t axes_of(const pl_ir_mesh *mesh, const pl_ir_op *op) {
  uint32_t axes = 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name)) axes |= 1u << axis;
  return axes;
}

/* The device of the group that has coordinate 0 along all of its axes. */
static uint32_t origin_of(const pl_ir_mesh *mesh, uint32_t axes, uint32_t device) {
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if ((axes >> axis & 1) != 0)
      device -= (uint32_t)pl_ir_mesh_coordinate(mesh, device, axis) * pl_ir_mesh_stride(mesh, axis);
  return device;
}

/* Devices of the crew by groups: by first members, and inside a group in the order of the mesh. */
static bool part_crew(pl_ir_graphing *own, const pl_ir_crew *crew, uint32_t axes, pl_ir_groups *made) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  uint32_t n_devices = pl_ir_mesh_devices(mesh), n_groups = 0;
  uint32_t *members = PL_TAKE(own->arena, uint32_t, crew->n_devices);
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  uint32_t *count = PL_TAKE(own->arena, uint32_t, crew->n_devices);
  uint32_t *group = PL_TAKE(own->arena, uint32_t, n_devices); /* by origin, from 1 on */
  if (own->arena->failed) return false;
  for (uint32_t d = 0; d < crew->n_devices; d++) {
    uint32_t *of = &group[origin_of(mesh, axes, crew->devices[d])];
    if (*of == 0) *of = ++n_groups;
    count[*of - 1]++;
  }
  /* A class is whole along the axes that it is not cut out by, so that all groups are as large. */
  *made = (pl_ir_groups){.axes = axes, .size = n_groups > 0 ? crew->n_devices / n_groups : 0, .members = members};
  PL_ASSERT(n_groups * made->size == crew->n_devices);
  for (uint32_t d = crew->n_devices; d-- > 0;) {
    uint32_t of = group[origin_of(mesh, axes, crew->devices[d])] - 1;
    members[of * made->size + --count[of]] = d;
  }
  pl_arena_release_to(own->arena, mark);
  return true;
}

const pl_ir_groups *pl_ir_graph_groups_over(pl_ir_graphing *own, uint32_t axes) {
  pl_ir_crew *crew = own->fold != NULL ? pl_ir_graph_whole_crew(own) : own->now;
  for (uint32_t i = 0; i < crew->n_groups; i++)
    if (crew->groups[i].axes == axes) return &crew->groups[i];
  pl_ir_groups *groups =
      (pl_ir_groups *)pl_arena_grown(own->arena, crew->groups, crew->n_groups, 1, sizeof *groups, &crew->room_groups);
  if (groups == NULL) return NULL;
  crew->groups = groups;
  return part_crew(own, crew, axes, &groups[crew->n_groups]) ? &groups[crew->n_groups++] : NULL;
}

static void depends(pl_ir_graphing *own, uint32_t task, uint32_t d, const pl_ir_arrival *input) {
  PL_ASSERT(input != NULL);
  if (task == PL_NONE) return; /* whoever hears it passes over the step */
  if (own->now->last[d] != PL_NONE) pl_graph_builder_edge(own->builder, own->now->last[d], task);
  if (input->tasks != NULL) pl_graph_builder_edge(own->builder, input->tasks[d], task);
}

uint32_t pl_ir_graph_label(pl_ir_graphing *own, const char *text) {
  return own->options->names ? pl_graph_builder_name(own->builder, text) : PL_NONE;
}

static uint32_t label_of(pl_ir_graphing *own, const char *text) {
  return pl_ir_graph_label(own, text);
}

static const pl_ir_groups *groups_of(pl_ir_graphing *own, const pl_ir_op *op) {
  return pl_ir_graph_groups_over(own, axes_of(&own->module->mesh, op));
}

/* ---- exchanges with experts over several axes, which are one among all of these devices ---- */

static bool exchanges(const pl_ir_op *op, const char *which) {
  return pl_ir_op_is(op, "all_to_all") && pl_ir_op_has_name(op, which, pl_ir_name_of("x"));
}

bool pl_ir_graph_is_leg(const pl_ir_function *f, const pl_ir_op *op) {
  bool to = exchanges(op, "to"), from = exchanges(op, "from");
  const pl_ir_op *next = to || from ? reader_of(f, op->first_output) : NULL;
  return next != NULL && ((to && exchanges(next, "to")) || (from && exchanges(next, "from")));
}

bool pl_ir_graph_is_known(const pl_ir_function *f, const pl_ir_op *op) {
  if (!pl_ir_op_is(op, "all_gather") || f->values[op->inputs[0]].type.element != PL_IR_I32) return false;
  int32_t maker = f->values[op->inputs[0]].op;
  while (maker != PL_IR_NONE && pl_ir_op_is(&f->ops[maker], "rename"))
    maker = f->values[f->ops[maker].inputs[0]].op;
  return maker != PL_IR_NONE && pl_ir_op_is(&f->ops[maker], "input") && strcmp(f->ops[maker].path, "positions") == 0;
}

/* Of the legs in front of it too. */
static uint32_t axes_of_legs(const pl_ir_mesh *mesh, const pl_ir_function *f, const pl_ir_op *op) {
  uint32_t axes = axes_of(mesh, op);
  int32_t before = op->n_inputs > 0 ? f->values[op->inputs[0]].op : PL_IR_NONE;
  while (before != PL_IR_NONE && pl_ir_op_is(op, "all_to_all") && pl_ir_graph_is_leg(f, &f->ops[before])) {
    axes |= axes_of(mesh, &f->ops[before]);
    before = f->values[f->ops[before].inputs[0]].op;
  }
  return axes;
}

/* Parameters under autocast around fp32 weights travel as they are. */
static bool gathers_wide(const pl_ir_graphing *own, const pl_ir_type *type) {
  if (own->module->level != PL_IR_KERNELS || !pl_ir_element_is_number((pl_ir_element)type->element)) return false;
  return pl_framework_autocast(own->framework, (pl_dtype)type->element) == PL_AUTOCAST_ALL;
}

/* What timelines and tables call it, as of a tuple: of parameters and gradients what it is for, else what it is of. */
static const char *meeting_label(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                                 pl_category category) {
  const char *row = pl_ir_row_at(op->row)->name, *of = f->values[op->inputs[0]].name;
  bool gathers = pl_ir_op_is(op, "all_gather");
  if (!own->options->names) return row;
  if (category == PL_CATEGORY_DATA || own->category == PL_CATEGORY_OPTIMIZER)
    return gathers ? "gather parameters" : "reduce gradients";
  size_t length = strlen(of), end = length;
  while (end > 0 && of[end - 1] >= '0' && of[end - 1] <= '9') { /* "norm1.2": a variant of "norm1" */
    if (end > 1 && of[end - 2] == '.') length = end - 2;
    end = length == end - 2 ? length : end - 1;
  }
  const char *label = pl_arena_printf(own->arena, "%.*s_%s", (int)length, of, row);
  return label != NULL ? label : row;
}

pl_ir_meeting pl_ir_graph_meeting_of(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  /* what of it is there: workloads/language/ir_routing.h */
  const pl_ir_type *type = &f->values[op->inputs[0]].type;
  pl_ir_meeting made = {.kind = collective_of(op),
                        .axes = axes_of_legs(&own->module->mesh, f, op),
                        .of_tokens = pl_ir_is_routed(&own->routing, type) && collective_of(op) == PL_ALL_TO_ALL,
                        .bytes = pl_ir_collective_bytes(&own->module->mesh, f, op) *
                                 pl_ir_moved_share(&own->routing, op, type)};
  if (made.of_tokens && own->token_bytes > 0 && exchanges(op, "to"))
    made.bytes *= own->token_bytes / pl_ir_element_bytes((pl_ir_element)f->values[op->inputs[0]].type.element);
  made.category = category_of(own, f, op, &made.stream);
  made.label = meeting_label(own, f, op, made.category);
  if (made.stream == PL_STREAM_GRADIENT && is_of_experts(&own->module->mesh, type, made.axes))
    made.stream = PL_STREAM_EXPERT_GRADIENT;
  if (made.kind == PL_ALL_GATHER && made.category == PL_CATEGORY_DATA && gathers_wide(own, type))
    made.bytes *= pl_ir_element_bytes(PL_IR_F32) / pl_ir_element_bytes((pl_ir_element)type->element);
  return made;
}

pl_code pl_ir_graph_meeting_alone(pl_ir_graphing *own, const pl_ir_meeting *meeting, double *time_s) {
  const pl_ir_groups *groups = pl_ir_graph_groups_over(own, meeting->axes);
  const pl_ir_crew *crew = own->fold != NULL ? pl_ir_graph_whole_crew(own) : own->now;
  uint32_t spec, *devices = groups != NULL ? PL_TAKE(own->arena, uint32_t, groups->size + 1) : NULL;
  double progress;
  if (devices == NULL) return pl_ir_graph_no_memory(own);
  for (uint32_t i = 0; i < groups->size; i++)
    devices[i] = crew->devices[groups->members[i]];
  double bytes = pl_ir_transfers_bytes(&own->transfers, meeting->of_tokens, devices, groups->size, meeting->bytes);
  PL_TRY(pl_ir_transfers_collective(&own->transfers, meeting->kind, devices, groups->size, bytes, &spec, &progress,
                                    own->error));
  *time_s = pl_ir_transfers_alone_s(&own->transfers, spec, progress);
  return PL_OK;
}

/* One array of tasks, of all devices that may be in the crew. */
static uint32_t *take_tasks(pl_ir_graphing *own) {
  return PL_TAKE(own->arena, uint32_t, own->now->n_devices + 1);
}

/* One collective per group of devices; their tasks are the value's. */
pl_code pl_ir_graph_meet(pl_ir_graphing *own, const pl_ir_meeting *meeting, pl_ir_behind behind,
                         const pl_ir_arrival *input, pl_ir_arrival *output) {
  output->tasks = take_tasks(own);
  if (output->tasks == NULL) return pl_ir_graph_no_memory(own);
  const pl_ir_act act = {.kind = PL_IR_ACT_MEET,
                         .behind = (uint8_t)behind,
                         .everybody = own->everybody,
                         .meeting = *meeting,
                         .input = input != NULL ? input->tasks : NULL,
                         .output = output->tasks};
  return pl_ir_graph_act(own, &act);
}

/* Of the function that runs: the same in all its passes, but not in an update. */
static pl_ir_meeting known_meeting(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  pl_ir_doing *doing = &own->doings[own->function];
  if (own->microbatch == PL_IR_NONE) return pl_ir_graph_meeting_of(own, f, op);
  if (doing->meetings == NULL) doing->meetings = PL_TAKE(own->arena, pl_ir_meeting, f->n_ops + 1);
  if (doing->meetings == NULL) return pl_ir_graph_meeting_of(own, f, op); /* the arena knows */
  pl_ir_meeting *known = &doing->meetings[op - f->ops];
  if (known->label == NULL) *known = pl_ir_graph_meeting_of(own, f, op);
  return *known;
}

static pl_code collective(pl_ir_graphing *own, const pl_ir_meeting *meeting, pl_ir_arrival *input,
                          pl_ir_arrival *output) {
  PL_TRY(pl_ir_graph_flush(own));
  return pl_ir_graph_meet(own, meeting, PL_IR_BEHIND_WORK, input, output);
}

const pl_ir_crew *pl_ir_graph_crew_named(const pl_ir_graphing *own, const char *name) {
  for (int32_t c = 0; c < own->module->n_classes; c++)
    if (strcmp(own->module->classes[c].name, name) == 0) return &own->crews[c];
  return NULL;
}

static pl_code send(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, const pl_ir_arrival *input) {
  PL_TRY(pl_ir_graph_flush(own));
  const pl_ir_act act = {.kind = PL_IR_ACT_SEND,
                         .message =
                             pl_ir_graph_message(own, own->now, pl_ir_graph_crew_named(own, pl_ir_text_of(op, "to")),
                                                 pl_ir_text_of(op, "tag")),
                         .bytes = pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->inputs[0]].type),
                         .input = input->tasks};
  return act.message != NULL ? pl_ir_graph_act(own, &act) : pl_ir_graph_no_memory(own);
}

static pl_code receive(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *output) {
  output->tasks = take_tasks(own);
  const pl_ir_act act = {.kind = PL_IR_ACT_RECEIVE,
                         .message = pl_ir_graph_message(own, pl_ir_graph_crew_named(own, pl_ir_text_of(op, "from")),
                                                        own->now, pl_ir_text_of(op, "tag")),
                         .bytes = pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->first_output].type),
                         .output = output->tasks};
  if (act.message == NULL || output->tasks == NULL) return pl_ir_graph_no_memory(own);
  return pl_ir_graph_act(own, &act);
}

/* An all-reduce between the devices of several classes. */
static pl_code sum_classes(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, const pl_ir_arrival *input,
                           pl_ir_arrival *output) {
  PL_TRY(pl_ir_graph_flush(own));
  output->tasks = take_tasks(own);
  const pl_ir_act act = {
      .kind = PL_IR_ACT_SUM,
      .key = pl_arena_printf(own->arena, "%s %s", pl_ir_graph_prefix(own, own->prefix), pl_ir_text_of(op, "tag")),
      .classes = pl_ir_attribute_find(op, "classes"),
      .bytes = pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->inputs[0]].type),
      .input = input->tasks,
      .output = output->tasks};
  return act.key != NULL && output->tasks != NULL ? pl_ir_graph_act(own, &act) : pl_ir_graph_no_memory(own);
}

/* Round the ring: every device's value to the neighbour `by` further, all at once. */
static pl_code shift(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *input,
                     pl_ir_arrival *output) {
  PL_TRY(pl_ir_graph_flush(own));
  pl_stream_kind stream;
  pl_category category = category_of(own, f, op, &stream);
  double bytes = pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->inputs[0]].type);
  const pl_ir_groups *groups = groups_of(own, op);
  uint32_t n = own->now->n_devices;
  uint32_t *tasks = PL_TAKE(own->arena, uint32_t, n);
  if (own->arena->failed) return pl_ir_graph_no_memory(own);
  PL_ASSERT(tasks != NULL && groups->size > 0);
  int64_t by = pl_ir_integer_of(op, "by", 1) % (int64_t)groups->size;
  uint32_t away = (uint32_t)(by < 0 ? by + groups->size : by);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t first = i - i % groups->size, spec;
    uint32_t from = groups->members[i], to = groups->members[first + (i - first + away) % groups->size];
    const uint32_t pair[] = {own->now->devices[from], own->now->devices[to]};
    double progress;
    tasks[to] = PL_NONE;
    if (pl_ir_graph_is_absent(own, pair[1])) continue;
    if (from == to) {
      tasks[to] = pl_graph_builder_delay(own->builder, 0, category, NULL, 0, PL_NONE, own->microbatch);
    } else {
      PL_TRY(pl_ir_transfers_collective(&own->transfers, PL_SEND, pair, 2, bytes, &spec, &progress, own->error));
      tasks[to] = pl_graph_builder_transfer(own->builder, spec, progress, category, NULL, 0, label_of(own, "shift"),
                                            own->microbatch);
      own->made->n_sends += own->times;
    }
    depends(own, tasks[to], from, input);
  }
  output->tasks = tasks;
  return PL_OK;
}

/* The most bytes that a device lacks of its part on one side. */
static double halo_bytes(const pl_ir_mesh *mesh, const pl_ir_type *whole, const pl_ir_type *apart, const pl_ir_op *op,
                         bool behind) {
  const pl_ir_attribute *to = pl_ir_attribute_find(op, "to");
  int32_t y = pl_ir_type_find(whole, pl_ir_attribute_find(op, "dim")->names[0]);
  int64_t parts = apart->dims[pl_ir_type_find(apart, to->names[0])].extent;
  int64_t rows = apart->dims[pl_ir_type_find(apart, to->names[1])].extent;
  int64_t held = whole->dims[y].extent / parts, first = pl_ir_integer_of(op, "first", 0),
          step = pl_ir_integer_of(op, "step", 1), most = 0;
  for (int64_t p = behind ? 0 : 1; p < parts - behind; p++) {
    int64_t from = first + p * step, lacks = behind ? from + rows - (p + 1) * held : p * held - from;
    if (lacks > most) most = lacks;
  }
  return pl_ir_type_local_bytes(mesh, whole) / (double)pl_ir_type_local_extent(mesh, whole, y) * (double)most;
}

/* Rows from both neighbours, or back to them, all at once; there are none beyond the ends. */
static pl_code halo(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *input,
                    pl_ir_arrival *output) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  const pl_ir_type *in = &f->values[op->inputs[0]].type, *out = &f->values[op->first_output].type;
  bool back = pl_ir_type_find(out, pl_ir_attribute_find(op, "dim")->names[0]) >= 0;
  PL_TRY(pl_ir_graph_flush(own));
  pl_stream_kind stream;
  pl_category category = category_of(own, f, op, &stream);
  const pl_ir_groups *groups = groups_of(own, op);
  uint32_t n = own->now->n_devices;
  uint32_t *tasks = PL_TAKE(own->arena, uint32_t, n);
  if (own->arena->failed) return pl_ir_graph_no_memory(own);
  for (uint32_t d = 0; d < n; d++) {
    tasks[d] = PL_NONE;
    if (pl_ir_graph_is_absent(own, own->now->devices[d])) continue;
    tasks[d] = pl_graph_builder_delay(own->builder, 0, category, NULL, 0, PL_NONE, own->microbatch);
    depends(own, tasks[d], d, input);
  }
  for (int behind = 0; behind < 2; behind++) {
    double bytes = halo_bytes(mesh, back ? out : in, back ? in : out, op, behind == 1);
    for (uint32_t i = 0; i < n && bytes > 0; i++) {
      uint32_t place = i % groups->size, spec;
      if (place + 1 == groups->size) continue; /* i and the next one are neighbours */
      bool up = (behind == 0) != back;         /* from i to the next */
      uint32_t from = groups->members[up ? i : i + 1], to = groups->members[up ? i + 1 : i];
      const uint32_t pair[] = {own->now->devices[from], own->now->devices[to]};
      double progress;
      if (pl_ir_graph_is_absent(own, pair[1])) continue;
      PL_TRY(pl_ir_transfers_collective(&own->transfers, PL_SEND, pair, 2, bytes, &spec, &progress, own->error));
      uint32_t task = pl_graph_builder_transfer(own->builder, spec, progress, category, NULL, 0, label_of(own, "halo"),
                                                own->microbatch);
      own->made->n_sends += own->times;
      depends(own, task, from, input);
      pl_graph_builder_edge(own->builder, task, tasks[to]);
    }
  }
  output->tasks = tasks;
  return PL_OK;
}

/* Keys and values go round while attention works on those that came before (workloads/lower/launched_context.c says the
 * same of a layer's program): all but the last of the pieces beside the whole exchange, the last behind it,
 * (n - 1) max(piece, send) + piece. Backward their gradients go with them, but for the last step home. */
static pl_code ring(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  const int32_t pieces = pl_ir_ring_devices(mesh, op);
  double bytes = 0;
  pl_ir_arrival nothing = {.tasks = NULL}, round = {.tasks = NULL};
  for (int32_t i = 1; i < 3; i++)
    bytes += pieces * pl_ir_type_local_bytes(mesh, &f->values[op->inputs[i]].type);
  if (op->n_outputs > 2) bytes *= 2;
  pl_ir_meeting meeting = pl_ir_graph_meeting_of(own, f, op);
  meeting.kind = PL_ALL_GATHER;
  meeting.bytes = bytes;
  if (pieces > 1) PL_TRY(collective(own, &meeting, &nothing, &round));
  for (int32_t piece = 0; piece < pieces; piece++) {
    if (piece == pieces - 1) PL_TRY(pl_ir_graph_await(own, &round));
    if (!pl_ir_graph_compute(own, op)) return pl_ir_graph_no_memory(own);
  }
  return PL_OK;
}

bool pl_ir_graph_moves(const pl_ir_op *op) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  return row->effect == PL_IR_SENDS || (row->effect == PL_IR_COLLECTIVE && strcmp(row->name, "cut") != 0);
}

pl_code pl_ir_graph_move(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *values) {
  const char *name = pl_ir_row_at(op->row)->name;
  pl_ir_arrival *input = op->n_inputs > 0 ? &values[op->inputs[0]] : NULL,
                *output = op->n_outputs > 0 ? &values[op->first_output] : NULL;
  PL_ASSERT(input != NULL || output != NULL);
  if (input == NULL) return receive(own, f, op, output); /* all others have an operand */
  if (pl_ir_op_is(op, "send")) return send(own, f, op, input);
  PL_ASSERT(output != NULL);
  if (pl_ir_op_is(op, "sum_classes")) return sum_classes(own, f, op, input, output);
  if (pl_ir_op_is(op, "shift")) return shift(own, f, op, input, output);
  if (strncmp(name, "halo", 4) == 0) return halo(own, f, op, input, output);
  if (!pl_ir_row_is_ring(pl_ir_row_at(op->row))) {
    if (pl_ir_graph_is_summed(own, f, op, output)) return PL_OK;
    if (output->tasks != NULL || output->is_there) return PL_OK; /* on its way since before */
    if (pl_ir_graph_is_leg(f, op) || pl_ir_graph_is_known(f, op) || pl_ir_graph_is_kept(own, f, op)) {
      *output = *input; /* the last leg sends it; nobody has to; it is there */
      return PL_OK;
    }
    const pl_ir_meeting meeting = known_meeting(own, f, op);
    return collective(own, &meeting, input, output);
  }
  for (int32_t i = 0; i < op->n_inputs; i++)
    PL_TRY(pl_ir_graph_await(own, &values[op->inputs[i]]));
  return ring(own, f, op);
}
