// SPDX-License-Identifier: Apache-2.0
#include "storage/http/url.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/paths.h"

namespace headrace {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_unreserved(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return (c | 0x20) - 'a' + 10;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return out;
}

void append_encoded(std::string& out, char c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

// "/a/./b/../c" is "/a/c".
std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/', 1));
    path.remove_prefix(part.size());
    if (part == "/..")
      out.resize(out.rfind('/') == std::string::npos ? 0 : out.rfind('/'));
    else if (part != "/.")
      out.append(part);
    if (path.empty() && (part == "/.." || part == "/.")) out += '/';
  }
  return out;
}

}  // namespace

std::string WebUrl::origin() const {
  return port.empty() ? fmt::format("{}://{}", scheme, host)
                      : fmt::format("{}://{}:{}", scheme, host, port);
}

std::string WebUrl::text() const {
  return query.empty() ? origin() + path : origin() + path + '?' + query;
}

Result<WebUrl> parse_web_url(std::string_view url) {
  WebUrl out{.scheme = lower(scheme_of(url)), .host = "", .path = "/"};
  if (out.scheme != "http" && out.scheme != "https")
    return invalid("an address of a server begins with http:// or https://");
  std::string_view rest = url.substr(out.scheme.size() + 3);
  rest = rest.substr(0, rest.find('#'));
  const size_t mark = rest.find('?');
  if (mark != std::string_view::npos) out.query = rest.substr(mark + 1);
  rest = rest.substr(0, mark);
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) out.path = rest.substr(slash);
  std::string_view authority = rest.substr(0, slash);
  const size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    out.user = percent_decoded(authority.substr(0, at));
    authority.remove_prefix(at + 1);
  }
  const size_t bracket = authority.find(']');
  const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = authority.substr(colon + 1);
    if (port.empty() || port.size() > 5 || !std::all_of(port.begin(), port.end(), is_digit) ||
        std::stoul(std::string(port)) > 65535)
      return invalid("the port of the server is no number");
    if (port != (out.scheme == "http" ? "80" : "443")) out.port = port;
  }
  out.host = lower(authority.substr(0, colon));
  const auto is_bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\\'; };
  if (out.host.empty() ||
      std::any_of(url.begin(), url.end(),
                  [](char c) { return static_cast<unsigned char>(c) < ' '; }) ||
      std::any_of(out.host.begin(), out.host.end(), is_bad))
    return invalid("the URL names no server");
  return out;
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && keep_slashes))
      out += c;
    else
      append_encoded(out, c);
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string encoded_path(std::string_view path) {
  constexpr std::string_view kKept = "/!$&'()*+,;=:@";
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    const bool is_escape =
        c == '%' && i + 2 < path.size() && is_hex(path[i + 1]) && is_hex(path[i + 2]);
    if (is_unreserved(c) || is_escape || kKept.find(c) != std::string_view::npos)
      out += c;
    else
      append_encoded(out, c);
  }
  return out;
}

Result<WebUrl> resolve_url(const WebUrl& base, std::string_view location) {
  if (location.empty()) return invalid("a redirect that leads nowhere");
  WebUrl out = base;
  if (!scheme_of(location).empty()) {
    HEADRACE_ASSIGN(out, parse_web_url(location));
  } else if (location.starts_with("//")) {
    HEADRACE_ASSIGN(out, parse_web_url(base.scheme + ':' + std::string(location)));
  } else {
    location = location.substr(0, location.find('#'));
    const size_t mark = location.find('?');
    out.query = mark == std::string_view::npos ? "" : location.substr(mark + 1);
    const std::string_view path = location.substr(0, mark);
    if (path.starts_with('/'))
      out.path = without_dots(path);
    else if (!path.empty())
      out.path = without_dots(base.path.substr(0, base.path.rfind('/') + 1) + std::string(path));
  }
  // Servers send blanks and other letters as they are.
  out.path = encoded_path(out.path);
  std::string query;
  for (const char c : out.query)
    if (c > ' ' && c < 0x7f)
      query += c;
    else
      append_encoded(query, c);
  out.query = std::move(query);
  return out;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost") || host == "[::1]" ||
         (host.starts_with("127.") &&
          std::all_of(host.begin(), host.end(), [](char c) { return is_digit(c) || c == '.'; }));
}

bool is_link_local(std::string_view host) {
  if (host.starts_with("169.254.")) return true;
  return host.size() > 5 && (host.starts_with("[fe8") || host.starts_with("[fe9") ||
                             host.starts_with("[fea") || host.starts_with("[feb"));
}

}  // namespace headrace
