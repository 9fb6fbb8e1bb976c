// SPDX-License-Identifier: Apache-2.0
#include "storage/http/test_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace headrace {
namespace {

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 32);
  return text;
}

bool readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, 20) > 0;
}

bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string plain(int status, std::string_view body, std::string_view more = {}) {
  return fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(), more,
                     body);
}

}  // namespace

std::string Asked::field(std::string_view name) const {
  const std::string wanted = fmt::format("\r\n{}: ", name);
  const size_t at = head.find(wanted);
  if (at == std::string::npos) return {};
  const size_t begin = at + wanted.size();
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

TestServer::TestServer() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(listener_, 256) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    std::abort();
  port_ = ntohs(at.sin_port);
  accepts_ = std::thread([this] { accept_all(); });
}

TestServer::~TestServer() {
  closing_ = true;
  accepts_.join();
  std::vector<std::thread> threads;
  {
    MutexLock lock(mu_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  ::close(listener_);
}

void TestServer::put(const std::string& path, std::string_view content) {
  MutexLock lock(mu_);
  File& file = files_[path];
  file.content = content;
  ++file.version;
}

void TestServer::answer(Answer answer) {
  MutexLock lock(mu_);
  answer_ = std::move(answer);
}

std::string TestServer::url(std::string_view path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

std::vector<Asked> TestServer::asked() const {
  MutexLock lock(mu_);
  return asked_;
}

std::vector<std::pair<std::string, size_t>> TestServer::files() const {
  MutexLock lock(mu_);
  std::vector<std::pair<std::string, size_t>> out;
  for (const auto& [path, file] : files_) out.emplace_back(path, file.content.size());
  return out;
}

void TestServer::accept_all() {
  while (!closing_) {
    if (!readable(listener_)) continue;
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ++connections_;
    MutexLock lock(mu_);
    threads_.emplace_back([this, fd] {
      serve(fd);
      ::close(fd);
    });
  }
}

void TestServer::serve(int fd) {
  std::string got;
  while (!closing_) {
    const size_t end = got.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (!readable(fd)) continue;
      char buffer[4096];
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      got.append(buffer, static_cast<size_t>(n));
      continue;
    }
    Asked asked{.head = lower(got.substr(0, end + 2)), .number = requests_++};
    const size_t space = got.find(' ');
    asked.method = got.substr(0, space);
    asked.path = got.substr(space + 1, got.find(' ', space + 1) - space - 1);
    got.erase(0, end + 4);
    const std::string text = reply(asked);
    {
      MutexLock lock(mu_);
      asked_.push_back(asked);
    }
    if (text.empty()) {
      while (!closing_ && !readable(fd)) continue;
      return;
    }
    if (!send_all(fd, text)) return;
    if (text.find("Connection: close") != std::string::npos) return;
  }
}

std::string TestServer::reply(const Asked& asked) {
  Answer own;
  File file;
  bool found = false;
  bool is_folder = false;
  const std::string path = asked.path.substr(0, asked.path.find('?'));
  {
    MutexLock lock(mu_);
    own = answer_;
    if (const auto it = files_.find(path); it != files_.end()) {
      file = it->second;
      found = true;
    }
    const std::string folder = path.ends_with('/') ? path : path + '/';
    is_folder = std::any_of(files_.begin(), files_.end(),
                            [&](const auto& f) { return f.first.starts_with(folder); });
  }
  if (own)
    if (std::optional<std::string> text = own(asked)) return *text;
  if (found) return file_reply(asked, file);
  if (is_folder && !path.ends_with('/'))
    return plain(301, "", fmt::format("Location: {}/\r\n", path));
  if (is_folder) return index_reply(path);
  return plain(404, asked.method == "HEAD" ? "" : "not here");
}

std::string TestServer::file_reply(const Asked& asked, const File& file) const {
  const std::string tag = fmt::format("\"v{}-{}\"", file.version, file.content.size());
  const std::string etag = fmt::format("ETag: {}\r\nAccept-Ranges: bytes\r\n", tag);
  if (const std::string wanted = asked.field("if-match"); !wanted.empty() && wanted != tag)
    return plain(412, "", etag);
  const std::string range = asked.field("range");
  std::string_view body = file.content;
  int status = 200;
  std::string more = etag;
  if (range.starts_with("bytes=")) {
    const uint64_t first = std::strtoull(range.c_str() + 6, nullptr, 10);
    uint64_t last = std::strtoull(range.c_str() + range.find('-') + 1, nullptr, 10);
    if (first >= body.size())
      return plain(416, "", fmt::format("Content-Range: bytes */{}\r\n", body.size()));
    last = std::min<uint64_t>(last, body.size() - 1);
    more += fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, last, body.size());
    body = body.substr(first, last - first + 1);
    status = 206;
  }
  if (asked.method == "HEAD")
    return fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n{}\r\n", status, body.size(), more);
  return plain(status, body, more);
}

std::string TestServer::index_reply(const std::string& path) const {
  std::string html = "<html><head><title>Index of " + path + "</title></head><body>\n";
  html += "<a href=\"../\">../</a>\n";
  std::string last;
  MutexLock lock(mu_);
  for (const auto& [name, file] : files_) {
    if (!name.starts_with(path)) continue;
    const size_t slash = name.find('/', path.size());
    const std::string entry =
        name.substr(path.size(), slash == std::string::npos ? slash : slash + 1 - path.size());
    if (entry != last) html += fmt::format("<a href=\"{}\">{}</a>\n", entry, entry);
    last = entry;
  }
  return plain(200, html + "</body></html>", "Content-Type: text/html\r\n");
}

}  // namespace headrace
