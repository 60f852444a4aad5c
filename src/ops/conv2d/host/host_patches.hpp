// SPDX-License-Identifier: MIT
// Convolution as matrix products on the host: sources of host_gemm's panels and sinks for its
// tiles.
//
// Forward and backward-data are both "gathers": a grid of result positions, where each result is
// the sum over channels and taps of source elements at fixed distances. Backward-data with a stride
// is divided into stride_h x stride_w phases. A phase is the grid of result positions that use the
// same taps, so that no zeros are multiplied.
#pragma once

#include "engine/epilogue.hpp"
#include "engine/host_gemm.hpp"
#include "ops/conv2d/options.hpp"

#include <vector>

namespace dlprim::conv2d {

/// A kernel position. y and x are the distance of its source element from the grid position times
/// the step. index is the element of the kernel (ky * kw + kx).
struct Tap {
    std::int64_t y, x, index;
};

/// A gather: a convolution, or one phase of backward-data.
struct Gather {
    std::vector<Tap> taps;
    std::int64_t images, groups;
    std::int64_t channels, h, w;      ///< source: channels of one group, sizes of a plane
    std::int64_t results;             ///< result channels of one group
    std::int64_t grid_h, grid_w;      ///< result positions of this gather
    std::int64_t step_y, step_x;      ///< distance in the source between grid positions
    std::int64_t plane_h, plane_w;    ///< sizes of a result plane
    std::int64_t spread_y, spread_x;  ///< distance in the result plane between grid positions
    std::int64_t origin_y, origin_x;  ///< result position of grid position (0, 0)
    std::int64_t pitch;               ///< columns of the product for a row of the grid

    std::int64_t columns() const { return images * grid_h * pitch; }
    std::int64_t depth() const { return channels * static_cast<std::int64_t>(taps.size()); }
};

/// The pitch is the width of the grid.
Gather forward_gather(const Geometry& g);
std::vector<Gather> backward_data_gathers(const Geometry& g);

/// Image patches. Columns are grid positions of all images, K is (channel, tap), and the batch is
/// the group.
///
/// What a block of columns and channels needs is first copied with its padding into phase planes:
/// plane (py, px) has every step_y-th row from py on and every step_x-th column from px on. Rows of
/// the grid have the pitch of these planes, which is larger than their width by what the taps reach
/// beyond it. So the elements of neighbouring columns are neighbours for every tap, and a row of a
/// panel is one copy. The columns beyond the width are computed for nothing and not stored.
struct PatchLayout {
    struct Phase {
        std::int64_t y, x;
    };
    std::vector<Phase> phases;        ///< those that taps read
    std::vector<std::int64_t> slot;   ///< by tap: which of the phases
    std::vector<std::int64_t> shift;  ///< by tap: the distance in the plane
    std::int64_t top = 0, left = 0;   ///< the first row and column that taps reach, in steps
    std::int64_t reach = 0;           ///< the largest shift

    /// Sets the gather's pitch.
    explicit PatchLayout(Gather& gather);
};

class PatchSource : public GemmSource {
  public:
    PatchSource(const Gather& gather, const PatchLayout& layout, const float* data)
        : g_(gather), layout_(layout), data_(data) {}
    void prepare(std::int64_t batch, std::int64_t first, std::int64_t count, std::int64_t k_first,
                 std::int64_t depth) const override;
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;

  private:
    /// Columns [first, last) of one image, and where their planes are in the thread's memory.
    struct Segment {
        std::int64_t image, first, last, begin, length;
    };
    /// What a thread has prepared.
    struct Block {
        std::vector<float> values;
        std::vector<Segment> segments;
        std::int64_t first_channel = 0;
    };
    static Block& block();
    void fill(const Segment& segment, const float* plane, const PatchLayout::Phase& phase,
              float* to) const;

    const Gather& g_;
    const PatchLayout& layout_;
    const float* data_;
};

/// The weight of backward-data. Rows are input channels, and K is (output channel, tap).
class TransposedWeightSource : public GemmSource {
  public:
    TransposedWeightSource(const Gather& gather, std::int64_t kernel_area, const float* weight)
        : g_(gather), area_(kernel_area), weight_(weight) {}
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;

  private:
    const Gather& g_;
    std::int64_t area_;
    const float* weight_;
};

/// Result planes with bias (or nullptr) and epilogue.
class PlaneSink : public GemmSink {
  public:
    PlaneSink(const Gather& gather, float* result, const float* bias, const HostEpilogue& epilogue)
        : g_(gather), result_(result), bias_(bias), epilogue_(epilogue) {}
    void store(const TileSums& tile) const override;
    void finish(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
                std::int64_t columns) const override;

  private:
    /// The result position of grid position (y, x).
    std::int64_t place(std::int64_t y, std::int64_t x) const {
        return (y * g_.spread_y + g_.origin_y) * g_.plane_w + x * g_.spread_x + g_.origin_x;
    }

    const Gather& g_;
    float* result_;
    const float* bias_;
    const HostEpilogue& epilogue_;
};

/// The first operand of backward-filter. Rows are output channels, and K is (image, position).
class OutputGradientSource : public GemmSource {
  public:
    OutputGradientSource(const Geometry& g, const float* dy) : g_(g), dy_(dy) {}
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;

  private:
    const Geometry& g_;
    const float* dy_;
};

/// The second operand of backward-filter. Columns are (input channel, tap), and K is (image,
/// position).
class TransposedPatchSource : public GemmSource {
  public:
    TransposedPatchSource(const Gather& gather, const float* x) : g_(gather), x_(x) {}
    void pack(std::int64_t batch, std::int64_t first, int count, int width, std::int64_t k_first,
              std::int64_t depth, float* to) const override;

  private:
    const Gather& g_;
    const float* x_;
};

}  // namespace dlprim::conv2d
