#!/usr/bin/env python3
"""Measures the gradients of GradBench's problems beside their objectives, and beside C gradients written by hand.

    bench_gradients.py [--pdcc ./pdcc] [--cc cc] [--rounds 5] [--check] [NAME ...]

A problem is a program (programs/NAME.pdir, as pdcc reads it out of Paddle 2.6's) and its objective and gradient in C (by_hand/NAME.c,
compiled with -O3 -march=native -ffast-math), in f64 and on one thread. First the gradients are compared, and with central differences
of the program along one direction, which is all that --check does; then both take turns, and a figure is the least of the rounds.

ht is ADBench's without barycentric coordinates. saddle and particle are Siskind and Pearlmutter's inner problems, whose loops hold a
gradient themselves (Paddle's gradients() in the body): what is measured is the gradient of a loop of gradients.
"""
import argparse, pathlib, re, subprocess, sys, tempfile

import numpy as np

SRC = pathlib.Path(__file__).resolve().parents[2]
BENCH = SRC / 'tests/bench'


def cameras(random, n):
    """Rotations well away from 0, points in front, and a lens that bends little."""
    c = random.standard_normal((n, 11)) * 0.2
    c[:, :3] += 0.5
    c[:, 5] += 6
    c[:, 6] = 400 + 10 * c[:, 6]
    c[:, 9:] *= 0.05
    return c


def hand(random):
    """22 bones, five chains of four behind two; skin with weights of all bones; points somewhere near it."""
    def rigid():
        m = np.eye(4)
        m[:3, :3], m[:3, 3] = np.linalg.qr(random.standard_normal((3, 3)))[0], random.standard_normal(3) * 0.3
        return m
    relatives, whole = [rigid() for _ in range(22)], []
    for b, m in enumerate(relatives):
        whole.append(whole[b - 1 if b < 2 or (b - 2) % 4 else 1] @ m if b else m)
    weights = random.uniform(0, 1, (544, 22)) ** 4
    return {'theta': random.standard_normal(26) * 0.3, 'relatives': np.stack(relatives), 'inverses': np.linalg.inv(np.stack(whole)),
            'base': np.concatenate([random.standard_normal((544, 3)), np.ones((544, 1))], 1), 'weights': weights / weights.sum(1, keepdims=True),
            'points': random.standard_normal((1000, 3)), 'corr': random.integers(0, 544, 1000)}


# name -> the inputs that gradients are for, and a function that makes all inputs, in the order of the program's feeds
PROBLEMS = {
    'gmm': ('alphas,means,icf', lambda r: {'alphas': r.standard_normal(10), 'means': r.standard_normal((10, 10)),
                                           'icf': r.standard_normal((10, 55)) * 0.3, 'x': r.standard_normal((1000, 10))}),
    'lstm': ('main,extra', lambda r: {'main': r.standard_normal((4, 56)), 'extra': r.standard_normal((3, 14)),
                                      'state': r.standard_normal((4, 14)), 'sequence': np.eye(14)[r.integers(0, 14, 1024)]}),
    'ode': ('x', lambda r: {'x': r.uniform(0.5, 1.5, 50)}),
    'kmeans': ('centroids', lambda r: {'points': r.standard_normal((10000, 8)), 'centroids': r.standard_normal((10, 8))}),
    'ba': ('cams,points,w', lambda r: {'cams': cameras(r, 20), 'points': r.standard_normal((2000, 3)), 'w': r.uniform(0.5, 1, 8000),
                                       'obs': np.stack([r.integers(0, 20, 8000), r.integers(0, 2000, 8000)], 1),
                                       'feats': r.standard_normal((8000, 2)) * 50}),
    'ht': ('theta', hand),
    'saddle': ('x1', lambda r: {'x1': r.standard_normal(2)}),
    'particle': ('w', lambda r: {'w': np.array([0.1])}),
}


def pdcc(a, what, name, folder, *options):
    ins = [word for f in sorted(folder.glob('*.npy')) for word in ('--in', f'{f.stem}={f}')]
    p = subprocess.run([a.pdcc, what, BENCH / f'programs/{name}.pdir', '--isa', 'native', *ins, *options], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError((p.stderr.strip().splitlines() or ['pdcc says nothing'])[-1])
    return p.stdout


def least_us(text):
    found = re.search(r'min ([\d.]+) (us|ms)', text)
    return float(found[1]) * (1000 if found[2] == 'ms' else 1)


def worst(got, wanted):
    """The largest difference, relative to the largest number of what it is in."""
    return np.abs(got - wanted).max() / np.abs(wanted).max()


def differences(a, name, folder, inputs, direction, step=1e-6):
    """What the program's loss changes by along a direction, by central differences."""
    losses = []
    for sign in (1, -1):
        for key, d in direction.items():
            np.save(folder / f'{key}.npy', inputs[key] + sign * step * d)
        pdcc(a, 'run', name, folder, '--target', 'c', '--out-dir', folder / 'moved')
        losses.append(np.load(folder / 'moved/0/0.npy').item())
    for key in direction:
        np.save(folder / f'{key}.npy', inputs[key])
    return (losses[0] - losses[1]) / (2 * step)


def prepare(a, name, folder):
    """Inputs in the folder, the C program built; how far its gradients are from pdcc's, and these from central differences."""
    wrt, make = PROBLEMS[name]
    inputs = make(np.random.default_rng(1))
    for key, value in inputs.items():
        np.save(folder / f'{key}.npy', value)
    (folder / 'inputs').write_bytes(b''.join(np.ascontiguousarray(v).tobytes() for v in inputs.values()))
    subprocess.run([*a.cc.split(), '-O3', '-march=native', '-ffast-math', BENCH / 'by_hand/main.c', BENCH / f'by_hand/{name}.c', '-o',
                    folder / 'by_hand', '-lm'], check=True)
    by_hand(folder)
    pdcc(a, 'run', name, folder, '--target', 'c', '--grad', 'loss', '--wrt', wrt, '--out-dir', folder / 'out')
    wanted, at, off, along, size = np.fromfile(folder / 'gradient'), 0, [], 0, 0
    direction = {key: np.random.default_rng(2).standard_normal(inputs[key].shape) for key in wrt.split(',')}
    for key, d in direction.items():
        got = np.load(folder / f'out/0/grad.{key}.npy')
        off.append(worst(got.reshape(-1), wanted[at:at + got.size]))
        at += got.size
        along, size = along + (got * d).sum(), size + np.abs(got * d).sum()
    moved = abs(differences(a, name, folder, inputs, direction) - along) / size
    return max(off) if at == wanted.size else float('inf'), moved


def by_hand(folder):
    """Microseconds of the objective and of the gradient."""
    p = subprocess.run([folder / 'by_hand', folder / 'inputs', folder / 'gradient'], capture_output=True, text=True, check=True)
    return [float(word) for word in p.stdout.split()[:2]]


def measure(a, name, folder):
    rows = []
    for _ in range(a.rounds):
        objective = least_us(pdcc(a, 'bench', name, folder, '--repeat', '300'))
        gradient = least_us(pdcc(a, 'bench', name, folder, '--repeat', '300', '--grad', 'loss', '--wrt', PROBLEMS[name][0]))
        rows.append((objective, gradient, *by_hand(folder)))
    o, g, by_hand_o, by_hand_g = (min(column) for column in zip(*rows))
    print(f'{name:8} objective {o:8.1f} us  gradient {g:8.1f} us = {g / o:4.2f} objectives   by hand {by_hand_o:8.1f} {by_hand_g:8.1f} us'
          f'   pdcc takes {g / by_hand_g:.2f} of that', flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--pdcc', default=str(SRC / 'pdcc'))
    ap.add_argument('--cc', default='cc')
    ap.add_argument('--rounds', type=int, default=5)
    ap.add_argument('--check', action='store_true', help='only compare the gradients')
    ap.add_argument('names', nargs='*', default=list(PROBLEMS))
    a = ap.parse_args()
    bad = 0
    for name in a.names:
        with tempfile.TemporaryDirectory() as tmp:
            off, moved = prepare(a, name, pathlib.Path(tmp))
            wrong = off > 1e-9 or moved > 1e-6
            bad += bool(wrong)
            if a.check or wrong:
                print(f'{name:8} {off:.1e} from the gradient by hand, {moved:.1e} from differences{": WRONG" if wrong else ""}', flush=True)
            if not a.check:
                measure(a, name, pathlib.Path(tmp))
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
