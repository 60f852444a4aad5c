#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Networks that are refused: what the file holds, and the words that the sentence about it must have."""
import json
import re

from commands import CommandTest, main, network, operator


def changed(change):
    """The text of a good network after `change` of its tree."""
    net = network({"x": [2, 3, 8, 8]}, ["y"], operator("Convolution2D", "conv", "x", channels_out=4, kernel=3),
                  operator("Activation", "act", "conv", "y", activation="relu"))
    change(net)
    return json.dumps(net, indent=1)


def conv(**options):
    return changed(lambda net: net["operators"][0]["options"].update(options))


def shape(dims):
    return changed(lambda net: net["inputs"][0].update(shape=dims))


def first(**keys):
    return changed(lambda net: net["operators"][0].update(keys))


def second(**keys):
    return changed(lambda net: net["operators"][1].update(keys))


def disagree(type_, *shapes, **options):
    """A network of one operator, 'op', on inputs of these shapes."""
    inputs = {f"x{i}": dims for i, dims in enumerate(shapes)}
    return json.dumps(network(inputs, ["y"], operator(type_, "op", " ".join(inputs), "y", **options)))


GOOD = changed(lambda net: None)

TEXT = {
    "empty": ("", ["net.json", "empty"]),
    "blank": (" \n\t\n", ["net.json", "empty"]),
    "cut short": (GOOD[:len(GOOD) // 2], ["net.json:", "unexpected end"]),
    "more behind its end": (GOOD + "}", ["net.json:", "syntax error"]),
    "no JSON": ("hello", ["net.json:1:", "syntax error"]),
    "bytes": (bytes(range(256)) * 4, ["net.json:1:"]),
    "zeros": (b"\0" * 4096, ["net.json:1:"]),
    "no UTF-8": (GOOD.replace('"conv"', '"\xff\xfe"').encode("latin1"), ["net.json:", "UTF-8"]),
    "a NaN literal": (GOOD.replace('"kernel": 3', '"kernel": NaN'), ["net.json:", "syntax error"]),
    "an infinity literal": (GOOD.replace('"kernel": 3', '"kernel": -Infinity'), ["net.json:"]),
    "a number beyond doubles": (GOOD.replace('"kernel": 3', '"kernel": 1e999'), ["net.json:", "1e999"]),
    "an integer beyond 64 bits": (GOOD.replace('"kernel": 3', '"kernel": 99999999999999999999'), ["net.json:", "64 bits"]),
    "a comment": ("// a net\n" + GOOD, ["net.json:1:"]),
    "deep lists": ("[" * 100000, ["net.json:1:", "deeper than 64"]),
    "deep objects": ('{"inputs":' * 100000, ["net.json:1:", "deeper than 64"]),
    "a key twice": ('{"inputs": [], "inputs": [], "outputs": [], "operators": []}', ["net.json:1:", "'inputs'", "twice"]),
    "a list": ("[]", ["net.json:1", "object of three lists"]),
    "null": ("null", ["net.json:1", "object of three lists"]),
    "a string": ('"net"', ["net.json:1", "object of three lists"]),
    "nothing in it": ("{}", ["net.json:1", "lacks 'inputs'"]),
}

TREE = {
    "an unknown key": (changed(lambda net: net.update(name="my net")), ["no key 'name'. Known keys: "]),
    "inputs that are no list": (changed(lambda net: net.update(inputs={})), ["inputs must be a list, not an object"]),
    "no operators": (changed(lambda net: net.pop("operators")), ["lacks 'operators'"]),
    "no outputs": (changed(lambda net: net["outputs"].clear()), ["outputs"]),
    "an output that nobody makes": (changed(lambda net: net["outputs"].append("z")), ["'z'", "not made by any operator"]),
    "an output twice": (changed(lambda net: net["outputs"].append("y")), ["'y'", "twice"]),
    "a loss weight that is text": (changed(lambda net: net.update(outputs=[{"name": "y", "loss_weight": "much"}])),
                                   ["outputs[0].loss_weight must be a number"]),
    "two inputs of a name": (changed(lambda net: net["inputs"].append(net["inputs"][0])), ["two inputs", "'x'"]),
    "an input without a shape": (changed(lambda net: net["inputs"][0].pop("shape")), ["inputs[0]", "lacks 'shape'"]),
    "an unknown dtype": (changed(lambda net: net["inputs"][0].update(dtype="flaot")), ["net.json:", "inputs[0].dtype", "flaot"]),
    "a shape of text": (shape("2x3"), ["inputs[0].shape must be a list, not a string"]),
    "a dimension of text": (shape([2, "3", 8, 8]), ["inputs[0].shape[1] must be an integer, not a string"]),
    "a dimension with a fraction": (shape([2, 2.5, 8, 8]), ["inputs[0].shape[1] must be an integer, not 2.5"]),
    "a dimension of 0": (shape([2, 3, 0, 8]), ["inputs[0].shape[2] must be at least 1, not 0"]),
    "a negative dimension": (shape([-2, 3, 8, 8]), ["inputs[0].shape[0] must be at least 1, not -2"]),
    "2^62 elements": (shape([2 ** 31, 2 ** 31]), ["inputs[0].shape", "net.json"]),
    "2^80 elements": (shape([2 ** 40, 2 ** 40]), ["inputs[0].shape", "net.json"]),
    "too many dimensions": (shape([1] * 100), ["inputs[0].shape", "dimensions"]),
    "an unknown operator": (first(type="Convolution3D"), ["Convolution3D", "did you mean 'Convolution'"]),
    "an internal operator": (second(type="Reorder", options={}), ["Reorder", "internal"]),
    "an operator without a type": (changed(lambda net: net["operators"][0].pop("type")), ["operators[0]", "lacks 'type'"]),
    "a type that is a number": (first(type=7), ["operators[0].type must be a string"]),
    "an operator without a name": (first(name=""), ["operators[0].name must not be empty"]),
    "two operators of a name": (second(name="conv"), ["two operators", "'conv'"]),
    "an operator with an unknown key": (first(input=["x"]), ["no key 'input'", "did you mean 'inputs'"]),
    "an unknown option": (conv(kernal=3), ["[Convolution2D 'conv']", "'kernal'", "did you mean 'kernel'"]),
    "an option of the wrong type": (conv(kernel="three"), ["'conv'", "kernel", "integer"]),
    "an option that is an object": (conv(kernel={"h": 3}), ["operators[0].options.kernel", "not an object"]),
    "an option that is null": (conv(kernel=None), ["operators[0].options.kernel", "not null"]),
    "a list of lists": (conv(kernel=[[3]]), ["operators[0].options.kernel[0]", "not a list"]),
    "a kernel of 0": (conv(kernel=0), ["'conv'", "kernel"]),
    "a kernel of three sizes": (conv(kernel=[1, 2, 3]), ["'conv'", "kernel"]),
    "a kernel larger than its input": (conv(kernel=11), ["'conv'", "kernel"]),
    "a kernel beyond all sizes": (conv(kernel=2 ** 62), ["'conv'"]),
    "a dilation that overflows": (conv(dilate=2 ** 62), ["'conv'"]),
    "a stride of 0": (conv(stride=0), ["'conv'", "stride"]),
    "a negative stride": (conv(stride=-1), ["'conv'", "stride"]),
    "a negative pad": (conv(pad=-2), ["'conv'", "pad"]),
    "a pad beyond all sizes": (conv(pad=2 ** 62), ["'conv'", "pad"]),
    "no channels": (conv(channels_out=0), ["'conv'", "channels_out"]),
    "2^62 channels": (conv(channels_out=2 ** 62), ["'conv'"]),
    "channels that disagree": (conv(channels_in=5), ["'conv'", "3", "5"]),
    "groups that do not divide": (conv(groups=2), ["'conv'", "groups"]),
    "a boolean of 2": (conv(bias=2), ["'conv'", "bias"]),
    "frozen of text": (first(frozen="yes"), ["operators[0].frozen must be true or false"]),
    "recompute of a number": (first(recompute=3), ["operators[0].recompute must be true, false, 0 or 1, not 3"]),
    "recompute misspelt": (first(recompue=True), ["no key 'recompue'", "did you mean 'recompute'"]),
    "an unknown activation": (second(options={"activation": "rleu"}), ["'act'", "rleu", "did you mean 'relu'"]),
    "an input that nobody makes": (second(inputs=["cnov"]), ["'cnov'", "did you mean 'conv'"]),
    "a cycle": (first(inputs=["y"]), ["cycle", "'conv'", "'act'"]),
    "an operator that reads itself": (first(inputs=["conv"]), ["cycle", "'conv'"]),
    "a tensor made twice": (second(outputs=["x"]), ["'act'", "output 'x' is already made"]),
    "too many inputs": (first(inputs=["x", "x"]), ["'conv'", "takes 1 input, behind which its 2 parameters", "got 2"]),
    "no inputs": (first(inputs=[]), ["'conv'", "takes 1 inputs, got 0"]),
    "no outputs of an operator": (first(outputs=[]), ["operators[0].outputs", "at least one"]),
    "too many outputs": (first(outputs=["conv", "b"]), ["'conv'", "makes 1 output, 2 are named"]),
    "the wrong number of parameters": (first(params=["w"]), ["'conv'", "has 2 parameters", "names 1"]),
    "a parameter of two shapes": (first(params=["w", "w"]), ["'conv'", "'w'", "[4, 3, 3, 3]"]),
    "an activation that an option names": (conv(activation="rleu"), ["'conv'", "rleu", "did you mean 'relu'"]),
    "parts of 0": (second(type="Split", options={"parts": 0}), ["[Split 'act']", "parts", "not 0"]),
    "code that does not parse": (second(type="Pointwise", options={"code": "y0 = x0 +"}), ["[Pointwise 'act']", "column 10"]),
    "code that is nested deep": (second(type="Pointwise", options={"code": "y0 = " + "(" * 100000 + "x0" + ")" * 100000}),
                                 ["[Pointwise 'act']", "nested deeper"]),
    "code of an unknown function": (second(type="Pointwise", options={"code": "y0 = exq(x0)"}), ["'exq'", "did you mean 'exp'"]),
    "an engine that is not": (first(engine="conv2d.magic"), ["'conv'", "no engine 'conv2d.magic'"]),
}

# Shapes that disagree: the operator and both shapes.
SHAPES = {
    "a sum that does not broadcast": (disagree("Elementwise", [2, 3, 4], [2, 5, 4]),
                                      ["[Elementwise 'op']", "[2, 3, 4]", "[2, 5, 4]", "broadcast"]),
    "a pointwise that does not broadcast": (disagree("Pointwise", [2, 3, 4], [2, 5, 4], code="y0 = x0 + x1"),
                                            ["[Pointwise 'op']", "[2, 3, 4]", "[2, 5, 4]", "broadcast"]),
    "a concat of other sizes": (disagree("Concat", [2, 3, 4], [2, 5, 5]),
                                ["[Concat 'op']", "[2, 3, 4]", "[2, 5, 5]", "dimension 1"]),
    "a concat of other ranks": (disagree("Concat", [2, 3, 4], [2, 5]), ["[Concat 'op']", "[2, 3, 4]", "[2, 5]"]),
    "a third of a concat": (disagree("Concat", [2, 3, 4], [2, 1, 4], [3, 3, 4]), ["[Concat 'op']", "[2, 3, 4]", "[3, 3, 4]"]),
    "a product's inner sizes": (disagree("MatMul", [2, 3, 4], [2, 5, 4]), ["[MatMul 'op']", "[2, 3, 4]", "[2, 5, 4]", "4 and 5"]),
    "a product's batches": (disagree("MatMul", [2, 3, 4], [3, 4, 4]), ["[MatMul 'op']", "[2, 3, 4]", "[3, 4, 4]", "broadcast"]),
    "a loss's two": (disagree("MSELoss", [2, 3], [3, 2]), ["[MSELoss 'op']", "[2, 3]", "[3, 2]"]),
    "labels of another batch": (disagree("SoftmaxWithLoss", [2, 3], [4]), ["[SoftmaxWithLoss 'op']", "[2, 3]", "[4]"]),
    "labels of another batch, for logarithms": (disagree("NLLLoss", [2, 3], [4]), ["[NLLLoss 'op']", "[2, 3]", "[4]"]),
    "attention's features": (disagree("Attention", [2, 3, 4], [2, 5, 6], [2, 5, 6]), ["[Attention 'op']", "[2, 3, 4]", "[2, 5, 6]"]),
    "a reshape to more": (disagree("Reshape", [2, 3, 4], dims=[5, 5]), ["[Reshape 'op']", "[2, 3, 4]", "[5, 5]", "24", "25"]),
    "a batch norm's features": (disagree("BatchNorm", [2, 3, 4, 4], features=7), ["[BatchNorm 'op']", "[2, 3, 4, 4]", "7"]),
}


class BadNetwork(CommandTest):
    def test_the_good_one_is_good(self):
        self.succeed("flops", self.write("net.json", GOOD), "-d", "cpu")

    def check(self, rows):
        for name, (text, words) in rows.items():
            with self.subTest(name):
                self.refuse(words, "flops", self.write("net.json", text), "-d", "cpu")

    def test_text(self):
        self.check(TEXT)

    def test_tree(self):
        self.check(TREE)

    def test_shapes(self):
        self.check(SHAPES)

    def test_operators_by_their_names_elsewhere(self):
        """PyTorch's, Keras's, ONNX's and Caffe's."""
        for offered, names in {
                "'Convolution'?": "Conv2D Conv2d Conv conv_2d Conv1d",
                "'TransposedConvolution'?": "ConvTranspose2d Conv2DTranspose Deconvolution",
                "'InnerProduct'?": "Linear Dense FullyConnected Gemm fc InnerProd",
                "'Pooling' with \"mode\": \"max\"?": "MaxPool2d MaxPool",
                "'Pooling' with \"mode\": \"avg\"?": "AvgPool2d AveragePooling2D AveragePool",
                "'Pooling' with \"global\": true, \"mode\": \"avg\"?": "GlobalAveragePool",
                "'Pooling' with \"output\": 1, \"mode\": \"avg\"?": "AdaptiveAvgPool2d AdaptiveAvgPool1d",
                "'BatchNorm'?": "BatchNorm2d BatchNormalization batch_norm",
                "'Activation' with \"activation\": \"relu\"?": "ReLU Relu relu",
                "'Activation' with \"activation\": \"leaky_relu\"?": "LeakyReLU LeakyRelu",
                "'Activation' with \"activation\": \"silu\"?": "SiLU Swish",
                "'Elementwise' with \"operation\": \"sum\"?": "Add Sum Eltwise",
                "'Elementwise' with \"operation\": \"prod\"?": "Mul Multiply",
                "'Elementwise' with \"operation\": \"max\"?": "Max Maximum",
                "'Concat'?": "Concatenate cat Concta", "'Resize'?": "Upsample",
                "'Softmax' with \"log\": true?": "LogSoftmax", "'SoftmaxWithLoss'?": "CrossEntropyLoss",
                "'Reduction' with \"method\": \"mean\"?": "ReduceMean", "'Reshape'?": "View Unsqueeze"}.items():
            for name in names.split():
                with self.subTest(name):
                    self.refuse([f"there is no operator type '{name}'; did you mean {offered}"], "flops",
                                self.write("net.json", first(type=name)), "-d", "cpu")
                # What is offered is there, with the option that is told.
                type_, option = re.fullmatch(r"'(\w+)'(?: with (.*))?\?", offered).groups()
                options = json.loads("{%s}" % (option or "")) | {"no_such_option": 1}
                inputs = ["x"] * (2 if type_ in ("Elementwise", "SoftmaxWithLoss") else 1)
                self.refuse([f"[{type_} 'conv']", "there is no option 'no_such_option'"], "flops",
                            self.write("net.json", first(type=type_, inputs=inputs, options=options)), "-d", "cpu")
        for name in ("Nonsense", "x", "C" * 400, "Z" * 65, "-"):
            result = self.refuse(["there is no operator type"], "flops", self.write("net.json", first(type=name)), "-d", "cpu")
            self.assertNotIn("did you mean", result.err)

    def test_options_by_their_names_elsewhere(self):
        """PyTorch's, Keras's, ONNX's and Caffe's words for options are answered with ours."""
        for ours, *others in (("channels_out", "out_channels", "filters", "num_output", "outputs"),
                              ("channels_in", "in_channels"), ("kernel", "kernel_size", "kernel_shape"), ("stride", "strides"),
                              ("pad", "padding", "pads"), ("dilate", "dilation", "dilation_rate"), ("groups", "group"),
                              ("bias", "use_bias", "bias_term")):
            for other in others:
                options = {"channels_out": 4, "kernel": 3, other: 1}
                self.refuse([f"there is no option '{other}'; did you mean '{ours}'?"], "flops",
                            self.write("net.json", conv(**options)), "-d", "cpu")

    def test_keys_of_a_configuration_by_their_names_elsewhere(self):
        good = {"net": "net.json", "data": {"train": {"images": "i", "labels": "l"}}}
        for ours, other in (("batch", "batch_size"), ("epochs", "max_epochs"), ("solver", "optimizer"), ("schedule", "scheduler")):
            self.refuse([other, f"did you mean '{ours}'"], "train", self.write("train.json", good | {other: 1}), "-d", "cpu")
        for ours, other in (("learning_rate", "lr"), ("weight_decay", "decay"), ("type", "optimizer")):
            self.refuse([other, f"did you mean '{ours}'"], "train", self.write("train.json", good | {"solver": {other: 1}}),
                        "-d", "cpu")

    def test_files_in_each_others_place(self):
        net = self.write("net.json", GOOD)
        weights = self.write_tensors("w.h5", x=[1.0])
        picture = self.write("picture.png", b"\x89PNG\r\n\x1a\n")
        config = self.write("train.json", {"net": "net.json", "data": {}})
        hdf5 = "seems to be an HDF5 file (weights or data), and JSON is expected"
        for words, *command in (
                (["w.h5", hdf5], "benchmark", "cpu", weights, net),
                (["picture.png", "seems to be a PNG picture, and JSON is expected"], "flops", picture, "-d", "cpu"),
                (["train.json", "seems to be a training configuration, and a network is expected"], "flops", config, "-d", "cpu"),
                (["net.json", "seems to be a network, and a training configuration is expected"], "train", net, "-d", "cpu"),
                (["w.h5", hdf5], "train", weights, "-d", "cpu"),
                (["net.json", "seems to be the path of a file", "cpu"], "benchmark", net, "cpu"),
                (["there is no file 'cpu', which seems to be the name of a device"], "flops", "cpu", "-d", "cpu"),
                (["net.json", "seems to be JSON, and an HDF5 file (weights or data) is expected"], "benchmark", "cpu", net, net)):
            with self.subTest(command):
                self.refuse(words, *command)

    def test_every_command_says_the_same(self):
        path = self.write("net.json", TREE["a cycle"][0])
        data = {"images": "i", "labels": "l"}
        config = self.write("train.json", {"net": "net.json", "data": {"train": data}})
        inputs = self.write_tensors("in.h5", x=[1.0])
        for command, *arguments in (("benchmark", "cpu", path), ("flops", path, "-d", "cpu"),
                                    ("run", path, "-d", "cpu", "--inputs", inputs, "--outputs", self.folder / "out.h5")):
            self.refuse(["cycle"], command, *arguments)
        self.refuse(["no file", "/i'"], "train", config, "-d", "cpu", "--out", self.folder / "out")
        self.assertEqual(self.listing(), ["in.h5", "net.json", "train.json"])

    def test_a_hundred_megabytes_of_text(self):
        path = self.write("net.json", GOOD.replace('"conv"', '"' + 100_000_000 * "c" + '"', 1))
        self.refuse(["net.json", "bytes long"], "flops", path, "-d", "cpu")

    def test_names_in_messages_break_no_line(self):
        for name, word in ((15_000_000 * "c", "15000000 bytes long"), ("line\nbreak", "line break"),
                           ("\u001b[31mred", "[31mred"), ("täuschend ähnlich 名前" * 10, "名前")):
            for change in (first(type=name), first(inputs=[name])):
                self.refuse([word], "flops", self.write("net.json", change), "-d", "cpu")

    def test_many_operators(self):
        """A chain of 3000 is a network; so is a file of it in the wrong order."""
        chain = [operator("Activation", f"a{i}", f"a{i - 1}" if i else "x", activation="relu") for i in range(3000)]
        for order in (chain, chain[::-1]):
            self.succeed("flops", self.write("net.json", network({"x": [1, 2]}, ["a2999"], *order)), "-d", "cpu")

    def test_what_is_no_file(self):
        (self.folder / "folder").mkdir()
        for path, words in ((self.folder / "none.json", ["none.json", "no file"]), (self.folder / "folder", ["folder", "directory"]),
                            ("", ["''"]), ("/dev/null", ["/dev/null", "not a file"]), (self.folder / ("n" * 300), ["too long"])):
            self.refuse(words, "flops", path, "-d", "cpu")
        self.refuse(["model.onnx", "ONNX"], "flops", self.write("model.onnx", b"\x08\x07"), "-d", "cpu")


if __name__ == "__main__":
    main()
