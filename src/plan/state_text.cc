// SPDX-License-Identifier: Apache-2.0
#include "plan/state_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "base/json.h"

namespace headrace {
namespace {

Status wrong_type(std::string_view name) {
  return invalid(fmt::format("the state's '{}' is of another type than headrace writes", name));
}

Result<const Json*> member(const Json& object, std::string_view name) {
  const Json* found = object.find(name);
  if (found == nullptr)
    return invalid(fmt::format("the state has no '{}': it is not one of headrace's", name));
  return found;
}

template <typename T>
Status read_number(const Json& object, std::string_view name, T& out) {
  HEADRACE_ASSIGN(const Json* value, member(object, name));
  const auto number = value->count();
  if (!number || *number > std::numeric_limits<T>::max()) return wrong_type(name);
  out = static_cast<T>(*number);
  return {};
}

Status read_list(const Json& list, std::string_view name, std::vector<uint64_t>& out) {
  if (!list.is_list()) return wrong_type(name);
  for (const Json& item : list.items()) {
    const auto number = item.count();
    if (!number) return wrong_type(name);
    out.push_back(*number);
  }
  return {};
}

Status read_numbers(const Json& object, std::string_view name, std::vector<uint64_t>& out) {
  HEADRACE_ASSIGN(const Json* value, member(object, name));
  return read_list(*value, name, out);
}

Status check_version(const Json& state) {
  const Json* version = state.find("headrace");
  if (version == nullptr)
    return invalid("this is not a state of headrace: it has no 'headrace' entry");
  if (version->count() == kStateVersion) return {};
  return invalid(fmt::format("the state has version {}, this headrace reads {}", version->text(),
                             kStateVersion));
}

Status read_schedule(const Json& mixture, std::vector<WeightChange>& out) {
  HEADRACE_ASSIGN(const Json* schedule, member(mixture, "schedule"));
  if (!schedule->is_list()) return wrong_type("schedule");
  for (const Json& pair : schedule->items()) {
    if (!pair.is_list() || pair.items().size() != 2) return wrong_type("schedule");
    const auto draw = pair.items()[0].count();
    if (!draw) return wrong_type("schedule");
    WeightChange& change = out.emplace_back();
    change.draw = *draw;
    HEADRACE_TRY(read_list(pair.items()[1], "schedule", change.weights));
  }
  return {};
}

Status read_mixture(const Json& state, PlanState& out) {
  const Json* mixture = state.find("mixture");
  if (mixture == nullptr) return {};
  if (!mixture->is_object()) return wrong_type("mixture");
  out.mixture.emplace();
  HEADRACE_TRY(read_numbers(*mixture, "offsets", out.mixture->offsets));
  HEADRACE_TRY(read_schedule(*mixture, out.mixture->schedule));
  return read_number(state, "epoch_draws", out.epoch_draws);
}

}  // namespace

std::string state_text(const PlanState& s) {
  std::string out = fmt::format(
      R"({{"headrace": {}, "plan_version": {}, "fingerprint": {}, "seed": {}, "mode": {}, )"
      R"("lanes": {}, "pools": [{}], "reassign_every": {}, "epoch": {}, "g": {})",
      kStateVersion, s.plan_version, json_quoted(s.fingerprint), s.seed, static_cast<int>(s.mode),
      s.lanes, fmt::join(s.pools, ", "), s.reassign_every, s.epoch, s.g);
  if (s.mixture) {
    std::vector<std::string> changes;
    for (const WeightChange& c : s.mixture->schedule)
      changes.push_back(fmt::format("[{}, [{}]]", c.draw, fmt::join(c.weights, ", ")));
    out +=
        fmt::format(R"(, "mixture": {{"offsets": [{}], "schedule": [{}]}}, "epoch_draws": {})",
                    fmt::join(s.mixture->offsets, ", "), fmt::join(changes, ", "), s.epoch_draws);
  }
  return out + "}";
}

Result<PlanState> read_state(std::string_view text) {
  auto parsed = Json::parse(text);
  if (!parsed.ok()) return invalid(parsed.status().with("the state is no JSON").text());
  const Json& json = parsed.value();
  HEADRACE_TRY(check_version(json));
  PlanState s;
  HEADRACE_TRY(read_number(json, "plan_version", s.plan_version));
  HEADRACE_ASSIGN(const Json* fingerprint, member(json, "fingerprint"));
  if (!fingerprint->is_text()) return wrong_type("fingerprint");
  s.fingerprint = fingerprint->text();
  HEADRACE_TRY(read_number(json, "seed", s.seed));
  uint8_t mode = 0;
  HEADRACE_TRY(read_number(json, "mode", mode));
  s.mode = static_cast<OrderMode>(mode);
  HEADRACE_TRY(read_number(json, "lanes", s.lanes));
  HEADRACE_TRY(read_numbers(json, "pools", s.pools));
  HEADRACE_TRY(read_number(json, "reassign_every", s.reassign_every));
  HEADRACE_TRY(read_number(json, "epoch", s.epoch));
  HEADRACE_TRY(read_number(json, "g", s.g));
  HEADRACE_TRY(read_mixture(json, s));
  return s;
}

}  // namespace headrace
