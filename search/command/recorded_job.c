/* See search/command/recorded_job.h. */
#include "search/command/recorded_job.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/base/words.h"

int pl_recorded_words(char *text, char **words) {
  int n = 0;
  char *out = text;
  for (const char *at = text; *at != '\0' && n < PL_RECORDED_WORDS;) {
    at += strspn(at, " ");
    if (*at == '\0') break;
    words[n++] = out;
    bool quoted = false;
    for (; *at != '\0' && (quoted || *at != ' '); at++) {
      if (*at == '\'')
        quoted = !quoted;
      else if (*at == '\\' && !quoted && at[1] != '\0')
        *out++ = *++at;
      else
        *out++ = *at;
    }
    bool more = *at != '\0';
    at += more;
    *out++ = '\0';
    if (!more) break;
  }
  words[n] = NULL;
  return n;
}

void pl_recorded_job(char **words, int n, char **kept, int *n_kept) {
  static const char *const names[] = {"--platform",
                                      "--model",
                                      "--gbs",
                                      "--seq",
                                      "--dtype",
                                      "--attention",
                                      "--framework",
                                      "-p",
                                      "-m",
                                      "-b",
                                      "-s",
                                      "--bucket-bytes",
                                      "--pipeline-sends",
                                      "--exchange-sms",
                                      "--allocator",
                                      "--op-profile",
                                      "--collective-profile",
                                      "--site",
                                      "--algorithm",
                                      "--sharing",
                                      "--network",
                                      "--streams",
                                      "--collectives",
                                      NULL};
  static const char *const flags[] = {"--fp8", "--fp4", "--no-fold", "--no-fuse", "--no-leap", NULL};
  for (int i = 1; i < n; i++) {
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(words[i], "="), words[i]);
    bool attached = strchr(words[i], '=') != NULL;
    if (pl_words_find(flags, words[i]) >= 0) {
      kept[(*n_kept)++] = words[i];
    } else if (pl_words_find(names, name) >= 0) {
      kept[(*n_kept)++] = words[i];
      if (!attached && i + 1 < n) kept[(*n_kept)++] = words[++i];
    }
  }
}
