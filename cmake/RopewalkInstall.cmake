# find_package(ropewalk) and pkg-config for people who install.
include(CMakePackageConfigHelpers)

set(ROPEWALK_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ropewalk)
set(ropewalk_installed ropewalk)
if(ROPEWALK_BUILD_SHARED)
  list(APPEND ropewalk_installed ropewalk_shared)
endif()

# Everything here is of the component "library", which can be installed without the tools.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
install(TARGETS ${ropewalk_installed} EXPORT ropewalkTargets)
install(DIRECTORY include/ropewalk DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ropewalkTargets NAMESPACE ropewalk:: DESTINATION ${ROPEWALK_PACKAGE_DIR})
if(ROPEWALK_HAVE_CUDA)  # apart, so that only those who ask for it need a CUDA toolkit
  install(TARGETS ropewalk_cuda EXPORT ropewalkCudaTargets)
  install(EXPORT ropewalkCudaTargets NAMESPACE ropewalk:: DESTINATION ${ROPEWALK_PACKAGE_DIR})
endif()
configure_package_config_file(cmake/ropewalkConfig.cmake.in ropewalkConfig.cmake
  INSTALL_DESTINATION ${ROPEWALK_PACKAGE_DIR})
write_basic_package_version_file(ropewalkConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ropewalkConfig.cmake
              ${PROJECT_BINARY_DIR}/ropewalkConfigVersion.cmake
  DESTINATION ${ROPEWALK_PACKAGE_DIR})

# pkg-config computes the prefix from where the file lies, so that an installation may be moved.
file(RELATIVE_PATH ROPEWALK_PC_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/ropewalk.pc.in ropewalk.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ropewalk.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
