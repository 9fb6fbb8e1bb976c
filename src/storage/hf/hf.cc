// SPDX-License-Identifier: Apache-2.0
//
// hf://datasets/user/name[@revision]/path: files of Hugging Face's hub, by https.
//
//   hr.open("hf://datasets/user/name/data/train-*.parquet", storage=hr.storage(token="hf_..."))
//
// The token, where none is given, is $HF_TOKEN, or what `huggingface-cli login` left.  The hub is
// $HF_ENDPOINT, or hr.storage(endpoint=...).

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/json.h"
#include "storage/http/protocol.h"
#include "storage/http/url.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr std::string_view kHub = "https://huggingface.co";
constexpr std::string_view kDatasets = "datasets/";

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody here sets it
  return value == nullptr ? "" : value;
}

std::string known_token() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (std::string token = environment(name); !token.empty()) return token;
  std::string home = environment("HF_HOME");
  if (home.empty()) home = environment("HOME") + "/.cache/huggingface";
  std::ifstream in(home + "/token");
  std::string token;
  in >> token;
  return token;
}

// Whether a token that the call gives is for the hub: not where a list alone names its files.
bool is_named(const StoreOptions& options) {
  return !options.named || !options.endpoint.empty() ||
         std::any_of(options.named->begin(), options.named->end(),
                     [](const std::string& server) { return server.starts_with("hf://"); });
}

struct HubPlace {
  std::string repository;  // datasets/user/name
  std::string revision;
  std::string path;  // in it; "" of its root
};

Result<HubPlace> place_of(std::string_view url) {
  std::string_view rest = url.substr(scheme_of(url).size() + 3);
  const bool is_dataset = rest.starts_with(kDatasets);
  size_t end = is_dataset ? rest.find('/', kDatasets.size()) : std::string_view::npos;
  if (end == std::string_view::npos)
    return invalid("a data set of the hub is hf://datasets/user/name/path");
  end = rest.find('/', end + 1);
  HubPlace place{.repository = std::string(rest.substr(0, end)),
                 .revision = "main",
                 .path = end == std::string_view::npos ? "" : std::string(rest.substr(end + 1))};
  const size_t at = place.repository.find('@');
  if (at == std::string::npos) return place;
  place.revision = percent_decoded(place.repository.substr(at + 1));
  place.repository.resize(at);
  // The hub's own references have slashes: @refs/convert/parquet, @refs/pr/1.
  for (int more = place.revision == "refs" ? 2 : 0; more > 0; --more) {
    const size_t slash = std::min(place.path.find('/'), place.path.size());
    place.revision += '/' + place.path.substr(0, slash);
    place.path.erase(0, slash + 1);
  }
  return place;
}

class HubProtocol final : public WebProtocol {
 public:
  HubProtocol(std::shared_ptr<const StoreOptions> options, WebUrl hub)
      : options_(std::move(options)),
        hub_(std::move(hub)),
        token_(options_->anonymous                               ? ""
               : options_->token.empty() || !is_named(*options_) ? known_token()
                                                                 : options_->token) {}

  Status prepare(const std::string& path) const override {
    if (hub_.scheme == "http" && !token_.empty() && !options_->allow_plain_http &&
        !is_loopback(hub_.host))
      return Status(Code::kPermission,
                    "a token would go over plain http, for all to read: use https://, or say "
                    "hr.storage(allow_plain_http=True)");
    return place_of(path).status();
  }
  Result<std::string> origin(const std::string&) const override { return hub_.origin(); }

  Result<HttpRequest> request(std::string_view method, const std::string& path) const override {
    HEADRACE_ASSIGN(const HubPlace place, place_of(path));
    return ask(method, fmt::format("/{}/resolve/{}/{}", place.repository,
                                   percent_encoded(place.revision, false),
                                   percent_encoded(place.path, true)));
  }

  Result<HttpRequest> list_request(const std::string& folder,
                                   const std::string& after) const override {
    HEADRACE_ASSIGN(const HubPlace place, place_of(folder));
    HttpRequest made = ask("GET", fmt::format("/api/{}/tree/{}/{}", place.repository,
                                              percent_encoded(place.revision, false),
                                              percent_encoded(place.path, true)));
    if (!after.empty()) made.url += "?cursor=" + percent_encoded(after, false);
    return made;
  }

  Result<ListPage> parse_list(const std::string& folder, const HttpAnswer& answer) const override {
    HEADRACE_ASSIGN(const HubPlace place, place_of(folder));
    const Result<Json> parsed = Json::parse(answer.text);
    if (!parsed.ok() || !parsed.value().is_list())
      return unavailable("the hub answers something else than a listing");
    const std::string root =
        place.path.empty() ? folder : folder.substr(0, folder.size() - place.path.size() - 1);
    ListPage page;
    for (const Json& item : parsed.value().items()) {
      const Json* path = item.find("path");
      const Json* type = item.find("type");
      const Json* size = item.find("size");
      if (path == nullptr || type == nullptr) continue;
      page.entries.push_back({.path = join_path(root, path->text()),
                              .bytes = size == nullptr ? 0 : size->count().value_or(0),
                              .is_folder = type->text() == "directory"});
    }
    // Link: <https://…?cursor=…>; rel="next"
    const std::string_view link = answer.head.find("link");
    constexpr std::string_view kCursor = "cursor=";
    if (const size_t at = link.find(kCursor);
        at != std::string_view::npos && link.find("rel=\"next\"") != std::string_view::npos) {
      const std::string_view rest = link.substr(at + kCursor.size());
      page.next = percent_decoded(rest.substr(0, rest.find_first_of("&>")));
    }
    return page;
  }

  Status failure(const std::string&, const HttpAnswer& answer) const override {
    const int status = answer.head.status;
    if ((status == 401 || status == 403) && !options_->token.empty() && !is_named(*options_))
      return Status(Code::kPermission,
                    fmt::format("the hub refuses ({}), and the token of hr.storage(...) goes only "
                                "to servers that the call names: name the data set by "
                                "root=\"hf://datasets/user/name\", or set HF_TOKEN",
                                status));
    if (status == 401 || status == 403)
      return Status(Code::kPermission,
                    fmt::format("the hub refuses ({}): it is private, gated or not there; give "
                                "hr.storage(token=...) or set HF_TOKEN",
                                status));
    if (status == 404) return not_found("the hub has no such file or data set (404)");
    return unavailable(fmt::format("the hub answers {}", status));
  }

  bool passes(const HttpAnswer&) const override { return false; }
  bool follows_redirects() const override { return true; }
  bool lists_folders() const override { return true; }

 private:
  HttpRequest ask(std::string_view method, std::string path) const {
    WebUrl url = hub_;
    url.path = std::move(path);
    while (url.path.ends_with('/')) url.path.pop_back();
    HttpRequest out{.method = std::string(method), .url = url.text()};
    if (!token_.empty()) out.credentials.push_back("Authorization: Bearer " + token_);
    return out;
  }

  const std::shared_ptr<const StoreOptions> options_;
  const WebUrl hub_;
  const std::string token_;
};

constexpr std::string_view kSchemes[] = {"hf"};

}  // namespace

extern const StoreKind hf_stores = {
    .name = "hf",
    .schemes = kSchemes,
    .purpose = "data sets of Hugging Face's hub",
    .make = [](const StoreOptions& options,
               std::string_view) -> Result<std::shared_ptr<const Store>> {
      auto kept = std::make_shared<const StoreOptions>(options);
      std::string hub = options.endpoint.empty() ? environment("HF_ENDPOINT") : options.endpoint;
      if (hub.empty()) hub = kHub;
      HEADRACE_ASSIGN(WebUrl url, parse_web_url(hub));
      return web_store(std::make_unique<const HubProtocol>(kept, std::move(url)), kept);
    },
};

}  // namespace headrace
