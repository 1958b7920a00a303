#!/usr/bin/env python3
"""Trains both models of the sample on drawn text and writes detect.json, recognize.json, their .pdiparams, page.pgm and page.txt.

Not needed to build or run the sample: the results are checked in. Needs paddlepaddle 3, Pillow and the DejaVu fonts. The
models have the shape of PP-OCR's: detection gives for each pixel the probability that it is in the core of a line
(DB, "Real-time Scene Text Detection with Differentiable Binarization"), recognition gives for each column of a line the
probabilities of the characters and of none (CTC).

    train.py [detect] [recognize] [page]        without an argument all three
"""
import random, sys

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

import draw

SHRINK = 0.75  # how much of a line its core is; DB has 0.4, which leaves lines of few pixels too little
BATCH = 24  # lines that recognition is trained on at once
PAGE_TEXT = ['Invoice No. 20471', 'Paid: 12 March 2024', 'Coffee 3.50', 'Bread + butter 4.25', 'Total $7.75 (incl. 8% tax)',
             'Thank you, come again!', 'Gate B12 boards 18:40', 'Seat 27F - window', 'Order #A7-3391']


def scaled(pixels):
    return pixels.astype('float32') / 127.5 - 1


def block(i, o, stride=1, kernel=3):
    return nn.Sequential(nn.Conv2D(i, o, kernel, stride, kernel // 2, bias_attr=False), nn.BatchNorm2D(o), nn.Hardswish())


class Detect(nn.Layer):
    """image [n, 1, h, w] (h and w multiples of 8) -> probability [n, 1, h, w]"""

    def __init__(self):
        super().__init__()
        self.half, self.quarter = block(1, 8, 2), block(8, 16, 2)
        self.eighth = nn.Sequential(block(16, 24, 2), block(24, 24), block(24, 24, kernel=5))
        self.side, self.merge = nn.Conv2D(16, 24, 1), block(24, 12)
        self.up = nn.Sequential(nn.Conv2DTranspose(12, 8, 2, 2), nn.BatchNorm2D(8), nn.ReLU(), nn.Conv2DTranspose(8, 1, 2, 2))

    def forward(self, image):
        quarter = self.quarter(self.half(image))
        wide = F.interpolate(self.eighth(quarter), scale_factor=2, mode='nearest')
        return F.sigmoid(self.up(self.merge(self.side(quarter) + wide)))


class Recognize(nn.Layer):
    """image [n, 1, 24, w] (w a multiple of 4) -> probability [n, w / 4, characters + 1]; class 0 is none"""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(block(1, 12, 2), block(12, 32, 2), block(32, 48), nn.MaxPool2D((2, 1), (2, 1)))
        self.column = nn.Conv2D(48, 64, (3, 1))
        self.around = nn.Sequential(nn.BatchNorm2D(64), nn.Hardswish(), nn.Conv2D(64, 64, (1, 5), padding=(0, 2), groups=4),
                                    nn.BatchNorm2D(64), nn.Hardswish())
        self.classes = nn.Linear(64, len(draw.CHARACTERS) + 1)

    def logits(self, image):
        x = self.around(self.column(self.features(image)))
        return self.classes(paddle.transpose(paddle.squeeze(x, 2), [0, 2, 1]))

    def forward(self, image):
        return F.softmax(self.logits(image))


def core(shape, boxes):
    """The map that detection is to give."""
    wanted = np.zeros(shape, 'float32')
    for left, top, right, bottom in boxes:
        w, h = right - left, bottom - top
        inward = w * h * (1 - SHRINK ** 2) / (2 * (w + h))
        wanted[int(round(top + inward)):int(round(bottom - inward)) + 1, int(round(left + inward)):int(round(right - inward)) + 1] = 1
    return wanted


def train(net, steps, rate, batch, loss_of):
    net.train()
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(rate, steps)
    optimizer = paddle.optimizer.Adam(schedule, parameters=net.parameters(), weight_decay=1e-5)
    mean = 0
    for step in range(steps):
        loss = loss_of(*batch())
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        mean += float(loss)
        if step % 100 == 99:
            print(f'step {step + 1} loss {mean / 100:.4f}', flush=True)
            mean = 0
    net.eval()


def save(net, name, shape):
    paddle.jit.save(net, name, input_spec=[paddle.static.InputSpec(shape, 'float32', 'image')])


def train_detect(rng):
    net = Detect()

    def batch():
        pages = [draw.page(rng, 192, 160) for _ in range(8)]
        images = np.stack([scaled(p[0]) for p in pages])[:, None]
        return images, np.stack([core(p[0].shape, p[1]) for p in pages])[:, None]

    def loss(images, wanted):
        p, t = net(paddle.to_tensor(images)), paddle.to_tensor(wanted)
        dice = 1 - 2 * (p * t).sum() / ((p * p).sum() + t.sum() + 1)
        return F.binary_cross_entropy(p, t) + dice

    train(net, 700, 4e-3, batch, loss)
    save(net, 'detect', [1, 1, -1, -1])


def train_recognize(rng):
    net = Recognize()

    def batch():
        lines = [draw.line(rng) for _ in range(BATCH)]
        width = (max(image.shape[1] for image, _ in lines) + 3) // 4 * 4
        images, labels = np.zeros((BATCH, 1, draw.LINE_HEIGHT, width), 'float32'), np.zeros((BATCH, 12), 'int32')
        for i, (image, text) in enumerate(lines):
            images[i, 0, :, :image.shape[1]] = scaled(image)
            images[i, 0, :, image.shape[1]:] = images[i, 0, :, image.shape[1] - 1:image.shape[1]]
            labels[i, :len(text)] = [draw.CHARACTERS.index(c) + 1 for c in text]
        columns = np.array([(image.shape[1] + 3) // 4 for image, _ in lines], 'int64')
        return images, labels, columns, np.array([len(text) for _, text in lines], 'int64')

    def loss(images, labels, columns, lengths):
        logits = paddle.transpose(net.logits(paddle.to_tensor(images)), [1, 0, 2])
        return F.ctc_loss(logits, paddle.to_tensor(labels), paddle.to_tensor(columns), paddle.to_tensor(lengths))

    train(net, 5000, 4e-3, batch, loss)
    save(net, 'recognize', [1, 1, draw.LINE_HEIGHT, -1])


def write_page(rng):
    image, _, texts = draw.page(rng, 320, 288, draw.HELD_OUT, PAGE_TEXT)
    with open('page.pgm', 'wb') as f:
        f.write(b'P5\n%d %d\n255\n' % image.shape[::-1])
        f.write(image.tobytes())
    with open('page.txt', 'w') as f:
        f.writelines(text + '\n' for text in texts)


if __name__ == '__main__':
    paddle.seed(7)
    for what in sys.argv[1:] or ['detect', 'recognize', 'page']:
        {'detect': train_detect, 'recognize': train_recognize, 'page': write_page}[what](random.Random(7))
