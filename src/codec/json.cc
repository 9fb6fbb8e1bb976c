// SPDX-License-Identifier: Apache-2.0
#include "codec/json.h"

#include <array>
#include <string>
#include <string_view>

#include "codec/text.h"

namespace headrace {
namespace {

constexpr size_t kDeepest = 512;

// Walks over one value.  The brackets that are open are kept, not recursed into.
class JsonCheck {
 public:
  explicit JsonCheck(std::string_view text) : text_(text) {}

  Status run() {
    do {
      HEADRACE_TRY(value());
      HEADRACE_TRY(after_value());
    } while (!open_.empty());
    return at_ == text_.size() ? Status() : wrong("more than one value");
  }

 private:
  Status wrong(const char* what) const { return corrupt(std::string("not JSON: ") + what).at(at_); }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  // A scalar, or the way down to the first scalar (or empty bracket) of nested ones.
  Status value() {
    space();
    while (take('{') || take('[')) {
      const char closing = text_[at_ - 1] == '{' ? '}' : ']';
      HEADRACE_TRY(push(closing));
      space();
      if (text_.substr(at_, 1) == std::string_view(&closing, 1)) return {};
      if (closing == '}') HEADRACE_TRY(name());
      space();
    }
    return scalar();
  }

  Status push(char closing) {
    if (open_.size() == kDeepest) return wrong("nested too deeply");
    open_.push_back(closing);
    return {};
  }

  // Closes what ends here; stops before the next value of an open bracket, or at the end.
  Status after_value() {
    while (true) {
      space();
      if (open_.empty()) return {};
      if (take(open_.back())) {
        open_.pop_back();
        continue;
      }
      if (!take(','))
        return wrong(open_.back() == '}' ? "',' or '}' is wanted" : "',' or ']' is wanted");
      return open_.back() == '}' ? name() : Status();
    }
  }

  Status name() {
    space();
    if (text_.substr(at_, 1) != "\"") return wrong("a name in quotes is wanted");
    HEADRACE_TRY(string());
    space();
    return take(':') ? Status() : wrong("':' is wanted");
  }

  Status scalar() {
    if (at_ == text_.size()) return wrong("it ends where a value is wanted");
    if (text_[at_] == '"') return string();
    for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity", "-Infinity"})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return {};
      }
    return number();
  }

  Status string() {
    ++at_;  // the quote
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return {};
      }
      if (c < 0x20) return wrong("a control character in a string");
      if (c == '\\') {
        HEADRACE_TRY(escape());
      } else {
        ++at_;
      }
    }
    return wrong("a string does not end");
  }

  Status escape() {
    const std::string_view rest = text_.substr(at_ + 1);
    if (rest.empty()) return wrong("a string does not end");
    if (rest[0] != 'u') {
      if (std::string_view("\"\\/bfnrt").find(rest[0]) == std::string_view::npos)
        return wrong("an unknown escape");
      at_ += 2;
      return {};
    }
    if (rest.size() < 5 ||
        rest.substr(1, 4).find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      return wrong("\\u wants four hexadecimal digits");
    at_ += 6;
    return {};
  }

  bool digits() {
    const size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > first;
  }

  Status number() {
    take('-');
    if (!take('0') && !digits()) return wrong("a value is wanted");
    if (take('.') && !digits()) return wrong("digits are wanted after '.'");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return wrong("digits are wanted in the exponent");
    }
    return {};
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string open_;  // the brackets that close what is open
};

// Immutable, hence thread-safe.
class JsonDecoder final : public Decoder {
 public:
  const TensorSpec& output() const override { return text_->output(); }
  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    HEADRACE_TRY(check_json(inputs[0]));
    return text_->run(inputs, context, out);
  }

 private:
  const std::unique_ptr<Decoder> text_ = make_text_decoder();
};

}  // namespace

Status check_json(Bytes bytes) {
  return JsonCheck(as_text(bytes)).run();
}

std::unique_ptr<Decoder> make_json_decoder() {
  return std::make_unique<JsonDecoder>();
}

}  // namespace headrace
