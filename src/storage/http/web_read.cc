// SPDX-License-Identifier: Apache-2.0
#include "storage/http/web_read.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/guard.h"

namespace headrace {
namespace {

// Of a server that sends whole files whatever range is asked for.
constexpr uint64_t kMostUnwanted = uint64_t{64} << 20;

}  // namespace

Result<HttpRequest> WebRead::make() const {
  HEADRACE_ASSIGN(HttpRequest made, shared->protocol->request("GET", request.path));
  if (!is_whole())
    made.headers.push_back(
        fmt::format("Range: bytes={}-{}", request.offset, request.offset + request.length - 1));
  // A weak tag never matches here; all are compared in the answer.
  if (request.version.starts_with('"')) made.headers.push_back("If-Match: " + request.version);
  return made;
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
  if (!range) {
    if (is_whole()) return BodyPlan{.bytes = length.value_or(kWholeFile)};
    if (length && (request.offset > *length || request.length > *length - request.offset))
      return too_short(request, *length);
    if (request.offset > kMostUnwanted || (length && *length > request.length + kMostUnwanted))
      return unsupported("the server sends whole files, not ranges of them: copy the data first");
    return BodyPlan{.bytes = request.length, .skip = request.offset};
  }
  const uint64_t got = range->last - range->first + 1;
  if (range->first != request.offset || got > request.length || (length && *length != got))
    return unavailable("the server answers with another range than it was asked for");
  if (got < request.length) {
    if (range->total && range->last + 1 == *range->total) return too_short(request, *range->total);
    return unavailable("the server answers with a part of the range");
  }
  return BodyPlan{.bytes = got};
}

Result<MutableBytes> WebRead::memory(uint64_t bytes) {
  return guard([&]() -> Result<MutableBytes> {
    request.into.resize(bytes);
    return request.into.span();
  });
}

void WebRead::done(Status status, HttpAnswer&& answer) {
  if (status.ok() && answer.head.status == 416)
    status = corrupt("the file ends before this").at(request.offset);
  else if (status.ok() && answer.head.status == 412)
    status = changed_file(request.version, "another one");
  else if (status.ok() && answer.head.status >= 300)
    status = shared->protocol->failure(request.path, answer);
  else if (status.ok() && !answer.text.empty())  // a whole file of unknown length
    status = memory(answer.text.size()).status();
  if (status.ok() && !answer.text.empty()) {
    const Bytes text = as_bytes(answer.text);
    std::copy(text.begin(), text.end(), request.into.data());
  } else if (status.ok() && is_whole() && answer.head.content_length().value_or(0) == 0) {
    request.into.resize(0);
  }
  if (status.ok()) request.version = version;
  if (!status.ok() && !is_whole() && status.code() == Code::kUnavailable)
    status = status.at(request.offset);
  complete(std::move(request), std::move(status));
}

}  // namespace headrace
