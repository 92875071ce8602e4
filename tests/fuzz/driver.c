/* Runs a fuzz target without libFuzzer, so that every build tests every reader of outside files: all files of a corpus
 * folder, then deterministic mutations of them.
 *
 *   NAME_fuzz CORPUS_FOLDER [MUTATIONS]     the seed comes from PACELINE_SEED and is printed
 *   NAME_fuzz CORPUS_FOLDER MUTATIONS words edits lines and words in place of bytes: what still reads as a language
 *   NAME_fuzz FILE                          one input, to look at a finding (PACELINE_FINDING=FILE keeps the one that
 *                                           broke an invariant)
 *
 * Structure-blind mutation from a good corpus reaches most error paths of these small readers; coverage-guided search
 * (clang, PACELINE_FUZZ=ON) is for digging deeper and feeds what it finds back into the corpus. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE_MAX_BYTES = 1 << 16, DEFAULT_MUTATIONS = 20000 };

typedef struct input {
  uint8_t *bytes;
  size_t size;
} input;

typedef struct corpus {
  input *inputs;
  size_t n;
} corpus;

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t n) {
  return n == 0 ? 0 : (size_t)(next_random(state) % n);
}

static _Noreturn void stop(const char *what, const char *name) {
  fprintf(stderr, "fuzz driver: %s: %s\n", what, name);
  exit(2);
}

static input load(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) stop("cannot open", path);
  input in = {malloc(SIZE_MAX_BYTES), 0};
  if (in.bytes == NULL) stop("no memory for", path);
  in.size = fread(in.bytes, 1, SIZE_MAX_BYTES, file);
  fclose(file);
  return in;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* In the order of their names, whatever the file system and the locale say. */
static corpus load_folder(const char *folder) {
  struct dirent **entries;
  int n = scandir(folder, &entries, NULL, by_name);
  if (n < 0) stop("no corpus folder", folder);
  corpus c = {malloc(((size_t)n + 1) * sizeof *c.inputs), 0};
  if (c.inputs == NULL) stop("no memory for", folder);
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    struct stat status;
    if (entries[i]->d_name[0] != '.' && stat(path, &status) == 0 && S_ISREG(status.st_mode))
      c.inputs[c.n++] = load(path);
    free(entries[i]);
  }
  free(entries);
  if (c.n == 0) stop("empty corpus folder", folder);
  return c;
}

static size_t insert(uint8_t *bytes, size_t size, size_t at, const uint8_t *piece, size_t length) {
  if (length > SIZE_MAX_BYTES - size) length = SIZE_MAX_BYTES - size;
  memmove(bytes + at + length, bytes + at, size - at);
  memcpy(bytes + at, piece, length);
  return size + length;
}

static size_t cut(uint8_t *bytes, size_t size, size_t at, size_t length) {
  if (length > size - at) length = size - at;
  memmove(bytes + at, bytes + at + length, size - at - length);
  return size - length;
}

/* One edit of bytes[0, size): a flipped bit, a byte, a cut, a repeat, a piece of another input, a nasty token. */
static size_t edit(uint8_t *bytes, size_t size, const corpus *c, uint64_t *random) {
  static const char *const tokens[] = {"0",    "-1",   "1e999", "99999999999999999999",
                                       "NaN",  "null", "\"\"",  "{",
                                       "}",    "[",    "]",     ":",
                                       ",",    "\n",   "\t",    "'",
                                       "<",    ">",    "&",     "%",
                                       "\\u0", "=",    "(",     ")",
                                       "--",   "0x1",  ".5e-3", "\xc3\xa9",
                                       "\xff", "*",    "GiB",   "1"};
  uint8_t piece[64];
  size_t at = below(random, size + 1);
  switch (below(random, 6)) {
  case 0:
    if (at < size) bytes[at] ^= (uint8_t)(1u << below(random, 8));
    return size;
  case 1:
    piece[0] = (uint8_t)below(random, 256);
    return insert(bytes, size, at, piece, 1);
  case 2:
    return cut(bytes, size, at, 1 + below(random, 16));
  case 3: {
    size_t length = size - at < sizeof piece ? size - at : sizeof piece;
    length = below(random, length + 1);
    memcpy(piece, bytes + at, length);
    return insert(bytes, size, below(random, size + 1), piece, length);
  }
  case 4: {
    const input *other = &c->inputs[below(random, c->n)];
    size_t from = below(random, other->size + 1), length = below(random, sizeof piece);
    if (length > other->size - from) length = other->size - from;
    return insert(bytes, size, at, other->bytes + from, length);
  }
  default: {
    const char *token = tokens[below(random, sizeof tokens / sizeof tokens[0])];
    return insert(bytes, size, at, (const uint8_t *)token, strlen(token));
  }
  }
}

/* ---- lines and words ---- */

/* A place inside of an input: what is around it is [*from, *from + length). */
static size_t line_at(const uint8_t *bytes, size_t size, size_t at, size_t *from) {
  size_t end = at;
  for (*from = at; *from > 0 && bytes[*from - 1] != '\n';)
    --*from;
  while (end < size && bytes[end] != '\n')
    end++;
  return end + (end < size) - *from;
}

static bool is_of_word(uint8_t byte) {
  return isalnum(byte) || byte == '_' || byte == '.' || byte == '%' || byte == '@';
}

static size_t word_at(const uint8_t *bytes, size_t size, size_t at, size_t *from) {
  size_t end = at;
  for (*from = at; *from > 0 && is_of_word(bytes[*from - 1]);)
    --*from;
  while (end < size && is_of_word(bytes[end]))
    end++;
  return end - *from;
}

/* A line is left out, doubled, or a line of this or another input comes in; a word becomes another, a number another
 * number. */
static size_t edit_words(uint8_t *bytes, size_t size, const corpus *c, uint64_t *random) {
  static const char *const numbers[] = {"0", "1", "2", "3", "4", "8", "16", "-1", "9223372036854775807"};
  uint8_t piece[512];
  const input own = {bytes, size}, *other = below(random, 4) == 0 ? &c->inputs[below(random, c->n)] : &own;
  bool lines = below(random, 2) == 0;
  size_t from, length, taken;
  size_t at = below(random, size + 1), source = below(random, other->size + 1);
  taken =
      lines ? line_at(other->bytes, other->size, source, &source) : word_at(other->bytes, other->size, source, &source);
  if (taken > sizeof piece) taken = sizeof piece;
  memcpy(piece, other->bytes + source, taken);
  if (lines) {
    length = line_at(bytes, size, at, &from);
    return below(random, 2) == 0 ? cut(bytes, size, from, length) : insert(bytes, size, from, piece, taken);
  }
  length = word_at(bytes, size, at, &from);
  if (length > 0 && isdigit(bytes[from]) && below(random, 2) == 0) {
    const char *number = numbers[below(random, sizeof numbers / sizeof numbers[0])];
    taken = strlen(number);
    memcpy(piece, number, taken);
  }
  return insert(bytes, cut(bytes, size, from, length), from, piece, taken);
}

/* The input that is being run, for what a crash leaves behind. */
static const uint8_t *running;
static size_t running_size;

static void keep_finding(int signal) {
  const char *path = getenv("PACELINE_FINDING");
  if (path != NULL) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0 && write(file, running, running_size) < 0) _exit(3);
  }
  (void)!write(STDERR_FILENO, "fuzz driver: PACELINE_FINDING=FILE keeps the input of a crash\n", 61);
  _exit(128 + signal);
}

/* A copy of exactly the size, so that AddressSanitizer sees a read past the end. */
static void run(const uint8_t *bytes, size_t size) {
  uint8_t *copy = malloc(size + (size == 0));
  if (copy == NULL) stop("no memory", "input");
  if (size > 0) memcpy(copy, bytes, size);
  running = copy;
  running_size = size;
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

static void run_mutations(const corpus *c, long mutations, uint64_t seed, bool words) {
  uint8_t *bytes = malloc(SIZE_MAX_BYTES);
  if (bytes == NULL) stop("no memory", "mutations");
  for (long i = 0; i < mutations; i++) {
    uint64_t random = seed + (uint64_t)i; /* each can be repeated on its own */
    const input *start = &c->inputs[below(&random, c->n)];
    size_t size = start->size;
    memcpy(bytes, start->bytes, size);
    for (size_t edits = 1 + below(&random, 6); edits > 0; edits--)
      size = words ? edit_words(bytes, size, c, &random) : edit(bytes, size, c, &random);
    run(bytes, size);
  }
  free(bytes);
}

int main(int argc, char **argv) {
  signal(SIGABRT, keep_finding);
  if (argc < 2) stop("usage", "NAME_fuzz CORPUS_FOLDER|FILE [MUTATIONS]");
  struct stat status;
  if (stat(argv[1], &status) == 0 && S_ISREG(status.st_mode)) {
    input in = load(argv[1]);
    run(in.bytes, in.size);
    free(in.bytes);
    return 0;
  }
  const char *given = getenv("PACELINE_SEED");
  uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 20240607u;
  long mutations = argc > 2 ? strtol(argv[2], NULL, 10) : DEFAULT_MUTATIONS;
  corpus c = load_folder(argv[1]);
  printf("%zu inputs, %ld mutations, PACELINE_SEED=%llu\n", c.n, mutations, (unsigned long long)seed);
  fflush(stdout);
  for (size_t i = 0; i < c.n; i++)
    run(c.inputs[i].bytes, c.inputs[i].size);
  run_mutations(&c, mutations, seed, argc > 3 && strcmp(argv[3], "words") == 0);
  for (size_t i = 0; i < c.n; i++)
    free(c.inputs[i].bytes);
  free(c.inputs);
  return 0;
}
