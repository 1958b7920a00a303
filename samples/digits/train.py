#!/usr/bin/env python3
"""Trains the digits classifier and writes digits.pdmodel, digits.pdiparams and heldout.bin.

Not needed to build or run the sample: the results are checked in. Needs paddlepaddle 2.6.2 and scikit-learn, whose
bundled digits (1,797 images of 8 x 8 pixels, from the UCI optical recognition set) are the data.
heldout.bin: for each of the held-out images 64 bytes of pixels (0 to 16) and one byte, the label.
"""
import numpy as np
import paddle
from sklearn.datasets import load_digits

paddle.seed(7)
np.random.seed(7)
data = load_digits()
images = (data.images / 16).astype('float32')[:, None]
labels = data.target.astype('int64')
order = np.random.permutation(len(images))
train, held = order[:1437], order[1437:]

net = paddle.nn.Sequential(
    paddle.nn.Conv2D(1, 16, 3, padding=1), paddle.nn.BatchNorm2D(16), paddle.nn.ReLU(),
    paddle.nn.Conv2D(16, 32, 3, padding=1), paddle.nn.ReLU(), paddle.nn.MaxPool2D(2),
    paddle.nn.Flatten(), paddle.nn.Linear(512, 48), paddle.nn.ReLU(), paddle.nn.Dropout(0.3),
    paddle.nn.Linear(48, 10))
optimizer = paddle.optimizer.Adam(2e-3, parameters=net.parameters(), weight_decay=1e-4)
for epoch in range(40):
    net.train()
    for i in range(0, len(train), 64):
        batch = train[np.random.permutation(len(train))[:64]]
        loss = paddle.nn.functional.cross_entropy(net(paddle.to_tensor(images[batch])), paddle.to_tensor(labels[batch]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
net.eval()
hits = (net(paddle.to_tensor(images[held])).numpy().argmax(1) == labels[held]).mean()
print(f'held-out accuracy {hits:.4f} on {len(held)} images')


class Classifier(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.net = net

    def forward(self, image):
        return paddle.nn.functional.softmax(self.net(image))


model = Classifier()
model.eval()
paddle.jit.save(model, 'digits', input_spec=[paddle.static.InputSpec([-1, 1, 8, 8], 'float32', 'image')])
raw = data.images[held].astype('uint8').reshape(len(held), 64)
np.concatenate([raw, labels[held, None].astype('uint8')], 1).tofile('heldout.bin')
