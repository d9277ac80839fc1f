#include "base/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cpu_features.h"

namespace ropewalk {
namespace {

class Pool {
 public:
  Pool() : owner_(getpid()) {}
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] bool belongs_to_this_process() const { return owner_ == getpid(); }

  /// False where another thread is using the pool.
  bool try_run(std::int64_t count, std::int64_t grain, int threads, const RangeBody& body) {
    const std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy.owns_lock()) return false;
    {
      const std::lock_guard lock(mutex_);
      helpers_ = std::min(threads - 1, workers_up_to(threads - 1));
      const std::int64_t shares = 4 * (std::int64_t{helpers_} + 1);
      body_ = &body;
      count_ = count;
      chunk_ = std::max(grain, (count + shares - 1) / shares);
      next_.store(0, std::memory_order_relaxed);
      pending_ = helpers_;
      ++generation_;
    }
    wake_.notify_all();
    take_chunks(body, count, chunk_);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
    body_ = nullptr;
    return true;
  }

 private:
  /// Starts workers until there are `wanted`, or as many as the system gives; how many there are.
  int workers_up_to(int wanted) {
    while (static_cast<int>(workers_.size()) < wanted) {
      const std::size_t index = workers_.size();
      seen_.resize(index + 1, generation_);
      try {
        workers_.emplace_back([this, index] { work(index); });
      } catch (const std::system_error&) {
        break;
      }
    }
    return static_cast<int>(workers_.size());
  }

  void take_chunks(const RangeBody& body, std::int64_t count, std::int64_t chunk) {
    for (;;) {
      const std::int64_t begin = next_.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(count, begin + chunk));
    }
  }

  void work(std::size_t index) {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || seen_[index] != generation_; });
      if (stop_) return;
      seen_[index] = generation_;
      if (static_cast<int>(index) >= helpers_) continue;
      const RangeBody& body = *body_;
      const std::int64_t count = count_;
      const std::int64_t chunk = chunk_;
      lock.unlock();
      take_chunks(body, count, chunk);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  const pid_t owner_;
  std::mutex busy_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t generation_ = 0;
  bool stop_ = false;
  const RangeBody* body_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t chunk_ = 1;
  int helpers_ = 0;
  int pending_ = 0;
  std::atomic<std::int64_t> next_{0};
};

Pool& pool_of_this_process() {
  static std::mutex guard;
  static std::unique_ptr<Pool> pool;
  const std::lock_guard lock(guard);
  if (!pool) {
    pool = std::make_unique<Pool>();
  } else if (!pool->belongs_to_this_process()) {
    // After fork the workers do not exist here; joining them would wait for ever, so the
    // parent's object is left behind.
    (void)pool.release();
    pool = std::make_unique<Pool>();
  }
  return *pool;
}

thread_local bool inside_body = false;

}  // namespace

void parallel_for(std::int64_t count, std::int64_t grain, int threads, const RangeBody& body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(1, grain);
  if (threads <= 0) threads = available_processors();
  const std::int64_t chunks = (count + grain - 1) / grain;
  threads = static_cast<int>(std::min<std::int64_t>(threads, chunks));
  if (threads <= 1 || inside_body) {
    body(0, count);
    return;
  }
  const RangeBody guarded = [&body](std::int64_t begin, std::int64_t end) {
    inside_body = true;
    body(begin, end);
    inside_body = false;
  };
  if (!pool_of_this_process().try_run(count, grain, threads, guarded)) body(0, count);
}

}  // namespace ropewalk
