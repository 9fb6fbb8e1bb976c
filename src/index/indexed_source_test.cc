// SPDX-License-Identifier: Apache-2.0
#include "index/indexed_source.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "index/manifest.h"
#include "index/part_builder.h"
#include "index/view.h"
#include "storage/memory.h"

namespace headrace {
namespace {

constexpr uint64_t kSamples[] = {100, 0, 1, 300};

// Sample n of all has its jpg at offset 1000 * n, and from shard 1 on an npy.
PartPointer part_of(size_t shard, uint64_t first) {
  PartBuilder part({.format = "tar"});
  const uint32_t jpg = part.field("jpg");
  const uint32_t npy = shard > 0 ? part.field("npy") : 0;
  for (uint64_t s = 0; s < kSamples[shard]; ++s) {
    part.add_extent(jpg, {.offset = 1000 * (first + s), .stored = 10});
    if (shard > 0) part.add_extent(npy, {.offset = 1000 * (first + s) + 500, .stored = 20});
    part.end_sample("key" + std::to_string(first + s));
  }
  return part.finish().value();
}

std::shared_ptr<const IndexedSource> make_source(bool lazily, const std::string& place = "/data/",
                                                 std::atomic<int>* loads = nullptr) {
  IndexedParts parts{
      .shards = ShardTable("tar"), .schema = {}, .store = std::make_shared<MemoryStore>()};
  auto made = std::make_shared<std::vector<PartPointer>>();
  uint64_t first = 0;
  for (size_t i = 0; i < std::size(kSamples); ++i) {
    made->push_back(part_of(i, first));
    first += kSamples[i];
    const std::string name = "s" + std::to_string(i);
    const std::vector<uint32_t> blocks = block_samples(*made->back());
    EXPECT_TRUE(parts.shards
                    .add({.name = name,
                          .place = place + name,
                          .bytes = 5,
                          .samples = kSamples[i],
                          .block_samples = blocks})
                    .ok());
    EXPECT_TRUE(merge_schema(made->back()->head().schema, parts.schema).ok());
  }
  if (lazily)
    parts.load = [made, loads](size_t shard) -> Result<PartPointer> {
      if (loads != nullptr) ++*loads;
      return (*made)[shard];
    };
  else
    parts.parts = *made;
  return std::make_shared<const IndexedSource>(std::move(parts));
}

TEST(IndexedSource, needs_gives_the_extents_of_the_wanted_fields) {
  for (const bool lazily : {false, true}) {
    const auto source = make_source(lazily);
    ASSERT_EQ(source->size(), 401u);
    const uint32_t fields[] = {1, 0};  // npy, jpg
    Request request;
    for (uint64_t s = 0; s < source->size(); ++s) {
      ASSERT_TRUE(source->needs({.sample = s, .fields = fields, .want_key = true}, request).ok());
      const bool has_npy = s >= 100;
      ASSERT_EQ(request.units.size(), has_npy ? 2u : 1u);
      EXPECT_EQ(request.first_piece,
                (std::vector<uint32_t>{0, has_npy ? 1u : 0u, has_npy ? 2u : 1u}));
      EXPECT_EQ(request.units.back().offset, 1000 * s);
      EXPECT_EQ(request.units.back().stored_bytes, 10u);
      EXPECT_EQ(request.units.back().decoded_bytes, 10u);
      EXPECT_EQ(request.key, "key" + std::to_string(s));
      EXPECT_EQ(source->file_path(request.units.back().file), s < 100   ? "/data/s0"
                                                              : s < 101 ? "/data/s2"
                                                                        : "/data/s3");
    }
    EXPECT_EQ(source->needs({.sample = 401, .fields = fields}, request).code(),
              Code::kInvalidArgument);
    EXPECT_EQ(source->key(400), "key400");
  }
}

TEST(IndexedSource, parts_are_loaded_when_their_samples_come_up) {
  std::atomic<int> loads{0};
  const auto source = make_source(true, "/data/", &loads);
  EXPECT_EQ(loads, 0);
  Request request;
  const uint32_t fields[] = {0};
  for (uint64_t s = 0; s < 100; ++s)
    ASSERT_TRUE(source->needs({.sample = s, .fields = fields}, request).ok());
  EXPECT_EQ(loads, 1);
}

TEST(IndexedSource, the_fingerprint_knows_no_place) {
  EXPECT_EQ(make_source(false, "/data/")->fingerprint(),
            make_source(true, "/nvme/elsewhere/")->fingerprint());
}

TEST(IndexedSource, threads_ask_at_once) {
  const auto source = make_source(true);
  std::atomic<int> bad{0};
  std::vector<std::jthread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Request request;
      const uint32_t fields[] = {0};
      for (uint64_t i = 0; i < 3000; ++i) {
        const uint64_t s = mix64(i + t * 7919) % source->size();
        if (!source->needs({.sample = s, .fields = fields, .want_key = i % 8 == 0}, request).ok() ||
            request.units[0].offset != 1000 * s)
          ++bad;
      }
    });
  threads.clear();
  EXPECT_EQ(bad, 0);
}

TEST(View, shows_the_listed_samples_and_collapses) {
  const std::shared_ptr<const Source> base = make_source(false);
  const auto view = make_view(base, {300, 5, 5, 100}).value();
  EXPECT_EQ(view->size(), 4u);
  EXPECT_EQ(view->key(0), "key300");
  EXPECT_EQ(view->key(2), "key5");
  const auto nested = make_view(view, {3, 0}).value();
  EXPECT_EQ(nested->key(0), "key100");
  EXPECT_EQ(nested->fingerprint(), make_view(base, {100, 300}).value()->fingerprint());
  EXPECT_NE(nested->fingerprint(), make_view(base, {300, 100}).value()->fingerprint());
  EXPECT_NE(nested->fingerprint(), base->fingerprint());
}

TEST(View, slices_step_both_ways) {
  const std::shared_ptr<const Source> base = make_source(false);
  const auto every_third = make_slice(base, 2, 12, 3).value();
  EXPECT_EQ(every_third->size(), 4u);
  EXPECT_EQ(every_third->key(3), "key11");
  const auto back = make_slice(base, 4, -1, -2).value();
  EXPECT_EQ(back->size(), 3u);
  EXPECT_EQ(back->key(2), "key0");
  EXPECT_FALSE(make_slice(base, 0, 1, 0).ok());
  EXPECT_EQ(make_slice(base, 5, 10, std::numeric_limits<int64_t>::max()).value()->size(), 1u);
  EXPECT_EQ(make_slice(base, 5, -1, std::numeric_limits<int64_t>::min()).value()->size(), 1u);
}

TEST(View, a_number_beyond_the_base_is_an_error) {
  const std::shared_ptr<const Source> base = make_source(false);
  EXPECT_EQ(make_view(base, {0, 401}).status().code(), Code::kInvalidArgument);
}

TEST(MergeSchema, pictures_of_two_kinds_are_bytes_and_numbers_of_two_types_an_error) {
  Schema all{{.name = "image", .kind = Kind::kJpeg}, {.name = "n", .kind = Kind::kInt}};
  ASSERT_TRUE(merge_schema({{.name = "image", .kind = Kind::kPng}}, all).ok());
  EXPECT_EQ(all[0].kind, Kind::kBytes);
  ASSERT_TRUE(merge_schema({{.name = "image", .kind = Kind::kJpeg, .many = true}}, all).ok());
  EXPECT_TRUE(all[0].kind == Kind::kBytes && all[0].many);
  EXPECT_FALSE(merge_schema({{.name = "image", .kind = Kind::kText}}, all).ok());
  EXPECT_FALSE(merge_schema({{.name = "n", .kind = Kind::kInt, .dtype = DType::kI32}}, all).ok());
}

TEST(View, blocks_hold_all_samples) {
  const std::shared_ptr<const Source> base = make_source(false);
  const auto view = make_slice(base, 0, 350, 1).value();
  uint64_t sum = 0;
  for (const uint32_t n : view->blocks().samples) sum += n;
  EXPECT_EQ(sum, 350u);
}

}  // namespace
}  // namespace headrace
