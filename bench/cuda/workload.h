// One benchmark case on the device: rotating sets of q and k with their positions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "measure/cuda/sets.h"
#include "ropewalk/cuda.h"
#include "verify/cuda/device_memory.h"

namespace ropewalk::bench {

enum class Layout { bthd, bhtd, qkv };  ///< qkv: slices of one buffer with q, k and v heads
enum class Where { offset, tokens64, tokens32, batch_offsets, packed, axes3 };

struct Case {
  std::string name = {};
  Dtype dtype = Dtype::bfloat16;
  Pairing pairing = Pairing::half;
  Direction direction = Direction::forward;
  bool in_place = false;
  Layout layout = Layout::bthd;
  std::int64_t batch = 1, tokens = 1, query_heads = 32, key_heads = 8, head_dim = 128;
  std::int64_t rotary_dim = 128, offset = 0;
  Where where = Where::tokens64;
  bool warm = false;  ///< data stay in the L2 cache
  bool programmatic = false;
  bool triple = false;  ///< between two other kernels (triple.h)
};

/// Bytes that one call has to move, positions not counted.
[[nodiscard]] std::int64_t necessary_bytes(const Case& c);

/// Device memory that all cases share, filled with normal random values.
struct Pools {
  explicit Pools(std::int64_t bytes)
      : in(static_cast<std::size_t>(bytes)), out(static_cast<std::size_t>(bytes)) {}
  verify::DeviceBuffer in, out;
};

class Workload {
 public:
  Workload(const Case& c, const Pools& pools, std::int64_t l2_bytes);

  /// Where the sets lie; the bytes of one include those of v.
  [[nodiscard]] const measure::RotatingSets& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::vector<Rotation>& rotations(int node) const {
    return sets_[at(node)].rotations;
  }
  [[nodiscard]] const Positions& positions(int node) const { return sets_[at(node)].positions; }
  [[nodiscard]] const cuda::DevicePlan& plan() const noexcept { return *plan_; }
  /// Bytes one way, as a copy of the same traffic.
  [[nodiscard]] std::int64_t copy_bytes() const { return necessary_bytes(case_) / 2; }

  void rotate(int node, cudaStream_t stream, std::string_view policy = {}) const;
  /// The same without programmatic launch.
  void rotate_plainly(int node, cudaStream_t stream, std::string_view policy) const;

  /// Rotates the first and last set and compares every byte with the narrow path's result; empty
  /// where all agree and no row was bad.
  [[nodiscard]] std::string verify(cudaStream_t stream, std::string_view policy) const;

 private:
  struct Set {
    std::vector<Rotation> rotations;
    Positions positions;
  };
  [[nodiscard]] std::size_t at(int node) const {
    return static_cast<std::size_t>(memory_.index(node));
  }
  void make_set(int set);
  void make_positions(Positions& positions, std::uint64_t seed);

  Case case_;
  measure::RotatingSets memory_;
  std::unique_ptr<cuda::DevicePlan> plan_;
  std::vector<Set> sets_;
  std::vector<verify::DeviceBuffer> position_memory_;
};

}  // namespace ropewalk::bench
