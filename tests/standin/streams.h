// SPDX-License-Identifier: Apache-2.0
//
// Streams and events of the stand-in for CUDA's driver, in one of two tempers
// (HEADRACE_STANDIN_TEMPER):
//
//   threads  every stream is a thread: what is handed over happens some time later, in order
//   lazy     nothing happens until someone waits for it, and then only what must: a copy runs as
//            late as a device may run it, streams that nobody waits for do not move, and what was
//            handed to a stream that is destroyed is still to come.  Memory that is given back or
//            written too early is then always seen too early.  What nobody ordered before a kernel
//            (nvJPEG's own streams) comes just before it
//
// What no program may do to a driver (a handle that was destroyed, say) ends the process with a
// sentence: a real driver would do something else each time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace standin {

inline long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}

inline bool is_lazy() {
  static const bool lazy = [] {
    const char* temper = std::getenv("HEADRACE_STANDIN_TEMPER");
    return temper != nullptr && std::strcmp(temper, "lazy") == 0;
  }();
  return lazy;
}

[[noreturn]] inline void fault(const std::string& what) {
  std::fprintf(stderr, "stand-in of CUDA's driver: %s\n", what.c_str());
  std::abort();
}

struct Stream;
using StreamPointer = std::shared_ptr<Stream>;

// An event is of the last place where it was recorded.
struct Event {
  struct Place {
    StreamPointer stream;
    uint64_t position = 0;
  };
  std::map<uint64_t, Place> recorded_at;  // of records that are not past
  uint64_t recorded = 0, past = 0;
  int asked = 0;
};
using EventPointer = std::shared_ptr<Event>;

struct Task {
  std::function<void()> work;  // or
  EventPointer record, wait;
  uint64_t number = 0;  // of the record
  bool is_kernel = false;
};

// Everything under one lock: nobody measures time here.
struct Stream {
  std::deque<Task> queue;
  uint64_t added = 0, done = 0;
  bool running = false, ended = false;
  std::thread thread;  // of temper "threads"
};

class Streams {
 public:
  static Streams& all() {
    static auto* streams = new Streams;
    return *streams;
  }

  StreamPointer make() {
    auto stream = std::make_shared<Stream>();
    if (!is_lazy()) stream->thread = std::thread([this, s = stream] { serve(*s); });
    return stream;
  }

  void add(const StreamPointer& stream, Task task) {
    const std::lock_guard lock(mu_);
    ++stream->added;
    if (task.record) {
      task.number = ++task.record->recorded;
      task.record->recorded_at[task.number] = {stream, stream->added};
      task.record->asked = 0;
    }
    if (task.wait) task.number = task.wait->recorded;
    stream->queue.push_back(std::move(task));
    wakes_.notify_all();
  }

  // In a stream that no program knows of.
  void add_apart(std::function<void()> work) {
    const StreamPointer stream = [&] {
      const std::lock_guard lock(mu_);
      if (!apart_) apart_ = make();
      return apart_;
    }();
    add(stream, {std::move(work), nullptr, nullptr, 0});
  }
  void drain_apart() {
    std::unique_lock lock(mu_);
    if (apart_) reach(lock, apart_, apart_->added);
  }

  // Returns when the stream has done all that was handed to it so far.
  void drain(const StreamPointer& stream) {
    std::unique_lock lock(mu_);
    reach(lock, stream, stream->added);
  }

  void wait(const EventPointer& event) {
    std::unique_lock lock(mu_);
    reach(lock, event, event->recorded);
  }

  // A lazy stream moves on only when it is asked for the fourth time.
  bool is_past(const EventPointer& event) {
    std::unique_lock lock(mu_);
    if (is_lazy() && event->past < event->recorded && ++event->asked > 3)
      reach(lock, event, event->recorded);
    return event->past >= event->recorded;
  }

  // What is left happens: nothing may be lost with a stream.
  void destroy(const StreamPointer& stream) {
    if (is_lazy()) {
      const std::lock_guard lock(mu_);
      left_behind_.push_back(stream);
      return;
    }
    drain(stream);
    {
      const std::lock_guard lock(mu_);
      stream->ended = true;
      wakes_.notify_all();
    }
    stream->thread.join();
  }

  // All streams that were destroyed, to their ends.
  void finish() {
    std::unique_lock lock(mu_);
    const auto left = std::move(left_behind_);
    for (const StreamPointer& stream : left) reach(lock, stream, stream->added);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void reach(Lock& lock, const EventPointer& event, uint64_t number) {
    if (event->past >= number) return;
    if (!is_lazy()) return wakes_.wait(lock, [&] { return event->past >= number; });
    const auto at = event->recorded_at.find(number);
    if (at == event->recorded_at.end()) return;
    const Event::Place place = at->second;
    reach(lock, place.stream, place.position);
  }

  void reach(Lock& lock, const StreamPointer& stream, uint64_t position) {
    if (!is_lazy()) return wakes_.wait(lock, [&] { return stream->done >= position; });
    while (stream->done < position) {
      if (stream->running) {  // another thread is at it
        wakes_.wait(lock);
        continue;
      }
      step(lock, *stream);
    }
  }

  // The next task of a stream.  Without the lock while it works.
  void step(Lock& lock, Stream& stream) {
    stream.running = true;
    const Task task = std::move(stream.queue.front());
    stream.queue.pop_front();
    if (task.wait) {
      reach(lock, task.wait, task.number);
    } else if (task.record) {
      task.record->past = std::max(task.record->past, task.number);
      task.record->recorded_at.erase(task.number);
    } else {
      if (is_lazy() && task.is_kernel && apart_) reach(lock, apart_, apart_->added);
      lock.unlock();
      task.work();
      lock.lock();
    }
    ++stream.done;
    stream.running = false;
    wakes_.notify_all();
  }

  void serve(Stream& stream) {
    std::mt19937 random(7);
    const auto delay = static_cast<unsigned>(setting("HEADRACE_STANDIN_DELAY_US", 0));
    Lock lock(mu_);
    while (true) {
      wakes_.wait(lock, [&] { return !stream.queue.empty() || stream.ended; });
      if (stream.queue.empty()) return;
      if (delay > 0) {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(random() % delay));
        lock.lock();
      }
      step(lock, stream);
    }
  }

  std::mutex mu_;
  std::condition_variable wakes_;
  std::vector<StreamPointer> left_behind_;
  StreamPointer apart_;
};

// Handles that programs hold.  None is used twice: one that was destroyed stays known as such.
template <typename T>
class Handles {
 public:
  explicit Handles(const char* what) : what_(what) {}
  void* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mu_);
    auto* handle = new std::shared_ptr<T>(std::move(object));
    live_.insert(handle);
    return handle;
  }
  std::shared_ptr<T> at(void* handle, const char* call) {
    const std::lock_guard lock(mu_);
    if (live_.count(handle) == 0)
      fault(std::string(call) + ": " + what_ + " that was destroyed, or never made");
    return *static_cast<std::shared_ptr<T>*>(handle);
  }
  template <typename F>
  void each(F work) {
    std::vector<std::shared_ptr<T>> all;
    {
      const std::lock_guard lock(mu_);
      for (void* handle : live_) all.push_back(*static_cast<std::shared_ptr<T>*>(handle));
    }
    for (const std::shared_ptr<T>& object : all) work(object);
  }
  std::shared_ptr<T> remove(void* handle, const char* call) {
    std::shared_ptr<T> object = at(handle, call);
    const std::lock_guard lock(mu_);
    live_.erase(handle);
    static_cast<std::shared_ptr<T>*>(handle)->reset();
    gone_.push_back(handle);  // kept: the address is not given again
    return object;
  }

 private:
  const char* const what_;
  std::mutex mu_;
  std::set<void*> live_;
  std::vector<void*> gone_;
};

}  // namespace standin
