#!/usr/bin/env python3
"""Measures generated CUDA on a GPU, beside cuBLASLt and cuDNN.

    bench_gpu.py [--pdcc ./pdcc] [--rounds 5] [--json FILE] [MODEL.pdmodel ...]

Prints three tables. Products: the shapes that the models have, our kernels against `--cuda-libs`. Loops: what a round of a
while costs with conditional nodes, and with a host that reads the condition. Models: latency with our kernels, with
`--allow-tf32`, with libraries, and with a host loop. Variants are interleaved; a figure is the best of the rounds' medians,
a ratio is between figures of one call. Times of models hold the copies of inputs and outputs, the same for all variants.

Without arguments the models are those of ../shared/corpus/models named below, as far as they are there.
"""
import argparse, json, math, os, pathlib, re, subprocess, sys, tempfile

SRC = pathlib.Path(__file__).resolve().parents[2]
SHARED = SRC.parent / 'shared'
MODELS = ['resnet50', 'mobilenet_v1', 'bert_base_v2000', 'gpt2_greedy_kvcache']
PRODUCTS = [(1, 1000, 2048), (128, 768, 768), (128, 3072, 768), (128, 768, 3072), (512, 768, 768), (1024, 1024, 1024),
            (4096, 4096, 4096)]
HOST_LOOP = '--cflags=-DPD_CONDITIONS=0'
VARIANTS = {'own': [], 'tf32': ['--allow-tf32'], 'libs': ['--cuda-libs'], 'host loop': [HOST_LOOP]}
ROUNDS = 1000
FLOPS, MOST_ROUNDS = 4e11, 80  # of a run of products; of more rounds the graph would have a loop, which takes its own time

# Products there and back, a [m x k] by b [k x n] and what that gives by w [n x k], scaled so that numbers stay of one size.
PRODUCT = '''builtin.module {{
  %a = pd.feed() {{col = 0, name = "a"}} : () -> (tensor<{m} x {k} x {t}>)
  %b = pd.feed() {{col = 1, name = "b"}} : () -> (tensor<{k} x {n} x {t}>)
  %w = pd.feed() {{col = 2, name = "w"}} : () -> (tensor<{n} x {k} x {t}>)
  %zero = pd.full() {{dtype = i64, shape = dims [1], value = 0.0}} : () -> (tensor<1 x i64>)
  %end = pd.full() {{dtype = i64, shape = dims [1], value = {rounds}.0}} : () -> (tensor<1 x i64>)
  %i, %y = pd.while(%zero, %a) : (tensor<1 x i64>, tensor<{m} x {k} x {t}>) -> (tensor<1 x i64>, tensor<{m} x {k} x {t}>) cond {{
    ^0(%at: tensor<1 x i64>, %v: tensor<{m} x {k} x {t}>):
      %less = pd.less_than(%at, %end) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x bool>)
      cf.cond_yield(%less, %at, %v) : (tensor<1 x bool>, tensor<1 x i64>, tensor<{m} x {k} x {t}>) -> ()
  }} body {{
    ^0(%at: tensor<1 x i64>, %v: tensor<{m} x {k} x {t}>):
      %next = pd.scale(%at) {{bias = 1.0}} : (tensor<1 x i64>) -> (tensor<1 x i64>)
      %c = pd.matmul(%v, %b) : (tensor<{m} x {k} x {t}>, tensor<{k} x {n} x {t}>) -> (tensor<{m} x {n} x {t}>)
      %d = pd.scale(%c) {{scale = {down:.6f}}} : (tensor<{m} x {n} x {t}>) -> (tensor<{m} x {n} x {t}>)
      %e = pd.matmul(%d, %w) : (tensor<{m} x {n} x {t}>, tensor<{n} x {k} x {t}>) -> (tensor<{m} x {k} x {t}>)
      %f = pd.scale(%e) {{scale = {back:.6f}}} : (tensor<{m} x {k} x {t}>) -> (tensor<{m} x {k} x {t}>)
      cf.yield(%next, %f) : (tensor<1 x i64>, tensor<{m} x {k} x {t}>) -> ()
  }}
  pd.fetch(%y) {{col = 0, name = "y"}} : (tensor<{m} x {k} x {t}>) -> ()
}}
'''
# `wide` elements are changed in each round: one fits a block of threads, many do not.
LOOP = '''builtin.module {{
  %x = pd.feed() {{col = 0, name = "x"}} : () -> (tensor<{wide} x f32>)
  %zero = pd.full() {{dtype = i64, shape = dims [1], value = 0.0}} : () -> (tensor<1 x i64>)
  %n = pd.feed() {{col = 1, name = "n"}} : () -> (tensor<1 x i64>)
  %i, %y = pd.while(%zero, %x) : (tensor<1 x i64>, tensor<{wide} x f32>) -> (tensor<1 x i64>, tensor<{wide} x f32>) cond {{
    ^0(%a: tensor<1 x i64>, %v: tensor<{wide} x f32>):
      %less = pd.less_than(%a, %n) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x bool>)
      cf.cond_yield(%less, %a, %v) : (tensor<1 x bool>, tensor<1 x i64>, tensor<{wide} x f32>) -> ()
  }} body {{
    ^0(%a: tensor<1 x i64>, %v: tensor<{wide} x f32>):
      %next = pd.scale(%a) {{bias = 1.0}} : (tensor<1 x i64>) -> (tensor<1 x i64>)
      %w = pd.tanh(%v) : (tensor<{wide} x f32>) -> (tensor<{wide} x f32>)
      cf.yield(%next, %w) : (tensor<1 x i64>, tensor<{wide} x f32>) -> ()
  }}
  pd.fetch(%y) {{col = 0, name = "y"}} : (tensor<{wide} x f32>) -> ()
}}
'''


def microseconds(pdcc, model, flags):
    """The median of one `pdcc bench`; None when it fails, and why."""
    p = subprocess.run([pdcc, 'bench', str(model), '--target', 'cuda', *flags], capture_output=True, text=True)
    m = re.search(r'median ([0-9.]+) (us|ms)', p.stdout)
    return (float(m[1]) * (1000 if m[2] == 'ms' else 1), '') if m else (None, (p.stderr or p.stdout).strip().splitlines()[-1:])


def best(pdcc, model, variants, flags, rounds):
    """Figures by variant, interleaved."""
    found = {}
    for _ in range(rounds):
        for name in variants:
            us, why = microseconds(pdcc, model, [*VARIANTS[name], *flags])
            if us is None:
                print(f'  {pathlib.Path(model).name}, {name}: {why}', file=sys.stderr)
                continue
            found[name] = min(us, found.get(name, us))
    return found


def ratio(figures, a, b):
    return f'{figures[a] / figures[b]:.2f}' if a in figures and b in figures else '-'


def shown(figures, name):
    return f'{figures[name]:.1f}' if name in figures else '-'


def npy(path, dtype, shape, value):
    subprocess.run([sys.executable, SRC / 'tests/mknpy.py', path, dtype, shape, *value], check=True)
    return path


def product_text(m, n, k, t, rounds):
    return PRODUCT.format(m=m, n=n, k=k, t=t, rounds=rounds, down=math.sqrt(3 / k), back=math.sqrt(3 / n))


def products(a, tmp, record):
    """One product there or back, by the difference of runs of few and of more: copies of the operands fall away."""
    print('products there and back (us)'.ljust(34) + 'own'.rjust(10) + 'libs'.rjust(10) + 'libs/own'.rjust(10) + 'TFLOP/s'.rjust(10))
    for t in ('f32', 'f16', 'bf16'):
        for m, n, k in PRODUCTS:
            model, figures = tmp / 'product.pdir', []
            more = max(4, min(MOST_ROUNDS, int(FLOPS / (4 * m * n * k))))
            for rounds in (1, more):
                model.write_text(product_text(m, n, k, t, rounds))
                figures.append(best(a.pdcc, model, ('own', 'libs'), [], a.rounds))
            f = {v: (figures[1][v] - figures[0][v]) / (2 * (more - 1)) for v in figures[0] if v in figures[1]}
            record[f'product {t} {m}x{n}x{k}'] = f
            rate = f'{2e-6 * m * n * k / f["own"]:.1f}' if 'own' in f else '-'
            print(f'{t} {m} x {n} x {k}'.ljust(34) + shown(f, 'own').rjust(10) + shown(f, 'libs').rjust(10) +
                  ratio(f, 'libs', 'own').rjust(10) + rate.rjust(10))


def loops(a, tmp, record):
    print('\na round of a while (us)'.ljust(35) + 'nodes'.rjust(10) + 'host loop'.rjust(10) + 'ratio'.rjust(10))
    for wide in (1, 1 << 20):
        model, figures = tmp / 'loop.pdir', {}
        model.write_text(LOOP.format(wide=wide))
        for n in (0, ROUNDS):
            count = npy(tmp / f'{n}.npy', 'i64', '1', [str(n)])
            figures[n] = best(a.pdcc, model, ('own', 'host loop'), ['--in', f'n={count}'], a.rounds)
        each = {v: (figures[ROUNDS][v] - figures[0][v]) / ROUNDS for v in figures[0] if v in figures[ROUNDS]}
        record[f'round of {wide}'] = each
        print(f'{wide} elements'.ljust(34) + ''.join((f'{each[v]:.2f}' if v in each else '-').rjust(10) for v in ('own', 'host loop')) +
              ratio(each, 'host loop', 'own').rjust(10))


def params_of(model, tmp):
    recipe = model.parent / 'params.yaml'
    if not recipe.exists():
        return []
    out = tmp / f'{model.parent.name}.pdiparams'
    if not out.exists():
        subprocess.run([sys.executable, SHARED / 'tools/seeded_params.py', recipe, out], check=True, stdout=subprocess.DEVNULL)
    return ['--params', str(out)]


def models(a, tmp, record):
    print('\nmodels (us)'.ljust(35) + ''.join(v.rjust(10) for v in VARIANTS) + 'libs/own'.rjust(10))
    for model in a.models:
        f = best(a.pdcc, model, VARIANTS, params_of(model, tmp), a.rounds)
        name = model.parent.name if model.stem == 'model' else model.stem
        record[name] = f
        print(name.ljust(34) + ''.join(shown(f, v).rjust(10) for v in VARIANTS) + ratio(f, 'libs', 'own').rjust(10))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--pdcc', default=str(SRC / 'pdcc'))
    ap.add_argument('--rounds', type=int, default=5)
    ap.add_argument('--json', type=pathlib.Path)
    ap.add_argument('models', nargs='*', type=pathlib.Path, metavar='MODEL')
    a = ap.parse_args()
    if not a.models:
        a.models = [p for p in (SHARED / 'corpus/models' / m / 'model.pdmodel' for m in MODELS) if p.exists()]
    with tempfile.TemporaryDirectory() as tmp:
        tmp, record = pathlib.Path(tmp), {}
        probe = tmp / 'probe.pdir'
        probe.write_text(product_text(1, 8, 8, 'f32', 1))
        us, why = microseconds(a.pdcc, probe, [])
        if us is None:
            sys.exit(f'bench_gpu: nothing can be measured here: {" ".join(why)}')
        products(a, tmp, record)
        loops(a, tmp, record)
        models(a, tmp, record)
        if a.json:
            a.json.write_text(json.dumps(record, indent=1) + '\n')


if __name__ == '__main__':
    main()
