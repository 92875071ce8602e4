/* The dimensions of a space on the command line, for every command that walks one. */
#ifndef PL_SEARCH_SPACE_OPTIONS_H
#define PL_SEARCH_SPACE_OPTIONS_H

#include <argp.h>

#include "search/space/space.h"

typedef struct pl_space_options {
  pl_space_choices choices;
  const char *trees; /* --strategy-space; NULL: none */
  pl_error *error;   /* the command's first bad option */
} pl_space_options;

void pl_space_options_init(pl_space_options *options, pl_error *error);
/* What excludes each other. */
pl_code pl_space_options_check(const pl_space_options *options, pl_error *error);
/* A child parser; its input is a pl_space_options. */
extern const struct argp pl_space_options_argp;

#endif
