/* Job files (see search/trace/job_file.h). Arrays of structs are compound datasets, so that h5py and pandas read them
 * as tables. */
#include "search/trace/job_file.h"

#include <errno.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/child.h"
#include "core/system/partial_file.h"
#include "search/hdf5/hdf5_file.h"

typedef enum field_type { I64, U32, I32, U8 } field_type;

typedef struct array_field {
  const char *name;
  size_t offset;
  field_type type;
} array_field;

enum { MOST_FIELDS = 12, BLOCK = 1 << 13 };

/* Ops and edges as HDF5 has them; in memory they are packed. */
typedef struct filed_op {
  int64_t start_ns, duration_ns;
  uint32_t name, stream, message, step;
  uint8_t kind;
} filed_op;

typedef struct filed_edge {
  uint32_t before, after;
  uint8_t from_start;
} filed_edge;

/* An array of the trace: where it stands in pl_trace, and what its elements are. */
typedef struct array_table {
  const char *name;
  size_t array, count;                                       /* offsets of the pointer and of the number */
  size_t size;                                               /* of an element */
  size_t filed;                                              /* of an element as HDF5 has it */
  void (*unpack)(const void *values, void *filed, size_t n); /* NULL: the same in memory */
  bool (*pack)(const void *filed, void *values, size_t n);   /* false: a number is too large */
  array_field fields[MOST_FIELDS + 1];
} array_table;

static void unpack_ops(const void *values, void *filed, size_t n) {
  const pl_trace_op *ops = values;
  filed_op *out = filed;
  for (size_t k = 0; k < n; k++)
    out[k] = (filed_op){ops[k].start_ns, ops[k].duration_ns, ops[k].name,         ops[k].stream,
                        ops[k].message,  ops[k].step,        (uint8_t)ops[k].kind};
}

static bool pack_ops(const void *filed, void *values, size_t n) {
  const filed_op *in = filed;
  pl_trace_op *ops = values;
  bool good = true;
  for (size_t k = 0; k < n; k++) {
    good = good && in[k].kind < PL_TRACE_OP_KIND_COUNT && in[k].name <= PL_TRACE_MOST_NAMES;
    ops[k] = pl_trace_op_of(in[k].start_ns, in[k].duration_ns, in[k].name, in[k].stream, in[k].message, in[k].step,
                            (pl_trace_op_kind)in[k].kind);
  }
  return good;
}

static void unpack_edges(const void *values, void *filed, size_t n) {
  const pl_trace_edge *edges = values;
  filed_edge *out = filed;
  for (size_t k = 0; k < n; k++)
    out[k] = (filed_edge){edges[k].before, edges[k].after, edges[k].from_start};
}

static bool pack_edges(const void *filed, void *values, size_t n) {
  const filed_edge *in = filed;
  pl_trace_edge *edges = values;
  bool good = true;
  for (size_t k = 0; k < n; k++) {
    good = good && in[k].after <= INT32_MAX && in[k].from_start <= 1;
    edges[k] = (pl_trace_edge){in[k].before, in[k].after & INT32_MAX, in[k].from_start != 0};
  }
  return good;
}

#define TABLE(array, type)                                                                                             \
#array, offsetof(pl_trace, array), offsetof(pl_trace, n_##array), sizeof(type), sizeof(type), NULL, NULL
#define PACKED(array, type, filed, unpack, pack)                                                                       \
#array, offsetof(pl_trace, array), offsetof(pl_trace, n_##array), sizeof(type), sizeof(filed), unpack, pack
#define FIELD(type, name, kind)                                                                                        \
  { #name, offsetof(type, name), kind }

static const array_table tables[] = {
    {PACKED(ops, pl_trace_op, filed_op, unpack_ops, pack_ops),
     {FIELD(filed_op, start_ns, I64), FIELD(filed_op, duration_ns, I64), FIELD(filed_op, name, U32),
      FIELD(filed_op, stream, U32), FIELD(filed_op, message, U32), FIELD(filed_op, step, U32),
      FIELD(filed_op, kind, U8)}},
    {PACKED(edges, pl_trace_edge, filed_edge, unpack_edges, pack_edges),
     {FIELD(filed_edge, before, U32), FIELD(filed_edge, after, U32), FIELD(filed_edge, from_start, U8)}},
    {TABLE(streams, pl_trace_stream),
     {FIELD(pl_trace_stream, rank, U32), FIELD(pl_trace_stream, name, U32), FIELD(pl_trace_stream, kind, U8)}},
    {TABLE(messages, pl_trace_message),
     {FIELD(pl_trace_message, kind, U8), FIELD(pl_trace_message, group, U32), FIELD(pl_trace_message, peer, I32),
      FIELD(pl_trace_message, tag, U32), FIELD(pl_trace_message, sequence, I64),
      FIELD(pl_trace_message, size_bytes, I64)}},
    {TABLE(groups, pl_trace_group),
     {FIELD(pl_trace_group, name, U32), FIELD(pl_trace_group, first_member, U32),
      FIELD(pl_trace_group, n_members, U32)}},
    {TABLE(steps, pl_trace_step),
     {FIELD(pl_trace_step, rank, U32), FIELD(pl_trace_step, number, I64), FIELD(pl_trace_step, start_ns, I64),
      FIELD(pl_trace_step, duration_ns, I64)}},
    {TABLE(ranks, pl_trace_rank),
     {FIELD(pl_trace_rank, number, I64), FIELD(pl_trace_rank, epoch_ns, I64), FIELD(pl_trace_rank, host, U32),
      FIELD(pl_trace_rank, file, U32), FIELD(pl_trace_rank, first_op, U32), FIELD(pl_trace_rank, n_ops, U32),
      FIELD(pl_trace_rank, first_step, U32), FIELD(pl_trace_rank, n_steps, U32),
      FIELD(pl_trace_rank, world_size, I64)}},
    {TABLE(members, int64_t), {{"rank", 0, I64}}},
    {TABLE(notes, uint32_t), {{"name", 0, U32}}},
    {TABLE(blocks, pl_trace_block),
     {FIELD(pl_trace_block, taken_ns, I64), FIELD(pl_trace_block, freed_ns, I64),
      FIELD(pl_trace_block, taken_stream, U32), FIELD(pl_trace_block, freed_stream, U32),
      FIELD(pl_trace_block, size_bytes, I64)}},
};

enum { N_TABLES = sizeof tables / sizeof *tables };

static hid_t native(field_type type) {
  return type == I64   ? H5T_NATIVE_INT64
         : type == U32 ? H5T_NATIVE_UINT32
         : type == I32 ? H5T_NATIVE_INT32
                       : H5T_NATIVE_UINT8;
}

static size_t width(field_type type) {
  return type == I64 ? 8 : type == U8 ? 1 : 4;
}

/* The element in memory, or packed in the file. */
static hid_t element_type(const array_table *table, bool packed) {
  size_t size = 0;
  for (const array_field *f = table->fields; f->name != NULL; f++)
    size += width(f->type);
  hid_t type = H5Tcreate(H5T_COMPOUND, packed ? size : table->filed);
  size = 0;
  for (const array_field *f = table->fields; f->name != NULL; f++) {
    if (H5Tinsert(type, f->name, packed ? size : f->offset, native(f->type)) < 0) return -1;
    size += width(f->type);
  }
  return type;
}

/* ---- storing ---- */

/* Elements [first, first + n) of the dataset and `filed`, which has only these. */
static bool move_block(hid_t dataset, hid_t type, hsize_t first, hsize_t n, void *filed, bool writes) {
  hid_t all = H5Dget_space(dataset), some = H5Screate_simple(1, &n, NULL);
  bool good = all >= 0 && some >= 0 && H5Sselect_hyperslab(all, H5S_SELECT_SET, &first, NULL, &n, NULL) >= 0 &&
              (writes ? H5Dwrite(dataset, type, some, all, H5P_DEFAULT, filed)
                      : H5Dread(dataset, type, some, all, H5P_DEFAULT, filed)) >= 0;
  if (all >= 0) H5Sclose(all);
  if (some >= 0) H5Sclose(some);
  return good;
}

/* Between the dataset and `values`, block by block. */
static bool move_packed(hid_t dataset, hid_t type, const array_table *table, hsize_t n, void *values, bool writes) {
  void *filed = calloc(BLOCK, table->filed); /* what lies between fields is written by nobody */
  bool good = filed != NULL;
  for (hsize_t first = 0; good && first < n; first += BLOCK) {
    hsize_t some = n - first < BLOCK ? n - first : BLOCK;
    char *at = (char *)values + first * table->size;
    if (writes) table->unpack(at, filed, some);
    good = move_block(dataset, type, first, some, filed, writes) && (writes || table->pack(filed, at, some));
  }
  free(filed);
  return good;
}

static bool put(hid_t file, const char *name, hid_t file_type, hid_t memory_type, hsize_t n, const void *values,
                const array_table *packed) {
  static const char nothing = '\0';
  hid_t space = H5Screate_simple(1, &n, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(plist, false); /* equal traces, equal bytes */
  hid_t dataset = H5Dcreate2(file, name, file_type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  bool good = dataset >= 0;
  if (good && n > 0 && packed != NULL && packed->unpack != NULL)
    good = move_packed(dataset, memory_type, packed, n, (void *)values, true);
  else if (good && n > 0)
    good = H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values != NULL ? values : &nothing) >= 0;
  if (dataset >= 0) good = H5Dclose(dataset) >= 0 && good;
  H5Pclose(plist);
  H5Sclose(space);
  return good;
}

static bool put_table(hid_t file, const array_table *table, const pl_trace *trace) {
  const void *values;
  uint32_t n;
  memcpy(&values, (const char *)trace + table->array, sizeof values);
  memcpy(&n, (const char *)trace + table->count, sizeof n);
  hid_t memory = element_type(table, false), packed = element_type(table, true);
  bool good = memory >= 0 && packed >= 0 && put(file, table->name, packed, memory, n, values, table);
  H5Tclose(memory);
  H5Tclose(packed);
  return good;
}

/* All names behind one another, each with its NUL. */
static bool put_names(hid_t file, const pl_trace *trace) {
  size_t size = 0, at = 0;
  for (uint32_t k = 0; k < trace->n_names; k++)
    size += strlen(trace->names[k]) + 1;
  char *block = malloc(size + 1);
  if (block == NULL) return false;
  for (uint32_t k = 0; k < trace->n_names; k++) {
    size_t length = strlen(trace->names[k]) + 1;
    memcpy(block + at, trace->names[k], length);
    at += length;
  }
  bool good = put(file, "names", H5T_STD_U8LE, H5T_NATIVE_UINT8, size, block, NULL);
  free(block);
  return good;
}

static pl_code fill(const char *name, const char *path, const pl_trace *trace, pl_error *error) {
  pl_hdf5_quiet();
  hid_t file = pl_hdf5_create(name);
  if (file < 0) return pl_hdf5_fail(path, "cannot be created", PL_IO, error);
  const int version = PL_JOB_FILE_VERSION;
  bool good = H5LTset_attribute_int(file, "/", "paceline_job", &version, 1) >= 0 && put_names(file, trace);
  for (uint32_t t = 0; good && t < N_TABLES; t++)
    good = put_table(file, &tables[t], trace);
  pl_code code = good ? PL_OK : pl_hdf5_fail(path, "cannot be written", PL_IO, error);
  if (H5Fclose(file) < 0 && code == PL_OK) code = pl_hdf5_fail(path, "cannot be written", PL_IO, error);
  return code;
}

pl_code pl_job_file_store(const char *path, bool force, const pl_trace *trace, pl_error *error) {
  pl_partial_file partial;
  int failed = pl_partial_open(&partial, path);
  if (failed == ENOMEM) return pl_fail_memory(error, "the file of a job");
  if (failed != 0) return pl_fail(error, PL_BAD_INPUT, "%s: cannot be created: %s", path, strerror(failed));
  pl_code code = fill(partial.name, path, trace, error);
  if (code == PL_OK) failed = pl_partial_publish(&partial, path, force);
  pl_partial_remove(&partial);
  if (failed == EEXIST) return pl_fail(error, PL_BAD_INPUT, "%s exists; --force replaces it", path);
  return failed != 0 ? pl_fail(error, PL_IO, "%s: cannot be created: %s", path, strerror(failed)) : code;
}

/* ---- loading ---- */

static pl_code damaged(const char *path, const char *what, pl_error *error) {
  return pl_fail(error, PL_BAD_INPUT, "%s: is no job file, or a damaged one: %s", path, what);
}

/* The whole dataset in memory of its own; *n elements of `size` bytes. */
static pl_code get(const char *path, hid_t file, const char *name, hid_t type, size_t size, const array_table *packed,
                   void **values, uint32_t *n, pl_error *error) {
  hsize_t count = 0;
  *values = NULL;
  hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  if (dataset < 0) return damaged(path, name, error);
  hid_t space = H5Dget_space(dataset);
  bool good = H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &count, NULL) >= 0 &&
              count < UINT32_MAX / 4;
  H5Sclose(space);
  pl_code code = good ? PL_OK : damaged(path, name, error);
  if (code == PL_OK) {
    *values = calloc((size_t)count + 1, size);
    if (*values == NULL) code = pl_fail_memory(error, path);
  }
  if (code == PL_OK && count > 0) {
    bool read = packed != NULL && packed->pack != NULL
                    ? move_packed(dataset, type, packed, count, *values, false)
                    : H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *values) >= 0;
    if (!read) code = damaged(path, name, error);
  }
  H5Dclose(dataset);
  *n = (uint32_t)count;
  return code;
}

static pl_code get_table(const char *path, hid_t file, const array_table *table, pl_trace *trace, pl_error *error) {
  void *values;
  uint32_t n;
  hid_t type = element_type(table, false);
  pl_code code = get(path, file, table->name, type, table->size, table, &values, &n, error);
  H5Tclose(type);
  if (code != PL_OK) {
    free(values);
    return code;
  }
  memcpy((char *)trace + table->array, &values, sizeof values);
  memcpy((char *)trace + table->count, &n, sizeof n);
  return PL_OK;
}

static pl_code get_names(const char *path, hid_t file, pl_trace *trace, pl_error *error) {
  void *block;
  uint32_t size;
  pl_code code = get(path, file, "names", H5T_NATIVE_UINT8, 1, NULL, &block, &size, error);
  const char *at = block;
  while (code == PL_OK && size > 0) {
    const char *end = memchr(at, '\0', size);
    if (end == NULL) {
      code = damaged(path, "names", error);
      break;
    }
    uint32_t before = trace->n_names;
    uint32_t name = pl_trace_name(trace, at, (size_t)(end - at));
    if (name == PL_NONE) code = pl_fail_memory(error, path);
    if (code == PL_OK && name != before) code = damaged(path, "a name is there twice", error);
    size -= (uint32_t)(end - at) + 1;
    at = end + 1;
  }
  free(block);
  return code;
}

static pl_code get_all(const char *path, hid_t file, pl_trace *trace, pl_error *error) {
  int version = 0;
  if (H5LTget_attribute_int(file, "/", "paceline_job", &version) < 0)
    return damaged(path, "it does not say paceline_job; paceline trace import makes one", error);
  if (version != PL_JOB_FILE_VERSION)
    return pl_fail(error, PL_BAD_INPUT, "%s: is a job file of version %d; %d is known: import the traces again", path,
                   version, PL_JOB_FILE_VERSION);
  PL_TRY(get_names(path, file, trace, error));
  for (uint32_t t = 0; t < N_TABLES; t++)
    PL_TRY(get_table(path, file, &tables[t], trace, error));
  if (trace->n_ranks == 0 || !pl_trace_is_valid(trace)) return damaged(path, "its parts do not fit together", error);
  return PL_OK;
}

pl_code pl_job_file_load(const char *path, pl_trace *trace, pl_error *error) {
  pl_hdf5_quiet();
  if (access(path, R_OK) != 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  if (H5Fis_hdf5(path) <= 0) return pl_fail(error, PL_BAD_INPUT, "%s: is no job file (HDF5)", path);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return pl_hdf5_fail(path, "cannot be opened", PL_BAD_INPUT, error);
  pl_code code = get_all(path, file, trace, error);
  H5Fclose(file);
  return code;
}

static pl_code try_load(void *path, FILE *out, FILE *notes, pl_error *error) {
  pl_trace trace;
  (void)out;
  (void)notes;
  pl_trace_init(&trace);
  pl_code code = pl_job_file_load(path, &trace, error);
  pl_trace_release(&trace);
  return code;
}

pl_code pl_job_file_open(const char *path, pl_trace *trace, pl_error *error) {
  char *copy = strdup(path);
  if (copy == NULL) return pl_fail_memory(error, "a path");
  const pl_child child = {.path = path, .kind = "HDF5", .work = try_load, .context = copy};
  pl_code code = pl_child_run(&child, stdout, stderr, error);
  free(copy);
  return code == PL_OK ? pl_job_file_load(path, trace, error) : code;
}
