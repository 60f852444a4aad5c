// SPDX-License-Identifier: MIT
// Importer: a model's inputs, of declared shapes or as they are fed, and its initialisers.
#include "formats/onnx/importer.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

namespace dlprim::onnx {

std::string shape_text(const std::vector<Dimension>& shape) {
    std::vector<std::string> dims;
    dims.reserve(shape.size());
    for (const Dimension& dim : shape)
        dims.push_back(dim.size ? cat(*dim.size) : dim.symbol.empty() ? "?" : dim.symbol);
    return cat("[", join(dims, ", "), "]");
}

std::string ValueInfo::str() const {
    return shape ? cat(type, " ", shape_text(*shape)) : type;
}

void Importer::add_initializers(const Graph& graph, Scope& scope) {
    for (const auto& [name, tensor] : graph.initializers) {
        if (tensor.value) {
            build_.allow_copies_of(tensor.value->data.size());
            scope.values[name] =
                AnyValue(build_.constant(name, tensor.value, true), tensor.wide_dims);
        } else if (tensor.strings) {
            scope.values[name] =
                AnyValue(build_.strings(name, tensor.strings->shape, tensor.strings->values),
                         tensor.wide_dims);
        } else {
            refused_[name] = tensor.refusal;
        }
    }
}

std::string Importer::where_input(const ValueInfo& info) const {
    return cat("'", model_.source, "': input '", info.name, "' ");
}

void Importer::check_input_names() const {
    std::set<std::string> names;
    for (const ValueInfo& info : fed_inputs(model_))
        if (info.name.empty() || !names.insert(info.name).second)
            fail(ErrorKind::format, "'", model_.source, "': an input has ",
                 info.name.empty() ? "no name" : cat("the name '", info.name, "' of another"));
}

void Importer::bind_symbol(const ValueInfo& info, const Dimension& dim, std::int64_t size) {
    if (dim.size || dim.symbol.empty()) return;
    const auto& [known, first] =
        symbols_.emplace(dim.symbol, std::pair(size, info.name)).first->second;
    // Models are in use whose inputs give one name to sizes that have nothing to do with each
    // other.
    if (known != size)
        log(LogLevel::warning,
            cat(where_input(info), "has ", dim.symbol, " = ", size, ", input '", first, "' has ",
                dim.symbol, " = ", known, ": the model gives both sizes one name"));
}

Shape Importer::declared_shape(const ValueInfo& info, const std::map<std::string, Shape>& shapes,
                               std::int64_t batch) {
    const auto where = where_input(info);
    const auto given = shapes.find(info.name);
    if (!info.shape) {
        require(given != shapes.end(), where,
                "has no declared shape: give it with the option input_shapes");
        checks_shapes_ = false;
        return given->second;
    }
    const std::vector<Dimension>& declared = *info.shape;
    if (given != shapes.end())
        require(given->second.rank() == static_cast<int>(declared.size()), where, "is declared as ",
                shape_text(declared), ", got ", given->second);
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < declared.size(); ++i) {
        const Dimension& dim = declared[i];
        std::int64_t size = dim.size.value_or(0);
        if (given != shapes.end() && !(i == 0 && dim.size)) {
            size = given->second[static_cast<int>(i)];
            // With other sizes than the model's own, what it declares of results may not hold.
            if (size != dim.size) checks_shapes_ = false;
        } else if (!dim.size && i == 0) {
            size = batch > 0 ? batch : 1;
        } else if (!dim.size && symbols_.count(dim.symbol) && !dim.symbol.empty()) {
            size = symbols_[dim.symbol].first;
        } else if (!dim.size) {
            fail(ErrorKind::invalid_argument, where, "is declared as ", shape_text(declared),
                 ": the model leaves sizes open, give the input's shape");
        }
        bind_symbol(info, dim, size);
        sizes.push_back(size);
    }
    return Shape(sizes);
}

void Importer::make_declared_inputs(const std::map<std::string, Shape>& shapes,
                                    std::int64_t batch) {
    check_input_names();
    add_initializers(model_.graph, main_);
    for (const ValueInfo& info : fed_inputs(model_)) {
        const auto where = where_input(info);
        if (!info.dtype || info.optional)
            fail(ErrorKind::unsupported, where, "is of type ", info.type,
                 info.kind == ValueInfo::Kind::other ? ", which this library does not support"
                                                     : ", which only an ONNXSession takes");
        const Shape shape = declared_shape(info, shapes, batch);
        if (shape.empty())
            fail(ErrorKind::unsupported, where, "has shape ", shape.str(),
                 ": a network's inputs have at least one element");
        main_.values[info.name] = build_.input(info.name, {shape, *info.dtype});
    }
}

void Importer::check_fed(const ValueInfo& info, const Fed& fed) {
    if (info.kind == ValueInfo::Kind::other)
        fail(ErrorKind::unsupported, where_input(info), "is of type ", info.type,
             ", which this library does not support");
    const bool is_nothing = std::holds_alternative<std::monostate>(fed.data);
    const bool fits = is_nothing                              ? info.optional
                      : info.kind == ValueInfo::Kind::tensor  ? fed.tensor() != nullptr
                      : info.kind == ValueInfo::Kind::strings ? fed.strings() != nullptr
                                                              : fed.sequence() != nullptr;
    const auto check = [&](bool agrees) {
        if (!agrees)
            fail(ErrorKind::invalid_argument, where_input(info), "is declared as ", info, ", got ",
                 fed);
    };
    check(fits && (!fed.tensor() || fed.tensor()->dtype == *info.dtype));
    if (!info.shape || is_nothing) return;
    const Shape& shape = fed.tensor() ? fed.tensor()->shape : fed.strings()->shape;
    bool agrees = shape.rank() == static_cast<int>(info.shape->size());
    for (int i = 0; agrees && i < shape.rank(); ++i)
        agrees = (*info.shape)[static_cast<std::size_t>(i)].size.value_or(shape[i]) == shape[i];
    check(agrees);
    for (int i = 0; i < shape.rank(); ++i)
        bind_symbol(info, (*info.shape)[static_cast<std::size_t>(i)], shape[i]);
}

AnyValue Importer::make_input(const std::string& name, const Fed& fed) {
    if (const TensorSpec* const spec = fed.tensor()) return build_.input(name, *spec);
    if (const HostStrings* const strings = fed.strings())
        return build_.strings(name, strings->shape, strings->values);
    if (!fed.sequence()) return {};
    AnyValue::Sequence elements;
    for (const Fed& element : *fed.sequence())
        elements.push_back(make_input(cat(name, "[", elements.size(), "]"), element));
    return AnyValue(std::move(elements));
}

void Importer::make_fed_inputs(const std::map<std::string, Fed>& inputs) {
    check_input_names();
    add_initializers(model_.graph, main_);
    checks_shapes_ = false;
    for (const ValueInfo& info : model_.graph.inputs) {
        const auto given = inputs.find(info.name);
        if (given == inputs.end()) {
            if (!model_.graph.initializers.count(info.name)) main_.values[info.name] = AnyValue();
            continue;
        }
        check_fed(info, given->second);
        main_.values[info.name] = make_input(info.name, given->second);
    }
}

}  // namespace dlprim::onnx
