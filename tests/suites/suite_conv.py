"""Convolutions, for CUDA on the emulator, as C for each instruction set that is here, and as lowered IR in the interpreter, against
the interpreter on the program as it was written: windows, paddings, groups, layouts, sizes that the caller chooses, gradients, tensor
cores; with nvcc, that they compile under the gates and use tensor cores."""
import math, pathlib, re, tempfile

import backward, emulated, integers, winograd
from pdcc_tests import BRIEF, run
from suite_cuda import tensor_cores

SLOW = True
LANES = {'generic': 4, 'sse4': 4, 'avx2': 8, 'avx512': 16}
HERE = {'generic': None, 'sse4': 'sse4_2', 'avx2': 'avx2', 'avx512': 'avx512dq'}  # what /proc/cpuinfo says
TOLERANCE = {'f32': 2e-5, 'tf32': 2e-3, 'f16': 2e-3, 'bf16': 2e-2}


def after(size, kernel, stride, before, behind, dilation):
    return (size + before + behind - (kernel - 1) * dilation - 1) // stride + 1


class Case:
    """conv2d of x [N x C x H x W] with `out` channels. `inside`: of a tensor that the program computes, whose rows it knows
    to be aligned. `symbols`: names of the sizes of x that the program leaves open. `dtype`: of all that the convolution reads and
    makes; the feeds and what is fetched are f32."""

    def __init__(self, name, x, out, kernel, stride=1, pads=None, dilation=1, groups=1, residual=False, last=False, inside=False,
                 symbols='', dtype='f32'):
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        top, bottom, left, right = self.pads = pads or [kh // 2, kh // 2, kw // 2, kw // 2]
        self.name, self.stride, self.dilation, self.groups, self.residual = name, stride, dilation, groups, residual
        self.last, self.inside, self.dtype = last, inside, dtype
        self.x, self.w, self.bias = list(x), [out, x[1] // groups, kh, kw], [1, out, 1, 1]
        self.open = [f'?{s}' if s in symbols else size for s, size in zip('nchw', x)]  # text() numbers them
        self.out = [self.open[0], out, after(x[2], kh, stride, top, bottom, dilation), after(x[3], kw, stride, left, right, dilation)]
        for i, s in ((2, 'h'), (3, 'w')):
            if s in symbols:  # such windows keep the size
                self.out[i] = f'?{s}'

    def order(self, dims):
        return [dims[i] for i in (0, 2, 3, 1)] if self.last else dims

    def feeds(self, np, random):
        return [(name, random.standard_normal(dims).astype(np.float32))
                for name, dims in (('x', self.order(self.x)), ('w', self.w), ('b', self.order(self.bias)))]

    def text(self, i, column):
        types = {n: tensor(self.order(d) if n != 'w' else d, i, self.dtype)
                 for n, d in (('x', self.open), ('w', self.w), ('b', self.bias), ('out', self.out))}
        x, w, b, out = types.values()
        rows, at = [], {}
        for place, n in enumerate('xwb'):
            f32 = types[n].replace(self.dtype, 'f32')
            rows.append(f'  %{n}{i} = pd.feed() {{name = "{n}_{i}", col = {column + place}}} : () -> ({f32})')
            at[n] = f'%{n}{i}'
            if self.dtype != 'f32':
                at[n] = f'%{n}h{i}'
                rows.append(f'  {at[n]} = pd.cast(%{n}{i}) {{dtype = {self.dtype}}} : ({f32}) -> ({types[n]})')
        if self.inside:
            rows.append(f'  %a{i} = pd.abs({at["x"]}) : ({x}) -> ({x})')
            at['x'] = f'%a{i}'
        rows.append(f'  %c{i} = pd.conv2d({at["x"]}, {at["w"]}) {{strides = [{self.stride}, {self.stride}], paddings = {self.pads}, dilations = '
                    f'[{self.dilation}, {self.dilation}], groups = {self.groups}, data_format = "{"NHWC" if self.last else "NCHW"}"}} '
                    f': ({x}, {w}) -> ({out})')
        rows.append(f'  %s{i} = pd.add(%c{i}, {at["b"]}) : ({out}, {b}) -> ({out})')
        if self.residual:
            rows.append(f'  %t{i} = pd.add(%s{i}, {at["x"]}) : ({out}, {x}) -> ({out})')
        rows.append(f'  %r{i} = pd.relu(%{"t" if self.residual else "s"}{i}) : ({out}) -> ({out})')
        last, f32 = f'%r{i}', out.replace(self.dtype, 'f32')
        if self.dtype != 'f32':
            last = f'%f{i}'
            rows.append(f'  {last} = pd.cast(%r{i}) {{dtype = f32}} : ({out}) -> ({f32})')
        rows.append(f'  pd.fetch({last}) {{name = "r{i}", col = {i}}} : ({f32}) -> ()')
        return rows

    def near(self, have, want, kind):
        import numpy as np
        terms = self.w[1] * self.w[2] * self.w[3]
        return have.shape == want.shape and np.allclose(have, want, rtol=TOLERANCE[kind] * 4, atol=TOLERANCE[kind] * terms ** 0.5 * 4)


class Transposed:
    """conv2d_transpose of x [N x C x H x W] in groups, or conv3d_transpose of a volume, by a filter that is constant, as its phases
    want it; 1 is padded on each side, and `more` stands behind the result."""
    dtype = 'f32'

    def __init__(self, name, x, out, kernel, stride, groups=1, op='conv2d_transpose', more=0, dilation=1):
        self.name, self.x, self.groups, self.op, self.axes, self.more = name, list(x), groups, op, len(x) - 2, more
        self.dilation = dilation
        self.w, self.stride = [x[1], out // groups] + [kernel] * self.axes, stride
        self.out = [x[0], out] + [(size - 1) * stride - 1 + (kernel - 1) * dilation + more for size in x[2:]]

    def text(self, i, column):
        n = math.prod(self.w)
        values = ', '.join(f'{(k * 37 % 101 - 50) / 100}' for k in range(n))
        x, w, out = (tensor(d, i, 'f32') for d in (self.x, self.w, self.out))
        operands = f'%x{i}, %w{i}' + (', _' if self.axes == 2 else '')
        return [f'  %x{i} = pd.feed() {{name = "x_{i}", col = {column}}} : () -> ({x})',
                f'  %w{i} = builtin.constant() {{value = dense<{w[7:-1]} [{values}]>}} : () -> ({w})',
                f'  %c{i} = pd.{self.op}({operands}) {{strides = {[self.stride] * self.axes}, paddings = {[1] * self.axes}, '
                f'output_padding = {[self.more] * self.axes}, dilations = {[self.dilation] * self.axes}, groups = {self.groups}}}'
                f' : ({x}, {w}) -> ({out})', f'  %r{i} = pd.relu(%c{i}) : ({out}) -> ({out})',
                f'  pd.fetch(%r{i}) {{name = "r{i}", col = {i}}} : ({out}) -> ()']

    def feeds(self, np, random):
        return [('x', random.uniform(-0.5, 0.5, self.x).astype(np.float32))]

    def near(self, have, want, kind):
        import numpy as np
        return have.shape == want.shape and np.allclose(have, want, rtol=TOLERANCE[kind] * 8, atol=TOLERANCE[kind] * 8)


class Few(Transposed):
    """conv2d with few results by a constant filter, padded by 1."""

    def __init__(self, name, x, out, kernel, stride=1):
        super().__init__(name, x, out, 1, stride, op='conv2d')
        self.w = [out, x[1], *kernel]
        self.out = [x[0], out] + [after(size, k, stride, 1, 1, 1) for size, k in zip(x[2:], kernel)]

    def text(self, i, column):
        rows = super().text(i, column)
        return [row.replace(', _)', ')').replace(f'output_padding = {[0, 0]}, ', '') for row in rows]


class Tokens:
    """Tokens [N x H*W x C] seen as an image by a depthwise convolution, with what follows: a bias, a map, `residual` tokens as an
    image, tokens again. `dense`: one more convolution, of all channels, in between. `behind`: the image is made of [N x H x W x C]."""

    def __init__(self, name, n, h, w, c, kernel=3, stride=1, residual=False, dense=False, behind=False, batch=None):
        self.name, self.n, self.h, self.w, self.c, self.kernel, self.stride = name, n, h, w, c, kernel, stride
        self.residual, self.dense, self.behind, self.batch = residual, dense, behind, batch or n

    def feeds(self, np, random):
        c, k = self.c, self.kernel
        return [(name, random.standard_normal(dims).astype(np.float32))
                for name, dims in (('x', (self.n, self.h * self.w, c)), ('w', (c, 1, k, k)), ('b', (1, c, 1, 1)), ('v', (c, c, 1, 1)))]

    def text(self, i, column):
        n, h, w, c, k = self.batch, self.h, self.w, self.c, self.kernel
        oh, ow = (after(size, k, self.stride, k // 2, k // 2, 1) for size in (h, w))
        x, rows, image, turned = ([n, h * w, c], [n, c, h * w], [n, c, h, w], [n, h, w, c])
        out, made, back = [n, c, oh, ow], [n, c, oh * ow], [n, oh * ow, c]
        lines, last = [], []

        def op(name, text, ins, dims):
            types = ', '.join(tensor(d, i, 'f32') for d in ins)
            lines.append(f'  %{name}{i} = {text} : ({types}) -> ({tensor(dims, i, "f32")})')

        def sized(dims):
            return ', '.join(f'{d}{i}' if str(d)[0] == '?' else str(d) for d in dims)

        for place, (name, dims) in enumerate((('x', x), ('w', [c, 1, k, k]), ('b', [1, c, 1, 1]), ('v', [c, c, 1, 1]))):
            op(name, f'pd.feed() {{name = "{name}_{i}", col = {column + place}}}', [], dims)
        op('e', f'pd.tanh(%x{i})', [x], x)
        if self.behind:
            op('s', f'pd.reshape(%e{i}, _) {{shape = dims [{sized(turned)}]}}', [x], turned)
            op('m', f'pd.transpose(%s{i}) {{perm = [0, 3, 1, 2]}}', [turned], image)
        else:
            op('s', f'pd.transpose(%e{i}) {{perm = [0, 2, 1]}}', [x], rows)
            op('m', f'pd.reshape(%s{i}, _) {{shape = dims [{sized(image)}]}}', [rows], image)
        op('d', f'pd.depthwise_conv2d(%m{i}, %w{i}) {{strides = [{self.stride}, {self.stride}], paddings = [{k // 2}, {k // 2}], groups = {c}}}',
           [image, [c, 1, k, k]], out)
        last = f'%d{i}'
        if self.dense:
            op('y', f'pd.conv2d({last}, %v{i}) {{strides = [1, 1], paddings = [0, 0]}}', [out, [c, c, 1, 1]], out)
            last = f'%y{i}'
        op('a', f'pd.add({last}, %b{i})', [out, [1, c, 1, 1]], out)
        op('g', f'pd.gelu(%a{i})', [out], out)
        if self.residual:
            op('h', f'pd.add(%g{i}, %m{i})', [out, image], out)
        op('f', f'pd.reshape(%{"h" if self.residual else "g"}{i}, _) {{shape = dims [{sized(made)}]}}', [out], made)
        op('r', f'pd.transpose(%f{i}) {{perm = [0, 2, 1]}}', [made], back)
        return lines + [f'  pd.fetch(%r{i}) {{name = "r{i}", col = {i}}} : ({tensor(back, i, "f32")}) -> ()']

    def near(self, have, want, kind):
        import numpy as np
        return have.shape == want.shape and np.allclose(have, want, rtol=1e-4, atol=1e-4 * self.c ** 0.5)


class Volume:
    """A block of a network on volumes: a convolution of single pixels, a depthwise one, each with a bias and a map, a gate of the
    mean over all of space, and a residual where sizes allow."""

    def __init__(self, name, x, channels, kernel, strides=(1, 1, 1), pads=None, dilations=(1, 1, 1), keep=True):
        self.name, self.x, self.channels, self.kernel, self.strides = name, list(x), channels, kernel, strides
        self.pads, self.dilations, self.keep = pads or [p for k in kernel for p in (k // 2, k // 2)], dilations, keep
        self.w = {'x': self.x, 'v': [channels, x[1], 1, 1, 1], 'b': [1, channels, 1, 1, 1], 'w': [channels, 1, *kernel]}

    def feeds(self, np, random):
        return [(name, random.standard_normal(dims).astype(np.float32)) for name, dims in self.w.items()]

    def text(self, i, column):
        c, lines = self.channels, []
        inner = [self.x[0], c, *self.x[2:]]
        out = [self.x[0], c] + [after(size, k, s, *self.pads[2 * a:2 * a + 2], d) for a, (size, k, s, d) in
                                enumerate(zip(self.x[2:], self.kernel, self.strides, self.dilations))]
        mean = [self.x[0], c] + [1, 1, 1] * self.keep

        def op(name, text, ins, dims):
            types = ', '.join(tensor(d, i, 'f32') for d in ins)
            lines.append(f'  %{name}{i} = {text} : ({types}) -> ({tensor(dims, i, "f32")})')

        for place, (name, dims) in enumerate(self.w.items()):
            op(name, f'pd.feed() {{name = "{name}_{i}", col = {column + place}}}', [], dims)
        op('p', f'pd.conv3d(%x{i}, %v{i}) {{strides = [1, 1, 1], paddings = [0, 0, 0]}}', [self.x, self.w['v']], inner)
        op('q', f'pd.add(%p{i}, %b{i})', [inner, self.w['b']], inner)
        op('e', f'pd.relu(%q{i})', [inner], inner)
        op('d', f'pd.conv3d(%e{i}, %w{i}) {{strides = {list(self.strides)}, paddings = {self.pads}, dilations = {list(self.dilations)}, '
                f'groups = {c}}}', [inner, self.w['w']], out)
        op('m', f'pd.mean(%d{i}) {{axis = [2, 3, 4], keepdim = {str(self.keep).lower()}}}', [out], mean)
        op('g', f'pd.sigmoid(%m{i})', [mean], mean)
        op('h', f'pd.reshape(%g{i}, _) {{shape = dims {[self.x[0], c, 1, 1, 1]}}}', [mean], [self.x[0], c, 1, 1, 1])
        op('s', f'pd.multiply(%d{i}, %h{i})', [out, [self.x[0], c, 1, 1, 1]], out)
        last = 's'
        if out == inner:
            op('r', f'pd.add(%s{i}, %e{i})', [out, inner], out)
            last = 'r'
        return lines + [f'  pd.fetch(%{last}{i}) {{name = "r{i}", col = {i}}} : ({tensor(out, i, "f32")}) -> ()']

    def near(self, have, want, kind):
        import numpy as np
        return have.shape == want.shape and np.allclose(have, want, rtol=1e-4, atol=1e-4 * math.prod(self.kernel) ** 0.5)


def tensor(dims, i, dtype):
    return 'tensor<' + ' x '.join(f'{d}{i}' if str(d)[0] == '?' else str(d) for d in dims) + f' x {dtype}>'


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
    Case('three results, 7 x 7', (1, 9, 20, 70), 3, 7),
    Case('two results, open sizes', (2, 5, 9, 13), 2, 3, symbols='nhw'),
    Case('one result, stride 2, uneven paddings', (2, 7, 12, 13), 1, 3, 2, [0, 1, 2, 1]),
    Case('groups of few channels, dilated', (2, 12, 11, 9), 18, 3, 1, [2, 2, 2, 2], 2, groups=6),
    Case('few products', (1, 3, 8, 9), 11, 1),
    Case('a large filter', (1, 2, 20, 19), 16, (17, 16), pads=[8, 8, 7, 8]),
    Case('a large depthwise filter', (1, 3, 23, 24), 3, 21, groups=3, residual=True),
    Case('few products, channels behind', (2, 3, 6, 6), 5, 1, last=True, dtype='bf16'),
    Case('groups of few channels', (2, 12, 9, 9), 24, 3, groups=6, dtype='f16'),
    Case('two results a channel', (3, 5, 7, 7), 10, 3, groups=5, dtype='f16'),
    Case('3 x 3, odd channels', (2, 17, 9, 10), 33, 3, dtype='f16'),
    Case('1 x 1, residual, images of a few pixels', (5, 24, 7, 7), 24, 1, residual=True, inside=True, dtype='f16'),
    Case('3 x 3, deep: in parts', (1, 400, 4, 5), 16, 3, dtype='f16'),
    Case('3 x 3, groups of blocks', (2, 32, 9, 9), 48, 3, groups=2, dtype='f16'),
    Case('3 x 3, open sizes', (2, 9, 8, 11), 9, 3, residual=True, symbols='nhw', dtype='f16'),
    Case('depthwise, odd channels', (2, 13, 12, 11), 13, 3, groups=13, residual=True, dtype='f16'),
    Case('depthwise 5 x 5, stride 2, dilated', (2, 16, 19, 18), 16, 5, 2, [4, 3, 2, 4], 2, groups=16, dtype='bf16'),
    Case('3 x 3, stride 2, uneven paddings', (3, 24, 11, 10), 20, 3, 2, [0, 1, 1, 2], dtype='bf16'),
    Case('7 x 7, stride 2, three channels', (2, 3, 20, 22), 64, 7, 2, dtype='bf16'),
    Case('3 x 3, dilated, channels behind', (2, 12, 9, 9), 12, 3, 1, [2, 2, 2, 2], 2, last=True, dtype='bf16'),
)


# Groups of every width beside that of a block, the filters of narrow ones by columns and by taps.
CPU_CASES = (
    Case('depthwise', (2, 5, 9, 13), 5, 3, groups=5),
    Case('depthwise, residual, rows of several tiles', (1, 40, 5, 31), 40, 3, groups=40, residual=True),
    Case('depthwise 5 x 5, stride 2, uneven paddings', (2, 20, 11, 10), 20, 5, 2, [0, 1, 2, 3], groups=20),
    Case('depthwise, dilated', (1, 20, 15, 15), 20, 3, 1, [4, 4, 4, 4], 4, groups=20),
    Case('depthwise, one column', (1, 3, 20, 1), 3, (3, 1), groups=3),
    Case('depthwise 7 x 7', (1, 17, 9, 16), 17, 7, groups=17),
    Case('depthwise, a large filter', (1, 3, 13, 14), 3, 11, groups=3, residual=True),
    Case('depthwise, open sizes', (2, 6, 9, 13), 6, 3, groups=6, residual=True, symbols='nhw'),
    Case('depthwise, stride past the filter', (1, 18, 11, 12), 18, 1, 2, groups=18),
    Case('groups of 2', (2, 22, 9, 10), 22, 3, groups=11, residual=True),
    Case('groups of 4', (2, 36, 9, 17), 36, 3, groups=9),
    Case('groups of 4, stride 2', (1, 32, 10, 17), 32, 3, 2, groups=8),
    Case('groups of 8, dilated', (1, 24, 9, 9), 24, 3, 1, [2, 2, 2, 2], 2, groups=3),
    Case('groups of 8, 1 x 1', (1, 40, 5, 5), 40, 1, groups=5),
    Case('groups of 16', (1, 48, 7, 7), 48, 3, groups=3, residual=True),
    Case('groups of 32, 1 x 1', (2, 64, 7, 9), 64, 1, groups=2),
    Case('groups of 24', (1, 72, 8, 8), 72, 3, groups=3, residual=True),
    Case('groups of 40, 1 x 1', (1, 80, 5, 6), 80, 1, 2, groups=2),
    Case('groups of 80', (1, 160, 4, 5), 160, 3, groups=2),
    Case('groups of 3', (2, 15, 6, 7), 15, 3, groups=5),
    Case('groups of 6 to 10', (2, 18, 6, 7), 30, 3, groups=3),
    Case('groups of 8 to 4', (1, 32, 6, 7), 16, 3, 2, groups=4),
    Case('groups of 4 to 16', (1, 12, 6, 7), 48, (1, 3), groups=3),
    Case('two results a channel', (3, 5, 7, 7), 10, 3, groups=5),
    Case('three results a channel, stride 2', (2, 17, 7, 9), 51, 3, 2, groups=17),
    Case('two results a channel, whole blocks', (1, 32, 5, 8), 64, (3, 1), groups=32),
    Case('groups of 24, open sizes', (2, 48, 6, 9), 48, 3, groups=2, residual=True, symbols='nhw'),
    Case('groups of 4, open sizes', (2, 20, 6, 9), 20, 3, groups=5, residual=True, symbols='nhw'),
    Case('3 x 3', (2, 17, 9, 10), 33, 3),
    Case('3 x 3, residual', (1, 24, 8, 8), 24, 3, residual=True),
    Case('text', (2, 1, 19, 24), 20, (3, 24), pads=[0, 0, 0, 0]),
    Case('text, padded, stride 2, channels, open batch', (2, 3, 19, 10), 20, (4, 10), 2, [2, 1, 0, 0], symbols='n'),
)
TOKENS = (
    Tokens('tokens', 2, 7, 9, 32),
    Tokens('tokens, residual, open batch', 2, 5, 11, 48, residual=True, batch='?n'),
    Tokens('tokens, channels that fill no vector', 1, 5, 6, 18, residual=True),
    Tokens('tokens, stride 2', 1, 8, 9, 16, stride=2),
    Tokens('tokens, 7 x 7', 1, 9, 9, 16, kernel=7, behind=True),
    Tokens('tokens, large filter', 1, 9, 9, 16, kernel=9),
    Tokens('tokens, dense between', 2, 6, 5, 64, dense=True),
    Tokens('tokens, dense between, residual', 2, 6, 5, 32, residual=True, dense=True, behind=True, batch='?n'),
    Tokens('tokens, dense between, odd channels', 1, 6, 5, 20, residual=True, dense=True, behind=True),
)
VOLUMES = (
    Volume('volume', (2, 5, 4, 6, 7), 20, (3, 3, 3)),
    Volume('volume, strides, uneven paddings', (1, 3, 5, 9, 8), 17, (3, 3, 3), (2, 1, 2), [0, 1, 2, 0, 1, 1], keep=False),
    Volume('volume, slices alone', (1, 8, 6, 5, 5), 16, (5, 1, 1)),
    Volume('volume, dilated', (1, 4, 7, 9, 9), 9, (3, 3, 3), (1, 1, 1), [2, 2, 2, 2, 3, 3], (2, 2, 3)),
    Volume('volume of few pixels', (2, 4, 2, 3, 2), 4, (3, 3, 3), (1, 2, 2)),
)

TRANSPOSED = (
    Transposed('transposed, groups', (2, 12, 5, 6), 15, 4, 2, 3),
    Transposed('transposed, groups, stride 1', (1, 4, 5, 6), 6, 3, 1, 2),
    Transposed('transposed, depthwise', (1, 5, 7, 6), 5, 3, 2, 5, 'depthwise_conv2d_transpose'),
    Transposed('transposed, depthwise, whole rows', (2, 20, 5, 6), 20, 4, 2, 20, 'depthwise_conv2d_transpose'),
    Transposed('transposed, depthwise, stride 3, dilated', (1, 17, 4, 5), 17, 4, 3, 17, dilation=2),
    Transposed('transposed, depthwise, stride 1', (1, 9, 5, 6), 9, 3, 1, 9),
    Transposed('transposed, few results, whole rows', (2, 6, 5, 6), 3, 4, 2),
    Transposed('transposed, stride 3, whole rows', (1, 10, 4, 5), 2, 5, 3),
    Transposed('transposed, groups of whole blocks', (1, 32, 5, 6), 64, 2, 2, 2),
    Transposed('transposed', (2, 12, 5, 6), 20, 4, 2),
    Transposed('transposed, few results', (1, 6, 5, 6), 3, 3, 2, more=1),
    Few('one result, 3 x 3', (2, 17, 9, 11), 1, (3, 3)),
    Few('two results, 5 x 3', (1, 20, 8, 13), 2, (5, 3)),
    Few('three results, 7 x 7, stride 2', (1, 9, 15, 16), 3, (7, 7), 2),
    Few('four results, a row', (2, 24, 1, 31), 4, (3, 5)),
    Transposed('transposed, dilated', (2, 6, 5, 6), 20, 3, 2, dilation=2),
    Transposed('transposed, dilated by 3, stride 1', (1, 6, 5, 6), 4, 3, 1, dilation=3),
    Transposed('volume, dilated', (1, 4, 3, 5, 6), 6, 3, 2, op='conv3d_transpose', dilation=3),
    Transposed('volume, a slice behind', (2, 6, 3, 5, 6), 5, 3, 2, op='conv3d_transpose', more=1),
    Transposed('volume, stride 1', (1, 4, 3, 5, 6), 6, 3, 1, op='conv3d_transpose'),
    Transposed('volume, two taps', (1, 8, 4, 5, 4), 17, 4, 2, op='conv3d_transpose'),
    Transposed('volume, stride 3', (2, 3, 3, 4, 5), 4, 3, 3, op='conv3d_transpose', more=2),
)
NETWORK = '''builtin.module {
  %x0 = pd.feed() {name = "x", col = 0} : () -> (tensor<2 x 12 x 8 x 8 x f32>)
  %v0 = pd.feed() {name = "v", col = 1} : () -> (tensor<20 x 12 x 3 x 3 x f32>)
  %w0 = pd.feed() {name = "w", col = 2} : () -> (tensor<12 x 12 x 1 x 1 x f32>)
  %u0 = pd.feed() {name = "u", col = 3} : () -> (tensor<8 x 5 x 3 x 3 x f32>)
  %x = pd.cast(%x0) {dtype = T} : (tensor<2 x 12 x 8 x 8 x f32>) -> (tensor<2 x 12 x 8 x 8 x T>)
  %v = pd.cast(%v0) {dtype = T} : (tensor<20 x 12 x 3 x 3 x f32>) -> (tensor<20 x 12 x 3 x 3 x T>)
  %w = pd.cast(%w0) {dtype = T} : (tensor<12 x 12 x 1 x 1 x f32>) -> (tensor<12 x 12 x 1 x 1 x T>)
  %u = pd.cast(%u0) {dtype = T} : (tensor<8 x 5 x 3 x 3 x f32>) -> (tensor<8 x 5 x 3 x 3 x T>)
  %f = builtin.constant() {value = dense<16 x 5 x 3 x 3 x T [FILTER]>} : () -> (tensor<16 x 5 x 3 x 3 x T>)
  %a = pd.conv2d(%x, %v) {strides = [1, 1], paddings = [1, 1]} : (tensor<2 x 12 x 8 x 8 x T>, tensor<20 x 12 x 3 x 3 x T>) -> (tensor<2 x 20 x 8 x 8 x T>)
  %b = pd.conv2d(%x, %w) {strides = [1, 1], paddings = [0, 0]} : (tensor<2 x 12 x 8 x 8 x T>, tensor<12 x 12 x 1 x 1 x T>) -> (tensor<2 x 12 x 8 x 8 x T>)
  %ab = builtin.combine(%a, %b) : (tensor<2 x 20 x 8 x 8 x T>, tensor<2 x 12 x 8 x 8 x T>) -> (vec<tensor<2 x 20 x 8 x 8 x T>, tensor<2 x 12 x 8 x 8 x T>>)
  %c = pd.concat(%ab) {axis = 1} : (vec<tensor<2 x 20 x 8 x 8 x T>, tensor<2 x 12 x 8 x 8 x T>>) -> (tensor<2 x 32 x 8 x 8 x T>)
  %p = pd.pool2d(%c) {pooling_type = "max", kernel_size = dims [2, 2], strides = [2, 2], paddings = [0, 0]} : (tensor<2 x 32 x 8 x 8 x T>) -> (tensor<2 x 32 x 4 x 4 x T>)
  %s = pd.slice(%p) {axes = [1], starts = dims [3], ends = dims [19]} : (tensor<2 x 32 x 4 x 4 x T>) -> (tensor<2 x 16 x 4 x 4 x T>)
  %t = pd.conv2d_transpose(%s, %f, _) {strides = [2, 2], paddings = [1, 1]} : (tensor<2 x 16 x 4 x 4 x T>, tensor<16 x 5 x 3 x 3 x T>) -> (tensor<2 x 5 x 7 x 7 x T>)
  %r = pd.sigmoid(%t) : (tensor<2 x 5 x 7 x 7 x T>) -> (tensor<2 x 5 x 7 x 7 x T>)
  %e = pd.conv2d(%r, %u) {strides = [1, 1], paddings = [1, 1]} : (tensor<2 x 5 x 7 x 7 x T>, tensor<8 x 5 x 3 x 3 x T>) -> (tensor<2 x 8 x 7 x 7 x T>)
  %m = pd.mean(%e) {axis = [2, 3]} : (tensor<2 x 8 x 7 x 7 x T>) -> (tensor<2 x 8 x T>)
  %o = pd.cast(%m) {dtype = f32} : (tensor<2 x 8 x T>) -> (tensor<2 x 8 x f32>)
  %q = pd.cast(%e) {dtype = f32} : (tensor<2 x 8 x 7 x 7 x T>) -> (tensor<2 x 8 x 7 x 7 x f32>)
  pd.fetch(%o) {name = "o", col = 0} : (tensor<2 x 8 x f32>) -> ()
  pd.fetch(%q) {name = "q", col = 1} : (tensor<2 x 8 x 7 x 7 x f32>) -> ()
}
'''


def network(t, tmp, dtype, *flags):
    """What stands around convolutions in networks, on tensors that keep the layout of tensor cores between them."""
    import numpy as np
    random, feeds, model = np.random.default_rng(2), [], tmp / 'network.pdir'
    for name, dims in (('x', (2, 12, 8, 8)), ('v', (20, 12, 3, 3)), ('w', (12, 12, 1, 1)), ('u', (8, 5, 3, 3))):
        np.save(tmp / f'{name}.npy', random.uniform(-0.5, 0.5, dims).astype(np.float32))
        feeds += ['--in', f'{name}={tmp / f"{name}.npy"}']
    values = ', '.join(f'{x:.3f}' for x in random.uniform(-0.5, 0.5, 16 * 5 * 9))
    model.write_text(re.sub(r'\bT\b', dtype, NETWORK).replace('FILTER', values))
    for target in ('interp', 'cuda'):
        p = run([t.pdcc, 'run', model, '--target', target, '--out-dir', tmp / target, *feeds, *(flags if target == 'cuda' else ())],
                env=emulated.environment(CUDAEMU_SEED='3'))
        yield f'network of {dtype}: {target} runs', p.returncode == 0, p.stdout[-3000:]
    for i in range(2):
        have, want = (np.load(tmp / d / f'0/{i}.npy') for d in ('cuda', 'interp'))
        near = TOLERANCE['tf32' if flags else dtype] * 4
        yield f'network of {dtype}: {i}', np.allclose(have, want, rtol=near, atol=near), f'{have}\n{want}'


def transposed(t, tmp, *ways):
    """What comes of constant filters is not in the text of lowered IR. `ways`: (name, target, flags)."""
    tmp.mkdir()
    program = emulated.Program(t, tmp, TRANSPOSED)
    for out, target, *flags in (('want', 'interp'), *ways):
        p = program.run(target, out, *flags)
        yield f'transposed: {out} runs', p.returncode == 0, p.stdout[-3000:]
        if out != 'want' and p.returncode == 0:
            yield from program.agrees(out, lambda case, have, want: case.near(have, want, case.dtype))


def isas():
    flags = pathlib.Path('/proc/cpuinfo').read_text() if pathlib.Path('/proc/cpuinfo').exists() else ''
    return [isa for isa, flag in HERE.items() if flag is None or f' {flag} ' in flags]


def cpu_results(program, isa):
    """As C; and as the interpreter runs what lowering for that instruction set leaves."""
    lowered = program.tmp / f'{isa}.pdir'
    p = run([program.t.pdcc, 'opt', program.model, '--isa', isa, '--passes=decompose,layout,to-loops,fuse', '-o', lowered])
    yield f'{isa}: lowers', p.returncode == 0, p.stdout[-3000:]
    for out, target, model, flags in ((f'{isa}: as C', 'c', None, ('--isa', isa, *BRIEF)), (f'{isa}: lowered', 'interp', lowered, ())):
        p = program.run(target, out, *flags, model=model)
        yield f'{out}: runs', p.returncode == 0, p.stdout[-3000:]
        if p.returncode == 0:
            yield from program.agrees(out, lambda case, have, want: case.near(have, want, 'f32'))


def cpu(t):
    with tempfile.TemporaryDirectory() as tmp:
        program = emulated.Program(t, pathlib.Path(tmp), CPU_CASES + TOKENS + VOLUMES + backward.CASES)
        p = program.run('interp', 'want')
        yield 'cpu: runs', p.returncode == 0, p.stdout[-3000:]
        for isa in isas():
            yield from cpu_results(program, isa)
        yield from transposed(t, pathlib.Path(tmp) / 'transposed', *((isa, 'c', '--isa', isa, *BRIEF) for isa in isas()))


def suite(t):
    yield from cpu(t)
    yield from integers.cases(t)
    yield from winograd.cases(t, {isa: LANES[isa] for isa in isas()})
    with emulated.folder() as tmp:
        program = emulated.Program(t, tmp, CASES + backward.CASES)
        yield from program.lowered_and_emulated('decompose,layout,to-loops,fuse', lambda case, have, want: case.near(have, want, case.dtype))
        p = program.run('cuda', 'tf32', '--allow-tf32')
        yield 'tf32: runs', p.returncode == 0, p.stdout[-3000:]
        yield from program.agrees('tf32', lambda case, have, want: case.near(have, want, 'tf32' if case.dtype == 'f32' else case.dtype))
        yield from transposed(t, tmp / 'transposed', ('emulated', 'cuda'))
        yield from network(t, tmp, 'bf16')
        yield from network(t, tmp, 'f32', '--allow-tf32')
        if t.config.get('NVCC'):
            yield from tensor_cores(t, program.model, '--allow-tf32')
