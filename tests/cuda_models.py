#!/usr/bin/env python3
"""`make check-cuda-all`: the CUDA of every model of the shared corpus through nvcc under the gates of suite_cuda.py, and through g++
against the emulator, with what each costs (seconds: of the CPU). MATCH=RE chooses models, SECONDS=N starts no further one after so
long, FLAGS=... are options of pdcc, HALF=1 turns all f32 of a model into f16. Fails when one does. What has passed is kept in
obj/cuda-gate by a hash of all that compilers see, so that another run compiles only what has changed."""
import argparse, hashlib, json, os, pathlib, re, resource, sys, tempfile, time

import run as pdcc_tests

sys.path.insert(0, str(pdcc_tests.SRC / 'tests/suites'))
sys.modules['pdcc_tests'] = pdcc_tests  # what suites import
from pdcc_tests import SRC, run
from suite_cuda import ARCHS, GATES, nvcc_compile
from suite_generated import params_for, recipe_params

MAX_LINES, MAX_SECONDS = 10000, 90  # of ResNet50
EMU = SRC / 'runtime_stub/cudaemu'
CXX = ['g++', '-std=gnu++14', '-O1', '-fsyntax-only', '-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', '-x', 'c++', f'-I{EMU}']
COLUMNS = '{:28} {:>6} {:>7} {:>7} {:>8} {:>5} {:>7} {:>6} {:>8} {:>7}'


def figures(text):
    """Functions, most registers, bytes spilled, bytes of local memory, warnings: as ptxas and nvcc say."""
    numbers = lambda pattern: [int(n) for n in re.findall(pattern, text)]
    return [len(re.findall(r'Compiling entry function', text)) // len(ARCHS), max(numbers(r'Used (\d+) registers'), default=0),
            sum(numbers(r'(\d+) bytes spill stores')), sum(numbers(r'(\d+) bytes stack frame')), len(re.findall(r'warning', text, re.I))]


def cpu_seconds():
    """Of programs that have ended: what they take, however busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command, *arguments):
    start = cpu_seconds()
    p = command(*arguments)
    return p, cpu_seconds() - start


def compiled(nvcc, source):
    """What both compilers make of the source: seconds of nvcc, figures, and what is wrong ('' if nothing is)."""
    p, seconds = timed(nvcc_compile, nvcc, source, '-Xptxas', '-v')
    q = run([*CXX, '-I', SRC / 'runtime_stub', source])
    wrong = [line for text, rc in ((p.stdout, p.returncode), (q.stdout, q.returncode)) if rc
             for line in text.splitlines() if re.search('error|warning', line) or rc < 0] or ['?'] * (p.returncode or q.returncode != 0)
    return {'seconds': seconds, 'figures': figures(p.stdout), 'wrong': '\n'.join(wrong)[-2000:]}


def digest(source, version):
    """Of all that decides what compilers say."""
    h = hashlib.sha256(repr((version, GATES, CXX)).encode())
    stub, emulator = SRC / 'runtime_stub', EMU
    for path in (source, source.with_suffix('.h'), pathlib.Path(__file__), stub / 'pdrt.h', *sorted(stub.glob('pdrt_cuda*.h')), *sorted(emulator.glob('*.h'))):
        h.update(path.read_bytes())
    return h.hexdigest()


def known_or_compiled(cache, nvcc, version, source):
    entry = cache / digest(source, version)
    if entry.exists():
        return json.loads(entry.read_text())
    found = compiled(nvcc, source)
    if not found['wrong']:
        cache.mkdir(parents=True, exist_ok=True)
        partial = entry.with_suffix('.part')
        partial.write_text(json.dumps(found))
        partial.rename(entry)
    return found


def model_of(t, folder, tmp):
    """A model and the options that give its parameters."""
    return [folder / 'model.pdmodel', *params_for(t, folder.name, tmp)]


def half_model_of(t, folder, tmp):
    """The same in f16: text with other types, parameters of another recipe. None where values are in files of f32."""
    text, recipe, params = tmp / 'half.pdir', tmp / 'half.yaml', tmp / 'half.pdiparams'
    recipe.write_text((folder / 'params.yaml').read_text().replace('float32', 'float16'))
    names = re.findall(r'^- name: (.*)', recipe.read_text(), re.M)
    if re.search(r'^  file:', recipe.read_text(), re.M):
        return None
    run([t.pdcc, *model_of(t, folder, tmp), '-o', text])
    text.write_text(re.sub(r'\bf32\b', 'f16', text.read_text()))
    recipe_params(t, recipe, params)
    return [text, '--params', params, '--param-names', ','.join(sorted(names))]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    config = pdcc_tests.config(build)
    t = argparse.Namespace(pdcc=build / 'pdcc', python=config.get('PYTHON') or sys.executable)
    nvcc, models = config.get('NVCC'), pdcc_tests.SHARED / 'corpus/models'
    if not nvcc or not models.exists():
        print('check-cuda-all: skipped:', 'nvcc is not installed' if not nvcc else f'{models} is not there')
        return 0
    version = run([nvcc, '--version']).stdout + run(['g++', '--version']).stdout
    match, limit, begin, wrong, left = os.environ.get('MATCH', ''), float(os.environ.get('SECONDS', 'inf')), time.monotonic(), [], []
    print(COLUMNS.format('model', 'lines', 'pdcc', 'nvcc', 'kernels', 'regs', 'spilled', 'local', 'warnings', ''), flush=True)
    for name in sorted(d.name for d in models.iterdir() if re.search(match, d.name) and (d / 'model.pdmodel').exists()):
        if time.monotonic() - begin > limit:
            left.append(name)
            continue
        with tempfile.TemporaryDirectory() as tmp:
            source = pathlib.Path(tmp) / f'{name}.cu'
            model = (half_model_of if os.environ.get('HALF') else model_of)(t, models / name, pathlib.Path(tmp))
            if not model:
                left.append(name)
                continue
            p, emitted = timed(run, [t.pdcc, *model, '-o', source, *os.environ.get('FLAGS', '').split()])
            lines = len(source.read_text().splitlines()) if p.returncode == 0 else 0
            c = known_or_compiled(build / 'obj/cuda-gate', nvcc, version, source) if lines else \
                {'seconds': 0, 'figures': figures(''), 'wrong': p.stdout}
        ok = not c['wrong'] and (name != 'resnet50' or (lines < MAX_LINES and c['seconds'] < MAX_SECONDS))
        print(COLUMNS.format(name, lines, f'{emitted:.1f}', f"{c['seconds']:.1f}", *c['figures'], 'ok' if ok else 'FAILED'), flush=True)
        if not ok:
            wrong.append(name)
            print(c['wrong'], flush=True)
    print(f'{len(wrong)} failed' + (f'; not tried: {", ".join(left)}' if left else ''))
    return len(wrong) > 0


if __name__ == '__main__':
    sys.exit(main())
