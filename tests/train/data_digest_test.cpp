// SPDX-License-Identifier: MIT
// data_digest: what it notices, and what it reads.
#include "train/data/data_digest.hpp"
#include "made_up_data.hpp"
#include "support/catch.hpp"

using namespace dlprim;

TEST_CASE("equal data sets have equal digests, and others have others") {
    const MadeUpPictures data(100, 4, 5), same(100, 4, 5);
    CHECK(data_digest(data) == data_digest(same));
    CHECK(data_digest(data) != data_digest(MadeUpPictures(101, 4, 5)));
    CHECK(data_digest(data) != data_digest(MadeUpPictures(100, 5, 4)));
    CHECK(data_digest(data) != data_digest(MadeUpPictures(100, 4, 5, 1)));

    MadeUpPictures masks(100, 4, 5);
    masks.kind = TargetKind::mask;
    CHECK(data_digest(data) != data_digest(masks));
}

TEST_CASE("an example that cannot be read counts, where it is one of the sixteen") {
    const MadeUpPictures data(160, 4, 5);
    MadeUpPictures broken(160, 4, 5);
    broken.broken = {11};
    CHECK(data_digest(data) == data_digest(broken));
    broken.broken = {10};
    CHECK(data_digest(data) != data_digest(broken));
    CHECK_FALSE(data_digest(MadeUpPictures(1, 4, 5)).empty());
    CHECK_FALSE(data_digest(MadeUpPictures(0, 4, 5)).empty());
}
