"""More networks for architectures.py, of families that networks.py has none of; in the same form."""
import numpy as np
import paddle
from paddle import nn
import paddle.nn.functional as F

from network_blocks import Apply, Attention, Chain, Gate, Ids, Residual, conv, dense, encoder, head


# ---- images ----------------------------------------------------------------------------------------------------------------------------

def ghost():
    """Half of the channels by 1 x 1 filters, the other half from those by cheap depthwise ones."""
    def module(i, o, act=nn.ReLU):
        return nn.Sequential(conv(i, o // 2, 1, act=act), Chain(conv(o // 2, o // 2, 3, groups=o // 2, act=act)))

    def block(i, hidden, o, kernel, stride, gate):
        f = [module(i, hidden)] + ([conv(hidden, hidden, kernel, stride, hidden, None)] if stride > 1 else [])
        f += ([Gate(hidden, hidden // 4, gate=nn.Hardsigmoid)] if gate else []) + [module(hidden, o, None)]
        short = None if stride == 1 and i == o else nn.Sequential(conv(i, i, kernel, stride, i, None), conv(i, o, 1, act=None))
        return Residual(nn.Sequential(*f), short)
    layers = [conv(3, 16, 3, 2), block(16, 16, 16, 3, 1, False), block(16, 48, 24, 3, 2, False), block(24, 72, 24, 3, 1, False),
              block(24, 72, 40, 5, 2, True), block(40, 120, 40, 5, 1, True), block(40, 240, 80, 3, 2, False), block(80, 200, 80, 3, 1, False),
              block(80, 480, 112, 3, 1, True), block(112, 672, 160, 5, 2, True), block(160, 960, 160, 5, 1, True), conv(160, 960, 1)]
    return nn.Sequential(*layers, *head(960)), [(1, 3, 224, 224)]


def hrnet():
    """Three resolutions side by side that are summed again and again."""
    class Level(nn.Layer):
        def __init__(self, widths):
            super().__init__()
            self.own = nn.LayerList([nn.Sequential(*[Residual(nn.Sequential(conv(w, w), conv(w, w, act=None)), behind=nn.ReLU()) for _ in range(2)])
                                     for w in widths])
            self.cross = nn.LayerList([nn.LayerList([self.path(widths, i, o) for i in range(len(widths))]) for o in range(len(widths))])

        @staticmethod
        def path(widths, i, o):
            if i == o:
                return nn.Identity()
            if i > o:
                return nn.Sequential(conv(widths[i], widths[o], 1, act=None), nn.Upsample(scale_factor=2 ** (i - o), mode='nearest'))
            return nn.Sequential(*[conv(widths[i], widths[o] if s == o - 1 else widths[i], 3, 2,
                                        act=None if s == o - 1 else nn.ReLU) for s in range(i, o)])

        def forward(self, xs):
            xs = [f(x) for f, x in zip(self.own, xs)]
            return [F.relu(sum(f(x) for f, x in zip(row, xs))) for row in self.cross]

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            w = (18, 36, 72)
            self.stem = nn.Sequential(conv(3, 32, 3, 2), conv(32, 18, 3, 2))
            self.down = nn.LayerList([conv(18, 36, 3, 2), conv(36, 72, 3, 2)])
            self.levels = nn.LayerList([Level(w) for _ in range(3)])
            self.last = nn.Conv2D(sum(w), 17, 1)

        def forward(self, x):
            xs = [self.stem(x)]
            for f in self.down:
                xs.append(f(xs[-1]))
            for f in self.levels:
                xs = f(xs)
            xs = xs[:1] + [F.interpolate(x, size=[48, 36], mode='bilinear') for x in xs[1:]]
            return self.last(paddle.concat(xs, 1))
    return Net(), [(1, 3, 192, 144)]


def mobilevit():
    """Attention between the same pixels of all 2 x 2 patches, between inverted bottlenecks."""
    def bottleneck(i, o, stride):
        f = nn.Sequential(conv(i, 4 * i, 1, act=nn.Silu), conv(4 * i, 4 * i, 3, stride, 4 * i, nn.Silu), conv(4 * i, o, 1, act=None))
        return Residual(f) if stride == 1 and i == o else f

    class Vit(nn.Layer):
        def __init__(self, channels, width, layers, side):
            super().__init__()
            self.width, self.side = width, side
            self.into = nn.Sequential(conv(channels, channels, 3, act=nn.Silu), nn.Conv2D(channels, width, 1))
            self.layers, self.out = encoder(width, 4, 2 * width, layers, nn.Silu), conv(width, channels, 1, act=nn.Silu)
            self.last = conv(2 * channels, channels, 3, act=nn.Silu)

        def forward(self, x):
            h = self.side // 2
            y = self.into(x).reshape([1, self.width, h, 2, h, 2]).transpose([0, 3, 5, 2, 4, 1]).reshape([4, h * h, self.width])
            y = self.layers(y).reshape([1, 2, 2, h, h, self.width]).transpose([0, 5, 3, 1, 4, 2]).reshape([1, self.width, 2 * h, 2 * h])
            return self.last(paddle.concat([x, self.out(y)], 1))
    layers = [conv(3, 16, 3, 2, act=nn.Silu), bottleneck(16, 24, 2), bottleneck(24, 24, 1), bottleneck(24, 48, 2), Vit(48, 64, 2, 32),
              bottleneck(48, 64, 2), Vit(64, 80, 2, 16), bottleneck(64, 80, 2), Vit(80, 96, 2, 8), conv(80, 320, 1, act=nn.Silu)]
    return nn.Sequential(*layers, *head(320)), [(1, 3, 256, 256)]


def detector():
    """A backbone of crossing stages, pooled pyramids, a path up and down again, three heads with their grids."""
    silu = nn.Silu

    class Stage(nn.Layer):
        def __init__(self, i, o, n, add=True):
            super().__init__()
            h = o // 2
            self.a, self.b, self.c = conv(i, h, 1, act=silu), conv(i, h, 1, act=silu), conv(o, o, 1, act=silu)
            block = [nn.Sequential(conv(h, h, 1, act=silu), conv(h, h, 3, act=silu)) for _ in range(n)]
            self.f = nn.Sequential(*[Residual(b) if add else b for b in block])

        def forward(self, x):
            return self.c(paddle.concat([self.f(self.a(x)), self.b(x)], 1))

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.one = nn.Sequential(conv(3, 16, 5, 2, act=silu), conv(16, 32, 3, 2, act=silu), Stage(32, 32, 1), conv(32, 64, 3, 2, act=silu),
                                     Stage(64, 64, 2))
            self.two = nn.Sequential(conv(64, 128, 3, 2, act=silu), Stage(128, 128, 3))
            pool = nn.MaxPool2D(5, 1, 2)
            self.three = nn.Sequential(conv(128, 256, 3, 2, act=silu), Stage(256, 256, 1), conv(256, 128, 1, act=silu), Chain(pool, pool, pool),
                                       conv(512, 256, 1, act=silu), conv(256, 128, 1, act=silu))
            self.up = nn.Upsample(scale_factor=2)
            self.a, self.b = nn.Sequential(Stage(256, 128, 1, False), conv(128, 64, 1, act=silu)), Stage(128, 64, 1, False)
            self.c, self.d = conv(64, 64, 3, 2, act=silu), Stage(128, 128, 1, False)
            self.e, self.f = conv(128, 128, 3, 2, act=silu), Stage(256, 256, 1, False)
            self.heads = nn.LayerList([nn.Conv2D(i, 3 * 25, 1) for i in (64, 128, 256)])
            for i, n in enumerate((40, 20, 10)):
                y, x = np.meshgrid(np.arange(n), np.arange(n), indexing='ij')
                self.register_buffer(f'grid{i}', paddle.to_tensor(np.stack([x, y], -1).astype('f4')[None, None] - 0.5))

        def decode(self, i, x, stride):
            n = x.shape[2]
            y = F.sigmoid(self.heads[i](x).reshape([1, 3, 25, n, n]).transpose([0, 1, 3, 4, 2]))
            at, size, rest = paddle.split(y, [2, 2, 21], -1)
            at = (at * 2 + getattr(self, f'grid{i}')) * stride
            return paddle.concat([at, (size * 2) ** 2 * (4.0 * stride), rest], -1).reshape([1, -1, 25])

        def forward(self, x):
            p3 = self.one(x)
            p4 = self.two(p3)
            p5 = self.three(p4)
            m4 = self.a(paddle.concat([self.up(p5), p4], 1))
            n3 = self.b(paddle.concat([self.up(m4), p3], 1))
            n4 = self.d(paddle.concat([self.c(n3), m4], 1))
            n5 = self.f(paddle.concat([self.e(n4), p5], 1))
            return paddle.concat([self.decode(0, n3, 8.), self.decode(1, n4, 16.), self.decode(2, n5, 32.)], 1)
    return Net(), [(1, 3, 320, 320)]


def efficientnet_v2():
    """Bottlenecks with one 3 x 3 filter in place of two, then gated ones."""
    silu = nn.Silu

    def fused(i, o, times, stride):
        f = nn.Sequential(conv(i, times * i, 3, stride, act=silu), conv(times * i, o, 1, act=None)) if times > 1 else conv(i, o, 3, stride, act=silu)
        return Residual(f) if i == o and stride == 1 else f

    def gated(i, o, times, stride):
        h = times * i
        f = nn.Sequential(conv(i, h, 1, act=silu), conv(h, h, 3, stride, h, silu), Gate(h, i // 4, silu), conv(h, o, 1, act=None))
        return Residual(f) if i == o and stride == 1 else f
    layers = [conv(3, 24, 3, 2, act=silu), fused(24, 24, 1, 1), fused(24, 48, 4, 2), fused(48, 48, 4, 1), fused(48, 64, 4, 2), fused(64, 64, 4, 1),
              gated(64, 128, 4, 2), gated(128, 128, 4, 1), gated(128, 160, 6, 1), gated(160, 256, 6, 2), gated(256, 256, 6, 1), conv(256, 1280,
                                                                                                                                     1, act=silu)]
    return nn.Sequential(*layers, *head(1280)), [(1, 3, 192, 192)]


def res2net():
    """Groups of channels, each of which also sees what the one before it became."""
    class Split(nn.Layer):
        def __init__(self, width):
            super().__init__()
            self.layers = nn.LayerList([conv(width, width) for _ in range(3)])

        def forward(self, x):
            parts = paddle.split(x, 4, 1)
            found = [self.layers[0](parts[0])]
            for f, part in zip(list(self.layers)[1:], parts[1:]):
                found.append(f(found[-1] + part))
            return paddle.concat(found + [parts[3]], 1)

    def block(i, width, o):
        f = nn.Sequential(conv(i, 4 * width, 1), Split(width), conv(4 * width, o, 1, act=None))
        return Residual(f, None if i == o else conv(i, o, 1, act=None), nn.ReLU())
    layers = [conv(3, 64, 7, 2), nn.MaxPool2D(3, 2, 1), block(64, 26, 256), block(256, 26, 256), nn.AvgPool2D(2), block(256, 52, 512), block(512,
                                                                                                                                             52, 512),
              nn.AvgPool2D(2), block(512, 104, 1024), block(1024, 104, 1024)]
    return nn.Sequential(*layers, *head(1024)), [(1, 3, 224, 224)]


def poolformer():
    """What is around a pixel, averaged, in place of attention; norms over all of an image."""
    def block(width):
        class Mix(nn.Layer):
            def __init__(self):
                super().__init__()
                self.norm, self.pool = nn.GroupNorm(1, width), nn.AvgPool2D(3, 1, 1)
                self.scale = self.create_parameter([width, 1, 1])

            def forward(self, x):
                y = self.norm(x)
                return x + (self.pool(y) - y) * self.scale
        mlp = nn.Sequential(nn.GroupNorm(1, width), nn.Conv2D(width, 4 * width, 1), nn.GELU(), nn.Conv2D(4 * width, width, 1))
        return nn.Sequential(Mix(), Residual(mlp))
    layers, width = [nn.Conv2D(3, 64, 7, 4, 3)], 64
    for o in (64, 128, 320):
        layers += ([nn.Conv2D(width, o, 3, 2, 1)] if o != width else []) + [block(o), block(o)]
        width = o
    return nn.Sequential(*layers, nn.GroupNorm(1, width), *head(width)), [(1, 3, 224, 224)]


def pvt():
    """Attention of all pixels to a coarser image of them."""
    class Reduced(nn.Layer):
        def __init__(self, width, heads, ratio, side):
            super().__init__()
            self.side, self.norm, self.attention = side, nn.LayerNorm(width), Attention(width, heads)
            self.reduce = nn.Conv2D(width, width, ratio, ratio) if ratio > 1 else None
            self.after = nn.LayerNorm(width)

        def forward(self, x):
            y = self.norm(x)
            if not self.reduce:
                return x + self.attention(y)
            z = self.reduce(y.transpose([0, 2, 1]).reshape([1, -1, self.side, self.side])).flatten(2).transpose([0, 2, 1])
            return x + self.attention(y, self.after(z))

    class Stage(nn.Layer):
        def __init__(self, i, width, patch, heads, ratio, side):
            super().__init__()
            self.embed, self.norm, self.side, self.width = nn.Conv2D(i, width, patch, patch), nn.LayerNorm(width), side, width
            self.layers = nn.Sequential(*[f for _ in range(2) for f in (Reduced(width, heads, ratio, side), Residual(dense(width, 4 * width,
                                                                                                                           nn.GELU)))])

        def forward(self, x):
            y = self.layers(self.norm(self.embed(x).flatten(2).transpose([0, 2, 1])))
            return y.transpose([0, 2, 1]).reshape([1, self.width, self.side, self.side])
    return nn.Sequential(Stage(3, 32, 4, 1, 8, 56), Stage(32, 64, 2, 2, 4, 28), Stage(64, 160, 2, 5, 2, 14), Stage(160, 256, 2, 8, 1, 7),
                         *head(256)), [(1, 3, 224, 224)]


def restorer():
    """Norms over channels, halves multiplied with each other, weights from the mean, pixels shuffled up."""
    class Norm(nn.Layer):
        def __init__(self, c):
            super().__init__()
            self.w, self.b = self.create_parameter([c, 1, 1]), self.create_parameter([c, 1, 1], is_bias=True)

        def forward(self, x):
            d = x - x.mean(1, keepdim=True)
            return d * paddle.rsqrt((d * d).mean(1, keepdim=True) + 1e-6) * self.w + self.b

    class Halves(nn.Layer):
        def forward(self, x):
            a, b = paddle.chunk(x, 2, 1)
            return a * b

    class Weigh(nn.Layer):
        def __init__(self, c):
            super().__init__()
            self.f = nn.Sequential(nn.AdaptiveAvgPool2D(1), nn.Conv2D(c, c, 1))

        def forward(self, x):
            return x * self.f(x)

    def block(c):
        a = nn.Sequential(Norm(c), nn.Conv2D(c, 2 * c, 1), nn.Conv2D(2 * c, 2 * c, 3, padding=1, groups=2 * c), Halves(), Weigh(c), nn.Conv2D(c,
                                                                                                                                              c, 1))
        b = nn.Sequential(Norm(c), nn.Conv2D(c, 2 * c, 1), Halves(), nn.Conv2D(c, c, 1))
        return nn.Sequential(Residual(a), Residual(b))

    class Net(nn.Layer):
        def __init__(self, c=16):
            super().__init__()
            self.first, self.last = nn.Conv2D(3, c, 3, padding=1), nn.Conv2D(c, 3, 3, padding=1)
            self.down = nn.LayerList([nn.Sequential(block(c << i), block(c << i)) for i in range(3)])
            self.half = nn.LayerList([nn.Conv2D(c << i, c << i + 1, 2, 2) for i in range(3)])
            self.middle = block(c << 3)
            self.twice = nn.LayerList([nn.Sequential(nn.Conv2D(c << i + 1, c << i + 2, 1, bias_attr=False), nn.PixelShuffle(2)) for i in range(3)])
            self.up = nn.LayerList([block(c << i) for i in range(3)])

        def forward(self, x):
            y, kept = self.first(x), []
            for f, half in zip(self.down, self.half):
                kept.append(f(y))
                y = half(kept[-1])
            y = self.middle(y)
            for i in (2, 1, 0):
                y = self.up[i](self.twice[i](y) + kept[i])
            return self.last(y) + x
    return Net(), [(1, 3, 128, 128)]


def attention_unet():
    """Filters up and down, where what is passed across is weighed by what comes from below."""
    def double(i, o):
        return nn.Sequential(conv(i, o), conv(o, o))

    class Across(nn.Layer):
        def __init__(self, c):
            super().__init__()
            self.g, self.x, self.psi = conv(c, c // 2, 1, act=None), conv(c, c // 2, 1, act=None), nn.Sequential(nn.Conv2D(c // 2, 1, 1),
                                                                                                                 nn.Sigmoid())

        def forward(self, g, x):
            return x * self.psi(F.relu(self.g(g) + self.x(x)))

    class Net(nn.Layer):
        def __init__(self, w=(16, 32, 64, 128)):
            super().__init__()
            self.down = nn.LayerList([double(i, o) for i, o in zip((1,) + w, w)])
            self.up = nn.LayerList([nn.Sequential(nn.Upsample(scale_factor=2, mode='bilinear'), conv(o, i)) for i, o in zip(w, w[1:])])
            self.gate = nn.LayerList([Across(i) for i in w[:-1]])
            self.join = nn.LayerList([double(2 * i, i) for i in w[:-1]])
            self.last = nn.Conv2D(w[0], 2, 1)

        def forward(self, x):
            found = []
            for i, f in enumerate(self.down):
                x = f(F.max_pool2d(x, 2) if i else x)
                found.append(x)
            for i in (2, 1, 0):
                g = self.up[i](x)
                x = self.join[i](paddle.concat([self.gate[i](g, found[i]), g], 1))
            return self.last(x)
    return Net(), [(1, 1, 192, 192)]


def nasnet():
    """Cells of many separable branches of 3, 5 and 7."""
    def sep(i, o, k, stride=1):
        return nn.Sequential(nn.ReLU(), conv(i, i, k, stride, i, None), conv(i, o, 1, act=None),
                             nn.ReLU(), conv(o, o, k, 1, o, None), conv(o, o, 1, act=None))

    class Cell(nn.Layer):
        def __init__(self, i, o, stride):
            super().__init__()
            self.into = nn.Sequential(nn.ReLU(), conv(i, o, 1, act=None))
            self.a, self.b, self.c = sep(o, o, 5, stride), sep(o, o, 3, stride), sep(o, o, 7, stride)
            self.avg, self.max = nn.AvgPool2D(3, stride, 1), nn.MaxPool2D(3, stride, 1)

        def forward(self, x):
            x = self.into(x)
            return paddle.concat([self.a(x) + self.b(x), self.c(x) + self.avg(x), self.max(x) + self.b(x)], 1)
    layers = [conv(3, 32, 3, 2, act=None), Cell(32, 32, 2), Cell(96, 32, 1), Cell(96, 64, 2), Cell(192, 64, 1), Cell(192, 128, 2), nn.ReLU()]
    return nn.Sequential(*layers, *head(384)), [(1, 3, 160, 160)]


def shuffle():
    """1 x 1 filters in groups whose channels are dealt out between them."""
    def deal(g):
        return Apply(lambda x: x.reshape([x.shape[0], g, x.shape[1] // g, x.shape[2], x.shape[3]]).transpose([0, 2, 1, 3, 4]).reshape(x.shape))

    class Unit(nn.Layer):
        def __init__(self, i, o, stride, g=3):
            super().__init__()
            h = o // 4 // g * g
            self.stride, to = stride, o - i if stride == 2 else o
            self.f = nn.Sequential(conv(i, h, 1, groups=g if i > 24 else 1), deal(g), conv(h, h, 3, stride, h, None), conv(h, to, 1, groups=g,
                                                                                                                           act=None))
            self.pool = nn.AvgPool2D(3, 2, 1)

        def forward(self, x):
            y = self.f(x)
            return F.relu(paddle.concat([self.pool(x), y], 1) if self.stride == 2 else x + y)
    layers = [conv(3, 24, 3, 2), nn.MaxPool2D(3, 2, 1), Unit(24, 240, 2), Unit(240, 240, 1), Unit(240, 240, 1), Unit(240, 480, 2), Unit(480, 480, 1),
              Unit(480, 480, 1), Unit(480, 960, 2), Unit(960, 960, 1)]
    return nn.Sequential(*layers, *head(960)), [(1, 3, 224, 224)]


def cifar():
    """Sixteen small images."""
    layers, width = [conv(3, 16)], 16
    for o in (16, 32, 64):
        for i in range(3):
            stride = 2 if o != width else 1
            layers.append(Residual(nn.Sequential(conv(width, o, 3, stride), conv(o, o, act=None)), conv(width, o, 1, stride,
                                                                                                        act=None) if stride > 1 else None,
                                   nn.ReLU()))
            width = o
    return nn.Sequential(*layers, *head(64, 10)), [(16, 3, 32, 32)]


# ---- signals and series -----------------------------------------------------------------------------------------------------------------

def ecg():
    """Long filters over a signal of twelve leads."""
    def conv1(i, o, k, s=1):
        return [nn.Conv1D(i, o, k, s, k // 2, bias_attr=False), nn.BatchNorm1D(o)]

    def block(i, o, s):
        short = nn.Sequential(nn.MaxPool1D(s), nn.Conv1D(i, o, 1, bias_attr=False))
        f = nn.Sequential(*conv1(i, o, 17), nn.ReLU(), *conv1(o, o, 17, s))
        return Residual(f, short, nn.ReLU())
    layers = [*conv1(12, 64, 17), nn.ReLU(), block(64, 128, 4), block(128, 196, 4), block(196, 256, 4), block(256, 320, 4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(320 * 16, 6)), [(1, 12, 4096)]


def sound():
    """Bands of a spectrum as an image that is pooled in both directions."""
    layers = [f for i, o in ((1, 32), (32, 64), (64, 128), (128, 256)) for f in (conv(i, o), conv(o, o), nn.AvgPool2D(2))]
    pool = Apply(lambda x: (lambda y: y.max(2) + y.mean(2))(x.mean(3)))
    return nn.Sequential(*layers, pool, nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 50), nn.Sigmoid()), [(1, 1, 240, 64)]


def patches():
    """Forecasts from patches of seven series, each by itself."""
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Linear(16, 128), self.create_parameter([1, 42, 128])
            self.layers, self.last = encoder(128, 8, 256, 3), nn.Linear(42 * 128, 96)

        def forward(self, x):
            mean = x.mean(1, keepdim=True)
            dev = paddle.sqrt(((x - mean) ** 2).mean(1, keepdim=True) + 1e-5)
            y = ((x - mean) / dev).transpose([0, 2, 1]).reshape([-1, 42, 8])
            y = paddle.concat([y, paddle.roll(y, -1, 1)], -1)
            y = self.layers(self.embed(y) + self.place).flatten(1)
            return self.last(y).reshape([-1, 7, 96]).transpose([0, 2, 1]) * dev + mean
    return Net(), [(4, 336, 7)]


# ---- tables, points, graphs -------------------------------------------------------------------------------------------------------------

def din():
    """What was read before, weighed by a small network of it and of what is offered."""
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(1000, 32)
            self.weigh = nn.Sequential(nn.Linear(128, 80), nn.Sigmoid(), nn.Linear(80, 40), nn.Sigmoid(), nn.Linear(40, 1))
            self.top = nn.Sequential(nn.Linear(96, 200), nn.PReLU(), nn.Linear(200, 80), nn.PReLU(), nn.Linear(80, 1), nn.Sigmoid())

        def forward(self, offered, seen):
            a, b = self.embed(offered), self.embed(seen)
            wide = a.expand([-1, 50, -1])
            w = self.weigh(paddle.concat([wide, b, wide - b, wide * b], -1)).transpose([0, 2, 1])
            w = F.softmax(paddle.where((seen != 0).unsqueeze(1), w, paddle.full_like(w, -1e9)) * 32 ** -0.5)
            user, a = paddle.matmul(w, b).squeeze(1), a.squeeze(1)
            return self.top(paddle.concat([user, a, user * a], -1))
    return Net(), [Ids((64, 1)), Ids((64, 50))]


def mmoe():
    """Experts that each task weighs for itself."""
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.experts = nn.LayerList([nn.Sequential(nn.Linear(499, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU()) for _ in range(8)])
            self.gates = nn.LayerList([nn.Linear(499, 8) for _ in range(2)])
            self.towers = nn.LayerList([nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)) for _ in range(2)])

        def forward(self, x):
            found = paddle.stack([f(x) for f in self.experts], 1)
            mixed = [(found * F.softmax(g(x)).unsqueeze(-1)).sum(1) for g in self.gates]
            return paddle.concat([F.sigmoid(t(m)) for t, m in zip(self.towers, mixed)], -1)
    return Net(), [(32, 499)]


def nerf():
    """Colours of 2048 points from sines of where they are."""
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a = nn.LayerList([nn.Linear(63 if i == 0 else 128, 128) for i in range(4)])
            self.b = nn.LayerList([nn.Linear(128 + 63 if i == 0 else 128, 128) for i in range(3)])
            self.density, self.colour = nn.Linear(128, 1), nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 3), nn.Sigmoid())

        def forward(self, x):
            e = paddle.concat([x] + [f(x * 2.0 ** i) for i in range(10) for f in (paddle.sin, paddle.cos)], -1)
            y = e
            for f in self.a:
                y = F.relu(f(y))
            y = paddle.concat([y, e], -1)
            for f in self.b:
                y = F.relu(f(y))
            return paddle.concat([self.colour(y), F.relu(self.density(y))], -1)
    return Net(), [(2048, 3)]


def gat():
    """Attention along the edges of a graph that is given as a matrix."""
    class Layer(nn.Layer):
        def __init__(self, i, o, heads):
            super().__init__()
            self.f, self.heads, self.o = nn.Linear(i, heads * o, bias_attr=False), heads, o
            self.a, self.b = self.create_parameter([heads, o, 1]), self.create_parameter([heads, o, 1])

        def forward(self, x, edges):
            y = self.f(x).reshape([-1, self.heads, self.o]).transpose([1, 0, 2])
            e = F.leaky_relu(paddle.matmul(y, self.a) + paddle.matmul(y, self.b).transpose([0, 2, 1]), 0.2)
            w = F.softmax(paddle.where(edges > 0.5, e, paddle.full_like(e, -1e9)))
            return paddle.matmul(w, y).transpose([1, 0, 2]).flatten(1)

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.one, self.two = Layer(100, 8, 8), Layer(64, 7, 1)

        def forward(self, x, edges):
            return self.two(F.elu(self.one(x, edges)), edges)
    return Net(), [(300, 100), (300, 300)]


NETWORKS = (ghost, hrnet, mobilevit, detector, efficientnet_v2, res2net, poolformer, pvt, restorer, attention_unet, nasnet, shuffle, cifar,
            ecg, sound, patches, din, mmoe, nerf, gat)
