// SPDX-License-Identifier: MIT
// In place of read_model.cpp where the build has no protobuf or no schema of ONNX.
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
