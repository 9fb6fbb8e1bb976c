// SPDX-License-Identifier: Apache-2.0
//
// `.map(fn)` and `hr.map({...}, fn)`: functions of users as the last step of fields.  They run on
// the compute threads under the GIL, there without it where they are compiled (numba), or in
// processes (worker_pool.h); what they cost is counted.
//
// One field in, one out: a decoder around a decoder.  Otherwise the values go through the sample's
// context: a column that nobody sees takes each input, and the first of the outputs, which stand
// after them, calls the function.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codec/sample_context.h"
#include "loader/field.h"

namespace headrace::py {

// Counted over all threads; read by loader.stats().
struct MapCost {
  std::atomic<uint64_t> calls{0}, busy_ns{0}, gil_ns{0};
  bool in_processes = false;  // gil_ns is then what was waited for a process
};

// Functions in Python that share a turn are called one at a time: the GIL alone changes hands in
// the middle of a call, where a function may have seeded a library's generator for what it draws
// next. The thread that has it may take it again.
using MapTurn = std::recursive_mutex;

// A value on its way into a function.
struct MapValue {
  SharedBuffer buffer;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
};

struct MapInput {
  std::string what;   // of the field: "image", "text", "scalar", …
  bool many = false;  // the function gets a list
};

struct MapOutput {
  std::string how;  // "array", "text", "bytes" or "object"
  TensorSpec spec;
};

// The results of a call, until they are written.  One thread at a time.
class MapResults {
 public:
  virtual ~MapResults() = default;
  virtual Status write(size_t i, Slot& out) = 0;
};

// A function, wherever it runs.  Immutable, hence thread-safe.
class MapWork {
 public:
  virtual ~MapWork() = default;
  // values[i]: of input i; none: the sample has none.  Where `only` is given, the only result goes
  // there, and nothing is returned.
  virtual Result<std::unique_ptr<MapResults>> call(const std::vector<std::vector<MapValue>>& values,
                                                   SampleContext& context, Slot* only) const = 0;

  // Whether it takes such values.
  virtual Status accepts(const TensorSpec& value) const {
    (void)value;
    return {};
  }
  // Whether its values must lie in shared memory.
  virtual bool is_elsewhere() const { return false; }

  std::string name;  // of the output: names its draws
  std::vector<MapInput> inputs;
  std::vector<MapOutput> outputs;

 protected:
  // What the generator of the function's begins with.
  std::pair<uint64_t, uint64_t> draws(const SampleContext& context) const;
};

// A function as Python says it.
struct MapFunction {
  std::shared_ptr<MapWork> work;
  std::shared_ptr<MapCost> cost;
};

// What a field is to its function: the only one, an input, or an output of those that have several.
struct MapRole {
  enum Kind { kOnly, kInput, kOutput } kind = kOnly;
  size_t number = 0;
};

std::function<Result<DecoderPointer>(DecoderPointer)> map_wrapper(const MapFunction& map,
                                                                  MapRole role);

// In processes: map_processes.cc.
class WorkerPool;
std::shared_ptr<MapWork> map_in_processes(std::shared_ptr<WorkerPool> pool, uint32_t target,
                                          std::shared_ptr<MapCost> cost);

void bind_map(nanobind::module_& m);

}  // namespace headrace::py
