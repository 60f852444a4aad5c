// SPDX-License-Identifier: MIT
// ONNXProgram: the tree of ways, and which of them are kept.
#include "api/onnx_program.hpp"

#include "api/onnx_run.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <new>
#include <string_view>

namespace dlprim {

ONNXProgram::ONNXProgram(const Context& context, std::shared_ptr<const onnx::Model> model,
                         const ONNXSessionOptions& options)
    : context_(context), model_(std::move(model)), options_(options) {
    require(options.max_programs >= 1, "max_programs is ", options.max_programs,
            ": it must be at least 1, for the program that the session runs");
    require(options.max_iterations >= 1 && options.max_nodes >= 1,
            "max_iterations and max_nodes are ", options.max_iterations, " and ", options.max_nodes,
            "; they must be at least 1");
    limits_ = {options.max_iterations, options.max_nodes, options.max_known_bytes};
}

ONNXProgram::~ONNXProgram() = default;

ONNXSession::Values ONNXProgram::run(const ONNXSession::Values& inputs) {
    try {
        return run_once(inputs);
    } catch (const Error& error) {
        // What is kept to be fast must not be why memory is short.
        if (error.kind() != ErrorKind::out_of_memory || leaves_.empty()) throw;
    }
    drop_leaves(0);
    return run_once(inputs);
}

ONNXSession::Values ONNXProgram::run_once(const ONNXSession::Values& inputs) {
    ONNXRun run(*this, inputs);
    try {
        return run.run();
    } catch (const Error& error) {
        if (!run.node().is_leaf) drop(&run.node());
        if (std::string_view(error.what()).starts_with(cat("'", model_->source, "'"))) throw;
        throw Error(error.kind(), cat("'", model_->source, "': ", error.what()));
    } catch (const std::bad_alloc&) {
        if (!run.node().is_leaf) drop(&run.node());
        fail(ErrorKind::out_of_memory, "'", model_->source,
             "': the host's memory does not suffice to run the model");
    } catch (...) {
        if (!run.node().is_leaf) drop(&run.node());
        throw;
    }
}

const Context& ONNXProgram::host() {
    if (!host_) host_.emplace("cpu");
    return *host_;
}

void ONNXProgram::drop_leaves(std::size_t most) {
    while (leaves_.size() > most) {
        const auto oldest = std::min_element(
            leaves_.begin(), leaves_.end(),
            [](const Node* a, const Node* b) { return a->last_use < b->last_use; });
        Node* const leaf = *oldest;
        leaves_.erase(oldest);
        drop(leaf);
    }
}

void ONNXProgram::drop_surplus() {
    drop_leaves(static_cast<std::size_t>(options_.max_programs));
    while (bytes_ > options_.max_program_bytes && leaves_.size() > 1)
        drop_leaves(leaves_.size() - 1);
}

/// Drops a node that has no children, and what leads to it alone.
void ONNXProgram::drop(Node* node) {
    while (node->parent && node->children.empty()) {
        Node* const parent = node->parent;
        bytes_ -= node->bytes;
        parent->children.erase(std::string(node->key));
        node = parent;
    }
}

}  // namespace dlprim
