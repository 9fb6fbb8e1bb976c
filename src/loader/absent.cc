// SPDX-License-Identifier: Apache-2.0
#include "loader/absent.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/buffer.h"
#include "codec/array.h"
#include "loader/field.h"

namespace headrace {
namespace {

// Always the same value, whatever is stored.  Immutable, hence thread-safe.
class ConstantDecoder final : public Decoder {
 public:
  ConstantDecoder(TensorSpec output, std::vector<int64_t> shape, std::vector<std::byte> value)
      : output_(std::move(output)), shape_(std::move(shape)), value_(std::move(value)) {}
  const TensorSpec& output() const override { return output_; }
  Status run(std::span<const Bytes>, SampleContext&, Slot& out) const override {
    HEADRACE_ASSIGN(const MutableBytes room, out.room(shape_));
    if (room.size() != value_.size()) return internal("a default of another size than its slot");
    std::copy(value_.begin(), value_.end(), room.begin());
    return {};
  }

 private:
  const TensorSpec output_;
  const std::vector<int64_t> shape_;
  const std::vector<std::byte> value_;
};

class MemorySlot final : public Slot {
 public:
  explicit MemorySlot(DType dtype) : dtype_(dtype) {}
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    size_t bytes = size_of(dtype_);
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    value.resize(bytes);
    return MutableBytes(value);
  }
  std::vector<std::byte> value;

 private:
  const DType dtype_;
};

Status refuse(const FieldRequest& request, const std::string& why) {
  return invalid(fmt::format("field '{}': default= {}", request.output, why));
}

Status cannot_hold(const FieldRequest& request, const PadNumber& number, DType dtype) {
  return refuse(
      request,
      std::visit(
          [&](auto n) { return fmt::format("is {}, which {} cannot hold", n, dtype_name(dtype)); },
          number));
}

// Zeros in the form of the result; nothing where its extents vary.
std::shared_ptr<const Decoder> zeros_like(const TensorSpec& output) {
  std::vector<int64_t> shape = output.shape;
  uint64_t elements = 1;
  for (int64_t& n : shape) elements *= static_cast<uint64_t>(n = std::max<int64_t>(n, 0));
  return std::make_shared<ConstantDecoder>(
      output, std::move(shape), std::vector<std::byte>(elements * size_of(output.dtype)));
}

bool fits(const TensorSpec& given, const TensorSpec& wanted) {
  return given.dtype == wanted.dtype &&
         std::equal(given.shape.begin(), given.shape.end(), wanted.shape.begin(),
                    wanted.shape.end(),
                    [](int64_t g, int64_t w) { return w == kVaries || g == w; });
}

Params without(const Params& params, std::initializer_list<const char*> names) {
  std::map<std::string, Param> values = params.values();
  for (const char* name : names) values.erase(name);
  return Params(std::move(values));
}

std::vector<std::byte> filled(const PadValue& element, DType dtype, uint64_t count) {
  std::vector<std::byte> out(count * size_of(dtype));
  element.fill(MutableBytes(out), size_of(dtype));
  return out;
}

using Made = Result<AbsentValue>;

Made of_decoder(const FieldRequest& request, const FieldSpec& spec, const TensorSpec& wanted,
                std::vector<std::byte> stored) {
  HEADRACE_ASSIGN(std::shared_ptr<const Decoder> decoder, make_decoder(spec));
  if (!fits(decoder->output(), wanted))
    return refuse(request, fmt::format("gives {}, and the field {}", decoder->output().text(),
                                       wanted.text()));
  return AbsentValue{std::move(decoder), std::move(stored)};
}

Made one_number(const FieldRequest& request, const TensorSpec& wanted) {
  const auto* number = std::get_if<PadNumber>(&*request.otherwise);
  if (number == nullptr) return refuse(request, "is one number for a field of single numbers");
  const auto element = pad_value(*number, wanted.dtype);
  if (!element.ok()) return cannot_hold(request, *number, wanted.dtype);
  return AbsentValue{std::make_shared<ConstantDecoder>(wanted, wanted.shape,
                                                       filled(element.value(), wanted.dtype, 1)),
                     {}};
}

// What the elements are before the steps; unset where only the values say.
std::optional<DType> type_before_steps(const FieldSpec& spec) {
  if (spec.array) return spec.array->dtype;
  const auto option = spec.options.values().find("dtype");
  if (option == spec.options.values().end()) return {};
  const auto* name = std::get_if<std::string>(&option->second);
  return name == nullptr ? std::nullopt : dtype_named(*name);
}

Result<std::vector<std::byte>> converted(const FieldRequest& request, const DefaultArray& given,
                                         DType to) {
  if (given.dtype == to) return given.elements;
  const FieldSpec spec{.name = request.output,
                       .what = "array",
                       .options = Params({{"dtype", std::string(dtype_name(to))}}),
                       .array = StoredArray{false, given.dtype, given.shape}};
  HEADRACE_ASSIGN(const std::unique_ptr<Decoder> decoder, make_decoder(spec));
  MemorySlot slot(to);
  SampleContext context;
  const Bytes stored(given.elements);
  if (const Status s = decoder->run({&stored, 1}, context, slot); !s.ok())
    return refuse(request, std::string(s.message()));
  return std::move(slot.value);
}

Made numbers(const FieldRequest& request, const FieldSpec& spec, const TensorSpec& wanted) {
  if (wanted.shape.empty()) return one_number(request, wanted);
  DefaultArray value;
  if (const auto* given = std::get_if<DefaultArray>(&*request.otherwise)) {
    value.shape = given->shape;
    value.dtype = type_before_steps(spec).value_or(given->dtype);
    HEADRACE_ASSIGN(value.elements, converted(request, *given, value.dtype));
  } else if (const auto* number = std::get_if<PadNumber>(&*request.otherwise)) {
    if (!wanted.is_fixed())
      return refuse(request, fmt::format("is one number, and the shape {} varies: give an array",
                                         wanted.text()));
    value.shape = wanted.shape;
    value.dtype = type_before_steps(spec).value_or(wanted.dtype);
    const auto element = pad_value(*number, value.dtype);
    if (!element.ok()) return cannot_hold(request, *number, value.dtype);
    value.elements = filled(element.value(), value.dtype, wanted.elements());
  } else {
    return refuse(request, "is a number or an array for a field of numbers");
  }
  // Of plain bytes the option says what they hold; here the type is known.
  FieldSpec own{.name = request.output,
                .what = request.what == "tokens" ? "tokens" : "array",
                .options = without(request.options, {"dtype"}),
                .steps = request.steps,
                .array = StoredArray{false, value.dtype, value.shape},
                .one_shape = false};
  const bool casts = std::any_of(own.steps.begin(), own.steps.end(),
                                 [](const Step& s) { return s.name == "cast"; });
  if (!casts) {
    std::map<std::string, Param> options = own.options.values();
    options["dtype"] = std::string(dtype_name(wanted.dtype));
    own.options = Params(std::move(options));
  }
  return of_decoder(request, own, wanted, std::move(value.elements));
}

bool is_store_step(const std::string& name) {
  return name == "normalize" || name == "cast" || name == "layout";
}

// A picture of one colour, as large as the result: steps that move pixels leave it as it is.
Made one_colour(const FieldRequest& request, const FieldSpec& spec, const TensorSpec& wanted,
                const std::vector<uint8_t>& levels) {
  if (!wanted.is_fixed())
    return refuse(request, fmt::format("is one level, and the size {} varies: add .resize((h, w)) "
                                       "or give a picture as an array [h, w, c]",
                                       wanted.text()));
  FieldSpec own = spec;
  own.joint = Joint::kNone;
  own.share = 0;
  own.options = without(spec.options, {"shape", "layout", "fast", "strict", "orient"});
  std::erase_if(own.steps, [](const Step& s) { return !is_store_step(s.name); });
  bool last = false;  // the channels
  for (const Step& s : own.steps) {
    const auto order = s.params.values().find("order");
    if (s.name == "layout" && order != s.params.values().end())
      last = order->second == Param(std::string("NHWC"));
  }
  const size_t from = wanted.shape.size() - 3;  // of the views there may be several
  const int64_t channels = wanted.shape[last ? from + 2 : from];
  const int64_t height = wanted.shape[last ? from : from + 1];
  const int64_t width = wanted.shape[last ? from + 1 : from + 2];
  if (levels.size() != 1 && levels.size() != static_cast<size_t>(channels))
    return refuse(request, fmt::format("has {} levels, and the picture {} channels", levels.size(),
                                       channels));
  std::vector<std::byte> pixels(static_cast<size_t>(height * width * channels));
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = std::byte{levels[i % static_cast<size_t>(channels) % levels.size()]};
  own.array = StoredArray{false, DType::kU8, {height, width}};
  if (channels > 1) own.array->shape.push_back(channels);
  return of_decoder(request, own, wanted, std::move(pixels));
}

Made picture(const FieldRequest& request, const FieldSpec& spec, const TensorSpec& wanted) {
  const std::string what =
      "is a level from 0 to 255, one for each channel, or a u8 array [h, w, c]";
  DefaultArray value;
  if (const auto* number = std::get_if<PadNumber>(&*request.otherwise)) {
    const auto level = pad_value(*number, DType::kU8);
    if (!level.ok()) return refuse(request, what);
    return one_colour(request, spec, wanted, {static_cast<uint8_t>(level.value().element[0])});
  }
  const auto* given = std::get_if<DefaultArray>(&*request.otherwise);
  if (given == nullptr || given->shape.empty() || given->shape.size() > 3)
    return refuse(request, what);
  auto pixels = converted(request, *given, DType::kU8);
  if (!pixels.ok()) return refuse(request, what);
  if (given->shape.size() == 1) {
    std::vector<uint8_t> levels;
    for (const std::byte level : pixels.value()) levels.push_back(static_cast<uint8_t>(level));
    if (levels.empty()) return refuse(request, what);
    return one_colour(request, spec, wanted, levels);
  }
  FieldSpec own = spec;
  own.share = 0;
  own.options = without(spec.options, {"shape", "layout"});
  own.array = StoredArray{false, DType::kU8, given->shape};
  return of_decoder(request, own, wanted, std::move(pixels).value());
}

// Text, bytes, JSON, boxes: the decoder takes it for a stored value.
Made as_if_stored(const FieldRequest& request, const FieldSpec& spec,
                  std::shared_ptr<const Decoder> inner) {
  const auto* text = std::get_if<std::string>(&*request.otherwise);
  if (text == nullptr)
    return refuse(request, fmt::format("is {} for hr.{}",
                                       request.what == "bytes" ? "bytes" : "a text", request.what));
  const Bytes bytes = as_bytes(*text);
  if (spec.array) {  // boxes of a data set that has them as arrays: the default is JSON all the
                     // same
    FieldSpec own = spec;
    own.array.reset();
    HEADRACE_ASSIGN(inner, make_decoder(own));
  }
  if (const Status s = inner->check(bytes); !s.ok())
    return refuse(request, std::string(s.message()));
  return AbsentValue{std::move(inner), {bytes.begin(), bytes.end()}};
}

Made given_default(const FieldRequest& request, const FieldSpec& spec,
                   const std::shared_ptr<const Decoder>& inner) {
  if (request.what == "image") return picture(request, spec, inner->output());
  if (request.what == "array" || request.what == "tokens" || request.what == "scalar")
    return numbers(request, spec, inner->output());
  return as_if_stored(request, spec, inner);
}

Status check_goes(const FieldRequest& request) {
  const char* word = request.otherwise ? "default=" : "optional=True";
  if (request.what == "key")
    return invalid(fmt::format("field '{}': every sample has a key: {} does not go with hr.key",
                               request.output, word));
  if (request.many && request.otherwise)
    return invalid(fmt::format(
        "field '{}': with many=True a sample that has none gets an empty list: leave default= out",
        request.output));
  if (request.leads)
    return invalid(fmt::format(
        "field '{}' leads its hr.joint, and the others follow it: {} is for those that follow",
        request.output, word));
  return {};
}

}  // namespace

Status describe_absent(const FieldRequest& request, const TensorSpec* like, FieldSpec& spec) {
  const auto* number = request.otherwise ? std::get_if<PadNumber>(&*request.otherwise) : nullptr;
  const bool real = number != nullptr && std::holds_alternative<double>(*number);
  if (request.what == "scalar") {
    spec.stored = real ? Stored::kInlineFloat : Stored::kInlineInt;
    if (like != nullptr) spec.options = Params({{"dtype", std::string(dtype_name(like->dtype))}});
    return {};
  }
  if (request.what != "array" && request.what != "tokens") return {};
  if (like != nullptr) {
    spec.array = StoredArray{false, like->dtype, like->shape};
    spec.options = Params();
    spec.steps.clear();
    return {};
  }
  const auto* given = request.otherwise ? std::get_if<DefaultArray>(&*request.otherwise) : nullptr;
  if (given == nullptr)
    return invalid(fmt::format(
        "there is no field '{}' in the data, and nothing says of which type and shape it is: give "
        "default= as an array",
        request.field));
  spec.array = StoredArray{false, given->dtype, given->shape};
  return {};
}

Result<std::shared_ptr<const AbsentValue>> make_absent(
    const FieldRequest& request, const FieldSpec& spec, const std::shared_ptr<const Decoder>& inner,
    const std::shared_ptr<const Decoder>& whole) {
  if (request.is_none_when_absent) return std::make_shared<const AbsentValue>();
  if (!request.otherwise && !request.optional) return std::shared_ptr<const AbsentValue>();
  HEADRACE_TRY(check_goes(request));
  if (whole->deferred() != nullptr)
    return invalid(fmt::format(
        "field '{}': with defer=true a picture is decoded later: no default= and no optional=True",
        request.output));
  if (!request.otherwise) {
    AbsentValue zeros{zeros_like(whole->output()), {}};
    if (request.what == "json" && !request.wrap_decoder) {
      const Bytes null = as_bytes(std::string_view("null"));
      zeros.decoder =
          std::make_shared<ConstantDecoder>(whole->output(), std::vector<int64_t>{4},
                                            std::vector<std::byte>(null.begin(), null.end()));
    }
    return std::make_shared<const AbsentValue>(std::move(zeros));
  }
  HEADRACE_ASSIGN(AbsentValue value, given_default(request, spec, inner));
  if (request.wrap_decoder) {
    HEADRACE_ASSIGN(value.decoder, request.wrap_decoder(std::move(value.decoder)));
  }
  return std::make_shared<const AbsentValue>(std::move(value));
}

}  // namespace headrace
