// SPDX-License-Identifier: Apache-2.0
#include "storage/http/transfers.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "trace/clock.h"

namespace headrace {
namespace {

// A few callbacks a megabyte; larger ones leave the processor's cache before they are copied.
constexpr long kBufferBytes = 128 << 10;
constexpr long kKeptConnections = 256;
constexpr size_t kKeptHandles = 256;
constexpr size_t kMostHeadFields = 200;
constexpr int kEventsAtOnce = 64;
constexpr uint64_t kNever = ~uint64_t{0};
constexpr uint64_t kMillisecond = 1'000'000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody here sets it
  return value == nullptr ? "" : value;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

bool append(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) return false;
  (void)list.release();
  list.reset(longer);
  return true;
}

bool is_link_local_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 16) == 0xA9FE;
  }
  if (address.sa_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 169 && v6.s6_addr[13] == 254;
  return IN6_IS_ADDR_LINKLOCAL(&v6);
}

TransferEnd end_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return TransferEnd::kComplete;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return TransferEnd::kNoServer;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
      return TransferEnd::kCertificate;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:  // what comes is no HTTP
    case CURLE_HTTP2:
      return TransferEnd::kBroken;
    default:
      return TransferEnd::kFailed;
  }
}

}  // namespace

// One request at libcurl.  Its address is what callbacks get.
struct Transfer::Wire {
  Transfer* owner = nullptr;
  CURL* easy = nullptr;
  HeaderList headers;
  HttpHead head;
  bool head_told = false;
  bool stopped = false;
  bool refused = false;
  bool allow_link_local = false;
  std::shared_ptr<const std::string> upload;
  curl_off_t uploaded = 0;
  std::array<char, CURL_ERROR_SIZE> error{};

  bool tell_head() {
    if (head_told) return !stopped;
    head_told = true;
    stopped = !owner->head(std::move(head));
    return !stopped;
  }

  static size_t on_header(char* data, size_t one, size_t size, void* self) {
    auto& wire = *static_cast<Wire*>(self);
    std::string_view line(data, one * size);
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {  // also after a 100 Continue, or a proxy's answer
      wire.head = {};
      const size_t space = line.find(' ');
      if (space != std::string_view::npos)
        wire.head.status = std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    } else if (line.empty()) {
      // 1xx is followed by the answer itself; of a proxy's CONNECT libcurl says nothing here.
      if (wire.head.status >= 200 && !wire.tell_head()) return 0;
    } else if (const size_t colon = line.find(':');
               colon != std::string_view::npos && wire.head.fields.size() < kMostHeadFields) {
      std::string name(line.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
      std::string_view value = line.substr(colon + 1);
      while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
      while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
      wire.head.fields.emplace_back(std::move(name), value);
    }
    return one * size;
  }

  static size_t on_body(char* data, size_t one, size_t size, void* self) {
    auto& wire = *static_cast<Wire*>(self);
    const size_t bytes = one * size;
    if (!wire.tell_head()) return 0;
    wire.stopped = !wire.owner->body(as_bytes({data, bytes}));
    return wire.stopped ? 0 : bytes;
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t uploaded) {
    auto& wire = *static_cast<Wire*>(self);
    if (uploaded != wire.uploaded) wire.owner->sent();
    wire.uploaded = uploaded;
    return 0;
  }

  static curl_socket_t on_socket(void* self, curlsocktype, curl_sockaddr* address) {
    auto& wire = *static_cast<Wire*>(self);
    if (!wire.allow_link_local && is_link_local_address(address->addr)) {
      wire.refused = true;
      return CURL_SOCKET_BAD;
    }
    return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  }
};

// libcurl says which sockets it waits for and when it wants to be called; epoll waits.  So only
// what has something to say is looked at: curl_multi_perform() asks every connection each time.
struct Transfers::Multi {
  CURLM* multi = nullptr;
  int epoll = -1;
  int wakes = -1;              // an eventfd
  uint64_t timer_ns = kNever;  // when libcurl wants to be called, whatever happens
  std::vector<CURL*> idle;     // handles keep their memory
  std::vector<std::shared_ptr<Transfer::Wire>> running;
  std::string ca_file;
  std::string ca_folder;

  // As curl's own program reads them, and what else is usual.
  Multi() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    multi = curl_multi_init();
    epoll = ::epoll_create1(EPOLL_CLOEXEC);
    wakes = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch(EPOLL_CTL_ADD, wakes, EPOLLIN);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &Multi::on_watch);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &Multi::on_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, long{CURLPIPE_NOTHING});
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, kKeptConnections);
    for (const char* name : {"CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "SSL_CERT_FILE"})
      if (ca_file.empty()) ca_file = environment(name);
    ca_folder = environment("SSL_CERT_DIR");
  }
  ~Multi() {
    for (CURL* easy : idle) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);  // which still says what it no longer waits for
    if (wakes >= 0) ::close(wakes);
    if (epoll >= 0) ::close(epoll);
  }
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  bool is_good() const { return multi != nullptr && epoll >= 0 && wakes >= 0; }

  void watch(int how, int fd, uint32_t what) const {
    epoll_event event{};
    event.events = what;
    event.data.fd = fd;
    // A socket that was closed is gone from epoll too: nothing is left to change.
    if (::epoll_ctl(epoll, how, fd, &event) != 0 && errno == EEXIST)
      (void)::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
  }

  static int on_watch(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    auto& all = *static_cast<Multi*>(self);
    if (what == CURL_POLL_REMOVE) {
      all.watch(EPOLL_CTL_DEL, socket, 0);
      return 0;
    }
    const uint32_t in = (what & CURL_POLL_IN) != 0 ? uint32_t{EPOLLIN} : 0;
    const uint32_t out = (what & CURL_POLL_OUT) != 0 ? uint32_t{EPOLLOUT} : 0;
    all.watch(known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, in | out);
    if (known == nullptr) curl_multi_assign(all.multi, socket, self);  // anything but null
    return 0;
  }

  static int on_timer(CURLM*, long ms, void* self) {
    auto& all = *static_cast<Multi*>(self);
    all.timer_ns = ms < 0 ? kNever : steady_ns() + static_cast<uint64_t>(ms) * kMillisecond;
    return 0;
  }

  void call_if_due() {
    int running_now = 0;
    if (timer_ns == kNever || timer_ns > steady_ns()) return;
    timer_ns = kNever;
    curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running_now);
  }

  // Waits, at most so long, and lets libcurl work on what there is.
  void work(int timeout_ms) {
    if (timer_ns != kNever) {
      const uint64_t now = steady_ns();
      const uint64_t left = timer_ns <= now ? 0 : (timer_ns - now) / kMillisecond + 1;
      timeout_ms = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(timeout_ms), left));
    }
    std::array<epoll_event, kEventsAtOnce> events{};
    const int count = ::epoll_wait(epoll, events.data(), kEventsAtOnce, timeout_ms);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd == wakes) {
        uint64_t times = 0;
        (void)!::read(wakes, &times, sizeof times);
        continue;
      }
      int what = 0;
      // Whoever reads from a broken connection hears what is wrong with it.
      if ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_IN;
      if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
      int running_now = 0;
      curl_multi_socket_action(multi, event.data.fd, what, &running_now);
    }
    call_if_due();
  }

  CURL* take_handle() {
    if (idle.empty()) return curl_easy_init();
    CURL* easy = idle.back();
    idle.pop_back();
    return easy;
  }

  void give_back(Transfer::Wire& wire) {
    curl_multi_remove_handle(multi, wire.easy);
    if (idle.size() < kKeptHandles) {
      curl_easy_reset(wire.easy);
      idle.push_back(wire.easy);
    } else {
      curl_easy_cleanup(wire.easy);
    }
    wire.easy = nullptr;
    std::erase_if(running, [&wire](const auto& other) { return other.get() == &wire; });
  }
};

namespace {

void set_method(CURL* easy, const HttpRequest& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (request.body != nullptr) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body->data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body->size()));
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (request.method != "GET")
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

}  // namespace

Transfers::Transfers() : multi_(std::make_unique<Multi>()) {}

Transfers::~Transfers() {
  while (!multi_->running.empty()) stop(*multi_->running.back()->owner);
}

Status Transfers::start(Transfer& transfer, const HttpRequest& request,
                        const StoreOptions& options) {
  auto wire = std::make_shared<Transfer::Wire>();
  wire->owner = &transfer;
  wire->upload = request.body;
  wire->allow_link_local = options.allow_link_local;
  wire->easy = multi_->take_handle();
  if (!multi_->is_good() || wire->easy == nullptr) return exhausted("libcurl: out of memory");
  for (const auto* lines : {&request.headers, &request.credentials})
    for (const std::string& line : *lines)
      if (!append(wire->headers, line)) return exhausted("libcurl: out of memory");
  // Fields that libcurl would add by itself and nobody asked for.
  if (request.body != nullptr)
    for (const char* line : {"Expect:", "Content-Type:"})
      if (!append(wire->headers, line)) return exhausted("libcurl: out of memory");
  CURL* easy = wire->easy;
  curl_easy_setopt(easy, CURLOPT_PRIVATE, wire.get());
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, wire->error.data());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, wire->headers.get());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "headrace");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(std::max(1.0, options.connect_timeout_s * 1e3)));
  const std::string& ca_file = options.ca_file.empty() ? multi_->ca_file : options.ca_file;
  if (!ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file.c_str());
  if (!multi_->ca_folder.empty()) curl_easy_setopt(easy, CURLOPT_CAPATH, multi_->ca_folder.c_str());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::Wire::on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, wire.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::Wire::on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, wire.get());
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &Transfer::Wire::on_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, wire.get());
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (request.body != nullptr) {
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, &Transfer::Wire::on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, wire.get());
  }
  set_method(easy, request);
  if (const CURLMcode code = curl_multi_add_handle(multi_->multi, easy); code != CURLM_OK) {
    curl_easy_cleanup(easy);
    return internal(fmt::format("libcurl: {}", curl_multi_strerror(code)));
  }
  multi_->running.push_back(wire);
  transfer.wire_ = std::move(wire);
  return {};
}

void Transfers::stop(Transfer& transfer) {
  const std::shared_ptr<Transfer::Wire> wire = std::exchange(transfer.wire_, nullptr);
  if (wire != nullptr) multi_->give_back(*wire);
}

std::vector<Finished> Transfers::poll(int timeout_ms) {
  multi_->call_if_due();  // what was started since
  std::vector<Finished> out;
  const auto collect = [&] {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_->multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* found = nullptr;
      const CURLcode code = message->data.result;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
      Transfer* owner = reinterpret_cast<Transfer::Wire*>(found)->owner;
      const std::shared_ptr<Transfer::Wire> wire = std::exchange(owner->wire_, nullptr);
      if (code == CURLE_OK) (void)wire->tell_head();
      TransferEnd end = wire->stopped ? TransferEnd::kStopped : end_of(code);
      if (wire->refused && end != TransferEnd::kComplete) end = TransferEnd::kRefused;
      long connect_code = 0;  // what a proxy said to CONNECT
      curl_easy_getinfo(message->easy_handle, CURLINFO_HTTP_CONNECTCODE, &connect_code);
      if (connect_code == 407 && code != CURLE_OK) end = TransferEnd::kProxy;
      std::string text = wire->error[0] != 0 ? wire->error.data() : curl_easy_strerror(code);
      multi_->give_back(*wire);
      out.push_back({owner, end, std::move(text)});
    }
  };
  collect();
  if (!out.empty()) return out;
  multi_->work(timeout_ms);
  collect();
  return out;
}

void Transfers::wake() {
  const uint64_t once = 1;
  (void)!::write(multi_->wakes, &once, sizeof once);
}

}  // namespace headrace
