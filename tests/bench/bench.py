#!/usr/bin/env python3
"""Measures generated code side by side with the peers that are installed.

    bench.py [--pdcc ./pdcc] [--rounds 15] [--clock cpu|wall] [--json FILE] [MODEL ...]

Peers and models are made by ../shared/tools/bench/setup.sh in $PDCC_BENCH (default ~/.cache/pdcc-bench). Every
model becomes a shared library with `pdcc MODEL -o libMODEL.so`, pinned to the shapes of the recorded inputs; the
harness interleaves the peers and prints paired ratios (below 1: faster than ONNX Runtime). Without peers only
pdcc's own latency is printed.
"""
import argparse, json, os, pathlib, subprocess, sys, tempfile

SRC = pathlib.Path(__file__).resolve().parents[2]
HARNESS = SRC.parent / 'shared/tools/bench/sidebyside.py'
HOME = pathlib.Path(os.environ.get('PDCC_BENCH', pathlib.Path.home() / '.cache/pdcc-bench'))
MODELS = ['resnet50', 'mobilenet_v1', 'mobilenet_v3_small', 'bert4', 'lenet', 'mlp']


def npz_shapes(path):
    """Shapes of the arrays x0, x1 ... of a .npz file, by the feeds' names where it has them, else by their numbers."""
    import numpy as np
    with np.load(path) as z:
        count = sum(k[0] == 'x' for k in z.files)
        names = [str(n) for n in z['names']] if 'names' in z.files else range(count)
        return {name: list(z[f'x{i}'].shape) for i, name in enumerate(names)}


def build(pdcc, model, folder, flags):
    """The shared library of a bench model, with its feeds pinned."""
    path = HOME / 'models' / f'{model}.pdmodel'
    info = json.loads(subprocess.run([pdcc, 'info', path, '--json'], check=True, capture_output=True, text=True).stdout)
    cmd = [pdcc, path, '-o', folder / f'lib{model}.so', '--isa=native', *flags]
    shapes = npz_shapes(HOME / 'models' / f'{model}.npz')
    for i, feed in enumerate(info['inputs']):
        shape = shapes.get(feed['name'], shapes.get(i))
        if shape is not None:
            cmd.append(f"--shape={feed['name']}={','.join(map(str, shape))}")
    subprocess.run(cmd, check=True, stderr=subprocess.PIPE, text=True)
    return folder / f'lib{model}.so'


def harness(folder):
    """A copy of the shared harness whose worker keeps the array that pdcc writes to alive: the original
    rebinds the name `y` after the first run and so frees it."""
    for name in ('sidebyside.py', 'worker.py'):
        text = (HARNESS.parent / name).read_text()
        (folder / name).write_text(text.replace('y=np.asarray(get())', "kept=globals().get('y'); y=np.asarray(get())"))
    return folder / 'sidebyside.py'


def compare(model, library, a, peers, flags=()):
    env = dict(os.environ, PERF_CLOCK=a.clock)
    out = library.with_suffix('.json')
    subprocess.run([HOME / 'venv/bin/python', harness(library.parent), '--rounds', str(a.rounds), '--json', out, *flags, model, *peers],
                   env=env, check=True)
    return json.loads(out.read_text())


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--pdcc', default=str(SRC / 'pdcc'))
    ap.add_argument('--rounds', type=int, default=15)
    ap.add_argument('--clock', default='cpu')
    ap.add_argument('--json', type=pathlib.Path)
    ap.add_argument('models', nargs='*', default=MODELS)
    a = ap.parse_args()
    if not (HOME / 'models').exists():
        print(f'no bench models in {HOME}: run ../shared/tools/bench/setup.sh; measuring the digits sample only')
        subprocess.run([a.pdcc, 'bench', SRC / 'samples/digits/digits.pdmodel', '--shape=image=1,1,8,8'], check=True)
        return 0
    results = []
    with tempfile.TemporaryDirectory() as tmp:
        for model in a.models:
            try:
                library = build(a.pdcc, model, pathlib.Path(tmp), [])
                peers = ['ort=ort', 'ov=ovc', 'paddle=paddle_mkldnn', f'pdcc=pdcc,so={library},fn={model}_call']
                results.append(compare(model, library, a, peers, ['--cpus', '0']))
            except subprocess.CalledProcessError as e:
                print(f'{model}: {e}', file=sys.stderr)
    if a.json:
        a.json.write_text(json.dumps(results, indent=1))
    return 0 if len(results) == len(a.models) else 1


if __name__ == '__main__':
    sys.exit(main())
