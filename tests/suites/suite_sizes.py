"""Random programs in Paddle's vocabulary over open sizes, against what they mean in numpy (tests/fuzz/paddle.py): a few for every
change, many in check-all. There, too, programs as IR in which sizes change from round to round and differ between branches:
interpreter against compiled C."""
import pathlib, random, tempfile

from pdcc_tests import SRC, run

SLOW = False
SEEDS = 24
FEW = [(['--target', 'interp'], 1, 60), (['--target', 'c'], 61, 12)]  # how, first seed, how many
MANY = [(['--target', 'interp'], 1001, 2500), (['--target', 'c'], 5001, 120), (['--target', 'c', '--isa', 'native'], 5301, 60)]

PROLOGUE = '''builtin.module {
  %c0 = builtin.constant() {value = dense<1 x i64 [0]>} : () -> (tensor<1 x i64>)
  %c1 = builtin.constant() {value = dense<1 x i64 [1]>} : () -> (tensor<1 x i64>)
  %c2 = builtin.constant() {value = dense<1 x i64 [2]>} : () -> (tensor<1 x i64>)
  %c3 = builtin.constant() {value = dense<1 x i64 [3]>} : () -> (tensor<1 x i64>)
  %half = builtin.constant() {value = dense<1 x f32 [0.5]>} : () -> (tensor<1 x f32>)
  %x = pd.full() {dtype = f32, shape = dims [6], value = 1.5} : () -> (tensor<6 x f32>)
  %y = builtin.constant() {value = dense<3 x f32 [1.0, 2.0, 3.0]>} : () -> (tensor<3 x f32>)'''


def tensor(size):
    return f'tensor<{size} x f32>' if size.isdigit() else f'tensor<[{size}] x f32>'


def names(values):
    return ', '.join(v[0] for v in values)


def types(values):
    return ', '.join(tensor(v[1]) for v in values)


class Program:
    """A module as text; a value is its name and its size."""

    def __init__(self, seed):
        self.random, self.count, self.lines = random.Random(seed), 0, [PROLOGUE]
        values = [('%x', '6'), ('%y', '3')]
        for _ in range(self.random.randint(1, 2)):
            values += self.loop(values, 0)
        values += self.branch(values, '%c2', 1)
        for col, v in enumerate(values[2:]):
            self.lines.append(f'pd.fetch({v[0]}) {{col = {col}, name = "f{col}"}} : ({tensor(v[1])}) -> ()')
        self.text = '\n'.join(self.lines) + '\n}\n'

    def new(self, prefix='%v'):
        self.count += 1
        return f'{prefix}{self.count}'

    def slice(self, v, start, end):
        out = (self.new(), f'max(0, min({end}, {v[1]}) - min({start}, {v[1]}))')
        self.lines.append(f'{out[0]} = pd.slice({v[0]}, _, _) {{axes = [0], decrease_axis = [], ends = dims [{end}], '
                          f'starts = dims [{start}]}} : ({tensor(v[1])}) -> ({tensor(out[1])})')
        return out

    def concat(self, a, b):
        both, out = self.new(), (self.new(), f'({a[1]}) + ({b[1]})')
        vec = f'vec<{tensor(a[1])}, {tensor(b[1])}>'
        self.lines.append(f'{both} = builtin.combine({a[0]}, {b[0]}) : ({tensor(a[1])}, {tensor(b[1])}) -> ({vec})')
        self.lines.append(f'{out[0]} = pd.concat({both}) {{axis = 0}} : ({vec}) -> ({tensor(out[1])})')
        return out

    def value(self, values):
        kind, v = self.random.choice(['concat', 'concat', 'append', 'slice', 'slice', 'add']), self.random.choice(values)
        if kind == 'concat':
            return self.concat(v, self.random.choice(values))
        if kind == 'append':
            return self.concat(v, ('%half', '1'))
        if kind == 'slice':
            return self.slice(v, self.random.choice([0, 1, 2]), self.random.choice([3, 7, 1000]))
        out = (self.new(), v[1])
        self.lines.append(f'{out[0]} = pd.add({v[0]}, %half) : ({tensor(v[1])}, tensor<1 x f32>) -> ({tensor(v[1])})')
        return out

    def body(self, values, counter, depth, n):
        """Some operations, and n values to give; mostly not larger than 40."""
        values = list(values)
        for _ in range(self.random.randint(1, 3)):
            what = self.random.random()
            if what < 0.25 and depth < 2:
                values += self.loop(values, depth + 1)
            elif what < 0.5 and depth < 3:
                values += self.branch(values, counter, depth + 1)
            else:
                values.append(self.value(values))
        return [self.slice(self.random.choice(values), 0, 40) if self.random.random() < 0.7 else
                self.random.choice(values[:3]) for _ in range(n)]

    def branch(self, values, counter, depth):
        cond, out = self.new(), [(self.new(), self.new('?!r')) for _ in range(self.random.randint(1, 2))]
        self.lines.append(f'{cond} = pd.equal({counter}, %c{self.random.randrange(4)}) : (tensor<1 x i64>, tensor<1 x i64>) '
                          '-> (tensor<1 x bool>)')
        self.lines.append(f'{names(out)} = pd.if({cond}) : (tensor<1 x bool>) -> ({types(out)}) then {{')
        for side in range(2):
            give = self.body(values, counter, depth, len(out))
            self.lines.append(f'cf.yield({names(give)}) : ({types(give)}) -> ()')
            self.lines.append('}' if side else '} else {')
        return out

    def loop(self, values, depth):
        n = self.random.randint(1, 3)
        out = [(self.new(), self.new('?!s')) for _ in range(n)]
        init = [self.slice(self.random.choice(values), 0, 40) for _ in range(n)]
        counters, one = [self.new() for _ in range(4)], 'tensor<1 x i64>'
        limit, again = self.random.choice(['%c3', '%c2', '%c1']), self.new()
        first, second = ([(self.new(), size) for _, size in out] for _ in range(2))

        def block(counter, arguments):
            return f'^0({counter}: {one}, ' + ', '.join(f'{v}: {tensor(size)}' for v, size in arguments) + '):'

        self.lines += [
            f'{counters[0]}, {names(out)} = pd.while(%c0, {names(init)}) : ({one}, {types(init)}) -> ({one}, {types(out)}) cond {{',
            block(counters[1], first),
            f'{again} = pd.less_than({counters[1]}, {limit}) : ({one}, {one}) -> (tensor<1 x bool>)',
            f'cf.cond_yield({again}, {counters[1]}, {names(first)}) : (tensor<1 x bool>, {one}, {types(first)}) -> ()',
            '} body {', block(counters[2], second)]
        give = self.body(second + (values[:2] if self.random.random() < 0.5 else []), counters[2], depth, n)
        if self.random.random() < 0.3:
            turned = self.random.sample(second, n)
            give = [turned[i] if self.random.random() < 0.6 else give[i] for i in range(n)]
        self.lines += [f'{counters[3]} = pd.add({counters[2]}, %c1) : ({one}, {one}) -> ({one})',
                       f'cf.yield({counters[3]}, {names(give)}) : ({one}, {types(give)}) -> ()', '}']
        return out


def outputs(folder):
    return {p.name: p.read_bytes().split(b'\n', 1)[1] + p.read_bytes().split(b"'shape'", 1)[1].split(b')')[0].replace(b',', b'')
            for p in sorted(folder.glob('0/*.npy'))}


def meanings(t):
    """A second oracle; it needs numpy."""
    if run([t.python, '-c', 'import numpy']).returncode:
        return
    for how, first, count in FEW + (MANY if t.all else []):
        with tempfile.TemporaryDirectory() as keep:
            p = run([t.python, SRC / 'tests/fuzz/paddle.py', t.pdcc, '--seed', first, '--count', count, '--keep', keep, *how])
        yield ' '.join(how[1:]) + ': ' + p.stdout.strip().split('\n')[-1], p.returncode == 0, p.stdout[-3000:]


def rounds(t):
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        for seed in range(SEEDS):
            model = tmp / f'{seed}.pdir'
            model.write_text(Program(seed).text)
            a = run([t.pdcc, 'run', model, '--target', 'interp', '--out-dir', tmp / f'{seed}.a'], timeout=120)
            b = run([t.pdcc, 'run', model, '--target', 'c', '--isa=generic', '--redzone', '--out-dir', tmp / f'{seed}.b'],
                    timeout=300)
            want, have = outputs(tmp / f'{seed}.a'), outputs(tmp / f'{seed}.b')
            ok = a.returncode == 0 and b.returncode == 0 and bool(want) and want == have
            yield f'seed {seed}', ok, a.stdout[-800:] + b.stdout[-800:]


def suite(t):
    yield from meanings(t)
    if t.all:
        yield from rounds(t)
