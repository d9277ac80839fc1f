// Offsets and counts beyond 2^31, on reserved memory of which a few pages are touched.
#include <sys/mman.h>

#include "rotate_fixture.h"

namespace ropewalk {
namespace {

using namespace testing_support;

/// Address space without memory behind it until it is touched; unread pages read as zero.
class Reserved {
 public:
  explicit Reserved(std::size_t bytes) : bytes_(bytes) {
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = base == MAP_FAILED ? nullptr : base;
  }
  ~Reserved() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 64;  // elements, beyond int32

// Strides beyond 2^31 elements in each of the three outer dimensions, in place and out of place.
TEST(Large, StridesBeyond2Pow31) {
  const RotaryPlan plan = make_plan(64);
  for (const std::size_t far_dimension : {0u, 1u, 2u}) {
    const std::array<std::int64_t, 4> size{2, 2, 2, 64};
    std::array<std::int64_t, 4> stride{256, 128, 64, 1};
    stride[far_dimension] = kFar;
    const auto bytes = static_cast<std::size_t>(kFar + 512) * 2;
    const Reserved source(bytes), target(bytes);
    if (source.data() == nullptr || target.data() == nullptr) {
      GTEST_SKIP() << "the address space cannot be reserved";
    }
    const TensorView in{source.data(), Dtype::bfloat16, size, stride};
    const TensorView out{target.data(), Dtype::bfloat16, size, stride};
    Random(far_dimension).fill(in);
    const auto truth =
        verify::expect(plan.spec(), Positions::from_offset(131071), Direction::forward, in);
    rotate_one(plan, in, out, Positions::from_offset(131071));
    Comparison found = compare(truth, out);
    rotate_one(plan, in, Positions::from_offset(131071));
    found.merge(compare(truth, in));
    EXPECT_TRUE(found.pass()) << far_dimension << ": " << found.detail;
  }
}

// More than 2^31 elements in one view: all rows but a few are padding, which in place touches
// nothing. Rows around element 2^31 and the last one are rotated.
TEST(Large, MoreThan2Pow31Elements) {
  constexpr std::int64_t kHeadDim = 512;
  constexpr std::int64_t kTokens = (std::int64_t{1} << 22) + 3;
  static_assert(kTokens * kHeadDim > (std::int64_t{1} << 31));
  const Reserved memory(static_cast<std::size_t>(kTokens * kHeadDim) * 2);
  const Reserved position_memory(static_cast<std::size_t>(kTokens) * sizeof(std::int32_t));
  if (memory.data() == nullptr || position_memory.data() == nullptr) {
    GTEST_SKIP() << "the address space cannot be reserved";
  }
  auto* tokens = static_cast<std::int32_t*>(position_memory.data());
  Positions positions = Positions::from_tokens(
      std::span<const std::int32_t>(tokens, static_cast<std::size_t>(kTokens)));
  positions.padding = 0;
  const RotaryPlan plan = make_plan(kHeadDim);
  const TensorView view = bthd(memory.data(), Dtype::bfloat16, 1, kTokens, 1, kHeadDim);
  const std::int64_t first = (std::int64_t{1} << 22) - 2;
  TensorView last_rows = view;
  last_rows.size[kToken] = kTokens - first;
  last_rows.data = verify::element_at(view, {0, first, 0, 0});
  for (std::int64_t t = first; t < kTokens; ++t) {
    tokens[t] = static_cast<std::int32_t>(39001 + t - first);
  }
  Random(1).fill(last_rows);
  const auto truth =
      verify::expect(plan.spec(), Positions::from_offset(39001), Direction::forward, last_rows);
  rotate_one(plan, view, positions);
  const Comparison found = compare(truth, last_rows);
  EXPECT_TRUE(found.pass()) << found.detail;
  EXPECT_EQ(*static_cast<const std::uint16_t*>(view.data), 0) << "a padding row was written";
}

// Large enough for streaming stores on every machine with a last cache below 80 MiB; the same bits.
TEST(Large, OutputsBeyondTheLastCacheHaveTheSameBits) {
  const RotaryPlan plan = make_plan(128);
  const std::int64_t tokens = 20 * 1024;
  const HostTensor in(Dtype::bfloat16, {1, tokens, 16, 128});
  const HostTensor out(Dtype::bfloat16, in.view().size);
  std::ranges::fill(in.buffer().bytes(), std::byte{0x3f});
  rotate_one(plan, in, out, Positions::from_offset(7));
  for (const std::int64_t t : {std::int64_t{0}, tokens / 2, tokens - 1}) {
    TensorView row = in.view(), image = out.view();
    row.size[kToken] = image.size[kToken] = 1;
    row.data = verify::element_at(in.view(), {0, t, 0, 0});
    image.data = verify::element_at(out.view(), {0, t, 0, 0});
    const Comparison found = judge(plan, row, image, Positions::from_offset(7 + t));
    EXPECT_TRUE(found.pass()) << t << ": " << found.detail;
  }
  const HostTensor fresh(Dtype::bfloat16, in.view().size);  // out of place, through the cache
  std::ranges::fill(fresh.buffer().bytes(), std::byte{0xff});
  const Rotation rotations[] = {{in.view(), fresh.view()}};
  RotateOptions options;
  options.fresh_outputs = true;
  rotate(plan, rotations, Positions::from_offset(7), options);
  EXPECT_TRUE(std::ranges::equal(fresh.buffer().bytes(), out.buffer().bytes()));
  rotate_one(plan, in.view(), Positions::from_offset(7));  // in place: through the cache
  EXPECT_TRUE(std::ranges::equal(in.buffer().bytes(), out.buffer().bytes()));
}

}  // namespace
}  // namespace ropewalk
