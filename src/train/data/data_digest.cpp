// SPDX-License-Identifier: MIT
// data_digest().
#include "train/data/data_digest.hpp"

#include "base/hash.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace dlprim {

namespace {

constexpr std::int64_t most_examples = 16;

class Digest {
  public:
    template <typename T>
    void add(const std::vector<T>& values) {
        add(values.size());
        add_bytes(values.data(), values.size() * sizeof(T));
    }
    template <typename T>
    void add(T value) {
        add_bytes(&value, sizeof(value));
    }
    void add(const Image& image) {
        add(image.width);
        add(image.height);
        add(image.channels);
        add(image.pixels);
    }
    void add(const Example& example) {
        add(example.image);
        add(example.values);
        add(example.label);
        add(example.target);
        add(example.mask);
    }
    std::string str() const { return cat(hash_); }

  private:
    void add_bytes(const void* data, std::size_t bytes) {
        hash_ = hash64(std::string_view(static_cast<const char*>(data), bytes), hash_);
    }
    std::uint64_t hash_ = 0;
};

}  // namespace

std::string data_digest(const Dataset& data) {
    Digest digest;
    if (data.target_kind() == TargetKind::label)
        for (std::int64_t i = 0; i < data.size(); ++i) digest.add(data.label(i));
    const std::int64_t count = std::min(data.size(), most_examples);
    for (std::int64_t i = 0; i < count; ++i) {
        try {
            digest.add(data.read(data.size() * i / count, {}));
        } catch (const Error&) {
            digest.add(i);  // what is wrong with it is said where it is trained on
        }
    }
    return digest.str();
}

}  // namespace dlprim
