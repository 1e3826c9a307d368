"""Bases as plain values, for rules that are tested without an index."""

from __future__ import annotations

from toolkit.inventory.contents.model import Distribution
from toolkit.pins.bases.target import PythonTarget


def distribution(name: str, version: str, *requires: str, record: bool = True, **more: str) -> Distribution:
    directory = "/usr/lib/python3/dist-packages"
    return Distribution(
        name, version, directory, f"{directory}/{name}-{version}.dist-info", tuple(requires), has_record=record, **more
    )


def target(*distributions: Distribution, python: str = "3.11.2", **more: object) -> PythonTarget:
    return PythonTarget(
        python, {distribution.name: distribution for distribution in distributions}, **{"glibc": (2, 36), **more}
    )  # type: ignore[arg-type]


TENSORFLOW = target(
    distribution(
        "tensorflow", "2.15.1", "numpy<2.0.0,>=1.23.5", "keras<2.16,>=2.15.0", "protobuf!=4.21.0,<5.0.0dev,>=3.20.3"
    ),
    distribution("keras", "2.15.0"),
    distribution("tensorboard", "2.15.2"),
    distribution("numpy", "1.26.4"),
    distribution("protobuf", "4.25.3"),
    distribution("pip", "23.3.1"),
    distribution("requests", "2.28.0", "idna<4,>=2.5", "urllib3<1.27"),
    distribution("idna", "3.4"),
    distribution("urllib3", "1.26.15"),
)
TORCH = target(
    distribution("torch", "2.5.1+cu124", "triton==3.1.0", "sympy==1.13.1"),
    distribution("triton", "3.1.0"),
    distribution("sympy", "1.13.1"),
    distribution("nvidia-cudnn-cu12", "9.1.0.70"),
    distribution("numpy", "2.1.2"),
    distribution("pip", "24.2"),
)
OLD = target(
    distribution("tensorflow-gpu", "2.1.0", "numpy<2.0,>=1.16.0"),
    distribution("numpy", "1.18.1"),
    distribution("pip", "20.0.2"),
    python="3.6.9",
    glibc=(2, 27),
)
