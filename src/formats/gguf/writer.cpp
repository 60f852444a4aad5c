// SPDX-License-Identifier: MIT
// GGUF files: the header in memory, then the data of one tensor after the other.
#include "formats/gguf/writer.hpp"

#include "base/new_file.hpp"
#include "base/text.hpp"

#include <cstring>
#include <limits>
#include <string_view>

namespace dlprim {

namespace {

constexpr std::size_t data_alignment = 32;

// Codes of values.
constexpr std::uint32_t u8_code = 0, u32_code = 4, i32_code = 5, f32_code = 6, bool_code = 7,
                        text_code = 8, array_code = 9;

template <typename T>
void put(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& to, std::string_view text) {
    put(to, std::uint64_t{text.size()});
    to += text;
}

template <typename Small>
void put_integer(std::string& to, std::int64_t value) {
    require(
        value >= std::numeric_limits<Small>::min() && value <= std::numeric_limits<Small>::max(),
        "the integer ", value, " does not fit into a GGUF file's 32 bits");
    put(to, static_cast<Small>(value));
}

/// Writes a value, with its type before it.
struct ValueWriter {
    std::string& to;

    void operator()(std::int64_t value) const {
        put(to, value < 0 ? i32_code : u32_code);
        if (value < 0)
            put_integer<std::int32_t>(to, value);
        else
            put_integer<std::uint32_t>(to, value);
    }
    void operator()(double value) const {
        put(to, f32_code);
        put(to, static_cast<float>(value));
    }
    void operator()(bool value) const {
        put(to, bool_code);
        put(to, std::uint8_t{value});
    }
    void operator()(const std::string& value) const {
        put(to, text_code);
        put_text(to, value);
    }
    template <typename T>
    void operator()(const std::vector<T>& values) const {
        constexpr bool whole = std::is_same_v<T, std::int64_t>, real = std::is_same_v<T, double>,
                       byte = std::is_same_v<T, std::uint8_t>;
        put(to, array_code);
        put(to, whole ? i32_code : real ? f32_code : byte ? u8_code : text_code);
        put(to, std::uint64_t{values.size()});
        for (const T& value : values) {
            if constexpr (whole)
                put_integer<std::int32_t>(to, value);
            else if constexpr (real)
                put(to, static_cast<float>(value));
            else if constexpr (byte)
                put(to, value);
            else
                put_text(to, value);
        }
    }
};

std::size_t padded(std::size_t size) {
    return (size + data_alignment - 1) / data_alignment * data_alignment;
}

std::string header_of(const GgufContents& contents) {
    std::string header = "GGUF";
    put(header, std::uint32_t{3});
    put(header, std::uint64_t{contents.tensors.size()});
    put(header, std::uint64_t{contents.metadata.size()});
    for (const auto& [key, value] : contents.metadata) {
        put_text(header, key);
        std::visit(ValueWriter{header}, value);
    }
    std::uint64_t position = 0;
    for (const GgufContents::Tensor& tensor : contents.tensors) {
        put_text(header, tensor.name);
        put(header, static_cast<std::uint32_t>(tensor.shape.rank()));
        for (int i = tensor.shape.rank() - 1; i >= 0; --i)
            put(header, static_cast<std::uint64_t>(tensor.shape[i]));
        put(header, std::uint32_t{tensor.half});  // the codes of F32 and F16
        put(header, position);
        position += padded(tensor.bytes());
    }
    header.resize(padded(header.size()));
    return header;
}

}  // namespace

void write_gguf(const std::string& path, const GgufContents& contents) {
    NewFile file(path);
    file.append(header_of(contents));
    contents.append_to(file, data_alignment);
    file.commit();
}

}  // namespace dlprim
