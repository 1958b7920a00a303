"""Training steps of --train: recorded steps of Paddle's own optimizers on the same networks (tests/train), in the interpreter, as C
and as emulated CUDA; the generated C under strict warnings and sanitizers."""
import pathlib, shutil, tempfile

import emulated
from pdcc_tests import SRC, run

SLOW = False
CASES = SRC / 'tests/train'
STRICT = ['-std=c11', '-Wall', '-Wextra', '-Werror', '-pedantic', '-O2']
SANITIZE = '-O0 -fsanitize=address,undefined -fno-sanitize-recover=all'


def score(t, *flags):
    p = run([t.python, SRC / 'tests/corpus/score.py', '--pdcc', t.pdcc, '--timeout', '300', '--jobs', '2', *flags, CASES])
    return p.returncode == 0, p.stdout


def strict(t, case):
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / 'model.c'
        model = next(m for m in (case / 'model.pdmodel', case / 'model.json') if m.exists())
        p = run([t.pdcc, model, '--train', case / 'recipe.yml', '-o', out])
        if p.returncode == 0:
            p = run([*t.config['CC'].split(), *STRICT, f'-I{SRC}/runtime_stub', '-c', out, '-o', pathlib.Path(tmp) / 'model.o'])
        return p.returncode == 0, p.stdout


def suite(t):
    for how, flags in (('interp', ['--target', 'interp']), ('native', []), ('generic', ['--flags=--isa=generic --redzone']),
                       ('sanitized', [f'--flags=--isa=generic --cflags "{SANITIZE}"'])):
        yield f'steps of Paddle, {how}', *score(t, *flags)
    for case in sorted(p.parent for p in CASES.glob('*/case.yaml')):
        yield f'{case.name} without warnings', *strict(t, case)
    if shutil.which('g++'):
        p = emulated.score(t, [CASES], emulated.environment(CUDAEMU_SEED='3', CUDAEMU_RACES='1'), emulated.QUICK_SCORE)
        yield 'steps of Paddle, emulated CUDA', p.returncode == 0, p.stdout
