"""Random programs with nested loops and branches: the interpreter and C give the same bytes (tests/fuzz/control.py)."""
import sys, tempfile

from pdcc_tests import SRC, run

SLOW = True
COUNT = 200


def suite(t):
    with tempfile.TemporaryDirectory() as keep:
        p = run([sys.executable, SRC / 'tests/fuzz/control.py', t.pdcc, '--count', COUNT, '--keep', keep])
    yield f'control ({COUNT} programs)', p.returncode == 0, p.stdout[-2000:]
