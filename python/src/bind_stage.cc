// SPDX-License-Identifier: Apache-2.0
//
// Staging: files copied ahead of time, and data sets that are read from the copy as it grows.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <set>

#include "base/parallel.h"
#include "bind_cache.h"
#include "convert.h"
#include "errors.h"
#include "format/format.h"
#include "index/held_source.h"
#include "loader/share.h"
#include "open/expand.h"
#include "open/source_store.h"
#include "progress.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/shared_use.h"
#include "storage/stage/staged_store.h"
#include "storage/stat_memo.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

std::vector<std::string> source_files(const SourceHandle& s) {
  std::set<std::string> files;
  const uint64_t count =
      s.whole ? s.whole->shards().first_file(s.whole->shards().size()) : ~uint32_t{0};
  for (uint64_t f = 0; f < count; ++f) {
    const std::string path = s.source->file_path(static_cast<uint32_t>(f));
    if (path.empty()) break;
    files.insert(path);
  }
  for (const std::string& name : s.by_python) files.erase(name);
  return {files.begin(), files.end()};
}

// Whether a file beside a shard belongs to it: an index of it, or what describes its folder.
bool belongs_to(std::string_view name, std::string_view shard) {
  if (name.starts_with(shard) && name.size() > shard.size() && name[shard.size()] == '.')
    return true;
  const std::string_view stem = shard.substr(0, shard.rfind('.'));
  for (const std::string_view end : {".idx", ".bin", ".index", ".json"})
    if (name.size() == stem.size() + end.size() && name.starts_with(stem) && name.ends_with(end))
      return true;
  return false;
}

Status add_tree(const Store& store, const std::string& folder, std::set<std::string>& files) {
  HEADRACE_ASSIGN(const std::vector<FileInfo> entries, store.list(folder));
  for (const FileInfo& entry : entries) {
    if (entry.is_folder)
      HEADRACE_TRY(add_tree(store, entry.path, files));
    else
      files.insert(entry.path);
  }
  return {};
}

// What lies beside shards and belongs to them, as far as the store lists folders.
std::vector<std::string> files_beside(const Store& store, const std::set<std::string>& shards) {
  std::set<std::string> parents;
  for (const std::string& shard : shards) parents.insert(parent_folder(shard));
  std::vector<std::string> out;
  for (const std::string& parent : parents) {
    const Result<std::vector<FileInfo>> entries = store.list(parent);
    if (!entries.ok()) continue;  // a server that lists nothing: the shards alone
    for (const FileInfo& entry : entries.value()) {
      const std::string_view name = base_name(entry.path);
      if (!entry.is_folder &&
          (name == kPackManifest || std::any_of(shards.begin(), shards.end(), [&](const auto& s) {
             return parent_folder(s) == parent && belongs_to(name, base_name(s));
           })))
        out.push_back(entry.path);
    }
  }
  return out;
}

// Asks all that is known to be asked at once: of a server each question takes a round trip.  The
// store remembers the answers.
Status ask_ahead(const Store& store, const std::vector<std::string>& paths) {
  std::vector<std::string> asked;
  for (const std::string& path : paths)
    if (!has_wildcard(path)) asked.push_back(path);
  if (asked.empty()) return {};
  const std::string parent = parent_folder(asked.front());
  asked.push_back(join_path(parent, kPackManifest));
  const bool is_far = !store.cost(asked.front()).in_caller;
  return parallel_for(is_far ? 2 : 1, 2, [&](size_t n) -> Status {
    if (n == 0)
      (void)store.stat_all(asked);
    else
      (void)store.list(parent);
    return {};
  });
}

// What a user named, as files: shards with what lies beside them, folders with all that is in them.
// `store` remembers what it was asked.
Result<std::vector<std::string>> files_of_urls(const StatMemo& store,
                                               const std::vector<std::string>& urls,
                                               const std::vector<std::string>& known) {
  std::vector<std::string> ahead;
  for (const std::string& url : urls) {
    HEADRACE_ASSIGN(const std::vector<std::string> named, expand_braces(clean_path(url)));
    ahead.insert(ahead.end(), named.begin(), named.end());
  }
  HEADRACE_TRY(ask_ahead(store, ahead));
  std::set<std::string> files(known.begin(), known.end());
  std::set<std::string> shards;
  std::vector<std::string> named;
  for (const std::string& path : ahead) {
    const std::string plain = has_wildcard(path) ? path : split_part(store, path).path;
    if (!has_wildcard(path)) {
      const Result<FileInfo> info = store.stat(plain);
      if (info.ok() && info.value().is_folder) {
        HEADRACE_TRY(add_tree(store, plain, files));
        continue;
      }
    }
    named.push_back(plain);
  }
  if (!named.empty()) {
    HEADRACE_ASSIGN(const std::vector<std::string> expanded, expand_urls(store, named, false));
    std::vector<std::string> paths;
    for (const std::string& path : expanded) paths.push_back(split_part(store, path).path);
    const std::vector<Result<FileInfo>> infos = store.stat_all(paths);
    for (size_t i = 0; i < paths.size(); ++i) {
      HEADRACE_TRY(infos[i].status());
      if (infos[i].value().is_folder)
        HEADRACE_TRY(add_tree(store, paths[i], files));
      else
        shards.insert(paths[i]);
    }
  }
  for (std::string& path : files_beside(store, shards)) files.insert(std::move(path));
  files.insert(shards.begin(), shards.end());
  return std::vector<std::string>(files.begin(), files.end());
}

nb::dict report_of(const StageReport& done) {
  nb::dict out;
  out["files"] = done.files;
  out["bytes"] = done.bytes;
  out["copied_bytes"] = done.copied_bytes;
  out["notice"] = to_str(done.notice);
  return out;
}

nb::dict stage(const std::vector<std::string>& urls, const std::vector<std::string>& known,
               const std::string& folder, unsigned streams, bool verify, nb::object function) {
  Progress progress(std::move(function));
  Result<StageReport> report = internal("not copied");
  {
    nb::gil_scoped_release release;
    report = [&]() -> Result<StageReport> {
      StoreOptions storage = current_store_options();
      HEADRACE_ASSIGN(storage.named, servers_of(urls));  // not those of lists: they get no secrets
      HEADRACE_ASSIGN(const std::shared_ptr<const Store> store, store_of_all(urls, storage));
      const StatMemo memo(store);
      HEADRACE_ASSIGN(std::vector<std::string> files, files_of_urls(memo, urls, known));
      HEADRACE_ASSIGN(const StagePlan plan, plan_stage(memo, std::move(files)));
      const StageOptions options{
          .streams = streams,
          .verify = verify,
          .progress = [&](uint64_t done) { progress.tell(done, plan.bytes); },
          .cancel = progress.cancel()};
      return stage_files(*store, plan, folder, options);
    }();
  }
  progress.finish();
  return report_of(unwrap(std::move(report)));
}

// Of `files`, what Loader(stage=folder, stage_share=True) then finds; they stay until they are
// removed.
nb::dict stage_kept_files(const SourceHandle& from, const std::vector<std::string>& files,
                          const std::string& folder, unsigned streams, bool verify,
                          nb::object function) {
  Progress progress(std::move(function));
  Result<StageReport> report = internal("not copied");
  {
    nb::gil_scoped_release release;
    report = [&]() -> Result<StageReport> {
      const Store& store = from.source->store();
      HEADRACE_ASSIGN(const StagePlan plan, plan_stage(store, files));
      const StageOptions options{
          .streams = streams,
          .verify = verify,
          .progress = [&](uint64_t done) { progress.tell(done, plan.bytes); },
          .cancel = progress.cancel()};
      return stage_kept(store, plan, folder, options);
    }();
  }
  progress.finish();
  return report_of(unwrap(std::move(report)));
}

// The files of each source that these ranks read in the first epochs.
std::vector<std::vector<std::string>> share_of(
    const std::vector<std::pair<std::string, SourceHandle*>>& sources, const PlanOptions& plan,
    const std::vector<uint32_t>& ranks, uint64_t epochs) {
  std::vector<LoaderSource> list;
  for (const auto& [name, handle] : sources)
    list.push_back({name, handle->source, {}, handle->weights, handle->groups});
  Result<std::vector<std::vector<uint32_t>>> found = internal("not planned");
  {
    nb::gil_scoped_release release;
    found = files_of_share(list, {.plan = plan, .ranks = ranks, .epochs = epochs});
  }
  std::vector<std::vector<std::string>> out;
  const auto numbers = unwrap(std::move(found));
  for (size_t k = 0; k < numbers.size(); ++k) {
    std::set<std::string> files;
    for (const uint32_t file : numbers[k]) files.insert(list[k].source->file_path(file));
    for (const std::string& name : sources[k].second->by_python) files.erase(name);
    out.emplace_back(files.begin(), files.end());
  }
  return out;
}

SourceHandle staged(const SourceHandle& from, const std::string& folder,
                    std::optional<std::vector<std::string>> only) {
  const std::shared_ptr<const Store> inner(from.source, &from.source->store());
  SourceHandle out = from;
  std::vector<std::string> files = only ? std::move(*only) : source_files(from);
  {
    nb::gil_scoped_release release;
    out.staged = unwrap(StagedStore::make(inner, std::move(files), {.folder = folder}));
  }
  out.source = read_through(from.source, out.staged);
  return out;
}

nb::object counts(const SourceHandle& s) {
  if (s.staged == nullptr) return nb::none();
  const StagedCounts c = s.staged->counts();
  nb::dict d;
  d["files"] = c.files;
  d["bytes"] = c.bytes;
  d["bytes_there"] = c.bytes_there;
  d["staged_reads"] = c.staged_reads;
  d["source_reads"] = c.source_reads;
  return d;
}

// Of decoded pictures: the folder, as `make` wrote it once for all processes of the machine.
std::unique_ptr<SharedUse> share_folder(const std::string& folder, nb::object make) {
  namespace fs = std::filesystem;
  const auto is_whole = [&folder] {
    std::error_code error;
    return fs::exists(folder + "/headrace.json", error) &&
           !fs::exists(folder + "/headrace.unfinished", error);
  };
  const auto remove = [](const std::string& place) {
    std::error_code error;
    fs::remove_all(place, error);
  };
  std::optional<nb::python_error> raised;
  const auto call = [&]() -> Status {
    nb::gil_scoped_acquire gil;
    try {
      make();
      return {};
    } catch (nb::python_error& e) {
      raised.emplace(e);
      return cancelled("the function raised");
    }
  };
  Result<std::unique_ptr<SharedUse>> use = internal("not taken");
  {
    nb::gil_scoped_release release;
    const std::string parent = fs::path(folder).parent_path().string();
    const std::string name = fs::path(folder).filename().string();
    SharedUse::sweep(parent, name.substr(0, name.rfind('-') + 1), folder, remove);
    use = SharedUse::take({folder, is_whole, call, remove, nullptr});
  }
  if (raised) throw nb::python_error(*raised);
  return unwrap(std::move(use));
}

nb::list notices(const SourceHandle& s) {
  nb::list out;
  if (s.staged == nullptr) return out;
  for (const std::string& text : s.staged->take_notices()) out.append(to_str(text));
  return out;
}

}  // namespace

void bind_stage(nb::module_& m) {
  nb::class_<SharedUse>(m, "SharedUse");
  m.def("share_folder", &share_folder, nb::arg("folder"), nb::arg("make"));
  m.def("share_of", &share_of, nb::arg("sources"), nb::arg("plan"), nb::arg("ranks"),
        nb::arg("epochs"));
  m.def("stage", &stage, nb::arg("urls"), nb::arg("known"), nb::arg("folder"),
        nb::arg("streams") = 0, nb::arg("verify") = false, nb::arg("progress") = nb::none());
  m.def(
      "remove_stage",
      [](const std::string& folder) {
        nb::gil_scoped_release release;
        Result<uint64_t> removed = remove_stage(folder);
        if (removed.status().code() == Code::kNotFound) removed = remove_kept(folder);
        return unwrap(std::move(removed));
      },
      nb::arg("folder"));
}

void bind_staged(nb::class_<SourceHandle>& source) {
  source.def("files", &source_files)
      .def("staged", &staged, nb::arg("folder"), nb::arg("only") = nb::none())
      .def("stage_kept", &stage_kept_files, nb::arg("files"), nb::arg("folder"), nb::arg("streams"),
           nb::arg("verify"), nb::arg("progress") = nb::none())
      .def("stage_counts", &counts)
      .def("stage_notices", &notices)
      .def("wait_until_staged", [](const SourceHandle& s) {
        nb::gil_scoped_release release;
        if (s.staged != nullptr) check(s.staged->wait_until_staged());
      });
}

}  // namespace headrace::py
