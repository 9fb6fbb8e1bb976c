// SPDX-License-Identifier: Apache-2.0
#include "loader/dataset.h"

#include "api/inside.h"
#include "index/view.h"
#include "open/open.h"
#include "open/open_arrays.h"

namespace hr {

Dataset dataset_of(std::shared_ptr<const headrace::Source> source) {
  std::shared_ptr<const headrace::Dataset> plain = unwrap(headrace::Dataset::make(source, {}));
  return Dataset(std::make_shared<const Dataset::Inside>(
      Dataset::Inside{std::move(source), std::move(plain)}));
}

uint64_t Dataset::size() const {
  return inside_->source->size();
}

std::vector<Dataset::FieldInfo> Dataset::fields() const {
  std::vector<FieldInfo> out;
  for (const headrace::Field& f : inside_->source->schema())
    out.push_back({f.name, std::string(headrace::kind_name(f.kind))});
  return out;
}

std::string Dataset::fingerprint() const {
  return inside_->source->fingerprint().hex();
}

std::string Dataset::key(uint64_t sample) const {
  if (sample >= size())
    raise(headrace::invalid("there is no sample " + std::to_string(sample) + "; the data set has " +
                            std::to_string(size())));
  return inside_->source->key(sample);
}

Dataset Dataset::take(std::vector<uint64_t> samples) const {
  return dataset_of(unwrap(headrace::make_view(inside_->source, std::move(samples))));
}

std::map<std::string, std::vector<Array>> Dataset::lists(uint64_t sample,
                                                         const Fields& fields) const {
  std::shared_ptr<const headrace::Dataset> dataset = inside_->as_they_lie;
  if (!fields.empty())
    dataset = unwrap(headrace::Dataset::make(inside_->source, requests_of(fields)));
  const std::vector<headrace::SampleValue> values = unwrap(dataset->at(sample));
  std::map<std::string, std::vector<Array>> out;
  for (size_t c = 0; c < values.size(); ++c) {
    if (!values[c].present) continue;
    std::vector<Array>& list = out[dataset->requests()[c].output];
    if (!values[c].many)
      list.push_back(to_array(values[c].bytes, values[c].dtype, values[c].shape));
    for (const headrace::SampleValue& v : values[c].values)
      list.push_back(to_array(v.bytes, v.dtype, v.shape));
  }
  return out;
}

std::map<std::string, Array> Dataset::at(uint64_t sample, const Fields& fields) const {
  std::map<std::string, Array> out;
  for (auto& [name, list] : lists(sample, fields)) {
    if (list.size() > 1)
      raise(headrace::invalid("sample " + std::to_string(sample) + " has " +
                              std::to_string(list.size()) + " values of field '" + name +
                              "'; lists() gives them"));
    if (!list.empty()) out.emplace(name, std::move(list.front()));
  }
  return out;
}

Dataset open(const std::vector<std::string>& urls, const OpenOptions& options) {
  if (headrace::are_array_files(urls)) {
    headrace::OpenArrayOptions arrays{.index = options.index,
                                      .along = options.along,
                                      .stride = options.stride,
                                      .tiled = options.tiled,
                                      .gaps = options.gaps};
    for (const Window& w : options.windows)
      arrays.windows.push_back(
          {w.name, w.variable, w.steps, w.from, w.dilation, w.patch, w.select});
    return dataset_of(unwrap(headrace::open_array_files(urls, arrays)).source);
  }
  if (!options.windows.empty())
    raise(headrace::invalid("windows are for files of arrays (.npy, .nc, .zarr, .h5), which '" +
                            (urls.empty() ? std::string() : urls.front()) + "' is not"));
  headrace::Opened opened =
      unwrap(headrace::open_source(urls, {.root = options.root, .index = options.index}));
  return dataset_of(opened.source);
}

Dataset open(const std::string& url, const OpenOptions& options) {
  return open(std::vector<std::string>{url}, options);
}

}  // namespace hr
