"""Generated CUDA on a real GPU: recorded programs, with conditional nodes and without. Skipped where there is none."""
import os, shutil

import emulated
from pdcc_tests import SHARED, SRC, Skip, run

SLOW = True
WITH_CONTROL_FLOW = ('bundled', 'cf')
WITHOUT_NODES = ['--flags=--cflags=-DPD_CONDITIONS=0']


def missing(t):
    """Why nothing can be run here; None: it can."""
    if not t.config.get('NVCC') and not shutil.which('nvcc'):
        return 'nvcc is not installed'
    smi = shutil.which('nvidia-smi')
    if not smi or run([smi, '-L']).returncode:
        return 'no GPU'
    return None


def corpora():
    yield 'bundled', SRC / 'tests/corpus/cases'
    for group in ('cf', 'p2o', 'models'):
        if (SHARED / 'corpus' / group).exists():
            yield group, SHARED / 'corpus' / group


def suite(t):
    why = missing(t)
    if why:
        raise Skip(why)
    env = {**os.environ, 'PDCC_EMULATE': ''}
    for name, folder in corpora():
        cases = sorted(p.parent for p in folder.rglob('case.yaml'))
        p = emulated.score(t, cases, env)
        yield name, p.returncode == 0, p.stdout[-3000:]
        if name in WITH_CONTROL_FLOW:
            p = emulated.score(t, cases, env, *WITHOUT_NODES)
            yield f'{name}, without conditional nodes', p.returncode == 0, p.stdout[-3000:]
