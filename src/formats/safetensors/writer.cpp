// SPDX-License-Identifier: MIT
// Files of the format safetensors: the header, then the data of one tensor after the other.
#include "formats/safetensors/writer.hpp"

#include "base/new_file.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace dlprim {

namespace {

/// The length of the header, and the header, filled up so that the data are aligned.
std::string start_of(const FloatTensors& contents) {
    nlohmann::ordered_json header;
    header["__metadata__"] = {{"format", "pt"}};  // which transformers and peft ask for
    std::uint64_t position = 0;
    for (const FloatTensors::Tensor& tensor : contents.tensors) {
        const std::uint64_t end = position + tensor.bytes();
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

void write_safetensors(const std::string& path, const FloatTensors& contents) {
    NewFile file(path);
    file.append(start_of(contents));
    contents.append_to(file);
    file.commit();
}

}  // namespace dlprim
