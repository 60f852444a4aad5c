// SPDX-License-Identifier: MIT
// Parsing of files of the format safetensors.
#include "formats/safetensors/file.hpp"

#include "base/file_kind.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"

#include <dlprim/dtype.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

namespace dlprim {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t most_header = 100'000'000;  ///< bytes, as in the reference implementation

float from_half(std::uint16_t bits) {
    return half_to_float(bits);
}
float from_bfloat(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

struct Type {
    std::string_view name;
    std::uint64_t bytes;
};

constexpr Type types[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8},     {"I64", 8},
                          {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
                          {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

std::uint64_t bytes_of(const JsonView& type) {
    const auto found = std::find_if(std::begin(types), std::end(types),
                                    [&](const Type& one) { return one.name == type.text(); });
    if (found == std::end(types)) type.fail("is a type that safetensors does not have");
    return found->bytes;
}

/// The length of the header, which lies within the file.
std::uint64_t header_length(const InputFile& file) {
    std::string start(std::min<std::uint64_t>(file.size(), 64), '\0');
    start.resize(file.read(0, start.data(), start.size()));
    std::uint64_t length = 0;
    const std::string_view rest =
        std::string_view(start).substr(std::min<std::size_t>(start.size(), 8));
    if (!rest.starts_with('{')) {
        check_kind(start, file.path(), "a safetensors file");
        fail(ErrorKind::format, "'", file.path(),
             "' is not a safetensors file: byte 9 does not begin a header in JSON");
    }
    std::memcpy(&length, start.data(), sizeof length);
    if (length > most_header || length > file.size() - 8)
        fail(ErrorKind::format, "'", file.path(), "' is damaged or cut short: its header has ",
             length, " bytes, the file has ", file.size());
    return length;
}

SafetensorsTensor read_tensor(const std::string& name, const JsonView& view, std::uint64_t size) {
    view.object({"dtype", "shape", "data_offsets"});
    SafetensorsTensor tensor;
    tensor.name = name;
    tensor.type = view.at("dtype").text();
    const std::uint64_t bytes = bytes_of(view.at("dtype"));
    std::vector<std::int64_t> sizes;
    for (const JsonView& one : view.at("shape").array()) sizes.push_back(one.integer());
    try {
        tensor.shape = Shape(sizes);
    } catch (const Error& error) {
        view.at("shape").fail(error.what());
    }
    const JsonView offsets = view.at("data_offsets");
    const std::vector<JsonView> ends = offsets.array();
    if (ends.size() != 2 || ends[0].integer() < 0 || ends[1].integer() < ends[0].integer())
        offsets.fail("must be two numbers, of which the second is not the smaller one");
    const auto begin = static_cast<std::uint64_t>(ends[0].integer());
    const auto end = static_cast<std::uint64_t>(ends[1].integer());
    if (end > size) offsets.fail(cat("ends at byte ", end, " of data that have ", size));
    const auto elements = static_cast<std::uint64_t>(tensor.shape.numel());
    if ((end - begin) / bytes != elements || (end - begin) % bytes != 0)
        offsets.fail(
            cat("has ", end - begin, " bytes for ", elements, " elements of ", tensor.type));
    tensor.position = begin;
    return tensor;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(std::make_unique<const InputFile>(path)) {
    std::string header(static_cast<std::size_t>(header_length(*file_)), '\0');
    if (file_->read(8, header.data(), header.size()) != header.size())
        fail(ErrorKind::io, "'", path, "' has changed since it was opened");
    const std::uint64_t data = 8 + header.size();
    const JsonDocument document(header, path, {.depth = 8, .bytes = most_header});
    for (const auto& [name, view] : document.root().object()) {
        if (name == "__metadata__") continue;
        tensors_.emplace(name, read_tensor(name, view, file_->size() - data));
    }
    check_places(data);
    for (auto& [name, tensor] : tensors_) tensor.position += data;
}

/// Checks that each tensor begins where the one before it ends.
void SafetensorsFile::check_places(std::uint64_t data) const {
    std::vector<const SafetensorsTensor*> order;
    for (const auto& [name, tensor] : tensors_) order.push_back(&tensor);
    const auto end_of = [](const SafetensorsTensor& tensor) {
        const auto* type = std::find_if(std::begin(types), std::end(types),
                                        [&](const Type& one) { return one.name == tensor.type; });
        return tensor.position + static_cast<std::uint64_t>(tensor.shape.numel()) * type->bytes;
    };
    std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
        return std::pair(a->position, end_of(*a)) < std::pair(b->position, end_of(*b));
    });
    std::uint64_t end = 0;
    for (const SafetensorsTensor* tensor : order) {
        if (tensor->position != end)
            fail(ErrorKind::format, "'", path(), "' is damaged: the data of tensor '", tensor->name,
                 "' begin at byte ", tensor->position, ", those before it end at ", end);
        end = end_of(*tensor);
    }
    if (end != file_->size() - data)
        fail(ErrorKind::format, "'", path(), "' is damaged: its tensors have ", end,
             " bytes of data, the file has ", file_->size() - data);
}

void SafetensorsFile::read(const SafetensorsTensor& tensor, float* values) const {
    const bool half = tensor.type == "F16";
    if (!half && tensor.type != "F32" && tensor.type != "BF16")
        fail(ErrorKind::unsupported, "tensor '", tensor.name, "' of '", path(), "' has type ",
             tensor.type, "; read are F32, F16 and BF16");
    auto left = static_cast<std::uint64_t>(tensor.shape.numel());
    std::uint64_t position = tensor.position;
    const auto take = [&](void* to, std::size_t bytes) {
        if (file_->read(position, to, bytes) != bytes || !file_->is_unchanged())
            fail(ErrorKind::io, "'", path(), "' has changed since it was opened");
        position += bytes;
    };
    if (tensor.type == "F32") return take(values, static_cast<std::size_t>(left) * sizeof(float));
    std::vector<std::uint16_t> buffer(1 << 16);
    while (left > 0) {
        buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
        take(buffer.data(), buffer.size() * sizeof buffer[0]);
        values =
            std::transform(buffer.begin(), buffer.end(), values, half ? from_half : from_bfloat);
        left -= buffer.size();
    }
}

}  // namespace dlprim
