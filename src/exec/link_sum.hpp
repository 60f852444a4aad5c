// SPDX-License-Identifier: MIT
// LinkSum: enqueues factor * (left + right), which goes to several vectors of floats, where some of
// them lie in the memory of another device. Sums of an exchange over a link
// (collective/exchange.hpp) run beside the kernels of a network. On GPUs a few work-groups with
// many reads under way fill the link as well as all work-groups of a device would, and leave the
// device to those kernels. Other devices, types and vectors that do not lie at multiples of 16
// bytes take a Pointwise call.
//
// Threads: several at once, each with contexts of its own.
#pragma once

#include "engine/launch.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace dlprim {

class LinkSum {
  public:
    /// `outs` may be `left` or `right`. Does not wait.
    void operator()(const Tensor& left, const Tensor& right, const std::vector<Tensor>& outs,
                    double factor);

  private:
    /// The kernel of a context that writes so many results.
    KernelCall& call_for(ContextImpl& context, std::size_t outs);

    std::mutex mutex_;
    std::map<std::pair<ContextImpl*, std::size_t>, std::unique_ptr<KernelCall>> calls_;
};

}  // namespace dlprim
