// SPDX-License-Identifier: Apache-2.0
#include "index/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/crc32c.h"
#include "index/schema_bytes.h"
#include "index/varint.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr std::array<char, 8> kMagic = {'\x89', 'H', 'R', 'M', 'A', 'N', '\r', '\n'};
constexpr uint64_t kFrameBytes = 24;
constexpr uint64_t kCheckedFrom = 16;

void put_shard(ByteVector& out, const ManifestShard& shard, std::string_view last_name) {
  const auto differ =
      std::mismatch(last_name.begin(), last_name.end(), shard.name.begin(), shard.name.end());
  const auto shared = static_cast<size_t>(differ.first - last_name.begin());
  put_varint(out, shared);
  put_text(out, std::string_view(shard.name).substr(shared));
  put_varint(out, shard.bytes);
  put_varint(out, shard.samples);
  put_varint(out, shard.files << 1 | (shard.has_files ? 1 : 0));
  if (shard.has_files) put_le(out, shard.file_names.high), put_le(out, shard.file_names.low);
  put_varint(out, shard.part_bytes);
  put_le(out, shard.part_checksum);
  put_varint(out, shard.blocks);
  put_varint(out, shard.block_bytes);
}

ManifestShard take_shard(ByteReader& in, std::string_view last_name) {
  ManifestShard shard;
  const uint64_t shared = in.varint();
  if (shared > last_name.size()) in.fail();
  shard.name = last_name.substr(0, in.ok() ? shared : 0);
  shard.name += in.text();
  shard.bytes = in.varint();
  shard.samples = in.varint();
  const uint64_t files = in.varint();
  shard.files = files >> 1;
  shard.has_files = (files & 1) != 0;
  if (shard.has_files)
    shard.file_names.high = in.le<uint64_t>(), shard.file_names.low = in.le<uint64_t>();
  shard.part_bytes = in.varint();
  shard.part_checksum = in.le<uint32_t>();
  shard.blocks = in.varint();
  shard.block_bytes = in.varint();
  return shard;
}

// The blocks of each shard hold its samples.
Status check_blocks(const Manifest& manifest) {
  size_t at = 0;
  for (const ManifestShard& shard : manifest.shards) {
    if (shard.blocks > manifest.block_samples.size() - at)
      return corrupt("the manifest lacks blocks");
    const auto begin = manifest.block_samples.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(shard.blocks);
    if (std::accumulate(begin, end, uint64_t{0}) != shard.samples)
      return corrupt(fmt::format("the blocks of '{}' do not add up in the manifest", shard.name));
    at += shard.blocks;
  }
  return at == manifest.block_samples.size() ? Status()
                                             : corrupt("the manifest has blocks too many");
}

}  // namespace

std::vector<std::byte> encode_manifest(const Manifest& manifest) {
  ByteVector out;
  put_bytes(out, std::as_bytes(std::span(kMagic)));
  put_le(out, kManifestVersion);
  put_le(out, uint32_t{0});
  put_le(out, uint64_t{0});
  put_text(out, manifest.format);
  put_schema(out, manifest.schema);
  put_varint(out, manifest.shards.size());
  std::string_view last_name;
  for (const ManifestShard& shard : manifest.shards) {
    put_shard(out, shard, last_name);
    last_name = shard.name;
  }
  put_varint(out, manifest.block_samples.size());
  for (const uint32_t samples : manifest.block_samples) put_varint(out, samples);
  store_le(MutableBytes(out).subspan(kCheckedFrom), uint64_t{out.size()});
  store_le(MutableBytes(out).subspan(12), crc32c(Bytes(out).subspan(kCheckedFrom)));
  return out;
}

Result<Manifest> parse_manifest(Bytes bytes) {
  if (bytes.size() < kFrameBytes ||
      !std::ranges::equal(bytes.first(8), std::as_bytes(std::span(kMagic))))
    return corrupt("not a headrace manifest: wrong magic");
  if (const auto version = load_le<uint32_t>(bytes.subspan(8)); version != kManifestVersion)
    return unsupported(
        fmt::format("manifest version {}, this build reads {}", version, kManifestVersion));
  if (load_le<uint64_t>(bytes.subspan(kCheckedFrom)) != bytes.size())
    return corrupt("the manifest is cut short");
  if (load_le<uint32_t>(bytes.subspan(12)) != crc32c(bytes.subspan(kCheckedFrom)))
    return corrupt("bad checksum of the manifest");
  ByteReader in(bytes.subspan(kFrameBytes));
  Manifest manifest;
  manifest.format = in.text();
  manifest.schema = take_schema(in);
  const uint64_t shards = in.count();
  manifest.shards.reserve(shards);
  for (uint64_t i = 0; i < shards && in.ok(); ++i)
    manifest.shards.push_back(
        take_shard(in, i == 0 ? std::string_view() : manifest.shards.back().name));
  const uint64_t blocks = in.count();
  manifest.block_samples.reserve(blocks);
  for (uint64_t i = 0; i < blocks && in.ok(); ++i) {
    const uint64_t samples = in.varint();
    if (samples == 0 || samples > kMaxBlockSamples) in.fail();
    manifest.block_samples.push_back(static_cast<uint32_t>(samples));
  }
  if (!in.done()) return corrupt("the manifest does not parse");
  HEADRACE_TRY(check_blocks(manifest));
  return manifest;
}

ManifestShard describe_part(const Part& part, std::string_view name) {
  const PartHead& head = part.head();
  ManifestShard shard{.name = std::string(name),
                      .bytes = head.has_files ? 0 : head.shard_bytes,
                      .samples = head.samples,
                      .files = head.has_files ? head.files : 1,
                      .has_files = head.has_files,
                      .file_names = head.names,
                      .part_bytes = part.total_bytes(),
                      .part_checksum = part.checksum(),
                      .blocks = head.blocks.size()};
  for (const PartBlock& block : head.blocks) shard.block_bytes += block.bytes;
  return shard;
}

ShardRow table_row(const ManifestShard& shard, std::string_view place,
                   std::span<const uint32_t> block_samples) {
  return {.name = shard.name,
          .place = place,
          .bytes = shard.bytes,
          .samples = shard.samples,
          .files = shard.files,
          .has_files = shard.has_files,
          .file_names = shard.file_names,
          .block_samples = block_samples,
          .block_bytes = shard.block_bytes};
}

std::vector<uint32_t> block_samples(const Part& part) {
  std::vector<uint32_t> samples;
  samples.reserve(part.head().blocks.size());
  for (const PartBlock& block : part.head().blocks) samples.push_back(block.samples);
  return samples;
}

Result<std::unique_ptr<IndexWriter>> IndexWriter::create(const std::string& folder,
                                                         std::string format,
                                                         const StoreOptions& options) {
  HEADRACE_ASSIGN(std::unique_ptr<Sink> parts, open_sink(join_path(folder, kPartsName), options));
  std::unique_ptr<IndexWriter> writer(new IndexWriter(folder, options, std::move(parts)));
  writer->manifest_.format = std::move(format);
  return writer;
}

Status IndexWriter::add(const Part& part, std::string_view name) {
  HEADRACE_TRY(merge_schema(part.head().schema, manifest_.schema));
  manifest_.shards.push_back(describe_part(part, name));
  for (const uint32_t samples : block_samples(part)) manifest_.block_samples.push_back(samples);
  return parts_->append(part.bytes());
}

Status IndexWriter::finish() {
  // The manifest last: while it is there, so are the parts it speaks of.
  HEADRACE_TRY(parts_->close());
  return write_url(join_path(folder_, kManifestName), encode_manifest(manifest_), options_);
}

std::function<Result<PartPointer>(size_t)> part_loader(std::shared_ptr<const Store> store,
                                                       const std::string& folder,
                                                       const Manifest& manifest) {
  struct Where {
    std::vector<uint64_t> begin{0};
    std::vector<uint32_t> checksum;
  };
  auto where = std::make_shared<Where>();
  for (const ManifestShard& shard : manifest.shards) {
    where->begin.push_back(where->begin.back() + shard.part_bytes);
    where->checksum.push_back(shard.part_checksum);
  }
  const std::string path = join_path(folder, kPartsName);
  return [store = std::move(store), path, where](size_t shard) -> Result<PartPointer> {
    const uint64_t begin = where->begin[shard];
    HEADRACE_ASSIGN(PartPointer part,
                    Part::open(store, path, begin, where->begin[shard + 1] - begin));
    if (part->checksum() != where->checksum[shard])
      return corrupt("the parts of the index do not belong to its manifest")
          .at(begin)
          .in_file(path);
    return part;
  };
}

}  // namespace headrace
