// SPDX-License-Identifier: MIT
// Training of language models: an adapter (LoRA) of a model is trained on texts, as a configuration
// says. docs/language.md describes the configuration, and the files that come out.
//
// The call returns when the training is over, and uses the context meanwhile as train() does
// (dlprim/trainer.hpp).
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/trainer.hpp>

#include <string>

namespace dlprim {

/// Whether a configuration file is one for train_language_model() and not for train(). Throws Error
/// for a file that is not JSON.
bool is_language_training(const std::string& config);

/// Trains as train() does, on one device: `config_text`, `read_weights`, shards, processes and
/// placement of the call do not count. TrainResult::model is the folder of the adapter, "adapter"
/// in `out`. The loss of the test set is the mean over its tokens that count; that of training is
/// the mean of the batches' losses, each a mean over its tokens. The metric "perplexity" is their
/// exponential. Throws Error for what is wrong in the configuration, the model or the texts, and as
/// train() does.
TrainResult train_language_model(const Context& context, const TrainCall& call);

}  // namespace dlprim
