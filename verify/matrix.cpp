#include "verify/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>

#include "verify/compare.h"

namespace ropewalk::verify {
namespace {

constexpr std::int64_t kQueryHeads = 3;
constexpr std::int64_t kKeyHeads = 1;

/// Everything of a case that does not depend on the kernel.
struct Prepared {
  PositionSet set;
  RotaryPlan plan;
  Placement input;
  Placement output;  ///< used out of place
  Expectation q, k;
};

Prepared prepare(const MatrixCase& c) {
  Random random(c.seed);
  const std::int64_t max_batch = c.layout == Layout::thd ? 1 : 3;
  PositionSet set = make_positions(c.positions, c.dtype, random, max_batch);
  const RotaryPlan plan = plan_of(c, set.axes);
  const QkShape shape{set.batch, set.tokens, kQueryHeads, kKeyHeads, plan.head_dim()};
  Placement input = place(c.layout, c.dtype, shape);
  Placement output = place(c.layout, c.dtype, shape);
  random.fill(input.q, c.values);
  random.fill(input.k, c.values);
  Expectation q = expect(plan.spec(), set.positions, c.direction, input.q);
  Expectation k = expect(plan.spec(), set.positions, c.direction, input.k);
  return {std::move(set), plan, std::move(input), std::move(output), std::move(q), std::move(k)};
}

void judge(CaseRecord& record, const Prepared& p, const Placement& written,
           const std::vector<std::vector<std::byte>>& before) {
  Comparison found = compare(p.q, written.q);
  found.merge(compare(p.k, written.k));
  record.elements = found.elements;
  record.computed = found.computed;
  record.correctly_rounded = found.correctly_rounded;
  record.worst_ratio = found.worst_ratio;
  record.worst_abs_error = found.worst_abs_error;
  record.correctly_rounded_share = found.correctly_rounded_share();
  record.hash = hash_bits(written.q) * 31 + hash_bits(written.k);
  record.detail = found.detail;
  if (record.detail.empty()) record.detail = written.changed_outside(before);
}

CaseRecord run_kernel(const MatrixCase& c, const Prepared& p, const Backend& backend,
                      const std::string& kernel) {
  CaseRecord record;
  record.kernel = kernel;
  record.test_case = c;
  const auto input_before = p.input.snapshot();
  if (!c.in_place) {
    for (const HostBuffer& buffer : p.output.buffers) buffer.poison();
  }
  const Placement& written = c.in_place ? p.input : p.output;
  const auto before = written.snapshot();
  const std::array rotations{Rotation{p.input.q, written.q}, Rotation{p.input.k, written.k}};
  try {
    backend(p.plan, rotations, p.set.positions, c.direction, kernel);
    judge(record, p, written, before);
    if (record.detail.empty() && !c.in_place && p.input.snapshot() != input_before) {
      record.detail = "the input was changed by an out-of-place rotation";
    }
  } catch (const std::exception& error) {
    record.detail = fmt::format("threw: {}", error.what());
  }
  p.input.restore(input_before);
  record.pass = record.detail.empty();
  return record;
}

}  // namespace

std::vector<CaseRecord> run_case(const MatrixCase& c, const Backend& backend,
                                 std::span<const std::string> kernels) {
  const Prepared prepared = prepare(c);
  std::vector<CaseRecord> records;
  for (const std::string& kernel : kernels) {
    CaseRecord record = run_kernel(c, prepared, backend, kernel);
    if (record.pass && !records.empty() && records.front().pass &&
        record.hash != records.front().hash) {
      record.pass = false;
      record.detail = fmt::format("other bits than kernel {}", records.front().kernel);
    }
    if (!record.pass) record.detail += fmt::format(" [{}, {}]", kernel, to_string(c));
    records.push_back(std::move(record));
  }
  return records;
}

std::vector<CaseRecord> run_cases(std::span<const MatrixCase> cases, const Backend& backend,
                                  std::span<const std::string> kernels, int threads,
                                  const MatrixProgress& progress) {
  std::vector<std::vector<CaseRecord>> records(cases.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::int64_t done = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < cases.size(); i = next++) {
        records[i] = run_case(cases[i], backend, kernels);
        const std::lock_guard lock(mutex);
        ++done;
        if (progress) progress(records[i], done, static_cast<std::int64_t>(cases.size()));
      }
    } catch (...) {
      next = cases.size();
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  std::vector<CaseRecord> all;
  all.reserve(cases.size() * kernels.size());
  for (std::vector<CaseRecord>& of_case : records) {
    std::move(of_case.begin(), of_case.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<CaseRecord> run_matrix(const Backend& backend, const MatrixOptions& options) {
  return run_cases(matrix_cases(options.size, options.seed), backend, options.kernels,
                   options.threads, options.progress);
}

Backend cpu_backend() {
  return [](const RotaryPlan& plan, std::span<const Rotation> rotations, const Positions& positions,
            Direction direction, std::string_view kernel) {
    RotateOptions options;
    options.direction = direction;
    options.kernel = kernel;
    rotate(plan, rotations, positions, options);
  };
}

std::vector<std::string> supported_cpu_kernels() {
  std::vector<std::string> names;
  for (const CpuKernelInfo& kernel : cpu_kernels()) {
    if (kernel.supported) names.emplace_back(kernel.name);
  }
  std::ranges::stable_partition(names, [](const std::string& name) { return name == "scalar"; });
  return names;
}

}  // namespace ropewalk::verify
