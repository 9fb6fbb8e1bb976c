// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, every format: indexing and reading must not crash, hang or allocate more than the
// input justifies.  The last byte of the input chooses what the others are: a file as it is, a
// sidecar or manifest, a unit to be opened, a shard beside its index.json, or a shard of one
// format that is made up or patched so that it comes through (format_shapes.h).  What indexes is
// read, too, as a loader reads it.  fuzz/make_seeds.py writes inputs to begin with.

#include "engine/read_now.h"
#include "format_shapes.h"
#include "index/manifest.h"
#include "index/part_frame.h"
#include "index/row_table.h"

namespace headrace {
namespace {

constexpr uint64_t kMostRead = uint64_t{16} << 20;  // of one sample: a file may be full of holes

// What the sample's values come to, so that every byte is looked at.
uint64_t sum_values(Gather& gather, size_t fields) {
  uint64_t sum = 0;
  for (size_t f = 0; f < fields; ++f)
    for (size_t v = 0, n = gather.values(0, f); v < n; ++v) {
      const Result<Bytes> value = gather.value(0, f, v);
      if (!value.ok()) (void)gather.locate(value.status(), 0, f, v).ok();
      if (value.ok())
        for (const std::byte b : value.value()) sum += static_cast<uint64_t>(b);
    }
  return sum;
}

// One sample, planned, read and opened as the engine does it.
void read_sample(const Source& source, uint64_t sample, bool runs) {
  std::vector<uint32_t> fields(std::min<size_t>(source.schema().size(), 64));
  for (uint32_t f = 0; f < fields.size(); ++f) fields[f] = f;
  UnitCache units;  // outlives the gather's pins
  Gather gather;
  const SampleAsk ask{.sample = sample, .fields = fields, .want_key = true};
  if (!gather.add(source, ask).ok()) return;
  Request request;
  if (!source.needs(ask, request).ok()) return;
  uint64_t bytes = 0;
  for (const Piece& piece : request.pieces)
    bytes +=
        piece.unit == kInlineUnit || piece.length >= kRow ? 0 : std::min(piece.length, kMostRead);
  for (const Unit& unit : request.units) bytes += std::min(unit.decoded_bytes, kMostRead);
  if (bytes > kMostRead) return;
  gather.plan_reads({.runs = runs}, &units);
  read_now(gather, units);
  static volatile uint64_t sink = 0;
  sink = sink + sum_values(gather, fields.size());
}

void read_through_source(const Format& format, const std::shared_ptr<MemoryStore>& store,
                         const PartPointer& part) {
  IndexedParts made{.shards = ShardTable(format.name),
                    .schema = {},
                    .store = store,
                    .parts = {part},
                    .decode_unit = format.decode_unit};
  if (!merge_schema(part->head().schema, made.schema).ok()) return;
  const ManifestShard row = describe_part(*part, "shard");
  const std::vector<uint32_t> blocks = block_samples(*part);
  if (!made.shards
           .add({.name = row.name,
                 .place = row.has_files ? "" : "shard",
                 .bytes = row.bytes,
                 .samples = row.samples,
                 .files = row.files,
                 .has_files = row.has_files,
                 .file_names = row.file_names,
                 .block_samples = blocks,
                 .block_bytes = row.block_bytes})
           .ok())
    return;
  const IndexedSource source(std::move(made));
  const uint64_t n = source.size();
  for (const uint64_t sample : {uint64_t{0}, uint64_t{1}, n / 2, n - 1})
    if (sample < n) read_sample(source, sample, sample == 1);
  std::vector<std::string> keys;
  (void)source.keys(0, std::min<uint64_t>(n, 200), keys).ok();
}

void read_all(const Part& part) {
  PartGroup group;
  std::string text;
  for (uint64_t g = 0; g < part.groups(); ++g) (void)part.unpack(g, group).ok();
  for (uint64_t s = 0; s < std::min<uint64_t>(part.head().samples, 200); ++s)
    (void)part.key(s, text).ok();
  for (uint64_t f = 0; f < std::min<uint64_t>(part.head().files, 200); ++f)
    (void)part.path(f, text).ok();
}

void index_by(const Format& format, const std::shared_ptr<MemoryStore>& store,
              std::string_view part_name = {}) {
  ShardInput input{*store, store->stat("shard").value()};
  input.info.part = part_name;
  const Result<PartPointer> part = format.index(input);
  if (!part.ok()) return;
  read_all(*part.value());
  read_through_source(format, store, part.value());
}

void index_by(std::string_view name, const std::shared_ptr<MemoryStore>& store) {
  const Result<const Format*> format = find_format(name);
  if (format.ok()) index_by(*format.value(), store);
}

std::shared_ptr<MemoryStore> store_of(std::vector<std::byte> shard) {
  auto store = std::make_shared<MemoryStore>();
  store->put("shard", std::move(shard));
  return store;
}

void index_by_all(Bytes in) {
  const auto store = store_of({in.begin(), in.end()});
  store->put("shard.bin", std::vector<std::byte>(4096));  // the tokens of a Megatron index
  for (const Format* format : all_formats()) {
    if (format->sniff != nullptr) (void)format->sniff(in.first(std::min(in.size(), kSniffBytes)));
    index_by(*format, store);
    if (format->takes_parts)
      for (const std::string_view part : {"rows", "whole", "samples"})
        index_by(*format, store, part);
  }
}

// | u16 n | n bytes: the index.json | the shard |
void index_in_folder(Bytes in) {
  if (in.size() < 2) return;
  const size_t n = std::min<size_t>(load_le<uint16_t>(in), in.size() - 2);
  const Bytes shard = in.subspan(2 + n);
  const auto store = store_of({shard.begin(), shard.end()});
  store->put("index.json", as_text(in.subspan(2, n)));
  index_by("mds", store);
  index_by("litdata", store);
}

// | u32 encoding | u32 bytes when open | stored |: what opens only as a whole, from bytes that no
// index ever saw.
void open_by_all(Bytes in) {
  if (in.size() < 8) return;
  const Unit unit{.encoding = std::max(load_le<uint32_t>(in), 1u),
                  .stored_bytes = in.size() - 8,
                  .decoded_bytes = load_le<uint32_t>(in.subspan(4)) % (1u << 22)};
  const auto store = store_of({});
  for (const Format* format : all_formats()) {
    if (format->decode_unit == nullptr) continue;
    Buffer opened;
    const Status status = format->decode_unit(*store, "shard", unit, in.subspan(8), opened);
    if (!status.ok()) continue;
    const Result<RowTable> table = RowTable::open(opened.bytes());
    if (!table.ok()) continue;
    for (uint64_t row = 0; row < 3; ++row)
      for (uint64_t v = 0; v < std::min<uint64_t>(table.value().values(row), 3); ++v)
        (void)table.value().value(row, v).ok();
  }
}

void parse_as_part(Bytes in) {
  Buffer bytes(in.size());
  std::copy(in.begin(), in.end(), bytes.data());
  if (const auto part = Part::parse(std::move(bytes)); part.ok()) read_all(*part.value());
}

// A frame around the bytes with right sizes and head checksum; groups are read without theirs.
void parse_as_head(Bytes in) {
  std::vector<std::byte> whole(sizeof(PartFrame));
  whole.insert(whole.end(), in.begin(), in.end());
  PartFrame frame{.version = kPartVersion, .head_bytes = whole.size(), .total_bytes = whole.size()};
  if (in.size() > 2) frame.head_bytes -= static_cast<uint64_t>(in[0]) % in.size();
  store_le(MutableBytes(whole), frame);
  frame.crc = crc32c(Bytes(whole).first(frame.head_bytes).subspan(kCheckedFrom));
  store_le(MutableBytes(whole), frame);
  parse_as_part(whole);
  uint64_t taken = 0;
  if (const auto head = take_head(in, taken); head.ok()) {
    PartGroup group;
    std::string text;
    (void)unpack_values(head.value(), 64, in.subspan(taken), group).ok();
    (void)unpack_key(63, in.subspan(taken), text).ok();
  }
}

void parse_as_manifest(Bytes in) {
  (void)parse_manifest(in).ok();
  std::vector<std::byte> whole = encode_manifest({});
  whole.resize(24);
  whole.insert(whole.end(), in.begin(), in.end());
  store_le(MutableBytes(whole).subspan(16), uint64_t{whole.size()});
  store_le(MutableBytes(whole).subspan(12), crc32c(Bytes(whole).subspan(16)));
  (void)parse_manifest(whole).ok();
}

// As our own writers make them, with some bytes changed.
void index_patched(size_t number, Bytes in) {
  struct Good {
    const Format* format;
    Written written;
  };
  static const std::vector<Good> kGood = [] {
    std::vector<Good> out;
    for (const Format* format : all_formats())
      if (Written written = write_by(*format); !written.shard.empty())
        out.push_back({format, std::move(written)});
    return out;
  }();
  const Good& good = kGood[number % kGood.size()];
  const auto store = store_of(patched(good.written.shard, in));
  if (!good.format->companion.empty())
    store->put(companion_path(*good.format, "shard"), good.written.companion);
  index_by(*good.format, store);
}

void index_made_up(size_t number, Bytes in) {
  struct Shape {
    std::string_view format;
    std::vector<std::byte> (*make)(Bytes in);
  };
  static constexpr Shape kShapes[] = {
      {"tar", with_tar_checksums}, {"tfrecord", as_tfrecord}, {"recordio", as_recordio},
      {"lmdb", as_lmdb},           {"megatron", as_megatron}, {"squashfs", as_squashfs},
      {"beton", as_beton},         {"mds", as_mds},           {"npz", as_npz},
  };
  const size_t shape = number % (std::size(kShapes) + 1);
  if (shape == std::size(kShapes)) {
    const auto store = std::make_shared<MemoryStore>();
    store->put("shard", as_litdata(in, *store));
    return index_by("litdata", store);
  }
  const auto store = store_of(kShapes[shape].make(in));
  store->put("shard.bin", std::vector<std::byte>(4096));  // the tokens of a Megatron index
  index_by(kShapes[shape].format, store);
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size == 0) return 0;
  const Bytes in = std::as_bytes(std::span(data, size - 1));
  const size_t choice = data[size - 1];
  switch (choice % 8) {  // fuzz/make_seeds.py knows the numbers
    case 0:
      index_by_all(in);
      break;
    case 1:
      index_in_folder(in);
      break;
    case 2:
      open_by_all(in);
      break;
    case 3:
      parse_as_part(in);
      parse_as_head(in);
      parse_as_manifest(in);
      break;
    case 4:
    case 5:
      index_patched(choice / 8, in);
      break;
    default:
      index_made_up(choice / 8, in);
  }
  return 0;
}
