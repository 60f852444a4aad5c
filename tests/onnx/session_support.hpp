// SPDX-License-Identifier: MIT
// What the tests of ONNXSession share: values, graphs that nodes own, and results as text.
#pragma once

#include "onnx/support.hpp"

#include <map>
#include <string>
#include <vector>

namespace onnx_test {

using dlprim::ONNXValue;

template <typename T>
ONNXValue value_of(const dlprim::Shape& shape, dlprim::DType dtype, const std::vector<T>& values) {
    const std::string bytes = raw(values);
    dlprim::HostTensor tensor{shape, dtype, {}};
    for (const char byte : bytes) tensor.data.push_back(static_cast<std::byte>(byte));
    return tensor;
}
inline ONNXValue tensor(const Sizes& shape, const Values& values) {
    return value_of(dlprim::Shape(shape), dlprim::DType::f32, values);
}
inline ONNXValue sizes(const Sizes& values) {
    return value_of({static_cast<std::int64_t>(values.size())}, dlprim::DType::i64, values);
}
inline ONNXValue integer(std::int64_t value) {
    return value_of({}, dlprim::DType::i64, Sizes{value});
}
inline ONNXValue boolean(bool value) {
    return value_of({}, dlprim::DType::boolean, std::vector<char>{value});
}
inline ONNXValue strings(const Sizes& shape, const std::vector<std::string>& values) {
    return dlprim::ONNXStrings{dlprim::Shape(shape), values};
}

/// "float [2]: 1 2", "string [1]: a", "(float [1]: 1, float [1]: 2)", "a b -> float [1, 2]: 1 2",
/// "none".
inline std::string text_of(const ONNXValue& value) {
    if (value.kind() == ONNXValue::Kind::none) return "none";
    if (value.kind() == ONNXValue::Kind::sequence) {
        std::string all;
        for (const ONNXValue& element : value.sequence())
            all += (all.empty() ? "" : ", ") + text_of(element);
        return "(" + all + ")";
    }
    if (value.kind() == ONNXValue::Kind::maps) {
        const dlprim::ONNXMaps& maps = value.maps();
        std::string keys;
        for (const std::string& key : maps.texts) keys += key + " ";
        for (const std::int64_t key : maps.numbers) keys += std::to_string(key) + " ";
        return keys + "-> " + text_of(maps.values);
    }
    std::string text = value.str() + ":";
    if (value.kind() == ONNXValue::Kind::strings) {
        for (const std::string& one : value.strings().values) text += " " + one;
        return text;
    }
    const dlprim::HostTensor& tensor = value.tensor();
    std::vector<double> numbers(static_cast<std::size_t>(tensor.shape.numel()));
    dlprim::convert(tensor.data.data(), tensor.dtype, numbers.data(), dlprim::DType::f64,
                    numbers.size());
    for (const double number : numbers) {
        char digits[32];
        std::snprintf(digits, sizeof(digits), " %g", number);
        text += digits;
    }
    return text;
}

/// A session on the host whose results are text.
class Session {
  public:
    explicit Session(dlprim::ONNXSession session) : session_(std::move(session)) {}

    /// The output "y".
    std::string run(const dlprim::ONNXSession::Values& inputs) {
        outputs_ = session_.run(inputs);
        return output("y");
    }
    std::string output(const std::string& name) const { return text_of(outputs_.at(name)); }
    /// The message of the error, checked to be one line that begins with the model.
    std::string error(const dlprim::ONNXSession::Values& inputs) {
        try {
            run(inputs);
        } catch (const dlprim::Error& error) {
            const std::string text = error.what();
            CHECK(text.rfind("'", 0) == 0);
            CHECK(has(text, "model.onnx'"));
            CHECK(text.find('\n') == std::string::npos);
            return text;
        }
        return "no error";
    }
    std::int64_t nets() const { return session_.nets_made(); }

  private:
    dlprim::ONNXSession session_;
    dlprim::ONNXSession::Values outputs_;
};

inline Session open_session(const Model& model, const dlprim::ONNXSessionOptions& options = {},
                            const dlprim::Context& device = dlprim::Context("cpu")) {
    const Folder folder;
    const dlprim::ONNXModel file(folder.write("model.onnx", model.str()));
    return Session(dlprim::ONNXSession(device, file, options));
}

/// An attribute that is a graph: a branch or a body.
struct Graph {
    std::vector<std::string> nodes, inputs, outputs, initializers;
};
inline std::string attribute(const std::string& name, const Graph& graph) {
    const std::string message = texts(1, graph.nodes) + bytes(2, name) +
                                texts(5, graph.initializers) + texts(11, graph.inputs) +
                                texts(12, graph.outputs);
    return bytes(1, name) + bytes(6, message) + number(20, 5);
}
constexpr int type_string = 8, type_bool = 9;

/// TensorProto of strings.
inline std::string texts_tensor(const std::string& name, const std::vector<std::string>& values) {
    return dims({static_cast<std::int64_t>(values.size())}) + onnx_bytes::number(2, type_string) +
           texts(6, values) + bytes(8, name);
}

}  // namespace onnx_test
