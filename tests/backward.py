"""What convolutions and pooling give backwards, for suite conv: gradients of filters and of images, by kernels in C, against what
their definitions give in the interpreter."""


def tensor(dims):
    return 'tensor<' + ' x '.join(map(str, dims)) + ' x f32>'


def after(size, kernel, stride, before, behind, dilation=1, up=0):
    return (size + before + behind - (kernel - 1) * dilation - 1 + up) // stride + 1


class Gradient:
    """Of conv2d of x [N x C x H x W] with `out` channels: of its filter, or, `image`, of x, where d comes in for the result.
    pads: top, bottom, left, right."""
    dtype = 'f32'

    def __init__(self, name, x, out, kernel, stride=(1, 1), pads=(1, 1, 1, 1), dilation=(1, 1), groups=1, image=False):
        self.name, self.x, self.image = f'{"image" if image else "filter"} backwards: {name}', list(x), image
        self.w = [out, x[1] // groups, *kernel]
        self.d = [x[0], out] + [after(x[2 + i], kernel[i], stride[i], pads[2 * i], pads[2 * i + 1], dilation[i]) for i in (0, 1)]
        self.attrs = (f'strides = {list(stride)}, paddings = {list(pads)}, dilations = {list(dilation)}, groups = {groups}')

    def feeds(self, np, random):
        return [(name, random.standard_normal(dims).astype(np.float32))
                for name, dims in (('d', self.d), ('w', self.w) if self.image else ('x', self.x))]

    def text(self, i, column):
        other, dims, out = ('w', self.w, self.x) if self.image else ('x', self.x, self.w)
        sizes = f'output_size = dims {self.x[2:]}' if self.image else f'kernel = dims {self.w[2:]}'
        op, operands = ('conv2d_transpose', f'%d{i}, %w{i}') if self.image else ('filter2d_gradient', f'%x{i}, %d{i}')
        types = (self.d, dims) if self.image else (dims, self.d)
        return [f'  %d{i} = pd.feed() {{name = "d_{i}", col = {column}}} : () -> ({tensor(self.d)})',
                f'  %{other}{i} = pd.feed() {{name = "{other}_{i}", col = {column + 1}}} : () -> ({tensor(dims)})',
                f'  %r{i} = pd.{op}({operands}) {{{sizes}, {self.attrs}}} : ({tensor(types[0])}, {tensor(types[1])}) -> ({tensor(out)})',
                f'  pd.fetch(%r{i}) {{name = "r{i}", col = {i}}} : ({tensor(out)}) -> ()']

    def near(self, have, want, kind):
        import numpy as np
        terms = self.d[0] * self.d[2] * self.d[3] + self.d[1] * self.w[2] * self.w[3]
        return have.shape == want.shape and np.allclose(have, want, rtol=1e-4, atol=2e-5 * terms ** 0.5)


class Pool:
    """Of pool2d. `blocked`: of an image that a convolution made. Elements are often equal: the first of them gets the gradient."""
    dtype, X = 'f32', [2, 18, 7, 9]

    def __init__(self, name, kind, kernel, stride=(1, 1), pads=(0, 0), exclusive=True, ceil=False, adaptive=False, blocked=False):
        self.name, self.kind, self.blocked = f'pooling backwards: {name}{", blocked" * blocked}', kind, blocked
        self.out = self.X[:2] + [kernel[i] if adaptive else after(self.X[2 + i], kernel[i], stride[i], pads[i], pads[i], up=(stride[i] - 1) * ceil)
                                 for i in (0, 1)]
        said = {True: 'true', False: 'false'}
        self.attrs = (f'kernel_size = dims {list(kernel)}, strides = {list(stride)}, paddings = {list(pads)}, exclusive = {said[exclusive]}, '
                      f'ceil_mode = {said[ceil]}, adaptive = {said[adaptive]}, pooling_type = "{kind}"')

    def feeds(self, np, random):
        channels = self.X[1]
        return [('x', random.integers(0, 4, self.X).astype(np.float32)), ('d', random.standard_normal(self.out).astype(np.float32)),
                ('v', np.eye(channels, dtype=np.float32).reshape(channels, channels, 1, 1))]

    def text(self, i, column):
        x, d, v = tensor(self.X), tensor(self.out), tensor([self.X[1], self.X[1], 1, 1])
        lines = [f'  %{name}{i} = pd.feed() {{name = "{name}_{i}", col = {column + place}}} : () -> ({type})'
                 for place, (name, type) in enumerate((('x', x), ('d', d), ('v', v)))]
        image = f'%x{i}'
        if self.blocked:
            image = f'%y{i}'
            lines.append(f'  {image} = pd.conv2d(%x{i}, %v{i}) {{strides = [1, 1], paddings = [0, 0]}} : ({x}, {v}) -> ({x})')
        operands, types = f'%d{i}', d
        if self.kind == 'max':
            lines.append(f'  %p{i} = pd.pool2d({image}) {{{self.attrs}}} : ({x}) -> ({d})')
            operands, types = f'%d{i}, {image}, %p{i}', f'{d}, {x}, {d}'
        lines.append(f'  %g{i} = pd.pool2d_gradient({operands}) {{size = dims {self.X[2:]}, {self.attrs}}} : ({types}) -> ({x})')
        last = f'%g{i}'
        if self.blocked:
            last = f'%r{i}'
            lines.append(f'  {last} = pd.add(%g{i}, {image}) : ({x}, {x}) -> ({x})')
        return lines + [f'  pd.fetch({last}) {{name = "r{i}", col = {i}}} : ({x}) -> ()']

    def near(self, have, want, kind):
        import numpy as np
        return have.shape == want.shape and np.allclose(have, want, rtol=1e-5, atol=1e-5)


WINDOWS = (
    ('3 x 3', (3, 16, 8, 8), 32, (3, 3)),
    ('uneven, dilated', (2, 3, 9, 7), 8, (3, 2), (2, 1), (1, 0, 0, 1), (1, 2)),
    ('stride 2, odd channels', (1, 20, 10, 11), 48, (3, 3), (2, 2)),
    ('depthwise', (2, 8, 6, 6), 8, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 8),
    ('depthwise, stride 2, odd channels', (2, 18, 9, 8), 18, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 18),
    ('1 x 1, stride 2', (2, 32, 5, 5), 64, (1, 1), (2, 2), (0, 0, 0, 0)),
    ('groups of blocks', (1, 32, 6, 6), 64, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 2),
    ('groups of few channels', (2, 8, 6, 7), 12, (2, 3), (1, 1), (0, 0, 1, 1), (1, 1), 4),
    ('a column', (2, 24, 7, 30), 32, (5, 1), (1, 3), (2, 2, 0, 0)),
    ('one channel', (1, 1, 12, 12), 4, (5, 5), (1, 1), (0, 0, 0, 0)),
    ('dilated, stride 2', (2, 40, 9, 9), 48, (3, 3), (2, 2), (2, 2, 2, 2), (2, 2)),
    ('three groups', (1, 36, 7, 7), 48, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
)
POOLS = (
    ('max', 'max', (2, 2), (2, 2)),
    ('max, windows overlap', 'max', (3, 3), (2, 2), (1, 1)),
    ('mean, ceil', 'avg', (3, 2), (2, 2), (1, 0), True, True),
    ('mean of the padding, too', 'avg', (3, 3), (2, 1), (1, 1), False),
    ('mean, adaptive', 'avg', (3, 4), (1, 1), (0, 0), True, False, True),
    ('max, adaptive', 'max', (4, 3), (1, 1), (0, 0), True, False, True),
)
CASES = tuple(Gradient(*window, image=image) for window in WINDOWS for image in (False, True)) + \
    tuple(Pool(*pool, blocked=blocked) for pool in POOLS for blocked in (False, True))
