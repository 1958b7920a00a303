"""Winograd's convolutions, for suite conv: kernels of all tiles on images of every size, against a convolution in double; and
programs that the pass chooses for, whose error is compared with that of direct convolutions."""
import pathlib, tempfile

from pdcc_tests import BRIEF, run

SIZES = range(1, 41)
CHANNELS, OUTPUTS = 19, 37  # both leave lanes of every instruction set empty
EVEN, UNEVEN, WIDE = (1, 1, 1, 1), (2, 0, 1, 3), (2, 3, 2, 3)  # paddings: top, left, bottom, right
TIGHT, APART = (1, 1), (2, 3)  # dilations
SQUARE = (3, 3)  # taps
# (tile, chunk, taps, paddings, dilations)
KERNELS = [((m, m), SQUARE, SQUARE, pads, dilations) for m in (2, 4) for pads, dilations in ((EVEN, TIGHT), (UNEVEN, TIGHT), (WIDE, APART))]
KERNELS += [((4, 1), (3, 1), (3, 1), (1, 0, 1, 0), TIGHT), ((1, 4), (1, 3), (1, 3), (0, 2, 0, 1), TIGHT),
            ((3, 1), (4, 1), (4, 1), (3, 1, 0, 2), TIGHT), ((1, 3), (1, 4), (1, 4), (0, 6, 0, 3), (1, 3)),
            ((2, 1), (5, 1), (5, 1), (2, 0, 2, 0), TIGHT), ((1, 2), (1, 5), (1, 5), (0, 1, 0, 3), TIGHT),
            ((2, 2), (5, 5), (5, 5), (2, 2, 2, 2), TIGHT), ((2, 2), (5, 5), (5, 5), (4, 3, 4, 5), (2, 1)),
            ((3, 4), (4, 3), (4, 3), (2, 1, 1, 1), TIGHT)]
# Several chunks of taps, where channels fill vectors.
CHUNKS = [((3, 1), (4, 1), (8, 1), (4, 0, 3, 0), TIGHT), ((1, 4), (1, 3), (1, 17), (0, 8, 0, 8), TIGHT),
          ((1, 2), (1, 5), (1, 6), (0, 7, 0, 3), (1, 2)), ((3, 3), (4, 4), (7, 7), (3, 3, 3, 3), TIGHT),
          ((4, 3), (3, 4), (3, 5), (2, 8, 1, 1), (1, 2)), ((2, 2), (3, 3), (4, 3), (2, 1, 1, 1), TIGHT)]
# The greatest error of a result over the root mean square of all, of normal numbers (docs/kernels.md); and how much larger the
# error's root mean square may be than that of a direct convolution: by what a tile reads along an axis.
MOST_ERROR, MOST_RATIO = {4: 1e-5, 6: 4e-5}, {4: 1.5, 6: 4}


def convolve(np, x, w, pads, dilations=TIGHT):
    top, left, bottom, right = pads
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows, columns = (x.shape[i] - (w.shape[i] - 1) * dilations[i - 2] for i in (2, 3))
    out = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for ky in range(w.shape[2]):
        for kx in range(w.shape[3]):
            y, z = ky * dilations[0], kx * dilations[1]
            out += np.einsum('nchw,oc->nohw', x[:, :, y:y + rows, z:z + columns], w[:, :, ky, kx].astype(np.float64))
    return out


def dense(w):
    return f'dense<{" x ".join(map(str, w.shape))} x f32 [{", ".join(f"{v:.9g}" for v in w.ravel())}]>'


class Kernels:
    """Kernels on x [?n x CHANNELS x ?h x ?w], each with a residual, `r`, or a bias: its filter's own sums."""

    def __init__(self, np, lanes):
        random = np.random.default_rng(3)
        self.lanes, self.lines = lanes, []
        self.cases = [(tile, chunk, pads, dilations, random.standard_normal((OUTPUTS, self.channels(case, lanes), *taps)).astype(np.float32))
                      for case in KERNELS + CHUNKS for tile, chunk, taps, pads, dilations in (case,)]
        self.bias = random.standard_normal(OUTPUTS).astype(np.float32)

    @staticmethod
    def channels(case, lanes):
        return CHANNELS if case in KERNELS else CHANNELS // lanes * lanes

    def blocked(self, channels, h, w):
        return f'tensor<?n x {-(-channels // self.lanes)} x {h} x {w} x {self.lanes} x f32>'

    def case_text(self, i, tile, chunk, pads, dilations, w):
        q, taps = 2 * self.lanes, w.shape[2:]
        numbers = (tile[0] + chunk[0] - 1) * (tile[1] + chunk[1] - 1)
        channels = w.shape[1]
        depth, x = -(-taps[0] // chunk[0]) * -(-taps[1] // chunk[1]) * channels, 'xb' if channels == CHANNELS else 'xs'
        grown = [pads[i] + pads[i + 2] - (taps[i] - 1) * dilations[i] for i in (0, 1)]
        h, wide = (f'[?{s} + {g}]' if g else f'?{s}' for s, g in zip('hw', grown))
        out, u = self.blocked(OUTPUTS, h, wide), f'tensor<{-(-OUTPUTS // q)} x {numbers} x {depth} x {q} x f32>'
        plain, wt = f'tensor<?n x {OUTPUTS} x {h} x {wide} x f32>', f'tensor<{OUTPUTS} x {channels} x {taps[0]} x {taps[1]} x f32>'
        more = (f'%t = loop.load(%rb, %n, %cb, %i, %j, %c) : ({out}, index, index, index, index, index) -> (f32)' if grown == [0, 0] else
                f'%t = loop.load(%bb, %cb, %c) : (tensor<{-(-OUTPUTS // self.lanes)} x {self.lanes} x f32>, index, index) -> (f32)')
        return [f'  %w{i} = builtin.constant() {{value = {dense(w)}}} : () -> ({wt})',
                f'  %u{i} = kernel.pack_winograd(%w{i}) {{tile = {list(tile)}, chunk = {list(chunk)}}} : ({wt}) -> ({u})',
                f'  %k{i} = kernel.winograd(%{x}, %u{i}) {{tile = {list(tile)}, chunk = {list(chunk)}, taps = {list(taps)}, group = 5, paddings = {list(pads)}, '
                f'dilations = {list(dilations)}, in_channels = {channels}}} : '
                f'({self.blocked(channels, "?h", "?w")}, {u}) -> ({out}) {{',
                '    ^0(%acc: f32, %n: index, %cb: index, %i: index, %j: index, %c: index):', f'      {more}',
                '      %s = pd.add(%acc, %t) : (f32, f32) -> (f32)', '      loop.yield(%s) : (f32) -> ()', '  }',
                f'  %p{i} = kernel.unblock(%k{i}) {{channels = {OUTPUTS}}} : ({out}) -> ({plain})',
                f'  pd.fetch(%p{i}) {{name = "p{i}", col = {i}}} : ({plain}) -> ()']

    def text(self, np):
        x, r = f'tensor<?n x {CHANNELS} x ?h x ?w x f32>', f'tensor<?n x {OUTPUTS} x ?h x ?w x f32>'
        blocks = -(-OUTPUTS // self.lanes)
        bias = np.zeros((blocks, self.lanes), np.float32)
        bias.ravel()[:OUTPUTS] = self.bias
        lines = ['builtin.module {', f'  %x = pd.feed() {{name = "x", col = 0}} : () -> ({x})',
                 f'  %r = pd.feed() {{name = "r", col = 1}} : () -> ({r})',
                 f'  %xb = kernel.block(%x) {{b = {self.lanes}}} : ({x}) -> ({self.blocked(CHANNELS, "?h", "?w")})',
                 f'  %rb = kernel.block(%r) {{b = {self.lanes}}} : ({r}) -> ({self.blocked(OUTPUTS, "?h", "?w")})',
                 f'  %bb = builtin.constant() {{value = {dense(bias)}}} : () -> (tensor<{blocks} x {self.lanes} x f32>)']
        whole = CHANNELS // self.lanes * self.lanes
        s = f'tensor<?n x {whole} x ?h x ?w x f32>'
        lines += [f'  %s = pd.slice(%x) {{axes = [1], starts = dims [0], ends = dims [{whole}]}} : ({x}) -> ({s})',
                  f'  %xs = kernel.block(%s) {{b = {self.lanes}}} : ({s}) -> ({self.blocked(whole, "?h", "?w")})']
        for i, case in enumerate(self.cases):
            lines += self.case_text(i, *case)
        return '\n'.join(lines + ['}', ''])

    def want(self, np, x, r):
        found = [convolve(np, x[:, :w.shape[1]], w, pads, dilations) for *_, pads, dilations, w in self.cases]
        return [y + (r if y.shape == r.shape else self.bias[None, :, None, None]) for y in found]


def kernels(t, tmp, isa, lanes):
    """All sizes are runs of one program."""
    import numpy as np
    random, k, options, fed = np.random.default_rng(4), Kernels(np, lanes), [], []
    (tmp / 'kernels.pdir').write_text(k.text(np))
    for i, h in enumerate(SIZES):
        w, n = SIZES[i * 7 % len(SIZES)], 1 + i % 3
        fed.append([random.standard_normal((n, c, h, w)).astype(np.float32) for c in (CHANNELS, OUTPUTS)])
        options += ['--next'] if i else []
        for name, value in zip('xr', fed[-1]):
            np.save(tmp / f'{name}{i}.npy', value)
            options += ['--in', f'{name}={tmp / f"{name}{i}.npy"}']
    out = tmp / 'out'
    p = run([t.pdcc, 'run', tmp / 'kernels.pdir', '--isa', isa, '--target', 'c', '--redzone', *BRIEF, '--out-dir', out, *options])
    yield f'{isa}: kernels run', p.returncode == 0, p.stdout[-3000:]
    for i, (x, r) in enumerate(fed if p.returncode == 0 else ()):
        for j, want in enumerate(k.want(np, x, r)):
            have, case = np.load(out / f'{i}/{j}.npy'), k.cases[j]
            near = have.shape == want.shape and np.allclose(have, want, rtol=0, atol=3e-4)
            yield f'{isa}: F({case[0]}, {case[1]}), taps {case[4].shape[2:]}, paddings {case[2]}, dilations {case[3]}, {x.shape}', near, f'{have}\n{want}'


class Layer:
    """A convolution of the program, of constant filter, that the pass decides about, a bias behind it, a relu."""

    def __init__(self, name, x, outputs, tile, pads=EVEN, dilations=TIGHT, taps=SQUARE, residual=False, open_batch=False):
        self.name, self.x, self.outputs, self.tile, self.pads, self.dilations, self.taps = name, x, outputs, tile, pads, dilations, taps
        self.residual, self.open_batch = residual, open_batch

    def text(self, w, b):
        n, c, h, wide = self.x
        top, left, bottom, right = self.pads
        dims = lambda c, h, w: f'tensor<{"?n" if self.open_batch else n} x {c} x {h} x {w} x f32>'
        rows, columns = ((size - 1) * by for size, by in zip(self.taps, self.dilations))
        x, out = dims(c, h, wide), dims(self.outputs, h + top + bottom - rows, wide + left + right - columns)
        wt, bt = f'tensor<{self.outputs} x {c} x {self.taps[0]} x {self.taps[1]} x f32>', f'tensor<1 x {self.outputs} x 1 x 1 x f32>'
        last = ['  %t = pd.add(%s, %x) : ({0}, {1}) -> ({0})'.format(out, x)] if self.residual else []
        return '\n'.join([
            'builtin.module {', f'  %x = pd.feed() {{name = "x", col = 0}} : () -> ({x})',
            f'  %w = builtin.constant() {{value = {dense(w)}}} : () -> ({wt})', f'  %b = builtin.constant() {{value = {dense(b)}}} : () -> ({bt})',
            f'  %c = pd.conv2d(%x, %w) {{strides = [1, 1], paddings = [{top}, {bottom}, {left}, {right}], '
            f'dilations = {list(self.dilations)}}} : ({x}, {wt}) -> ({out})',
            f'  %s = pd.add(%c, %b) : ({out}, {bt}) -> ({out})', *last,
            f'  %r = pd.relu(%{"t" if self.residual else "s"}) : ({out}) -> ({out})',
            f'  pd.fetch(%r) {{name = "r", col = 0}} : ({out}) -> ()', '}', ''])

    def want(self, np, x, w, b):
        return np.maximum(convolve(np, x, w, self.pads, self.dilations) + b + (x if self.residual else 0), 0)


LAYERS = (
    Layer('large', (1, 64, 28, 30), 64, (4, 4), residual=True),
    Layer('large, open batch, uneven paddings', (2, 40, 23, 21), 72, (4, 4), pads=(0, 2, 1, 3), open_batch=True),
    Layer('small', (3, 96, 7, 9), 64, (2, 2)),
    Layer('dilated', (1, 64, 28, 30), 64, (4, 4), pads=(2, 3, 2, 3), dilations=(2, 3), residual=True),
    Layer('small, dilated', (2, 64, 12, 16), 96, (2, 2), pads=(4, 4, 4, 4), dilations=(4, 4)),
    Layer('three rows', (2, 48, 20, 3), 40, (4, 1), pads=(1, 0, 1, 0), taps=(3, 1)),
    Layer('four columns', (1, 64, 1, 90), 64, (1, 3), pads=(0, 0, 0, 0), taps=(1, 4)),
    Layer('five columns, dilated', (3, 32, 2, 60), 64, (1, 2), pads=(0, 4, 0, 4), dilations=(1, 2), taps=(1, 5)),
    Layer('nine columns', (1, 48, 1, 70), 64, (1, 4), pads=(0, 4, 0, 4), taps=(1, 9)),
    Layer('seven by seven', (1, 32, 27, 30), 64, (3, 3), pads=(3, 3, 3, 3), taps=(7, 7)),
    Layer('five by five', (1, 64, 27, 30), 64, (2, 2), pads=(2, 2, 2, 2), taps=(5, 5)),
)


def layers(t, tmp, isa):
    """The error of what the pass chooses is bounded, and near that of a direct convolution."""
    import numpy as np
    random = np.random.default_rng(5)
    for layer in LAYERS:
        x, w, b = (random.standard_normal(s).astype(np.float32)
                   for s in (layer.x, (layer.outputs, layer.x[1], *layer.taps), (1, layer.outputs, 1, 1)))
        np.save(tmp / 'x.npy', x)
        (tmp / 'layer.pdir').write_text(layer.text(w, b))
        want, errors = layer.want(np, x, w, b), {}
        p = run([t.pdcc, tmp / 'layer.pdir', '--isa', isa, '--winograd=auto', '--emit=cfg', '-o', '-'])
        yield f'{isa}: {layer.name}: a tile of {layer.tile}', f'tile = {list(layer.tile)}' in p.stdout, p.stdout[-3000:]
        for how in ('auto', 'off'):
            p = run([t.pdcc, 'run', tmp / 'layer.pdir', '--isa', isa, f'--winograd={how}', '--target', 'c', *BRIEF, '--out-dir', tmp / how,
                     '--in', f'x={tmp / "x.npy"}'])
            yield f'{isa}: {layer.name}: {how} runs', p.returncode == 0, p.stdout[-3000:]
            errors[how] = np.load(tmp / how / '0/0.npy') - want if p.returncode == 0 else np.inf * want
        rms, reach = np.sqrt(np.mean(want ** 2)), 4 if layer.tile == (2, 2) and layer.taps == SQUARE else 6
        most, ratio = np.abs(errors['auto']).max() / rms, np.sqrt(np.mean(errors['auto'] ** 2) / np.mean(errors['off'] ** 2))
        yield f'{isa}: {layer.name}: error', most < MOST_ERROR[reach] and ratio < MOST_RATIO[reach], f'{most:.2g}, {ratio:.2g} of direct'


def cases(t, lanes_of):
    """lanes_of: the instruction sets to test, and the floats in a vector of each."""
    for isa, lanes in lanes_of.items():
        with tempfile.TemporaryDirectory() as tmp:
            yield from kernels(t, pathlib.Path(tmp), isa, lanes)
            yield from layers(t, pathlib.Path(tmp), isa)
