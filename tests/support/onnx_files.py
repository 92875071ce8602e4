"""Writes small ONNX files, good and bad ones, into a folder: python3 onnx_files.py FOLDER"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def weight(name, *shape):
    return numpy_helper.from_array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 100, name)


def graph(nodes, inputs, weights, output=("y", ["batch", 4])):
    return helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
                             [helper.make_tensor_value_info(output[0], FLOAT, output[1])], weights)


def model(made, opset=13, ir=8):
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def linear(opset=13, ir=8, nodes=(), shape=("batch", 4), first="x"):
    return model(graph([*nodes, helper.make_node("MatMul", [first, "w"], ["h"], "fc"), helper.make_node("Relu", ["h"], ["r"], "act"),
                        helper.make_node("MatMul", ["r", "v"], ["y"], "out")],
                       [("x", FLOAT, list(shape))], [weight("w", 4, 6), weight("v", 6, 4)]), opset, ir)


folder = sys.argv[1]
onnx.save(linear(), f"{folder}/good.onnx")
data = linear().SerializeToString()
with open(f"{folder}/cut.onnx", "wb") as file:
    file.write(data[:len(data) // 2])
with open(f"{folder}/text.onnx", "w") as file:
    file.write('{"model_type": "gpt2"}\n')
open(f"{folder}/empty.onnx", "w").close()
onnx.save(linear(opset=99), f"{folder}/opset.onnx")
onnx.save(linear(ir=99), f"{folder}/ir.onnx")
onnx.save(linear(nodes=[helper.make_node("Det", ["x"], ["d"], "my/det"), helper.make_node("Add", ["x", "d"], ["z"], "plus")], first="z"),
          f"{folder}/unknown.onnx")
onnx.save(linear(nodes=[helper.make_node("Foo", ["x"], ["z"], "own", domain="com.example")], first="z"), f"{folder}/domain.onnx")
onnx.save(model(graph([helper.make_node("Add", ["b", "x"], ["a"], "one"), helper.make_node("Relu", ["a"], ["b"], "two"),
                       helper.make_node("MatMul", ["b", "w"], ["y"], "out")], [("x", FLOAT, ["batch", 4])], [weight("w", 4, 4)])),
          f"{folder}/cycle.onnx")
onnx.save(linear(first="nowhere"), f"{folder}/nowhere.onnx")
onnx.save(linear(shape=("batch", "width")), f"{folder}/open.onnx")
onnx.save(linear(shape=(3, 4)), f"{folder}/fixed.onnx")
flat = [helper.make_node("Reshape", ["x", "four"], ["f"], "flat"), helper.make_node("Reshape", ["f", "one_four"], ["z"], "back")]
single = linear(shape=(1, 4), nodes=flat, first="z")
single.graph.initializer.extend([numpy_helper.from_array(np.array(v), n) for n, v in (("four", [4]), ("one_four", [1, 4]))])
onnx.save(single, f"{folder}/one.onnx")
stuck = linear(shape=(1, 4), nodes=[helper.make_node("Squeeze", ["x"], ["f"], "squeeze", axes=[0]),
                                    helper.make_node("Unsqueeze", ["f"], ["z"], "back", axes=[0])], first="z", opset=11)
onnx.save(stuck, f"{folder}/stuck.onnx")
onnx.save(model(graph([helper.make_node("NonZero", ["x"], ["i"], "where"), helper.make_node("MatMul", ["x", "w"], ["y"], "out")],
                      [("x", FLOAT, ["batch", 4])], [weight("w", 4, 4)])), f"{folder}/unused_unknown.onnx")
onnx.save(model(graph([helper.make_node("MatMul", ["x", "w"], ["y"], "out")], [("x", FLOAT, ["batch", 4])], [weight("w", 5, 4)])),
          f"{folder}/shapes.onnx")
onnx.save(model(graph([helper.make_node("Conv", ["x", "w"], ["h"], "conv", kernel_shape=[2, 2]), helper.make_node("Softmax", ["h"], ["y"], "probabilities", axis=1)],
                      [("x", FLOAT, ["batch", 3, 2, 2])], [weight("w", 4, 3, 2, 2)], ("y", ["batch", 4, 1, 1])), opset=9), f"{folder}/points.onnx")
onnx.save(model(graph([helper.make_node("Concat", ["past_0", "x"], ["k"], "concat", axis=2), helper.make_node("MatMul", ["k", "w"], ["y"], "product")],
                      [("x", FLOAT, ["batch", 4, 3]), ("past_0", FLOAT, ["batch", 4, "past"])], [weight("w", 3, 2)])), f"{folder}/past.onnx")
onnx.save(linear(nodes=[helper.make_node("Softmax", ["x"], ["s"], "soft"), helper.make_node("IsNaN", ["s"], ["n"], "nan"),
                        helper.make_node("Where", ["n", "none", "s"], ["z"], "where")], first="z"), f"{folder}/nan.onnx")
made = onnx.load(f"{folder}/nan.onnx")
made.graph.initializer.append(numpy_helper.from_array(np.float32(0), "none"))
onnx.save(made, f"{folder}/nan.onnx")
for name, added in (("distance", -np.abs(np.subtract.outer(np.arange(8), np.arange(8)))), ("causal", -1e4 * np.triu(np.ones((8, 8)), 1))):
    onnx.save(model(graph([helper.make_node("MatMul", ["x", "a"], ["q"], "q"), helper.make_node("MatMul", ["x", "b"], ["k"], "k"),
                           helper.make_node("MatMul", ["x", "c"], ["v"], "v"), helper.make_node("Transpose", ["k"], ["t"], "turn", perm=[0, 2, 1]),
                           helper.make_node("Constant", [], ["m"], "numbers", value=numpy_helper.from_array(added.astype(np.float32))),
                           helper.make_node("MatMul", ["q", "t"], ["s"], "scores"), helper.make_node("Add", ["s", "m"], ["z"], "plus"),
                           helper.make_node("Softmax", ["z"], ["p"], "soft", axis=-1), helper.make_node("MatMul", ["p", "v"], ["y"], "out")],
                          [("x", FLOAT, ["batch", "tokens", 4])], [weight(n, 4, 4) for n in "abc"], ("y", ["batch", 3, 4]))), f"{folder}/{name}.onnx")
onnx.save(model(graph([helper.make_node("Conv", ["x", "a"], ["c"], "conv", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
                       helper.make_node("InstanceNormalization", ["c", "s", "t"], ["n"], "each"), helper.make_node("HardSwish", ["n"], ["h"], "swish"),
                       helper.make_node("ConvTranspose", ["h", "u", "t"], ["v"], "larger", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
                       helper.make_node("HardSigmoid", ["v"], ["g"], "gate", alpha=0.3, beta=0.4), helper.make_node("Sigmoid", ["v"], ["w"], "sigmoid"),
                       helper.make_node("LeakyRelu", ["w"], ["l"], "leaky", alpha=0.1), helper.make_node("Mul", ["g", "l"], ["y"], "product")],
                      [("x", FLOAT, ["batch", 3, 6, 6])], [numpy_helper.from_array(np.sin(np.arange(108, dtype=np.float32)).reshape(4, 3, 3, 3), "a"), weight("s", 4), weight("t", 4),
                                                           numpy_helper.from_array(np.cos(np.arange(144, dtype=np.float32)).reshape(4, 4, 3, 3), "u")],
                      ("y", ["batch", 4, 6, 6])), opset=14), f"{folder}/larger.onnx")
# two norms of groups whose scales and shifts were equal: the second has copies of the first's, each [c, 1, 1]
nodes = []
for i, (of, ones, zeros) in enumerate((("x", "s", "t"), ("y0", "s2", "t2"))):
    nodes += [helper.make_node("Conv", [of, f"a{i}"], [f"c{i}"], f"conv{i}", kernel_shape=[1, 1]), helper.make_node("Reshape", [f"c{i}", "parts"], [f"r{i}"], f"parts{i}"),
              *[helper.make_node("Constant", [], [f"{name}{i}"], f"{name}{i}", value=numpy_helper.from_array(np.full(2, number, dtype=np.float32))) for name, number in (("one", 1), ("zero", 0))],
              helper.make_node("InstanceNormalization", [f"r{i}", f"one{i}", f"zero{i}"], [f"n{i}"], f"groups{i}"), helper.make_node("Shape", [f"c{i}"], [f"z{i}"], f"shape{i}"),
              helper.make_node("Reshape", [f"n{i}", f"z{i}"], [f"b{i}"], f"back{i}"), helper.make_node("Mul", [f"b{i}", ones], [f"m{i}"], f"scale{i}"),
              helper.make_node("Add", [f"m{i}", zeros], [f"y{i}"], f"shift{i}")]
copies = [helper.make_node("Identity", ["s"], ["s2"], "copy_s"), helper.make_node("Identity", ["t"], ["t2"], "copy_t")]
onnx.save(model(graph(copies + nodes, [("x", FLOAT, ["batch", 4, 3, 3])],
                      [numpy_helper.from_array(np.sin(np.arange(16, dtype=np.float32) + i).reshape(4, 4, 1, 1), f"a{i}") for i in range(2)]
                      + [weight("s", 4, 1, 1), weight("t", 4, 1, 1), numpy_helper.from_array(np.array([0, 2, -1]), "parts")],
                      ("y1", ["batch", 4, 3, 3])), opset=13), f"{folder}/grouped.onnx")
for name, more in (("auto", {"auto_pad": "SAME_UPPER"}), ("huge", {"strides": [2, 2], "output_padding": [2, 2]})):
    onnx.save(model(graph([helper.make_node("ConvTranspose", ["x", "u"], ["y"], "larger", kernel_shape=[3, 3], **more)], [("x", FLOAT, ["batch", 4, 3, 3])],
                          [weight("u", 4, 4, 3, 3)], ("y", ["batch", 4, 6, 6]))), f"{folder}/{name}.onnx")
for name, scale, more in (("nearest", 3, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}), ("between", 1.5, {}), ("linear", 2, {"mode": "linear"}),
                          ("rounded", 3, {"coordinate_transformation_mode": "asymmetric"}), ("halves", 3, {"nearest_mode": "floor"})):
    onnx.save(model(graph([helper.make_node("Conv", ["x", "a"], ["c"], "conv", kernel_shape=[2, 2]), helper.make_node("Resize", ["c", "", "scales"], ["l"], "larger", **more),
                           helper.make_node("PRelu", ["l", "slopes"], ["p"], "sloped"), helper.make_node("Elu", ["p"], ["e"], "elu"), helper.make_node("Softplus", ["e"], ["y"], "soft")],
                          [("x", FLOAT, ["batch", 3, 3, 4])], [numpy_helper.from_array(np.sin(np.arange(48, dtype=np.float32)).reshape(4, 3, 2, 2), "a"),
                                                               numpy_helper.from_array(np.array([1, 1, scale, 2], dtype=np.float32), "scales"), weight("slopes", 4, 1, 1)],
                          ("y", ["batch", 4, 6, 6]))), f"{folder}/{name}.onnx")
onnx.save(linear(nodes=[helper.make_node("Gather", ["table", "list"], ["rows"], "rows"), helper.make_node("Reshape", ["rows", "square"], ["pairs"], "pairs"),
                        helper.make_node("ReduceSum", ["pairs", "first"], ["bias"], "sum", keepdims=0), helper.make_node("Add", ["x", "bias"], ["z"], "plus")], first="z"),
          f"{folder}/list.onnx")
for name, places in (("beyond", [3, 1, 4, 1, 7, 0]), ("list", [3, 1, 4, 1, 5, 0])):
    made = onnx.load(f"{folder}/list.onnx")
    made.graph.initializer.extend([weight("table", 7, 4), numpy_helper.from_array(np.array(places), "list"),
                                   numpy_helper.from_array(np.array([2, 3, 4]), "square"), numpy_helper.from_array(np.array([0, 1]), "first")])
    onnx.save(made, f"{folder}/{name}.onnx")
onnx.save(linear(nodes=[helper.make_node("LSTM", ["x", "w", "v"], ["z"], "cell", hidden_size=4)], first="z"), f"{folder}/recurrent.onnx")
onnx.save(linear(nodes=[helper.make_node("If", ["x"], ["z"], "branch")], first="z"), f"{folder}/merged.onnx")
for name, mode, pads in (("reflect", "reflect", [0, 1, 0, 1]), ("crop", "constant", [0, -1, 0, 0]), ("odd", "constant", [0, 1, 0])):
    onnx.save(model(graph([helper.make_node("MatMul", ["x", "w"], ["h"], "product"), helper.make_node("Pad", ["h", "pads"], ["y"], "pad", mode=mode)],
                          [("x", FLOAT, ["batch", 4])], [weight("w", 4, 4), numpy_helper.from_array(np.array(pads), "pads")])), f"{folder}/{name}.onnx")
external = linear()
onnx.save_model(external, f"{folder}/external.onnx", save_as_external_data=True, location="external.bin", size_threshold=0)
onnx.save_model(linear(), f"{folder}/lost.onnx", save_as_external_data=True, location="lost.bin", size_threshold=0)
import os  # noqa: E402

os.remove(f"{folder}/lost.bin")
node = helper.make_node("Relu", ["x"], ["y"]).SerializeToString()
nodes = (b"\x0a" + bytes([len(node)]) + node) * 10_000_000


def varint(n):
    made = b""
    while n > 127:
        made, n = made + bytes([n & 127 | 128]), n >> 7
    return made + bytes([n])


with open(f"{folder}/many.onnx", "wb") as file:  # ten million nodes
    file.write(b"\x08\x08\x42\x02\x10\x0d\x3a" + varint(len(nodes)) + nodes)
