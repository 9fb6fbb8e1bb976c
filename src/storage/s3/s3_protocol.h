// SPDX-License-Identifier: Apache-2.0
//
// S3Protocol: how S3 and what speaks like it is asked; for reading (web_store) and for writing
// (upload.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/http/protocol.h"
#include "storage/http/url.h"
#include "storage/s3/credentials.h"

namespace headrace {

struct S3Place {
  std::string bucket;
  std::string key;
};
Result<S3Place> s3_place_of(std::string_view path);

// What is asked of a place, beside the method.
struct S3Ask {
  std::vector<std::pair<std::string, std::string>> query = {};  // not encoded
  std::shared_ptr<const std::string> body = nullptr;            // its hash is signed
};

// Thread-safe.
class S3Protocol final : public WebProtocol {
 public:
  static Result<std::unique_ptr<const S3Protocol>> make(std::shared_ptr<const StoreOptions> options,
                                                        bool is_google);

  Status prepare(const std::string& path) const override;
  Result<std::string> origin(const std::string& path) const override;
  Result<HttpRequest> request(std::string_view method, const std::string& path) const override;
  Result<HttpRequest> list_request(const std::string& folder,
                                   const std::string& after) const override;
  Result<ListPage> parse_list(const std::string& folder, const HttpAnswer& answer) const override;
  Status failure(const std::string& path, const HttpAnswer& answer) const override;
  bool passes(const HttpAnswer& answer) const override;
  bool follows_redirects() const override { return false; }
  bool lists_folders() const override { return true; }

  HttpRequest signed_request(std::string_view method, const S3Place& place, S3Ask ask) const;

 private:
  S3Protocol(std::shared_ptr<const StoreOptions> options, S3Settings settings, WebUrl endpoint,
             bool is_amazon, bool is_public);
  bool is_virtual(std::string_view bucket) const;

  const std::shared_ptr<const StoreOptions> options_;
  const S3Settings settings_;
  const WebUrl endpoint_;
  const bool is_amazon_;
  const bool is_public_;
  mutable CredentialSource credentials_;
};

}  // namespace headrace
