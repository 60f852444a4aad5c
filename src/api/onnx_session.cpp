// SPDX-License-Identifier: MIT
// ONNXSession; api/onnx_program.hpp does the work.
#include <dlprim/onnx_session.hpp>

#include "api/onnx_program.hpp"
#include "base/text.hpp"
#include "formats/onnx/import.hpp"
#include "runtime/access.hpp"

#include <algorithm>

namespace dlprim {

ONNXSession::ONNXSession(const Context& context, const ONNXModel& model,
                         const ONNXSessionOptions& options) {
    Access::impl(model);  // throws where it holds none
    program_ = std::make_unique<ONNXProgram>(context, Access::shared_impl(model), options);
}

ONNXSession::~ONNXSession() = default;
ONNXSession::ONNXSession(ONNXSession&&) noexcept = default;
ONNXSession& ONNXSession::operator=(ONNXSession&&) noexcept = default;

ONNXProgram& ONNXSession::program() const {
    require(program_ != nullptr,
            "this ONNXSession was moved from and has no model: use the one that it was moved to");
    return *program_;
}

const Context& ONNXSession::context() const {
    return program().context();
}

std::vector<ONNXInput> ONNXSession::inputs() const {
    return declared_inputs(program().model());
}

std::vector<std::string> ONNXSession::output_names() const {
    std::vector<std::string> names;
    for (const onnx::ValueInfo& info : program().model().graph.outputs) names.push_back(info.name);
    return names;
}

ONNXSession::Values ONNXSession::run(const Values& inputs) {
    const onnx::Model& model = program().model();
    std::vector<std::string> names;
    for (const onnx::ValueInfo& info : model.graph.inputs) names.push_back(info.name);
    for (const auto& [name, value] : inputs)
        if (std::find(names.begin(), names.end(), name) == names.end())
            fail(ErrorKind::invalid_argument, "'", model.source, "' has no input '", name, "'",
                 did_you_mean(name, names));
    for (const onnx::ValueInfo& info : onnx::fed_inputs(model))
        require(info.optional || inputs.count(info.name), "'", model.source, "': input '",
                info.name, "' is not given; it is declared as ", info.str());
    return program().run(inputs);
}

std::int64_t ONNXSession::host_nodes() const {
    return program().host_nodes();
}

std::int64_t ONNXSession::nets_made() const {
    return program().nets_made();
}

}  // namespace dlprim
