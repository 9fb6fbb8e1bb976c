// SPDX-License-Identifier: Apache-2.0
#include "transform/params.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "transform/parameters.h"

namespace headrace {
namespace {

std::optional<double> as_number(const Param& p) {
  if (const auto* d = std::get_if<double>(&p)) return *d;
  if (const auto* i = std::get_if<int64_t>(&p)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<std::vector<double>> as_numbers(const Param& p) {
  if (const auto* list = std::get_if<std::vector<double>>(&p)) return *list;
  if (const auto one = as_number(p)) return std::vector<double>{*one};
  return std::nullopt;
}

void note(const std::string& name, std::string_view type, std::optional<Param> fallback = {}) {
  if (ParamRecorder* recorder = ParamRecorder::current())
    recorder->note(name, type, std::move(fallback));
}

ParamRecorder*& this_threads_recorder() {
  static thread_local ParamRecorder* recorder = nullptr;
  return recorder;
}

bool is_integer(double v) {
  return v == std::floor(v) && std::abs(v) <= std::numeric_limits<int>::max();
}

// Letters to change, insert or drop to get from a to b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

ParamRecorder::ParamRecorder() {
  this_threads_recorder() = this;
}

ParamRecorder::~ParamRecorder() {
  this_threads_recorder() = nullptr;
}

ParamRecorder* ParamRecorder::current() {
  return this_threads_recorder();
}

void ParamRecorder::note(const std::string& name, std::string_view type,
                         std::optional<Param> fallback) {
  if (!taken_.empty() && taken_.back().name == name) {
    if (!taken_.back().type.empty()) return;
    taken_.back().type = type;
    taken_.back().fallback = std::move(fallback);
    return;
  }
  taken_.push_back({name, type, std::move(fallback)});
}

void ParamRecorder::note_word(const std::string& name, std::string_view word) {
  taken_.push_back({name, "", {}, {std::string(word)}});
}

bool Params::find(const std::string& name, Param& out) {
  known_.push_back(name);
  auto node = values_.extract(name);
  if (node) out = std::move(node.mapped());
  return !node.empty();
}

void Params::wrong(const std::string& name, std::string_view wanted) {
  if (problem_.empty()) problem_ = "parameter '" + name + "' must be " + std::string(wanted);
}

void Params::missing(const std::string& name) {
  if (problem_.empty()) problem_ = "parameter '" + name + "' is missing";
}

double Params::take_number(const std::string& name, double fallback) {
  note(name, "number", fallback);
  Param p;
  if (!find(name, p)) return fallback;
  const auto number = as_number(p);
  if (!number) wrong(name, "a number");
  return number.value_or(fallback);
}

bool Params::take_flag(const std::string& name, bool fallback) {
  note(name, "flag", fallback);
  Param p;
  if (!find(name, p)) return fallback;
  if (const auto* flag = std::get_if<bool>(&p)) return *flag;
  wrong(name, "True or False");
  return fallback;
}

std::string Params::take_text(const std::string& name, std::string fallback) {
  note(name, "text", fallback);
  Param p;
  if (!find(name, p)) return fallback;
  if (auto* text = std::get_if<std::string>(&p)) return std::move(*text);
  wrong(name, "a string");
  return fallback;
}

std::vector<double> Params::take_numbers(const std::string& name, std::vector<double> fallback) {
  note(name, "numbers", fallback);
  Param p;
  if (!find(name, p)) return fallback;
  auto numbers = as_numbers(p);
  if (!numbers) wrong(name, "a number or a list of numbers");
  return numbers ? std::move(*numbers) : fallback;
}

std::vector<double> Params::need_numbers(const std::string& name) {
  note(name, "numbers");
  if (!values_.contains(name)) missing(name);
  return take_numbers(name, {});
}

std::string Params::need_text(const std::string& name) {
  note(name, "text");
  if (!values_.contains(name)) missing(name);
  return take_text(name, "");
}

std::vector<int> Params::take_integers(const std::string& name, std::vector<int> fallback) {
  note(name, "integers", std::vector<double>(fallback.begin(), fallback.end()));
  return values_.contains(name) ? need_integers(name) : (known_.push_back(name), fallback);
}

int Params::take_integer(const std::string& name, int fallback) {
  note(name, "integer", static_cast<int64_t>(fallback));
  const auto list = take_integers(name, {fallback});
  if (list.size() != 1) wrong(name, "a whole number");
  return list.empty() ? fallback : list[0];
}

bool Params::take_word(const std::string& name, std::string_view word) {
  if (ParamRecorder* recorder = ParamRecorder::current()) recorder->note_word(name, word);
  const auto found = values_.find(name);
  if (found == values_.end()) return false;
  const auto* text = std::get_if<std::string>(&found->second);
  if (text == nullptr) return false;
  if (*text != word) wrong(name, "numbers or '" + std::string(word) + "'");
  values_.erase(found);
  return true;
}

std::vector<int> Params::need_integers(const std::string& name) {
  note(name, "integers");
  std::vector<int> out;
  for (const double v : need_numbers(name)) {
    if (!is_integer(v)) {
      wrong(name, "a whole number or a list of them");
      return {};
    }
    out.push_back(static_cast<int>(v));
  }
  return out;
}

Status Params::done() const {
  if (!values_.empty()) {
    std::string text = "unknown parameter '" + values_.begin()->first + "'";
    std::string known;
    for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
    return invalid(text + (known.empty() ? "; it takes none" : "; it takes " + known));
  }
  if (!problem_.empty()) return invalid(problem_);
  return {};
}

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names) {
  std::string_view best;
  size_t least = std::min<size_t>(2, word.size() > 1 ? (word.size() - 1) / 2 : 0) + 1;
  for (const std::string_view name : names) {
    const size_t d = edit_distance(word, name);
    if (d < least) {
      least = d;
      best = name;
    }
  }
  return best;
}

}  // namespace headrace
