
// RotaryTable: cos and sin of positions 0 … rows − 1, for parity with other libraries and for
// tables that users bring. The exact path needs none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "ropewalk/export.h"
#include "ropewalk/plan.h"
#include "ropewalk/types.h"

namespace ropewalk {

/// Immutable. Holds rows × pairs cosines and sines, amplitude and sign folded in, as the plan's
/// arithmetic wants them: float32 (P2, P3), rounded to `dtype` (P0, P1), or float64 (P4).
class ROPEWALK_API RotaryTable {
 public:
  /// The fp32 recipe of transformers: angle = fl32(fl32(ω) · position), cos and sin of that angle
  /// correctly rounded to fp32, times fl32(amplitude) with one rounding, then rounded to `dtype`
  /// where the arithmetic says so. Within 1 ulp (2 with an amplitude) of transformers' own bits,
  /// whose vector library is not correctly rounded (docs/numerics.md).
  /// Arithmetic exact: cos and sin from the fixed-point phase; rotation is the exact one.
  /// Throws Error(invalid_argument) for rows < 1, rows > 2^31 or a plan with several axes.
  RotaryTable(RotaryPlan plan, std::int64_t rows, Dtype dtype);
  /// The same for these positions alone: row i is that of positions[i], in any order and from
  /// either side of 0, so that memory follows their number and not the largest of them. Rotations
  /// then name rows, as with every table. Also throws Error(bad_position) for a position that is
  /// not valid without a table: |position| < 2^36, for float64 data < 2^53.
  RotaryTable(RotaryPlan plan, std::span<const std::int64_t> positions, Dtype dtype);

  /// A table the user brings: rows × pairs values each, row-major, amplitude included.
  RotaryTable(const RotaryPlan& plan, std::span<const float> cos, std::span<const float> sin,
              Dtype dtype);
  /// The same from doubles, kept as such where the rotation computes in double.
  RotaryTable(const RotaryPlan& plan, std::span<const double> cos, std::span<const double> sin,
              Dtype dtype);

  [[nodiscard]] const RotaryPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t pairs() const noexcept { return plan_.pairs(); }
  /// The dtype of the data this table is for.
  [[nodiscard]] Dtype dtype() const noexcept { return dtype_; }
  /// True where cos64/sin64 hold the values (arithmetic P4, or float64 data).
  [[nodiscard]] bool is_double() const noexcept { return !cos64_.empty(); }
  [[nodiscard]] std::span<const float> cos() const noexcept { return cos_; }
  [[nodiscard]] std::span<const float> sin() const noexcept { return sin_; }
  [[nodiscard]] std::span<const double> cos64() const noexcept { return cos64_; }
  [[nodiscard]] std::span<const double> sin64() const noexcept { return sin64_; }

  /// Writes a safetensors file with tensors "cos" and "sin" (rows × pairs), the plan's
  /// fingerprint and a checksum in its metadata; to a temporary name first, synchronised, then
  /// renamed: the file is whole or absent. Throws Error(io).
  void save(const std::filesystem::path& path) const;

  /// Reads such a file back for this plan. A truncated, altered or foreign file, or one made for
  /// another plan or dtype, is Error(io) naming the file and the reason.
  [[nodiscard]] static RotaryTable load(const std::filesystem::path& path, RotaryPlan plan,
                                        Dtype dtype);

  [[nodiscard]] bool operator==(const RotaryTable&) const = default;

 private:
  RotaryTable(RotaryPlan plan, Dtype dtype, std::int64_t rows);
  template <class Real>
  void assign(std::span<const Real> cos, std::span<const Real> sin);
  void fill_rows(const std::int64_t* positions);
  template <class Real>
  void fill(std::vector<Real>& cos, std::vector<Real>& sin, const std::int64_t* positions,
            void (*angle)(const RotaryPlan&, std::int64_t, std::size_t, Real&, Real&));

  RotaryPlan plan_;
  Dtype dtype_;
  std::int64_t rows_;
  std::vector<float> cos_, sin_;
  std::vector<double> cos64_, sin64_;
};

}  // namespace ropewalk
