// SPDX-License-Identifier: Apache-2.0
//
// s3://bucket/key, of Amazon and of everything that speaks like it; gs:// by Google's end for it.
//
//   hr.open("s3://bucket/train-*.tar", storage=hr.storage(region="eu-central-1"))

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/sha256.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/s3/s3_protocol.h"
#include "storage/s3/sign.h"
#include "storage/s3/upload.h"
#include "storage/s3/xml.h"

namespace headrace {
namespace {

constexpr std::string_view kUsualRegion = "us-east-1";
constexpr std::string_view kGoogle = "https://storage.googleapis.com";

// A host may begin with it, and a certificate for *.host is good for it.
bool is_host_name(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 &&
         std::all_of(bucket.begin(), bucket.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

}  // namespace

Result<S3Place> s3_place_of(std::string_view path) {
  const std::string_view rest = path.substr(scheme_of(path).size() + 3);
  const size_t slash = rest.find('/');
  S3Place place{std::string(rest.substr(0, slash)),
                slash == std::string_view::npos ? "" : std::string(rest.substr(slash + 1))};
  const bool is_name = std::all_of(place.bucket.begin(), place.bucket.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
  if (place.bucket.empty() || !is_name)
    return invalid("a bucket's name has letters, digits, '-' and '.': s3://bucket/key");
  return place;
}

Result<std::unique_ptr<const S3Protocol>> S3Protocol::make(
    std::shared_ptr<const StoreOptions> options, bool is_google) {
  S3Settings settings;
  if (is_google) {
    settings = {.endpoint = options->endpoint.empty() ? std::string(kGoogle) : options->endpoint,
                .region = options->region.empty() ? "auto" : options->region,
                .credentials = options->credentials,
                .expected = "hr.storage(access_key=..., secret_key=...): an HMAC key"};
  } else {
    HEADRACE_ASSIGN(settings, s3_settings(*options));
  }
  const bool is_amazon = settings.endpoint.empty();
  if (settings.region.empty()) settings.region = kUsualRegion;
  if (is_amazon) settings.endpoint = fmt::format("https://s3.{}.amazonaws.com", settings.region);
  Result<WebUrl> endpoint = parse_web_url(settings.endpoint);
  if (!endpoint.ok())
    return invalid("endpoint is the address of a server, as in 'https://host:9000'");
  // Public data need no key, and few have one of Google's.
  const bool is_public = options->anonymous || (is_google && settings.credentials.empty());
  return std::unique_ptr<const S3Protocol>(new S3Protocol(
      std::move(options), std::move(settings), std::move(endpoint).value(), is_amazon, is_public));
}

Status S3Protocol::prepare(const std::string& path) const {
  HEADRACE_TRY(s3_place_of(path).status());
  if (endpoint_.scheme == "http" && !is_public_ && !options_->allow_plain_http &&
      !is_loopback(endpoint_.host))
    return Status(Code::kPermission,
                  fmt::format("credentials would go over plain http to {}: use https://, or say "
                              "hr.storage(allow_plain_http=True)",
                              endpoint_.host));
  return is_public_ ? Status() : credentials_.prepare(settings_.expected);
}

Result<std::string> S3Protocol::origin(const std::string& path) const {
  HEADRACE_ASSIGN(const S3Place place, s3_place_of(path));
  WebUrl url = endpoint_;
  if (is_virtual(place.bucket)) url.host = place.bucket + '.' + url.host;
  return url.origin();
}

Result<HttpRequest> S3Protocol::request(std::string_view method, const std::string& path) const {
  HEADRACE_ASSIGN(const S3Place place, s3_place_of(path));
  return signed_request(method, place, {});
}

Result<HttpRequest> S3Protocol::list_request(const std::string& folder,
                                             const std::string& after) const {
  HEADRACE_ASSIGN(S3Place place, s3_place_of(folder));
  std::vector<std::pair<std::string, std::string>> query = {
      {"list-type", "2"},
      {"delimiter", "/"},
      {"encoding-type", "url"},
      {"prefix", place.key.empty() ? "" : place.key + '/'}};
  if (!after.empty()) query.emplace_back("continuation-token", after);
  place.key.clear();
  return signed_request("GET", place, {.query = std::move(query)});
}

Result<ListPage> S3Protocol::parse_list(const std::string& folder, const HttpAnswer& answer) const {
  HEADRACE_ASSIGN(const S3Place place, s3_place_of(folder));
  const std::string root = fmt::format("{}://{}/", scheme_of(folder), place.bucket);
  HEADRACE_ASSIGN(S3List list, parse_s3_list(answer.text, root));
  if (list.entries.empty() && list.next.empty() && !place.key.empty())
    return not_found("there is no such object, and nothing lies below it");
  return ListPage{std::move(list.entries), std::move(list.next)};
}

bool S3Protocol::passes(const HttpAnswer& answer) const {
  return answer.head.status == 400 && xml_text(answer.text, "Code") == "RequestTimeout";
}

S3Protocol::S3Protocol(std::shared_ptr<const StoreOptions> options, S3Settings settings,
                       WebUrl endpoint, bool is_amazon, bool is_public)
    : options_(std::move(options)),
      settings_(std::move(settings)),
      endpoint_(std::move(endpoint)),
      is_amazon_(is_amazon),
      is_public_(is_public),
      credentials_(settings_.credentials, *options_) {}

bool S3Protocol::is_virtual(std::string_view bucket) const {
  if (options_->addressing == "auto") return is_amazon_ && is_host_name(bucket);
  return options_->addressing == "virtual";
}

HttpRequest S3Protocol::signed_request(std::string_view method, const S3Place& place,
                                       S3Ask ask) const {
  WebUrl url = endpoint_;
  const std::string prefix = endpoint_.path == "/" ? "" : endpoint_.path;
  url.path = prefix + '/' + percent_encoded(place.key, true);
  if (is_virtual(place.bucket))
    url.host = place.bucket + '.' + url.host;
  else
    url.path = prefix + '/' + place.bucket + '/' + percent_encoded(place.key, true);
  url.query = canonical_query(ask.query);
  HttpRequest out{.method = std::string(method), .url = url.text(), .body = ask.body};
  std::vector<std::pair<std::string, std::string>> headers;
  if (options_->requester_pays) headers.emplace_back("x-amz-request-payer", "requester");
  if (is_public_) {
    for (const auto& [name, value] : headers) out.credentials.push_back(name + ": " + value);
    return out;
  }
  out.credentials =
      sign({.method = out.method,
            .host = url.port.empty() ? url.host : url.host + ':' + url.port,
            .path = url.path,
            .query = std::move(ask.query),
            .headers = std::move(headers),
            .body_hash = ask.body == nullptr ? "UNSIGNED-PAYLOAD" : hex_of(sha256(*ask.body))},
           credentials_.current(), settings_.region, "s3", amazon_time(std::time(nullptr)));
  return out;
}

namespace {

Status refused(std::string text) {
  return {Code::kPermission, std::move(text)};
}

}  // namespace

Status S3Protocol::failure(const std::string& path, const HttpAnswer& answer) const {
  const HttpHead& head = answer.head;
  const std::string code = xml_text(answer.text, "Code");
  const std::string shown =
      code.empty() ? fmt::format("{}", head.status) : fmt::format("{} {}", head.status, code);
  const auto is = [&code](std::initializer_list<std::string_view> codes) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
  };
  const S3Place place = s3_place_of(path).value();
  std::string region(head.find("x-amz-bucket-region"));
  if (region.empty()) region = xml_text(answer.text, "Region");
  const bool is_elsewhere =
      is({"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException",
          "AuthorizationQueryParametersError"}) ||
      head.is_redirect() || (head.status == 400 && !region.empty() && region != settings_.region);
  if (is_elsewhere)
    return refused(fmt::format(
        "bucket '{}' lies in another region than '{}' ({}): say hr.storage(region='{}')",
        place.bucket, settings_.region, shown, region.empty() ? "..." : region));
  if (code == "NoSuchBucket")
    return not_found(
        fmt::format("there is no bucket '{}' at {}", place.bucket, endpoint_.origin()));
  if (is({"ExpiredToken", "TokenRefreshRequired", "InvalidToken", "RequestExpired"})) {
    credentials_.expire();
    return refused(
        fmt::format("the credentials have expired ({}): fetch new ones, as by `aws sso "
                    "login`, and open again",
                    shown));
  }
  if (is({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurity"}))
    return refused(fmt::format("the access key or the secret key is wrong ({}), for {}", shown,
                               endpoint_.origin()));
  if (code == "RequestTimeTooSkewed")
    return refused("the clock of this machine is wrong, and the server does not believe it");
  if (head.status == 404) return not_found(fmt::format("there is no such object ({})", shown));
  if (head.status == 401 || head.status == 403)
    return refused(fmt::format(
        "the server refuses ({}): {}", shown,
        is_public_ ? "it is not public; give credentials by hr.storage(...) or a profile"
                   : "these credentials may not read it, or it is not there"));
  return unavailable(answer.tries > 1
                         ? fmt::format("the server answers {} ({} tries)", shown, answer.tries)
                         : fmt::format("the server answers {}", shown));
}

namespace {

constexpr std::string_view kSchemes[] = {"s3", "gs"};

}  // namespace

extern const StoreKind s3_stores = {
    .name = "s3",
    .schemes = kSchemes,
    .purpose = "objects of S3 and of stores that speak like it; gs:// of Google's",
    .mixes_schemes = false,
    .make = [](const StoreOptions& options,
               std::string_view scheme) -> Result<std::shared_ptr<const Store>> {
      auto kept = std::make_shared<const StoreOptions>(options);
      HEADRACE_ASSIGN(auto protocol, S3Protocol::make(kept, scheme == "gs"));
      return web_store(std::move(protocol), kept);
    },
    .write = &s3_sink,
    .remove = &s3_remove,
};

}  // namespace headrace
