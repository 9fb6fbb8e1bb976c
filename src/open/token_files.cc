// SPDX-License-Identifier: Apache-2.0
#include "open/token_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/npy.h"
#include "format/registry.h"
#include "open/expand.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr uint64_t kHeaderBytes = 1024;  // of llm.c: 256 numbers of 4 bytes
constexpr int32_t kMagicU16 = 20240520;  // GPT-2's vocabulary
constexpr int32_t kMagicU32 = 20240801;  // Llama 3's
constexpr int32_t kVersionU16 = 1;       // as llm.c's dev/data writes them
constexpr int32_t kVersionU32 = 7;
constexpr uint64_t kNpyHead = 4096;  // of a header; one axis takes 128 bytes

// A file of tokens, and the type that it says it has.
struct Described {
  TokenFile file;
  std::optional<DType> dtype;
};

bool is_whole(DType dtype) {
  return dtype <= DType::kI64;
}

Status describe_llmc(Bytes head, const FileInfo& info, Described& out) {
  const auto version = load_le<int32_t>(head.subspan(4));
  const auto tokens = load_le<int32_t>(head.subspan(8));
  out.dtype = load_le<int32_t>(head) == kMagicU16 ? DType::kU16 : DType::kU32;
  const int32_t known = *out.dtype == DType::kU16 ? kVersionU16 : kVersionU32;
  if (version != known)
    return unsupported(
               fmt::format("an llm.c token file of version {}; {} is known", version, known))
        .at(4);
  const uint64_t wanted =
      kHeaderBytes + uint64_t{static_cast<uint32_t>(tokens)} * size_of(*out.dtype);
  if (tokens < 0 || wanted != info.bytes)
    return corrupt(fmt::format("its header says {} tokens, which makes {} bytes; it has {}", tokens,
                               wanted, info.bytes))
        .at(8);
  out.file.begin = kHeaderBytes;
  out.file.tokens = static_cast<uint64_t>(tokens);
  return {};
}

Status describe_npy(Bytes head, const FileInfo& info, Described& out) {
  HEADRACE_ASSIGN(const NpyHeader header, parse_npy(head, info.bytes));
  const std::optional<DType> dtype = header.type.dtype();
  if (header.shape.size() != 1 || !dtype || !is_whole(*dtype))
    return unsupported(
        fmt::format("tokens are whole numbers along one axis; this is {} with {} axes",
                    header.type.descr, header.shape.size()));
  if (header.type.big_endian)
    return unsupported("its numbers are big-endian; write it again with .astype('<u2') or so");
  out.dtype = dtype;
  out.file.begin = header.data;
  out.file.tokens = header.items;
  return {};
}

Status describe_plain(const FileInfo& info, std::optional<DType> stored, Described& out) {
  if (!stored)
    return invalid(
        "there is no .idx beside it and no header that says what its tokens are; give the type: "
        "hr.tokens(seq_len=…, stored=\"u16\") (nanoGPT's files are u16)");
  const uint64_t width = size_of(*stored);
  if (info.bytes % width != 0)
    return corrupt(
        fmt::format("its {} bytes are no whole number of {} tokens: another stored=, or "
                    "a file that is cut short",
                    info.bytes, dtype_name(*stored)));
  out.dtype = stored;
  out.file.tokens = info.bytes / width;
  return {};
}

Status describe(const Store& store, const FileInfo& info, std::optional<DType> stored,
                Described& out) {
  if (info.bytes == 0) return corrupt("the file is empty").at(0);
  Buffer head;
  HEADRACE_TRY(store.read_at(info.path, 0, std::min(info.bytes, kNpyHead), head));
  const Bytes bytes = head.bytes();
  out.file.path = info.path;
  if (is_npy(bytes)) {
    HEADRACE_TRY(describe_npy(bytes, info, out));
  } else if (const int32_t magic = bytes.size() >= kHeaderBytes ? load_le<int32_t>(bytes) : 0;
             magic == kMagicU16 || magic == kMagicU32) {
    HEADRACE_TRY(describe_llmc(bytes, info, out));
  } else {
    HEADRACE_TRY(describe_plain(info, stored, out));
  }
  if (stored && *stored != *out.dtype)
    return invalid(fmt::format("stored=\"{}\" was given, and the file says {}", dtype_name(*stored),
                               dtype_name(*out.dtype)));
  return {};
}

Result<TokenFiles> open_plain(const std::vector<std::string>& paths,
                              std::shared_ptr<const Store> store, std::optional<DType> stored) {
  TokenFiles out{.store = std::move(store)};
  const std::vector<std::string> names = relative_names(paths, false);
  const std::vector<Result<FileInfo>> infos = out.store->stat_all(paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!infos[i].ok()) return infos[i].status();
    if (infos[i].value().is_folder)
      return invalid("this is a folder; name its files: folder/*.bin").in_file(paths[i]);
    Described file{.file = {.name = names[i]}, .dtype = {}};
    if (Status s = describe(*out.store, infos[i].value(), stored, file); !s.ok())
      return s.in_file(paths[i]);
    if (i == 0) out.dtype = *file.dtype;
    if (*file.dtype != out.dtype)
      return invalid(
                 fmt::format("its tokens are {}, those of {} are {}: open them apart, and blend",
                             dtype_name(*file.dtype), paths[0], dtype_name(out.dtype)))
          .in_file(paths[i]);
    out.files.push_back(std::move(file.file));
  }
  return out;
}

// Of one shard: the first and the last document, which lie in one file.
Result<TokenFile> file_of_shard(const IndexedSource& base, size_t shard, uint32_t field,
                                uint64_t width) {
  const uint64_t first = base.shards().first_sample(shard);
  const uint64_t samples = base.shards().samples(shard);
  TokenFile out{.name = std::string(base.shards().name(shard))};
  const std::vector<uint32_t> fields{field};
  Request request;
  for (const uint64_t sample : {first, first + samples - 1}) {
    HEADRACE_TRY(base.needs({.sample = sample, .fields = fields}, request));
    if (request.units.size() != 1 || request.units[0].encoding != 0)
      return unsupported("its tokens do not follow each other in one file");
    const Unit& unit = request.units[0];
    if (sample == first) {
      out.path = base.file_path(unit.file);
      out.begin = unit.offset;
    }
    out.tokens = (unit.offset + unit.stored_bytes - out.begin) / width;
  }
  return out;
}

// The same from the counted index alone, without the part of the shard: of Megatron's files that
// have nothing but tokens.  Their first document begins at byte 0, and one follows the other.
TokenFile counted_file(const IndexedSource& base, size_t shard, const Format& format,
                       uint64_t width) {
  const ShardTable& shards = base.shards();
  const std::string index = join_path(shards.place(shard), base_name(shards.name(shard)));
  return {.name = std::string(shards.name(shard)),
          .path = companion_path(format, index),
          .tokens = shards.value_bytes(shard) / width};
}

bool are_same(const TokenFile& a, const TokenFile& b) {
  return a.path == b.path && a.begin == b.begin && a.tokens == b.tokens;
}

Result<std::shared_ptr<const DocumentBegins>> documents_of(const IndexedSource& base, size_t shard,
                                                           uint32_t field, uint64_t width) {
  auto out = std::make_shared<DocumentBegins>();
  const uint64_t first = base.shards().first_sample(shard);
  const uint64_t samples = base.shards().samples(shard);
  out->reserve(samples);
  const std::vector<uint32_t> fields{field};
  Request request;
  uint64_t begin = 0;
  for (uint64_t s = first; s < first + samples; ++s) {
    HEADRACE_TRY(base.needs({.sample = s, .fields = fields}, request));
    const Unit& unit = request.units.front();
    if (s == first) begin = unit.offset;
    out->push_back((unit.offset - begin) / width);
  }
  return std::shared_ptr<const DocumentBegins>(std::move(out));
}

Result<TokenFiles> open_indexed(const std::shared_ptr<const IndexedSource>& base,
                                std::string_view format, std::optional<DType> stored) {
  const Schema& schema = base->schema();
  const auto tokens = std::find_if(schema.begin(), schema.end(),
                                   [](const Field& f) { return f.kind == Kind::kTokens; });
  if (tokens == schema.end() || !tokens->dtype)
    return unsupported("windows of tokens are for files of tokens, and these have none");
  if (stored && *stored != *tokens->dtype)
    return invalid(fmt::format("stored=\"{}\" was given, and the index says {}",
                               dtype_name(*stored), dtype_name(*tokens->dtype)));
  const auto field = static_cast<uint32_t>(tokens - schema.begin());
  const uint64_t width = size_of(*tokens->dtype);
  TokenFiles out{.dtype = *tokens->dtype,
                 .store = std::shared_ptr<const Store>(base, &base->store())};
  HEADRACE_ASSIGN(const Format* megatron, find_format("megatron"));
  bool is_counted = format == megatron->name && schema.size() == 1;
  std::vector<size_t> shards;  // of each file: some have no document
  for (size_t i = 0; i < base->shards().size(); ++i) {
    if (base->shards().samples(i) == 0) continue;
    TokenFile file = is_counted ? counted_file(*base, i, *megatron, width) : TokenFile();
    // The first shows whether the others can be told without being looked at.
    if (!is_counted || shards.empty()) {
      Result<TokenFile> seen = file_of_shard(*base, i, field, width);
      if (!seen.ok()) return seen.status().in_file(std::string(base->shards().name(i)));
      is_counted = is_counted && are_same(file, seen.value());
      file = std::move(seen).value();
    }
    out.files.push_back(std::move(file));
    shards.push_back(i);
  }
  out.documents = [base, shards = std::move(shards), field, width](size_t file) {
    return documents_of(*base, shards[file], field, width);
  };
  return out;
}

void tell_unused(OpenedTokens& opened, uint64_t seq_len) {
  const TokenWindows& windows = opened.windows;
  if (windows.short_files > 0)
    opened.notices.push_back(
        fmt::format("{} of {} files have fewer tokens than a window of {} needs and are left out",
                    windows.short_files, opened.files.size(), seq_len + 1));
}

}  // namespace

Result<OpenedTokens> open_token_windows(const std::vector<std::string>& urls,
                                        const TokenWindowOptions& wanted,
                                        const OpenOptions& options) {
  const std::optional<DType> stored = wanted.stored;
  if (stored && !is_whole(*stored))
    return invalid(fmt::format("stored=\"{}\": tokens are whole numbers", dtype_name(*stored)));
  std::shared_ptr<const Store> store = options.store;
  if (store == nullptr) {
    HEADRACE_ASSIGN(store, store_of_all(urls));
  }
  HEADRACE_ASSIGN(std::vector<std::string> paths, expand_urls(*store, urls));
  const bool indexed =
      !options.index.empty() ||
      std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
        return path.ends_with(".idx") || base_name(path).find('.') == std::string_view::npos;
      });
  OpenedTokens out;
  TokenFiles files;
  if (indexed) {
    HEADRACE_ASSIGN(const Opened opened, open_source(urls, options));
    out.format = opened.format;
    out.notices = opened.notices;
    out.shards_built = opened.shards_built;
    HEADRACE_ASSIGN(files, open_indexed(opened.source, opened.format, stored));
  } else {
    out.format = "tokens";
    HEADRACE_ASSIGN(paths, absolute_paths(std::move(paths)));
    HEADRACE_ASSIGN(files, open_plain(paths, store, stored));
  }
  out.files = files.files;
  HEADRACE_ASSIGN(out.windows,
                  make_token_windows(std::move(files), wanted.seq_len, wanted.permute_documents));
  tell_unused(out, wanted.seq_len);
  return out;
}

}  // namespace headrace
