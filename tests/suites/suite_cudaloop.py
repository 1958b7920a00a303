"""Loops of generated CUDA on the emulator, in all forms: one kernel of one block, conditional nodes, and guarded rounds where
there are no such nodes. The same values as the interpreter's under several orders of threads, nothing asked by the host
where nodes are, and about one word for each eight rounds where they are not; failures are statuses."""
import re

import emulated
from pdcc_tests import SRC, run

SLOW = True
N = 'tensor<1 x i64>'
NO_NODES = {'CUDAEMU_FAIL': 'cudaGraphConditionalHandleCreate:1:cudaErrorNotSupported'}
OLD_DRIVER = {'CUDAEMU_DRIVER': '12040'}  # has conditional nodes, but not all that the toolkit has
TOO_LATE = {'CUDAEMU_FAIL': 'cudaGraphInstantiate:1:cudaErrorCallRequiresNewerDriver'}
FORMS = (('nodes', {}), ('no nodes', NO_NODES), ('late', TOO_LATE), ('old driver', OLD_DRIVER))
# Recorded programs with loops and branches of several kinds.
CASES = ('array-nested-while', 'beam-search-dense', 'cond-diff-shape', 'ifelse-split-merge', 'rnn-lstm-bi', 'while-3',
         'while-lod-array-len0', 'while-set-value', 'while-shrink')


def program(wide):
    """x goes round n times; an if in each round, a loop of two rounds inside of it, rows kept in an array of room 6. One
    block does 8 elements, and no longer 40000."""
    x = f'tensor<{wide} x f32>'
    rows = f'tensor<6 x {wide} x f32>'
    return f'''builtin.module {{
  %n = pd.feed() {{col = 0, name = "n"}} : () -> ({N})
  %x = pd.feed() {{col = 1, name = "x"}} : () -> ({x})
  %zero = pd.full() {{dtype = i64, shape = dims [1], value = 0.0}} : () -> ({N})
  %two = pd.full() {{dtype = i64, shape = dims [1], value = 2.0}} : () -> ({N})
  %none = pd.full() {{dtype = f32, shape = dims [6, {wide}], value = 0.0}} : () -> ({rows})
  %last, %y, %kept = pd.while(%zero, %x, %none) : ({N}, {x}, {rows}) -> ({N}, {x}, {rows}) cond {{
    ^0(%i: {N}, %v: {x}, %r: {rows}):
      %less = pd.less_than(%i, %n) : ({N}, {N}) -> (tensor<1 x bool>)
      cf.cond_yield(%less, %i, %v, %r) : (tensor<1 x bool>, {N}, {x}, {rows}) -> ()
  }} body {{
    ^0(%i: {N}, %v: {x}, %r: {rows}):
      %rest = pd.remainder(%i, %two) : ({N}, {N}) -> ({N})
      %odd = pd.cast(%rest) {{dtype = bool}} : ({N}) -> (tensor<1 x bool>)
      %a = pd.if(%odd) : (tensor<1 x bool>) -> ({x}) then {{
          %j, %b = pd.while(%zero, %v) : ({N}, {x}) -> ({N}, {x}) cond {{
            ^0(%k: {N}, %w: {x}):
              %fewer = pd.less_than(%k, %i) : ({N}, {N}) -> (tensor<1 x bool>)
              cf.cond_yield(%fewer, %k, %w) : (tensor<1 x bool>, {N}, {x}) -> ()
          }} body {{
            ^0(%k: {N}, %w: {x}):
              %more = pd.add(%k, %two) : ({N}, {N}) -> ({N})
              %c = pd.scale(%w) {{scale = 0.5, bias = 1.0}} : ({x}) -> ({x})
              cf.yield(%more, %c) : ({N}, {x}) -> ()
          }}
          cf.yield(%b) : ({x}) -> ()
      }} else {{
          %d = pd.cumsum(%v) {{axis = 0}} : ({x}) -> ({x})
          %e = pd.tanh(%d) : ({x}) -> ({x})
          cf.yield(%e) : ({x}) -> ()
      }}
      %s = loop.update(%r, %i, %a) {{fixed = true}} : ({rows}, {N}, {x}) -> ({rows})
      %next = pd.scale(%i) {{bias = 1.0}} : ({N}) -> ({N})
      cf.yield(%next, %a, %s) : ({N}, {x}, {rows}) -> ()
  }}
  pd.fetch(%y) {{col = 0, name = "y"}} : ({x}) -> ()
  pd.fetch(%kept) {{col = 1, name = "kept"}} : ({rows}) -> ()
}}
'''


class Program:
    """One of them, run again and again."""

    def __init__(self, t, tmp, wide):
        import numpy as np
        self.t, self.tmp, self.np, self.rows = t, tmp, np, False  # rows: n is how many there are
        self.model = tmp / f'loop{wide}.pdir'
        self.model.write_text(program(wide))
        np.save(tmp / f'x{wide}.npy', np.random.default_rng(3).standard_normal(wide).astype(np.float32))
        self.x = tmp / f'x{wide}.npy'

    def given(self, n):
        at = self.tmp / f'n{n}.npy'
        self.np.save(at, self.np.zeros(n, self.np.int64) if self.rows else self.np.array([n], self.np.int64))
        return ['--in', f'n={at}', '--in', f'x={self.x}']

    def values(self, target, out, *runs, flags=(), **env):
        """What came out of each run, and the calls of the API; None after a failure, with its message."""
        report = self.tmp / 'report'
        report.unlink(missing_ok=True)
        given = self.given(runs[0])
        for n in runs[1:]:
            given += ['--next', *self.given(n)]
        p = run([self.t.pdcc, 'run', self.model, '--target', target, *given, *flags, *emulated.QUICK, '--out-dir', self.tmp / out],
                env=emulated.environment(CUDAEMU_REPORT=str(report), CUDAEMU_RACES='1', **env))
        calls = {k: int(v) for k, v in (line.split() for line in report.read_text().splitlines())} if report.exists() else {}
        if p.returncode:
            return None, p.stdout, calls
        load = self.np.load
        return [[load(self.tmp / out / str(r) / f'{c}.npy') for c in range(2)] for r in range(len(runs))], p.stdout, calls


def close(np, a, b):
    return a is not None and b is not None and all(np.allclose(x, y, rtol=1e-5, atol=1e-5) for r, s in zip(a, b) for x, y in zip(r, s))


def forms(t, tmp):
    """In each form the values of the interpreter."""
    for wide, kernel in ((8, True), (40000, False)):
        p = Program(t, tmp, wide)
        text = tmp / 'model.cu'
        run([t.pdcc, p.model, '-o', text])
        yield f'{wide} elements: the form of the loop', ('pd_round(' in text.read_text()) != kernel, ''
        want, message, _ = p.values('interp', 'interp', 0, 1, 5)
        yield f'{wide} elements, interpreter', want is not None, message
        for name, env in FORMS[:2] if kernel else FORMS:
            for seed in ('1', '2') if kernel else ('1',):
                have, message, calls = p.values('cuda', 'cuda', 0, 1, 5, CUDAEMU_SEED=seed, **env)
                yield f'{wide} elements, {name}, order {seed}', close(p.np, want, have), message
            if env == OLD_DRIVER:
                yield f'{wide} elements, {name}: no graph', 'cudaGraphLaunch' not in calls, f'{calls}'


def words(t, tmp):
    """What the host is told meanwhile."""
    calls = {}
    for wide in (8, 40000):
        p = Program(t, tmp, wide)
        for n in (2, 6):
            for name, env in (('nodes', {}), ('no nodes', NO_NODES)):
                _, message, calls[wide, n, name] = p.values('cuda', 'cuda', n, **env)
    yield 'a loop kernel: the same calls for 6 rounds as for 2', calls[8, 2, 'nodes'] == calls[8, 6, 'nodes'], f'{calls}'
    yield 'a loop kernel does not care for nodes', calls[8, 6, 'no nodes'] == calls[8, 6, 'nodes'], f'{calls}'
    yield 'nodes: the same calls for 6 rounds as for 2', calls[40000, 2, 'nodes'] == calls[40000, 6, 'nodes'], f'{calls}'


COUNT = '''builtin.module {{
  %n = pd.feed() {{col = 0, name = "n"}} : () -> ({N})
  %x = pd.feed() {{col = 1, name = "x"}} : () -> (tensor<40000 x f32>)
  %zero = pd.full() {{dtype = i64, shape = dims [1], value = 0.0}} : () -> ({N})
  %last, %y = pd.while(%zero, %x) : ({N}, tensor<40000 x f32>) -> ({N}, tensor<40000 x f32>) cond {{
    ^0(%i: {N}, %v: tensor<40000 x f32>):
      %less = pd.less_than(%i, %n) : ({N}, {N}) -> (tensor<1 x bool>)
      cf.cond_yield(%less, %i, %v) : (tensor<1 x bool>, {N}, tensor<40000 x f32>) -> ()
  }} body {{
    ^0(%i: {N}, %v: tensor<40000 x f32>):
      %next = pd.scale(%i) {{bias = 1.0}} : ({N}) -> ({N})
      %w = pd.scale(%v) {{bias = 1.0}} : (tensor<40000 x f32>) -> (tensor<40000 x f32>)
      cf.yield(%next, %w) : ({N}, tensor<40000 x f32>) -> ()
  }}
  pd.fetch(%y) {{col = 0, name = "y"}} : (tensor<40000 x f32>) -> ()
  pd.fetch(%last) {{col = 1, name = "last"}} : ({N}) -> ()
}}
'''.format(N=N)


# n as the size of an input.
SIZED = f'''%rows = pd.feed() {{col = 0, name = "n"}} : () -> (tensor<?k x i64>)
  %size = pd.shape(%rows) : (tensor<?k x i64>) -> (tensor<1 x i32>)
  %n = pd.cast(%size) {{dtype = i64}} : (tensor<1 x i32>) -> ({N})'''


def reads(t, tmp):
    """Without nodes the host asks once for eight rounds; once, where the loop is counted; never, where it knows the count."""
    p = Program(t, tmp, 40000)
    number, tested = f'%n = pd.feed() {{col = 0, name = "n"}} : () -> ({N})', f'pd.less_than(%i, %n) : ({N}, {N})'
    flag = 'pd.less_than(%g, %f) : (tensor<1 x f32>, tensor<1 x f32>)'
    cast = f'%{{}} = pd.cast(%{{}}) {{{{dtype = f32}}}} : ({N}) -> (tensor<1 x f32>)\n  '.format
    forms = {'asked': COUNT.replace(tested, flag).replace('%less', cast('f', 'n') + cast('g', 'i') + '%less', 1), 'counted': COUNT,
             'sized': COUNT.replace(number, SIZED)}
    for name, want in (('asked', [1, 9]), ('counted', [0, 0]), ('sized', [0, 0])):
        p.model.write_text(forms[name])
        p.rows = name == 'sized'
        waits, launches = {}, {}
        for n in (1, 16, 80):
            have, message, calls = p.values('cuda', 'cuda', n, **NO_NODES)
            waits[n], launches[n] = (calls.get(f'cuda{c}', 0) for c in ('StreamSynchronize', 'LaunchKernel'))
            yield f'{name}, {n} guarded rounds', have and have[0][1].tolist() == [n], message
        yield f'{name}: reads', [waits[n] - waits[1] for n in (16, 80)] == want, f'{waits}'
        if name != 'asked':
            yield f'{name}: no round too many', 15 * (launches[80] - launches[16]) == 64 * (launches[16] - launches[1]) > 0, f'{launches}'


def written_out(t, tmp):
    """Few rounds that a constant says are in the graph as they are: no conditional node, and nothing to guard without them."""
    p = Program(t, tmp, 40000)
    number = f'%n = pd.feed() {{col = 0, name = "n"}} : () -> ({N})'
    constant = f'%k = pd.feed() {{col = 0, name = "n"}} : () -> ({N})\n  %n = pd.full() {{dtype = i64, shape = dims [1], value = 12.0}} : () -> ({N})'
    p.model.write_text(COUNT.replace(number, constant))
    want, message, _ = p.values('interp', 'interp', 0)
    have, message, calls = p.values('cuda', 'cuda', 0)
    yield 'rounds written out', close(p.np, want, have), message
    yield 'no conditional node', not calls.get('cudaGraphAddNode') and calls.get('cudaGraphAddKernelNode', 0) >= 24, f'{calls}'


def little(t, tmp):
    """Steps over rows that the caller counts: one kernel where these are few, else one for each, and so is a loop of such steps;
    five rounds of either."""
    p = Program(t, tmp, 8)
    p.model = SRC / 'tests/codegen/cuda_little.pdir'
    nodes = {}
    for rows in (4, 1500):
        p.np.save(p.x, p.np.random.default_rng(rows).standard_normal((rows, 8)).astype(p.np.float32))
        p.np.save(tmp / 'y.npy', p.np.eye(64, dtype=p.np.float32) * 1.25)
        p.given(5)
        p.given = lambda n: ['--in', f'm={tmp}/n5.npy', '--in', f'x={p.x}', '--in', f'y={tmp}/y.npy']
        want, message, _ = p.values('interp', 'interp', 5)
        for name, env in (('nodes', {}), ('no nodes', NO_NODES)):
            have, message, calls = p.values('cuda', 'cuda', 5, CUDAEMU_SEED='3', **env)
            yield f'{rows} rows, {name}', close(p.np, want, have), message
            nodes[rows, name] = calls.get('cudaGraphAddKernelNode' if name == 'nodes' else 'cudaLaunchKernel', 0)
    yield 'little is one kernel', nodes[4, 'nodes'] + 9 == nodes[1500, 'nodes'] and nodes[4, 'no nodes'] + 45 == nodes[1500, 'no nodes'], f'{nodes}'


def failures(t, tmp):
    """A row without room and too many rounds are statuses, in all forms; that the instance goes on is seen in suite_cudaapi."""
    for wide in (8, 40000):
        p = Program(t, tmp, wide)
        for name, env in (('nodes', {}), ('no nodes', NO_NODES)):
            have, message, _ = p.values('cuda', 'cuda', 9, **env)
            yield (f'{wide} elements, {name}: a wrong index', have is None and re.search(r'index|position', message) is not None, message)
            have, message, _ = p.values('cuda', 'cuda', 5, flags=('--max-trip', '3'), **env)
            yield f'{wide} elements, {name}: too many rounds', have is None and 'rounds' in message, message


def programs(t):
    """Recorded programs."""
    for name, env in (('nodes', {}), ('no nodes', NO_NODES)):
        p = emulated.score(t, [emulated.RECORDED / c for c in CASES], emulated.environment(CUDAEMU_SEED='9', CUDAEMU_RACES='1', **env),
                           emulated.QUICK_SCORE)
        yield f'recorded programs, {name}', p.returncode == 0, p.stdout[-3000:]


def suite(t):
    with emulated.folder() as tmp:
        yield from forms(t, tmp)
        yield from words(t, tmp)
        yield from reads(t, tmp)
        yield from written_out(t, tmp)
        yield from little(t, tmp)
        yield from failures(t, tmp)
        yield from programs(t)
