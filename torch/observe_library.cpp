// Observation for the Python package. Each library of the package has the core in itself, and is
// asked by itself (python/ropewalk/observe.py).
#include "ropewalk/observe.h"

#include <string>

#include "python_result.h"
#include "ropewalk/export.h"

using namespace ropewalk;

extern "C" {

/// Appends calls to the file of that name; an empty name: no more. Returns 0, or an error's code.
ROPEWALK_API int ropewalk_python_log_calls(const char* path) {
  return python::keep([&] {
    const std::string name = path;
    set_call_observer(name.empty() ? nullptr : log_calls_to(name));
    return std::string();
  });
}

ROPEWALK_API const char* ropewalk_python_log_problem() { return python::result().c_str(); }

ROPEWALK_API void ropewalk_python_count_calls(int on) { count_calls(on != 0); }

ROPEWALK_API void ropewalk_python_reset_counters() { reset_call_counters(); }

/// The fields of CallCounters, in their order.
ROPEWALK_API void ropewalk_python_counters(unsigned long long counters[5]) {
  const CallCounters c = call_counters();
  counters[0] = c.cpu_calls;
  counters[1] = c.cuda_launches;
  counters[2] = c.tokens;
  counters[3] = c.bytes;
  counters[4] = c.lines_dropped;
}

}  // extern "C"
