// Which CPU kernel runs, and that a slow one is never chosen unnoticed (Bug26).
#include <cstdio>
#include <cstdlib>

#include "rotate_fixture.h"

namespace ropewalk {
namespace {

using namespace testing_support;

bool processor_has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

TEST(KernelChoice, ScalarIsNotActiveOnAnAvx2Machine_Bug26) {
  const std::string active(active_cpu_kernel());
  RecordProperty("active_cpu_kernel", active);
  std::printf("active CPU kernel: %s\n", active.c_str());
  if (std::getenv("ROPEWALK_KERNEL") != nullptr) GTEST_SKIP() << "ROPEWALK_KERNEL forces a kernel";
  if (processor_has_avx2()) {
    EXPECT_NE(active, "scalar");
  }
}

TEST(KernelChoice, ActiveIsTheLastSupportedOfTheList_Bug26) {
  if (std::getenv("ROPEWALK_KERNEL") != nullptr) GTEST_SKIP() << "ROPEWALK_KERNEL forces a kernel";
  std::string_view best;
  bool scalar_seen = false;
  for (const CpuKernelInfo& kernel : cpu_kernels()) {
    EXPECT_FALSE(kernel.description.empty()) << kernel.name;
    if (kernel.supported) best = kernel.name;
    scalar_seen |= kernel.name == "scalar" && kernel.supported;
  }
  EXPECT_TRUE(scalar_seen) << "the scalar kernel runs everywhere";
  EXPECT_EQ(active_cpu_kernel(), best);
}

TEST(KernelChoice, UnknownAndUnsupportedNamesAreErrorsAndNothingIsWritten) {
  const RotaryPlan plan = make_plan(8);
  const HostTensor in = random_tensor(Dtype::float32, {1, 2, 1, 8}, 1);
  const HostTensor out(Dtype::float32, in.view().size);
  const auto before = out.buffer().snapshot();
  expect_error(ErrorCode::unsupported, {"avx9000", "scalar"}, [&] {
    rotate_one(plan, in, out, Positions::from_offset(0), options_of(Direction::forward, "avx9000"));
  });
  for (const CpuKernelInfo& kernel : cpu_kernels()) {
    if (kernel.supported) continue;
    expect_error(ErrorCode::unsupported, {std::string(kernel.name)}, [&] {
      rotate_one(plan, in, out, Positions::from_offset(0),
                 options_of(Direction::forward, kernel.name));
    });
  }
  EXPECT_EQ(out.buffer().snapshot(), before);
}

}  // namespace
}  // namespace ropewalk
