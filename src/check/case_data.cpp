// SPDX-License-Identifier: MIT
// The data of cases, and what the oracle makes of them.
#include "base/hash.hpp"
#include "base/text.hpp"
#include "check/cases.hpp"
#include "check/compare.hpp"
#include "formats/json_net.hpp"

#include <algorithm>
#include <cstddef>

namespace dlprim {

namespace {

/// The operator names the parameters that its oracle writes.
void check_written(const Operator& op, const CaseData& data,
                   const std::vector<std::pair<int, HostArray>>& updated) {
    std::vector<std::size_t> written;
    written.reserve(updated.size());
    for (const auto& change : updated)
        written.push_back(static_cast<std::size_t>(change.first) - data.inputs.size());
    require(written == op.written_params(data.attrs), op.type(),
            "::written_params() does not name the parameters that the oracle changes");
}

}  // namespace

std::vector<HostArray> CaseData::operands() const {
    std::vector<HostArray> all = inputs;
    all.insert(all.end(), params.begin(), params.end());
    return all;
}

std::vector<TensorSpec> CaseData::specs() const {
    std::vector<TensorSpec> all;
    for (const auto* arrays : {&inputs, &params})
        for (const HostArray& array : *arrays) all.push_back({array.shape, array.dtype});
    return all;
}

CaseData make_case_data(const Case& one, unsigned seed) {
    std::mt19937 random(seed);
    const CompleteType complete = OperatorRegistry::instance().complete(
        one.type, parse_options_json(one.options), cat('[', one.type, "] "));
    const Operator& op = complete.op;
    CaseData data;
    data.attrs = complete.attrs;
    const Attr* const blocks = data.attrs.find("blocks");
    const auto fill = [&](const CaseTensor& tensor) {
        if (blocks == nullptr || std::get<std::string>(*blocks).empty() ||
            tensor.dtype != DType::u8)
            return filled(tensor, random);
        return filled_blocks(block_type(std::get<std::string>(*blocks)), tensor, random);
    };
    for (const CaseTensor& input : one.inputs) data.inputs.push_back(fill(input));
    const std::vector<ParamSpec> params = op.params(data.attrs, data.specs());
    for (std::size_t i = 0; i < params.size(); ++i) {
        CaseTensor tensor;
        if (i < one.params.size()) tensor = one.params[i];
        tensor.shape = params[i].spec.shape;
        tensor.dtype = params[i].spec.dtype;
        data.params.push_back(fill(tensor));
    }
    return data;
}

unsigned seed_of(const Case& one) {
    return static_cast<unsigned>(hash64(one.title()));
}

std::vector<HostArray> output_gradients_of(const Case& one, const CaseData& data, unsigned seed) {
    const Operator& op = OperatorRegistry::instance().get(one.type);
    std::mt19937 random(seed + 1);
    std::vector<HostArray> gradients;
    for (const TensorSpec& output : op.infer(data.attrs, data.specs()))
        gradients.push_back(filled({.shape = output.shape, .dtype = output.dtype}, random));
    return gradients;
}

Expected ask_oracle(const Case& one, const CaseData& data, unsigned seed) {
    const Operator& op = OperatorRegistry::instance().get(one.type);
    const std::vector<HostArray> operands = data.operands();
    Expected expected;
    const std::size_t outputs = op.infer(data.attrs, data.specs()).size();
    OracleCall call{data.attrs, one.training, operands, std::vector<HostArray>(outputs),
                    {},         call_seed,    call_step};
    op.oracle(call);
    if (one.training) check_written(op, data, call.updated);
    expected.updated = call.updated;
    expected.outputs = call.outputs;
    if (!one.gradient) return expected;
    expected.output_gradients = output_gradients_of(one, data, seed);
    OracleBackwardCall back{data.attrs,
                            one.training,
                            operands,
                            call.outputs,
                            expected.output_gradients,
                            std::vector<HostArray>(operands.size()),
                            call_seed,
                            call_step,
                            {}};
    op.oracle_backward(back);
    expected.gradients = back.input_gradients;
    expected.terms = back.terms;
    return expected;
}

double Expected::least_norm(std::size_t gradient) const {
    const double size = gradient < terms.size() ? norm(terms[gradient].data) : 0;
    return std::max(size, 1e-30);
}

}  // namespace dlprim
