#!/usr/bin/env python3
"""Networks of no corpus, with random weights: architectures.py FOLDER NAME ... writes new-NAME.{pdmodel,pdiparams,npz,onnx} there;
without arguments it prints the names there are.

bench_new.py calls it with the Python of $PDCC_BENCH/venv, which has Paddle 2.6.2 and Paddle2ONNX. The .npz has the inputs (x0, x1, ...
and their names) and what Paddle computed (y, y1, ...). Each network is a small member of its family, chosen for what its family asks of
kernels: grouped and dilated filters, 1-D and 3-D ones, token layouts, attention of several kinds, few rows, many branches.
"""
import inspect, pathlib, subprocess, sys

import numpy as np
import paddle
from paddle import nn

import more_networks, networks
from network_blocks import Ids

CONVERT = ('import sys, paddle2onnx\n'
           'paddle2onnx.export(sys.argv[1], sys.argv[2], save_file=sys.argv[3], opset_version=16, enable_onnx_checker=True)')
NETWORKS = {f.__name__: f for f in networks.NETWORKS + more_networks.NETWORKS}


def make(folder, name):
    """Writes one network, its inputs, and what Paddle and Paddle2ONNX make of it."""
    paddle.seed(1)
    random = np.random.RandomState(3)
    network, shapes = NETWORKS[name]()
    network.eval()
    names = list(inspect.signature(network.forward).parameters)
    inputs = [random.randint(0, s.limit, s) if isinstance(s, Ids) else random.randn(*s).astype('f4') for s in shapes]
    if isinstance(network, nn.Sequential):
        names = ['input']
    base = str(pathlib.Path(folder) / f'new-{name}')
    paddle.jit.save(network, base, input_spec=[paddle.static.InputSpec(x.shape, str(x.dtype), n) for x, n in zip(inputs, names)])
    outputs = paddle.jit.load(base)(*map(paddle.to_tensor, inputs))
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    arrays = {f'x{i}': x for i, x in enumerate(inputs)} | {f'y{i or ""}': y.numpy() for i, y in enumerate(outputs)}
    np.savez(base + '.npz', names=np.array(names), **arrays)
    subprocess.run([sys.executable, '-c', CONVERT, base + '.pdmodel', base + '.pdiparams', base + '.onnx'], capture_output=True, timeout=300)


if __name__ == '__main__':
    if len(sys.argv) == 1:
        print(*NETWORKS)
    for wanted in sys.argv[2:]:
        make(sys.argv[1], wanted)
