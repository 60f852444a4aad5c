// SPDX-License-Identifier: MIT
// A static import: one part, whose inputs and outputs have the model's names.
#include "formats/onnx/import.hpp"

#include "base/text.hpp"
#include "formats/onnx/importer.hpp"

#include <new>
#include <set>
#include <string_view>

namespace dlprim::onnx {

namespace {

/// The graph's outputs as a network can have them.
NamedRefs tensors_of(const Model& model, Importer& importer,
                     const std::vector<std::pair<std::string, AnyValue>>& outputs) {
    std::set<std::string> names;
    for (Ref input : importer.builder().inputs()) names.insert(importer.builder().name_of(input));
    NamedRefs results;
    for (const auto& [name, value] : outputs) {
        const auto where = cat("'", model.source, "': the graph's output '", name, "' ");
        // Of maps a network has the values, a row for each.
        const Ref tensor = value.maps() ? value.maps()->values : value.tensor();
        if (!tensor || tensor->strings)
            fail(ErrorKind::unsupported, where, "is ", value.str(),
                 ": a network's outputs are tensors of numbers; an ONNXSession gives others too");
        if (tensor->spec.shape.empty())
            fail(ErrorKind::unsupported, where, "has shape ", tensor->spec.shape.str(),
                 ": a network's outputs have at least one element");
        if (!names.insert(name).second)
            fail(ErrorKind::unsupported, where,
                 "has the name of an input or of another output, which only an ONNXSession "
                 "supports");
        results.emplace_back(name, tensor);
    }
    return results;
}

ImportedNet import(const Model& model, const std::map<std::string, Shape>& shapes,
                   std::int64_t batch) {
    const ImportLimits limits;
    Importer importer(model, limits);
    importer.make_declared_inputs(shapes, batch);
    const NamedRefs outputs = tensors_of(model, importer, importer.run());
    Builder& builder = importer.builder();
    std::vector<Ref> wanted;
    for (const auto& output : outputs) wanted.push_back(output.second);
    NamedRefs inputs;
    for (Ref input : builder.inputs()) inputs.emplace_back(builder.name_of(input), input);
    ImportedNet net = write_net(builder, builder.take_part(wanted).operators, inputs, outputs);
    net.description.source = model.source;
    return net;
}

}  // namespace

std::vector<ValueInfo> fed_inputs(const Model& model) {
    std::vector<ValueInfo> inputs;
    for (const ValueInfo& info : model.graph.inputs)
        if (!model.graph.initializers.count(info.name)) inputs.push_back(info);
    return inputs;
}

ImportedNet import_model(const Model& model, const std::map<std::string, Shape>& shapes,
                         std::int64_t batch) {
    try {
        return import(model, shapes, batch);
    } catch (const Error& error) {
        if (std::string_view(error.what()).starts_with(cat("'", model.source, "'"))) throw;
        throw Error(error.kind(), cat("'", model.source, "': ", error.what()));
    } catch (const std::bad_alloc&) {
        fail(ErrorKind::out_of_memory, "'", model.source,
             "': the host's memory does not suffice to import the model");
    }
}

}  // namespace dlprim::onnx
