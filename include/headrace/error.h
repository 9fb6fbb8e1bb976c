// SPDX-License-Identifier: Apache-2.0
//
// What the library throws.  Each error says what happened, where, and what to do about it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#define HEADRACE_API __attribute__((visibility("default")))

namespace hr {

class HEADRACE_API Error : public std::runtime_error {
 public:
  struct Place {
    std::string file;
    int64_t offset = -1;  // of the first wrong byte
    int64_t sample = -1;
    std::string key;
  };
  Error(const std::string& text, Place place)
      : std::runtime_error(text), place_(std::move(place)) {}
  const Place& place() const { return place_; }

 private:
  Place place_;
};

class HEADRACE_API DataError : public Error {  // damaged data
  using Error::Error;
};
class HEADRACE_API UsageError : public Error {  // arguments that cannot be
  using Error::Error;
};
class HEADRACE_API StorageError : public Error {  // files that cannot be read or written
  using Error::Error;
};
class HEADRACE_API Unsupported : public Error {  // what this build or version cannot do
  using Error::Error;
};

}  // namespace hr
