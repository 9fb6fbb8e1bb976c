// SPDX-License-Identifier: Apache-2.0
//
// What a pickle says to make a NumPy array, understood without NumPy:
//
//   _reconstruct(ndarray, (0,), b'b')   an empty array …
//     BUILD (1, shape, dtype, fortran, bytes)          … that is then filled
//   _frombuffer(bytes, dtype, shape, order)            the same in protocol 5
//   scalar(dtype, bytes)                an array without axes
//   dtype('f4', False, True)
//     BUILD (3, '<', None, None, None, -1, -1, 0)      byte order; names and parts are refused
//   _codecs.encode(text, 'latin1'), bytearray(bytes), OrderedDict()
//
// These are all the names that are known; nothing is imported or called.
#pragma once

#include <optional>

#include "base/npy.h"
#include "format/pickle/stack.h"

namespace headrace {

enum class PickleGlobal : int64_t {
  kReconstruct,
  kArrayType,
  kDType,
  kScalar,
  kFromBuffer,
  kEncode,
  kByteArray,
  kOrderedDict,
};

std::optional<PickleGlobal> find_pickle_global(std::string_view module, std::string_view name);
// The opcodes REDUCE and BUILD.
Status reduce_pickle(PickleStack& stack);
Status build_pickle(PickleStack& stack);

// An array node, checked: its bytes are as many as type and shape say.
struct PickleArray {
  NpyHeader header = {};  // its `data` is not used
  Bytes data = {};
  std::string_view encoded = {};  // the text that they are in the file; else they lie there
};
Result<PickleArray> pickle_array(const Pickle& pickle, const PickleNode& node);

// A text whose letters are bytes, in UTF-8, as those bytes.
Status decode_latin1(std::string_view text, std::string& out);

}  // namespace headrace
