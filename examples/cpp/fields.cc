// SPDX-License-Identifier: Apache-2.0
//
// Fields that some samples lack, functions of one's own, padding, fields per source of a blend; a
// data set packed, and what held the loop back.
//
//   fields A.tar B.tar FOLDER     A has cls and txt, in some samples; B has lab instead of cls
#include <headrace/headrace.h>

#include <cstring>
#include <iostream>

namespace {

// Twice the number, as f32.
hr::Array twice(const hr::Array& in) {
  auto memory = std::make_shared<float>(2.0F * static_cast<float>(*in.as<int64_t>()));
  return {"f32", {}, reinterpret_cast<std::byte*>(memory.get()), sizeof(float), memory};
}

int run(const char* a, const char* b, const char* folder) {
  const hr::Fields fields{{"n", hr::scalar("cls").with_default(-1)},
                          {"maybe", hr::scalar("cls").optional()},
                          {"twice", hr::scalar("cls").with_default(5).map(twice, "f32")},
                          {"text", hr::bytes("txt").with_default("none").padded(45)}};
  hr::Loader loader(hr::open(a), fields, {.order = {.batch_size = 4, .shuffle = "none"}});
  loader.begin();
  while (const auto batch = loader.next()) {
    const auto& text = (*batch)["text"];
    for (size_t i = 0; i < batch->indices.size(); ++i) {
      const auto width = static_cast<size_t>(text.values.shape[1]);
      std::cout << (*batch)["n"].values.as<int64_t>()[i] << " "
                << (*batch)["maybe"].values.as<int64_t>()[i] << " "
                << int{(*batch)["maybe_valid"].values.as<uint8_t>()[i]} << " "
                << (*batch)["twice"].values.as<float>()[i] << " "
                << std::string(text.values.as<char>() + i * width, width) << "\n";
    }
  }
  const hr::Fields other{{"n", hr::scalar("lab")}};
  hr::Loader mixed(hr::Blend{{{"a", hr::open(a), 1, {}}, {"b", hr::open(b), 1, other}}, 64},
                   {{"n", hr::scalar("cls").with_default(-1)}},
                   {.order = {.batch_size = 16, .seed = 3}});
  mixed.begin();
  while (const auto batch = mixed.next()) {
    std::cout << "blend";
    for (size_t i = 0; i < batch->indices.size(); ++i)
      std::cout << " " << batch->sources[i] << "/" << (*batch)["n"].values.as<int64_t>()[i];
    std::cout << "\n";
  }
  const hr::PackResult packed = hr::pack(hr::open(b), folder, {.shards = 2, .keep_order = true});
  std::cout << "packed " << packed.samples << " samples in " << packed.shards << " shards\n"
            << "verdict: " << mixed.verdict().cause << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: fields A.tar B.tar FOLDER\n";
    return 2;
  }
  try {
    return run(argv[1], argv[2], argv[3]);
  } catch (const hr::Error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
