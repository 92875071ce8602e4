/* BytePS' timelines: two texts, apart by a line of '#', beside a worker of two steps, give a valid job or one message.
 */
#include <stdint.h>
#include <string.h>

#include "workloads/formats/byteps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char computing[] =
    "[{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 5, \"args\": {\"name\": \"/device:GPU:0\"}},"
    "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 5, \"tid\": 2, \"args\": {\"name\": \"TensorFlow Ops\"}},"
    "{\"ph\": \"X\", \"pid\": 5, \"tid\": 2, \"name\": \"a\", \"ts\": 1000, \"dur\": 500, \"args\": {\"group_id\": 0}},"
    "{\"ph\": \"X\", \"pid\": 5, \"tid\": 2, \"name\": \"a\", \"ts\": 3000, \"dur\": 900, \"args\": {\"group_id\": "
    "1}}]";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data, *second = memmem(text, size, "\n#\n", 3);
  size_t first_size = second != NULL ? (size_t)(second - text) : size;
  if (second != NULL) second += 3;
  pl_trace trace;
  pl_trace_init(&trace);
  pl_error error = PL_ERROR_INIT;
  pl_byteps servers = {.first_server = 1};
  pl_code code = pl_byteps_parse(&servers, "fuzz", text, first_size, second, second != NULL ? size - first_size - 3 : 0,
                                 &trace, &error);
  const pl_dpro_texts worker = {.computing = computing, .computing_size = sizeof computing - 1};
  if (code == PL_OK) code = pl_dpro_parse("fuzz", &worker, 0, &servers, 0, &trace, &error);
  if (code == PL_OK) code = pl_byteps_add_servers(&servers, "fuzz", &trace, &error);
  if (code == PL_OK)
    PL_ASSERT(pl_trace_is_valid(&trace));
  else
    PL_ASSERT(error.code == PL_BAD_INPUT && strstr(error.message, "fuzz:") == error.message);
  pl_byteps_release(&servers);
  pl_trace_release(&trace);
  return 0;
}
