// SPDX-License-Identifier: Apache-2.0
//
// The parser: recursive descent, as deep as kMostDepth, over text of at most kMostBytes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "index/expression.h"

namespace headrace {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // a list of a hundred thousand numbers
constexpr int kMostDepth = 64;
constexpr size_t kMostNodes = 1024;  // evaluation goes as deep as there are nodes

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c) || c == '.';
}

bool literal_less(const Literal& a, const Literal& b) {
  if (const auto* text = std::get_if<std::string>(&a)) return *text < std::get<std::string>(b);
  const auto number = [](const Literal& l) {
    const auto* whole = std::get_if<int64_t>(&l);
    return whole != nullptr ? static_cast<long double>(*whole)
                            : static_cast<long double>(std::get<double>(l));
  };
  return number(a) < number(b);
}

}  // namespace

// One thread at a time; parses once.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) { out_.text_ = text; }

  Result<Expression> run() {
    if (out_.text_.size() > kMostBytes) return invalid("an expression of more than 1 MiB");
    HEADRACE_ASSIGN(out_.root_, either());
    skip_blanks();
    if (at_ < text().size()) return unexpected("'and', 'or' or the end");
    return std::move(out_);
  }

 private:
  using Node = Expression::Node;
  using Form = Expression::Form;
  using Operand = Expression::Operand;

  std::string_view text() const { return out_.text_; }
  void skip_blanks() {
    while (at_ < text().size() && std::string_view(" \t\r\n").find(text()[at_]) != text().npos)
      ++at_;
  }
  Status fail(size_t at, std::string_view what) const {
    const std::string_view shown = text().substr(0, 200);
    return invalid(fmt::format("'{}{}', position {}: {}", shown,
                               shown.size() < text().size() ? "…" : "", at + 1, what));
  }
  Status unexpected(std::string_view wanted) const {
    if (at_ >= text().size()) return fail(at_, fmt::format("{} is missing", wanted));
    const char c = text()[at_];
    const char* hint = "";
    if (c == '=') hint = "; equality is ==";
    if (c == '&') hint = "; write 'and'";
    if (c == '|') hint = "; write 'or'";
    if (c == '!') hint = "; write 'not'";
    return fail(at_, fmt::format("{} is wanted, not '{}'{}", wanted, word_here(), hint));
  }
  std::string_view word_here() const {
    size_t end = at_;
    while (end < text().size() && end - at_ < 40 && is_name_part(text()[end])) ++end;
    return text().substr(at_, std::max<size_t>(end - at_, 1));
  }

  bool take(std::string_view symbol) {
    skip_blanks();
    if (!text().substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    const std::string_view rest = text().substr(at_);
    if (!rest.starts_with(word) || (rest.size() > word.size() && is_name_part(rest[word.size()])))
      return false;
    at_ += word.size();
    return true;
  }

  uint32_t add(Node node) {
    out_.nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(out_.nodes_.size() - 1);
  }

  Result<uint32_t> either() {
    if (++depth_ > kMostDepth) return fail(at_, "too many brackets within each other");
    HEADRACE_ASSIGN(uint32_t left, both());
    while (take_word("or")) {
      HEADRACE_ASSIGN(const uint32_t right, both());
      left = add({.form = Form::kEither, .left = left, .right = right});
    }
    --depth_;
    return left;
  }

  Result<uint32_t> both() {
    HEADRACE_ASSIGN(uint32_t left, no());
    while (take_word("and")) {
      HEADRACE_ASSIGN(const uint32_t right, no());
      left = add({.form = Form::kBoth, .left = left, .right = right});
    }
    return left;
  }

  Result<uint32_t> no() {
    bool negated = false;
    while (take_word("not")) negated = !negated;
    uint32_t node = 0;
    if (take("(")) {
      HEADRACE_ASSIGN(node, either());
      if (!take(")")) return unexpected("')'");
    } else {
      HEADRACE_ASSIGN(node, test());
    }
    return negated ? add({.form = Form::kNot, .left = node}) : node;
  }

  std::optional<Comparison> take_comparison() {
    if (take("==")) return Comparison::kEqual;
    if (take("!=")) return Comparison::kNotEqual;
    if (take("<=")) return Comparison::kLessEqual;
    if (take(">=")) return Comparison::kGreaterEqual;
    if (take("<")) return Comparison::kLess;
    if (take(">")) return Comparison::kGreater;
    return {};
  }

  Result<uint32_t> test() {
    if (out_.nodes_.size() > kMostNodes) return fail(at_, "too many tests; take field in [...]");
    HEADRACE_ASSIGN(Operand a, operand());
    const bool negated = take_word("not");
    if (take_word("in")) return in_list(std::move(a), negated);
    if (negated) return unexpected("'in'");
    std::optional<Comparison> comparison = take_comparison();
    if (!comparison) return unexpected("a comparison (== != < <= > >= in)");
    std::optional<uint32_t> all;
    for (; comparison; comparison = take_comparison()) {
      HEADRACE_ASSIGN(Operand b, operand());
      if (out_.nodes_.size() > kMostNodes) return fail(at_, "too many tests");
      const uint32_t node =
          add({.form = Form::kCompare, .a = a, .b = b, .comparison = *comparison});
      all = all ? add({.form = Form::kBoth, .left = *all, .right = node}) : node;
      a = std::move(b);
    }
    return *all;
  }

  Result<uint32_t> in_list(Operand a, bool negated) {
    if (!take("[")) return unexpected("'['");
    Node node{.form = Form::kIn, .a = std::move(a), .negated = negated};
    do {
      skip_blanks();
      const size_t begin = at_;
      HEADRACE_ASSIGN(Operand item, operand());
      if (item.column >= 0) return fail(begin, "a list holds numbers or texts");
      if (!node.list.empty() && std::holds_alternative<std::string>(node.list.front()) !=
                                    std::holds_alternative<std::string>(item.literal))
        return fail(begin, "a list holds numbers or texts, not both");
      node.list.push_back(std::move(item.literal));
    } while (take(","));
    if (!take("]")) return unexpected("',' or ']'");
    std::sort(node.list.begin(), node.list.end(), literal_less);
    return add(std::move(node));
  }

  Result<Operand> operand() {
    skip_blanks();
    Operand out{.at = at_};
    const char c = at_ < text().size() ? text()[at_] : '\0';
    if (c == '\'' || c == '"' || c == '`') {
      const size_t end = text().find(c, at_ + 1);
      if (end == text().npos) return fail(at_, fmt::format("a {} that does not end", c));
      const std::string_view inside = text().substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      if (c == '`')
        out.column = column(inside);
      else
        out.literal = std::string(inside);
      return out;
    }
    if (is_digit(c) || c == '-' || c == '+' || c == '.') {
      HEADRACE_ASSIGN(out.literal, number());
      return out;
    }
    if (!is_name_start(c)) return unexpected("a field, a number or a text");
    size_t end = at_;
    while (end < text().size() && is_name_part(text()[end])) ++end;
    const std::string_view name = text().substr(at_, end - at_);
    if (name == "and" || name == "or" || name == "not" || name == "in")
      return unexpected("a field, a number or a text");
    at_ = end;
    out.column = column(name);
    return out;
  }

  Result<Literal> number() {
    const size_t begin = at_;
    if (text()[at_] == '+') ++at_;
    const char* const from = text().data() + at_;
    const char* const end = text().data() + text().size();
    int64_t whole = 0;
    double real = 0;
    const auto as_whole = std::from_chars(from, end, whole);
    const auto as_real = std::from_chars(from, end, real);
    if (as_real.ec != std::errc()) return fail(begin, "a number that cannot be read");
    at_ = static_cast<size_t>(as_real.ptr - text().data());
    // Not a number: it has no place in an order.
    if (real != real || (at_ < text().size() && is_name_part(text()[at_])))
      return fail(begin, "a number that cannot be read");
    if (as_whole.ec == std::errc() && as_whole.ptr == as_real.ptr) return Literal(whole);
    return Literal(real);
  }

  int64_t column(std::string_view name) {
    const auto it = std::find(out_.names_.begin(), out_.names_.end(), name);
    if (it != out_.names_.end()) return it - out_.names_.begin();
    out_.names_.emplace_back(name);
    return static_cast<int64_t>(out_.names_.size()) - 1;
  }

  Expression out_;
  size_t at_ = 0;
  int depth_ = 0;
};

Result<Expression> Expression::parse(std::string_view text) {
  return ExpressionParser(text).run();
}

}  // namespace headrace
