// SPDX-License-Identifier: MIT
// Writes GGUF files for tests, also wrong ones: every part is appended as it is given.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlprim::testing {

class GgufWriter {
  public:
    static constexpr std::uint32_t f32 = 0, array = 9;  ///< codes: of a tensor's type, of a value's

    template <typename T>
    GgufWriter& key(const std::string& name, const T& value) {
        ++keys_;
        put_text(header_, name);
        put(header_, code_of<T>());
        put_value(value);
        return *this;
    }
    template <typename T>
    GgufWriter& key(const std::string& name, const std::vector<T>& values) {
        ++keys_;
        put_text(header_, name);
        put(header_, array);
        put(header_, code_of<T>());
        put(header_, std::uint64_t{values.size()});
        for (const T& value : values) put_value(value);
        return *this;
    }
    /// `sizes` as files have them: the last dimension first.
    GgufWriter& tensor(const std::string& name, const std::vector<std::uint64_t>& sizes,
                       std::uint32_t type, std::string_view bytes) {
        ++tensors_;
        put_text(infos_, name);
        put(infos_, static_cast<std::uint32_t>(sizes.size()));
        for (const std::uint64_t size : sizes) put(infos_, size);
        put(infos_, type);
        put(infos_, std::uint64_t{data_.size()});
        data_ += bytes;
        data_.resize((data_.size() + 31) / 32 * 32);
        return *this;
    }
    GgufWriter& tensor(const std::string& name, const std::vector<std::uint64_t>& sizes,
                       const std::vector<float>& values) {
        return tensor(
            name, sizes, f32,
            {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    }
    std::string bytes(std::uint32_t version = 3) const {
        std::string text = "GGUF";
        put(text, version);
        put(text, tensors_);
        put(text, keys_);
        text += header_ + infos_;
        text.resize((text.size() + 31) / 32 * 32);
        return text + data_;
    }

  private:
    template <typename T>
    static void put(std::string& to, const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        to.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    static void put_text(std::string& to, const std::string& text) {
        put(to, std::uint64_t{text.size()});
        to += text;
    }
    template <typename T>
    static std::uint32_t code_of() {
        if constexpr (std::is_same_v<T, std::uint8_t>) return 0;
        if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
        if constexpr (std::is_same_v<T, std::int32_t>) return 5;
        if constexpr (std::is_same_v<T, float>) return 6;
        if constexpr (std::is_same_v<T, bool>) return 7;
        if constexpr (std::is_same_v<T, std::string>) return 8;
        if constexpr (std::is_same_v<T, std::uint64_t>) return 10;
        if constexpr (std::is_same_v<T, double>) return 12;
    }
    template <typename T>
    void put_value(const T& value) {
        if constexpr (std::is_same_v<T, std::string>)
            put_text(header_, value);
        else
            put(header_, value);
    }

    std::uint64_t keys_ = 0, tensors_ = 0;
    std::string header_, infos_, data_;
};

}  // namespace dlprim::testing
