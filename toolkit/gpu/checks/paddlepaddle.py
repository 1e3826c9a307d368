"""The check of PaddlePaddle. Releases without Tensor.data_ptr (before 2.6) are proved by NVML."""


class Check:
    def load(self):
        import paddle

        self.paddle = paddle
        return str(paddle.__version__)

    def count(self):
        try:
            number = self.paddle.device.cuda.device_count()
        except (AttributeError, ValueError) as error:  # a build without CUDA
            self.reason = str(error)
            return 0
        if not number:
            self.reason = "paddle.device.cuda.device_count() is 0"
        return number

    def place(self, rows, index):
        place = self.paddle.CPUPlace() if index is None else self.paddle.CUDAPlace(index)
        return self.paddle.to_tensor(rows, dtype="float32", place=place)

    def multiply(self, a, b, index):
        product = self.paddle.matmul(a, b)
        if index is not None:
            self.paddle.device.cuda.synchronize(index)
        return product

    def rows(self, c):
        return c.numpy().tolist()

    def address(self, c):
        return c.data_ptr() if hasattr(c, "data_ptr") else None
