// SPDX-License-Identifier: Apache-2.0
//
// JSON, checked on the compute threads and handed on as text: so damaged JSON is bad data
// like any other, and the consumer's parser never fails.
#pragma once

#include <memory>

#include "codec/decoder.h"

namespace headrace {

// u8[?].  What is not JSON is kCorrupt at the first wrong byte.
std::unique_ptr<Decoder> make_json_decoder();

// OK when all of `bytes` is one JSON value.  NaN, Infinity and -Infinity are taken, as Python's
// json takes them; nesting deeper than 512 is not.
Status check_json(Bytes bytes);

}  // namespace headrace
