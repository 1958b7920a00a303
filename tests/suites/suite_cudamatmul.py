"""Matrix products for CUDA: every row of the schedule table and what the layout pass makes of products, on the emulator and in the
interpreter, against numpy; bank conflicts; with nvcc, that it compiles under the gates, uses tensor cores where it should, and copies
straight to shared memory."""
import re

import emulated
from pdcc_tests import SRC, run
from suite_cuda import tensor_cores

SLOW = True
TOLERANCE = {'f32': 1e-5, 'tf32': 2e-3, 'f16': 2e-3, 'bf16': 2e-2}


class Case:
    """A product of a and b, which are made by another operation, so that their rows are aligned where their length allows it, or are
    feeds (`direct`); as kernel.matmul with this schedule, or as pd.matmul. `open`: names of sizes of a that the program leaves open."""

    def __init__(self, name, a, b, ta=False, tb=False, schedule=None, split=1, dtype='f32', direct=False, residual=False, open=''):
        self.name, self.a, self.b, self.ta, self.tb, self.schedule, self.split = name, a, b, ta, tb, schedule, split
        self.dtype, self.direct, self.residual = dtype, direct, residual
        m, n, k = a[-1 if ta else -2], b[-2 if tb else -1], a[-2 if ta else -1]
        lead = [max(x, y) for x, y in zip(([1] * 9 + list(a[:-2]))[-9:], ([1] * 9 + list(b[:-2]))[-9:])]
        self.out, self.k = lead[9 - max(len(a), len(b)) + 2:] + [m, n], k
        self.open = {i: f'?{c}' for i, c in enumerate(open) if c != '.'}

    def feeds(self, np, random):
        return [(name, random.standard_normal(dims).astype(np.float32)) for name, dims in (('a', self.a), ('b', self.b))]

    def text(self, i, column):
        t = self.dtype
        dims = self.open_dims(i)
        out = [dims[d] if d in self.open else str(size) for d, size in enumerate(self.out)]
        tensor = lambda dims, t: f'tensor<{" x ".join(map(str, dims))} x {t}>'
        rows, names = [], {}
        for at, (name, dims) in enumerate((('a', dims), ('b', self.b))):
            rows.append(f'  %{name}{i} = pd.feed() {{name = "{name}_{i}", col = {column + at}}} : () -> ({tensor(dims, "f32")})')
            names[name] = f'%{name}{i}'
            if t != 'f32' or not self.direct:
                names[name] = f'%{name}t{i}'
                how = f'pd.cast(%{name}{i}) {{dtype = {t}}}' if t != 'f32' else f'pd.abs(%{name}{i})'
                rows.append(f'  {names[name]} = {how} : ({tensor(dims, "f32")}) -> ({tensor(dims, t)})')
        types = f'({tensor(self.open_dims(i), t)}, {tensor(self.b, t)})'
        flags = f'transpose_%s = {str(self.ta).lower()}, transpose_%s = {str(self.tb).lower()}'
        if self.schedule:
            parts = ([self.split] if self.split > 1 else []) + out
            args = ''.join(f', %i{d}: index' for d in range(len(parts)))
            kind = 'f32' if self.split > 1 else t
            rows.append(f'  %p{i} = kernel.matmul({names["a"]}, {names["b"]}) {{schedule = "{self.schedule}", split = {self.split}, '
                        f'{flags % ("a", "b")}}} : {types} -> ({tensor(parts, kind)}) {{\n    ^0(%acc: {kind}{args}):\n'
                        f'      loop.yield(%acc) : ({kind}) -> ()\n  }}')
            if self.split > 1:
                rows.append(f'  %c{i} = pd.sum(%p{i}) {{axis = [0]}} : ({tensor(parts, kind)}) -> ({tensor(out, kind)})')
                t = kind
            last = f'%c{i}' if self.split > 1 else f'%p{i}'
        else:
            rows.append(f'  %p{i} = pd.matmul({names["a"]}, {names["b"]}) {{{flags % ("x", "y")}}} : {types} -> ({tensor(out, t)})')
            last = f'%p{i}'
        if self.residual:
            rows.append(f'  %s{i} = pd.add({last}, {names["a"]}) : ({tensor(out, t)}, {tensor(self.open_dims(i), t)}) -> ({tensor(out, t)})')
            rows.append(f'  %t{i} = pd.tanh(%s{i}) : ({tensor(out, t)}) -> ({tensor(out, t)})')
            last = f'%t{i}'
        if t != 'f32':
            rows.append(f'  %f{i} = pd.cast({last}) {{dtype = f32}} : ({tensor(out, t)}) -> ({tensor(out, "f32")})')
            last = f'%f{i}'
        rows.append(f'  pd.fetch({last}) {{name = "r{i}", col = {i}}} : ({tensor(out, "f32")}) -> ()')
        return rows

    def open_dims(self, i):
        return [f'{self.open[d]}_{i}' if d in self.open else str(size) for d, size in enumerate(self.a)]

    def want(self, a, b):
        import numpy as np
        if self.dtype == 'f32' and not self.direct:
            a, b = np.abs(a), np.abs(b)
        x, y = (np.swapaxes(v.astype(np.float64), -1, -2) if turned else v.astype(np.float64) for v, turned in ((a, self.ta), (b, self.tb)))
        r = np.matmul(x, y)
        return np.tanh(r + a) if self.residual else r


def transposed(ta, tb, m, k, n):
    return ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n)), ta, tb


def cases(rows):
    """For each row of the table, operands along and across the depth, aligned and not, tails on all sides."""
    for name, rows_, columns in rows:
        if name.startswith('row'):
            yield Case(f'{name}, one', (1, 260), (columns * 3 + 1, 260), tb=True, schedule=name)
            yield Case(f'{name}, odd depth, batches', (2, 5, 131), (2, columns + 1, 131), tb=True, schedule=name)
            yield Case(f'{name}, all rows', (8, 100), (3, columns, 100), tb=True, schedule=name)
            continue
        for dtype in ('bf16', 'f16') if name.startswith('half') else ('f32',):
            yield Case(f'{name} {dtype}', *transposed(False, False, rows_ + 8, 40, columns + 8), schedule=name, dtype=dtype)
            yield Case(f'{name} {dtype}, odd, transposed', *transposed(True, True, rows_ - 3, 37, columns + 1), schedule=name, dtype=dtype)
        yield Case(f'{name}, transposed', *transposed(True, True, rows_, 64, columns), schedule=name, dtype=dtype)
        yield Case(f'{name}, split', *transposed(False, True, 9, 130, 11), schedule=name, dtype=dtype, split=3)
    yield Case('bias of rows', (5, 24, 24), (24, 24), residual=True)
    yield Case('batches', (2, 3, 20, 33), (2, 3, 33, 18))
    yield Case('a broadcasts', (2, 1, 12, 20), (3, 20, 9))
    yield Case('a matrix, many b', (12, 20), (2, 3, 20, 9))
    yield Case('b broadcasts, transposed', (3, 20, 12), (20, 9), ta=True)
    yield Case('open rows', (37, 20), (20, 30), direct=True, open='n')
    yield Case('open batch and rows', (2, 3, 7, 12), (30, 12), tb=True, open='n.m')
    yield Case('half, residual', (40, 16), (16, 16), dtype='f16', residual=True)
    yield Case('half, deep', (20, 600), (600, 20), dtype='bf16')
    yield Case('deep', (20, 1100), (1100, 20), direct=True)
    yield Case('few rows', (2, 3, 80), (50, 80), tb=True)
    yield Case('one row', (1, 300), (1030, 300), tb=True, direct=True)
    yield Case('no depth', (12, 0), (0, 20), direct=True)


def table():
    text = (SRC / 'lower/target/cuda_schedule.c').read_text()
    rows = re.findall(r'\.name = "(\w+)",[^}]*?\.rows = (\d+),\s+\.columns = (\d+)', text)
    return [(name, int(m), int(n)) for name, m, n in rows]


def products(program, *flags):
    """In the interpreter and emulated, where flags are for the latter, against numpy."""
    import numpy as np
    for target in ('interp', 'cuda'):
        p = program.run(target, target, *(flags if target == 'cuda' else ()))
        yield f'{target} {flags}: runs', p.returncode == 0, p.stdout[-3000:]
        for case, given, have in zip(program.cases, program.given, program.results(target) if p.returncode == 0 else ()):
            kind = 'tf32' if case.schedule and case.schedule.startswith('tf32') or flags and case.dtype == 'f32' else case.dtype
            want, scale = case.want(*given), TOLERANCE[kind] * max(1, case.k) ** 0.5 * 4
            yield f'{target} {flags}: {case.name}', have.shape == want.shape and np.allclose(have, want, rtol=TOLERANCE[kind] * 4, atol=scale), \
                f'{have}\n{want}'


def shared_memory(t, tmp, rows):
    """Nobody waits for a bank, however operands lie; more shared memory than all devices have is asked for, and may not be there."""
    sizes, report = {name: (m, n) for name, m, n in rows}, tmp / 'report'

    def run_counted(name, dtype, turns, **env):
        m, n = sizes[name]
        some = [Case(name, *transposed(ta, tb, m, 64, n), schedule=name, dtype=dtype) for ta in turns for tb in turns]
        report.unlink(missing_ok=True)
        p = emulated.Program(t, tmp, some).run('cuda', 'counted', CUDAEMU_REPORT=str(report), **env)
        return p, dict(line.split() for line in report.read_text().splitlines()) if report.exists() else {}

    for name, dtype in (('half_64x64', 'f16'), ('tf32_64x64', 'f32'), ('fma_64x64', 'f32')):
        p, counts = run_counted(name, dtype, (False, True), CUDAEMU_BANKS='1')
        yield f'{name}: no bank conflicts', int(counts.get('shared_accesses', 0)) > 100 and counts['bank_conflicts'] == '0', f'{counts}\n{p.stdout}'
    p, counts = run_counted('half_128x128', 'f16', (False,))
    yield 'more than 48 KiB are asked for', p.returncode == 0 and counts.get('cudaFuncSetAttribute') == '1', f'{counts}\n{p.stdout}'
    p, _ = run_counted('half_128x128', 'f16', (False,), CUDAEMU_FAIL='cudaFuncSetAttribute:1:cudaErrorInvalidValue')
    yield ('and not there: a status', p.returncode == 1 and 'the accelerator reported a failure: cudaErrorInvalidValue in compute_' in p.stdout,
           p.stdout)


def suite(t):
    with emulated.folder() as tmp:
        some = list(cases(table()))
        yield from products(emulated.Program(t, tmp, some))
        yield from products(emulated.Program(t, tmp, [c for c in some if not c.schedule]), '--allow-tf32')
        yield from shared_memory(t, tmp, table())
        if t.config.get('NVCC'):
            some = emulated.Program(t, tmp, [c for c in some if c.schedule and c.name.endswith(('32', '16', ', odd, transposed', 'all rows'))])
            yield from tensor_cores(t, some.model)
            ptx = some.model.with_suffix('.ptx')
            yield 'copies to shared memory', ptx.exists() and re.search(r'cp\.async\.cg\.shared\.global \[\S+\], \[\S+\], 16', ptx.read_text()), ''
