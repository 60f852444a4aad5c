// SPDX-License-Identifier: MIT
// Reads the table of cases and makes their data.
#include "support/cases.hpp"

#include "formats/json_net.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace dlprim::testing {

namespace {

using Json = nlohmann::json;

void refuse_unknown(const Json& object, std::initializer_list<const char*> known,
                    const std::string& where) {
    for (const auto& item : object.items())
        if (std::none_of(known.begin(), known.end(),
                         [&](const char* name) { return item.key() == name; }))
            throw std::runtime_error(where + ": unknown key '" + item.key() + "'");
}

CaseTensor read_tensor(const Json& json, const std::string& where) {
    refuse_unknown(json, {"shape", "dtype", "fill", "min", "max", "classes"}, where);
    CaseTensor tensor;
    tensor.shape = Shape(json.value("shape", std::vector<std::int64_t>{}));
    tensor.dtype = parse_dtype(json.value("dtype", "float"));
    tensor.fill = json.value("fill", "normal");
    tensor.min = json.value("min", -1.0);
    tensor.max = json.value("max", 1.0);
    tensor.classes = json.value("classes", std::int64_t{2});
    return tensor;
}

Case read_case(const Json& json, const std::string& file) {
    Case one;
    one.file = file;
    one.name = json.at("name");
    const std::string where = file + " '" + one.name + "'";
    refuse_unknown(json,
                   {"name", "type", "options", "inputs", "params", "training", "golden", "gradient",
                    "speed", "simulated"},
                   where);
    one.type = json.at("type");
    one.options = json.value("options", Json::object()).dump();
    for (const Json& input : json.at("inputs")) one.inputs.push_back(read_tensor(input, where));
    for (const Json& param : json.value("params", Json::array()))
        one.params.push_back(read_tensor(param, where));
    one.training = json.value("training", false);
    one.golden = json.value("golden", false);
    one.gradient = json.value("gradient", true);
    one.speed = json.value("speed", false);
    one.simulated = json.value("simulated", true);
    return one;
}

/// Rounds values to those that the tensor's type can hold.
void round_to(HostArray& array) {
    std::vector<std::byte> bytes(array.data.size() * size_of(array.dtype));
    convert(array.data.data(), DType::f64, bytes.data(), array.dtype, array.data.size());
    convert(bytes.data(), array.dtype, array.data.data(), DType::f64, array.data.size());
}

}  // namespace

std::vector<Case> load_cases(const std::string& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Case> cases;
    for (const auto& path : files) {
        std::ifstream in(path);
        try {
            for (const Json& json : Json::parse(in))
                cases.push_back(read_case(json, path.filename().string()));
        } catch (const Json::exception& error) {
            throw std::runtime_error(path.filename().string() + ": " + error.what());
        }
    }
    return cases;
}

HostArray make_data(const CaseTensor& tensor, std::mt19937& random) {
    HostArray array{tensor.shape,
                    std::vector<double>(static_cast<std::size_t>(tensor.shape.numel())),
                    tensor.dtype};
    // Our own arithmetic on the generator's numbers, because the standard distributions differ
    // among compilers.
    const auto unit = [&] { return (static_cast<double>(random()) + 0.5) / 4294967296.0; };
    if (tensor.fill == "normal") {
        for (double& v : array.data)
            v = std::sqrt(-2 * std::log(unit())) * std::cos(6.283185307179586 * unit());
    } else if (tensor.fill == "uniform") {
        for (double& v : array.data) v = tensor.min + (tensor.max - tensor.min) * unit();
    } else if (tensor.fill == "positive") {
        for (double& v : array.data) v = 0.1 + 1.9 * unit();
    } else if (tensor.fill == "distinct") {
        const double count = static_cast<double>(array.data.size());
        std::iota(array.data.begin(), array.data.end(), -std::floor(count / 2));
        for (std::size_t i = array.data.size(); i > 1; --i)
            std::swap(array.data[i - 1], array.data[random() % i]);
        for (double& v : array.data) v /= 8;
    } else if (tensor.fill == "equal") {
        std::fill(array.data.begin(), array.data.end(), 0.75);
    } else if (tensor.fill == "labels") {
        for (double& v : array.data)
            v = static_cast<double>(random() % static_cast<std::uint64_t>(tensor.classes));
    } else if (tensor.fill == "indices") {
        for (double& v : array.data)
            v = static_cast<double>(random() % static_cast<std::uint64_t>(2 * tensor.classes)) -
                static_cast<double>(tensor.classes);
    } else if (tensor.fill == "once") {
        std::vector<double> all(static_cast<std::size_t>(tensor.classes));
        std::iota(all.begin(), all.end(), 0);
        for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
        if (all.size() < array.data.size()) throw std::runtime_error("too few classes to be once");
        std::copy_n(all.begin(), array.data.size(), array.data.begin());
    } else {
        throw std::runtime_error("unknown fill '" + tensor.fill + "'");
    }
    if (is_integer(tensor.dtype) && tensor.fill == "normal")
        for (double& v : array.data) v = std::trunc(v * 8);
    round_to(array);
    return array;
}

CaseData make_case_data(const Case& one, unsigned seed) {
    std::mt19937 random(seed);
    const Operator& op = OperatorRegistry::instance().get(one.type);
    CaseData data;
    data.attrs = op.schema().complete(parse_options_json(one.options), "[" + one.type + "] ");
    std::vector<TensorSpec> specs;
    for (const CaseTensor& input : one.inputs) {
        data.inputs.push_back(make_data(input, random));
        specs.push_back({input.shape, input.dtype});
    }
    const std::vector<ParamSpec> params = op.params(data.attrs, specs);
    for (std::size_t i = 0; i < params.size(); ++i) {
        CaseTensor tensor;
        if (i < one.params.size()) tensor = one.params[i];
        tensor.shape = params[i].spec.shape;
        tensor.dtype = params[i].spec.dtype;
        data.params.push_back(make_data(tensor, random));
    }
    return data;
}

double relative_error(const std::vector<double>& found, const std::vector<double>& wanted,
                      double scale) {
    const double never = std::numeric_limits<double>::infinity();
    if (found.size() != wanted.size()) return never;
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!std::isfinite(wanted[i]) || !std::isfinite(found[i])) {
            if (found[i] != wanted[i] && !(std::isnan(found[i]) && std::isnan(wanted[i])))
                return never;
            continue;
        }
        error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
        norm += wanted[i] * wanted[i];
    }
    if (error == 0) return 0;
    return std::sqrt(error) / std::max(std::sqrt(norm), scale);
}

}  // namespace dlprim::testing
