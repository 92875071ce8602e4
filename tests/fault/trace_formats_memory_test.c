/* Readers of recordings when the k-th name finds no room, for every k: memory is what is missing, in one message, and
 * the trace can be released. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/system/text_file.h"
#include "workloads/formats/byteps.h"
#include "workloads/formats/chakra.h"
#include "workloads/formats/dpro.h"
#include "workloads/formats/execution.h"
#include "workloads/formats/nsys.h"
#include "workloads/formats/perfetto.h"

#define CORPUS PACELINE_SOURCE_DIR "/tests/fuzz/corpus/"

typedef pl_code (*reader)(const char *text, size_t size, pl_trace *trace, pl_error *error);

static pl_code read_chakra(const char *text, size_t size, pl_trace *trace, pl_error *error) {
  return pl_chakra_parse("t.et", (const uint8_t *)text, size, 0, NULL, trace, error);
}

static pl_code read_execution(const char *text, size_t size, pl_trace *trace, pl_error *error) {
  pl_execution_trace execution = {.n = 0};
  pl_code code = pl_execution_parse(&execution, "t.json", text, size, trace, error);
  pl_execution_release(&execution);
  return code;
}

static int64_t first_rank(void *context, const char *path, uint32_t place, uint32_t n) {
  (void)context;
  (void)path;
  (void)n;
  return place;
}

static uint32_t any_host(void *context, const char *path, int64_t rank, uint32_t n) {
  (void)path;
  (void)rank;
  (void)n;
  return pl_trace_name(context, "host", 4);
}

static pl_code read_nsys(const char *text, size_t size, pl_trace *trace, pl_error *error) {
  const pl_nsys_names names = {first_rank, any_host, trace};
  return pl_nsys_parse("t.sqlite", (const uint8_t *)text, size, &names, trace, error);
}

static pl_code read_dpro(const char *text, size_t size, pl_trace *trace, pl_error *error) {
  const char *part[4] = {NULL};
  size_t length[4] = {0};
  for (int k = 0; k < 4; k++) {
    const char *end = memmem(text, size, "\n#\n", 3);
    part[k] = text;
    length[k] = end != NULL ? (size_t)(end - text) : size;
    size_t taken = end != NULL ? length[k] + 3 : size;
    text += taken;
    size -= taken;
  }
  const pl_dpro_texts texts = {part[0], part[1], part[2], part[3], length[0], length[1], length[2], length[3]};
  return pl_dpro_parse("t", &texts, 0, NULL, -1, trace, error);
}

static pl_code read_byteps(const char *text, size_t size, pl_trace *trace, pl_error *error) {
  const char *second = memmem(text, size, "\n#\n", 3);
  size_t first = second != NULL ? (size_t)(second - text) : size;
  pl_byteps servers = {.first_server = 1};
  pl_code code = pl_byteps_parse(&servers, "t", text, first, second + 3, size - first - 3, trace, error);
  for (uint32_t k = 0; k < servers.n_messages; k++)
    servers.messages[k].is_placed = true;
  if (code == PL_OK) code = pl_byteps_add_servers(&servers, "t", trace, error);
  pl_byteps_release(&servers);
  return code;
}

static pl_code read_perfetto(const char *text, size_t size, pl_trace *trace, pl_error *error) {
  return pl_perfetto_parse("t.json", text, size, trace, error);
}

static void every_name_fails_once(const char *path, reader read, int64_t fewest) {
  char *text;
  size_t size;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_text_file_load(path, 1 << 20, &text, &size, &error), PL_OK);
  int64_t k = 0;
  for (pl_code code = PL_NO_MEMORY; code != PL_OK; k++) {
    pl_trace trace;
    pl_trace_init(&trace);
    trace.texts.fail_after = k;
    error = PL_ERROR_INIT;
    code = read(text, size, &trace, &error);
    if (code != PL_OK && (code != PL_NO_MEMORY || error.code != PL_NO_MEMORY))
      fail_msg("%s, allocation %lld: %s", path, (long long)k, error.message);
    pl_trace_release(&trace);
  }
  print_message("%s: %lld allocations\n", path, (long long)k - 1);
  assert_true(k > fewest);
  free(text);
}

static void test_readers(void **state) {
  (void)state;
  every_name_fails_once(CORPUS "chakra/foreign.et", read_chakra, 10);
  every_name_fails_once(CORPUS "chakra/ours.et", read_chakra, 10);
  every_name_fails_once(CORPUS "execution/new.json", read_execution, 2);
  every_name_fails_once(CORPUS "nsys/good.sqlite", read_nsys, 8);
  every_name_fails_once(CORPUS "perfetto/two_ranks.json", read_perfetto, 8);
  every_name_fails_once(CORPUS "dpro/rank.txt", read_dpro, 20);
  every_name_fails_once(CORPUS "dpro/tree.txt", read_dpro, 20);
  every_name_fails_once(CORPUS "byteps/server.txt", read_byteps, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_readers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
