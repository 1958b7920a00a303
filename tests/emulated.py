"""What suites of generated CUDA share (suite_cuda*.py, suite_gpu.py): pdcc on the emulator, recorded programs, and programs of
many cases that are run in several ways."""
import contextlib, os, pathlib, shutil, tempfile

from pdcc_tests import SRC, Skip, run

RECORDED = SRC / 'tests/corpus/cases'
QUICK = ('--cflags', '-O0')  # programs that are compiled once and run once on little: the compiler takes longer than the emulator
QUICK_SCORE = '--flags=' + ' '.join(QUICK)


def environment(**more):
    """In which pdcc emulates, whether there is a GPU or not."""
    return {**os.environ, 'PDCC_EMULATE': '1', **more}


@contextlib.contextmanager
def folder():
    """Where a suite works. It is skipped without the compiler that the emulator takes."""
    if not shutil.which('g++'):
        raise Skip('g++ is not installed')
    with tempfile.TemporaryDirectory() as tmp:
        yield pathlib.Path(tmp)


def score(t, cases, env, *flags):
    """Recorded programs as CUDA against what Paddle computed."""
    return run([t.python, SRC / 'tests/corpus/score.py', '--pdcc', t.pdcc, '--target', 'cuda', '--timeout', '300', *flags, *cases], env=env)


class Program:
    """One program made of many cases, in a folder. A case has a `name`; `feeds(np, random)`, what it is fed: names and arrays;
    `text(i, column)`, the lines of case number i, whose feeds `NAME_i` begin at that column. It fetches column i."""

    def __init__(self, t, tmp, cases):
        import numpy as np
        random = np.random.default_rng(1)
        self.t, self.tmp, self.cases, self.model = t, tmp, cases, tmp / 'model.pdir'
        rows, self.options, self.given, column = ['builtin.module {'], [], [], 0
        for i, case in enumerate(cases):
            rows += case.text(i, column)
            feeds = case.feeds(np, random)
            self.given.append([value for _, value in feeds])
            for name, value in feeds:
                np.save(tmp / f'{name}_{i}.npy', value)
                self.options += ['--in', f'{name}_{i}={tmp / f"{name}_{i}.npy"}']
            column += len(feeds)
        self.model.write_text('\n'.join(rows + ['}', '']))

    def run(self, target, out, *flags, model=None, **env):
        return run([self.t.pdcc, 'run', model or self.model, '--target', target, '--out-dir', self.tmp / out, *self.options, *flags],
                   env=environment(CUDAEMU_SEED='3', **env))

    def results(self, out):
        """Of all cases, once that was run."""
        import numpy as np
        return [np.load(self.tmp / out / f'0/{i}.npy') for i in range(len(self.cases))]

    def lowered_and_emulated(self, passes, near, emulate=None):
        """Lowered by these passes for CUDA, and emulated (`emulate`: another form of it), against the program as it is in the
        interpreter; near(case, have, want)."""
        lowered = self.tmp / 'lowered.pdir'
        p = run([self.t.pdcc, 'opt', self.model, '--isa', 'cuda', f'--passes={passes}', '-o', lowered])
        yield 'lowers', p.returncode == 0, p.stdout[-3000:]
        all_run = True
        for out, target, model in (('want', 'interp', None), ('lowered', 'interp', lowered), ('emulated', 'cuda', emulate)):
            p = self.run(target, out, model=model)
            all_run = all_run and p.returncode == 0
            yield f'{out}: runs', p.returncode == 0, p.stdout[-3000:]
        for out in ('lowered', 'emulated') if all_run else ():
            yield from self.agrees(out, near)

    def agrees(self, out, near):
        for case, have, want in zip(self.cases, self.results(out), self.results('want')):
            yield f'{out}: {case.name}', near(case, have, want), f'{have}\n{want}'
