// SPDX-License-Identifier: MIT
// EngineRun: operands in the layouts of an engine, its launch, and what that makes.
#include "check/engine_run.hpp"

#include "base/text.hpp"
#include "engine/build_launch.hpp"
#include "engine/disabled.hpp"
#include "engine/launch.hpp"
#include "engine/pointwise/job.hpp"
#include "runtime/program_builds.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dlprim {

namespace {

/// What margins hold: large numbers, or in half NaN.
constexpr std::byte junk{0x7f};

/// Calls `visit(i, place)` for each element of a strided operand: its number in row-major order,
/// and its place in memory, in elements.
template <typename Visit>
void visit_elements(const Operand& operand, Visit visit) {
    const std::int64_t count = operand.shape.numel();
    const int rank = operand.shape.rank();
    std::vector<std::int64_t> at(static_cast<std::size_t>(rank), 0);
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        visit(static_cast<std::size_t>(i), static_cast<std::size_t>(place));
        for (int d = rank - 1; d >= 0; --d) {
            const auto k = static_cast<std::size_t>(d);
            place += operand.layout.strides[k];
            if (++at[k] < operand.shape[d]) break;
            place -= at[k] * operand.layout.strides[k];
            at[k] = 0;
        }
    }
}

std::uint64_t plain_bytes_of(const Operand& operand) {
    return static_cast<std::uint64_t>(operand.shape.numel()) * size_of(operand.dtype);
}

std::uint64_t bytes_of(const Operand& operand) {
    if (operand.layout.kind == Layout::Kind::packed) return operand.layout.bytes;
    if (operand.layout.is_strided()) {
        if (operand.shape.numel() == 0) return 0;
        std::int64_t last = 0;
        for (int d = 0; d < operand.shape.rank(); ++d)
            last += (operand.shape[d] - 1) * operand.layout.strides[static_cast<std::size_t>(d)];
        return static_cast<std::uint64_t>(last + 1) * size_of(operand.dtype);
    }
    return static_cast<std::uint64_t>(physical_shape(operand.shape, operand.layout).numel()) *
           size_of(operand.dtype);
}

/// The memory of a strided operand. Of elements that share a place the last one counts.
PlainBytes scattered(const PlainBytes& plain, const Operand& operand) {
    const std::size_t each = size_of(operand.dtype);
    PlainBytes memory(bytes_of(operand));
    visit_elements(operand, [&](std::size_t i, std::size_t place) {
        std::memcpy(memory.data() + place * each, plain.data() + i * each, each);
    });
    return memory;
}

/// The elements of a strided operand in row-major order.
PlainBytes gathered(const PlainBytes& memory, const Operand& operand) {
    const std::size_t each = size_of(operand.dtype);
    PlainBytes plain(plain_bytes_of(operand));
    visit_elements(operand, [&](std::size_t i, std::size_t place) {
        std::memcpy(plain.data() + i * each, memory.data() + place * each, each);
    });
    return plain;
}

/// Values for scalars that come with each run of a launch.
std::vector<Scalar> scalars_of(const Problem& problem) {
    std::vector<Scalar> scalars;
    for (const char kind : pointwise::arguments_of(problem.attrs)) {
        const auto number = static_cast<std::int64_t>(scalars.size());
        if (kind == 'i')
            scalars.emplace_back(number + 1);
        else
            scalars.emplace_back(0.75 + 0.5 * static_cast<double>(number));
    }
    return scalars;
}

void write(ContextImpl& context, const BufferRef& to, const PlainBytes& bytes) {
    if (!bytes.empty()) context.queue().write(to, bytes.data(), bytes.size(), true);
}

PlainBytes read_all(ContextImpl& context, const BufferRef& from, std::uint64_t bytes) {
    PlainBytes all(bytes);
    if (bytes > 0) context.queue().read(from, all.data(), bytes, true);
    return all;
}

/// The numbers of a plain operand: all, or if they are many and `sampled`, 32 evenly spaced parts,
/// of which the last is at the end.
std::vector<double> values_of(ContextImpl& context, const BufferRef& from, const Operand& operand,
                              bool sampled) {
    constexpr std::uint64_t parts = 32, part = 8192;
    const std::uint64_t each = size_of(operand.dtype);
    const auto count = static_cast<std::uint64_t>(operand.shape.numel());
    sampled = sampled && count > parts * part;
    PlainBytes stored;
    for (std::uint64_t i = 0; i < (sampled ? parts : 1); ++i) {
        const std::uint64_t first = sampled ? (count - part) * i / (parts - 1) : 0;
        const PlainBytes some = read_all(context, {from.buffer, from.byte_offset + first * each},
                                         (sampled ? part : count) * each);
        stored.insert(stored.end(), some.begin(), some.end());
    }
    std::vector<double> values(stored.size() / each);
    convert(stored.data(), operand.dtype, values.data(), DType::f64, values.size());
    return values;
}

}  // namespace

PlainBytes with_shared_places(PlainBytes plain, const Operand& operand) {
    if (!operand.layout.is_strided()) return plain;
    return gathered(scattered(plain, operand), operand);
}

EngineRun::EngineRun(ContextImpl& device, ContextImpl& converter, EngineWay way,
                     const std::vector<PlainBytes>& inputs, Runner runner, std::uint64_t margin)
    : device_(device),
      converter_(converter),
      way_(std::move(way)),
      runner_(std::move(runner)),
      margin_(margin) {
    allocate();
    for (std::size_t i = 0; i < inputs.size(); ++i) write_input(i, inputs[i]);
    for (std::size_t k = 0; k < way_.problem.outputs.size(); ++k) {
        const std::uint64_t bytes = bytes_of(way_.problem.outputs[k]);
        const unsigned char ones = 0xff;
        if (bytes > 0) device_.queue().fill(operands_[inputs.size() + k], bytes, &ones, 1);
    }
}

const Operand& EngineRun::operand(std::size_t i) const {
    const std::vector<Operand>& inputs = way_.problem.inputs;
    return i < inputs.size() ? inputs[i] : way_.problem.outputs[i - inputs.size()];
}

// Blocks of channels are vectors, which are aligned.
std::uint64_t EngineRun::margin_bytes(std::size_t i) const {
    const Layout::Kind kind = operand(i).layout.kind;
    if (margin_ == 0 || kind == Layout::Kind::packed) return 0;
    return (kind == Layout::Kind::blocked ? 64 : margin_) * size_of(operand(i).dtype);
}

void EngineRun::allocate() {
    std::vector<std::uint64_t> sizes;
    const std::size_t count = way_.problem.inputs.size() + way_.problem.outputs.size();
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(bytes_of(operand(i)));
    const std::uint64_t scratch =
        way_.engine->workspace_bytes(device_.traits(), way_.problem, way_.tuning);
    if (scratch > 0) sizes.push_back(scratch);
    if (!runner_) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::uint64_t margin = i < count ? margin_bytes(i) : 0;
            memory_.push_back(device_.allocate(sizes[i] + 2 * margin));
            operands_.push_back({memory_.back().get(), margin});
            if (margin > 0)
                device_.queue().fill({memory_.back().get(), 0}, sizes[i] + 2 * margin, &junk, 1);
        }
        return;
    }
    // The programs of chains have few parameters for buffers: all operands lie in one.
    const std::uint64_t alignment = std::max<std::uint64_t>(512, device_.traits().base_align_bytes);
    std::uint64_t total = 0;
    for (const std::uint64_t size : sizes) {
        operands_.push_back({nullptr, total});
        total += (size + alignment - 1) / alignment * alignment;
    }
    memory_.push_back(device_.allocate(total));
    for (BufferRef& operand : operands_) operand.buffer = memory_[0].get();
}

void EngineRun::write_input(std::size_t i, const PlainBytes& plain) {
    const Operand& operand = way_.problem.inputs[i];
    const BufferRef& to = operands_[i];
    if (operand.layout.is_plain()) return write(device_, to, plain);
    if (operand.layout.is_strided()) return write(device_, to, scattered(plain, operand));
    const bool packed = operand.layout.kind == Layout::Kind::packed;
    ContextImpl& context = packed ? device_ : converter_;
    const Memory from = context.allocate(plain.size());
    write(context, {from.get(), 0}, plain);
    if (packed) {
        const BufferRef pair[] = {{from.get(), 0}, to};
        way_.engine->build_packing(device_, way_.problem, way_.tuning, static_cast<int>(i))
            ->enqueue(device_.queue(), pair);
        return device_.queue().finish();
    }
    const Memory laid = reordered({from.get(), 0}, operand, Layout::plain(), operand.layout);
    if (&converter_ != &device_ || margin_ > 0)
        return write(device_, to, read_all(converter_, {laid.get(), 0}, bytes_of(operand)));
    memory_[i] = laid;
    operands_[i] = {laid.get(), 0};
}

EngineRun::Memory EngineRun::reordered(const BufferRef& from, const Operand& operand,
                                       const Layout& from_layout, const Layout& to_layout) {
    Problem problem;
    problem.op = "Reorder";
    problem.inputs = {{operand.shape, operand.dtype, from_layout, false}};
    problem.outputs = {{operand.shape, operand.dtype, to_layout, false}};
    for (const Engine* engine : EngineRegistry::instance().of("Reorder", converter_.is_host())) {
        if (!usable(converter_, *engine, problem)) continue;
        Memory to = converter_.allocate(bytes_of(problem.outputs[0]));
        const BufferRef pair[] = {from, {to.get(), 0}};
        engine->build(converter_, problem, engine->default_tuning(converter_.traits(), problem))
            ->enqueue(converter_.queue(), pair);
        converter_.queue().finish();
        return to;
    }
    fail(ErrorKind::unsupported, "no engine converts layout ", from_layout.str(), " to ",
         to_layout.str());
}

std::unique_ptr<Launch> EngineRun::build() const {
    auto launch = build_launch(*way_.engine, device_, way_.problem, way_.tuning);
    launch->set_owner(owner_of(*way_.engine));
    if (const std::vector<Scalar> scalars = scalars_of(way_.problem); !scalars.empty())
        launch->set_scalars(scalars);
    return launch;
}

void EngineRun::run(int times) {
    if (runner_) {
        const BuildsLater later;
        const std::unique_ptr<Launch> launch = build();
        require(runner_(*launch, operands_), "its kernels are in no program that is compiled");
        return;
    }
    if (!launch_) launch_ = build();
    for (int i = 0; i < times; ++i) launch_->enqueue(device_.queue(), operands_);
    device_.queue().finish();
}

Results EngineRun::results(bool sampled) {
    Results all;
    for (std::size_t k = 0; k < way_.problem.outputs.size(); ++k)
        all.push_back(read_output(k, sampled));
    return all;
}

std::vector<double> EngineRun::read_output(std::size_t k, bool sampled) {
    const Operand& output = way_.problem.outputs[k];
    BufferRef from = operands_[way_.problem.inputs.size() + k];
    if (output.layout.is_plain()) return values_of(device_, from, output, sampled);
    if (output.layout.is_strided()) {
        const PlainBytes plain = gathered(read_all(device_, from, bytes_of(output)), output);
        std::vector<double> values(static_cast<std::size_t>(output.shape.numel()));
        convert(plain.data(), output.dtype, values.data(), DType::f64, values.size());
        return values;
    }
    Memory moved;
    if (&converter_ != &device_) {
        moved = converter_.allocate(bytes_of(output));
        write(converter_, {moved.get(), 0}, read_all(device_, from, bytes_of(output)));
        from = {moved.get(), 0};
    }
    const Memory plain = reordered(from, output, output.layout, Layout::plain());
    return values_of(converter_, {plain.get(), 0}, output, sampled);
}

PlainBytes EngineRun::stored(std::size_t i) {
    return read_all(device_, {operands_[i].buffer, operands_[i].byte_offset - margin_bytes(i)},
                    bytes_of(operand(i)) + 2 * margin_bytes(i));
}

/// Converts the operand to plain and back, which leaves zeros in the padding.
bool EngineRun::has_zero_padding(std::size_t i, const PlainBytes& memory) {
    const Operand& own = operand(i);
    if (own.layout.kind != Layout::Kind::blocked || !is_float(own.dtype)) return true;
    const std::uint64_t bytes = bytes_of(own);
    const auto first = memory.begin() + static_cast<std::ptrdiff_t>(margin_bytes(i));
    const PlainBytes found(first, first + static_cast<std::ptrdiff_t>(bytes));
    const Memory copy = converter_.allocate(bytes);
    write(converter_, {copy.get(), 0}, found);
    const Memory plain = reordered({copy.get(), 0}, own, own.layout, Layout::plain());
    const Memory again = reordered({plain.get(), 0}, own, Layout::plain(), own.layout);
    return read_all(converter_, {again.get(), 0}, bytes) == found;
}

std::string EngineRun::faults() {
    const std::size_t inputs = way_.problem.inputs.size();
    const std::size_t count = inputs + way_.problem.outputs.size();
    std::vector<PlainBytes> first;
    for (std::size_t i = 0; i < count; ++i) first.push_back(stored(i));
    run();
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name = i < inputs ? cat("input ", i) : cat("output ", i - inputs);
        if (i >= inputs && stored(i) != first[i]) return cat("two runs differ in ", name);
        const auto margin = static_cast<std::ptrdiff_t>(margin_bytes(i));
        const auto is_junk = [](std::byte byte) { return byte == junk; };
        if (!std::all_of(first[i].begin(), first[i].begin() + margin, is_junk) ||
            !std::all_of(first[i].end() - margin, first[i].end(), is_junk))
            return cat("it writes beyond ", name);
        if (i >= inputs && !has_zero_padding(i, first[i]))
            return cat("it leaves other numbers than 0 in the padding of ", name);
    }
    return "";
}

std::string EngineRun::owner_of(const Engine& engine) {
    return cat("[check of ", engine.name(), "] ");
}

}  // namespace dlprim
