// SPDX-License-Identifier: MIT
// Assembles generated kernels. A tensor is a pointer and an offset in elements, which is added
// first. Inputs are x<number>. Outputs are y<k>, or w<k> and f<k> in the workspace.
#include "engine/pointwise/kernel_text.hpp"

#include "base/text.hpp"
#include "engine/kernel_type.hpp"

namespace dlprim::pointwise {
namespace {

struct Signature {
    TextWriter parameters, shifts;

    void tensor(const std::string& name, const std::string& type) {
        parameters << (parameters.str().empty() ? "" : ", ") << "global " << type << "* " << name
                   << ", ulong " << name << "_offset";
        shifts << "    " << name << " += " << name << "_offset;\n";
    }
};

void add_output(Signature& signature, const KernelText& kernel, std::size_t k) {
    const JobOutput& out = kernel.job.outputs[k];
    if (out.operand < 0) return;  // it stays in the kernel
    if (kernel.results != Results::partial || !out.reduces())
        signature.tensor(cat("y", k), kernel_type(out.dtype));
    if (kernel.results == Results::final || !out.reduces()) return;
    signature.tensor(cat("w", k), kernel.emit.scalar_type());
    if (out.kind == Output::Kind::custom) signature.tensor(cat("f", k), kernel.emit.scalar_type());
}

}  // namespace

void assemble(Generated& result, const KernelText& kernel) {
    result.results = kernel.results;
    Signature signature;
    for (const JobInput& input : kernel.job.inputs)
        signature.tensor(cat("x", input.number), cat("const ", kernel_type(input.dtype)));
    for (std::size_t k = 0; k < kernel.job.outputs.size(); ++k) add_output(signature, kernel, k);
    result.numbers = kernel.numbers.all();
    const std::vector<KernelNumber>& more = kernel.emit.numbers();
    result.numbers.insert(result.numbers.end(), more.begin(), more.end());
    for (const KernelNumber& n : result.numbers)
        signature.parameters << ", " << (n.real ? "float " : "long ") << n.name;
    result.source = cat(kernel.emit.preamble(), "kernel ", kernel.attributes, "void pointwise(",
                        signature.parameters.str(), ") {\n", signature.shifts.str(),
                        kernel.constants, kernel.body, "}\n");
}

}  // namespace dlprim::pointwise
