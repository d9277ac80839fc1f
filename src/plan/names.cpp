// Names of the plan's enumerations: one spelling in C++, C, Python, the command line and docs.
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "ropewalk/plan.h"

namespace ropewalk {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<Pairing, 3> kPairings{{{Pairing::half, "half"},
                                       {Pairing::interleaved, "interleaved"},
                                       {Pairing::interleaved_to_half, "interleaved_to_half"}}};
constexpr Names<Arithmetic, 6> kArithmetics{{{Arithmetic::exact, "exact"},
                                             {Arithmetic::parity_p0, "parity_p0"},
                                             {Arithmetic::parity_p1, "parity_p1"},
                                             {Arithmetic::parity_p2, "parity_p2"},
                                             {Arithmetic::parity_p3, "parity_p3"},
                                             {Arithmetic::parity_p4, "parity_p4"}}};
constexpr Names<FrequencyPrecision, 2> kPrecisions{
    {{FrequencyPrecision::formula, "formula"}, {FrequencyPrecision::model, "model"}}};
constexpr Names<LengthPolicy, 3> kPolicies{{{LengthPolicy::none, "none"},
                                            {LengthPolicy::dynamic_ntk, "dynamic_ntk"},
                                            {LengthPolicy::longrope_switch, "longrope_switch"}}};
constexpr Names<PairChannels, 3> kPairChannels{{{PairChannels::both, "both"},
                                                {PairChannels::first, "first"},
                                                {PairChannels::second, "second"}}};
constexpr Names<Direction, 2> kDirections{
    {{Direction::forward, "forward"}, {Direction::inverse, "inverse"}}};

template <class Enum, std::size_t N>
constexpr std::string_view find_name(const Names<Enum, N>& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown";
}

template <class Enum, std::size_t N>
Enum find_value(const Names<Enum, N>& names, std::string_view argument, std::string_view name) {
  std::string expected;
  for (const auto& [value, known] : names) {
    if (known == name) return value;
    expected += expected.empty() ? "" : ", ";
    expected += known;
  }
  fail(ErrorCode::invalid_argument, "{}: expected one of {}, got \"{}\"", argument, expected, name);
}

}  // namespace

std::string_view name_of(Pairing value) noexcept { return find_name(kPairings, value); }
std::string_view name_of(Arithmetic value) noexcept { return find_name(kArithmetics, value); }
std::string_view name_of(FrequencyPrecision value) noexcept {
  return find_name(kPrecisions, value);
}
std::string_view name_of(LengthPolicy value) noexcept { return find_name(kPolicies, value); }
std::string_view name_of(Direction value) noexcept { return find_name(kDirections, value); }
std::string_view name_of(PairChannels value) noexcept { return find_name(kPairChannels, value); }
Pairing pairing_from_name(std::string_view name) { return find_value(kPairings, "pairing", name); }
Arithmetic arithmetic_from_name(std::string_view name) {
  return find_value(kArithmetics, "arithmetic", name);
}

}  // namespace ropewalk
