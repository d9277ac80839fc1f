// THE formula: the rotation of one pair, written once for scalar, SIMD and CUDA, every dtype,
// every pairing, forward and backward (the inverse negates s before it comes here).
#pragma once

#include "base/host_device.h"

namespace ropewalk {

/// y0 = x0·c − x1·s,  y1 = x1·c + x0·s   (Su et al. 2021, arXiv:2104.09864, eq. 34).
/// A says how the two products are summed; its Real is any number of lanes.
template <class A>
ROPEWALK_HD void rotate_pair(typename A::Real x0, typename A::Real x1, typename A::Real c,
                             typename A::Real s, typename A::Real& y0, typename A::Real& y1) {
  y0 = A::difference_of_products(x0, c, x1, s);
  y1 = A::sum_of_products(x1, c, x0, s);
}

/// Arithmetic exact: the second product is rounded, then one fused multiply-add. Two roundings.
template <class V>
struct Fused {
  using Real = typename V::Real;
  ROPEWALK_HD static Real difference_of_products(Real a, Real b, Real c, Real d) {
    return V::fms(a, b, V::mul(c, d));
  }
  ROPEWALK_HD static Real sum_of_products(Real a, Real b, Real c, Real d) {
    return V::fma(a, b, V::mul(c, d));
  }
};

/// Parity P1 … P4: both products rounded to the computing type, then their sum.
template <class V>
struct Separate {
  using Real = typename V::Real;
  ROPEWALK_HD static Real difference_of_products(Real a, Real b, Real c, Real d) {
    return V::sub(V::mul(a, b), V::mul(c, d));
  }
  ROPEWALK_HD static Real sum_of_products(Real a, Real b, Real c, Real d) {
    return V::add(V::mul(a, b), V::mul(c, d));
  }
};

/// Parity P0: products and sum rounded to the dtype of the data, as eager code stores them.
template <class V>
struct Stepwise {
  using Real = typename V::Real;
  ROPEWALK_HD static Real difference_of_products(Real a, Real b, Real c, Real d) {
    return V::sub(V::round(V::mul(a, b)), V::round(V::mul(c, d)));
  }
  ROPEWALK_HD static Real sum_of_products(Real a, Real b, Real c, Real d) {
    return V::add(V::round(V::mul(a, b)), V::round(V::mul(c, d)));
  }
};

}  // namespace ropewalk
