// SPDX-License-Identifier: Apache-2.0
//
// Expression: a condition on the fields of a sample, as a text.
//
//   cls < 10 and not (width < 256 or source in ["web", 'scan'])
//   0 <= score < 0.5        key != "a/b"        `a name with blanks` == 3
//
//   either   := both { "or" both }
//   both     := no { "and" no }
//   no       := "not" no | "(" either ")" | test
//   test     := operand compare operand { compare operand }
//             | operand [ "not" ] "in" "[" literal { "," literal } "]"
//   compare  := "==" | "!=" | "<" | "<=" | ">" | ">="
//   operand  := name | `name` | literal
//   literal  := number | 'text' | "text"
//
// A test of a field that the sample lacks is false.  Numbers compare as numbers, exactly,
// whatever their types; texts by their bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "index/column.h"

namespace headrace {

using Literal = std::variant<int64_t, double, std::string>;

enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

// Immutable, hence thread-safe.
class Expression {
 public:
  // Bad text is kInvalidArgument and names the position, counted in bytes from 1.
  static Result<Expression> parse(std::string_view text);

  // The fields it asks for, each once; columns are given in this order.
  const std::vector<std::string>& names() const { return names_; }
  // Whether columns of these types can be compared as it says.
  Status check(std::span<const ColumnType> types) const;
  // Which of the rows fulfil it: 1 or 0 each.  Precondition: check() is OK.
  std::vector<uint8_t> evaluate(std::span<const FieldColumn> columns, size_t rows) const;

 private:
  friend class ExpressionParser;
  struct Operand {
    int64_t column = -1;  // of names_; -1: the literal
    Literal literal = {};
    size_t at = 0;  // position in the text
  };
  enum class Form : uint8_t { kEither, kBoth, kNot, kCompare, kIn };
  struct Node {
    Form form = Form::kCompare;
    uint32_t left = 0, right = 0;  // of nodes_
    Operand a = {}, b = {};
    Comparison comparison = Comparison::kEqual;
    std::vector<Literal> list = {};  // sorted
    bool negated = false;            // not in
  };

  Status check_test(const Node& node, std::span<const ColumnType> types) const;
  std::vector<uint8_t> node_mask(uint32_t node, std::span<const FieldColumn> columns,
                                 size_t rows) const;

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Node> nodes_;
  uint32_t root_ = 0;
};

}  // namespace headrace
