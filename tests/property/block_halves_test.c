/* Backward passes in halves, of the models that are shipped under the frameworks that are shipped: the two halves have
 * the ops of the whole, each once; the first can run without the second, the second on what the first leaves; nobody
 * reads what was overwritten meanwhile; and the bytes that wait and the peaks are those of a slow count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/random_program.h"
#include "workloads/import/model_file.h"
#include "workloads/lower/block_program.h"

enum { TENSORS = 512, SHARDS = 30 };

static const pl_block_program *shown; /* for messages */

static bool is_persistent(const pl_tensor *tensor) {
  return tensor->kind == PL_TENSOR_PARAMETER || tensor->kind == PL_TENSOR_PARAMETER_GRADIENT;
}

static bool reads(const pl_op *op, uint32_t tensor) {
  for (uint32_t j = 0; j < PL_OP_INPUTS; j++)
    if (op->inputs[j] == tensor) return true;
  return false;
}

static bool writes(const pl_op *op, uint32_t tensor) {
  return op->output == tensor || op->auxiliary == tensor || op->third == tensor;
}

/* Overlap apart, which is about what stands behind an op. */
static bool same_op(const pl_op *a, const pl_op *b) {
  return a->name == b->name && a->kind == b->kind && a->flops == b->flops && a->bytes == b->bytes &&
         a->size_bytes == b->size_bytes && a->output == b->output && a->auxiliary == b->auxiliary &&
         a->third == b->third && memcmp(a->inputs, b->inputs, sizeof a->inputs) == 0;
}

/* Merging the halves gives the whole; says of each op which half has it. */
static void halves_are_the_whole(const pl_block_program *block, bool *for_inputs) {
  const pl_op_list *whole = &block->backward, *inputs = &block->halves[0], *weights = &block->halves[1];
  uint32_t i = 0, w = 0;
  assert_int_equal(inputs->n_ops + weights->n_ops, whole->n_ops);
  for (uint32_t at = 0; at < whole->n_ops; at++) {
    bool first = i < inputs->n_ops && same_op(&inputs->ops[i], &whole->ops[at]);
    if (!first && !(w < weights->n_ops && same_op(&weights->ops[w], &whole->ops[at])))
      fail_msg("op %s of %s is in neither half", whole->ops[at].name, pl_block_kind_name(block->kind));
    for_inputs[at] = first;
    i += first;
    w += !first;
  }
}

/* Everything that an op of the list reads is there. */
static void flows(const pl_op_list *list, bool *there, const char *what) {
  for (uint32_t i = 0; i < list->n_ops; i++) {
    const pl_op *op = &list->ops[i];
    for (uint32_t j = 0; j < PL_OP_INPUTS; j++)
      if (op->inputs[j] != PL_NONE && !there[op->inputs[j]] && op->inputs[j] != op->output)
        fail_msg("%s of %s, %s: reads %s, which is not there", what, pl_block_kind_name(shown->kind), op->name,
                 shown->tensors[op->inputs[j]].name);
    if (op->output != PL_NONE) there[op->output] = true;
    if (op->auxiliary != PL_NONE) there[op->auxiliary] = true;
    if (op->third != PL_NONE) there[op->third] = true;
  }
}

/* Memory that is named and not made: part of a packed gradient. */
static bool is_made(const pl_block_program *block, uint32_t tensor) {
  const pl_op_list lists[] = {block->forward, block->backward, block->halves[0], block->halves[1]};
  for (int l = 0; l < 4; l++)
    for (uint32_t i = 0; i < lists[l].n_ops; i++)
      if (writes(&lists[l].ops[i], tensor)) return true;
  return false;
}

static void each_half_can_run(const pl_block_program *block) {
  bool there[TENSORS];
  for (uint32_t t = 0; t < block->n_tensors; t++) {
    const pl_tensor *tensor = &block->tensors[t];
    there[t] = is_persistent(tensor) || tensor->saved || t == block->output_gradient || t == block->input ||
               !is_made(block, t);
  }
  flows(&block->halves[0], there, "inputs");
  if (block->input_gradient != PL_NONE) assert_true(there[block->input_gradient]);
  for (uint32_t t = 0; t < block->n_tensors; t++) {
    if (block->tensors[t].waits) assert_true(there[t]);
    there[t] = is_persistent(&block->tensors[t]) || block->tensors[t].waits || !is_made(block, t);
  }
  flows(&block->halves[1], there, "weights");
}

/* In the whole an op of the second half stands before some of the first: none of these overwrites what it reads. */
static void nothing_is_overwritten(const pl_op_list *whole, const bool *for_inputs) {
  for (uint32_t at = 0; at < whole->n_ops; at++)
    for (uint32_t later = at + 1; !for_inputs[at] && later < whole->n_ops; later++)
      for (uint32_t j = 0; j < PL_OP_INPUTS; j++) {
        uint32_t read = whole->ops[at].inputs[j];
        bool again = whole->ops[later].category == PL_CATEGORY_RECOMPUTE; /* the same once more */
        if (for_inputs[later] && !again && read != PL_NONE && writes(&whole->ops[later], read))
          fail_msg("%s overwrites what %s reads", whole->ops[later].name, whole->ops[at].name);
      }
}

/* Recomputation, its collectives with it, is in the first half. */
static bool is_made_again(const pl_block_program *block, const pl_op *op) {
  for (uint32_t i = 0; i < block->forward.n_ops; i++)
    if (strcmp(block->forward.ops[i].name, op->name) == 0) return true;
  return false;
}

/* Of a kernel beside it, as of a norm in PyTorch ops: nobody reads what it gives. */
static bool is_step(const pl_op_list *whole, const pl_op *op) {
  for (uint32_t i = 0; i < whole->n_ops; i++)
    if (op->output == PL_NONE || (&whole->ops[i] != op && reads(&whole->ops[i], op->output))) return false;
  return op->kind != PL_OP_COLLECTIVE && op->auxiliary == PL_NONE;
}

/* A product that makes nothing but the gradient of a weight is for weights, and is all there is but casts, regathers,
 * sums and recomputations; an op for inputs leads to the gradient of the input. */
static void halves_are_what_they_say(const pl_block_program *block, const pl_op_list *whole, const bool *for_inputs) {
  for (uint32_t at = 0; at < whole->n_ops; at++) {
    const pl_op *op = &whole->ops[at];
    bool makes_weight = op->output != PL_NONE && block->tensors[op->output].kind == PL_TENSOR_PARAMETER_GRADIENT;
    if (makes_weight && op->kind == PL_OP_GEMM) assert_false(for_inputs[at]);
    if (block->input_gradient != PL_NONE && is_made_again(block, op) && !for_inputs[at])
      fail_msg("%s of %s is made again for weights", op->name, pl_block_kind_name(block->kind));
    if (!for_inputs[at] || is_made_again(block, op)) continue;
    bool leads = writes(op, block->input_gradient) || is_step(whole, op);
    for (uint32_t later = 0; later < whole->n_ops; later++)
      leads |= for_inputs[later] && ((op->output != PL_NONE && reads(&whole->ops[later], op->output)) ||
                                     (op->auxiliary != PL_NONE && reads(&whole->ops[later], op->auxiliary)) ||
                                     (op->third != PL_NONE && reads(&whole->ops[later], op->third)));
    if (!leads) fail_msg("%s leads nowhere", op->name);
  }
}

/* Alive during op i: there at the start or touched by then, and touched later or outliving the half. Of what is made
 * again in part the other part alone is there until it is touched. */
static double slow_peak(const pl_block_program *block, int half) {
  const pl_op_list *list = &block->halves[half];
  bool hands = half == 0 && block->output_gradient != PL_NONE;
  double peak = hands ? block->tensors[block->output_gradient].size_bytes : 0;
  for (uint32_t i = 0; i < list->n_ops; i++) {
    double live = 0;
    for (uint32_t t = 0; t < block->n_tensors; t++) {
      const pl_tensor *tensor = &block->tensors[t];
      if (is_persistent(tensor)) continue;
      bool was = half == 0 ? tensor->saved : tensor->waits, before = was || (hands && t == block->output_gradient);
      bool later = half == 0 && (tensor->waits || t == block->input_gradient);
      bool touched = false, whole = !was;
      for (uint32_t j = 0; j < list->n_ops; j++) {
        bool touches = reads(&list->ops[j], t) || writes(&list->ops[j], t);
        before = before || (j <= i && touches);
        whole |= j <= i && touches;
        later = later || (j >= i && touches);
        touched |= touches;
      }
      /* What is never touched is not freed by this half. */
      double remade_bytes = half == 0 ? tensor->remade_bytes : 0;
      if (before && (later || !touched)) live += tensor->size_bytes - (whole ? 0 : remade_bytes);
      if (was) live -= tensor->size_bytes - remade_bytes;
    }
    peak = fmax(peak, live);
  }
  return peak;
}

static void bytes_are_right(const pl_block_program *block) {
  double waiting = 0;
  for (uint32_t t = 0; t < block->n_tensors; t++)
    if (block->tensors[t].waits) waiting += block->tensors[t].size_bytes;
  assert_true(waiting == block->waiting_bytes);
  const double peaks[2] = {block->inputs_peak_bytes, block->weights_peak_bytes};
  for (int half = 0; half < 2; half++)
    if (fabs(slow_peak(block, half) - peaks[half]) > 1)
      fail_msg("peak of half %d of %s: %.0f, counted %.0f", half, pl_block_kind_name(block->kind), peaks[half],
               slow_peak(block, half));
}

static void check_block(const pl_block_program *block) {
  bool for_inputs[TENSORS];
  shown = block;
  assert_true(block->n_tensors <= TENSORS && block->backward.n_ops <= TENSORS);
  halves_are_the_whole(block, for_inputs);
  each_half_can_run(block);
  nothing_is_overwritten(&block->backward, for_inputs);
  halves_are_what_they_say(block, &block->backward, for_inputs);
  bytes_are_right(block);
}

static pl_block_shard random_shard(uint64_t *random, const pl_model *model, pl_arena *arena) {
  pl_block_shard shard = {.tmp = 1 << random_below(random, 3),
                          .ep = 1,
                          .cp = random_below(random, 4) == 0 ? 2 : 1,
                          .cp_gather = random_below(random, 2) == 0,
                          .mbs = 1 + (int32_t)random_below(random, 2),
                          .seq = model->unlike.parts != NULL ? model->positions.max_positions : 128,
                          .recompute = (pl_recompute)random_below(random, PL_RECOMPUTE_COUNT),
                          .dtype = random_below(random, 2) == 0 ? PL_DTYPE_BF16 : PL_DTYPE_FP16,
                          .flash = random_below(random, 2) == 0,
                          .framework = random_program_framework(random_below(random, 64), arena),
                          .halves = true};
  shard.sp = shard.tmp > 1 && (random_below(random, 2) == 0 || model->moe.n_experts > 0);
  shard.flash |= shard.cp > 1;
  shard.fp8 = random_below(random, 4) == 0;
  if (model->unlike.parts != NULL) {
    shard.cp = 1;
    shard.sp = false;
  }
  return shard;
}

static uint32_t check_model(const char *path, uint64_t *random) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  uint32_t n = 0;
  pl_code code = pl_model_load(path, &arena, &model, &error);
  if (code == PL_UNSUPPORTED) { /* a program without blocks */
    pl_arena_release(&arena);
    return 0;
  }
  if (code != PL_OK) fail_msg("%s", error.message);
  for (int round = 0; round < SHARDS; round++) {
    pl_arena_mark mark = pl_arena_mark_here(&arena);
    const pl_block_shard shard = random_shard(random, &model, &arena);
    for (int32_t c = 0; c < pl_model_n_classes(&model); c++) {
      pl_block_program block;
      pl_error refused = PL_ERROR_INIT; /* heads or widths that tmp does not divide */
      if (pl_block_class_program_take(&model, c, &shard, &arena, &block, &refused) != PL_OK) continue;
      check_block(&block);
      n++;
    }
    pl_arena_release_to(&arena, mark);
  }
  pl_arena_release(&arena);
  return n;
}

static void shipped_models_under_shipped_frameworks(void **state) {
  (void)state;
  uint64_t random = test_seed(2401);
  DIR *folder = opendir(PACELINE_SOURCE_DIR "/workloads/models");
  uint32_t n = 0;
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const char *ending = strrchr(entry->d_name, '.');
    char path[512];
    if (ending == NULL || strcmp(ending, ".json") != 0) continue;
    snprintf(path, sizeof path, PACELINE_SOURCE_DIR "/workloads/models/%s", entry->d_name);
    n += check_model(path, &random);
  }
  closedir(folder);
  print_message("%u blocks\n", n);
  assert_true(n > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shipped_models_under_shipped_frameworks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
