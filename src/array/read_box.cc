// SPDX-License-Identifier: Apache-2.0
#include "array/read_box.h"

#include "array/member_sum.h"

namespace headrace {

Status read_box(const ArrayBox& box, const std::vector<std::string>& files, const Store& store,
                const Strided& region) {
  thread_local Buffer stored;
  thread_local Buffer opened;
  Strided to = region;
  for (size_t a = 0; a < box.to.size(); ++a) to.at += box.to[a] * to.strides[a];
  Bytes bytes = box.array->literal;
  if (box.is_missing && bytes.empty()) return fill_box(fill_of(*box.array), to, box.size), Status();
  std::string path;
  if (!box.is_missing) {
    if (box.place->file >= files.size()) return internal("a chunk in a file that is not listed");
    path = files[box.place->file];
    HEADRACE_TRY(store.read_at(path, box.offset, box.stored, stored));
    bytes = stored.bytes();
    if (!box.array->filters.empty()) {
      if (Status s = undo_filters(box.array->filters, box.place->skipped, bytes,
                                  chunk_bytes(*box.array), opened);
          !s.ok())
        return s.with(box.array->name).at(box.offset).in_file(path);
      bytes = opened.bytes();
    }
    if (box.array->sum && box.stored == box.place->stored)
      if (Status s = check_sum(*box.array, bytes); !s.ok()) return s.at(box.offset).in_file(path);
  }
  if (bytes.size() < box.first_byte || bytes.size() - box.first_byte < box.span_bytes)
    return corrupt("a chunk is shorter than its shape says").at(box.offset).in_file(path);
  copy_box({bytes.data() + box.first_byte, box.strides}, to, box.size, size_of(box.array->dtype));
  return {};
}

}  // namespace headrace
