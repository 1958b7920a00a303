"""Convolutions for CUDA, on the emulator and as lowered IR in the interpreter, against the interpreter on the program as it
was written: windows, paddings, groups, layouts, sizes that the caller chooses."""
import os, pathlib, shutil, tempfile

from pdcc_tests import Skip, run

SLOW = True


def after(size, kernel, stride, before, behind, dilation):
    return (size + before + behind - (kernel - 1) * dilation - 1) // stride + 1


class Case:
    """conv2d of x [N x C x H x W] with `out` channels. `inside`: of a tensor that the program computes, whose rows it knows
    to be aligned. `symbols`: names of the sizes of x that the program leaves open."""

    def __init__(self, name, x, out, kernel, stride=1, pads=None, dilation=1, groups=1, residual=False, last=False, inside=False,
                 symbols=''):
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        top, bottom, left, right = self.pads = pads or [kh // 2, kh // 2, kw // 2, kw // 2]
        self.name, self.stride, self.dilation, self.groups, self.residual = name, stride, dilation, groups, residual
        self.last, self.inside = last, inside
        self.x, self.w, self.bias = list(x), [out, x[1] // groups, kh, kw], [1, out, 1, 1]
        self.open = [f'?{s}' if s in symbols else size for s, size in zip('nchw', x)]  # text() numbers them
        self.out = [self.open[0], out, after(x[2], kh, stride, top, bottom, dilation), after(x[3], kw, stride, left, right, dilation)]
        for i, s in ((2, 'h'), (3, 'w')):
            if s in symbols:  # such windows keep the size
                self.out[i] = f'?{s}'

    def order(self, dims):
        return [dims[i] for i in (0, 2, 3, 1)] if self.last else dims

    def text(self, i, column):
        x, w, b, out = (tensor(self.order(d) if d is not self.w else d, i) for d in (self.open, self.w, self.bias, self.out))
        rows = ['  %%%s%d = pd.feed() {name = "%s%d", col = %d} : () -> (%s)' % (n, i, n, i, column + at, t)
                for at, (n, t) in enumerate((('x', x), ('w', w), ('b', b)))]
        if self.inside:
            rows.append(f'  %a{i} = pd.abs(%x{i}) : ({x}) -> ({x})')
        rows.append(f'  %c{i} = pd.conv2d(%{"a" if self.inside else "x"}{i}, %w{i}) {{strides = [{self.stride}, {self.stride}], paddings = {self.pads}, dilations = '
                    f'[{self.dilation}, {self.dilation}], groups = {self.groups}, data_format = "{"NHWC" if self.last else "NCHW"}"}} '
                    f': ({x}, {w}) -> ({out})')
        rows.append(f'  %s{i} = pd.add(%c{i}, %b{i}) : ({out}, {b}) -> ({out})')
        if self.residual:
            rows.append(f'  %t{i} = pd.add(%s{i}, %x{i}) : ({out}, {x}) -> ({out})')
        rows.append(f'  %r{i} = pd.relu(%{"t" if self.residual else "s"}{i}) : ({out}) -> ({out})')
        rows.append(f'  pd.fetch(%r{i}) {{name = "r{i}", col = {i}}} : ({out}) -> ()')
        return rows


def tensor(dims, i):
    return 'tensor<' + ' x '.join(f'{d}{i}' if str(d)[0] == '?' else str(d) for d in dims) + ' x f32>'


CASES = (
    Case('depthwise', (2, 5, 9, 13), 5, 3, groups=5),
    Case('depthwise, four rows a thread', (1, 300, 12, 80), 300, 3, groups=300, residual=True),
    Case('depthwise, two rows, stride 2', (1, 150, 12, 80), 150, 3, 2, groups=150),
    Case('depthwise 5 x 5, uneven paddings', (2, 4, 11, 10), 4, 5, 2, [0, 1, 2, 3], groups=4),
    Case('depthwise, dilated', (1, 4, 15, 15), 4, 3, 1, [4, 4, 4, 4], 4, groups=4),
    Case('depthwise, two results a channel', (3, 4, 7, 7), 8, 3, groups=4),
    Case('depthwise, one column', (1, 3, 20, 1), 3, (3, 1), groups=3),
    Case('depthwise, open sizes', (2, 6, 9, 13), 6, 3, groups=6, residual=True, symbols='nh'),
    Case('depthwise, channels behind', (2, 6, 9, 13), 6, 3, groups=6, last=True),
    Case('1 x 1', (2, 20, 6, 6), 36, 1),
    Case('1 x 1, aligned', (2, 20, 6, 6), 36, 1, inside=True),
    Case('1 x 1, aligned image, odd channels', (1, 20, 6, 6), 35, 1, inside=True),
    Case('1 x 1, odd sizes', (2, 19, 5, 7), 19, 1, residual=True, inside=True),
    Case('1 x 1, stride 2', (2, 20, 9, 9), 40, 1, 2),
    Case('3 x 3', (2, 17, 9, 10), 33, 3),
    Case('3 x 3, residual', (1, 24, 8, 8), 24, 3, residual=True),
    Case('3 x 3, stride 2, uneven paddings', (1, 16, 11, 12), 20, 3, 2, [0, 1, 1, 2]),
    Case('3 x 3, dilated', (1, 8, 13, 13), 12, 3, 1, [2, 2, 2, 2], 2),
    Case('7 x 7, stride 2, three channels', (1, 3, 30, 30), 16, 7, 2),
    Case('1-D', (3, 10, 1, 40), 8, (1, 5)),
    Case('3 x 3, groups', (2, 12, 9, 9), 24, 3, groups=3),
    Case('3 x 3, groups of odd size', (1, 12, 7, 7), 18, 3, groups=3),
    Case('3 x 3, open sizes', (2, 9, 8, 11), 9, 3, residual=True, symbols='nhw'),
    Case('1 x 1, open sizes', (3, 9, 8, 8), 16, 1, inside=True, symbols='nh'),
    Case('3 x 3, deep: in parts', (1, 200, 4, 5), 16, 3),
    Case('1 x 1, deep: in parts', (1, 1000, 4, 4), 24, 1, inside=True),
    Case('3 x 3, channels behind', (2, 8, 9, 9), 12, 3, last=True),
)


def suite(t):
    if not shutil.which('g++'):
        raise Skip('g++ is not installed')
    import numpy as np
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as tmp:
        tmp, feeds, rows = pathlib.Path(tmp), [], ['builtin.module {']
        for i, case in enumerate(CASES):
            rows += case.text(i, len(feeds) // 2)
            for name, dims in (('x', case.order(case.x)), ('w', case.w), ('b', case.order(case.bias))):
                np.save(tmp / f'{name}{i}.npy', random.standard_normal(dims).astype(np.float32))
                feeds += ['--in', f'{name}{i}={tmp / f"{name}{i}.npy"}']
        model, lowered = tmp / 'model.pdir', tmp / 'lowered.pdir'
        model.write_text('\n'.join(rows + ['}', '']))
        p = run([t.pdcc, 'opt', model, '--isa', 'cuda', '--passes=decompose,layout,to-loops,fuse', '-o', lowered])
        yield 'lowers', p.returncode == 0, p.stdout[-3000:]
        for name, what, target in (('want', model, 'interp'), ('lowered', lowered, 'interp'), ('emulated', model, 'cuda')):
            p = run([t.pdcc, 'run', what, '--target', target, '--out-dir', tmp / name, *feeds],
                    env={**os.environ, 'PDCC_EMULATE': '1', 'CUDAEMU_SEED': '3'})
            yield f'{name}: runs', p.returncode == 0, p.stdout[-3000:]
        for name in ('lowered', 'emulated'):
            for i, case in enumerate(CASES):
                have, want = (np.load(tmp / d / f'0/{i}.npy') for d in (name, 'want'))
                yield f'{name}: {case.name}', np.allclose(have, want, rtol=1e-4, atol=1e-4), f'{have}\n{want}'
