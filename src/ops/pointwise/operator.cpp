// SPDX-License-Identifier: MIT
// The operator Pointwise: a program in the pointwise language over any number of tensors.
#include "ops/pointwise/operator.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace dlprim::pointwise {

Options read_options(const Attrs& attrs) {
    Options options;
    options.program = parse(attrs.text("code"));
    options.scalars = attrs.numbers("scalars");
    options.dtypes = attrs.texts("dtypes");
    options.keep_dim = attrs.boolean("keep_dim");
    options.shape = attrs.ints("shape");
    options.arguments = arguments_of(attrs);
    const std::size_t given = std::max(options.scalars.size(), options.arguments.size());
    require(static_cast<int>(given) >= options.program.scalars, "the program uses p",
            options.program.scalars - 1, ", but scalars gives ", given, " values");
    const std::size_t outputs = options.program.outputs.size();
    require(options.dtypes.size() <= 1 || options.dtypes.size() == outputs, "dtypes names ",
            options.dtypes.size(), " types for ", outputs, " outputs");
    return options;
}

std::vector<Shape> shapes_of(std::span<const TensorSpec> inputs) {
    std::vector<Shape> shapes;
    for (const TensorSpec& input : inputs) shapes.push_back(input.shape);
    return shapes;
}

DType promoted(const Options& options, std::span<const TensorSpec> inputs) {
    const Program& program = options.program;
    DType real = DType::boolean, whole = DType::boolean;
    bool any_real = false;
    for (const TensorSpec& input : inputs) {
        const DType type = input.dtype;
        require(!is_narrow(type), "programs do not compute with ", name_of(type),
                "; add a Cast before it");
        if (is_float(type)) {
            if (!any_real)
                real = type;
            else if (type == DType::f64 || real == DType::f64)
                real = DType::f64;
            else if (type != real)
                real = DType::f32;
            any_real = true;
        } else if (type != whole) {
            const bool mixed_sign = size_of(type) == size_of(whole) && whole != DType::boolean &&
                                    type != DType::boolean;
            if (mixed_sign)
                whole = size_of(type) == 1   ? DType::i16
                        : size_of(type) == 2 ? DType::i32
                                             : DType::i64;
            else if (whole == DType::boolean ||
                     (type != DType::boolean && size_of(type) > size_of(whole)))
                whole = type;
        }
    }
    if (any_real) return real;
    if (inputs.empty() || !is_integral(program)) return DType::f32;
    if (program.scalars == 0) return whole;
    const bool integers =
        !options.arguments.empty() && options.arguments.find('d') == std::string::npos;
    if (!integers) return DType::f32;
    return whole == DType::boolean ? DType::i64 : whole;
}

bool PointwiseOperator::defines_edges(const Attrs& attrs) const {
    const Program program = parse(attrs.text("code"));
    return std::all_of(program.outputs.begin(), program.outputs.end(), [](const Output& output) {
        const Tape tape = compile(std::span(&output.value, 1));
        return output.kind == Output::Kind::elementwise &&
               std::none_of(tape.code.begin(), tape.code.end(),
                            [](const Instruction& in) { return is_random(in.op); });
    });
}

namespace {

/// What the shape rule asks of a program, which each text says once.
struct Asked {
    struct Place {
        bool random;  ///< an input of a function of random numbers; else index() or size()
        int number;   ///< of the input, or the dimension
        std::string_view function;
    };
    std::vector<Place> places;
};

Asked asked_of(const Output& output) {
    Asked asked;
    const Tape tape = compile(std::span(&output.value, 1));
    for (const Instruction& in : tape.code) {
        if (in.op == Op::index || in.op == Op::size) asked.places.push_back({false, in.number, {}});
        if (!is_random(in.op)) continue;
        for (int arg : {in.a, in.b, in.c}) {
            const Instruction& source = tape.code[static_cast<std::size_t>(arg)];
            if (source.op == Op::input)
                asked.places.push_back({true, source.number, function_of(in.op).name});
        }
    }
    return asked;
}

/// By output.
std::shared_ptr<const std::vector<Asked>> asked_of(const std::string& code,
                                                   const Program& program) {
    using Made = std::shared_ptr<const std::vector<Asked>>;
    constexpr std::size_t most_kept = 4096;
    static std::mutex mutex;
    static auto* const known = new std::unordered_map<std::string, Made>;
    const std::lock_guard lock(mutex);
    if (const auto found = known->find(code); found != known->end()) return found->second;
    std::vector<Asked> all;
    for (const Output& output : program.outputs) all.push_back(asked_of(output));
    if (known->size() >= most_kept) known->clear();
    return known->emplace(code, std::make_shared<const std::vector<Asked>>(std::move(all)))
        .first->second;
}

void check(const Asked& asked, const Shape& whole, std::span<const TensorSpec> inputs) {
    for (const auto& [random, number, function] : asked.places) {
        if (!random) {
            require(number >= -whole.rank() && number < whole.rank(),
                    "the program asks for dimension ", number, " of a shape ", whole.str());
            continue;
        }
        const Shape& shape = inputs[static_cast<std::size_t>(number)].shape;
        require(shape.numel() == 1, "seed, step and id of ", function,
                "() are single values, but x", number, " has shape ", shape.str());
    }
}

}  // namespace

std::vector<TensorSpec> PointwiseOperator::infer(const Attrs& attrs,
                                                 std::span<const TensorSpec> inputs) const {
    const Options options = read_options(attrs);
    const Program& program = options.program;
    require(static_cast<int>(inputs.size()) >= program.inputs, "the program reads x",
            program.inputs - 1, ", but there are ", inputs.size(), " inputs");
    const std::vector<Shape> shapes = shapes_of(inputs);
    const Shape whole = broadcast_shape(shapes, options.shape);
    const DType type = promoted(options, inputs);
    const auto asked = asked_of(attrs.text("code"), program);
    std::vector<TensorSpec> specs;
    specs.reserve(program.outputs.size());
    for (std::size_t k = 0; k < program.outputs.size(); ++k) {
        check((*asked)[k], whole, inputs);
        DType own = type;
        if (!options.dtypes.empty())
            own = parse_dtype(options.dtypes[options.dtypes.size() == 1 ? 0 : k]);
        require(!is_narrow(own), "programs do not compute ", name_of(own),
                "; add a Cast behind it");
        specs.push_back({output_shape(program.outputs[k], whole, options.keep_dim), own});
    }
    return specs;
}

std::vector<std::pair<int, int>> PointwiseOperator::in_place(const Node& node) const {
    // A reduction's output is smaller than its inputs. Jobs that reduce over other axes run before
    // the job that stores elementwise outputs.
    const std::shared_ptr<const Program> program = parsed(node.attrs.text("code"));
    std::vector<std::pair<int, int>> pairs;
    for (std::size_t k = 0; k < program->outputs.size(); ++k)
        if (program->outputs[k].kind == Output::Kind::elementwise)
            for (std::size_t i = 0; i < node.inputs.size(); ++i)
                pairs.emplace_back(static_cast<int>(k), static_cast<int>(i));
    return pairs;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<PointwiseOperator>();
}

}  // namespace dlprim::pointwise
