// SPDX-License-Identifier: Apache-2.0
#include "array/netcdf_classic.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace headrace {
namespace {

constexpr uint32_t kDimensions = 0x0a;
constexpr uint32_t kVariables = 0x0b;
constexpr uint32_t kAttributes = 0x0c;

constexpr uint64_t kFirstRead = uint64_t{64} << 10;
// Headers have some kilobytes; one of this size is damage, or a file for other tools.
constexpr uint64_t kLongestHeader = uint64_t{32} << 20;
// What the netCDF library allows.
constexpr uint64_t kMostAxes = 1024;
// Far above the library's 256, and short enough for an error text.
constexpr uint64_t kLongestName = 4096;
// Far above any file, and products of it with a few bytes stay below 2^63.
constexpr uint64_t kMostElements = uint64_t{1} << 56;

struct Type {
  uint64_t bytes = 0;
  std::optional<DType> dtype;  // nothing: texts
};

std::optional<Type> type_numbered(uint32_t code, int version) {
  switch (code) {
    case 1:
      return Type{1, DType::kI8};
    case 2:
      return Type{1, {}};
    case 3:
      return Type{2, DType::kI16};
    case 4:
      return Type{4, DType::kI32};
    case 5:
      return Type{4, DType::kF32};
    case 6:
      return Type{8, DType::kF64};
    default:
      break;
  }
  if (version != 5) return {};
  switch (code) {
    case 7:
      return Type{1, DType::kU8};
    case 8:
      return Type{2, DType::kU16};
    case 9:
      return Type{4, DType::kU32};
    case 10:
      return Type{8, DType::kI64};
    case 11:
      return Type{8, DType::kU64};
    default:
      return {};
  }
}

uint64_t load_be(Bytes at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint64_t>(at[i]);
  return value;
}

uint64_t filled_up(uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

// One thread at a time.  Once something is wrong, status() says it and all else reads as 0.
class Reader {
 public:
  Reader(Bytes head, uint64_t file_bytes) : head_(head), file_bytes_(file_bytes) {}

  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  bool wants_more() const { return wants_more_; }
  uint64_t at() const { return at_; }

  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  void damaged(std::string what, uint64_t where) {
    fail(corrupt("NetCDF header: " + std::move(what)).at(where));
  }

  Bytes take(uint64_t bytes, std::string_view what) {
    if (!ok()) return {};
    if (bytes > file_bytes_ - at_) {
      damaged(fmt::format("{} bytes of {} run past the end of the file ({} bytes)", bytes, what,
                          file_bytes_),
              at_);
      return {};
    }
    if (bytes > head_.size() - at_) {
      wants_more_ = true;
      fail(corrupt("the header goes on"));
      return {};
    }
    const Bytes out = head_.subspan(at_, bytes);
    at_ += bytes;
    return out;
  }
  uint64_t number(size_t bytes, std::string_view what) {
    const Bytes taken = take(bytes, what);
    return taken.empty() ? 0 : load_be(taken, bytes);
  }
  uint32_t word(std::string_view what) { return static_cast<uint32_t>(number(4, what)); }

 private:
  const Bytes head_;
  const uint64_t file_bytes_;
  uint64_t at_ = 0;
  bool wants_more_ = false;
  Status status_;
};

class Parser {
 public:
  Parser(Bytes head, uint64_t file_bytes) : in_(head, file_bytes), file_bytes_(file_bytes) {}

  bool wants_more() const { return in_.wants_more(); }

  Result<NetcdfFile> run() {
    read_start();
    read_dimensions();
    read_attributes(file_.attributes);
    read_variables();
    HEADRACE_TRY(in_.status());
    HEADRACE_TRY(place_variables());
    return std::move(file_);
  }

 private:
  void read_start() {
    const Bytes magic = in_.take(4, "the magic");
    if (magic.empty()) return;
    if (!is_netcdf_classic(magic)) return in_.damaged("no CDF-1, CDF-2 or CDF-5 begins here", 0);
    file_.version = static_cast<int>(magic[3]);
    count_bytes_ = file_.version == 5 ? 8 : 4;
    const uint64_t at = in_.at();
    records_ = count("the count of records");
    const uint64_t streaming = file_.version == 5 ? ~uint64_t{0} : 0xffffffffu;
    is_streaming_ = records_ == streaming;
    if (!is_streaming_ && records_ > kMostElements)
      in_.damaged(fmt::format("{} records", records_), at);
  }

  uint64_t count(std::string_view what) { return in_.number(count_bytes_, what); }

  // Of a list: 0 where it is absent.
  uint64_t list_of(uint32_t tag, std::string_view what) {
    const uint64_t at = in_.at();
    const uint32_t found = in_.word(what);
    const uint64_t n = count(what);
    if (in_.ok() && found != tag && (found != 0 || n != 0))
      in_.damaged(fmt::format("tag {:#x} where {} begin ({:#x})", found, what, tag), at);
    return in_.ok() ? n : 0;
  }

  std::string name(std::string_view what) {
    const uint64_t at = in_.at();
    const uint64_t n = count(what);
    if (n > kLongestName) in_.damaged(fmt::format("{} of {} bytes", what, n), at);
    const Bytes text = in_.take(n, what);
    in_.take(filled_up(text.size()) - text.size(), what);
    std::string out(as_text(text));
    if (in_.ok() && (out.empty() || out.find('\0') != std::string::npos ||
                     valid_utf8_prefix(text) < text.size()))
      in_.damaged(fmt::format("{} is empty, holds a zero or is no UTF-8", what), at);
    return out;
  }

  void read_dimensions() {
    const uint64_t n = list_of(kDimensions, "dimensions");
    for (uint64_t i = 0; i < n && in_.ok(); ++i) {
      const uint64_t at = in_.at();
      std::string called = name("the name of a dimension");
      const uint64_t length = count("the length of a dimension");
      if (!in_.ok()) return;
      if (length > kMostElements) return in_.damaged(fmt::format("a dimension of {}", length), at);
      if (length == 0) {
        if (record_dimension_)
          return in_.damaged(fmt::format("'{}' and '{}' are both the record dimension",
                                         file_.dimensions[*record_dimension_], called),
                             at);
        record_dimension_ = lengths_.size();
      }
      file_.dimensions.push_back(std::move(called));
      lengths_.push_back(length);
    }
  }

  std::optional<Type> type(std::string_view what) {
    const uint64_t at = in_.at();
    const uint32_t code = in_.word(what);
    const std::optional<Type> known = type_numbered(code, file_.version);
    if (in_.ok() && !known)
      in_.damaged(fmt::format("{} is {}, which CDF-{} does not have", what, code, file_.version),
                  at);
    return in_.ok() ? known : std::nullopt;
  }

  void read_attributes(std::vector<NetcdfAttribute>& out) {
    const uint64_t n = list_of(kAttributes, "attributes");
    for (uint64_t i = 0; i < n && in_.ok(); ++i) {
      std::string called = name("the name of an attribute");
      const std::optional<Type> of = type("the type of an attribute");
      const uint64_t at = in_.at();
      const uint64_t items = count("the count of an attribute's values");
      if (!in_.ok()) return;
      if (items > file_bytes_)
        return in_.damaged(fmt::format("an attribute of {} values", items), at);
      const Bytes values = in_.take(items * of->bytes, "an attribute's values");
      in_.take(filled_up(values.size()) - values.size(), "an attribute's values");
      if (in_.ok()) out.push_back({std::move(called), of->dtype, {values.begin(), values.end()}});
    }
  }

  void read_variables() {
    const uint64_t n = list_of(kVariables, "variables");
    for (uint64_t i = 0; i < n && in_.ok(); ++i) read_variable();
  }

  void read_variable() {
    NetcdfVariable out{.name = name("the name of a variable")};
    read_axes(out);
    read_attributes(out.attributes);
    const std::optional<Type> of = type("the type of a variable");
    // Of no use: with more than 2^32 bytes it does not hold the size, and writers disagree on it.
    count("the size of a variable");
    const uint64_t at = in_.at();
    out.begin = in_.number(file_.version == 1 ? 4 : 8, "the begin of a variable");
    if (!in_.ok()) return;
    out.dtype = of->dtype;
    uint64_t elements = 1;
    for (size_t a = out.has_records ? 1 : 0; a < out.shape.size(); ++a) {
      const auto extent = static_cast<uint64_t>(out.shape[a]);
      if (elements > kMostElements / extent)
        return in_.damaged(fmt::format("'{}' has too many elements", out.name), at);
      elements *= extent;
    }
    out.bytes = elements * of->bytes;
    begins_at_.push_back(at);
    file_.variables.push_back(std::move(out));
  }

  void read_axes(NetcdfVariable& out) {
    const uint64_t at = in_.at();
    const uint64_t axes = count("the count of a variable's dimensions");
    if (axes > kMostAxes) return in_.damaged(fmt::format("a variable of {} dimensions", axes), at);
    for (uint64_t a = 0; a < axes && in_.ok(); ++a) {
      const uint64_t here = in_.at();
      const uint64_t number = count("the number of a dimension");
      if (!in_.ok()) return;
      if (number >= lengths_.size())
        return in_.damaged(
            fmt::format("'{}' has dimension {} of {}", out.name, number, lengths_.size()), here);
      if (number == record_dimension_) {
        if (a != 0)
          return in_.damaged(
              fmt::format("'{}' has the record dimension behind another one", out.name), here);
        out.has_records = true;
      }
      out.dims.push_back(number);
      out.shape.push_back(static_cast<int64_t>(lengths_[number]));
    }
  }

  // Everything must lie in the file; what follows from the number of records is filled in.
  Status place_variables() {
    uint64_t growing = 0;
    uint64_t first = file_bytes_;
    uint64_t stride = 0;
    for (const NetcdfVariable& v : file_.variables) {
      if (!v.has_records) continue;
      ++growing;
      first = std::min(first, v.begin);
      if (filled_up(v.bytes) > kMostElements * 8 - stride)
        return corrupt("NetCDF header: records of too many bytes");
      stride += filled_up(v.bytes);
    }
    for (const NetcdfVariable& v : file_.variables)
      if (v.has_records && growing == 1) stride = v.bytes;
    if (is_streaming_) records_ = stride == 0 ? 0 : (file_bytes_ - first) / stride;
    for (size_t i = 0; i < file_.variables.size(); ++i) {
      NetcdfVariable& v = file_.variables[i];
      if (v.has_records) {
        v.shape[0] = static_cast<int64_t>(records_);
        v.stride = stride;
      }
      if (Status s = check_place(v); !s.ok()) return s.at(begins_at_[i]);
    }
    return {};
  }

  Status check_place(const NetcdfVariable& v) const {
    const uint64_t slabs = v.has_records ? records_ : 1;
    if (slabs == 0 || v.bytes == 0) return {};
    const auto cut = [&](std::string_view what) {
      return corrupt(
          fmt::format("NetCDF header: '{}' has {} {} bytes from offset {} on, and the file has {}: "
                      "it was cut off, "
                      "or its header is damaged",
                      v.name, what, v.bytes, v.begin, file_bytes_));
    };
    if (v.begin > file_bytes_ || v.bytes > file_bytes_ - v.begin)
      return cut(v.has_records ? "records of" : "its");
    const uint64_t room = file_bytes_ - v.begin - v.bytes;
    if (slabs > 1 && (slabs - 1) > room / v.stride) return cut(fmt::format("{} records of", slabs));
    return {};
  }

  Reader in_;
  const uint64_t file_bytes_;
  NetcdfFile file_;
  size_t count_bytes_ = 4;
  uint64_t records_ = 0;
  bool is_streaming_ = false;
  std::vector<uint64_t> lengths_;  // of the dimensions
  std::optional<uint64_t> record_dimension_;
  std::vector<uint64_t> begins_at_;  // where each variable's begin stands: for error texts
};

}  // namespace

bool is_netcdf_classic(Bytes head) {
  if (head.size() < 4 || as_text(head.first(3)) != "CDF") return false;
  const auto version = static_cast<int>(head[3]);
  return version == 1 || version == 2 || version == 5;
}

Result<NetcdfFile> parse_netcdf_classic(Bytes head, uint64_t file_bytes, bool& wants_more) {
  Parser parser(head, std::max<uint64_t>(file_bytes, head.size()));
  Result<NetcdfFile> out = parser.run();
  wants_more = parser.wants_more();
  return out;
}

Result<NetcdfFile> read_netcdf_classic(const Store& store, const std::string& path) {
  HEADRACE_ASSIGN(const FileInfo info, store.stat(path));
  Buffer head;
  for (uint64_t n = kFirstRead;; n *= 4) {
    const uint64_t bytes = std::min(n, info.bytes);
    HEADRACE_TRY(store.read_at(path, 0, bytes, head));
    bool wants_more = false;
    Result<NetcdfFile> out = parse_netcdf_classic(head.bytes(), info.bytes, wants_more);
    if (out.ok()) return out;
    if (!wants_more) return out.status().in_file(path);
    if (n >= kLongestHeader)
      return unsupported(fmt::format("the NetCDF header has more than {} MiB", n >> 20))
          .in_file(path);
  }
}

}  // namespace headrace
