// SPDX-License-Identifier: MIT
// The table of synonyms.
#include "base/synonyms.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <vector>

namespace dlprim {
namespace {

constexpr std::size_t longest = 64;  // no name is longer; keeps hostile input cheap

/// A name without a row may have its row without "1d", "2d" or "3d" at its end.
constexpr TypeSynonym types[] = {
    {"conv1d", "Convolution"},
    {"conv3d", "Convolution"},
    {"convtranspose1d", "TransposedConvolution"},
    {"convtranspose3d", "TransposedConvolution"},
    {"conv", "Convolution"},
    {"conv2d", "Convolution"},
    {"depthwiseconv2d", "Convolution", R"("groups")"},
    {"convtranspose", "TransposedConvolution"},
    {"convtranspose2d", "TransposedConvolution"},
    {"conv2dtranspose", "TransposedConvolution"},
    {"deconv", "TransposedConvolution"},
    {"deconv2d", "TransposedConvolution"},
    {"deconvolution", "TransposedConvolution"},
    {"linear", "InnerProduct"},
    {"dense", "InnerProduct"},
    {"fullyconnected", "InnerProduct"},
    {"fc", "InnerProduct"},
    {"gemm", "InnerProduct"},
    {"affine", "InnerProduct"},
    {"mm", "MatMul"},
    {"bmm", "MatMul"},
    {"dot", "MatMul"},
    {"maxpool", "Pooling", R"("mode": "max")"},
    {"maxpooling", "Pooling", R"("mode": "max")"},
    {"avgpool", "Pooling", R"("mode": "avg")"},
    {"averagepool", "Pooling", R"("mode": "avg")"},
    {"averagepooling", "Pooling", R"("mode": "avg")"},
    {"adaptivemaxpool", "Pooling", R"("output": 1, "mode": "max")"},
    {"adaptiveavgpool", "Pooling", R"("output": 1, "mode": "avg")"},
    {"globalmaxpool", "Pooling", R"("global": true, "mode": "max")"},
    {"globalmaxpooling", "Pooling", R"("global": true, "mode": "max")"},
    {"globalavgpool", "Pooling", R"("global": true, "mode": "avg")"},
    {"globalaveragepool", "Pooling", R"("global": true, "mode": "avg")"},
    {"globalaveragepooling", "Pooling", R"("global": true, "mode": "avg")"},
    {"batchnorm1d", "BatchNorm"},
    {"batchnorm2d", "BatchNorm"},
    {"batchnormalization", "BatchNorm"},
    {"layernormalization", "LayerNorm"},
    {"groupnormalization", "GroupNorm"},
    {"rmsnormalization", "RMSNorm"},
    {"simplifiedlayernormalization", "RMSNorm"},
    {"swiglu", "GatedActivation", R"("activation": "silu")"},
    {"geglu", "GatedActivation", R"("activation": "gelu", "gate": "second")"},
    {"glu", "GatedActivation", R"("activation": "sigmoid", "gate": "second")"},
    {"rope", "RotaryEmbedding"},
    {"fusedlinearcrossentropy", "LinearCrossEntropy"},
    {"linearcrossentropyloss", "LinearCrossEntropy"},
    {"add", "Elementwise", R"("operation": "sum")"},
    {"sum", "Elementwise", R"("operation": "sum")"},
    {"eltwise", "Elementwise", R"("operation": "sum")"},
    {"sub", "Elementwise", R"("coef2": -1)"},
    {"subtract", "Elementwise", R"("coef2": -1)"},
    {"mul", "Elementwise", R"("operation": "prod")"},
    {"multiply", "Elementwise", R"("operation": "prod")"},
    {"prod", "Elementwise", R"("operation": "prod")"},
    {"max", "Elementwise", R"("operation": "max")"},
    {"maximum", "Elementwise", R"("operation": "max")"},
    {"div", "Pointwise"},
    {"divide", "Pointwise"},
    {"exp", "Pointwise"},
    {"log", "Pointwise"},
    {"sqrt", "Pointwise"},
    {"pow", "Pointwise"},
    {"where", "Pointwise"},
    {"swish", "Activation", R"("activation": "silu")"},
    {"clip", "Hardtanh"},
    {"clamp", "Hardtanh"},
    {"cat", "Concat"},
    {"concatenate", "Concat"},
    {"crop", "Slice"},
    {"narrow", "Slice"},
    {"split", "Slice"},
    {"chunk", "Slice"},
    {"permute", "Transpose"},
    {"view", "Reshape"},
    {"unsqueeze", "Reshape"},
    {"zeropad2d", "Pad"},
    {"zeropadding2d", "Pad"},
    {"im2col", "Unfold"},
    {"col2im", "Fold"},
    {"upsample", "Resize"},
    {"upsampling2d", "Resize"},
    {"interpolate", "Resize"},
    {"resize", "Resize"},
    {"mean", "Reduction", R"("method": "mean")"},
    {"reducemean", "Reduction", R"("method": "mean")"},
    {"reducesum", "Reduction", R"("method": "sum")"},
    {"logsoftmax", "Softmax", R"("log": true)"},
    {"crossentropy", "SoftmaxWithLoss"},
    {"crossentropyloss", "SoftmaxWithLoss"},
    {"softmaxcrossentropyloss", "SoftmaxWithLoss"},
    {"categoricalcrossentropy", "SoftmaxWithLoss"},
    {"mse", "MSELoss"},
    {"meansquarederror", "MSELoss"},
    {"huber", "HuberLoss"},
    {"nll", "NLLLoss"},
    {"multiheadattention", "Attention"},
    {"scaleddotproductattention", "Attention"},
};

/// Names with one meaning, as options, arguments or keys. A name may be in several groups.
// NOLINTBEGIN(bugprone-suspicious-missing-comma): a group may take several lines.
constexpr std::string_view groups[] = {
    "channels_out out_channels filters num_filters num_output outputs features out_features units "
    "num_units output_dim",
    "channels_in in_channels inputs features_in in_features input_dim input_size",
    "features num_features num_channels channels",
    "kernel kernel_size kernel_shape window pool_size",
    "stride strides step",
    "pad padding pads",
    "dilate dilation dilations dilation_rate",
    "output_pad output_padding",
    "groups group num_group",
    "bias use_bias bias_term",
    "activation act act_type nonlinearity",
    "eps epsilon",
    "affine elementwise_affine scale center",
    "use_global_stats track_running_stats trainable",
    "dim axis dims axes",
    "keep_dim keepdim keepdims keep_dims",
    "reduce reduction",
    "mode method interpolation",
    "p dropout_p dropout rate dropout_rate prob",
    "num_embeddings vocab_size vocabulary_size input_dim",
    "embedding_dim embed_dim embedding_size output_dim",
    "hidden_size units hidden",
    "return_statistics return_stats",
    "negative_slope alpha slope",
    "size output_size sizes out_size output",
    "scale_factor scales",
    "input x inputs",
    "shape input_shape input_shapes size",
    "dtype data_type type",
    "learning_rate lr base_lr rate",
    "beta1 beta_1 betas",
    "beta2 beta_2",
    "weight_decay decay l2 wd",
    "clip_norm max_norm max_grad_norm clipnorm grad_clip gradient_clip_val",
    "clip_value clipvalue",
    "accumulate gradient_accumulation_steps accumulate_grad_batches iter_size",
    "average ema ema_decay ema_momentum",
    "kind type optimizer name method",
    "solver optimizer optim",
    "schedule scheduler lr_scheduler lr_policy lr_schedule",
    "step_epochs step_size stepsize",
    "warmup_epochs warmup warmup_steps",
    "minimum eta_min min_lr",
    "gamma factor decay_rate",
    "batch batch_size",
    "epochs num_epochs max_epochs max_epoch num_train_epochs t_max",
    "net model network architecture",
    "weights checkpoint pretrained state_dict",
    "data dataset datasets",
    "train training train_data",
    "test val valid dev eval test_size test_split validation_split validation_data",
    "augmentation augment transforms transform",
    "early_stopping earlystopping",
    "checkpoints checkpoint save",
    "metrics metric",
    "seed random_state random_seed",
    "shuffle shuffled",
    "precision amp mixed_precision",
    "mean means",
    "std stds stddev",
    "separator sep delimiter",
    "label target labels y",
    "threads num_workers workers",
    "freeze frozen",
    "callbacks callback on_progress",
    "device context",
    "padding_idx padding_index mask_zero",
};
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace

std::string plain_name(std::string_view name) {
    std::string text;
    for (const char c : name)
        if (ascii::is_letter(c) || ascii::is_digit(c)) text += ascii::lower(c);
    return text;
}

const TypeSynonym* find_type_synonym(std::string_view name) {
    if (name.size() > longest) return nullptr;
    std::string wanted = plain_name(name);
    for (const bool whole : {true, false}) {
        const auto* found =
            std::find_if(std::begin(types), std::end(types),
                         [&](const TypeSynonym& each) { return each.name == wanted; });
        if (found != std::end(types)) return found;
        if (!whole || !(wanted.ends_with("1d") || wanted.ends_with("2d") || wanted.ends_with("3d")))
            break;
        wanted.resize(wanted.size() - 2);
    }
    return nullptr;
}

std::string synonym_among(std::string_view name, std::span<const std::string> candidates) {
    if (name.size() > longest) return {};
    const std::string wanted = plain_name(name);
    const auto among = [&](const auto& means) -> std::string {
        const auto found =
            std::find_if(candidates.begin(), candidates.end(), [&](const std::string& candidate) {
                return candidate.size() <= longest && means(plain_name(candidate));
            });
        return found == candidates.end() ? std::string() : *found;
    };
    if (wanted.empty()) return {};
    std::string found = among([&](const std::string& candidate) { return candidate == wanted; });
    for (const std::string_view group : groups) {
        if (!found.empty()) break;
        std::vector<std::string> words = split(group, ' ');
        for (std::string& word : words) word = plain_name(word);
        const auto has = [&](const std::string& word) {
            return std::find(words.begin(), words.end(), word) != words.end();
        };
        if (has(wanted)) found = among(has);
    }
    return found;
}

}  // namespace dlprim
