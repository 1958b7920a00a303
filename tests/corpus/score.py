#!/usr/bin/env python3
"""Runs the recorded cases in this folder through `pdcc run` and compares what comes out.

The small stand-in for the shared corpus' scorer: same case format, same tolerances, for a tree that stands alone.
A case tagged `random` is compared by element type and shape only.

    score.py [--pdcc PDCC] [--target T] [--flags=...] [--timeout S] [--jobs N] [--json FILE] DIR...
"""
import argparse, concurrent.futures, json, pathlib, shlex, subprocess, sys, tempfile
import numpy as np, yaml


def command(a, case, meta, out):
    model = case / 'model.json' if (case / 'model.json').exists() else case / 'model.pdmodel'
    cmd = shlex.split(a.pdcc) + ['run', model, '--target', a.target, '--out-dir', out]
    if (case / 'model.pdiparams').exists():
        cmd += ['--params', case / 'model.pdiparams']
    if (case / 'recipe.yml').exists():
        cmd += ['--train', case / 'recipe.yml']
    cmd += shlex.split(a.flags)
    for i, run in enumerate(meta['runs']):
        cmd += ['--next'] if i else []
        for name, ref in run['feeds'].items():
            cmd += ['--in', f"{name}={case / ref['file']}"]
            if ref.get('lod'):
                cmd += ['--lod', f'{name}=' + ';'.join(','.join(map(str, level)) for level in ref['lod'])]
    return [str(c) for c in cmd]


def difference(got, want, meta):
    """None when equal enough, else what is wrong. Of numbers drawn at random only shape and type can be compared."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f'{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}'
    if 'random' in meta.get('tags', []):
        return None
    if want.dtype.kind in 'fc':
        ok = np.isclose(got, want, rtol=meta['rtol'], atol=meta['atol'], equal_nan=True)
        if want.dtype.kind == 'c':  # old versions of numpy take any two infinite numbers for equal
            ok &= (np.isnan(got.real) == np.isnan(want.real)) & (np.isnan(got.imag) == np.isnan(want.imag))
    else:
        ok = got == want
    return None if ok.all() else f'{(~ok).sum()} of {want.size} elements differ'


def lod_difference(path, want):
    """A file of LoD has a line of offsets for each level. None when it says what was recorded."""
    got = path.exists() and [[int(x) for x in line.split(',')] for line in path.read_text().split()]
    return None if got == want else f'LoD {got or "is missing"}, expected {want}'


def run_case(a, case):
    meta = yaml.safe_load((case / 'case.yaml').read_text())
    with tempfile.TemporaryDirectory(prefix='pdcc-score-') as tmp:
        out = pathlib.Path(tmp)
        try:
            p = subprocess.run(command(a, case, meta, out), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=a.timeout)
        except subprocess.TimeoutExpired:
            return 'timeout', f'no answer in {a.timeout} s'
        if p.returncode:
            return 'error', (p.stderr.strip().splitlines() or ['no message'])[0]
        for i, run in enumerate(meta['runs']):
            wanted = {}
            for column, ref in enumerate(run['fetches']):
                if 'array' in ref:
                    wanted |= {f'{column}.{k}.npy': e for k, e in enumerate(ref['array'])}
                    if (out / str(i) / f"{column}.{len(ref['array'])}.npy").exists():
                        return 'wrong', f'run {i}: the array in column {column} has too many elements'
                else:
                    wanted[f'{column}.npy'] = ref
            for name, ref in wanted.items():
                path = out / str(i) / name
                if not path.exists():
                    return 'wrong', f'run {i}: no {name}'
                bad = difference(np.load(path), np.load(case / ref['file']), meta)
                if not bad and ref.get('lod'):
                    bad = lod_difference(path.with_suffix('.lod'), ref['lod'])
                if bad:
                    return 'wrong', f'run {i}, fetch {name}: {bad}'
    return 'pass', ''


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('dirs', nargs='+', type=pathlib.Path)
    ap.add_argument('--pdcc', default='./pdcc')
    ap.add_argument('--target', default='c')
    ap.add_argument('--flags', default='')
    ap.add_argument('--timeout', type=float, default=120)
    ap.add_argument('--jobs', type=int, default=2)
    ap.add_argument('--json')
    a = ap.parse_args()
    cases = sorted(p.parent for d in a.dirs for p in d.rglob('case.yaml'))
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        verdicts = list(pool.map(lambda c: run_case(a, c), cases))
    rows = [dict(group=c.parent.name, case=c.name, verdict=v, why=w) for c, (v, w) in zip(cases, verdicts)]
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1))
    for r in rows:
        if r['verdict'] != 'pass':
            print(f"{r['verdict']:8}{r['case']}  {r['why']}")
    good = sum(r['verdict'] == 'pass' for r in rows)
    print(f'{good} passed, {len(rows) - good} failed')
    return 0 if rows and good == len(rows) else 1


if __name__ == '__main__':
    sys.exit(main())
