// SPDX-License-Identifier: MIT
// read_model(): protobuf's classes become plain data, and are freed as they do.
#include "formats/onnx/model.hpp"

#include "base/file_kind.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "formats/onnx/node_order.hpp"
#include "formats/onnx/read_tensor.hpp"
#include "formats/onnx/wire.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>

namespace dlprim::onnx {

namespace {

constexpr std::uint64_t largest_file = (std::uint64_t{1} << 31) - 1;
/// Messages nest a few deep in a model, and three more for every graph in a node of a graph.
constexpr int deepest_message = 64;

class ModelReader {
  public:
    ModelReader(const std::string& source, const std::string& path)
        : source_(source), tensors_(source, path) {}

    Model read(proto::ModelProto& message) const {
        Model model;
        model.source = source_;
        model.producer = message.producer_name();
        model.opsets = opsets(message.opset_import());
        for (auto& function : *message.mutable_functions())
            model.functions.push_back(this->function(function));
        model.graph = graph(*message.mutable_graph());
        return model;
    }

  private:
    template <typename List>
    static std::map<std::string, std::int64_t, std::less<>> opsets(const List& list) {
        std::map<std::string, std::int64_t, std::less<>> result;
        for (const auto& entry : list)
            result[entry.domain() == "ai.onnx" ? "" : entry.domain()] = entry.version();
        return result;
    }

    template <typename List>
    static std::vector<std::string> names(const List& list) {
        return {list.begin(), list.end()};
    }

    Attribute attribute(proto::AttributeProto& from) const {
        Attribute result;
        result.refers_to = from.ref_attr_name();
        switch (from.type()) {
            case proto::AttributeProto::INT:
                result.data = static_cast<std::int64_t>(from.i());
                break;
            case proto::AttributeProto::FLOAT:
                result.data = static_cast<double>(from.f());
                break;
            case proto::AttributeProto::STRING:
                result.data = from.s();
                break;
            case proto::AttributeProto::INTS:
                result.data = std::vector<std::int64_t>(from.ints().begin(), from.ints().end());
                break;
            case proto::AttributeProto::FLOATS:
                result.data = std::vector<double>(from.floats().begin(), from.floats().end());
                break;
            case proto::AttributeProto::STRINGS:
                result.data = names(from.strings());
                break;
            case proto::AttributeProto::TENSOR:
                result.data = tensors_.read(*from.mutable_t());
                break;
            case proto::AttributeProto::GRAPH:
                result.data = std::make_shared<const Graph>(graph(*from.mutable_g()));
                break;
            default:
                break;
        }
        return result;
    }

    Node node(proto::NodeProto& from) const {
        Node result;
        result.type = from.op_type();
        result.domain = from.domain() == "ai.onnx" ? "" : from.domain();
        result.name = from.name();
        result.inputs = names(from.input());
        result.outputs = names(from.output());
        for (auto& entry : *from.mutable_attribute()) {
            const std::string name = entry.name();
            result.attributes[name] = attribute(entry);
        }
        return result;
    }

    static ValueInfo value_info(const proto::ValueInfoProto& from) {
        ValueInfo result;
        result.name = from.name();
        result.type = "a value without a type";
        if (from.has_type()) read_type(from.type(), result);
        return result;
    }

    static void read_type(const proto::TypeProto& from, ValueInfo& result) {
        if (from.has_optional_type()) {
            read_type(from.optional_type().elem_type(), result);
            result.optional = true;
            result.type = cat("an optional ", result.type);
        } else if (from.has_sequence_type()) {
            ValueInfo element;
            read_type(from.sequence_type().elem_type(), element);
            result.kind = ValueInfo::Kind::sequence;
            result.type = cat("a sequence of ", element.type);
        } else if (from.has_tensor_type()) {
            read_tensor_type(from.tensor_type(), result);
        } else {
            result.type = from.has_map_type()             ? "a map"
                          : from.has_sparse_tensor_type() ? "a sparse tensor"
                                                          : "a value without a type";
        }
    }

    template <typename TensorType>
    static void read_tensor_type(const TensorType& tensor, ValueInfo& result) {
        result.dtype = dtype_of(tensor.elem_type());
        result.type = type_name(tensor.elem_type());
        if (result.dtype) result.kind = ValueInfo::Kind::tensor;
        if (tensor.elem_type() == string_type) result.kind = ValueInfo::Kind::strings;
        if (!tensor.has_shape()) return;
        std::vector<Dimension> shape;
        for (const auto& dim : tensor.shape().dim()) {
            Dimension dimension;
            // Paddle's exporter writes -1 and "?" for sizes that it leaves open.
            if (dim.has_dim_value() && dim.dim_value() >= 0)
                dimension.size = dim.dim_value();
            else if (dim.dim_param() != "?")
                dimension.symbol = dim.dim_param();
            shape.push_back(std::move(dimension));
        }
        result.shape = std::move(shape);
    }

    Graph graph(proto::GraphProto& from) const {
        Graph result;
        result.name = from.name();
        for (auto& tensor : *from.mutable_initializer()) {
            Tensor read = tensors_.read(tensor);
            const std::string name = read.name;
            if (!result.initializers.emplace(name, std::move(read)).second)
                fail(ErrorKind::format, "'", source_, "': two initialisers have the name '", name,
                     "'");
        }
        for (const auto& sparse : from.sparse_initializer()) {
            Tensor refused;
            refused.name = sparse.values().name();
            refused.refusal = "is sparse, which this library does not read";
            result.initializers.emplace(refused.name, refused);
        }
        for (auto& entry : *from.mutable_node()) result.nodes.push_back(node(entry));
        for (const auto& input : from.input()) result.inputs.push_back(value_info(input));
        for (const auto& output : from.output()) result.outputs.push_back(value_info(output));
        for (const auto& value : from.value_info()) result.values[value.name()] = value_info(value);
        sort(result);
        return result;
    }

    /// Adds the attributes of a function that have defaults. ONNX's schema has them since 1.13
    /// (field 11, attribute_proto). To an older schema they are unknown, and are parsed here.
    template <typename FunctionProto>
    void read_defaults(FunctionProto& from, Function& result) const {
        if constexpr (requires { from.mutable_attribute_proto(); }) {
            for (auto& entry : *from.mutable_attribute_proto()) add_default(entry, result);
        } else {
            const std::string& bytes = from.unknown_fields();
            google::protobuf::io::CodedInputStream stream(
                reinterpret_cast<const std::uint8_t*>(bytes.data()),
                static_cast<int>(bytes.size()));
            using Wire = google::protobuf::internal::WireFormatLite;
            while (const std::uint32_t tag = stream.ReadTag()) {
                if (tag != Wire::MakeTag(11, Wire::WIRETYPE_LENGTH_DELIMITED)) {
                    if (!Wire::SkipField(&stream, tag)) return;
                    continue;
                }
                std::string text;
                proto::AttributeProto entry;
                if (!Wire::ReadBytes(&stream, &text) || !entry.ParseFromString(text))
                    fail(ErrorKind::format, "'", source_, "': function '", result.name,
                         "' has an attribute that cannot be read");
                add_default(entry, result);
            }
        }
    }

    void add_default(proto::AttributeProto& entry, Function& result) const {
        const std::string name = entry.name();
        result.defaults[name] = attribute(entry);
    }

    Function function(proto::FunctionProto& from) const {
        Function result;
        result.name = from.name();
        result.domain = from.domain() == "ai.onnx" ? "" : from.domain();
        result.inputs = names(from.input());
        result.outputs = names(from.output());
        result.attributes = names(from.attribute());
        result.opsets = opsets(from.opset_import());
        read_defaults(from, result);
        for (auto& entry : *from.mutable_node()) result.nodes.push_back(node(entry));
        sort(result);
        return result;
    }

    template <typename GraphOrFunction>
    void sort(GraphOrFunction& made) const {
        try {
            sort_nodes(made);
        } catch (const Error& error) {
            throw Error(error.kind(), cat("'", source_, "': ", error.what()));
        }
    }

    std::string source_;
    TensorReader tensors_;
};

Model read(std::string_view bytes, const std::string& source, const std::string& path) {
    check_kind(bytes, source, "an ONNX model");
    check_message(bytes, source);
    google::protobuf::LogSilencer silent;
    proto::ModelProto message;
    google::protobuf::io::CodedInputStream stream(
        reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
    stream.SetRecursionLimit(deepest_message);
    if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
        fail(ErrorKind::format, "'", source,
             "' is no ONNX model: its fields do not hold what a model's do, or nest deeper than ",
             deepest_message);
    return ModelReader(source, path).read(message);
}

}  // namespace

bool can_read_models() {
    return true;
}

Model read_model(const std::string& path) {
    std::string bytes;
    {
        const InputFile file(path);
        if (file.size() > largest_file)
            fail(ErrorKind::format, "'", path, "' has ", file.size(),
                 " bytes; a model's file has at most 2 GiB, and larger weights lie in other files "
                 "beside it");
        bytes.resize(file.size());
        if (file.read(0, bytes.data(), bytes.size()) != bytes.size())
            fail(ErrorKind::io, "'", path, "' became shorter while it was read");
    }
    return read(bytes, path, path);
}

Model parse_model(std::string_view bytes, const std::string& source) {
    if (bytes.size() > largest_file)
        fail(ErrorKind::format, "'", source, "' has ", bytes.size(),
             " bytes; a model has at most 2 GiB");
    return read(bytes, source, {});
}

}  // namespace dlprim::onnx
