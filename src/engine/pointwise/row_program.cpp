// SPDX-License-Identifier: MIT
// Programs over rows: from stages to expressions, and from those to a job.
#include "engine/pointwise/row_program.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

/// The class of an operand, which may be a line without the dimension of rows.
int row_class(Job& job, const Operand& operand) {
    const std::vector<std::int64_t> own = logical_strides(operand.shape, operand.layout);
    std::vector<std::int64_t> strides{0, 0};
    for (std::size_t d = 0; d < own.size(); ++d)
        if (operand.shape[static_cast<int>(d)] != 1) strides[d + 2 - own.size()] = own[d];
    const auto found = std::find(job.classes.begin(), job.classes.end(), strides);
    if (found != job.classes.end()) return static_cast<int>(found - job.classes.begin());
    job.classes.push_back(std::move(strides));
    return static_cast<int>(job.classes.size()) - 1;
}

bool is_unaligned(const Operand& operand) {
    return operand.layout.is_strided() && !operand.layout.aligned;
}

Shape matrix_of(const Problem& problem) {
    std::vector<Shape> shapes;
    for (const Operand& in : problem.inputs) shapes.push_back(in.shape);
    return broadcast_shape(shapes, {});
}

}  // namespace

RowProgram read_rows(const Attrs& attrs, std::size_t inputs) {
    RowProgram program;
    program.inputs = static_cast<int>(inputs);
    std::vector<ExprPtr> known;                // tensors, and results of stages
    std::vector<bool> is_full(inputs, false);  // of results of stages
    for (int i = 0; i < program.inputs; ++i) known.push_back(input(i));
    const Ints wide = attrs.ints("wide");
    std::size_t number = 0;
    for (const std::string& code : split(attrs.text("stages"), '\n')) {
        const std::shared_ptr<const Program> stage = parsed(code);
        require(stage->inputs <= static_cast<int>(known.size()), "stage ", number, " reads x",
                stage->inputs - 1, ", there are ", known.size(), " values before it");
        const bool is_wide = wide.at(number++) != 0;
        const std::vector<ExprPtr> before = known;
        for (Output output : stage->outputs) {
            output.value = substitute(output.value, before, {});
            const bool reduces = output.kind != Output::Kind::elementwise;
            is_full.push_back(is_wide && !reduces);
            if (!reduces) {
                known.push_back(output.value);
                continue;
            }
            known.push_back(input(program.inputs + static_cast<int>(program.reductions.size())));
            program.reductions.push_back(std::move(output));
        }
    }
    for (const std::int64_t result : attrs.ints("results")) {
        const std::size_t at = inputs + static_cast<std::size_t>(result);
        require(at < known.size(), "result ", result, " is of no stage");
        program.results.push_back({known[at], is_full[at]});
    }
    return program;
}

RowJob make_row_job(const Problem& problem) {
    const RowProgram program = read_rows(problem.attrs, problem.inputs.size());
    RowJob made;
    made.inputs = program.inputs;
    Job& job = made.job;
    job.shape = matrix_of(problem);
    job.sizes = {job.shape[0], job.shape[1]};
    job.reduced = {false, true};
    for (const double value : problem.attrs.numbers("scalars")) job.scalars.emplace_back(value);
    std::vector<ExprPtr> roots;
    for (const Output& reduction : program.reductions) roots.push_back(reduction.value);
    for (const RowProgram::Result& result : program.results) roots.push_back(result.value);
    job.tape = compile(roots);
    std::size_t at = 0;
    made.reductions = program.reductions.size();
    for (const Output& reduction : program.reductions) {
        JobOutput out;
        out.operand = -1;
        out.kind = reduction.kind;
        out.value = job.tape.results[at++];
        if (out.kind == Output::Kind::mean) {
            out.kind = Output::Kind::sum;
            out.scaled = true;
            out.scale = 1.0 / static_cast<double>(job.shape[1]);
        }
        job.outputs.push_back(std::move(out));
        made.wide.push_back(false);
    }
    for (std::size_t k = 0; k < program.results.size(); ++k) {
        JobOutput out;
        const Operand& operand = problem.outputs[k];
        out.operand = static_cast<int>(problem.inputs.size() + k);
        out.value = job.tape.results[at++];
        out.dtype = operand.dtype;
        out.klass = row_class(job, operand);
        out.loose = is_unaligned(operand);
        job.outputs.push_back(std::move(out));
        made.wide.push_back(program.results[k].wide);
    }
    for (const Instruction& in : job.tape.code) {
        if (in.op != Op::input || in.number >= made.inputs) continue;
        const Operand& operand = problem.inputs[static_cast<std::size_t>(in.number)];
        job.inputs.push_back({in.number, in.number, operand.dtype, row_class(job, operand), 0,
                              is_unaligned(operand)});
    }
    return made;
}

}  // namespace dlprim::pointwise
