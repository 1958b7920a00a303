"""Random programs of what nests are made of, for CUDA, on the emulator and as lowered IR in the interpreter, against the interpreter
on the program as it was written: elementwise operations with broadcasts between types, sums, and what only moves elements. All
numbers are whole and small enough to be exact, so nothing may differ."""
import random

import emulated

SLOW = True
SEEDS = range(1, 49)
EXACT = {'f32': 1 << 22, 'f16': 1 << 11, 'i32': 1 << 30, 'i64': 1 << 30, 'i8': 1 << 7, 'bool': 2}  # magnitudes below
BINARY = {'add': lambda a, b: a + b, 'subtract': lambda a, b: a + b, 'multiply': lambda a, b: a * b, 'maximum': max, 'minimum': max}


class Value:
    """Sizes are numbers, or the text of a symbol; `bound`: no element is larger."""

    def __init__(self, name, dims, dtype, bound):
        self.name, self.dims, self.dtype, self.bound = name, list(dims), dtype, bound

    def type(self, dtype=None):
        return f'tensor<{" x ".join([*map(str, self.dims), dtype or self.dtype])}>'


class Expression:
    """One result of some random operations on tensors of one shape and what broadcasts to it."""

    def __init__(self, seed):
        self.name, self.seed = f'seed {seed}', seed

    def begin(self, i):
        self.rng, self.i, self.lines, self.fed, self.count = random.Random(self.seed), i, [], [], 0
        sizes = [self.rng.choice([1, 2, 3, 4, 5, 8, 16, 33]) for _ in range(self.rng.randint(1, 4))]
        self.symbol = {f'?n{i}': sizes[0]} if self.rng.random() < 0.3 else {}
        return [*self.symbol, *sizes[1:]] if self.symbol else sizes

    def op(self, op, args, dims, dtype, bound, attrs=''):
        self.count += 1
        out = Value(f'%v{self.i}_{self.count}', dims, dtype, bound)
        self.lines.append(f'  {out.name} = {op}({", ".join(a.name for a in args)}){attrs} : ({", ".join(a.type() for a in args)}) -> '
                          f'({out.type()})')
        return out

    def feed(self, dims, dtype):
        bound = 1 if dtype == 'bool' else 3
        v = self.op('pd.feed', [], dims, dtype, bound, f' {{name = "x{len(self.fed)}_{self.i}", col = {self.column + len(self.fed)}}}')
        self.fed.append(v)
        return v

    def cast(self, v, dtype):
        return v if v.dtype == dtype else self.op('pd.cast', [v], v.dims, dtype, min(v.bound, EXACT[dtype] - 1), f' {{dtype = {dtype}}}')

    def narrow(self, dims):
        """Sizes that broadcast to these."""
        dims = [1 if self.rng.random() < 0.3 else d for d in dims]
        return dims[self.rng.randrange(len(dims)):] if self.rng.random() < 0.3 else dims

    def other(self, v, dtype):
        """A value for an operation with v."""
        return self.feed(self.narrow(v.dims) if self.rng.random() < 0.6 else v.dims, dtype)

    def binary(self, v):
        name = self.rng.choice(list(BINARY))
        w = self.other(v, v.dtype)
        bound = BINARY[name](v.bound, w.bound)
        if v.dtype == 'bool' or bound >= EXACT[v.dtype]:
            return self.cast(v, 'f32' if v.bound * 4 < EXACT['f32'] else 'i64')
        return self.op(f'pd.{name}', self.rng.sample([v, w], 2), v.dims, v.dtype, bound)

    def choice(self, v):
        """By a comparison, of v and another value."""
        w, compare = self.other(v, v.dtype), self.rng.choice(['less_than', 'equal', 'greater_equal'])
        if v.dtype == 'bool':
            return self.op('pd.logical_not', [v], v.dims, 'bool', 1)
        mask = self.op(f'pd.{compare}', [v, w], v.dims, 'bool', 1)
        return mask if self.rng.random() < 0.3 else self.op('pd.where', [mask, v, self.feed(v.dims, v.dtype)], v.dims, v.dtype, max(v.bound, 3))

    def convert(self, v):
        kinds = [k for k in EXACT if v.bound < EXACT[k] and (k != 'bool' or self.rng.random() < 0.3)]
        return self.cast(v, self.rng.choice(kinds or ['i64']))

    def move(self, v):
        """Elements go elsewhere."""
        axis, how = self.rng.randrange(len(v.dims)), self.rng.choice(['transpose', 'flip', 'slice', 'concat', 'reshape'])
        n = v.dims[axis]
        if how == 'transpose':
            perm = self.rng.sample(range(len(v.dims)), len(v.dims))
            return self.op('pd.transpose', [v], [v.dims[p] for p in perm], v.dtype, v.bound, f' {{perm = {perm}}}')
        if how == 'slice' and isinstance(n, int) and n > 1:
            start = self.rng.randrange(n - 1)
            self.count += 1
            out = Value(f'%v{self.i}_{self.count}', [*v.dims[:axis], n - 1 - start, *v.dims[axis + 1:]], v.dtype, v.bound)
            self.lines.append(f'  {out.name} = pd.slice({v.name}, _, _) {{axes = [{axis}], decrease_axis = [], starts = dims [{start}], '
                              f'ends = dims [{n - 1}]}} : ({v.type()}) -> ({out.type()})')
            return out
        if how == 'concat' and isinstance(n, int):
            w = self.feed(v.dims, v.dtype)
            self.count += 1
            both = f'%v{self.i}_{self.count}'
            self.lines.append(f'  {both} = builtin.combine({v.name}, {w.name}) : ({v.type()}, {w.type()}) -> (vec<{v.type()}, {w.type()}>)')
            self.count += 1
            out = Value(f'%v{self.i}_{self.count}', [*v.dims[:axis], 2 * n, *v.dims[axis + 1:]], v.dtype, max(v.bound, 3))
            self.lines.append(f'  {out.name} = pd.concat({both}) {{axis = {axis}}} : (vec<{v.type()}, {w.type()}>) -> ({out.type()})')
            return out
        if how == 'reshape' and len(v.dims) > 1 and all(isinstance(d, int) for d in v.dims):
            dims = [*v.dims[:axis - 1], v.dims[axis - 1] * n, *v.dims[axis + 1:]] if axis else [v.dims[0] * v.dims[1], *v.dims[2:]]
            return self.op('pd.reshape', [v], dims, v.dtype, v.bound, f' {{shape = dims {dims}}}')
        return self.op('pd.flip', [v], v.dims, v.dtype, v.bound, f' {{axis = [{axis}]}}')

    def sum(self, v):
        axis = self.rng.randrange(len(v.dims))
        bound = v.bound * self.symbol.get(v.dims[axis], v.dims[axis] if isinstance(v.dims[axis], int) else 1)
        if v.dtype not in ('f32', 'i64', 'i32') or bound >= EXACT[v.dtype]:
            return self.convert(v)
        return self.op('pd.sum', [v], [1 if d == axis else n for d, n in enumerate(v.dims)],
                       'i64' if v.dtype == 'i32' else v.dtype, bound, f' {{axis = [{axis}], keepdim = true}}')

    def text(self, i, column):
        dims, self.column = self.begin(i), column
        v = self.feed(dims, self.rng.choice(list(EXACT)))
        for _ in range(self.rng.randint(4, 12)):
            v = self.rng.choices([self.binary, self.choice, self.convert, self.move, self.sum], [6, 2, 2, 4, 1])[0](v)
        self.lines.append(f'  pd.fetch({v.name}) {{name = "r{i}", col = {i}}} : ({v.type()}) -> ()')
        return self.lines

    def feeds(self, np, rng):
        """What text() asked for."""
        kinds = {'f32': np.float32, 'f16': np.float16, 'i32': np.int32, 'i64': np.int64, 'i8': np.int8, 'bool': bool}
        return [(f'x{k}', rng.integers(0 if v.dtype == 'bool' else -3, 2 if v.dtype == 'bool' else 4,
                                       [self.symbol.get(d, d) for d in v.dims]).astype(kinds[v.dtype])) for k, v in enumerate(self.fed)]


def same(case, have, want):
    return have.dtype == want.dtype and have.shape == want.shape and (have == want).all()


def suite(t):
    with emulated.folder() as tmp:
        program = emulated.Program(t, tmp, [Expression(seed) for seed in SEEDS])
        yield from program.lowered_and_emulated('decompose,layout,to-loops,fuse', same)
