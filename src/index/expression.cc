// SPDX-License-Identifier: Apache-2.0
//
// Evaluation, a node at a time over all rows: a million rows cost some ten milliseconds a test.
#include "index/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>

namespace headrace {
namespace {

// A value of a row, borrowed.  A long double holds every int64 and every double exactly.
struct Value {
  bool present = true;
  bool is_text = false;
  long double number = 0;
  std::string_view text = {};
};

Value value_of(const Literal& literal) {
  if (const auto* text = std::get_if<std::string>(&literal))
    return {.is_text = true, .text = *text};
  if (const auto* number = std::get_if<int64_t>(&literal))
    return {.number = static_cast<long double>(*number)};
  return {.number = std::get<double>(literal)};
}

Value value_of(const FieldColumn& column, size_t row) {
  Value out{.present = column.present[row] != 0};
  switch (column.type) {
    case ColumnType::kInt:
      out.number = static_cast<long double>(column.ints[row]);
      break;
    case ColumnType::kFloat:
      out.number = column.floats[row];
      break;
    case ColumnType::kText:
      out.is_text = true;
      out.text = column.texts[row];
      break;
  }
  return out;
}

std::partial_ordering order(const Value& a, const Value& b) {
  return a.is_text ? std::partial_ordering(a.text <=> b.text) : a.number <=> b.number;
}

bool holds(Comparison comparison, std::partial_ordering o) {
  switch (comparison) {
    case Comparison::kEqual:
      return o == 0;
    case Comparison::kNotEqual:
      return o != 0;
    case Comparison::kLess:
      return o < 0;
    case Comparison::kLessEqual:
      return o <= 0;
    case Comparison::kGreater:
      return o > 0;
    case Comparison::kGreaterEqual:
      return o >= 0;
  }
  return false;
}

// `list` is sorted.  A value that is not a number is in none.
bool is_in(const Value& value, const std::vector<Literal>& list) {
  const auto it = std::lower_bound(
      list.begin(), list.end(), value,
      [](const Literal& literal, const Value& v) { return order(value_of(literal), v) < 0; });
  return it != list.end() && order(value_of(*it), value) == 0;
}

bool is_text(const Literal& literal) {
  return std::holds_alternative<std::string>(literal);
}

}  // namespace

Status Expression::check_test(const Node& node, std::span<const ColumnType> types) const {
  const auto wants_text = [&](const Operand& o) {
    return o.column < 0 ? is_text(o.literal)
                        : types[static_cast<size_t>(o.column)] == ColumnType::kText;
  };
  const bool a = wants_text(node.a);
  const bool b = node.form == Form::kIn ? is_text(node.list.front()) : wants_text(node.b);
  if (a == b) return {};
  return invalid(
      fmt::format("'{}', position {}: a text is compared with a number", text_, node.a.at + 1));
}

Status Expression::check(std::span<const ColumnType> types) const {
  for (const Node& node : nodes_)
    if (node.form == Form::kCompare || node.form == Form::kIn)
      HEADRACE_TRY(check_test(node, types));
  return {};
}

std::vector<uint8_t> Expression::node_mask(uint32_t number, std::span<const FieldColumn> columns,
                                           size_t rows) const {
  const Node& node = nodes_[number];
  if (node.form == Form::kEither || node.form == Form::kBoth) {
    std::vector<uint8_t> mask = node_mask(node.left, columns, rows);
    const std::vector<uint8_t> other = node_mask(node.right, columns, rows);
    for (size_t r = 0; r < rows; ++r)
      mask[r] = node.form == Form::kBoth ? mask[r] & other[r] : mask[r] | other[r];
    return mask;
  }
  if (node.form == Form::kNot) {
    std::vector<uint8_t> mask = node_mask(node.left, columns, rows);
    for (uint8_t& m : mask) m ^= 1;
    return mask;
  }
  const auto operand = [&](const Operand& o, size_t row) {
    return o.column < 0 ? value_of(o.literal)
                        : value_of(columns[static_cast<size_t>(o.column)], row);
  };
  std::vector<uint8_t> mask(rows);
  for (size_t r = 0; r < rows; ++r) {
    const Value a = operand(node.a, r);
    if (!a.present) continue;
    if (node.form == Form::kIn) {
      mask[r] = is_in(a, node.list) != node.negated;
      continue;
    }
    const Value b = operand(node.b, r);
    mask[r] = b.present && holds(node.comparison, order(a, b));
  }
  return mask;
}

std::vector<uint8_t> Expression::evaluate(std::span<const FieldColumn> columns, size_t rows) const {
  return node_mask(root_, columns, rows);
}

}  // namespace headrace
