// SPDX-License-Identifier: MIT
// Views: tensor[index], reshape, transpose. They share the tensor's memory.
#include "tensor.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <vector>

namespace dlprim::python {
namespace {

[[noreturn]] void bad_index(const std::string& message) {
    throw nb::index_error(message.c_str());
}

std::int64_t to_int(nb::handle object) {
    const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), PyExc_IndexError);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    return value;
}

/// Goes through an index and a tensor's dimensions side by side.
class Indexing {
  public:
    explicit Indexing(const Tensor& tensor) : tensor_(tensor) {}

    Tensor view(nb::handle index) {
        const nb::tuple items =
            PyTuple_Check(index.ptr()) ? nb::borrow<nb::tuple>(index) : nb::make_tuple(index);
        const int named = count_dimensions(items);
        const int rank = tensor_.shape().rank();
        if (named > rank)
            bad_index("an index of " + std::to_string(named) +
                      " dimensions is too long for shape " + tensor_.shape().str());
        for (nb::handle item : items) {
            if (item.is(Py_Ellipsis))
                take_whole(rank - named);
            else
                take(item);
        }
        take_whole(rank - dim_);
        return tensor_.view(Shape(sizes_), strides_, offset_);
    }

  private:
    int count_dimensions(const nb::tuple& items) {
        int named = 0, ellipses = 0;
        for (nb::handle item : items) {
            if (item.is(Py_Ellipsis))
                ++ellipses;
            else if (!item.is_none())
                ++named;
        }
        if (ellipses > 1) bad_index("an index can hold one Ellipsis ('...') only");
        return named;
    }

    void take(nb::handle item) {
        if (item.is_none()) {
            push(1, 0);
        } else if (PySlice_Check(item.ptr())) {
            take_slice(item);
        } else if (is_int(item) && !PyBool_Check(item.ptr())) {
            take_int(to_int(item));
        } else {
            const std::string message =
                "a tensor is indexed by ints, slices, None and '...', not " + kind_of(item) +
                "; tensor.numpy()[index] takes arrays";
            throw nb::type_error(message.c_str());
        }
    }

    void take_int(std::int64_t index) {
        const std::int64_t size = tensor_.shape()[dim_];
        if (index < -size || index >= size)
            bad_index("index " + std::to_string(index) + " is out of range for dimension " +
                      std::to_string(dim_) + " of shape " + tensor_.shape().str());
        offset_ += (index < 0 ? index + size : index) * stride();
        ++dim_;
    }

    void take_slice(nb::handle slice) {
        Py_ssize_t begin = 0, end = 0, step = 0;
        if (PySlice_Unpack(slice.ptr(), &begin, &end, &step) < 0) throw nb::python_error();
        if (step < 0)
            throw Error(ErrorKind::invalid_argument,
                        "a view cannot run backwards, as a slice of step " + std::to_string(step) +
                            " asks for; tensor.numpy()[...] can");
        const Py_ssize_t size = PySlice_AdjustIndices(
            static_cast<Py_ssize_t>(tensor_.shape()[dim_]), &begin, &end, step);
        if (size > 0) offset_ += begin * stride();
        // A single element needs no step, which might be larger than any memory.
        push(size, size > 1 ? step * stride() : stride());
        ++dim_;
    }

    void take_whole(int dimensions) {
        for (; dimensions > 0; --dimensions, ++dim_) push(tensor_.shape()[dim_], stride());
    }

    std::int64_t stride() const { return tensor_.strides()[static_cast<std::size_t>(dim_)]; }

    void push(std::int64_t size, std::int64_t stride) {
        sizes_.push_back(size);
        strides_.push_back(stride);
    }

    const Tensor& tensor_;
    int dim_ = 0;
    std::vector<std::int64_t> sizes_, strides_;
    std::int64_t offset_ = 0;
};

/// Sizes of which one may be -1 and is then deduced.
Shape deduced(const Shape& from, nb::handle sizes) {
    std::vector<std::int64_t> dims;
    std::int64_t known = 1;
    int unknown = -1;
    for (nb::handle size : nb::borrow<nb::object>(sizes)) {
        const std::int64_t value = is_int(size) ? to_int(size) : to_shape(size)[0];
        if (value == -1) {
            if (unknown >= 0)
                throw Error(ErrorKind::invalid_argument, "reshape takes one size of -1 at most");
            unknown = static_cast<int>(dims.size());
        }
        dims.push_back(value == -1 ? 1 : value);
    }
    known = Shape(dims).numel();
    if (unknown < 0) return Shape(dims);
    if (known == 0 || from.numel() % known != 0)
        throw Error(ErrorKind::invalid_argument,
                    "no size in place of -1 gives " + Shape(dims).str() + " the " +
                        std::to_string(from.numel()) + " elements of " + from.str());
    return Shape(dims).with(unknown, from.numel() / known);
}

Tensor reshaped(const Tensor& tensor, const nb::args& arguments) {
    nb::object sizes = one_or_many(arguments);
    if (is_int(sizes)) sizes = nb::make_tuple(sizes);
    if (PyUnicode_Check(sizes.ptr()) || !PySequence_Check(sizes.ptr()))
        wrong_type("a shape", "an int or a sequence of ints", sizes);
    const Shape shape = deduced(tensor.shape(), sizes);
    if (tensor.contiguous() || shape.numel() != tensor.shape().numel())
        return tensor.reshape(shape);
    throw Error(ErrorKind::invalid_argument,
                "a strided view of shape " + tensor.shape().str() + " cannot be seen as " +
                    shape.str() + " without a copy; tensor.to_contiguous().reshape(...) makes one");
}

std::vector<int> permutation(const nb::tuple& arguments, int rank) {
    std::vector<int> dims;
    if (arguments.size() == 0) {
        for (int i = rank - 1; i >= 0; --i) dims.push_back(i);
        return dims;
    }
    nb::object given = one_or_many(arguments);
    if (is_int(given)) given = nb::make_tuple(given);
    std::vector<bool> seen(static_cast<std::size_t>(rank));
    bool valid = PySequence_Check(given.ptr()) != 0;
    if (!valid) wrong_type("a permutation of dimensions", "a sequence of ints", given);
    for (nb::handle item : given) {
        if (!is_int(item)) wrong_type("a dimension", "an int", item);
        const std::int64_t dim = to_int(item);
        valid = valid && dim >= -rank && dim < rank;
        if (!valid) break;
        const auto place = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
        valid = !seen[place];
        seen[place] = true;
        dims.push_back(static_cast<int>(place));
    }
    if (!valid || static_cast<int>(dims.size()) != rank)
        throw Error(ErrorKind::invalid_argument,
                    "transpose takes every dimension once, from 0 to " + std::to_string(rank - 1) +
                        ", or none to reverse them");
    return dims;
}

Tensor reordered(const Tensor& tensor, const nb::tuple& dims) {
    std::vector<std::int64_t> sizes, strides;
    for (const int dim : permutation(dims, tensor.shape().rank())) {
        sizes.push_back(tensor.shape()[dim]);
        strides.push_back(tensor.strides()[static_cast<std::size_t>(dim)]);
    }
    return tensor.view(Shape(sizes), strides);
}

Tensor transposed(const Tensor& tensor, const nb::args& arguments) {
    return reordered(tensor, arguments);
}

Tensor swapped(const Tensor& tensor, int dim0, int dim1) {
    return tensor.transpose(dim0, dim1);
}

Py_ssize_t length(const Tensor& tensor) {
    if (tensor.shape().rank() == 0)
        throw nb::type_error("a tensor without dimensions has no length");
    return tensor.shape()[0];
}

nb::object iterator(nb::handle self) {
    const Py_ssize_t size = length(nb::cast<const Tensor&>(self));
    nb::module_ builtins = nb::module_::import_("builtins");
    return builtins.attr("map")(self.attr("__getitem__"), builtins.attr("range")(size));
}

void assign(const Tensor& tensor, nb::handle index, nb::handle value) {
    Tensor view = indexed(tensor, index);
    if (is_number(value))
        fill(view, value);
    else
        copy_from(view, value);
}

}  // namespace

nb::object one_or_many(const nb::tuple& arguments) {
    if (arguments.size() == 1) return arguments[0];
    return nb::borrow<nb::object>(arguments);
}

Tensor indexed(const Tensor& tensor, nb::handle index) {
    return Indexing(tensor).view(index);
}

void bind_views(TensorClass& type) {
    type.def("__len__", &length)
        .def("__iter__", &iterator,
             nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"))
        .def("__getitem__", &indexed, nb::arg("index").none(),
             nb::sig("def __getitem__(self, index: typing.Any, /) -> Tensor"),
             R"(Return a view, as numpy's basic indexing does.

index: ints, slices with a step of 1 or more, None (a dimension of size 1) and '...', one or a tuple.
Negative ints count from the end. Arrays and negative steps are for tensor.numpy()[index].)")
        .def("__setitem__", &assign, nb::arg("index").none(), nb::arg("value").none(),
             nb::sig("def __setitem__(self, index: typing.Any, value: numpy.typing.ArrayLike | "
                     "Tensor, /)"
                     " -> None"),
             "Overwrite a view with a number, or with values of its shape; waits for the device.")
        .def("reshape", &reshaped, nb::arg("shape").none(),
             nb::sig("def reshape(self, *shape: int | collections.abc.Sequence[int]) -> Tensor"),
             R"(Return a view of another shape with as many elements.

One size may be -1, which stands for what is left. Raises InvalidArgumentError for strided views,
which to_contiguous() copies.)")
        .def("transpose", &transposed, nb::arg("dims"),
             nb::sig("def transpose(self, *dims: int | collections.abc.Sequence[int]) -> Tensor"),
             "Return a view with the dimensions in another order; without arguments, reversed.")
        .def("swapaxes", &swapped, nb::arg("dim0"), nb::arg("dim1"),
             "Return a view with two dimensions swapped.")
        .def_prop_ro(
            "T", [](const Tensor& self) { return reordered(self, nb::tuple()); },
            "A view with the dimensions reversed.");
}

}  // namespace dlprim::python
