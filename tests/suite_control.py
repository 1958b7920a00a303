"""Random programs with loops, branches and arrays: interpreter, passes and C give the same (tests/fuzz/control.py)."""
import argparse, sys, tempfile

from pdcc_tests import SRC, run

SLOW = True
PROGRAMS = [('generic', 1, 1600), ('native', 1601, 400)]  # instruction set, first seed, how many


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


def suite(t):
    yield 'shrinker', *shrinks(t)
    for isa, first, count in PROGRAMS:
        with tempfile.TemporaryDirectory() as keep:
            p = run([sys.executable, SRC / 'tests/fuzz/control.py', t.pdcc, '--seed', first, '--count', count, '--keep', keep,
                     '--isa', isa, '--cc', t.config['CC'].split()[0]])
        yield f'{count} programs, {isa}: ' + p.stdout.strip().split('\n')[-1], p.returncode == 0, p.stdout[-3000:]
