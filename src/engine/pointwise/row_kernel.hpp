// SPDX-License-Identifier: MIT
// Kernels of programs over rows (row_program.hpp). A row is gone through once for each level of its
// reductions, and once more for what is stored: by one work-item on CPUs, and on GPUs by a part of
// a work-group, whose sums meet in local memory.
//
//                  columns
//            +-----------------+      GPUs: a work-group of `group` threads has `across` rows, with
//     rows   | 0 1 2 3 0 1 2 3 |      `threads` for each. A thread (0 to 3 here) takes `width`
//            | 4 5 6 7 4 5 6 7 |      neighbours in each of at most `turns` turns, and keeps in
//            +-----------------+      registers what it needs again. Rows that are longer than that
//                                     are read again in each pass, from the cache.
//     for each level (of a sum of exponentials, row_exponentials.cpp, that of its maximum):
//       turns over the row   elements -> acc
//       fold                 lanes of acc -> local memory -> r, which all threads of the row have
//       values of the row    such as 1 / sqrt(r + eps)
//     then turns that store results
//
// Names in the text: b<class> and o<class> are the offsets of a row and of an element, t<n> and
// m<n> values of instructions, acc<k>, run<k> and low<k> a total, its current run and its lost low
// part, h<k> totals of threads in local memory, r<k> the value of a reduction, and keep<n> the
// kept elements of an input.
#pragma once

#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/kernels.hpp"
#include "engine/pointwise/row_program.hpp"

#include <dlprim/context.hpp>

#include <string>
#include <vector>

namespace dlprim::pointwise {

struct RowShape {
    bool on_cpu = false;
    int width = 1;             ///< elements that a work-item handles at once
    bool tail = false;         ///< the last of them may be fewer
    int turns = 0;             ///< elements are kept over so many turns; 0: they are read again
    std::int64_t threads = 1;  ///< of a row, a power of two
    std::int64_t group = 1;    ///< threads of a work-group
    NDRange range;

    std::int64_t across() const { return group / threads; }
};

RowShape row_shape(const RowJob& rows, const Traits& device, Style style);

Generated row_kernel(const RowJob& rows, const Traits& device, Style style);

class RowKernel {
  public:
    RowKernel(const RowJob& rows, const RowShape& shape);

    /// Writes the kernel's body. Call it once.
    void write();

    const std::string& body() const { return out_.str(); }
    /// Lines before the body that declare the numbers as constants in the type of positions.
    std::string constants() const;
    const Emitter& emit() const { return emit_; }
    const KernelNumbers& numbers() const { return numbers_; }

  private:
    /// The instructions that a pass over the row computes for each element.
    using Mask = std::vector<bool>;

    // Rows.
    void place_of_row();
    void row_offsets();
    void row_values(int pass);
    void reduce(int pass);
    void store_row_results();
    void store_wide_results();

    // Passes over a row.
    void load_kept();
    /// `runs`: the reductions that are summed in runs.
    void open_turns(const std::vector<std::size_t>& runs = {});
    void open_runs(const std::vector<std::size_t>& runs, int steps);
    void open_steps(bool in_run);
    void element(const Mask& needed, bool counts_lanes);
    void close_turns(const std::vector<std::size_t>& runs = {});
    Mask needed_in(int pass) const;
    Mask needed_for(const std::vector<std::size_t>& outputs) const;
    void find_kept();

    // Reductions.
    void find_passes();
    /// The pass over the row in which a reduction is computed.
    int pass_of(std::size_t k) const;
    std::vector<std::size_t> reductions_of(int pass) const;
    bool in_runs(std::size_t k) const;
    void add_element(std::size_t k);
    void add_element(std::size_t k, const std::string& into);
    void join_run(std::size_t k);
    void fold_on_cpu(std::size_t k);
    void fold_in_group(const std::vector<std::size_t>& all);

    // Sums of exponentials (row_exponentials.cpp).
    void find_tops();
    std::vector<std::size_t> tops_among(const std::vector<std::size_t>& reductions) const;
    void reduce_with_tops(const std::vector<std::size_t>& all, const std::vector<std::size_t>& tops,
                          const std::vector<std::size_t>& runs);
    void top_value(std::size_t top);
    void scale_sums(std::size_t top, const std::string& now);

    bool is_reduction_value(const Instruction& in) const {
        return in.op == Op::input && in.number >= rows_.inputs;
    }
    const JobOutput& output(std::size_t k) const { return job_.outputs[k]; }
    std::string lane(int klass) { return numbers_.stride(klass, 1); }
    /// The end of the work-item's columns, and what multiplies its width in a step over them.
    std::string own_columns() const { return shape_.on_cpu ? columns_ : "own"; }
    std::string in_step() const { return shape_.on_cpu ? "" : cat(" * ", threads_); }
    /// An offset in the type that loads and stores take.
    std::string offset(const char* name, int klass) const {
        return cat(shape_.on_cpu ? "" : "(long)", name, klass);
    }

    const RowJob& rows_;
    const Job& job_;
    const RowShape& shape_;
    Emitter emit_;
    KernelNumbers numbers_;
    SourceWriter out_{1};
    std::string index_;                          ///< the type of positions
    std::string row_count_, columns_, threads_;  ///< names of numbers
    std::string scalar_, vector_, mask_;         ///< the types of values, vectors and masks
    Mask varies_;                                ///< instructions that differ along the row
    /// By instruction: the number of passes before its value, or its elements, are known.
    std::vector<int> ready_;
    int passes_ = 0;  ///< before the one that stores results
    /// By reduction: of a sum of exponentials the maximum with which it is computed, else -1.
    std::vector<int> tops_;
    Mask kept_;  ///< inputs whose elements stay in registers
};

}  // namespace dlprim::pointwise
