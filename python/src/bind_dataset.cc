// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "arrays.h"
#include "base/machine.h"
#include "bind_cache.h"
#include "bind_scans.h"
#include "convert.h"
#include "errors.h"
#include "handles.h"
#include "index/held_source.h"
#include "index/value_lengths.h"
#include "index/view.h"
#include "interruptible.h"
#include "loader/dataset.h"
#include "loader/field.h"
#include "loader/picture_levels.h"
#include "open/open.h"
#include "progress.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using Lengths = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

OpenOptions open_options(const std::string& index, const std::string& root, Progress& progress) {
  OpenOptions o;
  o.root = root;
  o.index = index;
  o.progress = [&progress](const IndexProgress& p) {
    progress.tell(p.shards_done, p.shards, p.samples);
  };
  o.cancel = progress.cancel();
  return o;
}

SourceHandle open_urls(const std::vector<std::string>& urls, const std::string& index,
                       const std::string& root, nb::object function,
                       const std::optional<CacheOptions>& cache) {
  Progress progress(std::move(function));
  const bool far = std::any_of(urls.begin(), urls.end(), is_remote);
  Result<Opened> opened = run_interruptible(far, progress.cancel_flag(), [&] {
    OpenOptions options = open_options(index, root, progress);
    if (cache) options.cache = *cache;
    return open_source(urls, options);
  });
  progress.finish();
  Opened o = unwrap(std::move(opened));
  SourceHandle out{o.source, o.source, o.format, o.notices, o.classes, {}, o.shards_built};
  const ShardTable& table = o.source->shards();
  for (size_t i = 0; i < table.size(); ++i)
    out.shards.push_back({std::string(table.name(i)), table.bytes(i), table.samples(i)});
  out.cache = std::move(o.cache);
  return out;
}

void index_urls(const std::vector<std::string>& urls, const std::string& to,
                const std::string& root, nb::object function) {
  Progress progress(std::move(function));
  const bool far = std::any_of(urls.begin(), urls.end(), is_remote);
  const Status status = run_interruptible(far, progress.cancel_flag(), [&] {
    return build_index(urls, to, open_options("", root, progress));
  });
  progress.finish();
  check(status);
}

// The data set read into memory.
SourceHandle hold(const SourceHandle& from, const std::string& folder) {
  std::atomic<bool> cancel{false};
  const HoldOptions options{folder, usable_memory_bytes() / 2, &cancel};
  std::vector<std::string> files;  // of arrays
  for (uint32_t f = 0; !from.whole && !from.source->file_path(f).empty(); ++f)
    files.push_back(from.source->file_path(f));
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const std::string& name : from.by_python) std::erase(files, name);  // goes on to read them
  auto work = std::async(std::launch::async, [&] {
    return from.whole ? hold_source(from.whole, options)
                      : hold_source(from.source, std::move(files), options);
  });
  HeldSource held = unwrap(wait_for(std::move(work), cancel));
  SourceHandle out = from;
  out.source = std::move(held.source);
  if (!held.held.notice.empty()) out.notices.push_back(held.held.notice);
  return out;
}

nb::list schema_of(const SourceHandle& s) {
  nb::list out;
  for (const Field& f : s.source->schema())
    out.append(
        nb::make_tuple(to_str(f.name), to_str(kind_name(f.kind)), f.storage == Storage::kInline));
  return out;
}

// Everything that is known of the fields.
nb::list fields_of(const SourceHandle& s) {
  nb::list out;
  for (const Field& f : s.source->schema()) {
    nb::dict d;
    d["name"] = to_str(f.name);
    d["kind"] = to_str(kind_name(f.kind));
    d["in_index"] = f.storage == Storage::kInline;
    d["dtype"] = f.dtype ? to_str(dtype_name(*f.dtype)) : nb::none();
    nb::list shape;
    for (const int64_t n : f.shape)
      shape.append(n == kVaries ? nb::none() : nb::object(nb::int_(n)));
    d["shape"] = f.kind == Kind::kArray ? nb::object(nb::tuple(shape)) : nb::none();
    d["many"] = f.many;
    d["picture"] =
        f.storage == Storage::kExtent && f.kind != Kind::kNpy && is_picture_extension(f.name);
    const auto part = s.part_of.find(f.name);
    d["part"] = part == s.part_of.end() ? nb::none() : to_str(part->second);
    out.append(d);
  }
  return out;
}

nb::list strings_of(const std::vector<std::string>& list) {
  nb::list out;
  for (const std::string& s : list) out.append(to_str(s));
  return out;
}

// A view keeps the words of its base.
SourceHandle view_of(const SourceHandle& base, Result<std::shared_ptr<const Source>> view) {
  SourceHandle out = base;
  out.source = unwrap(std::move(view));
  out.weights = nullptr;  // of other samples
  out.groups = nullptr;
  return out;
}

nb::object value_of(const SampleValue& v, const std::string& how) {
  if (!v.present) return nb::none();
  if (v.many) {
    nb::list out;
    for (const SampleValue& each : v.values) out.append(value_of(each, how));
    return out;
  }
  if (how == "text" || how == "json") return to_str(v.bytes->bytes());
  if (how == "bytes") return to_bytes(v.bytes->bytes());
  nb::object array = to_array(v.bytes, v.dtype, v.shape, "numpy");
  return v.shape.empty() ? nb::object(array.attr("item")()) : array;
}

nb::list sample_at(const Dataset& dataset, uint64_t i, const std::vector<std::string>& how) {
  Result<std::vector<SampleValue>> values = internal("not read");
  {
    nb::gil_scoped_release release;
    values = dataset.at(i);
  }
  const std::vector<SampleValue> list = unwrap(std::move(values));
  nb::list out;
  for (size_t c = 0; c < list.size(); ++c) out.append(value_of(list[c], how[c]));
  // OUTPUT_valid, as in a batch.
  for (size_t c = 0; c < list.size(); ++c)
    if (dataset.requests()[c].optional) out.append(nb::bool_(!list[c].missing));
  return out;
}

// How often each level occurs, int64 [channels, 256]: of a data set of one field of pictures.
nb::object levels_of(const Dataset& dataset, const Numbers& samples, unsigned threads,
                     nb::object function) {
  Progress progress(std::move(function));
  ScanOptions options{.threads = threads};
  options.progress = [&progress](uint64_t done, uint64_t all) { progress.tell(done, all); };
  options.cancel = progress.cancel();
  Result<std::vector<Levels>> counted = internal("not counted");
  {
    nb::gil_scoped_release release;
    counted = picture_levels(dataset, {samples.data(), samples.size()}, options);
  }
  progress.finish();
  std::vector<int64_t> numbers;
  const std::vector<Levels> levels = unwrap(std::move(counted));
  for (const Levels& channel : levels)
    numbers.insert(numbers.end(), channel.begin(), channel.end());
  return int64_array(numbers, {static_cast<int64_t>(levels.size()), 256}, "numpy");
}

}  // namespace

void bind_dataset(nb::module_& m) {
  nb::class_<SourceHandle> source(m, "Source");
  source.def_prop_ro("size", [](const SourceHandle& s) { return s.source->size(); })
      .def_prop_ro("bytes", [](const SourceHandle& s) { return s.source->blocks().bytes; })
      .def_prop_ro("blocks",
                   [](const SourceHandle& s) { return s.source->blocks().samples.size(); })
      .def_prop_ro("schema", &schema_of)
      .def_prop_ro("fields", &fields_of)
      .def_prop_ro("fingerprint",
                   [](const SourceHandle& s) { return s.source->fingerprint().hex(); })
      .def_ro("format", &SourceHandle::format)
      .def_prop_ro("notices", [](const SourceHandle& s) { return strings_of(s.notices); })
      .def("add_notice",
           [](SourceHandle& s, const std::string& text) { s.notices.push_back(text); })
      .def_prop_ro("classes", [](const SourceHandle& s) { return strings_of(s.classes); })
      .def_ro("shards_built", &SourceHandle::shards_built)
      .def_prop_ro("shards",
                   [](const SourceHandle& s) {
                     nb::list out;
                     for (const ShardSummary& x : s.shards)
                       out.append(nb::make_tuple(to_str(x.name), x.bytes, x.samples));
                     return out;
                   })
      .def("key",
           [](const SourceHandle& s, uint64_t i) {
             if (i >= s.source->size()) throw nb::index_error("no such sample");
             return to_str(s.source->key(i));
           })
      .def("view",
           [](const SourceHandle& s, const Numbers& n) {
             return view_of(s, make_view(s.source, {n.data(), n.data() + n.size()}));
           })
      .def("weighted",
           [](const SourceHandle& s, const Numbers& weights, uint64_t draws) {
             SourceHandle out = s;
             out.weights = unwrap(SampleWeights::make({weights.data(), weights.size()}, draws));
             return out;
           })
      .def(
          "packed",
          [](const SourceHandle& s, const Lengths& lengths, uint64_t capacity, uint64_t window,
             bool anew) {
            SourceHandle out = s;
            nb::gil_scoped_release release;
            out.groups =
                unwrap(Grouping::make({lengths.data(), lengths.data() + lengths.size()},
                                      {.capacity = capacity, .window = window, .anew = anew}));
            return out;
          },
          nb::arg("lengths"), nb::arg("capacity"), nb::arg("window"), nb::arg("anew"))
      .def(
          "within_budget",
          [](const SourceHandle& s, const Lengths& lengths, uint64_t most, bool padded,
             bool by_length, uint64_t most_samples, uint64_t window) {
            const BatchBudget budget{most, padded ? BatchCost::kPadded : BatchCost::kSum, by_length,
                                     most_samples};
            SourceHandle out = s;
            nb::gil_scoped_release release;
            out.groups = unwrap(Grouping::make({lengths.data(), lengths.data() + lengths.size()},
                                               {.budget = budget, .window = window}));
            return out;
          },
          nb::arg("lengths"), nb::arg("most"), nb::arg("padded"), nb::arg("by_length"),
          nb::arg("most_samples"), nb::arg("window"))
      .def(
          "value_lengths",
          [](const SourceHandle& s,
             const std::string& name) -> std::optional<std::vector<uint32_t>> {
            const uint32_t field = unwrap(find_field(s.source->schema(), name));
            const std::optional<DType> dtype = s.source->schema()[field].dtype;
            const Kind kind = s.source->schema()[field].kind;
            if (!dtype || (kind != Kind::kTokens && kind != Kind::kArray)) return std::nullopt;
            nb::gil_scoped_release release;
            return unwrap(value_lengths(*s.source, field, size_of(*dtype), nullptr));
          },
          nb::arg("field"), "As far as the index knows them; None: the values have to be read.")
      .def_prop_ro(
          "groups",
          [](const SourceHandle& s) { return s.groups ? s.groups->as_they_lie()->size() : 0; })
      .def("group",
           [](const SourceHandle& s, uint64_t g) {
             if (!s.groups || g >= s.groups->as_they_lie()->size())
               throw nb::index_error("no such row");
             const auto members = s.groups->as_they_lie()->members(g);
             return std::vector<uint64_t>(members.begin(), members.end());
           })
      .def_prop_ro("objects",
                   [](const SourceHandle& s) {
                     nb::list out;
                     for (const std::string& name : s.objects) out.append(to_str(name));
                     return out;
                   })
      .def("item_costs",
           [](const SourceHandle& s) {
             nb::list out;
             for (const auto& cost : s.item_costs)
               out.append(nb::make_tuple(to_str(cost->name), cost->samples.load(),
                                         static_cast<double>(cost->busy_ns.load()) * 1e-9));
             return out;
           })
      .def_prop_ro("is_weighted", [](const SourceHandle& s) { return s.weights != nullptr; })
      .def("slice", [](const SourceHandle& s, int64_t b, int64_t e, int64_t step) {
        return view_of(s, make_slice(s.source, b, e, step));
      });
  bind_scans(source);
  bind_cached(source);
  bind_staged(source);

  m.def("open_source", &open_urls, nb::arg("urls"), nb::arg("index") = "", nb::arg("root") = "",
        nb::arg("progress") = nb::none(), nb::arg("cache") = nb::none());
  m.def("hold", &hold, nb::arg("source"), nb::arg("folder") = "/dev/shm");
  m.def("build_index", &index_urls, nb::arg("urls"), nb::arg("to"), nb::arg("root") = "",
        nb::arg("progress") = nb::none());

  nb::class_<Dataset>(m, "Dataset")
      .def_static("make",
                  [](const SourceHandle& s, std::vector<FieldRequest> fields) {
                    const auto made = [&] {  // what a sample looks like may be Python's to say
                      nb::gil_scoped_release release;
                      return Dataset::make(s.source, std::move(fields));
                    };
                    return unwrap(made());
                  })
      .def("at", &sample_at)
      .def("picture_levels", &levels_of, nb::arg("samples"), nb::arg("threads") = 0,
           nb::arg("progress") = nb::none());
}

}  // namespace headrace::py
