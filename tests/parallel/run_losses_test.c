/* Programs run by MPI ranks, one device each, have the losses of the executor that holds all devices: every kind of
 * parallelism, fp64 and fp32, through three optimizer steps. Starts itself under mpirun, on 2 and on 4 ranks. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/run/run_program.h"
#include "tests/support/tiny_models.h"
#include "workloads/execute/executor.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/passes/program_of.h"

enum { ITERATIONS = 3 };

static const char gpt2[] = TINY_GPT2;
static const char llama[] = TINY_LLAMA;
static const char mixtral[] = TINY_MIXTRAL;
static const char mlp[] = TINY_MLP;

/* What no strategy makes: a shift, and a maximum over devices of what it has turned. */
static const char by_hand[] = "plir 1 distributed \"by hand\"\nmesh cp=4\n"
                              "func @main() {\n"
                              "  %x = input \"x\"() : fp32[b=8, s=8/cp]\n"
                              "  %w = param \"w\"() : fp32[s=8/cp]\n"
                              "  %turned = shift(%w) {over=cp, by=1} : fp32[s=8/cp]\n"
                              "  %y = multiply(%x, %turned) : fp32[b=8, s=8/cp]\n"
                              "  %m = maximum(%y) {over=s} : fp32[b=8] maximum(cp)\n"
                              "  %most = all_reduce(%m) {over=cp} : fp32[b=8]\n"
                              "  %l = sum(%most) {over=b} : fp32[]\n"
                              "  loss(%l)\n"
                              "}\n"
                              "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";

typedef struct recipe {
  const char *name, *model, *strategy;
  int n_ranks;
  int64_t gbs, seq;
} recipe;

#define RECIPE(model, strategy, n)                                                                                     \
  { #model, model, strategy, n, 8, 8 }
static const recipe recipes[] = {
    RECIPE(gpt2, "pp=1,dp=2,tmp=1,mbs=2", 2),
    RECIPE(gpt2, "pp=1,dp=1,tmp=2,mbs=2", 2),
    RECIPE(gpt2, "pp=2,dp=1,tmp=1,mbs=1", 2), /* tied embeddings on two stages */
    RECIPE(llama, "pp=1,dp=1,tmp=2,mbs=1,sp=1", 2),
    RECIPE(llama, "pp=1,dp=2,tmp=1,mbs=1,zero=3", 2),
    RECIPE(llama, "pp=1,dp=1,tmp=1,mbs=1,cp=2", 2),
    RECIPE(llama, "pp=2,dp=1,tmp=1,mbs=1,vpp=2,schedule=dualpipe-v", 2), /* messages to itself */
    RECIPE(mixtral, "pp=1,dp=2,tmp=1,mbs=1,ep=2", 2),
    {"mlp", mlp, "pp=1,dp=2,tmp=1,mbs=2", 2, 8, 1},
    {"mlp", mlp, "pp=2,dp=1,tmp=1,mbs=1", 2, 8, 1},
    RECIPE(gpt2, "pp=2,dp=1,tmp=2,mbs=1,sp=1", 4),
    RECIPE(gpt2, "pp=2,dp=2,tmp=1,mbs=1,zero=1", 4),
    RECIPE(gpt2, "pp=4,dp=1,tmp=1,mbs=1,schedule=gpipe", 4),
    RECIPE(llama, "pp=1,dp=2,tmp=2,mbs=1,zero=3,sp=1", 4),
    RECIPE(llama, "pp=1,dp=1,tmp=1,mbs=1,cp=4", 4),
    RECIPE(llama, "pp=1,dp=2,tmp=1,mbs=1,cp=2,cp_comm=gather", 4),
    RECIPE(llama, "pp=2,dp=2,tmp=1,mbs=1,schedule=zb-h1", 4),
    RECIPE(mixtral, "pp=1,dp=2,tmp=2,mbs=1,ep=4,sp=1", 4),
    {"mlp", mlp, "pp=1,dp=2,tmp=2,mbs=1", 4, 8, 1},
    {"by hand", NULL, by_hand, 4, 0, 0},
};

static pl_code make(const recipe *own, pl_arena *arena, pl_ir_module *module, pl_error *error) {
  pl_model model;
  pl_job job = {.gbs = own->gbs, .seq = own->seq, .dtype = PL_DTYPE_FP32, .flash = true};
  pl_strategy strategy;
  if (own->model == NULL) {
    PL_TRY(pl_ir_parse(own->name, own->strategy, strlen(own->strategy), arena, module, error));
    return pl_ir_check(module, error);
  }
  PL_TRY(pl_model_parse(own->name, own->model, strlen(own->model), arena, &model, error));
  PL_TRY(pl_strategy_parse(own->strategy, &model, arena, &strategy, error));
  pl_strategy_adopt(&strategy, &job);
  PL_TRY(pl_strategy_check(&strategy, &model, &job, pl_strategy_n_ranks(&strategy), error));
  PL_TRY(pl_strategy_assign(&strategy, &model, &job, NULL, arena, error));
  return pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, arena, module, error);
}

static pl_code compare(const recipe *own, bool single, pl_arena *arena, double *worst, pl_error *error) {
  pl_ir_module module;
  pl_run_program_times times;
  const pl_run_program_options options = {.seed = 5, .iterations = ITERATIONS, .single = single, .patience_s = 60};
  const pl_execution_options together = {.seed = 5, .iterations = ITERATIONS, .single = single};
  pl_interrupt interrupt = {.command = "test"};
  pl_execution *execution;
  PL_TRY(make(own, arena, &module, error));
  PL_TRY(pl_run_program_check(&module, MPI_COMM_WORLD, error));
  PL_TRY(pl_run_program(&module, &options, MPI_COMM_WORLD, &interrupt, arena, &times, error));
  PL_TRY(pl_execute(&module, &together, &execution, error));
  for (int32_t i = 0; i < ITERATIONS; i++) {
    double loss = pl_execution_loss(execution, i), apart = fabs(times.losses[i] - loss) / fabs(loss);
    if (!(apart <= *worst)) *worst = apart;
    if (loss == 0) pl_fail(error, PL_BAD_INPUT, "the loss is 0");
  }
  pl_execution_destroy(execution);
  return error->code;
}

static int run_all(int rank, int n_ranks) {
  int n_wrong = 0, n = 0;
  double worst[2] = {0};
  for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
    for (int single = 0; single < 2; single++) {
      if (recipes[i].n_ranks != n_ranks) continue;
      pl_arena arena;
      pl_arena_init(&arena, 0);
      pl_error error = PL_ERROR_INIT;
      double apart = 0;
      pl_code code = compare(&recipes[i], single, &arena, &apart, &error);
      bool wrong = code != PL_OK || !(apart < (single ? 1e-4 : 1e-11));
      if (wrong && rank == 0)
        printf("%s %s %s: %s, apart by %.1e\n", recipes[i].name, recipes[i].model != NULL ? recipes[i].strategy : "",
               single ? "fp32" : "fp64", error.message, apart);
      n_wrong += wrong;
      n++;
      if (!(apart <= worst[single])) worst[single] = apart;
      pl_arena_release(&arena);
    }
  if (rank == 0)
    printf("%d ranks: %d runs, %d wrong; losses apart by at most %.1e in fp64, %.1e in fp32\n", n_ranks, n, n_wrong,
           worst[0], worst[1]);
  return n_wrong;
}

static int start(const char *program, int n_ranks) {
  static const char *const environment[] = {"OMPI_MCA_rmaps_base_oversubscribe",
                                            "1",
                                            "OMPI_MCA_btl",
                                            "self,vader",
                                            "OMPI_MCA_hwloc_base_binding_policy",
                                            "none",
                                            "OMPI_MCA_mpi_yield_when_idle",
                                            "1",
                                            "OMPI_ALLOW_RUN_AS_ROOT",
                                            "1",
                                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                            "1"};
  char command[4200];
  for (size_t i = 0; i < sizeof(environment) / sizeof(environment[0]); i += 2)
    setenv(environment[i], environment[i + 1], 1);
  snprintf(command, sizeof command, "mpirun -n %d '%s'", n_ranks, program);
  fflush(stdout);
  return system(command);
}

int main(int argc, char **argv) {
  (void)argc;
  if (!pl_ranks_are_launched()) return start(argv[0], 2) != 0 || start(argv[0], 4) != 0;
  int provided, rank, n_ranks;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  int n_wrong = run_all(rank, n_ranks);
  MPI_Finalize();
  return n_wrong > 0;
}
