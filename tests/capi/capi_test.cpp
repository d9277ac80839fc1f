#include "ropewalk/capi.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "capi/boundary.h"
#include "ropewalk/config.h"
#include "ropewalk/rotate.h"
#include "ropewalk/table.h"
#include "support/temporary_folder.h"

namespace ropewalk {
namespace {

using testing::read_file;
using testing::TemporaryFolder;

using PlanPointer = std::unique_ptr<ropewalk_plan, decltype(&ropewalk_plan_destroy)>;
using TablePointer = std::unique_ptr<ropewalk_table, decltype(&ropewalk_table_destroy)>;

PlanPointer simple_plan(int64_t head_dim = 16) {
  ropewalk_plan* plan = nullptr;
  EXPECT_EQ(ropewalk_plan_create(head_dim, 10000.0, 0, ROPEWALK_PAIRING_HALF, &plan), ROPEWALK_OK)
      << ropewalk_last_error();
  return {plan, &ropewalk_plan_destroy};
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.25F * static_cast<float>(i) - 7.0F;
  return values;
}

std::string last_error() { return ropewalk_last_error(); }

TEST(Capi, PlanFromConfigIsThePlanOfTheCxxInterface) {
  const std::string json =
      read_file(std::filesystem::path(ROPEWALK_CONFIG_DIR) / "llama-3.1-8b.json");
  ASSERT_FALSE(json.empty());
  ropewalk_plan_options options = ROPEWALK_PLAN_OPTIONS_INIT;
  ropewalk_plan* raw = nullptr;
  ASSERT_EQ(ropewalk_plan_from_config(json.data(), json.size(), &options, &raw), ROPEWALK_OK)
      << last_error();
  const PlanPointer plan(raw, &ropewalk_plan_destroy);
  const RotaryPlan expected = make_plan(parse_config(json));
  EXPECT_EQ(ropewalk_plan_fingerprint(raw), expected.fingerprint());
  EXPECT_EQ(ropewalk_plan_description(raw), to_string(expected));
  EXPECT_EQ(ropewalk_plan_head_dim(raw), 128);
  EXPECT_EQ(ropewalk_plan_rotary_dim(raw), 128);
  EXPECT_EQ(ropewalk_plan_window_offset(raw), 0);
  EXPECT_EQ(ropewalk_plan_axes(raw), 1);
  EXPECT_EQ(ropewalk_plan_amplitude(raw), expected.amplitude());
  EXPECT_EQ(ropewalk_plan_softmax_multiplier(raw), expected.spec().softmax_multiplier);
  EXPECT_EQ(ropewalk_plan_rotates(raw), 1);
  size_t count = 0;
  const double* frequencies = ropewalk_plan_frequencies(raw, &count);
  EXPECT_EQ(std::vector(frequencies, frequencies + count), expected.frequencies());

  options.frequency_precision = ROPEWALK_FREQUENCY_FORMULA;
  options.arithmetic = ROPEWALK_ARITHMETIC_PARITY_P1;
  ASSERT_EQ(ropewalk_plan_from_config(json.data(), json.size(), &options, &raw), ROPEWALK_OK);
  const PlanPointer other(raw, &ropewalk_plan_destroy);
  PlanOptions same;
  same.frequency_precision = FrequencyPrecision::formula;
  same.arithmetic = Arithmetic::parity_p1;
  EXPECT_EQ(ropewalk_plan_fingerprint(raw), make_plan(parse_config(json), same).fingerprint());
}

TEST(Capi, RotateGivesTheBitsOfTheCxxInterface) {
  const PlanPointer plan = simple_plan();
  const std::vector<float> source = ramp(2 * 3 * 4 * 16);
  std::vector<float> expected = source;
  const Rotation rotation = Rotation::in_place(bthd(expected.data(), Dtype::float32, 2, 3, 4, 16));
  const std::vector<int64_t> where = {131'071, -5, (int64_t{1} << 35) + 3};
  RotateOptions inverse;
  inverse.direction = Direction::inverse;
  rotate(make_plan(16), std::span(&rotation, 1), Positions::from_tokens(where), inverse);

  std::vector<float> values = source;
  const ropewalk_rotation view =
      ropewalk_in_place(ropewalk_bthd(values.data(), ROPEWALK_FLOAT32, 2, 3, 4, 16));
  const ropewalk_positions positions = ropewalk_positions_from_tokens(where.data(), 3);
  ropewalk_rotate_options options = ROPEWALK_ROTATE_OPTIONS_INIT;
  options.direction = ROPEWALK_INVERSE;
  ASSERT_EQ(ropewalk_rotate(plan.get(), &view, 1, &positions, &options), ROPEWALK_OK)
      << last_error();
  EXPECT_EQ(values, expected);
  EXPECT_NE(values, source);
}

// A caller that states how many rows of positions it has is told when the tensor has more.
TEST(Capi, RowsOfPositionsThatAreTooFewAreRefused) {
  const PlanPointer plan = simple_plan(4);
  const std::vector<int64_t> where = {1, 2, 3, 4};
  const std::vector<float> source = ramp(3 * 2 * 4);
  std::vector<float> values = source;
  const ropewalk_rotation view =
      ropewalk_in_place(ropewalk_bthd(values.data(), ROPEWALK_FLOAT32, 3, 2, 1, 4));
  ropewalk_positions positions = ropewalk_positions_from_tokens(where.data(), 2);
  positions.batch_stride = 2;
  for (const int64_t rows : {1, 2, 4, -1}) {
    positions.batches = rows;
    EXPECT_EQ(ropewalk_rotate(plan.get(), &view, 1, &positions, nullptr),
              ROPEWALK_INVALID_ARGUMENT);
    EXPECT_NE(last_error().find("batch rows"), std::string::npos) << last_error();
  }
  EXPECT_EQ(values, source);

  positions.batches = 1;
  positions.batch_stride = 0;
  EXPECT_EQ(ropewalk_rotate(plan.get(), &view, 1, &positions, nullptr), ROPEWALK_OK);
  EXPECT_NE(values, source);

  // An older caller's struct ends before the field: whatever lies there is not read.
  positions.batches = 7;
  positions.struct_size = offsetof(ropewalk_positions, batches);
  EXPECT_EQ(ropewalk_rotate(plan.get(), &view, 1, &positions, nullptr), ROPEWALK_OK)
      << last_error();
}

TEST(Capi, TakesMoreRotationsThanFitInTheSmallArray) {
  const PlanPointer plan = simple_plan(4);
  std::vector<float> values = ramp(20 * 4);
  std::vector<ropewalk_rotation> views;
  for (std::size_t i = 0; i < 20; ++i) {
    views.push_back(
        ropewalk_in_place(ropewalk_bhtd(values.data() + 4 * i, ROPEWALK_FLOAT32, 1, 1, 1, 4)));
  }
  const std::vector<float> source = values;
  ropewalk_positions positions = ropewalk_positions_from_offset(9);
  ASSERT_EQ(ropewalk_rotate(plan.get(), views.data(), views.size(), &positions, nullptr),
            ROPEWALK_OK)
      << last_error();
  for (std::size_t i = 0; i < 20; ++i) EXPECT_NE(values[4 * i], source[4 * i]) << i;
}

TEST(Capi, TablesAreCreatedSavedLoadedAndUsed) {
  const PlanPointer plan = simple_plan(4);
  const TemporaryFolder folder;
  const std::string path = folder / "t";
  ropewalk_table* raw = nullptr;
  ASSERT_EQ(ropewalk_table_create(plan.get(), 10, ROPEWALK_FLOAT32, &raw), ROPEWALK_OK);
  const TablePointer table(raw, &ropewalk_table_destroy);
  EXPECT_EQ(ropewalk_table_rows(raw), 10);
  ASSERT_EQ(ropewalk_table_save(raw, path.c_str()), ROPEWALK_OK);
  ASSERT_EQ(ropewalk_table_load(path.c_str(), plan.get(), ROPEWALK_FLOAT32, &raw), ROPEWALK_OK);
  const TablePointer loaded(raw, &ropewalk_table_destroy);

  std::array<std::vector<float>, 2> results = {ramp(8), ramp(8)};
  ropewalk_positions positions = ropewalk_positions_from_offset(7);
  for (std::size_t i = 0; i < 2; ++i) {
    const ropewalk_rotation view =
        ropewalk_in_place(ropewalk_bthd(results[i].data(), ROPEWALK_FLOAT32, 1, 2, 1, 4));
    const ropewalk_table* used = i == 0 ? table.get() : loaded.get();
    ASSERT_EQ(ropewalk_table_rotate(used, &view, 1, &positions, nullptr), ROPEWALK_OK)
        << last_error();
    positions.start = 9;  // token 1 would stand at row 10
    EXPECT_EQ(ropewalk_table_rotate(used, &view, 1, &positions, nullptr), ROPEWALK_BAD_POSITION);
    positions.start = 7;
  }
  EXPECT_EQ(results[0], results[1]);

  EXPECT_EQ(ropewalk_table_load(path.c_str(), plan.get(), ROPEWALK_FLOAT16, &raw), ROPEWALK_IO);
  EXPECT_EQ(ropewalk_table_load("/", plan.get(), ROPEWALK_FLOAT32, &raw), ROPEWALK_IO);
  const std::vector<float> ones(6, 1.0F);
  ASSERT_EQ(
      ropewalk_table_from_values(plan.get(), ones.data(), ones.data(), 3, ROPEWALK_FLOAT32, &raw),
      ROPEWALK_OK);
  const TablePointer given(raw, &ropewalk_table_destroy);
  EXPECT_EQ(ropewalk_table_rows(raw), 3);
  EXPECT_EQ(ropewalk_table_from_values(plan.get(), ones.data(), ones.data(),
                                       std::numeric_limits<int64_t>::max(), ROPEWALK_FLOAT32, &raw),
            ROPEWALK_INVALID_ARGUMENT);
}

TEST(Capi, ErrorsNameTheReasonAndWriteNothing) {
  ropewalk_plan* plan = nullptr;
  EXPECT_EQ(ropewalk_plan_create(7, 10000.0, 0, ROPEWALK_PAIRING_HALF, &plan),
            ROPEWALK_INVALID_ARGUMENT);
  EXPECT_NE(last_error().find('7'), std::string::npos);
  EXPECT_EQ(ropewalk_plan_create(8, 10000.0, 0, 3, &plan), ROPEWALK_INVALID_ARGUMENT);
  EXPECT_NE(last_error().find("pairing"), std::string::npos);
  EXPECT_EQ(ropewalk_plan_create(8, 10000.0, 0, 0, nullptr), ROPEWALK_INVALID_ARGUMENT);
  const std::string bad = R"({"model_type": "llama", "head_dim": "many"})";
  EXPECT_EQ(ropewalk_plan_from_config(bad.data(), bad.size(), nullptr, &plan),
            ROPEWALK_INVALID_CONFIG);
  EXPECT_EQ(ropewalk_plan_from_config(nullptr, 0, nullptr, &plan), ROPEWALK_INVALID_ARGUMENT);
  EXPECT_EQ(plan, nullptr);

  const PlanPointer good = simple_plan(4);
  std::vector<float> values = ramp(4);
  ropewalk_rotation view =
      ropewalk_in_place(ropewalk_bthd(values.data(), ROPEWALK_FLOAT32, 1, 1, 1, 4));
  ropewalk_positions positions = ropewalk_positions_from_offset(int64_t{1} << 36);
  EXPECT_EQ(ropewalk_rotate(good.get(), &view, 1, &positions, nullptr), ROPEWALK_BAD_POSITION);
  positions.start = 1;
  EXPECT_EQ(ropewalk_rotate(nullptr, &view, 1, &positions, nullptr), ROPEWALK_INVALID_ARGUMENT);
  EXPECT_EQ(ropewalk_rotate(good.get(), nullptr, 1, &positions, nullptr),
            ROPEWALK_INVALID_ARGUMENT);
  EXPECT_EQ(ropewalk_rotate(good.get(), &view, 1, nullptr, nullptr), ROPEWALK_INVALID_ARGUMENT);
  positions.kind = 4;
  EXPECT_EQ(ropewalk_rotate(good.get(), &view, 1, &positions, nullptr), ROPEWALK_INVALID_ARGUMENT);
  positions.kind = ROPEWALK_POSITIONS_OFFSET;
  ropewalk_rotate_options options = ROPEWALK_ROTATE_OPTIONS_INIT;
  options.kernel = "no such kernel";
  EXPECT_NE(ropewalk_rotate(good.get(), &view, 1, &positions, &options), ROPEWALK_OK);
  view.in.dtype = view.out.dtype = 0;
  EXPECT_EQ(ropewalk_rotate(good.get(), &view, 1, &positions, nullptr), ROPEWALK_INVALID_ARGUMENT);
  EXPECT_NE(last_error().find("dtype"), std::string::npos);
  EXPECT_EQ(values, ramp(4));
}

TEST(Capi, StructsOfOtherVersionsAreUnderstood) {
  const std::string json =
      read_file(std::filesystem::path(ROPEWALK_CONFIG_DIR) / "llama-3.1-8b.json");
  const auto create = [&](const ropewalk_plan_options* options) {
    ropewalk_plan* plan = nullptr;
    const ropewalk_status status =
        ropewalk_plan_from_config(json.data(), json.size(), options, &plan);
    ropewalk_plan_destroy(plan);
    return status;
  };
  struct Newer {
    ropewalk_plan_options known;
    int64_t added;
  } newer{ROPEWALK_PLAN_OPTIONS_INIT, 0};
  newer.known.struct_size = sizeof newer;
  EXPECT_EQ(create(&newer.known), ROPEWALK_OK);
  newer.added = 1;
  EXPECT_EQ(create(&newer.known), ROPEWALK_INVALID_ARGUMENT);

  ropewalk_plan_options older = ROPEWALK_PLAN_OPTIONS_INIT;
  older.arithmetic = 99;  // beyond what the older struct had: not read
  older.struct_size = offsetof(ropewalk_plan_options, arithmetic);
  EXPECT_EQ(create(&older), ROPEWALK_OK);
  older.struct_size = 0;
  EXPECT_EQ(create(&older), ROPEWALK_INVALID_ARGUMENT);
  EXPECT_NE(last_error().find("struct_size"), std::string::npos);
}

TEST(Capi, EveryExceptionBecomesAStatus) {
  EXPECT_EQ(capi::guarded([] { throw std::bad_alloc(); }), ROPEWALK_OUT_OF_MEMORY);
  EXPECT_EQ(capi::guarded([] { throw std::runtime_error("other"); }), ROPEWALK_INTERNAL);
  EXPECT_EQ(last_error(), "other");
  EXPECT_EQ(capi::guarded([] { throw 1; }), ROPEWALK_INTERNAL);
  for (const ErrorCode code :
       {ErrorCode::invalid_argument, ErrorCode::invalid_config, ErrorCode::bad_position,
        ErrorCode::io, ErrorCode::unsupported, ErrorCode::cuda}) {
    EXPECT_EQ(capi::guarded([&] { throw Error(code, "x"); }), static_cast<int>(code));
  }
}

// A sanitizer's allocator ends the process instead of throwing.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Capi, MemoryThatRunsOutIsAStatus) {
  const PlanPointer plan = simple_plan(4);
  float value = 0;
  const ropewalk_rotation view =
      ropewalk_in_place(ropewalk_bthd(&value, ROPEWALK_FLOAT32, 0, 1, 1, 4));
  const ropewalk_positions positions = ropewalk_positions_from_offset(0);
  // More rotations than the address space has room for; none is looked at.
  EXPECT_EQ(ropewalk_rotate(plan.get(), &view, std::size_t{1} << 50, &positions, nullptr),
            ROPEWALK_OUT_OF_MEMORY);
}
#endif

TEST(Capi, MessagesBelongToAThreadAndAreCutWhereTheyAreLong) {
  capi::set_last_error("mine");
  std::thread([] {
    EXPECT_EQ(last_error(), "");
    capi::set_last_error(std::string(5000, 'x'));
    EXPECT_EQ(last_error(), std::string(1023, 'x'));
    capi::set_last_error(std::string(1022, 'x') + "µ");
    EXPECT_EQ(last_error(), std::string(1022, 'x'));
  }).join();
  EXPECT_EQ(last_error(), "mine");
}

TEST(Capi, ListsTheKernels) {
  const std::vector<CpuKernelInfo> expected = cpu_kernels();
  ASSERT_EQ(ropewalk_cpu_kernel_count(), expected.size());
  ropewalk_cpu_kernel kernel{};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(ropewalk_cpu_kernel_at(i, &kernel), ROPEWALK_OK);
    EXPECT_EQ(kernel.name, expected[i].name);
    EXPECT_EQ(kernel.supported != 0, expected[i].supported);
  }
  EXPECT_EQ(ropewalk_cpu_kernel_at(expected.size(), &kernel), ROPEWALK_INVALID_ARGUMENT);
}

TEST(Capi, DestroyTakesNull) {
  ropewalk_plan_destroy(nullptr);
  ropewalk_table_destroy(nullptr);
  EXPECT_NE(std::strlen(ropewalk_version()), 0u);
}

}  // namespace
}  // namespace ropewalk
