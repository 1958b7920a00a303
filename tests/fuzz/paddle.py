#!/usr/bin/env python3
"""Random programs in Paddle's vocabulary: broadcasts, slices, masks, arrays, branches, loops with break, variables in place, types
of numbers, sizes that are open. What they mean is written here and in paddle_ops.py, with numpy: a second oracle beside Paddle's
recorded arrays, for what translation may get wrong.

    paddle.py PDCC [--seed N] [--count N] [--target interp|c|cuda] [--keep DIR] [--isa ISA]
    paddle.py PDCC --print SEED                  the program of that seed, as tests/mkmodel.py reads it

Numbers are whole (integers, or floats on which every operation is exact), so results are equal or wrong. A program is made while
it runs on one set of inputs, so that most operators fit; it then runs on other inputs of other sizes. Where numpy's meaning is an
error, pdcc may end with a status; where it is none, a status is a failure. A program that fails stays in --keep. The
last line is a count. Needs numpy.
"""
import argparse, os, pathlib, random, subprocess, sys, tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import mkmodel
from paddle_ops import DTYPES, NUMBERS, Invalid, Vocabulary, broadcast, checked, name_of, summed

MAX_ROUNDS = 40
TYPES = [['i64'], ['f32'], ['f32', 'i64'], ['i32', 'i64'], ['f32', 'f64'], ['i32', 'f32']]


class TooLong(Invalid):
    """A loop that may not end."""


# ---- programs ------------------------------------------------------------------------------------------------------

class Op:
    def __init__(self, kind, ins, outs, attrs, f):
        self.kind, self.ins, self.outs, self.attrs, self.f = kind, ins, outs, attrs, f

    def written(self):
        return [v for vs in self.outs.values() for v in vs]

    def run(self, env):
        results = self.f(*(env[v] for vs in self.ins.values() for v in vs))
        results = results if isinstance(results, tuple) else (results,)
        for v, r in zip(self.written(), results):
            env[v] = checked(r)


class Block:
    """What while and conditional_block have in common: they change variables of the blocks around them."""
    def __init__(self, kind, cond, outs, body, block):
        self.kind, self.cond, self.outs, self.body, self.block = kind, cond, outs, body, block

    def written(self):
        return self.outs


class While(Block):
    def run(self, env):
        for _ in range(MAX_ROUNDS):
            if not env[self.cond].item():
                return
            run_all(self.body, env)
        raise TooLong('too many rounds')


class If(Block):
    """conditional_block: its operators run where the condition holds."""
    def run(self, env):
        if env[self.cond].item():
            run_all(self.body, env)


class Select:
    def __init__(self, sides, mask, out):
        self.kind, self.sides, self.mask, self.out = 'select', sides, mask, out

    def written(self):
        return [self.out]

    def run(self, env):
        env[self.out] = env[self.sides[0 if env[self.mask].item() else 1]]


class Write:
    """Element `at` of an array; without x, the array begins: it is a variable of a block, which is new in every round."""
    def __init__(self, x, at, array):
        self.kind, self.x, self.at, self.array = 'write' if x else 'begin', x, at, array

    def written(self):
        return [self.array]

    def run(self, env):
        if not self.x:
            env[self.array] = []
            return
        a, at = list(env[self.array]), env[self.at].item()
        if not 0 <= at <= len(a):
            raise Invalid('a gap in an array')
        a[at:at + 1] = [env[self.x]]
        env[self.array] = a


def run_all(ops, env):
    for op in ops:
        op.run(env)


class Program(Vocabulary):
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.count, self.blocks, self.vars, self.env = 0, [(0, -1, [])], {}, {}
        self.ops, self.scope, self.depth, self.feeds, self.protected = self.blocks[0][2], [], 0, [], set()
        self.dtypes, self.names = self.rng.choice(TYPES), self.statement_names()
        for k in range(self.rng.randint(2, 3)):
            self.feed(self.dtypes[k % len(self.dtypes)], self.rng.randint(1, 3))
        self.number = self.feed('i64', None)
        for _ in range(self.rng.randint(4, 10)):
            self.statement()
        live = [v for v in self.scope if isinstance(self.env[v], np.ndarray)]
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
        self.protected.add(name)
        if rank is not None:
            self.scope.append(name)
        return name

    def feed_data(self, feed):
        name, dtype, fixed, number = feed
        if number:
            return np.asarray([self.rng.randint(-1, 3)], DTYPES[dtype])
        common = self.rng.randint(1, 4)
        return self.data(dtype, [f if f > 0 else self.rng.choice([1, common, common, self.rng.randint(1, 4)]) for f in fixed])

    def op_many(self, kind, ins, slots, f, attrs=None, into=None):
        """An operator of several results (of a slot with 0 a name only); they become visible. It runs at once on what is there."""
        results = f(*(self.env[v] for vs in ins.values() for v in vs))
        results = [checked(r) for r in (results if isinstance(results, tuple) else (results,))]
        names = [into] if into else [self.new(name_of(r), r.ndim) for r in results]
        left, outs = list(names), {}
        for slot, n in slots.items():
            outs[slot] = [left.pop(0) for _ in range(n)] or [self.new('i64', 1)]
        first = {slot: v for slot, v in outs.items() if slots[slot]}
        rest = {slot: v for slot, v in outs.items() if not slots[slot]}
        self.ops.append(Op(kind, ins, {**first, **rest}, attrs or {}, f))
        self.env.update(zip(names, results))
        self.scope += [] if into else names
        return names

    def op(self, kind, ins, slot, f, attrs=None, into=None):
        return self.op_many(kind, ins, {slot: 1}, f, attrs, into)[0]

    def pick(self, dtype=None, rank=None, least=0):
        found = [v for v in self.scope if isinstance(self.env[v], np.ndarray) and
                 name_of(self.env[v]) == (dtype or self.dtype) and self.env[v].ndim >= least and
                 (rank is None or self.env[v].ndim == rank)]
        if not found:
            raise Invalid('nothing to pick')
        return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)

    def any(self, least=0):
        """Of any type, now and then."""
        return self.pick(self.rng.choice(list(DTYPES)) if self.rng.random() < 0.2 else None, least=least)

    # ---- statements

    def statement(self):
        if self.depth < 3 and self.rng.random() < 0.12:
            choice = self.rng.choice(['loop', 'loop', 'branch', 'branch', 'array'])
        else:
            choice = self.rng.choice(self.names)
        at, mark, env = len(self.ops), len(self.scope), dict(self.env)
        self.dtype = self.rng.choice(self.dtypes)
        try:
            getattr(self, choice)()
        except Invalid:
            if self.rng.random() < 0.95: # else it stays as far as it came
                del self.ops[at:], self.scope[mark:]
                self.env = env

    # ---- control flow

    def inner(self, kind, cond, outs, statements, finish):
        """A block of its own, run where a condition holds; what it defines is gone afterwards. finish() adds its last operators."""
        ops, mark, parent, before, number = self.ops, len(self.scope), self.block(), dict(self.env), self.number
        body = []
        self.blocks.append((len(self.blocks), parent, body))
        at = len(self.blocks) - 1
        self.ops, self.depth = body, self.depth + 1
        try:
            for _ in range(statements):
                self.statement()
            finish()
        finally:
            self.ops, self.depth, self.env, self.number = ops, self.depth - 1, before, number
            del self.scope[mark:]
        changed = [v for op in body for v in op.written() if v in before and v not in outs]
        op = {'while': While, 'if': If}[kind](kind, cond, outs + list(dict.fromkeys(changed)), body, at)
        self.ops.append(op)
        op.run(self.env)

    def copy(self, v, into=None):
        return self.op('assign', {'X': [v]}, 'Out', np.copy, into=into)

    def change(self, v):
        """A new value for a variable: of its type, but for sizes."""
        new = self.pick(dtype=name_of(self.env[v]), rank=self.env[v].ndim)
        if self.env[new].size <= 64:
            self.copy(new, into=v)

    def total_above(self, x):
        """Whether all elements of x together are more than some number; a scalar, or one element."""
        total = self.op('reduce_sum', {'X': [x]}, 'Out', lambda a: np.asarray(a.sum(dtype=summed(a))),
                        {'dim': [0], 'keep_dim': False, 'reduce_all': True})
        value, dtype, shape = self.rng.randint(-3, 3), name_of(self.env[total]), [] if self.rng.random() < 0.3 else [1]
        limit = self.op('fill_constant', {}, 'Out', lambda: np.full(shape, value, DTYPES[dtype]),
                        {'shape': shape or 'INTS()', 'value': float(value), 'dtype': NUMBERS[dtype]})
        return self.op('greater_than', {'X': [total], 'Y': [limit]}, 'Out', broadcast(np.greater), {'axis': -1})

    def flag(self, value, into=None):
        return self.op('fill_constant', {}, 'Out', lambda: np.full([1], value, np.bool_), {'shape': [1], 'value': float(value), 'dtype': 0}, into)

    def negation(self, p):
        return self.op('logical_not', {'X': [p]}, 'Out', np.logical_not)

    def below(self, i, limit, left, into=None):
        """The condition of a loop: its counter is below the limit, and nobody has left it."""
        less = self.op('less_than', {'X': [i], 'Y': [limit]}, 'Out', np.less, {'axis': -1}, into=None if left else into)
        return self.op('logical_and', {'X': [less], 'Y': [self.negation(left)]}, 'Out', np.logical_and, into=into) if left else less

    def counter(self):
        """A counter at 0 and its limit, which nobody else changes."""
        i = self.constant(0, 'i64')
        limit = self.number if self.rng.random() < 0.4 else self.constant(self.rng.randint(0, 3), 'i64')
        self.protected |= {i, limit}
        return i, limit

    def loop(self):
        carried = [self.copy(self.pick()) for _ in range(self.rng.randint(1, 2))]
        left = self.flag(False) if self.rng.random() < 0.3 else None
        i, limit = self.counter()
        cond = self.below(i, limit, left)
        self.protected |= {cond, left}
        def change():
            for v in carried:
                try:
                    self.change(v)
                except Invalid:
                    pass
        def finish():
            if left: # break: what is behind it is passed over
                self.inner('if', self.total_above(self.pick()), [], 0, lambda: self.flag(True, into=left))
                self.inner('if', self.negation(left), [], self.rng.randint(0, 2), change)
            else:
                change()
            self.step(i, limit, cond, left)
        number = self.number
        self.number = i if self.rng.random() < 0.6 else number
        try:
            self.inner('while', cond, carried + [i, cond], self.rng.randint(1, 5), finish)
        finally:
            self.number = number

    def step(self, i, limit, cond, left=None):
        self.op('increment', {'X': [i]}, 'Out', lambda a: a + 1, {'step': 1.0}, into=i)
        self.below(i, limit, left, into=cond)

    def branch(self):
        p = self.total_above(self.pick())
        kind = self.rng.random()
        if kind < 0.5: # variables that one side changes
            v = [self.copy(self.pick())] if kind < 0.35 else []
            self.inner('if', p, v, self.rng.randint(1, 4), lambda: [self.change(x) for x in v])
            return
        seed, sides = self.pick(), []
        dtype, rank = name_of(self.env[seed]), self.env[seed].ndim
        for cond in (p, self.negation(p)):
            out = self.new(dtype, rank)
            self.inner('if', cond, [out], self.rng.randint(1, 4), lambda out=out: self.copy(self.pick(dtype=dtype, rank=rank), into=out))
            sides.append(out)
        mask, name = self.cast(p, 'i32'), self.new(dtype, rank)
        self.ops.append(Select(sides, mask, name))
        self.ops[-1].run(self.env)
        self.scope.append(name)

    def write(self, x, at, array):
        self.ops.append(Write(x, at, array))
        self.ops[-1].run(self.env)

    def array(self):
        """An array filled by a loop, then read: put together along an axis, one element, or all in another loop."""
        x, dtype = self.pick(least=1), self.dtype
        arr, rank = self.new(dtype, 1, ' kind=LOD_TENSOR_ARRAY'), self.env[x].ndim
        self.write(None, None, arr)
        i = self.constant(0, 'i64')
        self.write(x, i, arr)
        limit = self.constant(self.rng.randint(1, 3), 'i64')
        cond = self.below(i, limit, None)
        self.protected |= {i, limit, cond}
        def finish():
            new = self.pick(dtype=dtype, rank=rank)
            self.op('increment', {'X': [i]}, 'Out', lambda a: a + 1, {'step': 1.0}, into=i)
            if self.rng.random() < 0.3: # sometimes twice
                self.inner('if', self.total_above(new), [], 0, lambda: self.write(self.pick(dtype=dtype, rank=rank), i, arr))
            self.write(new, i, arr)
            self.below(i, limit, None, into=cond)
        self.inner('while', cond, [arr, i, cond], self.rng.randint(1, 3), finish)
        self.rng.choice([self.joined, self.joined, self.element, self.elements])(arr, dtype, rank)

    def joined(self, arr, dtype, rank):
        stack = self.rng.random() < 0.2
        axis = self.rng.randrange(rank)
        def join(a):
            sizes = np.asarray([1 if stack else e.shape[axis] for e in a], np.int32)
            return (np.stack if stack else np.concatenate)(a, axis), sizes
        self.op_many('tensor_array_to_tensor', {'X': [arr]}, {'Out': 1, 'OutIndex': 1}, broadcast(join), {'axis': axis, 'use_stack': stack})

    def read(self, arr, at):
        def f(a, i):
            if not 0 <= i.item() < len(a):
                raise Invalid('no such element')
            return a[i.item()]
        return self.op('read_from_array', {'X': [arr], 'I': [at]}, 'Out', f)

    def element(self, arr, dtype, rank):
        self.read(arr, self.constant(self.rng.randint(0, 1), 'i64') if self.rng.random() < 0.6 else self.number)

    def elements(self, arr, dtype, rank):
        """From the first to the last."""
        n = self.op('lod_array_length', {'X': [arr]}, 'Out', lambda a: np.asarray([len(a)], np.int64))
        all_, i = self.copy(self.pick(dtype=dtype, rank=rank)), self.constant(0, 'i64')
        cond = self.below(i, n, None)
        self.protected |= {i, n, cond}
        def finish():
            x = self.read(arr, i)
            kind, f = self.rng.choice([('elementwise_add', np.add), ('elementwise_max', np.maximum)])
            self.op(kind, {'X': [all_], 'Y': [x]}, 'Out', broadcast(f), {'axis': -1}, into=all_)
            self.step(i, n, cond)
        self.inner('while', cond, [all_, i, cond], self.rng.randint(0, 2), finish)

    # ---- text

    def text(self):
        lines = []
        for at, parent, ops in self.blocks:
            if at:
                lines.append('block %d parent %d' % (at, parent))
            lines += ['var %s %s' % (v, text) for v, (block, text) in self.vars.items() if block == at]
            if not at:
                lines += ['feed %s %d' % (f[0], i) for i, f in enumerate(self.feeds)]
            lines += [op_text(op) for op in ops if op.kind != 'begin']
            if not at:
                lines += ['fetch %s %d' % (v, i) for i, v in enumerate(self.fetches)]
        return '\n'.join(lines) + '\n'

    def again(self, data):
        """What the fetches are for these inputs."""
        env = dict(data)
        run_all(self.blocks[0][2], env)
        return [env[v] for v in self.fetches]


def op_text(op):
    if op.kind == 'while':
        names = ','.join(op.outs)
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
        except TooLong:
            continue
        except Invalid:
            want = None
        args = []
        for k, v in data.items():
            np.save(folder / ('%s.npy' % k), v)
            args += ['--in', '%s=%s' % (k, folder / ('%s.npy' % k))]
        kept = folder / 'kept'
        if (kept / 'model.run').exists():
            call = [kept / 'model.run']
        else:
            call = command + (['--keep', kept] if o.target != 'interp' else [])
        try:
            r = subprocess.run([*call, *args, '--out-dir', folder / 'out'], capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return 'run %d: it does not end' % n, compared
        if r.returncode not in (0, 1):
            return 'run %d: exit status %d: %s' % (n, r.returncode, r.stderr[-500:]), compared
        if want is None:
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
