"""Softmax, norms and attention for CUDA, on the emulator and as lowered IR in the interpreter, against the interpreter on the
program as it was written: short, long and open rows, few and many, rows that are nothing but -inf, lookups that fail."""
import re

import emulated
from pdcc_tests import SRC, run
from suite_cuda import tensor_cores

SLOW = True


def tensor(dims, dtype='f32'):
    return 'tensor<' + ' x '.join(map(str, dims)) + f' x {dtype}>'


class Rows:
    """An operator on x, whose sum with itself (so that it lies in the workspace, where it is aligned) is what rows hold."""

    def __init__(self, name, dims, op='softmax', attrs='axis = -1', dtype='f32', symbols='', special=False, more=()):
        self.name, self.dims, self.op, self.attrs, self.dtype, self.more = name, list(dims), op, attrs, dtype, more
        self.symbols, self.special = symbols, special

    def random(self, np, random, dims):
        x = random.standard_normal(dims).astype(np.float16 if self.dtype == 'f16' else np.float32)
        return (x.view(np.uint32) >> 16).astype(np.uint16) if self.dtype == 'bf16' else x

    def feeds(self, np, random):
        x = self.random(np, random, self.dims)
        if self.special:  # all -inf; one of them; nothing; inf
            x[0], x[1, ::2], x[2, 1], x[3, 3] = -np.inf, -np.inf, np.nan, np.inf
        return [('x', x)] + [(f'v{i}', self.random(np, random, d)) for i, d in enumerate(self.more)]

    def text(self, i, column):
        t = tensor([f'?{s}{i}' if s in self.symbols else d for s, d in zip('nmkl', self.dims)], self.dtype)
        more = [tensor(d, self.dtype) for d in self.more]
        rows = [f'  %v{k}_{i} = pd.feed() {{name = "v{k}_{i}", col = {column + 1 + k}}} : () -> ({m})' for k, m in enumerate(more)]
        args = ', '.join([f'%d{i}'] + [f'%v{k}_{i}' for k in range(len(more))])
        return [f'  %x{i} = pd.feed() {{name = "x_{i}", col = {column}}} : () -> ({t})', *rows,
                f'  %w{i} = pd.flip(%x{i}) {{axis = [0]}} : ({t}) -> ({t})',
                f'  %d{i} = pd.add(%w{i}, %w{i}) : ({t}, {t}) -> ({t})',
                f'  %y{i} = pd.{self.op}({args}) {{{self.attrs}}} : ({", ".join([t] + more)}) -> ({t})',
                f'  %z{i} = pd.add(%y{i}, %d{i}) : ({t}, {t}) -> ({t})',
                f'  pd.fetch(%z{i}) {{name = "z{i}", col = {i}}} : ({t}) -> ()']


class Attention:
    """q [B x H x rows x depth] against k [B x H x keys x depth] and v [B x H x keys x columns], all from [B x size x H x ..].
    made: they are the sum of what is fed with itself. wide: softmax is in f32. schedule: which is to be taken."""

    def __init__(self, name, batch, heads, rows, keys, depth, columns, mask=None, split=True, dtype='f32', symbols='', hide=0, made=True,
                 wide=False, schedule=None, tf32=False):
        self.name, self.dtype, self.split, self.mask, self.hide = name, dtype, split, mask, hide
        self.made, self.wide, self.schedule, self.tf32 = made, wide, schedule, tf32
        self.sizes = dict(b=batch, h=heads, m=rows, n=keys, d=depth, e=columns, o=1)
        self.symbols = symbols

    def dims(self, axes, i=None):
        return [f'?{a}{i}' if i is not None and a in self.symbols else self.sizes[a] for a in axes]

    def feeds(self, np, random):
        kind = np.float16 if self.dtype == 'f16' else np.float32  # bf16 is made from that
        order = ('bmhd', 'bnhd', 'bnhe') if self.split else ('bhmd', 'bhdn', 'bhne')
        feeds = [(n, (random.standard_normal(self.dims(axes)) / 3).astype(kind)) for n, axes in zip('qkv', order)]
        if self.mask:
            mask = random.standard_normal(self.dims(self.mask)).astype(kind)
            mask[..., self.sizes['n'] - self.hide:] = -np.inf
            if self.hide and self.mask[2] == 'm':
                mask[..., 0, :] = -np.inf  # of a row all keys
            feeds.append(('mask', mask))
        return feeds

    def text(self, i, column):
        t = lambda axes, dtype=None: tensor(self.dims(axes, i), dtype or self.dtype)
        rows, s = [], t('bhmn')
        sizes = ('bmhd', 'bnhd', 'bnhe') if self.split else ('bhmd', 'bhdn', 'bhne')
        for at, (n, axes) in enumerate(list(zip('qkv', sizes)) + ([('mask', self.mask)] if self.mask else [])):
            fed = t(axes, 'f32' if self.dtype == 'bf16' else None)
            rows.append(f'  %{n}f{i} = pd.feed() {{name = "{n}_{i}", col = {column + at}}} : () -> ({fed})')
            rows.append(f'  %{n}{i} = pd.cast(%{n}f{i}) {{dtype = {self.dtype}}} : ({fed}) -> ({t(axes)})')
        for n, have, to in zip('qkv', sizes, ('bhmd', 'bhnd', 'bhne')):
            made = f'add(%{n}{i}, %{n}{i}) : ({t(have)}, ' if self.made else f'assign(%{n}{i}) : ('
            rows.append(f'  %{n}d{i} = pd.{made}{t(have)}) -> ({t(have)})')
            turn = f'transpose(%{n}d{i}) {{perm = [0, 2, 1, 3]}}' if self.split else f'assign(%{n}d{i})'
            rows.append(f'  %{n}h{i} = pd.{turn} : ({t(have)}) -> ({t(to if self.split else have)})')
        key, flag = t('bhnd') if self.split else t('bhdn'), 'true' if self.split else 'false'
        rows += [f'  %s{i} = pd.matmul(%qh{i}, %kh{i}) {{transpose_y = {flag}}} : ({t("bhmd")}, {key}) -> ({s})',
                 f'  %c{i} = pd.scale(%s{i}) {{scale = 0.25}} : ({s}) -> ({s})']
        last = f'%c{i}'
        if self.mask:
            rows.append(f'  %a{i} = pd.add({last}, %mask{i}) : ({s}, {t(self.mask)}) -> ({s})')
            last = f'%a{i}'
        soft = t('bhmn', 'f32' if self.wide else None)
        rows += [f'  %w{i} = pd.cast({last}) {{dtype = {"f32" if self.wide else self.dtype}}} : ({s}) -> ({soft})',
                 f'  %p{i} = pd.softmax(%w{i}) {{axis = -1}} : ({soft}) -> ({soft})',
                 f'  %n{i} = pd.cast(%p{i}) {{dtype = {self.dtype}}} : ({soft}) -> ({s})',
                 f'  %o{i} = pd.matmul(%n{i}, %vh{i}) : ({s}, {t("bhne")}) -> ({t("bhme")})',
                 f'  %z{i} = pd.transpose(%o{i}) {{perm = [0, 2, 1, 3]}} : ({t("bhme")}) -> ({t("bmhe")})',
                 f'  %r{i} = pd.cast(%z{i}) {{dtype = f32}} : ({t("bmhe")}) -> ({t("bmhe", "f32")})',
                 f'  pd.fetch(%r{i}) {{name = "z{i}", col = {i}}} : ({t("bmhe", "f32")}) -> ()']
        return rows


CASES = (
    Rows('softmax, a warp, four at once', (9, 132), special=True),
    Rows('softmax, a warp, one by one', (9, 49), special=True),
    Rows('softmax, a full warp', (3, 70, 1024)),
    Rows('softmax, one element', (5, 1)),
    Rows('softmax, a block', (4, 3073), special=True),
    Rows('softmax, a block, four at once', (2, 2048)),
    Rows('softmax, too long', (4, 17000), special=True),
    Rows('softmax, open', (4, 7), symbols='nm', special=True),
    Rows('softmax of f16', (6, 40), dtype='f16'),
    Rows('softmax of f16, one by one', (5, 33), dtype='f16'),
    Rows('softmax of bf16, a block', (2, 1288), dtype='bf16'),
    Rows('softmax across', (5, 17, 6), attrs='axis = 1', special=True),
    Rows('softmax across, four at once', (4, 6, 3, 8), attrs='axis = 1', special=True),
    Rows('softmax across, shared', (70, 36), attrs='axis = 0', special=True),
    Rows('softmax across, too long', (4, 600, 3), attrs='axis = 1', special=True),
    Rows('softmax across, open', (4, 9, 5), attrs='axis = 1', symbols='nmk', special=True),
    Rows('softmax across, of f16', (3, 34, 16), attrs='axis = 1', dtype='f16'),
    Rows('log_softmax across', (4, 40, 300), 'log_softmax', 'axis = 1', special=True),
    Rows('log_softmax across, open', (7, 6), 'log_softmax', 'axis = 0', symbols='n', special=True),
    Rows('log_softmax', (5, 33), 'log_softmax', special=True),
    Rows('log_softmax, open', (5, 300), 'log_softmax', symbols='m', special=True),
    Rows('layer_norm, a warp', (70, 312), 'layer_norm', 'begin_norm_axis = 1', more=((312,), (312,))),
    Rows('layer_norm, several axes', (3, 5, 7), 'layer_norm', 'begin_norm_axis = 1', more=((35,), (35,))),
    Rows('layer_norm, a block', (2, 2052), 'layer_norm', 'begin_norm_axis = 1'),
    Rows('layer_norm, open', (2, 300), 'layer_norm', 'begin_norm_axis = 1', symbols='nm'),
    Rows('layer_norm of f16', (4, 24), 'layer_norm', 'begin_norm_axis = 1', 'f16'),
    Rows('layer_norm of bf16', (3, 264), 'layer_norm', 'begin_norm_axis = 1', 'bf16', more=((264,), (264,))),
    Rows('layer_norm of f16, open', (4, 24), 'layer_norm', 'begin_norm_axis = 1', 'f16', 'nm'),
    Rows('instance_norm of f16', (2, 3, 5, 8), 'instance_norm', 'epsilon = 0.001', 'f16', 'n', more=((3,), (3,))),
    Rows('group_norm of bf16', (2, 6, 5, 3), 'group_norm', 'groups = 2', 'bf16', more=((6,), (6,))),
    Rows('instance_norm', (2, 3, 5, 4), 'instance_norm', 'epsilon = 0.001', symbols='n', more=((3,), (3,))),
    Rows('group_norm', (2, 6, 5, 3), 'group_norm', 'groups = 2', more=((6,), (6,))),
    Attention('attention, tiles of 64 rows', 1, 2, 70, 67, 64, 64, 'boon'),
    Attention('attention, four at once and open sizes', 2, 2, 33, 40, 32, 32, 'oomn', symbols='bmn'),
    Attention('attention, odd sizes', 2, 3, 37, 5, 26, 10, 'bhmn'),
    Attention('attention, keys and rows that are hidden', 1, 2, 9, 70, 8, 8, 'bomn', hide=40),
    Attention('attention, as wide as can be', 1, 1, 40, 20, 128, 128),
    Attention('attention, keys stand across', 1, 2, 6, 40, 12, 20, 'oomn', split=False),
    Attention('attention of one row', 2, 3, 1, 70, 32, 32, 'boon', symbols='n'),
    Attention('attention of few rows, odd sizes', 1, 2, 3, 37, 26, 70, 'bomn', hide=5),
    Attention('attention of few rows of f16', 1, 2, 2, 70, 40, 40, 'boon', dtype='f16'),
    Attention('attention of one row in parts', 1, 3, 1, 700, 32, 32, 'boon', hide=300),
    Attention('attention of few rows in parts, all hidden', 1, 2, 3, 600, 10, 6, 'bomn', hide=270),
    Attention('attention in parts, tiles', 1, 1, 9, 520, 20, 12, 'bomn', hide=5),
    Attention('attention on tensor cores', 1, 2, 20, 33, 16, 16, 'boon', dtype='f16'),
    Attention('attention on tensor cores, bf16, softmax in f32', 1, 2, 37, 67, 64, 32, 'bomn', dtype='bf16', made=False, wide=True),
    Attention('attention on tensor cores, odd sizes', 1, 2, 19, 70, 26, 11, 'bhmn', dtype='f16', symbols='mn', hide=30),
    Attention('attention on tensor cores, keys stand across', 1, 1, 33, 40, 40, 80, 'oomn', dtype='f16', split=False, wide=True),
    Attention('attention on tensor cores, 64 rows', 1, 1, 70, 130, 96, 80, 'boon', dtype='f16', made=False, schedule='half_64x32'),
    Attention('attention on tensor cores, 128 rows', 1, 1, 150, 70, 32, 64, 'boon', dtype='bf16', made=False, schedule='half_128x64'),
    Attention('attention on tensor cores, in parts', 1, 1, 6, 530, 32, 32, 'oomn', dtype='f16', made=False, hide=300),
    Attention('attention in tf32', 1, 1, 70, 50, 40, 40, 'boon', schedule='tf32_64x32', tf32=True),
    Attention('attention in tf32, odd sizes', 1, 2, 9, 67, 90, 27, 'bomn', schedule='tf32_32x16', tf32=True, hide=20),
)
LOOKUP = '''builtin.module {
  %ids = pd.feed() {name = "ids", col = 0} : () -> (tensor<40 x i64>)
  %table = pd.feed() {name = "table", col = 1} : () -> (tensor<10 x 48 x f32>)
  %x = pd.embedding(%ids, %table) {} : (tensor<40 x i64>, tensor<10 x 48 x f32>) -> (tensor<40 x 48 x f32>)
  %y = pd.layer_norm(%x) {begin_norm_axis = 1} : (tensor<40 x 48 x f32>) -> (tensor<40 x 48 x f32>)
  pd.fetch(%y) {name = "y", col = 0} : (tensor<40 x 48 x f32>) -> ()
}
'''


NEAR = {'f32': {'rtol': 1e-4, 'atol': 1e-5}, 'tf32': {'rtol': 4e-3, 'atol': 4e-3}, 'f16': {'rtol': 4e-3, 'atol': 4e-3},
        'bf16': {'rtol': 3e-2, 'atol': 3e-2}}


def numbers(np, x):
    """What an array of .npy holds; bf16 comes as its bits."""
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else x.astype(np.float32)


def near(case, have, want):
    import numpy as np
    kind = 'tf32' if getattr(case, 'tf32', False) else case.dtype
    return np.allclose(numbers(np, have), numbers(np, want), equal_nan=True, **NEAR[kind])


def programs(t, tmp):
    """What is emulated has the schedules of attention that cases ask for."""
    program, chosen = emulated.Program(t, tmp, CASES), tmp / 'chosen.pdir'
    p = run([t.pdcc, 'opt', program.model, '--isa', 'cuda', '--passes=canonicalize,attention', '-o', chosen])
    text = chosen.read_text() if p.returncode == 0 else ''
    for i, case in enumerate(CASES):
        if isinstance(case, Attention) and case.schedule:
            text, n = re.subn(rf'(%[oz]{i} = kernel.attention.*schedule = )"\w+"', rf'\1"{case.schedule}"', text)
            yield f'{case.name}: is a kernel', n == 1, p.stdout[-3000:] + text[-3000:]
    chosen.write_text(text)
    yield from program.lowered_and_emulated('canonicalize,attention,decompose,layout,to-loops,fuse', near, chosen)
    kernels = (tmp / 'lowered.pdir').read_text().count('= kernel.attention(')
    yield 'all attention is kernels', kernels == sum(isinstance(c, Attention) for c in CASES), f'{kernels} are'


def suite(t):
    import numpy as np
    with emulated.folder() as tmp:
        yield from programs(t, tmp)
        ids = np.arange(40) % 10
        ids[17] = 10
        np.save(tmp / 'ids.npy', ids)
        np.save(tmp / 'table.npy', np.ones((10, 48), np.float32))
        model = tmp / 'lookup.pdir'
        model.write_text(LOOKUP)
        p = run([t.pdcc, 'run', model, '--target', 'cuda', '--out-dir', tmp / 'lookup', '--in', f'ids={tmp / "ids.npy"}', '--in',
                 f'table={tmp / "table.npy"}'], env=emulated.environment())
        yield 'a lookup that fails is a status', p.returncode == 1 and 'out of range' in p.stdout, p.stdout[-2000:]
        if t.config.get('NVCC'):
            heads = tmp / 'heads.pdir'
            heads.write_bytes((SRC / 'tests/codegen/cuda_attention_heads.pdir').read_bytes())
            yield from tensor_cores(t, heads, '--allow-tf32')
