// SPDX-License-Identifier: Apache-2.0
//
// Several fields of a sample, assembled in one pass: each chunk is opened once.
#include <gtest/gtest.h>

#include <atomic>

#include "array/array_source.h"
#include "array/value_fixture.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// i16 [time, place], each element another number, in compressed chunks of one file.
struct Grid {
  Grid(Extents shape, Extents chunk) {
    array->name = "v";
    array->dtype = DType::kI16;
    array->shape = shape;
    array->chunk = chunk;
    array->filters = {{ChunkFilter::kZlib}};
    ByteList all;
    for (int64_t t = 0; t < shape[0]; t += chunk[0])
      for (int64_t p = 0; p < shape[1]; p += chunk[1]) {
        ByteList plain;
        for (int64_t i = t; i < t + chunk[0]; ++i)
          for (int64_t k = p; k < p + chunk[1]; ++k)
            put_le(plain, static_cast<uint64_t>(i * shape[1] + k), 2);
        const ByteList stored = apply_filters(array->filters, 0, plain);
        array->places.push_back({0, 0, all.size(), stored.size()});
        put_all(all, stored);
      }
    store->put("f", all);
    d.files = {"f"};
    d.variables = {{"v", {"time", "place"}, {array}, 0}};
    d.openings = std::make_shared<std::atomic<uint64_t>>(0);
  }
  std::shared_ptr<const Source> open() const { return make_array_source(d, store).value(); }
  uint64_t take_openings() const { return d.openings->exchange(0); }

  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::shared_ptr<Array> array = std::make_shared<Array>();
  ArrayDescription d;
};

TEST(array_assemble, fields_that_share_chunks_open_each_once) {
  Grid grid({6, 128}, {2, 8});
  grid.d.fields = {{"x", {0}, 0, 2, {{}, {.patch = 8}}}, {"y", {0}, 1, 2, {{}, {.patch = 8}}}};
  grid.d.samples.end = 4;
  const auto source = grid.open();
  const std::vector<uint32_t> both = {0, 1};
  uint64_t saved = 0;
  for (uint64_t s = 0; s < source->size(); ++s)
    for (uint64_t draw = 0; draw < 20; ++draw) {
      const SampleAsk ask{.sample = s, .fields = both, .draws = Key(draw).with(s)};
      Request request;
      ASSERT_TRUE(source->needs(ask, request).ok());
      for (const Unit& unit : request.units) ASSERT_TRUE(unit.unshared);
      const auto together = read_values(*source, ask, false).value();
      EXPECT_EQ(grid.take_openings(), request.units.size());
      for (const uint32_t f : both) {
        SampleAsk alone = ask;
        alone.fields = {&f, 1};
        EXPECT_EQ(read_values(*source, alone, false).value()[0], together[f]);
      }
      const uint64_t apart = grid.take_openings();
      EXPECT_GE(apart, request.units.size());
      saved += apart - request.units.size();
      EXPECT_EQ(read_values(*source, ask, true).value(), together);
      grid.take_openings();
    }
  EXPECT_GT(saved, 0u);
}

TEST(array_assemble, a_patch_that_goes_over_the_end_opens_its_chunk_once) {
  Grid grid({4, 16}, {1, 16});
  grid.d.fields = {{"x", {0}, 0, 0, {{}, {.patch = 10, .periodic = true}}}};
  grid.d.samples.end = 4;
  const auto source = grid.open();
  const std::vector<uint32_t> field = {0};
  size_t wrapped = 0;
  for (uint64_t draw = 0; draw < 20; ++draw) {
    const SampleAsk ask{.sample = draw % 4, .fields = field, .draws = Key(draw)};
    Request request;
    ASSERT_TRUE(source->needs(ask, request).ok());
    ASSERT_EQ(request.units.size(), 1u);
    wrapped += request.pieces.size() == 2;
    const auto value = read_values(*source, ask, false).value();
    EXPECT_EQ(grid.take_openings(), 1u);
    EXPECT_EQ(read_values(*source, ask, true).value(), value);
    grid.take_openings();
  }
  EXPECT_GT(wrapped, 0u);
}

TEST(array_assemble, members_of_records_share_their_chunk) {
  Grid grid({4, 4}, {4, 4});
  auto second = std::make_shared<Array>(*grid.array);
  ByteList plain;
  for (uint64_t i = 0; i < 32; ++i) put_le(plain, i, 2);
  const ByteList stored = apply_filters(grid.array->filters, 0, plain);
  grid.store->put("f", stored);
  for (Array* array : {grid.array.get(), second.get()}) {
    array->places = {{0, 0, 0, stored.size()}};
    array->record = {.bytes = 4, .offset = array == second.get() ? 2u : 0u};
  }
  grid.d.variables.push_back({"w", {"time", "place"}, {second}, 0});
  grid.d.fields = {{"x", {0}, 0, 0, {{}, {}}}, {"y", {1}, 0, 0, {{}, {}}}};
  grid.d.samples.end = 4;
  const auto source = grid.open();
  const std::vector<uint32_t> both = {0, 1};
  const auto values =
      read_values(*source, {.sample = 1, .fields = both, .draws = Key(0)}, false).value();
  EXPECT_EQ(grid.take_openings(), 1u);
  EXPECT_EQ(load_le<int16_t>(values[0]), 8);
  EXPECT_EQ(load_le<int16_t>(values[1]), 9);
}

TEST(array_assemble, damage_in_a_shared_chunk_is_an_error) {
  Grid grid({6, 128}, {2, 8});
  grid.d.fields = {{"x", {0}, 0, 2, {{}, {.patch = 8}}}, {"y", {0}, 1, 2, {{}, {.patch = 8}}}};
  grid.d.samples.end = 4;
  const auto source = grid.open();
  ByteList bytes = [&] {
    const Buffer all = grid.store->read_all("f").value();
    return ByteList(all.bytes().begin(), all.bytes().end());
  }();
  for (std::byte& b : bytes) b ^= std::byte{1};
  grid.store->put("f", bytes);
  const std::vector<uint32_t> both = {0, 1};
  EXPECT_EQ(read_values(*source, {.sample = 0, .fields = both}, false).status().code(),
            Code::kCorrupt);
}

}  // namespace
}  // namespace headrace
