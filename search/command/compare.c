/* See search/command/compare.h: reading of sides, and what differs. */
#include "search/command/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/units.h"
#include "search/results/program_columns.h"
#include "workloads/strategy/strategy.h"

const char *const pl_compare_kind_names[PL_COMPARE_KINDS] = {
    "mem_parameters_bytes", "mem_gradients_bytes", "mem_optimizer_bytes", "mem_activations_bytes", "mem_buffers_bytes"};

/* ---- reading ---- */

/* Absent and null: NaN. */
static pl_code read_number(const pl_compare_side *side, const pl_node *from, const char *key, double *value,
                           pl_error *error) {
  *value = (double)NAN;
  return pl_node_get(from, key) == NULL ? PL_OK : pl_node_number(side->document, from, key, value, error);
}

/* Whole bytes; files of before have them as reals. */
static pl_code read_bytes(const pl_compare_side *side, const pl_node *from, const char *key, int64_t *bytes,
                          pl_error *error) {
  double value;
  PL_TRY(pl_node_number(side->document, from, key, &value, error));
  if (!(value >= 0 && value < 0x1p62))
    return pl_document_fail(side->document, pl_node_get(from, key), error, "%s is %g: not a number of bytes", key,
                            value);
  *bytes = llrint(value);
  return PL_OK;
}

static pl_code read_stages(pl_compare_side *side, const pl_node *root, pl_arena *arena, pl_error *error) {
  const pl_node *list = pl_node_get(root, side->is_program ? "lists" : "stages");
  side->n_stages = list != NULL && pl_node_is_sequence(list) ? (uint32_t)pl_node_count(list) : 0;
  if (side->n_stages == 0 || pl_node_get(pl_node_at(list, 0), pl_stage_part_names[0]) == NULL) return PL_OK;
  pl_stage_times *stages = PL_TAKE(arena, pl_stage_times, side->n_stages);
  if (stages == NULL) return pl_fail_memory(error, "the stages");
  for (uint32_t s = 0; s < side->n_stages; s++)
    for (int part = 0; part < PL_STAGE_PARTS; part++)
      PL_TRY(pl_node_number(side->document, pl_node_at(list, s), pl_stage_part_names[part], &stages[s].part_s[part],
                            error));
  side->stages = stages;
  return PL_OK;
}

/* A number of tuples, as columns have it; true or false of programs. */
static pl_code read_fits(pl_compare_side *side, const pl_node *root, pl_error *error) {
  const pl_node *node = pl_node_get(root, "fits");
  const char *text = node != NULL ? pl_node_text(node) : NULL;
  int64_t fits;
  side->fits = text != NULL && strcmp(text, "true") == 0;
  if (side->fits || (text != NULL && strcmp(text, "false") == 0)) return PL_OK;
  PL_TRY(pl_node_integer(side->document, root, "fits", 0, 1, &fits, error));
  side->fits = fits != 0;
  return PL_OK;
}

/* What was taken of a strategy space, a key per choice. */
static bool is_choice(const char *key) {
  return strncmp(key, "choice_", strlen("choice_")) == 0;
}

/* Programs have lists; files of rows that are programs say of what choices. */
static void read_kind(pl_compare_side *side, const pl_node *root) {
  const pl_node *tmp = pl_node_get(root, "tmp");
  const char *text = tmp != NULL ? pl_node_text(tmp) : NULL;
  side->is_program = pl_node_get(root, "lists") != NULL || pl_node_get(root, PL_PROGRAM_CHOICES) != NULL;
  side->says_strategy = text != NULL && strcmp(text, "-1") != 0;
  for (size_t i = 0; !side->says_strategy && i < pl_node_count(root); i++) {
    const char *key;
    pl_node_entry(side->document, root, i, &key);
    side->says_strategy = is_choice(key);
  }
}

static pl_code read_side(pl_compare_side *side, pl_arena *arena, pl_error *error) {
  const pl_node *root = pl_document_root(side->document);
  if (!pl_node_is_mapping(root) || pl_node_get(root, "iter_time_s") == NULL)
    return pl_document_fail(side->document, root, error, "is no result of 'paceline simulate --json'");
  PL_TRY(pl_node_number(side->document, root, "iter_time_s", &side->iter_time_s, error));
  if (!(side->iter_time_s > 0 && side->iter_time_s < 1e15))
    return pl_document_fail(side->document, pl_node_get(root, "iter_time_s"), error, "iter_time_s is %g: not a time",
                            side->iter_time_s);
  side->remains_factor = 1;
  if (pl_node_get(root, "remains") != NULL)
    PL_TRY(pl_node_number(side->document, pl_node_get(root, "remains"), "factor", &side->remains_factor, error));
  PL_TRY(read_number(side, root, "iter_time_low_s", &side->low_s, error));
  PL_TRY(read_number(side, root, "iter_time_high_s", &side->high_s, error));
  PL_TRY(read_number(side, root, "samples_per_s", &side->samples_per_s, error));
  PL_TRY(read_number(side, root, "tokens_per_s", &side->tokens_per_s, error));
  PL_TRY(read_number(side, root, "mfu", &side->mfu, error));
  PL_TRY(read_number(side, root, "n_devices", &side->n_devices, error));
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    PL_TRY(pl_node_number(side->document, root, pl_stage_part_names[part], &side->part_s[part], error));
  PL_TRY(read_bytes(side, root, "peak_mem_bytes", &side->peak_bytes, error));
  PL_TRY(read_bytes(side, root, "mem_capacity_bytes", &side->capacity_bytes, error));
  for (int kind = 0; kind < PL_COMPARE_KINDS; kind++)
    PL_TRY(read_bytes(side, root, pl_compare_kind_names[kind], &side->kind_bytes[kind], error));
  PL_TRY(pl_node_integer(side->document, root, "peak_stage", 0, INT32_MAX, &side->peak_stage, error));
  PL_TRY(read_fits(side, root, error));
  read_kind(side, root);
  return read_stages(side, root, arena, error);
}

pl_code pl_compare_read(const char *name, const char *text, size_t size, pl_arena *arena, pl_compare_side *side,
                        pl_error *error) {
  PL_TRY(pl_document_parse(name, text, size, true, &side->document, error));
  return read_side(side, arena, error);
}

/* ---- what differs ---- */

/* In the order in which a person would look: what is trained, on what, with which software, how it is cut, how it is
 * simulated. */
static const char *const settings[] = {"model",
                                       "model_digest",
                                       "gbs",
                                       "seq",
                                       "dtype",
                                       "fp8",
                                       "fp4",
                                       "platform",
                                       "n_devices",
                                       "n_nodes",
                                       "framework",
                                       "op_profile",
                                       "site",
                                       "pp",
                                       "dp",
                                       "tmp",
                                       "cp",
                                       "ep",
                                       "etp",
                                       "ep_overlap",
                                       "mbs",
                                       "schedule",
                                       "vpp",
                                       "sp",
                                       "recompute",
                                       "zero",
                                       "overlap",
                                       "order",
                                       "assign",
                                       "attention",
                                       "bucket_bytes",
                                       "pipeline_sends",
                                       "exchange_sms",
                                       "allocator",
                                       "network",
                                       "sharing",
                                       "collective_profile",
                                       "collectives",
                                       "algorithm",
                                       "streams",
                                       NULL};

enum { MOST_SETTINGS = 64, SAME_BYTES = 1024, LONGEST_SAME = 64 };

typedef struct listing {
  pl_comparison *comparison;
  pl_arena *arena;
  pl_compare_difference *list;
  uint32_t n;
  char *same;
} listing;

static const char *text_of(const pl_compare_side *side, const char *path, const char *key, pl_arena *arena) {
  const pl_node *node = pl_document_root(side->document);
  if (path != NULL) node = pl_node_get(node, path);
  if (node != NULL) node = pl_node_get(node, key);
  const char *text = node != NULL ? pl_node_text(node) : NULL;
  bool nothing = text != NULL && (text[0] == '\0' || strcmp(text, "-1") == 0);
  if (nothing && side->is_program) text = NULL; /* a row of a tree, which has no one degree */
  if (text != NULL && strcmp(key, "op_profile") == 0 && strcmp(text, "none") == 0) text = NULL;
  return text != NULL ? pl_printable_name(text, arena) : NULL;
}

/* Results have a number. */
static const char *overlap_word(const char *text) {
  if (text == NULL || text[0] < '0' || text[0] > '9' || text[1] != '\0') return text;
  const char *word = pl_ep_overlap_word(text[0] - '0');
  return word != NULL ? word : text;
}

static void compare_setting(listing *own, const char *path, const char *key, const char *name) {
  const char *a = text_of(&own->comparison->side[0], path, key, own->arena);
  const char *b = text_of(&own->comparison->side[1], path, key, own->arena);
  bool programs = own->comparison->side[0].is_program || own->comparison->side[1].is_program;
  bool derived = strcmp(key, "n_nodes") == 0; /* the platform says it already */
  if (a == NULL && b == NULL) return;
  if (strcmp(key, "fp8") == 0 || strcmp(key, "fp4") == 0) { /* said where it is asked for, in results by a number */
    a = a != NULL ? "on" : "off";
    b = b != NULL ? "on" : "off";
  }
  if (strcmp(key, "ep_overlap") == 0) {
    a = overlap_word(a);
    b = overlap_word(b);
  }
  if ((programs || derived) && (a == NULL || b == NULL)) return; /* what a tree has many of */
  bool same = a != NULL && b != NULL && strcmp(a, b) == 0;
  if (!same && own->n < MOST_SETTINGS) own->list[own->n++] = (pl_compare_difference){name, {a, b}};
  size_t used = strlen(own->same);
  bool is_plain = strstr(key, "digest") == NULL && !derived && path == NULL;
  if (same && is_plain && strlen(a) < LONGEST_SAME && used + strlen(name) + strlen(a) + 4 < SAME_BYTES)
    snprintf(own->same + used, SAME_BYTES - used, "%s%s %s", used > 0 ? ", " : "", name, a);
}

typedef enum device_fact { DEVICE_COUNT, DEVICE_MEMORY, DEVICE_BANDWIDTH, DEVICE_PEAK, DEVICE_FACTS } device_fact;

static const char *format_fact(device_fact fact, double value, char text[PL_UNIT_TEXT_BYTES]) {
  if (fact == DEVICE_MEMORY) return pl_format_bytes(value, text);
  if (fact == DEVICE_BANDWIDTH) return pl_format_rate(value, text);
  snprintf(text, PL_UNIT_TEXT_BYTES, fact == DEVICE_PEAK ? "%.4g TFLOP/s" : "%.0f",
           value / (fact == DEVICE_PEAK ? 1e12 : 1));
  return text;
}

/* "12 x V100-SXM2-16GB + 4 x T4"; "16 GiB + 15 GiB"; NULL: the side does not say. */
static const char *devices_of(const pl_compare_side *side, device_fact fact, pl_arena *arena) {
  static const char *const keys[DEVICE_FACTS] = {"count", "memory_bytes", "bandwidth_Bps", "peak_flops"};
  const pl_node *list = pl_node_get(pl_document_root(side->document), "devices");
  const char *text = NULL;
  for (size_t i = 0; list != NULL && i < pl_node_count(list); i++) {
    const pl_node *device = pl_node_at(list, i), *named = pl_node_get(device, "name");
    char figure[PL_UNIT_TEXT_BYTES];
    double value;
    if (named == NULL || pl_node_text(named) == NULL || read_number(side, device, keys[fact], &value, NULL) != PL_OK)
      return NULL;
    text = pl_arena_printf(arena, "%s%s%s%s%s", text != NULL ? text : "", text != NULL ? " + " : "",
                           format_fact(fact, value, figure), fact == DEVICE_COUNT ? " x " : "",
                           fact == DEVICE_COUNT ? pl_node_text(named) : "");
    if (text == NULL) return NULL;
  }
  return text != NULL ? pl_printable_name(text, arena) : NULL;
}

/* A row of a results file knows neither its devices nor its links. */
static void compare_clusters(listing *own) {
  static const char *const kinds[] = {"nvlink", "pcie", "cpu", "nic", "fabric", "other"};
  static const char *const facts[DEVICE_FACTS] = {"GPUs", "GPU memory", "GPU bandwidth", "GPU peak"};
  for (int fact = 0; fact < DEVICE_FACTS; fact++) {
    const char *a = devices_of(&own->comparison->side[0], (device_fact)fact, own->arena);
    const char *b = devices_of(&own->comparison->side[1], (device_fact)fact, own->arena);
    if (a == NULL || b == NULL) return;
    if (strcmp(a, b) != 0) own->list[own->n++] = (pl_compare_difference){facts[fact], {a, b}};
  }
  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
    compare_setting(own, "links", kinds[kind], pl_arena_printf(own->arena, "link %s", kinds[kind]));
}

static bool has_item(const char *text, const char *item, size_t length) {
  for (const char *at = text; at != NULL; at = strchr(at, ','), at = at != NULL ? at + 1 : NULL)
    if (strncmp(at, item, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

/* The items of a strategy's text that another lacks; NULL: none. */
static const char *items_beyond(const char *text, const char *other, pl_arena *arena) {
  const char *list = NULL;
  while (text != NULL && *text != '\0') {
    size_t length = strcspn(text, ",");
    if (!has_item(other, text, length))
      list = pl_arena_printf(arena, "%s%s%.*s", list != NULL ? list : "", list != NULL ? "," : "", (int)length, text);
    text += length + (text[length] == ',');
  }
  return list;
}

/* Of two of which one is simulated as a program, the results do not say how the model is cut: their texts do. */
static void compare_texts(listing *own) {
  const pl_compare_side *a = &own->comparison->side[0], *b = &own->comparison->side[1];
  if (own->n > 0 || !(a->is_program || b->is_program) || strchr(a->label, '=') == NULL || strchr(b->label, '=') == NULL)
    return;
  const char *of_a = items_beyond(a->label, b->label, own->arena), *of_b = items_beyond(b->label, a->label, own->arena);
  if (of_a != NULL || of_b != NULL) own->list[own->n++] = (pl_compare_difference){"strategy", {of_a, of_b}};
}

static void compare_choices(listing *own) {
  const pl_compare_side *a = &own->comparison->side[0];
  const pl_node *root = pl_document_root(a->document);
  for (size_t i = 0; i < pl_node_count(root); i++) {
    const char *key;
    pl_node_entry(a->document, root, i, &key);
    if (is_choice(key)) compare_setting(own, NULL, key, pl_printable_name(key, own->arena));
  }
}

static pl_code list_differences(pl_comparison *comparison, pl_arena *arena, pl_error *error) {
  listing own = {.comparison = comparison, .arena = arena};
  own.list = PL_TAKE(arena, pl_compare_difference, MOST_SETTINGS + 16);
  own.same = PL_TAKE(arena, char, (size_t)SAME_BYTES);
  if (own.list == NULL || own.same == NULL) return pl_fail_memory(error, "what differs");
  for (size_t s = 0; settings[s] != NULL; s++) {
    compare_setting(&own, NULL, settings[s], settings[s]);
    if (strcmp(settings[s], "n_nodes") == 0) compare_clusters(&own);
  }
  compare_choices(&own);
  compare_texts(&own);
  if (arena->failed) return pl_fail_memory(error, "what differs");
  comparison->differences = own.list;
  comparison->n_differences = own.n;
  comparison->same = own.same;
  return PL_OK;
}

/* ---- which is better ---- */

static bool is_same(const pl_comparison *comparison, const char *key, pl_arena *arena) {
  const char *a = text_of(&comparison->side[0], NULL, key, arena), *b = text_of(&comparison->side[1], NULL, key, arena);
  return a == NULL || b == NULL || strcmp(a, b) == 0;
}

/* By digest; files of before have names alone. */
static bool is_one_model(const pl_comparison *comparison, pl_arena *arena) {
  bool digests = text_of(&comparison->side[0], NULL, "model_digest", arena) != NULL &&
                 text_of(&comparison->side[1], NULL, "model_digest", arena) != NULL;
  return is_same(comparison, digests ? "model_digest" : "model", arena) && is_same(comparison, "seq", arena);
}

pl_code pl_compare_judge(pl_comparison *comparison, pl_arena *arena, pl_error *error) {
  const pl_compare_side *a = &comparison->side[0], *b = &comparison->side[1];
  PL_TRY(list_differences(comparison, arena, error));
  comparison->same_model = is_one_model(comparison, arena);
  comparison->better = -1;
  bool timed = a->tokens_per_s > 0 && b->tokens_per_s > 0;
  if (!comparison->same_model || !timed) return PL_OK;
  comparison->ratio = fmax(a->tokens_per_s, b->tokens_per_s) / fmin(a->tokens_per_s, b->tokens_per_s);
  if (a->fits != b->fits)
    comparison->better = a->fits ? 0 : 1;
  else if (a->tokens_per_s != b->tokens_per_s)
    comparison->better = a->tokens_per_s > b->tokens_per_s ? 0 : 1;
  comparison->has_intervals = a->low_s > 0 && a->high_s > 0 && b->low_s > 0 && b->high_s > 0;
  if (!comparison->has_intervals) return PL_OK;
  /* Of a's batch what b would take. */
  double scale = a->tokens_per_s * a->iter_time_s / (b->tokens_per_s * b->iter_time_s);
  double time_s = b->iter_time_s * scale;
  comparison->within = (time_s >= a->low_s && time_s <= a->high_s) ||
                       (a->iter_time_s >= b->low_s * scale && a->iter_time_s <= b->high_s * scale);
  return PL_OK;
}
