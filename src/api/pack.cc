// SPDX-License-Identifier: Apache-2.0
#include "headrace/pack.h"

#include "api/inside.h"
#include "pack/pack.h"

namespace hr {

PackResult pack(const Dataset& data, const std::string& folder, const PackOptions& options) {
  headrace::PackOptions o;
  o.format = options.format;
  o.shards = options.shards;
  o.shard_bytes = options.shard_bytes;
  o.for_ranks = options.for_ranks;
  o.keep_order = options.keep_order;
  o.seed = options.seed;
  o.threads = options.threads;
  o.fields = options.fields;
  o.drop = options.drop;
  if (options.progress)
    o.progress = [&](const headrace::PackProgress& p) {
      options.progress(p.samples_done, p.samples);
    };
  const headrace::PackResult done = unwrap(headrace::pack(*data.inside().source, folder, o));
  return {done.samples, done.shards, done.shards_kept};
}

}  // namespace hr
