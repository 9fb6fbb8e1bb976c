// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/test_bucket.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/http/url.h"

namespace headrace {
namespace {

std::string argument(const std::string& path, const std::string& name) {
  for (const char mark : {'?', '&'}) {
    const size_t at = path.find(mark + name + '=');
    if (at == std::string::npos) continue;
    const size_t begin = at + name.size() + 2;
    return percent_decoded(path.substr(begin, path.find('&', begin) - begin));
  }
  return {};
}

std::string reply(int status, const std::string& xml) {
  return fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n\r\n{}", status, xml.size(), xml);
}

std::string listing(const TestServer& server, const Asked& asked, size_t page_keys) {
  const std::string bucket = asked.path.substr(0, asked.path.find('/', 1) + 1);
  const std::string prefix = argument(asked.path, "prefix");
  const std::string after = argument(asked.path, "continuation-token");
  std::vector<std::pair<std::string, size_t>> keys;  // folders end with '/'
  for (const auto& [path, bytes] : server.files()) {
    if (!path.starts_with(bucket + prefix)) continue;
    const std::string key = path.substr(bucket.size());
    const size_t slash = key.find('/', prefix.size());
    const std::string entry = key.substr(0, slash == std::string::npos ? slash : slash + 1);
    if (entry > after && (keys.empty() || keys.back().first != entry))
      keys.emplace_back(entry, bytes);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; }),
             keys.end());
  const bool is_cut = keys.size() > page_keys;
  if (is_cut) keys.resize(page_keys);
  std::string xml = "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>";
  for (const auto& [key, bytes] : keys) {
    std::string name;  // as Amazon encodes it: a space is '+'
    for (const char c : key) name += c == ' ' ? "+" : percent_encoded({&c, 1}, true);
    if (key.ends_with('/'))
      xml += fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", name);
    else
      xml += fmt::format(
          "<Contents><Key>{}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
          "<ETag>&quot;v1-{}&quot;</ETag><Size>{}</Size></Contents>",
          name, bytes, bytes);
  }
  xml += fmt::format("<IsTruncated>{}</IsTruncated>", is_cut);
  if (is_cut)
    xml += fmt::format("<NextContinuationToken>{}</NextContinuationToken>", keys.back().first);
  return reply(200, xml + "</ListBucketResult>");
}

}  // namespace

TestServer::Answer answers_of_s3(const TestServer& server, size_t page_keys) {
  return [&server, page_keys](const Asked& asked) -> std::optional<std::string> {
    if (asked.path.find("list-type=2") != std::string::npos)
      return listing(server, asked, page_keys);
    const auto files = server.files();
    if (std::any_of(files.begin(), files.end(),
                    [&](const auto& file) { return file.first == asked.path; }))
      return std::nullopt;
    return reply(404, asked.method == "HEAD" ? "" : "<Error><Code>NoSuchKey</Code></Error>");
  };
}

}  // namespace headrace
