/* See search/run/measure_machine.h. */
#include "search/run/measure_machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "search/run/run_program.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"
#include "workloads/language/ir_work.h"
#include "workloads/passes/program_of.h"

/* ---- ops ---- */

/* A model of a family, E wide, with batches and sequences of some size. */
typedef struct job_size {
  int width, length, batch;
} job_size;

typedef struct family {
  const char *name, *model; /* %1$d: width, %2$d: positions */
  const job_size *sizes;    /* the first ones, then those of a thorough run */
  int n_sizes, n_more;
} family;

static const job_size layers[] = {{32, 16, 2}, {64, 32, 4},  {192, 48, 2}, {320, 24, 2},
                                  {16, 16, 1}, {128, 64, 2}, {96, 24, 8},  {48, 96, 4}};
static const job_size experts[] = {{32, 16, 2}, {96, 32, 2}, {160, 24, 4}, {64, 64, 2}};
static const job_size vectors[] = {{48, 1, 4},  {160, 1, 24}, {384, 1, 48}, {640, 1, 12},
                                   {24, 1, 16}, {320, 1, 96}, {768, 1, 6},  {96, 1, 192}};
static const job_size pictures[] = {{8, 16, 2}, {16, 16, 4}, {24, 24, 2}};

#define SIZES(list, n) list, n, (int)(sizeof(list) / sizeof((list)[0])) - (n)
static const family families[] = {
    {"gpt2",
     "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": %1$d, \"n_head\": 4, \"n_positions\": %2$d, "
     "\"vocab_size\": "
     "192}",
     SIZES(layers, 4)},
    {"llama",
     "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": %1$d, \"num_attention_heads\": 4, "
     "\"num_key_value_heads\": 2, \"intermediate_size\": %1$d, \"vocab_size\": 320, \"max_position_embeddings\": %2$d}",
     SIZES(layers, 4)},
    {"bert",
     "{\"model_type\": \"bert\", \"num_hidden_layers\": 1, \"hidden_size\": %1$d, \"num_attention_heads\": 4, "
     "\"intermediate_size\": %1$d, \"vocab_size\": 128, \"max_position_embeddings\": %2$d, \"type_vocab_size\": 2}",
     SIZES(experts, 2)},
    {"mixtral",
     "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 1, \"hidden_size\": %1$d, \"num_attention_heads\": 4, "
     "\"num_key_value_heads\": 4, \"intermediate_size\": %1$d, \"vocab_size\": 128, \"max_position_embeddings\": %2$d, "
     "\"num_local_experts\": 4, \"num_experts_per_tok\": 2}",
     SIZES(experts, 2)},
    {"mlp", "{\"model_type\": \"mlp\", \"num_hidden_layers\": 2, \"hidden_size\": %1$d}", SIZES(vectors, 4)},
    {"cnn",
     "{\"model_type\": \"cnn\", \"image\": [3, %2$d, %2$d], \"norm\": \"batch\", \"blocks\": [\"conv %1$d 3x3\", \"max "
     "2/2\", \"[conv %1$d 1x1, conv %1$d 3x3]\", \"(conv %1$d 1x1 | average 3, conv %1$d 1x1)\", \"mean\", \"linear "
     "10\"]}",
     SIZES(pictures, 2)}};

enum { WARMUP = 2, ITERATIONS = 9 };

static pl_code make_program(const family *of, const job_size *size, pl_arena *arena, pl_ir_module *module,
                            pl_error *error) {
  pl_model model;
  pl_job job = {.gbs = size->batch, .seq = size->length, .dtype = PL_DTYPE_FP32, .flash = true};
  const char *text = pl_arena_printf(arena, of->model, size->width, size->length);
  if (text == NULL) return pl_fail_memory(error, "a model to measure");
  if (strcmp(of->name, "cnn") == 0) job.seq = 1;
  PL_TRY(pl_model_parse(of->name, text, strlen(text), arena, &model, error));
  return pl_program_of(&model, &job, NULL, PL_IR_TRAINING, arena, module, error);
}

/* Ranks for each core, 1 where there are cores enough.
 *
 * Ranks that share cores have one for milliseconds at a time, and ops take microseconds: nearly all of them run on a
 * core that is theirs alone, and the median knows nothing of the others (of 57 kinds of ops four ranks on two cores
 * had the rates of one rank). Over a step of the program a rank has its share of a core, and no more while others wait:
 * a rank that waits for a message asks for it again and again, and wants its core as much as one that computes. So what
 * ops and moves take undisturbed counts as many times as there are ranks for a core. */
static double ranks_per_core(MPI_Comm comm) {
  double ranks = pl_rank_count(comm), cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
  return ranks > cores && cores >= 1 ? ranks / cores : 1;
}

/* Ranks that have a core each are only ever disturbed by others who use the machine, and the least of the times is
 * without them; among ranks that share cores the least is that of a moment in which the others did not run. */
static double time_of(const pl_run_spread *spread, double per_core) {
  return per_core > 1 ? per_core * spread->median_s : spread->least_s;
}

/* Of all ops that ran. Products of what is sent elsewhere have the bytes of the local types: there is one device. */
static pl_code read_ops(const pl_ir_module *module, const pl_run_program_times *times, double per_core, pl_arena *arena,
                        pl_machine_samples *samples, pl_error *error) {
  for (int32_t f = 0, at = 0; f < module->n_functions; f++)
    for (int32_t k = 0; k < module->functions[f]->n_ops; k++, at++) {
      const pl_ir_op *op = &module->functions[f]->ops[k];
      const pl_ir_row *row = pl_ir_row_at(op->row);
      if (times->runs[at] == 0 || row->effect == PL_IR_CALLS || strcmp(row->name, "input") == 0) continue;
      void *ops = pl_arena_grown(arena, samples->ops, samples->n_ops, 1, sizeof(*samples->ops), &samples->room_ops);
      if (ops == NULL) return pl_fail_memory(error, "what is measured");
      samples->ops = (pl_op_sample *)ops;
      samples->ops[samples->n_ops++] = (pl_op_sample){.row = op->row,
                                                      .flops = pl_ir_op_flops(&module->mesh, module->functions[f], op),
                                                      .bytes = pl_ir_op_bytes(&module->mesh, module->functions[f], op),
                                                      .time_s = time_of(&times->ops[at], per_core) / times->runs[at]};
    }
  return PL_OK;
}

static pl_code measure_program(const family *of, const job_size *size, bool single, MPI_Comm comm,
                               pl_interrupt *interrupt, pl_arena *arena, pl_machine_samples *samples, pl_error *error) {
  pl_ir_module module;
  pl_run_program_times times;
  const pl_run_program_options options = {.seed = 1, .iterations = ITERATIONS, .warmup = WARMUP, .single = single};
  PL_TRY(make_program(of, size, arena, &module, error));
  if (comm != PL_ALONE) MPI_Barrier(comm); /* each for itself, all at once */
  PL_TRY(pl_run_program(&module, &options, PL_ALONE, interrupt, arena, &times, error));
  return read_ops(&module, &times, ranks_per_core(comm), arena, samples, error);
}

/* Ranks ran the same ops: their mean. */
static void join_ops(MPI_Comm comm, pl_machine_samples *samples) {
  int n_ranks = pl_rank_count(comm);
  if (comm == PL_ALONE) return;
  for (uint32_t i = 0; i < samples->n_ops; i++)
    samples->ops[i].time_s /= n_ranks;
  for (uint32_t i = 0; i < samples->n_ops; i++) {
    double sum = samples->ops[i].time_s;
    MPI_Reduce(&sum, &samples->ops[i].time_s, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
  }
}

static pl_code measure_ops(MPI_Comm comm, bool single, bool thorough, pl_interrupt *interrupt, pl_arena *arena,
                           pl_machine_samples *samples, pl_error *error) {
  for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
    int n = families[f].n_sizes + (thorough ? families[f].n_more : 0);
    for (int i = 0; i < n; i++)
      PL_TRY(measure_program(&families[f], &families[f].sizes[i], single, comm, interrupt, arena, samples, error));
  }
  join_ops(comm, samples);
  return PL_OK;
}

/* ---- moves ---- */

/* Collectives over n devices of so many numbers each, as a program; messages are there and back. */
static const char collectives[] = "plir 1 distributed \"moves\"\nmesh r=%1$u\n"
                                  "func @main() {\n"
                                  "  %%whole = param \"whole\"() : fp32[k=%1$u/r, n=%2$lld]\n"
                                  "  %%part = sum(%%whole) {over=k} : fp32[n=%2$lld] partial(r)\n"
                                  "  %%all = all_reduce(%%part) {over=r} : fp32[n=%2$lld]\n"
                                  "  %%scattered = reduce_scatter(%%part) {over=r, dim=n} : fp32[n=%2$lld/r]\n"
                                  "  %%gathered = all_gather(%%scattered) {over=r, dim=n} : fp32[n=%2$lld]\n"
                                  "  %%other = all_to_all(%%whole) {over=r, from=k, to=n} : fp32[k=%1$u, n=%2$lld/r]\n"
                                  "  keep \"all\"(%%all)\n  keep \"gathered\"(%%gathered)\n  keep \"other\"(%%other)\n"
                                  "}\n"
                                  "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";

static const char messages[] = "plir 1 distributed \"messages\"\nmesh r=2\n"
                               "func @first() {\n"
                               "  %%x = param \"x\"() : fp32[n=%2$lld]\n"
                               "  send(%%x) {to=b, tag=\"there\"}\n"
                               "  %%y = receive() {from=b, tag=\"back\"} : fp32[n=%2$lld]\n"
                               "  keep \"y\"(%%y)\n"
                               "}\n"
                               "func @second() {\n"
                               "  %%x = receive() {from=a, tag=\"there\"} : fp32[n=%2$lld]\n"
                               "  send(%%x) {to=a, tag=\"back\"}\n"
                               "}\n"
                               "class a at r=0 {\n  chunk 0 forward @first\n  steps F0.0\n}\n"
                               "class b at r=1 {\n  chunk 1 forward @second\n  steps F1.0\n}\n";

static pl_code add_move(pl_machine_samples *samples, const pl_move_sample *sample, pl_arena *arena, pl_error *error) {
  void *moves = pl_arena_grown(arena, samples->moves, samples->n_moves, 1, sizeof(*sample), &samples->room_moves);
  if (moves == NULL) return pl_fail_memory(error, "what is measured");
  samples->moves = (pl_move_sample *)moves;
  samples->moves[samples->n_moves++] = *sample;
  return PL_OK;
}

/* A collective lasts until the last rank has it, and for that rank it began last: the shortest time of its ranks is
 * that without the wait for others. */
static double shortest(const pl_run_program_times *times, int32_t op, double per_core) {
  double least = time_of(&times->ops[op], per_core);
  for (int32_t rank = 1; rank < times->n_ranks; rank++) {
    double other = time_of(&times->ops[(size_t)rank * (size_t)times->n_ops + (size_t)op], per_core);
    if (other < least) least = other;
  }
  return least;
}

static pl_code read_moves(const pl_ir_module *module, const pl_run_program_times *times, double size_bytes, uint32_t n,
                          double per_core, pl_arena *arena, pl_machine_samples *samples, pl_error *error) {
  static const struct {
    const char *row;
    pl_collective_kind kind;
  } kinds[] = {{"all_reduce", PL_ALL_REDUCE},
               {"reduce_scatter", PL_REDUCE_SCATTER},
               {"all_gather", PL_ALL_GATHER},
               {"all_to_all", PL_ALL_TO_ALL}};
  const pl_ir_function *f = module->functions[0];
  double there_and_back_s = 0;
  for (int32_t k = 0; k < f->n_ops; k++) {
    const char *name = pl_ir_row_at(f->ops[k].row)->name;
    pl_move_sample sample = {.n = n, .size_bytes = size_bytes, .time_s = shortest(times, k, per_core)};
    if (strcmp(name, "send") == 0 || strcmp(name, "receive") == 0)
      there_and_back_s += time_of(&times->ops[k], per_core);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
      if (strcmp(name, kinds[i].row) != 0) continue;
      sample.kind = kinds[i].kind;
      PL_TRY(add_move(samples, &sample, arena, error));
    }
  }
  if (there_and_back_s == 0) return PL_OK;
  const pl_move_sample sample = {PL_SEND, 2, size_bytes, there_and_back_s / 2};
  return add_move(samples, &sample, arena, error);
}

static pl_code measure_moves(MPI_Comm comm, const char *form, uint32_t n, int64_t numbers, double per_core, bool single,
                             pl_interrupt *interrupt, pl_arena *arena, pl_machine_samples *samples, pl_error *error) {
  pl_ir_module module;
  pl_run_program_times times;
  const pl_run_program_options options = {.seed = 1, .iterations = 3 * ITERATIONS, .warmup = WARMUP, .single = single};
  const char *text = pl_arena_printf(arena, form, n, (long long)numbers);
  if (text == NULL) return pl_fail_memory(error, "a program to measure");
  PL_TRY(pl_ir_parse("moves", text, strlen(text), arena, &module, error));
  PL_TRY(pl_ir_check(&module, error));
  PL_TRY(pl_run_program(&module, &options, comm, interrupt, arena, &times, error));
  return read_moves(&module, &times, (double)numbers * (single ? 4 : 8), n, per_core, arena, samples, error);
}

/* Groups of n neighbours, all at work at once. */
static pl_code measure_groups(MPI_Comm comm, uint32_t n, bool single, bool thorough, pl_interrupt *interrupt,
                              pl_arena *arena, pl_machine_samples *samples, pl_error *error) {
  MPI_Comm group;
  int rank = pl_rank(comm);
  MPI_Comm_split(comm, rank / (int)n, rank, &group);
  double per_core = ranks_per_core(comm); /* all groups are at work */
  pl_code code = PL_OK;
  for (int64_t numbers = 64; numbers <= (thorough ? 1 << 22 : 1 << 20) && code == PL_OK; numbers *= thorough ? 2 : 4) {
    int64_t cut = numbers / n * n;
    code = measure_moves(group, collectives, n, cut, per_core, single, interrupt, arena, samples, error);
    if (code == PL_OK && n == 2)
      code = measure_moves(group, messages, n, cut, per_core, single, interrupt, arena, samples, error);
  }
  MPI_Comm_free(&group);
  return code;
}

/* Once more, when the moves are through: a machine that others have a part of is slower for minutes at a time (between
 * two calibrations of the same cores programs of them had moved by 5 to 14 %), and the lesser time is that without
 * them. */
static pl_code measure_ops_again(MPI_Comm comm, bool single, bool thorough, pl_interrupt *interrupt, pl_arena *arena,
                                 pl_machine_samples *samples, pl_error *error) {
  pl_machine_samples again = {0};
  PL_TRY(measure_ops(comm, single, thorough, interrupt, arena, &again, error));
  PL_ASSERT(again.n_ops == samples->n_ops);
  for (uint32_t i = 0; i < samples->n_ops; i++)
    if (again.ops[i].time_s < samples->ops[i].time_s) samples->ops[i].time_s = again.ops[i].time_s;
  return PL_OK;
}

pl_code pl_measure_machine(MPI_Comm comm, bool single, bool thorough, pl_interrupt *interrupt, pl_arena *arena,
                           pl_machine_samples *samples, pl_error *error) {
  uint32_t n_ranks = (uint32_t)pl_rank_count(comm);
  *samples = (pl_machine_samples){0};
  measure_ops(comm, single, thorough, interrupt, arena, samples, error);
  PL_TRY(pl_agree(comm, error));
  for (uint32_t n = 2; n <= n_ranks; n++) {
    if (n_ranks % n != 0) continue;
    measure_groups(comm, n, single, thorough, interrupt, arena, samples, error);
    PL_TRY(pl_agree(comm, error));
  }
  measure_ops_again(comm, single, thorough, interrupt, arena, samples, error);
  return pl_agree(comm, error);
}
