// SPDX-License-Identifier: MIT
// Epilogues as OpenCL text and on the host.
#include "engine/epilogue.hpp"

#include "base/text.hpp"
#include "engine/activations.hpp"
#include "engine/float_literal.hpp"
#include "engine/pointwise/host_vectors.hpp"

#include <algorithm>
#include <limits>

namespace dlprim {

namespace {

DType stored(const std::vector<Operand>& inputs, const EpilogueStage& stage) {
    return inputs.empty() ? DType::f32 : inputs[static_cast<std::size_t>(stage.operand)].dtype;
}

// Functions that read one or four stored elements as floats, at any alignment.
constexpr const char* readers = R"(
float4 epilogue_float_4(global const float* p) {
    return ((ulong)p & 15) == 0 ? *(global const float4*)p : vload4(0, p);
}
float epilogue_half(global const ushort* p) { return vload_half(0, (global const half*)p); }
float4 epilogue_half_4(global const ushort* p) {
    return ((ulong)p & 7) == 0 ? vloada_half4(0, (global const half*)p) : vload_half4(0, (global const half*)p);
}
float epilogue_bfloat(global const ushort* p) { return as_float((uint)*p << 16); }
float4 epilogue_bfloat_4(global const ushort* p) {
    const ushort4 bits = ((ulong)p & 7) == 0 ? *(global const ushort4*)p : vload4(0, p);
    return as_float4(convert_uint4(bits) << 16);
}
)";

// Defines the macro `name`(v, at) on vectors of `lanes` floats, and the functions that it calls.
// `anywhere`: float operands may be unaligned. `inputs` is empty if all operands are float.
// `processor`: see with_epilogue().
void define_epilogue(TextWriter& os, const std::string& name, const Epilogue& epilogue,
                     const std::vector<Operand>& inputs, int lanes, bool anywhere, bool processor) {
    const std::string type = lanes > 1 ? cat("float", lanes) : "float";
    TextWriter body;
    int adds = 0, number = 0;
    for (const EpilogueStage& stage : epilogue) {
        if (stage.kind == EpilogueStage::Kind::add) {
            const DType dtype = stored(inputs, stage);
            const std::string element = cat("(e", adds, " + e", adds, "_offset + (at))");
            if (dtype == DType::f32 && anywhere)
                body << " (v) += epilogue_float_4" << element << ';';
            else if (dtype == DType::f32)
                body << " (v) += *(global const " << type << "*)" << element << ';';
            else
                body << " (v) += epilogue_" << (dtype == DType::f16 ? "half" : "bfloat")
                     << (lanes > 1 ? "_4" : "") << element << ';';
            ++adds;
        } else {
            const std::string function = cat(name, "_activation_", number++);
            const Activation& activation = find_activation(stage.activation);
            const bool own = processor && !activation.processor.empty();
            os << "#define ALPHA " << float_literal(stage.alpha) << "\n#define BETA "
               << float_literal(stage.beta) << "\n"
               << type << " " << function << "(" << type << " v) { return "
               << (own ? activation.processor : activation.opencl)
               << "; }\n#undef ALPHA\n#undef BETA\n";
            body << " (v) = " << function << "(v);";
        }
    }
    os << "#define " << name << "(v, at) do {" << body.str() << " } while (0)\n";
}

// `inputs` is empty if all operands are float and aligned to their vectors.
std::string make_epilogue(std::string source, const Epilogue& epilogue,
                          const std::vector<Operand>& inputs, int lanes, bool processor = false) {
    TextWriter head, parameters, aligned;
    int adds = 0;
    const bool anywhere = lanes == 4 && !inputs.empty();
    bool reads = false;
    for (const EpilogueStage& stage : epilogue) {
        if (stage.kind != EpilogueStage::Kind::add) continue;
        const bool is_float = stored(inputs, stage) == DType::f32;
        reads = reads || !is_float || anywhere;
        parameters << ", global const " << (is_float ? "float" : "ushort") << "* e" << adds
                   << ", ulong e" << adds << "_offset";
        aligned << " && (e" << adds << "_offset & 3) == 0";
        ++adds;
    }
    const std::string word = "EPILOGUE_PARAMETERS";
    for (std::size_t at = source.find(word); at != std::string::npos; at = source.find(word))
        source.replace(at, word.size(), parameters.str());
    if (reads) head << readers;
    define_epilogue(head, "EPILOGUE", epilogue, inputs, lanes, anywhere, processor);
    if (source.find("EPILOGUE4") != std::string::npos) {
        define_epilogue(head, "EPILOGUE4", epilogue, inputs, 4, false, processor);
        head << "#define EPILOGUE_ALIGNED (1" << aligned.str() << ")\n";
    }
    return cat(head.str(), source);
}

}  // namespace

std::string with_epilogue(std::string source, const Epilogue& epilogue, int lanes, bool processor) {
    return make_epilogue(std::move(source), epilogue, {}, lanes, processor);
}

std::string with_epilogue(std::string source, const Problem& problem, int lanes) {
    return make_epilogue(std::move(source), problem.epilogue, problem.inputs, lanes);
}

void bind_epilogue(KernelCall& call, const Epilogue& epilogue) {
    int adds = 0;
    for (const EpilogueStage& stage : epilogue)
        if (stage.kind == EpilogueStage::Kind::add) call.tensor(cat("e", adds++), stage.operand);
}

void bind_epilogue(KernelCall& call, const Problem& problem) {
    int adds = 0;
    for (const EpilogueStage& stage : problem.epilogue)
        if (stage.kind == EpilogueStage::Kind::add)
            call.tensor(cat("e", adds++), stage.operand, size_of(stored(problem.inputs, stage)));
}

HostEpilogue::HostEpilogue(const Epilogue& epilogue, std::span<const BufferRef> operands) {
    for (const EpilogueStage& stage : epilogue) {
        if (stage.kind == EpilogueStage::Kind::add) {
            const auto index = static_cast<std::size_t>(stage.operand);
            stages_.push_back({Way::add, reinterpret_cast<const float*>(operands[index].host())});
        } else if (stage.activation == "relu") {
            stages_.push_back({Way::relu});
        } else if (stage.activation == "relu6") {
            stages_.push_back({Way::relu6});
        } else if (stage.activation == "hardswish") {
            stages_.push_back({Way::hardswish});
        } else if (stage.activation != "identity") {
            stages_.push_back(
                {Way::general, nullptr, HostActivation(stage.activation, stage.alpha, stage.beta)});
        }
    }
}

void HostEpilogue::apply(float* v, std::int64_t at, std::int64_t count) const {
    const pointwise::VectorLines& lines = pointwise::vector_lines();
    for (const Stage& s : stages_) switch (s.way) {
            case Way::add:
                lines.compute(pointwise::Op::add, v, s.operand + at, nullptr, v, count);
                break;
            case Way::relu:
                lines.clamp(v, 0, std::numeric_limits<float>::infinity(), count);
                break;
            case Way::relu6:
                lines.clamp(v, 0, 6, count);
                break;
            case Way::hardswish:
                lines.hardswish(v, count);
                break;
            case Way::general:
                s.activation->apply(v, count);
                break;
        }
}

}  // namespace dlprim
