// SPDX-License-Identifier: Apache-2.0
//
// Values that are taken as they are: text, checked to be UTF-8, and raw bytes.
#pragma once

#include <memory>

#include "base/utf8.h"
#include "codec/decoder.h"

namespace headrace {

// u8[?].  Bytes that are not UTF-8 are kCorrupt at the first bad one.
std::unique_ptr<Decoder> make_text_decoder();
// u8[?].
std::unique_ptr<Decoder> make_bytes_decoder();

}  // namespace headrace
