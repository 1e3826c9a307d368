"""What imports without an error but does not work: each trap with its source."""


class Trap:
    """`problem` returns a sentence, or None. It runs after the import of the distribution `package`, if
    the modules `beside` are in the image and those in `without` are not."""

    def __init__(self, package, beside, problem, without=()):
        self.package = package
        self.beside = beside
        self.problem = problem
        self.without = without


def transformers_with_torch():
    """If torch is older than transformers requires, `import transformers` succeeds, and each model is a dummy that
    raises when it is used (transformers 4.50 and 5.0: utils/import_utils.py, `is_torch_available`, `DummyObject`)."""
    return dummy_of_transformers("AutoModel", "is_torch_available", "torch")


def transformers_with_tensorflow():
    """The same for TensorFlow (`is_tf_available`); transformers 5 has no classes for it (MIGRATION_GUIDE_V5.md)."""
    return dummy_of_transformers("TFAutoModel", "is_tf_available", "tensorflow")


def dummy_of_transformers(name, availability, framework):
    import transformers

    is_available = getattr(transformers, availability, None)
    if is_available is not None and not is_available():
        return "transformers does not use the image's " + framework + ": " + name + " is a dummy"
    model = getattr(transformers, name, None)
    if model is None:
        return "transformers " + transformers.__version__ + " has no classes for " + framework
    # Before 4.11 a dummy was a usual class of a module that is called so.
    if type(model).__name__ == "DummyObject" or ".dummy_" in model.__module__:
        return "transformers." + name + " is a dummy: transformers does not use the image's " + framework
    return None


def torch_with_numpy():
    """A torch that was compiled for another major version of numpy prints a warning at import, and raises "Numpy is not
    available" at the first array (pytorch issue 107302; seen with torch 2.2.2 and numpy 2)."""
    import numpy
    import torch

    array = torch.from_numpy(numpy.zeros(1)).numpy()
    return None if array.shape == (1,) else "torch and numpy cannot exchange an array"


TRAPS = {
    "transformers with torch": Trap("transformers", ("torch",), transformers_with_torch),
    "transformers with tensorflow": Trap(
        "transformers", ("tensorflow",), transformers_with_tensorflow, without=("torch",)
    ),
    "torch with numpy": Trap("torch", ("numpy",), torch_with_numpy),
}
