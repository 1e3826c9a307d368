"""The check of PyTorch, for CUDA and for ROCm, whose builds answer to the same names."""


class Check:
    def load(self):
        import torch

        self.torch = torch
        return str(torch.__version__)

    def count(self):
        cuda = self.torch.cuda
        if not cuda.is_available():
            build = getattr(self.torch.version, "cuda", None) or getattr(self.torch.version, "hip", None)
            self.reason = "torch.cuda.is_available() is False"
            self.reason += " (built for %s)" % build if build else ", and the build has no CUDA"
            return 0
        return cuda.device_count()

    def place(self, rows, index):
        return self.torch.tensor(rows).to("cpu" if index is None else "cuda:%d" % index)

    def multiply(self, a, b, index):
        product = self.torch.mm(a, b)
        if index is not None:
            self.torch.cuda.synchronize(index)
        return product

    def rows(self, c):
        return c.cpu().tolist()

    def address(self, c):
        return c.data_ptr()
