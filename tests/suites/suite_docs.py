"""What `make docs` writes is current, and what CONTRIBUTING.md and README.md say works."""
import sys

import newcomer, readme
from pdcc_tests import SRC, run

SLOW = True


def suite(t):
    p = run([t.build / 'obj/opgen', '--doc', *sorted((SRC / 'ir/ops').glob('*.yaml'))])
    yield 'operators.md', p.stdout == (SRC / 'docs/operators.md').read_text(), 'run make docs'
    p = run([t.python, SRC / 'docs/control-flow/generate.py', t.pdcc])
    page = (SRC / 'docs/control-flow.md').read_text()
    yield 'control-flow.md', p.stdout == page, 'run make docs'
    # The page speaks of what is there: every form was found.
    yield 'all forms', page.count('```') >= 20 and 'while (' in page and 'cf.cond_br' in page and 'compute_' in page, 'an empty form'
    sys.path.append(str(SRC / 'tests/bench'))
    import speed
    text = speed.README.read_text()
    yield 'figures of speed', speed.written(text, speed.PAGE.read_text()) == text, 'run make docs'
    yield from newcomer.check(t)
    yield from readme.check(t)
