#!/usr/bin/env python3
"""Random programs with nested loops, branches and tensor arrays: whatever runs them must give the same bytes.

    control.py PDCC [--seed N] [--count N] [--keep DIR] [--isa ISA] [--cflags FLAGS]
    control.py PDCC --cuda [--seed N] ...        CUDA on the emulator instead of passes and C
    control.py PDCC --print SEED                 the program of that seed
    control.py PDCC --shrink SEED|FILE.pdir      a small program that still differs, on standard output

Each program is interpreted as it is and after every pass (pdcc verify), and compiled to C. Numbers are whole and wrap, or
floats on which every operation is exact or rounded once, so nothing may differ. What loops and branches pass on is chosen
at random among all values in sight: swaps, chains, values kept or dropped, values from outside, one value for several
variables. Loops take no round or several, known when compiling or read from data. A program that differs stays in --keep
(default: the current folder), and so does one for which there is no code. The last line is a count; skipped are programs that are
wrong themselves (Case.is_wrong).
"""
import argparse, ast, math, os, pathlib, random, re, shutil, struct, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
BIG, GRID, ONE, BARE = 'tensor<12 x i64>', 'tensor<3 x 4 x i32>', 'tensor<1 x i64>', 'tensor<i64>'
REAL, BYTES, PAIR, BOOL = 'tensor<12 x f32>', 'tensor<2 x u8>', 'tensor<2 x f64>', 'tensor<1 x bool>'
SHAPES = {BIG: (12,), GRID: (3, 4), ONE: (1,), BARE: (), REAL: (12,), BYTES: (2,), PAIR: (2,), BOOL: (1,)}
LETTERS = {'i64': 'q', 'i32': 'i', 'f32': 'f', 'f64': 'd', 'u8': 'B', 'bool': '?'}
DESCR = {'i64': '<i8', 'i32': '<i4', 'f32': '<f4', 'f64': '<f8', 'u8': '|u1', 'bool': '|b1'}
CARRIED = [BIG, BIG, GRID, ONE, BARE, REAL, BYTES, PAIR, BOOL]  # what loops and branches pass on
ARRAY, STACK_SIZE = 'array<12 x i64>', 8


def dtype_of(type):
    return re.findall(r'\w+', type)[-1]


# ---- programs ---------------------------------------------------------------------------------------------------

class Program:
    def __init__(self, seed):
        self.rng, self.lines, self.count, self.feeds = random.Random(seed), [], 0, []
        self.depth = 1
        # Of what is less common, some programs have one and some the other.
        self.arrays, self.sizes = (self.rng.random() < 0.25 for _ in range(2))
        self.text = self.module()

    def name(self):
        self.count += 1
        return '%%v%d' % self.count

    def emit(self, text):
        self.lines.append('  ' * self.depth + text)

    def op(self, op, args, result, attrs=''):
        """One result of `op` on (name, type) pairs."""
        v = self.name()
        self.emit('%s = %s(%s)%s : (%s) -> (%s)' % (v, op, ', '.join(a for a, _ in args), attrs,
                                                  ', '.join(t for _, t in args), result))
        return v, result

    def constant(self, type, values):
        n = ' x '.join(map(str, SHAPES[type] + (dtype_of(type),)))
        data = ', '.join(repr(float(v)) if dtype_of(type)[0] == 'f' else str(v) for v in values)
        return self.op('builtin.constant', [], type, ' {value = dense<%s [%s]>}' % (n, data))

    def numbers(self, type):
        low, high = (0, 1) if type == BOOL else (0, 9) if type == BYTES else (-9, 9)
        return [self.rng.randint(low, high) for _ in range(math.prod(SHAPES[type]))]

    def feed(self, type):
        name = 'x%d' % len(self.feeds)
        self.feeds.append((name, type, self.numbers(type)))
        return self.op('pd.feed', [], type, ' {name = "%s", col = %d}' % (name, len(self.feeds) - 1))

    def pick(self, values, type):
        """A value of that type in sight; made on the spot where there is none."""
        found = [v for v in values if v[1] == type]
        near = found[-6:] if self.rng.random() < 0.6 else found
        if near:
            return self.rng.choice(near)
        return self.create_array(values) if type == ARRAY else self.constant(type, self.numbers(type))

    # ---- single operations

    def statement(self, values, level):
        """New values made of those in sight."""
        rng, dice = self.rng, self.rng.random()
        if level < 3 and dice < 0.22:
            return self.loop(values, level)
        if level < 3 and dice < 0.44:
            return self.branch(values, level)
        if self.arrays and dice < 0.52:
            return self.array_statement(values)
        if self.sizes and level < 3 and dice < 0.6:
            return self.growing_loop(values)
        return [self.simple(values, rng.choice(CARRIED))]

    def simple(self, values, type):
        rng, x = self.rng, self.pick(values, type)
        if type == BOOL:
            return self.condition(values)
        if type != BARE and rng.random() < 0.12:
            return self.op('pd.where', [self.pick(values, BOOL), x, self.pick(values, type)], type)
        if rng.random() < 0.25:
            return self.convert(values, type)
        if type in (BIG, GRID, REAL, PAIR) and rng.random() < 0.2:
            return self.op('pd.flip', [x], type, ' {axis = [0]}')
        if type in (REAL, PAIR) and rng.random() < 0.3:
            return self.op('pd.scale', [x], type, ' {scale = 0.5}')
        choice = ['add', 'subtract', 'maximum', 'minimum'] + ([] if type in (REAL, PAIR) else ['multiply'])
        return self.op('pd.' + rng.choice(choice), [x, self.pick(values, type)], type)

    def convert(self, values, type):
        """A value of that type from one of another."""
        rng, p = self.rng, self.pick
        if type == BIG:
            wide = self.op('pd.reshape', [p(values, GRID)], 'tensor<12 x i32>', ' {shape = dims [12]}')
            return self.op('pd.cast', [wide], BIG, ' {dtype = i64}')
        if type == GRID:
            narrow = self.op('pd.cast', [p(values, BIG)], 'tensor<12 x i32>', ' {dtype = i32}')
            return self.op('pd.reshape', [narrow], GRID, ' {shape = dims [3, 4]}')
        if type == ONE:
            if rng.random() < 0.5:
                return self.op('pd.reshape', [p(values, BARE)], ONE, ' {shape = dims [1]}')
            return self.op('pd.sum', [p(values, BIG)], ONE, ' {axis = [0], keepdim = true}')
        if type == BARE:
            if rng.random() < 0.5:
                return self.op('pd.reshape', [p(values, ONE)], BARE, ' {shape = dims []}')
            return self.op('pd.max', [p(values, BIG)], BARE, ' {axis = [0]}')
        if type == REAL:
            flat = self.op('pd.reshape', [p(values, GRID)], 'tensor<12 x i32>', ' {shape = dims [12]}')
            return self.op('pd.cast', [flat], REAL, ' {dtype = f32}')
        if type == BYTES:
            return self.op('pd.cast', [self.op('pd.expand', [p(values, ONE)], 'tensor<2 x i64>', ' {shape = dims [2]}')], BYTES,
                           ' {dtype = u8}')
        return self.op('pd.cast', [p(values, BYTES)], PAIR, ' {dtype = f64}')

    def condition(self, values):
        rng, dice = self.rng, self.rng.random()
        if dice < 0.2:
            return self.op('pd.logical_not', [self.pick(values, BOOL)], BOOL)
        if dice < 0.35:
            return self.op('pd.' + rng.choice(['logical_and', 'logical_or', 'logical_xor']),
                           [self.pick(values, BOOL), self.pick(values, BOOL)], BOOL)
        compare = 'pd.' + rng.choice(['less_than', 'less_equal', 'greater_than', 'equal', 'not_equal'])
        if dice < 0.6:
            return self.op(compare, [self.pick(values, ONE), self.pick(values, ONE)], BOOL)
        sums = [self.op('pd.sum', [self.pick(values, BIG)], ONE, ' {axis = [0], keepdim = true}') for _ in range(2)]
        return self.op(compare, sums, BOOL)

    # ---- tensor arrays: element 0 is always there

    def create_array(self, values):
        empty, zero = self.op('pd.create_array', [], ARRAY), self.constant(ONE, [0])
        return self.op('pd.array_write', [empty, zero, self.pick(values, BIG)], ARRAY)

    def array_statement(self, values):
        array, dice = self.pick(values, ARRAY), self.rng.random()
        zero = self.constant(ONE, [0])
        if dice < 0.3:
            return [self.op('pd.array_write', [array, zero, self.pick(values, BIG)], ARRAY)]
        length = self.op('pd.array_length', [array], ONE)
        if dice < 0.5:
            return [self.op('pd.array_write', [array, length, self.pick(values, BIG)], ARRAY)]
        if dice < 0.7:
            last = self.op('pd.subtract', [length, self.constant(ONE, [1])], ONE)
            return [length, self.op('pd.array_read', [array, last], BIG)]
        if dice < 0.85:
            return [self.op('pd.array_read', [array, zero], BIG)]
        return [self.joined(array)]

    def joined(self, array):
        """All elements, as one tensor, summed."""
        n, rows, sizes = self.count, self.name(), self.name()
        self.emit('%s, %s = pd.array_to_tensor(%s) {axis = 0, use_stack = true} : (%s) -> (tensor<?!r%d x 12 x i64>, tensor<?!s%d x i32>)'
                  % (rows, sizes, array[0], ARRAY, n, n))
        return self.op('pd.sum', [(rows, 'tensor<?!r%d x 12 x i64>' % n)], BIG, ' {axis = [0]}')

    # ---- regions

    def block(self, values, level):
        values = list(values)
        for _ in range(self.rng.randint(0, 4)):
            values += self.statement(values, level)
        return values

    def arguments(self, types):
        args = [(self.name(), t) for t in types]
        self.emit('^0(%s):' % ', '.join('%s: %s' % a for a in args))
        return args

    def end(self, op, values):
        self.emit('%s(%s) : (%s) -> ()' % (op, ', '.join(v for v, _ in values), ', '.join(t for _, t in values)))

    def trips(self, values):
        """How often a loop runs: known, or from data."""
        if self.rng.random() < 0.6:
            return self.constant(ONE, [self.rng.choice([0, 1, 2, 3, 4])])
        return self.op('pd.remainder', [self.pick(values, ONE), self.constant(ONE, [4])], ONE)

    def carried(self, n):
        types = [self.rng.choice(CARRIED) for _ in range(n)]
        if self.arrays and self.rng.random() < 0.3:
            types[0] = ARRAY
        if self.rng.random() < 0.5:  # of one type, so that they can change places
            types = [types[0]] * n
        return types

    def loop(self, values, level):
        rng = self.rng
        zero, one, trips = self.constant(ONE, [0]), self.constant(ONE, [1]), self.trips(values)
        types = [ONE] + self.carried(rng.randint(1, 5))
        inits = [zero] + [self.pick(values, t) for t in types[1:]]
        results = [(self.name(), t) for t in types]
        listed = ', '.join(types)
        self.emit('%s = pd.while(%s) : (%s) -> (%s) cond {' % (', '.join(r for r, _ in results), ', '.join(v for v, _ in inits),
                                                              listed, listed))
        self.depth += 1
        args = self.arguments(types)
        inner = self.block(values + args[1:], level + 2) if rng.random() < 0.2 else values + args[1:]
        go = self.op('pd.less_than', [args[0], trips], BOOL)
        if rng.random() < 0.2:  # a flag ends it early
            go = self.op('pd.logical_and', [go, self.condition(inner)], BOOL)
        passed = args[1:] if rng.random() < 0.7 else [self.pick(inner, t) for t in types[1:]]
        self.end('cf.cond_yield', [go, args[0]] + passed)
        self.depth -= 1
        self.emit('} body {')
        self.depth += 1
        args = self.arguments(types)
        inner = self.block(values + args, level + 1)
        if ARRAY in types and rng.random() < 0.8:  # position i mostly exists or is the next one
            inner.append(self.op('pd.array_write', [next(a for a in args if a[1] == ARRAY), args[0], self.pick(inner, BIG)], ARRAY))
        step = self.op('pd.add', [args[0], one], ONE)
        near = inner[len(values):]
        self.end('cf.yield', [step] + [self.pick(near, t) for t in types[1:]])
        self.depth -= 1
        self.emit('}')
        return results[1:]

    def growing_loop(self, values):
        """A variable that gets a row longer every round; its sum is a value like others."""
        n = self.count
        slot, longer, row = 'tensor<?!g%d x 12 x i64>' % n, 'tensor<[?!g%d + 1] x 12 x i64>' % n, 'tensor<1 x 12 x i64>'
        zero, one, trips = self.constant(ONE, [0]), self.constant(ONE, [1]), self.trips(values)
        start = self.op('pd.reshape', [self.pick(values, BIG)], row, ' {shape = dims [1, 12]}')
        results = [(self.name(), ONE), (self.name(), slot)]
        self.emit('%s, %s = pd.while(%s, %s) : (%s, %s) -> (%s, %s) cond {' % (results[0][0], results[1][0], zero[0], start[0], ONE, row,
                                                                              ONE, slot))
        self.depth += 1
        args = self.arguments([ONE, slot])
        self.end('cf.cond_yield', [self.op('pd.less_than', [args[0], trips], BOOL)] + args)
        self.depth -= 1
        self.emit('} body {')
        self.depth += 1
        args = self.arguments([ONE, slot])
        new = self.op('pd.reshape', [self.simple(values, BIG)], row, ' {shape = dims [1, 12]}')
        both = self.op('builtin.combine', [args[1], new], 'vec<%s, %s>' % (slot, row))
        longer = self.op('pd.concat', [both], longer, ' {axis = 0}')
        self.end('cf.yield', [self.op('pd.add', [args[0], one], ONE), longer])
        self.depth -= 1
        self.emit('}')
        return [self.op('pd.sum', [results[1]], BIG, ' {axis = [0]}')]

    def branch(self, values, level):
        types = self.carried(self.rng.randint(1, 4))
        if self.rng.random() < 0.15:
            return self.chain(values, level, types)
        cond = self.condition(values)
        results = [(self.name(), t) for t in types]
        self.emit('%s = pd.if(%s) : (%s) -> (%s) then {' % (', '.join(r for r, _ in results), cond[0], BOOL, ', '.join(types)))
        for side in range(2):
            self.depth += 1
            inner = self.block(values, level + 1)
            self.end('cf.yield', [self.pick(inner, t) for t in types])
            self.depth -= 1
            self.emit('}' if side else '} else {')
        return results

    def chain(self, values, level, types):
        """A switch as Paddle builds it: one if in the else of the other, on one number and constants."""
        rng = self.rng
        number = self.op('pd.remainder', [self.pick(values, ONE), self.constant(ONE, [4])], ONE)
        conds = [self.op('pd.equal', [number, self.constant(ONE, [rng.randint(0, 4)])], BOOL) for _ in range(rng.randint(2, 4))]
        opened = []
        for cond in conds:
            opened.append([(self.name(), t) for t in types])
            self.emit('%s = pd.if(%s) : (%s) -> (%s) then {' % (', '.join(r for r, _ in opened[-1]), cond[0], BOOL, ', '.join(types)))
            self.depth += 1
            self.end('cf.yield', [self.pick(self.block(values, level + 2), t) for t in types])
            self.depth -= 1
            self.emit('} else {')
            self.depth += 1
        given = [self.pick(self.block(values, level + 2), t) for t in types]
        for results in reversed(opened):
            self.end('cf.yield', given)
            self.depth -= 1
            self.emit('}')
            given = results
        return opened[0]

    def module(self):
        types = [BIG, BIG, BIG, ONE] + [self.rng.choice(CARRIED) for _ in range(3)]
        values = [self.feed(t) if self.rng.random() < 0.6 else self.constant(t, self.numbers(t)) for t in types]
        while len(values) < 12:
            values += self.statement(values, 0)
        fetched = [v for v in values[7:] if v[1] != ARRAY][-6:]
        for col, (v, t) in enumerate(fetched):
            self.emit('pd.fetch(%s) {col = %d, name = "out%d"} : (%s) -> ()' % (v, col, col, t))
        return 'builtin.module {\n' + '\n'.join(self.lines) + '\n}\n'


# ---- arrays in files ------------------------------------------------------------------------------------------------

def npy(type, values):
    dtype, shape = dtype_of(type), SHAPES[type]
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (DESCR[dtype], repr(shape))
    head += ' ' * (-(len(head) + 11) % 64) + '\n'
    return b'\x93NUMPY\x01\0' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<%d%s' % (len(values), LETTERS[dtype]), *values)


def same_array(a, b):
    """The same type, sizes and bytes, but for the bits of a NaN."""
    heads, data = [], []
    for t in (a, b):
        n = 10 + struct.unpack('<H', t[8:10])[0]
        heads.append(ast.literal_eval(t[10:n].decode()))
        data.append(t[n:])
    letter = {'<f4': 'f', '<f8': 'd'}.get(heads[0]['descr'])
    if heads[0] != heads[1] or data[0] == data[1] or not letter:
        return heads[0] == heads[1] and data[0] == data[1]
    return len(data[0]) == len(data[1]) and all(
        x == y or (x != x and y != y) for (x,), (y,) in zip(*(struct.iter_unpack('<' + letter, d) for d in data)))


# ---- running ----------------------------------------------------------------------------------------------------------

def call(cmd, timeout=60, env={}):
    """Exit status and text; a signal or time limit is a negative status."""
    try:
        p = subprocess.run([str(c) for c in cmd], env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=timeout)
        return p.returncode, p.stdout.decode(errors='replace')
    except subprocess.TimeoutExpired:
        return -1, 'timeout'


HOLE = 'is missing, or has another rank'


class Case:
    """One program on its way through the stages; `why` says what went wrong, and is None as long as nothing did."""

    def __init__(self, o, folder, number, text, feeds):
        self.o, self.folder, self.number, self.text = o, folder / str(number), number, text
        self.folder.mkdir(parents=True)
        self.file, self.why, self.message, self.skipped = self.folder / 'p.pdir', None, '', False
        self.file.write_text(text)
        self.inputs = []
        for name, type, values in feeds:
            (self.folder / (name + '.npy')).write_bytes(npy(type, values))
            self.inputs.append('%s=%s' % (name, self.folder / (name + '.npy')))

    def fail(self, why, message=''):
        self.why, self.message = why, message

    def interpret(self):
        how = ['run'] if self.o.cuda else ['verify', '--isa', self.o.isa]
        cmd = [self.o.pdcc, *how, self.file, '--target', 'interp', '--out-dir', self.folder / 'want', *self.o.bounds]
        for i in self.inputs:
            cmd += ['--in', i]
        status, text = call(cmd)
        if status == 1 and self.is_wrong(text):
            self.skipped = True
        elif status:
            self.fail('pass' if status == 1 else 'crash', text)

    def is_wrong(self, text):
        """Whether the program itself stacks an array with a hole: a loop may drop the array that it wrote to."""
        if HOLE not in text:
            return False
        cmd = [self.o.pdcc, 'run', self.file, '--target', 'interp', '--out-dir', self.folder / 'plain', *self.o.bounds]
        for i in self.inputs:
            cmd += ['--in', i]
        status, text = call(cmd)
        return status == 1 and HOLE in text

    def generate(self):
        status, text = call([self.o.pdcc, self.file, '-o', self.folder / ('p%d.c' % self.number), '--isa', self.o.isa, '--weights', 'inline',
                             *self.o.bounds])
        if status:
            self.fail('code', text)

    def emulate(self):
        """As CUDA, threads in an order of its own."""
        cmd = [self.o.pdcc, 'run', self.file, '--target', 'cuda', '--out-dir', self.folder / 'got', *self.o.bounds]
        for i in self.inputs:
            cmd += ['--in', i]
        status, text = call(cmd, 300, {'PDCC_EMULATE': '1', 'CUDAEMU_SEED': str(self.number)})
        if status:
            self.fail('cuda', text)
        else:
            self.compare()

    def compare(self):
        want, got = ({f.name: f for f in sorted((self.folder / d / '0').glob('*.npy'))} for d in ('want', 'got'))
        if set(want) != set(got):
            return self.fail('cuda' if self.o.cuda else 'c', 'outputs %s and %s' % (sorted(want), sorted(got)))
        for name in want:
            if not same_array(want[name].read_bytes(), got[name].read_bytes()):
                return self.fail('cuda' if self.o.cuda else 'c', 'generated code gives another %s' % name)


DISPATCH = '''#include "pdrt.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
%s
static const pd_model_info *(*const models[])(void) = {%s};
static int current;
const pd_model_info *model_info(void) { return models[current](); }
int harness_main(int argc, char **argv);
/* Every line of standard input: the number of a model and the arguments for it. */
int main(void)
{
	static char line[1 << 16];
	while (fgets(line, sizeof line, stdin)) {
		char *argv[64];
		int argc = 0;
		for (char *p = strtok(line, " \\n"); p && argc < 63; p = strtok(NULL, " \\n"))
			argv[argc++] = p;
		argv[argc] = NULL;
		sscanf(argv[0], "%%d", &current);
		fflush(stdout);
		int status = 0;
		pid_t child = fork();
		if (child == 0) {
			dup2(1, 2);
			alarm(20);
			return harness_main(argc, argv);
		}
		waitpid(child, &status, 0);
		printf("\\nDONE %%d %%d\\n", current, status);
	}
	return 0;
}
'''


def run_code(o, folder, cases):
    """Builds the C of many programs as one, and runs each."""
    (folder / 'model.h').write_text('#include "pdrt.h"\n#include <stddef.h>\nconst pd_model_info *model_info(void);\n')
    stub = HERE.parent.parent / 'runtime_stub'
    for path in (stub / 'pdrt.h', stub / 'pdrt.c', *stub.glob('harness*')):
        shutil.copy(path, folder)
    names = ['p%d_info' % c.number for c in cases]
    (folder / 'dispatch.c').write_text(DISPATCH % ('\n'.join('const pd_model_info *%s(void);' % n for n in names), ', '.join(names)))
    simd = ['-march=native'] if o.isa == 'native' else []  # generated code asks for what it needs
    cc = [o.cc, '-std=gnu11', '-w', *o.cflags.split(), *simd, '-I', folder]
    objects = []
    for c in cases:
        status, text = call([*cc, '-c', c.folder / ('p%d.c' % c.number), '-o', c.folder / 'p.o'], 300)
        if status:
            return c.fail('compiler', text)
        objects.append(c.folder / 'p.o')
    status, text = call([*cc, '-Dmain=harness_main', '-c', folder / 'harness.c', '-o', folder / 'harness.o'])
    if not status:
        status, text = call([*cc, folder / 'dispatch.c', folder / 'pdrt.c', folder / 'harness.o', *objects, '-o', folder / 'all', '-lm'], 300)
    if status:
        sys.exit('control.py: ' + text)
    lines = [' '.join([str(i), '--redzone', '--out-dir', str(c.folder / 'got')] + [w for f in c.inputs for w in ('--in', f)])
             for i, c in enumerate(cases)]
    p = subprocess.run([str(folder / 'all')], input='\n'.join(lines) + '\n', stdout=subprocess.PIPE, text=True, errors='replace')
    done, at = {}, 0
    for m in re.finditer(r'\nDONE (\d+) (\d+)\n', p.stdout):
        done[int(m[1])] = int(m[2]), p.stdout[at:m.start()]
        at = m.end()
    for i, c in enumerate(cases):
        status, text = done.get(i, (1, 'it did not run'))
        c.fail('c', text) if status else c.compare()


def run_batch(o, folder, programs):
    """The cases of (number, text, feeds), all stages done."""
    cases = [Case(o, folder, *p) for p in programs]
    for c in cases:
        c.interpret()
        if not c.why and not c.skipped:
            c.emulate() if o.cuda else c.generate()
    ready = [c for c in cases if not c.why and not c.skipped and not o.cuda]
    while ready and not any(c.why == 'c' for c in ready):
        run_code(o, folder, ready)
        if not any(c.why == 'compiler' for c in ready):
            break
        ready = [c for c in ready if not c.why]
    return cases


def fuzz(o):
    failed = skipped = 0
    for first in range(o.seed, o.seed + o.count, o.batch):
        with tempfile.TemporaryDirectory() as tmp:
            numbers = range(first, min(first + o.batch, o.seed + o.count))
            made = [(n, Program(n)) for n in numbers]
            for c in run_batch(o, pathlib.Path(tmp), [(n, p.text, p.feeds) for n, p in made]):
                skipped += c.skipped
                if c.why:
                    failed += 1
                    kept = pathlib.Path(o.keep) / ('control-%d.pdir' % c.number)
                    kept.write_text(c.text)
                    print('seed %d: %s: %s\n%s' % (c.number, c.why, kept, c.message[:800]), flush=True)
    print('%d passed, %d failed, %d skipped' % (o.count - failed - skipped, failed, skipped))
    return failed != 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('pdcc')
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--count', type=int, default=100)
    ap.add_argument('--batch', type=int, default=100)
    ap.add_argument('--keep', default='.')
    ap.add_argument('--cuda', action='store_true')
    ap.add_argument('--isa', default='generic')
    ap.add_argument('--cc', default='cc')
    ap.add_argument('--cflags', default='-O1')
    ap.add_argument('--bounds', default='', type=str.split, help='further options for both, as --max-trip')
    ap.add_argument('--print', type=int)
    ap.add_argument('--shrink')
    o = ap.parse_args()
    if o.print is not None:
        print(Program(o.print).text, end='')
        return 0
    if o.shrink:
        import shrink
        return shrink.main(o)
    return fuzz(o)


if __name__ == '__main__':
    sys.exit(main())
