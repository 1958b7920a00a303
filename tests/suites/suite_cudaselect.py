"""Sorting, NMS and scans for CUDA on the emulator, against the interpreter: rows that fit into shared memory and others, equal
values, NaN, few of many; boxes whose threshold shrinks; scans along any axis."""
import emulated
from pdcc_tests import run

SLOW = True


def tensor(dims, dtype='f32'):
    return 'tensor<' + ' x '.join(map(str, dims)) + f' x {dtype}>'


class Case:
    """Operands by name, and the operations on them as text; `outputs` are fetched, with their types."""

    def __init__(self, name, operands, text, outputs):
        self.name, self.operands, self.text, self.outputs = name, operands, text, outputs


def sort(name, rows, length, limit, attrs='', levels=None, dtype='f32', open_sizes=False):
    def make(np, random):
        x = random.standard_normal((rows, length)) if levels is None else random.integers(0, levels, (rows, length))
        x = x.astype({'f32': np.float32, 'f16': np.float16, 'f64': np.float64, 'i64': np.int64}[dtype])
        if levels is None:
            x[0, :: 7], x[0, 1 :: 11] = np.nan, -np.inf
        return {'x': x}
    s = '?s' if open_sizes else length
    t, o, c = tensor([rows, s], dtype), tensor([rows, s if open_sizes and limit == length else limit], 'i64'), tensor([rows], 'i32')
    return Case(name, [('x', t, make)], [f'%o, %c = kernel.sort(%x) {{{attrs}}} : ({t}) -> ({o}, {c})'], [('o', o), ('c', c)])


def nms(name, sets, rows, boxes, limit, attrs):
    def make(np, random):
        corners = random.random((sets, boxes, 2)) * 8
        x = np.concatenate([corners, corners + random.random((sets, boxes, 2)) * 3], -1).astype(np.float32)
        x[0, 3] = np.nan
        order = np.stack([random.permutation(boxes)[:limit] for _ in range(rows)]).astype(np.int32)
        return {'b': x, 'o': order, 'n': np.array([limit - 3 * i for i in range(rows)], np.int32).clip(0)}
    b, o, n = tensor([sets, boxes, 4]), tensor([rows, limit], 'i32'), tensor([rows], 'i32')
    return Case(name, [('b', b, make), ('o', o, None), ('n', n, None)],
                [f'%k, %m = kernel.nms(%b, %o, %n) {{{attrs}}} : ({b}, {o}, {n}) -> ({o}, {n})'], [('k', o), ('m', n)])


def scan(name, dims, kind, axis, dtype='f32', attrs='', place=False):
    def make(np, random):
        x = random.standard_normal(dims) if dtype[0] == 'f' else random.integers(-4, 5, dims)
        return {'x': x.astype({'f32': np.float32, 'f16': np.float16, 'f64': np.float64, 'i32': np.int32, 'i64': np.int64}[dtype])}
    t = tensor(['?s' if d < 0 else d for d in dims], dtype)
    dims = [-d if d < 0 else d for d in dims]
    i = tensor(['?s' if '?' in t and k == 0 else d for k, d in enumerate(dims)], 'i64')
    results = [('y', t)] + ([('i', i)] if place else [])
    types = ', '.join(r for _, r in results)
    return Case(name, [('x', t, make)], [f'{", ".join("%" + n for n, _ in results)} = kernel.scan(%x) {{axis = {axis}, kind = "{kind}"{attrs}}} : '
                                         f'({t}) -> ({types})'], results)


CASES = (
    sort('a row that fits', 3, 100, 100),
    sort('few of a long row', 2, 5000, 7, 'descending = true'),
    sort('a long row', 2, 4500, 4500),
    sort('a long row of equal values', 2, 5000, 5000, 'descending = true', levels=9, dtype='i64'),
    sort('many of a longer row', 2, 9000, 2500, 'descending = true'),
    sort('those above a border', 2, 5000, 5000, 'above = 0.5, descending = true'),
    sort('an open row', 2, 3000, 3000, dtype='f64', open_sizes=True),
    sort('an open row that is short', 3, 50, 50, dtype='f16', open_sizes=True),
    scan('sums, four at once', [3, 2600], 'sum', 1),
    scan('sums of f16 from the end, eight at once', [2, 320], 'sum', 1, 'f16', ', reverse = true'),
    scan('sums of one row of any length', [-1029], 'sum', 0, 'i64', ', exclusive = true'),
    scan('products of short rows, one by one', [5, 33], 'prod', 1, 'f64', ', reverse = true'),
    scan('the largest and where, four at once', [2, 72], 'max', 1, 'i32', place=True),
    scan('the smallest and where, from the end', [3, 132], 'min', 1, 'f32', ', reverse = true', place=True),
    scan('logarithms of sums', [4, 1100, 3], 'logsumexp', 1),
    nms('boxes', 1, 3, 700, 600, 'threshold = 0.3'),
    nms('boxes, the threshold shrinks', 2, 2, 300, 280, 'threshold = 0.9, eta = 0.98, pixels = true'),
    nms('no boxes', 1, 2, 5, 1, 'threshold = 0.5'),
)


def model_text(np, random, tmp):
    rows, feeds, column, fetched = ['builtin.module {'], [], 0, []
    for i, case in enumerate(CASES):
        for name, t, make in case.operands:
            rows.append(f'  %{name}{i} = pd.feed() {{name = "{name}_{i}", col = {column}}} : () -> ({t})'.replace('?s', f'?s{i}'))
            column += 1
            for value_name, value in (make(np, random) if make else {}).items():
                np.save(tmp / f'{value_name}_{i}.npy', value)
                feeds += ['--in', f'{value_name}_{i}={tmp / f"{value_name}_{i}.npy"}']
        for line in case.text:
            for name in [n for n, *_ in case.operands] + [n for n, _ in case.outputs]:
                line = line.replace(f'%{name},', f'%{name}{i},').replace(f'%{name})', f'%{name}{i})').replace(f'%{name} ', f'%{name}{i} ')
            rows.append('  ' + line.replace('?s', f'?s{i}'))
        for name, t in case.outputs:
            rows.append(f'  pd.fetch(%{name}{i}) {{name = "{name}{i}", col = {len(fetched)}}} : ({t}) -> ()'.replace('?s', f'?s{i}'))
            fetched.append(f'{case.name}: {name}')
    return '\n'.join(rows + ['}', '']), feeds, fetched


def suite(t):
    import numpy as np
    random = np.random.default_rng(1)
    with emulated.folder() as tmp:
        text, feeds, fetched = model_text(np, random, tmp)
        model = tmp / 'model.pdir'
        model.write_text(text)
        for name, target in (('want', 'interp'), ('have', 'cuda')):
            p = run([t.pdcc, 'run', model, '--target', target, '--out-dir', tmp / name, *feeds], env=emulated.environment(CUDAEMU_SEED='2'))
            yield f'{target}: runs', p.returncode == 0, p.stdout[-3000:]
        for i, name in enumerate(fetched):
            have, want = (np.load(tmp / d / f'0/{i}.npy') for d in ('have', 'want'))
            # the interpreter adds in double
            near = have.dtype.kind == 'f' and np.allclose(have, want, rtol=4e-3 if have.dtype == np.float16 else 1e-4, atol=1e-4)
            yield name, near or np.array_equal(have, want), f'{have}\n{want}'
