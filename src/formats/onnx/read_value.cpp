// SPDX-License-Identifier: MIT
// read_onnx_value(): TensorProto, SequenceProto and OptionalProto. The last two are in no schema
// that models need, so their few fields are read one by one.
#include <dlprim/onnx_value.hpp>

#include "base/attrs.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "formats/onnx/read_tensor.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>

#include <utility>

namespace dlprim {

namespace onnx {

namespace {

using google::protobuf::io::CodedInputStream;
using Wire = google::protobuf::internal::WireFormatLite;

constexpr std::uint64_t largest_file = (std::uint64_t{1} << 31) - 1;
constexpr int deepest_value = 16;

// Fields of SequenceProto and of OptionalProto, which number them alike.
constexpr int name_field = 1, tensor_field = 3, sequence_field = 5, optional_field = 7;

class ValueReader {
  public:
    explicit ValueReader(std::string path) : path_(std::move(path)) {}

    ONNXValue read(const std::string& bytes, std::string_view kind) const {
        if (kind.starts_with("a sequence")) return sequence(bytes, 0);
        if (kind.starts_with("an optional")) return optional(bytes, 0);
        return tensor(bytes);
    }

  private:
    [[noreturn]] void broken(std::string_view what) const {
        fail(ErrorKind::format, "'", path_, "' holds no ", what, " of ONNX's test data");
    }

    ONNXValue tensor(const std::string& bytes) const {
        const google::protobuf::LogSilencer silent;
        proto::TensorProto message;
        if (!message.ParseFromString(bytes) || message.data_type() == 0) broken("tensor");
        if (message.data_type() == proto::TensorProto::STRING) return strings(message);
        Tensor read = TensorReader(path_, path_).read(message);
        if (!read.value) fail(ErrorKind::unsupported, "'", path_, "' ", read.refusal);
        return std::move(read.value);
    }

    ONNXValue strings(const proto::TensorProto& message) const try {
        return ONNXStrings{Shape(Ints(message.dims().begin(), message.dims().end())),
                           {message.string_data().begin(), message.string_data().end()}};
    } catch (const Error& error) {
        fail(ErrorKind::format, "'", path_, "': ", error.what());
    }

    /// Calls `take(field, bytes)` for every field that holds a text or a message.
    template <typename Take>
    void fields(const std::string& bytes, std::string_view what, const Take& take) const {
        CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                static_cast<int>(bytes.size()));
        while (const std::uint32_t tag = stream.ReadTag()) {
            std::string inner;
            if (Wire::GetTagWireType(tag) != Wire::WIRETYPE_LENGTH_DELIMITED) {
                if (!Wire::SkipField(&stream, tag)) broken(what);
                continue;
            }
            if (!Wire::ReadBytes(&stream, &inner)) broken(what);
            take(Wire::GetTagFieldNumber(tag), inner);
        }
        if (!stream.ConsumedEntireMessage()) broken(what);
    }

    /// A tensor, sequence or optional in a sequence or an optional.
    ONNXValue inner(int field, const std::string& bytes, int depth) const {
        if (field == tensor_field) return tensor(bytes);
        if (field == sequence_field) return sequence(bytes, depth + 1);
        if (field == optional_field) return optional(bytes, depth + 1);
        fail(ErrorKind::unsupported, "'", path_, "' holds a map or a sparse tensor, which this ",
             "library does not read");
    }

    ONNXValue sequence(const std::string& bytes, int depth) const {
        if (depth > deepest_value) broken("sequence");
        ONNXValue::Sequence elements;
        fields(bytes, "sequence", [&](int field, const std::string& one) {
            if (field != name_field) elements.push_back(inner(field, one, depth));
        });
        return elements;
    }

    ONNXValue optional(const std::string& bytes, int depth) const {
        if (depth > deepest_value) broken("optional");
        ONNXValue value;
        fields(bytes, "optional", [&](int field, const std::string& one) {
            if (field != name_field) value = inner(field, one, depth);
        });
        return value;
    }

    std::string path_;
};

}  // namespace

}  // namespace onnx

ONNXValue read_onnx_value(const std::string& path, std::string_view kind) {
    const InputFile file(path);
    if (file.size() > onnx::largest_file)
        fail(ErrorKind::format, "'", path, "' has ", file.size(),
             " bytes; a value of test data has at most 2 GiB");
    std::string bytes(file.size(), '\0');
    if (file.read(0, bytes.data(), bytes.size()) != bytes.size())
        fail(ErrorKind::io, "'", path, "' became shorter while it was read");
    return onnx::ValueReader(path).read(bytes, kind);
}

}  // namespace dlprim
