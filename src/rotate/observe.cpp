#include "rotate/observe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "rotate/check.h"

namespace ropewalk {
namespace {

std::mutex observer_mutex;
std::shared_ptr<CallObserver> current_observer;  // guarded by observer_mutex
std::atomic<bool> counting{false};

struct {
  std::atomic<std::uint64_t> cpu_calls, cuda_launches, tokens, bytes, lines_dropped;
} sums;

void add(std::atomic<std::uint64_t>& sum, std::int64_t value) noexcept {
  sum.fetch_add(static_cast<std::uint64_t>(value), std::memory_order_relaxed);
}

std::string_view name_of_kind(Positions::Kind kind) noexcept {
  switch (kind) {
    case Positions::Kind::offset: return "offset";
    case Positions::Kind::per_batch: return "per_batch";
    case Positions::Kind::per_token: return "per_token";
    case Positions::Kind::packed: return "packed";
  }
  return "unknown";
}

CallRecord record_of(const RotaryPlan& plan, std::span<const Rotation> rotations,
                     const Positions& positions, Direction direction, const CallPlace& place) {
  CallRecord call;
  call.device = place.device;
  call.device_id = place.device_id;
  call.kernel = place.kernel;
  call.table = place.table;
  call.positions = name_of_kind(positions.kind);
  call.direction = direction;
  call.in_place = true;
  call.head_dim = plan.head_dim();
  call.rotary_dim = plan.rotary_dim();
  call.fingerprint = plan.fingerprint();
  for (const Rotation& rotation : rotations) {
    const ConstTensorView& view = rotation.in;
    if (view.elements() == 0) continue;
    const bool in_place = is_in_place(rotation);
    const std::int64_t width = in_place ? plan.rotary_dim() : plan.head_dim();
    ++call.views;
    call.in_place = call.in_place && in_place;
    call.dtype = view.dtype;
    call.batch = view.size[kBatch];
    call.tokens = view.size[kToken];
    call.heads += view.size[kHead];
    call.bytes += 2 * view.elements() / plan.head_dim() * width *
                  static_cast<std::int64_t>(size_of(view.dtype));
  }
  return call;
}

class JsonLines final : public CallObserver {
 public:
  explicit JsonLines(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (file_.get() < 0) {
      fail(ErrorCode::io, "log: cannot write {}: {}", in_quotes(path.native(), kPathBytes),
           std::generic_category().message(errno));
    }
  }

  void on_call(const CallRecord& c) noexcept override {
    try {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      fmt::memory_buffer line;
      // Names of devices, kernels and the like need no escapes.
      fmt::format_to(
          std::back_inserter(line),
          R"({{"time_ns": {}, "device": "{}", "device_id": {}, "kernel": "{}", )"
          R"("positions": "{}", "dtype": "{}", "direction": "{}", "in_place": {}, "table": {}, )"
          R"("views": {}, "batch": {}, "tokens": {}, "heads": {}, "head_dim": {}, )"
          R"("rotary_dim": {}, "bytes": {}, "fingerprint": "{}"}})"
          "\n",
          std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), c.device, c.device_id,
          c.kernel, c.positions, name_of(c.dtype), name_of(c.direction), c.in_place, c.table,
          c.views, c.batch, c.tokens, c.heads, c.head_dim, c.rotary_dim, c.bytes, c.fingerprint);
      if (::write(file_.get(), line.data(), line.size()) == static_cast<::ssize_t>(line.size())) {
        return;
      }
    } catch (const std::exception&) {  // out of memory: the rotation goes on without its line
    }
    add(sums.lines_dropped, 1);
  }

 private:
  FileDescriptor file_;
};

void update_flag() {
  observing.store(current_observer != nullptr || counting.load(std::memory_order_relaxed),
                  std::memory_order_relaxed);
}

}  // namespace

CallObserver::~CallObserver() = default;

void set_call_observer(std::shared_ptr<CallObserver> observer) {
  const std::lock_guard lock(observer_mutex);
  std::swap(current_observer, observer);
  update_flag();
}

std::shared_ptr<CallObserver> log_calls_to(const std::filesystem::path& path) {
  return std::make_shared<JsonLines>(path);
}

void count_calls(bool on) noexcept {
  const std::lock_guard lock(observer_mutex);
  counting.store(on, std::memory_order_relaxed);
  update_flag();
}

CallCounters call_counters() noexcept {
  return {sums.cpu_calls, sums.cuda_launches, sums.tokens, sums.bytes, sums.lines_dropped};
}

void reset_call_counters() noexcept {
  for (auto* sum :
       {&sums.cpu_calls, &sums.cuda_launches, &sums.tokens, &sums.bytes, &sums.lines_dropped}) {
    sum->store(0, std::memory_order_relaxed);
  }
}

void observe_call(const RotaryPlan& plan, std::span<const Rotation> rotations,
                  const Positions& positions, Direction direction, const CallPlace& place) {
  const CallRecord call = record_of(plan, rotations, positions, direction, place);
  if (counting.load(std::memory_order_relaxed)) {
    add(call.device == "cuda" ? sums.cuda_launches : sums.cpu_calls, 1);
    add(sums.tokens, call.batch * call.tokens);
    add(sums.bytes, call.bytes);
  }
  std::shared_ptr<CallObserver> observer;
  {
    const std::lock_guard lock(observer_mutex);
    observer = current_observer;
  }
  if (observer != nullptr) observer->on_call(call);
}

}  // namespace ropewalk
