// SPDX-License-Identifier: Apache-2.0
//
// Where data lie and who may read them: hr.storage(...), as the stores take it.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/interrupt.h"
#include "convert.h"
#include "errors.h"
#include "held_object.h"
#include "storage/open_store.h"
#include "storage/stat_memo.h"
#include "trace/notices.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

std::string text_of(nb::handle found, const char* name) {
  const nb::object value = found.attr("get")(name);
  return value.is_none() ? "" : nb::cast<std::string>(value);
}

// A Python function that gives a dict of credentials, or None where it knows none.
Result<Credentials> ask(const HeldObject& function) {
  if (!nb::is_alive()) return cancelled("Python has ended");
  nb::gil_scoped_acquire gil;
  try {
    const nb::object found = function.get()();
    if (found.is_none()) return Credentials{};
    return Credentials{.access_key = text_of(found, "access_key"),
                       .secret_key = text_of(found, "secret_key"),
                       .session_token = text_of(found, "session_token"),
                       .expires_s = nb::cast<int64_t>(found.attr("get")("expires", 0))};
  } catch (nb::python_error& e) {
    const std::string type = nb::cast<std::string>(e.type().attr("__name__"));
    return Status(Code::kPermission, fmt::format("botocore cannot get credentials: {}: {}", type,
                                                 nb::cast<std::string>(nb::str(e.value()))));
  }
}

template <typename T>
void take(const nb::dict& from, const char* name, T& out) {
  if (from.contains(name)) out = nb::cast<T>(from[name]);
}

StoreOptions options_of(const nb::dict& from) {
  StoreOptions o;
  take(from, "endpoint", o.endpoint);
  take(from, "region", o.region);
  take(from, "profile", o.profile);
  take(from, "access_key", o.credentials.access_key);
  take(from, "secret_key", o.credentials.secret_key);
  take(from, "session_token", o.credentials.session_token);
  take(from, "anonymous", o.anonymous);
  take(from, "requester_pays", o.requester_pays);
  take(from, "addressing", o.addressing);
  take(from, "token", o.token);
  take(from, "user", o.user);
  take(from, "password", o.password);
  take(from, "headers", o.headers);
  take(from, "ca_file", o.ca_file);
  take(from, "allow_plain_http", o.allow_plain_http);
  take(from, "allow_link_local", o.allow_link_local);
  take(from, "connections", o.connections);
  take(from, "retries", o.retries);
  take(from, "backoff", o.backoff_s);
  take(from, "connect_timeout", o.connect_timeout_s);
  take(from, "stall_retry", o.stall_retry_s);
  take(from, "stall_warning", o.stall_warning_s);
  take(from, "stall_error", o.stall_error_s);
  take(from, "hedge", o.hedge);
  if (from.contains("refresh"))
    o.refresh = [held = std::make_shared<const HeldObject>(
                     nb::borrow<nb::object>(from["refresh"]))] { return ask(*held); };
  check(o.validate());
  return o;
}

// `with StorageScope({...}):` what is opened inside, by this thread, is opened with these.
class StorageScope {
 public:
  // `once`: servers are asked nothing twice inside.
  StorageScope(const nb::dict& options, bool once) : options_(options_of(options)) {
    if (once) options_.opening = std::make_shared<OpeningMemo>();
  }
  // What is asked once is another scope's.
  explicit StorageScope(StoreOptions options) : options_(std::move(options)), is_lent_(true) {}
  void enter() {
    if (is_lent_) interrupt_.emplace(given_up_.get());
    scope_.emplace(options_);
  }
  void exit() {
    if (options_.opening != nullptr && !is_lent_) options_.opening->end();
    scope_.reset();
    interrupt_.reset();
  }
  // The same for another thread; ends nothing.
  StorageScope* again() const {
    auto* same = new StorageScope(options_);
    same->given_up_ = given_up_;
    return same;
  }
  // Signals reach the main thread alone: what others wait for, inside of what again() gave, ends.
  void give_up() { given_up_->store(true); }

 private:
  StoreOptions options_;
  bool is_lent_ = false;
  std::shared_ptr<std::atomic<bool>> given_up_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<InterruptScope> interrupt_;
  std::optional<ScopedStoreOptions> scope_;
};

nb::list stores() {
  nb::list out;
  for (const StoreKind* kind : all_stores()) {
    nb::dict row;
    row["name"] = to_str(kind->name);
    nb::list schemes;
    for (const std::string_view scheme : kind->schemes) schemes.append(to_str(scheme));
    row["schemes"] = schemes;
    row["purpose"] = to_str(kind->purpose);
    out.append(row);
  }
  return out;
}

}  // namespace

void bind_storage(nb::module_& m) {
  nb::class_<StorageScope>(m, "StorageScope")
      .def(nb::init<const nb::dict&, bool>(), nb::arg("options"), nb::arg("once") = false)
      .def_static(
          "current", [] { return new StorageScope(current_store_options()); },
          nb::rv_policy::take_ownership)
      .def("again", &StorageScope::again, nb::rv_policy::take_ownership)
      .def("give_up", &StorageScope::give_up)
      .def("enter", &StorageScope::enter)
      .def("exit", &StorageScope::exit);
  m.def("stores", &stores);
  m.def(
      "next_notice",
      [](int timeout_ms) -> std::optional<std::string> {
        nb::gil_scoped_release release;
        return next_notice(timeout_ms);
      },
      nb::arg("timeout_ms"));
  m.def("end_notices", &end_notices);
}

}  // namespace headrace::py
