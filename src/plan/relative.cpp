#include "ropewalk/plan.h"

namespace ropewalk {

RotaryPlan relative_plan(const RotaryPlan& plan) {
  PlanSpec spec = plan.spec();
  spec.amplitude = 1.0;
  spec.arithmetic = Arithmetic::exact;
  if (spec.pairing == Pairing::interleaved_to_half) spec.pairing = Pairing::half;
  return RotaryPlan(std::move(spec));
}

}  // namespace ropewalk
