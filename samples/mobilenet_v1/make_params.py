#!/usr/bin/env python3
"""Writes mobilenet_v1.pdiparams for mobilenet_v1.pdmodel: 4.25 million made-up weights, the same on every machine.

    make_params.py OUT.pdiparams

Speed does not depend on what the weights are as long as activations stay in a normal range, so they are uniform with the
variance that keeps a signal's size through rectifiers (He), and the sample needs no download. Needs numpy.
"""
import struct, sys

import numpy as np

F32 = 5  # the element type's number in the format
# (channels in, channels out) of each block.
BLOCKS = [(32, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 512)] + [(512, 512)] * 5 + [(512, 1024), (1024, 1024)]


def shapes():
    """Name to shape of every parameter."""
    convs = [(32, 3, 3, 3)]
    for a, b in BLOCKS:
        convs += [(a, 1, 3, 3), (b, a, 1, 1)]  # depthwise, then pointwise
    out = {'linear_0.w_0': (1024, 1000), 'linear_0.b_0': (1000,)}
    for i, shape in enumerate(convs):
        out[f'conv2d_{i}.w_0'] = shape
        for k in ('w_0', 'b_0', 'w_1', 'w_2'):  # scale, shift, mean, variance
            out[f'batch_norm2d_{i}.{k}'] = shape[:1]
    return out


def span(name, shape):
    """The interval that a parameter's values come from."""
    kind, which = name.split('_')[0], name.split('.')[1]
    if kind == 'batch':
        return (0.5, 1.5) if which in ('w_0', 'w_2') else (-0.1, 0.1)
    if len(shape) == 1:
        return -0.05, 0.05
    fan_in = shape[0] if kind == 'linear' else int(np.prod(shape[1:]))
    return -(6 / fan_in) ** 0.5, (6 / fan_in) ** 0.5


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def record(a):
    """One tensor of a combined parameter file: versions, no LoD, description, data."""
    desc = b'\x08' + varint(F32) + b''.join(b'\x10' + varint(d) for d in a.shape)
    return struct.pack('<IQIi', 0, 0, 0, len(desc)) + desc + a.tobytes()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = np.random.default_rng(1)
    with open(sys.argv[1], 'wb') as f:
        for name, shape in sorted(shapes().items()):  # the format's order
            f.write(record(rng.uniform(*span(name, shape), size=shape).astype('<f4')))


if __name__ == '__main__':
    main()
