# The CUDA kernels. AUTO builds them where nvcc and a GPU are found, for that GPU alone; otherwise the
# build is CPU-only and says why. ON builds them for every card since compute capability 7.5; older
# ones are refused at run time, by name.
set(ROPEWALK_HAVE_CUDA OFF)
set(ROPEWALK_NO_CUDA "")  # why not, for people who ask the command line for a GPU
if(ROPEWALK_CUDA STREQUAL "OFF")
  set(ROPEWALK_NO_CUDA "it was built with ROPEWALK_CUDA=OFF")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(ROPEWALK_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ROPEWALK_CUDA=ON: nvcc was not found; set CMAKE_CUDA_COMPILER")
  endif()
  message(STATUS "nvcc not found: building for the CPU alone")
  set(ROPEWALK_NO_CUDA "nvcc was not found when it was built")
  return()
endif()
if(ROPEWALK_CUDA STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl)
  message(STATUS "nvcc found, but no GPU: building for the CPU alone (ROPEWALK_CUDA=ON builds the kernels)")
  set(ROPEWALK_NO_CUDA "there was no GPU when it was built")
  return()
endif()

if(ROPEWALK_CUDA STREQUAL "AUTO")
  set(architectures native)
else()
  set(architectures "75-real;80-real;86-real;89-real;90-real;100-real;120-real;120-virtual")
endif()
set(ROPEWALK_CUDA_ARCHITECTURES ${architectures}
  CACHE STRING "Machine code for these compute capabilities, PTX for the newest")
set(CMAKE_CUDA_ARCHITECTURES ${ROPEWALK_CUDA_ARCHITECTURES})
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 knows no newer nvcc's
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(ROPEWALK_HAVE_CUDA ON)

# Products and sums are fused only where the source says so, as on the CPU.
add_library(ropewalk_cuda_flags INTERFACE)
target_compile_options(ropewalk_cuda_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xptxas=--warn-on-spills;-diag-suppress=20208,128>)
option(ROPEWALK_CUDA_REPORT "Have the assembler describe each kernel, for tools/cuda_report.py" OFF)
if(ROPEWALK_CUDA_REPORT)
  target_compile_options(ropewalk_cuda_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
endif()
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  target_compile_options(ropewalk_cuda_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-compress-mode=size>)
endif()
