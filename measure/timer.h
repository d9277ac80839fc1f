// Wall-clock timing of host work.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace ropewalk::measure {

/// Seconds of one call.
struct Timing {
  double median = 0;
  double best = 0;
  double spread = 0;  ///< distance of the quartiles divided by the median
  int samples = 0;    ///< each the mean of `calls` calls
  int calls = 1;
};

struct TimingOptions {
  double seconds = 0.25;          ///< to spend on each task, about
  double sample_seconds = 50e-6;  ///< shorter work is called several times a sample
  int min_samples = 7;
  int max_samples = 2000;
};

/// Work to time. `prepare` runs before each sample and is not timed.
struct Task {
  std::function<void()> work;
  std::function<void()> prepare = {};
  int max_calls = 1 << 20;  ///< of work after one prepare
};

/// Times the tasks in turns, one sample of each after the other, so that what else happens on the
/// machine meets all of them alike. Each task is called once before, untimed. The number of
/// samples adapts to the duration of the work.
[[nodiscard]] std::vector<Timing> time_in_turns(std::span<const Task> tasks,
                                                const TimingOptions& options = {});

/// Statistics of samples in seconds per call; `samples` must not be empty.
[[nodiscard]] Timing summarise(std::vector<double> samples, int calls);

}  // namespace ropewalk::measure
