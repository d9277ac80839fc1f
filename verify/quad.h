// Quad: IEEE binary128, 113 bits of significand, on every machine the oracle runs on.
#pragma once

#include <cfloat>
#include <cmath>

#if LDBL_MANT_DIG != 113
// libquadmath, declared here because its header is private to GCC and Clang does not find it.
extern "C" {
__float128 sinq(__float128) noexcept;
__float128 cosq(__float128) noexcept;
__float128 scalbnq(__float128, int) noexcept;
__float128 rintq(__float128) noexcept;
int ilogbq(__float128) noexcept;
}
#endif

namespace ropewalk::verify {

#if LDBL_MANT_DIG == 113
using Quad = long double;
inline Quad sine(Quad x) noexcept { return sinl(x); }
inline Quad cosine(Quad x) noexcept { return cosl(x); }
inline Quad scale_by_power(Quad x, int power) noexcept { return scalbnl(x, power); }
inline Quad round_to_integer(Quad x) noexcept { return rintl(x); }
inline int exponent_of(Quad x) noexcept { return ilogbl(x); }
#else
using Quad = __float128;
inline Quad sine(Quad x) noexcept { return sinq(x); }
inline Quad cosine(Quad x) noexcept { return cosq(x); }
inline Quad scale_by_power(Quad x, int power) noexcept { return scalbnq(x, power); }
/// To nearest, ties to even, in the default rounding mode.
inline Quad round_to_integer(Quad x) noexcept { return rintq(x); }
inline int exponent_of(Quad x) noexcept { return ilogbq(x); }
#endif

inline Quad magnitude(Quad x) noexcept { return x < 0 ? -x : x; }
inline bool is_nan(Quad x) noexcept { return x != x; }
/// Infinity minus itself is NaN; so is NaN: neither equals zero.
inline bool is_finite(Quad x) noexcept { return x - x == 0; }
inline bool is_infinite(Quad x) noexcept { return !is_nan(x) && !is_finite(x); }

}  // namespace ropewalk::verify
