// stream_rotate for the Python package (python/ropewalk/stream.py loads it with ctypes).
#include "ropewalk/stream.h"

#include <cstdint>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "plan_text.h"
#include "python_result.h"
#include "ropewalk/error.h"
#include "ropewalk/export.h"

namespace {

using namespace ropewalk;
using nlohmann::json;

/// A piece for Python: contiguous memory and where its tokens stand.
struct PythonPiece {
  void* data;
  std::int64_t bytes;
  std::int64_t size[4];  ///< batch, token, head, channel
  std::int32_t heads_outside;
  std::int32_t dtype;          ///< Dtype
  std::int32_t position_type;  ///< Positions::Type
  std::int32_t has_positions;  ///< 0: the first token stands at `start`
  std::int64_t start;
  const void* positions;  ///< (axes, batch, token) by the strides
  std::int64_t axes, axis_stride, batch_stride;
};

using PythonRotator = int (*)(const PythonPiece*);
using PythonProgress = int (*)(std::uint64_t done, std::uint64_t total, const char* tensor,
                               std::uint64_t halved_to);

constexpr int kMemoryWasShort = 1;

/// What a callback raised is kept by Python; here it only ends the stream.
[[noreturn]] void stop() { throw Error(ErrorCode::invalid_argument, "stopped by a callback"); }

PythonPiece piece_for_python(const TensorView& view, const Positions& positions) {
  PythonPiece piece{};
  piece.data = view.data;
  piece.bytes = view.elements() * static_cast<std::int64_t>(size_of(view.dtype));
  for (std::size_t d = 0; d < 4; ++d) piece.size[d] = view.size[d];
  piece.heads_outside = view.stride[kHead] > view.stride[kToken] ? 1 : 0;
  piece.dtype = static_cast<std::int32_t>(view.dtype);
  piece.position_type = static_cast<std::int32_t>(positions.type);
  piece.has_positions = positions.kind == Positions::Kind::per_token ? 1 : 0;
  piece.start = positions.start;
  piece.positions = positions.data;
  piece.axes = positions.axes;
  piece.axis_stride = positions.axis_stride;
  piece.batch_stride = positions.batch_stride;
  return piece;
}

StreamOptions options_from(const json& text, const std::string& kernel) {
  StreamOptions options;
  options.tensors = text.at("tensors").get<std::vector<std::string>>();
  options.positions = text.at("positions").get<std::string>();
  options.layout = text.at("layout").get<std::string>();
  options.fractional = text.at("fractional").get<bool>();
  options.direction = text.at("inverse").get<bool>() ? Direction::inverse : Direction::forward;
  options.threads = text.at("threads").get<int>();
  options.chunk_bytes = text.at("chunk_bytes").get<std::uint64_t>();
  options.resume = text.at("resume").get<bool>();
  options.table_file = text.at("table_file").get<std::string>();
  options.kernel = kernel;
  return options;
}

}  // namespace

/// `options` is the JSON that python/ropewalk/stream.py writes; the answer is a StreamResult as
/// JSON. Callbacks may be null, and stop the stream by returning anything but 0 (the rotator: 1
/// means that memory was short).
extern "C" ROPEWALK_API int ropewalk_python_stream_rotate(const char* plan, const char* input,
                                                          const char* output, const char* options,
                                                          PythonProgress progress,
                                                          PythonRotator rotator) {
  return python::keep([&] {
    const json text = json::parse(options);
    const std::string kernel = text.at("kernel").get<std::string>();
    StreamOptions stream = options_from(text, kernel);
    if (progress != nullptr) {
      stream.progress = [progress](const StreamProgress& p) {
        if (progress(p.done, p.total, std::string(p.tensor).c_str(), p.halved_to) != 0) stop();
      };
    }
    if (rotator != nullptr) {
      stream.rotator = [rotator](const RotaryPlan&, const RotaryTable*, const TensorView& view,
                                 const Positions& positions) {
        const PythonPiece piece = piece_for_python(view, positions);
        const int status = rotator(&piece);
        if (status == kMemoryWasShort) throw std::bad_alloc();
        if (status != 0) stop();
      };
    }
    const StreamResult result =
        stream_rotate(torch_ops::plan_from_text(plan), input, output, stream);
    return json{{"rotated", result.rotated},
                {"copied", result.copied},
                {"bytes", result.bytes},
                {"resumed_at", result.resumed_at},
                {"chunk_bytes", result.chunk_bytes}}
        .dump();
  });
}
