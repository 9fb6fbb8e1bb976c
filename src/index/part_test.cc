// SPDX-License-Identifier: Apache-2.0
#include "index/part.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "index/part_builder.h"
#include "index/source.h"
#include "storage/memory.h"

namespace headrace {
namespace {

Buffer copy(Bytes bytes) {
  Buffer out(bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.data());
  return out;
}

// A tar-like part: two extents and a key a sample, some with a field missing, some with many.
PartPointer extents_part(uint64_t samples, bool odd_shapes) {
  PartBuilder part({.format = "tar",
                    .shard_bytes = uint64_t{1} << 40,
                    .modified_ns = 7,
                    .align = 512,
                    .gap = 512});
  const uint32_t jpg = part.field("jpg");
  const uint32_t cls = part.field("cls");
  uint64_t at = 512;
  for (uint64_t s = 0; s < samples; ++s) {
    const uint64_t pictures = odd_shapes ? s % 5 : 1;
    for (uint64_t p = 0; p < pictures; ++p) {
      part.add_extent(jpg, {.offset = at, .stored = 1000 + s});
      at += 2048 + 512;
    }
    if (!odd_shapes || s % 3 != 0) part.add_extent(cls, {.offset = at, .stored = 1});
    at += 1024;
    part.end_sample("train/" + std::to_string(s));
  }
  return part.finish().value();
}

TEST(Part, gives_back_every_extent_and_key) {
  for (const bool odd : {false, true}) {
    const PartPointer part = extents_part(200, odd);
    ASSERT_EQ(part->head().samples, 200u);
    uint64_t at = 512;
    PartGroup group;
    for (uint64_t s = 0; s < 200; ++s) {
      ASSERT_TRUE(part->unpack(s / 64, group).ok());
      const size_t cell = s % 64 * 2;
      const uint64_t pictures = odd ? s % 5 : 1;
      ASSERT_EQ(group.first[cell + 1] - group.first[cell], pictures);
      for (uint64_t p = 0; p < pictures; ++p) {
        const PartValue& value = group.values[group.first[cell] + p];
        EXPECT_EQ(value.offset, at);
        EXPECT_EQ(value.stored, 1000 + s);
        at += 2048 + 512;
      }
      const uint32_t labels = group.first[cell + 2] - group.first[cell + 1];
      EXPECT_EQ(labels, odd && s % 3 == 0 ? 0u : 1u);
      if (labels != 0) {
        EXPECT_EQ(group.values[group.first[cell + 1]].offset, at);
      }
      at += 1024;
      std::string key;
      ASSERT_TRUE(part->key(s, key).ok());
      EXPECT_EQ(key, "train/" + std::to_string(s));
    }
  }
}

TEST(Part, gives_back_inline_values_and_paths) {
  PartBuilder part({.format = "files", .has_files = true, .whole_files = true});
  const uint32_t jpg = part.field("jpg");
  const uint32_t cls = part.field("cls", Kind::kInt, Storage::kInline);
  const uint32_t score = part.field("score", Kind::kFloat, Storage::kInline);
  const uint32_t text = part.field("text", Kind::kText, Storage::kInline);
  const int64_t extremes[] = {0, -1, INT64_MAX, INT64_MIN, 42};
  for (size_t s = 0; s < 100; ++s) {
    part.add_int(cls, extremes[s % 5]);
    part.add_whole_file(jpg, part.add_file("class" + std::to_string(s / 10) + "/im.age" +
                                           std::to_string(s) + ".jpg"));
    part.add_float(score, 0.5 * static_cast<double>(s));
    if (s % 2 == 0) part.add_bytes(text, as_bytes("a text"));
    part.end_sample();
  }
  const PartPointer made = part.finish().value();
  PartGroup group;
  ASSERT_TRUE(made->unpack(1, group).ok());
  const size_t row = 99 % 64 * 4;
  const auto inline_at = [&](size_t cell) {
    const PartValue& value = group.values[group.first[cell]];
    return Bytes(group.inline_bytes).subspan(value.offset, value.length);
  };
  EXPECT_EQ(group.values[group.first[row]].file, 99u);
  EXPECT_EQ(group.values[group.first[row]].stored, kWholeFile);
  EXPECT_EQ(load_le<int64_t>(inline_at(row + 1)), 42);
  EXPECT_EQ(load_le<double>(inline_at(row + 2)), 49.5);
  EXPECT_EQ(group.first[row + 3], group.first[row + 4]);
  EXPECT_EQ(as_text(inline_at(98 % 64 * 4 + 3)), "a text");
  EXPECT_EQ(load_le<int64_t>(inline_at(97 % 64 * 4 + 1)), INT64_MAX);
  std::string out;
  ASSERT_TRUE(made->path(73, out).ok());
  EXPECT_EQ(out, "class7/im.age73.jpg");
  ASSERT_TRUE(made->key(73, out).ok());
  EXPECT_EQ(out, "class7/im.age73");
}

TEST(Part, gives_back_units_that_open_as_a_whole) {
  PartBuilder part({.format = "x", .has_openings = true});
  const uint32_t field = part.field("f");
  part.add_extent(
      field,
      {.offset = 100, .stored = 50, .decoded = 400, .begin = 10, .length = 20, .encoding = 3});
  part.add_extent(field, {.offset = 100, .stored = 50, .decoded = 400, .begin = 30, .encoding = 3});
  part.add_extent(field, {.offset = 7, .stored = 8});
  part.end_sample("k");
  const PartPointer made = part.finish().value();
  PartGroup group;
  ASSERT_TRUE(made->unpack(0, group).ok());
  ASSERT_EQ(group.values.size(), 3u);
  EXPECT_EQ(group.values[0].encoding, 3u);
  EXPECT_EQ(group.values[0].decoded, 400u);
  EXPECT_EQ(group.values[0].begin, 10u);
  EXPECT_EQ(group.values[0].length, 20u);
  EXPECT_EQ(group.values[1].length, kWholeFile);
  EXPECT_EQ(group.values[2].encoding, 0u);
  EXPECT_EQ(group.values[2].offset, 7u);
}

TEST(Part, blocks_hold_four_mebibytes_or_32_files) {
  PartBuilder extents({.format = "tar"});
  for (uint64_t s = 0; s < 100; ++s) {
    extents.add_extent(extents.field("jpg"), {.offset = s << 20, .stored = uint64_t{1} << 20});
    extents.end_sample("k");
  }
  const PartPointer cut = extents.finish().value();
  ASSERT_EQ(cut->head().blocks.size(), 25u);
  EXPECT_EQ(cut->head().blocks[0], (PartBlock{4, uint64_t{4} << 20}));

  PartBuilder files({.format = "files", .has_files = true, .whole_files = true});
  for (int s = 0; s < 70; ++s) {
    files.add_whole_file(files.field("jpg"), files.add_file(std::to_string(s) + ".jpg"));
    files.end_sample();
  }
  const PartPointer runs = files.finish().value();
  ASSERT_EQ(runs->head().blocks.size(), 3u);
  EXPECT_EQ(runs->head().blocks[0].samples, 32u);
  EXPECT_EQ(runs->head().blocks[2].samples, 6u);
}

TEST(Part, no_block_ends_among_samples_that_share_a_unit) {
  PartBuilder rows({.format = "parquet", .has_openings = true});
  const uint32_t field = rows.field("jpg");
  const auto add_group = [&](uint64_t samples, uint64_t mebibytes) {
    rows.begin_shared(samples, mebibytes << 20);
    for (uint64_t row = 0; row < samples; ++row) {
      rows.add_extent(field, {.decoded = 100, .begin = row, .length = kRow, .encoding = 1});
      rows.end_sample("k");
    }
  };
  add_group(500, 64);
  for (int g = 0; g < 3; ++g) add_group(10, 2);
  add_group(0, 7);
  add_group(20, 5);
  const std::vector<PartBlock> wanted = {
      {500, uint64_t{64} << 20}, {20, uint64_t{4} << 20}, {30, uint64_t{7} << 20}};
  EXPECT_EQ(rows.finish().value()->head().blocks, wanted);
}

TEST(Part, read_by_groups_equals_read_whole) {
  const PartPointer whole = extents_part(1000, true);
  auto store = std::make_shared<MemoryStore>();
  std::vector<std::byte> padded(17);
  padded.insert(padded.end(), whole->bytes().begin(), whole->bytes().end());
  store->put("parts", std::move(padded));
  const PartPointer lean = Part::open(store, "parts", 17, whole->total_bytes()).value();
  EXPECT_TRUE(lean->bytes().empty());
  EXPECT_EQ(lean->checksum(), whole->checksum());
  PartGroup a, b;
  for (uint64_t g = 0; g < whole->groups(); ++g) {
    ASSERT_TRUE(whole->unpack(g, a).ok());
    ASSERT_TRUE(lean->unpack(g, b).ok());
    EXPECT_EQ(a.first, b.first);
    EXPECT_TRUE(std::ranges::equal(a.values, b.values, {}, &PartValue::offset, &PartValue::offset));
  }
  std::string key;
  ASSERT_TRUE(lean->key(999, key).ok());
  EXPECT_EQ(key, "train/999");
}

TEST(Part, every_cut_is_an_error) {
  const PartPointer part = extents_part(130, true);
  for (size_t n = 0; n < part->bytes().size(); ++n)
    EXPECT_FALSE(Part::parse(copy(part->bytes().first(n))).ok()) << n;
}

TEST(Part, every_flipped_bit_is_an_error) {
  const PartPointer part = extents_part(130, true);
  Buffer bytes = copy(part->bytes());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes.data()[i] ^= std::byte{16};
    EXPECT_FALSE(Part::parse(copy(bytes.bytes())).ok()) << i;
    bytes.data()[i] ^= std::byte{16};
  }
}

TEST(Part, another_version_is_unsupported_by_number) {
  Buffer bytes = copy(extents_part(3, false)->bytes());
  bytes.data()[8] = std::byte{9};
  const auto part = Part::parse(std::move(bytes));
  EXPECT_EQ(part.status().code(), Code::kUnsupported);
  EXPECT_NE(part.status().message().find("version 9"), std::string_view::npos);
}

TEST(PartBuilder, too_many_fields_are_an_error_that_says_why) {
  PartBuilder part({.format = "tar"});
  for (uint64_t s = 0; s <= kMaxFields; ++s) {
    part.add_extent(part.field(std::to_string(s) + ".jpg"), {.offset = s, .stored = 1});
    part.end_sample("k");
  }
  const auto made = part.finish();
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("follows a dot"), std::string_view::npos);
}

TEST(PartBuilder, few_bytes_a_sample) {
  PartBuilder part({.format = "tar", .align = 512, .gap = 512});
  Rng rng(Key(1));
  uint64_t at = 0;
  for (uint64_t s = 0; s < 10'000; ++s) {
    const uint64_t bytes = 50'000 + rng.below(100'000);
    part.add_extent(part.field("jpg"), {.offset = at + 512, .stored = bytes});
    at += 512 + (bytes + 511) / 512 * 512;
    part.add_extent(part.field("cls"), {.offset = at + 512, .stored = 3});
    at += 1024;
    part.end_sample("n01440764_" + std::to_string(10'000 + s));
  }
  const PartPointer made = part.finish().value();
  EXPECT_LT(made->total_bytes() / 10'000, 12u);
  RecordProperty("bytes_per_sample", static_cast<int>(made->total_bytes() / 10'000));
}

}  // namespace
}  // namespace headrace
