#!/usr/bin/env python3
"""Measures h = tanh(h W), many rounds with its gradient, per round: pdcc, C written by hand, and, where they are installed, JAX and Enzyme.

    bench_loops.py [--pdcc ./pdcc] [--cc cc] [--jax PYTHON] [--rounds 5] [WIDTH ...]

PYTHON has jax, and enzyme_ad for Enzyme (default: that of $PDCC_BENCH/jax; `python -m venv` and `pip install "jax[cpu]" enzyme_ad`
make it). All take the sum of the last state as loss, and give the gradients of the first state and of W, in f32 and on one thread;
they take turns, and a figure is the median of the rounds.
"""
import argparse, os, pathlib, re, statistics, subprocess, sys, tempfile

SRC = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ.get('PDCC_BENCH', pathlib.Path.home() / '.cache/pdcc-bench'))
STEPS = 1000

PROGRAM = '''builtin.module {{
  %h = pd.feed() {{col = 0, name = "h"}} : () -> (tensor<1 x {h} x f32>)
  %w = pd.feed() {{col = 1, name = "w"}} : () -> (tensor<{h} x {h} x f32>)
  %i = builtin.constant() {{value = dense<1 x i64 [0]>}} : () -> (tensor<1 x i64>)
  %one = builtin.constant() {{value = dense<1 x i64 [1]>}} : () -> (tensor<1 x i64>)
  %n = builtin.constant() {{value = dense<1 x i64 [{steps}]>}} : () -> (tensor<1 x i64>)
  %last, %y = pd.while(%i, %h) : (tensor<1 x i64>, tensor<1 x {h} x f32>) -> (tensor<1 x i64>, tensor<1 x {h} x f32>) cond {{
    ^0(%a: tensor<1 x i64>, %b: tensor<1 x {h} x f32>):
      %more = pd.less_than(%a, %n) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x bool>)
      cf.cond_yield(%more, %a, %b) : (tensor<1 x bool>, tensor<1 x i64>, tensor<1 x {h} x f32>) -> ()
  }} body {{
    ^0(%a: tensor<1 x i64>, %b: tensor<1 x {h} x f32>):
      %p = pd.matmul(%b, %w) {{transpose_x = false, transpose_y = false}} : (tensor<1 x {h} x f32>, tensor<{h} x {h} x f32>) -> (tensor<1 x {h} x f32>)
      %t = pd.tanh(%p) : (tensor<1 x {h} x f32>) -> (tensor<1 x {h} x f32>)
      %next = pd.add(%a, %one) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x i64>)
      cf.yield(%next, %t) : (tensor<1 x i64>, tensor<1 x {h} x f32>) -> ()
  }}
  pd.fetch(%y) {{col = 0, name = "y"}} : (tensor<1 x {h} x f32>) -> ()
}}
'''

ENZYME = '''
#include <cmath>
void run(enzyme::tensor<float, WIDTH> &out, const enzyme::tensor<float, WIDTH> &h, const enzyme::tensor<float, WIDTH, WIDTH> &w) {
  float a[WIDTH], b[WIDTH];
  for (int i = 0; i < WIDTH; i++) a[i] = h[i];
  for (int t = 0; t < STEPS; t++) {
    for (int j = 0; j < WIDTH; j++) b[j] = 0;
    for (int i = 0; i < WIDTH; i++)
      for (int j = 0; j < WIDTH; j++) b[j] += a[i] * w[i][j];
    for (int j = 0; j < WIDTH; j++) a[j] = tanhf(b[j]);
  }
  for (int i = 0; i < WIDTH; i++) out[i] = a[i];
}
'''


def worker(width):
    """In JAX's environment: microseconds of a round for each line of standard input, which names JAX or Enzyme."""
    import time
    import jax
    import jax.numpy as jnp
    import numpy as np
    random = np.random.default_rng(1)
    h = jnp.asarray(random.standard_normal(width), 'float32')
    w = jnp.asarray(random.standard_normal((width, width)) / width ** 0.5, 'float32')

    def loss(h, w):
        return jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), h, None, length=STEPS)[0].sum()

    def enzyme(h, w):
        import enzyme_ad.jax as enzyme_jax
        # Its compiler comes without the headers of one.
        headers = subprocess.run(['cc', '-print-file-name=include'], capture_output=True, text=True).stdout.strip()
        source = ENZYME.replace('STEPS', str(STEPS)).replace('WIDTH', str(width))
        return enzyme_jax.cpp_call(h, w, out_shapes=[jax.core.ShapedArray((width,), 'float32')], source=source, fn='run',
                                   argv=(f'-I{headers}', '-O3', '-ffast-math'))[0].sum()

    made = {}
    for name, function in (('JAX', loss), ('Enzyme', enzyme)):
        try:
            gradient = jax.jit(jax.grad(function, argnums=(0, 1)))
            jax.block_until_ready(gradient(h, w))
            made[name] = gradient
        except Exception as e:
            print(f'{name}: {str(e).splitlines()[0][:200] if str(e) else type(e).__name__}', file=sys.stderr)
    print(' '.join(made), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(30):
            begin = time.perf_counter()
            jax.block_until_ready(made[line.strip()](h, w))
            times.append((time.perf_counter() - begin) * 1e6 / STEPS)
        print(min(times), flush=True)


def pdcc_us(a, program):
    p = subprocess.run([a.pdcc, 'bench', program, '--grad', 'y', '--wrt', 'h,w', '--isa', 'native'], capture_output=True, text=True)
    found = re.search(r'min ([\d.]+) (us|ms)', p.stdout)
    if p.returncode or not found:
        raise RuntimeError((p.stderr.strip().splitlines() or ['pdcc says nothing'])[-1])
    return float(found[1]) * (1000 if found[2] == 'ms' else 1) / STEPS


def start_worker(a, width):
    """The worker and what it can measure; (None, []): there is no JAX."""
    if not pathlib.Path(a.jax).exists():
        print(f'no JAX in {a.jax}: pdcc and C alone')
        return None, []
    env = dict(os.environ, OMP_NUM_THREADS='1', JAX_PLATFORMS='cpu',
               XLA_FLAGS='--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')
    peer = subprocess.Popen([a.jax, __file__, '--worker', str(width)], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return peer, peer.stdout.readline().split()


def compare(a, width, folder):
    program, by_hand = folder / 'loop.pdir', folder / 'by_hand'
    program.write_text(PROGRAM.format(h=width, steps=STEPS))
    subprocess.run([*a.cc.split(), '-O3', '-march=native', '-ffast-math', f'-DH={width}', f'-DSTEPS={STEPS}',
                    SRC / 'tests/bench/tanh_loop.c', '-o', by_hand, '-lm'], check=True)
    peer, peers = start_worker(a, width)
    times = {name: [] for name in ['pdcc', 'C by hand', *peers]}
    for _ in range(a.rounds):
        times['pdcc'].append(pdcc_us(a, program))
        times['C by hand'].append(float(subprocess.run([by_hand], capture_output=True, text=True, check=True).stdout))
        for name in peers:
            peer.stdin.write(f'{name}\n')
            peer.stdin.flush()
            times[name].append(float(peer.stdout.readline()))
    if peer:
        peer.stdin.close()
        peer.wait()
    for name, all_of_them in times.items():
        ratio = statistics.median(o / t for o, t in zip(times['pdcc'], all_of_them))
        print(f'H = {width:3}  {name:10} {statistics.median(all_of_them):8.3f} us a round   pdcc takes {ratio:.2f} of that', flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--pdcc', default=str(SRC / 'pdcc'))
    ap.add_argument('--cc', default='cc')
    ap.add_argument('--jax', default=str(HOME / 'jax/bin/python'))
    ap.add_argument('--rounds', type=int, default=5)
    ap.add_argument('widths', nargs='*', type=int, default=[64, 4])
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        for width in a.widths:
            compare(a, width, pathlib.Path(tmp))
    return 0


if __name__ == '__main__':
    if sys.argv[1:2] == ['--worker']:
        worker(int(sys.argv[2]))
    else:
        sys.exit(main())
