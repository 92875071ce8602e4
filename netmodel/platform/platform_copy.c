/* See netmodel/platform/platform_copy.h. */
#include "netmodel/platform/platform_copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "netmodel/platform/platform_scan.h"

typedef struct copier {
  FILE *out;
  uint32_t line; /* that the copy has reached */
  bool has_failed;
} copier;

static void move_to(copier *c, uint32_t line) {
  for (; c->line < line; c->line++)
    putc('\n', c->out);
}

/* The scan has refused what is not printable; SimGrid's reader knows these five and &#N;. */
static void put_value(FILE *out, const char *text) {
  for (; *text != '\0'; text++) {
    const char *entity = *text == '&'    ? "&amp;"
                         : *text == '<'  ? "&lt;"
                         : *text == '>'  ? "&gt;"
                         : *text == '"'  ? "&quot;"
                         : *text == '\'' ? "&apos;"
                                         : NULL;
    if (entity != NULL)
      fputs(entity, out);
    else
      putc(*text, out);
  }
}

static void begin(void *data, const pl_platform_element *element, uint32_t line) {
  copier *c = data;
  move_to(c, line);
  fprintf(c->out, "<%s", element->name);
  for (const char **a = element->pairs; a[0] != NULL; a += 2) {
    fprintf(c->out, " %s=\"", a[0]);
    put_value(c->out, a[1]);
    putc('"', c->out);
  }
  putc('>', c->out);
}

static void end(void *data, pl_platform_word word, uint32_t line) {
  copier *c = data;
  move_to(c, line);
  fprintf(c->out, "</%s>", pl_platform_word_name(word));
}

/* Also the first thing that is written. */
static void restart(void *data) {
  copier *c = data;
  rewind(c->out);
  if (ftruncate(fileno(c->out), 0) != 0) c->has_failed = true;
  fputs("<?xml version=\"1.0\"?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">", c->out);
  c->line = 1;
}

static pl_code write_copy(FILE *out, const char *name, const char *text, size_t size, pl_arena *arena,
                          pl_error *error) {
  copier c = {.out = out};
  const pl_platform_sink sink = {begin, end, restart, &c};
  pl_platform_scan scan;
  restart(&c);
  PL_TRY(pl_platform_scan_text(name, text, size, &sink, arena, &scan, error));
  return fflush(out) == 0 && !ferror(out) && !c.has_failed
             ? PL_OK
             : pl_fail(error, PL_IO, "%s: no memory for a copy: %m", name);
}

pl_code pl_platform_copy_open(const char *name, const char *text, size_t size, pl_arena *arena, int *file,
                              char path[PL_COPY_PATH_BYTES], pl_error *error) {
  *file = memfd_create("paceline_platform", MFD_CLOEXEC);
  int writer = *file >= 0 ? dup(*file) : -1;
  FILE *out = writer >= 0 ? fdopen(writer, "w") : NULL;
  pl_code code = out != NULL ? write_copy(out, name, text, size, arena, error)
                             : pl_fail(error, PL_IO, "%s: no memory for a copy: %s", name, strerror(errno));
  if (out != NULL)
    fclose(out);
  else if (writer >= 0)
    close(writer);
  snprintf(path, PL_COPY_PATH_BYTES, "/proc/self/fd/%d", *file);
  if (code == PL_OK && access(path, R_OK) != 0)
    code = pl_fail(error, PL_IO, "%s: %s cannot be opened, which SimGrid needs: %s", name, path, strerror(errno));
  if (code != PL_OK && *file >= 0) close(*file);
  return code;
}
