// SPDX-License-Identifier: Apache-2.0
//
// Between the public face (include/headrace) and the core.
#pragma once

#include <memory>

#include "batch/column.h"
#include "headrace/headrace.h"
#include "index/source.h"
#include "loader/dataset.h"
#include "loader/field.h"
#include "loader/loader.h"
#include "plan/plan.h"

namespace hr {

struct Dataset::Inside {
  std::shared_ptr<const headrace::Source> source;
  std::shared_ptr<const headrace::Dataset> as_they_lie;  // samples without fields, made once
};

// Throws what the status says.
[[noreturn]] void raise(const headrace::Status& status);

inline void check(const headrace::Status& status) {
  if (!status.ok()) raise(status);
}

template <typename T>
T unwrap(headrace::Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

Dataset dataset_of(std::shared_ptr<const headrace::Source> source);

Array to_array(const headrace::SharedBuffer& buffer, headrace::DType dtype,
               std::vector<int64_t> shape);
std::vector<headrace::FieldRequest> requests_of(const Fields& fields);
headrace::PlanOptions plan_options(const OrderOptions& options);

// The parts as sources; their weights go into the plan.  `fields`: of parts without their own.
std::vector<headrace::LoaderSource> sources_of(const Blend& blend, const Fields& fields,
                                               headrace::PlanOptions& plan);

}  // namespace hr
