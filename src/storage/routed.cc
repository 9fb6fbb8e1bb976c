// SPDX-License-Identifier: Apache-2.0
#include "storage/routed.h"

#include <algorithm>
#include <charconv>

namespace headrace {
namespace {

constexpr char kMark = '\x1f';  // "unit separator": no file that people name begins with it

// The number between two marks, and where the rest begins; 0 where there is no route.
size_t parse_route(std::string_view path, size_t& number) {
  if (path.empty() || path.front() != kMark) return 0;
  const size_t end = path.find(kMark, 1);
  if (end == std::string_view::npos) return 0;
  const auto [at, error] = std::from_chars(path.data() + 1, path.data() + end, number);
  return error == std::errc() && at == path.data() + end ? end + 1 : 0;
}

Status no_route(std::string_view path) {
  return internal("a path without its store: " + std::string(plain_path(path)));
}

}  // namespace

std::string route_path(size_t number, std::string_view path) {
  std::string out(1, kMark);
  out += std::to_string(number);
  out += kMark;
  out += path;
  return out;
}

std::string_view plain_path(std::string_view path) {
  size_t number = 0;
  while (const size_t begin = parse_route(path, number)) path.remove_prefix(begin);
  return path;
}

RoutedStore::Place RoutedStore::place_of(std::string_view path) const {
  size_t number = 0;
  const size_t begin = parse_route(path, number);
  if (begin == 0 || number >= routes_.size()) return {};
  return {routes_[number].store.get(), number, path.substr(begin)};
}

// Runs of requests for one store go to it together.
void RoutedStore::read(std::span<ReadRequest> requests) const {
  for (size_t begin = 0; begin < requests.size();) {
    const Store* const store = place_of(requests[begin].path).store;
    if (store == nullptr) {
      Status status = no_route(requests[begin].path);
      complete(std::move(requests[begin++]), std::move(status));
      continue;
    }
    size_t end = begin;
    for (; end < requests.size(); ++end) {
      const Place place = place_of(requests[end].path);
      if (place.store != store) break;
      requests[end].path = std::string(place.path);
    }
    store->read(requests.subspan(begin, end - begin));
    begin = end;
  }
}

bool RoutedStore::read_if_resident(ReadRequest& request) const {
  const Place place = place_of(request.path);
  if (place.store == nullptr) return false;
  const std::string routed = request.path;
  request.path = std::string(place.path);
  const bool done = place.store->read_if_resident(request);
  request.path = routed;
  return done;
}

std::optional<Pin> RoutedStore::pin(std::string_view path, uint64_t offset, uint64_t length) const {
  const Place place = place_of(path);
  return place.store == nullptr ? std::nullopt : place.store->pin(place.path, offset, length);
}

void RoutedStore::cancel(const ReadGroup& group) const {
  for (const Route& route : routes_) route.store->cancel(group);
}

StoreCost RoutedStore::cost(const std::string& path) const {
  (void)path;
  StoreCost out;
  for (const Route& route : routes_) {
    const StoreCost one = route.store->cost(route.path);
    if (one.latency_ns >= out.latency_ns) {
      out.latency_ns = one.latency_ns;
      out.bytes_per_second = one.bytes_per_second;
    }
    out.parallel_reads = std::max(out.parallel_reads, one.parallel_reads);
    out.in_caller &= one.in_caller;
  }
  return out;
}

std::vector<Result<FileInfo>> RoutedStore::stat_all(std::span<const std::string> paths) const {
  std::vector<Result<FileInfo>> out;
  out.reserve(paths.size());
  for (size_t begin = 0; begin < paths.size();) {
    const Place first = place_of(paths[begin]);
    if (first.store == nullptr) {
      out.emplace_back(no_route(paths[begin++]));
      continue;
    }
    std::vector<std::string> plain;
    size_t end = begin;
    for (; end < paths.size(); ++end) {
      const Place place = place_of(paths[end]);
      if (place.number != first.number || place.store == nullptr) break;
      plain.emplace_back(place.path);
    }
    for (Result<FileInfo>& info : first.store->stat_all(plain)) {
      if (info.ok()) info.value().path = route_path(first.number, info.value().path);
      out.push_back(std::move(info));
    }
    begin = end;
  }
  return out;
}

Result<ListPage> RoutedStore::list_page(const std::string& folder, const std::string& after) const {
  const Place place = place_of(folder);
  if (place.store == nullptr) return no_route(folder);
  HEADRACE_ASSIGN(ListPage page, place.store->list_page(std::string(place.path), after));
  for (FileInfo& entry : page.entries) entry.path = route_path(place.number, entry.path);
  return page;
}

}  // namespace headrace
