/* See workloads/run/simulate.h. */
#include "workloads/run/simulate_state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/units.h"
#include "core/engine/htae.h"
#include "core/engine/timeline_perfetto.h"
#include "core/engine/timeline_svg.h"
#include "core/graph/graph_roll.h"
#include "workloads/lower/block_program.h"
#include "workloads/run/features.h"
#include "workloads/run/recording.h"

typedef pl_simulation simulation;

pl_simulate_options pl_simulate_options_quiet(const pl_simulate_options *options) {
  pl_simulate_options own = *options;
  own.trace = own.diagram = own.print_program = NULL;
  own.explanation = NULL;
  own.of_program = NULL;
  own.features = NULL;
  own.residuals = NULL;
  own.straggling = NULL;
  own.cache = NULL;
  own.blocks = NULL;
  own.siblings = NULL;
  return own;
}

static bool has_interval(const pl_simulate_options *options) {
  return options->residuals != NULL && !options->chunked && options->network != PL_NETWORK_SIMGRID &&
         options->streams != PL_STREAMS_READY && options->executor == PL_EXECUTOR_ENGINE;
}

static bool tells_origins(const pl_simulate_options *options) {
  return options->explanation != NULL || options->features != NULL || options->recording != NULL ||
         options->trace != NULL || options->diagram != NULL || has_interval(options);
}

/* By stage or by block, beyond what a row says. */
static bool tells_parts(const pl_simulate_options *options) {
  return options->explanation != NULL || options->features != NULL || options->recording != NULL ||
         options->trace != NULL || options->diagram != NULL || options->stragglers != NULL;
}

/* ---- running ---- */

const char *const pl_executor_names[] = {"engine",          "proteus",         "proteus-plain",
                                         "proteus-overlap", "proteus-sharing", NULL};

static pl_code run_proteus(const pl_graph *graph, pl_executor executor, pl_arena *arena, pl_engine_result *result,
                           pl_error *error) {
  const pl_htae_options options = {
      .sharing = executor == PL_EXECUTOR_PROTEUS || executor == PL_EXECUTOR_PROTEUS_SHARING,
      .overlap = executor == PL_EXECUTOR_PROTEUS || executor == PL_EXECUTOR_PROTEUS_OVERLAP};
  return pl_htae_run(graph, &options, arena, result, error);
}

pl_code pl_simulate_graph(const pl_graph *graph, const pl_simulate_options *options, const pl_engine_options *engine,
                          pl_arena *arena, pl_engine_result *result, pl_error *error) {
  if (options->executor != PL_EXECUTOR_ENGINE) return run_proteus(graph, options->executor, arena, result, error);
  if (options->network == PL_NETWORK_SIMGRID)
    return pl_simgrid_run(options->platform, graph, options->sharing, engine, arena, result, error);
  pl_network *network = options->network == PL_NETWORK_ANALYTIC ? pl_analytic_network_take(&graph->transfers, arena)
                                                                : pl_flow_network_take(&graph->transfers, arena);
  if (network == NULL) return pl_fail_memory(error, "the network");
  pl_code code = pl_engine_run(graph, network, engine, arena, result, error);
  network->ops->destroy(network);
  return code;
}

static pl_code run_network(simulation *state) {
  const pl_simulate_options *options = state->options;
  bool explains = options->explanation != NULL;
  bool leaps = state->leaps.leapt > 0;
  pl_engine_options engine_options = {.record_parts = options->trace != NULL || explains,
                                      .record_charges = tells_origins(options),
                                      .lanes = leaps ? &state->compiled.lanes : NULL,
                                      .n_more = state->compiled.n_more,
                                      .drifts = state->leaps.drifts,
                                      .left_out = options->left_out,
                                      .sweeps_always = options->sweeps_always};
  const pl_compiled *compiled = &state->compiled;
  if (state->siblings != NULL)
    pl_siblings_meet(state->siblings, state->begins_siblings, state->n_runs++, &compiled->graph, &compiled->lanes,
                     compiled->tails, state->arena, &engine_options);
  PL_TRY(pl_simulate_graph(&compiled->graph, options, &engine_options, state->arena, &state->result, state->error));
  if (state->siblings == NULL) return PL_OK;
  state->siblings->n_tasks += compiled->graph.n_tasks;
  state->siblings->n_taken_over += state->result.n_taken_over;
  return PL_OK;
}

pl_code pl_simulation_build(simulation *state) {
  const pl_simulate_options *options = state->options;
  bool proteus = options->executor != PL_EXECUTOR_ENGINE;
  bool exact = state->chunked || options->streams == PL_STREAMS_READY || options->recording != NULL || proteus;
  const pl_stragglers *stragglers = options->stragglers;
  bool fuse = options->fuse && !exact,
       fold = options->fold && !exact && !state->has_neighbours && !pl_stragglers_jitter(stragglers);
  const pl_communication_options communication = {
      .collective = {.sharing = options->sharing,
                     .algorithm = options->algorithm,
                     .profile = state->chunked ? NULL : options->collective_profile},
      .fold = fold,
      .prune = fuse && !state->has_neighbours,
      .alone = options->network == PL_NETWORK_ANALYTIC,
      .chunked = state->chunked,
      .cache = options->cache,
      .marks = stragglers == NULL ? NULL : stragglers->marks,
      .n_marks = stragglers == NULL ? 0 : stragglers->n_marks};
  state->compile = (pl_compile_options){.fuse = fuse,
                                        .chunked = state->chunked,
                                        .chunks = 1,
                                        .sharing = options->sharing,
                                        .streams = proteus ? PL_STREAMS_READY : options->streams,
                                        .names = options->trace != NULL || options->explanation != NULL ||
                                                 options->recording != NULL,
                                        .shares_passes = !tells_parts(options),
                                        .origins = tells_origins(options) ? &state->origins : NULL,
                                        .blocks = options->blocks,
                                        .no_overlap_factor = state->chunked || options->no_overlap_factor};
  const pl_block_shard shard = pl_strategy_shard(state->strategy, state->job);
  const pl_block_program *blocks;
  pl_block_cache_begin(options->blocks, state->cluster, state->model);
  PL_TRY(pl_block_cache_programs(options->blocks, state->model, &shard, state->arena, &blocks, state->error));
  PL_TRY(pl_program_of_blocks_take(state->model, state->job, state->strategy, blocks, state->arena, &state->program,
                                   state->error));
  if (options->print_program != NULL) pl_program_print(options->print_program, &state->program);
  return pl_communication_plan_take(state->cluster, &state->program, &communication, state->arena, &state->plan,
                                    state->error);
}

pl_code pl_simulation_compile(simulation *state) {
  pl_origins_init(&state->origins, state->arena);
  state->origins.times_only = !tells_parts(state->options);
  state->compile.leapt = state->leaps.leapt;
  PL_TRY(pl_compile(state->cluster, &state->program, &state->plan, &state->compile, state->arena, &state->compiled,
                    state->error));
  return state->options->stragglers == NULL ? PL_OK : pl_simulation_slow_down(state);
}

/* All microbatches: the graph of few, rolled, is the same to whoever does not ask for names. */
static pl_code compile_all(simulation *state) {
  pl_arena_mark mark = pl_arena_mark_here(state->arena);
  pl_graph rolled;
  state->leaps.leapt = pl_leap_search_rolled(&state->program);
  if (state->leaps.leapt > 0) PL_TRY(pl_simulation_compile(state));
  if (state->leaps.leapt > 0 && state->compiled.n_more > 0 &&
      pl_graph_roll(&state->compiled.graph, &state->compiled.lanes, state->compiled.n_more, state->arena, &rolled)) {
    state->compiled.graph = rolled;
    state->leaps.leapt = 0;
    return PL_OK;
  }
  state->leaps.leapt = 0;
  if (state->arena->failed) return pl_fail_memory(state->error, "the graph");
  pl_arena_release_to(state->arena, mark);
  return pl_simulation_compile(state);
}

/* Few microbatches first, and more until those that are left out are known to repeat others. */
static pl_code run(simulation *state) {
  const pl_simulate_options *options = state->options;
  bool leaps = options->leap && options->executor == PL_EXECUTOR_ENGINE && options->trace == NULL &&
               options->diagram == NULL && options->recording == NULL && options->network != PL_NETWORK_SIMGRID;
  bool rolls = leaps && options->stragglers == NULL && !state->compile.names && options->streams == PL_STREAMS_IN_ORDER;
  pl_arena_mark mark = pl_arena_mark_here(state->arena);
  for (state->leaps = pl_leap_search_begin(&state->program, leaps);;) {
    PL_TRY(rolls && state->leaps.leapt == 0 ? compile_all(state) : pl_simulation_compile(state));
    PL_TRY(run_network(state));
    if (state->begins_siblings && !pl_siblings_keep(state->siblings)) {
      state->begins_siblings = false;
      state->siblings = NULL;
    }
    if (state->result.is_whole) return PL_OK;
    pl_leap_search_go_on(&state->leaps, &state->result);
    if (!state->begins_siblings) pl_arena_release_to(state->arena, mark);
  }
}

/* ---- time ---- */

static void report_strategy(const simulation *state, pl_result_row *row) {
  const pl_strategy *strategy = state->strategy;
  row->pp = strategy->pp;
  row->dp = strategy->dp;
  row->tmp = strategy->tmp;
  row->cp = pl_strategy_cp(strategy);
  row->ep = pl_strategy_ep(strategy);
  row->etp = pl_strategy_cuts_experts(strategy) ? strategy->etp : 1;
  row->ep_overlap = strategy->ep_overlap;
  row->mbs = strategy->mbs;
  row->n_microbatches = state->program.n_microbatches;
  snprintf(row->schedule.text, sizeof row->schedule.text, "%s", pl_schedule_name(strategy->schedule));
  row->vpp = strategy->vpp;
  row->sp = strategy->sp;
  snprintf(row->recompute.text, sizeof row->recompute.text, "%s", pl_recompute_names[strategy->recompute]);
  row->zero = strategy->zero;
  row->overlap = strategy->overlap;
  snprintf(row->order.text, sizeof row->order.text, "%s", strategy->order);
  int length = pl_strategy_format_assign(strategy, state->model, row->assign.text, sizeof row->assign.text);
  if ((size_t)length >= sizeof row->assign.text) /* beyond some 130 stages: what is cut off must not look complete */
    memcpy(row->assign.text + sizeof row->assign.text - 4, "...", 4);
}

/* Sums over devices can exceed 64 bits of ticks; in integers they do not depend on the order, so folded and unfolded
 * rows agree. */
typedef unsigned __int128 device_ticks;

static double mean_s(const simulation *state, device_ticks total) {
  return (double)total / (PL_TICKS_PER_S * pl_strategy_n_ranks(state->strategy));
}

/* Mean over the devices that work, each class counted as often as it stands for devices. */
static void report_breakdown(const simulation *state, pl_result_row *row) {
  device_ticks total[PL_CATEGORY_COUNT] = {0}, idle = 0, computing = 0;
  for (uint32_t c = 0; c < state->plan.n_device_classes; c++) {
    uint32_t multiplicity = state->plan.device_classes[c].multiplicity;
    for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
      total[category] += (device_ticks)state->result.spent[c * PL_CATEGORY_COUNT + category] * multiplicity;
    idle += (device_ticks)state->result.idle[c] * multiplicity;
  }
  for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
    if (!pl_category_is_communication((pl_category)category)) computing += total[category];
  row->compute_s = mean_s(state, computing);
  row->tensor_comm_s = mean_s(state, total[PL_CATEGORY_TENSOR]);
  row->pipeline_comm_s = mean_s(state, total[PL_CATEGORY_PIPELINE]);
  row->data_comm_s = mean_s(state, total[PL_CATEGORY_DATA]);
  row->context_comm_s = mean_s(state, total[PL_CATEGORY_CONTEXT]);
  row->expert_comm_s = mean_s(state, total[PL_CATEGORY_EXPERT]);
  row->bubble_s = mean_s(state, idle);
}

const char *const pl_stage_part_names[PL_STAGE_PARTS] = {
    "compute_s", "tensor_comm_s", "pipeline_comm_s", "data_comm_s", "context_comm_s", "expert_comm_s", "bubble_s"};

pl_stage_times pl_stage_times_of(const pl_ticks *spent, pl_ticks idle) {
  static const pl_category waits[PL_STAGE_PARTS] = {[1] = PL_CATEGORY_TENSOR,
                                                    [2] = PL_CATEGORY_PIPELINE,
                                                    [3] = PL_CATEGORY_DATA,
                                                    [4] = PL_CATEGORY_CONTEXT,
                                                    [5] = PL_CATEGORY_EXPERT};
  pl_stage_times times;
  pl_ticks computing = 0;
  for (int category = 0; category < PL_CATEGORY_COUNT; category++)
    if (!pl_category_is_communication((pl_category)category)) computing += spent[category];
  for (int part = 1; part < PL_STAGE_PARTS - 1; part++)
    times.part_s[part] = pl_ticks_to_s(spent[waits[part]]);
  times.part_s[0] = pl_ticks_to_s(computing);
  times.part_s[PL_STAGE_PARTS - 1] = pl_ticks_to_s(idle);
  return times;
}

/* Of each stage the device that is idle least, the first among equals: the one that the others wait for. */
static pl_code report_stages(const simulation *state, pl_simulate_report *report) {
  int32_t n_stages = state->strategy->pp;
  pl_stage_times *times = PL_TAKE(state->arena, pl_stage_times, n_stages);
  uint32_t *busiest = PL_TAKE(state->arena, uint32_t, n_stages);
  if (times == NULL || busiest == NULL) return pl_fail_memory(state->error, "the times of the stages");
  for (int32_t s = 0; s < n_stages; s++)
    busiest[s] = PL_NONE;
  for (uint32_t c = 0; c < state->plan.n_device_classes; c++) {
    uint32_t *best = &busiest[state->plan.device_classes[c].stage];
    if (*best == PL_NONE || state->result.idle[c] < state->result.idle[*best]) *best = c;
  }
  for (int32_t s = 0; s < n_stages; s++)
    times[s] =
        pl_stage_times_of(state->result.spent + (size_t)busiest[s] * PL_CATEGORY_COUNT, state->result.idle[busiest[s]]);
  report->times = times;
  return PL_OK;
}

static void report_speed(const simulation *state, pl_result_row *row) {
  const pl_job *job = state->job;
  double sequences = (double)job->gbs, peak_flops = 0, narrow_share = 0;
  if (job->fp8)
    narrow_share = pl_block_cache_narrow_share(state->options->blocks, state->model, job->dtype, job->fp4, job->seq);
  for (uint32_t rank = 0; rank < pl_strategy_n_ranks(state->strategy); rank++) {
    uint32_t device = pl_strategy_device_of_rank(state->strategy, rank);
    peak_flops += pl_mixed_peak_flops(pl_cluster_profile(state->cluster, device), job->dtype, job->fp4, narrow_share);
  }
  row->iter_time_s = pl_ticks_to_s(state->result.makespan);
  row->samples_per_s = sequences / row->iter_time_s;
  row->tokens_per_s = row->samples_per_s * (double)state->job->seq;
  row->mfu =
      pl_block_cache_flops(state->options->blocks, state->model, state->job->seq) * row->samples_per_s / peak_flops;
  if (!(peak_flops > 0)) row->mfu = NAN;
}

/* Of what nobody ran. */
static void report_unplayed(const simulation *state, pl_simulate_report *report) {
  const pl_simulate_options *options = state->options;
  pl_result_row *row = &report->row;
  report_strategy(state, row);
  row->iter_time_s = row->samples_per_s = row->tokens_per_s = row->mfu = (double)NAN;
  row->compute_s = row->tensor_comm_s = row->pipeline_comm_s = row->data_comm_s = (double)NAN;
  row->context_comm_s = row->expert_comm_s = row->bubble_s = (double)NAN;
  pl_simulate_report_mark(report, &report->interval);
  row->n_classes = state->plan.n_device_classes;
  row->status = PL_RESULT_OOM;
  uint32_t n_features = options->features == NULL ? 0 : PL_N_FEATURES + PL_N_STAGE_FEATURES * options->n_feature_stages;
  for (uint32_t i = 0; i < n_features; i++)
    options->features[i] = (double)NAN;
}

/* The link of the cluster that carries the largest share of what it could: bytes of progress of each transfer class
 * times its weight on the link class. */
static pl_code report_bottleneck(simulation *state, pl_simulate_report *report) {
  const pl_quotient *quotient = &state->plan.quotient;
  if (state->compiled.transfer_bytes == NULL) return PL_OK;
  double *carried = PL_TAKE(state->arena, double, quotient->n_links);
  if (carried == NULL) return pl_fail_memory(state->error, "the links' loads");
  for (uint32_t t = 0; t < quotient->n_transfers; t++)
    for (uint32_t u = 0; u < quotient->transfers[t].n_full; u++) {
      const pl_link_use *use = &quotient->full_uses[quotient->transfers[t].first_full + u];
      carried[use->link] += use->weight * state->compiled.transfer_bytes[t];
    }
  for (uint32_t l = 0; l < quotient->n_links; l++) {
    double utilisation = carried[l] / (quotient->link_capacity_Bps[l] * report->row.iter_time_s);
    if (utilisation > report->bottleneck_utilisation) {
      report->bottleneck_utilisation = utilisation;
      report->bottleneck_link = state->cluster->links[state->plan.link_of_class[l]].name;
    }
  }
  return PL_OK;
}

/* "layer 12"; of blocks of other kinds the kind. */
static const char *block_name(const simulation *state, int32_t block) {
  pl_block_kind kind = pl_model_block_kind(state->model, block);
  if (kind != PL_BLOCK_LAYER && kind != PL_BLOCK_EXPERT_LAYER) return pl_block_kind_name(kind);
  return pl_arena_printf(state->arena, "layer %" PRId32, block - PL_MODEL_BLOCKS_BEFORE_LAYERS);
}

/* What the graph does not know of its parts. */
static void describe_parts(simulation *state, pl_timeline_view *timeline) {
  const pl_origins *origins = &state->origins;
  pl_timeline_part *parts = PL_TAKE(state->arena, pl_timeline_part, origins->n_parts);
  const char **names = PL_TAKE(state->arena, const char *, pl_model_n_blocks(state->model));
  for (uint32_t i = 0; parts != NULL && i < origins->n_parts; i++)
    parts[i] = (pl_timeline_part){.flops = pl_origins_part(origins, i)->flops,
                                  .bytes = pl_origins_part(origins, i)->bytes,
                                  .block = origins->parts[i].at};
  for (int32_t block = 0; names != NULL && block < pl_model_n_blocks(state->model); block++)
    names[block] = block_name(state, block);
  timeline->parts = parts;
  timeline->block_names = names;
}

static pl_code write_trace(simulation *state) {
  uint32_t n = state->plan.n_device_classes;
  const char **names = PL_TAKE(state->arena, const char *, n);
  for (uint32_t c = 0; names != NULL && c < n; c++) {
    const pl_device_class *class = &state->plan.device_classes[c];
    names[c] =
        pl_arena_printf(state->arena, "stage %d: %s%s", class->stage, state->cluster->devices[class->device].name,
                        class->multiplicity == 1
                            ? ""
                            : pl_arena_printf(state->arena, " (stands for %" PRIu32 " devices)", class->multiplicity));
  }
  if (state->arena->failed) return pl_fail_memory(state->error, "the names of the timeline");
  pl_timeline_view timeline = state->options->view != NULL ? *state->options->view : (pl_timeline_view){0};
  timeline.device = names;
  describe_parts(state, &timeline);
  if (state->arena->failed) return pl_fail_memory(state->error, "the names of the timeline");
  return pl_timeline_write(state->options->trace, &state->compiled.graph, &state->result, &timeline, state->error);
}

static pl_code record(const simulation *state) {
  const pl_recorded_run run = {.cluster = state->cluster,
                               .strategy = state->strategy,
                               .program = &state->program,
                               .graph = &state->compiled.graph,
                               .origins = &state->origins,
                               .result = &state->result,
                               .name = "paceline simulate"};
  return pl_recording_take(&run, state->options->recording, state->error);
}

/* The program outlives this call in the arena, with the explanation. */
static pl_code explain(simulation *state, pl_explanation *explanation) {
  pl_program *program = PL_TAKE(state->arena, pl_program, 1);
  pl_communication_plan *plan = PL_TAKE(state->arena, pl_communication_plan, 1);
  if (state->arena->failed) return pl_fail_memory(state->error, "the explanation");
  *program = state->program;
  *plan = state->plan;
  return pl_explanation_take(state->cluster, program, plan, &state->compiled.graph, &state->origins, &state->result,
                             state->arena, explanation, state->error);
}

/* What is made of an explanation; of one, whoever asks. */
static pl_code explain_all(simulation *state, pl_simulate_report *report) {
  const pl_simulate_options *options = state->options;
  pl_interval interval = pl_interval_none();
  pl_explanation own;
  if (options->explanation != NULL || options->features != NULL || has_interval(options)) PL_TRY(explain(state, &own));
  if (options->explanation != NULL) *options->explanation = own;
  if (has_interval(options)) PL_TRY(pl_interval_take(&own, options->residuals, state->arena, &interval, state->error));
  pl_simulate_report_mark(report, &interval);
  if (options->features == NULL) return PL_OK;
  return pl_features_fill(&own, state->model, report, (int)options->n_feature_stages, state->arena, options->features,
                          state->error);
}

void pl_simulate_report_mark(pl_simulate_report *report, const pl_interval *interval) {
  report->interval = *interval;
  report->row.iter_time_low_s = interval->low_s;
  report->row.iter_time_high_s = interval->high_s;
}

/* Whoever begins a family takes all memory from its arena: graphs refer to what was made before. */
static void join_siblings(simulation *state) {
  const pl_simulate_options *options = state->options;
  if (options->siblings == NULL || options->network == PL_NETWORK_SIMGRID || options->streams == PL_STREAMS_READY ||
      options->executor != PL_EXECUTOR_ENGINE || options->stragglers != NULL || options->trace != NULL)
    return;
  state->siblings = options->siblings;
  if (pl_siblings_have(state->siblings, state->strategy)) return;
  state->begins_siblings = pl_siblings_begin(state->siblings, state->strategy);
  if (state->begins_siblings) {
    state->arena = &state->siblings->arena;
  } else {
    state->siblings = NULL;
  }
}

pl_code pl_simulate(const pl_cluster *cluster, const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                    const pl_simulate_options *options, pl_arena *arena, pl_simulate_report *report, pl_error *error) {
  *report = (pl_simulate_report){
      .n_devices = pl_strategy_n_ranks(strategy), .remains_factor = 1, .interval = pl_interval_none()};
  if (pl_strategy_is_of_programs(strategy))
    return pl_fail(
        error, PL_UNSUPPORTED,
        "strategy: offload, recompute_layers and schedule=dualpipe are simulated as programs, by 'simulate', 'explain' "
        "and 'verify'; leave them out here");
  simulation state = {.cluster = cluster,
                      .model = model,
                      .job = job,
                      .strategy = strategy,
                      .options = options,
                      .arena = arena,
                      .error = error,
                      .chunked = options->chunked || options->network == PL_NETWORK_SIMGRID};
  bool foreseen = false;
  join_siblings(&state);
  PL_TRY(pl_simulation_build(&state));
  if (options->skip_oom) PL_TRY(pl_simulation_foresee_memory(&state, report, &foreseen));
  if (foreseen && !report->row.fits) {
    if (state.begins_siblings) pl_siblings_drop(state.siblings, false); /* the next may fit */
    report_unplayed(&state, report);
    return PL_OK;
  }
  PL_TRY(run(&state));
  report_strategy(&state, &report->row);
  report_speed(&state, &report->row);
  report_breakdown(&state, &report->row);
  PL_TRY(report_stages(&state, report));
  if (!foreseen) PL_TRY(pl_simulation_report_memory(&state, report));
  PL_TRY(report_bottleneck(&state, report));
  report->entries =
      pl_collective_entries_of(&state.program, &state.plan, state.chunked ? NULL : options->collective_profile);
  report->n_device_classes = state.plan.n_device_classes;
  report->n_transfer_classes = state.plan.n_transfer_classes;
  report->n_events = state.result.n_events;
  report->n_played = state.program.n_microbatches - state.leaps.leapt;
  report->row.n_classes = state.plan.n_device_classes;
  report->row.n_tasks = state.compiled.graph.n_tasks;
  report->n_rows = pl_graph_n_rows(&state.compiled.graph);
  report->row.run_digest = state.result.digest;
  report->row.status = report->row.fits ? PL_RESULT_DONE : PL_RESULT_OOM;
  PL_TRY(explain_all(&state, report));
  if (options->straggling != NULL) PL_TRY(pl_simulation_straggle(&state));
  if (options->diagram != NULL) PL_TRY(pl_simulation_draw(&state, report));
  if (options->recording != NULL) PL_TRY(record(&state));
  if (options->trace != NULL) PL_TRY(write_trace(&state));
  return pl_simulation_report_remains(&state, report);
}
