# Every option of the build, with its meaning and default.
option(ROPEWALK_BUILD_TOOLS "Build verify/, measure/ and the command line" ${PROJECT_IS_TOP_LEVEL})
option(ROPEWALK_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ROPEWALK_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(ROPEWALK_BUILD_SHARED "Build the shared library beside the static one" ON)
option(ROPEWALK_WARNINGS_AS_ERRORS "Treat warnings as errors (on in CI)" OFF)
set(ROPEWALK_CUDA "AUTO" CACHE STRING "Build the CUDA kernels: AUTO (where nvcc and a GPU are found), ON, OFF")
set_property(CACHE ROPEWALK_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ROPEWALK_TORCH "OFF" CACHE STRING "Build the PyTorch operators: AUTO (where torch is found), ON, OFF")
set_property(CACHE ROPEWALK_TORCH PROPERTY STRINGS AUTO ON OFF)
set(ROPEWALK_PYTHON_DIR "python/ropewalk" CACHE STRING
    "Where the Python package's libraries are installed, below the prefix")
set(ROPEWALK_ISA "all" CACHE STRING "CPU kernels: all that the compiler knows, or scalar alone")
set_property(CACHE ROPEWALK_ISA PROPERTY STRINGS all scalar)
set(ROPEWALK_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(ROPEWALK_CCACHE ccache)
if(ROPEWALK_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ROPEWALK_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ROPEWALK_CCACHE})
endif()

if(ROPEWALK_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${ROPEWALK_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${ROPEWALK_SANITIZE})
endif()

# The results are a promise (docs/numerics.md): products and sums are fused only where the source
# says so, on every compiler.
add_library(ropewalk_flags INTERFACE)
target_compile_options(ropewalk_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow;-ffp-contract=off>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${ROPEWALK_WARNINGS_AS_ERRORS}>>:-Werror>)
