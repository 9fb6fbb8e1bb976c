// SPDX-License-Identifier: Apache-2.0
#include "engine/run_parts.h"

#include <algorithm>

#include "engine/block_samples.h"

namespace headrace {
namespace {

constexpr uint64_t kSmall = 4096;  // bytes of a value, and between two: they come together

bool lies_in(const Unit& unit, const Unit& run) {
  const bool is_range = unit.stored_bytes != kWholeFile && unit.stored_bytes > 0 &&
                        (unit.encoding == 0 || unit.unshared);
  return is_range && unit.file == run.file && unit.offset >= run.offset &&
         unit.offset - run.offset <= run.stored_bytes &&
         unit.stored_bytes <= run.stored_bytes - (unit.offset - run.offset);
}

// By their place; overlapping ones and small neighbours become one.
std::vector<RunPart> merged(std::vector<RunPart> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const RunPart& a, const RunPart& b) { return a.begin < b.begin; });
  std::vector<RunPart> out;
  for (RunPart& part : parts) {
    const uint64_t end = part.begin + part.length;
    const uint64_t last = out.empty() ? 0 : out.back().begin + out.back().length;
    const bool joins =
        !out.empty() && (part.begin < last || (part.length < kSmall && out.back().length < kSmall &&
                                               part.begin - last < kSmall));
    if (!joins) {
      out.push_back(std::move(part));
      continue;
    }
    out.back().length = std::max(last, end) - out.back().begin;
    out.back().uses += part.uses;
  }
  return out;
}

}  // namespace

std::vector<RunPart> parts_of_run(const Source& source, const SampleAsk& ask,
                                  const ReadPolicy& policy, const Unit& run) {
  if (!policy.block_samples) return {};
  const BlockSamples::Range block = policy.block_samples->of(ask.sample);
  if (block.count == 0 || run.stored_bytes / block.count < policy.least_part_bytes) return {};
  SampleAsk each = ask;
  each.want_key = false;
  Request request;
  std::vector<RunPart> parts;
  for (each.sample = block.first; each.sample < block.first + block.count; ++each.sample) {
    request.clear();
    if (!source.needs(each, request).ok()) return {};  // whoever asks for it hears why
    for (const Unit& unit : request.units) {
      if (!lies_in(unit, run)) continue;
      RunPart& part = parts.emplace_back();
      part.begin = unit.offset - run.offset;
      part.length = unit.stored_bytes;
      part.uses = 1;
    }
  }
  return merged(std::move(parts));
}

std::vector<PartsOfRead> reads_of_parts(std::span<const RunPart> parts, uint64_t most_bytes) {
  if (parts.empty()) return {PartsOfRead()};
  const auto end_of = [](const RunPart& part) { return part.begin + part.length; };
  const uint64_t bytes = end_of(parts.back()) - parts.front().begin;
  const uint64_t most = std::max<uint64_t>(1, most_bytes);
  const uint64_t reads = std::max<uint64_t>(1, (bytes + most - 1) / most);
  const uint64_t each = (bytes + reads - 1) / reads;
  std::vector<PartsOfRead> out;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (out.empty() || end_of(parts[k]) - parts[out.back().first].begin > each)
      out.push_back({k, 0});
    ++out.back().count;
  }
  return out;
}

}  // namespace headrace
