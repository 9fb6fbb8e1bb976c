// SPDX-License-Identifier: Apache-2.0
#include "transform/params.h"

#include <gtest/gtest.h>

#include <array>

namespace headrace {
namespace {

TEST(ParamsTest, GivesWhatWasWrittenOrTheFallback) {
  Params p({{"p", 0.25},
            {"n", int64_t{3}},
            {"on", true},
            {"name", std::string("x")},
            {"list", std::vector<double>{1, 2}}});
  EXPECT_EQ(p.take_number("p", 0.5), 0.25);
  EXPECT_EQ(p.take_number("n", 0.5), 3);
  EXPECT_EQ(p.take_number("missing", 0.5), 0.5);
  EXPECT_TRUE(p.take_flag("on", false));
  EXPECT_EQ(p.take_text("name", ""), "x");
  EXPECT_EQ(p.need_integers("list"), (std::vector<int>{1, 2}));
  EXPECT_TRUE(p.done().ok());
}

TEST(ParamsTest, OneNumberIsAListOfOne) {
  Params p({{"size", int64_t{224}}});
  EXPECT_EQ(p.need_integers("size"), std::vector<int>{224});
}

TEST(ParamsTest, TyposAreNamedWithWhatThereIs) {
  Params p({{"prob", 1.0}});
  p.take_number("p", 0.5);
  EXPECT_EQ(p.done().message(), "unknown parameter 'prob'; it takes p");
  EXPECT_EQ(Params({{"x", 1.0}}).done().message(), "unknown parameter 'x'; it takes none");
}

TEST(ParamsTest, WrongTypesAndMissingOnesAreNamed) {
  Params text({{"p", std::string("half")}});
  EXPECT_EQ(text.take_number("p", 0.5), 0.5);
  EXPECT_EQ(text.done().message(), "parameter 'p' must be a number");
  Params none;
  none.need_integers("size");
  EXPECT_EQ(none.done().message(), "parameter 'size' is missing");
  Params fraction({{"size", 2.5}});
  fraction.need_integers("size");
  EXPECT_EQ(fraction.done().message(), "parameter 'size' must be a whole number or a list of them");
  Params flag({{"fast", int64_t{1}}});
  flag.take_flag("fast", false);
  EXPECT_EQ(flag.done().message(), "parameter 'fast' must be True or False");
}

TEST(NearestNameTest, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 3> kNames{"resize", "random_flip", "cast"};
  EXPECT_EQ(nearest_name("randomflip", kNames), "random_flip");
  EXPECT_EQ(nearest_name("resise", kNames), "resize");
  EXPECT_EQ(nearest_name("cat", kNames), "cast");
  EXPECT_EQ(nearest_name("color_jitter", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
}

TEST(ParamsTest, WordsAndNumbersMayStandInOnePlace) {
  Params word({{"value", std::string("random")}});
  EXPECT_TRUE(word.take_word("value", "random"));
  EXPECT_TRUE(word.done().ok());
  Params number({{"value", 3.0}});
  EXPECT_FALSE(number.take_word("value", "random"));
  EXPECT_EQ(number.take_numbers("value", {}), std::vector<double>{3});
  Params other({{"value", std::string("noise")}});
  other.take_word("value", "random");
  EXPECT_EQ(other.done().message(), "parameter 'value' must be numbers or 'random'");
}

TEST(ParamsTest, IntegersAreWhole) {
  Params params({{"a", int64_t{3}}, {"b", std::vector<double>{1, 2}}});
  EXPECT_EQ(params.take_integer("a", 7), 3);
  EXPECT_EQ(params.take_integers("b", {}), (std::vector<int>{1, 2}));
  EXPECT_EQ(params.take_integer("c", 7), 7);
  EXPECT_TRUE(params.done().ok());
  Params two({{"a", std::vector<double>{1, 2}}});
  two.take_integer("a", 7);
  EXPECT_EQ(two.done().message(), "parameter 'a' must be a whole number");
}

}  // namespace
}  // namespace headrace
