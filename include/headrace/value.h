// SPDX-License-Identifier: Apache-2.0
//
// What steps and options are given: numbers, lists of them, texts.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hr {

// A parameter.  The constructors keep literals from becoming something else.
class Value {
 public:
  Value(bool v) : value_(v) {}
  Value(int v) : value_(int64_t{v}) {}
  Value(int64_t v) : value_(v) {}
  Value(double v) : value_(v) {}
  Value(const char* v) : value_(std::string(v)) {}
  Value(std::string v) : value_(std::move(v)) {}
  Value(std::vector<double> v) : value_(std::move(v)) {}
  const auto& get() const { return value_; }

 private:
  std::variant<bool, int64_t, double, std::string, std::vector<double>> value_;
};

using Values = std::map<std::string, Value>;

// A number, or a list of them: 224, {224, 200}, {0.08, 1}.
class Numbers {
 public:
  Numbers() = default;
  Numbers(int v) : list_{static_cast<double>(v)} {}
  Numbers(double v) : list_{v} {}
  Numbers(std::initializer_list<double> v) : list_(v) {}
  template <std::integral T>
  Numbers(std::initializer_list<T> v) {
    for (const T one : v) list_.push_back(static_cast<double>(one));
  }
  Numbers(std::vector<double> v) : list_(std::move(v)) {}
  operator Value() const { return list_; }

 private:
  std::vector<double> list_;
};

// Numbers, or a word that stands for some.
class NumbersOrWord {
 public:
  NumbersOrWord(const Numbers& v) : value_(v) {}
  NumbersOrWord(int v) : NumbersOrWord(Numbers(v)) {}
  NumbersOrWord(double v) : NumbersOrWord(Numbers(v)) {}
  NumbersOrWord(std::initializer_list<double> v) : NumbersOrWord(Numbers(v)) {}
  NumbersOrWord(const char* word) : value_(word) {}
  NumbersOrWord(std::string word) : value_(std::move(word)) {}
  operator Value() const { return value_; }

 private:
  Value value_;
};

// Without empty lists: what is not given.
inline Values given(std::initializer_list<std::pair<const std::string, Value>> values) {
  Values out;
  for (const auto& [name, value] : values) {
    const auto* list = std::get_if<std::vector<double>>(&value.get());
    if (list == nullptr || !list->empty()) out.emplace(name, value);
  }
  return out;
}

}  // namespace hr
