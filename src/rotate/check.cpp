#include "rotate/check.h"

#include "base/check.h"
#include "rotate/overlap.h"

namespace ropewalk {
namespace {

/// Formatted only where a message needs it: this runs in every call of a decode step.
struct Shape {
  const std::array<std::int64_t, 4>& size;
};
Shape shape(const std::array<std::int64_t, 4>& size) { return {size}; }

}  // namespace
}  // namespace ropewalk

template <>
struct fmt::formatter<ropewalk::Shape> : fmt::formatter<std::string_view> {
  auto format(const ropewalk::Shape& shape, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "({}, {}, {}, {})", shape.size[0], shape.size[1],
                          shape.size[2], shape.size[3]);
  }
};

namespace ropewalk {
namespace {

/// The distance from the first to the last element must be addressable.
void check_span(const ConstTensorView& view, std::size_t index, const char* name) {
  __int128 span = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    if (view.size[d] > 1) {
      const __int128 stride = view.stride[d] < 0 ? -static_cast<__int128>(view.stride[d])
                                                 : static_cast<__int128>(view.stride[d]);
      span += stride * (view.size[d] - 1);
    }
  }
  require(span < (__int128{1} << 59), "rotations[{}].{}: strides reach beyond 2^59 elements", index,
          name);
}

void check_one(const RotaryPlan& plan, const Rotation& rotation, std::size_t index) {
  const auto& [in, out] = rotation;
  require(size_of(in.dtype) != 0, "rotations[{}].in: unknown dtype {}", index,
          static_cast<int>(in.dtype));
  require(in.size == out.size, "rotations[{}].out: expected the shape {} of its input, got {}",
          index, shape(in.size), shape(out.size));
  require(in.dtype == out.dtype, "rotations[{}].out: expected the dtype {} of its input, got {}",
          index, name_of(in.dtype), name_of(out.dtype));
  __int128 elements = 1;
  for (const std::int64_t size : in.size) {
    require(size >= 0, "rotations[{}].in: expected sizes of at least 0, got {}", index,
            shape(in.size));
    elements *= size;
    require(elements < (__int128{1} << 59), "rotations[{}].in: {} has too many elements", index,
            shape(in.size));
  }
  require(in.size[kChannel] == plan.head_dim(),
          "rotations[{}].in: expected {} channels (the plan's head_dim), got {}", index,
          plan.head_dim(), in.size[kChannel]);
  if (elements == 0) return;
  require(in.data != nullptr, "rotations[{}].in: expected data, got a null pointer", index);
  require(out.data != nullptr, "rotations[{}].out: expected data, got a null pointer", index);
  check_span(in, index, "in");
  check_span(out, index, "out");
  require(elements_are_disjoint(out),
          "rotations[{}].out: elements overlap each other, or their strides do not exclude it",
          index);
}

void check_disjoint(const ConstTensorView& out, std::size_t i, const ConstTensorView& other,
                    std::size_t j, const char* name) {
  const Overlap overlap = overlap_of(out, other);
  require(overlap != Overlap::shared,
          "rotations[{}].out: overlaps rotations[{}].{} without being the same view", i, j, name);
  require(overlap != Overlap::undecided,
          "rotations[{}].out: whether it overlaps rotations[{}].{} cannot be decided from the "
          "strides",
          i, j, name);
}

}  // namespace

CheckedCall check_rotations(const RotaryPlan& plan, std::span<const Rotation> rotations) {
  CheckedCall call;
  for (std::size_t i = 0; i < rotations.size(); ++i) {
    const ConstTensorView& in = rotations[i].in;
    check_one(plan, rotations[i], i);
    if (i == 0) {
      call.batch = in.size[kBatch];
      call.tokens = in.size[kToken];
      call.dtype = in.dtype;
    }
    require(in.size[kBatch] == call.batch && in.size[kToken] == call.tokens,
            "rotations[{}].in: expected the batch {} and tokens {} of rotations[0], got {} and {}",
            i, call.batch, call.tokens, in.size[kBatch], in.size[kToken]);
    require(in.dtype == call.dtype,
            "rotations[{}].in: expected the dtype {} of rotations[0], got {}", i,
            name_of(call.dtype), name_of(in.dtype));
    if (in.elements() > 0) {
      call.empty = false;
      call.bytes_written += in.elements() * static_cast<std::int64_t>(size_of(in.dtype));
    }
  }
  for (std::size_t i = 0; i < rotations.size(); ++i) {
    if (rotations[i].in.elements() == 0) continue;
    if (!is_in_place(rotations[i])) check_disjoint(rotations[i].out, i, rotations[i].in, i, "in");
    for (std::size_t j = 0; j < rotations.size(); ++j) {
      if (j == i || rotations[j].in.elements() == 0) continue;
      if (!is_in_place(rotations[j])) {
        check_disjoint(rotations[i].out, i, rotations[j].in, j, "in");
      }
      if (j > i) check_disjoint(rotations[i].out, i, rotations[j].out, j, "out");
    }
  }
  return call;
}

}  // namespace ropewalk
