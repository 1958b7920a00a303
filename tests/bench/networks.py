"""Networks for architectures.py, by what they take: images, sequences, tables. Each gives a layer and the shapes of its inputs."""
import numpy as np
import paddle
from paddle import nn
import paddle.nn.functional as F

from network_blocks import Apply, Attention, Ids, Join, Residual, Transposed, conv, dense, encoder, head


# ---- images -------------------------------------------------------------------------------------------------------------------------------

def convnext():
    """7 x 7 depthwise filters, norms over channels that lie last."""
    to, back = [0, 2, 3, 1], [0, 3, 1, 2]
    layers, width = [nn.Conv2D(3, 64, 4, 4), Transposed(nn.LayerNorm(64), to, back)], 64
    for depth, outputs in ((2, 64), (2, 128), (4, 256), (2, 512)):
        if outputs != width:
            layers += [Transposed(nn.LayerNorm(width), to, back), nn.Conv2D(width, outputs, 2, 2)]
        width = outputs
        layers += [Residual(nn.Sequential(nn.Conv2D(width, width, 7, padding=3, groups=width),
                                          Transposed(dense(width, 4 * width, nn.GELU), to, back))) for _ in range(depth)]
    return nn.Sequential(*layers, *head(width)), [(1, 3, 224, 224)]


def mixer():
    """Products over tokens and over channels in turn."""
    def block():
        return [Residual(nn.Sequential(nn.LayerNorm(384), Transposed(nn.Sequential(nn.Linear(196, 192), nn.GELU(), nn.Linear(192, 196)),
                                                                     [0, 2, 1], [0, 2, 1]))), Residual(dense(384, 1536, nn.GELU))]
    tokens = Apply(lambda x: x.flatten(2).transpose([0, 2, 1]))
    layers = [f for _ in range(6) for f in block()]
    return nn.Sequential(nn.Conv2D(3, 384, 16, 16), tokens, *layers, Apply(lambda x: x.mean(1)), nn.Linear(384, 100)), [(1, 3, 224, 224)]


def resnext():
    """32 groups of 4 to 32 channels."""
    return paddle.vision.models.resnext50_32x4d(num_classes=100), [(1, 3, 224, 224)]


def regnet():
    """Groups of 16 channels."""
    def block(inputs, outputs, stride):
        f = nn.Sequential(conv(inputs, outputs, 1), conv(outputs, outputs, 3, stride, outputs // 16), conv(outputs, outputs, 1, act=None))
        same = inputs == outputs and stride == 1
        return Residual(f, None if same else conv(inputs, outputs, 1, stride, act=None), nn.ReLU())
    widths = ((32, 48, 2), (48, 96, 2), (96, 96, 1), (96, 192, 2), (192, 192, 1), (192, 192, 1), (192, 384, 2))
    return nn.Sequential(conv(3, 32, 3, 2), *[block(*w) for w in widths], *head(384)), [(1, 3, 224, 224)]


def inception():
    """Rows and columns as filters, many branches."""
    return paddle.vision.models.inception_v3(num_classes=100), [(1, 3, 299, 299)]


def csp():
    """SiLU, branches that are joined, pools of pools, upsampling: a detector's backbone."""
    def block(inputs, outputs):
        half = outputs // 2
        deep = nn.Sequential(conv(inputs, half, 1, act=nn.Silu),
                             Residual(nn.Sequential(conv(half, half, 1, act=nn.Silu), conv(half, half, act=nn.Silu))))
        return nn.Sequential(Join(deep, conv(inputs, half, 1, act=nn.Silu)), conv(outputs, outputs, 1, act=nn.Silu))

    def down(inputs, outputs):
        return conv(inputs, outputs, 3, 2, act=nn.Silu)
    pools = Join(nn.Identity(), *[nn.MaxPool2D(k, 1, k // 2) for k in (5, 9, 13)])
    layers = [down(3, 32), down(32, 64), block(64, 64), down(64, 128), block(128, 128), down(128, 256), block(256, 256), conv(256, 128, 1), pools,
              conv(512, 256, 1), nn.Upsample(scale_factor=2), block(256, 128), nn.Conv2D(128, 45, 1), nn.Sigmoid()]
    return nn.Sequential(*layers), [(1, 3, 320, 320)]


def dcgan():
    """Transposed convolutions, from one pixel up."""
    layers, width = [], 100
    for outputs, stride, pad in ((256, 1, 0), (128, 2, 1), (64, 2, 1), (32, 2, 1)):
        layers += [nn.Conv2DTranspose(width, outputs, 4, stride, pad, bias_attr=False), nn.BatchNorm2D(outputs), nn.ReLU()]
        width = outputs
    return nn.Sequential(*layers, nn.Conv2DTranspose(width, 3, 4, 2, 1), nn.Tanh()), [(4, 100, 1, 1)]


def style():
    """Reflected borders, norms of instances, 9 x 9 filters."""
    def layer(inputs, outputs, kernel, stride=1):
        return [nn.Pad2D(kernel // 2, 'reflect'), nn.Conv2D(inputs, outputs, kernel, stride), nn.InstanceNorm2D(outputs)]

    def up(inputs, outputs):
        return [nn.Upsample(scale_factor=2), *layer(inputs, outputs, 3), nn.ReLU()]
    middle = [Residual(nn.Sequential(*layer(64, 64, 3), nn.ReLU(), *layer(64, 64, 3))) for _ in range(3)]
    layers = [*layer(3, 32, 9), nn.ReLU(), *layer(32, 64, 3, 2), nn.ReLU(), *layer(64, 64, 3, 2), nn.ReLU(), *middle, *up(64, 32), *up(32, 16)]
    return nn.Sequential(*layers, nn.Conv2D(16, 3, 9, padding=4), nn.Tanh()), [(1, 3, 128, 128)]


def super_resolution():
    """PReLU, and channels that become pixels."""
    block = [Residual(nn.Sequential(conv(32, 32, act=None), nn.PReLU(32), conv(32, 32, act=None))) for _ in range(4)]
    layers = [nn.Conv2D(3, 32, 9, padding=4), nn.PReLU(), *block, nn.Conv2D(32, 128, 3, padding=1), nn.PixelShuffle(2), nn.PReLU()]
    return nn.Sequential(*layers, nn.Conv2D(32, 3, 9, padding=4)), [(1, 3, 64, 64)]


def segmenter():
    """Separable filters, pools of several sizes beside each other, bilinear upsampling, argmax."""
    def separable(inputs, outputs, stride):
        return nn.Sequential(conv(inputs, inputs, 3, stride, inputs), conv(inputs, outputs, 1))
    pools = Join(nn.Identity(), *[nn.Sequential(nn.AdaptiveAvgPool2D(k), conv(96, 24, 1), nn.Upsample([8, 8], mode='bilinear')) for k in (1, 2, 4)])
    layers = [conv(3, 32, 3, 2), separable(32, 48, 2), separable(48, 64, 2), separable(64, 96, 2), separable(96, 96, 2), pools, conv(168, 96, 1),
              conv(96, 96, 3, 1, 96, dilation=4), nn.Upsample(scale_factor=8, mode='bilinear'), nn.Conv2D(96, 19, 1)]
    return nn.Sequential(*layers, nn.Upsample(scale_factor=4, mode='bilinear'), Apply(lambda x: x.argmax(1))), [(1, 3, 256, 256)]


def hybrid():
    """Inverted bottlenecks with GELU, then attention over what they leave."""
    def bottleneck(inputs, outputs, stride):
        wide = 4 * inputs
        return nn.Sequential(conv(inputs, wide, 1, act=nn.GELU), conv(wide, wide, 3, stride, wide, act=nn.GELU), conv(wide, outputs, 1, act=None))
    tokens = Apply(lambda x: x.flatten(2).transpose([0, 2, 1]))
    layers = [conv(3, 32, 3, 2, act=nn.GELU), bottleneck(32, 64, 2), bottleneck(64, 96, 2), nn.Conv2D(96, 192, 2, 2), tokens, encoder(192, 6, 768, 3)]
    return nn.Sequential(*layers, Apply(lambda x: x.mean(1)), nn.Linear(192, 100)), [(1, 3, 192, 192)]


def video():
    """3-D filters, taken apart into images and time."""
    def block(inputs, outputs, stride):
        across = nn.Conv3D(inputs, outputs, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias_attr=False)
        along = nn.Conv3D(outputs, outputs, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias_attr=False)
        return [across, nn.BatchNorm3D(outputs), nn.ReLU(), along, nn.BatchNorm3D(outputs), nn.ReLU()]
    layers = [*block(3, 24, 2), *block(24, 48, 1), *block(48, 96, 2), nn.Conv3D(96, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3D(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, 20)), [(1, 3, 8, 64, 64)]


# ---- sequences ----------------------------------------------------------------------------------------------------------------------------

def conformer():
    """Attention and depthwise 1-D filters in turn, for speech."""
    def block(width):
        inner = nn.Sequential(nn.Conv1D(width, 2 * width, 1), Apply(lambda x: F.glu(x, 1)), nn.Conv1D(width, width, 15, padding=7, groups=width),
                              nn.BatchNorm1D(width), nn.Silu(), nn.Conv1D(width, width, 1))
        return [Residual(dense(width, 4 * width, nn.Silu)), Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, 4))),
                Residual(nn.Sequential(nn.LayerNorm(width), Transposed(inner, [0, 2, 1], [0, 2, 1]))),
                Residual(dense(width, 4 * width, nn.Silu)), nn.LayerNorm(width)]
    front = [nn.Conv2D(1, 32, 3, 2), nn.ReLU(), nn.Conv2D(32, 32, 3, 2), nn.ReLU(), Apply(lambda x: x.transpose([0, 2, 1, 3]).flatten(2))]
    layers = [f for _ in range(4) for f in block(144)]
    return nn.Sequential(*front, nn.Linear(32 * 19, 144), *layers, nn.Linear(144, 200), nn.LogSoftmax()), [(1, 1, 400, 80)]


class WaveNet(nn.Layer):
    """Dilated 1-D filters whose halves gate each other, and a sum over all layers."""
    def __init__(self, width=64, layers=16):
        super().__init__()
        self.first = nn.Conv1D(1, width, 1)
        self.filters = nn.LayerList([nn.Conv1D(width, 2 * width, 3, padding=2 ** (i % 8), dilation=2 ** (i % 8)) for i in range(layers)])
        self.keep, self.skip = (nn.LayerList([nn.Conv1D(width, width, 1) for _ in range(layers)]) for _ in range(2))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1D(width, width, 1), nn.ReLU(), nn.Conv1D(width, 1, 1))

    def forward(self, x):
        x, total = self.first(x), 0
        for f, keep, skip in zip(self.filters, self.keep, self.skip):
            a, b = paddle.split(f(x), 2, 1)
            z = F.tanh(a) * F.sigmoid(b)
            x, total = x + keep(z), total + skip(z)
        return self.last(total)


def wavenet():
    return WaveNet(), [(1, 1, 2000)]


class Recurrent(nn.Layer):
    """What a recurrent layer gives for each step."""
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


def text_reader():
    """Convolutions down to one row, then LSTMs both ways: an OCR recogniser."""
    layers = [conv(1, 32), nn.MaxPool2D(2, 2), conv(32, 64), nn.MaxPool2D(2, 2), conv(64, 128), conv(128, 128), nn.MaxPool2D((2, 1), (2, 1)),
              conv(128, 256), nn.MaxPool2D((4, 1), (4, 1)), Apply(lambda x: x.squeeze(2).transpose([0, 2, 1]))]
    return nn.Sequential(*layers, Recurrent(nn.LSTM(256, 96, 2, direction='bidirect')), nn.Linear(192, 80), nn.Softmax()), [(1, 1, 32, 160)]


def speech():
    """Large filters, then GRUs both ways."""
    layers = [nn.Conv2D(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2D(32), nn.ReLU6(), nn.Conv2D(32, 32, (21, 11), (2, 1), (10, 5)),
              nn.BatchNorm2D(32), nn.ReLU6(), Apply(lambda x: x.transpose([0, 3, 1, 2]).flatten(2))]
    recurrent = Recurrent(nn.GRU(32 * 40, 128, 2, direction='bidirect'))
    return nn.Sequential(*layers, recurrent, nn.Linear(256, 29), nn.LogSoftmax()), [(1, 1, 160, 120)]


def t5():
    """An encoder with ReLU, of 96 tokens."""
    return nn.Sequential(nn.Embedding(1000, 256), encoder(256, 4, 1024, 4, nn.ReLU)), [Ids((1, 96))]


class Llama(nn.Layer):
    """A decoder: norms by the root mean square, rotated queries and keys, two heads of keys for eight, gated products."""
    def __init__(self, width=256, heads=8, shared=2, hidden=688, layers=4, tokens=128):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.embed, self.last = nn.Embedding(1000, width), nn.Linear(width, 1000, bias_attr=False)

        def several(inputs, outputs):
            return nn.LayerList([nn.Linear(inputs, outputs, bias_attr=False) for _ in range(layers)])
        self.q, self.o = several(width, width), several(width, width)
        self.k, self.v = several(width, shared * self.size), several(width, shared * self.size)
        self.gate, self.up, self.down = several(width, hidden), several(width, hidden), several(hidden, width)
        angles = np.outer(np.arange(tokens), 1e4 ** (-np.arange(0, self.size, 2) / self.size))
        angles = np.concatenate([angles, angles], -1).astype('f4')
        self.register_buffer('cos', paddle.to_tensor(np.cos(angles)))
        self.register_buffer('sin', paddle.to_tensor(np.sin(angles)))
        self.register_buffer('mask', paddle.to_tensor(np.triu(np.full((tokens, tokens), -1e9, 'f4'), 1)))

    @staticmethod
    def norm(x):
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    def rotate(self, x):
        a, b = paddle.split(x, 2, -1)
        return x * self.cos + paddle.concat([-b, a], -1) * self.sin

    def split(self, x, heads):
        return x.reshape([0, 0, heads, self.size]).transpose([0, 2, 1, 3])

    def repeat(self, x):
        times, tokens = self.heads // self.shared, x.shape[2]
        return x.unsqueeze(2).expand([-1, -1, times, -1, -1]).reshape([1, self.heads, tokens, self.size])

    def forward(self, x):
        x = self.embed(x)
        for q, k, v, o, gate, up, down in zip(self.q, self.k, self.v, self.o, self.gate, self.up, self.down):
            y = self.norm(x)
            queries, keys = self.rotate(self.split(q(y), self.heads)), self.repeat(self.rotate(self.split(k(y), self.shared)))
            weights = F.softmax(paddle.matmul(queries, keys, transpose_y=True) * self.size ** -0.5 + self.mask)
            x = x + o(paddle.matmul(weights, self.repeat(self.split(v(y), self.shared))).transpose([0, 2, 1, 3]).flatten(2))
            y = self.norm(x)
            x = x + down(F.silu(gate(y)) * up(y))
        return self.last(x)


def llama():
    return Llama(), [Ids((1, 128))]


# ---- tables, points, graphs ---------------------------------------------------------------------------------------------------------------

class Ranker(nn.Layer):
    """Embeddings, dense features, and the products of all pairs of them."""
    def __init__(self):
        super().__init__()
        self.embed = nn.LayerList([nn.Embedding(1000, 32) for _ in range(8)])
        self.bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(32 + 81, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, features, ids):
        v = self.bottom(features)
        all_of_them = paddle.stack([v] + [f(ids[:, i]) for i, f in enumerate(self.embed)], 1)
        pairs = paddle.bmm(all_of_them, all_of_them.transpose([0, 2, 1])).flatten(1)
        return self.top(paddle.concat([v, pairs], 1))


def ranker():
    return Ranker(), [(64, 13), Ids((64, 8))]


def points():
    """The same layers for each point, and a maximum over all."""
    layers = [f for i, o in ((3, 64), (64, 128), (128, 512)) for f in (nn.Conv1D(i, o, 1), nn.BatchNorm1D(o), nn.ReLU())]
    return nn.Sequential(*layers, Apply(lambda x: x.max(2)), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40)), [(2, 3, 1024)]


class Graph(nn.Layer):
    """Products with the matrix of a graph."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(128, 64), nn.Linear(64, 64), nn.Linear(64, 7)

    def forward(self, edges, x):
        x = F.elu(paddle.matmul(edges, self.a(x)))
        x = F.elu(paddle.matmul(edges, self.b(x)))
        return F.softmax(paddle.matmul(edges, self.c(x)))


def graph():
    return Graph(), [(500, 500), (500, 128)]


def forecast():
    """Six stacks of dense layers, eight rows."""
    def stack():
        return nn.Sequential(*[f for i in range(4) for f in (nn.Linear(256 if i else 60, 256), nn.ReLU())], nn.Linear(256, 60))
    return nn.Sequential(*[Residual(stack()) for _ in range(6)], nn.Linear(60, 12)), [(8, 60)]


def perceiver():
    """32 tokens that look at 1024."""
    class Perceiver(nn.Layer):
        def __init__(self):
            super().__init__()
            self.tokens, self.first, self.look = self.create_parameter([1, 32, 128]), nn.Linear(64, 128), Attention(128, 4)
            self.layers, self.last = encoder(128, 4, 512, 4), nn.Linear(128, 10)

        def forward(self, x):
            z = self.tokens + self.look(self.tokens, self.first(x))
            return self.last(self.layers(z).mean(1))
    return Perceiver(), [(1, 1024, 64)]


NETWORKS = (
    convnext, mixer, resnext, regnet, inception, csp, dcgan, style, super_resolution, segmenter, hybrid, video, conformer, wavenet, text_reader,
    speech, t5, llama, ranker, points, graph, forecast, perceiver)
