"""Random programs with loops, branches and arrays: interpreter, passes, C and emulated CUDA give the same
(tests/fuzz/control.py); gradients of programs with control flow (tests/gradients.py), and of GradBench's problems beside C by hand."""
import argparse, concurrent.futures, os, shutil, sys, tempfile

import gradients
from pdcc_tests import SRC, run

SLOW = True
# First seed, and how many: a process each. Half of the compiler's time at -O1 goes into what -O0 does without.
PROGRAMS = [(['--isa', 'generic'], 1, 800), (['--cflags=-O0', '--isa', 'generic'], 801, 800), (['--isa', 'native'], 1601, 400),
            (['--cuda'], 170, 40)]


def shrinks(t):
    """The shrinker keeps what fails, here a product inside of a loop, and little else; what it gives is a valid program."""
    sys.path.insert(0, str(SRC / 'tests/fuzz'))
    import control, shrink
    o = argparse.Namespace(pdcc=t.pdcc)

    def fails(ops):
        text = shrink.module_text(ops)
        inside = [op for loop in ops if loop.name == 'pd.while' for op in loop.regions[1][2]]
        with tempfile.NamedTemporaryFile('w', suffix='.pdir') as f:
            f.write(text)
            f.flush()
            return any(op.name == 'pd.multiply' for op in inside) and not control.call([o.pdcc, 'opt', '--passes=', f.name, '-o', '-'])[0]

    ops = next(ops for ops in (shrink.parse(control.Program(n).text) for n in range(1, 1000)) if fails(ops))
    before, small = len(shrink.scopes(ops)), shrink.shrink(ops, fails)
    after = len(shrink.scopes(small))
    return fails(small) and after < 15, '%d operations of %d:\n%s' % (after, before, shrink.module_text(small))


def programs(t, how, first, count):
    with tempfile.TemporaryDirectory() as keep:
        return run([sys.executable, SRC / 'tests/fuzz/control.py', t.pdcc, '--seed', first, '--count', count, '--keep', keep,
                    *how, '--cc', t.config['CC'].split()[0]])


def suite(t):
    yield from gradients.suite(t)
    p = run([sys.executable, SRC / 'tests/bench/bench_gradients.py', '--pdcc', t.pdcc, '--cc', t.config['CC'], '--check'])
    yield 'gradients by hand', p.returncode == 0, p.stdout
    yield 'shrinker', *shrinks(t)
    parts = [p for p in PROGRAMS if '--cuda' not in p[0] or shutil.which('g++')]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (how, first, count), p in zip(parts, pool.map(lambda part: programs(t, *part), parts)):
            yield (f'{count} programs from {first}, {how[-1]}: ' + p.stdout.strip().split('\n')[-1], p.returncode == 0,
                   p.stdout[-3000:])
