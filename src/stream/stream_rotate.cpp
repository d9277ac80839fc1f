#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>

#include "base/check.h"
#include "base/resumable_file.h"
#include "base/safetensors_header.h"
#include "ropewalk/stream.h"
#include "stream/job.h"

namespace ropewalk {
namespace {

using stream::Job;
using stream::Piece;

/// Runs body(); an Error(io) of it is about `name`.
template <class Body>
void naming(std::string_view name, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    fail(ErrorCode::io, "{}: {}", name, error.what());
  }
}

/// The file being written: whole or not at all, or resumable.
class Output {
 public:
  Output(const std::filesystem::path& path, const Job& job, bool resume) {
    if (resume) {
      naming("resume", [&] { resumable_.emplace(path, job.identity()); });
    } else {
      naming("output", [&] { whole_.emplace(path); });
    }
  }
  [[nodiscard]] std::uint64_t size() const { return resumable_ ? resumable_->size() : 0; }
  void write(std::span<const std::byte> piece) {
    naming("output", [&] { resumable_ ? resumable_->append(piece) : whole_->write(piece); });
  }
  void commit() {
    naming("output", [&] { resumable_ ? resumable_->commit() : whole_->commit(); });
  }

 private:
  std::optional<AtomicFile> whole_;
  std::optional<ResumableFile> resumable_;
};

class Stream {
 public:
  Stream(const RotaryPlan& plan, const Job& job, Output& output, const StreamOptions& options)
      : plan_(plan), job_(job), output_(output), options_(options), limit_(options.chunk_bytes) {
    for (const SafetensorsEntry& tensor : job.file().tensors()) total_ += tensor.bytes;
  }

  StreamResult run() {
    StreamResult result;
    result.bytes = total_;
    result.resumed_at = output_.size();
    std::uint64_t skipped = write_header();
    for (const SafetensorsEntry& tensor : job_.file().tensors()) {
      const bool rotates = job_.rotates(tensor);
      (rotates ? result.rotated : result.copied).push_back(tensor.name);
      const std::uint64_t begin = std::min(skipped, tensor.bytes);
      skipped -= begin;
      done_ += begin;
      stream_tensor(tensor, begin, rotates);
    }
    result.chunk_bytes = limit_;
    return result;
  }

 private:
  /// Returns how many bytes of data an interrupted run has written behind the header.
  std::uint64_t write_header() {
    const auto& tensors = job_.file().tensors();
    const std::vector<SafetensorsTensor> declared(tensors.begin(), tensors.end());
    const std::string header = format_safetensors_header(declared, job_.file().metadata());
    const std::uint64_t finished = output_.size();
    if (finished > 0) return finished - header.size();
    output_.write(std::as_bytes(std::span(header)));
    return 0;
  }

  void stream_tensor(const SafetensorsEntry& tensor, std::uint64_t begin, bool rotates) {
    if (begin == tensor.bytes) return;
    while (begin < tensor.bytes) {
      report(tensor, 0);
      try {
        const std::uint64_t bytes =
            rotates ? rotate_piece(tensor, begin) : copy_piece(tensor, begin);
        begin += bytes;
        done_ += bytes;
      } catch (const std::bad_alloc&) {
        if (last_piece_is_smallest_) throw;
        limit_ = std::max<std::uint64_t>(1, std::min(limit_, last_piece_bytes_) / 2);
        report(tensor, limit_);
      }
    }
    report(tensor, 0);
  }

  std::uint64_t copy_piece(const SafetensorsEntry& tensor, std::uint64_t begin) {
    const std::span<std::byte> buffer = buffer_of(std::min(limit_, tensor.bytes - begin), 1);
    job_.file().read(tensor, begin, buffer);
    output_.write(buffer);
    return buffer.size();
  }

  std::uint64_t rotate_piece(const SafetensorsEntry& tensor, std::uint64_t begin) {
    const TensorView whole = stream::view_of(tensor, nullptr, options_.layout);
    Piece piece = stream::piece_at(whole, begin, limit_);
    const std::span<std::byte> buffer = buffer_of(piece.bytes, piece.smallest);
    job_.file().read(tensor, begin, buffer);
    piece.view.data = buffer.data();
    rotate_view(piece.view, stream::positions_of_piece(job_.positions(whole, tensor.name), piece));
    output_.write(buffer);
    return piece.bytes;
  }

  void rotate_view(const TensorView& view, const Positions& positions) {
    const RotaryTable* table = job_.table(view.dtype);
    if (options_.rotator) {
      options_.rotator(plan_, table, view, positions);
      return;
    }
    const std::array rotations{Rotation::in_place(view)};
    const RotateOptions options{.direction = options_.direction,
                                .threads = options_.threads,
                                .parallel_for = nullptr,
                                .kernel = options_.kernel};
    if (table == nullptr) {
      rotate(plan_, rotations, positions, options);
    } else {
      rotate(*table, rotations, positions, options);
    }
  }

  /// Memory for a piece. `smallest` is the length of a piece that cannot be halved.
  std::span<std::byte> buffer_of(std::uint64_t bytes, std::uint64_t smallest) {
    last_piece_bytes_ = bytes;
    last_piece_is_smallest_ = bytes <= smallest;
    if (bytes > capacity_) {
      buffer_.reset();
      capacity_ = 0;
      // Not a vector: no page is touched before the file is read into it.
      buffer_.reset(new (std::align_val_t{kAlignment}) std::byte[bytes]);
      capacity_ = bytes;
    }
    return {buffer_.get(), bytes};
  }

  void report(const SafetensorsEntry& tensor, std::uint64_t halved_to) const {
    if (options_.progress) options_.progress({done_, total_, tensor.name, halved_to});
  }

  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{kAlignment});
    }
  };

  const RotaryPlan& plan_;
  const Job& job_;
  Output& output_;
  const StreamOptions& options_;
  std::uint64_t limit_;
  std::uint64_t done_ = 0, total_ = 0;
  std::uint64_t last_piece_bytes_ = 0;
  bool last_piece_is_smallest_ = false;
  std::unique_ptr<std::byte[], Free> buffer_;
  std::uint64_t capacity_ = 0;
};

}  // namespace

StreamResult stream_rotate(const RotaryPlan& plan, const std::filesystem::path& input,
                           const std::filesystem::path& output, const StreamOptions& options) {
  const Job job(plan, input, options);
  std::error_code ignored;  // where one does not exist they are not the same
  require(!options.resume || !std::filesystem::equivalent(input, output, ignored),
          "output: a resumable job cannot replace its input {}",
          in_quotes(input.native(), kPathBytes));
  Output file(output, job, options.resume);
  StreamResult result = Stream(plan, job, file, options).run();
  file.commit();
  return result;
}

}  // namespace ropewalk
