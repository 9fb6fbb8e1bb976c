// SPDX-License-Identifier: Apache-2.0
//
// beton: FFCV's files, read only.  The layout is in beton_layout.h.
//
//   int, float       numbers in the index
//   bytes, JSON      extents; JSON without the zero that ends it
//   arrays, tensors  extents of one type and shape; types that we do not have are plain bytes
//   images           JPEG: extents.  Raw pixels: a unit that opens to a .npy, u8[height, width, 3].
//                    The field is `jpeg` or `npy`; plain bytes where a file has both

#include "format/beton/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "format/header_window.h"
#include "format/records.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".beton"};
constexpr uint8_t kModeJpeg = 0;
constexpr uint8_t kModeRaw = 1;
constexpr uint64_t kNpyHead = 128;

struct Allocation {
  uint64_t sample;
  uint64_t offset;
  uint64_t bytes;
  bool operator<(const Allocation& o) const {
    return std::tie(sample, offset, bytes) < std::tie(o.sample, o.offset, o.bytes);
  }
};

// A feature called "count" that holds bytes is no decimal number.
Kind kind_of_bytes(std::string_view name) {
  const Kind kind = kind_of_extension(name);
  return kind == Kind::kInt ? Kind::kBytes : kind;
}

// One thread at a time.
class BetonIndexer {
 public:
  BetonIndexer(const ShardInput& shard, BetonLayout layout)
      : shard_(shard),
        layout_(std::move(layout)),
        window_(shard),
        keys_(shard.info.path, kSuffixes),
        part_(PartHead{.format = "beton",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_openings = true}) {}

  Result<PartPointer> run() {
    HEADRACE_TRY(look_at_images());
    HEADRACE_TRY(read_allocations());
    add_fields();
    for (uint64_t s = 0; s < layout_.samples; ++s) {
      Bytes row;
      HEADRACE_TRY(take_row(s, row));
      for (size_t f = 0; f < layout_.fields.size(); ++f) {
        const BetonField& field = layout_.fields[f];
        if (Status status = add(s, field, numbers_[f], row.subspan(field.in_row)); !status.ok())
          return status.with(fmt::format("field '{}' of sample {}", field.name, s))
              .at(layout_.rows_at + s * layout_.row_bytes + field.in_row);
      }
      part_.end_sample(keys_.at(s));
    }
    return part_.finish();
  }

 private:
  Status take_row(uint64_t sample, Bytes& row) {
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    return window_.bytes(layout_.rows_at + sample * layout_.row_bytes, layout_.row_bytes, row);
  }

  // The kind of a field must be known before its first value.
  Status look_at_images() {
    has_jpeg_.resize(layout_.fields.size());
    has_raw_.resize(layout_.fields.size());
    const bool any = std::any_of(layout_.fields.begin(), layout_.fields.end(),
                                 [](const BetonField& f) { return f.type == BetonType::kImage; });
    for (uint64_t s = 0; any && s < layout_.samples; ++s) {
      Bytes row;
      HEADRACE_TRY(take_row(s, row));
      for (size_t f = 0; f < layout_.fields.size(); ++f) {
        if (layout_.fields[f].type != BetonType::kImage) continue;
        const auto mode = static_cast<uint8_t>(row[layout_.fields[f].in_row]);
        (mode == kModeJpeg ? has_jpeg_ : has_raw_)[f] = true;
      }
    }
    return {};
  }

  Status read_allocations() {
    const uint64_t n = (shard_.info.bytes - layout_.allocations_at) / kBetonAllocation;
    if (std::find(has_jpeg_.begin(), has_jpeg_.end(), true) == has_jpeg_.end()) return {};
    allocations_.reserve(n);  // as many as the file has entries
    for (uint64_t i = 0; i < n; ++i) {
      Bytes raw;
      HEADRACE_TRY(
          window_.bytes(layout_.allocations_at + i * kBetonAllocation, kBetonAllocation, raw));
      allocations_.push_back({load_le<uint64_t>(raw), load_le<uint64_t>(raw.subspan(8)),
                              load_le<uint64_t>(raw.subspan(16))});
    }
    std::sort(allocations_.begin(), allocations_.end());
    return {};
  }

  void add_fields() {
    for (size_t f = 0; f < layout_.fields.size(); ++f) numbers_.push_back(add_field(f));
  }

  uint32_t add_field(size_t f) {
    const BetonField& field = layout_.fields[f];
    switch (field.type) {
      case BetonType::kInt:
        return part_.field(field.name, Kind::kInt, Storage::kInline);
      case BetonType::kFloat:
        return part_.field(field.name, Kind::kFloat, Storage::kInline);
      case BetonType::kJson:
        return part_.field(field.name, Kind::kJson, Storage::kExtent);
      case BetonType::kImage: {
        const Kind one = has_raw_[f] ? Kind::kNpy : Kind::kJpeg;
        return part_.field(field.name, has_raw_[f] && has_jpeg_[f] ? Kind::kBytes : one,
                           Storage::kExtent);
      }
      case BetonType::kArray:
      case BetonType::kTensor:
        if (field.dtype.has_value())
          return part_.field(Field{.name = field.name,
                                   .kind = Kind::kArray,
                                   .dtype = field.dtype,
                                   .shape = field.shape});
        part_.head().notices.push_back(
            fmt::format("field '{}' holds numbers of type '{}', which are given as plain bytes",
                        field.name, field.type_text));
        return part_.field(field.name, Kind::kBytes, Storage::kExtent);
      default:
        return part_.field(field.name, kind_of_bytes(field.name), Storage::kExtent);
    }
  }

  Status add(uint64_t sample, const BetonField& field, uint32_t number, Bytes row) {
    switch (field.type) {
      case BetonType::kInt:
        part_.add_int(number, load_le<int64_t>(row));
        return {};
      case BetonType::kFloat:
        part_.add_float(number, load_le<double>(row));
        return {};
      case BetonType::kImage:
        return add_image(sample, number, row);
      case BetonType::kJson: {
        const auto bytes = load_le<uint64_t>(row.subspan(8));
        if (bytes == 0) return corrupt("JSON without the zero that ends it");
        return add_extent(number, load_le<uint64_t>(row), bytes - 1);
      }
      case BetonType::kArray:
      case BetonType::kTensor:
        return add_extent(number, load_le<uint64_t>(row), field.bytes);
      default:
        return add_extent(number, load_le<uint64_t>(row), load_le<uint64_t>(row.subspan(8)));
    }
  }

  // Values lie between the rows and the allocations.  Compared without adding.
  Status check_place(uint64_t offset, uint64_t bytes) const {
    const uint64_t from = layout_.rows_at + layout_.samples * layout_.row_bytes;
    const uint64_t to = layout_.allocations_at;
    if (offset >= from && offset <= to && bytes <= to - offset) return {};
    return corrupt(fmt::format("{} bytes at offset {} are not within the pages", bytes, offset));
  }

  Status add_extent(uint32_t number, uint64_t offset, uint64_t bytes) {
    // Where an empty value lies FFCV may not say.
    if (bytes == 0) return part_.add_extent(number, {}), Status();
    HEADRACE_TRY(check_place(offset, bytes));
    part_.add_extent(number, {.offset = offset, .stored = bytes});
    return {};
  }

  Status add_image(uint64_t sample, uint32_t number, Bytes row) {
    const auto mode = static_cast<uint8_t>(row[0]);
    const uint32_t width = load_le<uint16_t>(row.subspan(1));
    const uint32_t height = load_le<uint16_t>(row.subspan(3));
    const auto offset = load_le<uint64_t>(row.subspan(5));
    if (mode == kModeJpeg) {
      // The last of one place: those before it are empty.
      const auto after = std::upper_bound(allocations_.begin(), allocations_.end(),
                                          Allocation{sample, offset, ~uint64_t{0}});
      if (after == allocations_.begin() || (after - 1)->sample != sample ||
          (after - 1)->offset != offset)
        return corrupt(fmt::format("no allocation says how long the JPEG at {} is", offset));
      return add_extent(number, offset, (after - 1)->bytes);
    }
    if (mode != kModeRaw) return corrupt(fmt::format("no picture is stored in mode {}", mode));
    if (width == 0 || height == 0) return corrupt("a picture without pixels");
    const uint64_t bytes = uint64_t{3} * width * height;
    HEADRACE_TRY(check_place(offset, bytes));
    part_.add_extent(number, {.offset = offset,
                              .stored = bytes,
                              .decoded = kNpyHead + bytes,
                              .encoding = height << 16 | width});
    return {};
  }

  const ShardInput& shard_;
  const BetonLayout layout_;
  HeaderWindow window_;
  NumberedKeys keys_;
  PartBuilder part_;
  std::vector<bool> has_jpeg_, has_raw_;  // of each field
  std::vector<Allocation> allocations_;   // sorted; only where there are JPEGs
  std::vector<uint32_t> numbers_;         // of the fields in the part
};

Result<PartPointer> index(const ShardInput& shard) {
  HEADRACE_ASSIGN(BetonLayout layout, read_beton_layout(shard));
  return BetonIndexer(shard, std::move(layout)).run();
}

// Raw pixels as a .npy that describes itself.
Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  const uint32_t height = unit.encoding >> 16;
  const uint32_t width = unit.encoding & 0xffff;
  if (stored.size() != uint64_t{3} * width * height) return not_as_indexed("picture");
  const std::string text = fmt::format(
      "{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {}, 3), }}", height, width);
  decoded.resize(kNpyHead + stored.size());
  const MutableBytes out = decoded.span();
  std::fill_n(out.begin(), kNpyHead, std::byte{' '});
  std::ranges::copy(as_bytes("\x93NUMPY\x01"), out.begin());
  out[7] = std::byte{0};
  store_le(out.subspan(8), static_cast<uint16_t>(kNpyHead - 10));
  std::ranges::copy(as_bytes(text), out.begin() + 10);
  out[kNpyHead - 1] = std::byte{'\n'};
  std::ranges::copy(stored, out.begin() + kNpyHead);
  return {};
}

}  // namespace

extern constinit const Format beton_format{
    .name = "beton",
    .doc = "FFCV's .beton: JPEG and raw images, numbers, bytes, JSON, arrays",
    .suffixes = kSuffixes,
    .guards_lengths = false,
    .sniff = looks_like_beton,
    .index = index,
    .decode_unit = decode_unit,
};

}  // namespace headrace
