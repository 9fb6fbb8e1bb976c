// SPDX-License-Identifier: Apache-2.0
#include "api/inside.h"

#include <fmt/format.h>

#include <limits>

namespace hr {
namespace {

using headrace::Code;

headrace::Shuffle shuffle_named(const std::string& name) {
  if (name == "auto") return headrace::Shuffle::kAuto;
  if (name == "global") return headrace::Shuffle::kGlobal;
  if (name == "pool") return headrace::Shuffle::kPool;
  if (name == "none") return headrace::Shuffle::kNone;
  raise(headrace::invalid(fmt::format("shuffle is auto, global, pool or none, not '{}'", name)));
}

headrace::Tail tail_named(const std::string& name, headrace::Shuffle shuffle) {
  if (name.empty())
    return shuffle == headrace::Shuffle::kNone ? headrace::Tail::kKeep : headrace::Tail::kDrop;
  if (name == "drop") return headrace::Tail::kDrop;
  if (name == "pad") return headrace::Tail::kPad;
  if (name == "keep") return headrace::Tail::kKeep;
  raise(headrace::invalid(fmt::format("tail is drop, pad or keep, not '{}'", name)));
}

}  // namespace

void raise(const headrace::Status& status) {
  const headrace::Place& p = status.place();
  Error::Place place{p.file, p.offset, p.sample, p.key};
  const std::string text = status.text();
  switch (status.code()) {
    case Code::kCorrupt:
      throw DataError(text, std::move(place));
    case Code::kInvalidArgument:
      throw UsageError(text, std::move(place));
    case Code::kUnsupported:
      throw Unsupported(text, std::move(place));
    case Code::kNotFound:
    case Code::kPermission:
    case Code::kUnavailable:
    case Code::kExhausted:
      throw StorageError(text, std::move(place));
    default:
      throw Error(text, std::move(place));
  }
}

Array to_array(const headrace::SharedBuffer& buffer, headrace::DType dtype,
               std::vector<int64_t> shape) {
  return {std::string(headrace::dtype_name(dtype)), std::move(shape), buffer->data(),
          buffer->size(), buffer};
}

std::vector<headrace::LoaderSource> sources_of(const Blend& blend, const Fields& fields,
                                               headrace::PlanOptions& plan) {
  if (blend.parts.empty()) raise(headrace::invalid("the blend has no part"));
  std::vector<headrace::LoaderSource> out;
  for (const BlendPart& part : blend.parts) {
    if (part.name.empty()) raise(headrace::invalid("a part of a blend needs a name"));
    out.push_back({part.name, part.data.inside().source,
                   requests_of(part.fields.empty() ? fields : part.fields)});
    plan.weights.push_back(part.weight);
  }
  plan.epoch_draws = blend.epoch_samples;
  return out;
}

headrace::PlanOptions plan_options(const OrderOptions& options) {
  if (options.world_size == 0 ||
      options.batch_size > std::numeric_limits<uint64_t>::max() / options.world_size)
    raise(
        headrace::invalid("world_size must be at least 1, and the global batch must be countable"));
  headrace::PlanOptions out;
  out.seed = options.seed;
  out.shuffle = shuffle_named(options.shuffle);
  if (options.window > 0) out.window_bytes = options.window;
  out.reassign_every = options.reassign_every;
  out.cut = {options.batch_size * options.world_size, options.rank, options.world_size,
             tail_named(options.tail, out.shuffle)};
  return out;
}

}  // namespace hr
