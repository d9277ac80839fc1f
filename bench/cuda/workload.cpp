#include "bench/cuda/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "verify/cuda/device_values.h"

namespace ropewalk::bench {
namespace {

using verify::must;

constexpr std::int64_t kMaxPosition = 131072;
constexpr std::int64_t kSequences = 2401;

RotaryPlan plan_of(const Case& c) {
  PlanSpec spec = make_plan(c.rotary_dim, 10000.0, 0, c.pairing).spec();
  spec.head_dim = c.head_dim;
  spec.window = {c.offset, c.rotary_dim};
  if (c.where == Where::axes3) {  // the sections 16, 24, 24 of Qwen2-VL, scaled
    spec.axes = 3;
    spec.axis.clear();
    for (std::int64_t i = 0; i < c.rotary_dim / 2; ++i) {
      const std::int64_t eighth = i * 16 / c.rotary_dim;
      spec.axis.push_back(static_cast<std::uint8_t>(eighth < 2 ? 0 : (eighth < 5 ? 1 : 2)));
    }
  }
  return RotaryPlan(spec);
}

/// Heads of the buffer: with slices of a packed one, those of v too.
std::int64_t heads_in_memory(const Case& c) {
  return c.query_heads + c.key_heads * (c.layout == Layout::qkv ? 2 : 1);
}

}  // namespace

std::int64_t necessary_bytes(const Case& c) {
  const std::int64_t channels = c.in_place ? c.rotary_dim : c.head_dim;
  return 2 * c.batch * c.tokens * (c.query_heads + c.key_heads) * channels *
         static_cast<std::int64_t>(size_of(c.dtype));
}

Workload::Workload(const Case& c, const Pools& pools, std::int64_t l2_bytes)
    : case_(c), plan_(std::make_unique<cuda::DevicePlan>(plan_of(c))) {
  memory_.in_memory = pools.in.data();
  memory_.out_memory = c.in_place ? pools.in.data() : pools.out.data();
  memory_.set_bytes = measure::aligned_set(c.batch * c.tokens * heads_in_memory(c) * c.head_dim *
                                           static_cast<std::int64_t>(size_of(c.dtype)));
  memory_.count =
      measure::sets_of_chain(memory_.set_bytes * (c.in_place ? 1 : 2), memory_.set_bytes,
                             static_cast<std::int64_t>(pools.in.size()), l2_bytes, c.warm);
  sets_.resize(static_cast<std::size_t>(memory_.count));
  for (int set = 0; set < memory_.count; ++set) make_set(set);
}

void Workload::make_set(int set) {
  const Case& c = case_;
  const std::int64_t size = static_cast<std::int64_t>(size_of(c.dtype));
  std::byte* in = memory_.in(set);
  std::byte* out = memory_.out(set);
  Set& made = sets_[at(set)];
  const auto view = [&](std::byte* base, std::int64_t first_head, std::int64_t heads) {
    std::byte* own = base + c.batch * c.tokens * first_head * c.head_dim * size;
    if (c.layout == Layout::bthd) {
      return bthd(own, c.dtype, c.batch, c.tokens, heads, c.head_dim);
    }
    if (c.layout == Layout::bhtd) {
      return bhtd(own, c.dtype, c.batch, c.tokens, heads, c.head_dim);
    }
    const std::int64_t row = heads_in_memory(c) * c.head_dim;
    return TensorView{base + first_head * c.head_dim * size,
                      c.dtype,
                      {c.batch, c.tokens, heads, c.head_dim},
                      {c.tokens * row, row, c.head_dim, 1}};
  };
  const auto add = [&](std::int64_t first_head, std::int64_t heads) {
    if (heads == 0) return;
    made.rotations.push_back(Rotation{view(in, first_head, heads), view(out, first_head, heads)});
  };
  add(0, c.query_heads);
  add(c.query_heads, c.key_heads);
  if (c.warm && set > 0) {
    made.positions = sets_[0].positions;
  } else {
    make_positions(made.positions, static_cast<std::uint64_t>(set));
  }
}

void Workload::make_positions(Positions& p, std::uint64_t seed) {
  const Case& c = case_;
  std::mt19937_64 random(seed + 1);
  std::uniform_int_distribution<std::int64_t> any(0, kMaxPosition - 1);
  const auto put = [&](const auto& values) {
    position_memory_.emplace_back(values.size() * sizeof values[0]);
    position_memory_.back().upload(values.data(), position_memory_.back().size());
    return position_memory_.back().data();
  };
  const auto draw = [&](std::int64_t count, auto& values) {
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<std::remove_reference_t<decltype(values[0])>>(any(random)));
    }
  };
  p.axes = 1;
  p.token_stride = 1;
  p.count = c.tokens;
  switch (c.where) {
    case Where::offset: p = Positions::from_offset(static_cast<std::int64_t>(seed)); return;
    case Where::tokens64:
    case Where::axes3: {
      p.kind = Positions::Kind::per_token;
      p.axes = c.where == Where::axes3 ? 3 : 1;
      p.batch_stride = c.tokens;
      p.axis_stride = c.batch * c.tokens;
      std::vector<std::int64_t> values;
      draw(p.axes * c.batch * c.tokens, values);
      p.data = put(values);
      return;
    }
    case Where::tokens32: {
      p.kind = Positions::Kind::per_token;
      p.type = Positions::Type::int32;
      p.batch_stride = c.tokens;
      std::vector<std::int32_t> values;
      draw(c.batch * c.tokens, values);
      p.data = put(values);
      return;
    }
    case Where::batch_offsets: {
      p.kind = Positions::Kind::per_batch;
      p.batch_stride = 1;
      p.count = c.batch;
      std::vector<std::int64_t> values;
      draw(c.batch, values);
      p.data = put(values);
      return;
    }
    case Where::packed: {
      p.kind = Positions::Kind::packed;
      p.sequences = std::min(kSequences, c.tokens);
      std::vector<std::int32_t> cu{0, static_cast<std::int32_t>(c.tokens)};
      std::uniform_int_distribution<std::int32_t> cut(0, static_cast<std::int32_t>(c.tokens));
      while (static_cast<std::int64_t>(cu.size()) <= p.sequences) cu.push_back(cut(random));
      std::sort(cu.begin(), cu.end());
      p.cu_type = Positions::Type::int32;
      p.cu_seqlens = put(cu);
      return;
    }
  }
}

void Workload::rotate(int node, cudaStream_t stream, std::string_view policy) const {
  cuda::rotate(
      *plan_, rotations(node), positions(node), stream,
      {.direction = case_.direction, .programmatic = case_.programmatic, .policy = policy});
}

void Workload::rotate_plainly(int node, cudaStream_t stream, std::string_view policy) const {
  cuda::rotate(*plan_, rotations(node), positions(node), stream,
               {.direction = case_.direction, .policy = policy});
}

std::string Workload::verify(cudaStream_t stream, std::string_view policy) const {
  const auto bytes = static_cast<std::size_t>(memory_.set_bytes);
  const verify::DeviceBuffer expected(bytes);
  const verify::DeviceBuffer kept(bytes);
  const verify::DeviceBuffer counter(sizeof(unsigned long long));
  unsigned long long different = 0;
  counter.upload(&different, sizeof different);
  plan_->reset_bad_rows(stream);
  for (const int set : {0, memory_.count - 1}) {
    std::byte* target = memory_.out(set);
    must(cudaMemcpyAsync(kept.data(), memory_.in(set), bytes, cudaMemcpyDeviceToDevice, stream),
         "copy");
    if (!case_.in_place) must(cudaMemsetAsync(target, 0xff, bytes, stream), "memset");
    rotate_plainly(set, stream, "narrow");
    must(cudaMemcpyAsync(expected.data(), target, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    if (case_.in_place) {
      must(cudaMemcpyAsync(target, kept.data(), bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    } else {
      must(cudaMemsetAsync(target, 0xff, bytes, stream), "memset");
    }
    rotate(set, stream, policy);
    verify::count_different_bytes(target, expected.data(), memory_.set_bytes,
                                  counter.as<unsigned long long>(), stream);
    if (case_.in_place) {
      must(cudaMemcpyAsync(target, kept.data(), bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    }
  }
  const std::uint64_t bad = plan_->bad_rows(stream);
  counter.download(&different, sizeof different);
  if (bad > 0) return fmt::format("{} bad rows", bad);
  if (different > 0) return fmt::format("{} bytes differ from the narrow path", different);
  return {};
}

}  // namespace ropewalk::bench
