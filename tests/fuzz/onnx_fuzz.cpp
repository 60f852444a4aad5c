// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are parsed as an ONNX model give a network or an Error, and the network
// a graph or an Error. The node cases of Debian's libonnx-testdata are a good corpus to begin with:
//   onnx_fuzz -rss_limit_mb=1024 -max_len=4096 -timeout=60 CORPUS
#include "formats/onnx/import.hpp"
#include "graph/description.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try {
        const dlprim::onnx::Model model = dlprim::onnx::parse_model(bytes, "fuzz");
        const dlprim::onnx::ImportedNet net = dlprim::onnx::import_model(model);
        dlprim::build_graph(net.description);
    } catch (const dlprim::Error&) {
    }
    return 0;
}
