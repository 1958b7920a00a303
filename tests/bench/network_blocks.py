"""What networks of several families have in common: for networks.py and more_networks.py."""
import paddle
from paddle import nn
import paddle.nn.functional as F


class Ids(tuple):
    """The shape of an input of whole numbers below `limit`."""
    limit = 1000


def conv(inputs, outputs, kernel=3, stride=1, groups=1, act=nn.ReLU, dilation=1):
    """A convolution that keeps the size (but for the stride), its batch norm, and an activation."""
    layers = [nn.Conv2D(inputs, outputs, kernel, stride, kernel // 2 * dilation, dilation, groups, bias_attr=False), nn.BatchNorm2D(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


def head(channels, classes=100):
    return [nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(channels, classes)]


# ---- blocks -------------------------------------------------------------------------------------------------------------------------------

class Residual(nn.Layer):
    """x + f(x), through `behind`; a shortcut where the shape changes."""
    def __init__(self, f, shortcut=None, behind=None):
        super().__init__()
        self.f, self.shortcut, self.behind = f, shortcut, behind

    def forward(self, x):
        y = self.f(x) + (self.shortcut(x) if self.shortcut else x)
        return self.behind(y) if self.behind else y


class Transposed(nn.Layer):
    """f on the same tensor with its axes in another order."""
    def __init__(self, f, to, back):
        super().__init__()
        self.f, self.to, self.back = f, to, back

    def forward(self, x):
        return self.f(x.transpose(self.to)).transpose(self.back)


class Attention(nn.Layer):
    """Attention of several heads, on x itself or from x to `other`."""
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.reshape([0, -1, self.heads, x.shape[-1] // self.heads]).transpose([0, 2, 1, 3])

    def forward(self, x, other=None):
        other = x if other is None else other
        q, k, v = self.split(self.q(x)), self.split(self.k(other)), self.split(self.v(other))
        weights = F.softmax(paddle.matmul(q * q.shape[-1] ** -0.5, k, transpose_y=True))
        return self.out(paddle.matmul(weights, v).transpose([0, 2, 1, 3]).flatten(2))


def dense(width, hidden, act):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, hidden), act(), nn.Linear(hidden, width))


def encoder(width, heads, hidden, layers, act=nn.GELU):
    return nn.Sequential(*[f for _ in range(layers) for f in (Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, heads))),
                                                              Residual(dense(width, hidden, act)))])


class Join(nn.Layer):
    """What several layers make of x, side by side in channels."""
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.LayerList(layers)

    def forward(self, x):
        return paddle.concat([f(x) for f in self.layers], 1)


class Apply(nn.Layer):
    """A function as a layer."""
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


class Gate(nn.Layer):
    """x weighed by channel, as a small network of its means says."""
    def __init__(self, channels, hidden, act=nn.ReLU, gate=nn.Sigmoid):
        super().__init__()
        self.f = nn.Sequential(nn.AdaptiveAvgPool2D(1), nn.Conv2D(channels, hidden, 1), act(), nn.Conv2D(hidden, channels, 1), gate())

    def forward(self, x):
        return x * self.f(x)


class Chain(nn.Layer):
    """Side by side in channels: x, f of it, f of that, and so on."""
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.LayerList(layers)

    def forward(self, x):
        found = [x]
        for f in self.layers:
            found.append(f(found[-1]))
        return paddle.concat(found, 1)
