// SPDX-License-Identifier: Apache-2.0
#include "codec/json_array.h"

#include <charconv>
#include <limits>
#include <string>

namespace headrace {
namespace {

constexpr size_t kMostAxes = 32;  // as many as NumPy 1 allows
constexpr int64_t kExact = int64_t{1} << 53;
constexpr std::string_view kSpace = " \t\r\n";

// From left to right.  One thread at a time.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : text_(text) {}

  Status run() {
    for (bool more = true; more;) {
      space();
      if (take('['))
        HEADRACE_TRY(open());
      else
        HEADRACE_TRY(number());
      // A list that is full ends the one around it, perhaps.
      for (;;) {
        space();
        if (open_.empty()) {
          more = false;
          break;
        }
        if (take(',')) {
          if (open_.back().count == 0) return wrong("a ',' before the first value");
          break;
        }
        if (!take(']')) {
          if (open_.back().count > 0) return wrong("no ',' and no ']'");
          break;  // the first value of a list that was just opened
        }
        HEADRACE_TRY(close());
      }
    }
    space();
    return at_ == text_.size() ? Status() : wrong("text after the list");
  }

  JsonArray result;

 private:
  struct Open {
    int64_t count = 0;
  };

  Status wrong(std::string_view what) const {
    return corrupt("no list of numbers in JSON: " + std::string(what)).at(at_);
  }
  void space() {
    while (at_ < text_.size() && kSpace.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (!text_.substr(at_).starts_with(w)) return false;
    at_ += w.size();
    return true;
  }

  Status open() {
    HEADRACE_TRY(child(false));
    if (open_.size() >= kMostAxes) return wrong("lists nest too deep");
    open_.push_back({});
    if (result.shape.size() < open_.size()) {
      // Only on the way down to the first number may an axis be new.
      if (result.size() > 0) return wrong("numbers and lists beside each other");
      result.shape.push_back(-1);
    }
    return {};
  }

  // A value of the list that is open.
  Status child(bool is_number) {
    if (open_.empty()) return is_number ? wrong("it does not begin with '['") : Status();
    ++open_.back().count;
    if (is_number && depth_ == 0) depth_ = open_.size();
    if (is_number && result.shape.size() != open_.size())  // [[], 1]
      return wrong("numbers and lists beside each other");
    if (is_number ? open_.size() != depth_ : depth_ > 0 && open_.size() >= depth_)
      return wrong("numbers and lists beside each other");
    return {};
  }

  Status close() {
    const int64_t count = open_.back().count;
    int64_t& extent = result.shape[open_.size() - 1];
    if (extent >= 0 && extent != count)
      return wrong("lists of different lengths beside each other");
    extent = count;
    open_.pop_back();
    return {};
  }

  Status number() {
    HEADRACE_TRY(child(true));
    const bool yes = word("true");
    if (yes || word("false")) {
      result.has_truth_values = true;
      return add(yes ? 1 : 0);
    }
    if (word("NaN")) return add_real(std::numeric_limits<double>::quiet_NaN());
    if (word("Infinity")) return add_real(std::numeric_limits<double>::infinity());
    if (word("-Infinity")) return add_real(-std::numeric_limits<double>::infinity());
    const size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    const char* first = text_.data() + at_;
    const char* last = text_.data() + end;
    int64_t integer = 0;
    const auto whole = std::from_chars(first, last, integer);
    if (first != last && whole.ptr == last) {
      if (whole.ec != std::errc()) return wrong("a number beyond 64 bits");
      at_ = end;
      return add(integer);
    }
    double real = 0;
    const auto read = std::from_chars(first, last, real);
    if (first == last || read.ptr != last || read.ec != std::errc()) return wrong("no number");
    at_ = end;
    return add_real(real);
  }

  Status add(int64_t value) {
    if (!result.is_real) {
      result.integers.push_back(value);
      return {};
    }
    if (value > kExact || value < -kExact) return wrong("a large integer among fractions");
    result.reals.push_back(static_cast<double>(value));
    return {};
  }
  Status add_real(double value) {
    HEADRACE_TRY(result.make_real());
    result.reals.push_back(value);
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Open> open_;
  size_t depth_ = 0;  // of the numbers; 0: none was seen
};

}  // namespace

Status JsonArray::make_real() {
  if (is_real) return {};
  reals.reserve(integers.size());
  for (const int64_t value : integers) {
    if (value > kExact || value < -kExact)
      return invalid("an integer beyond 2^53 among numbers that are no integers");
    reals.push_back(static_cast<double>(value));
  }
  integers.clear();
  is_real = true;
  return {};
}

bool begins_json_list(Bytes value) {
  const std::string_view text = as_text(value);
  const size_t first = text.find_first_not_of(kSpace);
  return first != std::string_view::npos && text[first] == '[';
}

Result<JsonArray> parse_json_array(Bytes value) {
  ListReader reader(as_text(value));
  HEADRACE_TRY(reader.run());
  // Axes below an empty list were never seen: [[], []] is (2, 0).
  for (int64_t& extent : reader.result.shape)
    if (extent < 0) return corrupt("no list of numbers in JSON").at(value.size());
  return std::move(reader.result);
}

}  // namespace headrace
