// SPDX-License-Identifier: MIT
// Small ONNX models for tests, as the bytes of a file: protobuf's wire format by hand. A message is
// the concatenation of its fields.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace onnx_bytes {

inline std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
    return bytes + static_cast<char>(value);
}

inline std::string number(int field, std::int64_t value) {
    return varint(static_cast<std::uint64_t>(field) << 3) +
           varint(static_cast<std::uint64_t>(value));
}

/// A text, raw bytes or a message.
inline std::string bytes(int field, const std::string& value) {
    return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}

inline std::string texts(int field, const std::vector<std::string>& values) {
    std::string all;
    for (const std::string& value : values) all += bytes(field, value);
    return all;
}

using Sizes = std::vector<std::int64_t>;
constexpr int type_float = 1, type_int64 = 7;

inline std::string dims(const Sizes& shape) {
    std::string all;
    for (const std::int64_t size : shape) all += number(1, size);
    return all;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
    std::string data(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(data.data(), values.data(), data.size());
    return data;
}

/// TensorProto.
inline std::string tensor(const std::string& name, const Sizes& shape, int type,
                          const std::string& data) {
    return dims(shape) + number(2, type) + bytes(8, name) + bytes(9, data);
}
inline std::string floats(const std::string& name, const Sizes& shape,
                          const std::vector<float>& values) {
    return tensor(name, shape, type_float, raw(values));
}
inline std::string integers(const std::string& name, const Sizes& values) {
    return tensor(name, {static_cast<std::int64_t>(values.size())}, type_int64, raw(values));
}

/// AttributeProto.
inline std::string attribute(const std::string& name, std::int64_t value) {
    return bytes(1, name) + number(3, value) + number(20, 2);
}
inline std::string attribute(const std::string& name, const std::string& value) {
    return bytes(1, name) + bytes(4, value) + number(20, 3);
}
inline std::string attribute(const std::string& name, const Sizes& values) {
    std::string all = bytes(1, name) + number(20, 7);
    for (const std::int64_t value : values) all += number(8, value);
    return all;
}

inline std::string fixed32(int field, float value) {
    return varint(static_cast<std::uint64_t>(field) << 3 | 5) + raw(std::vector<float>{value});
}
inline std::string number_attribute(const std::string& name, float value) {
    return bytes(1, name) + fixed32(2, value) + number(20, 1);
}
inline std::string floats_attribute(const std::string& name, const std::vector<float>& values) {
    std::string all = bytes(1, name) + number(20, 6);
    for (const float value : values) all += fixed32(7, value);
    return all;
}
inline std::string texts_attribute(const std::string& name,
                                   const std::vector<std::string>& values) {
    return bytes(1, name) + texts(9, values) + number(20, 8);
}

struct NodeOptions {
    std::vector<std::string> attributes;
    std::string name, domain;
};

/// NodeProto.
inline std::string node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const NodeOptions& more = {}) {
    return texts(1, inputs) + texts(2, outputs) + (more.name.empty() ? "" : bytes(3, more.name)) +
           bytes(4, type) + texts(5, more.attributes) +
           (more.domain.empty() ? "" : bytes(7, more.domain));
}

/// ValueInfoProto of floats or another type; -1 is the symbol N.
inline std::string value(const std::string& name, const Sizes& shape, int type = type_float) {
    std::string all;
    for (const std::int64_t size : shape)
        all += bytes(1, size < 0 ? bytes(2, "N") : number(1, size));
    return bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, all)));
}

struct Model {
    std::vector<std::string> nodes, inputs, outputs, initializers, functions, values;
    std::int64_t opset = 17;
    std::vector<std::pair<std::string, std::int64_t>>
        domains;  ///< further ones, and their versions

    std::string str() const {
        const std::string graph = texts(1, nodes) + bytes(2, "graph") + texts(5, initializers) +
                                  texts(11, inputs) + texts(12, outputs) + texts(13, values);
        std::string imports;
        for (const auto& [domain, version] : domains)
            imports += bytes(8, bytes(1, domain) + number(2, version));
        return number(1, 8) + bytes(7, graph) + imports +
               bytes(8, bytes(1, "") + number(2, opset)) +
               bytes(8, bytes(1, "custom") + number(2, 1)) + texts(25, functions);
    }
};

}  // namespace onnx_bytes
