/* Prints a program: one op list per stage, identical blocks once with a count. For people (and diffs). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "workloads/program/program.h"

static const char *element_name(const pl_tensor *tensor) {
  if (tensor->kind == PL_TENSOR_SIGNS) return "bit";
  return tensor->kind == PL_TENSOR_MASK ? "u8" : pl_dtype_name((pl_dtype)tensor->dtype);
}

static void print_tensor(FILE *stream, const pl_block_program *block, uint32_t index) {
  if (index == PL_NONE) return;
  const pl_tensor *tensor = &block->tensors[index];
  fprintf(stream, "%%%s:%s[", tensor->name, element_name(tensor));
  for (int i = 0; i < tensor->rank; i++)
    fprintf(stream, "%s%c=%" PRId64, i == 0 ? "" : ",", tensor->dims[i], tensor->extent[i]);
  fputc(']', stream);
}

static const char *family_name(pl_family_kind kind) {
  static const char *const names[PL_FAMILY_KIND_COUNT] = {
      [PL_FAMILY_TENSOR] = "tensor",   [PL_FAMILY_HEADS] = "heads",   [PL_FAMILY_DATA] = "data",
      [PL_FAMILY_DOWN] = "down",       [PL_FAMILY_UP] = "up",         [PL_FAMILY_EMBEDDING] = "embedding",
      [PL_FAMILY_CONTEXT] = "context", [PL_FAMILY_EXPERT] = "expert", [PL_FAMILY_EXPERT_DATA] = "expert_data",
      [PL_FAMILY_COPIES] = "copies",   [PL_FAMILY_DOWN_2] = "down_2", [PL_FAMILY_UP_2] = "up_2"};
  return names[kind];
}

static void print_collective(FILE *stream, const pl_op *op) {
  char text[PL_UNIT_TEXT_BYTES];
  fprintf(stream, "%s[%s] %s", pl_collective_name((pl_collective_kind)op->collective),
          family_name(pl_program_family_kind((pl_group_role)op->group)), pl_format_bytes(op->size_bytes, text));
  if (op->overlap == PL_OVERLAP_BEGINS) fputs(" begins", stream);
  if (op->overlap == PL_OVERLAP_BEGAN) fputs(" began", stream);
}

static void print_op(FILE *stream, const pl_block_program *block, const pl_op *op) {
  fputs("      ", stream);
  if (op->output != PL_NONE) {
    print_tensor(stream, block, op->output);
    fputs(" = ", stream);
  }
  if (op->kind == PL_OP_COLLECTIVE) {
    print_collective(stream, op);
  } else {
    fprintf(stream, "%s", pl_op_kind_name((pl_op_kind)op->kind));
    if (op->kind == PL_OP_GEMM || op->kind == PL_OP_ATTENTION || op->kind == PL_OP_CONVOLUTION)
      fprintf(stream, "[b=%" PRId64 ",m=%" PRId64 ",n=%" PRId64 ",k=%" PRId64 "]", op->batch, op->m, op->n, op->k);
  }
  fputc('(', stream);
  for (int i = 0; i < PL_OP_INPUTS && op->inputs[i] != PL_NONE; i++) {
    if (i > 0) fputs(", ", stream);
    print_tensor(stream, block, op->inputs[i]);
  }
  fprintf(stream, ")  # %s", op->name);
  if (op->overlap == PL_OVERLAP_AWAITS) fputs(", awaits the exchange", stream);
  if (op->flops > 0) fprintf(stream, ", %.4g flop", op->flops);
  fputc('\n', stream);
}

static void print_run(FILE *stream, const pl_program *program, const pl_instruction *instruction, int32_t count) {
  pl_block_kind kind = pl_model_block_kind(program->model, instruction->block);
  const pl_block_program *block = &program->blocks[pl_model_block_class(program->model, instruction->block)];
  static const char *const names[PL_PASS_COUNT] = {"forward", "backward", "backward for inputs",
                                                   "backward for weights"};
  pl_block_pass pass = pl_instruction_pass(instruction);
  const pl_op_list *list = pl_block_ops(block, pass);
  fprintf(stream, "    %s %s", names[pass], pl_block_kind_name(kind));
  if (count > 1) fprintf(stream, " x%d", count);
  fprintf(stream, ":%s\n", list->n_ops == 0 ? " nothing" : "");
  for (uint32_t i = 0; i < list->n_ops; i++)
    print_op(stream, block, &list->ops[i]);
}

static bool same_run(const pl_program *program, const pl_instruction *a, const pl_instruction *b) {
  return a->kind == PL_INSTRUCTION_BLOCK && b->kind == PL_INSTRUCTION_BLOCK &&
         pl_instruction_pass(a) == pl_instruction_pass(b) &&
         pl_model_block_class(program->model, a->block) == pl_model_block_class(program->model, b->block);
}

static void print_family_op(FILE *stream, const pl_program *program, int32_t stage, pl_family_kind kind, uint32_t op,
                            const char *text) {
  const pl_communication *communication = &program->families[program->family_of[stage][kind]].ops[op];
  char size[PL_UNIT_TEXT_BYTES];
  fprintf(stream, "    %s: %s[%s] %s\n", text, pl_collective_name(communication->kind), family_name(kind),
          pl_format_bytes(communication->size_bytes, size));
}

static void print_pass(FILE *stream, const pl_program *program, int32_t stage, const pl_pass *pass) {
  for (uint32_t i = 0; i < pass->n; i++) {
    const pl_instruction *instruction = &pass->instructions[i];
    pl_family_kind data = pl_instruction_family(instruction);
    int32_t count = 1;
    switch ((pl_instruction_kind)instruction->kind) {
    case PL_INSTRUCTION_BLOCK:
      while (i + 1 < pass->n && same_run(program, instruction, &pass->instructions[i + 1])) {
        count++;
        i++;
      }
      print_run(stream, program, instruction, count);
      break;
    case PL_INSTRUCTION_REDUCE:
      print_family_op(stream, program, stage, data, instruction->op, "start reducing gradients");
      break;
    case PL_INSTRUCTION_GATHER:
      print_family_op(stream, program, stage, data, instruction->op, "start gathering parameters");
      break;
    case PL_INSTRUCTION_AWAIT:
      fputs("    await the oldest gather\n", stream);
      break;
    case PL_INSTRUCTION_COPY:
      fputs("    copy what was gathered, rank by rank\n", stream);
      break;
    case PL_INSTRUCTION_ASSEMBLE:
      print_family_op(stream, program, stage, PL_FAMILY_TENSOR, instruction->op, "assemble what was received");
      break;
    case PL_INSTRUCTION_EMBEDDING:
      print_family_op(stream, program, stage, PL_FAMILY_EMBEDDING, instruction->op, "reduce the tied embedding");
      break;
    case PL_INSTRUCTION_OPTIMIZER:
      fputs("    optimizer step\n", stream);
      break;
    }
  }
}

static void print_send(FILE *stream, const pl_program *program, int32_t stage, pl_family_kind kind, uint32_t op) {
  if (op == PL_NONE) return;
  char size[PL_UNIT_TEXT_BYTES];
  fprintf(stream, "    send %s to stage %d\n",
          pl_format_bytes(program->families[program->family_of[stage][kind]].ops[op].size_bytes, size),
          pl_program_receiver(program, kind, stage));
}

/* Where backwards are never apart, B is one in whole. */
static const char *step_name(const pl_schedule_step *step, bool splits) {
  return step->kind == PL_STEP_BACKWARD && !splits ? "B" : pl_step_name((pl_step_kind)step->kind);
}

/* Whether a schedule that has halves has some backwards in whole, too. */
static bool has_whole_backwards(const pl_stage_program *stage) {
  pl_schedule_cursor cursor = {0};
  for (int64_t i = pl_schedule_n_steps(&stage->schedules[0]); i-- > 0;)
    if (pl_schedule_next(&stage->schedules[0], &cursor).kind == PL_STEP_BACKWARD) return true;
  return false;
}

static void print_schedule(FILE *stream, const pl_schedule *schedule, bool splits) {
  enum { MOST_SHOWN = 24 };
  int64_t n_steps = pl_schedule_n_steps(schedule);
  pl_schedule_cursor cursor = {0};
  for (int64_t i = 0; i < n_steps && i < MOST_SHOWN; i++) {
    const pl_schedule_step step = pl_schedule_next(schedule, &cursor);
    fprintf(stream, " %s%d", step_name(&step, splits), step.microbatch);
    if (schedule->vpp > 1) fprintf(stream, "/%d", step.chunk);
  }
  if (n_steps > MOST_SHOWN) fprintf(stream, " ... (%" PRId64 " steps)", n_steps);
  fputc('\n', stream);
}

static void print_stage(FILE *stream, const pl_program *program, const pl_stage_program *stage) {
  const pl_strategy *strategy = program->strategy;
  fprintf(stream, "stage %d: %d devices, %.6g parameters each\n", stage->stage,
          pl_strategy_replicas(strategy) * strategy->tmp, stage->parameters);
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++) {
    int32_t global = pl_strategy_chunk_at(strategy, stage->stage, chunk);
    fprintf(stream, "  chunk %d: blocks %d to %d\n", chunk, strategy->boundary[global],
            strategy->boundary[global + 1] - 1);
    print_pass(stream, program, stage->stage, &stage->forward[chunk]);
    print_send(stream, program, stage->stage, pl_program_wire(strategy, false, chunk), stage->send_down[chunk]);
    bool whole = stage->inputs == NULL || has_whole_backwards(stage);
    if (whole) print_pass(stream, program, stage->stage, &stage->last_backward[chunk]);
    if (stage->inputs != NULL) print_pass(stream, program, stage->stage, &stage->inputs[chunk]);
    print_send(stream, program, stage->stage, pl_program_wire(strategy, true, chunk), stage->send_up[chunk]);
    if (stage->inputs != NULL) print_pass(stream, program, stage->stage, &stage->last_weights[chunk]);
  }
  for (int32_t i = 0; i < program->n_schedules; i++) {
    fputs("  schedule", stream);
    if (program->n_schedules > 1) fprintf(stream, " of %d microbatches", stage->schedules[i].n_microbatches);
    fputc(':', stream);
    print_schedule(stream, &stage->schedules[i], stage->inputs != NULL);
  }
  fputs("  epilogue:\n", stream);
  print_pass(stream, program, stage->stage, &stage->epilogue);
}

void pl_program_print(FILE *stream, const pl_program *program) {
  char *text = pl_strategy_text(program->strategy, program->model);
  fprintf(stream, "program %s, %d microbatches, %s\n", program->model->name, program->n_microbatches,
          text == NULL ? "" : text);
  free(text);
  for (int32_t stage = 0; stage < program->strategy->pp; stage++)
    print_stage(stream, program, &program->stages[stage]);
}
