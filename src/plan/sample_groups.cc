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

// The samples of a window, longest (or shortest) first; of one length, as they come.
void sort_by_length(std::span<const uint32_t> lengths, bool longest_first,
                    std::vector<uint32_t>& samples) {
  std::sort(samples.begin(), samples.end(), [&](uint32_t a, uint32_t b) {
    if (lengths[a] == lengths[b]) return a < b;
    return (lengths[a] > lengths[b]) == longest_first;
  });
}

std::vector<uint32_t> of_window(std::span<const uint32_t> lengths, size_t begin, size_t end) {
  std::vector<uint32_t> out;
  for (size_t i = begin; i < end; ++i)
    if (lengths[i] > 0) out.push_back(static_cast<uint32_t>(i));
  return out;
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

Hasher hash_of(std::span<const uint32_t> lengths, uint64_t window) {
  Hasher out;
  out.add("sample groups").add(window).add(std::as_bytes(lengths));
  return out;
}

}  // namespace

void SampleGroups::add(std::span<const uint32_t> members) {
  members_.insert(members_.end(), members.begin(), members.end());
  first_.push_back(members_.size());
}

Result<std::shared_ptr<const SampleGroups>> SampleGroups::pack(std::span<const uint32_t> lengths,
                                                               uint64_t capacity, uint64_t window) {
  HEADRACE_TRY(check(lengths, capacity, window, "give truncate=\"right\", or a longer seq_len"));
  std::shared_ptr<SampleGroups> out(new SampleGroups);
  out->samples_ = lengths.size();
  for (size_t begin = 0; begin < lengths.size(); begin += window) {
    const size_t end = std::min<size_t>(lengths.size(), begin + window);
    const Bins bins = best_fit(lengths, of_window(lengths, begin, end), capacity);
    for (const auto& bin : bins) out->add(bin);
    out->blocks_.push_back(static_cast<uint32_t>(bins.size()));
  }
  for (const uint32_t length : lengths) out->tokens_ += length;
  out->fingerprint_ = hash_of(lengths, window).add("packed").add(capacity).finish();
  return std::shared_ptr<const SampleGroups>(std::move(out));
}

Result<std::shared_ptr<const SampleGroups>> SampleGroups::cut(std::span<const uint32_t> lengths,
                                                              const BatchBudget& budget,
                                                              uint64_t window) {
  HEADRACE_TRY(check(lengths, budget.most, window,
                     "give a larger max_tokens, or a field that is cut to a length, .truncate(n)"));
  std::shared_ptr<SampleGroups> out(new SampleGroups);
  out->samples_ = lengths.size();
  for (size_t begin = 0; begin < lengths.size(); begin += window) {
    const size_t end = std::min<size_t>(lengths.size(), begin + window);
    const Bins bins = within_budget(lengths, of_window(lengths, begin, end), budget);
    for (const auto& bin : bins) out->add(bin);
    out->blocks_.push_back(static_cast<uint32_t>(bins.size()));
  }
  for (const uint32_t length : lengths) out->tokens_ += length;
  out->fingerprint_ = hash_of(lengths, window)
                          .add("cut")
                          .add(budget.most)
                          .add(static_cast<uint64_t>(budget.cost))
                          .add(static_cast<uint64_t>(budget.by_length))
                          .add(budget.most_samples)
                          .finish();
  return std::shared_ptr<const SampleGroups>(std::move(out));
}

}  // namespace headrace
