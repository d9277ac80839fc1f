// Every kernel this machine supports, against the oracle and against "scalar" bit for bit.
#include <cstdio>
#include <map>

#include "rotate_fixture.h"
#include "verify/tolerance.h"

namespace ropewalk {
namespace {

using namespace testing_support;

TEST(KernelMatrix, QuickRunOfEverySupportedKernel) {
  verify::MatrixOptions options;
  options.size = verify::MatrixSize::quick;
  options.kernels = verify::supported_cpu_kernels();
  options.seed = verify::fresh_seed();
  ASSERT_EQ(options.kernels.front(), "scalar");
  std::map<std::string, double> worst;
  int failures = 0;
  for (const verify::CaseRecord& record : verify::run_matrix(verify::cpu_backend(), options)) {
    auto& ratio = worst[record.kernel + " " + std::string(name_of(record.test_case.dtype))];
    ratio = std::max(ratio, record.worst_ratio);
    if (!record.pass && ++failures <= 20) ADD_FAILURE() << record.detail;
  }
  EXPECT_EQ(failures, 0) << "matrix seed " << options.seed;
  for (const auto& [name, ratio] : worst) {
    std::printf("worst error/bound of %s: %.3f\n", name.c_str(), ratio);
  }
}

TEST(KernelMatrix, SixteenBitOutputsAreNearlyAlwaysCorrectlyRounded) {
  const std::uint64_t seed = verify::fresh_seed();
  SCOPED_TRACE(seed);
  const RotaryPlan plan = make_plan(128, 5e5);
  std::vector<std::int64_t> tokens;
  Random random(seed);
  for (int t = 0; t < 64; ++t) tokens.push_back(random.integer(-131071, (1 << 20)));
  const Positions positions = Positions::from_tokens(std::span<const std::int64_t>(tokens));
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
    const HostTensor in = random_tensor(dtype, {1, 64, 8, 128}, seed);
    const verify::Expectation truth =
        verify::expect(plan.spec(), positions, Direction::forward, in);
    for (const std::string& kernel : verify::supported_cpu_kernels()) {
      const HostTensor out(dtype, in.view().size);
      rotate_one(plan, in, out, positions, options_of(Direction::forward, kernel));
      const Comparison found = compare(truth, out);
      EXPECT_TRUE(found.pass()) << found.detail;
      EXPECT_GE(found.correctly_rounded_share(), verify::kCorrectlyRoundedShare)
          << kernel << " " << name_of(dtype);
      std::printf("%s %s: correctly rounded %.4f %%\n", kernel.c_str(),
                  std::string(name_of(dtype)).c_str(), 100 * found.correctly_rounded_share());
    }
  }
}

}  // namespace
}  // namespace ropewalk
