// SPDX-License-Identifier: Apache-2.0
//
// Draws from two data sets in proportion, changes the proportion while it runs, and crops a picture
// and its mask alike.  Prints each batch, what was counted, and the state.
//
//   blend "photos/train-*.tar" "more/train-*.tar"
#include <headrace/headrace.h>

#include <cstdio>

namespace {

// FNV-1a of a column's bytes: equal bytes, equal number.
uint64_t checksum(const hr::Array& array) {
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < array.bytes; ++i)
    sum = (sum ^ std::to_integer<uint64_t>(array.data[i])) * 1099511628211u;
  return sum;
}

hr::Field cropped(const hr::Field& picture) {
  return picture.random_resized_crop(32).random_flip();
}

void show(uint64_t epoch, const hr::Batch& batch) {
  std::printf("epoch %llu: image %016llx, mask %016llx:", static_cast<unsigned long long>(epoch),
              static_cast<unsigned long long>(checksum(batch["image"].values)),
              static_cast<unsigned long long>(checksum(batch["mask"].values)));
  for (size_t i = 0; i < batch.indices.size(); ++i)
    std::printf(" %u/%lld", batch.sources[i], static_cast<long long>(batch.indices[i]));
  std::printf("\n");
}

void run_blend(const hr::Blend& blend) {
  hr::Fields fields =
      hr::joint({{"image", cropped(hr::image("jpg"))}, {"mask", cropped(hr::mask("jpg", "L"))}});
  fields.emplace_back("label", hr::scalar("cls"));
  hr::Loader loader(blend, fields,
                    {.order = {.batch_size = 10, .seed = 7, .tail = "keep"},
                     .threads = 2,
                     .replace_bad_samples = true});
  for (const std::string& note : loader.notes()) std::printf("note: %s\n", note.c_str());
  for (uint64_t epoch = loader.next_epoch(); epoch < 2; ++epoch) {
    loader.begin(epoch, 2);
    for (uint64_t step = 0; auto batch = loader.next(); ++step) {
      show(epoch, *batch);
      if (epoch == 0 && step == 1) loader.set_weights({{"a", 1}, {"b", 1}}, 4);
    }
  }
  const hr::Stats stats = loader.stats();
  std::printf("%llu samples decoded by %d threads, %llu reads, median %.3f ms; %zu replaced\n",
              static_cast<unsigned long long>(stats.decode.items), stats.compute_threads,
              static_cast<unsigned long long>(stats.read.items), stats.read_latency_median_ms,
              loader.quarantine().size());
  std::printf("state: %s\n", loader.state().c_str());
}

void run_mixed(const hr::Dataset& data) {
  hr::Loader loader(
      data, {{"image", cropped(hr::image("jpg")).cast("f32")}, {"label", hr::scalar("cls")}},
      {.order = {.batch_size = 10, .seed = 7}, .mix = {hr::mixup(3), hr::cutmix(3)}});
  loader.begin();
  const auto batch = loader.next();
  const hr::Array& label = (*batch)["label"].values;
  std::printf("mixed: image %016llx, label %016llx, %s[%lld, %lld]\n",
              static_cast<unsigned long long>(checksum((*batch)["image"].values)),
              static_cast<unsigned long long>(checksum(label)), label.dtype.c_str(),
              static_cast<long long>(label.shape[0]), static_cast<long long>(label.shape[1]));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: blend URL URL\n");
    return 2;
  }
  const hr::Dataset a = hr::open(argv[1]);
  const hr::Dataset b = hr::open(argv[2]);
  const hr::Blend blend{{{"a", a, 3}, {"b", b, 1}}, 60};
  const hr::Plan::Draw first = hr::Plan(blend, {.batch_size = 10, .seed = 7}).draws(0, 0).front();
  std::printf("the first sample is %u/%lld\n", first.source, static_cast<long long>(first.sample));
  run_blend(blend);
  run_mixed(a);
  return 0;
} catch (const hr::Error& e) {
  std::fprintf(stderr, "error: %s\n", e.what());
  return 1;
}
