// SPDX-License-Identifier: MIT
// Names that PyTorch, Keras, ONNX and Caffe have for what this library has under another name:
// operator types, options, arguments and keys of configurations. Messages about a name that is not
// known offer ours, in JSON, Python and C++ alike.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dlprim {

/// The name in lower case without separators: "Max_Pool-2D" becomes "maxpool2d".
std::string plain_name(std::string_view name);

/// An operator type by another name, and the option that belongs to it, if any.
struct TypeSynonym {
    std::string_view name;  ///< as plain_name() makes it
    std::string_view type, option = {};
};
/// The entry of a name in any spelling, or null.
const TypeSynonym* find_type_synonym(std::string_view name);

/// The first of `candidates` that has the meaning of `name` as an option or argument: the same name
/// in another spelling, or a synonym. Empty if there is none.
std::string synonym_among(std::string_view name, std::span<const std::string> candidates);

}  // namespace dlprim
