// SPDX-License-Identifier: MIT
// ModelWeights: the weights of a model's file as values of a network's parameters. Matrices that
// products read in blocks are read as they are stored, and others are unpacked to float, whenever
// one is needed.
#pragma once

#include "api/param_source.hpp"
#include "language/model_file.hpp"

#include <memory>
#include <utility>

namespace dlprim {
class NetImpl;
}

namespace dlprim::language {

class ModelWeights : public ParamSource {
  public:
    ModelWeights(std::shared_ptr<const ModelFile> file, const ModelSizes& sizes)
        : file_(std::move(file)), sizes_(sizes) {}

    /// Throws Error(format) if the file's tensor has another shape than the parameter.
    void check(const Value& parameter) const;
    void read(const Value& parameter, std::vector<std::byte>& data) override;

  private:
    std::shared_ptr<const ModelFile> file_;
    ModelSizes sizes_;
};

/// Lets the net's parameters have these values. Throws what ModelWeights::check() throws.
void supply(NetImpl& net, const std::shared_ptr<ModelWeights>& weights);

}  // namespace dlprim::language
