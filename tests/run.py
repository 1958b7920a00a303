#!/usr/bin/env python3
"""Run pdcc's tests and count them.

    run.py [--all] [--only SUITE,...] [--build DIR]

Each suite is a function below; those marked slow run only with --all (make check-all, and CI). Every suite
yields (name, passed, message). The last line is 'N passed, N failed[, N skipped]'; exit status 1 when one failed.
"""
import argparse, concurrent.futures, copy, json, os, pathlib, re, shutil, subprocess, sys, tempfile, threading, time

SRC = pathlib.Path(__file__).resolve().parent.parent
SHARED = SRC.parent / 'shared'


class Skip(Exception):
    """A suite that cannot run here; says what is missing."""


def config(folder):
    """config.mk as a dict."""
    out = {}
    for line in (folder / 'config.mk').read_text().splitlines():
        key, eq, value = line.partition(' = ')
        if eq:
            out[key.strip()] = value.strip()
    return out


BUILDS = threading.Lock()  # suites that run side by side build in one folder


def build(t, target):
    """make in the build folder."""
    with BUILDS:
        return run(['make', '-s', f'-j{os.cpu_count() or 1}', '-C', t.build, target])  # others wait for it


def run(cmd, **kw):
    kw.setdefault('stdout', subprocess.PIPE)
    kw.setdefault('stderr', subprocess.STDOUT)
    return subprocess.run([str(c) for c in cmd], stdin=subprocess.DEVNULL, text=True, errors='replace', **kw)


# A process has the memory of the one that started it until it is another program, and that counts in its peak: the runner's own, which
# grows by what suites beside it read, were it not for this small process between the two.
USED = '''
import json, resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print('\\n' + json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss, status]))
'''


def used(cmd):
    """(seconds of CPU time, peak KiB, exit status, what it printed), of the command and what it starts."""
    said, _, figures = run([sys.executable, '-c', USED, *cmd]).stdout.rstrip('\n').rpartition('\n')
    return *json.loads(figures), said


PLANTED = """#include "ir/core/core.h"
bool ir_verify(Op *op);
bool planted(Op *op);
bool planted(Op *op)
{
	return ir_verify(op);
}
"""


def suite_layers(t):
    """Who uses whom is as docs/rooms.yaml says (layers.py), which finds a call upwards that is planted."""
    layers = SRC / 'tests/layers.py'
    p = run([t.python, layers, t.build])
    yield 'layers', p.returncode == 0, p.stdout
    with tempfile.TemporaryDirectory() as tmp:
        source, o = pathlib.Path(tmp) / 'planted.c', pathlib.Path(tmp) / 'planted.o'
        source.write_text(PLANTED)
        p = run([*t.config['CC'].split(), '-std=c11', f'-I{SRC}', f'-I{t.build}/obj', '-c', source, '-o', o])
        yield 'planted: compiles', p.returncode == 0, p.stdout
        p = run([t.python, layers, t.build, f'ir/core/planted.c={o}'])
        want = 'ir/core/planted.c uses ir_verify of ir/verify/verify.c: ir/core may not use ir/verify'
        yield 'planted', p.returncode == 1 and p.stdout.strip() == want, p.stdout
    p = run([t.python, layers, '--map'])
    yield 'map', p.stdout == (SRC / 'docs/map.md').read_text(), 'docs/map.md differs: run make docs'


def suite_unit(t):
    """cmocka programs built from tests/unit/test_*.c."""
    if not t.config.get('CMOCKA_LIBS'):
        raise Skip('cmocka is not installed')
    p = build(t, 'unit-tests')
    if p.returncode:
        yield 'build', False, p.stdout[-3000:]
        return
    for exe in sorted((t.build / 'obj/tests').glob('test_*')):
        if exe.suffix:
            continue
        p = run([exe], timeout=300)
        tests = re.findall(r'^\[\s+(OK|FAILED)\s+\] (\S+)', p.stdout, re.M)
        seen = set()
        for verdict, name in tests:
            if name not in seen and not name.isdigit():
                seen.add(name)
                yield f'{exe.name}/{name}', verdict == 'OK', p.stdout[-2000:]
        if not seen or (p.returncode and all(v == 'OK' for v, _ in tests)):
            yield exe.name, False, f'exit status {p.returncode}\n{p.stdout[-2000:]}'


def suite_lit(t):
    """lit and FileCheck on tests/**/*.pdir and *.test."""
    lit, filecheck = t.config.get('LIT'), t.config.get('FILECHECK')
    if not lit or not filecheck:
        raise Skip('lit or FileCheck is not installed')
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / 'lit.json'
        env = dict(os.environ, PDCC=str(t.pdcc), FILECHECK=filecheck, PDCC_BUILD=str(t.build), PYTHON=t.python)
        p = run(lit.split() + ['-q', '--output', out, SRC / 'tests'], env=env)
        if not out.exists():
            yield 'lit', False, p.stdout[-3000:]
            return
        for case in json.loads(out.read_text())['tests']:
            if case['code'] in ('UNSUPPORTED', 'EXCLUDED'):
                continue
            yield case['name'].split('::')[-1].strip(), case['code'] in ('PASS', 'XFAIL'), case.get('output', '')[-3000:]


# For pdcc run, where results are compared and -O3 is not what is tested: -O3 takes the compiler twice as long, and recorded programs
# run at -O3 for the instruction set of this machine.
BRIEF = ('--cflags', '-O1')


def corpus_cases(names):
    return [SHARED / 'corpus' / n for n in names]


def straight_line():
    return (SHARED / 'corpus/straight-line.txt').read_text().split()


def score(t, cases, label, flags='', target='c', timeout=240, cc=None):
    """Runs cases with the shared scorer (or ours for the copy in the tree) and yields one result a case."""
    scorer = SHARED / 'tools/score.py'
    if not scorer.exists():
        scorer = SRC / 'tests/corpus/score.py'
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / 'score.json'
        cmd = [t.python, scorer, '--pdcc', t.pdcc, '--json', out, '--timeout', timeout, '--jobs', 2, '--target', target]
        if flags:
            cmd.append('--flags=' + flags)
        p = run(cmd + list(cases))
        if not out.exists():
            yield label, False, p.stdout[-3000:]
            return
        for row in json.loads(out.read_text()):
            yield f"{label}/{row['group']}/{row['case']}", row['verdict'] == 'pass', f"{row['verdict']}: {row['why']}"


def suite_corpus(t):
    """Recorded Paddle programs: the copy in the tree, always; generic code where there is time."""
    yield from score(t, [SRC / 'tests/corpus'], 'native')
    if t.all or t.only:
        yield from score(t, [SRC / 'tests/corpus'], 'generic', ' '.join(('--isa=generic', *BRIEF)))
    yield from score(t, [SRC / 'tests/corpus'], 'interp', target='interp')


def suite_models(t):
    """The straight-line models of the shared corpus: both instruction sets, and the second compiler on that of this machine."""
    if not SHARED.exists():
        raise Skip('no ../shared')
    cases = corpus_cases(straight_line())
    yield from score(t, cases, 'native-gcc', '--cc gcc')
    yield from score(t, cases, 'generic-gcc', ' '.join(('--isa=generic --cc gcc', *BRIEF)))
    if t.config.get('CLANG'):
        yield from score(t, cases, 'native-clang', f"--cc {t.config['CLANG']}")


SMALL = ['models/lenet', 'models/deepfm_criteo', 'models/textcnn', 'real/mnist_mlp_handwriting', 'real/mnist_mlp_tanh',
         'real/mnist_softmax_demo']


def suite_interpreter(t):
    """The interpreter on small models."""
    if not SHARED.exists():
        raise Skip('no ../shared')
    yield from score(t, corpus_cases(SMALL), 'interp', target='interp')


def suite_redzone(t):
    """Workspace and outputs between guard bytes."""
    if not SHARED.exists():
        raise Skip('no ../shared')
    cases = corpus_cases(['models/resnet50', 'models/mobilenet_v3_small', 'models/ernie_tiny_4x312', 'models/lenet'])
    yield from score(t, cases, 'redzone', '--redzone')


FAST = [suite_layers, suite_unit, suite_lit, suite_corpus]
SLOW = [suite_interpreter, suite_redzone, suite_models]


def extra_suites():
    """Suites that live in files of their own: tests/suites/**/suite_*.py with `SLOW` and `suite(t)`."""
    import importlib.util
    sys.path[:0] = [str(SRC / 'tests'), str(SRC / 'tests/suites')]
    for path in sorted((SRC / 'tests/suites').rglob('suite_*.py')):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules['pdcc_tests'] = sys.modules[__name__]
        spec.loader.exec_module(module)
        module.suite.__name__ = path.stem
        (SLOW if module.SLOW else FAST).append(module.suite)


# The longest first, so that none of them runs alone at the end.
LONGEST = ('fuzz', 'sanitize', 'cudaemu', 'models', 'control', 'conv', 'corpus', 'generated', 'sizes', 'lit')


def in_order(suites):
    names = [s.__name__.removeprefix('suite_') for s in suites]
    return sorted(suites, key=lambda s: [*LONGEST, *names].index(s.__name__.removeprefix('suite_')))


def run_suite(suite, t):
    """(passed, failed, skipped) of one suite; says what failed when the suite is done."""
    name, start, good, said = suite.__name__.removeprefix('suite_'), time.time(), 0, []
    try:
        for case, ok, message in suite(t):
            good += bool(ok)
            if not ok:
                said.append(f'FAILED {name}: {case}\n    ' + (message or '').strip().replace('\n', '\n    '))
    except Skip as e:
        print(f'{name}: skipped: {e}', flush=True)
        return 0, 0, 1
    except Exception as e:
        said.append(f'FAILED {name}: {type(e).__name__}: {e}')
    print('\n'.join([*said, f'{name}: {good} passed, {len(said)} failed in {time.time() - start:.0f} s']), flush=True)
    return good, len(said), 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--all', action='store_true')
    ap.add_argument('--only')
    ap.add_argument('--build', default=str(SRC), type=pathlib.Path)
    t = ap.parse_args()
    t.build = pathlib.Path(t.build).resolve()
    t.pdcc, t.config = t.build / 'pdcc', config(pathlib.Path(t.build))
    t.python = t.config.get('PYTHON') or sys.executable
    extra_suites()
    suites = FAST + (SLOW if t.all or t.only else [])
    if t.only:
        suites = [s for s in suites if s.__name__.removeprefix('suite_') in t.only.split(',')]
    # Two at a time: some wait for one process, others fill both processors by themselves.
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        counts = list(pool.map(lambda suite: run_suite(suite, copy.copy(t)), in_order(suites)))
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f'{passed} passed, {failed} failed' + (f', {skipped} skipped' if skipped else ''))
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
