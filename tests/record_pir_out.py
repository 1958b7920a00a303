#!/usr/bin/env python3
"""Whether Paddle 3 runs what `pdcc -o model.json` writes: each legacy program of a corpus is written, loaded by Paddle 3, run on the
recorded inputs, and what comes out is compared with what Paddle 2.6.2 gave for the legacy program.

    tests/record_pir_out.py --paddle /path/to/paddle3/bin/python [--pdcc ./pdcc] [--json FILE] [--match RE] DIR...

DIR holds cases (tests/corpus/README.md). Needs paddlepaddle 3.2 in that environment, numpy and PyYAML in this one. Run by hand: the
project's tests need no Paddle. Cases count as `refused` where pdcc says that Paddle 3 has no form for the program."""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np


def worker():
    """In Paddle's environment: a request for each line of standard input, a reply for each."""
    import paddle
    paddle.enable_static()
    exe = paddle.static.Executor(paddle.CPUPlace())
    for line in sys.stdin:
        job, reply = json.loads(line), {}
        try:
            scope = paddle.static.Scope()
            with paddle.static.scope_guard(scope):
                program, _, fetches = paddle.static.load_inference_model(job['prefix'], exe)
                for i, feeds in enumerate(job['runs']):
                    got = exe.run(program, feed={k: np.load(v) for k, v in feeds.items()}, fetch_list=fetches)
                    for k, a in enumerate(got):
                        np.save(f"{job['out']}/{i}.{k}.npy", np.asarray(a), allow_pickle=False)
                    for k, name in enumerate(job['state'][i]):
                        var = scope.find_var(name)
                        if var:
                            np.save(f"{job['out']}/{i}.state.{k}.npy", np.asarray(var.get_tensor()))
        except Exception as e:
            reply = {'error': f'{type(e).__name__}: {e}'}
        print('@' + json.dumps(reply), flush=True)


class Paddle:
    """A worker, started again after a crash."""

    def __init__(self, python):
        self.python, self.process = python, None

    def run(self, job):
        if not self.process:
            self.process = subprocess.Popen([self.python, __file__, '--worker'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps(job) + '\n')
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith('@'):
                    return json.loads(line[1:])
        except BrokenPipeError:
            pass
        code, self.process = self.process.wait(), None
        return {'error': f'Paddle ended with {code}'}


def array(case, ref, tmp):
    path = case / ref['file']
    if not path.exists() and 'seeded' in ref:
        from seeded_params import seeded
        s, path = ref['seeded'], tmp / path.name
        np.save(path, seeded(s['name'], s['shape'], ref['dtype'], s['low'], s['high']))
    return str(path)


def difference(got, want, meta):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f'{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}'
    if 'random' in meta.get('tags', []) or want.size == 0:
        return None
    if want.dtype.kind not in 'fc':
        return None if (got == want).all() else f'{(got != want).sum()} of {want.size} elements differ'
    ok = np.isclose(got, want, rtol=meta['rtol'], atol=meta['atol'], equal_nan=True)
    return None if ok.all() else f'{(~ok).sum()} of {want.size} elements differ, by {np.nanmax(abs(got - want)):.3g}'


def check(a, paddle, case, tmp):
    import yaml
    meta = yaml.safe_load((case / 'case.yaml').read_text())
    command = [a.pdcc, str(case / 'model.pdmodel'), '-o', str(tmp / 'model.json')]
    params = case / 'model.pdiparams'
    if not params.exists() and (case / 'params.yaml').exists():
        from seeded_params import write_params_from_recipe
        params = tmp / 'seeded.pdiparams'
        write_params_from_recipe(str(case / 'params.yaml'), str(params))
    if params.exists():
        command += ['--params', str(params)]
        command += ['--param-names', ','.join(meta['params'])] if 'params' in meta else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if 'error: ' in line]
        return ('refused' if done.returncode == 1 else 'crash'), lines[0] if lines else done.stderr[:200]
    runs = meta['runs']
    if 'paddle-wrong-gradient' in meta.get('tags', []):
        return 'refused', 'what Paddle 2.6.2 gave is wrong'
    if any('array' in f for r in runs for f in [*r['feeds'].values(), *r['fetches']]):
        return 'refused', 'arrays'
    job = {'prefix': str(tmp / 'model'), 'out': str(tmp), 'state': [list(r.get('state', {})) for r in runs], 'runs': [{k: array(case, v, tmp) for k, v in r['feeds'].items()} for r in runs]}
    reply = paddle.run(job)
    if 'error' in reply:
        return 'error', reply['error']
    for i, run in enumerate(runs):
        for k, ref in enumerate(run['fetches']):
            bad = difference(np.load(tmp / f'{i}.{k}.npy'), np.load(case / ref['file']), meta)
            if bad:
                return 'wrong', f'run {i}, fetch {k}: {bad}'
        for k, (name, ref) in enumerate(run.get('state', {}).items()):
            got = tmp / f'{i}.state.{k}.npy'
            bad = got.exists() and difference(np.load(got), np.load(case / ref['file']), meta)  # not there: untouched
            if bad:
                return 'wrong', f'run {i}, state {name}: {bad}'
    return 'right', ''


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('dirs', nargs='*', type=pathlib.Path)
    ap.add_argument('--paddle', help='the Python of an environment with Paddle 3')
    ap.add_argument('--pdcc', default='./pdcc')
    ap.add_argument('--match', default='')
    ap.add_argument('--json')
    ap.add_argument('--tools', help='a folder with seeded_params.py, for cases whose arrays are recipes')
    ap.add_argument('--worker', action='store_true', help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.worker:
        return worker()
    sys.path += [a.tools] if a.tools else []
    rows, counts, paddle = [], collections.defaultdict(collections.Counter), Paddle(a.paddle)
    for folder in a.dirs:
        for case in sorted(p.parent for p in folder.rglob('case.yaml') if (p.parent / 'model.pdmodel').exists()):
            if not re.search(a.match, str(case)):
                continue
            with tempfile.TemporaryDirectory() as tmp:
                verdict, why = check(a, paddle, case, pathlib.Path(tmp))
            counts[case.parent.name][verdict] += 1
            rows.append({'group': case.parent.name, 'case': case.name, 'verdict': verdict, 'why': why})
            if verdict not in ('right', 'refused'):
                print(f'{verdict:8}{case.parent.name}/{case.name}  {why[-1200:]}', flush=True)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1))
    for group, c in counts.items():
        print(f"{group:16}{c['right']:5} right, {c['wrong']} wrong, {c['error']} errors, {c['refused']} refused, {c['crash']} crashes")
    return 0 if all(r['verdict'] in ('right', 'refused') for r in rows) else 1


sys.exit(main())
