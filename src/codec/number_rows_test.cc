// SPDX-License-Identifier: Apache-2.0
#include "codec/number_rows.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/rng.h"

namespace headrace {
namespace {

using Numbers = std::vector<double>;

Result<Numbers> read(std::string_view json, const RowNames& names) {
  return read_rows(as_bytes(json), names);
}

const RowNames kBoxes{"bbox", {"label"}, 4};

TEST(NumberRowsTest, ReadsListsAndObjects) {
  EXPECT_EQ(read("[[1, 2.5, -3, 4e1, 5], [6,7,8,9,10]]", kBoxes).value(),
            (Numbers{1, 2.5, -3, 40, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(
      read(R"([{"label": 5, "x": [{"bbox": "]}\""}, -1.5, null], "bbox": [1, 2, 3, 4]}])", kBoxes)
          .value(),
      (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(read("[]", kBoxes).value(), Numbers{});
  EXPECT_EQ(read(" null ", kBoxes).value(), Numbers{});
  EXPECT_EQ(read("", kBoxes).value(), Numbers{});
}

TEST(NumberRowsTest, NamesWhatIsMissing) {
  EXPECT_EQ(read(R"([{"bbox": [1, 2, 3, 4]}])", kBoxes).status().message(),
            "an object lacks 'label'");
  EXPECT_EQ(read(R"([{"label": 1}])", kBoxes).status().message(), "an object lacks 'bbox'");
  EXPECT_EQ(read("[[1]]", kBoxes).status().place().offset, 4);
}

// Whatever comes: rows of the right width, or an error.
TEST(NumberRowsTest, AnyBytesAreReadOrRefused) {
  const std::string good = R"([[1,2,3,4,5],{"a":{"b":[1,"\"]"]},"bbox":[1,2,3,4],"label":-1e3}])";
  for (size_t cut = 1; cut < good.size(); ++cut)
    EXPECT_FALSE(read(std::string_view(good).substr(0, cut), kBoxes).ok()) << cut;
  Rng rng{Key(5)};
  constexpr std::string_view kLetters = "[]{},:\"\\0-eN a";
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (uint64_t n = 1 + rng.below(4); n > 0; --n)
      bad[rng.below(bad.size())] = kLetters[rng.below(kLetters.size())];
    const auto rows = read(bad, kBoxes);
    EXPECT_TRUE(!rows.ok() || rows.value().size() % kBoxes.width() == 0) << bad;
  }
}

}  // namespace
}  // namespace headrace
