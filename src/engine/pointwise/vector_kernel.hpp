// SPDX-License-Identifier: MIT
// The emitters of a kernel for CPUs, in the order of the text:
//
//   write        for each task: unit_position, accumulators, row_position, its rows, results
//     row        for each row: values that are constant in it, and the main loop
//       main_loop  for each step: step_offsets, lane_counts, step_results
//     next_row   advances the row's coordinates like an odometer
//
// Names in the text: u<dim> and i<dim> are the coordinates of a unit and a row. r<class> and
// o<class> are the offsets of the row and of the step. acc<output> are totals. low<output> is the
// lost low part of a sum, and has<output> marks the lanes of a custom reduction that have a value.
// sum<output> is the current run of a sum.
// A second launch (`merging`) has a task for each unit: no rows, and results combine the parts.
#pragma once

#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/kernel_numbers.hpp"
#include "engine/pointwise/source_writer.hpp"
#include "engine/pointwise/vector_shape.hpp"

#include <string>
#include <vector>

namespace dlprim::pointwise {

class VectorKernel {
  public:
    VectorKernel(const Job& job, const VectorShape& shape);

    /// Writes the kernel's body. Call it once.
    void write();

    const std::string& body() const { return out_.str(); }
    const Emitter& emit() const { return emit_; }
    const KernelNumbers& numbers() const { return numbers_; }

  private:
    // vector_kernel.cpp: positions and values.
    void counts();
    void unit_position();
    void coordinates(const char* name, const std::vector<int>& dims, const char* rest);
    void row_position();
    void row();
    void main_loop();
    void step_offsets();
    void lane_counts();
    void step_results();
    void store_element(std::size_t k);
    void next_row();
    void advance(const char* sign, int dim, const std::string& by);

    // vector_sums.cpp: totals and results.
    bool compensated(std::size_t k) const;
    bool compensates() const;
    void accumulators();
    void start_runs();
    void join_runs();
    void add_element(std::size_t k);
    void results();
    void merge_lanes(std::size_t k);
    void merge_total(std::size_t k);
    void workspace_place();
    void store_lanes(std::size_t k);
    void store_partial_lanes(std::size_t k);
    void store_total(std::size_t k);
    void fold_lanes(std::size_t k);
    void fold_vector(std::size_t k);

    bool is_custom(std::size_t k) const { return output(k).kind == Output::Kind::custom; }
    const JobOutput& output(std::size_t k) const { return job_.outputs[k]; }
    int classes() const { return static_cast<int>(job_.classes.size()); }
    /// Whether offsets of the class change in the main loop.
    bool varies(int klass) const;
    /// For each instruction, whether it must be in the main loop.
    std::vector<bool> levels() const;
    /// A size as a kernel number: n<dim>.
    std::string size(int dim);
    std::string lane(int klass) { return numbers_.stride(klass, shape_.last); }
    /// The offset of the unit, and of its vector v if there are several.
    std::string unit_offset(int klass);
    std::string vector_offset(int klass);
    /// "acc0", or "acc0[v]" for vectors side by side; and its declaration without the type.
    std::string each(const char* name, std::size_t k) const;
    std::string declared(const char* name, std::size_t k) const;
    /// A block that adds a value to the total of output k with compensation.
    std::string joined(std::size_t k, const std::string& value) const;
    /// "(int)clamp(channels - o, 0L, (long)most)": the lanes from offset o on that are not padding.
    std::string channels_from(const std::string& offset, const std::string& most) const;

    const Job& job_;
    const VectorShape& shape_;
    Emitter emit_;
    KernelNumbers numbers_;
    SourceWriter out_{1};
    std::string vector_, mask_;  ///< the types of vectors of values and of masks
    bool pad_;                   ///< whether there are padding lanes
    bool pad_varies_;            ///< whether their number changes between steps of the main loop
    std::string each_vector_;    ///< a loop over vectors side by side, or nothing
    std::vector<bool> levels_;
};

}  // namespace dlprim::pointwise
