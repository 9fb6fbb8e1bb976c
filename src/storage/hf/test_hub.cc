// SPDX-License-Identifier: Apache-2.0
#include "storage/hf/test_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"

namespace headrace {
namespace {

std::string reply(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

std::string listing(const TestServer& server, const std::string& files, std::string folder) {
  if (!folder.empty()) folder += '/';
  std::map<std::string, std::string> items;
  for (const auto& [path, bytes] : server.files()) {
    if (!path.starts_with(files + folder)) continue;
    const std::string name = path.substr(files.size());
    const size_t slash = name.find('/', folder.size());
    const bool is_folder = slash != std::string::npos;
    const std::string entry = name.substr(0, slash);
    items[entry] =
        fmt::format("{{\"type\":\"{}\",\"path\":{},\"size\":{}}}", is_folder ? "directory" : "file",
                    json_quoted(entry), is_folder ? 0 : bytes);
  }
  std::string json;
  for (const auto& [entry, item] : items) json += (json.empty() ? "" : ",") + item;
  return items.empty() ? reply(404, "") : reply(200, '[' + json + ']');
}

}  // namespace

TestServer::Answer answers_of_hub(const TestServer& server) {
  return [&server](const Asked& asked) -> std::optional<std::string> {
    constexpr std::string_view kApi = "/api";
    constexpr std::string_view kTree = "/tree/main";
    const size_t tree = asked.path.find(kTree);
    if (asked.path.starts_with(kApi) && tree != std::string::npos) {
      const std::string name = asked.path.substr(kApi.size(), tree - kApi.size());
      std::string folder = asked.path.substr(tree + kTree.size());
      if (folder.starts_with('/')) folder.erase(0, 1);
      return listing(server, name + "/resolve/main/", folder);
    }
    const auto files = server.files();
    if (std::any_of(files.begin(), files.end(),
                    [&](const auto& file) { return file.first == asked.path; }))
      return std::nullopt;
    return reply(404, "");
  };
}

}  // namespace headrace
