// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/example.h"

#include <cstring>

#include "format/records.h"
#include "format/tfrecord/protobuf.h"

namespace headrace {
namespace {

// Calls each(value) for every number of the list; false where it is no such list.
template <typename Each>
bool each_int(Bytes list, const Each& each) {
  WireReader reader(list);
  for (WireField field; reader.next(field);) {
    if (field.number != 1) return false;
    if (field.type == Wire::kVarint) {
      each(static_cast<int64_t>(field.value));
      continue;
    }
    if (field.type != Wire::kBytes) return false;
    for (uint64_t value = 0; !field.bytes.empty();) {
      if (!take_wire_varint(field.bytes, value)) return false;
      each(static_cast<int64_t>(value));
    }
  }
  return !reader.bad();
}

// Calls each(run) for every run of float32 in the list: all of them where it is packed.
template <typename Each>
bool each_float_run(Bytes list, const Each& each) {
  WireReader reader(list);
  for (WireField field; reader.next(field);) {
    const bool floats =
        field.type == Wire::kFixed32 || (field.type == Wire::kBytes && field.bytes.size() % 4 == 0);
    if (field.number != 1 || !floats) return false;
    each(field.bytes);
  }
  return !reader.bad();
}

bool count_values(Feature& feature) {
  uint64_t& count = feature.count;
  switch (feature.type) {
    case FeatureType::kNone:
      return true;
    case FeatureType::kInt64:
      return each_int(feature.list, [&count](int64_t) { ++count; });
    case FeatureType::kFloat:
      return each_float_run(feature.list, [&count](Bytes run) { count += run.size() / 4; });
    case FeatureType::kBytes:
      break;
  }
  WireReader reader(feature.list);
  for (WireField field; reader.next(field); ++count)
    if (field.number != 1 || field.type != Wire::kBytes) return false;
  return !reader.bad();
}

bool parse_feature(Bytes message, Feature& out) {
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    if (field.type != Wire::kBytes || field.number < 1 || field.number > 3) return false;
    // One list a feature: nobody writes it in pieces, though the wire form allows it.
    if (out.type != FeatureType::kNone) return false;
    out.type = static_cast<FeatureType>(field.number);
    out.list = field.bytes;
  }
  return !reader.bad() && count_values(out);
}

bool parse_entry(Bytes message, Feature& out) {
  bool has_value = false;
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    if (field.type != Wire::kBytes) return false;
    if (field.number == 1) {
      out.name = as_text(field.bytes);
    } else if (field.number == 2 && !has_value) {
      has_value = true;
      if (!parse_feature(field.bytes, out)) return false;
    } else {
      return false;
    }
  }
  return !reader.bad();
}

bool parse_features(Bytes message, std::vector<Feature>& out) {
  WireReader reader(message);
  for (WireField field; reader.next(field);) {
    if (field.number != 1 || field.type != Wire::kBytes) return false;
    if (!parse_entry(field.bytes, out.emplace_back())) return false;
  }
  return !reader.bad();
}

}  // namespace

std::string_view feature_type_name(FeatureType type) {
  constexpr std::string_view kNames[] = {"empty", "bytes", "float", "int64"};
  return kNames[static_cast<size_t>(type)];
}

bool parse_example(Bytes record, std::vector<Feature>& out) {
  out.clear();
  WireReader reader(record);
  for (WireField field; reader.next(field);) {
    if (field.number != 1 || field.type != Wire::kBytes) return false;
    if (!parse_features(field.bytes, out)) return false;
  }
  return !reader.bad() && !out.empty();
}

std::vector<Bytes> bytes_values(const Feature& feature) {
  std::vector<Bytes> values;
  WireReader reader(feature.list);
  for (WireField field; reader.next(field);) values.push_back(field.bytes);
  return values;
}

int64_t first_int(const Feature& feature) {
  int64_t first = 0;
  uint64_t seen = 0;
  (void)each_int(feature.list, [&](int64_t value) {
    if (seen++ == 0) first = value;
  });
  return first;
}

float first_float(const Feature& feature) {
  Bytes run;
  (void)each_float_run(feature.list, [&run](Bytes next) {
    if (run.empty()) run = next;
  });
  return run.empty() ? 0 : load_le<float>(run);
}

bool float_run(const Feature& feature, Bytes& run) {
  run = {};
  size_t runs = 0;
  (void)each_float_run(feature.list, [&](Bytes next) {
    if (next.empty()) return;
    run = next;
    ++runs;
  });
  return runs == 1;
}

Status open_number_list(FeatureType type, Bytes list, Buffer& out) {
  Feature feature{.type = type, .list = list};
  if (!count_values(feature)) return not_as_indexed("list of numbers").at(0);
  out.resize(feature.count * (type == FeatureType::kInt64 ? 8 : 4));
  std::byte* at = out.data();
  if (type == FeatureType::kInt64) {
    (void)each_int(list, [&at](int64_t value) {
      std::memcpy(at, &value, sizeof value);
      at += sizeof value;
    });
  } else {
    (void)each_float_run(list, [&at](Bytes run) {
      if (!run.empty()) std::memcpy(at, run.data(), run.size());
      at += run.size();
    });
  }
  return {};
}

}  // namespace headrace
