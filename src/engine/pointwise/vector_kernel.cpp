// SPDX-License-Identifier: MIT
// Kernels for CPUs: a work-item walks rows of the iteration space with explicit vectors.
//
// The lanes of vectors run along the last dimension. Work is divided into units (kept positions
// outside the vectors) and parts (ranges of rows), and a work-item processes a contiguous range of
// units x parts. Inside a part, rows advance like an odometer. A row is one segment of the main
// loop. The main loop runs over the last dimension, unless that is a single vector (blocked
// layouts) or kept; then it runs over another dimension.
#include "engine/pointwise/vector_kernel.hpp"

#include "base/text.hpp"
#include "engine/pointwise/kernel_text.hpp"
#include "engine/pointwise/kernels.hpp"

#include <algorithm>

namespace dlprim::pointwise {
VectorKernel::VectorKernel(const Job& job, const VectorShape& shape)
    : job_(job),
      shape_(shape),
      emit_(job, shape.width, false),
      numbers_(job),
      vector_(emit_.vector_type()),
      mask_(emit_.mask_type()),
      pad_(job.channel_class >= 0),
      pad_varies_(pad_ && varies(job.channel_class)),
      each_vector_(shape.multi ? "for (int v = 0; v < vectors; ++v) " : ""),
      levels_(levels()) {}

void VectorKernel::write() {
    counts();
    out_.line("const long work = get_global_id(0), workers = get_global_size(0);");
    out_.line("const long end = tasks * (work + 1) / workers;");
    if (compensates()) out_.line("const bool one_run = rows == 1 && length <= ", shape_.run(), ";");
    out_.open("for (long task = tasks * work / workers; task < end; ++task)");
    unit_position();
    accumulators();
    if (shape_.reduces) out_.open("if (!", merging, ")");
    row_position();
    out_.open("while (row < row_end)");
    row();
    out_.line("if (++row == row_end) break;");
    next_row();
    out_.close();
    if (shape_.reduces) {
        out_.close();
        results();
    }
    out_.close();
}

bool VectorKernel::varies(int klass) const {
    if (shape_.loop >= 0 && job_.stride(klass, shape_.loop) != 0) return true;
    return shape_.multi && job_.stride(klass, shape_.last) != 0;
}

std::vector<bool> VectorKernel::levels() const {
    // Loads of padding lanes are guarded by a count, which may change in the main loop.
    return emit_.levels([&](int klass) {
        return varies(klass) || (pad_varies_ && job_.stride(klass, shape_.last) != 0);
    });
}

std::string VectorKernel::size(int dim) {
    const std::int64_t size = job_.sizes[static_cast<std::size_t>(dim)];
    return numbers_.name(cat("n", dim), std::max<std::int64_t>(1, size));
}

std::string VectorKernel::unit_offset(int klass) {
    std::string sum = "0";
    for (const int dim : shape_.units) sum += numbers_.step(cat("u", dim), klass, dim);
    if (shape_.multi && job_.stride(klass, shape_.last) != 0) sum += " + first * " + lane(klass);
    return sum;
}

std::string VectorKernel::each(const char* name, std::size_t k) const {
    return cat(name, k, shape_.multi ? "[v]" : "");
}

std::string VectorKernel::channels_from(const std::string& offset, const std::string& most) const {
    return cat("(int)clamp(channels - ", offset, ", 0L, (long)", most, ")");
}

/// Names the numbers that every kernel has.
void VectorKernel::counts() {
    numbers_.name("tasks", shape_.tasks);
    numbers_.name("length", shape_.length);
    numbers_.name("parts", shape_.parts);
    numbers_.name("rows", shape_.all_rows);
    numbers_.name("segments", shape_.segments);
    numbers_.name("segment", shape_.segment);
    if (!shape_.reduces) return;
    numbers_.name(merging, 0);
    numbers_.name("kept", job_.kept());
}

/// Declares the part and the coordinates u<dim> of the unit. `first` and `vectors` are the unit's
/// share of the last dimension. A short row costs less than a division, so there is none where
/// units have one part and one share.
void VectorKernel::unit_position() {
    if (shape_.units.empty() && !shape_.multi) {
        out_.line("const long part = ", shape_.reduces ? "merging ? 0 : task;" : "task;");
        return;
    }
    out_.line("long part = 0, unit = task;");
    out_.line("if (parts > 1", shape_.reduces ? cat(" && !", merging) : std::string(),
              ") { part = task % parts; unit = task / parts; }");
    if (shape_.multi) {
        const std::string inner = size(shape_.last);
        numbers_.name("chunks", shape_.chunks);
        out_.line("long first = 0;");
        out_.line("if (chunks > 1) { first = unit % chunks * ", shape_.chunk(),
                  "; unit /= chunks; }");
        out_.line("const int vectors = (int)((min(", inner, " - first, (long)", shape_.chunk(),
                  ") + ", shape_.width - 1, ") / ", shape_.width, ");");
    }
    coordinates("const long u", shape_.units, "unit");
}

/// Sets the coordinates of position `rest` among those of `dims`. `name` is the text before a
/// coordinate's number. The outermost dimension needs no division.
void VectorKernel::coordinates(const char* name, const std::vector<int>& dims, const char* rest) {
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
        if (dim + 1 == dims.rend())
            out_.line(name, *dim, " = ", rest, ";");
        else
            out_.line(name, *dim, " = ", rest, " % ", size(*dim), "; ", rest, " /= n", *dim, ";");
    }
}

/// Declares the part's first row: its segment, its coordinates i<dim> and offsets r<class>.
void VectorKernel::row_position() {
    std::string first = "long row = 0, row_end = rows, piece = 0";
    for (const int dim : shape_.rows) first += cat(", i", dim, " = 0");
    out_.line(first, ";");
    out_.open("if (parts > 1)");
    out_.line("row = rows * part / parts; row_end = rows * (part + 1) / parts;");
    out_.line("long rest = row;");
    out_.line("piece = rest % segments; rest /= segments;");
    coordinates("i", shape_.rows, "rest");
    out_.close();
    for (int c = 0; c < classes(); ++c) {
        std::string offset = unit_offset(c);
        for (const int dim : shape_.rows) offset += numbers_.step(cat("i", dim), c, dim);
        out_.line("long r", c, " = ", offset, ";");
    }
}

/// Writes the values that are constant in the row, and the main loop over it. Runs of steps are
/// summed plainly and then added to the totals with compensation.
void VectorKernel::row() {
    out_.line("const long begin = piece * segment, stop = min(begin + segment, length);");
    if (pad_) numbers_.name("channels", job_.channels);
    if (pad_ && !pad_varies_ && !shape_.tail())
        out_.line("const int nv = ", channels_from(cat("r", job_.channel_class), cat(shape_.width)),
                  ";");
    emit_.instructions(
        out_, levels_, false, [](int c) { return cat("r", c); }, [&](int c) { return lane(c); },
        false);
    if (!compensates()) {
        out_.open("for (long i = begin; i < stop; i += ", shape_.loop_step, ")");
        main_loop();
        out_.close();
        return;
    }
    const std::int64_t run = shape_.run();
    out_.open("for (long from = begin; from < stop; from += ", run, ")");
    out_.line("const long to = min(from + ", run, ", stop);");
    start_runs();
    out_.open("for (long i = from; i < to; i += ", shape_.loop_step, ")");
    main_loop();
    out_.close();
    join_runs();
    out_.close();
}

/// The body of the main loop: one vector, or several vectors side by side.
void VectorKernel::main_loop() {
    if (shape_.multi) out_.open("for (int v = 0; v < vectors; ++v)");
    step_offsets();
    lane_counts();
    emit_.instructions(
        out_, levels_, true, [](int c) { return cat("o", c); }, [&](int c) { return lane(c); },
        shape_.tail());
    step_results();
    if (shape_.multi) out_.close();
}

void VectorKernel::step_offsets() {
    for (int c = 0; c < classes(); ++c) {
        std::string offset = cat("r", c, numbers_.step("i", c, shape_.loop));
        if (shape_.multi) offset += numbers_.step(cat("(long)v * ", shape_.width), c, shape_.last);
        out_.line("const long o", c, " = ", offset, ";");
    }
}

/// Declares nt, the lanes inside the tensor, and nv, those of them that are not padding. Neither is
/// declared if all lanes are valid, and nv is not if the row declares it.
void VectorKernel::lane_counts() {
    const std::string channel = cat("o", job_.channel_class);
    if (shape_.tail()) {
        const std::string left =
            shape_.multi ? cat("n", shape_.last, " - first - v * ", shape_.width) : "stop - i";
        out_.line("const int nt = (int)min(", left, ", (long)", shape_.width, ");");
        if (pad_)
            out_.line("const int nv = min(nt, ", channels_from(channel, cat(shape_.width)), ");");
        else
            out_.line("const int nv = nt;");
    } else if (pad_varies_) {
        out_.line("const int nv = ", channels_from(channel, cat(shape_.width)), ";");
    }
}

void VectorKernel::step_results() {
    if ((shape_.tail() && shape_.reduces) || pad_)
        out_.line("const ", mask_, " live = (", mask_, ")(nv) > ", emit_.iota(), ";");
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        if (output(k).reduces())
            add_element(k);
        else
            store_element(k);
    }
}

/// Padding lanes are set to zero.
void VectorKernel::store_element(std::size_t k) {
    const JobOutput& out = output(k);
    std::string value = emit_.value(out.value);
    if (pad_) value = cat("select(", emit_.splat("0"), ", ", value, ", live)");
    out_.line(emit_.store(static_cast<int>(k), cat("y", k), out.dtype, cat("o", out.klass), value,
                          lane(out.klass), "nt", shape_.tail()));
}

/// Advances the offsets r<class> by `by` positions of a dimension.
void VectorKernel::advance(const char* sign, int dim, const std::string& by) {
    for (int c = 0; c < classes(); ++c)
        if (const std::string stride = numbers_.stride(c, dim); stride != "0")
            out_.line("r", c, sign, by, stride, ";");
}

/// The odometer: goes to the next segment, else to the next position of the innermost row
/// dimension, else of the dimension outside it. The outermost dimension needs no carry.
void VectorKernel::next_row() {
    out_.open("if (++piece == segments)");
    out_.line("piece = 0;");
    int carries = 0;
    for (auto dim = shape_.rows.rbegin(); dim != shape_.rows.rend(); ++dim) {
        out_.line("++i", *dim, ";");
        advance(" += ", *dim, "");
        if (dim + 1 == shape_.rows.rend()) break;
        out_.open("if (i", *dim, " == n", *dim, ")");
        ++carries;
        out_.line("i", *dim, " = 0;");
        advance(" -= ", *dim, cat("n", *dim, " * "));
    }
    while (carries-- > 0) out_.close();
    out_.close();
}

Generated vector_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text) {
    const VectorShape shape = vector_shape(job, device, parts);
    Generated result;
    result.parts = shape.parts;
    result.partial_bytes = size_of(dtype_of(job.type));
    result.range.global[0] = static_cast<std::size_t>(shape.work_items);
    result.range.local[0] = 1;
    result.merging_tasks = shape.tasks / shape.parts;
    if (!text) return result;
    VectorKernel kernel(job, shape);
    kernel.write();
    assemble(result, {job, kernel.emit(), kernel.numbers(),
                      shape.reduces ? Results::either : Results::final,
                      "__attribute__((reqd_work_group_size(1, 1, 1))) ", "", kernel.body()});
    return result;
}

}  // namespace dlprim::pointwise
