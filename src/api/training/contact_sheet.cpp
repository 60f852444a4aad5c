// SPDX-License-Identifier: MIT
// Drawing contact sheets.
#include "api/training/contact_sheet.hpp"

#include "api/training/pictures.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace dlprim {

namespace {

constexpr std::int64_t gap = 4;          ///< pixels around each picture
constexpr std::int64_t least_side = 64;  ///< small pictures are enlarged
constexpr std::int64_t most_side = 160;  ///< large ones are made smaller
constexpr std::uint8_t background = 255;

struct SheetRow {
    std::string title;
    std::vector<std::int64_t> members;
};

/// A row for each class, or rows of the first examples.
std::vector<SheetRow> rows_of(const DataPart& part, std::int64_t rows, std::int64_t columns) {
    const Dataset& data = *part.data;
    std::vector<SheetRow> result;
    const auto width = static_cast<std::size_t>(columns);
    if (data.target_kind() != TargetKind::label) {
        for (const std::int64_t index : part.members) {
            if (result.empty() || result.back().members.size() == width) {
                if (static_cast<std::int64_t>(result.size()) == rows) break;
                result.push_back({data.name(index), {}});
            }
            result.back().members.push_back(index);
        }
        return result;
    }
    std::map<std::int32_t, SheetRow> by_class;
    for (const std::int64_t index : part.members) {
        const std::int32_t label = data.label(index);
        SheetRow& row = by_class[label];
        if (row.members.size() < width) row.members.push_back(index);
        const auto& names = data.classes();
        const bool named = label >= 0 && static_cast<std::size_t>(label) < names.size();
        if (row.title.empty())
            row.title = named ? names[static_cast<std::size_t>(label)] : cat(label);
    }
    for (auto& [label, row] : by_class)
        if (static_cast<std::int64_t>(result.size()) < rows) result.push_back(std::move(row));
    return result;
}

/// Puts a picture into the cell of a sheet.
void put(const Image& picture, std::int64_t top, std::int64_t left, std::int64_t height,
         std::int64_t width, Image& sheet) {
    const ImageBox all{0, 0, static_cast<double>(picture.width),
                       static_cast<double>(picture.height)};
    const std::vector<float> pixels = resized(picture, all, width, height);
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < 3 * width; ++x)
            sheet.pixels[static_cast<std::size_t>(((top + y) * sheet.width + left) * 3 + x)] =
                static_cast<std::uint8_t>(
                    std::lround(pixels[static_cast<std::size_t>(3 * y * width + x)]));
}

}  // namespace

ContactSheet draw_contact_sheet(const DataPart& part, const Augmenter& augmenter, std::int64_t rows,
                                std::int64_t columns) {
    const std::vector<SheetRow> wanted = rows_of(part, rows, columns);
    const Shape& shape = augmenter.shape();
    const double longer = static_cast<double>(std::max(shape[1], shape[2]));
    const double scale = longer < least_side  ? std::ceil(least_side / longer)
                         : longer > most_side ? most_side / longer
                                              : 1.0;
    const auto scaled = [&](std::int64_t side) {
        return std::max<std::int64_t>(1, std::lround(static_cast<double>(side) * scale));
    };
    const std::int64_t height = scaled(shape[1]), width = scaled(shape[2]);
    ContactSheet sheet;
    for (const SheetRow& row : wanted)
        sheet.columns = std::max(sheet.columns, static_cast<std::int64_t>(row.members.size()));
    sheet.image.width = sheet.columns * (width + gap) + gap;
    sheet.image.height = static_cast<std::int64_t>(wanted.size()) * (height + gap) + gap;
    sheet.image.pixels.assign(static_cast<std::size_t>(sheet.image.width * sheet.image.height * 3),
                              background);
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    std::vector<std::int32_t> mask;
    if (part.data->target_kind() == TargetKind::mask)
        mask.resize(static_cast<std::size_t>(shape[1] * shape[2]));
    std::int64_t top = gap;
    for (const SheetRow& row : wanted) {
        std::int64_t left = gap;
        for (const std::int64_t index : row.members) {
            try {
                augmenter.make(*part.data, index, 0, values.data(),
                               mask.empty() ? nullptr : mask.data());
                Image picture = picture_of(values, shape, augmenter.options());
                lay_over(picture, mask);
                put(picture, top, left, height, width, sheet.image);
            } catch (const Error&) {
                // A broken example leaves its place empty; the summary says why.
            }
            left += width + gap;
        }
        top += height + gap;
        sheet.rows.push_back(row.title);
    }
    if (shape[0] == 1 && mask.empty()) make_grey(sheet.image);
    return sheet;
}

}  // namespace dlprim
