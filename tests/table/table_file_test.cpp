#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>

#include "base/safetensors.h"
#include "ropewalk/error.h"
#include "ropewalk/table.h"
#include "support/temporary_folder.h"
#include "support/write_limit.h"

namespace ropewalk {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;
using testing::WriteLimit;

RotaryPlan plan_with(Arithmetic arithmetic, double base = 10000.0) {
  PlanSpec spec = make_plan(8, base).spec();
  spec.arithmetic = arithmetic;
  return RotaryPlan(spec);
}

class TableFile : public ::testing::Test {
 protected:
  /// The reason for which the file is refused; a test failure where it is not.
  [[nodiscard]] std::string refusal(const RotaryPlan& plan, Dtype dtype = Dtype::float32) const {
    try {
      (void)RotaryTable::load(path_, plan, dtype);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
      EXPECT_NE(std::string(error.what()).find("table.safetensors"), std::string::npos)
          << error.what();
      return error.what();
    }
    ADD_FAILURE() << "accepted";
    return {};
  }
  void expect_refusal(std::string_view reason, const RotaryPlan& plan,
                      Dtype dtype = Dtype::float32) const {
    const std::string message = refusal(plan, dtype);
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "table.safetensors";
  RotaryPlan plan_ = plan_with(Arithmetic::parity_p2);
  RotaryTable table_ = RotaryTable(plan_, 2, Dtype::float32);
};

TEST_F(TableFile, ReturnsTheSameTable) {
  for (const Arithmetic arithmetic :
       {Arithmetic::exact, Arithmetic::parity_p0, Arithmetic::parity_p2, Arithmetic::parity_p4}) {
    for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::bfloat16}) {
      const RotaryTable table(plan_with(arithmetic), 37, dtype);
      table.save(path_);
      EXPECT_EQ(RotaryTable::load(path_, plan_with(arithmetic), dtype), table)
          << name_of(arithmetic) << ' ' << name_of(dtype);
    }
  }
  EXPECT_EQ(folder_.listing(), std::vector<std::string>{"table.safetensors"});
}

TEST_F(TableFile, ReturnsTheBitsOfAUsersTable) {
  const std::array<float, 8> cos = {1.5F, -0.0F, 3e-42F, 4, 5, 6, 7, 8};
  const std::array<float, 8> sin = {8, 7, 6, 5, 4, 3, 2, 1};
  const RotaryTable table(plan_, cos, sin, Dtype::float32);
  table.save(path_);
  const RotaryTable loaded = RotaryTable::load(path_, plan_, Dtype::float32);
  ASSERT_EQ(loaded.cos().size(), cos.size());
  EXPECT_EQ(std::memcmp(loaded.cos().data(), cos.data(), sizeof cos), 0);
  EXPECT_EQ(std::memcmp(loaded.sin().data(), sin.data(), sizeof sin), 0);
}

TEST_F(TableFile, IsRefusedForAnotherPlanOrDtype) {
  table_.save(path_);
  expect_refusal("plan", plan_with(Arithmetic::parity_p2, 10001.0));
  expect_refusal("plan", plan_with(Arithmetic::parity_p3));
  expect_refusal("dtype", plan_, Dtype::bfloat16);
  expect_refusal("dtype", plan_, Dtype::float64);
}

TEST_F(TableFile, IsRefusedWhereverItIsCut) {
  table_.save(path_);
  const std::string whole = read_file(path_);
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    write_file(path_, std::string_view(whole).substr(0, kept));
    (void)refusal(plan_);
    ASSERT_FALSE(HasFailure()) << "cut after " << kept << " of " << whole.size() << " bytes";
  }
  write_file(path_, whole + '\0');
  (void)refusal(plan_);
}

TEST_F(TableFile, IsRefusedWhicheverBitIsFlipped) {
  table_.save(path_);
  const std::string whole = read_file(path_);
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, int byte) {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte)).flush();
    ASSERT_TRUE(file);
  };
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    const std::size_t at = bit / 8;
    put(at, whole[at] ^ 1 << bit % 8);
    (void)refusal(plan_);
    ASSERT_FALSE(HasFailure()) << "bit " << bit % 8 << " of byte " << at;
    put(at, whole[at]);
  }
  EXPECT_EQ(RotaryTable::load(path_, plan_, Dtype::float32), table_);
}

TEST_F(TableFile, AForeignFileIsCalledForeign) {
  const std::array<SafetensorsTensor, 1> other = {{{"weight", "U8", {1}}}};
  SafetensorsWriter writer(path_, other);
  const std::byte zero{0};
  writer.write({&zero, 1});
  writer.commit();
  expect_refusal("not a table of ropewalk", plan_);

  const std::array<SafetensorsTensor, 2> alike = {{{"cos", "F32", {1, 0}}, {"sin", "F32", {1, 0}}}};
  SafetensorsWriter same_names(path_, alike);
  same_names.commit();
  expect_refusal("not a table of ropewalk", plan_);

  SafetensorsWriter newer(path_, alike, {{"format", "ropewalk.table"}, {"version", "2"}});
  newer.commit();
  expect_refusal("version", plan_);

  write_file(path_, "PK\x03\x04 something else altogether");
  expect_refusal("not a safetensors file", plan_);
}

TEST_F(TableFile, AFailedSaveKeepsTheOldFileAndLeavesNothing) {
  write_file(path_, "old");
  const RotaryTable large(plan_, 5000, Dtype::float32);
  {
    const WriteLimit full_disk(10'000);
    EXPECT_THROW(large.save(path_), Error);
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(folder_.listing(), std::vector<std::string>{"table.safetensors"});
  EXPECT_THROW(large.save(folder_ / "absent/table"), Error);
  EXPECT_THROW(large.save(folder_ / ""), Error);
}

}  // namespace
}  // namespace ropewalk
