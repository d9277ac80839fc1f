// The same bits as on the CPU: the matrix, every launch policy, every table arithmetic.
#include <algorithm>

#include "ropewalk/cuda.h"
#include "ropewalk/error.h"
#include "ropewalk/table.h"
#include "tests/cuda/checks.h"
#include "verify/compare.h"
#include "verify/cuda/backend.h"
#include "verify/host_tensor.h"
#include "verify/layout.h"

namespace ropewalk::testing {
namespace {

using verify::HostTensor;
using verify::Layout;
using verify::Placement;

constexpr std::array kDtypes{Dtype::bfloat16, Dtype::float16, Dtype::float32, Dtype::float64};

std::string policy_label(const std::string& policy) { return policy.empty() ? "chosen" : policy; }

/// q and k on CPU and GPU from the same random input.
struct Pair {
  Placement in, cpu, gpu;

  Pair(Layout layout, Dtype dtype, const verify::QkShape& shape, std::uint64_t seed)
      : in(place(layout, dtype, shape)),
        cpu(place(layout, dtype, shape)),
        gpu(place(layout, dtype, shape)) {
    verify::Random random(seed);
    random.fill(in.q);
    random.fill(in.k);
  }
  [[nodiscard]] std::array<Rotation, 2> to_cpu() const {
    return {Rotation{in.q, cpu.q}, Rotation{in.k, cpu.k}};
  }
  [[nodiscard]] std::array<Rotation, 2> to_gpu() const {
    return {Rotation{in.q, gpu.q}, Rotation{in.k, gpu.k}};
  }
  [[nodiscard]] std::string difference() const {
    verify::Comparison found = verify::compare_bits(cpu.q, gpu.q);
    found.merge(verify::compare_bits(cpu.k, gpu.k));
    return found.detail;
  }
};

std::vector<std::int64_t> spread_positions(std::int64_t tokens, std::uint64_t seed) {
  verify::Random random(seed);
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < tokens; ++t) positions.push_back(random.integer(-131072, 1 << 20));
  return positions;
}

struct Case {
  const cuda::DevicePlan& plan;
  const Pair& data;
  const std::vector<std::int64_t>& positions;
  Direction direction;
  std::string what;
};

bool takes(const Case& c, std::span<const Rotation> rotations, const std::string& policy) {
  try {
    (void)cuda::policy_for(c.plan, rotations, Positions::from_tokens(c.positions),
                           {.direction = c.direction, .policy = policy});
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return false;
  }
}

void check_one_policy(Report& report, const Case& c, const std::string& policy) {
  const Pair& data = c.data;
  const Positions positions = Positions::from_tokens(c.positions);
  if (takes(c, data.to_gpu(), policy)) {
    for (const verify::HostBuffer& buffer : data.gpu.buffers) buffer.poison();
    verify::rotate_on_device(c.plan, data.to_gpu(), positions, c.direction, policy);
    const std::string difference = data.difference();
    report.check(difference.empty(),
                 fmt::format("{} {}: {}", c.what, policy_label(policy), difference));
  }
  const std::array in_place{Rotation::in_place(data.gpu.q), Rotation::in_place(data.gpu.k)};
  if (takes(c, in_place, policy)) {
    verify::copy_elements(data.in.q, data.gpu.q);
    verify::copy_elements(data.in.k, data.gpu.k);
    verify::rotate_on_device(c.plan, in_place, positions, c.direction, policy);
    const std::string difference = data.difference();
    report.check(difference.empty(),
                 fmt::format("{} {} in place: {}", c.what, policy_label(policy), difference));
  }
}

/// q alone, as calls without k are.
void check_one_tensor(Report& report, const Case& c, const std::string& policy) {
  const Pair& data = c.data;
  const std::array<Rotation, 2> both = data.to_gpu();
  const auto only_q = std::span(both).first(1);
  if (!takes(c, only_q, policy)) return;
  for (const verify::HostBuffer& buffer : data.gpu.buffers) buffer.poison();
  verify::rotate_on_device(c.plan, only_q, Positions::from_tokens(c.positions), c.direction,
                           policy);
  const std::string difference = verify::compare_bits(data.cpu.q, data.gpu.q).detail;
  report.check(difference.empty(),
               fmt::format("{} {} q alone: {}", c.what, policy_label(policy), difference));
}

std::vector<std::string> policies_for(bool reduced) {
  std::vector<std::string> names = cuda::policy_names();
  if (reduced) {
    std::erase_if(names, [](const std::string& name) {
      return name != "narrow" && name.find("-128") == std::string::npos && !name.ends_with("-warp");
    });
  }
  names.emplace_back();
  return names;
}

struct Shape {
  std::int64_t head_dim, rotary_dim, offset;
  verify::QkShape rows;
};

void check_shape(Report& report, const Shape& shape, Dtype dtype, Pairing pairing, Layout layout,
                 const CheckOptions& options) {
  PlanSpec spec = make_plan(shape.rotary_dim, 10000.0, 0, pairing).spec();
  spec.head_dim = shape.head_dim;
  spec.window = {shape.offset, shape.rotary_dim};
  const RotaryPlan plan{spec};
  verify::QkShape rows = shape.rows;
  rows.head_dim = shape.head_dim;
  const cuda::DevicePlan device_plan(plan);
  const Pair data(layout, dtype, rows, options.seed);
  const auto positions = spread_positions(rows.tokens, options.seed);
  for (const Direction direction : {Direction::forward, Direction::inverse}) {
    RotateOptions on_cpu;
    on_cpu.direction = direction;
    rotate(plan, data.to_cpu(), Positions::from_tokens(positions), on_cpu);
    const std::string what = fmt::format(
        "{} {} {} D {} R {}+{} {}x{} tokens {}+{} heads {}", name_of(dtype), name_of(pairing),
        name_of(layout), shape.head_dim, shape.rotary_dim, shape.offset, rows.batch, rows.tokens,
        rows.query_heads, rows.key_heads, name_of(direction));
    for (const std::string& policy : policies_for(options.reduced)) {
      const Case c{device_plan, data, positions, direction, what};
      check_one_policy(report, c, policy);
      if (direction == Direction::forward) check_one_tensor(report, c, policy);
    }
  }
}

}  // namespace

void check_policies(Report& report, const CheckOptions& options) {
  std::vector<Shape> shapes{
      {128, 128, 0, {1, 1, 32, 8, 0}}, {128, 128, 0, {2, 37, 8, 4, 0}},
      {128, 64, 0, {1, 19, 8, 4, 0}},  {128, 64, 64, {2, 3, 8, 4, 0}},
      {192, 64, 32, {2, 5, 4, 4, 0}},  {64, 64, 0, {3, 7, 12, 4, 0}},
      {80, 80, 0, {1, 9, 8, 2, 0}},    {96, 96, 0, {2, 9, 6, 2, 0}},
      {256, 256, 0, {1, 5, 4, 4, 0}},  {128, 128, 0, {1, 21, 63, 3, 0}},
      {576, 576, 0, {1, 3, 2, 1, 0}},  {1024, 1024, 0, {1, 2, 4, 2, 0}},
      {72, 36, 4, {1, 5, 4, 2, 0}},    {128, 128, 0, {1, 3, 28, 4, 0}},
      {128, 128, 0, {3, 1, 16, 8, 0}}, {64, 64, 0, {1, 2, 32, 8, 0}},
      {256, 256, 0, {2, 2, 8, 4, 0}},
  };
  if (options.reduced) shapes = {shapes[1], shapes[3], shapes[6]};
  for (const Dtype dtype : kDtypes) {
    report.section(fmt::format("every policy, {}, bits of the CPU", name_of(dtype)), [&] {
      for (const Pairing pairing :
           {Pairing::half, Pairing::interleaved, Pairing::interleaved_to_half}) {
        for (const Shape& shape : shapes) {
          for (const Layout layout : {Layout::bthd, Layout::bhtd, Layout::packed_qkv}) {
            check_shape(report, shape, dtype, pairing, layout, options);
          }
        }
      }
    });
  }
}

void check_odd_rows(Report& report, const CheckOptions& options) {
  // Rows and windows that only narrow chunks fit, with heads that leave the groups of a thread
  // incomplete: two heads are one group of four, however many tokens there are.
  struct Window {
    std::int64_t head_dim, rotary_dim, offset;
  };
  const std::array<Window, 8> windows{{{66, 64, 0},
                                       {66, 64, 2},
                                       {34, 32, 0},
                                       {34, 32, 2},
                                       {80, 64, 8},
                                       {130, 128, 0},
                                       {130, 128, 2},
                                       {65, 64, 1}}};
  const std::vector<verify::QkShape> rows{
      {2, 37, 6, 2, 0}, {1, 19, 5, 1, 0}, {3, 2, 7, 3, 0}, {1, 1, 6, 2, 0}};
  const std::size_t taken = options.reduced ? 1 : rows.size();
  for (const Dtype dtype : kDtypes) {
    report.section(fmt::format("rows of odd lengths, {}, bits of the CPU", name_of(dtype)), [&] {
      for (const Pairing pairing :
           {Pairing::half, Pairing::interleaved, Pairing::interleaved_to_half}) {
        for (const Window& window : windows) {
          for (const verify::QkShape& shape : std::span(rows).first(taken)) {
            for (const Layout layout : {Layout::bthd, Layout::bhtd}) {
              check_shape(report, {window.head_dim, window.rotary_dim, window.offset, shape}, dtype,
                          pairing, layout, options);
            }
          }
        }
      }
    });
  }
}

void check_tables(Report& report, const CheckOptions& options) {
  report.section("tables, every arithmetic, bits of the CPU", [&] {
    for (const Arithmetic arithmetic :
         {Arithmetic::exact, Arithmetic::parity_p0, Arithmetic::parity_p1, Arithmetic::parity_p2,
          Arithmetic::parity_p3, Arithmetic::parity_p4}) {
      for (const Dtype dtype : kDtypes) {
        for (const Pairing pairing :
             {Pairing::half, Pairing::interleaved, Pairing::interleaved_to_half}) {
          for (const std::int64_t rotary_dim : {128, 22}) {
            PlanSpec spec = make_plan(rotary_dim, 10000.0, 0, pairing).spec();
            spec.arithmetic = arithmetic;
            spec.amplitude = 1.25;
            const RotaryTable table(RotaryPlan(spec), 100, dtype);
            const Pair data(Layout::bthd, dtype, {2, 11, 4, 2, rotary_dim}, options.seed);
            const std::vector<std::int64_t> positions{0, 99, 1, 50, 3, 7, 98, 20, 31, 64, 2};
            for (const Direction direction : {Direction::forward, Direction::inverse}) {
              RotateOptions on_cpu;
              on_cpu.direction = direction;
              rotate(table, data.to_cpu(), Positions::from_tokens(positions), on_cpu);
              for (const verify::HostBuffer& buffer : data.gpu.buffers) buffer.poison();
              const std::uint64_t bad = verify::rotate_on_device(
                  table, data.to_gpu(), Positions::from_tokens(positions), direction, 0);
              const std::string difference = data.difference();
              report.check(
                  difference.empty() && bad == 0,
                  fmt::format("{} {} {} R {} {}: {}", name_of(arithmetic), name_of(dtype),
                              name_of(pairing), rotary_dim, name_of(direction), difference));
            }
          }
        }
      }
    }
  });
}

void check_matrix(Report& report, const CheckOptions& options) {
  report.section("verification matrix", [&] {
    verify::MatrixOptions matrix;
    matrix.size = options.full ? verify::MatrixSize::full : verify::MatrixSize::quick;
    matrix.kernels = verify::cuda_kernels();
    if (!options.reduced) {
      for (const char* name : {"cuda:sweep-2x1-128", "cuda:sweep-4x1-64", "cuda:tokens-2x1-256",
                               "cuda:tokens-2x1-64-warp", "cuda:sweep-8x1-128-warp"}) {
        matrix.kernels.emplace_back(name);
      }
    }
    matrix.seed = options.seed;
    matrix.threads = options.reduced ? 1 : 0;  // sanitizers need not watch threads wait
    double worst = 0;
    matrix.progress = [&](std::span<const verify::CaseRecord> records, std::int64_t, std::int64_t) {
      for (const verify::CaseRecord& record : records) {
        report.check(record.pass, record.detail);
        worst = std::max(worst, record.worst_ratio);
      }
    };
    (void)verify::run_matrix(verify::cuda_backend(), matrix);
    fmt::print("largest error / bound {:.3f}\n", worst);
  });
}

}  // namespace ropewalk::testing
