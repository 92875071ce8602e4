# Writes OUTPUT, a C file with the identity of a build: a digest of every source of the program under SOURCE_DIR, by its name below
# it, and of the text in SALT_FILE (compilers, flags, libraries). The same sources give the same identity in any folder.
#   cmake -DSOURCE_DIR=... -DSALT_FILE=... -DOUTPUT=... -P core/build_id.cmake
set(patterns "main.c")
foreach(layer core netmodel workloads search validation)
  list(APPEND patterns "${layer}/*/*.c" "${layer}/*/*.h" "${layer}/*/*.cpp")
endforeach()
list(TRANSFORM patterns PREPEND "${SOURCE_DIR}/")
file(GLOB sources RELATIVE "${SOURCE_DIR}" ${patterns})
list(SORT sources)
file(READ "${SALT_FILE}" text)
foreach(source ${sources})
  file(SHA256 "${SOURCE_DIR}/${source}" digest)
  string(APPEND text "${digest} ${source}\n")
endforeach()
string(SHA256 digest "${text}")
string(SUBSTRING "${digest}" 0 16 digest)
file(WRITE "${OUTPUT}" "/* Made by core/build_id.cmake. */\n#include \"core/base/build_id.h\"\n\nconst char *pl_build_id(void) {\n  return \"${digest}\";\n}\n")
