// SPDX-License-Identifier: Apache-2.0
//
// http:// and https://: files of web servers.  A folder is what the server shows as an index page.
//
//   hr.open("https://host/data/train-{0000..0127}.tar")

#include <fmt/format.h>

#include <algorithm>

#include "base/shown_url.h"
#include "storage/http/base64.h"
#include "storage/http/index_page.h"
#include "storage/http/protocol.h"
#include "storage/http/transfers.h"
#include "storage/http/url.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// The parts of a path that say who asks leave no message.
Status refuse_user(const WebUrl& url) {
  return invalid(
      fmt::format("a password in a URL ends up in logs: open {} with "
                  "hr.storage(user='name', password='...')",
                  url.origin()));
}

// The name of a file, as a part of a URL: what would say something else there is escaped.
std::string in_url(std::string_view name) {
  std::string out;
  for (const char c : name)
    out += c == '%' || c == '#' || c == '?' ? percent_encoded({&c, 1}, false) : std::string(1, c);
  return out;
}

class HttpProtocol final : public WebProtocol {
 public:
  explicit HttpProtocol(std::shared_ptr<const StoreOptions> options)
      : options_(std::move(options)) {
    if (!options_->token.empty()) secrets_.push_back("Authorization: Bearer " + options_->token);
    if (!options_->user.empty())
      secrets_.push_back("Authorization: Basic " +
                         base64(options_->user + ':' + options_->password));
    for (const auto& [name, value] : options_->headers) secrets_.push_back(name + ": " + value);
    for (const std::string& named : options_->named.value_or(std::vector<std::string>()))
      if (const auto url = parse_web_url(named); url.ok()) trusted_.push_back(url.value().origin());
  }

  Status prepare(const std::string& path) const override {
    HEADRACE_ASSIGN(const WebUrl url, parse_web_url(path));
    if (!url.user.empty()) return refuse_user(url);
    if (is_link_local(url.host) && !options_->allow_link_local)
      return Status(Code::kPermission,
                    "link-local addresses are not asked: say "
                    "hr.storage(allow_link_local=True) if it is meant");
    if (url.scheme == "http" && !secrets_for(url).empty() && !options_->allow_plain_http &&
        !is_loopback(url.host))
      return Status(Code::kPermission,
                    "a password or token would go over plain http, for all to read: use https://, "
                    "or say hr.storage(allow_plain_http=True)");
    return {};
  }

  Result<std::string> origin(const std::string& path) const override {
    HEADRACE_ASSIGN(const WebUrl url, parse_web_url(path));
    return url.origin();
  }

  Result<HttpRequest> request(std::string_view method, const std::string& path) const override {
    HEADRACE_ASSIGN(WebUrl url, parse_web_url(path));
    url.path = encoded_path(url.path);
    return HttpRequest{
        .method = std::string(method), .url = url.text(), .credentials = secrets_for(url)};
  }

  Status failure(const std::string& path, const HttpAnswer& answer) const override {
    const int status = answer.head.status;
    const std::string tries =
        answer.tries > 1 ? fmt::format(" ({} tries)", answer.tries) : std::string();
    switch (status) {
      case 404:
      case 410:
        return not_found(fmt::format("the server has no such file ({})", status));
      case 401:
      case 403:
        if (path.size() > without_signature(path).size())
          return Status(Code::kPermission,
                        fmt::format("the server refuses ({}): the signature in the URL may have "
                                    "expired; sign it again",
                                    status));
        if (is_stranger(path))
          return Status(Code::kPermission,
                        fmt::format("the server refuses ({}), and what hr.storage(...) says goes "
                                    "only to servers that the call names: name it, as in "
                                    "root=\"https://host/folder\", or open its files by themselves",
                                    status));
        return Status(
            Code::kPermission,
            fmt::format("the server refuses ({}): give what it asks for by "
                        "hr.storage(token=...), (user=..., password=...) or (headers=...)",
                        status));
      case 407:
        return proxy_refuses();
      case 400:  // as nginx, Go and others answer
        if (answer.text.find("HTTPS") != std::string::npos)
          return unavailable("the port speaks https: write https:// (400)");
        break;
      default:
        break;
    }
    if (answer.head.is_redirect())
      return not_found(
          fmt::format("the server redirects ({}) to nowhere that can be read", status));
    return unavailable(fmt::format("the server answers {}{}", status, tries));
  }

  bool passes(const HttpAnswer&) const override { return false; }
  bool follows_redirects() const override { return true; }
  bool lists_folders() const override { return false; }

  Result<HttpRequest> list_request(const std::string& folder, const std::string&) const override {
    HEADRACE_ASSIGN(HttpRequest made, request("GET", folder));
    if (!made.url.ends_with('/')) made.url += '/';
    return made;
  }

  Result<ListPage> parse_list(const std::string& folder, const HttpAnswer& answer) const override {
    const auto entries = parse_index_page(answer.text);
    if (!entries)
      return unsupported(
          "the server shows no index of this folder: name the files, as in "
          "train-{0000..0127}.tar");
    ListPage page;
    for (const IndexEntry& entry : *entries)
      page.entries.push_back(
          {.path = join_path(folder, in_url(entry.name)), .is_folder = entry.is_folder});
    return page;
  }

 private:
  const std::vector<std::string>& secrets_for(const WebUrl& url) const {
    static const std::vector<std::string> none;
    const bool is_named = !options_->named || std::find(trusted_.begin(), trusted_.end(),
                                                        url.origin()) != trusted_.end();
    return is_named ? secrets_ : none;
  }
  // A server that was asked without the secrets that there are.
  bool is_stranger(const std::string& path) const {
    const Result<WebUrl> url = parse_web_url(path);
    return url.ok() && !secrets_.empty() && secrets_for(url.value()).empty();
  }

  const std::shared_ptr<const StoreOptions> options_;
  std::vector<std::string> secrets_;
  std::vector<std::string> trusted_;  // origins
};

constexpr std::string_view kSchemes[] = {"http", "https"};

}  // namespace

extern const StoreKind http_stores = {
    .name = "http",
    .schemes = kSchemes,
    .purpose = "files of web servers, by ranges",
    .make = [](const StoreOptions& options,
               std::string_view) -> Result<std::shared_ptr<const Store>> {
      auto kept = std::make_shared<const StoreOptions>(options);
      return web_store(std::make_unique<const HttpProtocol>(kept), kept);
    },
};

}  // namespace headrace
