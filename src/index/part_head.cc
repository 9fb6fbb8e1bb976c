// SPDX-License-Identifier: Apache-2.0
//
// The head fields of a part, in this order, numbers as varints, texts with their
// length before them, lists with their count:
//
//   format | shard bytes | time ns (zigzag) | folders (path, time) | flags | align | gap
//   | samples | files | schema (schema_bytes.h) | shapes (list of counts)
//   | blocks (samples, bytes) | names (u64, u64) | classes | notices

#include "index/part.h"
#include "index/schema_bytes.h"
#include "index/varint.h"

namespace headrace {
namespace {

constexpr uint64_t kHasFiles = 1;
constexpr uint64_t kWholeFiles = 2;
constexpr uint64_t kHasOpenings = 4;
constexpr uint64_t kOwnKeys = 8;
constexpr uint64_t kMaxAlign = uint64_t{1} << 20;

void put_texts(ByteVector& out, const std::vector<std::string>& texts) {
  put_varint(out, texts.size());
  for (const std::string& text : texts) put_text(out, text);
}

std::vector<std::string> take_texts(ByteReader& in) {
  std::vector<std::string> texts;
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) texts.emplace_back(in.text());
  return texts;
}

std::vector<uint32_t> take_shape(ByteReader& in, size_t fields) {
  std::vector<uint32_t> shape;
  uint64_t n = in.count();
  if (n > fields) in.fail();
  for (; n > 0 && in.ok(); --n) {
    const uint64_t count = in.varint();
    if (count > UINT32_MAX) in.fail();
    shape.push_back(static_cast<uint32_t>(count));
  }
  return shape;
}

// The blocks hold all the samples, and none is empty.
std::vector<PartBlock> take_blocks(ByteReader& in, uint64_t samples) {
  std::vector<PartBlock> blocks;
  const uint64_t n = in.count();
  blocks.reserve(n);
  for (uint64_t i = 0; i < n && in.ok(); ++i) {
    const uint64_t count = in.varint();
    if (count == 0 || count > kMaxBlockSamples || count > samples) in.fail();
    samples -= count;
    blocks.push_back({static_cast<uint32_t>(count), in.varint()});
  }
  if (samples != 0) in.fail();
  return blocks;
}

std::vector<FolderStamp> take_folders(ByteReader& in) {
  std::vector<FolderStamp> folders;
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    std::string path(in.text());
    folders.push_back({std::move(path), in.signed_varint()});
  }
  return folders;
}

}  // namespace

void put_head(const PartHead& head, ByteVector& out) {
  put_text(out, head.format);
  put_varint(out, head.shard_bytes);
  put_varint(out, zigzag(head.modified_ns));
  put_varint(out, head.folders.size());
  for (const FolderStamp& folder : head.folders) {
    put_text(out, folder.path);
    put_varint(out, zigzag(folder.modified_ns));
  }
  put_varint(out, (head.has_files ? kHasFiles : 0) | (head.whole_files ? kWholeFiles : 0) |
                      (head.has_openings ? kHasOpenings : 0) | (head.own_keys ? kOwnKeys : 0));
  put_varint(out, head.align);
  put_varint(out, head.gap);
  put_varint(out, head.samples);
  put_varint(out, head.files);
  put_schema(out, head.schema);
  put_varint(out, head.shapes.size());
  for (const std::vector<uint32_t>& shape : head.shapes) {
    put_varint(out, shape.size());
    for (const uint32_t count : shape) put_varint(out, count);
  }
  put_varint(out, head.blocks.size());
  for (const PartBlock& block : head.blocks) {
    put_varint(out, block.samples);
    put_varint(out, block.bytes);
  }
  put_le(out, head.names.high);
  put_le(out, head.names.low);
  put_texts(out, head.classes);
  put_texts(out, head.notices);
}

Result<PartHead> take_head(Bytes bytes, uint64_t& taken) {
  ByteReader in(bytes);
  PartHead head;
  head.format = in.text();
  head.shard_bytes = in.varint();
  head.modified_ns = in.signed_varint();
  head.folders = take_folders(in);
  const uint64_t flags = in.varint();
  head.has_files = (flags & kHasFiles) != 0;
  head.whole_files = (flags & kWholeFiles) != 0;
  head.has_openings = (flags & kHasOpenings) != 0;
  head.own_keys = (flags & kOwnKeys) != 0;
  head.align = in.varint();
  head.gap = in.varint();
  if (head.align == 0 || head.align > kMaxAlign || head.gap > kMaxAlign) in.fail();
  head.samples = in.varint();
  head.files = in.varint();
  if (head.files > UINT32_MAX || (head.whole_files && !head.has_files)) in.fail();
  head.schema = take_schema(in);
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n)
    head.shapes.push_back(take_shape(in, head.schema.size()));
  head.blocks = take_blocks(in, head.samples);
  head.names.high = in.le<uint64_t>();
  head.names.low = in.le<uint64_t>();
  head.classes = take_texts(in);
  head.notices = take_texts(in);
  if (!in.ok()) return corrupt("the head of the index does not parse");
  taken = bytes.size() - in.left();
  return head;
}

}  // namespace headrace
