// SPDX-License-Identifier: MIT
// Reads the table of cases.
#include "check/cases.hpp"

#include "formats/json_net.hpp"
#include "formats/json_tree.hpp"

namespace dlprim {

namespace {

CaseTensor read_tensor(const JsonView& json) {
    CaseTensor tensor;
    for (const auto& [key, value] :
         json.object({"shape", "dtype", "fill", "min", "max", "classes", "ends"})) {
        if (key == "shape") {
            std::vector<std::int64_t> dims;
            for (const JsonView& size : value.array()) dims.push_back(size.integer());
            tensor.shape = Shape(dims);
        }
        if (key == "dtype") tensor.dtype = parse_dtype(value.text());
        if (key == "fill") tensor.fill = value.text();
        if (key == "min") tensor.min = value.number();
        if (key == "max") tensor.max = value.number();
        if (key == "classes") tensor.classes = value.integer();
        if (key == "ends")
            for (const JsonView& end : value.array()) tensor.ends.push_back(end.integer());
    }
    return tensor;
}

std::vector<CaseTensor> read_tensors(const JsonView& json) {
    std::vector<CaseTensor> tensors;
    for (const JsonView& tensor : json.array()) tensors.push_back(read_tensor(tensor));
    return tensors;
}

Case read_case(const JsonView& json, const std::string& file) {
    Case one;
    one.file = file;
    one.name = json.at("name").text();
    one.type = json.at("type").text();
    one.inputs = read_tensors(json.at("inputs"));
    for (const auto& [key, value] :
         json.object({"name", "type", "options", "inputs", "params", "training", "golden",
                      "gradient", "speed", "simulated", "self_test"})) {
        if (key == "options") one.options = write_options_json(read_options(value));
        if (key == "params") one.params = read_tensors(value);
        if (key == "training") one.training = value.boolean();
        if (key == "golden") one.golden = value.boolean();
        if (key == "gradient") one.gradient = value.boolean();
        if (key == "speed") one.speed = value.boolean();
        if (key == "simulated") one.simulated = value.boolean();
        if (key == "self_test") one.self_test = value.boolean();
    }
    return one;
}

}  // namespace

std::vector<Case> read_cases(std::string_view json, const std::string& file) {
    const JsonDocument document(json, file);
    std::vector<Case> cases;
    for (const JsonView& one : document.root().array()) cases.push_back(read_case(one, file));
    return cases;
}

const std::vector<Case>& embedded_cases() {
    static const std::vector<Case> all = read_cases(embedded_cases_json, "tests/cases");
    return all;
}

}  // namespace dlprim
