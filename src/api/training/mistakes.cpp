// SPDX-License-Identifier: MIT
// The worst mistakes as JSON.
#include "api/training/mistakes.hpp"

#include "api/report/page.hpp"
#include "api/training/pictures.hpp"
#include "base/base64.hpp"
#include "base/text.hpp"
#include "formats/image/decode.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace dlprim {

namespace {

using MistakesJson = nlohmann::ordered_json;

constexpr std::int64_t longest_side = 96;
constexpr std::size_t most_picture_bytes = 1500000;  ///< of all pictures of a page, as text

/// The picture as a PNG in a URL, at most longest_side pixels wide and high.
std::string data_url(const Image& image, bool grey) {
    Image picture = image;
    const double scale = static_cast<double>(longest_side) /
                         static_cast<double>(std::max(image.width, image.height));
    if (scale < 1) {
        const auto scaled = [&](std::int64_t side) {
            return std::max<std::int64_t>(1, std::lround(static_cast<double>(side) * scale));
        };
        picture.width = scaled(image.width);
        picture.height = scaled(image.height);
        const std::vector<float> pixels = resized(
            image, {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)},
            picture.width, picture.height);
        picture.pixels.resize(pixels.size());
        std::transform(pixels.begin(), pixels.end(), picture.pixels.begin(), [](float value) {
            return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
        });
    }
    if (grey) make_grey(picture);
    return "data:image/png;base64," + to_base64(encode_png(picture));
}

/// Draws the inputs of mistakes.
class MistakePictures {
  public:
    MistakePictures(const Dataset& data, const AugmentOptions& augmentation)
        : data_(data), augmenter_(data, augmentation, 0, false) {}

    /// The input; for masks, also the input below its mask and below what was found.
    MistakesJson draw(const Mistake& mistake) const {
        const Shape& shape = augmenter_.shape();
        const bool masked = data_.target_kind() == TargetKind::mask;
        std::vector<float> values(static_cast<std::size_t>(shape.numel()));
        std::vector<std::int32_t> mask(masked ? static_cast<std::size_t>(shape[1] * shape[2])
                                              : std::size_t{0});
        augmenter_.make(data_, mistake.index, 0, values.data(), masked ? mask.data() : nullptr);
        const Image image = picture_of(values, shape, augmenter_.options());
        const auto below = [&](const std::vector<std::int32_t>& over) {
            Image copy = image;
            lay_over(copy, over);
            return data_url(copy, false);
        };
        MistakesJson urls = {data_url(image, shape[0] == 1)};
        if (masked && mistake.mask.size() == mask.size()) {
            urls.push_back(below(mask));
            urls.push_back(below(mistake.mask));
        }
        return urls;
    }

  private:
    const Dataset& data_;
    Augmenter augmenter_;
};

}  // namespace

nlohmann::ordered_json mistakes_json(const std::vector<Mistake>& mistakes, const Dataset& data,
                                     const AugmentOptions& augmentation) {
    std::optional<MistakePictures> pictures;
    if (data.has_pictures()) pictures.emplace(data, augmentation);
    std::size_t bytes = 0;
    MistakesJson list = MistakesJson::array();
    for (const Mistake& mistake : mistakes) {
        MistakesJson shown = {{"name", data.name(mistake.index)},
                              {"wrong", short_number(mistake.wrong)},
                              {"target", mistake.target},
                              {"predicted", mistake.predicted},
                              {"output", short_number(mistake.output)},
                              {"wanted", short_number(mistake.wanted)}};
        if (pictures && bytes < most_picture_bytes) {
            try {
                MistakesJson urls = pictures->draw(mistake);
                std::size_t more = 0;
                for (const MistakesJson& url : urls)
                    more += url.get_ref<const std::string&>().size();
                bytes += more;
                if (bytes < most_picture_bytes) shown["pictures"] = std::move(urls);
            } catch (const Error&) {
                // The name says which example it is.
            }
        }
        list.push_back(std::move(shown));
    }
    return list;
}

}  // namespace dlprim
