"""The networks of bench_train.py as jitted training steps of JAX, with Adam: run in JAX's environment by bench_train.py.

    bench_train_jax.py NAME SHAPE STEPS      prints `made`, then the median milliseconds of a step, and bytes, for each line of standard input
"""
import statistics, sys, time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

RANDOM = np.random.default_rng(1)


def weights(*shape):
    return jnp.asarray(RANDOM.standard_normal(shape) * np.prod(shape[1:]) ** -0.5, 'float32')


def dense(i, o):
    return {'w': weights(i, o), 'b': jnp.zeros(o)}


def apply_dense(p, x):
    return x @ p['w'] + p['b']


def conv(x, w, stride=1, pad=0):
    return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID')


def batch_norm(p, x):
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p['scale'][:, None, None] + p['b'][:, None, None]


def layer_norm(p, x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p['scale'] + p['b']


def norm(n):
    return {'scale': jnp.ones(n), 'b': jnp.zeros(n)}


def lenet():
    def forward(p, x):
        x = max_pool(nn.relu(conv(x, p['c1'], pad=1) + p['b1'][:, None, None]))
        x = max_pool(nn.relu(conv(x, p['c2']) + p['b2'][:, None, None])).reshape(len(x), -1)
        return apply_dense(p['f3'], apply_dense(p['f2'], apply_dense(p['f1'], x)))
    return {'c1': weights(6, 1, 3, 3), 'b1': jnp.zeros(6), 'c2': weights(16, 6, 5, 5), 'b2': jnp.zeros(16), 'f1': dense(400, 120),
            'f2': dense(120, 84), 'f3': dense(84, 10)}, forward


def resnet():
    strides = (1, 2, 2)

    def block(p, x, stride):
        y = nn.relu(batch_norm(p['n'], conv(x, p['a'], stride, 1)))
        return nn.relu(batch_norm(p['m'], conv(y, p['b'], 1, 1)) + conv(x, p['short'], stride) + p['bias'][:, None, None])

    def forward(p, x):
        x = conv(x, p['stem'], pad=1) + p['bias'][:, None, None]
        for q, stride in zip(p['blocks'], strides):
            x = block(q, x, stride)
        return apply_dense(p['f'], x.mean((2, 3)))
    blocks = [{'a': weights(o, i, 3, 3), 'b': weights(o, o, 3, 3), 'n': norm(o), 'm': norm(o), 'short': weights(o, i, 1, 1), 'bias': jnp.zeros(o)}
              for i, o in ((16, 16), (16, 32), (32, 64))]
    return {'stem': weights(16, 3, 3, 3), 'bias': jnp.zeros(16), 'blocks': blocks, 'f': dense(64, 10)}, forward


def lstm():
    def forward(p, x):
        inputs = x @ p['wx'] + p['b']

        def step(state, gates):
            h, c = state
            i, f, g, o = jnp.split(gates + h @ p['wh'], 4, -1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            return (nn.sigmoid(o) * jnp.tanh(c), c), None
        zero = jnp.zeros((len(x), 64))
        return apply_dense(p['f'], lax.scan(step, (zero, zero), inputs.swapaxes(0, 1))[0][0])
    return {'wx': weights(16, 256), 'wh': weights(64, 256), 'b': jnp.zeros(256), 'f': dense(64, 10)}, forward


def transformer():
    def layer(p, x):
        n, t, _ = x.shape
        q, k, v = (apply_dense(p[w], x).reshape(n, t, 4, 8).swapaxes(1, 2) for w in 'qkv')
        a = nn.softmax(q @ k.swapaxes(2, 3) * 8 ** -0.5) @ v
        x = layer_norm(p['n'], x + apply_dense(p['o'], a.swapaxes(1, 2).reshape(n, t, 32)))
        return layer_norm(p['m'], x + apply_dense(p['f2'], nn.relu(apply_dense(p['f1'], x))))

    def forward(p, x):
        for q in p['layers']:
            x = layer(q, x)
        return apply_dense(p['f'], x.mean(1))
    layers = [{**{w: dense(32, 32) for w in 'qkvo'}, 'n': norm(32), 'm': norm(32), 'f1': dense(32, 64), 'f2': dense(64, 32)} for _ in range(2)]
    return {'layers': layers, 'f': dense(32, 10)}, forward


def main():
    name, shape, steps = sys.argv[1], [int(d) for d in sys.argv[2].split(',')], int(sys.argv[3])
    params, forward = {'lenet': lenet, 'resnet': resnet, 'lstm': lstm, 'transformer': transformer}[name]()

    def loss(p, x, label):
        return -jnp.take_along_axis(nn.log_softmax(forward(p, x)), label, 1).mean()

    def step(state, x, label):
        p, m, v, t = state
        value, g = jax.value_and_grad(loss)(p, x, label)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = 0.001 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        return (jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v, t), value

    step = jax.jit(step, donate_argnums=0)
    x, label = jnp.asarray(RANDOM.standard_normal(shape), 'float32'), jnp.asarray(RANDOM.integers(0, 10, (shape[0], 1)))
    state = (params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.float32(0))
    plan = step.lower(state, x, label).compile().memory_analysis()
    size = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes + plan.temp_size_in_bytes
    state, value = step(state, x, label)
    print('made', flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            state, value = step(state, x, label)
            jax.block_until_ready((state, value))
            times.append((time.perf_counter() - begin) * 1e3)
        print(statistics.median(times[steps // 5:]), size, flush=True)


if __name__ == '__main__':
    main()
