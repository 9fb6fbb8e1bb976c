// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "array/open_file.h"
#include "array/zarr_documents.h"
#include "array/zarr_metadata.h"
#include "storage/paths.h"

namespace headrace {
namespace {

using Documents = std::map<std::string, Json>;

Result<Documents> documents_of(const ZarrDocuments& read) {
  Documents out;
  for (const auto& [name, text] : read.texts) {
    Result<Json> parsed = Json::parse(text);
    if (!parsed.ok()) return corrupt(fmt::format("{} is not JSON", name));
    if (name != read.consolidated) {
      out.emplace(name, std::move(parsed).value());
      continue;
    }
    const bool third = name == "zarr.json";
    const Json* all = third ? parsed.value().find("consolidated_metadata") : &parsed.value();
    const Json* below = all == nullptr ? nullptr : all->find("metadata");
    for (size_t i = 0; below != nullptr && i < below->names().size(); ++i)
      out.insert_or_assign(third ? below->names()[i] + "/zarr.json" : below->names()[i],
                           below->items()[i]);
    if (third) out.insert_or_assign(name, parsed.value());
  }
  return out;
}

// Where the chunks lie that are there.
Status find_chunks(const Store& store, const std::string& folder, const RunJobs& run,
                   const ZarrMetadata& metadata, FileArray& out) {
  HEADRACE_ASSIGN(const std::vector<ZarrFile> found,
                  list_zarr_chunks(store, folder, metadata.keys, run));
  for (const ZarrFile& file : found) {
    out.files.push_back(join_path(folder, zarr_key(metadata.keys, file.chunk)));
    out.file_bytes.push_back(file.bytes);
  }
  out.is_found = true;
  if (metadata.shard) {
    HEADRACE_ASSIGN(out.array->places,
                    read_shard_indexes(*metadata.shard, found, out.files, store, run));
    return {};
  }
  out.array->places.resize(static_cast<size_t>(elements_in(metadata.keys.grid)));
  for (size_t i = 0; i < found.size(); ++i)
    out.array->places[found[i].chunk] = {static_cast<uint32_t>(i), 0, 0, kWholeFile};
  return {};
}

Result<FileArray> open_array(const Store& store, const std::string& folder, const RunJobs& run,
                             std::string name, const Json& document, const Json* attributes) {
  HEADRACE_ASSIGN(ZarrMetadata metadata, zarr_metadata(std::move(name), document, attributes));
  FileArray out = std::move(metadata.array);
  if (!out.by_python.empty())
    out.why = fmt::format("{}; headrace in Python reads it through zarr-python",
                          out.by_python == "texts" ? "it holds texts" : out.by_python);
  if (out.why.empty()) HEADRACE_TRY(find_chunks(store, folder, run, metadata, out));
  return out;
}

}  // namespace

Result<OpenedFile> open_zarr(const Store& store, const std::string& root, const std::string& group,
                             const RunJobs& run) {
  HEADRACE_ASSIGN(ZarrDocuments read, read_zarr_documents(store, root, run));
  Result<Documents> parsed = documents_of(read);
  if (!parsed.ok()) return parsed.status().in_file(root);
  const Documents& documents = parsed.value();
  OpenedFile out{.looked_at = std::move(read.looked_at)};
  for (const auto& [name, document] : documents) {
    const std::string_view file = base_name(name);
    const Json* type = document.find("node_type");
    const bool is_third = file == "zarr.json" && type != nullptr && type->text() == "array";
    if (file != ".zarray" && !is_third) continue;
    const std::string folder = parent_folder(name);
    if (!group.empty() && folder != group && !folder.starts_with(group + "/")) continue;
    std::string called = folder;
    if (!group.empty() && folder != group) called = folder.substr(group.size() + 1);
    if (folder.empty()) called = "data";
    if (!folder.empty() && folder == group) called = base_name(folder);
    const auto attributes = documents.find(folder.empty() ? ".zattrs" : folder + "/.zattrs");
    Result<FileArray> made =
        open_array(store, folder.empty() ? root : join_path(root, folder), run, called, document,
                   attributes == documents.end() ? nullptr : &attributes->second);
    if (!made.ok()) {
      const Status& status = made.status();
      return status.place().file.empty() ? status.in_file(join_path(root, folder)) : status;
    }
    out.arrays.push_back(std::move(made).value());
  }
  if (out.arrays.empty()) return not_found("holds no Zarr array").in_file(root);
  return out;
}

}  // namespace headrace
