// SPDX-License-Identifier: MIT
// link_sum: the kernel, by context and number of results.
#include "exec/link_sum.hpp"

#include "base/text.hpp"
#include "engine/launch.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace dlprim {

namespace {

constexpr std::size_t vector_bytes = 16;
/// On an H100 this many keep NVLink busy.
constexpr std::int64_t groups = 32, items = 256;

std::string text_for(std::size_t outs) {
    std::string parameters, put, rest;
    for (std::size_t i = 0; i < outs; ++i) {
        parameters += cat(", global float4* y", i, ", ulong y", i, "_offset");
        put += cat("y", i, "[y", i, "_offset + i] = sum; ");
        rest += cat("((global float*)(y", i, " + y", i, "_offset))[i] = sum; ");
    }
    std::string text = kernel_source("exec/link_sum.cl");
    const auto replace = [&](const std::string& word, const std::string& by) {
        // Not in the comment that describes it.
        const std::size_t code = text.find("kernel void link_sum");
        for (std::size_t at = text.find(word, code); at != std::string::npos;
             at = text.find(word, at + by.size()))
            text.replace(at, word.size(), by);
    };
    replace("LINK_OUTS", parameters);
    replace("LINK_PUT", put);
    replace("LINK_REST", rest);
    return text;
}

class LinkSum {
  public:
    void operator()(const Tensor& left, const Tensor& right, const std::vector<Tensor>& outs,
                    double factor);

  private:
    /// The kernel of a context that writes so many results.
    KernelCall& call_for(ContextImpl& context, std::size_t outs);

    std::mutex mutex_;
    std::map<std::pair<ContextImpl*, std::size_t>, std::unique_ptr<KernelCall>> calls_;
};

KernelCall& LinkSum::call_for(ContextImpl& context, std::size_t outs) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<KernelCall>& call = calls_[{&context, outs}];
    if (call) return *call;
    const std::string text = text_for(outs);
    call = std::make_unique<KernelCall>(context.build({"exec/link_sum.cl", text, ""}), "link_sum",
                                        group_range(groups, items));
    call->tensor("x", 0, vector_bytes).tensor("z", 1, vector_bytes);
    for (std::size_t i = 0; i < outs; ++i)
        call->tensor(cat("y", i), static_cast<int>(i) + 2, vector_bytes);
    return *call;
}

void LinkSum::operator()(const Tensor& left, const Tensor& right, const std::vector<Tensor>& outs,
                         double factor) {
    std::vector<Tensor> all{left, right};
    all.insert(all.end(), outs.begin(), outs.end());
    ContextImpl& context = Access::impl(left.context());
    const bool fits = std::all_of(all.begin(), all.end(), [](const Tensor& tensor) {
        return tensor.dtype() == DType::f32 && tensor.byte_offset() % vector_bytes == 0;
    });
    if (fits && !context.is_host() && !context.traits().wide_vectors) {
        KernelCall& call = call_for(context, outs.size());
        call.scalar("count", left.shape().numel()).scalar("factor", static_cast<float>(factor));
        std::vector<BufferRef> operands;
        operands.reserve(all.size());
        for (const Tensor& tensor : all)
            operands.push_back({Access::buffer(tensor).get(), tensor.byte_offset()});
        call.enqueue(context.queue(), operands);
        return;
    }
    std::string code = factor == 1 ? "y0 = x0 + x1" : "y0 = (x0 + x1) * p0";
    for (std::size_t i = 1; i < outs.size(); ++i) code += cat("; y", i, " = y0");
    ops::CallOptions how;
    how.out = outs;
    ops::pointwise(code, {left, right},
                   factor == 1 ? std::vector<double>{} : std::vector<double>{factor}, how);
}

}  // namespace

AddPair link_sum() {
    return [sum = std::make_shared<LinkSum>()](const Tensor& left, const Tensor& right,
                                               const std::vector<Tensor>& outs, double factor) {
        (*sum)(left, right, outs, factor);
    };
}

}  // namespace dlprim
