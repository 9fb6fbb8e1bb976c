// SPDX-License-Identifier: Apache-2.0
//
// States as text: what version 1 wrote is read for ever, byte for byte.
#include "plan/state_text.h"

#include <gtest/gtest.h>

#include "plan/test_support.h"

namespace headrace {
namespace {

// Written by the first release, of one source and of a blend.
constexpr std::string_view kOne =
    R"({"headrace": 1, "plan_version": 1, "fingerprint": "f00d", "seed": 18446744073709551615, )"
    R"("mode": 2, "lanes": 64, "pools": [20], "reassign_every": 1, "epoch": 2, "g": 30})";
constexpr std::string_view kBlend =
    R"({"headrace": 1, "plan_version": 1, "fingerprint": "f00d", "seed": 7, "mode": 1, )"
    R"("lanes": 1, "pools": [1, 1], "reassign_every": 3, "epoch": 2, "g": 30, )"
    R"("mixture": {"offsets": [5, 6], "schedule": [[0, [3221225472, 1073741824]], )"
    R"([1200, [2147483648, 2147483648]]]}, "epoch_draws": 500})";

PlanState one() {
  PlanState s;
  s.fingerprint = "f00d";
  s.seed = ~uint64_t{0};
  s.mode = OrderMode::kPool;
  s.lanes = 64;
  s.pools = {20};
  s.epoch = 2;
  s.g = 30;
  return s;
}

PlanState blend() {
  PlanState s = one();
  s.seed = 7;
  s.mode = OrderMode::kGlobal;
  s.lanes = 1;
  s.pools = {1, 1};
  s.reassign_every = 3;
  s.mixture = MixtureState{{5, 6}, {{0, {3221225472, 1073741824}}, {1200, {1u << 31, 1u << 31}}}};
  s.epoch_draws = 500;
  return s;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out(text);
  const size_t at = out.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return out.replace(at, what.size(), by);
}

TEST(StateTextTest, texts_of_version_1_are_read_and_written_as_they_were) {
  EXPECT_EQ(read_state(kOne).value(), one());
  EXPECT_EQ(read_state(kBlend).value(), blend());
  EXPECT_EQ(state_text(one()), kOne);
  EXPECT_EQ(state_text(blend()), kBlend);
}

TEST(StateTextTest, other_spacing_and_more_members_are_no_matter) {
  std::string tight(kBlend);
  std::erase(tight, ' ');
  EXPECT_EQ(read_state(tight).value(), blend());
  EXPECT_EQ(read_state(replaced(kOne, "{", R"({"note": {"by": ["a", null]}, )")).value(), one());
}

TEST(StateTextTest, a_member_that_is_missing_is_named) {
  for (const std::string_view name :
       {"plan_version", "fingerprint", "seed", "mode", "lanes", "pools", "reassign_every", "epoch",
        "g", "offsets", "schedule", "epoch_draws"}) {
    const std::string quoted = '"' + std::string(name) + '"';
    const Status s = read_state(replaced(kBlend, quoted, "\"other\"")).status();
    EXPECT_EQ(s.message(),
              "the state has no '" + std::string(name) + "': it is not one of headrace's");
  }
}

TEST(StateTextTest, a_member_of_another_type_is_named) {
  const std::vector<std::tuple<const char*, const char*, const char*>> cases{
      {R"("seed": 7)", R"("seed": "7")", "seed"},
      {R"("seed": 7)", R"("seed": -7)", "seed"},
      {R"("seed": 7)", R"("seed": 7.5)", "seed"},
      {R"("seed": 7)", R"("seed": 18446744073709551616)", "seed"},
      {R"("mode": 1)", R"("mode": 300)", "mode"},
      {R"("lanes": 1)", R"("lanes": 4294967296)", "lanes"},
      {R"([1, 1])", "5", "pools"},
      {R"([1, 1])", "[1, true]", "pools"},
      {R"("f00d")", "7", "fingerprint"},
      {R"([5, 6])", R"(["a"])", "offsets"},
      {R"([1200, [)", R"([1200, 3, [)", "schedule"},
      {R"([1200, [)", R"(["a", [)", "schedule"},
      {R"([0, [3221225472, 1073741824]])", R"([0, 7])", "schedule"},
      {R"("epoch_draws": 500)", R"("epoch_draws": null)", "epoch_draws"}};
  for (const auto& [what, by, name] : cases)
    EXPECT_EQ(read_state(replaced(kBlend, what, by)).status().message(),
              "the state's '" + std::string(name) + "' is of another type than headrace writes")
        << by;
}

TEST(StateTextTest, what_is_no_state_is_refused) {
  EXPECT_EQ(read_state("{}").status().message(),
            "this is not a state of headrace: it has no 'headrace' entry");
  EXPECT_EQ(read_state("[1]").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(read_state("no JSON").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(read_state(replaced(kOne, R"("headrace": 1)", R"("headrace": 2)")).status().message(),
            "the state has version 2, this headrace reads 1");
  EXPECT_EQ(read_state(replaced(kOne, R"("headrace": 1)", R"("headrace": null)")).status().code(),
            Code::kInvalidArgument);
}

TEST(StateTextTest, a_plan_goes_on_from_the_text_of_its_state) {
  const std::vector<uint32_t> sizes(100, 10);
  const PlanOptions options{
      .seed = 7, .shuffle = Shuffle::kPool, .weights = {3, 1}, .epoch_draws = 500};
  const auto plan = Plan::make({make_source(sizes, "a"), make_source(sizes, "b")}, options).value();
  ASSERT_TRUE(plan->set_weights({1, 2}, 1200).ok());
  const PlanState state = plan->state({2, 30});
  EXPECT_EQ(read_state(state_text(state)).value(), state);
}

}  // namespace
}  // namespace headrace
