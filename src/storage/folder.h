// SPDX-License-Identifier: Apache-2.0
//
// Folder: one folder of the local file system, open, for who looks at very many files: names come
// as the kernel gives them, sizes are asked for by name, on any number of threads.
//
//   HEADRACE_ASSIGN(Folder folder, Folder::open(path));
//   HEADRACE_TRY(folder.visit([&](std::string_view name, EntrySort sort) { … }));
//   HEADRACE_ASSIGN(const std::optional<uint64_t> bytes, folder.file_bytes("0.0"));
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "storage/descriptors.h"

namespace headrace {

// kMaybe: a link, or a file system that does not say; a stat tells.
enum class EntrySort : uint8_t { kFile, kFolder, kMaybe, kOther };

// Thread-safe, but for visit(): one thread at a time.
class Folder {
 public:
  // Links are followed.  kNotFound where nothing is there, or a file.
  static Result<Folder> open(const std::string& path);

  // All entries but "." and "..", in no order; names are any bytes.
  Status visit(const std::function<void(std::string_view name, EntrySort sort)>& visit) const;

  // The size of a file; nothing where it is gone, or no file.  A link that leads nowhere is a file
  // of 0 bytes: who reads it says what is wrong.
  Result<std::optional<uint64_t>> file_bytes(const std::string& name) const;

  // The same for all paths that lead to the folder.
  using Identity = std::pair<uint64_t, uint64_t>;
  Result<Identity> identity() const;

 private:
  explicit Folder(OpenFile file) : file_(std::move(file)) {}
  OpenFile file_;
};

}  // namespace headrace
