// SPDX-License-Identifier: Apache-2.0
//
// Transfers: requests under way, many at a time, in one thread.  The only file that knows libcurl.
//
//   Transfers all;                        // one thread calls everything but wake()
//   all.start(transfer, request, options);
//   for (Finished& f : all.poll(100)) …   // waits; head() and body() of transfers are called
//   inside
//
// Connections stay open between requests to one server.  Redirects are not followed.  Proxies are
// those of the environment, as curl reads them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "storage/http/message.h"

namespace headrace {

// What comes of one request.
class Transfer {
 public:
  Transfer() = default;
  virtual ~Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Both: false ends the transfer, which is then finished with kStopped.
  virtual bool head(HttpHead&& head) = 0;
  virtual bool body(Bytes bytes) = 0;
  // Some of the request's own body is gone.
  virtual void sent() {}

 private:
  friend class Transfers;
  struct Wire;
  std::shared_ptr<Wire> wire_;  // while it is under way
};

enum class TransferEnd : uint8_t {
  kComplete,     // the whole answer is there
  kStopped,      // head() or body() said so
  kBroken,       // reset, cut short, timed out: worth another try
  kNoServer,     // no such host, nobody answers
  kCertificate,  // the server is not who it should be
  kRefused,      // an address that may not be asked
  kProxy,        // the proxy wants a user and a password
  kFailed,       // all else
};

// Of an answer 407.
inline Status proxy_refuses() {
  return Status(Code::kPermission,
                "the proxy wants a user and a password (407): give them by http_proxy or "
                "https_proxy=http://USER:PASSWORD@HOST:PORT");
}

struct Finished {
  Transfer* transfer;
  TransferEnd end;
  std::string text;  // what libcurl says
};

// One thread at a time, but for wake().
class Transfers {
 public:
  Transfers();
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  Status start(Transfer& transfer, const HttpRequest& request, const StoreOptions& options);
  // Its head(), body() are not called any more, and it does not finish.
  void stop(Transfer& transfer);
  // Waits for something to happen, at most so long, or for wake().
  std::vector<Finished> poll(int timeout_ms);
  void wake();  // from any thread

 private:
  struct Multi;
  const std::unique_ptr<Multi> multi_;
};

}  // namespace headrace
