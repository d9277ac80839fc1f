# cmake -P: install, then build and run a CMake project (static and shared) and, where pkg-config is
# found, a C program (shared and static). Any failure ends the script.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGV}")
    message(FATAL_ERROR "failed (${status}): ${command}\n${output}")
  endif()
endfunction()

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()
set(prefix ${WORK}/prefix)
set(config ${SOURCE}/configs/llama-3.1-8b.json)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component library --prefix ${prefix})

# What an installation needs must not depend on where it was built.
file(GLOB_RECURSE described ${prefix}/*.cmake ${prefix}/*.pc)
foreach(file IN LISTS described)
  file(READ ${file} text)
  foreach(unwanted ${BUILD} ${SOURCE} ropewalk_flags ropewalk_json ropewalk_fmt)
    string(FIND "${text}" "${unwanted}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} mentions ${unwanted}")
    endif()
  endforeach()
endforeach()

# A moved installation must serve as well.
file(RENAME ${prefix} ${WORK}/moved)
set(prefix ${WORK}/moved)

foreach(shared OFF ${SHARED})
  set(build ${WORK}/consumer-${shared})
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/consumer -B ${build} -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${prefix} -D BUILD_SHARED_LIBS=${shared} -D WITH_CUDA=${CUDA}
    -D EXAMPLES=${SOURCE}/examples
    -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
    -D CMAKE_CXX_FLAGS=${flags} -D CMAKE_C_FLAGS=${flags})
  run(${CMAKE_COMMAND} --build ${build})
  run(${build}/two_views ${config})
  if(CUDA)
    run(${build}/device_list)
  endif()
endforeach()

find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message(STATUS "pkg-config not found: the C program was not built")
  return()
endif()
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR})
function(build_c name)
  execute_process(COMMAND ${PKG_CONFIG} ${ARGN} --cflags --libs ropewalk
    OUTPUT_VARIABLE options OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(options UNIX_COMMAND "${options}")
  run(${C_COMPILER} -std=c11 ${flags} ${SOURCE}/examples/rotate.c -o ${WORK}/${name} ${options} -lm)
  run(${WORK}/${name})
endfunction()
if(SHARED)
  build_c(c_shared)
endif()
# Without the shared library the linker takes the static one.
file(GLOB shared_files ${prefix}/${LIBDIR}/libropewalk.so*)
if(shared_files)
  file(REMOVE ${shared_files})
endif()
build_c(c_static --static)
