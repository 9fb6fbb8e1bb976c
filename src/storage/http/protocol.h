// SPDX-License-Identifier: Apache-2.0
//
// WebProtocol: how one kind of server is spoken to; what WebStore and the loops do not know.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "storage/http/message.h"
#include "storage/http/task.h"
#include "storage/store.h"

namespace headrace {

// Thread-safe.
class WebProtocol {
 public:
  virtual ~WebProtocol() = default;

  // Before anything of `path` is asked for; may take its time, to fetch credentials.
  virtual Status prepare(const std::string& path) const = 0;
  // scheme://host[:port] that `path` is asked of.
  virtual Result<std::string> origin(const std::string& path) const = 0;
  // What asks for it, but for the range.  By the loops' threads: must not wait.
  virtual Result<HttpRequest> request(std::string_view method, const std::string& path) const = 0;
  // What an answer that is no 2xx means for whoever asked.
  virtual Status failure(const std::string& path, const HttpAnswer& answer) const = 0;
  // Whether an answer that is not good may become so when it is asked for again.
  virtual bool passes(const HttpAnswer& answer) const = 0;
  virtual bool follows_redirects() const = 0;

  // A page of a folder (its path has no '/' at the end), from `after` on.
  virtual Result<HttpRequest> list_request(const std::string& folder,
                                           const std::string& after) const = 0;
  // kNotFound where there is no such folder.
  virtual Result<ListPage> parse_list(const std::string& folder,
                                      const HttpAnswer& answer) const = 0;
  // Whether a path that is no object may be a folder, which only a listing shows.
  virtual bool lists_folders() const = 0;
};

// A store of what the protocol reads.
std::shared_ptr<const Store> web_store(std::unique_ptr<const WebProtocol> protocol,
                                       std::shared_ptr<const StoreOptions> options);

}  // namespace headrace
