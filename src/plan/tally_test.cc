// SPDX-License-Identifier: Apache-2.0
//
// Prints what the property tests went through: CI's summary shows the line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/test_support.h"

namespace headrace {

Tally& tally() {
  static Tally t;
  return t;
}

namespace {

class PrintTally final : public ::testing::Environment {
 public:
  void TearDown() override {
    fmt::print("shapes: {}  resumes: {}\n", tally().shapes, tally().resumes);
    ::testing::Test::RecordProperty("shapes", std::to_string(tally().shapes));
    ::testing::Test::RecordProperty("resumes", std::to_string(tally().resumes));
  }
};

const ::testing::Environment* const kPrintTally =
    ::testing::AddGlobalTestEnvironment(new PrintTally);

}  // namespace
}  // namespace headrace
