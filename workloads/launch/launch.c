/* See workloads/launch/launch.h: which form a file has, and what is said of its settings. */
#include "workloads/launch/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/system/text_file.h"
#include "workloads/launch/blame.h"
#include "workloads/launch/documents.h"
#include "workloads/launch/readers.h"
#include "workloads/launch/shell.h"

const char *const pl_launch_form_names[] = {"megatron", "torchtitan", "nemo", "deepspeed", NULL};

enum { FILE_LIMIT = 4 << 20 };

pl_code pl_launch_assume(pl_launch *launch, pl_error *error, const char *format, ...) {
  enum { SENTENCES = 64 };
  char sentence[256];
  va_list arguments;
  if (launch->assumed == NULL) launch->assumed = PL_TAKE(launch->settings.arena, const char *, SENTENCES);
  if (launch->assumed == NULL) return pl_fail_memory(error, "what a launch file leaves open");
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  if (launch->n_assumed == SENTENCES) return PL_OK;
  const char *copy = pl_arena_strdup(launch->settings.arena, sentence);
  if (copy == NULL) return pl_fail_memory(error, "what a launch file leaves open");
  launch->assumed[launch->n_assumed++] = copy;
  return PL_OK;
}

static bool ends_in(const char *path, const char *end) {
  size_t length = strlen(path), n = strlen(end);
  return length >= n && strcmp(path + length - n, end) == 0;
}

static pl_code tell_repeated(const pl_document *document, pl_launch *launch, pl_error *error) {
  const pl_node *key;
  for (size_t i = 0; (key = pl_document_repeated(document, i)) != NULL; i++) {
    int line = 0, column = 0;
    pl_node_place(key, &line, &column);
    PL_TRY(pl_launch_assume(launch, error, "'%.64s' as line %d has it, the last of several", pl_node_text(key), line));
  }
  return PL_OK;
}

/* YAML and JSON, told apart by what is in them. */
static pl_code read_document(const char *name, const char *text, size_t size, pl_launch *launch, pl_error *error) {
  pl_document *document = NULL;
  PL_TRY(pl_document_parse_loose(name, text, size, ends_in(name, ".json"), &document, error));
  const pl_node *root = pl_document_root(document);
  pl_code code = tell_repeated(document, launch, error);
  if (code != PL_OK) {
    /* said */
  } else if (!pl_node_is_mapping(root)) {
    code = pl_document_fail(document, root, error, "a mapping of settings is expected here");
  } else if (pl_node_is_mapping(pl_node_get(root, "modules"))) {
    code = pl_launch_primus_read(document, launch, error);
  } else if (pl_node_is_mapping(pl_node_get(root, "MODEL_ARGS"))) {
    code = pl_launch_arguments_read(document, pl_node_get(root, "MODEL_ARGS"), &launch->settings, error);
    launch->form = PL_LAUNCH_MEGATRON;
    launch->title = "MODEL_ARGS of Megatron-LM";
  } else {
    code = pl_launch_document_read(document, root, "", &launch->settings, error);
    launch->form = ends_in(name, ".json") ? PL_LAUNCH_DEEPSPEED : PL_LAUNCH_NEMO;
    launch->title = ends_in(name, ".json") ? "DeepSpeed's configuration" : "NeMo's configuration";
  }
  pl_document_destroy(document);
  return code;
}

/* By what scripts, and files of arguments, are called. */
static bool is_script(const char *path) {
  static const char *const ends[] = {".sh", ".bash", ".slurm", ".sbatch", ".sub", ".job", ".txt", ".args"};
  const char *name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
  if (strchr(name, '.') == NULL) return true;
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
    if (ends_in(path, ends[i])) return true;
  return false;
}

/* Of a file that holds arguments and nothing else, a line each, the one command that they are of; else `text`. NULL: no
 * memory. */
static const char *join_arguments(const char *text, pl_arena *arena) {
  size_t n_lines = 1, at = 0;
  for (const char *line = text; *line != '\0';) {
    const char *word = line + strspn(line, " \t");
    if (strncmp(word, "--", 2) != 0 && strchr("#\r\n", *word) == NULL) return text; /* strchr finds the end, too */
    line += strcspn(line, "\n");
    line += *line == '\n';
    n_lines++;
  }
  char *joined = pl_arena_take(arena, strlen(text) + 3 * n_lines + 1, 1);
  for (const char *line = text; joined != NULL && *line != '\0';) {
    size_t length = strcspn(line, "\n");
    if (line[strspn(line, " \t")] != '#') {
      memcpy(joined + at, line, length);
      at += length;
      while (at > 0 && (joined[at - 1] == '\r' || joined[at - 1] == '\\'))
        at--;
    }
    line += length + (line[length] == '\n');
    for (const char *end = *line != '\0' ? " \\\n" : "\n"; *end != '\0'; end++)
      joined[at++] = *end;
  }
  if (joined != NULL) joined[at] = '\0';
  return joined;
}

/* Of arguments that are given several times, with other values, the last counts. */
static pl_code tell_repeated_arguments(pl_launch *launch, pl_error *error) {
  enum { LOOKED_AT = 4096 };
  const pl_settings *own = &launch->settings;
  uint32_t n = own->n < LOOKED_AT ? own->n : LOOKED_AT;
  for (uint32_t i = 0; i < n; i++) {
    const pl_setting *last = &own->list[i];
    bool is_other = false, is_last = true;
    for (uint32_t j = 0; j < n && is_last; j++)
      if (j != i && strcmp(own->list[j].key, last->key) == 0) {
        is_last = j < i;
        is_other |= strcmp(own->list[j].value, last->value) != 0;
      }
    if (is_last && is_other)
      PL_TRY(pl_launch_assume(launch, error, "'%.64s %.32s' as line %d has it, the last of several", last->key,
                              last->value, last->line));
  }
  return PL_OK;
}

static pl_code read_text(const char *path, const char *text, size_t size, pl_launch *launch, pl_error *error) {
  static const char *const marks[] = {"--num-layers",  "--tensor-model-parallel-size", "--micro-batch-size",
                                      "--hidden-size", "--global-batch-size",          NULL};
  if (ends_in(path, ".toml")) {
    launch->form = PL_LAUNCH_TORCHTITAN;
    launch->title = "torchtitan's configuration";
    return pl_launch_toml_read(path, text, &launch->settings, error);
  }
  if (ends_in(path, ".yaml") || ends_in(path, ".yml") || ends_in(path, ".json"))
    return read_document(path, text, size, launch, error);
  launch->form = PL_LAUNCH_MEGATRON;
  launch->title = "arguments of Megatron-LM";
  if (!is_script(path))
    PL_TRY(pl_launch_assume(
        launch, error, "a shell script, or Megatron's arguments alone: its name ends in none of .toml, .yaml, .json"));
  const char *script = join_arguments(text, launch->settings.arena);
  if (script == NULL) return pl_fail_memory(error, "a launch file");
  PL_TRY(pl_launch_shell_read(path, script, marks, &launch->settings, error));
  return tell_repeated_arguments(launch, error);
}

static pl_code take(pl_launch *launch, pl_error *error) {
  static pl_code (*const takers[])(pl_launch *, pl_error *) = {pl_launch_megatron_take, pl_launch_torchtitan_take,
                                                               pl_launch_nemo_take, pl_launch_deepspeed_take};
  return takers[launch->form](launch, error);
}

pl_code pl_launch_parse(const char *path, const char *text, size_t size, pl_arena *arena, pl_launch *launch,
                        pl_error *error) {
  *launch = (pl_launch){.settings = {.arena = arena},
                        .flash = -1,
                        .sends_tokens_per_node = -1,
                        .exchange_sms = -1,
                        .permutation = -1,
                        .experts = -1};
  launch->strategy = (pl_strategy){.pp = 1,
                                   .tmp = 1,
                                   .mbs = 1,
                                   .vpp = 1,
                                   .cp = 1,
                                   .ep = 1,
                                   .etp = 1,
                                   .recipe = PL_ASSIGN_UNIFORM,
                                   .schedule = PL_SCHEDULE_1F1B};
  memcpy(launch->strategy.order, "tdp", sizeof "tdp");
  launch->path = pl_arena_strdup(arena, path);
  const char *copy = pl_arena_strdup(arena, text);
  if (launch->path == NULL || copy == NULL) return pl_fail_memory(error, "a launch file");
  PL_TRY(pl_text_check(path, text, size, error));
  PL_TRY(read_text(launch->path, copy, size, launch, error));
  return take(launch, error);
}

pl_code pl_launch_load(const char *path, pl_arena *arena, pl_launch *launch, pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  PL_TRY(pl_text_file_load(path, FILE_LIMIT, &text, &size, error));
  pl_code code = pl_launch_parse(path, text, size, arena, launch, error);
  free(text);
  return code;
}

/* ---- the strategy ---- */

__attribute__((format(printf, 4, 5))) static pl_code refuse(const pl_launch *launch, const char *key, pl_error *error,
                                                            const char *format, ...) {
  char message[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  (void)pl_fail(error, PL_BAD_INPUT, "%s", message);
  pl_launch_blame_key(launch, key, error);
  return error->code;
}

/* Of the degrees one that does not go into the GPUs, or else the largest is to blame. */
static pl_code refuse_degrees(const pl_launch *launch, uint32_t n_gpus, pl_error *error) {
  const pl_strategy *s = &launch->strategy;
  const struct {
    const char *key;
    int32_t degree;
  } degrees[] = {{"pp", s->pp}, {"tmp", s->tmp}, {"cp", s->cp}};
  char product[96] = "";
  int worst = 0;
  for (int i = 0; i < 3; i++) {
    bool fits = n_gpus % (uint32_t)degrees[i].degree == 0, worst_fits = n_gpus % (uint32_t)degrees[worst].degree == 0;
    if (fits == worst_fits ? degrees[i].degree > degrees[worst].degree : worst_fits) worst = i;
    size_t length = strlen(product);
    if (degrees[i].degree > 1)
      snprintf(product + length, sizeof product - length, "%s%s=%d", length > 0 ? " * " : "", degrees[i].key,
               degrees[i].degree);
  }
  return refuse(launch, degrees[worst].key, error,
                "%s: a multiple of %" PRId64 " GPUs is needed, and the platform has %u; choose %s that divides them",
                product, (int64_t)s->pp * s->tmp * s->cp, n_gpus,
                strchr(product, '*') != NULL ? "a product of degrees" : "a degree");
}

static pl_code divide(pl_launch *launch, uint32_t n_gpus, pl_error *error) {
  pl_strategy *s = &launch->strategy;
  int64_t cells = (int64_t)s->pp * s->tmp * s->cp;
  if (cells > n_gpus || n_gpus % cells != 0) return refuse_degrees(launch, n_gpus, error);
  s->dp = (int32_t)(n_gpus / cells);
  if (launch->n_gpus > 0 && launch->n_gpus != n_gpus)
    PL_TRY(pl_launch_assume(launch, error, "the platform's %u GPUs, dp=%d: the file starts %" PRId64, n_gpus, s->dp,
                            launch->n_gpus));
  if (s->shard < 0) { /* so many copies of what is sharded */
    int32_t copies = -s->shard, replicas = s->dp * s->cp;
    s->shard = replicas % copies == 0 && replicas / copies > 1 ? replicas / copies : 0;
  }
  if (s->shard > 0 && (s->shard >= s->dp * s->cp || s->dp * s->cp % s->shard != 0)) s->shard = 0;
  return PL_OK;
}

static pl_code find_batch(pl_launch *launch, pl_error *error) {
  pl_strategy *s = &launch->strategy;
  int64_t accumulated = launch->n_accumulated > 0 ? launch->n_accumulated : 1;
  if (launch->gbs > 0 && launch->form == PL_LAUNCH_DEEPSPEED && !launch->mbs_is_stated) {
    int64_t mbs = launch->gbs / accumulated / s->dp;
    if (mbs < 1 || mbs > INT16_MAX || mbs * accumulated * s->dp != launch->gbs)
      return refuse(launch, "gbs", error,
                    "%" PRId64 " sequences in %" PRId64
                    " step%s do not divide over %d replicas; choose a multiple of %" PRId64,
                    launch->gbs, accumulated, accumulated == 1 ? "" : "s", s->dp, accumulated * s->dp);
    s->mbs = (int32_t)mbs;
  }
  if (launch->gbs > 0) return PL_OK;
  if (__builtin_mul_overflow(accumulated, (int64_t)s->mbs * s->dp, &launch->gbs))
    return refuse(launch, "accumulated", error, "%" PRId64 " microbatches are more than can be counted", accumulated);
  return pl_launch_assume(launch, error, "gbs=%" PRId64 ": %" PRId64 " microbatch%s of %d for each of %d replicas",
                          launch->gbs, accumulated, accumulated == 1 ? "" : "es", s->mbs, s->dp);
}

static pl_code find_chunks(pl_launch *launch, int64_t n_layers, pl_error *error) {
  pl_strategy *s = &launch->strategy;
  if (launch->layers_per_chunk > 0 && s->pp > 1) {
    int64_t chunks = n_layers / (launch->layers_per_chunk * s->pp);
    if (chunks < 1 || chunks * launch->layers_per_chunk * s->pp != n_layers)
      return refuse(launch, "vpp", error,
                    "chunks of %" PRId64 " layers on pp=%d stages do not make the model's %" PRId64
                    " layers; choose a number whose multiple by pp divides them, or leave it out",
                    launch->layers_per_chunk, s->pp, n_layers);
    s->vpp = (int32_t)chunks;
  }
  if (s->pp == 1) s->vpp = 1;
  if (s->vpp > 1 && s->schedule == PL_SCHEDULE_1F1B) s->schedule = PL_SCHEDULE_INTERLEAVED;
  return PL_OK;
}

pl_code pl_launch_strategy(pl_launch *launch, uint32_t n_gpus, int64_t n_layers, pl_arena *arena, const char **text,
                           pl_error *error) {
  pl_strategy *s = &launch->strategy;
  PL_TRY(divide(launch, n_gpus, error));
  PL_TRY(find_batch(launch, error));
  PL_TRY(find_chunks(launch, n_layers, error));
  char etp[48] = "", shard[32] = "", assign[32] = "";
  if (s->etp > 1) snprintf(etp, sizeof etp, ",etp=%d", s->etp);
  if (s->ep_overlap)
    snprintf(etp + strlen(etp), sizeof etp - strlen(etp), ",ep_overlap=%s", pl_ep_overlap_names[s->ep_overlap]);
  if (s->shard > 0) snprintf(shard, sizeof shard, ",shard=%d", s->shard);
  if (s->recipe != PL_ASSIGN_UNIFORM) snprintf(assign, sizeof assign, ",assign=%s", pl_assign_names[s->recipe]);
  *text =
      pl_arena_printf(arena,
                      "pp=%d,dp=%d,tmp=%d,mbs=%d,cp=%d,cp_comm=%s,ep=%d%s,schedule=%s,vpp=%d,sp=%d,recompute=%s,"
                      "zero=%d,order=%s%s%s%s",
                      s->pp, s->dp, s->tmp, s->mbs, s->cp, s->cp_gather ? "gather" : "p2p", s->ep, etp,
                      pl_schedule_name(s->schedule), s->vpp, s->sp, pl_recompute_names[s->recompute], s->zero, s->order,
                      s->overlap_is_given ? (s->overlap ? ",overlap=1" : ",overlap=0") : "", shard, assign);
  return *text != NULL ? PL_OK : pl_fail_memory(error, "a strategy");
}

/* ---- what is said ---- */

static void print_settings(FILE *stream, const pl_launch *launch, pl_setting_use use, const char *label, bool lines) {
  enum { COLUMNS = 116, INDENT = 17 };
  int column = 0;
  for (uint32_t i = 0; i < launch->settings.n; i++) {
    const pl_setting *setting = &launch->settings.list[i];
    char text[160], place[32] = "";
    bool own = strcmp(setting->path, launch->path) == 0; /* not of a file that it builds on */
    if (setting->use != use || !own) continue;
    if (lines) snprintf(place, sizeof place, " (line %d)", setting->line);
    int n = snprintf(text, sizeof text, "%.72s%s%.40s%s", setting->key, setting->value[0] != '\0' ? " " : "",
                     setting->value, place);
    if (column == 0)
      column = fprintf(stream, "  %-*s", INDENT - 2, label);
    else if (column + n + 2 > COLUMNS)
      column = fprintf(stream, ",\n%*s", INDENT, "") - 2;
    else
      column += fprintf(stream, ", ");
    column += fprintf(stream, "%s", text);
  }
  if (column > 0) fputc('\n', stream);
}

void pl_launch_print(FILE *stream, const pl_launch *launch) {
  uint32_t n_ignored = 0;
  for (uint32_t i = 0; i < launch->settings.n; i++)
    n_ignored +=
        launch->settings.list[i].use == PL_SETTING_IGNORED && strcmp(launch->settings.list[i].path, launch->path) == 0;
  fprintf(stream, "from             %s (%s)\n", launch->path, launch->title);
  print_settings(stream, launch, PL_SETTING_TAKEN, "taken", false);
  for (uint32_t i = 0; i < launch->n_assumed; i++)
    fprintf(stream, "  %-15s%s\n", i == 0 ? "assumed" : "", launch->assumed[i]);
  if (n_ignored > 0)
    fprintf(stream, "  %-15s%u setting%s that no time here depends on\n", "ignored", n_ignored,
            n_ignored == 1 ? "" : "s");
  print_settings(stream, launch, PL_SETTING_UNKNOWN, "not understood", true);
  fputc('\n', stream);
}

static void put_settings(pl_json *json, const pl_launch *launch, const char *name, pl_setting_use use) {
  pl_json_key(json, name);
  pl_json_open_object(json);
  for (uint32_t i = 0; i < launch->settings.n; i++)
    if (launch->settings.list[i].use == use && strcmp(launch->settings.list[i].path, launch->path) == 0)
      pl_json_put_string(json, launch->settings.list[i].key, launch->settings.list[i].value);
  pl_json_close_object(json);
}

void pl_launch_json(pl_json *json, const pl_launch *launch) {
  pl_json_open_object(json);
  pl_json_put_string(json, "file", launch->path);
  pl_json_put_string(json, "form", pl_launch_form_names[launch->form]);
  put_settings(json, launch, "taken", PL_SETTING_TAKEN);
  pl_json_key(json, "assumed");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < launch->n_assumed; i++)
    pl_json_string(json, launch->assumed[i]);
  pl_json_close_array(json);
  put_settings(json, launch, "ignored", PL_SETTING_IGNORED);
  put_settings(json, launch, "not_understood", PL_SETTING_UNKNOWN);
  pl_json_close_object(json);
}
