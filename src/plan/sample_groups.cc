// SPDX-License-Identifier: Apache-2.0
#include "plan/sample_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace headrace {
namespace {

constexpr uint64_t kMostSamples = uint64_t{1} << 32;

Status check(std::span<const uint32_t> lengths, uint64_t most, uint64_t window,
             const char* remedy) {
  if (lengths.size() >= kMostSamples)
    return invalid("more than 2^32 samples cannot be grouped by length: take a part of the data");
  if (window == 0) return invalid("a window has at least one sample");
  if (most == 0) return invalid("a group has room for at least one token");
  for (size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] > most)
      return invalid(fmt::format("sample {} has {} tokens, and there is room for {}: {}", i,
                                 lengths[i], most, remedy));
  return {};
}

// Puts the samples of a window in order of their lengths; those of one length stay as they come.
void sort_by_length(std::span<const uint32_t> lengths, bool longest_first,
                    std::vector<uint32_t>& samples) {
  std::vector<std::pair<uint32_t, uint32_t>> keyed;  // (length, place)
  keyed.reserve(samples.size());
  for (const uint32_t sample : samples) {
    const uint32_t length = lengths[sample];
    keyed.emplace_back(longest_first ? ~length : length, static_cast<uint32_t>(keyed.size()));
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<uint32_t> sorted;
  sorted.reserve(samples.size());
  for (const auto& [length, place] : keyed) sorted.push_back(samples[place]);
  samples.swap(sorted);
}

using Bins = std::vector<std::vector<uint32_t>>;

// Each into the bin that it leaves least room in; of several such, the one that was begun first.
Bins best_fit(std::span<const uint32_t> lengths, std::vector<uint32_t> samples, uint64_t capacity) {
  sort_by_length(lengths, true, samples);
  Bins bins;
  std::set<std::pair<uint64_t, uint32_t>> by_room;  // (room, bin)
  for (const uint32_t sample : samples) {
    const uint64_t length = lengths[sample];
    uint64_t room = capacity;
    uint32_t bin = 0;
    if (const auto found = by_room.lower_bound({length, 0}); found != by_room.end()) {
      std::tie(room, bin) = *found;
      by_room.erase(found);
    } else {
      bin = static_cast<uint32_t>(bins.size());
      bins.emplace_back();
    }
    bins[bin].push_back(sample);
    if (room > length) by_room.emplace(room - length, bin);
  }
  for (auto& bin : bins) std::sort(bin.begin(), bin.end());
  std::sort(bins.begin(), bins.end());
  return bins;
}

Bins within_budget(std::span<const uint32_t> lengths, std::vector<uint32_t> samples,
                   const BatchBudget& budget) {
  if (budget.by_length) sort_by_length(lengths, false, samples);
  Bins bins;
  uint64_t sum = 0, longest = 0;
  for (const uint32_t sample : samples) {
    const uint64_t length = lengths[sample];
    const uint64_t count = bins.empty() ? 0 : bins.back().size();
    const uint64_t cost =
        budget.cost == BatchCost::kSum ? sum + length : (count + 1) * std::max(longest, length);
    const bool is_full = budget.most_samples > 0 && count >= budget.most_samples;
    if (bins.empty() || cost > budget.most || is_full) {
      bins.emplace_back();
      sum = longest = 0;
    }
    bins.back().push_back(sample);
    sum += length;
    longest = std::max(longest, length);
  }
  return bins;
}

Hash128 hash_of(std::span<const uint32_t> lengths, const GroupRule& rule) {
  Hasher out;
  out.add("sample groups").add(rule.window).add(std::as_bytes(lengths));
  if (rule.capacity > 0) return out.add("packed").add(rule.capacity).finish();
  return out.add("cut")
      .add(rule.budget.most)
      .add(static_cast<uint64_t>(rule.budget.cost))
      .add(static_cast<uint64_t>(rule.budget.by_length))
      .add(rule.budget.most_samples)
      .finish();
}

}  // namespace

void SampleGroups::add(std::span<const uint32_t> members) {
  members_.insert(members_.end(), members.begin(), members.end());
  first_.push_back(members_.size());
}

Result<std::shared_ptr<const Grouping>> Grouping::make(std::vector<uint32_t> lengths,
                                                       const GroupRule& rule) {
  const bool is_packed = rule.capacity > 0;
  HEADRACE_TRY(check(
      lengths, is_packed ? rule.capacity : rule.budget.most, rule.window,
      is_packed ? "give truncate=\"right\", or a longer seq_len"
                : "give a larger max_tokens, or a field that is cut to a length, .truncate(n)"));
  std::shared_ptr<Grouping> out(new Grouping);
  out->lengths_ = std::move(lengths);
  out->rule_ = rule;
  for (const uint32_t length : out->lengths_) out->tokens_ += length;
  out->as_they_lie_ = out->in_order(
      [](uint64_t begin, uint64_t count, std::vector<uint32_t>& samples) {
        for (uint64_t i = begin; i < begin + count; ++i)
          samples.push_back(static_cast<uint32_t>(i));
      },
      rule.window);
  out->fingerprint_ = hash_of(out->lengths_, rule);
  return std::shared_ptr<const Grouping>(std::move(out));
}

std::shared_ptr<const SampleGroups> Grouping::in_order(const SampleRun& order,
                                                       uint64_t first) const {
  auto out = std::make_shared<SampleGroups>();
  out->members_.reserve(lengths_.size());
  std::vector<uint32_t> samples;
  for (uint64_t begin = 0, count = first; begin < lengths_.size();
       begin += count, count = rule_.window) {
    count = std::min<uint64_t>(count, lengths_.size() - begin);
    samples.clear();
    order(begin, count, samples);
    std::erase_if(samples, [this](uint32_t sample) { return lengths_[sample] == 0; });
    const Bins bins = rule_.capacity > 0 ? best_fit(lengths_, samples, rule_.capacity)
                                         : within_budget(lengths_, samples, rule_.budget);
    for (const auto& bin : bins) out->add(bin);
    out->blocks_.push_back(static_cast<uint32_t>(bins.size()));
  }
  return out;
}

}  // namespace headrace
