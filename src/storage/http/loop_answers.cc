// SPDX-License-Identifier: Apache-2.0
//
// What the loop does with what came: an answer, a redirect, an error that passes, one that does
// not.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>

#include "storage/http/attempt.h"
#include "storage/http/loop.h"
#include "storage/http/url.h"
#include "storage/http/web_read.h"

namespace headrace {
namespace {

constexpr uint32_t kMostRedirects = 5;
constexpr double kMostBackoff = 20;        // seconds
constexpr uint32_t kTriesOfStrangers = 2;  // retries of a server that never answered

bool is_throttle(int status) {
  return status == 503 || status == 429;
}

bool passes(const HttpTask& task, const HttpAnswer& answer) {
  const int status = answer.head.status;
  if (is_throttle(status) || status == 408 || status == 425 || status == 500 || status == 502 ||
      status == 504)
    return true;
  return task.is_passing && task.is_passing(answer);
}

// Between half and all of it: many who failed together come back apart.
double jittered(double seconds) {
  static thread_local std::minstd_rand random(static_cast<unsigned>(steady_ns()));
  return seconds * (0.5 + 0.5 * std::uniform_real_distribution<double>()(random));
}

}  // namespace

void HttpLoop::finished(const Finished& what) {
  auto& one = static_cast<Try&>(*what.transfer);
  if (one.over) return;
  Call& call = one.call;
  ended(*call.pool, call);
  std::unique_ptr<Try>& mine = one.second ? call.second : call.first;
  over_.push_back(std::move(mine));
  one.over = true;
  const bool is_there = what.end == TransferEnd::kComplete ||
                        (what.end == TransferEnd::kStopped && one.status.ok() && one.is_whole());
  if (is_there && (!one.is_good() || one.is_whole())) return answered(call, one);
  // The other of two may still bring it.
  if (call.first != nullptr || call.second != nullptr) return;
  if (what.end == TransferEnd::kStopped && one.status.code() != Code::kUnavailable)
    return end(call, one.status.ok() ? internal("a transfer stopped by itself") : one.status, {});
  if (what.end == TransferEnd::kStopped) return try_again(call, one.status, 0);
  failed(call, what);
}

void HttpLoop::answered(Call& call, Try& one) {
  call.pool->has_answered = true;
  const int status = one.answer.head.status;
  if (is_throttle(status))
    call.pool->limit.throttled();
  else
    call.pool->limit.answered();
  if (one.is_good()) {
    if (one.second && one.plan.bytes != kWholeFile) {
      if (call.first != nullptr) stop_tries(call);
      Bytes from = one.own.bytes();
      const BodyPieces pieces = call.task.pieces(one.plan.bytes);
      for (size_t i = 0; i < pieces.size(); ++i) {
        from = from.subspan(pieces[i].skip);
        if (pieces[i].bytes == 0) continue;
        const Result<MutableBytes> into = call.task.memory(i);
        if (!into.ok()) return end(call, into.status(), {});
        std::memcpy(into.value().data(), from.data(), pieces[i].bytes);
        from = from.subspan(pieces[i].bytes);
      }
    }
    return end(call, {}, std::move(one.answer));
  }
  if (one.answer.head.is_redirect() && follow(call, one)) return;
  if (!passes(call.task, one.answer)) return end(call, {}, std::move(one.answer));
  if (call.first != nullptr || call.second != nullptr) return;
  const auto wait = parse_retry_after(one.answer.head.find("retry-after"), std::time(nullptr));
  if (call.tries > call.task.options->retries) {
    one.answer.tries = call.tries;
    return end(call, {}, std::move(one.answer));
  }
  try_again(call, unavailable(fmt::format("the server answers {}", status)), wait.value_or(0));
}

// False where it is the answer itself: no place to go to, or a folder that wants its slash.
bool HttpLoop::follow(Call& call, Try& one) {
  const Result<WebUrl> from = parse_web_url(one.request.url);
  if (!from.ok()) return false;
  const Result<WebUrl> to = resolve_url(from.value(), one.answer.head.find("location"));
  if (!to.ok() || to.value().path == from.value().path + '/') return false;
  if (!call.task.follows) return false;
  const auto refuse = [&](std::string_view why) {
    end(call, Status(Code::kPermission, fmt::format("{} ({})", why, to.value().origin())), {});
    return true;
  };
  if (++call.redirects > kMostRedirects) return refuse("redirected too often");
  if (from.value().scheme == "https" && to.value().scheme == "http")
    return refuse("redirected from https to plain http, which headrace does not follow");
  if (is_link_local(to.value().host) && !call.task.options->allow_link_local)
    return refuse("redirected to a link-local address, which headrace does not follow");
  HttpRequest next = one.request;
  next.url = to.value().text();
  if (to.value().origin() != from.value().origin()) next.credentials.clear();
  stop_tries(call);
  auto again = std::make_unique<Try>(call, false, std::move(next));
  again->answer.url = again->request.url;
  if (const Status status = transfers_.start(*again, again->request, *call.task.options);
      !status.ok()) {
    end(call, status, {});
    return true;
  }
  began(*call.pool, call);
  call.first = std::move(again);
  return true;
}

void HttpLoop::failed(Call& call, const Finished& what) {
  switch (what.end) {
    case TransferEnd::kCertificate: {
      const bool is_other = what.text.find("match") != std::string::npos;  // of another host
      const std::string_view remedy = is_other ? "ask for it by a name that the certificate has"
                                               : "for one of your own give hr.storage(ca_file=...)";
      return end(
          call,
          Status(Code::kPermission, fmt::format("the server's certificate is not accepted ({}): {}",
                                                what.text, remedy)),
          {});
    }
    case TransferEnd::kRefused:
      return end(call,
                 Status(Code::kPermission,
                        "link-local addresses are not asked: say "
                        "hr.storage(allow_link_local=True) if it is meant"),
                 {});
    case TransferEnd::kProxy:
      return end(call, proxy_refuses(), {});
    case TransferEnd::kFailed:
      return end(call, unavailable(fmt::format("the request failed: {}", what.text)), {});
    default:
      break;
  }
  std::string text = what.text;
  if (what.end == TransferEnd::kComplete) text = "the answer is shorter than it says";
  if (text.find("wrong version number") != std::string::npos)
    text = "the port speaks no TLS: write http:// if that is meant";
  const bool is_stranger = what.end == TransferEnd::kNoServer && !call.pool->has_answered;
  const uint32_t most = is_stranger ? std::min(kTriesOfStrangers, call.task.options->retries)
                                    : call.task.options->retries;
  if (call.tries > most)
    return end(call, unavailable(fmt::format("{} ({} tries)", text, call.tries)), {});
  try_again(call, unavailable(text), 0);
}

void HttpLoop::try_again(Call& call, Status why, double wait_s) {
  const StoreOptions& options = *call.task.options;
  if (call.tries > options.retries)
    return end(call, unavailable(fmt::format("{} ({} tries)", why.message(), call.tries)), {});
  ++call.task.stats->retries;
  call.failed = why.message();
  if (wait_s >= 1) call.failed += fmt::format(" and asks to wait {:.3g} s", wait_s);
  if (call.task.read != nullptr) call.task.bytes = call.task.read->bytes_left();
  call.redirects = 0;
  call.hedged = false;
  const double doubled = options.backoff_s * static_cast<double>(1u << std::min(call.tries, 16u));
  const double wait = std::min(std::max(wait_s, jittered(std::min(doubled / 2, kMostBackoff))),
                               options.stall_error_s);
  call.place = Call::Place::kDelayed;
  call.delay = delayed_.emplace(steady_ns() + static_cast<uint64_t>(wait * 1e9), &call);
}

void HttpLoop::stop_tries(Call& call) {
  for (std::unique_ptr<Try>* one : {&call.first, &call.second}) {
    if (*one == nullptr) continue;
    transfers_.stop(**one);
    (*one)->over = true;
    ended(*call.pool, call);
    over_.push_back(std::move(*one));
  }
}

void HttpLoop::end(Call& call, Status status, HttpAnswer&& answer) {
  stop_tries(call);
  if (call.place == Call::Place::kWaiting) call.pool->remove(call);
  if (call.place == Call::Place::kDelayed) delayed_.erase(call.delay);
  // Out of the list before done(), which may lead to anything; freed after.
  const std::unique_ptr<Call> mine = std::move(*call.self);
  calls_.erase(mine->self);
  load_ -= mine->cost;
  mine->pool->first_left -= mine->task.is_first ? 1 : 0;
  mine->task.done(std::move(status), std::move(answer));
}

}  // namespace headrace
