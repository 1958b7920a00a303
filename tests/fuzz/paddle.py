#!/usr/bin/env python3
"""Random programs in Paddle's vocabulary: broadcasts, slices, masks, arrays, branches, loops, sizes that are open. What they
mean is written here, with numpy: a second oracle beside Paddle's recorded arrays, for what translation may get wrong.

    paddle.py PDCC [--seed N] [--count N] [--target interp|c] [--keep DIR] [--isa ISA]
    paddle.py PDCC --print SEED                  the program of that seed, as tests/mkmodel.py reads it

Numbers are whole (i64, or f32 on which every operation is exact), so results are equal or wrong. A program is made while it
runs on one set of inputs, so that most operators fit; it then runs on other inputs of other sizes. Where numpy's meaning is an
error, pdcc may end with a status; where it is none, a status is a failure. A program that fails stays in --keep. The
last line is a count. Needs numpy.
"""
import argparse, os, pathlib, random, subprocess, sys, tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import mkmodel

DTYPES = {'i64': np.int64, 'f32': np.float32, 'bool': np.bool_, 'i32': np.int32}
NUMBERS = {'bool': 0, 'i32': 2, 'i64': 3, 'f32': 5}
MAX_ELEMENTS, MAX_ROUNDS = 400, 40


class Invalid(Exception):
    """The program is wrong for these inputs."""


def name_of(a):
    return {v: k for k, v in DTYPES.items()}[a.dtype.type]


# ---- what operators mean -----------------------------------------------------------------------------------------

def broadcast(f):
    def run(a, b):
        try:
            return f(a, b)
        except ValueError:
            raise Invalid('sizes do not broadcast')
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
    if a.size > MAX_ELEMENTS:
        raise Invalid('too large')
    return a


# ---- programs ------------------------------------------------------------------------------------------------------

class Op:
    def __init__(self, kind, ins, outs, attrs, f):
        self.kind, self.ins, self.outs, self.attrs, self.f = kind, ins, outs, attrs, f

    def run(self, env):
        results = self.f(*(env[v] for vs in self.ins.values() for v in vs))
        results = results if isinstance(results, tuple) else (results,)
        for v, r in zip((v for vs in self.outs.values() for v in vs), results):
            env[v] = checked(r) if isinstance(r, np.ndarray) else r


class While:
    def __init__(self, cond, carried, body, block):
        self.kind, self.cond, self.carried, self.body, self.block = 'while', cond, carried, body, block

    def run(self, env):
        for _ in range(MAX_ROUNDS):
            if not env[self.cond].item():
                return
            run_all(self.body, env)
        raise Invalid('too many rounds')


class If:
    """conditional_block: its operators run where the condition holds."""
    def __init__(self, cond, outs, body, block):
        self.kind, self.cond, self.outs, self.body, self.block = 'if', cond, outs, body, block

    def run(self, env):
        if env[self.cond].item():
            run_all(self.body, env)


def run_all(ops, env):
    for op in ops:
        op.run(env)


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.count, self.blocks, self.vars, self.env = 0, [(0, -1, [])], {}, {}
        self.ops, self.scope, self.depth, self.feeds = self.blocks[0][2], [], 0, []
        self.dtype = self.rng.choice(['i64', 'f32'])
        for _ in range(self.rng.randint(2, 3)):
            self.feed(self.dtype, self.rng.randint(1, 3))
        self.number = self.feed('i64', None)
        for _ in range(self.rng.randint(4, 10)):
            self.statement()
        live = [v for v in self.scope if not isinstance(self.env[v], list)]
        self.fetches = live[-5:] + self.rng.sample(live[:-5], min(2, len(live[:-5])))

    # ---- names and operators

    def block(self):
        """The number of the block that operators go to: it declares what they make."""
        return next(b[0] for b in self.blocks if b[2] is self.ops)

    def new(self, dtype, rank, kind=''):
        self.count += 1
        name = 'v%d' % self.count
        self.vars[name] = (self.block(), '%s %s%s' % (dtype, ','.join(['-1'] * rank) or 'scalar', kind))
        return name

    def data(self, dtype, shape):
        rng = np.random.default_rng(self.rng.getrandbits(32))
        return np.asarray(rng.integers(-9, 10, shape)).astype(DTYPES[dtype])

    def feed(self, dtype, rank):
        """Open or fixed sizes; a number (rank None) is a position or a count of rounds."""
        fixed = [1] if rank is None else [self.rng.randint(1, 4) if self.rng.random() < 0.3 else -1 for _ in range(rank)]
        name = 'x%d' % len(self.feeds)
        self.vars[name] = (0, '%s %s' % (dtype, ','.join(map(str, fixed))))
        self.feeds.append((name, dtype, fixed, rank is None))
        self.env[name] = self.feed_data(self.feeds[-1])
        if rank is not None:
            self.scope.append(name)
        return name

    def feed_data(self, feed):
        name, dtype, fixed, number = feed
        if number:
            return np.asarray([self.rng.randint(-1, 3)], DTYPES[dtype])
        common = self.rng.randint(1, 4)
        return self.data(dtype, [f if f > 0 else self.rng.choice([1, common, common, self.rng.randint(1, 4)]) for f in fixed])

    def op(self, kind, ins, slot, f, attrs=None, dtype=None, into=None):
        """One result, which becomes visible; it runs at once on what is there."""
        attrs = attrs or {}
        args = [self.env[v] for vs in ins.values() for v in vs]
        result = checked(f(*args)) if not isinstance(args[0] if args else 0, list) or slot != 'Array' else None
        name = into or self.new(name_of(result), result.ndim)
        op = Op(kind, ins, {slot: [name]}, attrs, f)
        self.ops.append(op)
        self.env[name] = result
        if not into:
            self.scope.append(name)
        return name

    def pick(self, dtype=None, rank=None, least=0):
        found = [v for v in self.scope if isinstance(self.env[v], np.ndarray) and
                 name_of(self.env[v]) == (dtype or self.dtype) and self.env[v].ndim >= least and
                 (rank is None or self.env[v].ndim == rank)]
        if not found:
            raise Invalid('nothing to pick')
        return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)

    # ---- statements

    def statement(self):
        if self.depth < 2 and self.rng.random() < 0.12:
            choices = [self.loop, self.loop, self.branch, self.branch, self.array]
        else:
            choices = [self.elementwise] * 5 + [self.compare, self.slice, self.slice, self.open_slice, self.index,
                       self.strided, self.concat, self.reduce, self.expand, self.tile, self.reshape, self.transpose,
                       self.unsqueeze, self.gather, self.masked, self.range, self.fill, self.where, self.set_value,
                       self.cumsum, self.matmul]
        at, mark = len(self.ops), len(self.scope)
        try:
            self.rng.choice(choices)()
        except Invalid:
            if self.rng.random() < 0.95: # else it stays as far as it came
                del self.ops[at:], self.scope[mark:]

    def elementwise(self):
        kind, f = self.rng.choice([('add', np.add), ('sub', np.subtract), ('max', np.maximum), ('min', np.minimum)])
        self.op('elementwise_' + kind, {'X': [self.pick()], 'Y': [self.pick()]}, 'Out', broadcast(f), {'axis': -1})

    def mask(self, of=None):
        kind, f = self.rng.choice([('less_than', np.less), ('greater_equal', np.greater_equal), ('equal', np.equal)])
        return self.op(kind, {'X': [of or self.pick()], 'Y': [self.pick()]}, 'Out', broadcast(f), {'axis': -1})

    def compare(self):
        m = self.mask()
        if self.rng.random() < 0.5:
            self.op('cast', {'X': [m]}, 'Out', lambda a, t=DTYPES[self.dtype]: a.astype(t),
                    {'in_dtype': 0, 'out_dtype': NUMBERS[self.dtype]})

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

    def bounds(self, size):
        return self.rng.randint(-size - 1, size + 1), self.rng.choice([2147483647, self.rng.randint(-size - 1, size + 1)])

    def slice(self):
        x = self.pick(least=1)
        axis = self.rng.randrange(self.env[x].ndim)
        start, end = self.bounds(self.env[x].shape[axis])
        self.op('slice', {'Input': [x]}, 'Out', lambda a: sliced(a, axis, start, end),
                {'axes': [axis], 'starts': [start], 'ends': [end], 'decrease_axis': 'INTS()'})

    def open_slice(self):
        x, k = self.pick(least=1), self.number
        axis, last = self.rng.randrange(self.env[x].ndim), self.rng.random() < 0.5
        other = self.rng.randint(-2, 3)
        ins = {'Input': [x], 'StartsTensor' if last else 'EndsTensor': [k]}
        f = ((lambda a, n: sliced(a, axis, n.item(), other)) if last else (lambda a, n: sliced(a, axis, other, n.item())))
        self.op('slice', ins, 'Out', f, {'axes': [axis], 'starts': [other], 'ends': [other], 'decrease_axis': 'INTS()'})

    def index(self):
        """x[k]: from k to k + 1, without the axis."""
        x, k = self.pick(least=1), self.number
        axis = self.rng.randrange(self.env[x].ndim)
        n = self.op('scale', {'X': [k]}, 'Out', lambda a: a + 1, {'scale': 1.0, 'bias': 1.0})
        self.op('slice', {'Input': [x], 'StartsTensor': [k], 'EndsTensor': [n]}, 'Out',
                lambda a, i, _: sliced(a, axis, i.item(), i.item() + 1 or a.shape[axis], drop=True),
                {'axes': [axis], 'starts': [0], 'ends': [0], 'decrease_axis': [axis]})

    def strided(self):
        x = self.pick(least=1)
        axis = self.rng.randrange(self.env[x].ndim)
        step = self.rng.choice([-2, -1, 2])
        start, end = self.bounds(self.env[x].shape[axis]) if step > 0 else (-1, self.rng.choice([-1, 0]))
        self.op('strided_slice', {'Input': [x]}, 'Out', lambda a: sliced(a, axis, start, end, step),
                {'axes': [axis], 'starts': [start], 'ends': [end], 'strides': [step], 'decrease_axis': 'INTS()'})

    def concat(self):
        x = self.pick(least=1)
        y = self.pick(rank=self.env[x].ndim)
        axis = self.rng.randrange(self.env[x].ndim)
        self.op('concat', {'X': [x, y]}, 'Out', broadcast(lambda a, b: np.concatenate([a, b], axis)), {'axis': axis})

    def reduce(self):
        x = self.pick(least=1)
        axis, keep = self.rng.randrange(self.env[x].ndim), self.rng.random() < 0.6
        kind, f = self.rng.choice([('reduce_sum', np.sum), ('reduce_max', np.max)])
        def run(a):
            if kind == 'reduce_max' and not a.shape[axis]:
                raise Invalid('nothing to compare')
            return f(a, axis, keepdims=keep).astype(a.dtype)
        self.op(kind, {'X': [x]}, 'Out', run, {'dim': [axis], 'keep_dim': keep, 'reduce_all': False})

    def cumsum(self):
        x = self.pick(least=1)
        axis = self.rng.randrange(self.env[x].ndim)
        self.op('cumsum', {'X': [x]}, 'Out', lambda a: np.cumsum(a, axis, dtype=a.dtype), {'axis': axis})

    def matmul(self):
        x = self.pick(least=2)
        y = self.op('transpose2', {'X': [x]}, 'Out', lambda a: np.swapaxes(a, -1, -2),
                    {'axis': [*range(self.env[x].ndim - 2), self.env[x].ndim - 1, self.env[x].ndim - 2]})
        def f(a, b):
            if a.size and np.abs(a).max(initial=0) * np.abs(b).max(initial=0) * a.shape[-1] > 1 << 20:
                raise Invalid('large numbers')
            return np.matmul(a, b)
        if self.dtype == 'f32':
            self.op('matmul_v2', {'X': [x], 'Y': [y]}, 'Out', broadcast(f), {'trans_x': False, 'trans_y': False})

    def shape(self, x):
        return self.op('shape', {'Input': [x]}, 'Out', lambda a: np.asarray(a.shape, np.int32))

    def expand(self):
        x = self.pick()
        y = self.pick(least=self.env[x].ndim)
        s = self.shape(y)
        def f(a, n):
            try:
                return np.array(np.broadcast_to(a, n))
            except ValueError:
                raise Invalid('expand')
        self.op('expand_v2', {'X': [x], 'Shape': [s]}, 'Out', f, {'shape': 'INTS()'})

    def tile(self):
        x = self.pick(rank=1)
        self.op('tile', {'X': [x], 'RepeatTimes': [self.shape(self.pick(rank=1))]}, 'Out', lambda a, n: np.tile(a, n),
                {'repeat_times': 'INTS()'})

    def reshape(self):
        x = self.pick(least=1)
        self.op('reshape2', {'X': [x]}, 'Out', lambda a: a.reshape(-1), {'shape': [-1]})

    def transpose(self):
        x = self.pick(least=2)
        perm = self.rng.sample(range(self.env[x].ndim), self.env[x].ndim)
        self.op('transpose2', {'X': [x]}, 'Out', lambda a: np.ascontiguousarray(a.transpose(perm)), {'axis': perm})

    def unsqueeze(self):
        x = self.pick()
        if self.env[x].ndim > 3:
            raise Invalid('rank')
        axis = self.rng.randint(0, self.env[x].ndim)
        self.op('unsqueeze2', {'X': [x]}, 'Out', lambda a: np.expand_dims(a, axis), {'axes': [axis]})

    def range(self):
        """From 0 to a size, in steps of 1 or 2."""
        s = self.shape(self.pick(least=1))
        n = self.op('slice', {'Input': [s]}, 'Out', lambda a: a[0:1], {'axes': [0], 'starts': [0], 'ends': [1], 'decrease_axis': 'INTS()'})
        n = self.op('cast', {'X': [n]}, 'Out', lambda a: a.astype(DTYPES[self.dtype]), {'in_dtype': 2, 'out_dtype': NUMBERS[self.dtype]})
        zero, step = self.constant(0, self.dtype), self.constant(self.rng.randint(1, 2), self.dtype)
        return self.op('range', {'Start': [zero], 'End': [n], 'Step': [step]}, 'Out',
                       lambda a, b, c: np.arange(a.item(), b.item(), c.item()).astype(a.dtype))

    def gather(self):
        x = self.pick(least=1)
        s = self.op('slice', {'Input': [self.shape(x)]}, 'Out', lambda a: a[0:1], {'axes': [0], 'starts': [0], 'ends': [1], 'decrease_axis': 'INTS()'})
        zero, step = self.constant(0, 'i32'), self.constant(self.rng.randint(1, 2), 'i32')
        at = self.op('range', {'Start': [zero], 'End': [s], 'Step': [step]}, 'Out', lambda a, b, c: np.arange(a.item(), b.item(), c.item(), np.int32))
        self.op('gather', {'X': [x], 'Index': [at]}, 'Out', lambda a, i: np.take(a, i, 0), {'axis': 0})

    def constant(self, value, dtype):
        return self.op('fill_constant', {}, 'Out', lambda: np.full([1], value, DTYPES[dtype]),
                       {'shape': [1], 'value': float(value), 'dtype': NUMBERS[dtype]})

    def fill(self):
        s, value = self.shape(self.pick(least=1)), self.rng.randint(-3, 3)
        self.op('fill_constant', {'ShapeTensor': [s]}, 'Out', lambda n: np.full(n, value, DTYPES[self.dtype]),
                {'shape': 'INTS()', 'value': float(value), 'dtype': NUMBERS[self.dtype]})

    def set_value(self):
        x = self.pick(least=1)
        value = self.pick(rank=self.env[x].ndim)
        axis = self.rng.randrange(self.env[x].ndim)
        start, end = self.bounds(self.env[x].shape[axis])
        def f(a, v):
            at = list(positions(start, end, 1, a.shape[axis]))
            place = a.shape[:axis] + (len(at),) + a.shape[axis + 1:]
            try:
                v = np.broadcast_to(v, place)
            except ValueError:
                raise Invalid('value')
            if not len(at):
                raise Invalid('an empty slice') # Paddle refuses it
            a = a.copy()
            a[(slice(None),) * axis + (at,)] = v
            return a
        self.op('set_value', {'Input': [x], 'ValueTensor': [value]}, 'Out', f,
                {'axes': 'Ls(%d)' % axis, 'starts': 'Ls(%d)' % start, 'ends': 'Ls(%d)' % end, 'steps': 'Ls(1)',
                 'decrease_axes': 'LONGS()', 'none_axes': 'LONGS()', 'shape': 'LONGS()', 'dtype': NUMBERS[self.dtype]})

    # ---- control flow

    def inner(self, statements, finish):
        """A block of its own; what it defines is gone afterwards. finish() adds its last operators."""
        ops, mark, parent = self.ops, len(self.scope), self.block()
        body = []
        self.blocks.append((len(self.blocks), parent, body))
        at = len(self.blocks) - 1
        self.ops, self.depth = body, self.depth + 1
        for _ in range(statements):
            self.statement()
        finish()
        self.ops, self.depth = ops, self.depth - 1
        del self.scope[mark:]
        return at, body

    def copy(self, v, into=None):
        return self.op('assign', {'X': [v]}, 'Out', lambda a: a, into=into)

    def change(self, v):
        """A new value for a variable: of its type, but for sizes."""
        new = self.pick(dtype=name_of(self.env[v]), rank=self.env[v].ndim)
        if self.env[new].size <= 64:
            self.copy(new, into=v)

    def loop(self):
        carried = [self.copy(self.pick()) for _ in range(self.rng.randint(1, 2))]
        i = self.constant(0, 'i64')
        limit = self.number if self.rng.random() < 0.4 else self.constant(self.rng.randint(0, 3), 'i64')
        less = lambda a, b: a < b
        cond = self.op('less_than', {'X': [i], 'Y': [limit]}, 'Out', less, {'axis': -1})
        before, number = dict(self.env), self.number
        def finish():
            for v in carried:
                try:
                    self.change(v)
                except Invalid:
                    pass
            self.op('increment', {'X': [i]}, 'Out', lambda a: a + 1, {'step': 1.0}, into=i)
            self.op('less_than', {'X': [i], 'Y': [limit]}, 'Out', less, {'axis': -1}, into=cond)
        if self.rng.random() < 0.6:
            self.number = i
        at, body = self.inner(self.rng.randint(1, 5), finish)
        self.number = number
        self.env = before
        loop = While(cond, carried + [i, cond], body, at)
        self.ops.append(loop)
        loop.run(self.env)

    def branch(self):
        total = self.op('reduce_sum', {'X': [self.pick()]}, 'Out', lambda a: np.asarray(a.sum(dtype=a.dtype)),
                        {'dim': [0], 'keep_dim': False, 'reduce_all': True})
        limit = self.constant(self.rng.randint(-3, 3), self.dtype)
        p = self.op('greater_than', {'X': [total], 'Y': [limit]}, 'Out', broadcast(np.greater), {'axis': -1})
        if self.rng.random() < 0.4: # a variable that one side changes
            v = self.copy(self.pick())
            before = dict(self.env)
            at, body = self.inner(self.rng.randint(1, 4), lambda: self.change(v))
            self.env = before
            self.ops.append(If(p, [v], body, at))
            self.ops[-1].run(self.env)
            return
        sides, seed = [], self.pick()
        dtype, rank = name_of(self.env[seed]), self.env[seed].ndim
        q = self.op('logical_not', {'X': [p]}, 'Out', np.logical_not)
        for cond in (p, q):
            out = self.new(dtype, rank)
            before = dict(self.env)
            def finish(out=out):
                new = self.pick(dtype=dtype, rank=rank)
                self.copy(new, into=out)
            at, body = self.inner(self.rng.randint(1, 4), finish)
            self.env = before
            self.ops.append(If(cond, [out], body, at))
            self.ops[-1].run(self.env)
            sides.append(out)
        mask = self.op('cast', {'X': [p]}, 'Out', lambda a: a.astype(np.int32), {'in_dtype': 0, 'out_dtype': 2})
        name = self.new(dtype, rank)
        self.ops.append(Select(sides, mask, name))
        self.ops[-1].run(self.env)
        self.scope.append(name)

    def array(self):
        """An array filled by a loop, and put together along the first axis."""
        arr, i = self.new(self.dtype, 1, ' kind=LOD_TENSOR_ARRAY'), self.constant(0, 'i64')
        x = self.pick(least=1)
        write = lambda v, at: self.ops.append(Write(v, at, arr)) or self.ops[-1].run(self.env)
        write(x, i)
        limit = self.constant(self.rng.randint(1, 3), 'i64')
        less = lambda a, b: a < b
        cond = self.op('less_than', {'X': [i], 'Y': [limit]}, 'Out', less, {'axis': -1})
        rank, before = self.env[x].ndim, dict(self.env)
        before[arr] = list(self.env[arr])
        def finish():
            new = self.pick(rank=rank)
            self.op('increment', {'X': [i]}, 'Out', lambda a: a + 1, {'step': 1.0}, into=i)
            write(new, i)
            self.op('less_than', {'X': [i], 'Y': [limit]}, 'Out', less, {'axis': -1}, into=cond)
        at, body = self.inner(self.rng.randint(1, 3), finish)
        self.env = before
        self.ops.append(While(cond, [arr, i, cond], body, at))
        self.ops[-1].run(self.env)
        out, index = self.new(self.dtype, rank), self.new('i32', 1)
        def join(a):
            try:
                return np.concatenate(a, 0), np.asarray([e.shape[0] for e in a], np.int32)
            except ValueError:
                raise Invalid('elements')
        self.ops.append(Op('tensor_array_to_tensor', {'X': [arr]}, {'Out': [out], 'OutIndex': [index]}, {'axis': 0, 'use_stack': False}, join))
        self.ops[-1].run(self.env)
        self.scope += [out, index]

    # ---- text

    def text(self):
        lines = []
        for at, parent, ops in self.blocks:
            if at:
                lines.append('block %d parent %d' % (at, parent))
            lines += ['var %s %s' % (v, text) for v, (block, text) in self.vars.items() if block == at]
            if not at:
                lines += ['feed %s %d' % (f[0], i) for i, f in enumerate(self.feeds)]
            lines += [op_text(op) for op in ops]
            if not at:
                lines += ['fetch %s %d' % (v, i) for i, v in enumerate(self.fetches)]
        return '\n'.join(lines) + '\n'

    def again(self, data):
        """What the fetches are for these inputs."""
        env = dict(data)
        run_all(self.blocks[0][2], env)
        return [env[v] for v in self.fetches]


class Select:
    def __init__(self, sides, mask, out):
        self.kind, self.sides, self.mask, self.out = 'select', sides, mask, out

    def run(self, env):
        env[self.out] = env[self.sides[0 if env[self.mask].item() else 1]]


class Write:
    def __init__(self, x, at, array):
        self.kind, self.x, self.at, self.array = 'write', x, at, array

    def run(self, env):
        a, at = list(env.get(self.array, [])), env[self.at].item()
        a[at:at + 1] = [env[self.x]]
        env[self.array] = a


def op_text(op):
    if op.kind == 'while':
        names = ','.join(op.carried)
        return 'op while Condition=%s X=%s -> Out=%s {sub_block: BLOCK(%d)}' % (op.cond, names, names, op.block)
    if op.kind == 'if':
        return 'op conditional_block Cond=%s -> Out=%s {sub_block: BLOCK(%d), is_scalar_condition: True}' % (op.cond, ','.join(op.outs), op.block)
    if op.kind == 'select':
        return 'op select_input X=%s,%s Mask=%s -> Out=%s' % (op.sides[1], op.sides[0], op.mask, op.out)
    if op.kind == 'write':
        return 'op write_to_array X=%s I=%s -> Out=%s' % (op.x, op.at, op.array)
    slots = lambda d: ' '.join('%s=%s' % (k, ','.join(v)) for k, v in d.items())
    attrs = ', '.join('%s: %s' % (k, v if isinstance(v, str) else repr(v)) for k, v in op.attrs.items())
    return 'op %s %s -> %s {%s}' % (op.kind, slots(op.ins), slots(op.outs), attrs)


# ---- running -------------------------------------------------------------------------------------------------------

def make(seed):
    """The program of a seed: one whose own inputs it is right for."""
    for k in range(100):
        try:
            p = Program('%d/%d' % (seed, k))
            first = {f[0]: p.env[f[0]] for f in p.feeds}
            p.again(first)
            return p, first
        except (Invalid, StopIteration):
            continue
    raise SystemExit('no program for seed %d' % seed)


def write_model(p, path):
    m = mkmodel.Program()
    for line in p.text().splitlines():
        m.line(line)
    path.write_bytes(m.model())


def compare(folder, want):
    for i, w in enumerate(want):
        got = np.load(folder / ('%d.npy' % i))
        if got.dtype != w.dtype or got.shape != w.shape or not np.array_equal(got, w):
            return 'fetch %d is %s %s, expected %s %s' % (i, got.dtype, got.shape, w.dtype, w.shape) + (
                '' if got.shape != w.shape else ':\n%s\n%s' % (got, w))
    return None


def narrowed(p, message):
    """Sizes that a concat in a block needs to be equal are taken to be so, even where the block does not run: the inputs are refused."""
    inner = any(op.kind in ('concat', 'set_value', 'tensor_array_to_tensor') for at, _, ops in p.blocks if at for op in ops)
    return inner and ('the model needs' in message or "error: input '" in message)


def check(o, seed, folder):
    """None, or what is wrong; and how many runs were compared."""
    p, first = make(seed)
    write_model(p, folder / 'model.pdmodel')
    runs, compared = [first], 0
    for _ in range(2):
        runs.append({f[0]: p.feed_data(f) for f in p.feeds})
    command = [o.pdcc, 'run', folder / 'model.pdmodel', '--target', o.target]
    command += ['--isa', o.isa] if o.target == 'c' else []
    for n, data in enumerate(runs):
        try:
            want = p.again(data)
        except Invalid:
            want = None
        args = []
        for k, v in data.items():
            np.save(folder / ('%s.npy' % k), v)
            args += ['--in', '%s=%s' % (k, folder / ('%s.npy' % k))]
        kept = folder / 'kept'
        if o.target == 'c' and n:
            call = [kept / 'model.run']
        else:
            call = command + (['--keep', kept] if o.target == 'c' else [])
        r = subprocess.run([*call, *args, '--out-dir', folder / 'out'], capture_output=True, text=True, timeout=120)
        if r.returncode not in (0, 1):
            return 'run %d: exit status %d: %s' % (n, r.returncode, r.stderr[-500:]), compared
        if want is None:
            continue
        if r.returncode and narrowed(p, r.stderr):
            continue
        if r.returncode:
            return 'run %d: refused: %s' % (n, r.stderr.strip()[-500:]), compared
        why = compare(folder / 'out/0', want)
        if why:
            return 'run %d: %s' % (n, why), compared
        compared += 1
    return None, compared


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('pdcc')
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--count', type=int, default=100)
    ap.add_argument('--target', default='interp')
    ap.add_argument('--isa', default='generic')
    ap.add_argument('--keep', default='.')
    ap.add_argument('--print', type=int, metavar='SEED')
    o = ap.parse_args()
    o.pdcc = os.path.abspath(o.pdcc)
    np.seterr(all='ignore')
    if o.print is not None:
        print(make(o.print)[0].text(), end='')
        return
    bad = compared = 0
    for seed in range(o.seed, o.seed + o.count):
        with tempfile.TemporaryDirectory() as t:
            why, runs = check(o, seed, pathlib.Path(t))
            compared += runs
            if why:
                bad += 1
                os.makedirs(o.keep, exist_ok=True)
                pathlib.Path(o.keep, 'paddle-%d.txt' % seed).write_text(make(seed)[0].text())
                print('seed %d: %s' % (seed, why), flush=True)
    print('%d programs, %d runs compared, %d failed' % (o.count, compared, bad))
    sys.exit(bad > 0)


if __name__ == '__main__':
    main()
