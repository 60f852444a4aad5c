// SPDX-License-Identifier: MIT
// The functions of dlprim/engine_plugin.h for every Kind. Primitives are kept by problem, since the
// planner asks for layouts, an estimate and a launch one after the other.
#include "kind.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace onednn {

namespace {

const dlprim_engine_operand& operand_of(const Problem& problem, std::size_t index) {
    return index < problem.input_count ? problem.inputs[index]
                                       : problem.outputs[index - problem.input_count];
}

/// How oneDNN's format is called in the library; false if it has no name.
bool name_layout(const dnnl::memory::desc& wanted, const Made::Argument& argument,
                 dlprim_engine_layout& layout) {
    using Tag = dnnl::memory::format_tag;
    layout = {};
    if (wanted == argument.plain) return true;
    if (argument.is_weight) {
        layout.kind = DLPRIM_LAYOUT_PACKED;
        layout.bytes = wanted.get_size();
        // The bytes of a description are equal for equal ones.
        const std::string_view bytes(reinterpret_cast<const char*>(&wanted.data),
                                     sizeof wanted.data);
        const std::string tag = "onednn:" + std::to_string(std::hash<std::string_view>()(bytes));
        std::memcpy(layout.tag, tag.c_str(), tag.size() + 1);
        return true;
    }
    const Dims dims = wanted.dims();
    if (dims.size() != 4) return false;
    const auto lies = [&](Tag tag) {
        return wanted == dnnl::memory::desc(dims, wanted.data_type(), tag);
    };
    if (lies(Tag::nhwc)) {
        layout.kind = DLPRIM_LAYOUT_CHANNELS_LAST;
    } else if (lies(Tag::nChw16c) || lies(Tag::nChw8c)) {
        layout.kind = DLPRIM_LAYOUT_BLOCKED;
        layout.block = lies(Tag::nChw16c) ? 16 : 8;
    } else {
        return false;
    }
    return true;
}

/// The primitives of a problem: that for the layouts which oneDNN prefers, if the library has names
/// for them, and that for plain operands.
struct Ways {
    std::vector<std::shared_ptr<const Made>> all;
    std::string why;  ///< there are none
};

bool has_names(const Made& made) {
    dlprim_engine_layout layout;
    return std::all_of(made.arguments.begin(), made.arguments.end(), [&](const auto& argument) {
        return name_layout(argument.wanted, argument, layout);
    });
}

/// Shares of the peak by the implementation that oneDNN chose: kernels of its own, products of
/// matrices after copying patches of images, or plain loops. On a CPU with AVX-512.
double share_of_peak(const dnnl::primitive& primitive) {
    const char* name = "";
    dnnl_primitive_desc_query(primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &name);
    const std::string_view text(name);
    if (text.find("ref") != std::string_view::npos) return 0.01;
    return text.find("gemm:jit") != std::string_view::npos ? 0.15 : 1;
}

Ways find_ways(const Kind& kind, const Problem& problem) {
    Ways ways;
    for (const bool plain : {false, true}) try {
            Made made = kind.make(problem, plain);
            made.share_of_peak = share_of_peak(made.primitive);
            if (has_names(made)) ways.all.push_back(std::make_shared<const Made>(std::move(made)));
        } catch (const Unsupported& error) {
            ways.why = error.what();
        } catch (const dnnl::error& error) {
            ways.why = std::string("oneDNN has no primitive for it: ") + error.what();
        }
    const auto lie_alike = [](const auto& a, const auto& b) {
        for (std::size_t i = 0; i < a->arguments.size(); ++i)
            if (a->arguments[i].wanted != b->arguments[i].wanted) return false;
        return true;
    };
    if (ways.all.size() == 2 && lie_alike(ways.all[0], ways.all[1])) ways.all.pop_back();
    return ways;
}

std::shared_ptr<const Ways> ways_of(const dlprim_engine* self, const Problem& problem) {
    static std::mutex mutex;
    static auto* const kept = new std::unordered_map<std::string, std::shared_ptr<const Ways>>;
    const std::string key = std::string(self->name) + ' ' + problem.key;
    constexpr std::size_t most = 512;
    const std::lock_guard lock(mutex);
    if (const auto found = kept->find(key); found != kept->end()) return found->second;
    if (kept->size() >= most) kept->clear();
    auto made = std::make_shared<const Ways>(
        find_ways(*static_cast<const Kind*>(self->private_data), problem));
    return kept->emplace(key, std::move(made)).first->second;
}

void name_layouts(const Problem& problem, const Made& made, dlprim_engine_layout* inputs,
                  dlprim_engine_layout* outputs) {
    for (const Made::Argument& argument : made.arguments)
        name_layout(argument.wanted, argument,
                    argument.operand < problem.input_count
                        ? inputs[argument.operand]
                        : outputs[argument.operand - problem.input_count]);
}

bool same(const dlprim_engine_layout& a, const dlprim_engine_layout& b) {
    return a.kind == b.kind && a.block == b.block && std::strcmp(a.tag, b.tag) == 0;
}

/// The way whose layouts the problem has.
std::shared_ptr<const Made> chosen(const dlprim_engine* self, const Problem& problem) {
    for (const auto& made : ways_of(self, problem)->all) {
        std::vector<dlprim_engine_layout> inputs(problem.input_count),
            outputs(problem.output_count);
        name_layouts(problem, *made, inputs.data(), outputs.data());
        bool all = true;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            all = all && same(inputs[i], problem.inputs[i].layout);
        for (std::size_t i = 0; i < outputs.size(); ++i)
            all = all && same(outputs[i], problem.outputs[i].layout);
        if (all) return made;
    }
    throw Unsupported("it has no primitive for these layouts");
}

int applies(const dlprim_engine* self, const dlprim_engine_device*, const Problem* problem,
            dlprim_engine_message reason) {
    const auto look = [&] {
        const auto ways = ways_of(self, *problem);
        if (ways->all.empty()) throw Unsupported(ways->why);
    };
    return succeeds(reason, look) ? 1 : 0;
}

int layouts(const dlprim_engine* self, const dlprim_engine_device*, const Problem* problem,
            int choice, dlprim_engine_layout* inputs, dlprim_engine_layout* outputs) {
    try {
        const auto ways = ways_of(self, *problem);
        name_layouts(*problem, *ways->all.at(static_cast<std::size_t>(choice)), inputs, outputs);
        return static_cast<int>(ways->all.size());
    } catch (const std::exception&) {
        return 0;
    }
}

double estimate(const dlprim_engine* self, const dlprim_engine_device* device,
                const Problem* problem) {
    constexpr double share_of_bandwidth = 0.7;
    double bytes = 0;
    for (std::size_t i = 0; i < problem->input_count + problem->output_count; ++i) {
        const dlprim_engine_operand& operand = operand_of(*problem, i);
        double count = 1;
        for (std::uint32_t d = 0; d < operand.rank; ++d)
            count *= static_cast<double>(operand.sizes[d]);
        bytes += count * (std::strcmp(operand.type, "float") == 0 ? 4 : 2);
    }
    double flops = 0, share = 1;
    try {
        flops = static_cast<const Kind*>(self->private_data)->flops(*problem);
        share = chosen(self, *problem)->share_of_peak;
    } catch (const std::exception&) {
        return -1;
    }
    return std::max(flops / (std::max(1.0, device->gflops) * 1e9 * share),
                    bytes / (std::max(1.0, device->gbytes_per_s) * 1e9 * share_of_bandwidth));
}

/// A primitive with its memories, which point to the operands of a run.
class Launch {
  public:
    Launch(std::shared_ptr<const Made> made, dnnl::primitive primitive)
        : made_(std::move(made)), primitive_(std::move(primitive)), stream_(processor()) {
        for (const Made::Argument& argument : made_->arguments)
            add(argument.number, argument.wanted, argument.operand);
        if (made_->scratchpad.get_size() > 0)
            arguments_.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(made_->scratchpad, processor()));
    }
    /// Packing: from plain to wanted.
    Launch(const Made::Argument& argument)
        : primitive_(dnnl::reorder(dnnl::reorder::primitive_desc(processor(), argument.plain,
                                                                 processor(), argument.wanted))),
          stream_(processor()) {
        add(DNNL_ARG_FROM, argument.plain, 0);
        add(DNNL_ARG_TO, argument.wanted, 1);
    }
    void run(const dlprim_engine_memory* operands) {
        for (const auto& [number, operand] : operands_)
            arguments_.at(number).set_data_handle(operands[operand].data);
        primitive_.execute(stream_, arguments_);
        stream_.wait();
    }

  private:
    void add(int number, const dnnl::memory::desc& wanted, std::size_t operand) {
        arguments_.emplace(number, dnnl::memory(wanted, processor(), DNNL_MEMORY_NONE));
        operands_.emplace_back(number, operand);
    }
    std::shared_ptr<const Made> made_;
    dnnl::primitive primitive_;
    dnnl::stream stream_;
    std::unordered_map<int, dnnl::memory> arguments_;
    std::vector<std::pair<int, std::size_t>> operands_;
};

template <typename Make>
void* made_by(const Make& make, const dlprim_engine_message& message) {
    std::unique_ptr<Launch> launch;
    succeeds(message, [&] { launch = make(); });
    return launch.release();
}

void* build(const dlprim_engine* self, const dlprim_engine_device*, const Problem* problem,
            dlprim_engine_message message) {
    return made_by(
        [&] {
            auto made = chosen(self, *problem);
            dnnl::primitive primitive = made->primitive;
            return std::make_unique<Launch>(std::move(made), std::move(primitive));
        },
        message);
}

void* build_packing(const dlprim_engine* self, const dlprim_engine_device*, const Problem* problem,
                    std::size_t input, dlprim_engine_message message) {
    return made_by(
        [&] {
            const auto made = chosen(self, *problem);
            for (const Made::Argument& argument : made->arguments)
                if (argument.operand == input) return std::make_unique<Launch>(argument);
            throw Unsupported("it packs no such input");
        },
        message);
}

int run(void* launch, const dlprim_engine_run*, const dlprim_engine_memory* operands, std::size_t,
        dlprim_engine_message message) {
    return succeeds(message, [&] { static_cast<Launch*>(launch)->run(operands); }) ? 0 : 1;
}

void release(void* launch) {
    delete static_cast<Launch*>(launch);
}

}  // namespace

const dnnl::engine& processor() {
    static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
    return *engine;
}

std::vector<std::int64_t> integers(const Problem& problem, const std::string& name) {
    const dlprim_engine_option& found = option(problem, name);
    return {found.integers, found.integers + found.count};
}

std::int64_t integer(const Problem& problem, const std::string& name) {
    return integers(problem, name).at(0);
}

double number(const Problem& problem, const std::string& name) {
    return option(problem, name).numbers[0];
}

std::string text(const Problem& problem, const std::string& name) {
    return option(problem, name).texts[0];
}

Dims dims_of(const dlprim_engine_operand& operand) {
    for (std::uint32_t d = 0; d < operand.rank; ++d)
        if (operand.sizes[d] == 0) throw Unsupported("it supports no empty tensors");
    return {operand.sizes, operand.sizes + operand.rank};
}

dnnl::memory::data_type type_of(const dlprim_engine_operand& operand) {
    if (std::strcmp(operand.type, "float") == 0) return dnnl::memory::data_type::f32;
    if (std::strcmp(operand.type, "bfloat16") == 0) return dnnl::memory::data_type::bf16;
    throw Unsupported(std::string("it supports tensors of float and bfloat16, not of ") +
                      operand.type);
}

dnnl::primitive_attr attributes_of(const Problem& problem, Made& made,
                                   const dnnl::memory::desc& result) {
    dnnl::post_ops operations;
    for (std::size_t i = 0; i < problem.stage_count; ++i) {
        const dlprim_engine_stage& stage = problem.stages[i];
        if (stage.kind == DLPRIM_STAGE_ADD) {
            operations.append_binary(dnnl::algorithm::binary_add, result);
            made.arguments.push_back(
                {stage.operand,
                 DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, result,
                 dnnl::memory::desc(result.dims(), result.data_type(),
                                    dnnl::memory::format_tag::abcd)});
        } else if (std::strcmp(stage.activation, "relu") == 0) {
            operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
        } else {
            throw Unsupported(std::string("it does not support the activation ") +
                              stage.activation);
        }
    }
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(operations);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

const dlprim_engine* engine_of(const Kind& kind, const char* name, const char* op) {
    return new dlprim_engine{name,     op,      1,     "fp32 bf16",   &kind, applies, layouts,
                             estimate, nullptr, build, build_packing, run,   release};
}

}  // namespace onednn
