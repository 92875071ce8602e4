# What goes where: cmake --install, cpack, and the same layout in the build folder.
include(GNUInstallDirs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # no tests are built to install or pack the program

# The data that the program looks for in or beside its folder (core/system/data_folder.h), and where they lie in the sources.
set(data_folder ${CMAKE_INSTALL_DATAROOTDIR}/paceline)
set(data platforms models frameworks strategies residuals.json sites.json models.csv report.html torch_runtime.py)
set(data_sources platforms workloads/models workloads/frameworks workloads/strategies workloads/residuals.json workloads/sites.json validation/models.csv search/command/report.html workloads/emit/torch_runtime.py)

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/paceline)
foreach(name source IN ZIP_LISTS data data_sources)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${source} ${CMAKE_BINARY_DIR}/share/paceline/${name} SYMBOLIC)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${source})
    install(DIRECTORY ${source}/ DESTINATION ${data_folder}/${name} FILES_MATCHING PATTERN "*.xml" PATTERN "*.json" PATTERN "*.yaml")
  else()
    install(FILES ${source} DESTINATION ${data_folder})
  endif()
endforeach()

# The module for Python (its program is ../../../bin/paceline from there).
install(FILES search/python/paceline.py search/python/sweep_in_plots.py DESTINATION ${data_folder}/python)

# What a pass of one's own for `paceline optimize` includes.
install(FILES search/optimize/pass_interface.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline)

# The program finds the library of its own, and those that lie where no loader looks (parallel HDF5 on Debian), by itself.
file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/paceline)
set_target_properties(paceline PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}" INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(paceline_simgrid paceline_blas paceline_hdf5 PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS paceline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS paceline_simgrid paceline_blas paceline_hdf5 LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/paceline)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# pkg-config has nothing to link, but says which version there is and where the program and its data are.
file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_DATAROOTDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/.package/paceline.pc.in ${CMAKE_BINARY_DIR}/paceline.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/paceline.pc DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/pkgconfig)

# Completions and man pages, from the options that the program itself lists.
set(texts ${CMAKE_BINARY_DIR}/texts)
if(NOT PACELINE_SANITIZE)
add_custom_command(
  OUTPUT ${texts}/done
  COMMAND bash ${PROJECT_SOURCE_DIR}/.package/texts.sh $<TARGET_FILE:paceline> ${texts}
  DEPENDS paceline .package/texts.sh .package/completion_bash.awk .package/completion_zsh.awk .package/completion_fish.awk
  COMMENT "Man pages and completions")
add_custom_target(paceline_texts ALL DEPENDS ${texts}/done)
# Who builds the program alone (--target paceline) installs it with them all the same; they take a second.
install(CODE "
  set(program \"$<TARGET_FILE:paceline>\")
  if(NOT EXISTS \"${texts}/done\" OR \"\${program}\" IS_NEWER_THAN \"${texts}/done\")
    execute_process(COMMAND bash \"${PROJECT_SOURCE_DIR}/.package/texts.sh\" \"\${program}\" \"${texts}\" RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR \"no man pages and completions: build the program first (cmake --build ${CMAKE_BINARY_DIR}), or look above\")
    endif()
  endif()")
install(DIRECTORY ${texts}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
install(FILES ${texts}/paceline.bash DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions RENAME paceline)
install(FILES ${texts}/_paceline DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions)
install(FILES ${texts}/paceline.fish DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)
endif()

# cpack --config .build/release/CPackConfig.cmake writes paceline_VERSION_ARCHITECTURE.deb.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paceline)
set(CPACK_PACKAGE_CONTACT "The developers of Paceline <paceline@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts how fast a distributed DNN training job runs")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin")
# The library that the program brings along is no package of its own: dpkg-shlibdeps must be told where it is.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
include(CPack)
