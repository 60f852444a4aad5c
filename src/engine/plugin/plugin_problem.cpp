// SPDX-License-Identifier: MIT
// Problems, devices and layouts in the terms of include/dlprim/engine_plugin.h.
#include "engine/plugin/plugin_problem.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <variant>

namespace dlprim {

namespace {

dlprim_engine_layout plugin_layout(const Layout& layout) {
    dlprim_engine_layout made{};
    switch (layout.kind) {
        case Layout::Kind::channels_last:
            made.kind = DLPRIM_LAYOUT_CHANNELS_LAST;
            break;
        case Layout::Kind::blocked:
            made.kind = DLPRIM_LAYOUT_BLOCKED;
            made.block = static_cast<std::uint32_t>(layout.block);
            break;
        case Layout::Kind::packed:
            made.kind = DLPRIM_LAYOUT_PACKED;
            made.bytes = layout.bytes;
            layout.tag.copy(made.tag, sizeof made.tag - 1);
            break;
        default:
            made.kind = DLPRIM_LAYOUT_PLAIN;
    }
    return made;
}

}  // namespace

PluginProblem::PluginProblem(const Problem& problem)
    : key_(problem.key(false)), precision_(name_of(problem.precision)) {
    for (const Operand& input : problem.inputs) inputs_.push_back(operand(input));
    for (const Operand& output : problem.outputs) outputs_.push_back(operand(output));
    for (const auto& [name, value] : problem.attrs.items()) add_option(name, value);
    for (const EpilogueStage& stage : problem.epilogue) {
        const bool adds = stage.kind == EpilogueStage::Kind::add;
        stages_.push_back(
            {static_cast<std::uint32_t>(adds ? DLPRIM_STAGE_ADD : DLPRIM_STAGE_ACTIVATION),
             adds ? static_cast<std::uint32_t>(stage.operand) : 0, stage.activation.c_str(),
             stage.alpha, stage.beta});
    }
    view_ = {
        problem.op.c_str(), key_.c_str(),    precision_.c_str(), problem.phase == Phase::training,
        inputs_.data(),     inputs_.size(),  outputs_.data(),    outputs_.size(),
        options_.data(),    options_.size(), stages_.data(),     stages_.size()};
}

dlprim_engine_operand PluginProblem::operand(const Operand& given) {
    const auto& sizes = integers_.emplace_back(given.shape.to_vector());
    // Names of types are constants that end with 0.
    return {name_of(given.dtype).data(), static_cast<std::uint32_t>(sizes.size()), sizes.data(),
            plugin_layout(given.layout), given.constant};
}

void PluginProblem::add_option(const std::string& name, const Attr& value) {
    dlprim_engine_option option{};
    option.name = name.c_str();
    const auto integers = [&](std::vector<std::int64_t> list) {
        const auto& kept = integers_.emplace_back(std::move(list));
        option.count = kept.size();
        option.integers = kept.data();
    };
    const auto numbers = [&](std::vector<double> list) {
        const auto& kept = numbers_.emplace_back(std::move(list));
        option.kind = DLPRIM_OPTION_NUMBERS;
        option.count = kept.size();
        option.numbers = kept.data();
    };
    const auto texts = [&](std::vector<const char*> list) {
        const auto& kept = texts_.emplace_back(std::move(list));
        option.kind = DLPRIM_OPTION_TEXTS;
        option.count = kept.size();
        option.texts = kept.data();
    };
    if (const auto* flag = std::get_if<bool>(&value)) {
        integers({*flag});
        option.kind = DLPRIM_OPTION_BOOLEAN;
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        integers({*integer});
        option.kind = DLPRIM_OPTION_INTEGERS;
    } else if (const auto* list = std::get_if<Ints>(&value)) {
        integers(*list);
        option.kind = DLPRIM_OPTION_INTEGERS;
    } else if (const auto* number = std::get_if<double>(&value)) {
        numbers({*number});
    } else if (const auto* several = std::get_if<Doubles>(&value)) {
        numbers(*several);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        texts({text->c_str()});
    } else {
        std::vector<const char*> all;
        for (const std::string& one : std::get<Strings>(value)) all.push_back(one.c_str());
        texts(std::move(all));
    }
    options_.push_back(option);
}

dlprim_engine_device plugin_device(const Traits& traits) {
    dlprim_engine_device device{};
    device.host = traits.host;
    device.name = device.vendor = device.driver = "";
    device.compute_units = static_cast<std::uint32_t>(traits.compute_units);
    device.vector_width = static_cast<std::uint32_t>(traits.vector_width);
    device.gflops = traits.gflops;
    device.gbytes_per_s = traits.gbytes_per_s;
    device.local_bytes = traits.local_bytes;
    device.max_work_group = traits.max_work_group;
    device.fp16 = traits.fp16;
    device.fp64 = traits.fp64;
    return device;
}

Layout layout_of(const dlprim_engine_layout& given, const Shape& shape, bool is_input) {
    const auto four = [&](const char* name) {
        if (shape.rank() != 4)
            fail(ErrorKind::unsupported, "it wants ", shape.str(), " in the layout ", name,
                 ", which only values of four dimensions have");
    };
    constexpr std::uint32_t most_block = 64;
    switch (given.kind) {
        case DLPRIM_LAYOUT_PLAIN:
            return Layout::plain();
        case DLPRIM_LAYOUT_CHANNELS_LAST:
            four("channels_last");
            return Layout::channels_last();
        case DLPRIM_LAYOUT_BLOCKED:
            four("blocked");
            if (given.block < 1 || given.block > most_block)
                fail(ErrorKind::unsupported, "it wants blocks of ", given.block, " channels; 1 to ",
                     most_block, " are possible");
            return Layout::blocked(static_cast<int>(given.block));
        case DLPRIM_LAYOUT_PACKED:
            if (!is_input || given.bytes == 0 || given.tag[0] == 0 ||
                std::memchr(given.tag, 0, sizeof given.tag) == nullptr)
                fail(ErrorKind::unsupported,
                     "a packed layout is for inputs, and has a number of bytes and a tag");
            return Layout::packed(given.tag, given.bytes);
        default:
            fail(ErrorKind::unsupported, "there is no layout number ", given.kind);
    }
}

std::string PluginMessage::text() const {
    const auto* end = static_cast<const char*>(std::memchr(text_, 0, sizeof text_));
    const std::string said(text_,
                           end == nullptr ? sizeof text_ : static_cast<std::size_t>(end - text_));
    return said.empty() ? "it does not say why" : said;
}

}  // namespace dlprim
