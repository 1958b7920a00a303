"""Products of whole numbers: convolutions and matrix products as C for each instruction set that is here, equal to sums that numpy
makes, and as lowered IR in the interpreter; and that the C is clean under strict flags as C and C++."""
import pathlib, re, subprocess, tempfile

from pdcc_tests import BRIEF, SRC, run
from suite_generated import SIMD, STRICT

HERE = {'generic': None, 'sse4': 'sse4_2', 'avx2': 'avx2', 'avx512': 'avx512dq', 'avx512vnni': 'avx512_vnni'}
KERNELS = {'sse4': 'i16', 'avx2': 'i16', 'avx512': 'i16', 'avx512vnni': 'u8'}  # the element type that they multiply


class Conv:
    def __init__(self, name, x, out, kernel, stride=1, pads=(0, 0, 0, 0), dilation=1, batch=None):
        self.name, self.x, self.stride, self.pads, self.dilation = name, x, stride, pads, dilation
        self.w, self.open = (out, x[1], *kernel), batch or x[0]

    def size(self, i):
        before, behind = self.pads[2 * i], self.pads[2 * i + 1]
        return (self.x[2 + i] + before + behind - (self.w[2 + i] - 1) * self.dilation - 1) // self.stride + 1

    def op(self):
        return 'integer_conv', (self.open, self.w[0], self.size(0), self.size(1)), \
            f'strides = [{self.stride}, {self.stride}], paddings = {list(self.pads)}, dilations = [{self.dilation}, {self.dilation}]'

    def want(self, np, x, w):
        (top, bottom, left, right), step, far = self.pads, self.stride, self.dilation
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        out = np.zeros((x.shape[0], self.w[0], self.size(0), self.size(1)), np.int64)
        for ky in range(self.w[2]):
            for kx in range(self.w[3]):
                part = x[:, :, ky * far:, kx * far:][:, :, ::step, ::step][:, :, :out.shape[2], :out.shape[3]]
                out += np.einsum('nchw,oc->nohw', part, w[:, :, ky, kx])
        return out


class Matmul:
    def __init__(self, name, x, columns, open_=None):
        self.name, self.x, self.w, self.open = name, x, (x[-1], columns), open_ or x[0]

    def op(self):
        return 'integer_matmul', (self.open, *self.x[1:-1], self.w[1]), 'transpose_x = false'

    def want(self, np, x, w):
        return x @ w


CASES = (
    Conv('3 x 3', (2, 19, 9, 10), 33, (3, 3), pads=(1, 1, 1, 1)),
    Conv('1 x 1', (1, 32, 7, 7), 64, (1, 1)),
    Conv('1 x 1, odd channels, open batch', (3, 21, 5, 6), 130, (1, 1), batch='?n'),
    Conv('1 x 1, stride 2', (1, 17, 9, 8), 24, (1, 1), 2),
    Conv('few channels, stride 2', (1, 3, 16, 15), 8, (3, 3), 2, (1, 1, 1, 1)),
    Conv('one channel', (2, 1, 28, 28), 6, (5, 5), 1, (2, 2, 2, 2)),
    Conv('dilated, uneven padding', (1, 12, 11, 9), 20, (3, 2), 1, (2, 0, 0, 3), 2),
    Conv('filter larger than the image', (1, 6, 2, 3), 16, (5, 7), 1, (3, 3, 4, 4)),
    Conv('all padding at the edge', (1, 8, 4, 4), 16, (3, 3), 3, (3, 3, 3, 3)),
    Matmul('matrix', (7, 40), 33),
    Matmul('lone row', (1, 64), 300),
    Matmul('rows of a depth that fills no dot', (5, 27), 10),
    Matmul('leading axes, open', (2, 3, 48), 16, '?m'),
    Matmul('column', (9, 30), 1),
)
SHARED = (  # large enough that threads share them
    Conv('rows', (1, 32, 20, 20), 72, (3, 3), pads=(1, 1, 1, 1)),
    Conv('tiles, odd groups, open batch', (2, 64, 21, 17), 136, (1, 1), batch='?n'),
    Conv('rows, open batch', (3, 20, 15, 15), 64, (3, 3), 1, (1, 1, 1, 1), batch='?n'),
    Matmul('rows of a matrix', (161, 130), 260),
    Matmul('leading axes, open', (5, 33, 128), 264, '?m'),
)


def tensor(dims, dtype):
    return f'tensor<{" x ".join(map(str, dims))} x {dtype}>'


def program(np, random, dtype, inputs, weights, cases):
    """Feeds are f32; unsigned numbers are 128 more than what they stand for."""
    zero, rows = 128 if dtype == 'u8' else 0, ['builtin.module {']
    for i, case in enumerate(cases):
        dims = (case.open, *case.x[1:])
        if isinstance(case.open, str):
            dims = (f'{case.open}{i}', *dims[1:])
        x = random.integers(-128, 128, case.x)
        w = random.integers(-128, 128, case.w)
        x.flat[:4], w.flat[:4] = -128, -128  # the ends of both ranges
        inputs.append(x)
        weights.append(w)
        op, out, attributes = case.op()
        out = (dims[0], *out[1:])
        rows += [f'  %x{i} = pd.feed() {{name = "x{i}", col = {i}}} : () -> ({tensor(dims, "f32")})',
                 f'  %q{i} = pd.cast(%x{i}) {{dtype = {dtype}}} : ({tensor(dims, "f32")}) -> ({tensor(dims, dtype)})',
                 f'  %w{i} = builtin.constant() {{value = dense<{tensor(case.w, "i8")[7:-1]} [{", ".join(map(str, w.flat))}]>}} : () -> '
                 f'({tensor(case.w, "i8")})',
                 f'  %y{i} = pd.{op}(%q{i}, %w{i}) {{{attributes}, zero_point = {zero}}} : ({tensor(dims, dtype)}, {tensor(case.w, "i8")}) -> '
                 f'({tensor(out, "i32")})',
                 f'  pd.fetch(%y{i}) {{name = "y{i}", col = {i}}} : ({tensor(out, "i32")}) -> ()']
    return '\n'.join(rows) + '\n}\n'


def isas():
    flags = pathlib.Path('/proc/cpuinfo').read_text() if pathlib.Path('/proc/cpuinfo').exists() else ''
    return [isa for isa, flag in HERE.items() if flag is None or f' {flag} ' in flags]


def clean(t, tmp, model, isa):
    source = tmp / f'{isa}.c'
    run([t.pdcc, model, '--isa', isa, '-o', source])
    flags = [*STRICT, *SIMD.get(isa, SIMD['avx512'] + ['-mavx512vnni']), '-I', SRC / 'runtime_stub', '-o', '/dev/null', source]
    for compiler in (['gcc', '-std=c11'], ['g++', '-x', 'c++', '-std=c++17']):
        p = subprocess.run([*compiler, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        yield f'{isa}: clean with {compiler[0]}', p.returncode == 0, p.stdout[-2000:]


def made(np, tmp, model, dtype, cases):
    """The program of these cases, written to `model`: (inputs, weights, arguments of `pdcc run`)."""
    inputs, weights, feeds = [], [], []
    model.write_text(program(np, np.random.default_rng(5), dtype, inputs, weights, cases))
    for i, x in enumerate(inputs):
        np.save(tmp / f'{model.stem}{i}.npy', (x + (128 if dtype == 'u8' else 0)).astype(np.float32))
        feeds += ['--in', f'x{i}={tmp / f"{model.stem}{i}.npy"}']
    return inputs, weights, feeds


def threads(t, np, tmp, isa, dtype):
    """Kernels that several threads share give the same numbers."""
    model = tmp / f'{isa}_{dtype}_shared.pdir'
    inputs, weights, feeds = made(np, tmp, model, dtype, SHARED)
    p = run([t.pdcc, 'opt', '--verify-each', model, '--isa', isa, '--threads', 3, '--passes=layout,to-loops,fuse,threads', '-o', '-'])
    shared = len(re.findall(r'kernel\.integer_conv.*parallel', p.stdout))
    yield f'{isa} {dtype}: shared', shared == (len(SHARED) if KERNELS.get(isa) == dtype else 0), f'{shared}: {p.stdout[-2000:]}'
    for n in (1, 2, 3):
        out = tmp / f'{model.stem}{n}'
        p = run([t.pdcc, 'run', model, '--isa', isa, '--threads', n, *BRIEF, '--out-dir', out, *feeds])
        yield f'{isa} {dtype}: {n} threads run', p.returncode == 0, p.stdout[-2000:]
        for i, case in enumerate(SHARED if p.returncode == 0 else ()):
            have, want = np.load(out / f'0/{i}.npy'), case.want(np, inputs[i], weights[i])
            yield f'{isa} {dtype}: {n} threads, {case.name}', have.shape == want.shape and (have == want).all(), f'{have}\n{want}'


def results(t, np, tmp, isa, dtype):
    model = tmp / f'{isa}_{dtype}.pdir'
    inputs, weights, feeds = made(np, tmp, model, dtype, CASES)
    lowered = tmp / f'{isa}_lowered.pdir'
    p = run([t.pdcc, 'opt', '--verify-each', model, '--isa', isa, '--passes=layout,to-loops,fuse', '-o', lowered])
    yield f'{isa} {dtype}: lowers', p.returncode == 0, p.stdout[-2000:]
    kernels = lowered.read_text().count('kernel.integer_conv') if lowered.exists() else -1
    want = len(CASES) if KERNELS.get(isa) == dtype else 0
    yield f'{isa} {dtype}: kernels', kernels == want, f'{kernels} kernels, not {want}'
    out = tmp / f'{isa}_{dtype}'
    p = run([t.pdcc, 'run', model, '--isa', isa, *BRIEF, '--out-dir', out, *feeds])
    yield f'{isa} {dtype}: runs', p.returncode == 0, p.stdout[-2000:]
    for i, case in enumerate(CASES if p.returncode == 0 else ()):
        have, want = np.load(out / f'0/{i}.npy'), case.want(np, inputs[i], weights[i])
        yield f'{isa} {dtype}: {case.name}', have.shape == want.shape and (have == want).all(), f'{have}\n{want}'
    p = run([t.pdcc, 'verify', model, '--isa', isa, '--target', 'interp', *feeds])
    yield f'{isa} {dtype}: as lowered, in the interpreter', p.returncode == 0, p.stdout[-2000:]
    if isa in KERNELS:
        yield from threads(t, np, tmp, isa, dtype)
    if isa in ('avx2', 'avx512vnni'):
        yield from clean(t, tmp, model, isa)


GROUPED = (  # name, input, output channels, groups, stride, padding, dilation
    ('depthwise', (2, 24, 9, 10), 24, 24, 1, 1, 1),
    ('depthwise, stride 2', (1, 16, 11, 12), 16, 16, 2, 1, 1),
    ('depthwise, dilated', (1, 8, 9, 9), 8, 8, 1, 2, 2),
    ('two results a channel', (1, 12, 7, 7), 24, 12, 1, 1, 1),
    ('groups of many', (1, 32, 6, 5), 48, 4, 1, 1, 1),
)


def grouped(t, np, tmp, isa):
    """Convolutions of several groups in quantised programs: with steps of 1, what they give are the sums of whole numbers."""
    random, rows, feeds, wants = np.random.default_rng(6), ['builtin.module {'], [], []
    rows += ['  %one = builtin.constant() {value = dense<1 x f32 [127.0]>} : () -> (tensor<1 x f32>)',
             '  %all = builtin.combine(%one) : (tensor<1 x f32>) -> (vec<tensor<1 x f32>>)']
    for i, (_, dims, out, groups, step, pad, far) in enumerate(GROUPED):
        x, w = random.integers(-128, 128, dims), random.integers(-128, 128, (out, dims[1] // groups, 3, 3))
        n, c = dims[1] // groups, out // groups
        parts = [Conv('', (dims[0], n, *dims[2:]), c, (3, 3), step, (pad,) * 4, far) for _ in range(groups)]
        wants.append(np.concatenate([p.want(np, x[:, g * n:g * n + n], w[g * c:g * c + c]) for g, p in enumerate(parts)], 1))
        np.save(tmp / f'grouped{i}.npy', x.astype(np.float32))
        feeds += ['--in', f'x{i}={tmp / f"grouped{i}.npy"}']
        xt, wt, ft, ot = tensor(dims, 'f32'), tensor(w.shape, 'i8'), tensor(w.shape, 'f32'), tensor(wants[i].shape, 'f32')
        rows += [f'  %x{i} = pd.feed() {{name = "x{i}", col = {i}}} : () -> ({xt})',
                 f'  %q{i} = pd.quantize_linear(%x{i}, %one, _) {{}} : ({xt}, tensor<1 x f32>) -> ({xt})',
                 f'  %d{i} = pd.dequantize_linear(%q{i}, %all, _) {{}} : ({xt}, vec<tensor<1 x f32>>) -> ({xt})',
                 f'  %w{i} = builtin.constant() {{value = dense<{wt[7:-1]} [{", ".join(map(str, w.flat))}]>}} : () -> ({wt})',
                 f'  %f{i} = pd.dequantize_linear(%w{i}, %all, _) {{}} : ({wt}, vec<tensor<1 x f32>>) -> ({ft})',
                 f'  %y{i} = pd.conv2d(%d{i}, %f{i}) {{strides = [{step}, {step}], paddings = {[pad] * 4}, dilations = [{far}, {far}], '
                 f'groups = {groups}}} : ({xt}, {ft}) -> ({ot})',
                 f'  pd.fetch(%y{i}) {{name = "y{i}", col = {i}}} : ({ot}) -> ()']
    model = tmp / f'{isa}_grouped.pdir'
    model.write_text('\n'.join(rows) + '\n}\n')
    for n in (1, 2, 3):
        out = tmp / f'{isa}_grouped{n}'
        p = run([t.pdcc, 'run', model, '--isa', isa, '--threads', n, *BRIEF, '--out-dir', out, *feeds])
        yield f'{isa}: groups, {n} threads run', p.returncode == 0, p.stdout[-2000:]
        for i, case in enumerate(GROUPED if p.returncode == 0 else ()):
            have = np.load(out / f'0/{i}.npy')
            yield f'{isa}: {case[0]}, {n} threads', have.shape == wants[i].shape and (have == wants[i]).all(), f'{have}\n{wants[i]}'


def cases(t):
    import numpy as np
    with tempfile.TemporaryDirectory() as tmp:
        for isa in isas():
            yield from results(t, np, pathlib.Path(tmp), isa, KERNELS.get(isa, 'u8'))
            yield from grouped(t, np, pathlib.Path(tmp), isa)
