/* Which build of the program this is, where the version alone does not say. */
#ifndef PL_CORE_BUILD_ID_H
#define PL_CORE_BUILD_ID_H

/* 16 hex digits: a digest of all sources, compilers, flags and SimGrid's version (core/build_id.cmake). The same
 * sources built twice, in whatever folder, have the same; any change, be it of a comment, gives another. */
const char *pl_build_id(void);

#endif
