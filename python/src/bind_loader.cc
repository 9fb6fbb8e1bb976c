// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "base/mutex.h"
#include "convert.h"
#include "device/device_memory.h"
#include "errors.h"
#include "handles.h"
#include "loader/epochs.h"
#include "loader/loader.h"
#include "plan/state_text.h"
#include "stored_bytes.h"
#include "worker_pool.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

constexpr int kSignalCheckMs = 100;  // how long Ctrl-C may take while waiting for a batch

// A delivered batch, before headrace/batch.py makes a dict of it.  It holds nothing of the loader.
struct RawBatch {
  std::unique_ptr<Batch> batch;
  PlanState state;  // after it
};

// Joins the threads without the GIL: one of them may be waiting for it.
struct PyLoader {
  struct Output {
    nb::object name;
    std::string as;  // "array", "text", "bytes", "mask"; "hidden": not delivered
  };
  std::unique_ptr<Loader> loader;
  Epochs epochs;
  std::vector<Output> outputs;  // one per column
  std::string framework;
  nb::object stream_of;  // gives the stream that the consumer works in; None: it has none
  explicit PyLoader(std::unique_ptr<Loader> l) : loader(std::move(l)), epochs(*loader) {}
  ~PyLoader() {
    nb::gil_scoped_release release;
    loader.reset();
  }
  PyLoader(const PyLoader&) = delete;
  PyLoader& operator=(const PyLoader&) = delete;

  // Counts the threads that are in here without the GIL: close() lets them return to Python before
  // it does, because at the end of the interpreter a thread that asks for the GIL is killed.
  class Inside {
   public:
    explicit Inside(PyLoader& l) : l_(l) {
      MutexLock lock(l_.mu_);
      if (l_.closed_) throw StatusError{invalid("this Loader is closed")};
      ++l_.inside_;
    }
    ~Inside() {
      MutexLock lock(l_.mu_);
      --l_.inside_;
      l_.outside_.notify_all();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    PyLoader& l_;
  };
  // The loader, in the process that made it.
  const Loader& here() const {
    if (loader->is_forked())
      check(invalid("this Loader was made before a fork: ask it in the process that made it"));
    return *loader;
  }
  // Without the GIL.  After it no thread waits in next(), and none will.
  void close() {
    {
      MutexLock lock(mu_);
      closed_ = true;
    }
    loader->stop();
    MutexLock lock(mu_);
    while (inside_ > 0) outside_.wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar outside_;
  int inside_ HEADRACE_GUARDED_BY(mu_) = 0;
  bool closed_ HEADRACE_GUARDED_BY(mu_) = false;
};

// An array over what the column holds, on the CPU or on a device.
nb::object values_of(const Column& column, std::string_view framework) {
  if (column.device.kind == DeviceKind::kCuda)
    return device_array(column.values, column.dtype, column.shape, framework, column.device.index);
  return to_array(column.values, column.dtype, column.shape, framework);
}

nb::list items_of(Column& column, std::string_view as, size_t begin, size_t end) {
  nb::list out;
  for (size_t i = begin; i < end; ++i) {
    if (!column.items[i])
      out.append(nb::none());  // the sample has none
    else if (as == "text")
      out.append(to_str(column.items[i]->bytes()));
    else if (as == "bytes")
      out.append(stored_bytes(std::move(column.items[i])));
    else
      out.append(to_array(column.items[i], column.dtype, column.shapes[i], as));
  }
  return out;
}

// Several values a sample: a list for each.
nb::list lists_of(Column& column, std::string_view as) {
  nb::list out;
  for (size_t i = 0; i + 1 < column.first.size(); ++i)
    out.append(items_of(column, as, static_cast<size_t>(column.first[i]),
                        static_cast<size_t>(column.first[i + 1])));
  return out;
}

nb::object lengths_of(const Column& column, std::string_view framework) {
  const auto n = static_cast<int64_t>(column.shapes.size());
  const auto axes = static_cast<int64_t>(column.axes);
  std::vector<int64_t> flat;
  for (const auto& shape : column.shapes) flat.insert(flat.end(), shape.begin(), shape.end());
  if (axes == 1) return int64_array(flat, {n}, framework);
  return int64_array(flat, {n, axes}, framework);
}

// "values" as they are packed, and what tells the samples apart in them.  Called once: stored bytes
// are taken out of the column.
nb::object to_python(Column& column, std::string_view as, std::string_view framework) {
  switch (column.packing) {
    case Packing::kDense:
      if (as == "mask" && column.device.kind != DeviceKind::kCuda)
        return bool_array(column.values, column.shape, framework);
      if (as == "mask")
        return values_of(column, framework)
            .attr(framework == "torch" ? "bool" : "astype")(
                *(framework == "torch" ? nb::tuple() : nb::make_tuple("bool")));
      return values_of(column, framework);
    case Packing::kPadded:
      return nb::make_tuple(values_of(column, framework), lengths_of(column, framework));
    case Packing::kRagged: {
      const auto n = static_cast<int64_t>(column.offsets.size());
      if (column.many)
        return nb::make_tuple(values_of(column, framework),
                              int64_array(column.offsets, {n}, framework));
      return nb::make_tuple(values_of(column, framework),
                            int64_array(column.offsets, {n}, framework),
                            lengths_of(column, framework));
    }
    case Packing::kList:
      break;
  }
  const std::string_view items = as == "array" ? framework : as;
  return column.many ? lists_of(column, items) : items_of(column, items, 0, column.items.size());
}

template <typename F>
void without_gil(PyLoader& l, F work) {
  Status status;
  {
    const PyLoader::Inside inside(l);
    nb::gil_scoped_release release;
    status = work();
  }
  check(status);
}

// The consumer's stream waits for what is still on its way to the device; without one, this thread.
void wait_for_device(const PyLoader& py, const Batch& batch) {
  const ReadyEvent* waited = nullptr;
  const bool has_stream = py.stream_of.is_valid() && !py.stream_of.is_none();
  CudaStream stream = nullptr;
  for (const Column& column : batch.columns) {
    if (column.device.kind != DeviceKind::kCuda || !column.ready) continue;
    if (column.ready.get() != waited) {
      waited = column.ready.get();
      if (has_stream) {
        stream = reinterpret_cast<CudaStream>(nb::cast<uintptr_t>(py.stream_of()));
        check(static_cast<const CudaEvent*>(waited)->hold_up(stream));
      } else {
        nb::gil_scoped_release release;
        check(waited->wait());
      }
    }
    // JAX has streams of its own, and lets go of memory that work in them has yet to read.
    if (has_stream)
      DeviceMemory::consumed_in(column.values, stream);
    else
      DeviceMemory::consumed_anywhere(column.values);
  }
}

nb::object hand_over(PyLoader& py, std::unique_ptr<RawBatch> raw, nb::dict out) {
  Batch& batch = *raw->batch;
  wait_for_device(py, batch);
  for (size_t c = 0; c < py.outputs.size(); ++c) {
    if (py.outputs[c].as == "hidden") continue;
    out[py.outputs[c].name] = to_python(batch.columns[c], py.outputs[c].as, py.framework);
  }
  batch.columns.clear();  // the arrays hold the memory from here on
  raw->state = py.loader->state({batch.after.epoch, batch.after.g});
  return nb::cast(raw.release(), nb::rv_policy::take_ownership);
}

// Waits for a batch and puts its columns into `out`.  Gives what else is known of the batch, or
// None at the end.  received() then tells that the consumer has it.
nb::object next_batch(PyLoader& py, nb::dict out) {
  Loader& loader = *py.loader;
  while (true) {
    auto raw = std::make_unique<RawBatch>();
    Result<Engine::Next> what = Engine::Next::kEnd;
    {
      const PyLoader::Inside inside(py);
      nb::gil_scoped_release release;
      what = loader.next(raw->batch, kSignalCheckMs);
    }
    switch (unwrap(std::move(what))) {
      case Engine::Next::kBatch:
        return hand_over(py, std::move(raw), out);
      case Engine::Next::kEnd:
        return nb::none();
      case Engine::Next::kTimeout:
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
}

nb::dict stage(const StageStats& s) {
  nb::dict d;
  d["items"] = s.items;
  d["bytes"] = s.bytes;
  d["busy_s"] = static_cast<double>(s.busy_ns) * 1e-9;
  d["wait_input_s"] = static_cast<double>(s.wait_input_ns) * 1e-9;
  d["wait_room_s"] = static_cast<double>(s.wait_room_ns) * 1e-9;
  return d;
}

nb::dict reads(const EngineStats& s) {
  nb::dict d;
  d["latency_median_ms"] = static_cast<double>(s.read_latency_median_ns) * 1e-6;
  d["latency_p99_ms"] = static_cast<double>(s.read_latency_p99_ns) * 1e-6;
  d["under_way"] = s.reads_under_way;
  d["most_under_way"] = s.most_reads_under_way;
  d["ahead_bytes"] = s.read_ahead_bytes;
  return d;
}

nb::dict stats(const Loader& loader) {
  const EngineStats s = loader.stats();
  nb::dict stages;
  stages["plan"] = stage(s.plan);
  stages["resolve"] = stage(s.resolve);
  stages["read"] = stage(s.read);
  stages["decode"] = stage(s.decode);
  stages["pack"] = stage(s.pack);
  stages["deliver"] = stage(s.deliver);
  nb::dict d;
  d["stages"] = stages;
  d["reads"] = reads(s);
  d["memory_used"] = s.memory_used;
  d["memory_peak"] = s.memory_peak;
  d["memory_budget"] = s.memory_budget;
  d["units_reread"] = s.units_reread;
  d["damaged"] = s.damaged;
  d["compute_threads"] = loader.engine_options().compute_threads;
  d["io_threads"] = loader.engine_options().io_threads;
  d["batches_ahead"] = loader.engine_options().batches_ahead;
  if (const auto device = loader.device_stats()) {
    nb::dict on;
    on["name"] = device->name;
    on["decoded_on_device"] = device->decoded_on_device;
    on["decoded_on_cpu"] = device->decoded_on_cpu;
    on["memory_used"] = device->memory_used;
    on["memory_peak"] = device->memory_peak;
    on["memory_budget"] = device->memory_budget;
    on["memory_planned"] = device->memory_planned;
    on["batches_ahead"] = device->batches_ahead;
    on["seconds_on_device"] = device->device_seconds;
    on["seconds_on_cpu"] = device->cpu_seconds;
    d["device"] = on;
  }
  return d;
}

nb::list quarantine(const Loader& loader) {
  nb::list out;
  for (const Quarantined& q : loader.quarantine()) {
    nb::dict d;
    d["sample"] = q.sample;
    d["source"] = q.source;
    d["epoch"] = q.epoch;
    d["file"] = q.file;
    d["offset"] = q.offset;
    d["key"] = q.key;
    d["cause"] = q.cause;
    out.append(d);
  }
  return out;
}

std::unique_ptr<PyLoader> make_loader(
    const std::vector<std::tuple<std::string, SourceHandle*, std::vector<FieldRequest>>>& sources,
    const LoaderOptions& options) {
  std::vector<LoaderSource> list;
  for (const auto& [name, handle, fields] : sources)
    list.push_back({name, handle->source, fields, handle->weights, handle->groups});
  const auto made = [&] {  // what a sample looks like may be Python's to say
    nb::gil_scoped_release release;
    return Loader::make(std::move(list), options);
  };
  auto out = std::make_unique<PyLoader>(unwrap(made()));
  const bool shared = std::any_of(sources.begin(), sources.end(), [](const auto& s) {
    const auto& costs = std::get<1>(s)->item_costs;
    return std::any_of(costs.begin(), costs.end(), [](const auto& c) { return c->in_processes; });
  });
  if (shared && out->loader->engine_options().column_arena == nullptr)
    out->loader->use_arena(process_arena());
  return out;
}

}  // namespace

void bind_loader(nb::module_& m) {
  nb::class_<RawBatch>(m, "RawBatch")
      .def_prop_ro("size", [](const RawBatch& r) { return r.batch->indices.size(); })
      .def_prop_ro(
          "epoch",
          [](const RawBatch& r) { return r.batch->after.epoch - (r.batch->after.last ? 1 : 0); })
      .def_prop_ro("is_last", [](const RawBatch& r) { return r.batch->after.last; })
      .def("indices",
           [](const RawBatch& r) {
             return int64_array(r.batch->indices, {static_cast<int64_t>(r.batch->indices.size())},
                                "numpy");
           })
      .def("groups",
           [](const RawBatch& r) {
             return int64_array(r.batch->groups, {static_cast<int64_t>(r.batch->groups.size())},
                                "numpy");
           })
      .def("sources", [](const RawBatch& r) { return r.batch->sources; })
      .def(
          "valid",
          [](const RawBatch& r) { return nb::bytes(r.batch->valid.data(), r.batch->valid.size()); })
      .def_prop_ro("all_valid",
                   [](const RawBatch& r) {
                     return std::find(r.batch->valid.begin(), r.batch->valid.end(), 0) ==
                            r.batch->valid.end();
                   })
      .def(
          "state", [](const RawBatch& r) { return state_text(r.state); },
          "The loader's state after this batch, as JSON.");

  nb::class_<PyLoader>(m, "Loader")
      .def_static("make", &make_loader, nb::arg("sources"), nb::arg("options"))
      .def_prop_ro("added",
                   [](const PyLoader& l) {
                     std::vector<std::string> out;
                     for (const ColumnSpec& c : l.loader->added_columns()) out.push_back(c.name);
                     return out;
                   })
      .def_prop_ro("steps_in_epoch",
                   [](const PyLoader& l) {
                     nb::gil_scoped_release release;  // groups of samples may have to be made
                     return l.epochs.steps();
                   })
      .def("next_epoch", [](const PyLoader& l) { return l.epochs.next(); })
      .def("set_epoch", [](PyLoader& l, uint64_t epoch) { check(l.epochs.set_epoch(epoch)); })
      .def(
          "begin",
          [](PyLoader& l, uint64_t epoch, std::optional<uint64_t> until) {
            Epochs::Begun begun;
            without_gil(l, [&]() -> Status {
              HEADRACE_ASSIGN(begun, l.epochs.begin(epoch, until));
              return {};
            });
            return std::pair(begun.generation, begun.steps);
          },
          nb::arg("epoch"), nb::arg("until").none(),
          "(what is_current() asks for, steps left in the epoch)")
      .def("is_current",
           [](const PyLoader& l, uint64_t generation) { return l.epochs.is_current(generation); })
      .def("received",
           [](PyLoader& l, const RawBatch& batch) { l.epochs.received(batch.batch->after); })
      .def("next", [](PyLoader& l, nb::dict out) { return next_batch(l, std::move(out)); })
      .def(
          "deliver_as",
          [](PyLoader& l, const std::vector<std::pair<nb::object, std::string>>& outputs,
             const std::string& framework, nb::object stream_of) {
            l.stream_of = std::move(stream_of);
            l.outputs.clear();
            for (const auto& [name, as] : outputs) l.outputs.push_back({name, as});
            for (const ColumnWork& c : l.loader->columns())
              if (c.presence_of)
                l.outputs.push_back({to_str(c.spec.name), outputs[*c.presence_of].second == "hidden"
                                                              ? "hidden"
                                                              : "mask"});
            for (const ColumnSpec& added : l.loader->added_columns())
              l.outputs.push_back({to_str(added.name), "array"});
            l.framework = framework;
          },
          nb::arg("outputs"), nb::arg("framework"), nb::arg("stream_of").none(),
          "stream_of: gives the handle of the stream that the consumer works in")
      .def(
          "share_memory",
          [](PyLoader& l) {
            if (l.loader->engine_options().column_arena != nullptr) return;  // or pinned
            if (l.loader->is_running())
              check(invalid("loader.map(fn, processes=n) comes before the first epoch begins"));
            l.loader->use_arena(process_arena());
          },
          "Batches lie in memory that processes share from now on.")
      .def(
          "close", [](PyLoader& l) { l.close(); }, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "state", [](const PyLoader& l) { return state_text(l.epochs.state()); },
          "Where the consumer stands, as JSON.")
      .def("load",
           [](PyLoader& l, const std::string& text) {
             const PlanState state = unwrap(read_state(text));
             without_gil(l, [&] { return l.epochs.load(state); });
           })
      .def("set_weights",
           [](PyLoader& l, const std::vector<double>& weights, uint64_t at_step) {
             without_gil(l, [&] { return l.epochs.set_weights(weights, at_step); });
           })
      .def("differences", [](const PyLoader& l) { return l.loader->differences(); })
      .def("plan_id", [](const PyLoader& l) { return l.loader->plan_id().hex(); })
      .def("fingerprint", [](const PyLoader& l) { return l.loader->fingerprint(); })
      .def("notes", [](const PyLoader& l) { return l.loader->notes(); })
      .def("outputs",
           [](const PyLoader& l) {
             nb::list out;
             for (const ColumnWork& c : l.loader->columns())
               out.append(nb::make_tuple(c.spec.name, c.spec.value.text()));
             return out;
           })
      .def("stats", [](const PyLoader& l) { return stats(l.here()); })
      .def("replaced", [](const PyLoader& l) { return l.here().quarantine().size(); })
      .def("quarantine", [](const PyLoader& l) { return quarantine(l.here()); });
}

}  // namespace headrace::py
