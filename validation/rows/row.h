/* From a row of measurements to what is simulated. One function per concern; each says why it cannot, in a message of
 * the form "CLASS: detail" with code PL_UNSUPPORTED (the row is counted under its class and never dropped), while
 * PL_NO_MEMORY and PL_IO end the run.
 *
 * What a row leaves open is settled by the rules at the functions and in validation/rows/README.md, the same for every
 * row and settled before anything is compared.
 */
#ifndef PL_VALIDATION_ROW_H
#define PL_VALIDATION_ROW_H

#include "netmodel/make/platform_writer.h"
#include "validation/rows/measured.h"
#include "workloads/ir/model.h"
#include "workloads/strategy/strategy.h"

/* Which figure of memory a source publishes, and of which rank. */
typedef enum pl_memory_figure {
  PL_MEMORY_RESERVED = 0, /* what the allocator holds: torch.cuda.max_memory_reserved */
  PL_MEMORY_ALLOCATED,    /* tensors: max_memory_allocated */
  PL_MEMORY_DEVICE        /* what is taken of the device: nvidia-smi */
} pl_memory_figure;
typedef enum pl_memory_rank {
  PL_MEMORY_FULLEST = 0, /* of the rank that has most */
  PL_MEMORY_FIRST_STAGE, /* of rank 0 */
  PL_MEMORY_LAST_STAGE   /* of the rank that has the loss */
} pl_memory_rank;

/* What the software stack of a row does where the row itself does not say. What is not here is the framework
 * profile's (workloads/frameworks/). */
typedef struct pl_row_habits {
  const char *framework;  /* profile, or "ideal" */
  bool is_named;          /* by --framework, or so by a row with a strategy: no rule changes it */
  bool no_flash;          /* the GPU, or the age of the software, rules out fused attention whatever the profile says */
  bool dropout;           /* ungated models train with it */
  bool sequence_parallel; /* where tp > 1 */
  bool gathers_context;   /* context parallelism gathers keys and values, instead of sending them round */
  bool selects_ops;       /* "selective" recomputation is that of every second product, not of the attention core */
  bool picks_masked;      /* BERT's head and loss compute the masked tokens only */
  bool no_head;           /* a classification: of a sequence one token's vector heads anywhere */
  int32_t zero;           /* sharding where dp > 1 and the row states none */
  bool reduces_after_pipelines; /* gradients of stages are reduced when the last microbatch is over */
  pl_memory_figure memory_figure;
  pl_memory_rank memory_rank;
  int32_t vpp; /* chunks per stage where the row states none; 0 and 1: one */
} pl_row_habits;
/* By `framework`, and where a name has stood for different software over the years by what the row tells of its age. */
pl_row_habits pl_row_habits_of(const pl_measured_row *row);

/* The limit of power that the row states, in its column or with the GPU: "H100 (500 W)"; 0: none. */
double pl_row_power_W(const pl_measured_row *row);
/* Capacity and bandwidth of the memory that the row states with its GPU, "H100 96GB HBM2e 2.4TB/s"; 0: none. */
double pl_row_memory_bytes(const pl_measured_row *row);
double pl_row_bandwidth_Bps(const pl_measured_row *row);
/* The device profile that is meant by what a table calls a GPU ("H100 80GB HBM3", "Tesla T4"), by the rules for rows of
 * measurements; NULL: none is known by it. */
const char *pl_row_device_named(const char *gpu);
/* Whether it names GPUs of several kinds. */
bool pl_row_gpu_is_mixed(const char *gpu);

enum { PL_ROW_RANKS_MAX = 1 << 24 };
/* Whatever a cell says, what follows is within 32 bits: degrees and their products as --strategy takes them, gbs and
 * seq_len as --gbs and --seq; zero_stage is 0 to 3, sp 0 or 1. */
pl_code pl_row_check_counts(const pl_measured_row *row, const pl_row_habits *habits, pl_error *error);

/* ---- what nothing here simulates (row_absent.c) ---- */

/* Offloading, optimizers of other arithmetic than Adam's and SGD's, exchanges in fewer bits, adapters, experts with a
 * capacity or in a loop, where `framework` or `notes` name them and do not deny it ("no CPU offload", "cpu_offload:
 * false", "Adam instead of Muon"): PL_UNSUPPORTED. */
pl_code pl_row_check_absent(const pl_measured_row *row, pl_error *error);
/* Of these what is of experts, of which the row, models.csv or the model's file counts so many. */
pl_code pl_row_check_experts(const pl_measured_row *row, int64_t n_experts, pl_error *error);

/* ---- words (row_words.c) ---- */

/* Whether every word in a column of words is known: mlp_type, schedule, tied_embeddings, norms, reshard_after_forward,
 * fsdp; and what they say can be expressed. "COLUMN: 'WORD' is unknown, did you mean 'OTHER'?; known are ...". What
 * follows relies on it. */
pl_code pl_row_check_words(const pl_measured_row *row, pl_error *error);
/* 1, 0, or -1 where the row does not state it. */
int pl_row_gated(const pl_measured_row *row);
int pl_row_tied(const pl_measured_row *row);
int pl_row_fused_norms(const pl_measured_row *row);
int pl_row_resharding(const pl_measured_row *row);
/* Stage of ZeRO that `fsdp` says, and where it is empty the framework's name ("DeepSpeed ZeRO-3"); -1: nothing. */
int pl_row_sharding(const pl_measured_row *row);
pl_schedule_kind pl_row_schedule(const pl_measured_row *row, int32_t vpp);
/* Chunks per stage that the row's schedule has; `otherwise` where it may have any number. */
int32_t pl_row_chunks(const pl_measured_row *row, int32_t otherwise);
/* Software that no word of the row names: its profile follows from what it does. */
bool pl_row_framework_is_known(const pl_measured_row *row);

enum { PL_ROW_PLATFORM_BYTES = 192 };
/* The machines of a row: node kind, count, device, network. `name` receives a text that is equal exactly for equal
 * plans (and is what `platform make` would be asked for). */
pl_code pl_row_cluster(const pl_measured_row *row, pl_platform_plan *plan, char name[PL_ROW_PLATFORM_BYTES],
                       pl_error *error);

/* Reads the table of models that comes with Paceline (validation/models.csv). */
pl_code pl_row_known_load(pl_arena *arena, pl_csv *known, pl_error *error);

/* A file that a row names, as seen from the folder of its table if there is such a file; NULL: no memory. */
const char *pl_row_beside(const pl_measured_row *row, const char *path, pl_arena *arena);

/* The file of `model_file`, and of others: models known by name (pl_row_known_load): for architectures, and dimensions
 * that a row leaves out. */
pl_code pl_row_model(const pl_measured_row *row, const pl_row_habits *habits, const pl_csv *known, pl_arena *arena,
                     pl_model *model, pl_error *error);
/* Whether the row is about a convolutional network, whose samples have no length. */
bool pl_row_is_network(const pl_measured_row *row);
/* What the row says of its run's software, in place of what the profile has: all that follows, and compiled or eager
 * kernels, fused kernels that are chosen run by run, what is kept in fp32, overlap of tensor collectives, the type of
 * reductions. Only for profiles that were found by the row's words. */
void pl_row_choose(const pl_measured_row *row, const pl_row_habits *habits, pl_framework *framework);
/* Fused attention by the kernel that the row names, as PyTorch calls the backends of scaled_dot_product_attention;
 * none: nothing changes. */
void pl_row_choose_attention(const pl_measured_row *row, pl_framework *framework);
/* The version of Hugging Face's library that `framework` names, "transformers 4.41.2", "transformers==4.41": 4041; 0:
 * none is there. */
int pl_row_transformers(const pl_measured_row *row);
/* Models of Hugging Face's whose attention is written op by op, in the version that `framework` names ("transformers
 * 4.42"), or in those of before where it names none. */
bool pl_row_attends_eagerly(const pl_measured_row *row);
/* Megatron-LM's switches of its tests: `notes` that say deterministic-mode or no-gradient-accumulation-fusion. */
void pl_row_choose_determinism(const pl_measured_row *row, const pl_row_habits *habits, pl_framework *framework);
/* A host that launches CUDA graphs, where the row's notes say so. */
void pl_row_choose_graphs(const pl_measured_row *row, pl_framework *framework);
/* Whether tokens go to their experts once per node, where the row names the dispatcher. */
void pl_row_choose_dispatcher(const pl_measured_row *row, pl_framework *framework);

/* Chunks per stage of NVIDIA's published recipe for this model and number of stages; 0 = none is known. */
int32_t pl_row_recipe_vpp(const pl_measured_row *row, const pl_csv *known);
/* `framework` outlives the job; NULL is ideal. */
pl_code pl_row_job(const pl_measured_row *row, const pl_row_habits *habits, const pl_framework *framework, pl_job *job,
                   pl_error *error);
/* Whether experts exchange tokens beside the other pass, Megatron Core's combined 1F1B: by its name, or "1f1b overlap".
 */
bool pl_row_overlaps_experts(const pl_measured_row *row);
/* Without boundaries: a recipe makes them (pl_strategy_assign). */
pl_code pl_row_strategy(const pl_measured_row *row, const pl_row_habits *habits, const pl_model *model,
                        const pl_job *job, pl_arena *arena, pl_strategy *strategy, pl_error *error);

/* Case-blind search, for texts that people wrote. */
bool pl_row_mentions(const char *text, const char *word);
/* Whether `framework` or `notes` mention one of the words; NULL ends them. */
bool pl_row_says_one_of(const pl_measured_row *row, const char *const *words);

/* FlashAttention in `framework`; "no FlashAttention", "without flash attention" there or in `notes`. */
bool pl_row_says_flash(const pl_measured_row *row);
bool pl_row_denies_flash(const pl_measured_row *row);

bool pl_row_is_blackwell(const pl_measured_row *row);

#endif
