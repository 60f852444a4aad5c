// SPDX-License-Identifier: MIT
// Weights in files beside the model: only inside its folder, and of the size that they need.
#include "onnx/support.hpp"

using namespace onnx_test;
using dlprim::ErrorKind;

namespace {

std::string entry(const std::string& key, const std::string& text) {
    return bytes(13, bytes(1, key) + bytes(2, text));
}

/// y = x + w, where w, of three floats, lies in another file.
Model sum(const std::string& location, const std::string& more = {}) {
    Model model{.nodes = {node("Add", {"x", "w"}, {"y"})},
                .inputs = {value("x", {2, 3})},
                .outputs = {value("y", {2, 3})},
                .initializers = {dims({3}) + number(2, type_float) + bytes(8, "w") +
                                 entry("location", location) + more + number(14, 1)}};
    return model;
}

std::string why(const Folder& folder, const Model& model) {
    return dlprim::testing::message_of(
        [&] { dlprim::ONNXModel loaded(folder.write("model.onnx", model.str())); });
}

}  // namespace

TEST_CASE("external data is read from where it says") {
    const Folder folder;
    fs::create_directories(folder.path() / "weights");
    folder.write("weights/w.bin", "pad!" + raw<float>({1, 2, 3}));
    const Model model = sum("weights/w.bin", entry("offset", "4") + entry("length", "12"));
    dlprim::Net net = dlprim::Net::from_onnx_file(dlprim::Context("cpu"),
                                                  folder.write("model.onnx", model.str()));
    CHECK(run(net, {{"x", {0, 0, 0, 10, 10, 10}}}) == Values{1, 2, 3, 11, 12, 13});
}

TEST_CASE("external data that is missing or of another size is an error") {
    const Folder folder;
    folder.write("w.bin", raw<float>({1, 2, 3}));
    CHECK(has(why(folder, sum("none.bin")), "tensor 'w' lies in another file"));
    CHECK(has(why(folder, sum("w.bin", entry("length", "8"))),
              "takes 12 bytes, its external data has 8"));
    CHECK(has(why(folder, sum("w.bin", entry("offset", "4"))),
              "takes 12 bytes from byte 4 of 'w.bin', which has 12"));
    CHECK(
        has(why(folder, sum("w.bin", entry("offset", "18446744073709551615"))), "takes 12 bytes"));
    CHECK(has(why(folder, sum("w.bin", entry("offset", "99999999999999999999"))), "which has 12"));
    CHECK(has(why(folder, sum("w.bin", entry("offset", "-4"))), "the offset '-4'"));
    CHECK(has(why(folder, sum("w.bin", entry("length", "12 bytes"))), "is no number"));
}

TEST_CASE("external data stays inside the model's folder") {
    const Folder folder;
    const std::string outside = "outside the model's folder";
    CHECK(has(why(folder, sum("../w.bin")), outside));
    CHECK(has(why(folder, sum("/etc/passwd")), outside));
    CHECK(has(why(folder, sum("")), outside));
    CHECK(has(why(folder, sum("a/../../w.bin")), outside));
    fs::create_symlink("/etc", folder.path() / "link");
    CHECK(has(why(folder, sum("link/passwd")), outside));
    CHECK_THROWS_AS(dlprim::onnx::parse_model(sum("w.bin").str(), "memory"), dlprim::Error);
}
