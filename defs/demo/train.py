"""Train a classifier of handwritten digits, and report its accuracy.

scikit-learn includes the data, 1,797 images of 8 x 8 pixels: a compute node downloads nothing.
"""

import os
import platform
import time

from sklearn.datasets import load_digits
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

print("host", platform.node(), "| python", platform.python_version(), "| job", os.environ.get("SLURM_JOB_ID", "none"))

digits = load_digits()
pixels_train, pixels_test, labels_train, labels_test = train_test_split(
    digits.data / 16.0, digits.target, test_size=0.25, random_state=0, stratify=digits.target
)
print(len(labels_train), "images to learn from,", len(labels_test), "to be tested on")

network = MLPClassifier(hidden_layer_sizes=(64,), learning_rate_init=0.01, random_state=0, max_iter=1)
start = time.perf_counter()
for epoch in range(1, 21):
    network.partial_fit(pixels_train, labels_train, classes=range(10))
    if epoch % 5 == 0:
        accuracy = network.score(pixels_test, labels_test)
        print(f"epoch {epoch:2d}  loss {network.loss_:.4f}  accuracy {accuracy:.3f}", flush=True)
print(f"trained in {time.perf_counter() - start:.1f} s")
print(classification_report(labels_test, network.predict(pixels_test), digits=3))
