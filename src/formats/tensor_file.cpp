// SPDX-License-Identifier: MIT
// load_tensors, save_tensors.
#include <dlprim/tensor_file.hpp>

#include "base/text.hpp"
#include "formats/hdf5_file.hpp"

namespace dlprim {

std::map<std::string, HostTensor> load_tensors(const std::string& path) {
    const Hdf5Reader file(path);
    file.check_total();
    std::map<std::string, HostTensor> tensors;
    for (const Hdf5Dataset& dataset : file.datasets())
        tensors[dataset.name] = {dataset.shape, dataset.dtype, file.read(dataset.name)};
    return tensors;
}

void save_tensors(const std::string& path, const std::map<std::string, HostTensor>& tensors) {
    save_tensors({{path, tensors}});
}

void save_tensors(const std::map<std::string, std::map<std::string, HostTensor>>& files) {
    std::vector<Hdf5Writer> writers;
    for (const auto& [path, tensors] : files) {
        Hdf5Writer& file = writers.emplace_back(path);
        for (const auto& [name, tensor] : tensors) {
            const std::uint64_t wanted =
                static_cast<std::uint64_t>(tensor.shape.numel()) * size_of(tensor.dtype);
            require(tensor.data.size() == wanted, "tensor '", name, "' of shape ",
                    tensor.shape.str(), " takes ", wanted, " bytes, its data has ",
                    tensor.data.size());
            file.write(name, tensor.shape, tensor.dtype, tensor.data.data());
        }
    }
    for (Hdf5Writer& file : writers) file.commit();
}

}  // namespace dlprim
