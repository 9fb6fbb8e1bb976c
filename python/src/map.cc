// SPDX-License-Identifier: Apache-2.0
#include "map.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "arrays.h"
#include "convert.h"
#include "errors.h"
#include "held_object.h"
#include "python_buffer.h"
#include "trace/counters.h"
#include "worker_pool.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// Keeps one value for the function that follows; of shared memory where that is in a process.
class OwnSlot final : public Slot {
 public:
  OwnSlot(DType dtype, bool shared) : shared_(shared) { value_.dtype = dtype; }
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    value_.shape.assign(shape.begin(), shape.end());
    size_t bytes = size_of(value_.dtype);
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    value_.buffer = shared_ ? process_memory().take(bytes) : std::make_shared<Buffer>(bytes);
    return value_.buffer->span();
  }
  MapValue value_;

 private:
  const bool shared_;
};

// A function's mistake is not bad data: it is never replaced by another sample.
Result<MutableBytes> room_in(Slot& out, const std::vector<int64_t>& shape) {
  auto room = out.room(shape);
  if (room.ok()) return room;
  return invalid("the function given to map(): " + std::string(room.status().message()));
}

// -- under the GIL ------------------------------------------------------------------------------

// The results as (shape, bytes), a list.
class PythonResults final : public MapResults {
 public:
  explicit PythonResults(nb::object results) : results_(std::move(results)) {}
  Status write(size_t i, Slot& out) override {
    nb::gil_scoped_acquire gil;
    return write_one(results_.get()[i], out);
  }
  // With the GIL.
  static Status write_one(nb::object result, Slot& out) {
    std::vector<int64_t> shape;
    for (nb::handle n : result[0]) shape.push_back(nb::cast<int64_t>(n));
    const nb::object memory = result[1];
    Py_buffer view;
    if (PyObject_GetBuffer(memory.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    auto room = room_in(out, shape);
    if (room.ok() && view.len > 0)
      std::memcpy(room.value().data(), view.buf, static_cast<size_t>(view.len));
    PyBuffer_Release(&view);
    return room.status();
  }

 private:
  HeldObject results_;
};

class PythonWork final : public MapWork {
 public:
  // `turn`: null where it may be called by several threads at a time.
  PythonWork(nb::object function, std::shared_ptr<MapTurn> turn, std::shared_ptr<MapCost> cost)
      : function_(std::move(function)), turn_(std::move(turn)), cost_(std::move(cost)) {}

  Result<std::unique_ptr<MapResults>> call(const std::vector<std::vector<MapValue>>& values,
                                           SampleContext& context, Slot* only) const override {
    const Stopwatch waiting;
    std::unique_lock<MapTurn> turn;  // before the GIL: who waits for it holds nothing
    if (turn_ != nullptr) turn = std::unique_lock(*turn_);
    nb::gil_scoped_acquire gil;
    cost_->gil_ns += waiting.ns();
    const Stopwatch busy;
    Status status;
    std::unique_ptr<MapResults> results;
    try {
      nb::object got = results_of(values, context);
      if (only != nullptr)
        status = PythonResults::write_one(got[0], *only);
      else
        results = std::make_unique<PythonResults>(std::move(got));
    } catch (nb::python_error& e) {
      const auto [bad, text] = nb::cast<std::pair<bool, std::string>>(
          nb::module_::import_("headrace.mapping").attr("said")(e.value()));
      status = bad ? corrupt(text) : invalid(text);
    }
    ++cost_->calls;
    cost_->busy_ns += busy.ns();
    if (!status.ok()) return status;
    return results;
  }

 private:
  static nb::object argument(const MapValue& value, const std::string& what) {
    if (what == "text" || what == "key" || what == "json") return to_str(value.buffer->bytes());
    if (what == "bytes") return to_bytes(value.buffer->bytes());
    nb::object array = to_array(value.buffer, value.dtype, value.shape, "numpy");
    return what == "scalar" ? nb::object(array.attr("item")()) : array;
  }

  nb::object results_of(const std::vector<std::vector<MapValue>>& values,
                        const SampleContext& context) const {
    nb::list arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      nb::list found;
      for (const MapValue& value : values[i]) found.append(argument(value, inputs[i].what));
      if (inputs[i].many)
        arguments.append(found);
      else if (values[i].empty())
        arguments.append(nb::none());
      else
        arguments.append(found[0]);
    }
    const auto [a, b] = draws(context);
    return function_.get()(arguments, context.sample(), context.epoch(),
                           to_str(as_bytes(context.key())), a, b);
  }

  const HeldObject function_;
  const std::shared_ptr<MapTurn> turn_;
  const std::shared_ptr<MapCost> cost_;
};

// -- compiled, without the GIL ------------------------------------------------------------------

// int32 (value, its shape, result, its shape, two numbers that were drawn); 0: done.
using Compiled = int32_t (*)(const void*, const int64_t*, void*, const int64_t*, uint64_t,
                             uint64_t);

class CompiledWork final : public MapWork {
 public:
  CompiledWork(uintptr_t address, std::pair<std::string, size_t> takes, nb::object keep,
               std::shared_ptr<MapCost> cost)
      : takes_(std::move(takes)),
        function_(reinterpret_cast<Compiled>(address)),
        keep_(std::move(keep)),
        cost_(std::move(cost)) {}

  Result<std::unique_ptr<MapResults>> call(const std::vector<std::vector<MapValue>>& values,
                                           SampleContext& context, Slot* only) const override {
    if (only == nullptr || values.size() != 1 || values[0].size() != 1)
      return internal("a compiled function has one value and one result");
    const MapValue& value = values[0][0];
    const std::vector<int64_t>& shape = outputs[0].spec.shape;
    HEADRACE_ASSIGN(const MutableBytes room, only->room(shape));
    const auto [a, b] = draws(context);
    const Stopwatch busy;
    const int32_t failed =
        function_(value.buffer->data(), value.shape.data(), room.data(), shape.data(), a, b);
    ++cost_->calls;
    cost_->busy_ns += busy.ns();
    if (failed != 0)
      return invalid(
          "the compiled function given to map() raised an exception; call it on "
          "ds[i] without a Loader to see which");
    return std::unique_ptr<MapResults>();
  }

  Status accepts(const TensorSpec& value) const override {
    if (dtype_name(value.dtype) == takes_.first && value.shape.size() == takes_.second) return {};
    return invalid(
        fmt::format("field '{}': the compiled function given to map() takes {} of {} axes, and the "
                    "field gives {}; declare another signature, or add .cast()",
                    name, takes_.first, takes_.second, value.text()));
  }

 private:
  const std::pair<std::string, size_t> takes_;
  const Compiled function_;
  const HeldObject keep_;
  const std::shared_ptr<MapCost> cost_;
};

// -- decoders -------------------------------------------------------------------------------------

class MapDecoder final : public Decoder {
 public:
  MapDecoder(DecoderPointer inner, std::shared_ptr<const MapWork> work, bool shared)
      : inner_(std::move(inner)), work_(std::move(work)), shared_(shared) {}

  const TensorSpec& output() const override { return work_->outputs[0].spec; }
  uint64_t damaged() const override { return inner_->damaged(); }
  size_t inputs() const override { return inner_->inputs(); }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    OwnSlot in(inner_->output().dtype, shared_);
    HEADRACE_TRY(inner_->run(inputs, context, in));
    std::vector<std::vector<MapValue>> values(1);
    values[0].push_back(std::move(in.value_));
    return work_->call(values, context, &out).status();
  }

 private:
  const DecoderPointer inner_;
  const std::shared_ptr<const MapWork> work_;
  const bool shared_;
};

// The values of one sample that functions of several fields wait for, and what they gave.
struct MapsUnderWay {
  struct One {
    const MapWork* work = nullptr;
    std::vector<std::vector<MapValue>> values;
    std::unique_ptr<MapResults> results;
  };
  std::vector<One> all;

  void begin_sample() { all.clear(); }
  One& of(const MapWork& work) {
    for (One& one : all)
      if (one.work == &work) return one;
    One& one = all.emplace_back();
    one.work = &work;
    one.values.resize(work.inputs.size());
    return one;
  }
};

// Takes an input; its column has no bytes.
class MapInputDecoder final : public Decoder {
 public:
  MapInputDecoder(DecoderPointer inner, std::shared_ptr<const MapWork> work, size_t number,
                  bool shared)
      : inner_(std::move(inner)), work_(std::move(work)), number_(number), shared_(shared) {}

  const TensorSpec& output() const override { return output_; }
  uint64_t damaged() const override { return inner_->damaged(); }
  size_t inputs() const override { return inner_->inputs(); }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    OwnSlot in(inner_->output().dtype, shared_);
    HEADRACE_TRY(inner_->run(inputs, context, in));
    context.part<MapsUnderWay>().of(*work_).values[number_].push_back(std::move(in.value_));
    return out.room(output_.shape).status();
  }

 private:
  const DecoderPointer inner_;
  const std::shared_ptr<const MapWork> work_;
  const size_t number_;
  const bool shared_;
  const TensorSpec output_{DType::kU8, {0}};
};

class MapOutputDecoder final : public Decoder {
 public:
  MapOutputDecoder(std::shared_ptr<const MapWork> work, size_t number)
      : work_(std::move(work)), number_(number) {}

  const TensorSpec& output() const override { return work_->outputs[number_].spec; }

  Status run(std::span<const Bytes>, SampleContext& context, Slot& out) const override {
    MapsUnderWay::One& one = context.part<MapsUnderWay>().of(*work_);
    if (work_->outputs.size() == 1) return work_->call(one.values, context, &out).status();
    if (number_ == 0) {
      HEADRACE_ASSIGN(one.results, work_->call(one.values, context, nullptr));
    }
    if (one.results == nullptr) return internal("a function was not called before its results");
    const Status status = one.results->write(number_, out);
    // A process is held until then.
    if (!status.ok() || number_ + 1 == work_->outputs.size()) one = {};
    return status;
  }

 private:
  const std::shared_ptr<const MapWork> work_;
  const size_t number_;
};

TensorSpec spec_of(const std::string& how, const std::string& dtype,
                   const std::vector<std::optional<int64_t>>& shape) {
  if (how != "array") return {DType::kU8, {kVaries}};
  TensorSpec spec{parse_dtype(dtype), {}};
  for (const std::optional<int64_t>& n : shape) spec.shape.push_back(n.value_or(kVaries));
  return spec;
}

using ResultOf = std::tuple<std::string, std::string, std::vector<std::optional<int64_t>>>;

void make_function(MapFunction* self, nb::object function, const std::string& name,
                   const std::vector<std::pair<std::string, bool>>& inputs,
                   const std::vector<ResultOf>& results, nb::object pool, uint32_t target,
                   uintptr_t address, const std::pair<std::string, size_t>& takes,
                   std::shared_ptr<MapTurn> turn) {
  auto cost = std::make_shared<MapCost>();
  std::shared_ptr<MapWork> work;
  cost->in_processes = !pool.is_none();
  if (!pool.is_none())
    work = map_in_processes(nb::cast<WorkerPoolHandle&>(pool).pool, target, cost);
  else if (address != 0)
    work = std::make_shared<CompiledWork>(address, takes, std::move(function), cost);
  else
    work = std::make_shared<PythonWork>(std::move(function), std::move(turn), cost);
  work->name = name;
  for (const auto& [what, many] : inputs) work->inputs.push_back({what, many});
  for (const auto& [how, dtype, shape] : results)
    work->outputs.push_back({how, spec_of(how, dtype, shape)});
  new (self) MapFunction{std::move(work), std::move(cost)};
}

}  // namespace

std::pair<uint64_t, uint64_t> MapWork::draws(const SampleContext& context) const {
  Rng rng(context.draws().with("map").with(name));
  const uint64_t a = rng.next();
  return {a, rng.next()};
}

std::function<Result<DecoderPointer>(DecoderPointer)> map_wrapper(const MapFunction& map,
                                                                  MapRole role) {
  const std::shared_ptr<MapWork> work = map.work;
  const bool shared = work->is_elsewhere();
  return [work, role, shared](DecoderPointer inner) -> Result<DecoderPointer> {
    if (role.kind == MapRole::kInput)
      return DecoderPointer(
          std::make_shared<MapInputDecoder>(std::move(inner), work, role.number, shared));
    if (role.kind == MapRole::kOutput)
      return DecoderPointer(std::make_shared<MapOutputDecoder>(work, role.number));
    HEADRACE_TRY(work->accepts(inner->output()));
    return DecoderPointer(std::make_shared<MapDecoder>(std::move(inner), work, shared));
  };
}

void bind_map(nb::module_& m) {
  nb::class_<MapCost>(m, "MapCost")
      .def(nb::init<>())
      .def_prop_ro("calls", [](const MapCost& c) { return c.calls.load(); })
      .def_prop_ro("busy_ns", [](const MapCost& c) { return c.busy_ns.load(); })
      .def_ro("in_processes", &MapCost::in_processes)
      .def_prop_ro("gil_ns", [](const MapCost& c) { return c.gil_ns.load(); });
  nb::class_<MapTurn>(m, "MapTurn").def(nb::init<>());
  nb::class_<MapFunction>(m, "MapFunction")
      .def("__init__", &make_function, nb::kw_only(), nb::arg("function").none(), nb::arg("name"),
           nb::arg("inputs"), nb::arg("results"), nb::arg("pool").none(), nb::arg("target"),
           nb::arg("address"), nb::arg("takes"), nb::arg("turn").none(),
           "inputs: (what, many); results: (\"array\", \"text\", \"bytes\" or \"object\", type, "
           "shape: None where it varies); address: of a compiled function that takes "
           "(type, axes), or 0; turn: shared by functions of which one is called at a time")
      .def_ro("cost", &MapFunction::cost);
}

}  // namespace headrace::py
