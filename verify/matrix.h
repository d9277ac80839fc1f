// The verification matrix: every kernel against the oracle over dtypes, pairings, layouts, position
// sets, directions, placements and rotary dims. The tests and `ropewalk verify` run it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/plan.h"
#include "ropewalk/rotate.h"
#include "verify/layout.h"
#include "verify/position_sets.h"
#include "verify/random.h"

namespace ropewalk::verify {

/// What a case's plan has beside pairing and rotary dim.
enum class PlanVariant : std::uint8_t {
  plain,
  tail,           ///< an unrotated channel behind the window: odd head_dim
  offset_window,  ///< unrotated channels on both sides
  amplitude,      ///< YaRN's factor, with a tail
  negative_sign,  ///< rotates by −φ
  blocks,         ///< two blocks with a half pairing each (Pairing::half alone; else plain)
  fast_turns,     ///< frequencies of several turns per position, some negative
};
inline constexpr std::array kPlanVariants{PlanVariant::plain,         PlanVariant::tail,
                                          PlanVariant::offset_window, PlanVariant::amplitude,
                                          PlanVariant::negative_sign, PlanVariant::blocks,
                                          PlanVariant::fast_turns};
[[nodiscard]] std::string_view name_of(PlanVariant) noexcept;

struct MatrixCase {
  Dtype dtype = Dtype::float32;
  Pairing pairing = Pairing::half;
  Layout layout = Layout::bthd;
  PositionKind positions = PositionKind::tokens_int64;
  Direction direction = Direction::forward;
  bool in_place = false;
  std::int64_t rotary_dim = 64;
  PlanVariant variant = PlanVariant::plain;
  Values values = Values::normal;
  std::uint64_t seed = 0;
};
[[nodiscard]] std::string to_string(const MatrixCase&);
/// The plan of a case; `axes` as its position set has.
[[nodiscard]] RotaryPlan plan_of(const MatrixCase&, int axes);

enum class MatrixSize : std::uint8_t {
  quick,  ///< every dtype × pairing × layout, the rest drawn from the seed: seconds
  full,   ///< the whole product, variants and values drawn from the seed: minutes
};
/// The cases, in an order that depends on the seed alone.
[[nodiscard]] std::vector<MatrixCase> matrix_cases(MatrixSize size, std::uint64_t seed);

/// What one kernel did with one case.
struct CaseRecord {
  std::string kernel;
  MatrixCase test_case;
  std::int64_t elements = 0;
  std::int64_t computed = 0;
  std::int64_t correctly_rounded = 0;
  double worst_ratio = 0;  ///< error / bound
  double worst_abs_error = 0;
  double correctly_rounded_share = 1;  ///< of the computed elements
  std::uint64_t hash = 0;              ///< hash_bits of q, then k
  bool pass = false;
  std::string detail;  ///< why not, with the seed's case in words
};

/// Rotates host buffers; a device backend copies to and fro. Reports failure by throwing.
using Backend = std::function<void(const RotaryPlan&, std::span<const Rotation>, const Positions&,
                                   Direction, std::string_view kernel)>;

/// Runs one case with every kernel: against the oracle, for canaries, and all kernels for the same
/// bits as the first.
[[nodiscard]] std::vector<CaseRecord> run_case(const MatrixCase&, const Backend&,
                                               std::span<const std::string> kernels);

/// Called with a case's records, how many cases are done and how many there are; one call at a
/// time.
using MatrixProgress =
    std::function<void(std::span<const CaseRecord>, std::int64_t done, std::int64_t total)>;

/// Runs cases on `threads` threads (0: one per processor), each case on one of them: the oracle,
/// which takes nearly all of the time, runs beside itself. Records in the order of the cases.
/// What a case throws besides a failure of the backend is thrown again.
std::vector<CaseRecord> run_cases(std::span<const MatrixCase> cases, const Backend& backend,
                                  std::span<const std::string> kernels, int threads,
                                  const MatrixProgress& progress = {});

struct MatrixOptions {
  MatrixSize size = MatrixSize::quick;
  std::vector<std::string> kernels;  ///< the first is the reference for bits
  std::uint64_t seed = 0;
  int threads = 0;
  MatrixProgress progress;
};
[[nodiscard]] std::vector<CaseRecord> run_matrix(const Backend&, const MatrixOptions&);

/// The backend of this library's own CPU kernels.
[[nodiscard]] Backend cpu_backend();
/// Names of the CPU kernels that this machine supports, the scalar one first.
[[nodiscard]] std::vector<std::string> supported_cpu_kernels();

}  // namespace ropewalk::verify
