// SPDX-License-Identifier: MIT
// Rows that the library ships, without their devices: traits as the devices' drivers report them,
// problems parsed from the rows' keys, and the layouts that rows name.
#pragma once

#include "base/text.hpp"
#include "engine/database.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace dlprim {

inline Traits h200() {
    Traits traits;
    traits.compute_units = 132;
    traits.max_work_group = 1024;
    traits.local_bytes = 48 << 10;
    traits.max_alloc_bytes = std::uint64_t{35} << 30;
    traits.global_bytes = std::uint64_t{140} << 30;
    traits.fp64 = true;
    traits.wgmma = traits.matrix_fp16 = traits.matrix_bf16 = true;
    traits.mma_local_bytes = 227 << 10;
    traits.gflops = 132 * 128 * 2 * 1.98;
    traits.gbytes_per_s = 132 * 30;
    traits.launch_us = 5;
    return traits;
}

inline const std::map<std::string, Traits> row_devices{{"NVIDIA H200", h200()}};

inline Ints numbers_of(const std::string& text) {
    Ints all;
    std::istringstream in(text);
    for (std::string item; std::getline(in, item, ',');) all.push_back(std::stoll(item));
    return all;
}

/// Parses "kernel=3,3" and so on.
inline Attrs attrs_of(const std::string& text) {
    Attrs attrs;
    std::istringstream in(text);
    for (std::string item; in >> item;) {
        const std::size_t equals = item.find('=');
        const std::string name = item.substr(0, equals), value = item.substr(equals + 1);
        const bool word = value.empty() || value.find_first_not_of("-0123456789,") != value.npos;
        const Ints numbers = word ? Ints{} : numbers_of(value);
        attrs.set(name, word                  ? Attr(value)
                        : numbers.size() == 1 ? Attr(numbers[0])
                                              : Attr(numbers));
    }
    return attrs;
}

/// "float[64, 3, 224, 224], float[64, 3, 7, 7]!".
inline std::vector<Operand> operands_of(const std::string& text) {
    std::vector<Operand> all;
    for (std::size_t at = 0, open; (open = text.find('[', at)) != text.npos;) {
        const std::size_t close = text.find(']', open);
        const std::string type = text.substr(at, open - at);
        Operand operand;
        for (const DType dtype : {DType::f16, DType::bf16})
            if (type == name_of(dtype)) operand.dtype = dtype;
        operand.shape = Shape(numbers_of(text.substr(open + 1, close - open - 1)));
        operand.constant = text.compare(close + 1, 1, "!") == 0;
        all.push_back(operand);
        at = close + (operand.constant ? 4 : 3);  // ", "
    }
    return all;
}

/// "+3 relu(0,0) tf32".
inline void read_tail(const std::string& text, Problem& problem) {
    std::istringstream in(text);
    for (std::string item; in >> item;) {
        EpilogueStage stage;
        const std::size_t open = item.find('(');
        if (item[0] == '+') {
            stage.kind = EpilogueStage::Kind::add;
            stage.operand = std::stoi(item.substr(1));
        } else if (open != item.npos) {
            stage.activation = item.substr(0, open);
            stage.alpha = std::stod(item.substr(open + 1));
            stage.beta = std::stod(item.substr(item.find(',') + 1));
        } else {
            for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16})
                if (item == name_of(precision)) problem.precision = precision;
            continue;
        }
        problem.epilogue.push_back(stage);
    }
}

/// Parses a key, as Problem::key(false) writes it.
inline Problem problem_of(const std::string& key) {
    const std::size_t space = key.find(' '), brace = key.find('{'), inputs = key.find("} ("),
                      arrow = key.find(") -> (", inputs), end = key.find(')', arrow + 1);
    Problem problem;
    problem.op = key.substr(0, space);
    if (key.compare(space + 1, 8, "training") == 0) problem.phase = Phase::training;
    problem.attrs = attrs_of(key.substr(brace + 1, inputs - brace - 1));
    problem.inputs = operands_of(key.substr(inputs + 3, arrow - inputs - 3));
    problem.outputs = operands_of(key.substr(arrow + 6, end - arrow - 6));
    read_tail(key.substr(end + 1), problem);
    require(problem.key(false) == key, "the key '", key, "' is read as '", problem.key(false), "'");
    return problem;
}

/// The problem with the layouts that the row names, or nothing if the engine has no such layouts.
inline std::optional<Problem> laid_problem(const Engine& engine, const Traits& device,
                                           const DatabaseRow& row) {
    Problem problem = problem_of(row.problem);
    for (const LayoutChoice& choice : engine.layouts(device, problem)) {
        if (choice.name() != row.row.layout) continue;
        for (std::size_t i = 0; i < problem.inputs.size(); ++i)
            problem.inputs[i].layout = choice.inputs[i];
        for (std::size_t i = 0; i < problem.outputs.size(); ++i)
            problem.outputs[i].layout = choice.outputs[i];
        return problem;
    }
    return std::nullopt;
}

}  // namespace dlprim
