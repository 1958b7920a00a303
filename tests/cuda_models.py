#!/usr/bin/env python3
"""`make check-cuda-all`: the CUDA of every model of the shared corpus through nvcc under the gates of suite_cuda.py, with what each
costs (seconds: of the CPU). MATCH=RE chooses models, SECONDS=N starts no further one after so long. Fails when one does."""
import argparse, os, pathlib, re, resource, sys, tempfile, time

import run as pdcc_tests

sys.modules['pdcc_tests'] = pdcc_tests  # what suites import
from suite_cuda import ARCHS, nvcc_compile, sources
from suite_generated import params_for

MAX_LINES, MAX_SECONDS = 10000, 90  # of ResNet50
COLUMNS = '{:28} {:>6} {:>7} {:>8} {:>5} {:>7} {:>6} {:>8} {:>7}'


def figures(text):
    """Functions, most registers, bytes spilled, bytes of local memory, warnings: as ptxas and nvcc say."""
    numbers = lambda pattern: [int(n) for n in re.findall(pattern, text)]
    return (len(re.findall(r'Compiling entry function', text)) // len(ARCHS), max(numbers(r'Used (\d+) registers'), default=0),
            sum(numbers(r'(\d+) bytes spill stores')), sum(numbers(r'(\d+) bytes stack frame')), len(re.findall(r'warning', text, re.I)))


def cpu_seconds():
    """Of programs that have ended: what nvcc takes, however busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    config = pdcc_tests.config(build)
    t = argparse.Namespace(pdcc=build / 'pdcc', python=config.get('PYTHON') or sys.executable)
    nvcc, models = config.get('NVCC'), pdcc_tests.SHARED / 'corpus/models'
    if not nvcc or not models.exists():
        print('check-cuda-all: skipped:', 'nvcc is not installed' if not nvcc else f'{models} is not there')
        return 0
    match, limit, begin, wrong, left = os.environ.get('MATCH', ''), float(os.environ.get('SECONDS', 'inf')), time.monotonic(), [], []
    print(COLUMNS.format('model', 'lines', 'seconds', 'kernels', 'regs', 'spilled', 'local', 'warnings', ''), flush=True)
    for name in sorted(d.name for d in models.iterdir() if re.search(match, d.name) and (d / 'model.pdmodel').exists()):
        if time.monotonic() - begin > limit:
            left.append(name)
            continue
        with tempfile.TemporaryDirectory() as tmp:
            [(_, source, said)] = sources(t, [(name, models / name / 'model.pdmodel', params_for(t, name, tmp))], tmp)
            start, lines = cpu_seconds(), len(source.read_text().splitlines()) if source else 0
            p = nvcc_compile(nvcc, source, '-Xptxas', '-v') if source else None
        seconds, text = cpu_seconds() - start, p.stdout if p else said
        ok = p is not None and p.returncode == 0 and (name != 'resnet50' or (lines < MAX_LINES and seconds < MAX_SECONDS))
        print(COLUMNS.format(name, lines, f'{seconds:.1f}', *figures(text), 'ok' if ok else 'FAILED'), flush=True)
        if not ok:
            wrong.append(name)
            print('\n'.join(line for line in text.splitlines() if re.search('error|warning', line))[-2000:], flush=True)
    print(f'{len(wrong)} failed' + (f'; not tried: {", ".join(left)}' if left else ''))
    return len(wrong) > 0


if __name__ == '__main__':
    sys.exit(main())
