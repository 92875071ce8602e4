/* Programs: any text is either refused with one message that has a place in it, or gives a module that prints, reads
 * again and prints alike; the check of what is read passes it or names what is wrong, and never asks for more than a
 * program of that size can need. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *printed(const pl_ir_module *module, size_t *size) {
  char *text = NULL;
  FILE *stream = open_memstream(&text, size);
  PL_ASSERT(stream != NULL);
  pl_ir_print(stream, module);
  PL_ASSERT(fclose(stream) == 0);
  return text;
}

static void check_round_trip(const pl_ir_module *module, pl_arena *arena) {
  pl_ir_module again;
  pl_error error = PL_ERROR_INIT;
  size_t first_size, second_size;
  char *first = printed(module, &first_size);
  PL_ASSERT(pl_ir_parse("again", first, first_size, arena, &again, &error) == PL_OK);
  PL_ASSERT(pl_ir_module_equal(module, &again));
  char *second = printed(&again, &second_size);
  PL_ASSERT(first_size == second_size && memcmp(first, second, first_size) == 0);
  free(first);
  free(second);
}

static void check_refusal(const pl_error *error, const char *text, size_t size) {
  pl_ir_place place;
  PL_ASSERT(error->code == PL_BAD_INPUT);
  PL_ASSERT(pl_ir_error_place(error, "fuzz.plir", &place));
  size_t shown_size;
  char *shown = NULL;
  FILE *stream = open_memstream(&shown, &shown_size);
  PL_ASSERT(stream != NULL);
  pl_ir_source_show(stream, text, size, place);
  PL_ASSERT(fclose(stream) == 0 && shown_size > 0);
  free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_ir_parse("fuzz.plir", (const char *)data, size, &arena, &module, &error);
  PL_ASSERT(code == error.code);
  if (code == PL_OK) {
    check_round_trip(&module, &arena);
    code = pl_ir_check(&module, &error);
    PL_ASSERT(code == error.code);
  }
  if (code != PL_OK) check_refusal(&error, (const char *)data, size);
  pl_arena_release(&arena);
  return 0;
}
