/* See search/parallel/progress_line.h. */
#include "search/parallel/progress_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool pl_progress_on_terminal(void) {
  const char *terminal = getenv("TERM");
  return isatty(STDERR_FILENO) && (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

bool pl_progress_is_due(pl_progress_line *line, double elapsed_s) {
  double pause_s = pl_progress_on_terminal() ? 0.5 : fmin(fmax(1, elapsed_s / 6), 60);
  if (elapsed_s - line->last_s < pause_s) return false;
  line->last_s = elapsed_s;
  return true;
}

static int columns(void) {
  struct winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

void pl_progress_say(pl_progress_line *line, const char *text) {
  if (!pl_progress_on_terminal()) {
    fprintf(stderr, "%s\n", text);
    return;
  }
  int length = (int)strlen(text), most = columns() - 1;
  line->n_drawn = length < most ? length : most;
  fprintf(stderr, "\r%.*s\033[K", line->n_drawn, text);
  fflush(stderr);
}

void pl_progress_end(pl_progress_line *line) {
  if (line->n_drawn > 0) fputs("\r\033[K", stderr);
  line->n_drawn = 0;
}
