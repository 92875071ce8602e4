/* What a command that walks a space works on: platform, model and job, loaded and checked. */
#ifndef PL_SEARCH_SPACE_SESSION_H
#define PL_SEARCH_SPACE_SESSION_H

#include "netmodel/platform/platform.h"
#include "search/results/results_file.h"
#include "search/run/evaluate.h"
#include "search/space/space_options.h"
#include "workloads/command/job_options.h"

typedef struct pl_space_session {
  pl_arena arena; /* lives as long as the session */
  pl_platform *platform;
  pl_model model;
  pl_residuals residuals;     /* of intervals */
  pl_tree_space trees;        /* of --strategy-space */
  pl_program_columns program; /* of files of programs */
  const char *choice_names;
  const char *programs_of; /* why candidates are programs: "an ONNX file", "--schedule dualpipe"; NULL: they are none */
  pl_evaluation evaluation; /* points into the session and into the job options */
} pl_space_session;

void pl_space_session_init(pl_space_session *session);
/* Safe after any failure. */
void pl_space_session_release(pl_space_session *session);
/* Reads what `job` and `space` name; completes `job` and the choices by what platform, model and framework say. Both
 * stay where they are from here on. */
pl_code pl_space_session_load(pl_space_session *session, pl_job_options *job, pl_space_options *space, pl_error *error);
/* The candidates, by strategies or trees; PL_BAD_INPUT: there are none. */
pl_code pl_space_session_enumerate(pl_space_session *session, const pl_space_choices *choices, pl_space *space,
                                   pl_error *error);

/* What a results file says of where its rows come from: command, platform, model, job and way of simulating; and with
 * what it was made. Texts in the session's arena. `command` is not part of the identity. */
void pl_space_session_describe(pl_space_session *session, const pl_job_options *job, const char *command,
                               pl_provenance *provenance);
pl_code pl_space_session_describe_versions(pl_space_session *session, pl_provenance *provenance, pl_error *error);
/* 16 hex digits, in the session's arena. */
const char *pl_space_session_digest(pl_space_session *session, uint64_t value);

#endif
