// SPDX-License-Identifier: Apache-2.0
//
// For fuzzing: any bytes made up as shards of each format, with the magic numbers, lengths and
// checksums that let them through to what is behind.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/npy.h"
#include "format/lmdb/page.h"
#include "format/megatron/index.h"
#include "format/recordio/frame.h"
#include "format/registry.h"
#include "format/tfrecord/frame.h"
#include "format/zip/writer.h"
#include "storage/memory.h"

namespace headrace {

// Every block of 512 gets the checksum of a tar header: else hardly an input would pass it.
inline std::vector<std::byte> with_tar_checksums(Bytes in) {
  std::vector<std::byte> out(in.begin(), in.end());
  for (size_t at = 0; at + 512 <= out.size(); at += 512) {
    const MutableBytes block = MutableBytes(out).subspan(at, 512);
    if (block[0] == std::byte{0}) continue;
    std::fill_n(block.begin() + 148, 8, std::byte{' '});
    unsigned sum = 0;
    for (const std::byte b : block) sum += static_cast<unsigned>(b);
    for (size_t digit = 6; digit > 0; --digit, sum /= 8)
      block[147 + digit] = static_cast<std::byte>('0' + sum % 8);
    block[154] = std::byte{0};
  }
  return out;
}

// The bytes as the data of one record, with the lengths and checksums that let it through.
inline std::vector<std::byte> as_tfrecord(Bytes in) {
  std::vector<std::byte> out(kTfrecordHead + in.size() + kTfrecordTail);
  store_le(MutableBytes(out), uint64_t{in.size()});
  store_le(MutableBytes(out).subspan(8), masked_crc32c(Bytes(out).first(8)));
  std::copy(in.begin(), in.end(), out.begin() + kTfrecordHead);
  store_le(MutableBytes(out).subspan(kTfrecordHead + in.size()), masked_crc32c(in));
  return out;
}

// The bytes as records in one part each, cut by their first byte.
inline std::vector<std::byte> as_recordio(Bytes in) {
  std::vector<std::byte> out;
  const size_t step = in.empty() ? 1 : 24 + static_cast<size_t>(in[0]);
  for (size_t at = 0; at < in.size(); at += step) {
    const Bytes part = in.subspan(at, std::min(step, in.size() - at));
    const size_t begin = out.size();
    out.resize(begin + kRecordioHead + recordio_padded(part.size()));
    const MutableBytes to = MutableBytes(out).subspan(begin);
    // Kinds of parts change with the data: whole ones, first ones, …
    const uint32_t kind = part.size() % 8 == 0 ? static_cast<uint32_t>(part[0]) % 4 : 0;
    store_le(to, kRecordioMagic);
    store_le(to.subspan(4), kind << 29 | static_cast<uint32_t>(part.size()));
    std::copy(part.begin(), part.end(), to.begin() + kRecordioHead);
  }
  return out;
}

// The bytes as pages of a small LMDB file: meta pages that let them through, and page numbers that
// are right.
inline std::vector<std::byte> as_lmdb(Bytes in) {
  constexpr size_t kPage = 256;
  const size_t pages = std::max<size_t>(1, (in.size() + kPage - 1) / kPage);
  std::vector<std::byte> out((kLmdbMetaPages + pages) * kPage);
  std::copy(in.begin(), in.end(), out.begin() + kLmdbMetaPages * kPage);
  const auto number = [&in](size_t i) {
    return in.size() > i ? static_cast<uint64_t>(in[in.size() - 1 - i]) : 0;
  };
  LmdbMeta meta{.last_page = pages + 1, .transaction = 1};
  meta.free.pad = kPage;
  meta.main = {.flags = static_cast<uint16_t>(number(0)),
               .depth = static_cast<uint16_t>(number(1) % 4),
               .branch_pages = pages,
               .leaf_pages = pages,
               .entries = number(2),
               .root = kLmdbMetaPages + number(3) % pages};
  for (uint64_t page = 0; page < kLmdbMetaPages + pages; ++page)
    store_le(MutableBytes(out).subspan(page * kPage), page);
  for (uint64_t page = 0; page < kLmdbMetaPages; ++page) {
    store_le(MutableBytes(out).subspan(page * kPage),
             LmdbPageHead{.number = page, .flags = kLmdbMeta});
    store_le(MutableBytes(out).subspan(page * kPage + kLmdbPageHead), meta);
  }
  return out;
}

// The bytes as the arrays of a Megatron index, whose counts are right; the tokens are "shard.bin".
inline std::vector<std::byte> as_megatron(Bytes in) {
  const uint64_t sequences = in.empty() ? 0 : std::min<uint64_t>(in.size() / 24, 64);
  const uint64_t documents = (in.size() - 12 * sequences) / 8;
  std::vector<std::byte> out(kMmapHead);
  std::copy_n(as_bytes(kMmapMagic).begin(), kMmapMagic.size(), out.begin());
  store_le(MutableBytes(out).subspan(9), kMegatronVersion);
  store_le(MutableBytes(out).subspan(17), uint8_t{8});
  store_le(MutableBytes(out).subspan(18), sequences);
  store_le(MutableBytes(out).subspan(26), documents);
  const Bytes arrays = in.first(12 * sequences + 8 * documents);
  out.insert(out.end(), arrays.begin(), arrays.end());
  return out;
}

// The bytes as the tables of an image, half of them inodes, half listings, in plain blocks.
inline std::vector<std::byte> as_squashfs(Bytes in) {
  std::vector<std::byte> out(96);
  const uint64_t inodes = out.size();
  uint64_t folders = 0;
  for (const Bytes table : {in.first(in.size() / 2), in.subspan(in.size() / 2)}) {
    folders = out.size();
    for (size_t at = 0; at < table.size() || at == 0; at += 8192) {
      const Bytes block = table.subspan(at, std::min<size_t>(8192, table.size() - at));
      out.resize(out.size() + 2);
      store_le(MutableBytes(out).last(2), static_cast<uint16_t>(block.size() | 0x8000u));
      out.insert(out.end(), block.begin(), block.end());
    }
  }
  const MutableBytes super(out);
  store_le(super, uint32_t{0x73717368});
  store_le(super.subspan(12), uint32_t{4096});
  store_le(super.subspan(20), uint16_t{1});
  store_le(super.subspan(22), uint16_t{12});
  store_le(super.subspan(28), uint16_t{4});
  store_le(super.subspan(40), uint64_t{out.size()});
  store_le(super.subspan(64), inodes);
  store_le(super.subspan(72), folders);
  store_le(super.subspan(80), ~uint64_t{0});
  return out;
}

// The bytes as rows and pages of a file with a field of each type, and the allocations it needs.
inline std::vector<std::byte> as_beton(Bytes in) {
  constexpr size_t kFields = 4;
  const size_t rows = in.empty() ? 0 : static_cast<size_t>(in[0]) % 8;
  std::vector<std::byte> out(24 + kFields * 1041);
  for (size_t f = 0; f < kFields; ++f) {
    out[24 + f * 1041] = static_cast<std::byte>(f);
    out[25 + f * 1041] = static_cast<std::byte>('a' + f);
  }
  out.insert(out.end(), in.begin(), in.end());
  const MutableBytes head(out);
  store_le(head, uint16_t{2});
  store_le(head.subspan(2), static_cast<uint16_t>(kFields));
  store_le(head.subspan(4), uint32_t{1} << 21);
  store_le(head.subspan(8), uint64_t{rows});
  store_le(head.subspan(16), uint64_t{out.size()});
  for (size_t i = 0; i < 2 * rows; ++i) {
    const Bytes from = in.subspan(std::min(in.size(), 16 * i));
    std::vector<std::byte> entry(24);
    std::copy_n(from.begin(), std::min<size_t>(from.size(), 16), entry.begin() + 8);
    store_le(MutableBytes(entry), uint64_t{i / 2});
    out.insert(out.end(), entry.begin(), entry.end());
  }
  return out;
}

// The bytes as an MDS shard of two samples with columns of every sort.
inline std::vector<std::byte> as_mds(Bytes in) {
  const std::string config =
      R"({"column_encodings": ["str", "ndarray", "list[pil]", "jpeg_array", "int32", "ndarray:uint16"],)"
      R"("column_names": ["a", "b", "c", "d", "e", "f"], "column_sizes": [null, null, null, null, 4, null],)"
      R"("format": "mds", "version": 2})";
  std::vector<std::byte> out(16);
  store_le(MutableBytes(out), uint32_t{2});
  const Bytes text = as_bytes(config);
  out.insert(out.end(), text.begin(), text.end());
  store_le(MutableBytes(out).subspan(4), static_cast<uint32_t>(out.size()));
  store_le(MutableBytes(out).subspan(8), static_cast<uint32_t>(out.size() + in.size() / 2));
  store_le(MutableBytes(out).subspan(12), static_cast<uint32_t>(out.size() + in.size()));
  out.insert(out.end(), in.begin(), in.end());
  return out;
}

// The bytes as the one item of a chunk, and the index that says what is in it.
inline std::vector<std::byte> as_litdata(Bytes in, MemoryStore& store) {
  std::vector<std::byte> out(12);
  store_le(MutableBytes(out), uint32_t{1});
  store_le(MutableBytes(out).subspan(4), uint32_t{12});
  out.insert(out.end(), in.begin(), in.end());
  store_le(MutableBytes(out).subspan(8), static_cast<uint32_t>(out.size()));
  const std::string leaf = R"({\"type\": null, \"context\": null, \"children_spec\": []})";
  store.put("index.json",
            R"({"chunks": [{"filename": "shard", "chunk_size": 1, "chunk_bytes": )" +
                std::to_string(out.size()) +
                R"(}], "config": {"data_format": ["tensor", "numpy", "pil", "jpeg_array"], )"
                R"("data_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", )"
                R"(\"children_spec\": [)" +
                leaf + "," + leaf + "," + leaf + "," + leaf + R"(]}]"}})");
  return out;
}

// The bytes as members of an archive: an array by its header, one by its dict, and what is none.
inline std::vector<std::byte> as_npz(Bytes in) {
  std::vector<std::byte> out;
  ZipWriter zip(memory_sink(out));
  const size_t third = in.size() / 3;
  std::vector<std::byte> start(10);
  std::copy_n(as_bytes(kNpyMagic).begin(), kNpyMagic.size(), start.begin());
  start[6] = std::byte{1};
  const size_t dict = third == 0 ? 0 : std::min<size_t>(third, static_cast<size_t>(in[0]));
  store_le(MutableBytes(start).subspan(8), static_cast<uint16_t>(dict));
  const std::string whole = make_npy_header(DType::kU8, {third});
  const bool samples = !in.empty() && in.back() == std::byte{'/'};
  (void)zip
      .add(samples ? "a/x.npy" : "x.npy", Kind::kNpy, std::array<Bytes, 2>{start, in.first(third)})
      .ok();
  (void)zip
      .add(samples ? "a/y.npy" : "y.npy", Kind::kNpy,
           std::array<Bytes, 2>{as_bytes(whole), in.subspan(third, third)})
      .ok();
  if (samples) (void)zip.add("b/txt", Kind::kText, std::array<Bytes, 1>{in}).ok();
  (void)zip.finish().ok();
  return out;
}

// A shard as our writer makes it, and its second file.
struct Written {
  std::vector<std::byte> shard;
  std::vector<std::byte> companion;
};

inline bool write_as(const Format& format, const Schema& schema, Written& out) {
  out = {};
  ShardOutput output{.file = memory_sink(out.shard), .schema = schema, .samples = 3};
  if (!format.companion.empty()) output.companion = memory_sink(out.companion);
  if (format.can_hold != nullptr && !format.can_hold(schema).ok()) return false;
  Result<std::unique_ptr<Writer>> writer = format.create(std::move(output));
  if (!writer.ok()) return false;
  for (const std::string_view text : {"12345678", "87654321", "abcdefgh"}) {
    std::vector<RecordValue> values;
    for (const Field& field : schema)
      values.push_back({field.name, field.kind, field.storage, as_bytes(text)});
    if (!writer.value()->append({text, values}).ok()) return false;
  }
  return writer.value()->finish().ok();
}

// With as many sorts of fields as the format holds; no bytes where it has no writer.
inline Written write_by(const Format& format) {
  const Field jpg{.name = "jpg", .kind = Kind::kJpeg};
  const Field txt{.name = "txt", .kind = Kind::kText};
  const Field many{.name = "many", .kind = Kind::kBytes, .many = true};
  const Field number{
      .name = "label", .kind = Kind::kInt, .storage = Storage::kInline, .dtype = DType::kI64};
  const Field box{.name = "box", .kind = Kind::kArray, .dtype = DType::kU8, .shape = {2, 4}};
  const Field points{
      .name = "points", .kind = Kind::kArray, .dtype = DType::kU8, .shape = {kVaries, 2}};
  const Field tokens{
      .name = "tokens", .kind = Kind::kTokens, .dtype = DType::kI32, .shape = {kVaries}};
  const Field record{.name = "record", .kind = Kind::kBytes};
  Written out;
  if (format.create == nullptr || format.needs_python) return out;
  for (const Schema& schema :
       {Schema{jpg, txt, many, number, box, points}, Schema{jpg, txt, number, box, points},
        Schema{jpg, txt, number, box}, Schema{jpg, txt, number}, Schema{jpg, txt},
        Schema{jpg, number}, Schema{jpg}, Schema{record}, Schema{tokens}})
    if (write_as(format, schema, out)) return out;
  return {};
}

// Bytes of a good shard, some of which are those of the input: place and value, three bytes each.
inline std::vector<std::byte> patched(const std::vector<std::byte>& whole, Bytes in) {
  std::vector<std::byte> out = whole;
  for (size_t at = 0; at + 3 <= in.size() && !out.empty(); at += 3)
    out[load_le<uint16_t>(in.subspan(at)) % out.size()] = in[at + 2];
  return out;
}

}  // namespace headrace
