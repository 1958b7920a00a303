"""Damaged models through the compiler built with sanitizers (make asan), and the recorded cases through it unharmed."""
import concurrent.futures, copy, os, pathlib, tempfile

from pdcc_tests import SRC, build, run, score

SLOW = True
DERIVED, PARTS = 2000, 4  # programs of which derivatives are checked, a tenth of which may be refused; a part a process: 7 minutes of one processor
LARGE_PAGES = 'glibc.malloc.hugetlb=1'  # most of what the interpreter takes for a small program is that of getting its memory
ROUNDS, SECONDS = 8, 900  # rounds decide, so that every machine tries the same; the time is for one that hangs


def damage(t, pdcc, models):
    """Models changed at random, a part of them a process."""
    def part(of):
        with tempfile.TemporaryDirectory() as tmp:
            return run([t.python, SRC / 'tests/fuzz/mutate.py', '--pdcc', pdcc, '--rounds', ROUNDS, '--seconds', SECONDS,
                        '--stage', 'ir,generic,avx2,info', *of], cwd=tmp, env=dict(os.environ, TMPDIR=tmp))

    parts = [models[i::PARTS] for i in range(PARTS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for of, p in zip(parts, pool.map(part, parts)):
            yield f'{ROUNDS} rounds of damage, {len(of)} models from {of[0].parent.name}', p.returncode == 0, p.stdout[-3000:]


def derivatives(t):
    """Gradients of random programs against central differences and forward mode; one of 120 as C, too."""
    each = DERIVED // PARTS

    def part(i):
        with tempfile.TemporaryDirectory() as keep:
            return run([t.python, SRC / 'tests/fuzz/gradients.py', t.pdcc, '--seed', 1 + i * each, '--count', each, '--compiled', 120,
                        '--keep', keep], env=dict(os.environ, GLIBC_TUNABLES=LARGE_PAGES))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for p in pool.map(part, range(PARTS)):
            yield 'derivatives: ' + p.stdout.strip().split('\n')[-1], p.returncode == 0, p.stdout[-3000:]


def suite(t):
    p = build(t, 'asan')
    pdcc = pathlib.Path(t.build) / 'obj/asan/pdcc'
    yield 'the compiler builds with sanitizers', p.returncode == 0 and pdcc.exists(), p.stdout[-2000:]
    if not pdcc.exists():
        return
    models = sorted((SRC / 'tests/corpus/cases').glob('*/model.*[ln]')) + [SRC / 'samples/digits/digits.pdmodel']
    yield from damage(t, pdcc, models)
    sanitized = copy.copy(t)
    sanitized.pdcc = pdcc
    yield from score(sanitized, [SRC / 'tests/corpus/cases'], 'asan', target='interp')
    yield from derivatives(t)
