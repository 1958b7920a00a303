#!/usr/bin/env python3
"""Measures training steps beside Paddle's executor and JAX: the same networks, batches and optimizer, one thread.

    bench_train.py [--pdcc ./pdcc] [--paddle PYTHON] [--jax PYTHON] [--steps 200] [--rounds 5] [NAME ...]

PYTHON has paddlepaddle 2.6 (default: that of $PDCC_BENCH, as ../shared/tools/bench/setup.sh makes it). It writes each network as a
program of inference, which pdcc makes a training step of by --train, and trains it itself as a program after minimize(). JAX, where it
is installed, has steps of its own (bench_train_jax.py), jitted. They take turns; a figure is the median of the rounds, by the wall
clock, as pdcc bench has it. Without Paddle only pdcc's own step of the digits sample is measured.

Memory is that of a step's tensors: inputs, parameters, optimizer and what lies between. For pdcc it is workspace, weights and inputs,
which is all that it has; for Paddle the most that its allocator had given out at once; for JAX arguments, results and temporaries, as
XLA has planned them. Libraries, code, and what compiling takes are in none of them.
"""
import argparse, math, os, pathlib, re, statistics, subprocess, sys, tempfile

SRC = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ.get('PDCC_BENCH', pathlib.Path.home() / '.cache/pdcc-bench'))
RECIPE = 'loss: {type: cross_entropy, from: logits, label: label}\noptimizer: {type: adam}\nlearning_rate: 0.001\nmetrics: [loss]\n'
SHAPES = {'lenet': [64, 1, 28, 28], 'resnet': [16, 3, 32, 32], 'lstm': [32, 20, 16], 'transformer': [16, 24, 32]}  # of x


def networks():
    """In Paddle's environment: name -> a function that makes the layer."""
    import paddle
    from paddle import nn

    class Block(nn.Layer):
        def __init__(self, i, o, stride):
            super().__init__()
            self.a, self.b = (nn.Conv2D(c, o, 3, s, 1, bias_attr=False) for c, s in ((i, stride), (o, 1)))
            self.n, self.m, self.short, self.relu = nn.BatchNorm2D(o), nn.BatchNorm2D(o), nn.Conv2D(i, o, 1, stride), nn.ReLU()

        def forward(self, x):
            return self.relu(self.m(self.b(self.relu(self.n(self.a(x))))) + self.short(x))

    class Lstm(nn.Layer):
        def __init__(self):
            super().__init__()
            self.lstm, self.fc = nn.LSTM(16, 64), nn.Linear(64, 10)

        def forward(self, x):
            return self.fc(self.lstm(x)[0][:, -1])

    class Transformer(nn.Layer):
        def __init__(self):
            super().__init__()
            self.layers = nn.LayerList([nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0) for _ in range(2)])
            self.fc = nn.Linear(32, 10)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.fc(x.mean(1))

    return {'lenet': paddle.vision.models.LeNet, 'lstm': Lstm, 'transformer': Transformer,
            'resnet': lambda: nn.Sequential(nn.Conv2D(3, 16, 3, padding=1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
                                            nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(64, 10))}


def worker(name, prefix, steps):
    """In Paddle's environment: writes the network; then the median milliseconds of a step, and bytes, for each line of standard input."""
    import time
    import numpy as np
    import paddle
    shape, make = SHAPES[name], networks()[name]
    paddle.seed(1)
    net = make()
    net.eval()
    paddle.jit.save(net, prefix, input_spec=[paddle.static.InputSpec([None] + shape[1:], 'float32', 'x')])
    paddle.enable_static()
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start):
        x, label = paddle.static.data('x', shape, 'float32'), paddle.static.data('label', [shape[0], 1], 'int64')
        loss = paddle.mean(paddle.nn.functional.cross_entropy(make()(x), label))
        paddle.optimizer.Adam(0.001).minimize(loss)
    exe, random = paddle.static.Executor(paddle.CPUPlace()), np.random.default_rng(1)
    exe.run(start)
    feeds = {'x': random.standard_normal(shape).astype('float32'), 'label': random.integers(0, 10, (shape[0], 1))}
    print('made', flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            exe.run(main, feed=feeds, fetch_list=[loss])
            times.append((time.perf_counter() - begin) * 1e3)
        print(statistics.median(times[steps // 5:]), paddle.base.core.host_memory_stat_peak_value('Allocated', 0), flush=True)


def step_costs(pdcc, model, recipe, shape):
    """Milliseconds of a step, and bytes without inputs."""
    p = subprocess.run([pdcc, 'bench', model, '--train', recipe, f'--shape={shape}'], capture_output=True, text=True)
    found = re.search(r'median ([\d.]+) (us|ms).*workspace (\d+) bytes, weights (\d+) bytes', p.stdout)
    if p.returncode or not found:
        raise RuntimeError((p.stderr.strip().splitlines() or ['pdcc says nothing'])[-1])
    return float(found[1]) * (1e-3 if found[2] == 'us' else 1), int(found[3]) + int(found[4])


def start(words, **env):
    """A peer that says `made` and then answers each line with milliseconds and bytes; None: it says something else."""
    peer = subprocess.Popen([str(w) for w in words], env=dict(os.environ, OMP_NUM_THREADS='1', **env), text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return peer if peer.stdout.readline() == 'made\n' else None


def ask(peer):
    peer.stdin.write('again\n')
    peer.stdin.flush()
    ms, size = peer.stdout.readline().split()
    return float(ms), int(size)


def peers(a, name, prefix):
    shape = ','.join(map(str, SHAPES[name]))
    found = {'Paddle': start([a.paddle, __file__, '--worker', name, prefix, a.steps], MKL_NUM_THREADS='1', FLAGS_use_mkldnn='0')}
    if not found['Paddle']:
        raise RuntimeError('Paddle does not run it')
    if pathlib.Path(a.jax).exists():
        found['JAX'] = start([a.jax, SRC / 'tests/bench/bench_train_jax.py', name, shape, a.steps], JAX_PLATFORMS='cpu',
                             XLA_FLAGS='--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')
    return {who: peer for who, peer in found.items() if peer}


def compare(a, name, folder):
    recipe, prefix = folder / 'recipe.yml', folder / name
    recipe.write_text(RECIPE)
    shape = f'x={",".join(map(str, SHAPES[name]))}'
    others = peers(a, name, prefix)
    ours, theirs = [], {who: [] for who in others}
    for _ in range(a.rounds):
        ours.append(step_costs(a.pdcc, f'{prefix}.pdmodel', recipe, shape))
        for who, peer in others.items():
            theirs[who].append(ask(peer))
    ms, size = statistics.median(o for o, _ in ours), ours[0][1] + 4 * math.prod(SHAPES[name]) + 8 * SHAPES[name][0]
    line = f'{name:12} {ms:9.3f} ms {size / 2 ** 20:7.2f} MiB'
    for who, peer in others.items():
        peer.stdin.close()
        peer.wait()
        ratio = statistics.median(o / t for (o, _), (t, _) in zip(ours, theirs[who]))
        line += f'  {who} {statistics.median(t for t, _ in theirs[who]):9.3f} ms  ratio {ratio:.3f}'
        line += f'  {theirs[who][-1][1] / 2 ** 20:7.2f} MiB'
    print(line, flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--pdcc', default=str(SRC / 'pdcc'))
    ap.add_argument('--paddle', default=str(HOME / 'venv/bin/python'))
    ap.add_argument('--jax', default=str(HOME / 'jax/bin/python'))
    ap.add_argument('--steps', type=int, default=200)
    ap.add_argument('--rounds', type=int, default=5)
    ap.add_argument('names', nargs='*', default=list(SHAPES))
    a = ap.parse_args()
    if not pathlib.Path(a.paddle).exists():
        digits = SRC / 'samples/digits/digits.pdmodel'
        ms, _ = step_costs(a.pdcc, digits, SRC / 'samples/train/classify.yml', 'image=64,1,8,8')
        print(f'no Paddle in {a.paddle}: the digits sample alone\ndigits       {ms:9.3f} ms')
        return 0
    if not pathlib.Path(a.jax).exists():
        print(f'no JAX in {a.jax}: Paddle alone')
    with tempfile.TemporaryDirectory() as tmp:
        for name in a.names:
            try:
                compare(a, name, pathlib.Path(tmp))
            except (RuntimeError, KeyError) as e:
                print(f'{name:12} {e}', file=sys.stderr)
    return 0


if __name__ == '__main__':
    if sys.argv[1:2] == ['--worker']:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        sys.exit(main())
