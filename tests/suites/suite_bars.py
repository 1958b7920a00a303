"""Bars on ResNet50: time and memory of pdcc, length of the C, time of gcc, locality of a change."""
import pathlib, re, tempfile

from pdcc_tests import SHARED, SRC, Skip, run, used
from suite_generated import SIMD, params_for

SLOW = True


def changed_lines(a, b):
    """Lines that differ: of each place the longer side. diff's, for difflib does not look for the shortest difference."""
    count = 0
    for old, new in re.findall(r'^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@', run(['diff', '-U0', a, b]).stdout, re.M):
        count += max(int(old or 1), int(new or 1))
    return count


def locality(t, case, params, tmp):
    """The dilation of one convolution in the middle, changed in the IR's text: how much of the C changes. It leaves a function
    that it shared with others and gets one of its own, which is most of the difference (41 lines of at most 100 columns). Without Winograd's kernels, which take no
    dilation: another kernel is another text."""
    name = 'one changed attribute changes under 45 lines'
    old, new = tmp / 'old', tmp / 'new'
    for folder in (old, new):
        folder.mkdir()
    ir = old / 'resnet50.pdir'
    run([t.pdcc, case, *params, '-o', ir, '--shape=image=1,3,224,224'])
    lines = ir.read_text().splitlines()
    plain = [i for i, line in enumerate(lines) if 'pd.conv2d(' in line and 'paddings = [1, 1], strides = [1, 1]' in line]
    if not plain:
        yield name, False, 'no convolution found in the IR'
        return
    at = plain[len(plain) // 2 + 1]
    lines[at] = lines[at].replace('dilations = [1, 1]', 'dilations = [2, 2]').replace('paddings = [1, 1]', 'paddings = [2, 2]')
    (new / ir.name).write_text('\n'.join(lines) + '\n')
    for folder in (old, new):
        p = run([t.pdcc, folder / ir.name, *params, '-o', folder / 'resnet50.c', '--isa=avx2', '--winograd=off'])
        if p.returncode:
            yield name, False, p.stdout[-1500:]
            return
    n = changed_lines(old / 'resnet50.c', new / 'resnet50.c')
    yield name, 0 < n < 45, f'{n} lines'


def suite(t):
    if not SHARED.exists():
        raise Skip('no ../shared')
    case = SHARED / 'corpus/models/resnet50/model.pdmodel'
    with tempfile.TemporaryDirectory() as tmp:
        tmp, params = pathlib.Path(tmp), params_for(t, 'resnet50', tmp)
        out = tmp / 'resnet50.c'
        secs, peak, status, text = used([t.pdcc, case, *params, '-o', out, '--isa=avx2', '--shape=image=1,3,224,224'])
        if status:
            yield 'resnet50', False, text[-2000:]
            return
        yield 'pdcc takes under 3 s (of CPU time)', secs < 3, f'{secs} s'
        yield 'and under 700 MB', peak < 700 * 1024, f'{peak} KiB'
        text = out.read_text()
        yield 'under 8,000 lines of C', text.count('\n') < 8000, f'{text.count(chr(10))} lines'
        secs, _, status, errors = used(['gcc', '-std=gnu11', '-O3', *SIMD['avx2'], '-I', SRC / 'runtime_stub', '-c', out, '-o', tmp / 'r.o'])
        yield 'gcc -O3 takes under 30 s (of CPU time)', status == 0 and secs < 30, f'{secs} s {errors[-500:]}'
        yield from locality(t, case, params, tmp)
