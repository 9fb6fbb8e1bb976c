// SPDX-License-Identifier: Apache-2.0
//
// The state of one source as JSON: one object of numbers, a text, and a list of numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <string_view>

#include "api/inside.h"
#include "codec/json.h"

namespace hr {
namespace {

constexpr int kStateVersion = 1;  // of the JSON, as in headrace/batch.py

// The members of a good JSON object, each as the text of its value.
std::map<std::string, std::string_view> members_of(std::string_view json) {
  std::map<std::string, std::string_view> out;
  constexpr std::string_view kSpace = " \t\r\n";
  size_t at = json.find('{') + 1;
  while (true) {
    at = json.find_first_not_of(std::string(kSpace) + ",", at);
    if (at >= json.size() || json[at] != '"') return out;
    const size_t name_end = json.find('"', at + 1);
    const std::string name(json.substr(at + 1, name_end - at - 1));
    const size_t from = json.find_first_not_of(kSpace, json.find(':', name_end) + 1);
    size_t to = from;
    int depth = 0;
    bool quoted = false;
    for (; to < json.size(); ++to) {
      const char c = json[to];
      if (c == '"' && (to == from || json[to - 1] != '\\')) quoted = !quoted;
      if (quoted) continue;
      if (depth == 0 && (c == ',' || c == '}')) break;
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') --depth;
    }
    size_t end = to;
    while (end > from && kSpace.find(json[end - 1]) != std::string_view::npos) --end;
    out[name] = json.substr(from, end - from);
    at = to;
  }
}

class StateReader {
 public:
  explicit StateReader(std::string_view json) : members_(members_of(json)) {}

  template <typename T = uint64_t>
  T number(const std::string& name) const {
    return parse<T>(need(name), name);
  }
  std::string text(const std::string& name) const {
    const std::string_view value = need(name);
    if (value.size() < 2 || value.front() != '"') wrong(name);
    return std::string(value.substr(1, value.size() - 2));
  }
  std::vector<uint64_t> numbers(const std::string& name) const {
    std::string_view value = need(name);
    if (value.size() < 2 || value.front() != '[') wrong(name);
    value = value.substr(1, value.size() - 2);
    std::vector<uint64_t> out;
    for (size_t at = 0; at < value.size();) {
      const size_t from = value.find_first_not_of(" \t\r\n,", at);
      if (from == std::string_view::npos) break;
      at = std::min(value.find_first_of(" \t\r\n,", from), value.size());
      out.push_back(parse<uint64_t>(value.substr(from, at - from), name));
    }
    return out;
  }
  bool has(const std::string& name) const { return members_.contains(name); }

 private:
  [[noreturn]] static void wrong(const std::string& name) {
    raise(headrace::invalid(
        fmt::format("the state's '{}' is of another type than headrace writes", name)));
  }
  template <typename T>
  static T parse(std::string_view text, const std::string& name) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) wrong(name);
    return value;
  }
  std::string_view need(const std::string& name) const {
    const auto found = members_.find(name);
    if (found == members_.end())
      raise(headrace::invalid(
          fmt::format("the state has no '{}': it is not one of headrace's", name)));
    return found->second;
  }

  const std::map<std::string, std::string_view> members_;
};

}  // namespace

std::string state_text(const headrace::PlanState& s) {
  return fmt::format(
      R"({{"headrace": {}, "plan_version": {}, "fingerprint": "{}", "seed": {}, "mode": {}, )"
      R"("lanes": {}, "pools": [{}], "reassign_every": {}, "epoch": {}, "g": {}}})",
      kStateVersion, s.plan_version, s.fingerprint, s.seed, static_cast<int>(s.mode), s.lanes,
      fmt::join(s.pools, ", "), s.reassign_every, s.epoch, s.g);
}

headrace::PlanState read_state(const std::string& text) {
  check(headrace::check_json(headrace::as_bytes(text)).with("the state"));
  const StateReader in(text);
  if (in.number<int>("headrace") != kStateVersion)
    raise(headrace::invalid(fmt::format("the state has version {}, this headrace reads {}",
                                        in.number<int>("headrace"), kStateVersion)));
  if (in.has("mixture"))
    raise(headrace::unsupported("the state is that of a blend, which is Python's alone for now"));
  headrace::PlanState s;
  s.plan_version = in.number<uint32_t>("plan_version");
  s.fingerprint = in.text("fingerprint");
  s.seed = in.number("seed");
  s.mode = static_cast<headrace::OrderMode>(in.number<uint8_t>("mode"));
  s.lanes = in.number<uint32_t>("lanes");
  s.pools = in.numbers("pools");
  s.reassign_every = in.number("reassign_every");
  s.epoch = in.number("epoch");
  s.g = in.number("g");
  return s;
}

}  // namespace hr
