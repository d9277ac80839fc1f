#include "measure/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace ropewalk::measure {
namespace {

double seconds_of(const Task& task, int calls) {
  if (task.prepare) task.prepare();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) task.work();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count() / calls;
}

/// Calls a sample needs to last long enough for the clock.
int calls_per_sample(const Task& task, double sample_seconds) {
  int calls = 1;
  for (;;) {
    const double each = seconds_of(task, calls);
    if (each * calls >= sample_seconds || calls >= task.max_calls) return calls;
    const double wanted = each > 0 ? std::ceil(sample_seconds / each) : 2.0 * calls;
    const double bounded = std::clamp(wanted, 2.0 * calls, 64.0 * calls);
    calls = static_cast<int>(std::min<double>(bounded, task.max_calls));
  }
}

}  // namespace

Timing summarise(std::vector<double> samples, int calls) {
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    const double part = at - static_cast<double>(below);
    return samples[below] * (1 - part) + samples[above] * part;
  };
  Timing timing;
  timing.median = quantile(0.5);
  timing.best = samples.front();
  timing.spread = timing.median > 0 ? (quantile(0.75) - quantile(0.25)) / timing.median : 0;
  timing.samples = static_cast<int>(samples.size());
  timing.calls = calls;
  return timing;
}

std::vector<Timing> time_in_turns(std::span<const Task> tasks, const TimingOptions& options) {
  std::vector<int> calls;
  std::vector<std::vector<double>> samples(tasks.size());
  double round = 0;  // seconds of one sample of every task
  for (const Task& task : tasks) {
    (void)seconds_of(task, 1);
    calls.push_back(calls_per_sample(task, options.sample_seconds));
    round += seconds_of(task, calls.back()) * calls.back();
  }
  const double budget = options.seconds * static_cast<double>(tasks.size());
  const int rounds = static_cast<int>(std::clamp(budget / std::max(round, 1e-9),
                                                 static_cast<double>(options.min_samples),
                                                 static_cast<double>(options.max_samples)));
  for (int i = 0; i < rounds; ++i) {
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      samples[t].push_back(seconds_of(tasks[t], calls[t]));
    }
  }
  std::vector<Timing> timings;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    timings.push_back(summarise(std::move(samples[t]), calls[t]));
  }
  return timings;
}

}  // namespace ropewalk::measure
