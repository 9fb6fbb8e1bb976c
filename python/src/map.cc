// SPDX-License-Identifier: Apache-2.0
#include "map.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "base/buffer.h"
#include "convert.h"
#include "errors.h"
#include "held_object.h"
#include "trace/counters.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// Keeps one value for the function that follows.
class OwnSlot final : public Slot {
 public:
  explicit OwnSlot(DType dtype) : dtype_(dtype) {}
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    shape_.assign(shape.begin(), shape.end());
    size_t bytes = size_of(dtype_);
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    buffer_ = std::make_shared<Buffer>(bytes);
    return buffer_->span();
  }
  SharedBuffer buffer_;
  std::vector<int64_t> shape_;

 private:
  const DType dtype_;
};

std::string python_error(nb::python_error& e) {
  return fmt::format("{}: {}", nb::cast<std::string>(nb::str(e.type().attr("__name__"))),
                     nb::cast<std::string>(nb::str(e.value())));
}

class MapDecoder final : public Decoder {
 public:
  MapDecoder(DecoderPointer inner, std::string what, const MapFunction& map)
      : inner_(std::move(inner)),
        what_(std::move(what)),
        result_(map.result),
        numpy_name_(map.numpy),
        fn_(std::make_unique<HeldObject>(map.function)),
        cost_(nb::cast<MapCost&>(map.cost)),
        keep_cost_(std::make_unique<HeldObject>(map.cost)),
        output_(map.output) {}

  const TensorSpec& output() const override { return output_; }
  uint64_t damaged() const override { return inner_->damaged(); }

  size_t inputs() const override { return inner_->inputs(); }

  Status run(std::span<const Bytes> inputs, SampleContext& context, Slot& out) const override {
    OwnSlot in(inner_->output().dtype);
    HEADRACE_TRY(inner_->run(inputs, context, in));
    const Stopwatch waiting;
    nb::gil_scoped_acquire gil;
    cost_.gil_ns += waiting.ns();
    const Stopwatch busy;
    Status status;
    try {
      status = call(in, out);
    } catch (nb::python_error& e) {
      const std::string text = "the function given to map() raised " + python_error(e);
      // A function may say that a sample is bad, and only by this exception.
      const nb::object bad = nb::module_::import_("headrace.errors").attr("DataError");
      status = e.matches(bad) ? corrupt(text) : invalid(text);
    }
    ++cost_.calls;
    cost_.busy_ns += busy.ns();
    return status;
  }

 private:
  nb::object argument(const OwnSlot& in) const {
    if (what_ == "text" || what_ == "key" || what_ == "json") return to_str(in.buffer_->bytes());
    if (what_ == "bytes") return to_bytes(in.buffer_->bytes());
    nb::object array = to_array(in.buffer_, inner_->output().dtype, in.shape_, "numpy");
    return what_ == "scalar" ? nb::object(array.attr("item")()) : array;
  }

  Status call(const OwnSlot& in, Slot& out) const {
    nb::object result = fn_->get()(argument(in));
    if (result_ == "text") result = result.attr("encode")("utf-8");
    if (result_ != "array") {
      char* data = nullptr;
      Py_ssize_t size = 0;
      if (PyBytes_AsStringAndSize(result.ptr(), &data, &size) != 0) throw nb::python_error();
      return copy(as_bytes(std::string_view(data, static_cast<size_t>(size))), {size}, out);
    }
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object given = numpy.attr("asarray")(result);
    const nb::object fits =
        numpy.attr("can_cast")(given.attr("dtype"), numpy_name_.c_str(), "same_kind");
    if (PyObject_IsTrue(fits.ptr()) != 1)
      return invalid(fmt::format(
          "the function given to map() gave {} for the first sample and {} for this one",
          numpy_name_, nb::cast<std::string>(nb::str(nb::object(given.attr("dtype"))))));
    std::vector<int64_t> shape;
    for (nb::handle n : given.attr("shape")) shape.push_back(nb::cast<int64_t>(n));
    const nb::object raw = given.attr("astype")(numpy_name_.c_str()).attr("tobytes")();
    return copy(as_bytes(std::string_view(PyBytes_AsString(raw.ptr()), nb::len(raw))), shape, out);
  }

  static Status copy(Bytes from, const std::vector<int64_t>& shape, Slot& out) {
    auto room = out.room(shape);
    // A function's mistake is not bad data: it is never replaced by another sample.
    if (!room.ok())
      return invalid("the function given to map(): " + std::string(room.status().message()));
    std::copy(from.begin(), from.end(), room.value().begin());
    return {};
  }

  const DecoderPointer inner_;
  const std::string what_, result_, numpy_name_;
  const std::unique_ptr<HeldObject> fn_;
  MapCost& cost_;
  const std::unique_ptr<HeldObject> keep_cost_;
  const TensorSpec output_;
};

TensorSpec output_of(const std::string& result, const std::string& dtype,
                     const std::vector<std::optional<int64_t>>& shape) {
  if (result != "array") return {DType::kU8, {kVaries}};
  TensorSpec spec{parse_dtype(dtype), {}};
  for (const std::optional<int64_t>& n : shape) spec.shape.push_back(n.value_or(kVaries));
  return spec;
}

}  // namespace

std::function<Result<DecoderPointer>(DecoderPointer)> then_map(const std::string& what,
                                                               const MapFunction& map) {
  // Called while the GIL is held: the loader is made from Python.
  auto held = std::make_shared<HeldObject>(nb::cast(map));
  return [held, what](DecoderPointer inner) -> Result<DecoderPointer> {
    nb::gil_scoped_acquire gil;
    const auto& map_function = nb::cast<const MapFunction&>(held->get());
    return DecoderPointer(std::make_shared<MapDecoder>(std::move(inner), what, map_function));
  };
}

void bind_map(nb::module_& m) {
  nb::class_<MapCost>(m, "MapCost")
      .def(nb::init<>())
      .def_prop_ro("calls", [](const MapCost& c) { return c.calls.load(); })
      .def_prop_ro("busy_ns", [](const MapCost& c) { return c.busy_ns.load(); })
      .def_prop_ro("gil_ns", [](const MapCost& c) { return c.gil_ns.load(); });
  nb::class_<MapFunction>(m, "MapFunction")
      .def(
          "__init__",
          [](MapFunction* self, nb::callable function, const std::string& result,
             const std::string& dtype, const std::string& numpy,
             const std::vector<std::optional<int64_t>>& shape) {
            new (self)
                MapFunction{std::move(function), result, numpy, output_of(result, dtype, shape),
                            nb::cast(new MapCost(), nb::rv_policy::take_ownership)};
          },
          nb::kw_only(), nb::arg("function"), nb::arg("result"), nb::arg("dtype"), nb::arg("numpy"),
          nb::arg("shape"),
          "result: \"array\", \"text\" or \"bytes\"; dtype and numpy: our name and NumPy's; "
          "shape: None where it varies")
      .def_ro("result", &MapFunction::result)
      .def_prop_ro("cost", [](const MapFunction& f) { return nb::cast<MapCost*>(f.cost); });
}

}  // namespace headrace::py
