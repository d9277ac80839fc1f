#include "measure/check.h"

#include <fmt/format.h>

#include <cstring>
#include <set>
#include <utility>

#include "verify/host_tensor.h"

namespace ropewalk::measure {
namespace {

constexpr std::int64_t kOracleTokens = 12;

/// First, last, and a spread with an odd step between.
std::set<std::int64_t> sampled_tokens(std::int64_t tokens) {
  std::set<std::int64_t> sample{0, tokens - 1};
  for (std::int64_t i = 1; i < kOracleTokens; ++i) sample.insert((i * tokens / kOracleTokens) | 1);
  while (*sample.rbegin() >= tokens) sample.erase(std::prev(sample.end()));
  return sample;
}

template <class View>
View token_of(View view, std::int64_t batch, std::int64_t token) {
  const auto* data = static_cast<const std::byte*>(view.data);
  const std::int64_t offset = batch * view.stride[kBatch] + token * view.stride[kToken];
  view.data =
      const_cast<std::byte*>(data + offset * static_cast<std::int64_t>(size_of(view.dtype)));
  view.size[kBatch] = 1;
  view.size[kToken] = 1;
  return view;
}

void judge_by_oracle(const Case& c, const Workload& workload, verify::Comparison& found) {
  for (const std::int64_t token : sampled_tokens(c.tokens)) {
    const std::int64_t batch = token % c.batch;
    for (std::size_t i = 0; i < workload.rotations().size(); ++i) {
      const verify::Expectation expected =
          verify::expect(c.plan.spec(), workload.position_of(token), c.direction,
                         token_of(workload.originals()[i], batch, token));
      const ConstTensorView out = token_of(workload.rotations()[i].out, batch, token);
      verify::Comparison one = verify::compare(expected, out);
      if (!one.pass()) one.detail = fmt::format("token {}: {}", token, one.detail);
      found.merge(one);
    }
  }
}

}  // namespace

verify::Comparison check(const Case& c, const Workload& workload,
                         const std::function<void()>& rotate) {
  verify::Comparison found;
  workload.reset();
  if (rotate) {
    rotate();
  } else {
    workload.rotate();
  }
  judge_by_oracle(c, workload, found);

  std::vector<verify::HostTensor> results;
  for (const Rotation& rotation : workload.rotations()) {
    results.emplace_back(c.dtype, rotation.out.size);
    verify::copy_elements(rotation.out, results.back());
  }
  workload.reset();
  workload.rotate("scalar");
  for (std::size_t i = 0; i < results.size(); ++i) {
    verify::Comparison bits = verify::compare_bits(workload.rotations()[i].out, results[i]);
    if (bits.pass()) continue;
    bits.detail = fmt::format("differs from the scalar kernel: {}", bits.detail);
    found.merge(bits);
  }
  workload.reset();
  return found;
}

}  // namespace ropewalk::measure
