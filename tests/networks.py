"""A small ONNX network for tests."""

import numpy as np

PATCH, CHANNELS = 4, 3


def write_network(path, n_extra=1, weight=1.0, size=("height", "width"), shape=None):
    """Write a network that averages the colors of every patch, with a zero token or several before the others."""
    import onnx

    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    kernel = np.zeros((CHANNELS, 3, PATCH, PATCH), np.float32)
    for channel in range(CHANNELS):
        kernel[channel, channel] = weight / PATCH**2
    constants = {
        "kernel": kernel,
        "shape": np.array([1, CHANNELS, -1]),
        "extra": np.zeros((1, n_extra, CHANNELS), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "kernel"], ["map"], strides=[PATCH, PATCH]),
        helper.make_node("Reshape", ["map", "shape"], ["flat"]),
        helper.make_node("Transpose", ["flat"], ["tokens"], perm=[0, 2, 1]),
        helper.make_node("Concat", ["extra", "tokens"], ["last_hidden_state"], axis=1),
        helper.make_node("ReduceMean", ["map"], ["mean"], keepdims=0),
    ]
    real = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "colors",
        [helper.make_tensor_value_info("pixels", real, shape or [1, 3, *size])],
        [helper.make_tensor_value_info(name, real, None) for name in ("mean", "last_hidden_state", "map")],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path
