// SPDX-License-Identifier: MIT
// dlprim_reader: reads one file that a command does not trust, and writes plain values to
// descriptor 3 (untrusted/wire.hpp). Commands start it for --untrusted, with limits.
//   dlprim_reader tensors|steps FILE, image FILE CHANNELS, model FILE FOLDER BATCH [NAME=SIZES...]
#include "untrusted/wire.hpp"

#include <dlprim/dlprim.hpp>

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace dlprim;
using tools::Kind;

namespace {

void write_all(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t count = write(tools::answer_descriptor, at, bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) _exit(1);  // nobody wants to know
        at += count;
        bytes -= static_cast<std::size_t>(count);
    }
}

void put(std::uint64_t value) {
    write_all(&value, sizeof(value));
}

void put(std::string_view text) {
    put(text.size());
    write_all(text.data(), text.size());
}

void put(const std::vector<double>& values) {
    put(values.size());
    write_all(values.data(), values.size() * sizeof(double));
}

void begin(Kind kind) {
    put(tools::wire_mark);
    put(static_cast<std::uint64_t>(kind));
}

void put(const std::map<std::string, HostTensor>& tensors) {
    put(tensors.size());
    for (const auto& [name, tensor] : tensors) {
        put(std::string_view(name));
        put(static_cast<std::uint64_t>(tensor.dtype));
        put(static_cast<std::uint64_t>(tensor.shape.rank()));
        for (int i = 0; i < tensor.shape.rank(); ++i)
            put(static_cast<std::uint64_t>(tensor.shape[i]));
        write_all(tensor.data.data(), tensor.data.size());
    }
}

void read_steps(const std::string& path) {
    const auto how = read_preprocessing(path);
    begin(Kind::steps);
    put(std::uint64_t{how.has_value()});
    if (!how) return;
    for (const std::int64_t size :
         {how->resize, how->resize_height, how->resize_width, how->crop_height, how->crop_width})
        put(static_cast<std::uint64_t>(size));
    put(how->mean);
    put(how->deviation);
    put(how->classes.size());
    for (const std::string& name : how->classes) put(std::string_view(name));
}

void read_picture(const std::string& path, const std::string& channels) {
    const Image image = read_image(path, channels == "1" ? 1 : 3);
    begin(Kind::image);
    put(static_cast<std::uint64_t>(image.width));
    put(static_cast<std::uint64_t>(image.height));
    put(static_cast<std::uint64_t>(image.channels));
    write_all(image.pixels.data(), image.pixels.size());
}

std::int64_t integer(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

Shape parse_sizes(std::string_view text) {
    std::vector<std::int64_t> sizes;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        sizes.push_back(integer(text.substr(0, comma)));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return Shape(sizes);
}

void read_model(const std::vector<std::string>& words) {
    const ONNXModel model(words.at(1));
    NetOptions options;
    options.batch = integer(words.at(3));
    for (std::size_t i = 4; i < words.size(); ++i) {
        const std::size_t equals = words[i].rfind('=');
        for (const ONNXInput& input : model.inputs())
            if (input.name == words[i].substr(0, equals))
                options.input_shapes[input.name] = parse_sizes(words[i].substr(equals + 1));
    }
    const std::string net = words.at(2) + "/net.json", weights = words.at(2) + "/weights.h5";
    model.convert(net, weights, options);
    std::ifstream file(net, std::ios::binary);
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    const auto tensors = load_tensors(weights);
    begin(Kind::model);
    put(std::string_view(json));
    put(tensors);
}

void answer(const std::vector<std::string>& words) {
    const std::string& what = words.at(0);
    if (what == "tensors") {
        const auto tensors = load_tensors(words.at(1));
        begin(Kind::tensors);
        put(tensors);
    } else if (what == "steps") {
        read_steps(words.at(1));
    } else if (what == "image") {
        read_picture(words.at(1), words.at(2));
    } else if (what == "model") {
        read_model(words);
    } else {
        throw std::invalid_argument(what);
    }
    put(tools::wire_end);
}

void refuse(ErrorKind kind, std::string_view sentence) {
    begin(Kind::error);
    put(static_cast<std::uint64_t>(kind));
    put(sentence);
    put(tools::wire_end);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    try {
        answer(words);
    } catch (const Error& error) {
        refuse(error.kind(), error.what());
    } catch (const std::bad_alloc&) {
        refuse(ErrorKind::out_of_memory,
               "'" + (words.size() > 1 ? words[1] : "") +
                   "' takes more memory than a process that reads it may have (DLPRIM_READER_MIB)");
    } catch (const std::exception&) {
        return 2;
    }
    return 0;
}
