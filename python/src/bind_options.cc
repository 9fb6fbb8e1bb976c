// SPDX-License-Identifier: Apache-2.0
//
// The options of a Loader as Python sees them: every one is named and typed, none has a default
// here.  headrace/loader.py has those, and checks what users write.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "device/library.h"
#include "errors.h"
#include "loader/loader.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using KindTuple = std::tuple<std::string, double, double>;  // name, alpha, p

void make_mix_options(MixOptions* self, const std::vector<KindTuple>& kinds,
                      const std::string& image, const std::string& label, int64_t classes,
                      bool channels_last) {
  new (self) MixOptions{{}, image, label, classes, channels_last};
  for (const auto& [name, alpha, p] : kinds) self->kinds.push_back({name, alpha, p});
}

void make_row_packing_options(RowPacking* self, uint64_t length, const std::string& column,
                              const std::vector<std::pair<std::string, int64_t>>& columns,
                              bool keep_end) {
  new (self) RowPacking{length, column, {}, keep_end};
  for (const auto& [name, number] : columns) self->columns.emplace_back(name, number);
}

void make_plan_options(PlanOptions* self, uint64_t seed, Shuffle shuffle,
                       std::optional<uint64_t> window, uint64_t reassign_every,
                       uint64_t global_batch, uint32_t rank, uint32_t world, Tail tail,
                       const std::vector<double>& weights, uint64_t epoch_draws) {
  new (self)
      PlanOptions{seed,    shuffle,    window, reassign_every, {global_batch, rank, world, tail},
                  weights, epoch_draws};
}

void make_loader_options(LoaderOptions* self, const PlanOptions& plan, int threads,
                         uint64_t memory_budget, int local_ranks,
                         std::optional<uint64_t> most_replaced, std::optional<MixOptions> mix,
                         int processes, bool read_runs, std::optional<int> device, DecodeOn decode,
                         uint64_t device_memory_budget, bool pinned,
                         std::optional<RowPacking> packing) {
  new (self) LoaderOptions();
  self->plan = plan;
  self->threads = threads;
  self->memory_budget_bytes = memory_budget;
  self->local_ranks = local_ranks;
  self->bad_samples = {most_replaced.has_value(), most_replaced.value_or(0)};
  self->mix = std::move(mix);
  self->processes = processes;
  self->read_runs = read_runs;
  if (device) self->device = DeviceOptions{*device, decode, device_memory_budget};
  self->pinned = pinned;
  self->packing = std::move(packing);
}

}  // namespace

void bind_options(nb::module_& m) {
  nb::enum_<Shuffle>(m, "Shuffle")
      .value("AUTO", Shuffle::kAuto)
      .value("NONE", Shuffle::kNone)
      .value("GLOBAL", Shuffle::kGlobal)
      .value("POOL", Shuffle::kPool);
  nb::enum_<Tail>(m, "Tail")
      .value("DROP", Tail::kDrop)
      .value("PAD", Tail::kPad)
      .value("KEEP", Tail::kKeep);
  nb::enum_<DecodeOn>(m, "DecodeOn")
      .value("AUTO", DecodeOn::kAuto)
      .value("GPU", DecodeOn::kGpu)
      .value("CPU", DecodeOn::kCpu);
  // As a blend's weights are kept: they sum to 2^32.
  m.def("integer_weights",
        [](const std::vector<double>& weights) { return unwrap(integer_weights(weights)); });
  m.def("add_library_folders", &add_library_folders, nb::arg("folders"),
        "Where else to look for the libraries of the GPU's maker.");
  nb::class_<MixOptions>(m, "MixOptions")
      .def("__init__", &make_mix_options, nb::kw_only(), nb::arg("kinds"), nb::arg("image"),
           nb::arg("label"), nb::arg("classes"), nb::arg("channels_last"),
           "kinds: (\"mixup\" or \"cutmix\", alpha, p)");
  nb::class_<RowPacking>(m, "RowPacking")
      .def("__init__", &make_row_packing_options, nb::kw_only(), nb::arg("length"),
           nb::arg("column"), nb::arg("columns"), nb::arg("keep_end"),
           "columns: (name, padding) of those that become rows");
  nb::class_<PlanOptions>(m, "PlanOptions")
      .def("__init__", &make_plan_options, nb::kw_only(), nb::arg("seed"), nb::arg("shuffle"),
           nb::arg("window").none(), nb::arg("reassign_every"), nb::arg("global_batch"),
           nb::arg("rank"), nb::arg("world"), nb::arg("tail"), nb::arg("weights"),
           nb::arg("epoch_draws"), "window: bytes; None: chosen")
      .def_prop_ro("global_batch", [](const PlanOptions& o) { return o.cut.batch; });
  nb::class_<LoaderOptions>(m, "LoaderOptions")
      .def("__init__", &make_loader_options, nb::kw_only(), nb::arg("plan"), nb::arg("threads"),
           nb::arg("memory_budget"), nb::arg("local_ranks"), nb::arg("most_replaced").none(),
           nb::arg("mix").none(), nb::arg("processes"), nb::arg("read_runs"),
           nb::arg("device").none(), nb::arg("decode"), nb::arg("device_memory_budget"),
           nb::arg("pinned"), nb::arg("packing").none(),
           "threads, memory_budget, device_memory_budget: 0: chosen; most_replaced: bad samples an "
           "epoch, None: raise");
}

}  // namespace headrace::py
