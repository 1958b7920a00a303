"""--cuda-libs: products through cuBLASLt and convolutions through cuDNN, as the emulator has them, against the interpreter; that
what they are told is what the libraries' own headers have; errors that name the operator."""
import pathlib, re, shutil

import emulated
from pdcc_tests import SRC, run
from suite_cuda import nvcc_compile
from suite_conv import Case

SLOW = True
TOLERANCE = {'f32': 1e-5, 'f16': 4e-3, 'bf16': 3e-2}  # of products
CONVOLUTIONS = (
    Case('1 x 1', (2, 20, 6, 6), 36, 1),
    Case('3 x 3, residual', (1, 24, 8, 8), 24, 3, residual=True),
    Case('3 x 3, dilated, groups', (2, 8, 13, 13), 12, 3, 1, [2, 2, 2, 2], 2, groups=2),
    Case('7 x 7, stride 2, three channels', (1, 3, 30, 31), 16, 7, 2),
    Case('5 x 3, stride 2', (2, 6, 13, 12), 10, (5, 3), 2),
    Case('open sizes', (3, 9, 8, 11), 9, 3, residual=True, symbols='nhw'),
    Case('channels behind', (2, 8, 9, 9), 12, 3, last=True),
    Case('f16: 3 x 3, residual', (2, 17, 9, 10), 17, 3, residual=True, dtype='f16'),
    Case('f16: 1 x 1', (1, 24, 4, 6), 40, 1, inside=True, dtype='f16'),
    Case('bf16: 3 x 3, stride 2', (2, 24, 11, 10), 20, 3, 2, dtype='bf16'),
    Case('uneven paddings: ours', (1, 16, 11, 12), 20, 3, 2, [0, 1, 1, 2]),
)


class Product:
    """activation(scale * a b + bias + addend) as a program says it, of a [batch.. x m x k] and b [k x n]; `last` turns the last two
    axes of b. `call`: what cuBLASLt is to do of it; None: nothing, a kernel does."""

    def __init__(self, name, lead, m, k, n, steps, call, dtype='f32', last=False, symbol=False, wide=False):
        self.name, self.steps, self.call, self.dtype, self.last, self.symbol = name, steps, call, dtype, last, symbol
        self.a, self.b, self.out = [*lead, m, k], [*(lead if wide else []), *([n, k] if last else [k, n])], [*lead, m, n]

    def type(self, dims, dtype, i):
        return 'tensor<' + ' x '.join(f'?r{i}' if self.symbol and at == 0 and dims not in (self.b, [self.out[-1]]) else str(d)
                                      for at, d in enumerate(dims)) + f' x {dtype}>'

    def feeds(self, np, random):
        kind = np.float16 if self.dtype == 'f16' else np.float32
        return [(name, (random.standard_normal(d) / 4).astype(kind))
                for name, d in zip('abcd', (self.a, self.b, [self.out[-1]], self.out))]

    def text(self, i, column):
        dims, rows, feed = (self.a, self.b, [self.out[-1]], self.out), [], 'f16' if self.dtype == 'f16' else 'f32'
        for at, (name, d) in enumerate(zip('abcd', dims)):
            rows.append(f'  %f{name}{i} = pd.feed() {{name = "{name}_{i}", col = {column + at}}} : () -> ({self.type(d, feed, i)})')
            rows.append(f'  %{name}{i} = pd.cast(%f{name}{i}) {{dtype = {self.dtype}}} : ({self.type(d, feed, i)}) -> ({self.type(d, self.dtype, i)})')
        a, b, c, out = (self.type(d, self.dtype, i) for d in dims)
        rows.append(f'  %v{i}_0 = pd.matmul(%a{i}, %b{i}) {{transpose_y = {str(self.last).lower()}}} : ({a}, {b}) -> ({out})')
        for at, step in enumerate(self.steps):
            name, attributes = step if isinstance(step, tuple) else (step, '')
            other = {'bias': f', %c{i}', 'addend': f', %d{i}'}.get(name, '')
            kinds = {'bias': f'{out}, {c}', 'addend': f'{out}, {out}'}.get(name, out)
            rows.append(f'  %v{i}_{at + 1} = pd.{"add" if other else name}(%v{i}_{at}{other}) {{{attributes}}} : ({kinds}) -> ({out})')
        rows.append(f'  %y{i} = pd.cast(%v{i}_{len(self.steps)}) {{dtype = f32}} : ({out}) -> ({self.type(self.out, "f32", i)})')
        rows.append(f'  pd.fetch(%y{i}) {{name = "y{i}", col = {i}}} : ({self.type(self.out, "f32", i)}) -> ()')
        return rows

    def near(self, have, want, kind):
        import numpy as np
        return have.shape == want.shape and np.allclose(have, want, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


GELU, HALF = ('gelu', 'approximate = true'), ('scale', 'scale = 0.5')
PRODUCTS = (
    Product('alone', [], 9, 70, 24, [], 'DEFAULT'),
    Product('bias', [3], 5, 64, 24, ['bias'], 'BIAS'),
    Product('bias and RELU', [], 9, 65, 31, ['bias', 'relu'], 'RELU_BIAS', last=True),
    Product('RELU, open rows', [], 9, 33, 24, ['relu'], 'RELU', symbol=True),
    Product('scale, then GELU', [], 7, 64, 24, [HALF, GELU], 'GELU'),
    Product('bias and GELU', [], 7, 64, 24, ['bias', GELU], 'GELU_BIAS'),
    Product('bias and the exact GELU', [], 7, 64, 24, ['bias', 'gelu'], None),
    Product('bias, addend, RELU', [], 7, 64, 24, ['bias', 'addend', 'relu'], 'RELU_BIAS'),
    Product('addend, batches', [3], 7, 64, 24, ['addend'], 'DEFAULT', wide=True),
    Product('one row, bias and addend', [], 1, 64, 24, ['bias', 'addend', 'relu'], 'RELU_BIAS'),
    Product('RELU in front of a bias', [], 7, 64, 24, ['relu', 'bias'], None),
    Product('twice the bias', [], 7, 64, 24, ['bias', 'bias'], None),
    Product('f16', [], 16, 64, 24, ['bias', GELU], 'GELU_BIAS', 'f16'),
    Product('f16, a kernel behind', [], 16, 65, 23, ['bias', 'tanh'], None, 'f16'),
    Product('bf16', [], 16, 64, 24, ['relu'], 'RELU', 'bf16', last=True),
    Product('bf16, a bias of f32', [], 16, 64, 24, ['bias', 'relu'], None, 'bf16'),
)


def products_text(t, model):
    """Each product is the call that it should be, and a kernel follows where it has to."""
    text = run([t.pdcc, model, '--emit=cuda', '-o', '-', '--cuda-libs']).stdout
    calls = text.split('\tpd_lt_matmul(')[1:]
    yield 'a call for each product', len(calls) == len(PRODUCTS), text[-3000:]
    for product, call in zip(PRODUCTS, calls):
        own = 'pd_launch(queue, compute_matmul' in call
        yield (f'{product.name}: what the call does', f'CUBLASLT_EPILOGUE_{product.call or "DEFAULT"},' in call and own == (product.call is None),
               call[:1000])


def numbers(program, what):
    """Emulated, what the interpreter computes; nodes of the graph wait for enough, and nothing is lost."""
    for out, target, flags, more in (('want', 'interp', [], {}), ('have', 'cuda', ['--cuda-libs'], {'CUDAEMU_RACES': '1', 'CUDAEMU_LEAKS': '1'})):
        p = program.run(target, out, *flags, **more)
        yield f'{what}: {out} runs', p.returncode == 0, p.stdout[-3000:]
    for name, right, why in program.agrees('have', lambda case, have, want: case.near(have, want, case.dtype)):
        yield f'{what}: {name}', right, why


def rounding(t, tmp, np):
    """f32 is exact unless --allow-tf32 says otherwise: what TF32 has no room for is there, or is not."""
    lines = ['builtin.module {', '  %x = pd.feed() {name = "x", col = 0} : () -> (tensor<1 x 4 x 8 x 8 x f32>)',
             '  %w = pd.feed() {name = "w", col = 1} : () -> (tensor<4 x 4 x 3 x 3 x f32>)',
             '  %c = pd.conv2d(%x, %w) {strides = [1, 1], paddings = [1, 1]} : (tensor<1 x 4 x 8 x 8 x f32>, tensor<4 x 4 x 3 x 3 x f32>) -> '
             '(tensor<1 x 4 x 8 x 8 x f32>)',
             '  %m = pd.matmul(%c, %x) : (tensor<1 x 4 x 8 x 8 x f32>, tensor<1 x 4 x 8 x 8 x f32>) -> (tensor<1 x 4 x 8 x 8 x f32>)',
             '  pd.fetch(%c) {name = "c", col = 0} : (tensor<1 x 4 x 8 x 8 x f32>) -> ()',
             '  pd.fetch(%m) {name = "m", col = 1} : (tensor<1 x 4 x 8 x 8 x f32>) -> ()', '}', '']
    model = tmp / 'rounding.pdir'
    model.write_text('\n'.join(lines))
    w = np.zeros([4, 4, 3, 3], np.float32)
    w[:, :, 1, 1] = np.eye(4)  # each image again
    np.save(tmp / 'rx.npy', np.full([1, 4, 8, 8], 1 + 2 ** -12, np.float32))
    np.save(tmp / 'rw.npy', w)
    for options, image in (([], 1 + 2 ** -12), (['--allow-tf32'], 1.0)):
        p = run([t.pdcc, 'run', model, '--target', 'cuda', '--cuda-libs', *options, '--out-dir', tmp / 'rounding', '--in', f'x={tmp}/rx.npy',
                 '--in', f'w={tmp}/rw.npy'], env=emulated.environment())
        c, m = (np.load(tmp / f'rounding/0/{i}.npy') if p.returncode == 0 else np.zeros(1) for i in (0, 1))
        yield (f'rounding: {options}', bool((c == np.float32(image)).all() and np.allclose(m, 8 * image * image, rtol=1e-7)),
               p.stdout[-2000:] + f'{c}\n{m}')


def failures(program):
    """What a library says is told with its name, and the operator."""
    for call, want in (('cudnnCreate:1', 'CUDNN_STATUS_INTERNAL_ERROR in cudnnCreate'),
                       ('cudnnConvolutionBiasActivationForward:2', "CUDNN_STATUS_INTERNAL_ERROR in kernel.conv 'r1'"),
                       ('cudnnGetConvolutionForwardAlgorithm_v7:1', "CUDNN_STATUS_INTERNAL_ERROR in kernel.conv 'r0'")):
        p = program.run('cuda', 'failed', '--cuda-libs', CUDAEMU_FAIL=call)
        yield f'{call}: said', p.returncode == 1 and f'the accelerator reported a failure: {want}' in p.stdout, p.stdout[-2000:]


def halves(tmp):
    """Convolutions that halve images of open size: the bytes they work in are long expressions, which only the plan reads."""
    tensor = lambda c, h, w: f'tensor<?n x {c} x {h} x {w} x f32>'
    half = lambda size: f'[({size[1:-1] if size[0] == "[" else size} + 1) / 2]'
    model, types = tmp / 'halves.pdir', [tensor(3, '?h', '?w')]
    rows = [f'  %v0 = pd.feed() {{name = "x", col = 0}} : () -> ({types[0]})']
    sizes = ['?h', '?w']
    for i, (c, out) in enumerate(((3, 16), (16, 24), (24, 4))):
        sizes = [half(s) for s in sizes]
        types.append(tensor(out, *sizes))
        rows += [f'  %w{i} = pd.full() {{dtype = f32, shape = dims [{out}, {c}, 3, 3], value = 0.5}} : () -> (tensor<{out} x {c} x 3 x 3 x f32>)',
                 f'  %v{i + 1} = pd.conv2d(%v{i}, %w{i}) {{strides = [2, 2], paddings = [1, 1]}} : ({types[i]}, tensor<{out} x {c} x 3 x 3 x f32>) '
                 f'-> ({types[i + 1]})']
    model.write_text('\n'.join(['builtin.module {', *rows, f'  pd.fetch(%v3) {{name = "y", col = 0}} : ({types[3]}) -> ()', '}', '']))
    return model


def headers(t, tmp, models):
    """With nvcc: what is printed compiles against the headers of the libraries themselves, and links as it says. A library that is not
    installed is said."""
    nvcc = t.config.get('NVCC')
    include = pathlib.Path(shutil.which(nvcc)).resolve().parent.parent / 'include' if nvcc else None
    for what, model in models.items():
        header = 'cublasLt.h' if what == 'products' else 'cudnn.h'
        if not nvcc or not (include / header).exists():
            yield f'{what}: {header} (not installed)', True, ''
            continue
        source = tmp / f'{what}.cu'
        p = run([t.pdcc, model, '-o', source, '--cuda-libs'])
        if p.returncode == 0:
            p = nvcc_compile(nvcc, source)
        main = tmp / 'main.c'
        main.write_text(f'#include "{what}.h"\nint main(void) {{ return {what}_info()->abi_version != PDRT_ABI_VERSION; }}\n')
        flags = re.search('; link with (.*) \\*/', source.read_text())[1].split() if p.returncode == 0 else []
        if p.returncode == 0:
            p = run([nvcc, '-I', SRC / 'runtime_stub', main, source.with_suffix('.o'), SRC / 'runtime_stub/pdrt.c', *flags, '-o', tmp / 'main'])
        yield f'{what}, {header}: {flags}', p.returncode == 0, p.stdout[-2000:]


def suite(t):
    import numpy as np
    with emulated.folder() as tmp:
        programs = {}
        for what, cases in (('products', PRODUCTS), ('convolutions', CONVOLUTIONS)):
            (tmp / what).mkdir()
            programs[what] = emulated.Program(t, tmp / what, cases)
        yield from products_text(t, programs['products'].model)
        for what, program in programs.items():
            yield from numbers(program, what)
        yield from rounding(t, tmp, np)
        yield from failures(programs['convolutions'])
        yield from headers(t, tmp, {**{what: p.model for what, p in programs.items()}, 'halves': halves(tmp)})
