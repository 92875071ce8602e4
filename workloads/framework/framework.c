/* See workloads/framework/framework.h: reading of profiles. What a key may hold is in the tables below, one row per
 * switch, so that a key, its words and its place in the struct stand in one line. */
#include "workloads/framework/framework.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/base/words.h"
#include "core/system/data_folder.h"
#include "core/text/document.h"
#include "workloads/framework/job.h"
#include "workloads/ir/op.h"

const pl_framework pl_framework_ideal = {.name = "ideal",
                                         .kernels.flash = true,
                                         .kernels.attention_kernel = PL_ATTENTION_FASTEST,
                                         .kernels.fuses_softmax = true,
                                         .kernels.fuses_scale = true,
                                         .kernels.masks_scores = true,
                                         .kernels.mask_kernels = 1,
                                         .kernels.forward_runs = 1,
                                         .kernels.fuses_gelu = true,
                                         .kernels.fuses_bias = true,
                                         .kernels.fuses_expert_bias = true,
                                         .memory.switch_buffers = true,
                                         .memory.replayed_bytes = -1,
                                         .kernels.fuses_activation = true,
                                         .kernels.fuses_gate = true,
                                         .kernels.packs_gate = true,
                                         .kernels.fuses_residual = true,
                                         .kernels.fuses_rotary = true,
                                         .kernels.fuses_context = true,
                                         .kernels.fuses_norm = true,
                                         .kernels.fuses_accumulation = true,
                                         .gradients.gradient_dtype = -1,
                                         .gradients.reduce_dtype = -1,
                                         .gradients.bucket_bytes = 25e6,
                                         .gradients.overlaps_gradients = true,
                                         .gathers.gathers_ahead = true,
                                         .pipeline.splits_sends = true,
                                         .launch.ops_ahead = 1024,
                                         .kernels.vocab_multiple = 128,
                                         .memory.context_bytes = -1};

/* ---- one switch each ---- */

typedef enum switch_kind {
  SWITCH_FLAG,
  SWITCH_WORD,
  SWITCH_DTYPE,
  SWITCH_BYTES,
  SWITCH_TIME,
  SWITCH_RATIO,
  SWITCH_NUMBER,
  SWITCH_COUNT,
  SWITCH_FEW
} switch_kind;
enum { MOST_OF_FEW = 8 };
/* Of a size in `memory`, 1 PiB, so that sums of them are 64-bit counts of bytes; of a number that says no other, which
 * counts something that doubles tell apart. */
static const double most_memory_bytes = 0x1p50, most_of_number = 0x1p53;

typedef struct switch_row {
  const char *section, *key;
  switch_kind kind;
  size_t offset;
  const char *const *words; /* WORD: by enumerator. DTYPE, BYTES: the one word that stands for `otherwise` */
  double otherwise;         /* FEW: the least. NUMBER: the most, if any */
} switch_row;

#define AT(field) offsetof(pl_framework, field)
static const char *const attention_words[] = {"any", "flash1", "flash2", "flash3", "cudnn", "fastest", NULL};
static const char *const loss_words[] = {"in_place", "copy", "copies", "fused", "fused_fp32", "chunked", NULL};
static const char *const scaling_words[] = {"delayed", "current", "dynamic", "rowwise", NULL};
static const char *const optimizer_words[] = {"fused", "foreach", "loop", "fused_8bit", "sgd", NULL};
static const char *const life_words[] = {"stay", "made", "consumed", NULL};
static const char *const unit_words[] = {"layer", "tensor", NULL}, *const bucket_unit_words[] = {"layer", "tensor",
                                                                                                 "parameter", NULL};
static const char *const path_words[] = {"added", "flat", "chunked", NULL};
static const char *const weight_words[] = {"with_master", "fp32", "alone", NULL};
static const char *const assign_words[] = {"uniform", "balanced", "ends", "filled", NULL};
static const char *const autocast_words[] = {"off", "norms", "all", NULL};
static const char *const graph_words[] = {"none", "ops", "xla", NULL};
const char *const pl_allocator_names[] = {"exact", "caching", "expandable", NULL};
static const char *const window_words[] = {"microbatch", "pass", "kernel", NULL};
static const char *const permutation_words[] = {"fused", "gathered", "indexed", "weighted", "scattered", NULL};
static const char *const expert_words[] = {"grouped", "sliced", "joined", NULL};
static const char *const default_word[] = {"default", NULL}, *const kept_word[] = {"as_kept", NULL};
static const char *const all_word[] = {"all", NULL}, *const device_word[] = {"device", NULL};
static const char *const workspace_word[] = {"workspace", NULL};

static const switch_row switches[] = {
    {"kernels", "flash_attention", SWITCH_FLAG, AT(kernels.flash), NULL, 0},
    {"kernels", "attention_kernel", SWITCH_WORD, AT(kernels.attention_kernel), attention_words, 0},
    {"kernels", "wide_softmax", SWITCH_FLAG, AT(kernels.wide_softmax), NULL, 0},
    {"kernels", "fused_softmax", SWITCH_FLAG, AT(kernels.fuses_softmax), NULL, 0},
    {"kernels", "fused_scale", SWITCH_FLAG, AT(kernels.fuses_scale), NULL, 0},
    {"kernels", "fp8_scaling", SWITCH_WORD, AT(kernels.fp8_scaling), scaling_words, 0},
    {"kernels", "masks_scores", SWITCH_FLAG, AT(kernels.masks_scores), NULL, 0},
    {"kernels", "forward_runs", SWITCH_FEW, AT(kernels.forward_runs), NULL, 1},
    {"kernels", "mask_kernels", SWITCH_FEW, AT(kernels.mask_kernels), NULL, 1},
    {"kernels", "mask_gradients", SWITCH_FEW, AT(kernels.mask_gradients), NULL, 0},
    {"kernels", "fused_gelu", SWITCH_FLAG, AT(kernels.fuses_gelu), NULL, 0},
    {"kernels", "fused_bias", SWITCH_FLAG, AT(kernels.fuses_bias), NULL, 0},
    {"kernels", "fused_expert_bias", SWITCH_FLAG, AT(kernels.fuses_expert_bias), NULL, 0},
    {"kernels", "permutation", SWITCH_WORD, AT(kernels.permutation), permutation_words, 0},
    {"kernels", "experts", SWITCH_WORD, AT(kernels.experts), expert_words, 0},
    {"kernels", "fused_activation", SWITCH_FLAG, AT(kernels.fuses_activation), NULL, 0},
    {"kernels", "fused_gate", SWITCH_FLAG, AT(kernels.fuses_gate), NULL, 0},
    {"kernels", "packed_gate", SWITCH_FLAG, AT(kernels.packs_gate), NULL, 0},
    {"kernels", "fused_residual", SWITCH_FLAG, AT(kernels.fuses_residual), NULL, 0},
    {"kernels", "fused_rotary", SWITCH_FLAG, AT(kernels.fuses_rotary), NULL, 0},
    {"kernels", "fused_context", SWITCH_FLAG, AT(kernels.fuses_context), NULL, 0},
    {"kernels", "fused_batch_norm", SWITCH_FLAG, AT(kernels.fuses_batch_norm), NULL, 0},
    {"kernels", "fused_norm", SWITCH_FLAG, AT(kernels.fuses_norm), NULL, 0},
    {"kernels", "copies_qkv", SWITCH_FLAG, AT(kernels.copies_qkv), NULL, 0},
    {"kernels", "copies_inputs", SWITCH_FLAG, AT(kernels.copies_inputs), NULL, 0},
    {"kernels", "autocast", SWITCH_WORD, AT(kernels.autocast), autocast_words, 0},
    {"kernels", "graph", SWITCH_WORD, AT(kernels.graph), graph_words, 0},
    {"kernels", "loss_metrics", SWITCH_FEW, AT(kernels.loss_metrics), NULL, 0},
    {"kernels", "deterministic", SWITCH_FLAG, AT(kernels.deterministic), NULL, 0},
    {"kernels", "uneven_heads", SWITCH_FLAG, AT(kernels.uneven_heads), NULL, 0},
    {"kernels", "fused_accumulation", SWITCH_FLAG, AT(kernels.fuses_accumulation), NULL, 0},
    {"kernels", "loss", SWITCH_WORD, AT(kernels.loss), loss_words, 0},
    {"kernels", "ends_recompute", SWITCH_FLAG, AT(kernels.ends_recompute), NULL, 0},
    {"kernels", "vocab_multiple", SWITCH_COUNT, AT(kernels.vocab_multiple), NULL, 0},
    {"state", "weights", SWITCH_WORD, AT(update.weights), weight_words, 0},
    {"state", "gradient_path", SWITCH_WORD, AT(gradients.gradient_path), path_words, 0},
    {"state", "gradients", SWITCH_WORD, AT(gradients.life), life_words, 0},
    {"state", "gradient_dtype", SWITCH_DTYPE, AT(gradients.gradient_dtype), default_word, -1},
    {"state", "keeps_16bit_gradients", SWITCH_FLAG, AT(gradients.keeps_16bit_gradients), NULL, 0},
    {"state", "holds_16bit_gradients", SWITCH_FLAG, AT(gradients.holds_16bit_gradients), NULL, 0},
    {"state", "optimizer", SWITCH_WORD, AT(update.optimizer), optimizer_words, 0},
    {"state", "clips_gradients", SWITCH_FLAG, AT(update.clips_gradients), NULL, 0},
    {"state", "clips_microbatches", SWITCH_FLAG, AT(gradients.clips_microbatches), NULL, 0},
    {"state", "unscales_gradients", SWITCH_FLAG, AT(update.unscales_gradients), NULL, 0},
    {"state", "clears_gradients", SWITCH_FLAG, AT(gradients.clears), NULL, 0},
    {"communication", "reduce_dtype", SWITCH_DTYPE, AT(gradients.reduce_dtype), kept_word, -1},
    {"communication", "copies_buckets", SWITCH_FLAG, AT(gradients.copies_buckets), NULL, 0},
    {"communication", "gradient_passes", SWITCH_NUMBER, AT(gradients.passes), NULL, 0},
    {"communication", "bucket", SWITCH_BYTES, AT(gradients.bucket_bytes), all_word, 0},
    {"communication", "bucket_unit", SWITCH_WORD, AT(gradients.bucket_unit), bucket_unit_words, 0},
    {"communication", "overlaps_tensor", SWITCH_FLAG, AT(pipeline.overlaps_tensor), NULL, 0},
    {"communication", "overlaps_tensor_backward", SWITCH_FLAG, AT(pipeline.overlaps_tensor_backward), NULL, 0},
    {"communication", "sends_tokens_per_node", SWITCH_FLAG, AT(pipeline.sends_tokens_per_node), NULL, 0},
    {"communication", "sends_tokens_fp8", SWITCH_FLAG, AT(pipeline.sends_tokens_fp8), NULL, 0},
    {"communication", "exchange_multiprocessors", SWITCH_NUMBER, AT(pipeline.exchange_multiprocessors), NULL, 0},
    {"communication", "overlaps_gradients", SWITCH_FLAG, AT(gradients.overlaps_gradients), NULL, 0},
    {"communication", "gather_unit", SWITCH_WORD, AT(gathers.gather_unit), unit_words, 0},
    {"communication", "reduces_whole", SWITCH_FLAG, AT(gradients.reduces_whole), NULL, 0},
    {"communication", "scatters_by_all_reduce", SWITCH_FLAG, AT(gradients.scatters_by_all_reduce), NULL, 0},
    {"communication", "copies_per_tensor", SWITCH_FLAG, AT(gathers.copies_per_tensor), NULL, 0},
    {"communication", "copies_per_rank", SWITCH_FLAG, AT(gathers.copies_per_rank), NULL, 0},
    {"communication", "copies_gathered", SWITCH_FLAG, AT(gathers.copies_gathered), NULL, 0},
    {"communication", "gathers_ahead", SWITCH_FLAG, AT(gathers.gathers_ahead), NULL, 0},
    {"communication", "keeps_last", SWITCH_FLAG, AT(gathers.keeps_last), NULL, 0},
    {"communication", "reuse_parameters", SWITCH_NUMBER, AT(gathers.reuse_parameters), NULL, 0},
    {"communication", "assign", SWITCH_WORD, AT(pipeline.assign), assign_words, 0},
    {"communication", "splits_sends", SWITCH_FLAG, AT(pipeline.splits_sends), NULL, 0},
    {"communication", "send_wait", SWITCH_TIME, AT(pipeline.send_wait_s), NULL, 0},
    {"host", "launch", SWITCH_TIME, AT(launch.launch_s), NULL, 0},
    {"host", "backward_launch", SWITCH_TIME, AT(launch.backward_launch_s), NULL, 0},
    {"host", "collective", SWITCH_TIME, AT(launch.collective_s), NULL, 0},
    {"host", "collective_rank", SWITCH_TIME, AT(launch.collective_rank_s), NULL, 0},
    {"host", "layer", SWITCH_TIME, AT(launch.layer_s), NULL, 0},
    {"host", "ops_ahead", SWITCH_NUMBER, AT(launch.ops_ahead), NULL, 0},
    {"host", "window", SWITCH_WORD, AT(launch.host_window), window_words, 0},
    {"memory", "allocator", SWITCH_WORD, AT(memory.allocator), pl_allocator_names, 0},
    {"memory", "records_streams", SWITCH_FLAG, AT(memory.records_streams), NULL, 0},
    {"memory", "replays_ahead", SWITCH_FLAG, AT(memory.replays_ahead), NULL, 0},
    {"memory", "caches_narrow_weights", SWITCH_FLAG, AT(memory.caches_narrow_weights), NULL, 0},
    {"memory", "keeps_gathered", SWITCH_FLAG, AT(memory.keeps_gathered), NULL, 0},
    {"memory", "holds_update", SWITCH_FLAG, AT(update.holds_update), NULL, 0},
    {"memory", "lists_update", SWITCH_FLAG, AT(update.lists_update), NULL, 0},
    {"memory", "copies_gradient", SWITCH_FLAG, AT(memory.copies_gradient), NULL, 0},
    {"memory", "copies_scattered", SWITCH_FLAG, AT(memory.copies_scattered), NULL, 0},
    {"memory", "flat_elements", SWITCH_NUMBER, AT(memory.flat_elements), NULL, 0},
    {"memory", "pipeline_buffers", SWITCH_NUMBER, AT(pipeline.pipeline_buffers), NULL, 1024},
    {"memory", "context", SWITCH_BYTES, AT(memory.context_bytes), device_word, -1},
    {"memory", "communicator", SWITCH_BYTES, AT(memory.communicator_bytes), device_word, -1},
    {"memory", "switch_buffers", SWITCH_FLAG, AT(memory.switch_buffers), NULL, 0},
    {"memory", "workspace", SWITCH_BYTES, AT(memory.workspace_bytes), NULL, 0},
    {"memory", "replayed_workspace", SWITCH_BYTES, AT(memory.replayed_bytes), workspace_word, -1},
    {"memory", "fragmentation", SWITCH_RATIO, AT(memory.fragmentation), NULL, 0},
};
enum { N_SWITCHES = sizeof switches / sizeof switches[0] };

static pl_code refuse_word(const pl_document *document, const pl_node *node, const switch_row *row, const char *word,
                           pl_error *error) {
  char list[PL_WORDS_BYTES];
  return pl_document_fail(document, node, error, "%s: '%.32s' is none of %s", row->key, word,
                          pl_words_list(row->words, list, sizeof list));
}

static pl_code read_word(const pl_document *document, const pl_node *section, const switch_row *row, int *value,
                         pl_error *error) {
  const char *word;
  PL_TRY(pl_node_string(document, section, row->key, &word, error));
  *value = pl_words_find(row->words, word);
  return *value >= 0 ? PL_OK : refuse_word(document, pl_node_get(section, row->key), row, word, error);
}

static pl_code read_dtype(const pl_document *document, const pl_node *section, const switch_row *row, int *value,
                          pl_error *error) {
  const char *word;
  PL_TRY(pl_node_string(document, section, row->key, &word, error));
  if (pl_words_find(row->words, word) >= 0) {
    *value = (int)row->otherwise;
    return PL_OK;
  }
  *value = pl_dtype_from_name(word);
  /* What sums are kept and sent in: tf32 is a way to multiply and fp32 in memory, narrower than 16 bits nobody adds. */
  if (*value == PL_DTYPE_FP32 || *value == PL_DTYPE_FP16 || *value == PL_DTYPE_BF16) return PL_OK;
  return pl_document_fail(document, pl_node_get(section, row->key), error,
                          "%s: '%.32s' is none of %s, fp32, fp16, bf16", row->key, word, row->words[0]);
}

static pl_code read_quantity(const pl_document *document, const pl_node *section, const switch_row *row, double *value,
                             pl_error *error) {
  const pl_node *node = pl_node_get(section, row->key);
  const char *text;
  PL_TRY(pl_node_string(document, section, row->key, &text, error));
  if (pl_words_find(row->words, text) >= 0) {
    *value = row->otherwise;
    return PL_OK;
  }
  pl_error cause = PL_ERROR_INIT;
  pl_code code = row->kind == SWITCH_BYTES ? pl_parse_bytes(text, row->key, value, &cause)
                                           : pl_parse_time(text, row->key, value, &cause);
  if (code != PL_OK) return pl_document_fail(document, node, error, "%s", cause.message);
  if (strcmp(row->section, "memory") != 0 || *value <= most_memory_bytes) return PL_OK;
  return pl_document_fail(document, node, error, "%s is '%.32s': no device has more than %g bytes", row->key, text,
                          most_memory_bytes);
}

static pl_code read_number(const pl_document *document, const pl_node *section, const switch_row *row, double *value,
                           pl_error *error) {
  PL_TRY(pl_node_number(document, section, row->key, value, error));
  double most = row->otherwise > 0 ? row->otherwise : most_of_number;
  if (*value >= 0 && *value <= most) return PL_OK;
  return pl_document_fail(document, pl_node_get(section, row->key), error,
                          "%s is %g: it must be at least 0 and at most %.16g", row->key, *value, most);
}

static pl_code read_ratio(const pl_document *document, const pl_node *section, const switch_row *row, double *value,
                          pl_error *error) {
  PL_TRY(pl_node_number(document, section, row->key, value, error));
  if (*value >= 0 && *value < 1) return PL_OK;
  return pl_document_fail(document, pl_node_get(section, row->key), error,
                          "%s is %g: it must be at least 0 and below 1", row->key, *value);
}

/* The enums of the struct are read as int. */
_Static_assert(sizeof(pl_loss_form) == sizeof(int) && sizeof(pl_optimizer_form) == sizeof(int) &&
                   sizeof(pl_gather_unit) == sizeof(int) && sizeof(pl_bucket_unit) == sizeof(int) &&
                   sizeof(pl_gradient_path) == sizeof(int) && sizeof(pl_weight_form) == sizeof(int) &&
                   sizeof(pl_host_window) == sizeof(int) && sizeof(pl_allocator_form) == sizeof(int) &&
                   sizeof(pl_graph_form) == sizeof(int),
               "switches with words are of the size of int");

static pl_code read_switch(const pl_document *document, const pl_node *section, const switch_row *row,
                           pl_framework *framework, pl_error *error) {
  char *place = (char *)framework + row->offset;
  double number = 0;
  int word = 0;
  switch (row->kind) {
  case SWITCH_FLAG:
    return pl_node_boolean(document, section, row->key, (bool *)(void *)place, error);
  case SWITCH_COUNT:
    return pl_node_integer(document, section, row->key, 1, 1 << 20, (int64_t *)(void *)place, error);
  case SWITCH_FEW:
    return pl_node_integer(document, section, row->key, (int64_t)row->otherwise, MOST_OF_FEW, (int64_t *)(void *)place,
                           error);
  case SWITCH_WORD:
  case SWITCH_DTYPE:
    PL_TRY(row->kind == SWITCH_WORD ? read_word(document, section, row, &word, error)
                                    : read_dtype(document, section, row, &word, error));
    memcpy(place, &word, sizeof word);
    return PL_OK;
  case SWITCH_BYTES:
  case SWITCH_TIME:
    PL_TRY(read_quantity(document, section, row, &number, error));
    break;
  case SWITCH_NUMBER:
    PL_TRY(read_number(document, section, row, &number, error));
    break;
  case SWITCH_RATIO:
    PL_TRY(read_ratio(document, section, row, &number, error));
    break;
  }
  memcpy(place, &number, sizeof number);
  return PL_OK;
}

/* ---- the file ---- */

static const switch_row *find_switch(const char *section, const char *key) {
  for (size_t i = 0; i < N_SWITCHES; i++)
    if (strcmp(switches[i].section, section) == 0 && (key == NULL || strcmp(switches[i].key, key) == 0))
      return &switches[i];
  return NULL;
}

static pl_code refuse_key(const pl_document *document, const pl_node *value, const char *section, const char *key,
                          pl_error *error) {
  const char *names[N_SWITCHES + 1];
  char hint[PL_WORDS_HINT_BYTES];
  size_t n = 0;
  for (size_t i = 0; i < N_SWITCHES; i++)
    if (strcmp(switches[i].section, section) == 0) names[n++] = switches[i].key;
  names[n] = NULL;
  return pl_document_fail(document, value, error, "unknown key '%.32s' in %s%s", key, section,
                          pl_words_hint(names, key, hint));
}

static pl_code read_section(const pl_document *document, const char *name, const pl_node *section,
                            pl_framework *framework, pl_error *error) {
  if (!pl_node_is_mapping(section)) return pl_document_fail(document, section, error, "%s: expected an object", name);
  for (size_t i = 0; i < pl_node_count(section); i++) {
    const char *key;
    const pl_node *value = pl_node_entry(document, section, i, &key);
    const switch_row *row = find_switch(name, key);
    if (row == NULL) return refuse_key(document, value, name, key, error);
    PL_TRY(read_switch(document, section, row, framework, error));
  }
  return PL_OK;
}

static pl_code read_name(const pl_document *document, const pl_node *root, pl_arena *arena, pl_framework *framework,
                         pl_error *error) {
  const char *name;
  PL_TRY(pl_node_name(document, root, "name", &name, error));
  if (name[0] == '\0' || strlen(name) > PL_FRAMEWORK_NAME_MAX)
    return pl_document_fail(document, pl_node_get(root, "name"), error, "name must have 1 to %d characters",
                            PL_FRAMEWORK_NAME_MAX);
  framework->name = pl_arena_strdup(arena, name);
  return framework->name != NULL ? PL_OK : pl_fail_memory(error, "a framework profile");
}

static pl_code read_framework(const pl_document *document, pl_arena *arena, pl_framework *framework, pl_error *error) {
  const pl_node *root = pl_document_root(document);
  pl_framework made = pl_framework_ideal;
  made.kernels.attention_kernel = PL_ATTENTION_ANY; /* of a real one the device's first, until it says which */
  made.digest = pl_document_digest(document);
  if (!pl_node_is_mapping(root)) return pl_document_fail(document, root, error, "expected an object");
  PL_TRY(read_name(document, root, arena, &made, error));
  for (size_t i = 0; i < pl_node_count(root); i++) {
    const char *key;
    const pl_node *value = pl_node_entry(document, root, i, &key);
    if (strcmp(key, "name") == 0 || strcmp(key, "about") == 0 || strcmp(key, "provenance") == 0) continue;
    if (strcmp(key, "offers") == 0) {
      PL_TRY(pl_offers_read(document, value, arena, &made.offers, error));
      continue;
    }
    if (find_switch(key, NULL) == NULL) return pl_document_fail(document, value, error, "unknown key '%.32s'", key);
    PL_TRY(read_section(document, key, value, &made, error));
  }
  if (made.gradients.life == PL_GRADIENTS_CONSUMED && made.update.clips_gradients)
    return pl_document_fail(
        document, pl_node_get(root, "state"), error,
        "gradients: consumed: an optimizer that steps in the backward pass cannot clip by a norm of "
        "all gradients; clips_gradients must be false");
  *framework = made;
  return PL_OK;
}

pl_code pl_framework_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_framework *framework,
                           pl_error *error) {
  pl_document *document;
  PL_TRY(pl_document_parse(name, text, size, true, &document, error));
  pl_code code = read_framework(document, arena, framework, error);
  pl_document_destroy(document);
  return code;
}

/* ---- the folder ---- */

static const char *folder(pl_arena *arena) {
  const char *environment = getenv("PACELINE_FRAMEWORKS");
  return environment != NULL ? environment : pl_data_path("frameworks", arena);
}

const char *const *pl_framework_names(pl_arena *arena) {
  pl_data_names list = {0};
  const char *path = folder(arena);
  if (path != NULL) pl_data_names_add(&list, path, ".json", arena);
  pl_data_names_end(&list, arena);
  return arena->failed ? NULL : list.names;
}

const char *pl_framework_list(pl_arena *arena) {
  const char *const *names = pl_framework_names(arena), *text = names != NULL ? pl_framework_ideal.name : NULL;
  for (size_t i = 0; text != NULL && names[i] != NULL; i++)
    text = pl_arena_printf(arena, "%s, %s", text, names[i]);
  return text;
}

static bool is_file(const char *choice) {
  size_t length = strlen(choice);
  return strchr(choice, '/') != NULL || (length > 5 && strcmp(choice + length - 5, ".json") == 0);
}

static pl_code refuse_choice(const char *choice, pl_arena *arena, pl_error *error) {
  const char *list = pl_framework_list(arena);
  char hint[PL_WORDS_HINT_BYTES];
  return pl_fail(error, PL_BAD_INPUT,
                 "--framework: '%.64s' is not among %s; a file's name has a '/' or ends in .json%s", choice,
                 list != NULL ? list : "ideal", pl_words_hint(pl_framework_names(arena), choice, hint));
}

pl_code pl_framework_load(const char *choice, pl_arena *arena, pl_framework *framework, pl_error *error) {
  if (strcmp(choice, pl_framework_ideal.name) == 0) {
    *framework = pl_framework_ideal;
    return PL_OK;
  }
  const char *path = choice;
  if (!is_file(choice)) {
    const char *own = folder(arena);
    path = own != NULL ? pl_arena_printf(arena, "%s/%s.json", own, choice) : NULL;
    if (path == NULL) return pl_fail_memory(error, "a file name");
    if (choice[0] == '\0' || access(path, R_OK) != 0) return refuse_choice(choice, arena, error);
  }
  pl_document *document;
  PL_TRY(pl_document_load(path, &document, error));
  pl_code code = read_framework(document, arena, framework, error);
  pl_document_destroy(document);
  return code;
}

pl_dtype pl_framework_gradient_dtype(const pl_framework *framework, pl_dtype dtype) {
  const pl_framework *own = pl_framework_or_ideal(framework);
  if (own->gradients.gradient_dtype < 0 || pl_dtype_bytes(dtype) >= pl_dtype_bytes(PL_DTYPE_FP32))
    return pl_gradient_dtype(dtype);
  pl_dtype said = (pl_dtype)own->gradients.gradient_dtype;
  return pl_dtype_bytes(said) == pl_dtype_bytes(dtype) ? dtype : said; /* the other 16 bits: as the weights */
}

void pl_framework_apply(const pl_framework *framework, pl_job *job) {
  job->framework = framework;
  job->flash = framework->kernels.flash;
  job->bucket_bytes = framework->gradients.bucket_bytes > 0 ? framework->gradients.bucket_bytes : HUGE_VAL;
  job->split_sends = framework->pipeline.splits_sends;
}
