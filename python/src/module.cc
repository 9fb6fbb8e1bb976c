// SPDX-License-Identifier: Apache-2.0
//
// headrace._core.  One bind_<area>() per file, listed here in dependency order.
#include "arrays.h"
#include "errors.h"
#include "map.h"
#include "stored_bytes.h"

namespace headrace::py {
void bind_array_pack(nanobind::module_& m);
void bind_array_source(nanobind::module_& m);
void bind_array_files(nanobind::module_& m);
void bind_array_index(nanobind::module_& m);
void bind_store(nanobind::module_& m);
void bind_zarr(nanobind::module_& m);
void bind_combined(nanobind::module_& m);
void bind_columns(nanobind::module_& m);
void bind_cache(nanobind::module_& m);
void bind_dataset(nanobind::module_& m);
void bind_fields(nanobind::module_& m);
void bind_images(nanobind::module_& m);
void bind_made(nanobind::module_& m);
void bind_loader(nanobind::module_& m);
void bind_processes(nanobind::module_& m);
void bind_options(nanobind::module_& m);
void bind_parquet(nanobind::module_& m);
void bind_sources(nanobind::module_& m);
void bind_stage(nanobind::module_& m);
void bind_texts(nanobind::module_& m);
void bind_tokens(nanobind::module_& m);
void bind_trace(nanobind::module_& m);
void bind_storage(nanobind::module_& m);
void bind_other_stores(nanobind::module_& m);
void bind_tools(nanobind::module_& m);
}  // namespace headrace::py

NB_MODULE(_core, m) {
  m.doc() = "headrace's engine.  Private: use the headrace package.";
  headrace::py::bind_errors(m);
  headrace::py::bind_arrays(m);
  headrace::py::bind_stored_bytes(m);
  headrace::py::bind_processes(m);
  headrace::py::bind_map(m);
  headrace::py::bind_fields(m);
  headrace::py::bind_storage(m);
  headrace::py::bind_other_stores(m);
  headrace::py::bind_columns(m);
  headrace::py::bind_cache(m);
  headrace::py::bind_dataset(m);
  headrace::py::bind_combined(m);
  headrace::py::bind_made(m);
  headrace::py::bind_array_source(m);
  headrace::py::bind_array_files(m);
  headrace::py::bind_array_index(m);
  headrace::py::bind_store(m);
  headrace::py::bind_zarr(m);
  headrace::py::bind_images(m);
  headrace::py::bind_options(m);
  headrace::py::bind_loader(m);
  headrace::py::bind_parquet(m);
  headrace::py::bind_sources(m);
  headrace::py::bind_stage(m);
  headrace::py::bind_texts(m);
  headrace::py::bind_tokens(m);
  headrace::py::bind_trace(m);
  headrace::py::bind_tools(m);
  headrace::py::bind_array_pack(m);
}
