"""Derivatives through control flow: --grad of small programs against central differences of the program itself, in f64, --jvp
against --grad, and products with the Hessian (--jvp of a gradient; --grad of a tangent) against each other and against central
differences of the gradient, by the interpreter and by C. Each line of a program is `result = operator operands`, `while c {`, `if c {` or `}`; a result with `!`
stops gradients. The loss is the sum of `y`; gradients are with respect to the inputs, which are named x, w ...
"""
import pathlib, subprocess, sys, tempfile

import numpy as np

from pdcc_tests import SRC, run

BINARY = {'add': 'elementwise_add', 'sub': 'elementwise_sub', 'mul': 'elementwise_mul', 'div': 'elementwise_div'}
COMPARE = {'less': 'less_than', 'greater': 'greater_than', 'and': 'logical_and'}
LOOP = 'i = int 0\nn = int {0}\nc = less i n\nwhile c {{\n{1}\ni = inc i\nc = less i n\n}}'


def loop(rounds, body):
    return LOOP.format(rounds, body.strip())


def choose(x, then, other):
    """y = then or other, where the sum of x is positive or not."""
    return (f's = sum {x}\nz = const 0\np = greater s z\nq = not p\ny = scale {x} 0\n'
            f'if p {{\n{then}\n}}\nif q {{\n{other}\n}}')


# The rows of the table that Paddle gets wrong or refuses, and what surrounds them.
PROGRAMS = {
    'counter that is squared': ({'x': [1.5]}, 'i = assign x\nj = assign x\nk = int 0\nn = int 5\nc = less k n\nwhile c {\n'
                                'j = mul i i\none = const 0.25\ni = add i one\nk = inc k\nc = less k n\n}\ny = mul j j'),
    'square of the round before': ({'x': [0.0], 'i': [1.0]}, 't = const 10.5\ny = assign x\nj = assign i\nc = less j t\nwhile c {\n'
                                   'y = mul j j\none = const 1\nj = add j one\nc = less j t\n}'),
    'halves while it is large': ({'x': [3.0]}, 'y = scale x 2\n' + loop(3, 'h = const 1\np = greater y h\nif p {\ny = scale y 0.5\n}')),
    'fourth power': ({'x': [2.0]}, 'y = assign x\n' + loop(3, 'y = mul y x')),
    'power by a loop': ({'x': [1.3, 0.7]}, 'y = const 1\ny = add x y\n' + loop(4, 'y = mul y x')),
    'square in every round': ({'x': [1.3, 0.7]}, 'y = assign x\n' + loop(4, 'h = mul y y\ny = scale h 0.3')),
    'no round': ({'x': [1.3, 0.7]}, 'y = assign x\n' + loop(0, 'y = mul y x')),
    'branch on the loop variable': ({'x': [3.0]}, 'y = assign x\n' + loop(3, 'half = const 1\np = greater y half\nif p {\n'
                                                                        'y = scale y 0.5\n}\ny = mul y x')),
    'branch on a local': ({'x': [3.0]}, 'y = assign x\n' + loop(3, 'h = tanh y\nhalf = const 0.9\np = greater h half\n'
                                                                'if p {\ny = mul h y\n}')),
    'loop in a loop': ({'x': [1.1, 0.8]}, 'y = assign x\n' + loop(3, 'k = int 0\nm = int 2\nd = less k m\nwhile d {\n'
                                                                'y = mul y x\nk = inc k\nd = less k m\n}\ny = tanh y')),
    'rounds that grow': ({'x': [1.1, 0.8]}, 'y = assign x\n' + loop(3, 'k = int 0\nd = less k i\nwhile d {\n'
                                                               'y = mul y x\nk = inc k\nd = less k i\n}\ny = tanh y')),
    'branch with a loop': ({'x': [1.2, 0.5]}, choose('x', 'y = assign x\n' + loop(3, 'y = mul y x'), 'y = scale x 2')),
    'other branch with a loop': ({'x': [-1.2, 0.5]}, choose('x', 'y = scale x 2', 'y = assign x\n' + loop(3, 'y = mul y x'))),
    'loop in a branch in a loop': ({'x': [1.2], 'w': [0.9, 1.1]}, 'y = mul x w\n' + loop(
        4, 's = sum y\nt = const 1.5\np = greater s t\nif p {\nk = int 0\nm = int 2\nd = less k m\nwhile d {\ny = tanh y\n'
           'y = mul y w\nk = inc k\nd = less k m\n}\n}\ny = mul y x\ny = add y w')),
    'branch in a branch in a loop': ({'x': [0.4, 0.9]}, 'y = assign x\n' + loop(
        4, 's = sum y\nt = const 1\np = greater s t\nif p {\nu = const 1.5\nq = greater s u\nif q {\ny = scale y 0.5\n}\n'
           'y = mul y x\n}\ny = add y x')),
    'end that data tell': ({'x': [1.2]}, 'y = assign x\nt = const 9\nc = less y t\nwhile c {\ny = mul y x\ny = add y x\n'
                                        'c = less y t\n}'),
    'break': ({'x': [1.2]}, 'y = assign x\nstop = const 0\n' + 'i = int 0\nn = int 9\nc = less i n\nwhile c {\ny = mul y x\n'
                            't = const 2\nb = less y t\nif b {\ny = add y x\n}\ni = inc i\nc = less i n\nc = and c b\n}'),
    'continue': ({'x': [1.2]}, 'y = assign x\n' + loop(6, 'h = mul y x\nt = const 2\np = less h t\nif p {\ny = add h x\n}\n'
                                                          'q = not p\nif q {\ny = scale y 0.5\n}')),
    'two variables that change places': ({'x': [0.3, 0.4]}, 'a = tanh x\nb = scale x 2\n' + loop(
        3, 't = mul a b\na = assign b\nb = tanh t') + '\ny = sub a b'),
    'reads what is around it': ({'x': [0.3], 'w': [0.5, 0.7]}, 'h = mul x w\ny = scale w 0\n' + loop(
        3, 't = mul h y\nt = add t h\ny = tanh t')),
    'vector that grows': ({'x': [0.3, -0.4], 'w': [0.6, 0.8]}, 'y = cat x w\n' + loop(3, 'h = tanh y\ny = cat h x')),
    'vector of which only the size is needed': ({'x': [0.3, -0.4], 'w': [0.6, 0.8]}, 'g = assign x\n' + loop(
        3, 'g = cat w g') + '\nt = tanh x\ns = sum g\ny = mul s t'),
    'vector that doubles, in a loop in a loop': ({'x': [0.3, -0.4]}, 'y = assign x\n' + loop(
        2, 'k = int 0\nd = less k n\nwhile d {\nh = tanh y\ny = cat h y\nk = inc k\nd = less k n\n}\ny = scale y 0.5')),
    'vector that may grow, twice': ({'x': [0.3, -0.4], 'w': [0.6, 0.8]}, 'y = assign x\n' + loop(
        3, 's = sum y\nt = const 0.2\np = greater s t\nif p {\nh = tanh y\ny = cat h w\nu = const 2\nq = greater s u\n'
           'if q {\ny = cat y x\n}\n}\nr = not p\nif r {\ny = cat w y\n}\ny = mul y y')),
    'loop that grows a vector, in a branch in a loop': ({'x': [0.3, -0.4], 'w': [0.6, 0.8]}, 'y = assign x\n' + loop(
        3, 's = sum y\nt = const 0.5\np = greater s t\nif p {\nk = int 0\nd = less k i\nwhile d {\nh = tanh y\ny = cat h x\n'
           'k = inc k\nd = less k i\n}\n}\nr = not p\nif r {\ny = cat y w\n}')),
    'two vectors that grow and change places': ({'x': [0.3, -0.4], 'w': [0.6, 0.8]}, 'a = assign x\nb = cat x w\n' + loop(
        3, 't = tanh a\na = cat b w\nb = assign t') + '\ns = sum a\nt = sum b\ny = mul s t'),
    'array that is written': ({'x': [0.3, 0.4]}, 'h = assign x\ni = int 0\na = write x i\n' + loop(
        3, 'h = mul h x\nh = tanh h\na = write h i') +
                             '\nt = stack a\ny = mul t t'),
    'array that is read and written': ({'x': [0.3, 0.4]}, 'i = int 0\na = write x i\n' + loop(
        3, 'h = read a i\ng = mul h x\ng = tanh g\nk = inc i\na = write g k') + '\nt = stack a\ny = mul t t'),
    'array element that is overwritten': ({'x': [0.3, 0.4]}, 'i = int 0\na = write x i\nh = tanh x\na = write h i\n'
                                          'g = read a i\ny = mul g x'),
    'array read twice': ({'x': [0.3, 0.4]}, 'i = int 0\nt = mul x x\na = write t i\n' + loop(
        3, 'k = int 0\nh = read a k\nz = mul h x\nk = inc i\na = write z k') + '\nk = int 0\np = read a k\n'
        'k = int 2\nq = read a k\ny = mul p q'),
    'array that a loop in a loop goes on with': ({'x': [0.3, 0.4]}, 'i = int 0\na = write x i\n' + loop(
        3, 'k = int 0\nm = int 2\nd = less k m\nwhile d {\nh = read a k\ng = mul h x\ng = tanh g\nk = inc k\n'
           'a = write g k\nd = less k m\n}\nh = read a k\ny = add h x\nz = int 0\na = write y z') + '\nt = stack a\ny = mul t t'),
    'array that branches in a loop overwrite': ({'x': [0.3, 0.4]}, 'i = int 0\na = write x i\n' + loop(
        4, 'z = int 0\nh = read a z\ns = sum h\nt = const 0.5\np = greater s t\nif p {\ng = read a z\ng = mul g x\n'
           'a = write g z\n}\nq = not p\nif q {\ng = read a z\ng = mul g g\ng = add g x\na = write g z\nk = int 1\n'
           'a = write g k\n}') + '\nk = int 0\ny = read a k'),
    'array that is filled from behind': ({'x': [0.3, 0.4]}, 'y = tanh x\nlast = int 3\na = write y last\n' + loop(
        3, 'k = sub last i\none = int 1\nk = sub k one\nh = mul y x\na = write h k\nt = const 0\ns = sum h\np = greater s t\n'
           'if p {\ng = read a k\ny = mul g g\ng = read a last\ny = add y g\na = write y last\n}') +
                                         '\nt = stack a\ny = mul t t'),
    'array of vectors of several sizes': ({'x': [0.3, 0.4], 'w': [0.6, -0.8]}, 'i = int 0\na = write x i\n' + loop(
        3, 'k = int 0\nm = int 2\nd = less k m\nwhile d {\nh = read a k\ng = cat h w\ng = tanh g\nk = inc k\n'
           'a = write g k\nd = less k m\n}\nz = int 0\nh = read a z\nh = mul h x\na = write h z') + '\nk = int 2\ny = read a k'),
    'array that a branch in a loop in a loop reads': ({'x': [0.3, 0.4], 'w': [0.6, -0.8]}, 'y = assign x\ni = int 0\na = write w i\n' + loop(
        3, 'k = int 0\nd = less k i\nwhile d {\ns = sum y\nt = const 0.6\np = greater s t\nif p {\ng = read a k\n'
           'y = mul y g\na = write y k\n}\ny = add y x\nk = inc k\nd = less k i\n}\nk = inc i\na = write y k') +
                                                      '\nt = stack a\ny = mul t t'),
    'two arrays that read each other': ({'x': [0.3, 0.4], 'w': [0.6, -0.8]}, 'g = assign x\nh = assign w\ni = int 0\na = write x i\nb = write w i\n' + loop(
        3, 'k = int 0\nm = int 2\nd = less k m\nwhile d {\nh = read b k\ng = read a k\ng = mul g h\nk = inc k\n'
           'a = write g k\nh = tanh g\nb = write h k\nd = less k m\n}\nz = int 0\ng = add g h\nb = write g z') +
                                        '\nt = stack a\nu = stack b\ny = mul t u'),
    'array in a branch that hands on what grows': ({'x': [0.6, 0.8], 'w': [0.9, -0.4]}, 'u = tanh x\ng = assign x\nz = int 0\na = write u z\n' + loop(
        2, 's = sum u\nt = const 0.9\np = greater s t\nif p {\nu = tanh w\na = write u z\ng = scale g 0.8\n}\n'
           'k = int 0\nm = int 2\nd = less k m\nwhile d {\ng = cat g u\nh = read a z\nh = mul h x\na = write h z\n'
           'k = inc k\nd = less k m\n}') + '\nb = sum g\ny = read a z\ny = mul y b'),
    'array in a branch': ({'x': [0.3, 0.4]}, 'i = int 0\na = write x i\n' + choose(
        'x', 'h = tanh x\nk = int 1\na = write h k', 'z = scale x 2') + '\nt = stack a\ny = mul t t'),
    'LSTM': ({'x': [0.4, -0.3], 'w': [0.9, -0.6]}, 'h = tanh x\ncell = scale x 0.5\n' + loop(
        3, 'a = mul h w\nb = add a x\nenter = sigmoid b\na = sub h w\nstay = sigmoid a\na = mul h x\ng = tanh a\n'
           'b = sub a w\nleave = sigmoid b\na = mul stay cell\nb = mul enter g\ncell = add a b\nr = tanh cell\n'
           'h = mul leave r') + '\ny = mul h h'),
    'slices': ({'x': [[0.3, 0.4], [0.5, -0.2], [0.1, 0.7]]}, 'i = int 0\nh = slice x i\n' + loop(
        3, 's = slice x i\nh = add s h\nh = tanh h') + '\ny = mul h h'),
    'detached': ({'x': [0.6, 0.4]}, 'd! = assign x\ny = mul x d'),
    'detached in a loop': ({'x': [0.6, 0.4]}, 'y = assign x\n' + loop(3, 'd! = assign y\ny = mul x d')),
    'detached by sharing': ({'x': [0.6, 0.4]}, 'd! = share x\ny = mul x d'),
    'detached beside the same value': ({'x': [0.6, 0.4]}, 'd! = assign x\ne = assign x\nt = mul d e\ny = mul t x'),
    'detached in a branch': ({'x': [0.6, 0.4]}, choose('x', 'd! = assign x\ny = mul x d', 'y = assign x')),
}
# What some of them give, in numbers: gradients, and the second derivative.
NUMBERS = {'square of the round before': {'grad.i': 20.0, 'grad.x': 0.0}, 'halves while it is large': {'grad.x': 0.25},
           'fourth power': {'grad.x': 32.0, 'grad.x.x': 48.0, 'grad.x.x.x': 48.0}}
THIRD = 'grad.x.x.x'
# What is a constant to the gradient: the program with `d` as an input of its own, with the value that it has there.
CONSTANT = {'detached': lambda x: x, 'detached by sharing': lambda x: x, 'detached beside the same value': lambda x: 2 * x * x,
            'detached in a loop': lambda x: x ** 3, 'detached in a branch': lambda x: x}


class Model:
    """The description that mkmodel.py takes."""

    def __init__(self, inputs, text):
        self.blocks, self.parents, self.ops, self.stack, self.count = [{}], [-1], [[]], [0], 0
        for col, (name, value) in enumerate(inputs.items()):
            self.declare(name, 'f64', np.shape(value))
            self.emit(f'feed {name} {col}')
        for line in text.split('\n') + ['loss = sum y']:
            self.line(line.strip())
        self.emit('fetch loss 0')

    def emit(self, op):
        self.ops[self.stack[-1]].append(op)

    def declare(self, name, dtype='f64', dims=(-1,), flags=''):
        if not any(name in self.blocks[b] for b in self.stack):
            self.blocks[self.stack[-1]][name] = f'var {name} {dtype} {",".join(map(str, dims))} {flags}'.rstrip()

    def begin(self, kind, cond):
        self.count += 1
        new = len(self.blocks)
        self.blocks.append({})
        self.parents.append(self.stack[-1])
        self.ops.append([])
        self.declare(f'scope{self.count}', '', (), 'kind=STEP_SCOPES')
        if kind == 'while':
            self.emit(f'op while Condition={cond} -> StepScopes=scope{self.count} {{sub_block: BLOCK({new})}}')
        else:
            self.emit(f'op conditional_block Cond={cond} -> Scope=scope{self.count} '
                      f'{{sub_block: BLOCK({new}), is_scalar_condition: True}}')
        self.stack.append(new)

    def line(self, line):
        words = line.split()
        if line == '}':
            self.stack.pop()
        elif words and words[0] in ('while', 'if'):
            self.begin(words[0], words[1])
        elif words:
            self.operator(words[0], words[2], words[3:])

    def operator(self, out, name, args):
        stop, out = out.endswith('!'), out.rstrip('!')
        flags = 'stop_gradient' if stop else ''
        x = args[0] if args else ''
        if name in BINARY:
            op = f'{BINARY[name]} X={x} Y={args[1]} -> Out={out} {{axis: -1}}'
        elif name in COMPARE:
            op, flags = f'{COMPARE[name]} X={x} Y={args[1]} -> Out={out}', 'stop_gradient'
        elif name in ('const', 'int'):
            kind = 6 if name == 'const' else 3
            op = f"fill_constant -> Out={out} {{shape: [1], dtype: {kind}, str_value: '{x}', value: {float(x)}}}"
            flags = 'stop_gradient'
        else:
            op = {'scale': lambda: f'scale X={x} -> Out={out} {{scale: {float(args[1])}, bias: 0.0, bias_after_scale: True}}',
                  'inc': lambda: f'scale X={x} -> Out={out} {{scale: 1.0, bias: 1.0, bias_after_scale: True}}',
                  'not': lambda: f'logical_not X={x} -> Out={out}',
                  'share': lambda: f'share_data X={x} -> Out={out}',
                  'sum': lambda: f'reduce_sum X={x} -> Out={out} {{reduce_all: True, dim: [0], keep_dim: False}}',
                  'write': lambda: f'write_to_array X={x} I={args[1]} -> Out={out}',
                  'read': lambda: f'read_from_array X={x} I={args[1]} -> Out={out}',
                  'stack': lambda: f'tensor_array_to_tensor X={x} -> Out={out} OutIndex={out}_index {{axis: 0, use_stack: True}}',
                  'cat': lambda: f'concat X={x},{args[1]} -> Out={out} {{axis: 0}}',
                  'slice': lambda: f'gather X={x} Index={args[1]} -> Out={out}',
                  }.get(name, lambda: f'{name} X={x} -> Out={out}')()
        dtype = 'i64' if name in ('int', 'inc') else 'bool' if name in COMPARE or name == 'not' else 'f64'
        self.declare(out, dtype, (), 'kind=LOD_TENSOR_ARRAY' if name == 'write' else flags)
        if name == 'stack':
            self.declare(f'{out}_index', 'i32', ())
        self.emit('op ' + op)

    def text(self):
        out = []
        for n, (names, parent, ops) in enumerate(zip(self.blocks, self.parents, self.ops)):
            out += ([f'block {n} parent {parent}'] if n else []) + list(names.values()) + ops
        return '\n'.join(out) + '\n'


def pdcc(t, tmp, model, runs, fetches, *more):
    """What the runs (each a dict of inputs) give: a dict for each. Fetches are columns or names of derivatives."""
    command = [t.pdcc, 'run', model, '--out-dir', tmp / 'out', *more]
    for n, values in enumerate(runs):
        command += ['--next'] if n else []
        for name, value in values.items():
            np.save(tmp / f'{name}{n}.npy', np.asarray(value, 'f8'))
            command += ['--in', f'{name}={tmp / f"{name}{n}.npy"}']
    p = run([str(c) for c in command])
    if p.returncode:
        raise RuntimeError(p.stdout[-1500:])
    return [{f: np.load(tmp / f'out/{n}/{f}.npy') for f in fetches} for n in range(len(runs))]


def slope(at, h=1e-5):
    """The slope at 0 of a function whose values stand at -2h, -h, h and 2h: central differences of the fourth order."""
    a, b, c, d = at
    return (a - 8 * b + 8 * c - d) / (12 * h)


def moved(inputs, by, h=1e-5):
    """The inputs at four places along the direction `by`."""
    return [{k: np.array(v, 'f8') + step * h * by.get(k, 0) for k, v in inputs.items()} for step in (-2, -1, 1, 2)]


def differences(t, tmp, model, inputs):
    """Slopes of the loss, for each element of each input."""
    places, runs = [(name, at) for name in inputs for at in np.ndindex(np.shape(inputs[name]))], []
    for name, at in places:
        unit = np.zeros(np.shape(inputs[name]))
        unit[at] = 1
        runs += moved(inputs, {name: unit})
    got = [r['0'].item() for r in pdcc(t, tmp, model, runs, ['0'], '--target', 'interp')]
    out = {name: np.zeros(np.shape(v)) for name, v in inputs.items()}
    for n, (name, at) in enumerate(places):
        out[name][at] = slope(got[4 * n:4 * n + 4])
    return out


def directions(inputs):
    """A direction for every input, the same each time."""
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal(np.shape(v)) for name, v in inputs.items()}


def near(what, got, want, rtol, atol):
    """What is wrong; '': nothing."""
    got, want = np.asarray(got), np.asarray(want)
    same = got.shape == want.shape and np.allclose(got, want, rtol=rtol, atol=atol)
    return '' if same else f'{what} is {got.tolist()}, not {want.tolist()}'


def derivatives(inputs):
    """Options for gradients, tangents and both ways to multiply the Hessian with a direction; and what that gives."""
    wrt = ['--wrt', ','.join(inputs)]
    options = ['--grad', 'loss', *wrt, '--jvp', 'loss', *wrt, '--grad', 'tangent.loss', *wrt]
    for name in inputs:
        options += ['--jvp', f'grad.{name}', *wrt]
    fetches = ['tangent.loss'] + [f'{kind}.{name}' for name in inputs for kind in ('grad', 'tangent.loss', 'tangent.grad')]
    return options, fetches


def check_values(t, tmp, model, name, inputs, target, want, along):
    """What is wrong with the derivatives; '': nothing. `want`: the gradients; along: four gradients near `inputs`, or None."""
    by = directions(inputs)
    options, fetches = derivatives(inputs)
    given = {**inputs, **{f'tangent.{k}': v for k, v in by.items()}}
    got = pdcc(t, tmp, model, [given], fetches, '--target', target, *options)[0]
    wrong = [near(f'd {k}', got[f'grad.{k}'], w, 1e-6, 1e-9) for k, w in want.items()]
    whole = sum(np.sum(got[f'grad.{k}'] * by[k]) for k in inputs)
    wrong.append(near('the tangent', got['tangent.loss'].item(), whole, 1e-12, 1e-12))
    for k in inputs:
        wrong.append(near(f'H v for {k}: --jvp of --grad', got[f'tangent.grad.{k}'], got[f'tangent.loss.{k}'], 1e-11, 1e-11))
        if along:
            wrong.append(near(f'H v for {k}', got[f'tangent.grad.{k}'], slope([g[f'grad.{k}'] for g in along]), 1e-6, 1e-7))
    if name in NUMBERS:
        twice = pdcc(t, tmp, model, [inputs], NUMBERS[name], '--target', target, '--grad', 'loss', '--wrt', ','.join(inputs),
                     '--grad', 'grad.x', '--wrt', 'x', *(['--grad', 'grad.x.x', '--wrt', 'x'] if THIRD in NUMBERS[name] else []))[0]
        wrong += [near(k, twice[k].item(), v, 1e-12, 0) for k, v in NUMBERS[name].items()]
    return '; '.join(w for w in wrong if w)


def check(t, name, inputs, text):
    with tempfile.TemporaryDirectory() as tmp:
        tmp, along = pathlib.Path(tmp), None
        model = tmp / 'm.pdmodel'
        (tmp / 'm.txt').write_text(Model(inputs, text).text())
        subprocess.run([sys.executable, SRC / 'tests/mkmodel.py', tmp / 'm.txt', model], check=True)
        try:
            if name in CONSTANT:
                want = {'x': CONSTANT[name](np.array(inputs['x']))}
            else:
                want = differences(t, tmp, model, inputs)
                along = pdcc(t, tmp, model, moved(inputs, directions(inputs)), [f'grad.{k}' for k in inputs], '--target', 'interp',
                             '--grad', 'loss', '--wrt', ','.join(inputs))
            for target in ('interp', 'c'):
                wrong = check_values(t, tmp, model, name, inputs, target, want, along)
                if wrong:
                    return False, f'{target}: {wrong}'
        except RuntimeError as e:
            return False, str(e)
    return True, ''


def suite(t):
    for name, (inputs, text) in PROGRAMS.items():
        yield f'gradient: {name}', *check(t, name, inputs, text)
