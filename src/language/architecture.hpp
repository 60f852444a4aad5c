// SPDX-License-Identifier: MIT
// Architecture: how the operators of a language model follow each other, as a file of
// architectures/ describes it (README.md there). It knows no sizes and no weights; network.hpp
// makes a network of it for a model that has them.
#pragma once

#include "base/attrs.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::language {

struct Architecture {
    /// A parameter of an operator.
    struct Weight {
        std::vector<std::string> names;  ///< the first that the model has
        bool optional = false;           ///< may be missing altogether
    };
    /// An operator of a network, or one of the words that network.hpp replaces by several.
    struct Step {
        std::string type;
        std::vector<std::string> inputs;  ///< with '?' behind it: none without it
        std::string output;  ///< may be the name of an input: then later steps read the new tensor
        std::vector<Weight> weights;
        Attrs options;  ///< a text that begins with '$' is a size's name
    };
    /// How Hugging Face's models of the architecture name what GGUF files have.
    struct HuggingFace {
        /// Where a weight comes from, and how its values become those of GGUF files.
        struct Source {
            std::vector<std::string> names;  ///< the first that the model has
            bool transpose = false;
            bool halves = false;     ///< rows of heads are to be interleaved where the model's are
            bool positions = false;  ///< the model's first rows, of no position, are left out
            float add = 0;           ///< to each value
        };
        std::map<std::string, std::string> models;  ///< the name in `models` for a class
        /// For each of these names the class and the model_type of folders that are written.
        std::map<std::string, Strings> written;
        /// Keys of config.json for sizes, the first that it has, where they are not the usual ones.
        std::map<std::string, Strings> sizes;
        std::map<std::string, Strings> expects;  ///< values that a key of config.json may have
        Strings prefixes{""};                    ///< with which names of weights may begin
        std::map<std::string, Source> weights;   ///< by GGUF's names; N stands for the layer
    };
    std::string name;      ///< of its file, for messages
    bool encoder = false;  ///< makes embeddings of whole texts, and no text (encoder.hpp)
    /// The models that are built this way, and of each what tells it from the others: values of
    /// options that begin with '$', too.
    std::map<std::string, Attrs> models;
    std::vector<Step> before, layer, after;  ///< `layer` is repeated
    HuggingFace hugging_face = {};
};

/// Where a weight with GGUF's name, such as "blk.3.attn_q.weight", comes from in models of Hugging
/// Face, and the names that it may have there. Nothing if the description does not say.
struct HuggingFaceWeight {
    const Architecture::HuggingFace::Source* source;
    std::vector<std::string> names;  ///< "model.layers.3.self_attn.q_proj.weight"
};
std::optional<HuggingFaceWeight> hugging_face_weight(const Architecture& architecture,
                                                     const std::string& weight);

/// Parses a description. Throws Error(format), which names the line.
Architecture parse_architecture(std::string_view text, const std::string& source);

/// The architecture of models with that name. Throws Error(unsupported), which lists those that are
/// known.
const Architecture& find_architecture(const std::string& name);
/// The same by the name of a class of Hugging Face's, such as LlamaForCausalLM.
const Architecture& find_hugging_face_architecture(const std::string& name);

}  // namespace dlprim::language
