// SPDX-License-Identifier: MIT
// Kinds of files by their signatures.
#include "base/file_kind.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace dlprim {
namespace {

using namespace std::string_view_literals;

struct Signature {
    std::string_view bytes, kind;
};

constexpr Signature signatures[] = {
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file (weights or data)"},
    {"\x89PNG"sv, "a PNG picture"},
    {"\xff\xd8\xff"sv, "a JPEG picture"},
    {"P5\n"sv, "a PGM picture"},
    {"P6\n"sv, "a PPM picture"},
    {"GIF8"sv, "a GIF picture"},
    {"\x93NUMPY"sv, "a numpy array"},
    {"GGUF"sv, "a GGUF model"},
    {"PK\x03\x04"sv, "a zip file (PyTorch's, Keras's or numpy's)"},
    {"\x1f\x8b"sv, "a gzip file"},
    {"%PDF"sv, "a PDF document"},
    {"\x80\x02"sv, "a pickle of Python"},
    {"\x80\x04"sv, "a pickle of Python"},
};

/// Whether these are the first fields of a ModelProto: its version of the format, and then another
/// of its fields.
bool is_onnx(std::string_view bytes) {
    constexpr std::string_view fields = "\x12\x1a\x22\x28\x32\x3a\x42\x72";
    return bytes.size() > 2 && bytes[0] == '\x08' && bytes[1] > 0 && bytes[1] < 64 &&
           fields.find(bytes[2]) != std::string_view::npos;
}

bool is_json(std::string_view bytes) {
    constexpr std::string_view space = " \t\r\n";
    const std::size_t first = bytes.find_first_not_of(space);
    if (first == std::string_view::npos || (bytes[first] != '{' && bytes[first] != '['))
        return false;
    const std::size_t second = bytes.find_first_not_of(space, first + 1);
    return second != std::string_view::npos &&
           "\"}]{[-0123456789"sv.find(bytes[second]) != std::string_view::npos;
}

}  // namespace

std::string_view kind_of_bytes(std::string_view bytes) {
    for (const Signature& signature : signatures)
        if (bytes.starts_with(signature.bytes)) return signature.kind;
    if (is_onnx(bytes)) return "an ONNX model";
    return is_json(bytes) ? "JSON" : "";
}

bool is_path_like(std::string_view text) {
    constexpr std::size_t longest = 1000;
    if (text.empty() || text.size() > longest ||
        text.find_first_of("{}[]\"\n"sv) != std::string_view::npos)
        return false;
    for (const char* ending : {".json", ".onnx", ".h5", ".hdf5", ".png", ".jpg", ".pt", ".pth"})
        if (text.ends_with(ending)) return true;
    std::error_code error;
    return std::filesystem::exists(std::string(text), error);
}

bool is_device_like(std::string_view word) {
    for (const std::string_view name : {"cpu", "gpu", "gpus", "opencl"})
        if (word == name) return true;
    const std::size_t colon = word.find(':');
    const auto digits = [](std::string_view text) {
        return !text.empty() && std::all_of(text.begin(), text.end(), ascii::is_digit);
    };
    return colon != std::string_view::npos && digits(word.substr(0, colon)) &&
           digits(word.substr(colon + 1));
}

void check_kind(std::string_view bytes, std::string_view name, std::string_view expected) {
    const std::string_view kind = kind_of_bytes(bytes);
    if (!kind.empty() && kind != expected)
        fail(ErrorKind::format, "'", name, "' seems to be ", kind, ", and ", expected,
             " is expected");
}

}  // namespace dlprim
