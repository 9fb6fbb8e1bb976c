// SPDX-License-Identifier: Apache-2.0
#include "storage/http/split_read.h"

#include <memory>
#include <utility>

#include "base/guard.h"
#include "base/mutex.h"

namespace headrace {
namespace {

// The read that was split; its parts own it together.
struct Whole {
  ReadRequest request;
  Mutex mu;
  size_t left HEADRACE_GUARDED_BY(mu) = 0;
  Status status HEADRACE_GUARDED_BY(mu);

  // `first`: the place of its first piece among all of them.
  void part_done(ReadRequest&& part, size_t first) {
    for (size_t k = 0; k < part.pieces.size(); ++k)
      request.pieces[first + k].into = std::move(part.pieces[k].into);
    Status of_all;
    {
      MutexLock lock(mu);
      if (status.ok()) status = std::move(part.status);
      if (request.version.empty()) request.version = std::move(part.version);
      if (--left > 0) return;
      of_all = std::move(status);
    }
    request.in_pieces = !request.pieces.empty();
    complete(std::move(request), std::move(of_all));
  }
};

// Where the parts begin, counted from the begin of the read; of one with pieces also the number of
// the first piece.
std::vector<std::pair<uint64_t, size_t>> cuts_of(const ReadRequest& request, uint64_t part_bytes) {
  std::vector<std::pair<uint64_t, size_t>> cuts = {{0, 0}};
  for (uint64_t at = part_bytes; request.pieces.empty() && at < request.length; at += part_bytes)
    cuts.emplace_back(at, 0);
  for (size_t k = 1; k < request.pieces.size(); ++k)
    if (request.pieces[k].begin - cuts.back().first >= part_bytes)
      cuts.emplace_back(request.pieces[k].begin, k);
  return cuts;
}

}  // namespace

Result<std::vector<ReadPart>> split_read(ReadRequest& request, uint64_t part_bytes) {
  HEADRACE_TRY(guard([&]() -> Status {
    if (request.pieces.empty()) request.into.resize(request.length);
    return {};
  }));
  const auto cuts = cuts_of(request, part_bytes);
  const auto whole = std::make_shared<Whole>();
  whole->request = std::move(request);
  ReadRequest& all = whole->request;
  std::vector<ReadPart> parts(cuts.size());
  for (size_t i = 0; i < cuts.size(); ++i) {
    const uint64_t begin = cuts[i].first;
    const size_t first = cuts[i].second;
    const bool is_last = i + 1 == cuts.size();
    const uint64_t end = is_last ? all.length : cuts[i + 1].first;
    const size_t pieces_end = is_last ? all.pieces.size() : cuts[i + 1].second;
    ReadRequest& part = parts[i].request;
    part.path = all.path;
    part.offset = all.offset + begin;
    part.length = end - begin;
    part.priority = all.priority;
    part.version = all.version;
    part.group = all.group;
    part.sent_ns = all.sent_ns;
    part.done = [whole, first](ReadRequest&& done) { whole->part_done(std::move(done), first); };
    for (size_t k = first; k < pieces_end; ++k)
      part.pieces.push_back(
          {all.pieces[k].begin - begin, all.pieces[k].length, std::move(all.pieces[k].into)});
    if (all.pieces.empty()) parts[i].room = all.into.span().subspan(begin, part.length);
  }
  MutexLock lock(whole->mu);
  whole->left = parts.size();
  return parts;
}

}  // namespace headrace
