# The headers and libraries of the PyTorch that ${ROPEWALK_PYTHON} would import, found by package
# specification: importing torch, or find_package(Torch), would drag in its CUDA probing.
#   torch_stable       headers of the stable ABI and the libraries that any build of torch has
#   TORCH_ROOT         the package's folder, also the target's property ROPEWALK_TORCH_ROOT
set(ROPEWALK_PYTHON "" CACHE FILEPATH "Python whose PyTorch the operators are built against")
if(NOT ROPEWALK_PYTHON)
  if(Python_EXECUTABLE)
    set(ROPEWALK_PYTHON ${Python_EXECUTABLE})
  else()
    find_program(ROPEWALK_PYTHON3 python3 REQUIRED)
    set(ROPEWALK_PYTHON ${ROPEWALK_PYTHON3})
  endif()
endif()
execute_process(
  COMMAND ${ROPEWALK_PYTHON} -c
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
  OUTPUT_VARIABLE TORCH_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT EXISTS "${TORCH_ROOT}/include/torch/csrc/stable/library.h")
  set(TORCH_ROOT "")
  return()
endif()

add_library(torch_stable INTERFACE)
set_target_properties(torch_stable PROPERTIES ROPEWALK_TORCH_ROOT ${TORCH_ROOT})
# Last in the search: the folder also holds torch's own copy of fmt, which refuses this use.
target_compile_options(torch_stable INTERFACE "SHELL:-idirafter ${TORCH_ROOT}/include")
# 2.10 is 0x020a (0x0210 would be 2.16): newer entry points stay out, so the library loads there.
target_compile_definitions(torch_stable INTERFACE TORCH_TARGET_VERSION=0x020a000000000000)
# The umbrella libtorch.so must stay a dependency although no symbol comes from it: in a CUDA build
# of torch it is what leads to libtorch_cuda.so.
target_link_libraries(torch_stable INTERFACE
  -Wl,--push-state,--no-as-needed ${TORCH_ROOT}/lib/libtorch.so ${TORCH_ROOT}/lib/libtorch_cpu.so
  ${TORCH_ROOT}/lib/libc10.so -Wl,--pop-state)
