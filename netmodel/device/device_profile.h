/* Device profiles as files: FOLDER/NAME.json, one type of accelerator each (the fields: core/cluster/device_profile.h).
 *
 *   {"name": "A100-SXM4-80GB", "architecture": "ampere", "memory": "80GiB", "reserved": "1.2GiB", "bandwidth":
 * "2039GBps", "peak_flops": {"fp32": "19.5Tf", "fp16": "312Tf", ...}, "efficiency": {"compute": 0.6, "attention": 0.4,
 * "bandwidth": 0.8}, "launch_overhead": "4us", "overlap": {"compute": 0.1, "communication": 0.1}, "provenance":
 * {"memory": "where from", ...}, "ops": [{"kind": "gemm", "pass": "", "dtype": "fp16", "dims": [1, 4096, 4096, 4096],
 * "time": "1.2ms"}]}
 *
 * and, described in netmodel/device/device_kernels.h, "attention" and "kernels", in netmodel/device/gemm_profile.h
 * "gemm", in netmodel/device/device_convolutions.h "convolutions", in netmodel/device/device_programs.h "programs".
 *
 * "reserved" (0), "communicator" (0), "switch_buffers" (0), "provenance", "ops", "attention", "kernels", "gemm",
 * "convolutions" and "programs" may be left out. A key that is not listed is an error: a misspelt efficiency must not
 * silently fall back to a default.
 */
#ifndef PL_NETMODEL_DEVICE_PROFILE_H
#define PL_NETMODEL_DEVICE_PROFILE_H

#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/device_profile.h"

/* Reads a device profile file. Strings live in `arena`. */
pl_code pl_device_profile_load(const char *path, pl_arena *arena, pl_device_profile *profile, pl_error *error);
/* The same from memory; `name` stands for the path in
 * messages. */
pl_code pl_device_profile_parse(const char *name, const char *text, size_t size, pl_arena *arena,
                                pl_device_profile *profile, pl_error *error);

/* Where profiles are looked for, in this order; NULL entries are skipped. */
enum { PL_PROFILE_FOLDERS_MAX = 3 };
typedef struct pl_profile_folders {
  const char *paths[PL_PROFILE_FOLDERS_MAX];
} pl_profile_folders;

/* `chosen` alone if it is not NULL; else "devices" beside `platform_path`, then PACELINE_DEVICES from the environment
 * or, without it, those that come with Paceline (core/system/data_folder.h). */
pl_code pl_profile_folders_take(const char *chosen, const char *platform_path, pl_arena *arena,
                                pl_profile_folders *folders, pl_error *error);

/* Path of the profile of `type`, or NULL. */
const char *pl_profile_folders_find(const pl_profile_folders *folders, const char *type, pl_arena *arena);

/* All types in all folders, sorted; NULL ends them. NULL: no memory. */
const char *const *pl_profile_folders_names(const pl_profile_folders *folders, pl_arena *arena);
/* "A100-SXM4-80GB, V100 ...": all types in all folders, sorted; "none" without any. NULL: no memory. */
const char *pl_profile_folders_list(const pl_profile_folders *folders, pl_arena *arena);

#endif
