// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/machine.h"
#include "storage/folder.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr std::string_view kThird = "zarr.json";
constexpr std::string_view kArray2 = ".zarray";
constexpr std::string_view kAll2 = ".zmetadata";
constexpr std::array<std::string_view, 4> kNames = {kThird, kArray2, ".zgroup", ".zattrs"};

// What is waited for on a far file system or server: so many at a time, whatever the processors.
constexpr unsigned kWaiting = 32;

struct Node {
  std::string name;  // relative to the root; "" is the root
  std::map<std::string, std::string> texts;
  std::vector<FileInfo> looked_at;
  std::vector<std::string> below;
  bool is_array = false;
};

// One thread at a time; the jobs that it runs write to what is theirs alone.
class Walk {
 public:
  Walk(const Store& store, const std::string& root, const RunJobs& run)
      : store_(store), root_(root), run_(run) {}

  Result<ZarrDocuments> all() {
    Node root;
    const bool is_local = scheme_of(root_).empty();
    HEADRACE_TRY(read(root, !is_local));
    ZarrDocuments out;
    if (!is_local) {
      HEADRACE_ASSIGN(out.consolidated, consolidated(root));
    }
    const bool goes_on = out.consolidated.empty() && !root.is_array;
    std::vector<Node> level;
    level.push_back(std::move(root));
    while (!level.empty()) {
      if (goes_on) {
        HEADRACE_TRY(run_(level.size(), [&](size_t i) { return list(level[i]); }));
      }
      std::vector<Node> next;
      for (Node& node : level) take(node, out, next);
      if (!next.empty())
        HEADRACE_TRY(run_(next.size(), [&](size_t i) { return read(next[i], false); }));
      level = std::move(next);
    }
    return out;
  }

 private:
  std::string place(const std::string& name) const {
    return name.empty() ? root_ : join_path(root_, name);
  }
  static std::string inside(const Node& node, std::string_view name) {
    return node.name.empty() ? std::string(name) : fmt::format("{}/{}", node.name, name);
  }

  // The files of one folder: those that are there are found by one call, and read by another.
  Status read(Node& node, bool with_all) const {
    std::vector<std::string> paths;
    for (const std::string_view name : kNames) paths.push_back(place(inside(node, name)));
    if (with_all) paths.push_back(place(inside(node, kAll2)));
    std::vector<Result<FileInfo>> found = store_.stat_all(paths);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].ok()) {
        if (found[i].status().code() == Code::kNotFound) continue;
        return found[i].status();
      }
      FileInfo& info = found[i].value();
      if (info.is_folder) continue;
      if (info.bytes > kMostZarrMetadata)
        return corrupt(fmt::format("has more than {} bytes", kMostZarrMetadata)).in_file(paths[i]);
      HEADRACE_ASSIGN(const Buffer text, store_.read_all(paths[i]));
      const std::string_view name = i < kNames.size() ? kNames[i] : kAll2;
      node.texts.emplace(name, as_text(text.bytes()));
      info.path = inside(node, name);
      node.looked_at.push_back(std::move(info));
    }
    if (node.texts.contains(std::string(kArray2))) {
      node.is_array = true;
    } else if (const auto third = node.texts.find(std::string(kThird)); third != node.texts.end()) {
      const Result<Json> parsed = Json::parse(third->second);
      if (!parsed.ok()) return not_json(parsed.status(), inside(node, kThird));
      const Json* type = parsed.value().find("node_type");
      node.is_array = type != nullptr && type->text() == "array";
    }
    return {};
  }

  Status not_json(const Status& status, const std::string& name) const {
    return corrupt(fmt::format("is not JSON: {}", status.message())).in_file(place(name));
  }

  Result<std::string> consolidated(const Node& root) const {
    const auto third = root.texts.find(std::string(kThird));
    const auto second = root.texts.find(std::string(kAll2));
    if (third != root.texts.end()) {
      HEADRACE_ASSIGN(const Json parsed, Json::parse(third->second));
      const Json* all = parsed.find("consolidated_metadata");
      if (all != nullptr && all->find("metadata") != nullptr) return std::string(kThird);
    }
    if (second != root.texts.end()) {
      const Result<Json> parsed = Json::parse(second->second);
      if (!parsed.ok()) return not_json(parsed.status(), std::string(kAll2));
      if (parsed.value().find("metadata") != nullptr) return std::string(kAll2);
    }
    return std::string();
  }

  // The folders below a group; none where the store lists none: who misses an array is told which
  // there are.
  Status list(Node& node) const {
    if (node.is_array) return {};
    const std::string folder = place(node.name);
    if (const Result<FileInfo> info = store_.stat(folder); info.ok()) {
      node.looked_at.push_back(info.value());
      node.looked_at.back().path = node.name;
    }
    if (scheme_of(folder).empty()) {
      list_local(folder, node);
      return {};
    }
    const Result<std::vector<FileInfo>> entries = store_.list(folder);
    if (entries.status().code() == Code::kUnavailable) return entries.status();
    if (!entries.ok()) return {};
    for (const FileInfo& entry : entries.value())
      if (entry.is_folder) node.below.push_back(inside(node, base_name(without_slash(entry.path))));
    return {};
  }
  // Links are not followed: they may lead to a folder above.
  static void list_local(const std::string& path, Node& node) {
    const Result<Folder> folder = Folder::open(path);
    if (!folder.ok()) return;
    const Status status = folder.value().visit([&](std::string_view name, EntrySort sort) {
      if (sort == EntrySort::kMaybe) {
        std::error_code error;
        const auto found = std::filesystem::symlink_status(join_path(path, name), error);
        if (!error && std::filesystem::is_directory(found)) sort = EntrySort::kFolder;
      }
      if (sort == EntrySort::kFolder) node.below.push_back(inside(node, name));
    });
    if (!status.ok()) node.below.clear();
    std::sort(node.below.begin(), node.below.end());
  }
  static std::string_view without_slash(std::string_view path) {
    while (path.ends_with('/')) path.remove_suffix(1);
    return path;
  }

  // An array's folder counts too: a chunk that is written into it changes its time.
  void take(Node& node, ZarrDocuments& out, std::vector<Node>& next) const {
    for (auto& [name, text] : node.texts) out.texts.emplace(inside(node, name), std::move(text));
    std::move(node.looked_at.begin(), node.looked_at.end(), std::back_inserter(out.looked_at));
    for (std::string& name : node.below) next.push_back({.name = std::move(name)});
  }

  const Store& store_;
  const std::string& root_;
  const RunJobs& run_;
};

}  // namespace

Result<bool> is_zarr(const Store& store, const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string_view name : {kThird, kArray2, std::string_view(".zgroup")})
    paths.push_back(join_path(folder, name));
  for (const Result<FileInfo>& info : store.stat_all(paths)) {
    if (info.ok() && !info.value().is_folder) return true;
    if (!info.ok() && info.status().code() == Code::kUnavailable) return info.status();
  }
  return false;
}

Result<ZarrDocuments> read_zarr_documents(const Store& store, const std::string& root,
                                          const RunJobs& run) {
  return Walk(store, root, run).all();
}

unsigned waiting_threads(const Store& store, const std::string& path) {
  const auto cpus = static_cast<unsigned>(usable_cpus());
  return store.cost(path).is_near() ? cpus : std::max(cpus, kWaiting);
}

}  // namespace headrace
