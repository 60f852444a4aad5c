// SPDX-License-Identifier: MIT
// Sessions: logits beside a naive model in double, with what is remembered in every order of pieces
// and single tokens, and what damaged models get.
#include "language/session.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"
#include "tiny_model.hpp"

#include <algorithm>
#include <cmath>
#include <random>

using namespace dlprim;
using namespace dlprim::testing;
using language::Session;

namespace {

std::vector<std::int32_t> random_tokens(std::size_t count, std::int64_t vocabulary) {
    std::mt19937 random(5);
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < count; ++i)
        tokens.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
    return tokens;
}

/// A session on the device of a model whose file is written to the folder.
std::unique_ptr<Session> open(const Context& context, const Folder& folder,
                              const std::string& bytes, std::int64_t piece = 16,
                              std::int64_t most = 600) {
    std::shared_ptr<const language::ModelFile> file =
        language::open_model(folder.write("tiny.gguf", bytes));
    return std::make_unique<Session>(context, file, file->sizes(),
                                     language::SessionOptions{most, piece, {}});
}

void check_near(std::span<const float> got, const std::vector<double>& want,
                double tolerance = 1e-5) {
    REQUIRE(got.size() == want.size());
    double scale = 0, error = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        scale = std::max(scale, std::abs(want[i]));
        error = std::max(error, std::abs(got[i] - want[i]));
    }
    INFO("the largest logit is " << scale << ", the largest error " << error);
    CHECK(error <= tolerance * scale);
}

}  // namespace

TEST_CASE("Logits are those of a naive model, however a text is cut", "[session]") {
    const Folder folder;
    const std::vector<std::int32_t> tokens = random_tokens(70, 300);
    TinySizes llama, qwen2, qwen3;
    llama.tied = false;
    qwen2.architecture = "qwen2";
    qwen2.biases = true;
    qwen3.architecture = "qwen3";
    qwen3.head_norms = true;
    TinySizes q4_1{.width = 32, .hidden = 64, .heads = 4, .head_size = 8}, q6_k, f16;
    q4_1.blocks = "q4_1";
    q6_k = {.width = 256, .hidden = 256, .heads = 8, .head_size = 32, .tied = false};
    q6_k.blocks = "q6_k";
    f16 = q4_1;
    f16.blocks = "f16";
    for (const TinySizes& sizes : {TinySizes{}, llama, qwen2, qwen3, q4_1, q6_k, f16}) {
        const TinyLlama model(sizes);
        const auto expected = model.logits(tokens);
        for (const Context& context : test_devices()) {
            INFO(context.info().str() << ", " << sizes.architecture << ' ' << sizes.blocks);
            const auto session = open(context, folder, model.writer().bytes());
            // Pieces that end in padding, single tokens, and both in turn.
            std::size_t at = 0;
            for (const std::size_t count : {1u, 3u, 16u, 1u, 20u, 1u, 1u, 27u}) {
                const auto logits = session->read(std::span(tokens).subspan(at, count));
                at += count;
                INFO(at << " tokens");
                check_near(logits, expected[at - 1]);
            }
            CHECK(session->past() == 70);
            session->forget_from(3);
            check_near(session->read(std::span(tokens).subspan(3, 5)), expected[7]);
        }
    }
}

TEST_CASE("What is remembered outgrows its first capacity", "[session]") {
    const Folder folder;
    const std::vector<std::int32_t> tokens = random_tokens(600, 300);
    const TinyLlama model(TinySizes{});
    const auto expected = model.logits(tokens);
    const Context host("cpu");
    const auto session = open(host, folder, model.writer().bytes(), 100);
    check_near(session->read(std::span(tokens).first(250)), expected[249]);
    check_near(session->read(std::span(tokens).subspan(250, 30)), expected[279]);
    check_near(session->read(std::span(tokens).subspan(280, 320)), expected[599]);
    check_error(ErrorKind::invalid_argument, {"601 tokens", "600"},
                [&] { session->read(std::span(tokens).first(1)); });
    session->forget_from(0);
    check_near(session->read(std::span(tokens).first(1)), expected[0]);
}

TEST_CASE("Sequences are read beside each other", "[session]") {
    const Folder folder;
    const std::vector<std::int32_t> tokens = random_tokens(120, 300);
    const TinyLlama model(TinySizes{});
    const auto expected = model.logits(tokens);
    // Sequence s has the tokens from 10 s on.
    const auto rest = [&](std::size_t s) {
        return std::vector<std::int32_t>(tokens.begin() + static_cast<std::ptrdiff_t>(10 * s),
                                         tokens.end());
    };
    std::vector<std::vector<std::vector<double>>> wanted;
    for (std::size_t s = 0; s < 3; ++s) wanted.push_back(model.logits(rest(s)));
    for (const Context& context : test_devices()) {
        INFO(context.info().str());
        const std::shared_ptr<const language::ModelFile> file =
            language::open_model(folder.write("tiny.gguf", model.writer().bytes()));
        Session session(context, file, file->sizes(), {600, 16, {}, 3});
        for (const std::size_t s : {2, 0, 1}) {
            const std::vector<std::int32_t> own = rest(s);
            const std::size_t count = 5 + 20 * s;
            check_near(session.read(std::span(own).first(count), static_cast<int>(s)),
                       wanted[s][count - 1]);
        }
        for (const std::vector<std::int64_t>& group :
             std::vector<std::vector<std::int64_t>>{{0, 1, 2}, {2, 0}, {1}, {2, 1, 0}}) {
            std::vector<Session::Next> next;
            for (const std::int64_t s : group)
                next.push_back({s, rest(static_cast<std::size_t>(
                                       s))[static_cast<std::size_t>(session.past(s))]});
            const std::span<const float> logits = session.read_next(next);
            REQUIRE(logits.size() == 300 * group.size());
            for (std::size_t i = 0; i < group.size(); ++i) {
                const auto first = logits.begin() + static_cast<std::ptrdiff_t>(300 * i);
                check_near({first, first + 300},
                           wanted[static_cast<std::size_t>(group[i])]
                                 [static_cast<std::size_t>(session.past(group[i]) - 1)]);
            }
        }
        session.share(0, 2, 4);
        CHECK(session.past(2) == 4);
        check_near(session.read(std::span(tokens).subspan(4, 1), 2), expected[4]);
        check_error(ErrorKind::invalid_argument, {"sequence 3", "3"}, [&] { session.past(3); });
        const std::vector<Session::Next> twice{{1, 5}, {1, 6}};
        check_error(ErrorKind::invalid_argument, {"sequence 1", "twice"},
                    [&] { session.read_next(twice); });
    }
}

TEST_CASE("Logits of a sequence are the same bits whatever others read", "[session]") {
    const Folder folder;
    const std::vector<std::int32_t> tokens = random_tokens(300, 300);
    const TinyLlama model(TinySizes{});
    for (const Context& context : test_devices()) {
        INFO(context.info().str());
        const std::shared_ptr<const language::ModelFile> file =
            language::open_model(folder.write("tiny.gguf", model.writer().bytes()));
        Session session(context, file, file->sizes(), {600, 16, {}, 5});
        // Reads 40 tokens, and then ten of which each is a row of a step at this place.
        const auto read = [&](std::int64_t sequence, std::size_t row, bool others) {
            session.forget_from(0, sequence);
            session.read(std::span(tokens).first(40), sequence);
            std::vector<float> all;
            for (std::size_t i = 40; i < 50; ++i) {
                std::vector<Session::Next> next;
                for (std::int64_t s = 0; others && s < 5; ++s)
                    if (s != sequence) next.push_back({s, tokens[i + static_cast<std::size_t>(s)]});
                next.insert(next.begin() + static_cast<std::ptrdiff_t>(row), {sequence, tokens[i]});
                const std::span<const float> logits = session.read_next(next);
                all.insert(all.end(), logits.begin() + static_cast<std::ptrdiff_t>(300 * row),
                           logits.begin() + static_cast<std::ptrdiff_t>(300 * (row + 1)));
            }
            return all;
        };
        const std::vector<float> alone = read(1, 0, false);
        session.read(std::span(tokens).first(30), 3);
        CHECK(read(1, 3, true) == alone);
        session.read(std::span(tokens).first(250), 0);  // needs more capacity
        CHECK(read(4, 2, true) == alone);
        CHECK(read(1, 0, false) == alone);
    }
}

TEST_CASE("Keys and values may be remembered in 16 bits", "[session]") {
    const Folder folder;
    const std::vector<std::int32_t> tokens = random_tokens(60, 300);
    const TinyLlama model(TinySizes{});
    const auto expected = model.logits(tokens);
    for (const Context& context : test_devices()) {
        INFO(context.info().str());
        const std::shared_ptr<const language::ModelFile> file =
            language::open_model(folder.write("tiny.gguf", model.writer().bytes()));
        Session session(context, file, file->sizes(), {600, 16, {}, 1, true});
        session.read(std::span(tokens).first(40));
        check_near(session.read(std::span(tokens).subspan(40, 1)), expected[40], 3e-3);
    }
}

TEST_CASE("What was read after a token that is forgotten does not matter", "[session]") {
    const Folder folder;
    const std::vector<std::int32_t> tokens = random_tokens(40, 300);
    const Context host("cpu");
    const auto session = open(host, folder, TinyLlama(TinySizes{}).writer().bytes());
    const auto read = [&] {
        const std::span<const float> logits = session->read(tokens);
        return std::vector<float>(logits.begin(), logits.end());
    };
    const std::vector<float> first = read();
    session->forget_from(0);
    session->read(random_tokens(17, 30));
    session->forget_from(0);
    CHECK(read() == first);
}

TEST_CASE("Tokens and sizes that make no sense are errors", "[session]") {
    const Folder folder;
    const Context host("cpu");
    const TinyLlama model(TinySizes{});
    const auto session = open(host, folder, model.writer().bytes());
    check_error(ErrorKind::invalid_argument, {"no tokens"}, [&] { session->read({}); });
    for (const std::int32_t token : {-1, 300})
        check_error(ErrorKind::invalid_argument, {"token " + std::to_string(token), "300"},
                    [&] { session->read(std::span(&token, 1)); });
    check_error(ErrorKind::invalid_argument, {"context of 601", "600"},
                [&] { open(host, folder, model.writer().bytes(), 16, 601); });
}

TEST_CASE("A model that lacks a weight, or has one of another shape, is an error", "[session]") {
    const Folder folder;
    const Context host("cpu");
    const std::string whole = TinyLlama(TinySizes{}).writer().bytes();
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string bytes = whole;
        bytes.replace(bytes.find(from), from.size(), to);
        return bytes;
    };
    check_error(ErrorKind::format, {"blk.1.ffn_up.weight", "llama"},
                [&] { open(host, folder, with("blk.1.ffn_up", "blk.1.ffn_xx")); });
    check_error(ErrorKind::unsupported, {"'lxama'", "llama"},
                [&] { open(host, folder, with("llama", "lxama")); });
    check_error(ErrorKind::format, {"llama.block_count"},
                [&] { open(host, folder, with("llama.block_count", "llama.block_xount")); });
    TinySizes sizes;
    sizes.hidden = 41;
    std::string other = TinyLlama(sizes).writer().bytes();
    const std::string name = "llama.feed_forward_length";
    other[other.find(name) + name.size() + 4] = 40;
    check_error(ErrorKind::format, {"blk.0.ffn_", "41", "40"}, [&] { open(host, folder, other); });
}
