// SPDX-License-Identifier: Apache-2.0
//
// A data set with fields more, each a stored one whose values a codec in Python makes arrays of
// (hr.register_codec).  Such a value is a unit that opens as a whole: decode_unit() calls the
// codec, under the GIL, and gives a .npy file.  Everything behind it is as of any .npy.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "index/source.h"

namespace headrace::py {

struct PythonCodec {
  std::string field;          // that is stored
  std::string name;           // of the field that is added
  nanobind::object function;  // bytes of a value to bytes of a .npy; raises DataError
};

Result<std::shared_ptr<const Source>> decoded_source(std::shared_ptr<const Source> base,
                                                     std::vector<PythonCodec> codecs);

}  // namespace headrace::py
