/* The job that a file of results records, out of the command that made it. */
#ifndef PL_SEARCH_RECORDED_JOB_H
#define PL_SEARCH_RECORDED_JOB_H

enum { PL_RECORDED_WORDS = 512 };

/* Words of a recorded command, as pl_command_quote_all joined them; `text` is cut up. *words, room for
 * PL_RECORDED_WORDS + 1, end in NULL. Returns their number. */
int pl_recorded_words(char *text, char **words);
/* Of a recorded command what says the job: options that pl_job_options_argp knows, with their values, behind what is in
 * `kept`. */
void pl_recorded_job(char **words, int n, char **kept, int *n_kept);

#endif
