// SPDX-License-Identifier: MIT
// Epilogues as OpenCL text and on the host.
#include "engine/epilogue.hpp"

#include "base/text.hpp"
#include "engine/activations.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace dlprim {

namespace {

std::string float_literal(double value) {
    std::ostringstream out;
    out << std::scientific << std::setprecision(9) << value << 'f';
    return out.str();
}

/// The macro `name`(v, at) on vectors of so many lanes, and the functions that it calls.
void define_epilogue(std::ostream& os, const std::string& name, const Epilogue& epilogue,
                     int lanes) {
    const std::string type = lanes > 1 ? cat("float", lanes) : "float";
    std::ostringstream body;
    int adds = 0, number = 0;
    for (const EpilogueStage& stage : epilogue) {
        if (stage.kind == EpilogueStage::Kind::add) {
            body << " (v) += *(global const " << type << "*)(e" << adds << " + e" << adds
                 << "_offset + (at));";
            ++adds;
        } else {
            const std::string function = cat(name, "_activation_", number++);
            os << "#define ALPHA " << float_literal(stage.alpha) << "\n#define BETA "
               << float_literal(stage.beta) << "\n"
               << type << " " << function << "(" << type << " v) { return "
               << find_activation(stage.activation).opencl << "; }\n#undef ALPHA\n#undef BETA\n";
            body << " (v) = " << function << "(v);";
        }
    }
    os << "#define " << name << "(v, at) do {" << body.str() << " } while (0)\n";
}

}  // namespace

std::string with_epilogue(std::string source, const Epilogue& epilogue, int lanes) {
    std::ostringstream head, parameters, aligned;
    int adds = 0;
    for (const EpilogueStage& stage : epilogue) {
        if (stage.kind != EpilogueStage::Kind::add) continue;
        parameters << ", global const float* e" << adds << ", ulong e" << adds << "_offset";
        aligned << " && (e" << adds << "_offset & 3) == 0";
        ++adds;
    }
    const std::string word = "EPILOGUE_PARAMETERS";
    for (std::size_t at = source.find(word); at != std::string::npos; at = source.find(word))
        source.replace(at, word.size(), parameters.str());
    define_epilogue(head, "EPILOGUE", epilogue, lanes);
    if (source.find("EPILOGUE4") != std::string::npos) {
        define_epilogue(head, "EPILOGUE4", epilogue, 4);
        head << "#define EPILOGUE_ALIGNED (1" << aligned.str() << ")\n";
    }
    return cat(head.str(), source);
}

void bind_epilogue(KernelCall& call, const Epilogue& epilogue) {
    int adds = 0;
    for (const EpilogueStage& stage : epilogue)
        if (stage.kind == EpilogueStage::Kind::add) call.tensor(cat("e", adds++), stage.operand);
}

HostEpilogue::HostEpilogue(const Epilogue& epilogue, std::span<const BufferRef> operands) {
    for (const EpilogueStage& stage : epilogue) {
        if (stage.kind == EpilogueStage::Kind::add) {
            const auto index = static_cast<std::size_t>(stage.operand);
            stages_.push_back(
                {Way::add, reinterpret_cast<const float*>(operands[index].host()), &stage});
        } else if (stage.activation == "relu") {
            stages_.push_back({Way::relu, nullptr, &stage});
        } else if (stage.activation == "relu6") {
            stages_.push_back({Way::relu6, nullptr, &stage});
        } else if (stage.activation != "identity") {
            stages_.push_back({Way::general, nullptr, &stage});
        }
    }
}

void HostEpilogue::apply(float* v, std::int64_t at, std::int64_t count) const {
    for (const Stage& s : stages_) switch (s.way) {
            case Way::add:
                for (std::int64_t i = 0; i < count; ++i) v[i] += s.operand[at + i];
                break;
            // Written so that a NaN stays one.
            case Way::relu:
                for (std::int64_t i = 0; i < count; ++i) v[i] = v[i] < 0 ? 0.0f : v[i];
                break;
            case Way::relu6:
                for (std::int64_t i = 0; i < count; ++i)
                    v[i] = v[i] < 0 ? 0.0f : (v[i] > 6 ? 6.0f : v[i]);
                break;
            case Way::general:
                for (std::int64_t i = 0; i < count; ++i)
                    v[i] = static_cast<float>(
                        activate(s.stage->activation, v[i], s.stage->alpha, s.stage->beta));
                break;
        }
}

}  // namespace dlprim
