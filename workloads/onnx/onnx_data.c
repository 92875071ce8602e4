/* See workloads/onnx/onnx_data.h. */
#include "workloads/onnx/onnx_data.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/wire.h"

static size_t bytes_of(int32_t type) {
  switch ((pl_onnx_type)type) {
  case PL_ONNX_UINT8:
  case PL_ONNX_INT8:
  case PL_ONNX_BOOL:
    return 1;
  case PL_ONNX_UINT16:
  case PL_ONNX_INT16:
  case PL_ONNX_FLOAT16:
  case PL_ONNX_BFLOAT16:
    return 2;
  case PL_ONNX_FLOAT:
  case PL_ONNX_INT32:
  case PL_ONNX_UINT32:
    return 4;
  case PL_ONNX_INT64:
  case PL_ONNX_UINT64:
  case PL_ONNX_DOUBLE:
    return 8;
  }
  return 0;
}

static double half_of(uint16_t bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value = exponent == 0    ? ldexp(fraction, -24)
                 : exponent == 31 ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                                  : ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

/* A little-endian element. */
static double element_of(int32_t type, const uint8_t *at) {
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes_of(type); i++)
    bits |= (uint64_t)at[i] << (8 * i);
  switch ((pl_onnx_type)type) {
  case PL_ONNX_FLOAT:
    return (double)pl_wire_float(bits);
  case PL_ONNX_DOUBLE:
    return pl_wire_double(bits);
  case PL_ONNX_FLOAT16:
    return half_of((uint16_t)bits);
  case PL_ONNX_BFLOAT16:
    return (double)pl_wire_float(bits << 16);
  case PL_ONNX_INT8:
    return (int8_t)bits;
  case PL_ONNX_INT16:
    return (int16_t)bits;
  case PL_ONNX_INT32:
    return (int32_t)bits;
  case PL_ONNX_INT64:
    return (double)(int64_t)bits;
  default:
    return (double)bits;
  }
}

static pl_code too_few(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT, "%s: tensor '%s' of %" PRId64 " elements has numbers for fewer", graph->path,
                 tensor->name, tensor->n);
}

/* Packed lists: floats and doubles of one width, integers as varints. */
static pl_code read_packed(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor, int64_t first, int64_t n,
                           double *values, pl_error *error) {
  size_t width = tensor->field == 4 ? 4 : tensor->field == 10 ? 8 : 0;
  int32_t stored = tensor->field == 4 ? PL_ONNX_FLOAT : PL_ONNX_DOUBLE;
  if (width > 0) {
    if (tensor->size / width < (uint64_t)(first + n)) return too_few(graph, tensor, error);
    for (int64_t i = 0; i < n; i++)
      values[i] = element_of(stored, tensor->data + (size_t)(first + i) * width);
    return PL_OK;
  }
  pl_wire_message wire = pl_wire_of(tensor->data, tensor->size);
  for (int64_t i = 0; i < first + n; i++) {
    uint64_t bits;
    if (wire.at == wire.end || !pl_wire_varint(&wire, &bits)) return too_few(graph, tensor, error);
    bool half = tensor->type == PL_ONNX_FLOAT16 || tensor->type == PL_ONNX_BFLOAT16; /* their bits, in an integer */
    const uint8_t raw[] = {(uint8_t)bits, (uint8_t)(bits >> 8)};
    if (i >= first) values[i - first] = half ? element_of(tensor->type, raw) : (double)(int64_t)bits;
  }
  return PL_OK;
}

/* The file's folder and the tensor's location. NULL: no memory. */
static char *path_of(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor) {
  const char *slash = strrchr(graph->path, '/');
  char *path = NULL;
  int length = slash != NULL ? (int)(slash - graph->path) + 1 : 0;
  return asprintf(&path, "%.*s%s", length, graph->path, tensor->location) < 0 ? NULL : path;
}

static pl_code read_external(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor, int64_t first, int64_t n,
                             double *values, pl_error *error) {
  size_t width = bytes_of(tensor->type);
  if (tensor->location[0] == '/' || strstr(tensor->location, "..") != NULL || tensor->offset < 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: tensor '%s' lies in '%s', which is not inside of the model's folder",
                   graph->path, tensor->name, tensor->location);
  char *path = path_of(graph, tensor);
  if (path == NULL) return pl_fail_memory(error, "a path");
  FILE *file = fopen(path, "rb");
  pl_code code = PL_OK;
  if (file == NULL) {
    code = pl_fail(error, PL_BAD_INPUT, "%s: its weights lie in %s, which cannot be opened: %s", graph->path, path,
                   strerror(errno));
  } else if (fseeko(file, (off_t)(tensor->offset + first * (int64_t)width), SEEK_SET) != 0) {
    code = pl_fail(error, PL_BAD_INPUT, "%s: no byte %" PRId64, path, tensor->offset);
  }
  uint8_t element[8];
  for (int64_t i = 0; code == PL_OK && i < n; i++) {
    if (fread(element, 1, width, file) != width)
      code = pl_fail(error, PL_BAD_INPUT, "%s: ends in the middle of tensor '%s'", path, tensor->name);
    else
      values[i] = element_of(tensor->type, element);
  }
  if (file != NULL) fclose(file);
  free(path);
  return code;
}

pl_code pl_onnx_tensor_read(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor, int64_t first, int64_t n,
                            double *values, pl_error *error) {
  size_t width = bytes_of(tensor->type);
  if (width == 0)
    return pl_fail(error, PL_UNSUPPORTED, "%s: tensor '%s' has elements of ONNX type %d, which have no value here",
                   graph->path, tensor->name, tensor->type);
  PL_ASSERT(first >= 0 && n >= 0 && first <= tensor->n - n);
  if (n == 0) return PL_OK;
  if (tensor->location != NULL) return read_external(graph, tensor, first, n, values, error);
  if (tensor->field != 9)
    return tensor->field == 0 ? too_few(graph, tensor, error) : read_packed(graph, tensor, first, n, values, error);
  if (tensor->size / width < (uint64_t)(first + n)) return too_few(graph, tensor, error);
  for (int64_t i = 0; i < n; i++)
    values[i] = element_of(tensor->type, tensor->data + (size_t)(first + i) * width);
  return PL_OK;
}
