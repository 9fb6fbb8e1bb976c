// SPDX-License-Identifier: Apache-2.0
//
// Rows of tokens, shuffled, with the positions of tokens in their documents.
//
//   tokens CORPUS SEQ_LEN [STORED]     CORPUS: files of tokens; STORED: their type, where they do
//   not say it
#include <headrace/headrace.h>

#include <cstdlib>
#include <iostream>
#include <numeric>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: tokens CORPUS SEQ_LEN [STORED]\n";
    return 2;
  }
  try {
    const hr::TokenRows wanted{.seq_len = std::strtoull(argv[2], nullptr, 10),
                               .stored = argc > 3 ? argv[3] : ""};
    const hr::Dataset rows = hr::open_tokens({argv[1]}, wanted);
    hr::Fields fields{{"tokens", hr::tokens("tokens").cast("i64")}};
    if (argc == 3) fields.push_back({"positions", hr::array("positions")});
    hr::Loader loader(rows, fields, {.order = {.batch_size = 4, .seed = 3, .tail = "keep"}});
    loader.begin();
    while (const auto batch = loader.next()) {
      const auto& tokens = (*batch)["tokens"].values;
      const auto width = static_cast<size_t>(tokens.shape[1]);
      for (size_t i = 0; i < batch->indices.size(); ++i) {
        const int64_t* row = tokens.as<int64_t>() + i * width;
        std::cout << batch->indices[i] << " " << std::accumulate(row, row + width, int64_t{0});
        if (argc == 3)
          std::cout << " " << (*batch)["positions"].values.as<int32_t>()[(i + 1) * (width - 1) - 1];
        std::cout << "\n";
      }
    }
  } catch (const hr::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
