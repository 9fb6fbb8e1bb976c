// SPDX-License-Identifier: Apache-2.0
//
// Dataset: samples by number, whatever format they lie in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headrace/array.h"
#include "headrace/error.h"
#include "headrace/field.h"

namespace hr {

struct OpenOptions {
  std::string index;  // a folder that `headrace index` made
  std::string root;   // of the paths in a list
};

// Cheap to copy; copies share what is open.  Thread-safe.
class HEADRACE_API Dataset {
 public:
  struct FieldInfo {
    std::string name;
    std::string kind;  // "jpeg", "int", "text", "json", "bytes", …
  };

  uint64_t size() const;
  std::vector<FieldInfo> fields() const;
  std::string fingerprint() const;
  std::string key(uint64_t sample) const;

  // These samples, in this order, as a data set of their own.
  Dataset take(std::vector<uint64_t> samples) const;

  // One sample; without `fields` everything as it lies.  Fields that it lacks are left out.
  // Several values of one field are an error; lists() gives them.
  std::map<std::string, Array> at(uint64_t sample, const Fields& fields = {}) const;
  // Likewise, with every value of every field.
  std::map<std::string, std::vector<Array>> lists(uint64_t sample, const Fields& fields = {}) const;

  struct Inside;
  explicit Dataset(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}
  const Inside& inside() const { return *inside_; }

 private:
  std::shared_ptr<const Inside> inside_;
};

// A path, a glob, braces ("train-{0000..0007}.tar"), a folder, or a list of them.
HEADRACE_API Dataset open(const std::vector<std::string>& urls, const OpenOptions& options = {});
HEADRACE_API Dataset open(const std::string& url, const OpenOptions& options = {});

}  // namespace hr
