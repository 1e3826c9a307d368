"""Fine-tune a small BERT with LoRA, and report the device.

The model is tiny and begins with random weights, the sentences are made up: a compute node downloads nothing. For real
work replace `model` by AutoModelForSequenceClassification.from_pretrained(...).
"""

import time

import torch
from accelerate import Accelerator
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, set_seed

VOCABULARY, LENGTH, SENTENCES = 200, 16, 512

set_seed(0)
accelerator = Accelerator()
device = accelerator.device
name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type.upper()
print("PyTorch", torch.__version__, "| device:", name, flush=True)

# Sentences of one kind use the first half of the vocabulary, those of the other kind the second half.
labels = torch.randint(2, (SENTENCES,))
words = torch.randint(VOCABULARY // 2, (SENTENCES, LENGTH)) + labels[:, None] * (VOCABULARY // 2)
batches = DataLoader(TensorDataset(words, labels), batch_size=32, shuffle=True)

model = BertForSequenceClassification(
    BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        num_labels=2,
    )
)
lora = LoraConfig(task_type=TaskType.SEQ_CLS, r=8, lora_alpha=16, target_modules=["query", "value"])
model = get_peft_model(model, lora)
model.print_trainable_parameters()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
model, optimizer, batches = accelerator.prepare(model, optimizer, batches)

start = time.perf_counter()
for epoch in range(1, 4):
    right = 0
    for inputs, wanted in batches:
        output = model(input_ids=inputs, labels=wanted)
        accelerator.backward(output.loss)
        optimizer.step()
        optimizer.zero_grad()
        right += int((output.logits.argmax(-1) == wanted).sum())
    print(f"epoch {epoch}  loss {output.loss.item():.4f}  accuracy {right / SENTENCES:.3f}", flush=True)
print(f"trained in {time.perf_counter() - start:.1f} s")
