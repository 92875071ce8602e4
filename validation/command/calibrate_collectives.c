/* See validation/command/calibrate_collectives.h. */
#include "validation/command/calibrate_collectives.h"

#include "core/system/command.h"
#include "core/system/output_file.h"
#include "netmodel/collective/collective_profile_writer.h"
#include "validation/fit/collective_fit.h"

typedef struct calibration {
  const pl_calibrate_collectives *options;
  pl_arena arena;
  pl_collective_profile profile; /* its entries are the two below */
  pl_wiring *inside, *between;
  pl_collective_rows rows;
  pl_error *error;
} calibration;

/* Entries of our own, which the fit may write to. */
static pl_code load(calibration *state) {
  const char *path;
  pl_collective_profile *profile = &state->profile;
  PL_TRY(pl_collective_profile_path(state->options->profile, "", &state->arena, &path, state->error));
  if (path == NULL) return pl_fail(state->error, PL_BAD_INPUT, "--profile: 'ideal' has no figures to fit");
  PL_TRY(pl_collective_profile_load(path, &state->arena, profile, state->error));
  state->inside = PL_COPY(&state->arena, pl_wiring, profile->inside, profile->n_inside);
  state->between = PL_COPY(&state->arena, pl_wiring, profile->between, profile->n_between);
  if (state->arena.failed) return pl_fail_memory(state->error, "a collective profile");
  profile->inside = state->inside;
  profile->between = state->between;
  return pl_collective_rows_load(state->options->rows, state->options->platform, profile, &state->arena, &state->rows,
                                 state->error);
}

static pl_code fit(calibration *state) {
  pl_collective_profile *profile = &state->profile;
  pl_entry_fit *fits;
  PL_TRY(pl_collective_fit(state->inside, profile->n_inside, state->between, profile->n_between, &state->rows,
                           &state->arena, &fits, state->error));
  printf("| entry | rows fitted | figures | median %% |\n|---|---|---|---|\n");
  for (uint32_t i = 0; i < profile->n_inside + profile->n_between; i++)
    printf("| %s | %u | %u | %.1f |\n", fits[i].name, fits[i].n_rows, fits[i].n_figures, fits[i].median_pct);
  putchar('\n');
  return PL_OK;
}

static pl_code check_output(const calibration *state) {
  const char *path = state->options->output;
  if (path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(path, state->options->rows, state->error));
  return pl_output_file_check(path, state->options->force, state->error);
}

static pl_code write_profile(const calibration *state) {
  const char *path = state->options->output;
  if (path == NULL) return PL_OK;
  pl_output_file file;
  PL_TRY(pl_output_file_open(&file, path, state->options->force, state->error));
  pl_collective_profile_write(file.stream, &state->profile);
  return pl_output_file_close(&file, PL_OK, state->error);
}

pl_code pl_calibrate_collectives_run(const pl_calibrate_collectives *options, pl_error *error) {
  calibration state = {.options = options, .error = error};
  pl_arena_init(&state.arena, 0);
  pl_code code = check_output(&state);
  if (code == PL_OK) code = load(&state);
  if (code == PL_OK && !options->check) code = fit(&state);
  if (code == PL_OK) code = pl_collective_report(stdout, &state.rows, &state.arena, error);
  if (code == PL_OK && !options->check) code = write_profile(&state);
  pl_arena_release(&state.arena);
  return code;
}
