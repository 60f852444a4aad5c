// SPDX-License-Identifier: MIT
// Adapters of language models (LoRA, Hu et al. 2022): to products y = x W^T of a model they add
// scale (x A^T) B^T, with A [rank, inputs] and B [outputs, rank]. Files are those of Hugging Face's
// package peft: a folder with adapter_config.json and adapter_model.safetensors.
#pragma once

#include "language/model_file.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlprim::language {

/// Names of A and B, as parameters of a network (network.hpp), of the product with that weight.
std::string adapter_down(const std::string& weight);
std::string adapter_up(const std::string& weight);
bool is_adapter_up(const std::string& parameter);
bool is_of_adapter(const std::string& parameter);

/// What tells an adapter from others of its model.
struct AdapterOptions {
    std::int64_t rank = 8;
    double alpha = 16;  ///< the scale is alpha / rank
    double dropout = 0;
    /// Which products: ends of their names in Hugging Face's models, such as "q_proj", or patterns
    /// of a shell for whole names. Empty: all within layers.
    std::vector<std::string> targets;
};

struct Adapter {
    struct Matrices {
        Shape down, up;
        std::vector<float> down_values, up_values;  ///< rows of `up` in the order of the weight's
    };
    AdapterOptions options;
    double scale = 1;
    std::map<std::string, Matrices> products;  ///< by the weight's name

    /// The matrices without values, for a model. Throws Error(invalid_argument) for a rank that is
    /// not positive and for a target that no product has, which lists what there is.
    static Adapter of(const ModelFile& model, const AdapterOptions& options);
    /// Reads a folder, or the one that this adapter_model.safetensors is in, for a model. Throws
    /// Error(not_found), Error(io), Error(format), and Error(unsupported) for other kinds of
    /// adapters. An adapter for another model is an Error(invalid_argument), which names the first
    /// product that does not fit.
    static Adapter read(const std::string& given, const ModelFile& model);
    /// Writes both files into a folder, which is made. `base` is the model's name in the first one.
    /// Throws Error(io).
    void write(const std::string& folder, const ModelFile& model, const std::string& base) const;
};

/// The model with the adapter beside its weights, which networks add to its products.
std::unique_ptr<const ModelFile> with_adapter(std::shared_ptr<const ModelFile> model,
                                              Adapter adapter);
/// The model with the adapter added to its weights, W + scale B A, which are then floats.
std::unique_ptr<const ModelFile> merged(std::shared_ptr<const ModelFile> model, Adapter adapter);

/// open_model(), with the adapter of a folder beside its weights if `adapter` names one.
std::unique_ptr<const ModelFile> open_adapted(const std::string& path, const std::string& adapter);

}  // namespace dlprim::language
