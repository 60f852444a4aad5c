// SPDX-License-Identifier: MIT
// Converts problems to jobs: groups outputs by axes, computes the strides of every operand in
// memory order, and joins dimensions.
#include "engine/pointwise/job.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace dlprim::pointwise {
namespace {

using Strides = std::vector<std::int64_t>;

/// A dimension of the walk. Each of its steps advances coordinate `logical` by `step`.
struct WalkDim {
    int logical;
    std::int64_t step;
    std::int64_t size;
};

std::vector<WalkDim> walk(const Shape& shape, const Layout& layout) {
    std::vector<WalkDim> dims;
    if (layout.kind == Layout::Kind::channels_last) {
        for (int d : {0, 2, 3, 1}) dims.push_back({d, 1, shape[d]});
    } else if (layout.kind == Layout::Kind::blocked) {
        const std::int64_t block = layout.block;
        dims = {{0, 1, shape[0]},
                {1, block, (shape[1] + block - 1) / block},
                {2, 1, shape[2]},
                {3, 1, shape[3]},
                {1, 1, block}};
    } else {
        for (int d = 0; d < shape.rank(); ++d) dims.push_back({d, 1, shape[d]});
    }
    return dims;
}

/// Strides by walk dimension of an operand of shape `own`, stored in `layout` and walked over
/// `whole`.
Strides operand_strides(const Shape& own, const Layout& layout, const Shape& whole,
                        const std::vector<WalkDim>& dims) {
    const int lead = whole.rank() - own.rank();
    Strides strides;
    if (layout.is_plain() || layout.is_strided()) {
        const auto logical = logical_strides(own, layout);
        for (const WalkDim& dim : dims) {
            const int d = dim.logical - lead;
            const bool spread = d < 0 || own[d] == 1;
            strides.push_back(spread ? 0 : logical[static_cast<std::size_t>(d)] * dim.step);
        }
        return strides;
    }
    const Shape memory = physical_shape(own, layout);
    const auto in_memory = memory.strides();
    for (std::size_t i = 0; i < dims.size(); ++i) {
        // A blocked operand with a single channel still has all lanes, each at its own place, so
        // their stride stays.
        const int d = dims[i].logical;
        const bool spread = own[d] == 1 && (whole[d] != 1 || dims[i].size == 1);
        strides.push_back(spread ? 0 : in_memory[i]);
    }
    return strides;
}

Strides position_strides(const std::vector<WalkDim>& dims, const Strides& logical) {
    Strides strides;
    for (const WalkDim& dim : dims)
        strides.push_back(logical[static_cast<std::size_t>(dim.logical)] * dim.step);
    return strides;
}

int add_class(Job& job, Strides strides) {
    const auto found = std::find(job.classes.begin(), job.classes.end(), strides);
    if (found != job.classes.end()) return static_cast<int>(found - job.classes.begin());
    job.classes.push_back(std::move(strides));
    return static_cast<int>(job.classes.size()) - 1;
}

bool is_binary(const ExprPtr& e, const char* function) {
    return e->kind == Expr::Kind::call && e->function == function && e->args.size() == 2 &&
           e->args[0]->kind == Expr::Kind::input && e->args[1]->kind == Expr::Kind::input &&
           e->args[0]->number != e->args[1]->number;
}

/// Replaces a custom combination by a standard one if they are equal, because those have a neutral
/// element.
void settle_custom(const Output& output, JobOutput& out) {
    if (output.kind != Output::Kind::custom) return;
    out.has_init = true;
    out.init = output.init;
    if (is_binary(output.combine, "add")) out.kind = Output::Kind::sum;
    if (is_binary(output.combine, "mul")) out.kind = Output::Kind::prod;
    if (is_binary(output.combine, "max")) out.kind = Output::Kind::max;
    if (is_binary(output.combine, "min")) out.kind = Output::Kind::min;
    if (out.kind == Output::Kind::custom)
        out.combine = std::make_shared<Tape>(compile(std::span(&output.combine, 1)));
    const bool neutral = (out.kind == Output::Kind::sum && out.init == 0) ||
                         (out.kind == Output::Kind::prod && out.init == 1) ||
                         (out.kind == Output::Kind::max && out.init == -INFINITY) ||
                         (out.kind == Output::Kind::min && out.init == INFINITY);
    if (neutral) out.has_init = false;
}

}  // namespace

Compute compute_type(const Problem& problem, const Program& program, bool fp64) {
    bool doubles = false, integers = true, unsigned_64 = false;
    for (const Operand& in : problem.inputs) {
        doubles = doubles || in.dtype == DType::f64;
        integers = integers && !is_float(in.dtype);
        unsigned_64 = unsigned_64 || in.dtype == DType::u64;
    }
    for (const Operand& out : problem.outputs) {
        doubles = doubles || out.dtype == DType::f64;
        integers = integers && !is_float(out.dtype);
        unsigned_64 = unsigned_64 || (problem.inputs.empty() && out.dtype == DType::u64);
    }
    if (doubles && fp64) return Compute::f64;
    if (!integers || !is_integral(program)) return Compute::f32;
    for (double value : problem.attrs.numbers("scalars"))
        if (value != std::floor(value)) return Compute::f32;
    if (arguments_of(problem.attrs).find('d') != std::string::npos) return Compute::f32;
    return unsigned_64 ? Compute::u64 : Compute::i64;
}

namespace {

Layout walk_layout(const Problem& problem) {
    for (const auto* operands : {&problem.outputs, &problem.inputs})
        for (const Operand& operand : *operands)
            if (!operand.layout.is_plain() && !operand.layout.is_strided()) return operand.layout;
    return Layout::plain();
}

bool is_loose(const Operand& operand) {
    return operand.layout.is_strided() && !operand.layout.aligned;
}

/// Sorts the dimensions by descending strides of `klass`, as they lie in its memory, so that
/// neighbours there are neighbours in the walk. Dimensions of stride 0 stay outermost.
void walk_along(Job& job, int klass) {
    const Strides along = job.classes[static_cast<std::size_t>(klass)];
    std::vector<std::size_t> order(along.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t d) {
        return along[d] == 0 ? std::numeric_limits<std::int64_t>::max() : along[d];
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
    const Job walked = job;
    for (std::size_t d = 0; d < order.size(); ++d) {
        job.sizes[d] = walked.sizes[order[d]];
        job.reduced[d] = walked.reduced[order[d]];
        for (std::size_t c = 0; c < job.classes.size(); ++c)
            job.classes[c][d] = walked.classes[c][order[d]];
    }
}

/// The class whose memory the walk follows where operands are strided: that of an elementwise
/// output, else of the input with the most elements.
int leading_class(const Job& job, const Problem& problem) {
    for (const JobOutput& out : job.outputs)
        if (!out.reduces()) return out.klass;
    const JobInput* largest = nullptr;
    const auto count = [&](const JobInput& in) {
        return problem.inputs[static_cast<std::size_t>(in.operand)].shape.numel();
    };
    for (const JobInput& in : job.inputs)
        if (largest == nullptr || count(in) > count(*largest)) largest = &in;
    return largest == nullptr ? -1 : largest->klass;
}

bool any_strided(const Problem& problem) {
    const auto strided = [](const Operand& operand) { return operand.layout.is_strided(); };
    return std::any_of(problem.inputs.begin(), problem.inputs.end(), strided) ||
           std::any_of(problem.outputs.begin(), problem.outputs.end(), strided);
}

}  // namespace

void canonicalise(Job& job) {
    for (std::size_t d = job.sizes.size(); d-- > 0;) {
        const bool alone = job.sizes[d] == 1;
        bool joins = !alone && d + 1 < job.sizes.size() && job.reduced[d] == job.reduced[d + 1];
        if (joins)
            for (const Strides& s : job.classes)
                joins = joins && s[d] == s[d + 1] * job.sizes[d + 1];
        if (!alone && !joins) continue;
        if (joins) {
            job.sizes[d + 1] *= job.sizes[d];
        }
        const auto at = static_cast<std::ptrdiff_t>(d);
        job.sizes.erase(job.sizes.begin() + at);
        job.reduced.erase(job.reduced.begin() + at);
        for (Strides& s : job.classes) s.erase(s.begin() + at);
    }
    if (job.sizes.empty()) {
        job.sizes.push_back(1);
        job.reduced.push_back(false);
        for (Strides& s : job.classes) s.push_back(1);
    }
    std::vector<int> numbers;
    std::vector<Strides> classes;
    for (const Strides& s : job.classes) {
        const auto found = std::find(classes.begin(), classes.end(), s);
        numbers.push_back(static_cast<int>(found - classes.begin()));
        if (found == classes.end()) classes.push_back(s);
    }
    job.classes = std::move(classes);
    const auto renumber = [&](int& klass) {
        if (klass >= 0) klass = numbers[static_cast<std::size_t>(klass)];
    };
    for (JobInput& in : job.inputs) renumber(in.klass);
    for (JobOutput& out : job.outputs) renumber(out.klass);
    for (int& klass : job.index_class) renumber(klass);
    renumber(job.linear_class);
    renumber(job.channel_class);
}

bool Job::reduces() const {
    return std::any_of(outputs.begin(), outputs.end(),
                       [](const JobOutput& o) { return o.reduces(); });
}

std::int64_t Job::kept() const {
    std::int64_t product = 1;
    for (std::size_t d = 0; d < sizes.size(); ++d)
        if (!reduced[d]) product *= sizes[d];
    return product;
}

std::int64_t Job::reduction() const {
    std::int64_t product = 1;
    for (std::size_t d = 0; d < sizes.size(); ++d)
        if (reduced[d]) product *= sizes[d];
    return product;
}

std::int64_t Job::reach() const {
    std::int64_t most = 0;
    for (const Strides& strides : classes) {
        std::int64_t last = 0;
        for (std::size_t d = 0; d < sizes.size(); ++d)
            last += std::max<std::int64_t>(0, sizes[d] - 1) * strides[d];
        most = std::max(most, last);
    }
    return most;
}

Shape broadcast_shape(std::span<const Shape> inputs, const Ints& shape) {
    Shape result(shape);
    for (const Shape& input : inputs) result = broadcast(result, input);
    return result;
}

std::vector<int> normal_axes(const Output& output, int rank) {
    std::vector<int> axes;
    if (output.all_axes) {
        for (int d = 0; d < rank; ++d) axes.push_back(d);
        return axes;
    }
    for (std::int64_t axis : output.axes) {
        require(axis >= -rank && axis < rank, "the program reduces over axis ", axis,
                ", but its tensors have ", rank, " dimensions");
        axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
    }
    std::sort(axes.begin(), axes.end());
    require(std::adjacent_find(axes.begin(), axes.end()) == axes.end(),
            "the program names an axis of a reduction twice");
    return axes;
}

Shape output_shape(const Output& output, const Shape& whole, bool keep_dim) {
    if (output.kind == Output::Kind::elementwise) return whole;
    const std::vector<int> axes = normal_axes(output, whole.rank());
    std::vector<std::int64_t> dims;
    for (int d = 0; d < whole.rank(); ++d) {
        if (!std::binary_search(axes.begin(), axes.end(), d))
            dims.push_back(whole[d]);
        else if (keep_dim)
            dims.push_back(1);
    }
    return Shape(dims);
}

bool is_integral(const Program& program) {
    const auto check = [](const ExprPtr& root) {
        const Tape tape = compile(std::span(&root, 1));
        return std::all_of(tape.code.begin(), tape.code.end(), [](const Instruction& in) {
            if (in.op == Op::constant)
                return in.value == std::floor(in.value) && std::fabs(in.value) < 9e15;
            return in.op < Op::add || function_of(in.op).integral;
        });
    };
    for (const Output& output : program.outputs) {
        if (output.kind == Output::Kind::mean) return false;
        if (output.kind == Output::Kind::custom &&
            (!check(output.combine) || output.init != std::floor(output.init) ||
             std::isinf(output.init)))
            return false;
        if (!check(output.value)) return false;
    }
    return true;
}

std::string arguments_of(const Attrs& attrs) {
    return attrs.has(arguments_attr) ? attrs.text(arguments_attr) : std::string();
}

namespace {

void set_scalars(Job& job, const Attrs& attrs) {
    const std::string arguments = arguments_of(attrs);
    job.arguments = !arguments.empty();
    for (const char kind : arguments) {
        job.scalar_numbers.push_back(static_cast<int>(job.scalars.size()));
        job.scalars.push_back(kind == 'i' ? Scalar(std::int64_t{0}) : Scalar(0.0));
    }
    if (!job.arguments)
        for (const double value : attrs.numbers("scalars")) job.scalars.emplace_back(value);
}

}  // namespace

std::vector<Job> make_jobs(const Problem& problem, bool fp64) {
    const Program program = parse(problem.attrs.text("code"));
    std::vector<Shape> shapes;
    for (const Operand& in : problem.inputs) shapes.push_back(in.shape);
    const Shape whole = broadcast_shape(shapes, problem.attrs.ints("shape"));
    const Layout layout = walk_layout(problem);
    const std::vector<WalkDim> dims = walk(whole, layout);
    const Compute type = compute_type(problem, program, fp64);
    const auto inputs = static_cast<int>(problem.inputs.size());

    // One group of outputs per set of axes. Elementwise outputs join the last group.
    std::map<std::vector<int>, std::vector<int>> groups;
    std::vector<int> elementwise;
    std::vector<std::vector<int>> order;
    for (std::size_t k = 0; k < program.outputs.size(); ++k) {
        const Output& output = program.outputs[k];
        if (output.kind == Output::Kind::elementwise) {
            elementwise.push_back(static_cast<int>(k));
            continue;
        }
        const auto axes = normal_axes(output, whole.rank());
        if (groups.find(axes) == groups.end()) order.push_back(axes);
        groups[axes].push_back(static_cast<int>(k));
    }
    if (order.empty()) order.push_back({});
    // The job with elementwise outputs runs last, because these may overwrite an input.
    auto& last = groups[order.back()];
    last.insert(last.end(), elementwise.begin(), elementwise.end());

    std::vector<Job> jobs;
    for (const auto& axes : order) {
        Job job;
        job.type = type;
        set_scalars(job, problem.attrs);
        job.shape = whole;
        std::int64_t logical_count = 1;
        for (int axis : axes) logical_count *= whole[axis];
        for (const WalkDim& dim : dims) {
            job.sizes.push_back(dim.size);
            job.reduced.push_back(std::binary_search(axes.begin(), axes.end(), dim.logical));
        }
        std::vector<ExprPtr> roots;
        for (int k : groups[axes])
            roots.push_back(program.outputs[static_cast<std::size_t>(k)].value);
        job.tape = compile(roots);
        std::size_t at = 0;
        for (int k : groups[axes]) {
            const Output& output = program.outputs[static_cast<std::size_t>(k)];
            const Operand& operand = problem.outputs[static_cast<std::size_t>(k)];
            JobOutput out;
            out.operand = inputs + k;
            out.kind = output.kind;
            out.value = job.tape.results[at++];
            out.dtype = operand.dtype;
            out.loose = is_loose(operand);
            settle_custom(output, out);
            if (out.kind == Output::Kind::mean) {
                out.kind = Output::Kind::sum;
                out.scaled = true;
                out.scale = 1.0 / static_cast<double>(logical_count);
            }
            const Shape own = output_shape(output, whole, true);
            out.klass = add_class(job, operand_strides(own, operand.layout, whole, dims));
            job.outputs.push_back(std::move(out));
        }
        job.index_class.assign(static_cast<std::size_t>(whole.rank()), -1);
        for (const Instruction& in : job.tape.code) {
            if (in.op == Op::input) {
                const Operand& operand = problem.inputs[static_cast<std::size_t>(in.number)];
                job.inputs.push_back(
                    {in.number, in.number, operand.dtype,
                     add_class(job, operand_strides(operand.shape, operand.layout, whole, dims)), 0,
                     is_loose(operand)});
            } else if (in.op == Op::index) {
                const int d = in.number < 0 ? in.number + whole.rank() : in.number;
                Strides unit(static_cast<std::size_t>(whole.rank()), 0);
                unit[static_cast<std::size_t>(d)] = 1;
                job.index_class[static_cast<std::size_t>(d)] =
                    add_class(job, position_strides(dims, unit));
            } else if (is_random(in.op)) {
                job.linear_class = add_class(job, position_strides(dims, whole.strides()));
            }
        }
        if (layout.kind == Layout::Kind::blocked) job.block = layout.block;
        if (layout.kind == Layout::Kind::blocked && whole[1] % layout.block != 0) {
            job.channels = whole[1];
            job.channel_class = add_class(job, position_strides(dims, {0, 1, 0, 0}));
        }
        if (layout.is_plain() && any_strided(problem))
            if (const int lead = leading_class(job, problem); lead >= 0) walk_along(job, lead);
        canonicalise(job);
        jobs.push_back(std::move(job));
    }
    return jobs;
}

}  // namespace dlprim::pointwise
