// SPDX-License-Identifier: Apache-2.0
#include "format/megatron/index.h"

#include <fmt/format.h>

#include <array>

namespace headrace {
namespace {

constexpr uint64_t kFairseqMmapHead = kMmapHead - 8;  // without the number of documents
constexpr uint64_t kFairseqLegacyHead = kLegacyHead - 8;

// By code.  6 and 7 as Megatron-Core has them; fairseq had them the other way round.
constexpr std::array<std::optional<DType>, 9> kTypes = {std::nullopt, DType::kU8,  DType::kI8,
                                                        DType::kI16,  DType::kI32, DType::kI64,
                                                        DType::kF64,  DType::kF32, DType::kU16};

Status check_version(uint64_t version) {
  if (version == kMegatronVersion) return {};
  return unsupported(fmt::format("version {} of the index; this build reads version {}", version,
                                 kMegatronVersion));
}

Result<DType> type_of(uint64_t code) {
  const std::optional<DType> dtype = megatron_dtype(code);
  if (!dtype) return corrupt(fmt::format("no type of tokens has the number {}", code));
  return *dtype;
}

Status wrong_length(uint64_t bytes, std::string_view counts) {
  return corrupt(
      fmt::format("{} bytes do not fit an index of {}: the file is cut short or not all "
                  "of it is the index",
                  bytes, counts));
}

// The number of documents is one less than the length of the array, which begins with 0.
Status set_documents(MegatronLayout& layout, uint64_t entries) {
  if (entries == 0) return corrupt("an index without a list of documents");
  layout.has_documents = true;
  layout.documents = entries - 1;
  return {};
}

// n and m are from the file: each is compared with what the file can hold before it is multiplied.
Result<MegatronLayout> read_mmap(Bytes head, uint64_t bytes) {
  const auto version = load_le<uint64_t>(head.subspan(9));
  HEADRACE_TRY(check_version(version));
  MegatronLayout layout;
  HEADRACE_ASSIGN(layout.dtype, type_of(static_cast<uint64_t>(head[17])));
  layout.sequences = load_le<uint64_t>(head.subspan(18));
  const uint64_t n = layout.sequences;
  const std::string counts = fmt::format("{} sequences", n);
  if (n > bytes / 12) return wrong_length(bytes, counts);
  if (bytes == kFairseqMmapHead + 12 * n) {
    layout.documents = n;
    layout.lengths_at = kFairseqMmapHead;
    layout.begins_at = layout.lengths_at + 4 * n;
    return layout;
  }
  if (bytes < kMmapHead + 12 * n) return wrong_length(bytes, counts);
  const auto m = load_le<uint64_t>(head.subspan(26));
  const uint64_t rest = bytes - kMmapHead - 12 * n;
  const bool has_modes = n > 0 && rest >= n && m == (rest - n) / 8 && (rest - n) % 8 == 0;
  if (!has_modes && (m != rest / 8 || rest % 8 != 0))
    return wrong_length(bytes, fmt::format("{} and {} documents", counts, m - (m > 0 ? 1 : 0)));
  HEADRACE_TRY(set_documents(layout, m));
  layout.lengths_at = kMmapHead;
  layout.begins_at = layout.lengths_at + 4 * n;
  layout.documents_at = layout.begins_at + 8 * n;
  layout.modes_at = has_modes ? layout.documents_at + 8 * m : 0;
  return layout;
}

Result<MegatronLayout> read_legacy(Bytes head, uint64_t bytes) {
  HEADRACE_TRY(check_version(load_le<uint64_t>(head.subspan(8))));
  MegatronLayout layout{.is_legacy = true};
  HEADRACE_ASSIGN(layout.dtype, type_of(load_le<uint64_t>(head.subspan(16))));
  const auto element = load_le<uint64_t>(head.subspan(24));
  // Of fractions the bytes say more than the number.
  if (layout.dtype == DType::kF32 && element == 8) layout.dtype = DType::kF64;
  if (layout.dtype == DType::kF64 && element == 4) layout.dtype = DType::kF32;
  if (element != size_of(layout.dtype))
    return corrupt(
        fmt::format("elements of {} bytes that are {}", element, dtype_name(layout.dtype)));
  const auto n = load_le<uint64_t>(head.subspan(32));
  const auto sizes = load_le<uint64_t>(head.subspan(40));
  const std::string counts = fmt::format("{} sequences with {} sizes", n, sizes);
  if (n > bytes / 16 || sizes > bytes / 8) return wrong_length(bytes, counts);
  const uint64_t arrays = 8 * (2 * (n + 1) + sizes);
  if (sizes != n)
    return unsupported(fmt::format("{}: only sequences of one dimension are read", counts));
  layout.sequences = n;
  layout.documents = n;
  const bool is_fairseq = bytes == kFairseqLegacyHead + arrays;
  if (!is_fairseq) {
    if (bytes < kLegacyHead + arrays) return wrong_length(bytes, counts);
    const auto m = load_le<uint64_t>(head.subspan(48));
    if ((bytes - kLegacyHead - arrays) % 8 != 0 || m != (bytes - kLegacyHead - arrays) / 8)
      return wrong_length(bytes, fmt::format("{} and {} documents", counts, m - (m > 0 ? 1 : 0)));
    HEADRACE_TRY(set_documents(layout, m));
  }
  layout.sizes_at = is_fairseq ? kFairseqLegacyHead : kLegacyHead;
  layout.begins_at = layout.sizes_at + 8 * (n + 1);
  layout.lengths_at = layout.begins_at + 8 * (n + 1);
  layout.documents_at = layout.lengths_at + 8 * sizes;
  return layout;
}

}  // namespace

std::optional<DType> megatron_dtype(uint64_t code) {
  return code < kTypes.size() ? kTypes[code] : std::nullopt;
}

uint8_t megatron_code(DType dtype) {
  for (uint8_t code = 1; code < kTypes.size(); ++code)
    if (kTypes[code] == dtype) return code;
  return 0;
}

Result<MegatronLayout> read_layout(const ShardInput& shard, HeaderWindow& window) {
  const uint64_t bytes = shard.info.bytes;
  Bytes seen;
  HEADRACE_TRY(window.bytes(0, std::min(bytes, kLegacyHead), seen));
  const std::string_view text = as_text(seen);
  const bool is_mmap = text.starts_with(kMmapMagic);
  if (!is_mmap && !text.starts_with(kLegacyMagic))
    return corrupt("no index of Megatron: neither MMIDIDX nor TNTIDX stands at its beginning")
        .at(0);
  if (bytes < (is_mmap ? kFairseqMmapHead : kFairseqLegacyHead))
    return corrupt(fmt::format("the file ends within the head of the index, after {} bytes", bytes))
        .at(0);
  // Zeros behind a short one, so that every number of the head can be looked at.
  std::array<std::byte, kLegacyHead> head{};
  std::copy(seen.begin(), seen.end(), head.begin());
  Result<MegatronLayout> layout = is_mmap ? read_mmap(head, bytes) : read_legacy(head, bytes);
  if (!layout.ok()) return layout.status().at(0);
  return layout;
}

}  // namespace headrace
