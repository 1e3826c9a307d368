"""Train a small BERT on made-up sentences, and report the device: a compute node downloads nothing.

Runs with TensorFlow 2.1 (Python 3.6) and with TensorFlow 2.15.
"""

import random
import time

import tensorflow as tf
from keras_bert import gen_batch_inputs, get_base_dict, get_model

try:
    from keras_bert.backend import keras  # until 0.86: Keras or tf.keras, as TF_KERAS says
except ImportError:
    from tensorflow import keras

PAIRS = [
    [["all", "work", "and", "no", "play"], ["makes", "jack", "a", "dull", "boy"]],
    [["from", "the", "day", "forth"], ["my", "arm", "changed"]],
    [["and", "a", "voice", "echoed"], ["power", "give", "me", "more", "power"]],
]

random.seed(0)
gpus = tf.config.list_physical_devices("GPU")
print("TensorFlow", tf.__version__, "| device:", gpus[0].name if gpus else "CPU")

words = get_base_dict()
for pair in PAIRS:
    for word in pair[0] + pair[1]:
        words.setdefault(word, len(words))

model = get_model(
    token_num=len(words),
    head_num=2,
    transformer_num=2,
    embed_dim=16,
    feed_forward_dim=32,
    seq_len=20,
    pos_num=20,
    dropout_rate=0.05,
)
# keras-bert's own Adam with warm-up is for the Keras of its time; the plain one is in all of them.
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy")


def batches():
    while True:
        inputs, outputs = gen_batch_inputs(PAIRS, words, list(words), seq_len=20, mask_rate=0.3)
        # The weights of masked words are an input of the model: without a row for each output Keras refuses the batch.
        yield list(inputs), list(outputs)


start = time.time()
source = batches()
for step in range(1, 41):
    loss = model.train_on_batch(*next(source))
    if step % 10 == 0:
        print(f"step {step:3d}  loss {float(loss[0] if isinstance(loss, (list, tuple)) else loss):.3f}")
print(f"trained in {time.time() - start:.1f} s")
