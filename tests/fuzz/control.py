#!/usr/bin/env python3
"""Random programs with nested loops and branches, run by the interpreter and as C: both must give the same bytes.

    control.py PDCC [--seed N] [--count N] [--keep DIR] [--cflags FLAGS]

All numbers are whole and wrap, so that nothing is rounded. What loops and branches pass on is chosen at random among
all values in sight: swaps, chains, values kept or dropped, values from outside, one value for several variables.
A program on which the two differ stays in --keep (default: the current folder). The last line is a count.
"""
import argparse, pathlib, random, subprocess, sys, tempfile

BIG, ONE, BOOL = 'tensor<12 x i64>', 'tensor<1 x i64>', 'tensor<1 x bool>'


class Program:
    def __init__(self, rng):
        self.rng, self.lines, self.count = rng, [], 0

    def name(self):
        self.count += 1
        return '%%v%d' % self.count

    def emit(self, depth, text):
        self.lines.append('  ' * depth + text)

    def op(self, depth, op, args, types, result, attrs=''):
        v = self.name()
        self.emit(depth, '%s = pd.%s(%s)%s : (%s) -> (%s)' % (v, op, ', '.join(args), attrs, ', '.join(types), result))
        return v

    def constant(self, depth, values, type):
        v = self.name()
        self.emit(depth, '%s = builtin.constant() {value = dense<%d x i64 [%s]>} : () -> (%s)'
                  % (v, len(values), ', '.join(map(str, values)), type))
        return v

    def pick(self, values, n):
        return [self.rng.choice(values) for _ in range(n)]

    def statement(self, depth, values, level):
        """A big value made of those in sight."""
        rng = self.rng
        kind = rng.random()
        if level < 3 and kind < 0.25:
            return self.loop(depth, values, level)
        if level < 3 and kind < 0.5:
            return self.branch(depth, values, level)
        if kind < 0.65:
            return [self.op(depth, 'flip', self.pick(values, 1), [BIG], BIG, ' {axis = [0]}')]
        return [self.op(depth, rng.choice(['add', 'subtract', 'multiply', 'maximum']), self.pick(values, 2), [BIG, BIG], BIG)]

    def block(self, depth, values, level):
        values = list(values)
        for _ in range(self.rng.randint(0, 4)):
            values += self.statement(depth, values, level)
        return values

    def loop(self, depth, values, level):
        n, rng = self.rng.randint(1, 5), self.rng
        zero, one = self.constant(depth, [0], ONE), self.constant(depth, [1], ONE)
        trips = self.constant(depth, [rng.choice([0, 1, 2, 3, 4])], ONE)
        inits = self.pick(values, n)
        results = [self.name() for _ in range(n + 1)]
        types = ', '.join([ONE] + [BIG] * n)
        self.emit(depth, '%s = pd.while(%s) : (%s) -> (%s)' % (', '.join(results), ', '.join([zero] + inits), types, types))
        args = [self.name() for _ in range(n + 1)]
        listed = ', '.join('%s: %s' % (a, ONE if i == 0 else BIG) for i, a in enumerate(args))
        self.emit(depth, 'cond {')
        self.emit(depth + 1, '^0(%s):' % listed)
        inner = self.block(depth + 2, values + args[1:], level + 2) if rng.random() < 0.2 else values + args[1:]
        go = self.op(depth + 2, 'less_than', [args[0], trips], [ONE, ONE], BOOL)
        passed = args[1:] if rng.random() < 0.7 else self.pick(inner, n)
        self.emit(depth + 2, 'cf.cond_yield(%s) : (%s, %s) -> ()' % (', '.join([go, args[0]] + passed), BOOL, types))
        self.emit(depth, '} body {')
        args = [self.name() for _ in range(n + 1)]
        listed = ', '.join('%s: %s' % (a, ONE if i == 0 else BIG) for i, a in enumerate(args))
        self.emit(depth + 1, '^0(%s):' % listed)
        inner = self.block(depth + 2, values + args[1:], level + 1)
        step = self.op(depth + 2, 'add', [args[0], one], [ONE, ONE], ONE)
        near = inner[len(values):] or inner
        self.emit(depth + 2, 'cf.yield(%s) : (%s) -> ()' % (', '.join([step] + self.pick(near, n)), types))
        self.emit(depth, '}')
        return results[1:]

    def branch(self, depth, values, level):
        n, rng = self.rng.randint(1, 4), self.rng
        sums = [self.op(depth, 'sum', [v], [BIG], ONE, ' {axis = [0], keepdim = true}') for v in self.pick(values, 2)]
        cond = self.op(depth, 'less_than', sums, [ONE, ONE], BOOL)
        results = [self.name() for _ in range(n)]
        types = ', '.join([BIG] * n)
        self.emit(depth, '%s = pd.if(%s) : (%s) -> (%s) then {' % (', '.join(results), cond, BOOL, types))
        for side in range(2):
            inner = self.block(depth + 1, values, level + 1)
            self.emit(depth + 1, 'cf.yield(%s) : (%s) -> ()' % (', '.join(self.pick(inner[-6:], n)), types))
            self.emit(depth, '}' if side else '} else {')
        return results

    def text(self):
        self.emit(0, 'builtin.module {')
        values = [self.constant(1, [self.rng.randint(-9, 9) for _ in range(12)], BIG) for _ in range(3)]
        while len(values) < 8:
            values += self.statement(1, values, 0)
        for col, v in enumerate(values[-5:]):
            self.emit(1, 'pd.fetch(%s) {col = %d, name = "out%d"} : (%s) -> ()' % (v, col, col, BIG))
        self.emit(0, '}')
        return '\n'.join(self.lines) + '\n'


def run(args, pdcc, file, target, out):
    cmd = [pdcc, 'run', file, '--target', target, '--out-dir', out, '--verify-each']
    if target == 'c':
        cmd += ['--redzone', '--isa', 'generic', '--cflags', args.cflags]
    p = subprocess.run([str(c) for c in cmd], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.returncode, p.stdout, {f.name: f.read_bytes() for f in sorted(out.rglob('*.npy'))}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('pdcc')
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--count', type=int, default=100)
    ap.add_argument('--keep', default='.')
    ap.add_argument('--cflags', default='-O1')
    args = ap.parse_args()
    failed = 0
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as tmp:
            tmp = pathlib.Path(tmp)
            file = tmp / 'p.pdir'
            file.write_text(Program(random.Random(seed)).text())
            want, got = run(args, args.pdcc, file, 'interp', tmp / 'i'), run(args, args.pdcc, file, 'c', tmp / 'c')
            if want[0] or got[0] or want[2] != got[2] or not want[2]:
                failed += 1
                kept = pathlib.Path(args.keep) / ('control-%d.pdir' % seed)
                kept.write_text(file.read_text())
                print('seed %d: %s\n%s' % (seed, kept, (want[1] + got[1])[:600]))
    print('%d passed, %d failed' % (args.count - failed, failed))
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
