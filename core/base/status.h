/* Status codes and the one error message.
 *
 * Every fallible function of the libraries returns a pl_code and takes a `pl_error *` as its last
 * argument. The first failure fills the message; later ones on the way up leave it alone, so the user
 * reads the cause and not its echo. Libraries never print and never exit: commands do, with
 * pl_code_exit_status().
 */
#ifndef PL_CORE_STATUS_H
#define PL_CORE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>

typedef enum pl_code {
  PL_OK = 0,
  PL_BAD_INPUT,   /* what the user gave is wrong: exit status 2 */
  PL_NO_MEMORY,   /* an allocation failed: exit status 1 */
  PL_IO,          /* the operating system refused a read or a write: exit status 1 */
  PL_UNSUPPORTED, /* valid, but beyond what this build or this network can do: exit status 2 */
  PL_DOES_NOT_FIT /* the result is there, and is that memory does not suffice, where --must-fit asks: exit status 3 */
} pl_code;

enum { PL_ERROR_MESSAGE_BYTES = 1024 };

typedef struct pl_error {
  pl_code code;
  char message[PL_ERROR_MESSAGE_BYTES];
} pl_error;

#define PL_ERROR_INIT ((pl_error){.code = PL_OK, .message = {0}})

/* Records `code` and the formatted message unless `error` already holds a failure, and returns the
 * code recorded first. `error` may be NULL: then only the code is returned. Say what was wrong, where
 * (file:line:column where there is one), the offending value, and what to do about it. One line: what cannot be printed
 * (core/base/printable.h) is escaped. */
pl_code pl_fail(pl_error *error, pl_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* PL_NO_MEMORY with a standard message. `what` names the thing that did not fit. */
pl_code pl_fail_memory(pl_error *error, const char *what);

#ifdef __clang_analyzer__
/* The static analyzer looks at one file at a time: tell it that a failure is never PL_OK. */
#define pl_fail(error, code, ...)   ((void)(pl_fail)(error, code, __VA_ARGS__), (code))
#define pl_fail_memory(error, what) ((void)(pl_fail_memory)(error, what), PL_NO_MEMORY)
#endif

/* The exit status of a command that ends with `code`: 0, 1, 2 or 3 as listed at pl_code. */
int pl_code_exit_status(pl_code code);

/* A broken invariant: stays on in every build; keep it out of inner loops (use PL_DEBUG_ASSERT there). */
#define PL_ASSERT(condition) ((condition) ? (void)0 : pl_assert_failed(#condition, __FILE__, __LINE__))
/* Where the program never comes; nothing needs to be returned behind it. */
#define PL_NEVER(what) pl_assert_failed(what, __FILE__, __LINE__)
_Noreturn void pl_assert_failed(const char *condition, const char *file, int line);

#ifdef NDEBUG
#define PL_DEBUG_ASSERT(condition) ((void)0)
#else
#define PL_DEBUG_ASSERT(condition) PL_ASSERT(condition)
#endif

/* Returns from the calling function with the code if `expression` is not PL_OK. */
#define PL_TRY(expression)                                                                                             \
  do {                                                                                                                 \
    pl_code pl_try_code_ = (expression);                                                                               \
    if (pl_try_code_ != PL_OK) return pl_try_code_;                                                                    \
  } while (0)

#endif
