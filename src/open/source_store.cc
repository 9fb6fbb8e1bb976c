// SPDX-License-Identifier: Apache-2.0
#include "open/source_store.h"

#include <algorithm>

#include "format/files/lists.h"
#include "index/names.h"
#include "open/expand.h"
#include "storage/mixed.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// "https://host:443/a/b" without the path.
std::string server_of(const std::string& url) {
  return url.substr(0, url.find('/', scheme_of(url).size() + 3));
}

bool is_list(std::string_view path) {
  const std::string name = lower_case(path);
  return std::any_of(std::begin(kListSuffixes), std::end(kListSuffixes),
                     [&name](std::string_view suffix) { return name.ends_with(suffix); });
}

// `list.csv#table=no` is one, too.
bool are_local_lists(const std::vector<std::string>& urls) {
  bool any = false;
  for (const std::string& url : urls) {
    if (!scheme_of(url).empty()) return false;
    any |= is_list(url) || is_list(std::string_view(url).substr(0, url.rfind('#')));
  }
  return any;
}

}  // namespace

Result<std::vector<std::string>> servers_of(const std::vector<std::string>& urls) {
  std::vector<std::string> servers;
  for (const std::string& url : urls) {
    if (scheme_of(url).empty()) continue;
    std::vector<std::string> each{url};
    if (server_of(url).find('{') != std::string::npos) {
      HEADRACE_ASSIGN(each, expand_braces(url));
    }
    for (const std::string& one : each) servers.push_back(server_of(one));
  }
  std::sort(servers.begin(), servers.end());
  servers.erase(std::unique(servers.begin(), servers.end()), servers.end());
  return servers;
}

Result<std::shared_ptr<const Store>> source_store(const std::vector<std::string>& urls,
                                                  const OpenOptions& options) {
  if (options.store != nullptr) return options.store;
  std::vector<std::string> all = urls;
  if (!options.root.empty()) all.push_back(options.root);
  StoreOptions storage = options.storage;
  if (!storage.named) {
    std::vector<std::string> named = all;
    if (!options.index.empty()) named.push_back(options.index);
    HEADRACE_ASSIGN(storage.named, servers_of(named));
  }
  if (are_local_lists(urls))
    return std::shared_ptr<const Store>(std::make_shared<const MixedStore>(std::move(storage)));
  return store_of_all(all, storage);
}

}  // namespace headrace
