// SPDX-License-Identifier: MIT
// Kernels of programs over rows.
#include "engine/pointwise/row_kernel.hpp"

#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/launch.hpp"
#include "engine/pointwise/kernel_text.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

constexpr int run_steps = 32;  ///< of a run: the error of a sum grows with the root of its steps
/// A thread keeps so many elements of an input, unless rows are too long for that.
constexpr int kept_elements = 16;
constexpr std::int64_t one_wave = 32;            ///< threads of a row, where it has work for them
constexpr std::int64_t largest_row_group = 512;  ///< leaves a thread 128 registers
constexpr std::int64_t row_task_elements =
    4096;  ///< on CPUs, from which on a task is worth starting
constexpr std::int64_t row_workers_per_unit =
    8;                                         ///< on CPUs, so that the load is balanced at the end
constexpr std::int64_t gathered_in_turn = 16;  ///< totals that all threads of a row add up

void divide_on_cpu(RowShape& shape, const RowJob& rows, const Traits& device) {
    shape.on_cpu = shape.tail = true;
    shape.width = std::clamp(device.vector_width, 4, 16);
    const std::int64_t workers = row_workers_per_unit * std::max(1, device.compute_units);
    const std::int64_t tasks =
        std::clamp<std::int64_t>(rows.rows() * rows.columns() / row_task_elements, 1, workers);
    shape.range.global[0] = static_cast<std::size_t>(std::min(rows.rows(), tasks));
    shape.range.local[0] = 1;
}

void divide_in_groups(RowShape& shape, const RowJob& rows, const Traits& device) {
    const auto allowed =
        static_cast<std::int64_t>(std::max<std::uint64_t>(device.max_work_group, 1));
    const std::int64_t largest = power_below(std::min(allowed, largest_row_group));
    const bool joins =
        std::all_of(rows.job.classes.begin(), rows.job.classes.end(),
                    [](const auto& strides) { return strides[1] == 0 || strides[1] == 1; });
    shape.width = joins && rows.columns() % 4 == 0 ? 4 : 1;
    shape.turns = kept_elements / shape.width;
    const std::int64_t vectors = ceil_div(rows.columns(), shape.width);
    shape.threads = std::min({one_wave, largest, power_above(vectors)});
    while (shape.threads < largest && shape.threads * shape.turns < vectors) shape.threads *= 2;
    if (shape.threads * shape.turns < vectors) shape.turns = 0;
    shape.group = std::max(shape.threads, std::min<std::int64_t>(128, largest));
    shape.range = group_range(ceil_div(rows.rows(), shape.across()), shape.group);
}

}  // namespace

RowShape row_shape(const RowJob& rows, const Traits& device, Style style) {
    RowShape shape;
    if (style == Style::vector)
        divide_on_cpu(shape, rows, device);
    else
        divide_in_groups(shape, rows, device);
    return shape;
}

RowKernel::RowKernel(const RowJob& rows, const RowShape& shape)
    : rows_(rows),
      job_(rows.job),
      shape_(shape),
      emit_(job_, shape.width, !shape.on_cpu),
      numbers_(job_, shape.on_cpu ? "" : "N"),
      scalar_(emit_.scalar_type()),
      vector_(emit_.vector_type()),
      mask_(emit_.mask_type()),
      varies_(emit_.levels([&](int klass) { return job_.stride(klass, 1) != 0; })),
      kept_(job_.tape.code.size(), false) {
    const bool narrow = job_.reach() < (std::int64_t{1} << 31) - shape.group * shape.width;
    index_ = shape.on_cpu ? "long" : narrow ? "uint" : "ulong";
    find_tops();
    find_passes();
    if (shape.turns > 0) find_kept();
}

/// The elements of a reduction stand before its value in the tape.
void RowKernel::find_passes() {
    for (const Instruction& in : job_.tape.code) {
        int ready = 0;
        if (is_reduction_value(in))
            ready = pass_of(static_cast<std::size_t>(in.number - rows_.inputs)) + 1;
        for (const int arg : {in.a, in.b, in.c})
            if (arg >= 0) ready = std::max(ready, ready_[static_cast<std::size_t>(arg)]);
        ready_.push_back(ready);
    }
    for (std::size_t k = 0; k < rows_.reductions; ++k) passes_ = std::max(passes_, pass_of(k) + 1);
}

int RowKernel::pass_of(std::size_t k) const {
    const std::size_t elements = tops_[k] < 0 ? k : static_cast<std::size_t>(tops_[k]);
    return ready_[static_cast<std::size_t>(output(elements).value)];
}

void RowKernel::write() {
    row_count_ = numbers_.name("rows", rows_.rows());
    columns_ = numbers_.name("columns", rows_.columns());
    place_of_row();
    row_offsets();
    load_kept();
    for (int pass = 0; pass < passes_; ++pass) {
        row_values(pass);
        reduce(pass);
    }
    row_values(passes_);
    store_row_results();
    store_wide_results();
    if (shape_.on_cpu) out_.close();
}

std::string RowKernel::constants() const {
    if (shape_.on_cpu) return {};
    TextWriter text;
    for (const KernelNumber& n : numbers_.all())
        text << "    const " << index_ << " N" << n.name << " = (" << index_ << ")" << n.name
             << ";\n";
    return std::move(text).str();
}

/// Declares `row`. On GPUs threads beyond the last row go through no column: they would read what
/// others write, where a result has the memory of an input.
void RowKernel::place_of_row() {
    if (shape_.on_cpu) {
        out_.line("const long work = get_global_id(0), workers = get_global_size(0);");
        out_.line("const long end = rows * (work + 1) / workers;");
        out_.open("for (long row = rows * work / workers; row < end; ++row)");
        return;
    }
    for (std::size_t k = 0; k < rows_.reductions; ++k)
        out_.line("local ", scalar_, " h", k, "[", shape_.group, "];");
    threads_ = numbers_.name("threads", shape_.threads);
    out_.line("const ", index_, " id = (", index_, ")get_local_id(0);");
    out_.line("const ", index_, " turn_of = id % ", threads_, ", first = id - turn_of;");
    out_.line("const ", index_, " place = (", index_, ")get_group_id(0) * (", shape_.group, " / ",
              threads_, ") + id / ", threads_, ";");
    out_.line("const bool mine = place < ", row_count_, ";");
    out_.line("const ", index_, " row = mine ? place : 0, own = mine ? ", columns_, " : 0;");
}

void RowKernel::row_offsets() {
    for (int c = 0; c < static_cast<int>(job_.classes.size()); ++c)
        out_.line("const ", index_, " b", c, " = 0", numbers_.step("row", c, 0), ";");
}

/// Declares the values of the row that are known before a pass, and were not before.
void RowKernel::row_values(int pass) {
    Mask fresh;
    for (std::size_t i = 0; i < job_.tape.code.size(); ++i) {
        const Instruction& in = job_.tape.code[i];
        const bool now = !varies_[i] && ready_[i] == pass;
        fresh.push_back(now && !is_reduction_value(in));
        if (now && is_reduction_value(in))
            out_.line("const ", vector_, " t", i, " = ",
                      emit_.splat(cat("r", in.number - rows_.inputs)), ";");
    }
    emit_.instructions(
        out_, fresh, true, [&](int c) { return offset("b", c); }, [&](int c) { return lane(c); },
        false);
}

std::vector<std::size_t> RowKernel::reductions_of(int pass) const {
    std::vector<std::size_t> all;
    for (std::size_t k = 0; k < rows_.reductions; ++k)
        if (pass_of(k) == pass) all.push_back(k);
    return all;
}

RowKernel::Mask RowKernel::needed_in(int pass) const {
    std::vector<std::size_t> here;
    for (std::size_t k = 0; k < job_.outputs.size(); ++k)
        if (k < rows_.reductions ? pass_of(k) == pass : pass == passes_ && rows_.wide[k])
            here.push_back(k);
    return needed_for(here);
}

RowKernel::Mask RowKernel::needed_for(const std::vector<std::size_t>& outputs) const {
    Mask needed(job_.tape.code.size(), false);
    for (const std::size_t k : outputs) needed[static_cast<std::size_t>(output(k).value)] = true;
    for (std::size_t i = needed.size(); i-- > 0;) {
        const Instruction& in = job_.tape.code[i];
        needed[i] = needed[i] && varies_[i];
        if (!needed[i]) continue;
        for (const int arg : {in.a, in.b, in.c})
            if (arg >= 0) needed[static_cast<std::size_t>(arg)] = true;
    }
    return needed;
}

/// Elements of rows that several passes need are kept. What all rows share stays in the cache.
void RowKernel::find_kept() {
    std::vector<int> uses(kept_.size(), 0);
    for (int pass = 0; pass <= passes_; ++pass) {
        const Mask needed = needed_in(pass);
        for (std::size_t i = 0; i < uses.size(); ++i) uses[i] += needed[i] ? 1 : 0;
    }
    for (std::size_t i = 0; i < kept_.size(); ++i) {
        const Instruction& in = job_.tape.code[i];
        if (in.op != Op::input || !varies_[i] || uses[i] < 2) continue;
        for (const JobInput& input : job_.inputs)
            if (input.number == in.number) kept_[i] = job_.stride(input.klass, 0) != 0;
    }
}

void RowKernel::load_kept() {
    if (std::find(kept_.begin(), kept_.end(), true) == kept_.end()) return;
    for (std::size_t i = 0; i < kept_.size(); ++i)
        if (kept_[i]) out_.line(vector_, " keep", i, "[", shape_.turns, "];");
    Mask loads;
    loads.swap(kept_);  // nothing is kept yet
    kept_.assign(loads.size(), false);
    open_turns();
    element(loads, false);
    for (std::size_t i = 0; i < loads.size(); ++i)
        if (loads[i]) out_.line("keep", i, "[turn] = t", i, ";");
    close_turns();
    kept_.swap(loads);
}

/// Opens the loop over the work-item's elements, which declares i, the column. Sums in runs have a
/// loop over runs around it.
void RowKernel::open_turns(const std::vector<std::size_t>& runs) {
    if (shape_.turns > 0) {
        out_.directive("#pragma unroll");
        out_.open("for (int turn = 0; turn < ", shape_.turns, "; ++turn)");
        out_.line("const ", index_, " i = ((", index_, ")turn", in_step(), " + turn_of) * ",
                  shape_.width, ";");
        out_.open("if (i < ", own_columns(), ")");
        return;
    }
    if (!runs.empty()) open_runs(runs, run_steps);
    open_steps(!runs.empty());
}

void RowKernel::open_runs(const std::vector<std::size_t>& runs, int steps) {
    const std::string run = cat(steps, " * ", shape_.width, in_step());
    out_.open("for (", index_, " from = 0; from < ", own_columns(), "; from += ", run, ")");
    out_.line("const ", index_, " to = min(from + ", run, ", ", own_columns(), ");");
    for (const std::size_t k : runs) out_.line(vector_, " run", k, " = ", emit_.splat("0"), ";");
}

void RowKernel::open_steps(bool in_run) {
    out_.open("for (", index_, " i = ", in_run ? "from" : "0",
              shape_.on_cpu ? "" : cat(" + turn_of * ", shape_.width), "; i < ",
              in_run ? "to" : own_columns(), "; i += ", shape_.width, in_step(), ")");
}

void RowKernel::close_turns(const std::vector<std::size_t>& runs) {
    out_.close();
    for (const std::size_t k : runs) join_run(k);
    if (shape_.turns > 0 || !runs.empty()) out_.close();
}

/// Writes the arithmetic of an element or vector at column i.
void RowKernel::element(const Mask& needed, bool counts_lanes) {
    for (int c = 0; c < static_cast<int>(job_.classes.size()); ++c)
        out_.line("const ", index_, " o", c, " = b", c, numbers_.step("i", c, 1), ";");
    if (shape_.tail)
        out_.line("const int nt = (int)min(", columns_, " - i, (", index_, ")", shape_.width,
                  "), nv = nt;");
    Mask computed = needed;
    for (std::size_t i = 0; i < needed.size(); ++i) {
        if (!needed[i] || !kept_[i]) continue;
        out_.line("const ", vector_, " t", i, " = keep", i, "[turn];");
        computed[i] = false;
    }
    emit_.instructions(
        out_, computed, true, [&](int c) { return offset("o", c); }, [&](int c) { return lane(c); },
        shape_.tail);
    if (shape_.tail && counts_lanes)
        out_.line("const ", mask_, " live = (", mask_, ")(nv) > ", emit_.iota(), ";");
}

/// Long sums are computed in runs, which on CPUs are added up by Kahan's method (W. Kahan, 1965).
bool RowKernel::in_runs(std::size_t k) const {
    return shape_.turns == 0 && output(k).kind == Output::Kind::sum;
}

/// Goes through the row for the reductions of a pass, and declares their values r<k>.
void RowKernel::reduce(int pass) {
    const std::vector<std::size_t> all = reductions_of(pass);
    std::vector<std::size_t> runs;
    for (const std::size_t k : all) {
        if (in_runs(k)) runs.push_back(k);
        out_.line(vector_, " acc", k, " = ", emit_.splat(emit_.neutral(output(k))), ";");
        if (in_runs(k) && shape_.on_cpu)
            out_.line(vector_, " low", k, " = ", emit_.splat("0"), ";");
    }
    const std::vector<std::size_t> tops = tops_among(all);
    if (!tops.empty()) return reduce_with_tops(all, tops, runs);
    open_turns(runs);
    element(needed_in(pass), true);
    for (const std::size_t k : all) add_element(k);
    close_turns(runs);
    if (!shape_.on_cpu) return fold_in_group(all);
    for (const std::size_t k : all) fold_on_cpu(k);
}

void RowKernel::add_element(std::size_t k) {
    add_element(k, cat(in_runs(k) ? "run" : "acc", k));
}

void RowKernel::add_element(std::size_t k, const std::string& into) {
    const std::string value = emit_.value(output(k).value), function = emit_.combine(k, false);
    if (!shape_.tail) {
        out_.line(into, " = ", function, "(", into, ", ", value, ");");
        return;
    }
    out_.line(vector_, " e", k, " = ", value, ";");
    out_.line("if (nv < ", shape_.width, ") e", k, " = select(",
              emit_.splat(emit_.neutral(output(k))), ", e", k, ", live);");
    out_.line(into, " = ", function, "(", into, ", e", k, ");");
}

/// acc + low is the total. The rounding error of each addition goes into low, unless the total
/// overflows.
void RowKernel::join_run(std::size_t k) {
    if (!shape_.on_cpu) {
        out_.line("acc", k, " += run", k, ";");
        return;
    }
    out_.line("const ", vector_, " add", k, " = run", k, " - low", k, ", all", k, " = acc", k,
              " + add", k, ";");
    out_.line("low", k, " = select((all", k, " - acc", k, ") - add", k, ", ", emit_.splat("0"),
              ", all", k, " - all", k, " != ", emit_.splat("0"), ");");
    out_.line("acc", k, " = all", k, ";");
}

/// Moves the upper half of the lanes in use onto the lower half, until one is left.
void RowKernel::fold_on_cpu(std::size_t k) {
    static const char digits[] = "0123456789abcdef";
    for (int half = shape_.width / 2; half > 0; half /= 2) {
        std::string upper;
        for (int l = 0; l < shape_.width; ++l) upper += digits[half + l % half];
        out_.line("acc", k, " = ", emit_.combine(k, false), "(acc", k, ", acc", k, ".s", upper,
                  ");");
    }
    out_.line("const ", scalar_, " r", k, " = ", emit_.finish(k, cat("acc", k, ".s0"), "", true),
              ";");
}

/// Each thread's total goes to local memory. There the first threads of a row add up those of the
/// others, and then all threads of the row the few that are left, so that each has the value.
void RowKernel::fold_in_group(const std::vector<std::size_t>& all) {
    const auto gather = [&](std::size_t k, const std::string& begin, const std::string& step,
                            const std::string& end) {
        out_.line(scalar_, " a", k, " = h", k, "[", begin, "];");
        out_.line("for (", index_, " other = ", begin, " + ", step, "; other < ", end,
                  "; other += ", step, ") a", k, " = ", emit_.combine(k, true), "(a", k, ", h", k,
                  "[other]);");
    };
    for (const std::size_t k : all) {
        const std::string one = emit_.combine(k, true), acc = cat("acc", k);
        const std::string value = shape_.width == 1
                                      ? acc
                                      : cat(one, "(", one, "(", acc, ".s0, ", acc, ".s2), ", one,
                                            "(", acc, ".s1, ", acc, ".s3))");
        out_.line("h", k, "[id] = ", value, ";");
    }
    out_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    out_.open("if (turn_of < ", gathered_in_turn, ")");
    for (const std::size_t k : all) {
        gather(k, "id", cat(gathered_in_turn), cat("first + ", threads_));
        out_.line("h", k, "[id] = a", k, ";");
    }
    out_.close();
    out_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    const std::string left =
        cat("first + min(", threads_, ", (", index_, ")", gathered_in_turn, ")");
    for (const std::size_t k : all) {
        gather(k, "first", "1", left);
        out_.line("const ", scalar_, " r", k, " = ", emit_.finish(k, cat("a", k), "", true), ";");
    }
}

void RowKernel::store_row_results() {
    for (std::size_t k = rows_.reductions; k < job_.outputs.size(); ++k) {
        if (rows_.wide[k]) continue;
        const std::string value =
            cat("(", emit_.value(output(k).value), ")", shape_.width > 1 ? ".s0" : "");
        out_.line(
            shape_.on_cpu ? "" : "if (mine && turn_of == 0) ",
            emit_.store_one(output(k).dtype, cat("y", k), offset("b", output(k).klass), value));
    }
}

/// All elements of a vector are read before one of them is written, since a result may have the
/// memory of an input.
void RowKernel::store_wide_results() {
    if (std::find(rows_.wide.begin(), rows_.wide.end(), true) == rows_.wide.end()) return;
    if (!shape_.on_cpu) out_.line("if (!mine) return;");
    open_turns();
    element(needed_in(passes_), false);
    for (std::size_t k = rows_.reductions; k < job_.outputs.size(); ++k)
        if (rows_.wide[k])
            out_.line(emit_.store(static_cast<int>(k), cat("y", k), output(k).dtype,
                                  offset("o", output(k).klass), emit_.value(output(k).value),
                                  lane(output(k).klass), "nt", shape_.tail));
    close_turns();
}

Generated row_kernel(const RowJob& rows, const Traits& device, Style style) {
    const RowShape shape = row_shape(rows, device, style);
    Generated result;
    result.range = shape.range;
    RowKernel kernel(rows, shape);
    kernel.write();
    assemble(result, {rows.job, kernel.emit(), kernel.numbers(), Results::final,
                      cat("__attribute__((reqd_work_group_size(", shape.group, ", 1, 1))) "),
                      kernel.constants(), kernel.body()});
    return result;
}

}  // namespace dlprim::pointwise
