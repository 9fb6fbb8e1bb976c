// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <filesystem>

#include "format/registry.h"
#include "open/expand.h"
#include "open/index_places.h"
#include "pack/packer.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {

Result<PackResult> pack(const Source& source, const std::string& folder,
                        const PackOptions& options) {
  HEADRACE_ASSIGN(const Format* format, find_format(options.format));
  HEADRACE_ASSIGN(Selection selection, select_fields(source.schema(), options));
  const std::string place = clean_path(folder);
  HEADRACE_TRY(can_write(place));
  HEADRACE_ASSIGN(const std::shared_ptr<const Store> store,
                  store_of_all({&place, 1}, options.storage));
  HEADRACE_ASSIGN(const PackEstimate estimate, estimate_pack(source, place, options));
  std::error_code error;
  if (scheme_of(place).empty()) std::filesystem::create_directories(place, error);
  if (error) return from_errno(error.value(), "make folder").in_file(place);
  HEADRACE_ASSIGN(const std::unique_ptr<BuildLock> lock, BuildLock::acquire(place, options.cancel));
  const PackLayout layout{source.size(), estimate.shards, options.keep_order,
                          Key(options.seed).with("pack")};
  return Packer(source, std::move(selection), *format, layout, place, options, estimate, store)
      .run();
}

}  // namespace headrace
