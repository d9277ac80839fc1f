// For libtorch programs: a differentiable rotation. Header-only; the kernels are those of the
// library ropewalk_torch_cpu (and ropewalk_torch_cuda), which a program links with
// -Wl,--no-as-needed, or opens with dlopen, before its first call.
//
//   const ropewalk::TorchRotation rotation{.plan = text_of_a_plan, .start = 100};
//   const auto [q2, k2] = ropewalk::rotate(q, k, rotation);  // differentiable in q and k
//
// examples/torch/rotate_libtorch.cpp is a whole program.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace ropewalk {

/// The arguments of a rotation beside q and k, as torch.ops.ropewalk.rotate takes them
/// (docs/pytorch.md). Tables (cos, sin) receive no gradient here: use the Python package for that.
struct TorchRotation {
  std::string plan;             ///< a plan's text: ropewalk.make_plan(…).text in Python
  std::int64_t token_dim = -2;  ///< −2: heads before tokens (bhtd); −3: bthd
  std::int64_t start = 0;
  std::optional<at::Tensor> positions = {};
  std::optional<at::Tensor> starts = {};
  std::optional<at::Tensor> cu_seqlens = {};
  std::optional<std::int64_t> padding = {};
  bool fractional = false;
  bool inverse = false;
};

namespace torch_detail {

using OptionalTensor = std::optional<at::Tensor>;

/// The operator without derivative. Throws c10::Error where the library is not loaded.
inline std::tuple<at::Tensor, OptionalTensor> call(const at::Tensor& q, const OptionalTensor& k,
                                                   const TorchRotation& r) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("ropewalk::_rotate", "")
          .typed<std::tuple<at::Tensor, OptionalTensor>(
              const at::Tensor&, const OptionalTensor&, c10::string_view, std::int64_t, c10::SymInt,
              const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
              const OptionalTensor&, const OptionalTensor&, std::optional<std::int64_t>, bool,
              bool)>();
  return op.call(q, k, r.plan, r.token_dim, r.start, r.positions, r.starts, r.cu_seqlens, {}, {},
                 r.padding, r.fractional, r.inverse);
}

/// Linear and orthogonal: the backward pass is the rotation in the other direction, itself
/// differentiable, and nothing of q and k is kept.
class Rotate : public torch::autograd::Function<Rotate> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const at::Tensor& q, const OptionalTensor& k,
                                                const TorchRotation& rotation) {
    const auto keep = [](const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); };
    context->save_for_backward(
        {keep(rotation.positions), keep(rotation.starts), keep(rotation.cu_seqlens)});
    auto& data = context->saved_data;
    data["plan"] = rotation.plan;
    data["token_dim"] = rotation.token_dim;
    data["start"] = rotation.start;
    data["padding"] = rotation.padding;
    data["fractional"] = rotation.fractional;
    data["inverse"] = rotation.inverse;
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [q_out, k_out] = call(q, k, rotation);
    return k.has_value() ? torch::autograd::variable_list{q_out, *k_out}
                         : torch::autograd::variable_list{q_out};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto given = [](const at::Tensor& tensor) {
      return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
    };
    auto& data = context->saved_data;
    const TorchRotation back{.plan = data["plan"].toStringRef(),
                             .token_dim = data["token_dim"].toInt(),
                             .start = data["start"].toInt(),
                             .positions = given(saved[0]),
                             .starts = given(saved[1]),
                             .cu_seqlens = given(saved[2]),
                             .padding = data["padding"].toOptional<std::int64_t>(),
                             .fractional = data["fractional"].toBool(),
                             .inverse = !data["inverse"].toBool()};
    const OptionalTensor dk = gradients.size() > 1 ? given(gradients[1]) : std::nullopt;
    at::Tensor dq_out, dk_out;
    if (gradients[0].defined()) {
      auto rotated = Rotate::apply(gradients[0], dk, back);
      dq_out = rotated[0];
      if (dk.has_value()) dk_out = rotated[1];
    } else if (dk.has_value()) {
      dk_out = Rotate::apply(*dk, OptionalTensor(), back)[0];
    }
    return {dq_out, dk_out, at::Tensor()};
  }
};

}  // namespace torch_detail

/// q and k rotated. Head counts may differ; dtype, batch and tokens agree. Differentiable in both,
/// to any order. Throws c10::Error or std::runtime_error naming the argument.
inline std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k,
                                                const TorchRotation& rotation) {
  auto outputs = torch_detail::Rotate::apply(q, torch_detail::OptionalTensor(k), rotation);
  return {outputs[0], outputs[1]};
}

/// One tensor rotated.
inline at::Tensor rotate(const at::Tensor& x, const TorchRotation& rotation) {
  return torch_detail::Rotate::apply(x, torch_detail::OptionalTensor(), rotation)[0];
}

}  // namespace ropewalk
