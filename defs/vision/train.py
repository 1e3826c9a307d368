"""Train a small image classifier of timm with augmentations of torchvision, and report the device.

The images are made up, squares and discs, and the weights begin at random: a compute node downloads nothing.
"""

import time

import timm
import torch
from torchvision.transforms import v2

IMAGES, SIZE = 256, 64

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
print("PyTorch", torch.__version__, "| timm", timm.__version__, "| device:", name, flush=True)

labels = torch.randint(2, (IMAGES,))
axis = torch.linspace(-1, 1, SIZE)
y, x = torch.meshgrid(axis, axis, indexing="ij")
square, disc = ((x.abs() < 0.6) & (y.abs() < 0.6)).float(), ((x**2 + y**2) < 0.45).float()
shapes = torch.stack([square, disc])[labels][:, None].expand(-1, 3, -1, -1)
images = (shapes + 0.3 * torch.randn(IMAGES, 3, SIZE, SIZE)).to(device)
labels = labels.to(device)

augment = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomCrop(SIZE, padding=4)])
model = timm.create_model("resnet10t", pretrained=False, num_classes=2).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

start = time.perf_counter()
for epoch in range(1, 4):
    right = 0
    for batch in torch.randperm(IMAGES, device=device).split(32):
        output = model(augment(images[batch]))
        loss = torch.nn.functional.cross_entropy(output, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((output.argmax(-1) == labels[batch]).sum())
    print(f"epoch {epoch}  loss {loss.item():.4f}  accuracy {right / IMAGES:.3f}", flush=True)
print(f"trained in {time.perf_counter() - start:.1f} s")
