// SPDX-License-Identifier: MIT
// Loader: batches do not depend on threads or on what was read before; broken examples; errors; who
// waits.
#include "train/data/loader.hpp"
#include "made_up_data.hpp"
#include "support/catch.hpp"

#include <dlprim/error.hpp>

#include <numeric>

using namespace dlprim;

namespace {

std::vector<std::int64_t> members_of(const Dataset& data) {
    std::vector<std::int64_t> members(static_cast<std::size_t>(data.size()));
    std::iota(members.begin(), members.end(), std::int64_t{0});
    return members;
}

AugmentOptions many_changes() {
    AugmentOptions how;
    how.resized_crop = how.flip = true;
    how.crop_height = how.crop_width = 6;
    how.brightness = how.contrast = how.saturation = 0.3;
    how.cutout = 2;
    return how;
}

LoaderOptions training(int threads, bool skip = false) {
    LoaderOptions options;
    options.batch = 4;
    options.threads = threads;
    options.skip_broken = skip;
    return options;
}

LoaderOptions testing(int threads, bool skip = false) {
    LoaderOptions options = training(threads, skip);
    options.training = false;
    return options;
}

bool same(const Batch& a, const Batch& b) {
    return a.epoch == b.epoch && a.number == b.number && a.examples == b.examples &&
           a.inputs == b.inputs && a.labels == b.labels && a.targets == b.targets;
}

}  // namespace

TEST_CASE("batches depend neither on threads nor on what was read before") {
    const auto data = std::make_shared<MadeUpPictures>(23, 12, 10);
    std::vector<Batch> first;
    for (const int threads : {1, 2, 7}) {
        Loader loader(data, members_of(*data), many_changes(), training(threads));
        CHECK(loader.batches() == 5);
        for (std::size_t i = 0; i < 12; ++i) {
            const Batch& batch = loader.next();
            CHECK(batch.epoch == static_cast<std::int64_t>(i / 5));
            CHECK(batch.count == 4);
            if (threads == 1)
                first.push_back(batch);
            else
                CHECK(same(batch, first[i]));
        }
        loader.start(1, 2);
        CHECK(same(loader.next(), first[7]));
        CHECK(same(loader.next(), first[8]));
        loader.start(0, 1);
        CHECK(same(loader.next(), first[1]));
    }
    CHECK(first[0].examples != first[5].examples);
}

TEST_CASE("testing goes through all examples in their order") {
    const auto data = std::make_shared<MadeUpPictures>(10, 6, 6);
    Loader loader(data, {1, 3, 5, 7, 8, 9}, {}, testing(3));
    CHECK(loader.batches() == 2);
    for (int pass = 0; pass < 3; ++pass) {
        CHECK(loader.next().examples == std::vector<std::int64_t>{1, 3, 5, 7});
        const Batch& last = loader.next();
        CHECK(last.count == 2);
        CHECK(last.labels == std::vector<std::int32_t>{8, 9});
        CHECK(last.inputs.size() == 2 * 3 * 6 * 6);
        CHECK(last.inputs[36] == static_cast<float>(data->pixel(8, 0, 0, 1) / 255.0));
    }
}

TEST_CASE("broken examples are replaced in training and left out in testing") {
    const auto data = std::make_shared<MadeUpPictures>(16, 6, 6);
    data->broken = {2, 3, 11};
    std::vector<Batch> first;
    for (const int threads : {1, 5}) {
        Loader loader(data, members_of(*data), {}, training(threads, true));
        for (std::size_t i = 0; i < 8; ++i) {
            const Batch& batch = loader.next();
            CHECK(batch.count == 4);
            for (const std::int64_t index : batch.examples) CHECK(!data->broken.count(index));
            if (threads == 1)
                first.push_back(batch);
            else
                CHECK(same(batch, first[i]));
        }
        CHECK(loader.broken().size() == 3);
        CHECK(loader.broken().at(11) == "picture 11 is broken");
    }
    Loader loader(data, members_of(*data), {}, testing(2, true));
    CHECK(loader.next().examples == std::vector<std::int64_t>{0, 1});
    CHECK(loader.next().examples == std::vector<std::int64_t>{4, 5, 6, 7});
    const Batch& third = loader.next();
    CHECK(third.labels == std::vector<std::int32_t>{8, 9, 10});
    CHECK(third.inputs[0] == static_cast<float>(data->pixel(8, 0, 0, 0) / 255.0));
    CHECK(third.inputs[2 * 108] == static_cast<float>(data->pixel(10, 0, 0, 0) / 255.0));
}

TEST_CASE("an error arrives with the batch that it belongs to") {
    const auto data = std::make_shared<MadeUpPictures>(12, 6, 6);
    data->broken = {6, 7};
    for (const int threads : {1, 4}) {
        Loader loader(data, members_of(*data), {}, testing(threads));
        CHECK(loader.next().count == 4);
        CHECK_THROWS_WITH(loader.next(), "picture 6 is broken");
        CHECK(loader.next().examples.front() == 8);
    }
    data->broken = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    Loader loader(data, members_of(*data), {}, training(2, true));
    CHECK_THROWS_WITH(loader.next(), ContainsSubstring("100 examples of 'made up'"));
}

TEST_CASE("a loader that is dropped early ends") {
    const auto data = std::make_shared<MadeUpPictures>(64, 6, 6);
    data->delay = std::chrono::milliseconds(1);
    for (int i = 0; i < 5; ++i) {
        Loader loader(data, members_of(*data), {}, training(3));
        if (i > 0) loader.next();
        if (i > 2) loader.start(3, 1);
    }
}

TEST_CASE("who waited is told", "[timing]") {
    const auto data = std::make_shared<MadeUpPictures>(64, 6, 6);
    {
        Loader loader(data, members_of(*data), {}, training(2));
        for (int i = 0; i < 4; ++i) {
            loader.next();
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        loader.next();
        CHECK(loader.waits().for_device > 0.15);
        CHECK(loader.waits().for_device > loader.waits().for_data);
    }
    data->delay = std::chrono::milliseconds(5);
    Loader loader(data, members_of(*data), {}, training(2));
    for (int i = 0; i < 4; ++i) loader.next();
    CHECK(loader.waits().for_data > 0.02);
    CHECK(loader.waits().for_data > loader.waits().for_device);
}

TEST_CASE("waiting in words") {
    CHECK(text_of({0.4, 0.9}).empty());
    CHECK(text_of({0.44, 12}) ==
          "the device waited 0.4 s for data, and data waited 12.0 s for the device");
}

TEST_CASE("mixup makes means of inputs and of targets") {
    const auto data = std::make_shared<MadeUpPictures>(12, 6, 6);
    AugmentOptions how;
    how.mixup = 0.4;
    LoaderOptions options = training(2);
    CHECK_THROWS_AS(Loader(data, members_of(*data), how, options), Error);
    options.one_hot = true;
    options.classes = 12;
    Loader mixed(data, members_of(*data), how, options),
        again(data, members_of(*data), how, options);
    Loader plain(data, members_of(*data), {}, options);
    for (int i = 0; i < 6; ++i) {
        const Batch& a = mixed.next();
        const Batch& b = plain.next();
        CHECK(same(a, again.next()));
        const float weight = a.targets[static_cast<std::size_t>(b.labels[0])];
        CHECK(weight >= 0);
        CHECK(weight <= 1);
        CHECK(a.targets[static_cast<std::size_t>(b.labels[3])] == Approx(1 - weight).margin(1e-6));
        for (const std::size_t k : {0u, 50u, 107u})
            CHECK(a.inputs[k] ==
                  Approx(weight * b.inputs[k] + (1 - weight) * b.inputs[3 * 108 + k]).margin(1e-5));
    }
}

TEST_CASE("too few examples") {
    const auto data = std::make_shared<MadeUpPictures>(3, 6, 6);
    CHECK_THROWS_WITH(Loader(data, members_of(*data), {}, training(1)),
                      ContainsSubstring("fewer than a batch of 4"));
}
