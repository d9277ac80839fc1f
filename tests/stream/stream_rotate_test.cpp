#include <gtest/gtest.h>

#include <new>

#include "base/safetensors.h"
#include "ropewalk/error.h"
#include "ropewalk/stream.h"
#include "support/temporary_folder.h"
#include "verify/random.h"

namespace ropewalk {
namespace {

using testing::read_file;
using testing::TemporaryFolder;

constexpr std::int64_t kHeadDim = 16;

class StreamRotate : public ::testing::Test {
 protected:
  StreamRotate() {
    const std::vector<SafetensorsTensor> tensors = {{"q", "F32", {2, 9, 4, kHeadDim}},
                                                    {"other", "U8", {1001}},
                                                    {"k", "BF16", {2, 9, 2, kHeadDim}}};
    SafetensorsWriter writer(input, tensors);
    std::mt19937_64 random(7);
    for (const SafetensorsTensor& tensor : tensors) {
      std::vector<std::byte> data(safetensors_bytes(tensor));
      for (std::byte& byte : data) byte = static_cast<std::byte>(random() & 0x3f);
      writer.write(data);
    }
    writer.commit();
    (void)stream_rotate(plan, input, expected);
  }

  TemporaryFolder folder;
  std::filesystem::path input = folder / "in";
  std::filesystem::path expected = folder / "expected";
  std::filesystem::path output = folder / "out";
  RotaryPlan plan = make_plan(kHeadDim);
};

TEST_F(StreamRotate, AnySizeOfPiecesGivesTheSameBytes) {
  EXPECT_NE(read_file(expected), read_file(input));
  for (const std::uint64_t chunk : {1, 64, 300, 1000, 4096, 1 << 20}) {
    for (const bool resume : {false, true}) {
      StreamOptions options;
      options.chunk_bytes = chunk;
      options.resume = resume;
      const StreamResult result = stream_rotate(plan, input, output, options);
      EXPECT_EQ(read_file(output), read_file(expected)) << chunk;
      EXPECT_EQ(result.rotated, (std::vector<std::string>{"q", "k"}));
      EXPECT_EQ(result.copied, (std::vector<std::string>{"other"}));
      EXPECT_EQ(folder.listing().size(), 3U);
    }
  }
}

TEST_F(StreamRotate, AnInterruptionAtEveryPieceResumesToTheSameBytes) {
  struct Interruption {};
  StreamOptions options;
  options.resume = true;
  int interruptions = 0;
  std::uint64_t before = 0;
  for (std::uint64_t chunk = 200;; chunk += 10) {  // the size of pieces may change between runs
    options.chunk_bytes = chunk;
    int pieces = 0;
    options.progress = [&pieces](const StreamProgress&) {
      if (++pieces == 3) throw Interruption();
    };
    try {
      const StreamResult result = stream_rotate(plan, input, output, options);
      EXPECT_GE(result.resumed_at, before);
      break;
    } catch (const Interruption&) {
      ++interruptions;
    }
  }
  EXPECT_GT(interruptions, 10);
  EXPECT_EQ(read_file(output), read_file(expected));
}

TEST_F(StreamRotate, PiecesAreHalvedWhereMemoryIsShort) {
  StreamOptions options;
  std::vector<std::uint64_t> halved;
  options.progress = [&halved](const StreamProgress& progress) {
    if (progress.halved_to > 0) halved.push_back(progress.halved_to);
  };
  options.rotator = [](const RotaryPlan& p, const RotaryTable*, const TensorView& piece,
                       const Positions& positions) {
    if (piece.elements() > 300) throw std::bad_alloc();
    rotate(p, std::array{Rotation::in_place(piece)}, positions);
  };
  const StreamResult result = stream_rotate(plan, input, output, options);
  EXPECT_EQ(read_file(output), read_file(expected));
  ASSERT_FALSE(halved.empty());
  EXPECT_EQ(result.chunk_bytes, halved.back());

  options.rotator = [](auto&&...) { throw std::bad_alloc(); };
  EXPECT_THROW((void)stream_rotate(plan, input, output, options), std::bad_alloc);
}

TEST_F(StreamRotate, WhatTheBytesDependOnIsTheJob) {
  struct Interruption {};
  StreamOptions interrupted;
  interrupted.resume = true;
  interrupted.chunk_bytes = 500;
  interrupted.progress = [](const StreamProgress& progress) {
    if (progress.done > 1000) throw Interruption();
  };
  EXPECT_THROW((void)stream_rotate(plan, input, output, interrupted), Interruption);
  const auto expect_refused = [&](const RotaryPlan& other_plan, const StreamOptions& options) {
    try {
      (void)stream_rotate(other_plan, input, output, options);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("resume: ")) << error.what();
    }
  };
  StreamOptions options;
  options.resume = true;
  expect_refused(make_plan(kHeadDim, 500000.0), options);
  const auto with = [&](auto&& change) {
    StreamOptions other = options;
    change(other);
    expect_refused(plan, other);
  };
  with([](StreamOptions& o) { o.positions = "1"; });
  with([](StreamOptions& o) { o.layout = "bhtd"; });
  with([](StreamOptions& o) { o.direction = Direction::inverse; });
  with([](StreamOptions& o) { o.tensors = {"q"}; });
  options.threads = 1;
  EXPECT_GT(stream_rotate(plan, input, output, options).resumed_at, 1000U);
  EXPECT_EQ(read_file(output), read_file(expected));
}

TEST_F(StreamRotate, AParityTableIsReadFromItsFileOrRefused) {
  PlanSpec spec = plan.spec();
  spec.arithmetic = Arithmetic::parity_p2;
  const RotaryPlan parity{spec};
  StreamOptions options;
  options.tensors = {"q"};
  (void)stream_rotate(parity, input, expected, options);
  options.table_file = folder / "table";
  (void)stream_rotate(parity, input, output, options);
  EXPECT_TRUE(std::filesystem::exists(options.table_file));
  EXPECT_EQ(read_file(output), read_file(expected));
  (void)stream_rotate(parity, input, output, options);
  EXPECT_EQ(read_file(output), read_file(expected));

  std::string table = read_file(options.table_file);
  table[table.size() / 2] ^= 1;
  testing::write_file(options.table_file, table);
  EXPECT_THROW((void)stream_rotate(parity, input, output, options), Error);
  EXPECT_THROW((void)stream_rotate(plan, input, output, options), Error);  // exact needs none
}

TEST_F(StreamRotate, NothingIsWrittenBeforeEverythingIsChecked) {
  const std::size_t files = folder.listing().size();
  const auto expect_refused = [&](auto&& change, std::string_view name) {
    StreamOptions options;
    options.resume = true;
    change(options);
    try {
      (void)stream_rotate(plan, input, output, options);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(name)) << error.what();
    }
    EXPECT_EQ(folder.listing().size(), files);
  };
  expect_refused([](StreamOptions& o) { o.chunk_bytes = 0; }, "chunk_bytes: ");
  expect_refused([](StreamOptions& o) { o.tensors = {"none"}; }, "tensors: ");
  expect_refused([](StreamOptions& o) { o.layout = "thd"; }, "layout: ");
  expect_refused([](StreamOptions& o) { o.positions = "other"; }, "positions: ");
  expect_refused([](StreamOptions& o) { o.positions = "68719476730"; }, "positions");
  expect_refused([](StreamOptions& o) { o.kernel = "abacus"; }, "kernel");
  StreamOptions onto_itself;
  onto_itself.resume = true;
  EXPECT_THROW((void)stream_rotate(plan, input, input, onto_itself), Error);
}

}  // namespace
}  // namespace ropewalk
