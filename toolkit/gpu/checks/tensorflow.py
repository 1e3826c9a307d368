"""The check of TensorFlow: eager for 2, a session for 1. It does not tell addresses: NVML proves where it computed."""


class Check:
    def load(self):
        import tensorflow

        self.tf = tensorflow
        self.eager = int(tensorflow.__version__.split(".")[0]) >= 2
        return str(tensorflow.__version__)

    def count(self):
        self.reason = "TensorFlow lists no GPU device"
        if not self.eager:
            from tensorflow.python.client import device_lib

            self.options = self.tf.ConfigProto(gpu_options=self.tf.GPUOptions(allow_growth=True))
            local = device_lib.list_local_devices(self.options)
            return len([device for device in local if device.device_type == "GPU"])
        config = self.tf.config
        listed = getattr(config, "list_physical_devices", None) or config.experimental.list_physical_devices
        gpus = listed("GPU")
        for gpu in gpus:
            config.experimental.set_memory_growth(gpu, True)
        config.set_soft_device_placement(False)
        return len(gpus)

    def device(self, index):
        return "/device:CPU:0" if index is None else "/device:GPU:%d" % index

    def place(self, rows, index):
        if not self.eager:
            return rows
        with self.tf.device(self.device(index)):
            return self.tf.constant(rows)

    def multiply(self, a, b, index):
        if self.eager:
            with self.tf.device(self.device(index)):
                return self.tf.matmul(a, b).numpy()
        with self.tf.Graph().as_default():
            with self.tf.device(self.device(index)):
                product = self.tf.matmul(self.tf.constant(a), self.tf.constant(b))
            with self.tf.Session(config=self.options) as session:
                return session.run(product)

    def rows(self, c):
        return c.tolist()

    def address(self, c):
        return None
