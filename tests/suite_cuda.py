"""Generated CUDA compiles with nvcc without warnings (no GPU needed)."""
import pathlib, tempfile

from pdcc_tests import SHARED, SRC, Skip, run
from suite_generated import params_for

SLOW = True


def suite(t):
    nvcc = t.config.get('NVCC')
    if not nvcc:
        raise Skip('nvcc is not installed')
    with tempfile.TemporaryDirectory() as tmp:
        todo = [('digits', SRC / 'samples/digits/digits.pdmodel', [])]
        if SHARED.exists():
            for name in ('lenet', 'resnet18'):
                todo.append((name, SHARED / f'corpus/models/{name}/model.pdmodel', params_for(t, name, tmp)))
        for name, model, params in todo:
            out = pathlib.Path(tmp) / f'{name}.cu'
            p = run([t.pdcc, model, *params, '-o', out])
            if p.returncode == 0:
                p = run([nvcc, '-arch=sm_80', '-Werror', 'all-warnings', '-I', SRC / 'runtime_stub', '-c', out, '-o',
                         out.with_suffix('.o')])
            yield name, p.returncode == 0, p.stdout[-2000:]
