#!/usr/bin/env python3
"""Fails the Nth allocation, or the Nth call on files, for N = 1, 2, ... until a run gets through.

    sweep.py [--pdcc obj/fault/pdcc] [--kind alloc,io,short] [--seconds N] [--every N]

Every run must end with status 1 and a message, hold nothing at its end and leave no file behind; or, where the failure
does not matter, with status 0 and what an undisturbed run writes. Past --seconds a sweep goes on in growing steps.
"""
import argparse, os, pathlib, shutil, subprocess, sys, tempfile, time

SRC = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = SRC / 'samples/digits/digits.pdmodel'


def jobs(tmp):
    """Name and arguments of what is disturbed; outputs go below OUT."""
    text = tmp / 'digits.pdir'
    folder = tmp / 'folder'
    folder.mkdir()
    shutil.copy(DIGITS, folder / 'm.pdmodel')
    shutil.copy(DIGITS.with_suffix('.pdiparams'), folder / 'm.pdiparams')
    shutil.copy(SRC / 'tests/frontend/Inputs/recognise.yml', folder / 'm.yml')
    case = SRC / 'tests/corpus/cases/relu-0'
    feed = next((case / 'data').glob('r0.in0.npy'))
    name = next(line.split(':')[0].strip(" '") for line in (case / 'case.yaml').read_text().splitlines() if 'r0.in0' in line)
    yield 'c', [DIGITS, '--isa=avx2', '-o', 'OUT/d.c', '-MD']
    yield 'inline', [DIGITS, '--isa=generic', '--weights=inline', '-o', 'OUT/d.c']
    yield 'shared', [DIGITS, '--cc=true', '--shape=image=1,1,8,8', '-o', 'OUT/libd.so'] # the temporary folder goes
    yield 'folder', [folder, '--emit=ir', '-o', 'OUT/d.pdir']
    yield 'text', [text, '--params', DIGITS.with_suffix('.pdiparams'), '-o', 'OUT/d.c']
    yield 'info', ['info', folder, '--html=OUT/i.html']
    yield 'opt', ['opt', text, '--passes=canonicalize,cse,dce', '-o', 'OUT/d.pdir']
    yield 'diff', ['diff', text, text, '--c', *(f'{o}={DIGITS.with_suffix(".pdiparams")}' for o in ('--params', '--other-params'))]
    yield 'interp', ['run', case / 'model.pdmodel', '--target=interp', f'--in={name}={feed}', '--out-dir', 'OUT']


class Sweep:
    def __init__(self, pdcc, tmp):
        self.pdcc, self.tmp, self.out = pdcc, tmp, tmp / 'out'
        self.temps = tmp / 'temps' # what pdcc makes in TMPDIR goes again
        self.temps.mkdir()
        self.failures = []

    def written(self):
        return {p.name: p.read_bytes() for p in self.out.rglob('*') if p.is_file()} if self.out.exists() else {}

    def run(self, arguments, fault=None):
        """(status, text, files) of one run, everything cleaned up."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        env = dict(os.environ, TMPDIR=str(self.temps))
        if fault:
            env['PDCC_FAULT'] = fault
        cmd = [str(self.pdcc)] + [str(a).replace('OUT', str(self.out)) for a in arguments]
        try:
            p = subprocess.run(cmd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace', timeout=60)
        except subprocess.TimeoutExpired:
            return -1, 'timeout', {}
        return p.returncode, p.stderr, self.written()

    def judge(self, arguments, status, text, files, good):
        """What is wrong, or nothing. Of several results the first may stay when a later one fails."""
        if status == 0:
            return '' if files == good else 'status 0, but the output is another one'
        if status != (2 if arguments[0] == 'diff' else 1):
            return f'exit status {status}'
        if 'error:' not in text:
            return 'no message'
        if any(good.get(name) != data for name, data in files.items()) or (files and arguments[0] != 'run'):
            return f'left {sorted(files)}'
        temps = list(self.temps.iterdir())
        return f'left {temps}' if temps else ''

    def sweep(self, name, arguments, kind, seconds):
        status, text, good = self.run(arguments)
        if status:
            self.failures.append(f'{name}: undisturbed run fails: {text}')
            return 0
        end, n, step, count = time.monotonic() + seconds, 1, 1, 0
        while True:
            status, text, files = self.run(arguments, f'{kind}:{n}')
            if 'fault: not reached' in text:
                return count
            why = self.judge(arguments, status, text, files, good)
            if why:
                self.failures.append(f'{name}, {kind} {n}: {why}\n{text[-600:]}')
            count += 1
            if time.monotonic() > end:
                step = step + step // 4 + 1
            n += step


def sweep_all(pdcc, kinds, seconds):
    """(label, count of runs, failures) for every job and kind; `seconds` for each."""
    with tempfile.TemporaryDirectory(prefix='pdcc-sweep-') as tmp:
        s = Sweep(pdcc, pathlib.Path(tmp))
        work = list(jobs(s.tmp))
        s.run([DIGITS, '-o', s.tmp / 'digits.pdir'])
        for name, arguments in work:
            for kind in kinds:
                s.failures = []
                yield f'{name}, {kind}', s.sweep(name, arguments, kind, seconds), s.failures


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--pdcc', default='obj/fault/pdcc')
    p.add_argument('--kind', default='alloc,io,short')
    p.add_argument('--seconds', type=float, default=1e9)
    o = p.parse_args()
    bad = 0
    for label, count, failures in sweep_all(o.pdcc, o.kind.split(','), o.seconds):
        print(f'{label}: {count} runs, {len(failures)} failed', *failures[:5], sep='\n    ', flush=True)
        bad += len(failures)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
