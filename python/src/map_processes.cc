// SPDX-License-Identifier: Apache-2.0
//
// A function given to map() in processes: the values of a sample lie in shared memory, and results
// are written right into their slots.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstring>

#include "codec/away.h"
#include "map.h"
#include "trace/counters.h"
#include "worker_pool.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

void put(std::string& to, const auto& number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// NumPy's code of a type, four bytes; bf16 is none of NumPy's.
std::array<char, 4> code_of(DType dtype) {
  const std::string name = std::string(dtype_name(dtype));
  std::array<char, 4> out{};
  if (name == "bf16") return {'b', 'f', '1', '6'};
  const std::string code = name.substr(0, 1) + std::to_string(size_of(dtype));
  std::copy(code.begin(), code.end(), out.begin());
  return out;
}

// The shapes of the results, and whether the function kept an array of the sample's.
struct Shapes {
  bool kept = false;
  std::vector<std::vector<int64_t>> all;
};

Result<Shapes> shapes_of(std::string_view header, size_t results) {
  Shapes out;
  const auto bad = [] { return internal("a process gave shapes that cannot be read"); };
  if (header.empty()) return bad();
  out.kept = header[0] != 0;
  size_t at = 1;
  for (size_t i = 0; i < results; ++i) {
    if (at >= header.size()) return bad();
    const auto axes = static_cast<uint8_t>(header[at++]);
    if (header.size() - at < axes * sizeof(int64_t)) return bad();
    std::vector<int64_t>& shape = out.all.emplace_back(axes);
    if (axes > 0) std::memcpy(shape.data(), header.data() + at, axes * sizeof(int64_t));
    at += axes * sizeof(int64_t);
  }
  return out;
}

// The bytes of what the function raised, for the error that the user sees.
void remember(const WorkerError& error) {
  if (error.traceback.empty()) return;
  nb::gil_scoped_acquire gil;
  try {
    nb::module_::import_("headrace.errors").attr("remember_remote")(error.what, error.traceback);
  } catch (nb::python_error&) {  // the error itself is told all the same
  }
}

// While a thread waits for a process, others may have its processor.
struct Absence {
  explicit Absence(AwayFromCpu* a) : away(a) {
    if (away != nullptr) away->leave();
  }
  ~Absence() {
    if (away != nullptr) away->come_back(busy_ns);
  }
  Absence(const Absence&) = delete;
  Absence& operator=(const Absence&) = delete;

  AwayFromCpu* const away;
  uint64_t busy_ns = 0;  // of the process
};

class ProcessResults final : public MapResults {
 public:
  explicit ProcessResults(WorkerPool& pool) : lease(pool) {}

  Status write(size_t i, Slot& out) override {
    auto room = out.room(shapes.all[i]);
    if (!room.ok())
      return invalid("the function given to map(): " + std::string(room.status().message()));
    return place(i, room.value());
  }

  Status place(size_t i, MutableBytes room) {
    if (room.size() != reply.results[i].bytes)
      return internal("a result of another size than its shape says");
    const auto number = static_cast<uint32_t>(i);
    if (room.empty() || process_arena()->name_of(room.data())) return lease.place(number, room);
    const SharedBuffer between = process_memory().take(room.size());
    HEADRACE_TRY(lease.place(number, between->span()));
    std::memcpy(room.data(), between->data(), room.size());
    return {};
  }

  WorkerPool::Lease lease;
  WorkerReply reply;
  Shapes shapes;
};

class ProcessWork final : public MapWork {
 public:
  ProcessWork(std::shared_ptr<WorkerPool> pool, uint32_t target, std::shared_ptr<MapCost> cost)
      : pool_(std::move(pool)), target_(target), cost_(std::move(cost)) {}

  bool is_elsewhere() const override { return true; }

  Result<std::unique_ptr<MapResults>> call(const std::vector<std::vector<MapValue>>& values,
                                           SampleContext& context, Slot* only) const override {
    Absence absence(context.part<Away>().listener);
    const Stopwatch waiting;
    auto results = std::make_unique<ProcessResults>(*pool_);
    cost_->gil_ns += waiting.ns();
    const Stopwatch busy;
    const Status status = call_now(values, context, only, *results);
    ++cost_->calls;
    cost_->busy_ns += busy.ns();
    absence.busy_ns = busy.ns();
    if (!status.ok()) return status;
    if (only != nullptr) return std::unique_ptr<MapResults>();
    return std::unique_ptr<MapResults>(std::move(results));
  }

 private:
  std::string header_of(const std::vector<std::vector<MapValue>>& values,
                        const SampleContext& context) const {
    const auto [a, b] = draws(context);
    const std::string_view key = context.key().substr(0, 4096);
    std::string out;
    for (const uint64_t n : {context.sample(), context.epoch(), a, b}) put(out, n);
    put(out, static_cast<uint32_t>(key.size()));
    put(out, static_cast<uint32_t>(values.size()));
    out += key;
    for (const auto& input : values) {
      put(out, static_cast<uint32_t>(input.size()));
      for (const MapValue& value : input) {
        const auto code = code_of(value.dtype);
        out.append(code.data(), code.size());
        out += static_cast<char>(value.shape.size());
        for (const int64_t n : value.shape) put(out, n);
      }
    }
    return out;
  }

  Status call_now(const std::vector<std::vector<MapValue>>& values, SampleContext& context,
                  Slot* only, ProcessResults& results) const {
    std::vector<Bytes> given;
    for (const auto& input : values)
      for (const MapValue& value : input) given.push_back(value.buffer->bytes());
    // A result of one shape goes right into its slot.
    std::vector<MutableBytes> places;
    const TensorSpec& spec = outputs[0].spec;
    if (only != nullptr && outputs[0].how == "array" && spec.is_fixed()) {
      auto room = only->room(spec.shape);
      if (room.ok() && !room.value().empty() && process_arena()->name_of(room.value().data()))
        places.push_back(room.value());
    }
    auto reply = results.lease.call(target_, header_of(values, context), given, places);
    if (!reply.ok()) {
      remember(results.lease.error());
      return reply.status();
    }
    results.reply = std::move(reply).value();
    if (results.reply.results.size() != outputs.size())
      return internal("a process gave another number of results");
    HEADRACE_ASSIGN(results.shapes, shapes_of(results.reply.header, outputs.size()));
    if (results.shapes.kept) keep(values);
    if (only == nullptr || results.reply.results[0].is_placed) return {};
    return results.write(0, *only);
  }

  // The function has an array of this memory: it must not go round while the pool lives.
  void keep(const std::vector<std::vector<MapValue>>& values) const {
    MutexLock lock(mu_);
    for (const auto& input : values)
      for (const MapValue& value : input) kept_.push_back(value.buffer);
  }

  const std::shared_ptr<WorkerPool> pool_;
  const uint32_t target_;
  const std::shared_ptr<MapCost> cost_;
  mutable Mutex mu_;
  mutable std::vector<SharedBuffer> kept_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<MapWork> map_in_processes(std::shared_ptr<WorkerPool> pool, uint32_t target,
                                          std::shared_ptr<MapCost> cost) {
  return std::make_shared<ProcessWork>(std::move(pool), target, std::move(cost));
}

}  // namespace headrace::py
