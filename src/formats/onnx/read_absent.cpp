// SPDX-License-Identifier: MIT
// In place of the other files read_*.cpp where the build has no protobuf or no schema of ONNX.
#include <dlprim/onnx_value.hpp>

#include "base/text.hpp"
#include "formats/onnx/model.hpp"

namespace dlprim::onnx {

namespace {

[[noreturn]] void refuse(const std::string& source) {
    fail(
        ErrorKind::unsupported, "'", source,
        "': this build of dlprim reads no ONNX models; it needs protobuf and ONNX's schema when it "
        "is built (scripts/install_deps.sh installs both, DLPRIM_WITH_ONNX=ON asks for it)");
}

}  // namespace

bool can_read_models() {
    return false;
}

Model read_model(const std::string& path) {
    refuse(path);
}

Model parse_model(std::string_view, const std::string& source) {
    refuse(source);
}

}  // namespace dlprim::onnx

namespace dlprim {

ONNXValue read_onnx_value(const std::string& path, std::string_view) {
    onnx::refuse(path);
}

}  // namespace dlprim
