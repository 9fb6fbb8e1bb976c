// SPDX-License-Identifier: Apache-2.0
#include "array/stretches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "array/array_boxes.h"
#include "array/value_fixture.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// Two files of i16 [2, n, 2] that follow each other along the second axis: n is 3 and 2.  Elements
// count up in each file; the second's bytes are turned.
struct TwoFiles {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::shared_ptr<Array> first = add(3, false);
  std::shared_ptr<Array> second = add(2, true);
  ArrayDescription d;

  TwoFiles() {
    d.files = {"f3", "f2"};
    second->places[0].file = 1;
    d.variables = {{"v", {"a", "time", "b"}, {first, second}, 1}};
    d.fields = {{"v", {0}, 0, 3, {{}, {}, {}}}};
    d.samples.end = 3;
  }

  std::shared_ptr<Array> add(int64_t steps, bool big_endian) {
    auto array = std::make_shared<Array>();
    array->name = "v";
    array->dtype = DType::kI16;
    array->big_endian = big_endian;
    array->shape = array->chunk = {2, steps, 2};
    ByteList bytes;
    for (int64_t i = 0; i < steps * 4; ++i)
      for (const int64_t shift : {big_endian ? 8 : 0, big_endian ? 0 : 8})
        bytes.push_back(static_cast<std::byte>(i >> shift));
    array->places = {{0, 0, 0, bytes.size()}};
    store->put("f" + std::to_string(steps), bytes);
    return array;
  }

  std::vector<float> value(uint64_t sample) const {
    const auto source = make_array_source(d, store);
    EXPECT_TRUE(source.ok()) << source.status().text();
    const auto bytes = read_value(*source.value(), sample, 0, Key(0));
    EXPECT_TRUE(bytes.ok()) << bytes.status().text();
    std::vector<float> out(bytes.value().size() / 4);
    std::memcpy(out.data(), bytes.value().data(), bytes.value().size());
    return out;
  }
  Hash128 fingerprint() const { return make_array_source(d, store).value()->fingerprint(); }
};

TEST(stretches, each_file_of_a_window_along_a_middle_axis_has_its_own_scale) {
  TwoFiles t;
  t.first->packed = t.second->packed = true;
  t.first->scale = 0.5;
  t.second->scale = 10;
  t.second->offset = 1;
  // Steps 1 and 2 of the first file, 0 of the second; outer index 0, then 1.
  EXPECT_EQ(t.value(1), (std::vector<float>{1, 1.5, 2, 2.5, 1, 11, 4, 4.5, 5, 5.5, 41, 51}));
  t.d.variables[0].segments = {t.second, t.first};
  EXPECT_EQ(t.value(0), (std::vector<float>{1, 11, 21, 31, 0, 0.5, 41, 51, 61, 71, 3, 3.5}));
}

TEST(stretches, a_file_that_is_not_packed_gives_numbers_of_the_same_type) {
  TwoFiles t;
  t.first->packed = true;
  t.first->scale = 2;
  t.second->missing = 1;
  const std::vector<float> got = t.value(2);  // step 2 of the first file, both of the second
  ASSERT_EQ(got.size(), 12u);
  EXPECT_EQ(got[0], 8.0f);
  EXPECT_EQ(got[2], 0.0f);
  EXPECT_TRUE(std::isnan(got[3]));
  EXPECT_EQ(got[4], 2.0f);
  EXPECT_EQ(make_array_source(t.d, t.store).value()->schema()[0].dtype, DType::kF32);
  t.first->packed = false;  // then nothing is unpacked, and nothing is missing
  EXPECT_EQ(make_array_source(t.d, t.store).value()->schema()[0].dtype, DType::kI16);
}

TEST(stretches, every_element_of_a_region_is_in_one_stretch) {
  TwoFiles t;
  for (int64_t begin = 0; begin < 5; ++begin)
    for (int64_t apart = 1; apart < 5; ++apart)
      for (int64_t steps = 1; begin + (steps - 1) * apart < 5; ++steps) {
        std::vector<int> seen(static_cast<size_t>(2 * steps * 2), 0);
        visit_stretches(t.d.variables[0], begin, apart, {2, steps, 2}, [&](const Stretch& s) {
          ASSERT_LE(s.first + s.count, seen.size());
          for (size_t i = s.first; i < s.first + s.count; ++i) {
            ++seen[i];
            const int64_t step = begin + static_cast<int64_t>(i) / 2 % steps * apart;
            EXPECT_EQ(s.array, step < 3 ? t.first.get() : t.second.get());
          }
        });
        EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
      }
}

TEST(stretches, the_fingerprint_knows_every_number_of_every_file) {
  TwoFiles t;
  t.first->packed = t.second->packed = true;
  const Hash128 before = t.fingerprint();
  t.second->scale = 2;
  const Hash128 scaled = t.fingerprint();
  EXPECT_FALSE(before == scaled);
  t.second->offset = 1;
  const Hash128 moved = t.fingerprint();
  EXPECT_FALSE(scaled == moved);
  t.first->missing = 0;
  EXPECT_FALSE(moved == t.fingerprint());
  t.second->scale = std::nan("");
  EXPECT_EQ(t.fingerprint(), t.fingerprint());
  EXPECT_FALSE(is_packed_alike(t.d.variables[0]));
  *t.second = *t.first;
  EXPECT_TRUE(is_packed_alike(t.d.variables[0]));
}

TEST(stretches, nothing_is_added_to_a_zero_below_zero) {
  const Array plain;
  const float stored = -0.0f;
  EXPECT_TRUE(std::signbit(static_cast<double>(stored) * plain.scale + plain.offset));
}

}  // namespace
}  // namespace headrace
