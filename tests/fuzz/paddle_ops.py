"""The tensor operators of paddle.py's programs: which are written, with which attributes, and what they mean in numpy."""
import numpy as np

DTYPES = {'i64': np.int64, 'f32': np.float32, 'bool': np.bool_, 'i32': np.int32, 'f64': np.float64}
NUMBERS = {'bool': 0, 'i32': 2, 'i64': 3, 'f32': 5, 'f64': 6}
MAX_ELEMENTS, OPEN = 400, 2147483647
LARGEST = {'f': 1 << 14, 'i': 1 << 30}  # what sums and products of MAX_ELEMENTS of them are exact for


class Invalid(Exception):
    """The program is wrong for these inputs."""


def name_of(a):
    return {v: k for k, v in DTYPES.items()}[a.dtype.type]


def broadcast(f):
    def run(*args):
        try:
            return f(*args)
        except ValueError:
            raise Invalid('sizes do not fit')
    return run


def positions(start, end, step, size):
    """The positions that a slice takes of an axis. Walking down, an end of -1 goes past the first."""
    start += size if start < 0 else 0
    if step > 0:
        end += size if end < 0 else 0
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    end = end if end == -1 else max(end + size, 0) if end < 0 else min(end, size)
    return range(min(max(start, -1), size - 1), end, step)


def sliced(a, axis, start, end, step=1, drop=False):
    at = list(positions(start, end, step, a.shape[axis]))
    if drop and len(at) != 1:
        raise Invalid('a dropped axis')
    a = np.take(a, at, axis)
    return a.reshape(a.shape[:axis] + a.shape[axis + 1:]) if drop else a


def checked(a):
    """An array that is small in every way."""
    if not isinstance(a, np.ndarray):
        return a
    if a.size > MAX_ELEMENTS:
        raise Invalid('too large')
    if a.dtype.kind in LARGEST and a.size and np.abs(a).max() > LARGEST[a.dtype.kind]:
        raise Invalid('large numbers')
    return a


def nonempty(f):
    def run(a, *args):
        if not a.size:
            raise Invalid('nothing there')
        return f(a, *args)
    return run


def along(v, axis, ndim):
    """A vector as a tensor whose elements lie along an axis."""
    return v.reshape([-1 if i == axis else 1 for i in range(ndim)])


def summed(a):
    """The type of a sum of a's elements, where the program gives none."""
    return np.int64 if a.dtype == np.int32 else a.dtype


class Vocabulary:
    """Statements; Program has the names, the operators and the random numbers."""

    STATEMENTS = {'elementwise': 5, 'elementwise_axis': 1, 'divide': 1, 'unary': 2, 'bits': 1, 'logic': 1, 'convert': 1, 'compare': 1,
                  'where': 1, 'masked': 1, 'slice': 2, 'slices': 1, 'open_slice': 2, 'index': 1, 'strided': 1, 'concat': 2, 'stack': 1,
                  'split': 1, 'unstack': 1, 'reduce': 2, 'truth': 1, 'extreme': 1, 'expand': 1, 'expand_to': 1, 'tile': 1, 'reshape': 1,
                  'reshape_like': 1, 'flatten': 1, 'transpose': 1, 'unsqueeze': 1, 'squeeze': 1, 'flip': 1, 'roll': 1, 'pad': 1,
                  'triangle': 1, 'gather': 1, 'gather_at': 1, 'gather_nd': 1, 'scatter': 1, 'take_along': 1, 'put_along': 1,
                  'one_hot': 1, 'sort': 1, 'top': 1, 'unique': 1, 'nonzero': 1, 'range': 1, 'fill': 1, 'like': 1, 'values': 1,
                  'add_n': 1, 'repeat': 1, 'diagonal': 1, 'set_value': 2, 'cumsum': 1, 'matmul': 1, 'size': 1, 'update': 2}

    def statement_names(self):
        return [name for name, weight in self.STATEMENTS.items() for _ in range(weight)]

    # ---- elements

    def elementwise(self):
        kind, f = self.rng.choice([('add', np.add), ('sub', np.subtract), ('max', np.maximum), ('min', np.minimum), ('mul', np.multiply)])
        return self.op('elementwise_' + kind, {'X': [self.pick()], 'Y': [self.pick()]}, 'Out', broadcast(f), {'axis': -1})

    def elementwise_axis(self):
        """The dims of y against those of x from an axis on."""
        x, y = self.pick(least=2), self.pick(least=1)
        more = self.env[x].ndim - self.env[y].ndim
        if more < 1:
            raise Invalid('rank')
        axis = self.rng.randint(0, more)
        behind = (1,) * (more - axis)
        self.op('elementwise_' + self.rng.choice(['add']), {'X': [x], 'Y': [y]}, 'Out',
                broadcast(lambda a, b: a + b.reshape(b.shape + behind)), {'axis': axis})

    def divide(self):
        """By a number other than 0; quotients and rests are those of Python."""
        y = self.op('clip', {'X': [self.pick()]}, 'Out', lambda a: np.clip(a, 1, 5), {'min': 1.0, 'max': 5.0})
        if self.rng.random() < 0.5:
            y = self.op('scale', {'X': [y]}, 'Out', lambda a: -a, {'scale': -1.0, 'bias': 0.0})
        kind, f = self.rng.choice([('floordiv', np.floor_divide), ('mod', np.mod)])
        self.op('elementwise_' + kind, {'X': [self.pick()], 'Y': [y]}, 'Out', broadcast(f), {'axis': -1})

    def unary(self):
        low, factor, bias = self.rng.randint(-5, 3), self.rng.randint(-2, 2), self.rng.randint(-3, 3)
        after = self.rng.random() < 0.5
        kind, f, attrs = self.rng.choice([
            ('abs', np.abs, {}), ('relu', lambda a: np.maximum(a, a.dtype.type(0)), {}), ('assign', np.copy, {}),
            ('clip', lambda a: np.clip(a, low, low + 4), {'min': float(low), 'max': float(low + 4)}),
            ('scale', lambda a: a * a.dtype.type(factor) + a.dtype.type(bias if after else bias * factor),
             {'scale': float(factor), 'bias': float(bias), 'bias_after_scale': after})])
        self.op(kind, {'X': [self.pick()]}, 'Out', f, attrs)

    def bits(self):
        kind, f = self.rng.choice([('and', np.bitwise_and), ('or', np.bitwise_or), ('xor', np.bitwise_xor)])
        if self.dtype[0] == 'i':
            self.op('bitwise_' + kind, {'X': [self.pick()], 'Y': [self.pick()]}, 'Out', broadcast(f))

    def mask(self, of=None):
        kind, f = self.rng.choice([('less_than', np.less), ('greater_equal', np.greater_equal), ('equal', np.equal),
                                   ('less_equal', np.less_equal), ('not_equal', np.not_equal)])
        return self.op(kind, {'X': [of or self.pick()], 'Y': [self.pick()]}, 'Out', broadcast(f), {'axis': -1})

    def logic(self):
        kind, f = self.rng.choice([('and', np.logical_and), ('or', np.logical_or), ('xor', np.logical_xor)])
        m = self.mask()
        self.op('logical_' + kind, {'X': [m], 'Y': [self.pick(dtype='bool')]}, 'Out', broadcast(f))
        if self.rng.random() < 0.3:
            self.op('logical_not', {'X': [self.pick(dtype='bool')]}, 'Out', np.logical_not)

    def cast(self, x, dtype):
        return self.op('cast', {'X': [x]}, 'Out', lambda a, t=DTYPES[dtype]: a.astype(t),
                       {'in_dtype': NUMBERS[name_of(self.env[x])], 'out_dtype': NUMBERS[dtype]})

    def convert(self):
        self.cast(self.pick(dtype=self.rng.choice(list(DTYPES))), self.dtype)

    def compare(self):
        m = self.mask()
        if self.rng.random() < 0.5:
            self.cast(m, self.dtype)

    def where(self):
        x, y = self.pick(), self.pick()
        m = self.mask(x)
        def f(c, a, b):
            if not c.shape == a.shape == b.shape:
                raise Invalid('where')
            return np.where(c, a, b)
        self.op('where', {'Condition': [m], 'X': [x], 'Y': [y]}, 'Out', f)

    def masked(self):
        x = self.pick()
        m = self.mask(x)
        if self.env[m].shape != self.env[x].shape:
            raise Invalid('mask')
        def f(a, c):
            if a.shape != c.shape:
                raise Invalid('mask')
            return a[c]
        self.op('masked_select', {'X': [x], 'Mask': [m]}, 'Y', f)

    def add_n(self):
        x = self.pick()
        y, z = (self.pick(rank=self.env[x].ndim) for _ in range(2))
        def f(*all_):
            if len({a.shape for a in all_}) > 1:
                raise Invalid('sum')
            return sum(all_[1:], all_[0])
        self.op('sum', {'X': [x, y, z]}, 'Out', f)

    # ---- slices

    def bounds(self, size):
        return self.rng.randint(-size - 1, size + 1), self.rng.choice([OPEN, self.rng.randint(-size - 1, size + 1)])

    def axis(self, x):
        return self.rng.randrange(self.env[x].ndim)

    def slice(self):
        x = self.any(least=1)
        axis = self.axis(x)
        start, end = self.bounds(self.env[x].shape[axis])
        self.op('slice', {'Input': [x]}, 'Out', lambda a: sliced(a, axis, start, end),
                {'axes': [axis], 'starts': [start], 'ends': [end], 'decrease_axis': 'INTS()'})

    def slices(self):
        """Of several axes; an axis of which one element is taken may go."""
        x = self.pick(least=2)
        axes = sorted(self.rng.sample(range(self.env[x].ndim), 2))
        parts, gone = [], []
        for axis in axes:
            start, end = self.bounds(self.env[x].shape[axis])
            if self.rng.random() < 0.4:
                start = self.rng.randint(0, 2)
                end = start + 1
                gone.append(axis)
            parts.append((axis, start, end))
        def f(a):
            for axis, start, end in parts:
                a = sliced(a, axis, start, end)
            if any(a.shape[g] != 1 for g in gone):
                raise Invalid('a dropped axis')
            return a.reshape([n for i, n in enumerate(a.shape) if i not in gone])
        self.op('slice', {'Input': [x]}, 'Out', f, {'axes': axes, 'starts': [p[1] for p in parts], 'ends': [p[2] for p in parts],
                                                    'decrease_axis': gone or 'INTS()'})

    def open_slice(self):
        x, k = self.any(least=1), self.bound()
        axis, last = self.axis(x), self.rng.random() < 0.5
        other = self.rng.randint(-2, 3)
        ins = {'Input': [x], 'StartsTensor' if last else 'EndsTensor': [k]}
        f = ((lambda a, n: sliced(a, axis, n.item(), other)) if last else (lambda a, n: sliced(a, axis, other, n.item())))
        self.op('slice', ins, 'Out', f, {'axes': [axis], 'starts': [other], 'ends': [other], 'decrease_axis': 'INTS()'})

    def bound(self):
        """A number that a run finds: an input, a counter, or a size."""
        if self.rng.random() < 0.6:
            return self.number
        n = self.length(self.pick(least=1))
        return self.op('scale', {'X': [n]}, 'Out', lambda a: a - 1, {'scale': 1.0, 'bias': -1.0}) if self.rng.random() < 0.5 else n

    def length(self, x, axis=0):
        """A size, as one i32."""
        return self.op('slice', {'Input': [self.shape(x)]}, 'Out', lambda a: a[axis:axis + 1],
                       {'axes': [0], 'starts': [axis], 'ends': [axis + 1], 'decrease_axis': 'INTS()'})

    def index(self):
        """x[k]: from k to k + 1, without the axis."""
        x, k = self.pick(least=1), self.number
        axis = self.axis(x)
        n = self.op('scale', {'X': [k]}, 'Out', lambda a: a + 1, {'scale': 1.0, 'bias': 1.0})
        self.op('slice', {'Input': [x], 'StartsTensor': [k], 'EndsTensor': [n]}, 'Out',
                lambda a, i, _: sliced(a, axis, i.item(), i.item() + 1 or a.shape[axis], drop=True),
                {'axes': [axis], 'starts': [0], 'ends': [0], 'decrease_axis': [axis]})

    def steps(self, size):
        """Start, end and step of a slice with steps."""
        step = self.rng.choice([-2, -1, 2, 3])
        start, end = self.bounds(size) if step > 0 else (self.rng.choice([-1, OPEN, self.rng.randint(0, 3)]), self.rng.choice([-1, 0, 1]))
        return start, end, step

    def strided(self):
        x = self.any(least=1)
        axis = self.axis(x)
        start, end, step = self.steps(self.env[x].shape[axis])
        self.op('strided_slice', {'Input': [x]}, 'Out', lambda a: sliced(a, axis, start, end, step),
                {'axes': [axis], 'starts': [start], 'ends': [end], 'strides': [step], 'decrease_axis': 'INTS()'})

    def set_value(self):
        """In steps, too; the value a tensor or a number; in place, or beside what was there."""
        x = self.pick(least=1)
        axis, number = self.axis(x), self.rng.randint(-3, 3)
        start, end, step = self.steps(self.env[x].shape[axis]) if self.rng.random() < 0.4 else (*self.bounds(self.env[x].shape[axis]), 1)
        ins, attrs = {'Input': [x]}, {'shape': 'LONGS()'}
        if self.rng.random() < 0.7:
            ins['ValueTensor'] = [self.pick(rank=self.rng.randint(0, self.env[x].ndim))]
        else:
            kind = {'i32': 'int32_values', 'i64': 'int64_values', 'f32': 'fp32_values', 'f64': 'fp64_values'}[self.dtype]
            attrs = {'shape': 'Ls(1)', kind: {'i64': 'Ls(%d)', 'i32': '[%d]', 'f32': '[%d.0]', 'f64': 'F64s(%d.0)'}[self.dtype] % number}
        def f(a, *v):
            at = list(positions(start, end, step, a.shape[axis]))
            v = v[0] if v else np.asarray(number, a.dtype)
            try:
                v = np.broadcast_to(v, a.shape[:axis] + (len(at),) + a.shape[axis + 1:])
            except ValueError:
                raise Invalid('value')
            if not len(at):
                raise Invalid('an empty slice')  # Paddle refuses it
            a = a.copy()
            a[(slice(None),) * axis + (at,)] = v
            return a
        self.op('set_value', ins, 'Out', f,
                {'axes': 'Ls(%d)' % axis, 'starts': 'Ls(%d)' % start, 'ends': 'Ls(%d)' % end, 'steps': 'Ls(%d)' % step,
                 'decrease_axes': 'LONGS()', 'none_axes': 'LONGS()', 'dtype': NUMBERS[self.dtype], **attrs},
                into=x if self.rng.random() < 0.3 and x in self.vars else None)

    # ---- tensors together, and apart

    def concat(self):
        x = self.any(least=1)
        y = self.pick(dtype=name_of(self.env[x]), rank=self.env[x].ndim)
        axis, both = self.axis(x), [x, y] + [x] * (self.rng.random() < 0.2)
        self.op('concat', {'X': both}, 'Out', broadcast(lambda *a: np.concatenate(a, axis)),
                {'axis': axis - self.env[x].ndim * (self.rng.random() < 0.2)})

    def stack(self):
        x = self.pick()
        y = self.pick(rank=self.env[x].ndim)
        axis = self.rng.randint(0, self.env[x].ndim)
        self.op('stack', {'X': [x, y]}, 'Y', broadcast(lambda *a: np.stack(a, axis)), {'axis': axis})

    def split(self):
        x = self.any(least=1)
        axis, n = self.axis(x), self.rng.randint(1, 3)
        if self.rng.random() < 0.4:
            attrs = {'num': 2, 'sections': 'INTS()'}
            cut = lambda size: size // 2 if size % 2 == 0 and size else -1
        else:
            attrs = {'num': 0, 'sections': [n, -1]}
            cut = lambda size: n if size > n else -1
        def f(a):
            at = cut(a.shape[axis])
            if at < 0:
                raise Invalid('split')
            return tuple(np.split(a, [at], axis))
        self.op_many('split', {'X': [x]}, {'Out': 2}, f, {'axis': axis, **attrs})

    def unstack(self):
        x = self.pick(least=1)
        axis = self.axis(x)
        n = self.env[x].shape[axis]
        if not 1 <= n <= 4 or self.depth: # the size would be needed even where the block does not run
            raise Invalid('unstack')
        def f(a):
            if a.shape[axis] != n:
                raise Invalid('unstack')
            return tuple(np.take(a, i, axis) for i in range(n))
        self.op_many('unstack', {'X': [x]}, {'Y': n}, f, {'axis': axis, 'num': n})

    # ---- along axes

    def reduce(self):
        x = self.pick(least=1)
        axes = sorted(self.rng.sample(range(self.env[x].ndim), self.rng.randint(1, self.env[x].ndim)))
        keep, whole = self.rng.random() < 0.6, self.rng.random() < 0.2
        kind, f = self.rng.choice([('sum', np.sum), ('max', np.max), ('min', np.min), ('prod', np.prod)])
        def run(a):
            over = tuple(range(a.ndim)) if whole else tuple(axes)
            if kind in ('max', 'min') and not a.size:
                raise Invalid('nothing to compare')
            if kind == 'prod' and a.size:
                checked(np.prod(np.maximum(np.abs(a.astype(np.float64)), 1)).astype(np.float32).reshape(1))
            return np.asarray(f(a, over, keepdims=keep)).astype(summed(a) if kind == 'sum' else a.dtype)
        self.op('reduce_' + kind, {'X': [x]}, 'Out', run, {'dim': axes, 'keep_dim': keep, 'reduce_all': whole})

    def truth(self):
        m = self.mask()
        if not self.env[m].ndim:
            raise Invalid('rank')
        axis, keep = self.axis(m), self.rng.random() < 0.5
        kind, f = self.rng.choice([('reduce_any', np.any), ('reduce_all', np.all)])
        self.op(kind, {'X': [m]}, 'Out', lambda a: np.asarray(f(a, axis, keepdims=keep)), {'dim': [axis], 'keep_dim': keep, 'reduce_all': False})

    def extreme(self):
        """The place of the first of the largest, or smallest."""
        x = self.pick(least=1)
        axis, keep = self.axis(x), self.rng.random() < 0.5
        kind, f = self.rng.choice([('arg_max', np.argmax), ('arg_min', np.argmin)])
        self.op(kind, {'X': [x]}, 'Out', nonempty(lambda a: np.asarray(f(a, axis, keepdims=keep))),
                {'axis': 'L(%d)' % axis, 'keepdims': keep, 'flatten': False, 'dtype': 3})

    def cumsum(self):
        x = self.pick(least=1)
        axis, back, other = self.axis(x), self.rng.random() < 0.3, self.rng.random() < 0.3
        def f(a):
            a = np.flip(a, axis) if back else a
            sums = np.cumsum(a, axis, dtype=a.dtype)
            sums = sums - a if other else sums
            return np.ascontiguousarray(np.flip(sums, axis) if back else sums)
        self.op('cumsum', {'X': [x]}, 'Out', f, {'axis': axis, 'reverse': back, 'exclusive': other, 'flatten': False})

    def sort(self):
        x = self.pick(least=1)
        axis, down = self.axis(x), self.rng.random() < 0.5
        def f(a):
            a = np.sort(a, axis)
            return np.ascontiguousarray(np.flip(a, axis) if down else a)
        self.op_many('argsort', {'X': [x]}, {'Out': 1, 'Indices': 0}, f, {'axis': axis, 'descending': down})

    def top(self):
        x = self.pick(least=1)
        axis, large, k = self.axis(x), self.rng.random() < 0.5, self.rng.randint(1, 2)
        ins = {'X': [x]}
        if self.rng.random() < 0.3:
            ins['K'] = [self.op('clip', {'X': [self.number]}, 'Out', lambda a: np.clip(a, 1, 2), {'min': 1.0, 'max': 2.0})]
        def f(a, n=None):
            n = k if n is None else n.item()
            if a.shape[axis] < n:
                raise Invalid('top')
            a = np.sort(a, axis)
            return np.ascontiguousarray(np.take(np.flip(a, axis) if large else a, range(n), axis))
        self.op_many('top_k_v2', ins, {'Out': 1, 'Indices': 0}, f, {'k': k, 'axis': axis, 'largest': large, 'sorted': True})

    def unique(self):
        f = nonempty(lambda a: np.unique(a))
        self.op_many('unique', {'X': [self.pick()]}, {'Out': 1, 'Indices': 0, 'Index': 0, 'Counts': 0}, f,
                     {'axis': 'INTS()', 'dtype': 3, 'is_sorted': True, 'return_index': False, 'return_inverse': False, 'return_counts': False})

    def nonzero(self):
        x = self.mask()
        if not self.env[x].ndim:
            raise Invalid('rank')
        self.op('where_index', {'Condition': [x]}, 'Out', lambda a: np.stack(np.nonzero(a), 1))

    def matmul(self):
        x = self.pick(least=2)
        turned = self.rng.random() < 0.5
        y = x if turned else self.op('transpose2', {'X': [x]}, 'Out', lambda a: np.swapaxes(a, -1, -2),
                                     {'axis': [*range(self.env[x].ndim - 2), self.env[x].ndim - 1, self.env[x].ndim - 2]})
        def f(a, b):
            if a.size and np.abs(a).max(initial=0) * np.abs(b).max(initial=0) * a.shape[-1] > 1 << 20:
                raise Invalid('large numbers')
            return np.matmul(a, np.swapaxes(b, -1, -2) if turned else b)
        if self.dtype[0] == 'f':
            self.op('matmul_v2', {'X': [x], 'Y': [y]}, 'Out', broadcast(f), {'trans_x': False, 'trans_y': turned})

    # ---- shapes

    def shape(self, x):
        return self.op('shape', {'Input': [x]}, 'Out', lambda a: np.asarray(a.shape, np.int32))

    def size(self):
        self.op('size', {'Input': [self.any()]}, 'Out', lambda a: np.asarray(a.size, np.int64))

    def expand(self):
        x = self.any()
        y = self.pick(least=self.env[x].ndim)
        if self.rng.random() < 0.3:
            self.op('expand_as_v2', {'X': [x], 'Y': [y]}, 'Out', broadcast(lambda a, b: np.array(np.broadcast_to(a, b.shape))),
                    {'target_shape': 'INTS()'})
            return
        self.op('expand_v2', {'X': [x], 'Shape': [self.shape(y)]}, 'Out', broadcast(lambda a, n: np.array(np.broadcast_to(a, n))),
                {'shape': 'INTS()'})

    def expand_to(self):
        """Sizes as attributes; -1 keeps one."""
        x = self.pick(least=1)
        sizes = [-1 if n != 1 or self.rng.random() < 0.5 else self.rng.randint(1, 3) for n in self.env[x].shape]
        front = [self.rng.randint(1, 2)] * (self.rng.random() < 0.3)
        def f(a):
            return np.array(np.broadcast_to(a, front + [n if n > 0 else s for n, s in zip(sizes, a.shape)]))
        self.op('expand_v2', {'X': [x]}, 'Out', broadcast(f), {'shape': front + sizes})

    def tile(self):
        if self.rng.random() < 0.5:
            x = self.pick(least=1)
            times = [self.rng.randint(1, 2) for _ in range(self.env[x].ndim + (self.rng.random() < 0.2))]
            self.op('tile', {'X': [x]}, 'Out', lambda a: np.tile(a, times), {'repeat_times': times})
            return
        x = self.pick(rank=1)
        self.op('tile', {'X': [x], 'RepeatTimes': [self.shape(self.pick(rank=1))]}, 'Out', lambda a, n: np.tile(a, n),
                {'repeat_times': 'INTS()'})

    def repeat(self):
        x = self.pick(least=1)
        axis, n = self.axis(x), self.rng.randint(1, 3)
        self.op('repeat_interleave', {'X': [x]}, 'Out', lambda a: np.repeat(a, n, axis), {'Repeats': n, 'dim': axis})

    def reshape(self):
        x = self.any(least=1)
        last = self.env[x].shape[-1]
        shape = self.rng.choice([[-1], [0, -1], [-1, max(last, 1)], [1, -1], [-1, 2]])
        def f(a):
            if not a.size and len(shape) > 1:
                raise Invalid('a size of nothing')
            try:
                return a.reshape([a.shape[0] if n == 0 else n for n in shape])
            except ValueError:
                raise Invalid('reshape')
        self.op('reshape2', {'X': [x]}, 'Out', f, {'shape': shape})

    def reshape_like(self):
        """The shape of another tensor."""
        x, y = self.pick(), self.pick(least=1)
        self.op('reshape2', {'X': [x], 'Shape': [self.shape(y)]}, 'Out', nonempty(broadcast(lambda a, n: a.reshape(n))),
                {'shape': [-1] * self.env[y].ndim})

    def flatten(self):
        x = self.pick(least=2)
        start = self.rng.randrange(self.env[x].ndim)
        stop = self.rng.randint(start, self.env[x].ndim - 1)
        def f(a):
            return a.reshape(a.shape[:start] + (int(np.prod(a.shape[start:stop + 1])),) + a.shape[stop + 1:])
        self.op('flatten_contiguous_range', {'X': [x]}, 'Out', f, {'start_axis': start, 'stop_axis': stop})

    def transpose(self):
        x = self.any(least=2)
        perm = self.rng.sample(range(self.env[x].ndim), self.env[x].ndim)
        self.op('transpose2', {'X': [x]}, 'Out', lambda a: np.ascontiguousarray(a.transpose(perm)), {'axis': perm})

    def unsqueeze(self):
        x = self.any()
        if self.env[x].ndim > 3:
            raise Invalid('rank')
        axis = self.rng.randint(0, self.env[x].ndim)
        self.op('unsqueeze2', {'X': [x]}, 'Out', lambda a: np.expand_dims(a, axis), {'axes': [axis]})

    def squeeze(self):
        """An axis that is 1 on all inputs."""
        x = self.pick(least=1)
        axis, keep = self.axis(x), self.op('reduce_max', {'X': [x]}, 'Out', nonempty(lambda a: a.max(0, keepdims=True)),
                                           {'dim': [0], 'keep_dim': True, 'reduce_all': False})
        self.op('squeeze2', {'X': [keep]}, 'Out', lambda a: a.reshape(a.shape[1:]), {'axes': [0]})

    def flip(self):
        x = self.any(least=1)
        axes = sorted(self.rng.sample(range(self.env[x].ndim), self.rng.randint(1, self.env[x].ndim)))
        self.op('flip', {'X': [x]}, 'Out', lambda a: np.ascontiguousarray(np.flip(a, axes)), {'axis': axes})

    def roll(self):
        x = self.pick(least=1)
        axis, by = self.axis(x), self.rng.randint(-4, 4)
        self.op('roll', {'X': [x]}, 'Out', nonempty(lambda a: np.roll(a, by, axis)), {'shifts': 'Ls(%d)' % by, 'axis': 'Ls(%d)' % axis})

    def pad(self):
        x = self.pick(least=1)
        around, value = [self.rng.randint(0, 2) for _ in range(2 * self.env[x].ndim)], self.rng.randint(-2, 2)
        self.op('pad', {'X': [x]}, 'Out', lambda a: np.pad(a, np.reshape(around, (-1, 2)), constant_values=value),
                {'paddings': around, 'pad_value': float(value)})

    def triangle(self):
        x = self.pick(least=2)
        k, lower = self.rng.randint(-1, 2), self.rng.random() < 0.5
        self.op('tril_triu', {'X': [x]}, 'Out', lambda a: (np.tril if lower else np.triu)(a, k), {'diagonal': k, 'lower': lower})

    def diagonal(self):
        x = self.pick(rank=self.rng.randint(1, 2))
        k = self.rng.randint(-1, 1)
        def f(a):
            if a.ndim == 2 and not 0 < (min(a.shape[0] + min(k, 0), a.shape[1] - max(k, 0))):
                raise Invalid('no diagonal')
            return np.copy(np.diag(a, k))
        self.op('diag_v2', {'X': [x]}, 'Out', nonempty(f), {'offset': k, 'padding_value': 0.0})

    # ---- positions

    def range(self):
        """From 0 to a size, in steps of 1 or 2."""
        n = self.cast(self.drop(self.length(self.pick(least=1))), self.dtype)
        zero, step = self.constant(0, self.dtype), self.constant(self.rng.randint(1, 2), self.dtype)
        return self.op('range', {'Start': [zero], 'End': [n], 'Step': [step]}, 'Out',
                       lambda a, b, c: np.arange(a.item(), b.item(), c.item()).astype(a.dtype))

    def drop(self, x):
        """The same one element, as it is."""
        return self.op('assign', {'X': [x]}, 'Out', np.copy)

    def gather(self):
        x = self.pick(least=1)
        zero, step = self.constant(0, 'i32'), self.constant(self.rng.randint(1, 2), 'i32')
        at = self.op('range', {'Start': [zero], 'End': [self.length(x)], 'Step': [step]}, 'Out',
                     lambda a, b, c: np.arange(a.item(), b.item(), c.item(), np.int32))
        self.op('gather', {'X': [x], 'Index': [at]}, 'Out', lambda a, i: np.take(a, i, 0), {'axis': 0})

    def places(self, x, axis, of=None, rank=1):
        """Positions along an axis of x, made of what another tensor holds."""
        of = self.cast(of or self.pick(rank=rank), 'i32')
        def f(a, n):
            if not n.all():
                raise Invalid('no place')
            return np.mod(a, n)
        at = self.op('elementwise_mod', {'X': [of], 'Y': [self.length(x, axis)]}, 'Out', f, {'axis': -1})
        return self.cast(at, 'i64') if self.rng.random() < 0.5 else at

    def gather_at(self):
        x = self.any(least=1)
        axis = self.axis(x)
        at = self.places(x, axis)
        if self.rng.random() < 0.5:
            self.op('gather', {'X': [x], 'Index': [at]}, 'Out', lambda a, i: np.take(a, i, axis), {'axis': axis})
        else:
            self.op('index_select', {'X': [x], 'Index': [at]}, 'Out', lambda a, i: np.take(a, i, axis), {'dim': axis})

    def gather_nd(self):
        x = self.pick(least=1)
        i = self.op('unsqueeze2', {'X': [self.places(x, 0)]}, 'Out', lambda a: a[:, None], {'axes': [1]})
        self.op('gather_nd', {'X': [x], 'Index': [i]}, 'Out', lambda a, i: a[i[:, 0]])

    def scatter(self):
        """Rows, the last one of a place counting, or their sums."""
        x = self.pick(least=1)
        at, new, over = self.places(x, 0), self.pick(rank=self.env[x].ndim), self.rng.random() < 0.5
        def f(a, i, v):
            if i.shape[0] != v.shape[0] or a.shape[1:] != v.shape[1:] or not i.size:
                raise Invalid('scatter')
            a = a.copy()
            a[i] = 0
            for k, row in zip(i, v):
                a[k] = row if over else a[k] + row
            return a
        self.op('scatter', {'X': [x], 'Ids': [at], 'Updates': [new]}, 'Out', f, {'overwrite': over})

    def take_along(self):
        x = self.pick(least=1)
        axis = self.axis(x)
        at = self.places(x, axis, of=x)
        self.op('take_along_axis', {'Input': [x], 'Index': [at]}, 'Result', nonempty(lambda a, i: np.take_along_axis(a, i, axis)), {'Axis': axis})

    def put_along(self):
        """Sums at places, which may be the same ones."""
        x = self.pick(least=1)
        axis = self.axis(x)
        at = self.places(x, axis, of=x)
        value = self.op('scale', {'X': [x]}, 'Out', lambda a: a + 1, {'scale': 1.0, 'bias': 1.0})
        def f(a, i, v):
            out = a.copy()
            for k in np.ndindex(*i.shape):
                out[k[:axis] + (i[k],) + k[axis + 1:]] += v[k]
            return out
        self.op('put_along_axis', {'Input': [x], 'Index': [at], 'Value': [value]}, 'Result', nonempty(f), {'Axis': axis, 'Reduce': "'add'"})

    def one_hot(self):
        x = self.pick(least=1)
        at = self.places(x, 0, rank=self.rng.randint(1, 2))
        deep = self.op('fill_constant', {}, 'Out', lambda: np.full([1], 4, np.int32), {'shape': [1], 'value': 4.0, 'dtype': 2}) \
            if self.rng.random() < 0.3 else None
        def f(i, *_):
            if i.size and i.max() > 3:
                raise Invalid('depth')
            return np.eye(4, dtype=np.float32)[i]
        self.op('one_hot_v2', {'X': [at], **({'depth_tensor': [deep]} if deep else {})}, 'Out', f,
                {'depth': 4, 'dtype': 5, 'allow_out_of_range': False})

    # ---- constants

    def constant(self, value, dtype):
        return self.op('fill_constant', {}, 'Out', lambda: np.full([1], value, DTYPES[dtype]),
                       {'shape': [1], 'value': float(value), 'dtype': NUMBERS[dtype]})

    def fill(self):
        s, value, dtype = self.shape(self.pick(least=1)), self.rng.randint(-3, 3), self.dtype
        self.op('fill_constant', {'ShapeTensor': [s]}, 'Out', lambda n: np.full(n, value, DTYPES[dtype]),
                {'shape': 'INTS()', 'value': float(value), 'dtype': NUMBERS[dtype]})

    def like(self):
        value, dtype = self.rng.randint(-3, 3), self.dtype
        self.op('fill_any_like', {'X': [self.any()]}, 'Out', lambda a: np.full(a.shape, value, DTYPES[dtype]),
                {'value': float(value), 'dtype': NUMBERS[dtype]})

    def values(self):
        given = [self.rng.randint(-5, 5) for _ in range(self.rng.randint(1, 4))]
        kind = {'i32': ('int32_values', '%d', '[%s]'), 'i64': ('int64_values', '%d', 'Ls(%s)'), 'f32': ('fp32_values', '%d.0', '[%s]')}
        dtype = self.dtype if self.dtype in kind else 'f32'
        name, each, text = kind[dtype]
        self.op('assign_value', {}, 'Out', lambda: np.asarray(given, DTYPES[dtype]),
                {'shape': [len(given)], 'dtype': NUMBERS[dtype], name: text % ', '.join(each % v for v in given)})

    # ---- variables

    def update(self):
        """A variable in place: what another block declares, too."""
        x = self.pick()
        if x not in self.vars or x in self.protected:
            raise Invalid('not to be changed')
        y = self.pick(rank=self.rng.choice([self.env[x].ndim, 1]))
        kind = self.rng.choice(['add', 'assign', 'increment'])
        if kind == 'assign':
            if self.env[y].ndim != self.env[x].ndim:
                raise Invalid('rank')
            self.op('assign', {'X': [y]}, 'Out', np.copy, into=x)
        elif kind == 'increment' and self.env[x].shape == (1,):
            self.op('increment', {'X': [x]}, 'Out', lambda a: a + a.dtype.type(1), {'step': 1.0}, into=x)
        else:
            def f(a, b):
                r = np.add(a, b)
                if r.ndim != a.ndim:
                    raise Invalid('rank')
                return r
            self.op('elementwise_add', {'X': [x], 'Y': [y]}, 'Out', broadcast(f), {'axis': -1}, into=x)
