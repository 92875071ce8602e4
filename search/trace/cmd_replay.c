/* See search/trace/cmd_replay.h. Every step is replayed by itself, and their times are averaged: steps need not be
 * alike. */
#include "search/trace/cmd_replay.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/output_file.h"
#include "core/text/json_writer.h"
#include "netmodel/platform/platform.h"
#include "search/trace/replay_session.h"
#include "search/trace/replay_timeline.h"
#include "workloads/formats/export.h"
#include "workloads/trace/replay_links.h"
#include "workloads/trace/replay_network.h"
#include "workloads/trace/replay_trace.h"

enum {
  KEY_FORCE = 'f',
  KEY_STEP = 0x500,
  KEY_SCALE,
  KEY_TRACE,
  KEY_FORMAT,
  KEY_PLATFORM,
  KEY_RANKS,
  KEY_PROFILE,
  KEY_JSON = 'j',
  MOST_SCALES = 32
};

typedef struct replay_options {
  const char *path, *timeline, *platform, *profile;
  int64_t n_ranks; /* 0: those of the job */
  char *scale_texts[MOST_SCALES];
  uint32_t n_scales;
  int64_t step;
  bool json, force;
  pl_export_format format;
  pl_error error;
} replay_options;

static const struct argp_option option_table[] = {
    {"step", KEY_STEP, "N", 0, "only the step with this number (default: all, averaged)", 0},
    {"scale", KEY_SCALE, "WHAT=F", 0,
     "what if: op:PATTERN=F, ops of that name take F times as long; link=F, links are F times as fast; host=F, the "
     "host's work takes F times as long. May be given several times",
     0},
    {"platform", KEY_PLATFORM, "FILE", 0,
     "what if: messages take what this platform's network gives them instead of their recorded time; rank r is on its "
     "device r, computing stays as recorded",
     0},
    {"ranks", KEY_RANKS, "N", 0,
     "with --platform: as many ranks, all like the recorded ones; only if all messages are collectives of all ranks",
     0},
    {"collective-profile", KEY_PROFILE, "FILE", 0,
     "of --platform: what collectives cost, or 'ideal' (default: the one beside the platform's devices)", 0},
    {"trace", KEY_TRACE, "FILE", 0, "write the replayed step (the median one) as a Chrome trace", 0},
    {"trace-format", KEY_FORMAT, "FORMAT", 0,
     "of --trace: timeline (default), for looking at; or what 'paceline trace import' reads back: perfetto (one file), "
     "or a folder with a file per rank: chakra (ASTRA-sim), kineto (HolisticTraceAnalysis)",
     0},
    {"force", KEY_FORCE, NULL, 0, "replace FILE", 0},
    {"json", KEY_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  replay_options *options = state->input;
  switch (key) {
  case KEY_STEP:
    pl_parse_integer(value, "--step", 0, INT64_MAX, &options->step, &options->error);
    return 0;
  case KEY_SCALE:
    if (options->n_scales == MOST_SCALES)
      pl_fail(&options->error, PL_BAD_INPUT, "--scale: more than %d", MOST_SCALES);
    else
      options->scale_texts[options->n_scales++] = value;
    return 0;
  case KEY_PLATFORM:
    options->platform = value;
    return 0;
  case KEY_RANKS:
    pl_parse_integer(value, "--ranks", 2, 1 << 20, &options->n_ranks, &options->error);
    return 0;
  case KEY_PROFILE:
    options->profile = value;
    return 0;
  case KEY_TRACE:
    options->timeline = value;
    return 0;
  case KEY_FORMAT:
    pl_export_format_parse(value, &options->format, &options->error);
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (options->path != NULL) pl_command_line_refuse_argument(value, &options->error);
    options->path = value;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

typedef struct replayed {
  int64_t number;
  uint32_t n_ops, n_tasks, n_timed, n_kept; /* n_timed: messages that the platform timed; n_kept: that it could not */
  double measured_s, replayed_s, scaled_s;
} replayed;

typedef struct own_session {
  replay_options *options;
  pl_trace_scale scales[MOST_SCALES];
  uint32_t n_hits[MOST_SCALES]; /* tasks changed, over all steps */
  pl_replay_session job;
  pl_trace_fits fits; /* where links are scaled */
  pl_arena arena;
  replayed *steps;
  uint32_t n_steps;
  pl_platform *platform; /* NULL: none */
  pl_arena platform_arena;
  pl_collective_profile profile;
  pl_trace_network_options network;
  bool by_readiness; /* links served whoever was ready */
  bool without_line; /* link= met messages whose sizes are one, or unknown */
} own_session;

static pl_code store(const replay_options *options, const pl_trace_replay *replay, const pl_ticks *finish,
                     pl_error *error) {
  if (options->format == PL_EXPORT_TIMELINE)
    return pl_replay_timeline_store(options->timeline, options->force, replay, finish, error);
  pl_trace trace;
  pl_trace_init(&trace);
  pl_code code = pl_trace_replay_record(replay, finish, &trace, error);
  if (code == PL_OK) code = pl_export_store(options->timeline, options->format, options->force, &trace, error);
  pl_trace_release(&trace);
  return code;
}

/* Other durations make others ready first: links serve them, where the recording shows that they do. */
static pl_code play_links(own_session *own, const pl_trace_replay *replay, const pl_ticks *ticks, pl_ticks *finish,
                          pl_error *error) {
  pl_trace_links links;
  PL_TRY(pl_trace_links_take(replay, &own->arena, &links, error));
  pl_ticks makespan =
      links.are_served ? pl_trace_links_run(replay, &links, ticks, finish) : pl_trace_replay_run(replay, ticks, finish);
  if (makespan == PL_TICKS_NEVER) makespan = pl_trace_replay_run(replay, ticks, finish);
  if (makespan < 0) return pl_fail_memory(error, "a replay");
  own->by_readiness |= links.are_served;
  return PL_OK;
}

/* With the step before, which would have gone another way too. `dates`: of the step's ops as `alone` has them. */
static pl_code play_scaled(own_session *own, uint32_t step, const pl_trace_replay *alone, pl_ticks *dates,
                           replayed *out, pl_error *error) {
  pl_trace_window window;
  PL_TRY(pl_replay_session_window(&own->job, step, &own->arena, &window, error));
  const pl_trace_replay *replay = &window.replay;
  const size_t n = replay->graph.n_tasks;
  pl_ticks *ticks = PL_TAKE(&own->arena, pl_ticks, n + 1), *finish = PL_TAKE(&own->arena, pl_ticks, n + 1);
  if (ticks == NULL || finish == NULL) return pl_fail_memory(error, "a replay");
  memcpy(ticks, replay->ticks, n * sizeof *ticks);
  for (uint32_t s = 0; s < own->options->n_scales; s++)
    pl_trace_scale_apply(replay, &own->fits, &own->scales[s], ticks, NULL);
  if (own->platform != NULL) {
    pl_trace_network_played played;
    PL_TRY(pl_trace_network_play(replay, ticks, &own->network, &own->arena, finish, &played, error));
    out->n_timed = played.n_timed;
    out->n_kept = played.n_kept;
  } else {
    PL_TRY(play_links(own, replay, ticks, finish, error));
  }
  out->scaled_s = pl_ticks_to_s(pl_trace_window_time(&window, finish));
  pl_trace_window_dates(&window, finish, alone, dates);
  return PL_OK;
}

static pl_code play(own_session *own, uint32_t step, replayed *out, bool timeline, pl_error *error) {
  pl_trace_replay replay;
  PL_TRY(pl_replay_session_take(&own->job, step, &own->arena, &replay, error));
  uint32_t n = replay.graph.n_tasks;
  pl_ticks *ticks = PL_TAKE(&own->arena, pl_ticks, n + 1), *finish = PL_TAKE(&own->arena, pl_ticks, n + 1);
  if (ticks == NULL || finish == NULL) return pl_fail_memory(error, "a replay");
  memcpy(ticks, replay.ticks, n * sizeof *ticks);
  *out = (replayed){.number = replay.span.number, .n_ops = replay.n_ops, .n_tasks = n};
  out->measured_s = pl_ticks_to_s(pl_trace_replay_measured(&replay));
  out->replayed_s = out->scaled_s = pl_ticks_to_s(pl_trace_replay_run(&replay, ticks, finish));
  for (uint32_t s = 0; s < own->options->n_scales; s++) {
    own->n_hits[s] += pl_trace_scale_apply(&replay, &own->fits, &own->scales[s], ticks, NULL);
    for (uint32_t f = 0; own->scales[s].kind == PL_TRACE_SCALE_LINK && f < own->fits.n; f++)
      own->without_line |= !own->fits.fits[f].line.is_line;
  }
  if (own->platform != NULL || own->options->n_scales > 0) PL_TRY(play_scaled(own, step, &replay, finish, out, error));
  return timeline ? store(own->options, &replay, finish, error) : PL_OK;
}

/* ---- what is printed ---- */

static void put_times(const replayed *step, const char *name, bool scaled) {
  char a[PL_UNIT_TEXT_BYTES], b[PL_UNIT_TEXT_BYTES], c[PL_UNIT_TEXT_BYTES];
  printf("%8s %12s %12s %+8.2f", name, pl_format_time(step->measured_s, a), pl_format_time(step->replayed_s, b),
         100 * (step->replayed_s / step->measured_s - 1));
  if (scaled) printf(" %12s %+8.2f", pl_format_time(step->scaled_s, c), 100 * (step->scaled_s / step->replayed_s - 1));
  putchar('\n');
}

static replayed mean_of(const own_session *own) {
  replayed mean = {.number = -1};
  for (uint32_t s = 0; s < own->n_steps; s++) {
    mean.measured_s += own->steps[s].measured_s / own->n_steps;
    mean.replayed_s += own->steps[s].replayed_s / own->n_steps;
    mean.scaled_s += own->steps[s].scaled_s / own->n_steps;
  }
  return mean;
}

static double deviation_of(const own_session *own, const replayed *mean, bool scaled) {
  double sum = 0;
  for (uint32_t s = 0; own->n_steps > 1 && s < own->n_steps; s++) {
    double off = scaled ? own->steps[s].scaled_s - mean->scaled_s : own->steps[s].measured_s - mean->measured_s;
    sum += off * off / (own->n_steps - 1);
  }
  return sqrt(sum);
}

static void put_platform(const own_session *own) {
  uint32_t n_timed = 0, n_kept = 0;
  for (uint32_t s = 0; s < own->n_steps; s++) {
    n_timed += own->steps[s].n_timed;
    n_kept += own->steps[s].n_kept;
  }
  fputs("--platform ", stdout);
  pl_printable_put(stdout, own->options->platform);
  printf(": %u messages timed by its network", n_timed);
  if (n_kept > 0) printf(", %u of unknown size or kind as recorded", n_kept);
  puts("; computing as recorded");
}

static void put_text(const own_session *own) {
  bool scaled = own->options->n_scales > 0 || own->platform != NULL;
  replayed mean = mean_of(own);
  char text[PL_UNIT_TEXT_BYTES];
  printf("%8s %12s %12s %8s", "step", "measured", "replayed", "drift %");
  printf(scaled ? " %12s %8s\n" : "\n", "what if", "change %");
  for (uint32_t s = 0; s < own->n_steps; s++) {
    snprintf(text, sizeof text, "%lld", (long long)own->steps[s].number);
    put_times(&own->steps[s], text, scaled);
  }
  if (own->n_steps > 1) {
    put_times(&mean, "mean", scaled);
    printf("standard deviation over the steps: measured %s", pl_format_time(deviation_of(own, &mean, false), text));
    if (scaled) printf(", what if %s", pl_format_time(deviation_of(own, &mean, true), text));
    putchar('\n');
  }
  for (uint32_t s = 0; s < own->options->n_scales; s++) {
    fputs("--scale ", stdout);
    if (own->scales[s].kind == PL_TRACE_SCALE_OP) fputs("op:", stdout);
    pl_printable_put(stdout, own->scales[s].kind == PL_TRACE_SCALE_OP     ? own->scales[s].pattern
                             : own->scales[s].kind == PL_TRACE_SCALE_LINK ? "link"
                                                                          : "host");
    printf(" changed %u tasks%s\n", own->n_hits[s], own->n_hits[s] == 0 ? ": nothing in the job is that" : "");
  }
  if (own->platform != NULL) put_platform(own);
  pl_replay_session_put_lacking(stdout, &own->job);
  if (own->by_readiness) puts("links serve the message that is ready first, as they did in the recording");
  if (own->without_line)
    puts("link: of some kinds all messages are of one size, or of unknown ones: all of their time counts as moving "
         "data");
}

static void put_json(const own_session *own) {
  pl_json json;
  replayed mean = mean_of(own);
  pl_json_init(&json, stdout, true);
  pl_json_open_object(&json);
  pl_json_put_number(&json, "measured_s", mean.measured_s);
  pl_json_put_number(&json, "replayed_s", mean.replayed_s);
  pl_json_put_number(&json, "what_if_s", mean.scaled_s);
  pl_json_put_number(&json, "measured_deviation_s", deviation_of(own, &mean, false));
  pl_json_key(&json, "steps");
  pl_json_open_array(&json);
  for (uint32_t s = 0; s < own->n_steps; s++) {
    pl_json_open_object(&json);
    pl_json_put_integer(&json, "number", own->steps[s].number);
    pl_json_put_integer(&json, "ops", own->steps[s].n_ops);
    pl_json_put_integer(&json, "tasks", own->steps[s].n_tasks);
    pl_json_put_number(&json, "measured_s", own->steps[s].measured_s);
    pl_json_put_number(&json, "replayed_s", own->steps[s].replayed_s);
    pl_json_put_number(&json, "what_if_s", own->steps[s].scaled_s);
    if (own->platform != NULL) {
      pl_json_put_integer(&json, "messages_timed", own->steps[s].n_timed);
      pl_json_put_integer(&json, "messages_as_recorded", own->steps[s].n_kept);
    }
    pl_json_close_object(&json);
  }
  pl_json_close_array(&json);
  pl_json_key(&json, "changed_tasks");
  pl_json_open_array(&json);
  for (uint32_t s = 0; s < own->options->n_scales; s++)
    pl_json_integer(&json, own->n_hits[s]);
  pl_json_close_array(&json);
  pl_json_close_object(&json);
}

/* ---- the command ---- */

static pl_code play_all(own_session *own, pl_error *error) {
  replay_options *options = own->options;
  uint32_t shown;
  PL_TRY(pl_replay_session_step(&own->job, options->path, options->step, &shown, error));
  for (uint32_t s = 0; s < options->n_scales && own->fits.n == 0; s++)
    if (own->scales[s].kind == PL_TRACE_SCALE_LINK)
      PL_TRY(pl_replay_session_fit(&own->job, &own->arena, &own->fits, error));
  own->steps = calloc(own->job.steps.n, sizeof *own->steps);
  if (own->steps == NULL) return pl_fail_memory(error, "a replay");
  for (uint32_t s = 0; s < own->job.steps.n; s++) {
    if (options->step != INT64_MIN && s != shown) continue;
    pl_arena_reset(&own->arena);
    PL_TRY(play(own, s, &own->steps[own->n_steps++], options->timeline != NULL && s == shown, error));
  }
  return PL_OK;
}

static pl_code load_platform(own_session *own, pl_error *error) {
  const replay_options *options = own->options;
  const char *path;
  if (options->platform == NULL)
    return options->n_ranks > 0 || options->profile != NULL
               ? pl_fail(error, PL_BAD_INPUT, "--ranks and --collective-profile are of --platform FILE")
               : PL_OK;
  for (uint32_t s = 0; s < options->n_scales; s++)
    if (own->scales[s].kind == PL_TRACE_SCALE_LINK)
      return pl_fail(error, PL_BAD_INPUT, "--scale link: --platform says how fast links are; leave one of them out");
  PL_TRY(pl_platform_load(options->platform, NULL, &own->platform, error));
  PL_TRY(pl_collective_profile_path(options->profile, options->platform, &own->platform_arena, &path, error));
  if (path != NULL) PL_TRY(pl_collective_profile_load(path, &own->platform_arena, &own->profile, error));
  own->network = (pl_trace_network_options){.cluster = pl_platform_cluster(own->platform),
                                            .platform = options->platform,
                                            .profile = path != NULL ? &own->profile : NULL,
                                            .n_ranks = options->n_ranks};
  return PL_OK;
}

static pl_code run(own_session *own, pl_error *error) {
  replay_options *options = own->options;
  if (options->error.code != PL_OK) return pl_fail(error, options->error.code, "%s", options->error.message);
  if (options->path == NULL) return pl_fail(error, PL_BAD_INPUT, "which job file? paceline replay job.h5");
  if (options->timeline == NULL && options->format != PL_EXPORT_TIMELINE)
    return pl_fail(error, PL_BAD_INPUT, "--trace-format: of what? Add --trace FILE or FOLDER");
  if (options->timeline != NULL)
    PL_TRY(options->format == PL_EXPORT_TIMELINE
               ? pl_output_file_check(options->timeline, options->force, error)
               : pl_export_check(options->timeline, options->format, options->force, error));
  for (uint32_t s = 0; s < options->n_scales; s++)
    PL_TRY(pl_trace_scale_parse(options->scale_texts[s], &own->scales[s], error));
  PL_TRY(load_platform(own, error));
  PL_TRY(pl_replay_session_open(options->path, &own->job, error));
  PL_TRY(play_all(own, error));
  if (options->json)
    put_json(own);
  else
    put_text(own);
  return PL_OK;
}

int pl_cmd_replay(int argc, char **argv) {
  static const struct argp argp = {.options = option_table,
                                   .parser = read_option,
                                   .args_doc = "FILE",
                                   .doc = "Plays the steps of a recorded job again: first as they were, which shows "
                                          "how far the replay drifts from what "
                                          "was measured, then as they would be.\v"
                                          "FILE is a job file, as paceline trace import makes it.\n\n"
                                          "Example:\n  paceline replay job.h5 --scale 'op:*gemm*=0.5' --scale link=2"};
  replay_options options = {.step = INT64_MIN};
  own_session own = {.options = &options};
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&own.arena, 0);
  pl_arena_init(&own.platform_arena, 0);
  pl_trace_init(&own.job.trace);
  pl_code code = pl_command_line_parse("replay", &argp, argc, argv, false, &options, &error);
  if (code == PL_OK) code = run(&own, &error);
  free(own.steps);
  pl_replay_session_release(&own.job);
  pl_arena_release(&own.arena);
  pl_arena_release(&own.platform_arena);
  pl_platform_destroy(own.platform);
  return pl_command_finish("replay", code == PL_OK ? 0 : pl_command_report("replay", &error));
}
