// SPDX-License-Identifier: MIT
// The emitters of a kernel for GPUs, in the order of the text:
//
//   elementwise   decompose, offsets, element
//   reduction     local_arrays, place, accumulators, turns (the loop that calls element),
//                 fold_vectors, tree, results
//
// Names in the text: i<dim> are coordinates. j<dim> are the digits of a thread's position in the
// reduction, and d<dim> those of its increment. b<class> and o<class> are the offsets of the kept
// position and of the element. acc<output> are totals, run<output> is the current partial sum, and
// has<output> marks the lanes of a custom reduction that have a value. h<output> and g<output> are
// the same two in local memory. N<number> are numbers in the type of positions.
#pragma once

#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/group_shape.hpp"
#include "engine/pointwise/kernel_numbers.hpp"
#include "engine/pointwise/source_writer.hpp"

#include <string>
#include <vector>

namespace dlprim::pointwise {

class GroupKernel {
  public:
    GroupKernel(const Job& job, const GroupShape& shape);

    /// Writes the kernel's body. Call it once.
    void write();

    const std::string& body() const { return out_.str(); }
    /// Lines before the body that declare the numbers as constants in the type of positions.
    std::string constants() const;
    const Emitter& emit() const { return emit_; }
    const KernelNumbers& numbers() const { return numbers_; }

  private:
    // group_kernel.cpp: elements.
    void elementwise();
    void element(const std::vector<bool>& levels);
    void lane_counts();

    // group_positions.cpp: coordinates and offsets.
    void decompose(const std::vector<int>& dims, const std::string& from, int unit);
    void offsets(const char* name, const char* base, const std::vector<int>& dims);
    void start_digits(const std::string& from);
    void next_digits();
    void digits_to_coordinates();
    std::string digit_size(const std::vector<int>& dims, std::size_t n, int unit);

    // group_reduction.cpp.
    void reduction();
    void local_arrays();
    void place();
    void accumulators();
    void turns(const std::vector<bool>& levels);
    void count_turns();
    void add_element(std::size_t k);
    void join_runs();
    void fold_vectors();
    void fold_custom(std::size_t k);
    void tree();
    void results();
    void store_result(std::size_t k);
    void store_partial(std::size_t k);
    /// Whether the output is summed in runs, and whether any output is.
    bool in_runs(std::size_t k) const;
    bool long_sums() const;
    std::vector<bool> levels() const;

    bool is_custom(std::size_t k) const { return output(k).kind == Output::Kind::custom; }
    const JobOutput& output(std::size_t k) const { return job_.outputs[k]; }
    std::vector<std::size_t> reductions() const;
    std::string lane(int klass) { return numbers_.stride(klass, shape_.last); }

    const Job& job_;
    const GroupShape& shape_;
    Emitter emit_;
    KernelNumbers numbers_;
    SourceWriter out_{1};
    std::string index_;                   ///< the type of positions
    std::string signed_index_;            ///< its signed variant
    std::string scalar_, vector_, mask_;  ///< the types of values, vectors and masks
    bool pad_;                            ///< whether there are padding lanes
};

}  // namespace dlprim::pointwise
