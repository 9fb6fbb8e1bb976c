// SPDX-License-Identifier: Apache-2.0
#include "index/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "index/names.h"
#include "index/number_lists.h"

namespace headrace {
namespace {

// In the order of the enumeration: the row number is the number on disk.
constexpr std::array<std::string_view, 11> kNames = {
    "bytes", "jpeg", "png", "webp", "npy", "json", "text", "int", "float", "tokens", "array",
};

struct Row {
  std::string_view extension;
  Kind kind;
};

// What extensions mean by themselves; every other one is bytes.  The integers and
// texts are those that WebDataset decodes by default.
constexpr Row kExtensions[] = {
    {"jpg", Kind::kJpeg},        {"jpeg", Kind::kJpeg},    {"png", Kind::kPng},
    {"webp", Kind::kWebp},       {"npy", Kind::kNpy},      {"json", Kind::kJson},
    {"jsn", Kind::kJson},        {"txt", Kind::kText},     {"text", Kind::kText},
    {"transcript", Kind::kText}, {"caption", Kind::kText}, {"cls", Kind::kInt},
    {"cls2", Kind::kInt},        {"index", Kind::kInt},    {"inx", Kind::kInt},
    {"count", Kind::kInt},
};

constexpr std::string_view kPictureExtensions[] = {
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "dib",  "tif",  "tiff", "ppm",
    "pgm", "pbm",  "pnm", "tga",  "jp2", "j2k",  "jpx", "jxl", "avif", "heic", "heif", "qoi",
};

}  // namespace

bool is_picture_extension(std::string_view extension) {
  const std::string last = lower_case(extension.substr(extension.rfind('.') + 1));
  return std::find(std::begin(kPictureExtensions), std::end(kPictureExtensions), last) !=
         std::end(kPictureExtensions);
}

std::string_view kind_name(Kind kind) {
  const auto row = static_cast<size_t>(kind);
  return row < kNames.size() ? kNames[row] : "unknown";
}

std::optional<Kind> kind_named(std::string_view name) {
  const auto row = std::find(kNames.begin(), kNames.end(), name);
  if (row == kNames.end()) return std::nullopt;
  return static_cast<Kind>(row - kNames.begin());
}

bool same_values(const Field& a, const Field& b) {
  const auto is_picture = [](Kind kind) {
    return kind == Kind::kBytes || kind == Kind::kJpeg || kind == Kind::kPng || kind == Kind::kWebp;
  };
  if (a == b || is_list_of(a, b) || is_list_of(b, a)) return true;
  return a.name == b.name && a.storage == b.storage && a.storage == Storage::kExtent &&
         a.dtype == b.dtype && a.shape == b.shape && is_picture(a.kind) && is_picture(b.kind);
}

bool is_list_of(const Field& number, const Field& list) {
  const bool is_number = (number.kind == Kind::kInt && number.dtype == DType::kI64) ||
                         (number.kind == Kind::kFloat && number.dtype == DType::kF32);
  return is_number && number.storage == Storage::kInline && list.kind == Kind::kArray &&
         list.name == number.name && list.dtype == number.dtype &&
         list.shape == std::vector<int64_t>{kVaries};
}

std::string field_text(const Field& field) {
  std::string text(kind_name(field.kind));
  if (field.dtype) text += fmt::format(" {}", dtype_name(*field.dtype));
  if (field.kind != Kind::kArray) return text;
  text += '[';
  for (size_t i = 0; i < field.shape.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? "," : "",
                        field.shape[i] == kVaries ? "?" : std::to_string(field.shape[i]));
  return text + ']';
}

Kind kind_of_extension(std::string_view extension) {
  // "seg.png" is a picture: the last part decides.
  extension = extension.substr(extension.rfind('.') + 1);
  for (const Row& row : kExtensions)
    if (row.extension == extension) return row.kind;
  return Kind::kBytes;
}

}  // namespace headrace
