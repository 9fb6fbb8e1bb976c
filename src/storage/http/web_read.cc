// SPDX-License-Identifier: Apache-2.0
#include "storage/http/web_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.h"

namespace headrace {
namespace {

// Of a server that sends whole files whatever range is asked for.
constexpr uint64_t kMostUnwanted = uint64_t{64} << 20;
// Bytes that come along unwanted, rather than in a request of their own.
constexpr uint64_t kMostGap = 64 << 10;
constexpr uint64_t kWorthTheFile = uint64_t{1} << 20;

}  // namespace

Result<HttpRequest> WebRead::make() const {
  HEADRACE_ASSIGN(HttpRequest made, shared->protocol->request("GET", request.path));
  if (!is_whole() && !wants_file())
    made.headers.push_back(
        fmt::format("Range: bytes={}-{}", request.offset, request.offset + bytes_left() - 1));
  // A weak tag never matches here; all are compared in the answer.
  if (request.version.starts_with('"')) made.headers.push_back("If-Match: " + request.version);
  return made;
}

uint64_t WebRead::end() const {
  const ReadRequest& last = more.empty() ? request : more.back();
  return last.offset + last.length;
}

// All of it but for what stands at its begin and its end.
bool WebRead::wants_file() const {
  const uint64_t size = shared->versions.bytes_of(request.path);
  return request.offset <= kMostGap && end() <= size && size - end() <= kMostGap &&
         bytes_left() >= kWorthTheFile;
}

bool WebRead::is_before(const WebRead& next) const {
  const ReadRequest& first = next.request;
  return !is_whole() && !next.is_whole() && first.offset >= end() &&
         first.offset - end() <= kMostGap && first.path == request.path &&
         first.version == request.version && first.group == request.group && shared == next.shared;
}

void WebRead::join(WebRead& next) {
  more.push_back(std::move(next.request));
  for (ReadRequest& each : next.more) more.push_back(std::move(each));
  next.more.clear();
}

Status too_short(const ReadRequest& request, uint64_t size) {
  const uint64_t there = request.offset < size ? size - request.offset : 0;
  return corrupt(fmt::format("the file ends here, {} bytes too early", request.length - there))
      .at(std::max(size, request.offset));
}

Result<BodyPlan> WebRead::plan(const HttpHead& head) {
  const std::optional<uint64_t> length = head.content_length();
  std::optional<ContentRange> range;
  if (head.status == 206) {
    range = parse_content_range(head.find("content-range"));
    if (!range || is_whole())
      return unavailable("the server answers with a range nobody asked for");
  } else if (head.status != 200) {
    return unavailable(fmt::format("the server answers {} to a read", head.status));
  }
  version = version_from(head, range ? range->total : length);
  if (!request.version.empty() && version != request.version)
    return changed_file(request.version, version);
  if (!shared->versions.check(request.path, version))
    return changed_file("as it was first seen", version);
  const uint64_t wanted = bytes_left();
  const ReadRequest& last = more.empty() ? request : more.back();
  if (!range) {
    if (is_whole()) return BodyPlan{.bytes = length.value_or(kWholeFile)};
    if (length && (request.offset > *length || wanted > *length - request.offset))
      return too_short(last, *length);
    if (request.offset > kMostUnwanted || (length && *length > wanted + kMostUnwanted))
      return unsupported("the server sends whole files, not ranges of them: copy the data first");
    const uint64_t behind = length ? *length - request.offset - wanted : 0;
    return BodyPlan{
        .bytes = wanted, .skip = request.offset, .rest = behind <= kMostGap ? behind : 0};
  }
  const uint64_t got = range->last - range->first + 1;
  if (range->first != request.offset || got > wanted || (length && *length != got))
    return unavailable("the server answers with another range than it was asked for");
  if (got < wanted) {
    if (range->total && range->last + 1 == *range->total) return too_short(last, *range->total);
    return unavailable("the server answers with a part of the range");
  }
  return BodyPlan{.bytes = got};
}

BodyPieces WebRead::pieces(uint64_t bytes) {
  begin = request.offset;
  completed = 0;
  whole_bytes = bytes;
  piece_of.clear();
  BodyPieces out;
  uint64_t at = request.offset;
  const auto add_piece = [&](size_t number, size_t k, uint64_t from, uint64_t length) {
    out.push_back({from - at, length});
    piece_of.emplace_back(number, k);
    at = from + length;
  };
  const auto add = [&](size_t number, const ReadRequest& each, uint64_t length) {
    if (each.pieces.empty()) add_piece(number, 0, each.offset, length);
    for (size_t k = 0; k < each.pieces.size(); ++k)
      if (each.pieces[k].length > 0)  // else its request may be complete before it is reached
        add_piece(number, k, each.offset + each.pieces[k].begin, each.pieces[k].length);
  };
  add(0, request, is_whole() ? bytes : request.length);
  for (size_t k = 0; k < more.size(); ++k) add(k + 1, more[k], more[k].length);
  // What follows the last piece of the last request.
  if (const uint64_t left = begin + bytes - at; left > 0) out.push_back({left, 0});
  return out;
}

Result<MutableBytes> WebRead::memory(size_t piece) {
  if (!room.empty()) return room;
  const size_t number = piece_of[piece].first;
  const size_t k = piece_of[piece].second;
  ReadRequest& of = number == completed ? request : more[number - completed - 1];
  return guard([&]() -> Result<MutableBytes> {
    Buffer& into = of.pieces.empty() ? of.into : of.pieces[k].into;
    into.resize(!of.pieces.empty() ? of.pieces[k].length : is_whole() ? whole_bytes : of.length);
    return into.span();
  });
}

void WebRead::arrived(uint64_t bytes) {
  while (!more.empty() && request.offset + request.length <= begin + bytes) {
    ReadRequest whole = std::exchange(request, std::move(more.front()));
    more.pop_front();
    whole.version = version;
    whole.in_pieces = !whole.pieces.empty();
    ++completed;
    complete(std::move(whole), {});
  }
}

void WebRead::done(Status status, HttpAnswer&& answer) {
  if (status.ok() && answer.head.status == 416)
    status = corrupt("the file ends before this").at(request.offset);
  else if (status.ok() && answer.head.status == 412)
    status = changed_file(request.version, "another one");
  else if (status.ok() && answer.head.status >= 300)
    status = shared->protocol->failure(request.path, answer);
  else if (status.ok() && !answer.text.empty())  // a whole file of unknown length
    status = guard([&]() -> Status {
      request.into.resize(answer.text.size());
      return {};
    });
  if (status.ok() && !answer.text.empty()) {
    const Bytes text = as_bytes(answer.text);
    std::copy(text.begin(), text.end(), request.into.data());
  } else if (status.ok() && is_whole() && answer.head.content_length().value_or(0) == 0) {
    request.into.resize(0);
  }
  if (status.code() == Code::kCorrupt && !more.empty()) {
    more.push_front(std::move(request));
    return read_each(shared, std::exchange(more, {}));
  }
  if (status.ok()) request.version = version;
  request.in_pieces = !request.pieces.empty();
  if (!status.ok() && !is_whole() && status.code() == Code::kUnavailable)
    status = status.at(request.offset);
  std::deque<ReadRequest> behind = std::exchange(more, {});
  for (ReadRequest& each : behind) {
    if (status.ok()) each.version = version;
    each.in_pieces = !each.pieces.empty();
    complete(std::move(each), status);
  }
  complete(std::move(request), std::move(status));
}

}  // namespace headrace
