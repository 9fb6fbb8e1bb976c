// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/sign.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/sha256.h"
#include "storage/http/url.h"

namespace headrace {

std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : query)
    encoded.emplace_back(percent_encoded(name, false), percent_encoded(value, false));
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded)
    out.append(out.empty() ? "" : "&").append(name).append("=").append(value);
  return out;
}

std::vector<std::string> sign(const SignedRequest& request, const Credentials& credentials,
                              std::string_view region, std::string_view service,
                              std::string_view now) {
  std::vector<std::pair<std::string, std::string>> headers = request.headers;
  headers.emplace_back("host", request.host);
  if (service == "s3") headers.emplace_back("x-amz-content-sha256", request.body_hash);
  headers.emplace_back("x-amz-date", now);
  if (!credentials.session_token.empty())
    headers.emplace_back("x-amz-security-token", credentials.session_token);
  std::sort(headers.begin(), headers.end());
  std::string lines;
  std::string names;
  for (const auto& [name, value] : headers) {
    lines.append(name).append(":").append(value).append("\n");
    names.append(names.empty() ? "" : ";").append(name);
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                  canonical_query(request.query), lines, names, request.body_hash);
  const std::string_view day = now.substr(0, 8);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, region, service);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", now, scope, hex_of(sha256(canonical)));
  Sha256Digest key = hmac_sha256("AWS4" + credentials.secret_key, day);
  for (const std::string_view part : {region, service, std::string_view("aws4_request")})
    key = hmac_sha256(text_of(key), part);
  const std::string signature = hex_of(hmac_sha256(text_of(key), to_sign));
  std::vector<std::string> out;
  out.push_back(fmt::format(
      "Authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
      credentials.access_key, scope, names, signature));
  for (const auto& [name, value] : headers)
    if (name != "host") out.push_back(fmt::format("{}: {}", name, value));
  return out;
}

std::string amazon_time(int64_t unix_s) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm when{};
  ::gmtime_r(&seconds, &when);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", when.tm_year + 1900, when.tm_mon + 1,
                     when.tm_mday, when.tm_hour, when.tm_min, when.tm_sec);
}

}  // namespace headrace
