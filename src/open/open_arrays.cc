// SPDX-License-Identifier: Apache-2.0
#include "open/open_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>

#include "array/array_index.h"
#include "array/netcdf_classic.h"
#include "array/open_file.h"
#include "array/zarr_documents.h"
#include "base/machine.h"
#include "base/parallel.h"
#include "open/array_gaps.h"
#include "open/array_indexes.h"
#include "open/array_selection.h"
#include "open/expand.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr std::array<std::string_view, 9> kSuffixes = {".npy", ".zarr", ".h5",  ".hdf5", ".he5",
                                                       ".nc",  ".nc3",  ".nc4", ".cdf"};

std::string_view without_part(std::string_view url) {
  const size_t mark = url.rfind('#');
  url = mark == std::string_view::npos ? url : url.substr(0, mark);
  while (url.ends_with('/')) url.remove_suffix(1);
  return url;
}

using Arrays = std::vector<FileArray>;

// One thread at a time.
class ArrayOpener {
 public:
  ArrayOpener(const OpenArrayOptions& options, std::shared_ptr<const Store> store)
      : options_(options), store_(std::move(store)) {}

  Result<OpenedArrays> open(const std::vector<std::string>& urls) {
    HEADRACE_TRY(name_places(urls));
    HEADRACE_TRY(read_files());
    HEADRACE_ASSIGN(const FileArray* const lead, lead_array());
    along_ = options_.along.empty() ? lead->dims[0] : options_.along;
    if (options_.windows.empty())
      HEADRACE_TRY(take_all());
    else
      for (const ArrayWindow& window : options_.windows) HEADRACE_TRY(take(window));
    HEADRACE_ASSIGN(const int64_t total, length());
    if (reach_ > total)
      return invalid(fmt::format("a sample takes {} steps and '{}' has {}", reach_, along_, total));
    d_.samples.end = total - reach_ + 1;
    d_.samples.stride = options_.stride;
    d_.samples.tiled = options_.tiled;
    if (reach_ > 1 && !options_.gaps) HEADRACE_TRY(leave_out_gaps(total));
    OpenedArrays out{.format = format_, .notices = notices_};
    HEADRACE_ASSIGN(out.source, make_array_source(std::move(d_), store_));
    return out;
  }

 private:
  // A data set stays where it was when the process changes its folder later.
  Status name_places(const std::vector<std::string>& urls) {
    HEADRACE_ASSIGN(const std::vector<std::string> paths, expand_urls(*store_, urls));
    std::error_code error;
    const std::string here = std::filesystem::current_path(error).string();
    for (const std::string& path : paths) {
      NamedPart named = split_part(*store_, path);
      if (!is_absolute(named.path)) {
        if (error) return from_errno(error.value(), "current folder");
        named.path = std::filesystem::path(join_path(here, named.path)).lexically_normal().string();
      }
      places_.paths.push_back(std::move(named.path));
      places_.groups.push_back(std::move(named.part));
    }
    return {};
  }

  Status read_files() {
    const Result<Tree> index = find_array_index(places_, options_.index);
    if (index.ok()) return read_index(index.value());
    if (!options_.index.empty()) return index.status();
    for (size_t i = 0; i < places_.paths.size(); ++i) {
      HEADRACE_ASSIGN(OpenedFile file, open_directly(places_.paths[i], places_.groups[i]));
      if (!places_.groups[i].empty() && format_ != "zarr")
        std::erase_if(file.arrays,
                      [&](const FileArray& a) { return a.name() != places_.groups[i]; });
      files_.push_back(std::move(file.arrays));
    }
    return {};
  }

  Status read_index(const Tree& index) {
    format_ = index.text_of("format");
    for (const Tree& entry : index.find("entries")->items()) {
      Arrays& arrays = files_.emplace_back();
      const Tree* list = entry.find("arrays");
      if (list == nullptr) return corrupt("the index holds no arrays").in_file(places_.paths[0]);
      for (const Tree& d : list->items()) {
        if (d.true_of("unmade") || d.find("reader") != nullptr) continue;  // Python alone reads it
        Result<FileArray> array = file_array_of(d);
        if (!array.ok()) return array.status().in_file(places_.paths[files_.size() - 1]);
        arrays.push_back(std::move(array).value());
      }
    }
    return {};
  }

  Result<OpenedFile> open_directly(const std::string& path, const std::string& group) {
    if (path.ends_with(".npy")) {
      format_ = "npy";
      return open_npy(*store_, path);
    }
    HEADRACE_ASSIGN(const bool in_folder, is_zarr(*store_, path));
    if (in_folder) {
      format_ = "zarr";
      const unsigned threads = waiting_threads(*store_, path);
      return open_zarr(*store_, path, group,
                       [threads](size_t count, const std::function<Status(size_t)>& job) {
                         return parallel_for(count, threads, job);
                       });
    }
    HEADRACE_ASSIGN(const FileInfo info, store_->stat(path));
    Buffer head;
    if (!info.is_folder && info.bytes >= 4) HEADRACE_TRY(store_->read_at(path, 0, 4, head));
    if (is_netcdf_classic(head.bytes())) {
      format_ = "netcdf";
      return open_netcdf_classic(*store_, path);
    }
    return unsupported(fmt::format("is opened by its index, and there is none that holds: run "
                                   "`headrace index '{}' --to FOLDER` once, then open with "
                                   "index = FOLDER",
                                   path))
        .in_file(path);
  }

  // The one of most axes; the first of those.
  Result<const FileArray*> lead_array() const {
    if (!options_.windows.empty()) {
      const ArrayWindow& first = options_.windows.front();
      return find(first.variable.empty() ? first.name : first.variable, 0);
    }
    const FileArray* lead = nullptr;
    for (const FileArray& a : files_[0]) {
      if (!a.why.empty() || a.dims.size() <= a.inner) continue;
      if (lead == nullptr || a.dims.size() - a.inner > lead->dims.size() - lead->inner) lead = &a;
    }
    if (lead == nullptr)
      return unsupported("holds no array that can be read").in_file(places_.paths[0]);
    return lead;
  }

  Result<const FileArray*> find(const std::string& name, size_t file) const {
    const Arrays& arrays = files_[file];
    std::string known;
    for (const FileArray& a : arrays) {
      known += (known.empty() ? "" : ", ") + a.name();
      if (a.name() != name && !(arrays.size() == 1 && name == "data")) continue;
      if (!a.why.empty())
        return unsupported(fmt::format("'{}' cannot be read: {}", name, a.why))
            .in_file(places_.paths[file]);
      if (a.dims.empty())
        return invalid(fmt::format("'{}' is one number, and has no axis", name))
            .in_file(places_.paths[file]);
      return &a;
    }
    return invalid(fmt::format("has no variable '{}'; it has {}", name, known))
        .in_file(places_.paths[file]);
  }

  std::optional<size_t> axis_of(const FileArray& array) const {
    const auto it = std::find(array.dims.begin(), array.dims.end(), along_);
    if (it == array.dims.end()) return std::nullopt;
    return static_cast<size_t>(it - array.dims.begin());
  }

  // The number of the variable, with a segment for each file where it runs along the axis.
  Result<uint32_t> variable(const FileArray& lead) {
    const auto known = numbers_.find(lead.name());
    if (known != numbers_.end()) return known->second;
    Variable out{.name = lead.name(), .dims = lead.dims, .along = axis_of(lead)};
    const size_t files = out.along ? files_.size() : 1;
    for (size_t f = 0; f < files; ++f) {
      HEADRACE_ASSIGN(const FileArray* const array, find(lead.name(), f));
      const Tree* units = array->attributes.find("units");
      const Tree* first = lead.attributes.find("units");
      if ((units == nullptr) != (first == nullptr) || (units != nullptr && !(*units == *first)))
        return unsupported(
            fmt::format("'{}' has other units in {} than in {}: headrace in Python "
                        "brings them to the first's",
                        lead.name(), places_.paths[f], places_.paths[0]));
      HEADRACE_ASSIGN(std::shared_ptr<const Array> segment, added(*array));
      out.segments.push_back(std::move(segment));
    }
    const auto number = static_cast<uint32_t>(d_.variables.size());
    d_.variables.push_back(std::move(out));
    numbers_[lead.name()] = number;
    return number;
  }

  // The array, with its files behind those that are there already.
  Result<std::shared_ptr<const Array>> added(const FileArray& array) {
    if (!array.is_found)
      return unsupported(
          fmt::format("the index does not say where the chunks of '{}' lie: run "
                      "`headrace index` again",
                      array.name()));
    const auto first = static_cast<uint32_t>(d_.files.size());
    auto out = std::make_shared<Array>(*array.array);
    for (ChunkPlace& place : out->places) place.file += first;
    d_.files.insert(d_.files.end(), array.files.begin(), array.files.end());
    d_.file_bytes.resize(first, kWholeFile);
    d_.file_bytes.insert(d_.file_bytes.end(), array.file_bytes.begin(), array.file_bytes.end());
    d_.file_bytes.resize(d_.files.size(), kWholeFile);
    if (array.values.is_null()) return std::shared_ptr<const Array>(out);
    if (array.values.find("flat") != nullptr)
      return unsupported(
          fmt::format("'{}' holds values of variable length: Python opens them", array.name()));
    HEADRACE_ASSIGN(const std::shared_ptr<const ValueTable> found,
                    find_values(array.values, 0, array.files, *store_,
                                [](size_t count, const std::function<Status(size_t)>& job) {
                                  return parallel_for(count, static_cast<unsigned>(usable_cpus()),
                                                      job);
                                }));
    auto table = std::make_shared<ValueTable>(*found);
    table->file += first;
    out->values = std::move(table);
    return std::shared_ptr<const Array>(out);
  }

  Status take(const ArrayWindow& window) {
    HEADRACE_ASSIGN(const FileArray* const lead,
                    find(window.variable.empty() ? window.name : window.variable, 0));
    HEADRACE_ASSIGN(const uint32_t number, variable(*lead));
    const std::optional<size_t> along = axis_of(*lead);
    if (window.steps < 0 || window.dilation < 1 || window.from < 0)
      return invalid(fmt::format("field '{}': steps, from and dilation count from 0 on, 0 and 1",
                                 window.name));
    if (window.steps > 0 && !along)
      return invalid(fmt::format("field '{}': '{}' has no axis '{}' for a window; it has {}",
                                 window.name, lead->name(), along_, fmt::join(lead->dims, ", ")));
    ArrayField field{.name = window.name,
                     .variables = {number},
                     .from = window.from,
                     .count = window.steps,
                     .axes = std::vector<AxisChoice>(lead->dims.size()),
                     .kind = lead->kind,
                     .step = window.dilation};
    HEADRACE_TRY(select(window, *lead, field));
    std::vector<size_t> free;
    for (size_t a = 0; a < lead->dims.size(); ++a)
      if ((!along || a != *along) && field.axes[a].indexes.empty()) free.push_back(a);
    if (window.patch.size() > free.size())
      return invalid(fmt::format("field '{}': a patch of {} axes, and '{}' has {} beside '{}'",
                                 window.name, window.patch.size(), lead->name(), free.size(),
                                 along_));
    for (size_t i = 0; i < window.patch.size(); ++i)
      field.axes[free[free.size() - window.patch.size() + i]].patch = window.patch[i];
    reach_ = std::max(reach_,
                      window.from + (std::max<int64_t>(1, window.steps) - 1) * window.dilation + 1);
    d_.fields.push_back(std::move(field));
    return {};
  }

  // Sets what of its axes the field takes.
  Status select(const ArrayWindow& window, const FileArray& lead, ArrayField& field) const {
    for (const auto& [axis, wanted] : window.select) {
      const auto it = std::find(lead.dims.begin(), lead.dims.end(), axis);
      if (it == lead.dims.end() || axis == along_)
        return invalid(
            fmt::format("field '{}': '{}' has no axis '{}' to select from; it has {}, and "
                        "samples run along '{}'",
                        window.name, lead.name(), axis, fmt::join(lead.dims, ", "), along_));
      const auto at = static_cast<size_t>(it - lead.dims.begin());
      const FileArray* coordinate = nullptr;
      for (const FileArray& a : files_[0])
        if (a.name() == axis && a.why.empty() && a.kind == Kind::kArray && a.values.is_null() &&
            a.shape() == Extents{lead.shape()[at]})
          coordinate = &a;
      HEADRACE_ASSIGN(field.axes[at].indexes,
                      find_indexes(axis, lead.shape()[at], coordinate, wanted, *store_));
    }
    return {};
  }

  // One step of every variable that has the axis.
  Status take_all() {
    const Extents& shape = lead_array().value()->shape();
    std::string left;
    for (const FileArray& array : files_[0]) {
      const std::optional<size_t> axis = axis_of(array);
      if (!array.why.empty() || !axis || array.shape()[*axis] != shape[0]) {
        left += (left.empty() ? "'" : ", '") + array.name() + "'";
        continue;
      }
      HEADRACE_TRY(take({.name = array.name()}));
    }
    if (!left.empty())
      notices_.push_back(fmt::format("{}: left out, because samples run along '{}': {}",
                                     places_.paths[0], along_, left));
    return {};
  }

  Result<int64_t> length() const {
    std::optional<int64_t> out;
    std::string first;
    for (const Variable& v : d_.variables) {
      if (!v.along) continue;
      int64_t sum = 0;
      for (const auto& segment : v.segments) sum += segment->shape[*v.along];
      if (out && *out != sum)
        return invalid(
            fmt::format("'{}' has {} along '{}' and '{}' has {}: variables of a sample "
                        "must agree",
                        first, *out, along_, v.name, sum));
      if (!out) first = v.name;
      out = sum;
    }
    if (!out) return invalid(fmt::format("no variable has the axis '{}'", along_));
    return *out;
  }

  // The coordinate of the axis, of each file; none where not all have one.
  std::vector<const FileArray*> coordinates() const {
    std::vector<const FileArray*> out;
    for (const Arrays& arrays : files_)
      for (const FileArray& a : arrays)
        if (a.name() == along_ && a.why.empty() && a.kind == Kind::kArray && a.values.is_null() &&
            a.dims == std::vector<std::string>{along_})
          out.push_back(&a);
    if (out.size() != files_.size()) out.clear();
    return out;
  }

  // Samples that would go over a gap of the coordinate.
  Status leave_out_gaps(int64_t total) {
    const std::vector<const FileArray*> found = coordinates();
    if (found.empty()) return {};
    const std::string units = text_of(*found[0], "units");
    // Levels and the like, which have units, have steps of their own.
    if (!units.empty() && units.find(" since ") == std::string::npos) return {};
    std::vector<double> values;
    for (size_t f = 0; f < found.size(); ++f) {
      if (text_of(*found[f], "units") != units ||
          text_of(*found[f], "calendar") != text_of(*found[0], "calendar"))
        return unsupported(fmt::format(
            "'{}' counts otherwise in {} ('{}') than in {} ('{}'), so gaps between "
            "them are not seen: headrace in Python sees them, and gaps = true takes "
            "all windows",
            along_, places_.paths[f], text_of(*found[f], "units"), places_.paths[0], units));
      HEADRACE_ASSIGN(const std::vector<double> some, coordinate_values(*found[f], *store_));
      values.insert(values.end(), some.begin(), some.end());
    }
    if (values.size() != static_cast<size_t>(total)) return {};
    const std::vector<bool> gaps = find_gaps(values);
    const auto first = std::find(gaps.begin(), gaps.end(), true);
    if (first == gaps.end()) return {};
    d_.samples.starts = starts_between(gaps, reach_, options_.stride);
    if (d_.samples.starts.empty())
      return invalid(fmt::format(
          "no {} steps of '{}' follow each other without a gap; take a shorter window, or gaps",
          reach_, along_));
    const int64_t all = (total - reach_) / options_.stride + 1;
    notices_.push_back(fmt::format(
        "{}: '{}' has {} gaps, the first behind {}; {} windows that would go over one are left out "
        "(gaps = true takes them)",
        places_.paths[0], along_, std::count(gaps.begin(), gaps.end(), true),
        values[static_cast<size_t>(first - gaps.begin())],
        all - static_cast<int64_t>(d_.samples.starts.size())));
    return {};
  }

  static std::string text_of(const FileArray& array, const std::string& attribute) {
    return array.attributes.text_of(attribute);
  }

  const OpenArrayOptions& options_;
  const std::shared_ptr<const Store> store_;
  ArrayPlaces places_;
  std::string format_, along_;
  std::vector<Arrays> files_;
  std::map<std::string, uint32_t> numbers_;  // of the variables by name
  ArrayDescription d_;
  std::vector<std::string> notices_;
  int64_t reach_ = 1;  // steps that a sample takes
};

}  // namespace

bool are_array_files(const std::vector<std::string>& urls) {
  return !urls.empty() && std::all_of(urls.begin(), urls.end(), [](const std::string& url) {
    std::string name(without_part(url));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                       [&name](std::string_view s) { return name.ends_with(s); });
  });
}

Result<OpenedArrays> open_array_files(const std::vector<std::string>& urls,
                                      const OpenArrayOptions& options) {
  HEADRACE_ASSIGN(std::shared_ptr<const Store> store, store_of_all(urls));
  return ArrayOpener(options, std::move(store)).open(urls);
}

}  // namespace headrace
