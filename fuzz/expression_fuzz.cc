// SPDX-License-Identifier: Apache-2.0
//
// Any text as an expression: an error, or a condition that checks and evaluates on columns of
// numbers, texts and gaps.  The first byte chooses the columns' types.

#include <cstdlib>
#include <limits>

#include "base/bytes.h"
#include "index/expression.h"

namespace headrace {
namespace {

constexpr size_t kRows = 5;

FieldColumn make_column(ColumnType type) {
  FieldColumn out{.type = type, .present = {1, 1, 1, 0, 1}};
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (type == ColumnType::kInt) out.ints = {0, -1, kMost, 0, 7};
  if (type == ColumnType::kFloat) out.floats = {0, -0.5, 1e300, 0, kNan};
  if (type == ColumnType::kText) out.texts = {"", "a", "web", "", "\xff"};
  return out;
}

void evaluate(const Expression& expression, unsigned choice) {
  std::vector<ColumnType> types;
  std::vector<FieldColumn> columns;
  for (size_t i = 0; i < expression.names().size(); ++i, choice = choice / 3 + choice * 64) {
    types.push_back(static_cast<ColumnType>(choice % 3));
    columns.push_back(make_column(types.back()));
  }
  if (!expression.check(types).ok()) return;
  const std::vector<uint8_t> mask = expression.evaluate(columns, kRows);
  if (mask.size() != kRows) std::abort();
  for (const uint8_t m : mask)
    if (m > 1) std::abort();
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size == 0) return 0;
  const auto parsed = Expression::parse(as_text(std::as_bytes(std::span(data + 1, size - 1))));
  if (parsed.ok()) evaluate(parsed.value(), data[0]);
  return 0;
}
