// SPDX-License-Identifier: MIT
// Files for train(): pictures, labels, a network and a configuration.
#include "net/training_set.hpp"

#include <fstream>

namespace dlprim::testing {

void write_training_set(const Folder& folder) {
    constexpr unsigned count = 64, side = 8;
    std::ofstream pictures(folder.file("images"), std::ios::binary),
        labels(folder.file("labels"), std::ios::binary), net(folder.file("net.json")),
        config(folder.file("train.json"));
    const unsigned char image_head[] = {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, side, 0, 0, 0, side},
                        label_head[] = {0, 0, 8, 1, 0, 0, 0, count};
    pictures.write(reinterpret_cast<const char*>(image_head), sizeof(image_head));
    labels.write(reinterpret_cast<const char*>(label_head), sizeof(label_head));
    for (unsigned i = 0; i < count; ++i) {
        labels.put(static_cast<char>(i % 5));
        for (unsigned k = 0; k < side * side; ++k)
            pictures.put(static_cast<char>((i * 37 + k * (i % 5 + 1)) % 200));
    }
    std::string text = small_network;
    const std::string channels = "[4, 3, 8, 8]";
    text.replace(text.find(channels), channels.size(), "[4, 1, 8, 8]");
    net << text;
    config << R"({"net": ")" << folder.file("net.json")
           << R"(", "batch": 4, "epochs": 2, "data": {"train": {"images": ")"
           << folder.file("images") << R"(", "labels": ")" << folder.file("labels") << R"("}}})";
}

}  // namespace dlprim::testing
