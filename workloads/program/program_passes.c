/* The instructions of a pass over the blocks of a stage: see workloads/program/program_making.h. */
#include "workloads/program/program_making.h"

/* Instructions per block at most: block, reduce of experts and of all else, and per parameter tensor that is gathered
 * by itself, all experts' together, gather (twice), await and copy, and that is reduced by itself (twice with shard);
 * and some at the ends. */
enum {
  WINDOW_BLOCKS = 8,
  GATHERS_PER_BLOCK = 9,
  PLAIN_INSTRUCTIONS_PER_BLOCK = 4,
  INSTRUCTIONS_PER_BLOCK = PLAIN_INSTRUCTIONS_PER_BLOCK + 8 * GATHERS_PER_BLOCK
};

typedef struct pass_making {
  pl_program_making *state;
  int32_t stage;
  pl_instruction *list;
  uint32_t n;
  uint8_t half;      /* of its instructions */
  int32_t n_kept;    /* blocks that it begins with and whose parameters are there since the forward pass */
  double pending[2]; /* gradients (parameters) not yet reduced: of all but experts, of experts */
} pass_making;

static void add(pass_making *pass, pl_instruction_kind kind, bool backward, int32_t block, uint32_t op) {
  pass->list[pass->n++] =
      (pl_instruction){.kind = (uint8_t)kind, .backward = backward, .half = pass->half, .block = block, .op = op};
}

static const pl_framework *framework_of(const pl_program *program) {
  return pl_framework_or_ideal(program->job->framework);
}

/* The family that reduces and gathers what belongs to experts, or all else. */
static uint32_t data_family(const pass_making *pass, bool experts) {
  return pass->state->program->family_of[pass->stage][experts ? PL_FAMILY_EXPERT_DATA : PL_FAMILY_DATA];
}

pl_collective_kind pl_program_reduction(const pl_program *program) {
  const pl_framework *framework = framework_of(program);
  int32_t zero = program->strategy->zero;
  bool whole = zero == 0 || pl_framework_reduces_whole(framework, zero) ||
               (zero >= 2 && framework->gradients.scatters_by_all_reduce);
  return whole ? PL_ALL_REDUCE : PL_REDUCE_SCATTER;
}

static void add_reduce(pass_making *pass, double parameters, bool experts) {
  const pl_program *program = pass->state->program;
  pl_collective_kind kind = pl_program_reduction(program);
  uint32_t family = data_family(pass, experts);
  if (family == PL_NONE || parameters <= 0) return;
  add(pass, PL_INSTRUCTION_REDUCE, true, -1,
      pl_making_op(pass->state, family, kind, parameters * program->training.reduced_bytes));
  pass->list[pass->n - 1].experts = experts;
  uint32_t copies = program->family_of[pass->stage][PL_FAMILY_COPIES];
  if (copies == PL_NONE) return;
  double share = parameters / pl_program_shards(program, experts);
  add(pass, PL_INSTRUCTION_REDUCE, true, -1,
      pl_making_op(pass->state, copies, PL_ALL_REDUCE, share * program->training.reduced_bytes));
  pass->list[pass->n - 1].across = true;
}

double pl_making_held_parameters(const pl_program *program, int32_t block) {
  const pl_block_program *own = pl_making_block(program, block);
  if (own->kind != PL_BLOCK_HEAD || !pl_making_splits_tied_embedding(program)) return own->parameters;
  return own->parameters + own->tied_parameters;
}

/* Of these, the experts', where another family than the data family has them. */
double pl_making_held_experts(const pl_program *program, int32_t block) {
  if (!pl_program_has_expert_data(program->model, program->strategy)) return 0;
  return pl_making_block(program, block)->expert_parameters;
}

static double held_part(const pl_program *program, int32_t block, bool experts) {
  double part = pl_making_held_experts(program, block);
  return experts ? part : pl_making_held_parameters(program, block) - part;
}

/* Without a pipeline head and embedding have one table, the embedding's. Whoever lets go of a module's parameters
 * behind it gathers them once more where the head reads them, in both passes; the embedding's backward pass reads none.
 * FSDP has the table in its root, which it keeps (`keeps_last`; _post_forward_reshard of
 * torch/distributed/fsdp/_runtime_utils.py, pytorch/pytorch@00ae0bc91ac2: a root is not let go of). */
static double gathered_part(const pl_program *program, int32_t block, bool backward) {
  const pl_block_program *own = pl_making_block(program, block);
  double held = held_part(program, block, false);
  if (!program->model->ends.tied_embeddings || program->strategy->pp > 1 || program->strategy->vpp > 1 ||
      framework_of(program)->gathers.keeps_last)
    return held;
  if (own->kind == PL_BLOCK_HEAD) return held + own->tied_parameters;
  return own->kind == PL_BLOCK_EMBEDDING && backward ? 0 : held;
}

/* What has been gathered for a block and not yet awaited: ops of the data family and of the expert-data family. */
typedef struct gathered_block {
  int32_t at; /* place of the block in the pass */
  uint32_t n, ops[2 * GATHERS_PER_BLOCK];
  bool experts[2 * GATHERS_PER_BLOCK];
} gathered_block;

/* Blocks that have been gathered ahead, in the order in which they run. */
typedef struct gather_window {
  gathered_block blocks[WINDOW_BLOCKS];
  int32_t first, n, next, n_units; /* next: place of the block that comes next */
  int32_t most_units;
} gather_window;

/* Tensors of a block that are gathered by themselves: the matrices, the last of them with what is left over when there
 * are too many. Vectors stay on every rank, as below DeepSpeed's threshold; they count nothing here. Experts that have
 * a family of their own are not among them. */
static uint32_t matrices_of(const pl_block_program *block, bool with_experts, double parameters[GATHERS_PER_BLOCK]) {
  uint32_t n = 0, most = GATHERS_PER_BLOCK - 1;
  for (uint32_t i = 0; i < block->n_tensors; i++) {
    const pl_tensor *tensor = &block->tensors[i];
    if (tensor->kind != PL_TENSOR_PARAMETER || tensor->rank < 2 || tensor->dims[0] == 'p') continue;
    if (tensor->expert && !with_experts) continue;
    double elements = 1;
    for (uint8_t d = 0; d < tensor->rank; d++)
      elements *= (double)tensor->extent[d];
    if (n == most)
      parameters[n - 1] += elements;
    else
      parameters[n++] = elements;
  }
  return n;
}

static bool is_layer(pl_block_kind kind) {
  return kind == PL_BLOCK_LAYER || kind == PL_BLOCK_EXPERT_LAYER;
}

/* Parameters that are let go after the recomputation, because too many others come before their next use. */
static bool gathers_again(const pl_program *program, int32_t block, double parameters) {
  double most = framework_of(program)->gathers.reuse_parameters;
  return most > 0 && parameters > most && program->strategy->recompute == PL_RECOMPUTE_FULL &&
         is_layer(pl_model_block_kind(program->model, block));
}

static void add_gather(pass_making *pass, int32_t block, double parameters, bool experts, bool backward,
                       gathered_block *gathered) {
  uint32_t family = data_family(pass, experts);
  if (family == PL_NONE || parameters <= 0) return;
  double bytes = pass->state->program->training.gathered_bytes;
  uint32_t op = pl_making_op(pass->state, family, PL_ALL_GATHER, parameters * bytes);
  add(pass, PL_INSTRUCTION_GATHER, backward, block, op);
  pass->list[pass->n - 1].experts = experts;
  if (gathered == NULL) return;
  gathered->experts[gathered->n] = experts;
  gathered->ops[gathered->n++] = op;
}

/* A norm by itself is of the unit beside it, as torchtitan's [norm, output] is; blocks without parameters are of none.
 */
static bool is_unit(const pl_program *program, int32_t block) {
  const pl_block_program *own = pl_making_block(program, block);
  return own->parameters > 0 && own->kind != PL_BLOCK_FINAL_NORM;
}

/* Blocks backward from `first` on up to the first that is a unit, and the norm beside it. */
static int32_t count_last_unit(const pl_program *program, int32_t first, int32_t count) {
  int32_t n = 0;
  while (n < count && !is_unit(program, first - n))
    n++;
  n += n < count;
  return n < count && pl_making_block(program, first - n)->kind == PL_BLOCK_FINAL_NORM ? n + 1 : n;
}

/* How many blocks from the last one on a backward pass finds as the forward pass left them: the last unit
 * (`keeps_last`), or what is used again soon. DeepSpeed lets go of no
 * parameter that is used again within so many others, each counted as often as it is used in between: forward,
 * backward, and where a layer is computed again (partitioned_param_coordinator.py, __params_to_release). It has no
 * pipelines with ZeRO-3, in whose stages other microbatches would come in between. */
static int32_t count_kept(const pl_program *program, int32_t first, int32_t count) {
  const pl_strategy *strategy = program->strategy;
  double most = framework_of(program)->gathers.reuse_parameters, used = 0;
  bool again = pl_strategy_multiplies_again(strategy);
  int32_t n = 0;
  if (strategy->zero < 3 || strategy->pp > 1 || strategy->vpp > 1) return 0;
  if (framework_of(program)->gathers.keeps_last) return count_last_unit(program, first, count);
  for (; n < count && used < most; n++)
    used += (again && is_layer(pl_model_block_kind(program->model, first - n)) ? 3 : 2) *
            pl_making_held_parameters(program, first - n);
  return n;
}

/* Starts gathering what `block` needs; a block that is kept at most for its second use. */
static void add_gathers(pass_making *pass, int32_t block, bool backward, bool is_kept, gathered_block *gathered) {
  const pl_program *program = pass->state->program;
  double held = gathered_part(program, block, backward), experts = held_part(program, block, true);
  double parameters[GATHERS_PER_BLOCK];
  uint32_t n = 0;
  gathered->n = 0;
  if (framework_of(program)->gathers.gather_unit == PL_GATHER_TENSOR)
    n = matrices_of(pl_making_block(program, block), experts == 0, parameters);
  if (n == 0) parameters[n++] = held;
  int times = backward && gathers_again(program, block, held + experts) ? 2 : 1;
  for (int time = is_kept ? 1 : 0; time < times; time++) {
    for (uint32_t i = 0; i < n; i++)
      add_gather(pass, block, parameters[i], false, backward, gathered);
    add_gather(pass, block, experts, true, backward, gathered);
  }
}

static void add_awaits(pass_making *pass, int32_t block, bool backward, const gathered_block *gathered) {
  const pl_framework *framework = framework_of(pass->state->program);
  bool copies = framework->gathers.copies_per_rank || framework->gathers.copies_gathered;
  for (uint32_t i = 0; i < gathered->n; i++)
    add(pass, PL_INSTRUCTION_AWAIT, backward, block, PL_NONE);
  for (uint32_t i = 0; copies && i < gathered->n; i++) {
    add(pass, PL_INSTRUCTION_COPY, backward, block, gathered->ops[i]);
    pass->list[pass->n - 1].experts = gathered->experts[i];
  }
}

/* Closes the buckets that are full, or all that hold something. */
static void close_buckets(pass_making *pass, bool all) {
  const pl_program *program = pass->state->program;
  double gradient_bytes = program->training.gradient_bytes;
  for (int experts = 0; experts <= 1; experts++) {
    if (!all && pass->pending[experts] * gradient_bytes < pl_program_bucket_bytes(program)) continue;
    add_reduce(pass, pass->pending[experts], experts);
    pass->pending[experts] = 0;
  }
}

/* Gradients come in the reverse order of the tensors' use; vectors come with the tensor that comes last. */
static void add_pending_tensors(pass_making *pass, int32_t block) {
  const pl_program *program = pass->state->program;
  double parameters[GATHERS_PER_BLOCK], left = held_part(program, block, false);
  uint32_t n = matrices_of(pl_making_block(program, block), held_part(program, block, true) == 0, parameters);
  for (; n > 1; n--) {
    pass->pending[0] += parameters[n - 1];
    left -= parameters[n - 1];
    close_buckets(pass, false);
  }
  pass->pending[0] += left;
}

/* Whether gradients wait for those of the next block backward, which is of the same unit. */
static bool is_followed(const pass_making *pass, int32_t block, int32_t last) {
  const pl_program *program = pass->state->program;
  return program->strategy->zero == 3 && framework_of(program)->gathers.gathers_ahead && block > last &&
         pl_making_block(program, block - 1)->kind == PL_BLOCK_FINAL_NORM;
}

static void add_pending(pass_making *pass, int32_t block, int32_t last) {
  const pl_program *program = pass->state->program;
  if (framework_of(program)->gradients.bucket_unit != PL_BUCKET_LAYER)
    add_pending_tensors(pass, block);
  else
    pass->pending[0] += held_part(program, block, false);
  pass->pending[1] += held_part(program, block, true);
  if (framework_of(program)->gradients.bucket_unit != PL_BUCKET_LAYER || !is_followed(pass, block, last))
    close_buckets(pass, false);
}

/* Of units that are not over, how many are there or on their way. A unit's parameters come when the unit before it
 * begins: FSDP 1's rate limiter waits for the unit before that one to be let go
 * (pytorch/pytorch@00ae0bc91ac2 torch/distributed/fsdp/_runtime_utils.py, _unshard, and _limiter_utils.py: two free
 * events are left alone); in a backward pass both FSDPs ask for it when they have asked for the gradients of the unit
 * that is over to be reduced, by the same communicator. FSDP 2's forward gathers wait for copies: when a unit is asked
 * for, that of the unit before it is not yet among what the streams of gathers wait for, so that they come when the
 * unit before the last one begins (pytorch/pytorch@002a76fbfea0 torch/distributed/fsdp/_fully_shard/
 * _fsdp_param_group.py, pre_forward and wait_for_unshard, which behind a unit's gather has them wait for the copy of
 * the one before, and in a backward pass for its own). */
static int32_t most_units(const pl_program *program, bool backward) {
  return framework_of(program)->gathers.copies_gathered && !backward ? 3 : 2;
}

/* Blocks first, first + step, ... (count of them) as far as the window reaches. */
static void gather_ahead(pass_making *pass, int32_t first, int32_t step, int32_t count, gather_window *window) {
  while (window->next < count && window->n_units < window->most_units && window->n < WINDOW_BLOCKS) {
    int32_t at = window->next++, block = first + at * step;
    gathered_block *own = &window->blocks[(window->first + window->n) % WINDOW_BLOCKS];
    own->at = at;
    add_gathers(pass, block, step < 0, at < pass->n_kept, own);
    window->n += own->n > 0;
    window->n_units += is_unit(pass->state->program, block);
  }
}

static void await_block(pass_making *pass, int32_t at, int32_t block, bool backward, gather_window *window) {
  window->n_units -= is_unit(pass->state->program, block); /* of those that are not yet through */
  if (window->n == 0 || window->blocks[window->first].at != at) return;
  add_awaits(pass, block, backward, &window->blocks[window->first]);
  window->first = (window->first + 1) % WINDOW_BLOCKS;
  window->n--;
}

/* Blocks first, first + step, ... (count of them). ZeRO-3 gathers parameters ahead or, in a framework that does not,
 * when a block is to run. A block's gradients go out in front of what is gathered when the next one begins. */
static void add_blocks(pass_making *pass, int32_t first, int32_t count, bool backward, bool reduces) {
  const pl_program *program = pass->state->program;
  bool gathers = program->strategy->zero == 3, ahead = framework_of(program)->gathers.gathers_ahead;
  int32_t step = backward ? -1 : 1;
  gather_window window = {.most_units = most_units(program, backward)};
  gathered_block own;
  if (gathers && ahead) gather_ahead(pass, first, step, count, &window);
  for (int32_t i = 0; i < count; i++) {
    int32_t block = first + i * step;
    if (gathers && ahead) await_block(pass, i, block, backward, &window);
    if (gathers && !ahead) {
      add_gathers(pass, block, backward, i < pass->n_kept, &own);
      add_awaits(pass, block, backward, &own);
    }
    add(pass, PL_INSTRUCTION_BLOCK, backward, block, PL_NONE);
    if (reduces) add_pending(pass, block, first + (count - 1) * step);
    if (gathers && ahead) gather_ahead(pass, first, step, count, &window);
  }
  if (reduces) close_buckets(pass, true);
}

double pl_making_crossing_bytes(const pl_program *program, int32_t boundary) {
  return pl_making_block(program, program->strategy->boundary[boundary] - 1)->output_bytes;
}

bool pl_making_splits_sends(const pl_program *program) {
  return program->job->split_sends && program->strategy->tmp > 1 && !program->strategy->sp;
}

/* What a pass receives comes in shares when it comes from another chunk. */
static void add_assemble(pass_making *pass, int32_t global, bool backward) {
  const pl_program *program = pass->state->program;
  int32_t boundary = backward ? global + 1 : global;
  if (!pl_making_splits_sends(program) || boundary == 0 || boundary == pl_strategy_n_chunks(program->strategy)) return;
  if (pl_strategy_stage_of(program->strategy, backward ? boundary : boundary - 1) == pass->stage) return;
  add(pass, PL_INSTRUCTION_ASSEMBLE, backward, -1,
      pl_making_op(pass->state, program->family_of[pass->stage][PL_FAMILY_TENSOR], PL_ALL_GATHER,
                   pl_making_crossing_bytes(program, boundary)));
}

pl_code pl_making_pass(pl_program_making *state, int32_t stage, int32_t chunk, pl_block_pass which, bool reduces,
                       pl_pass *made) {
  const pl_strategy *strategy = state->program->strategy;
  int32_t global = pl_strategy_chunk_at(strategy, stage, chunk);
  bool backward = which != PL_PASS_FORWARD;
  int32_t start = strategy->boundary[global], end = strategy->boundary[global + 1];
  pass_making pass = {.state = state, .stage = stage};
  if (backward) pass.half = (uint8_t)(which - PL_PASS_BACKWARD);
  bool by_tensor = reduces && framework_of(state->program)->gradients.bucket_unit != PL_BUCKET_LAYER;
  bool plain = strategy->zero < 3 && !by_tensor;
  size_t most = (size_t)(plain ? PLAIN_INSTRUCTIONS_PER_BLOCK : INSTRUCTIONS_PER_BLOCK) * (size_t)(end - start) + 4;
  pass.list = pl_arena_take(state->arena, most * sizeof *pass.list, _Alignof(pl_instruction));
  if (pass.list == NULL) return pl_fail_memory(state->error, "the program");
  if (which == PL_PASS_BACKWARD) pass.n_kept = count_kept(state->program, end - 1, end - start);
  if (which != PL_PASS_WEIGHTS) add_assemble(&pass, global, backward);
  add_blocks(&pass, backward ? end - 1 : start, end - start, backward, reduces);
  PL_ASSERT(pass.n <= most);
  *made = (pl_pass){pass.list, pass.n};
  return PL_OK;
}

static void add_updates(pass_making *pass, const gathered_block *gathered) {
  for (uint32_t i = 0; i < gathered->n; i++)
    add(pass, PL_INSTRUCTION_AWAIT, false, -1, PL_NONE);
  for (uint32_t i = 0; i < gathered->n; i++) {
    add(pass, PL_INSTRUCTION_COPY, false, -1, gathered->ops[i]);
    pass->list[pass->n - 1].experts = gathered->experts[i];
  }
}

/* Reduces what no expert family does, parameter by parameter in the order of the blocks; without `pass` it counts them.
 * What blocks hold beside their tensors goes last. */
static uint32_t add_parameters(pass_making *pass, const pl_program *program, const pl_stage_program *own, double left) {
  const pl_strategy *strategy = program->strategy;
  bool of_experts = pl_program_has_expert_data(program->model, strategy);
  uint32_t n = 0;
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(strategy, own->stage, chunk);
    for (int32_t block = strategy->boundary[global]; block < strategy->boundary[global + 1]; block++) {
      const pl_block_program *held = pl_making_block(program, block);
      for (uint32_t i = 0; i < held->n_tensors; i++) {
        const pl_tensor *tensor = &held->tensors[i];
        double elements = 1;
        for (uint8_t d = 0; d < tensor->rank; d++)
          elements *= (double)tensor->extent[d];
        if (tensor->kind != PL_TENSOR_PARAMETER || (tensor->expert && of_experts) || elements > left) continue;
        if (pass != NULL) add_reduce(pass, elements, false);
        left -= elements;
        n++;
      }
    }
  }
  if (pass != NULL) add_reduce(pass, left, false);
  return n + 1;
}

pl_code pl_making_epilogue(pl_program_making *state, pl_stage_program *own) {
  pl_program *program = state->program;
  const pl_strategy *strategy = program->strategy;
  pass_making pass = {.state = state, .stage = own->stage};
  const double parts[] = {own->parameters - own->expert_parameters, own->expert_parameters};
  bool reduces = !strategy->overlap && strategy->zero < 2;
  bool apart = reduces && framework_of(program)->gradients.bucket_unit == PL_BUCKET_PARAMETER;
  uint32_t n_apart = apart ? add_parameters(NULL, program, own, parts[0]) : 0;
  pass.list = PL_TAKE(state->arena, pl_instruction, 12 + 2 * n_apart); /* with those across copies */
  if (pass.list == NULL) return pl_fail_memory(state->error, "the program");
  if (apart) add_parameters(&pass, program, own, parts[0]);
  for (int experts = apart; experts <= 1 && reduces; experts++)
    add_reduce(&pass, parts[experts], experts);
  uint32_t embedding = program->family_of[own->stage][PL_FAMILY_EMBEDDING];
  if (embedding != PL_NONE) {
    double kept = strategy->zero >= 2 ? 1 / pl_program_shards(program, false) : 1; /* of which both have a share each */
    double size_bytes = program->blocks[PL_BLOCK_HEAD].tied_parameters * kept * program->training.reduced_bytes;
    add(&pass, PL_INSTRUCTION_EMBEDDING, true, -1, pl_making_op(state, embedding, PL_ALL_REDUCE, size_bytes));
  }
  add(&pass, PL_INSTRUCTION_OPTIMIZER, false, -1, PL_NONE);
  gathered_block gathered = {0};
  for (int experts = 0; experts <= 1 && (strategy->zero == 1 || strategy->zero == 2); experts++)
    add_gather(&pass, -1, parts[experts], experts, false, &gathered);
  if (framework_of(program)->gathers.copies_per_tensor) add_updates(&pass, &gathered);
  own->epilogue = (pl_pass){pass.list, pass.n};
  return PL_OK;
}
