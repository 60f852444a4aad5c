// SPDX-License-Identifier: MIT
// Values of tensors: raw bytes, typed lists, external files.
#include "formats/onnx/read_tensor.hpp"

#include "base/input_file.hpp"
#include "base/text.hpp"
#include "formats/onnx/any_value.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

namespace dlprim::onnx {

namespace {

namespace fs = std::filesystem;

/// Elements of a typed list, each stored in the tensor's own type. Lists of int32 hold 16-bit
/// floats by their bits.
template <typename List>
std::vector<std::byte> stored(const List& list, DType dtype) {
    using From = typename List::value_type;
    const std::size_t size = size_of(dtype);
    std::vector<std::byte> data(static_cast<std::size_t>(list.size()) * size);
    for (int i = 0; i < list.size(); ++i) {
        const From value = list.Get(i);
        // The low bytes of an integer are the narrower integer, on the little-endian machines that
        // raw data is for.
        std::memcpy(data.data() + static_cast<std::size_t>(i) * size, &value, size);
    }
    return data;
}

std::vector<std::byte> typed_values(const proto::TensorProto& tensor, DType dtype) {
    switch (dtype) {
        case DType::f32:
            return stored(tensor.float_data(), dtype);
        case DType::f64:
            return stored(tensor.double_data(), dtype);
        case DType::i64:
            return stored(tensor.int64_data(), dtype);
        case DType::u32:
        case DType::u64:
            return stored(tensor.uint64_data(), dtype);
        default:
            return stored(tensor.int32_data(), dtype);
    }
}

std::vector<std::byte> raw_values(const std::string& raw) {
    std::vector<std::byte> data(raw.size());
    if (!raw.empty()) std::memcpy(data.data(), raw.data(), raw.size());
    return data;
}

/// The entry of this key among a tensor's external_data, or empty.
std::string external_entry(const proto::TensorProto& tensor, std::string_view key) {
    for (const auto& entry : tensor.external_data())
        if (entry.key() == key) return entry.value();
    return {};
}

}  // namespace

std::string TensorReader::external_path(const std::string& location,
                                        const std::string& tensor) const {
    if (path_.empty())
        fail(ErrorKind::format, "'", source_, "': tensor '", tensor,
             "' lies in another file, for a model that is no file itself");
    const auto outside = [&] {
        fail(ErrorKind::format, "'", source_, "': tensor '", tensor, "' lies in '", location,
             "', outside the model's folder");
    };
    const fs::path relative(location);
    if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute())
        outside();
    std::error_code code;
    const fs::path folder = fs::canonical(fs::absolute(path_).parent_path(), code);
    if (code) outside();
    const fs::path file = fs::weakly_canonical(folder / relative, code);
    const auto [end, unused] =
        std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
    if (code || end != folder.end()) outside();
    return file.string();
}

std::vector<std::byte> TensorReader::external_bytes(const proto::TensorProto& tensor,
                                                    std::size_t bytes) const {
    const std::string location = external_entry(tensor, "location");
    const std::string path = external_path(location, tensor.name());
    const auto number = [&](const char* key, std::uint64_t otherwise) {
        const std::string text = external_entry(tensor, key);
        if (text.find_first_not_of("0123456789") != std::string::npos)
            fail(ErrorKind::format, "'", source_, "': tensor '", tensor.name(), "' has the ", key,
                 " '", text, "' in another file, which is no number");
        // What has too many digits lies behind the end of every file.
        return text.empty() ? otherwise
                            : leading_number(text, std::numeric_limits<std::uint64_t>::max());
    };
    const std::uint64_t offset = number("offset", 0), length = number("length", bytes);
    if (length != bytes)
        fail(ErrorKind::format, "'", source_, "': tensor '", tensor.name(), "' takes ", bytes,
             " bytes, its external data has ", length);
    try {
        const InputFile file(path);
        if (offset > file.size() || bytes > file.size() - offset)
            fail(ErrorKind::format, "'", source_, "': tensor '", tensor.name(), "' takes ", bytes,
                 " bytes from byte ", offset, " of '", location, "', which has ", file.size());
        std::vector<std::byte> data(bytes);
        if (file.read(offset, data.data(), bytes) != bytes)
            fail(ErrorKind::io, "'", source_, "': '", location,
                 "' became shorter while it was read");
        return data;
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::format) throw;
        throw Error(error.kind(), cat("'", source_, "': tensor '", tensor.name(),
                                      "' lies in another file: ", error.what()));
    }
}

Tensor TensorReader::read(proto::TensorProto& tensor) const {
    Tensor result;
    result.name = tensor.name();
    const bool is_strings = tensor.data_type() == string_type;
    const std::optional<DType> dtype = dtype_of(tensor.data_type());
    if (!dtype && !is_strings) {
        result.refusal = cat("is of type ", type_name(tensor.data_type()),
                             ", which this library does not support");
        return result;
    }
    Shape shape;
    try {
        std::vector<std::int64_t> dims(tensor.dims().begin(), tensor.dims().end());
        const bool is_wide = std::ssize(dims) > Shape::max_rank;
        shape = is_wide ? Shape{element_count(dims)} : Shape(dims);
        if (is_wide) result.wide_dims = std::move(dims);
    } catch (const Error& error) {
        const bool too_many = error.kind() == ErrorKind::unsupported;
        fail(too_many ? ErrorKind::unsupported : ErrorKind::format, "'", source_, "': tensor '",
             tensor.name(), "': ", error.what());
    }
    if (is_strings) {
        auto strings = std::make_shared<HostStrings>();
        strings->shape = shape;
        strings->values.assign(tensor.string_data().begin(), tensor.string_data().end());
        if (static_cast<std::int64_t>(strings->values.size()) != shape.numel())
            fail(ErrorKind::format, "'", source_, "': tensor '", result.name, "' of shape ",
                 shape.str(), " has ", strings->values.size(), " strings");
        result.strings = std::move(strings);
        return result;
    }
    auto host = std::make_shared<HostTensor>();
    host->shape = shape;
    host->dtype = *dtype;
    const std::size_t bytes = stored_bytes(host->shape.numel(), *dtype);
    if (tensor.data_location() == proto::TensorProto::EXTERNAL)
        host->data = external_bytes(tensor, bytes);
    else if (tensor.has_raw_data())
        host->data = raw_values(tensor.raw_data());
    else
        host->data = typed_values(tensor, *dtype);
    tensor.Clear();  // the bytes are there twice otherwise
    if (host->data.size() != bytes)
        fail(ErrorKind::format, "'", source_, "': tensor '", result.name, "' of shape ",
             host->shape.str(), " takes ", bytes, " bytes, the file has ", host->data.size());
    if (stored_bits(*dtype) < 8) host->data = unpacked(host->data, host->shape.numel(), *dtype);
    if (*dtype == DType::boolean)
        for (std::byte& value : host->data) value = std::byte{value != std::byte{0}};
    result.value = std::move(host);
    return result;
}

}  // namespace dlprim::onnx
