#!/usr/bin/env python3
"""Measures all models of the corpus side by side with the peers, and writes docs/performance.md's table and picture.

    bench_all.py [--pdcc ./pdcc] [--rounds 8] [--threads 1] [--clock cpu|wall] [--quiet] [--json FILE] [--read FILE] [NAME ...]

The models are those of ../shared/corpus/models, made ready in $PDCC_BENCH by the Python that ../shared/tools/bench/setup.sh put
there. All peers of a model take turns in one run; a figure is pdcc's time over the peer's, the median of the rounds. A peer whose
result differs from Paddle's recorded one by more than the case allows does not count. --quiet: nothing else runs here, and the
text says so. --read writes the text anew from figures that --json kept. Without peers, or without the corpus, nothing is measured or written.
"""
import argparse, json, math, os, pathlib, platform, subprocess, sys, tempfile

import bench, speed

MODELS = bench.SRC.parent / 'shared/corpus/models'
TEXT, PICTURE = bench.SRC / 'docs/performance.md', bench.SRC / 'docs/performance.svg'
BEGIN, END = '<!-- bench-all: begin -->', '<!-- bench-all: end -->'
PEERS = {'ort': 'ONNX Runtime', 'ov': 'OpenVINO', 'paddle': 'Paddle, oneDNN'}
WRONG = 2e-2  # a relative difference that is no rounding, where the case does not allow more


def allowed(name):
    """The difference over the greatest element that the tolerances of a case allow: steps of integers may be large ones."""
    import numpy as np, yaml
    case = yaml.safe_load((MODELS / name / 'case.yaml').read_text())
    with np.load(bench.HOME / 'models' / f'corpus-{name}.npz') as z:
        greatest = float(np.abs(z['y'].astype('d')).max(initial=0))
    return max(WRONG, case.get('rtol', 0) + case.get('atol', 0) / greatest if greatest else 0)


def missing():
    """Why nothing can be measured, or None."""
    if not MODELS.is_dir():
        return f'no corpus in {MODELS}'
    if not (bench.HOME / 'venv/bin/python').exists():
        return f'no peers in {bench.HOME}: run {bench.HARNESS.parent}/setup.sh'
    return None


def prepared(name):
    """The name under which a case of the corpus lies among the bench models, made where it is not; None: it has no feeds, or LoD."""
    model = f'corpus-{name}'
    if not (bench.HOME / 'models' / f'{model}.npz').exists():
        subprocess.run([bench.HOME / 'venv/bin/python', bench.HARNESS.parent / 'corpus_models.py', MODELS / name], check=True,
                       capture_output=True)
    return model if (bench.HOME / 'models' / f'{model}.npz').exists() else None


def library(pdcc, model, folder, threads):
    """The shared library with the entry that the harness calls, and that entry's name."""
    prefix = ''.join(c if c.isalnum() else '_' for c in model)
    flags = ['--prefix', prefix] + (['--threads', str(threads)] if threads > 1 else [])
    made = bench.build(pdcc, model, folder, flags)
    symbols = subprocess.run(['nm', '-D', made], check=True, capture_output=True, text=True).stdout
    if f' {prefix}_call\n' not in symbols:
        other = folder / f'libcall_{prefix}.so'
        shared = [f'-DTHREADS={threads}', '-pthread', bench.SRC / 'runtime_stub/pdrt_threads.c'] if threads > 1 else []
        subprocess.run([os.environ.get('CC', 'cc'), '-O2', '-shared', '-fPIC', f'-DINFO={prefix}_info', f'-DCALL={prefix}_call', *shared,
                        f'-I{bench.SRC}/runtime_stub', bench.SRC / 'tests/bench/call_found.c', made, f'-Wl,-rpath,{folder}', '-o', other],
                       check=True, capture_output=True)
        made = other
    return made, f'{prefix}_call'


def compared(name, model, limit, a, folder):
    """One bench model beside the peers: {'name', 'ms', 'difference', 'ratios' by peer}, or 'why' where there is nothing. A peer counts
    whose result is within `limit` of Paddle's greatest element."""
    try:
        path, entry = library(a.pdcc, model, folder, a.threads)
        peers = [f'pdcc=pdcc,so={path},fn={entry}', 'paddle=paddle_mkldnn']
        if (bench.HOME / 'models' / f'{model}.onnx').exists():
            peers += ['ort=ort', 'ov=ovc']
        rows = {r['label']: r for r in bench.compare(model, path, a, peers, ['--threads', str(a.threads)])['rows']}
    except (subprocess.CalledProcessError, OSError, ValueError) as e:
        return {'name': name, 'why': f'{type(e).__name__}: {getattr(e, "stderr", None) or e}'.strip()[-300:]}
    right = {k: r for k, r in rows.items() if r['info'].get('reldiff') is not None and r['info']['reldiff'] < limit}
    if 'pdcc' not in right:
        return {'name': name, 'why': 'pdcc gives another result' if 'pdcc' in rows else 'pdcc did not run'}
    return {'name': name, 'ms': rows['pdcc']['median_us'] / 1e3, 'difference': rows['pdcc']['info'].get('reldiff'),
            'ratios': {k: 1 / right[k]['ratio'] for k in PEERS if k in right}}


def measure(name, a, folder):
    """A case of the corpus beside the peers, as compared() gives it."""
    try:
        model = prepared(name)
    except (subprocess.CalledProcessError, OSError) as e:
        return {'name': name, 'why': f'{type(e).__name__}: {getattr(e, "stderr", None) or e}'.strip()[-300:]}
    return compared(name, model, allowed(name), a, folder) if model else {'name': name, 'why': 'has LoD, or no inputs'}


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def table(found):
    """The text between the marks."""
    rows = sorted((r for r in found['models'] if r.get('ratios')), key=lambda r: max(r['ratios'].values()))
    best = [max(r['ratios'].values()) for r in rows]  # the best peer is that with the largest ratio
    taken = [b for r, b in zip(rows, best) if {'ort', 'ov'} & set(r['ratios'])]
    state = 'nothing else ran there' if found['quiet'] else 'it was busy with other work, so only the ratios of a row hold'
    lines = [BEGIN, f'Made by `make bench-all` ({found["threads"]} thread{"s" * (found["threads"] > 1)}, {found["clock"]} time, '
             f'{found["rounds"]} rounds) on {found["machine"]}: {state}.', '',
             f'Geometric mean of pdcc over the best peer, {len(rows)} of the {found["corpus"]} models: **{mean(best):.2f}**; '
             f'{sum(b > 1 for b in best)} are above 1. Of the {len(taken)} that ONNX Runtime or OpenVINO takes: '
             f'**{mean(taken) if taken else 1:.2f}**.', '',
             '![pdcc over the best peer](performance.svg)', '',
             '| model | pdcc, ms | ' + ' | '.join(f'/ {p}' for p in PEERS.values()) + ' | / the best |', '|---|---|' + '---|' * (len(PEERS) + 1)]
    for r, b in zip(rows, best):
        cells = [f'{r["ratios"][p]:.2f}' if p in r['ratios'] else '' for p in PEERS]
        lines.append(f'| {r["name"]} | {r["ms"]:.3g} | {" | ".join(cells)} | {b:.2f} |')
    left = [f'{r["name"]} ({r.get("why", "no peer gives Paddle" + chr(39) + "s result")})' for r in found['models'] if not r.get('ratios')]
    return '\n'.join(lines + (['', 'Not compared: ' + '; '.join(left) + '.'] if left else []) + [END]), list(zip(rows, best))


def picture(rows):
    """Bars of pdcc over the best peer, on a logarithmic scale from 1/8 to 2."""
    step, left, width = 16, 190, 480
    low, high = math.log(1 / 8), math.log(2)

    def at(ratio):
        return left + width * (min(max(math.log(ratio), low), high) - low) / (high - low)

    height = step * (len(rows) + 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 50}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{left + width + 50}" height="{height}" fill="white"/>']
    for ratio, label in ((1 / 8, '1/8'), (1 / 4, '1/4'), (1 / 2, '1/2'), (1, '1'), (2, '2')):
        x = at(ratio)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{step}" y2="{height - step}" stroke="{"black" if ratio == 1 else "#ccc"}"/>'
                   f'<text x="{x:.1f}" y="{step - 4}" text-anchor="middle">{label}</text>')
    for i, (r, b) in enumerate(rows):
        y, x = step * (i + 1) + 3, at(b)
        out.append(f'<text x="{left - 6}" y="{y + 9}" text-anchor="end">{r["name"]}</text>'
                   f'<rect x="{min(x, at(1)):.1f}" y="{y}" width="{abs(x - at(1)):.1f}" height="{step - 5}" fill="{"#c33" if b > 1 else "#396"}"/>'
                   f'<text x="{left + width + 6}" y="{y + 9}">{b:.2f}</text>')
    return '\n'.join(out + ['</svg>', ''])


def write(found):
    text, rows = table(found)
    if not rows:
        print('no model was compared with a peer: nothing is written')
        return
    page = TEXT.read_text()
    head, tail = (page.split(BEGIN)[0], page.split(END)[1]) if BEGIN in page else (page.rstrip('\n') + '\n\n## All models of the corpus\n\n', '\n')
    TEXT.write_text(head + text + tail)
    PICTURE.write_text(picture(rows))
    speed.README.write_text(speed.written(speed.README.read_text(), TEXT.read_text()))


def machine():
    names = [row.split(':')[1].strip() for row in pathlib.Path('/proc/cpuinfo').read_text().splitlines() if row.startswith('model name')] \
        if pathlib.Path('/proc/cpuinfo').exists() else []
    return names[0] if names else platform.machine()


def arguments(description):
    """What this and bench_new.py take."""
    ap = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--pdcc', default=str(bench.SRC / 'pdcc'))
    ap.add_argument('--rounds', type=int, default=8)
    ap.add_argument('--threads', type=int, default=1)
    ap.add_argument('--clock', default='cpu')
    ap.add_argument('names', nargs='*')
    return ap


def main():
    ap = arguments(__doc__)
    ap.add_argument('--quiet', action='store_true')
    ap.add_argument('--json', type=pathlib.Path)
    ap.add_argument('--read', type=pathlib.Path)
    a = ap.parse_args()
    if a.read:
        write(json.loads(a.read.read_text()))
        return 0
    why = missing()
    if why:
        print(f'{why}; nothing is measured')
        return 0
    cases = sorted(p.name for p in MODELS.iterdir() if p.is_dir())
    found = {'corpus': len(cases), 'threads': a.threads, 'clock': a.clock, 'rounds': a.rounds, 'quiet': a.quiet, 'machine': machine(), 'models': []}
    for name in a.names or cases:
        with tempfile.TemporaryDirectory() as tmp:
            found['models'].append(measure(name, a, pathlib.Path(tmp)))
        print(found['models'][-1], flush=True)
        if a.json:
            a.json.write_text(json.dumps(found, indent=1))
    if not a.names:
        write(found)
    return 0 if all('ms' in r or 'LoD' in r.get('why', '') for r in found['models']) else 1


if __name__ == '__main__':
    sys.exit(main())
