"""Train gradient-boosted trees with XGBoost and LightGBM, and report the device of each.

The data are made up by scikit-learn: a compute node downloads nothing.
"""

import time

import lightgbm
import xgboost
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split


def best_of(devices, train):
    """The result of `train` on the first of `devices` that works here, and that device."""
    for device in devices[:-1]:
        try:
            return train(device), device
        except (xgboost.core.XGBoostError, lightgbm.basic.LightGBMError) as error:
            print(f"not on {device}: {str(error).strip().splitlines()[0]}")
    return train(devices[-1]), devices[-1]


def with_xgboost(device):
    if device == "cuda" and not xgboost.build_info().get("USE_CUDA"):
        raise xgboost.core.XGBoostError("this build of XGBoost is for the CPU")
    # Without a GPU XGBoost would warn and take the CPU: what it took is in its own configuration.
    model = xgboost.XGBClassifier(n_estimators=50, device=device, verbosity=0).fit(x_train, y_train)
    used = model.get_booster().save_config()
    if device == "cuda" and '"device":"cuda' not in used.replace(" ", ""):
        raise xgboost.core.XGBoostError("no GPU found")
    return model


def with_lightgbm(device):
    return lightgbm.LGBMClassifier(n_estimators=50, device_type=device, verbose=-1).fit(x_train, y_train)


x, y = make_classification(n_samples=4000, n_features=20, n_informative=8, random_state=0)
x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=0)
# LightGBM's wheels compute on a GPU through OpenCL ("gpu"), those of XGBoost through CUDA.
for name, version, train, devices in (
    ("XGBoost", xgboost.__version__, with_xgboost, ("cuda", "cpu")),
    ("LightGBM", lightgbm.__version__, with_lightgbm, ("gpu", "cpu")),
):
    start = time.perf_counter()
    model, device = best_of(devices, train)
    accuracy = accuracy_score(y_test, model.predict(x_test))
    took = time.perf_counter() - start
    print(f"{name} {version} | device: {device.upper()} | accuracy {accuracy:.3f} in {took:.1f} s", flush=True)
