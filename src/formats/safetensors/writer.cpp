// SPDX-License-Identifier: MIT
// Files of the format safetensors: the header, then the data of one tensor after the other.
#include "formats/safetensors/writer.hpp"

#include "base/new_file.hpp"

#include <dlprim/dtype.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>

namespace dlprim {

namespace {

std::size_t bytes_of(const SafetensorsContents::Tensor& tensor) {
    return static_cast<std::size_t>(tensor.shape.numel()) * (tensor.half ? 2 : sizeof(float));
}

/// The length of the header, and the header, filled up so that the data are aligned.
std::string start_of(const SafetensorsContents& contents) {
    nlohmann::ordered_json header;
    header["__metadata__"] = {{"format", "pt"}};  // which transformers and peft ask for
    std::uint64_t position = 0;
    for (const SafetensorsContents::Tensor& tensor : contents.tensors) {
        const std::uint64_t end = position + bytes_of(tensor);
        header[tensor.name] = {{"dtype", tensor.half ? "F16" : "F32"},
                               {"shape", tensor.shape.to_vector()},
                               {"data_offsets", {position, end}}};
        position = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

void write_safetensors(const std::string& path, const SafetensorsContents& contents) {
    NewFile file(path);
    file.append(start_of(contents));
    std::vector<float> values;
    std::vector<std::uint16_t> halves;
    for (const SafetensorsContents::Tensor& tensor : contents.tensors) {
        values.resize(static_cast<std::size_t>(tensor.shape.numel()));
        contents.read(tensor, values.data());
        const auto* bytes = reinterpret_cast<const char*>(values.data());
        if (tensor.half) {
            halves.resize(values.size());
            std::transform(values.begin(), values.end(), halves.begin(), float_to_half);
            bytes = reinterpret_cast<const char*>(halves.data());
        }
        file.append({bytes, bytes_of(tensor)});
    }
    file.commit();
}

}  // namespace dlprim
