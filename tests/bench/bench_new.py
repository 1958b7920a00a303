#!/usr/bin/env python3
"""Measures networks that no corpus has side by side with the peers, and prints pdcc's time over theirs.

    bench_new.py [--pdcc ./pdcc] [--rounds 8] [--threads 1] [--clock cpu|wall] [NAME ...]

architectures.py defines and exports the networks, with random weights, once: to $PDCC_BENCH/models, by the Python that
../shared/tools/bench/setup.sh put there. Kernels are made for what is at hand; these tell what others find.
"""
import pathlib, subprocess, sys, tempfile

import bench, bench_all

MAKER = pathlib.Path(__file__).with_name('architectures.py')


def maker(*arguments):
    """Runs architectures.py, which needs Paddle, and gives what it prints."""
    return subprocess.run([bench.HOME / 'venv/bin/python', MAKER, *arguments], check=True, capture_output=True, text=True).stdout


def prepared(name):
    """The bench model of a network, made where it is not."""
    models = bench.HOME / 'models'
    if not (models / f'new-{name}.npz').exists():
        maker(models, name)
    return f'new-{name}'


def main():
    a = bench_all.arguments(__doc__).parse_args()
    if not (bench.HOME / 'venv/bin/python').exists():
        print(f'no peers in {bench.HOME}: run {bench.HARNESS.parent}/setup.sh; nothing is measured')
        return 0
    best, names = [], a.names or maker().split()
    for name in names:
        with tempfile.TemporaryDirectory() as tmp:
            found = bench_all.compared(name, prepared(name), bench_all.WRONG, a, pathlib.Path(tmp))
        if found.get('ratios'):
            best.append(max(found['ratios'].values()))
            shown = ', '.join(f'{r:.2f} of {bench_all.PEERS[k]}' for k, r in found['ratios'].items())
            print(f'{name:18} {found["ms"]:9.3f} ms, {best[-1]:.2f} of the best: {shown}', flush=True)
        else:
            print(f'{name:18} {found.get("why", "no peer gives the result of Paddle")}', flush=True)
    if best:
        print(f'geometric mean of {len(best)} over the best peer: {bench_all.mean(best):.2f}')
    return 0 if len(best) == len(names) else 1


if __name__ == '__main__':
    sys.exit(main())
