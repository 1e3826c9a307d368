"""The check of ONNX Runtime, with a model of one MatMul. It does not tell addresses: NVML proves where it computed.

The model is written here, since the package onnx is seldom there: protobuf fields of ONNX IR version 3, operator set 7.
A field is its number and wire type (0: number, 2: bytes with their length) in one byte, then its value.
Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

FLOAT = 1  # TensorProto.DataType
GPU_PROVIDERS = ("CUDAExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider")


def varint(number):
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def number_field(field, number):
    return varint(field << 3) + varint(number)


def bytes_field(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def value(name, size):
    dimension = bytes_field(1, number_field(1, size))  # TensorShapeProto.dim, of which dim_value
    shape = bytes_field(2, dimension + dimension)  # TypeProto.Tensor.shape
    tensor = bytes_field(1, number_field(1, FLOAT) + shape)  # TypeProto.tensor_type, of which elem_type
    return bytes_field(1, name) + bytes_field(2, tensor)  # ValueInfoProto: name, type


def model(size):
    node = bytes_field(1, "a") + bytes_field(1, "b") + bytes_field(2, "c") + bytes_field(4, "MatMul")
    graph = bytes_field(1, node) + bytes_field(2, "product")  # GraphProto: node, name
    graph += bytes_field(11, value("a", size)) + bytes_field(11, value("b", size)) + bytes_field(12, value("c", size))
    return number_field(1, 3) + bytes_field(7, graph) + bytes_field(8, number_field(2, 7))


class Check:
    def load(self):
        import numpy
        import onnxruntime

        self.runtime, self.numpy = onnxruntime, numpy
        self.sessions = {}
        return str(onnxruntime.__version__)

    def count(self):
        """get_available_providers() lists what the build has, driver or not: only a session says what it got."""
        built = [name for name in GPU_PROVIDERS if name in self.runtime.get_available_providers()]
        if not built:
            self.reason = "this build has no GPU provider, only %s" % self.runtime.get_available_providers()
            return 0
        self.provider = built[0]
        given = self.session(0).get_providers()
        if self.provider in given:
            return 1
        self.reason = "a session that asked for %s got %s" % (self.provider, given)
        return 0

    def session(self, index):
        if index not in self.sessions:
            wanted = ["CPUExecutionProvider"] if index is None else [(self.provider, {"device_id": index})]
            content = model(SIZE)  # noqa: F821
            self.sessions[index] = self.runtime.InferenceSession(content, providers=wanted)
        return self.sessions[index]

    def place(self, rows, index):
        return self.numpy.array(rows, "float32")

    def multiply(self, a, b, index):
        return self.session(index).run(None, {"a": a, "b": b})[0]

    def rows(self, c):
        return c.tolist()

    def address(self, c):
        return None
