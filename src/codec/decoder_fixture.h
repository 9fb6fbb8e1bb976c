// SPDX-License-Identifier: Apache-2.0
//
// For tests: one value through a decoder, as the only field of its sample.
#pragma once

#include "codec/decoder.h"

namespace headrace {

inline Status decode_one(const Decoder& decoder, Bytes value, Key draws, Slot& out) {
  SampleContext context;
  context.begin(draws, 0, 0, 0, {});
  return decoder.run({&value, 1}, context, out);
}

}  // namespace headrace
