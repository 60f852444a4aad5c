// SPDX-License-Identifier: MIT
// InputFiles: asks dlprim_reader, and checks what it answers as if an enemy had written it.
#include "untrusted/files.hpp"

#include "common.hpp"
#include "untrusted/process.hpp"
#include "untrusted/wire.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace dlprim::tools {

namespace {

constexpr std::size_t longest_name = 4096, longest_sentence = 1 << 13, longest_text = 1 << 26;
constexpr std::uint64_t most_tensors = 1 << 20, largest_side = 1 << 15, most_pixels = 1 << 26;

/// Reads the beginning of the answer, up to what is of that kind.
void expect(ReaderProcess& reader, Kind kind) {
    if (reader.number() != wire_mark) reader.makes_no_sense("it has no beginning");
    const std::uint64_t found = reader.number();
    if (found == static_cast<std::uint64_t>(Kind::error)) {
        const auto of = reader.number(static_cast<std::uint64_t>(ErrorKind::numeric));
        const std::string sentence = reader.text(longest_sentence);
        reader.finish();
        throw Error(static_cast<ErrorKind>(of), sentence);
    }
    if (found != static_cast<std::uint64_t>(kind))
        reader.makes_no_sense("an answer to another question");
}

HostTensor take_tensor(ReaderProcess& reader) {
    HostTensor tensor;
    tensor.dtype = static_cast<DType>(reader.number(static_cast<std::uint64_t>(DType::u2)));
    std::vector<std::int64_t> sizes(reader.number(Shape::max_rank));
    std::uint64_t bytes = size_of(tensor.dtype);
    constexpr std::uint64_t largest = std::uint64_t{1} << 48;
    for (std::int64_t& size : sizes) {
        size = static_cast<std::int64_t>(reader.number(largest));
        const auto factor = static_cast<std::uint64_t>(size);
        if (factor > 0 && bytes > largest / factor) reader.makes_no_sense("a tensor too large");
        bytes *= factor;
    }
    tensor.shape = Shape(sizes);
    tensor.data = reader.data(bytes);
    return tensor;
}

std::map<std::string, HostTensor> take_tensors(ReaderProcess& reader) {
    std::map<std::string, HostTensor> tensors;
    for (std::uint64_t count = reader.number(most_tensors); count > 0; --count) {
        const std::string name = reader.text(longest_name);
        if (name.empty() || tensors.count(name)) reader.makes_no_sense("a name twice, or none");
        tensors.emplace(name, take_tensor(reader));
    }
    return tensors;
}

std::vector<double> take_numbers(ReaderProcess& reader) {
    std::vector<double> values(reader.number(1 << 16));
    for (double& value : values) {
        value = reader.real();
        if (!std::isfinite(value)) reader.makes_no_sense("a number that is not finite");
    }
    return values;
}

Preprocessing take_steps(ReaderProcess& reader) {
    Preprocessing how;
    for (std::int64_t* const size :
         {&how.resize, &how.resize_height, &how.resize_width, &how.crop_height, &how.crop_width})
        *size = static_cast<std::int64_t>(reader.number(largest_side));
    how.mean = take_numbers(reader);
    how.deviation = take_numbers(reader);
    if (how.mean.empty() || how.deviation.empty()) reader.makes_no_sense("a list without numbers");
    for (const double value : how.deviation)
        if (value == 0) reader.makes_no_sense("a deviation of 0");
    how.classes.resize(reader.number(1 << 16));
    for (std::string& name : how.classes) name = reader.text(longest_sentence);
    return how;
}

/// A folder in which the reader may write, removed at the end.
class Workplace {
  public:
    Workplace() {
        std::error_code code;
        const auto folder = std::filesystem::temp_directory_path(code);
        path_ = (code ? "/tmp" : folder.string()) + "/dlprim-reader-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr)
            throw Error(ErrorKind::io,
                        "folder '" + path_ + "' cannot be made: " + std::strerror(errno));
    }
    ~Workplace() {
        std::error_code code;
        std::filesystem::remove_all(path_, code);
    }
    Workplace(const Workplace&) = delete;
    Workplace& operator=(const Workplace&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// "NAME=1,3,224,224", which dlprim_reader takes.
std::string shape_word(const std::string& name, const Shape& shape) {
    std::string word = name + "=";
    for (int i = 0; i < shape.rank(); ++i) word += (i > 0 ? "," : "") + std::to_string(shape[i]);
    return word;
}

}  // namespace

void InputFiles::add_option(CLI::App& app) {
    app.add_flag("--untrusted", untrusted_,
                 "read HDF5 files, pictures and ONNX models in a process of its own with limits, "
                 "where a crash is an error");
}

std::map<std::string, HostTensor> InputFiles::load_tensors(const std::string& path) const {
    if (!untrusted_) return dlprim::load_tensors(path);
    ReaderProcess reader({"tensors", path}, path, reader_limits());
    expect(reader, Kind::tensors);
    auto tensors = take_tensors(reader);
    reader.finish();
    return tensors;
}

Image InputFiles::read_image(const std::string& path, int channels) const {
    if (!untrusted_) return dlprim::read_image(path, channels);
    ReaderProcess reader({"image", path, std::to_string(channels)}, path, reader_limits());
    expect(reader, Kind::image);
    Image image;
    image.width = static_cast<std::int64_t>(reader.number(largest_side));
    image.height = static_cast<std::int64_t>(reader.number(largest_side));
    image.channels = channels;
    const auto pixels = static_cast<std::uint64_t>(image.width * image.height);
    if (pixels == 0 || pixels > most_pixels) reader.makes_no_sense("a picture of no size");
    if (reader.number() != static_cast<std::uint64_t>(channels))
        reader.makes_no_sense("a picture of other colours");
    const auto data = reader.data(pixels * static_cast<std::uint64_t>(channels));
    reader.finish();
    image.pixels.resize(data.size());
    std::memcpy(image.pixels.data(), data.data(), data.size());
    return image;
}

std::optional<Preprocessing> InputFiles::read_preprocessing(const std::string& path) const {
    if (!untrusted_) return dlprim::read_preprocessing(path);
    ReaderProcess reader({"steps", path}, path, reader_limits());
    expect(reader, Kind::steps);
    std::optional<Preprocessing> how;
    if (reader.number(1) == 1) how = take_steps(reader);
    reader.finish();
    return how;
}

void InputFiles::load_weights(Net& net, const std::string& path, bool missing_ok) const {
    if (!untrusted_) return net.load_weights(path, missing_ok);
    net.load_weights(load_tensors(path), path, missing_ok);
}

Net InputFiles::open_net(const Context& context, const std::string& path,
                         const NetOptions& options) const {
    if (!untrusted_ || !is_onnx(path)) return tools::open_net(context, path, options);
    const Workplace workplace;
    std::vector<std::string> words{"model", path, workplace.path(), std::to_string(options.batch)};
    for (const auto& [name, shape] : options.input_shapes) words.push_back(shape_word(name, shape));
    ReaderProcess reader(words, path, reader_limits());
    expect(reader, Kind::model);
    const std::string json = reader.text(longest_text);
    auto weights = take_tensors(reader);
    reader.finish();
    NetOptions how = options;
    how.input_shapes.clear();  // they are the network's own now
    how.batch = 0;
    Net net = Net::from_json(context, json, how);
    if (!weights.empty()) net.load_weights(std::move(weights), path);
    return net;
}

}  // namespace dlprim::tools
