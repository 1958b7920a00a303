#!/usr/bin/env python3
"""Random programs with nested loops and branches, tensor arrays and sizes that change from round to round: their derivatives.

    gradients.py PDCC [--seed N] [--count N] [--keep DIR] [--compiled N]     every N-th is compiled to C, too
    gradients.py PDCC --print SEED                                             the program of that seed
    gradients.py PDCC --shrink SEED                                            a small program that still fails

Programs are lines as tests/gradients.py takes them. Held against each other, along a random direction, in f64: the gradient and
central differences of the loss; the tangent (--jvp) and the gradient; for every fourth program, the Hessian times the direction
as --jvp of the gradient, as --grad of the tangent, and as central differences of the gradient. Where differences with two
steps disagree there is a kink nearby: such programs are skipped and counted, and so are those that pdcc refuses for one of the
reasons in REFUSED. What fails stays in --keep; the last line is a count.
"""
import argparse, pathlib, random, re, subprocess, sys, tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
import mkmodel

H = 2e-4
REFUSED = ('the model needs more memory than 64 bits can count',)


def dsl():
    """tests/gradients.py, also where tests/run.py has not been imported."""
    import types
    if 'pdcc_tests' not in sys.modules:
        sys.modules['pdcc_tests'] = module = types.ModuleType('pdcc_tests')
        module.SRC, module.run = HERE.parent.parent, None
    import importlib.util
    spec = importlib.util.spec_from_file_location('gradient_programs', HERE.parent / 'gradients.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DSL = dsl()


# ---- programs ---------------------------------------------------------------------------------------------------

class Program:
    """Lines of a program, and its inputs. Vectors have two elements; `growing` ones any number."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.count = [], 0
        self.inputs = {n: [round(self.rng.uniform(-1.2, 1.2), 3) for _ in range(2)] for n in ('x', 'w')}
        names = ['x', 'w']
        for n in ('u', 'v'):
            self.emit(f'{n} = {self.rng.choice(["tanh x", "mul x w", "scale w 0.7", "assign x"])}')
            names.append(n)
        self.growing = []
        if self.rng.random() < 0.4:
            self.emit('g = cat x w')
            self.growing.append('g')
        self.arrays = []
        if self.rng.random() < 0.4:
            self.emit('at0 = int 0')
            self.emit('a = write u at0')
            self.arrays.append('a')
        self.block(names, 0, [])
        self.emit('y = add u v')
        for g in self.growing:
            self.emit(f's{g} = sum {g}')
            self.emit(f't{g} = tanh s{g}')
            self.emit(f'y = mul y t{g}')
        for a in self.arrays:
            self.emit(f'stack_{a} = stack {a}')
            self.emit(f'sum_{a} = sum stack_{a}')
            self.emit(f'y = add y sum_{a}')

    @property
    def text(self):
        return '\n'.join(self.lines)

    def emit(self, line):
        self.lines.append(line)

    def new(self, prefix):
        self.count += 1
        return f'{prefix}{self.count}'

    def block(self, names, depth, counters):
        names = list(names)
        for _ in range(self.rng.randint(1, 4 if depth else 5)):
            kind = self.rng.random()
            if kind < 0.22 and depth < 3:
                self.loop(names, depth, counters)
            elif kind < 0.4 and depth < 4:
                self.branch(names, depth, counters)
            elif kind < 0.5 and self.arrays and (counters or depth):
                self.array(names, counters)
            elif kind < 0.6 and self.growing:
                g = self.rng.choice(self.growing)
                self.emit(f'{g} = {self.rng.choice(["cat %s %s" % (g, self.rng.choice(names)), "tanh " + g, "scale %s 0.8" % g])}')
            else:
                self.operation(names)

    def operation(self, names):
        a, b = self.rng.choice(names), self.rng.choice(names)
        out = self.rng.choice([n for n in names if n not in ('x', 'w')] + [self.new('t')])
        self.emit(f'{out} = ' + self.rng.choice([f'mul {a} {b}', f'add {a} {b}', f'sub {a} {b}', f'tanh {a}', f'scale {a} 0.6',
                                                 f'assign {a}', f'tanh {b}']))
        if out not in names:
            names.append(out)
        if self.rng.random() < 0.3:
            self.emit(f'{out} = tanh {out}')

    def loop(self, names, depth, counters):
        i, n, c = self.new('i'), self.new('n'), self.new('c')
        self.emit(f'{i} = int 0')
        if counters and self.rng.random() < 0.4:
            n = self.rng.choice(counters)  # as many rounds as the one around it has done
        else:
            self.emit(f'{n} = int {self.rng.choice([0, 1, 2, 2, 3])}')
        stop = self.rng.choice(names) if self.rng.random() < 0.25 else None
        self.emit(f'{c} = less {i} {n}')
        self.emit(f'while {c} {{')
        self.block(names, depth + 1, counters + [i])
        self.emit(f'{i} = inc {i}')
        self.emit(f'{c} = less {i} {n}')
        if stop:
            s, t, d = self.new('s'), self.new('k'), self.new('d')
            self.emit(f'{s} = sum {stop}')
            self.emit(f'{t} = const {self.rng.uniform(-1, 2):.3f}')
            self.emit(f'{d} = less {s} {t}')
            self.emit(f'{c} = and {c} {d}')
        self.emit('}')

    def branch(self, names, depth, counters):
        s, t, p, q = self.new('s'), self.new('k'), self.new('p'), self.new('q')
        self.emit(f'{s} = sum {self.rng.choice(names)}')
        self.emit(f'{t} = const {self.rng.uniform(-1, 1):.3f}')
        self.emit(f'{p} = greater {s} {t}')
        self.emit(f'{q} = not {p}')
        for cond in (p, q)[:self.rng.randint(1, 2)]:
            self.emit(f'if {cond} {{')
            self.block(names, depth + 1, [])
            self.emit('}')

    def array(self, names, counters):
        a, kind = self.arrays[0], self.rng.random()
        if kind > 0.7 and counters:  # in a branch a position may be skipped
            self.emit(f'{a} = write {self.rng.choice(names)} {counters[-1]}')
            return
        at = self.new('j')
        self.emit(f'{at} = int 0')
        if kind < 0.5:
            h = self.new('h')
            self.emit(f'{h} = read {a} {at}')
            names.append(h)
        else:
            self.emit(f'{a} = write {self.rng.choice(names)} {at}')


# ---- checks -----------------------------------------------------------------------------------------------------

def model_bytes(inputs, text):
    program = mkmodel.Program()
    for line in DSL.Model(inputs, text).text().split('\n'):
        if line.strip():
            program.line(line.strip())
    return program.model()


def slope(at, h):
    a, b, c, d = at
    return (a - 8 * b + 8 * c - d) / (12 * h)


class Refused(Exception):
    """pdcc says that it cannot."""


class Failure(Exception):
    """What is wrong with a program."""


def far(a, b, tolerance):
    return not abs(a - b) <= tolerance


def run(pdcc, tmp, inputs, text, second, target):
    """What five runs give, the last of them at the inputs themselves: the loss and the derivatives, by name."""
    rng = np.random.default_rng(7)
    by = {k: rng.standard_normal(np.shape(v)) for k, v in inputs.items()}
    (tmp / 'm.pdmodel').write_bytes(model_bytes(inputs, text))
    wrt = ['--wrt', ','.join(inputs)]
    options, names = ['--grad', 'loss', *wrt, '--jvp', 'loss', *wrt], ['tangent.loss'] + [f'grad.{k}' for k in inputs]
    if second:
        options += ['--grad', 'tangent.loss', *wrt] + [a for k in inputs for a in ('--jvp', f'grad.{k}', *wrt)]
        names += [f'tangent.loss.{k}' for k in inputs] + [f'tangent.grad.{k}' for k in inputs]
    command = [pdcc, 'run', tmp / 'm.pdmodel', '--target', target, '--out-dir', tmp / 'out', '--max-trip', 64, '--max-array', 300, *options]
    for n, step in enumerate((-2, -1, 1, 2, -1.5, -0.75, 0.75, 1.5, 0)):
        command += ['--next'] if n else []
        for k, v in inputs.items():
            np.save(tmp / f'{k}{n}.npy', np.array(v, 'f8') + step * H * by[k])
            command += ['--in', f'{k}={tmp}/{k}{n}.npy', '--in', f'tangent.{k}={tmp}/t{k}.npy']
    for k, v in by.items():
        np.save(tmp / f't{k}.npy', v)
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if p.returncode and any(why in p.stderr for why in REFUSED):
        raise Refused
    if p.returncode:
        raise Failure(f'exit status {p.returncode}: {p.stderr.strip()[-300:]}')
    got = [{f: np.load(tmp / f'out/{n}/{f}.npy') for f in ['0', *names]} for n in range(9)]
    return got, by


def check(pdcc, tmp, inputs, text, second, target='interp'):
    """'' where all is well, 'kink' where nothing can be said; else raises Failure."""
    got, by = run(pdcc, tmp, inputs, text, second, target)
    loss = [g['0'].item() for g in got]
    if not np.isfinite(loss[8]) or abs(loss[8]) > 1e4:
        return 'kink'
    at, scale = got[8], 1 + abs(loss[8])
    want, finer = slope(loss[:4], H), slope(loss[4:8], 0.75 * H)
    whole = sum(np.sum(at[f'grad.{k}'] * by[k]) for k in inputs)
    scale += abs(want) + sum(np.sum(np.abs(at[f'grad.{k}'] * by[k])) for k in inputs)
    if far(float(at['tangent.loss']), whole, 1e-12 * scale):
        raise Failure(f'tangent {float(at["tangent.loss"])!r}, gradient {whole!r}')
    for k in inputs if second else ():
        if not np.allclose(at[f'tangent.grad.{k}'], at[f'tangent.loss.{k}'], rtol=1e-9, atol=1e-10 * scale):
            raise Failure(f'H v of {k}: --jvp of --grad {at[f"tangent.grad.{k}"].tolist()}, --grad of --jvp {at[f"tangent.loss.{k}"].tolist()}')
    if far(want, finer, 1e-7 * scale):
        return 'kink'
    if far(want, whole, 1e-6 * scale):
        raise Failure(f'gradient {whole!r}, differences {want!r}')
    for k in inputs if second else ():
        bend = slope([g[f'grad.{k}'] for g in got[:4]], H)
        same = np.allclose(bend, slope([g[f'grad.{k}'] for g in got[4:8]], 0.75 * H), rtol=1e-6, atol=1e-6 * scale)
        if same and not np.allclose(at[f'tangent.grad.{k}'], bend, rtol=1e-5, atol=1e-5 * scale):
            raise Failure(f'H v of {k} {at[f"tangent.grad.{k}"].tolist()}, differences {bend.tolist()}')
    return ''


# ---- smaller programs -------------------------------------------------------------------------------------------

def matching(lines, i):
    """The line that closes what line i opens."""
    depth = 0
    for j in range(i, len(lines)):
        depth += lines[j].endswith('{')
        depth -= lines[j] == '}'
        if not depth:
            return j
    return i


def smaller(lines):
    """Programs with something left out: a line, a block, or the loop or branch around one."""
    for i in range(len(lines) - 1, -1, -1):
        if lines[i].endswith('{'):
            j = matching(lines, i)
            yield lines[:i] + lines[j + 1:]
            yield lines[:i] + lines[i + 1:j] + lines[j + 1:]
        elif lines[i] != '}':
            yield lines[:i] + lines[i + 1:]
            m = re.match(r'(\w+) = (?:mul|add|sub|tanh|scale|cat) (\w+)', lines[i])
            if m:
                yield lines[:i] + [f'{m[1]} = assign {m[2]}'] + lines[i + 1:]


def shrink(fails, lines):
    changed = True
    while changed:
        changed = False
        for fewer in smaller(lines):
            if fails(fewer):
                lines, changed = fewer, True
                break
    return lines


def sort_of(message):
    """A failure without its numbers and names."""
    return re.sub(r"'[^']*'|/\S+|-?\d[\d.e+-]*|\[.*?\]|block.*?error", '', message)[:60]


def failure(o, inputs, text, target='interp'):
    with tempfile.TemporaryDirectory() as tmp:
        try:
            check(o.pdcc, pathlib.Path(tmp), inputs, text, True, target)
        except Failure as e:
            return str(e)
        except Exception:
            return None  # no program any more
    return None


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument('pdcc')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--count', type=int, default=100)
    p.add_argument('--compiled', type=int, default=0)
    p.add_argument('--keep', default='.')
    p.add_argument('--print', type=int)
    p.add_argument('--shrink', type=int)
    o = p.parse_args()
    if o.print is not None:
        print(Program(o.print).text)
        return 0
    if o.shrink is not None:
        program = Program(o.shrink)
        want = failure(o, program.inputs, program.text)
        if not want:
            sys.exit('this program does not fail')
        fails = lambda lines: sort_of(failure(o, program.inputs, '\n'.join(lines)) or '') == sort_of(want)
        print('\n'.join(shrink(fails, program.lines)), f'\n# inputs {program.inputs}\n# {want}', sep='')
        return 0
    bad = kinks = refused = 0
    for seed in range(o.seed, o.seed + o.count):
        program = Program(seed)
        with tempfile.TemporaryDirectory() as tmp:
            tmp = pathlib.Path(tmp)
            try:
                kinks += check(o.pdcc, tmp, program.inputs, program.text, seed % 4 == 0) == 'kink'
                if o.compiled and seed % o.compiled == 0:
                    check(o.pdcc, tmp, program.inputs, program.text, True, 'c')
            except Refused:
                refused += 1
            except Failure as e:
                bad += 1
                print(f'seed {seed}: {e}', flush=True)
                (pathlib.Path(o.keep) / f'gradients-{seed}.txt').write_text(program.text + '\n')
    print(f'{o.count} programs, {bad} wrong, {kinks} with a kink, {refused} refused')
    return bad != 0 or refused > o.count // 10


if __name__ == '__main__':
    sys.exit(main())
