// SPDX-License-Identifier: MIT
// Model: an ONNX model as plain data. read_model() makes it from a file; everything behind it, the
// importer and its tests, needs no protobuf.
//
// Names are ONNX's: an empty name of a node's input or output stands for one that is left out.
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>
#include <dlprim/tensor_file.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dlprim::onnx {

/// The newest version of ONNX's own operator set that rules were written for, and the oldest.
constexpr std::int64_t newest_opset = 28, oldest_opset = 1;

/// A tensor of strings, row-major.
struct HostStrings {
    Shape shape;
    std::vector<std::string> values;
};

/// Stored values. They are shared, because a large initialiser is needed more than once.
struct Tensor {
    std::string name;
    std::shared_ptr<const HostTensor> value;     ///< null where it is of strings, or refused
    std::shared_ptr<const HostStrings> strings;  ///< null where it is of another type, or refused
    /// The dimensions, where there are more than Shape::max_rank. The values have one then.
    std::vector<std::int64_t> wide_dims;
    std::string refusal;  ///< "is of type complex64, which ..."; an error only where it is used
};

struct Graph;

struct Attribute {
    /// A graph is shared so that a node can be copied. std::monostate: of a kind that this library
    /// does not read (sparse tensors, types).
    using Data = std::variant<std::monostate, std::int64_t, double, std::string,
                              std::vector<std::int64_t>, std::vector<double>,
                              std::vector<std::string>, Tensor, std::shared_ptr<const Graph>>;
    Data data;
    std::string refers_to = {};  ///< inside a function: the function's attribute that it takes
};

using Attributes = std::map<std::string, Attribute, std::less<>>;

struct Node {
    std::string type, domain, name;
    std::vector<std::string> inputs, outputs;
    Attributes attributes;
};

/// A dimension is a size, or a symbol that may be empty.
struct Dimension {
    std::optional<std::int64_t> size;
    std::string symbol;
};

struct ValueInfo {
    enum class Kind { tensor, strings, sequence, other };

    std::string name;
    Kind kind = Kind::other;     ///< of what it is, or of an optional's element
    bool optional = false;       ///< it may be nothing
    std::optional<DType> dtype;  ///< none: no tensor, or of a type that this library does not have
    std::string type;            ///< as messages call it: "float", "string", "a sequence of float"
    std::optional<std::vector<Dimension>> shape;  ///< of a tensor

    /// For messages: "float [N, 3]", or the type alone where no shape is declared.
    std::string str() const;
};

/// "[N, 3, ?]".
std::string shape_text(const std::vector<Dimension>& shape);

struct Graph {
    std::string name;
    std::vector<Node> nodes;
    std::map<std::string, Tensor, std::less<>> initializers;
    std::vector<ValueInfo> inputs, outputs;
    /// Shapes and types that the model declares for what nodes make.
    std::map<std::string, ValueInfo, std::less<>> values;
};

/// A function of the model's own: a node of its domain and name stands for its nodes.
struct Function {
    std::string name, domain;
    std::vector<std::string> inputs, outputs, attributes;
    Attributes defaults;
    std::vector<Node> nodes;
    std::map<std::string, std::int64_t, std::less<>> opsets;
};

struct Model {
    std::string source;  ///< file name for messages
    std::string producer;
    Graph graph;
    std::map<std::string, std::int64_t, std::less<>> opsets;  ///< by domain; "" is ONNX's own
    std::vector<Function> functions;
};

/// Whether this build reads ONNX files (CMake's option DLPRIM_WITH_ONNX).
bool can_read_models();

/// Reads a model and its external data. The file is hostile: it has at most 2 GiB, messages nest at
/// most 64 deep, sizes are checked before memory is asked for, and external data is a regular file
/// inside the model's folder. Throws Error, one sentence that begins with the path: not_found, io;
/// format (no protobuf, cut short, a message of another kind, data of another size than its shape);
/// unsupported where this build reads no ONNX.
Model read_model(const std::string& path);
/// The same of bytes in memory; `source` is for messages. External data is refused.
Model parse_model(std::string_view bytes, const std::string& source);

}  // namespace dlprim::onnx
