/* What a command says on stderr while it works: one line, drawn in place on a terminal and cut to its width; in a log
 * (a file, or a pipe such as mpirun's) a line each time. */
#ifndef PL_SEARCH_PROGRESS_LINE_H
#define PL_SEARCH_PROGRESS_LINE_H

#include <stdbool.h>

typedef struct pl_progress_line {
  double last_s; /* when it was last said, since the start */
  int n_drawn;   /* columns on the terminal that hold the line; 0: it is clean */
} pl_progress_line;

/* Whether stderr is a terminal that can be drawn on. */
bool pl_progress_on_terminal(void);
/* Whether it is time for a line: on a terminal twice a second, in a log once a second and later every sixth of the time
 * gone, so that logs of long runs stay readable. */
bool pl_progress_is_due(pl_progress_line *line, double elapsed_s);
void pl_progress_say(pl_progress_line *line, const char *text);
/* Cleans the terminal, for whatever comes next. */
void pl_progress_end(pl_progress_line *line);

#endif
