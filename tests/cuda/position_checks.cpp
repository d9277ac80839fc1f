// Bad positions, padding, cu_seqlens, empty and expanded tensors: what only the device can check.
#include <cmath>
#include <cstring>

#include "ropewalk/cuda.h"
#include "ropewalk/error.h"
#include "ropewalk/table.h"
#include "tests/cuda/checks.h"
#include "verify/compare.h"
#include "verify/cuda/backend.h"
#include "verify/cuda/device_memory.h"
#include "verify/host_tensor.h"
#include "verify/random.h"

namespace ropewalk::testing {
namespace {

using verify::DeviceBuffer;
using verify::HostTensor;

constexpr std::int64_t kHeads = 3;
constexpr std::int64_t kDim = 64;

struct OnDevice {
  HostTensor host;
  DeviceBuffer memory;
  TensorView view;

  OnDevice(Dtype dtype, std::int64_t tokens, std::uint64_t seed)
      : host(dtype, {1, tokens, kHeads, kDim}),
        memory(static_cast<std::size_t>(tokens * kHeads * kDim) * size_of(dtype)),
        view(bthd(memory.data(), dtype, 1, tokens, kHeads, kDim)) {
    verify::Random(seed).fill(host.view());
    memory.upload(host.view().data, memory.size());
  }
  void fetch() const { memory.download(host.view().data, memory.size()); }
  [[nodiscard]] bool row_is_nan(std::int64_t token) const {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t c = 0; c < kDim; ++c) {
        if (!std::isnan(host.at(0, token, h, c))) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool row_has_nan(std::int64_t token) const {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t c = 0; c < kDim; ++c) {
        if (std::isnan(host.at(0, token, h, c))) return true;
      }
    }
    return false;
  }
};

/// Rotates in place and compares which rows are NaN with which should be.
template <class Plan, class Position>
void expect_bad(Report& report, const Plan& plan, Dtype dtype,
                const std::vector<Position>& positions, const std::vector<bool>& bad,
                const std::string& policy, const std::string& what) {
  const auto tokens = static_cast<std::int64_t>(positions.size());
  const OnDevice data(dtype, tokens, 7);
  const DeviceBuffer there(positions.size() * sizeof(Position));
  there.upload(positions.data(), there.size());
  plan.reset_bad_rows();
  const std::array rotations{Rotation::in_place(data.view)};
  cuda::rotate(plan, rotations,
               Positions::from_tokens(std::span(there.as<const Position>(), positions.size())),
               nullptr, {.policy = policy});
  std::uint64_t expected = 0;
  const std::uint64_t counted = plan.bad_rows();
  data.fetch();
  for (std::int64_t t = 0; t < tokens; ++t) {
    const bool is_bad = bad[static_cast<std::size_t>(t)];
    expected += is_bad ? kHeads : 0;
    report.check(is_bad ? data.row_is_nan(t) : !data.row_has_nan(t),
                 fmt::format("{} {} {}: row at position {}", what, name_of(dtype), policy,
                             positions[static_cast<std::size_t>(t)]));
  }
  report.check(counted == expected, fmt::format("{} {} {}: {} bad rows counted, {} expected", what,
                                                name_of(dtype), policy, counted, expected));
}

void check_limits(Report& report) {
  const cuda::DevicePlan plan(make_plan(kDim));
  constexpr std::int64_t k36 = std::int64_t{1} << 36;
  constexpr std::int64_t k53 = std::int64_t{1} << 53;
  const std::vector<std::int64_t> positions{0,
                                            -(std::int64_t{1} << 31),
                                            std::int64_t{1} << 35,
                                            k36,
                                            k36 - 1,
                                            -k36,
                                            1 - k36,
                                            INT64_MAX,
                                            INT64_MIN,
                                            k53};
  for (const std::string policy : {"", "narrow", "sweep-2x1-128"}) {
    expect_bad(report, plan, Dtype::bfloat16, positions,
               {false, false, false, true, false, true, false, true, true, true}, policy, "limits");
    expect_bad(report, plan, Dtype::float64, std::vector<std::int64_t>{0, k36, k53, -k53, k53 - 1},
               {false, false, true, true, false}, policy == "sweep-2x1-128" ? "" : policy,
               "limits");
  }
  expect_bad(report, plan, Dtype::float32, std::vector<std::int32_t>{INT32_MIN, INT32_MAX, -1},
             {false, false, false}, "", "int32 limits");
}

void check_table_limits(Report& report) {
  const RotaryTable host(make_plan(kDim), 8, Dtype::float32);
  const cuda::DeviceTable table(host);
  const std::vector<std::int64_t> positions{
      -1, 8, std::int64_t{1} << 31, -(std::int64_t{1} << 31), std::int64_t{1} << 32, 7, 0};
  for (const std::string policy : {"", "narrow"}) {
    expect_bad(report, table, Dtype::float32, positions,
               {true, true, true, true, true, false, false}, policy, "table of 8 rows");
  }
  expect_bad(report, table, Dtype::float32, std::vector<std::int32_t>{-1, 8, INT32_MIN, 7, 0},
             {true, true, true, false, false}, "", "table of 8 rows, int32");
  const OnDevice data(Dtype::float32, 2, 1);
  const std::array rotations{Rotation::in_place(data.view)};
  try {
    cuda::rotate(table, rotations, Positions::from_offset(7), nullptr);
    report.check(false, "an offset beyond the table was taken");
  } catch (const Error& error) {
    report.check(error.code() == ErrorCode::bad_position, error.what());
  }
}

/// Angles in the caller's memory: the bits of a DeviceTable of the same values, and its limits.
void check_callers_angles(Report& report) {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::float16, Dtype::bfloat16}) {
    const RotaryTable host(make_plan(kDim), 8, dtype);
    const cuda::DeviceTable table(host);
    const cuda::DevicePlan plan(host.plan());
    const bool is_double = host.is_double();
    const std::size_t bytes = is_double ? host.cos64().size_bytes() : host.cos().size_bytes();
    const DeviceBuffer cos(bytes);
    const DeviceBuffer sin(bytes);
    cos.upload(is_double ? static_cast<const void*>(host.cos64().data()) : host.cos().data(),
               bytes);
    sin.upload(is_double ? static_cast<const void*>(host.sin64().data()) : host.sin().data(),
               bytes);
    const cuda::DeviceAngles angles{cos.data(), sin.data(), host.rows(), is_double};
    const OnDevice expected(dtype, 5, 3);
    const OnDevice got(dtype, 5, 3);
    const Positions offset = Positions::from_offset(3);
    cuda::rotate(table, std::array{Rotation::in_place(expected.view)}, offset, nullptr);
    cuda::rotate(plan, angles, std::array{Rotation::in_place(got.view)}, offset, nullptr);
    (void)plan.bad_rows();
    expected.fetch();
    got.fetch();
    const bool same =
        std::memcmp(expected.host.view().data, got.host.view().data, got.memory.size()) == 0;
    report.check(same, fmt::format("{}: other bits than a DeviceTable", name_of(dtype)));
    const auto refused = [&](const cuda::DeviceAngles& wrong, std::int64_t start, ErrorCode code) {
      try {
        cuda::rotate(plan, wrong, std::array{Rotation::in_place(got.view)},
                     Positions::from_offset(start), nullptr);
      } catch (const Error& error) {
        return error.code() == code;
      }
      return false;
    };
    report.check(refused(angles, 4, ErrorCode::bad_position), "a start beyond the rows was taken");
    report.check(refused({cos.data(), sin.data(), 0, is_double}, 0, ErrorCode::invalid_argument),
                 "angles without rows were taken");
    report.check(refused({cos.data(), sin.data(), 8, !is_double}, 0, ErrorCode::invalid_argument),
                 "angles of the other type were taken");
  }
}

/// Boundaries that do not cover the tokens make bad rows, and no wild read.
void check_cu_seqlens(Report& report) {
  const cuda::DevicePlan plan(make_plan(kDim));
  const auto run = [&](const std::vector<std::int32_t>& cu, std::int64_t tokens, std::uint64_t bad,
                       const std::string& policy) {
    const OnDevice data(Dtype::bfloat16, tokens, 3);
    const DeviceBuffer there(cu.size() * 4);
    there.upload(cu.data(), there.size());
    plan.reset_bad_rows();
    const std::array rotations{Rotation::in_place(data.view)};
    cuda::rotate(plan, rotations,
                 Positions::from_cu_seqlens(std::span(there.as<const std::int32_t>(), cu.size())),
                 nullptr, {.policy = policy});
    const std::uint64_t counted = plan.bad_rows();
    report.check(counted == bad * kHeads,
                 fmt::format("cu_seqlens of {} entries, {}: {} bad rows, expected {}", cu.size(),
                             policy, counted, bad * kHeads));
  };
  for (const std::string policy : {"", "narrow"}) {
    run({0, 5, 5, 9, 20}, 20, 0, policy);
    run({0, 5, 9}, 12, 3, policy);
    run({4, 8}, 10, 6, policy);
    run({0}, 4, 4, policy);
    run({0, 0, 0, 0, 0, 0, 6}, 6, 0, policy);
  }
}

/// Thousands of sequences, some empty: the bits of the same positions given one by one.
void check_packed(Report& report, std::uint64_t seed) {
  verify::Random random(seed);
  for (const std::int64_t sequences : {1, 2, 31, 33, 2401, 40000}) {
    std::vector<std::int32_t> cu{0};
    std::vector<std::int64_t> positions;
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::int64_t length = sequences < 40 ? random.integer(0, 300) : random.integer(0, 3);
      for (std::int64_t t = 0; t < length; ++t) positions.push_back(t);
      cu.push_back(static_cast<std::int32_t>(positions.size()));
    }
    const auto tokens = static_cast<std::int64_t>(positions.size());
    if (tokens == 0) continue;
    HostTensor in(Dtype::bfloat16, {1, tokens, kHeads, kDim});
    random.fill(in.view());
    const HostTensor packed(Dtype::bfloat16, {1, tokens, kHeads, kDim});
    const HostTensor single(Dtype::bfloat16, {1, tokens, kHeads, kDim});
    const cuda::DevicePlan plan(make_plan(kDim));
    for (const std::string policy : {"", "narrow", "sweep-2x4-128", "sweep-4x4-64-row"}) {
      const std::array a{Rotation{in, packed}};
      const std::array b{Rotation{in, single}};
      verify::rotate_on_device(plan, a,
                               Positions::from_cu_seqlens(std::span<const std::int32_t>(cu)),
                               Direction::forward, policy);
      verify::rotate_on_device(plan, b, Positions::from_tokens(positions), Direction::forward,
                               policy);
      const auto found = verify::compare_bits(packed.view(), single.view());
      report.check(found.pass(),
                   fmt::format("{} packed sequences {}: {}", sequences, policy, found.detail));
    }
  }
}

/// No tokens, no heads, one of two views empty, an expanded input, a null plan of rotations.
void check_edges(Report& report) {
  const RotaryPlan plan = make_plan(kDim);
  const cuda::DevicePlan device_plan(plan);
  const TensorView none = bthd(nullptr, Dtype::float32, 1, 0, kHeads, kDim);
  cuda::rotate(device_plan, std::array{Rotation::in_place(none)}, Positions::from_offset(0),
               nullptr);
  cuda::rotate(device_plan, {}, Positions::from_offset(0), nullptr);
  report.check(device_plan.bad_rows() == 0, "empty calls leave nothing behind");

  // A gradient that expand made: every token and head reads the same row.
  HostTensor row(Dtype::float32, {1, 1, 1, kDim});
  verify::Random(5).fill(row.view());
  const ConstTensorView expanded{
      row.view().data, Dtype::float32, {2, 5, kHeads, kDim}, {0, 0, 0, 1}};
  const ConstTensorView scalar{row.view().data, Dtype::float32, {2, 5, kHeads, kDim}, {0, 0, 0, 0}};
  for (const ConstTensorView& in : {expanded, scalar}) {
    const HostTensor cpu(Dtype::float32, {2, 5, kHeads, kDim});
    const HostTensor gpu(Dtype::float32, {2, 5, kHeads, kDim});
    rotate(plan, std::array{Rotation{in, cpu}}, Positions::from_offset(3));
    verify::rotate_on_device(device_plan, std::array{Rotation{in, gpu}}, Positions::from_offset(3),
                             Direction::forward);
    const auto found = verify::compare_bits(cpu.view(), gpu.view());
    report.check(found.pass(), fmt::format("expanded input: {}", found.detail));
  }

  // A layer without a rotary embedding copies.
  PlanSpec spec;
  spec.head_dim = kDim;
  spec.rotates = false;
  HostTensor in(Dtype::bfloat16, {2, 5, kHeads, kDim});
  verify::Random(6).fill(in.view());
  const HostTensor out(Dtype::bfloat16, {2, 5, kHeads, kDim});
  verify::rotate_on_device(cuda::DevicePlan(RotaryPlan(spec)), std::array{Rotation{in, out}},
                           Positions::from_offset(3), Direction::forward);
  const auto found = verify::compare_bits(in.view(), out.view());
  report.check(found.pass(), fmt::format("plan that does not rotate: {}", found.detail));
}

/// Sizes of one, and the first values of a published bug report (bug_inputs 14 a).
void check_sizes_of_one(Report& report) {
  const HostTensor ones(Dtype::float32, {2, 1, 16, 256});
  ones.assign(std::vector<double>(2 * 16 * 256, 1.0));
  verify::rotate_on_device(cuda::DevicePlan(make_plan(256)), std::array{Rotation::in_place(ones)},
                           Positions::from_offset(6), Direction::forward);
  const double first[] = {1.23959, 1.40903, 1.35021, 1.11484};
  const double second[] = {0.68075, 0.12097, -0.42063, -0.87013};
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 16; ++h) {
      for (std::int64_t c = 0; c < 4; ++c) {
        report.check(std::fabs(ones.at(b, 0, h, c) - first[c]) < 1e-5 &&
                         std::fabs(ones.at(b, 0, h, 128 + c) - second[c]) < 1e-5,
                     fmt::format("one token at position 6, row {} head {} channel {}", b, h, c));
      }
    }
  }
}

void check_refusals(Report& report) {
  const auto refuses = [&](const std::string& what, ErrorCode code, const auto& body) {
    try {
      body();
      report.check(false, what + " was taken");
    } catch (const Error& error) {
      report.check(error.code() == code, fmt::format("{}: {}", what, error.what()));
    }
  };
  refuses("a device that does not exist", ErrorCode::cuda,
          [] { const cuda::DevicePlan plan(make_plan(kDim), 4096); });
  PlanSpec parity = make_plan(kDim).spec();
  parity.arithmetic = Arithmetic::parity_p2;
  const cuda::DevicePlan plan(make_plan(kDim));
  const DeviceBuffer memory(1024);
  refuses("a parity plan without a table", ErrorCode::invalid_argument, [&] {
    const TensorView view = bthd(memory.data(), Dtype::float32, 1, 1, 1, kDim);
    cuda::rotate(cuda::DevicePlan(RotaryPlan(parity)), std::array{Rotation::in_place(view)},
                 Positions::from_offset(0), nullptr);
  });
  const TensorView odd = bthd(memory.data() + 1, Dtype::float32, 1, 1, 1, kDim);
  refuses("a misaligned element", ErrorCode::invalid_argument, [&] {
    cuda::rotate(plan, std::array{Rotation::in_place(odd)}, Positions::from_offset(0), nullptr);
  });
  refuses("an unknown policy", ErrorCode::invalid_argument, [&] {
    const TensorView view = bthd(memory.data(), Dtype::float32, 1, 1, 1, kDim);
    cuda::rotate(plan, std::array{Rotation::in_place(view)}, Positions::from_offset(0), nullptr,
                 {.policy = "fastest"});
  });
}

}  // namespace

void check_positions(Report& report, const CheckOptions& options) {
  report.section("bad positions: NaN rows and the counter", [&] { check_limits(report); });
  report.section("positions outside a table", [&] { check_table_limits(report); });
  report.section("angles in the caller's memory", [&] { check_callers_angles(report); });
  report.section("cu_seqlens that do not fit", [&] { check_cu_seqlens(report); });
  report.section("packed sequences", [&] { check_packed(report, options.seed); });
  report.section("empty, expanded and unrotated tensors", [&] { check_edges(report); });
  report.section("sizes of one", [&] { check_sizes_of_one(report); });
  report.section("refusals", [&] { check_refusals(report); });
}

}  // namespace ropewalk::testing
