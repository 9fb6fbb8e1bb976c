// SPDX-License-Identifier: Apache-2.0
//
// HttpTask: one thing that is asked of a server, until there is an answer or no hope of one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "storage/http/message.h"
#include "storage/store.h"
#include "storage/store_options.h"
#include "trace/histogram.h"

namespace headrace {

// What the requests of one store have shown so far.  Thread-safe.
struct WebStats {
  Histogram first_byte_ns;   // from sending a request to the head of its answer
  Histogram bytes_a_second;  // of bodies of some size, after that
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> retries{0};
  std::atomic<uint64_t> hedges{0};
};

// Where the body of an answer goes.
struct BodyPlan {
  // Exactly so many bytes, after `skip` of which nobody wants to know; kWholeFile: as many as come,
  // as text.
  uint64_t bytes = kWholeFile;
  uint64_t skip = 0;
  uint64_t rest = 0;  // so many that follow come too, and nobody wants them either
};

struct HttpAnswer {
  HttpHead head;
  std::string text = {};  // the body, where it did not go elsewhere
  std::string url = {};   // that was asked last, after redirects
  uint32_t tries = 1;
};

// How a body is cut: pieces, each after some bytes that nobody wants.
struct BodyPiece {
  uint64_t skip = 0;
  uint64_t bytes = 0;
};
using BodyPieces = std::vector<BodyPiece>;
struct WebRead;

// All functions are called by the thread of a loop and must not wait.
struct HttpTask {
  std::string origin;          // requests of one share a limit
  std::string name;            // for messages: the path and the range
  uint64_t priority = 0;       // smaller goes first
  uint64_t bytes = 0;          // about so many come
  bool is_whole_read = false;  // a second request may be sent for it
  bool is_first = false;       // of the first batch: others leave it the wire
  bool follows = true;         // redirects
  const void* owner = nullptr;
  std::shared_ptr<const ReadGroup> group = {};
  std::shared_ptr<const StoreOptions> options;
  std::shared_ptr<WebStats> stats;

  // The request, as of now; called for every try, because signatures have a time.
  std::function<Result<HttpRequest>()> make;
  // Of the head of a good answer (2xx): where its body goes.  kUnavailable is worth another try,
  // any other failure is the end.  Null: text.
  std::function<Result<BodyPlan>(const HttpHead&)> plan = {};
  // What a body of so many bytes consists of.  Called once a try at most.
  std::function<BodyPieces(uint64_t)> pieces = {};
  // Memory for one of them, asked for when its first byte is there: what arrived before may have
  // given its own back by then.  What it holds is overwritten by the next try.
  std::function<Result<MutableBytes>(size_t)> memory = {};
  // So many of the body's bytes have come, and stay.  Null: nobody asks.
  std::function<void(uint64_t)> arrived = {};
  // Whether an answer that is not good may become so.  Null: by its status.
  std::function<bool(const HttpAnswer&)> is_passing = {};
  // Once.  OK: the server has answered, be it with an error of its own.
  std::function<void(Status, HttpAnswer&&)> done;

  // A range of a file: neighbours may be asked for in one request.  Null: it is none.
  std::shared_ptr<WebRead> read = {};

  bool is_cancelled() const { return group != nullptr && group->is_cancelled(); }
};

}  // namespace headrace
