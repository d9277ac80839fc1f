# One translation unit per instruction set, compiled for it and never entered without asking the
# processor first. Always optimised: an inline function of the standard library left uninlined in
# such a unit could be merged with the baseline's copy.
if(ROPEWALK_ISA STREQUAL "all" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(folder ${PROJECT_SOURCE_DIR}/src/rotate/cpu)
  target_sources(ropewalk PRIVATE ${folder}/kernel_avx2.cpp ${folder}/kernel_avx512.cpp
    ${folder}/kernel_avx512bf16.cpp)
  # GCC 12 warns about its own intrinsics: of a register left undefined on purpose (bug 105593), and
  # of vector types as template arguments.
  set(quiet $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-ignored-attributes>)
  set(avx512 -mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-mf16c;-mprefer-vector-width=512)
  set_source_files_properties(${folder}/kernel_avx2.cpp TARGET_DIRECTORY ropewalk
    PROPERTIES COMPILE_OPTIONS "-O3;${quiet};-mavx2;-mfma;-mf16c")
  set_source_files_properties(${folder}/kernel_avx512.cpp TARGET_DIRECTORY ropewalk
    PROPERTIES COMPILE_OPTIONS "-O3;${quiet};${avx512}")
  set_source_files_properties(${folder}/kernel_avx512bf16.cpp TARGET_DIRECTORY ropewalk
    PROPERTIES COMPILE_OPTIONS "-O3;${quiet};${avx512};-mavx512bf16")
  target_compile_definitions(ropewalk PRIVATE ROPEWALK_HAVE_X86_KERNELS)
endif()
