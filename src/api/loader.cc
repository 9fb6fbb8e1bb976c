// SPDX-License-Identifier: Apache-2.0
#include "loader/loader.h"

#include "api/inside.h"

namespace hr {
namespace {

constexpr int kLookMs = 1000;  // how long one wait for a batch lasts

Column to_column(std::string name, headrace::Column& column) {
  Column out;
  out.name = std::move(name);
  if (column.values) out.values = to_array(column.values, column.dtype, column.shape);
  for (size_t i = 0; i < column.items.size(); ++i)
    out.items.push_back(to_array(column.items[i], column.dtype, column.shapes[i]));
  out.offsets = std::move(column.offsets);
  out.shapes = std::move(column.shapes);
  out.first = std::move(column.first);
  return out;
}

}  // namespace

const Column& Batch::operator[](const std::string& name) const {
  std::string known;
  for (const Column& c : columns) {
    if (c.name == name) return c;
    known += (known.empty() ? "" : ", ") + c.name;
  }
  raise(headrace::invalid("the batch has no field '" + name + "'; it has " + known));
}

struct Loader::Inside {
  std::unique_ptr<headrace::Loader> loader;
  headrace::PlanPosition at;  // what the consumer has received
};

Loader::Loader(const Dataset& data, const Fields& fields, const LoaderOptions& options) {
  headrace::LoaderOptions o;
  o.plan = plan_options(options.order);
  o.threads = options.threads;
  o.memory_budget_bytes = options.memory_budget;
  o.bad_samples = {options.replace_bad_samples, options.most_bad_samples};
  inside_ = std::make_unique<Inside>(Inside{
      unwrap(headrace::Loader::make({{"", data.inside().source}}, requests_of(fields), o)), {}});
}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;

uint64_t Loader::steps() const {
  return inside_->loader->steps_in_epoch();
}

void Loader::begin(uint64_t epoch) {
  inside_->at = {epoch, 0};
  check(inside_->loader->begin(inside_->at, false, 0));
}

void Loader::begin() {
  inside_->at = inside_->loader->this_or_next_epoch(inside_->at);
  check(inside_->loader->begin(inside_->at, false, 0));
}

std::optional<Batch> Loader::next() {
  headrace::Loader& loader = *inside_->loader;
  std::unique_ptr<headrace::Batch> raw;
  auto what = headrace::Engine::Next::kTimeout;
  while (what == headrace::Engine::Next::kTimeout) what = unwrap(loader.next(raw, kLookMs));
  if (what == headrace::Engine::Next::kEnd) return {};
  inside_->at = {raw->after.epoch, raw->after.g};
  Batch out;
  for (size_t c = 0; c < raw->columns.size(); ++c)
    out.columns.push_back(to_column(loader.columns()[c].spec.name, raw->columns[c]));
  out.indices = std::move(raw->indices);
  out.valid.assign(raw->valid.begin(), raw->valid.end());
  out.state = state();
  return out;
}

std::string Loader::state() const {
  return state_text(inside_->loader->state(inside_->at));
}

void Loader::load(const std::string& state) {
  const headrace::PlanState loaded = read_state(state);
  check(inside_->loader->load(loaded));
  inside_->at = {loaded.epoch, loaded.g};
}

std::string Loader::plan_id() const {
  return inside_->loader->plan_id().hex();
}

}  // namespace hr
