// SPDX-License-Identifier: MIT
// Options of BatchNorm.
#pragma once

#include "base/attrs.hpp"

namespace dlprim::batchnorm {

struct Options {
    std::int64_t features;  ///< -1: the number of the input's channels
    double eps, momentum;
    bool affine, use_global_stats, return_statistics, sync;

    explicit Options(const Attrs& attrs)
        : features(attrs.integer("features")),
          eps(attrs.number("eps")),
          momentum(attrs.number("momentum")),
          affine(attrs.boolean("affine")),
          use_global_stats(attrs.boolean("use_global_stats")),
          return_statistics(attrs.boolean("return_statistics")),
          sync(attrs.boolean("sync")) {}
};

}  // namespace dlprim::batchnorm
