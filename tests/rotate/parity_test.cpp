// Parity arithmetic by bits, against a plain emulation of what eager code does: multiply, multiply,
// add, each rounded where the class says. The emulation computes in quad and rounds: 113 bits are
// more than 2p + 2 for every format here, so rounding twice equals rounding once.
#include "rotate_fixture.h"

#include "ropewalk/table.h"
#include "verify/number.h"
#include "verify/oracle.h"

namespace ropewalk {
namespace {

using namespace testing_support;
using verify::Quad;
using verify::round_to;

constexpr std::int64_t kRows = 300;

/// The type in which a class rounds its cosines, and that of its products and sums.
struct Class {
  Arithmetic arithmetic;
  [[nodiscard]] Dtype stored(Dtype data) const {
    if (arithmetic == Arithmetic::parity_p0 || arithmetic == Arithmetic::parity_p1) return data;
    return computed(data);
  }
  [[nodiscard]] Dtype computed(Dtype data) const {
    if (arithmetic == Arithmetic::parity_p4) return Dtype::float64;
    return data == Dtype::float64 ? Dtype::float64 : Dtype::float32;
  }
  [[nodiscard]] Dtype step(Dtype data) const {
    return arithmetic == Arithmetic::parity_p0 ? data : computed(data);
  }
};

RotaryPlan parity_plan(Arithmetic arithmetic, Pairing pairing, double amplitude = 1, int sign = 1) {
  PlanSpec spec = make_plan(46, 1e4, 44, pairing).spec();
  spec.arithmetic = arithmetic;
  spec.amplitude = amplitude;
  spec.sign = sign;
  return RotaryPlan(spec);
}

Quad table_value(const RotaryTable& table, bool sine, std::int64_t row, std::int64_t pair) {
  const auto at = static_cast<std::size_t>(row * table.pairs() + pair);
  if (table.is_double()) return sine ? table.sin64()[at] : table.cos64()[at];
  return sine ? table.sin()[at] : table.cos()[at];
}

/// Rotates by the table as eager code would.
void emulate(const RotaryTable& table, const ConstTensorView& in, const TensorView& out,
             const std::vector<std::int64_t>& tokens, Direction direction) {
  const Class rule{table.plan().arithmetic()};
  const Dtype data = in.dtype;
  const Dtype step = rule.step(data);
  const bool inverse = direction == Direction::inverse;
  verify::copy_elements(in, out);
  for (std::int64_t t = 0; t < in.size[kToken]; ++t) {
    for (std::int64_t h = 0; h < in.size[kHead]; ++h) {
      const auto at = [&](std::int64_t channel) {
        return std::array<std::int64_t, 4>{0, t, h, channel};
      };
      for (std::int64_t i = 0; i < table.pairs(); ++i) {
        auto read = table.plan().channels_read(i);
        auto written = table.plan().channels_written(i);
        if (inverse) std::swap(read, written);
        const Quad x0 = verify::load_value(data, verify::element_at(in, at(read.first)));
        const Quad x1 = verify::load_value(data, verify::element_at(in, at(read.second)));
        const Quad c = table_value(table, false, tokens[static_cast<std::size_t>(t)], i);
        const Quad s =
            table_value(table, true, tokens[static_cast<std::size_t>(t)], i) * (inverse ? -1 : 1);
        const auto product = [&](Quad a, Quad b) { return round_to(step, a * b); };
        const Quad y0 = round_to(step, product(x0, c) - product(x1, s));
        const Quad y1 = round_to(step, product(x1, c) + product(x0, s));
        verify::store_bits(data, verify::element_at(out, at(written.first)),
                           verify::encode(data, y0));
        verify::store_bits(data, verify::element_at(out, at(written.second)),
                           verify::encode(data, y1));
      }
    }
  }
}

class Parity : public ::testing::TestWithParam<Arithmetic> {};
/// P0 … P3, whose tables follow the fp32 recipe.
class ParityRecipe : public Parity {};

TEST_P(Parity, RotationEqualsTheEmulationBitForBit) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  const std::vector<std::int64_t> tokens{0, 1, 2, 57, 299, 128, 255};
  const Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  for (const Dtype dtype : kAllDtypes) {
    for (const Pairing pairing : kAllPairings) {
      for (const verify::Values values : {verify::Values::normal, verify::Values::wide}) {
        const RotaryTable table(parity_plan(GetParam(), pairing, 1.2772588722239781, -1), kRows,
                                dtype);
        const HostTensor in = random_tensor(dtype, {1, 7, 3, 46}, seed, values);
        for (const Direction direction : {Direction::forward, Direction::inverse}) {
          const HostTensor want(dtype, in.view().size);
          emulate(table, in, want, tokens, direction);
          for (const std::string& kernel : verify::supported_cpu_kernels()) {
            const HostTensor got(dtype, in.view().size);
            const HostTensor in_place(dtype, in.view().size);
            verify::copy_elements(in, in_place);
            const std::array apart{Rotation{in, got}};
            const std::array same{Rotation::in_place(in_place)};
            rotate(table, apart, positions, options_of(direction, kernel));
            rotate(table, same, positions, options_of(direction, kernel));
            Comparison found = compare_bits(want, got);
            found.merge(compare_bits(want, in_place));
            ASSERT_TRUE(found.pass()) << kernel << " " << name_of(dtype) << " " << name_of(pairing)
                                      << " " << name_of(values) << ": " << found.detail;
          }
        }
      }
    }
  }
}

// The recipe of transformers in quad: fl32(ω)·p rounded to fp32, its cosine correctly rounded,
// times fl32(amplitude) with one rounding, then rounded to the stored type.
TEST_P(ParityRecipe, TableEqualsTheRecipeBitForBit) {
  for (const Dtype dtype : kAllDtypes) {
    for (const double amplitude : {1.0, 1.2772588722239781}) {
      const RotaryPlan plan = parity_plan(GetParam(), Pairing::half, amplitude);
      const RotaryTable table(plan, kRows, dtype);
      const Dtype stored =
          dtype == Dtype::float64 ? Dtype::float32 : Class{GetParam()}.stored(dtype);
      const Quad a = static_cast<float>(amplitude);
      for (std::int64_t row = 0; row < kRows; ++row) {
        for (std::int64_t i = 0; i < plan.pairs(); ++i) {
          const float omega = plan.model_frequencies()[static_cast<std::size_t>(i)];
          const Quad angle = round_to(Dtype::float32, Quad(omega) * row);
          const verify::CosSin truth = verify::exact_cos_sin(angle, 1.0);
          const auto entry = [&](Quad value) {
            return round_to(stored, round_to(Dtype::float32, round_to(Dtype::float32, value) * a));
          };
          ASSERT_EQ(static_cast<double>(table_value(table, false, row, i)),
                    static_cast<double>(entry(truth.c)))
              << name_of(dtype) << " row " << row << " pair " << i;
          ASSERT_EQ(static_cast<double>(table_value(table, true, row, i)),
                    static_cast<double>(entry(truth.s)))
              << name_of(dtype) << " row " << row << " pair " << i;
        }
      }
    }
  }
}

// How far the recipe is from the mathematics: the documented bound, which grows with position.
TEST_P(Parity, TableStaysWithinTheDocumentedBound) {
  for (const Dtype dtype : kAllDtypes) {
    const RotaryPlan plan = parity_plan(GetParam(), Pairing::half, 1.2772588722239781);
    const RotaryTable table(plan, kRows, dtype);
    const Class rule{GetParam()};
    const bool in_double = GetParam() == Arithmetic::parity_p4;
    const Dtype compute = in_double ? Dtype::float64 : Dtype::float32;
    const Dtype stored = dtype == Dtype::float64 ? compute : rule.stored(dtype);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t i = 0; i < plan.pairs(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double omega =
            in_double ? plan.frequencies()[at] : static_cast<double>(plan.model_frequencies()[at]);
        const verify::CosSin truth = verify::exact_cos_sin(static_cast<Quad>(row), omega);
        const Quad bound =
            verify::parity_table_bound(Quad(omega) * row, plan.amplitude(), compute, stored);
        EXPECT_LE(static_cast<double>(verify::magnitude(table_value(table, false, row, i) -
                                                        Quad(plan.amplitude()) * truth.c)),
                  static_cast<double>(bound));
        EXPECT_LE(static_cast<double>(verify::magnitude(table_value(table, true, row, i) -
                                                        Quad(plan.amplitude()) * truth.s)),
                  static_cast<double>(bound));
      }
    }
  }
}

TEST_P(Parity, WithoutATableIsRefusedAndNothingIsWritten) {
  const HostTensor in = random_tensor(Dtype::float32, {1, 2, 1, 46}, 1);
  const HostTensor out(Dtype::float32, in.view().size);
  const auto before = out.buffer().snapshot();
  expect_error(ErrorCode::invalid_argument, {"table"}, [&] {
    rotate_one(parity_plan(GetParam(), Pairing::half), in, out, Positions::from_offset(0));
  });
  EXPECT_EQ(out.buffer().snapshot(), before);
}

INSTANTIATE_TEST_SUITE_P(AllClasses, Parity,
                         ::testing::Values(Arithmetic::parity_p0, Arithmetic::parity_p1,
                                           Arithmetic::parity_p2, Arithmetic::parity_p3,
                                           Arithmetic::parity_p4),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

INSTANTIATE_TEST_SUITE_P(Fp32Classes, ParityRecipe,
                         ::testing::Values(Arithmetic::parity_p0, Arithmetic::parity_p1,
                                           Arithmetic::parity_p2, Arithmetic::parity_p3),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

// A complex64 product is the same two products and one sum.
TEST(ParityClasses, P3HasTheBitsOfP2AndP0DiffersIn16Bit) {
  const Positions positions = Positions::from_offset(100);
  for (const Dtype dtype : kAllDtypes) {
    const HostTensor in = random_tensor(dtype, {1, 50, 4, 46}, 1);
    std::vector<std::uint64_t> hashes;
    for (const Arithmetic arithmetic :
         {Arithmetic::parity_p2, Arithmetic::parity_p3, Arithmetic::parity_p0}) {
      const HostTensor out(dtype, in.view().size);
      const std::array rotations{Rotation{in, out}};
      rotate(RotaryTable(parity_plan(arithmetic, Pairing::interleaved), kRows, dtype), rotations,
             positions);
      hashes.push_back(verify::hash_bits(out));
    }
    EXPECT_EQ(hashes[0], hashes[1]) << name_of(dtype);
    EXPECT_EQ(hashes[0] != hashes[2], size_of(dtype) == 2) << name_of(dtype);
  }
}

// A table that the user brings is used as it is.
TEST(ParityClasses, UserTablesAreUsedAsTheyAre) {
  const RotaryPlan plan = parity_plan(Arithmetic::parity_p2, Pairing::half);
  const auto count = static_cast<std::size_t>(5 * plan.pairs());
  std::vector<float> cos(count), sin(count);
  Random random(3);
  for (std::size_t i = 0; i < count; ++i) {
    cos[i] = static_cast<float>(random.normal());
    sin[i] = static_cast<float>(random.normal());
  }
  const RotaryTable table(plan, cos, sin, Dtype::bfloat16);
  ASSERT_EQ(table.rows(), 5);
  const std::vector<std::int64_t> tokens{4, 0, 2};
  const HostTensor in = random_tensor(Dtype::bfloat16, {1, 3, 2, 46}, 4);
  const HostTensor want(Dtype::bfloat16, in.view().size), got(Dtype::bfloat16, in.view().size);
  emulate(table, in, want, tokens, Direction::forward);
  const std::array rotations{Rotation{in, got}};
  rotate(table, rotations, Positions::from_tokens(std::span<const std::int64_t>(tokens)));
  const Comparison found = compare_bits(want, got);
  EXPECT_TRUE(found.pass()) << found.detail;
}

}  // namespace
}  // namespace ropewalk
