// SPDX-License-Identifier: MIT
// EmbeddingModel, for dlprim.language.
#include "bind.hpp"
#include "net_values.hpp"
#include "owned.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <filesystem>

namespace dlprim::python {
namespace {

using OwnedModel = Owned<EmbeddingModel>;

void make_model(OwnedModel* self, nb::handle on, const std::filesystem::path& path,
                const std::string& precision, std::int64_t step_tokens) {
    const Context& context = to_context(on);
    EmbeddingModelOptions options;
    options.precision = parse_precision(precision);
    options.step_tokens = step_tokens;
    new (self) OwnedModel({context}, [&] {
        return std::make_unique<EmbeddingModel>(context, path.string(), options);
    });
}

std::vector<std::int32_t> encode(const OwnedModel& model, const std::string& text, bool truncate) {
    const ContextLock lock(model.contexts());
    return model->encode(text, truncate);
}

/// A text, or its tokens.
std::vector<std::int32_t> to_tokens(const OwnedModel& model, nb::handle text, bool truncate) {
    if (nb::isinstance<nb::str>(text)) return encode(model, nb::cast<std::string>(text), truncate);
    return nb::cast<std::vector<std::int32_t>>(text);
}

nb::object embed(const OwnedModel& model, nb::handle texts, bool normalize, bool truncate) {
    if (nb::isinstance<nb::str>(texts)) wrong_type("'texts'", "a sequence of texts", texts);
    std::vector<std::vector<std::int32_t>> tokens;
    for (nb::handle text : texts) tokens.push_back(to_tokens(model, text, truncate));
    std::vector<float> rows;
    HostTensor tensor;
    {
        const ContextLock lock(model.contexts());
        rows = model->embed_tokens(tokens, {normalize, truncate});
        tensor.shape = {static_cast<std::int64_t>(tokens.size()), model->features()};
    }
    tensor.data.resize(rows.size() * sizeof(float));
    if (!rows.empty()) std::memcpy(tensor.data.data(), rows.data(), tensor.data.size());
    return to_array(std::move(tensor));
}

}  // namespace

void bind_embedding(nb::module_& module) {
    nb::class_<OwnedModel>(module, "EmbeddingModel",
                           "An encoder in a file, such as a BERT, on one device "
                           "(docs/language.md). It makes vectors for texts.")
        .def("__init__", make_model, nb::arg("context"), nb::arg("path"), nb::kw_only(),
             nb::arg("precision") = "fp32",
             nb::arg("step_tokens") = EmbeddingModelOptions{}.step_tokens,
             nb::sig("def __init__(self, context: Context, path: str | os.PathLike[str], *, "
                     "precision: str = 'fp32', step_tokens: int = 2048) -> None"),
             "`step_tokens` is the most tokens of a step, which several texts share. Raises "
             "MissingFileError, FormatError, and UnsupportedError, also for a model that makes "
             "text.")
        .def_prop_ro("architecture", locked(&EmbeddingModel::architecture),
                     "The architecture's name, such as 'bert'.")
        .def_prop_ro("vocabulary", locked(&EmbeddingModel::vocabulary), "The number of tokens.")
        .def_prop_ro("features", locked(&EmbeddingModel::features), "Of a vector.")
        .def_prop_ro("longest_text", locked(&EmbeddingModel::longest_text),
                     "The most tokens of a text, special ones included.")
        .def_prop_ro("peak_bytes", locked(&EmbeddingModel::peak_bytes),
                     "The most device memory that a step so far takes.")
        .def("encode", encode, nb::arg("text"), nb::arg("truncate") = false,
             "Return the tokens of a text, with the special ones before and behind it. With "
             "`truncate`, the text is cut so that all are at most longest_text.")
        .def("embed", embed, nb::arg("texts"), nb::kw_only(), nb::arg("normalize") = true,
             nb::arg("truncate") = false,
             nb::sig("def embed(self, texts: "
                     "collections.abc.Iterable[str | collections.abc.Sequence[int]], *, "
                     "normalize: bool = True, truncate: bool = False) -> typing.Any"),
             "Return the vectors of texts, or of their tokens, as a numpy array of float32, "
             "[texts, features]. With `normalize` they have length 1, so that the product of two "
             "is the cosine of the angle between them. Texts that are too long are cut with "
             "`truncate`, and raise InvalidArgumentError without.");
}

}  // namespace dlprim::python
