// SPDX-License-Identifier: Apache-2.0
//
// RoutedStore: several stores as one, for data sets made of others.  A path carries the number of
// its store in front, which plain_path() takes away again for error texts.
//
//   route_path(1, "/data/a.png")  ──►  read of "/data/a.png" by store 1
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/store.h"

namespace headrace {

// A path of route `number`, as RoutedStore takes it.
std::string route_path(size_t number, std::string_view path);
// The path as its own store takes it: without any route.
std::string_view plain_path(std::string_view path);

// Thread-safe.
class RoutedStore final : public Store {
 public:
  struct Route {
    std::shared_ptr<const Store> store;
    std::string path;  // of some file there: what its reads cost is asked of it
  };
  explicit RoutedStore(std::vector<Route> routes) : routes_(std::move(routes)) {}

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;
  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override;
  void cancel(const ReadGroup& group) const override;
  // Of the slowest of the stores, whatever the path: who reads from one of them reads from all.
  StoreCost cost(const std::string& path) const override;
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override;
  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override;

 private:
  struct Place {
    const Store* store = nullptr;  // null: the path names no route
    size_t number = 0;
    std::string_view path;
  };
  Place place_of(std::string_view path) const;

  const std::vector<Route> routes_;
};

}  // namespace headrace
