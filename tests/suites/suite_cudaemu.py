"""The CUDA emulator (runtime_stub/cudaemu) finds what is wrong; generated CUDA runs on it: recorded programs, loops without a
word to the host, failures that are statuses."""
import os, re

import emulated
from pdcc_tests import SRC, run

SLOW = True
EMU = SRC / 'runtime_stub/cudaemu'
RIGHT = {'narrow': '3c00 3f80, 3c02 3f80, fbff c780, 7c00 4780, 0000 3300, 0002 33c0, 8000 8000, 7fff 7fff, 3c04 3f80\n',
         'sum': 'sum 762\nfirst 3\nturns 6\n', 'lanes': 'lanes 256 5 9\n', 'graph': 'rounds 7, odd 4, even 3\n', 'early-read': 'early -1\nlate 1\n',
         'branches': 'branches 64\n', 'rounds': 'rounds 7 7\n', 'update': 'updated 4\n', 'mma': '128 128 128 32\n',
         **dict.fromkeys(('copies', 'dynamic-large'), 'copies 28 18, turned 0 2\n')}
BUGS = {
    'missing-barrier': r"of shared memory 's'",
    'missing-second-barrier': r"race: a (read of|write to) element \d+ of shared memory 's' that thread \d+ of block 0 (wrote|read), no barrier",
    'read-by-two-warps': r"race: a (read of|write to) element 0 of shared memory 's' that thread", 'shuffle-for-barrier': r"of shared memory 's'",
    'barrier-in-branch': r'divergent barrier: 240 threads ended', 'two-barriers': r'divergent barrier: .* wait in __syncthreads of lines',
    'out-of-bounds': r'out of bounds: byte \d+ of an allocation of 1024 bytes',
    'a-little-out-of-bounds': r'out of bounds: byte 12 of an allocation of 12 bytes was written',
    'shared-out-of-bounds': r"element 256 of shared memory 's', which has 256", 'read-of-nothing': r'is read, but nobody wrote it',
    'lane-outside': r'reads lane 20, which is not in its mask', 'half-a-warp': r'divergent warp',
    'mma-wrong-lane': r'^\d\d? \d\d? \d\d? 32$', 'half-a-product': r'divergent warp: line \d+ waits for lanes',
    'too-many-threads': r'cudaErrorInvalidConfiguration', 'wrong-side': r'misuse: a copy',
    'misaligned': r"misaligned address: 'const (struct )?float4' at \d+ bytes behind a multiple of 16",
    'misaligned-shared': r"misaligned address: 4 elements from \d+ on of shared memory 's'",
    **dict.fromkeys(('copy-no-wait', 'copy-waits-for-few', 'copy-no-commit'), r'is read while a copy to it that thread \d+ has begun'),
    'copy-no-barrier': r'is read, but nobody wrote it|race: thread \d+ reads|is read while a copy to it',
    'copy-no-second-barrier': r'is read while a copy to it that thread|race: a write to element .* read, no barrier between',
    'copy-misaligned': r'misaligned address: a copy of 16 bytes from \d+ bytes behind', 'copy-left-behind': r'a thread ends while a copy',
    'copy-to-misaligned': r"misaligned address: 4 elements from \d+ on", 'matrices-misaligned': r'misaligned address: 8 elements from \d+ on',
    'dynamic-too-small': r"shared memory 's' has 4096 bytes, but the launch gives 4080", 'dynamic-too-large': r'cudaErrorInvalidValue',
}
SEEN = {  # with CUDAEMU_RACES
    'forgotten-edge': r'race: node (3 of a graph (reads|writes)|1 of a graph (reads|writes)) byte \d+ of an allocation of 1024 bytes, which '
                      r'node (1|3) (reads|writes); nothing orders them',
    'forgotten-edge-in-loop': r'race: node (2 of a graph reads|0 of a graph writes) byte 0 of an allocation of 8 bytes, which node (0|2)',
    'race-of-warps': r'check.cu:\d+: race: a thread writes what thread \d+ of block 0 wrote', 'race-of-blocks': r'race: .* thread \d+ of block \d',
    'wrong-half': r'race: a thread (reads|writes) what thread \d+ of block 0 (read|wrote)',
    'count-not-at-once': r'race: a thread (changes|writes) what threads? .* (changed at once|wrote)',
    'read-behind': r'out of bounds: a read', 'unwritten': r'a read of memory of the device that nobody wrote',
    'out-of-bounds': r'out of bounds: a write', 'two-barriers': BUGS['two-barriers'],
}
TOGETHER = ['auto_scan_layer_norm-1', 'auto_scan_reduce_ops-0', 'auto_scan_rnn-0', 'auto_scan_softmax-1', 'beam-search-dense',
            'matmul-0', 'nn_Conv2D-1', 'nonzero-0', 'topk-0', 'while-3']
LOOP = '''builtin.module {
  %n = pd.feed() {col = 0, name = "n"} : () -> (tensor<1 x i64>)
  %zero = pd.full() {dtype = i64, shape = dims [1], value = 0.0} : () -> (tensor<1 x i64>)
  %i = pd.while(%zero) : (tensor<1 x i64>) -> (tensor<1 x i64>) cond {
    ^0(%a: tensor<1 x i64>):
      %less = pd.less_than(%a, %n) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x bool>)
      cf.cond_yield(%less, %a) : (tensor<1 x bool>, tensor<1 x i64>) -> ()
  } body {
    ^0(%a: tensor<1 x i64>):
      %next = pd.scale(%a) {bias = 1.0} : (tensor<1 x i64>) -> (tensor<1 x i64>)
      cf.yield(%next) : (tensor<1 x i64>) -> ()
  }
  pd.fetch(%i) {col = 0, name = "i"} : (tensor<1 x i64>) -> ()
}
'''


def emulator(tmp):
    """The seeded bugs, and what is right, under several orders of threads."""
    exe = tmp / 'check'
    command = ['g++', '-std=c++17', '-Wall', '-Wextra', '-Werror', '-O1', f'-I{EMU}', f'-I{SRC}/runtime_stub',
               f'-I{SRC}/codegen/cuda/kernels', f'-I{SRC}/codegen/text/kernels']
    p = run([*command, '-fsanitize=alignment,thread', '-g1', '-fno-pie', '-c', '-x', 'c++', SRC / 'tests/cudaemu/check.cu', '-o', exe.with_suffix('.o')])
    if p.returncode == 0:  # together (-flto): types of one name that differ between files are a warning
        p = run([*command, '-flto', exe.with_suffix('.o'), *sorted(EMU.glob('*.cc')), '-no-pie', '-o', exe])
    yield 'builds without warnings', p.returncode == 0, p.stdout[-2000:]
    if p.returncode:
        return
    for seed in ('1', '2', '3'):
        for name, want in RIGHT.items():
            p = run([exe, name], env={**os.environ, 'CUDAEMU_SEED': seed, 'CUDAEMU_RACES': '1'})
            yield f'{name}, order {seed}', p.returncode == 0 and p.stdout == want, p.stdout
        for races, bugs in (({}, BUGS), ({'CUDAEMU_RACES': '1'}, SEEN)):
            for name, want in bugs.items():
                p = run([exe, name], env={**os.environ, 'CUDAEMU_SEED': seed, **races})
                yield f'bug {name}, order {seed}', p.returncode != 0 and re.search(want, p.stdout), p.stdout


def banks(exe, report):
    """As many turns as check.cu says."""
    p = run([exe, 'banks'], env={**os.environ, 'CUDAEMU_BANKS': '1', 'CUDAEMU_REPORT': str(report)})
    counts = dict(line.split() for line in report.read_text().splitlines()) if p.returncode == 0 else {}
    yield 'bank conflicts', (counts.get('shared_accesses'), counts.get('bank_conflicts')) == ('12', '60'), f'{counts}\n{p.stdout}'


def npy(path, value):
    import numpy as np
    np.save(path, np.array([value], np.int64))
    return path


def loop_run(t, tmp, value, **env):
    """The loop above, emulated: result, and what the API was called for."""
    model, report = tmp / 'loop.pdir', tmp / 'report'
    model.write_text(LOOP)
    report.unlink(missing_ok=True)
    p = run([t.pdcc, 'run', model, '--target', 'cuda', *emulated.QUICK, '--in', f'n={npy(tmp / "n.npy", value)}',
             '--out-dir', tmp / 'out'],
            env=emulated.environment(CUDAEMU_REPORT=str(report), **env))
    calls = dict(line.split() for line in report.read_text().splitlines()) if report.exists() else {}
    return p, calls


def loops(t, tmp):
    """However often a loop goes round, the host hears nothing of it."""
    import numpy as np
    short, few = loop_run(t, tmp, 2)
    first = np.load(tmp / 'out/0/0.npy').tolist() if short.returncode == 0 else short.stdout
    long, many = loop_run(t, tmp, 500)
    last = np.load(tmp / 'out/0/0.npy').tolist() if long.returncode == 0 else long.stdout
    yield 'a while counts', first == [2] and last == [500], f'{first} {last}'
    yield 'as many calls for 500 rounds as for 2', few == many and few.get('cudaGraphLaunch') == '1', f'{few}\n{many}'
    for call in ('cudaMalloc:1', 'cudaMalloc:2', 'cudaGraphInstantiate:1', 'cudaGraphAddKernelNode:1', 'cudaGraphLaunch:1', 'cudaMemcpyAsync:1',
                 'cudaStreamSynchronize:1'):
        p, _ = loop_run(t, tmp, 2, CUDAEMU_FAIL=call)
        yield (f'{call} fails: a status', p.returncode == 1 and 'the accelerator reported a failure: cudaErrorMemoryAllocation'
               in p.stdout, p.stdout)


def complex_numbers(t, tmp):
    """What lit compares between the interpreter and C."""
    model, x = SRC / 'tests/codegen/complex.pdir', SRC / 'tests/codegen/Inputs/complex.npy'
    for target in ('interp', 'cuda'):
        p = run([t.pdcc, 'run', model, '--target', target, '--in', f'x={x}', '--out-dir', tmp / target],
                env=emulated.environment())
        yield f'complex numbers, {target}', p.returncode == 0, p.stdout
    p = run(['diff', '-r', tmp / 'interp', tmp / 'cuda'])
    yield 'complex numbers', p.returncode == 0, p.stdout


def cache(t, tmp):
    """The emulator's object is made once, and in the way where there is nowhere to keep it."""
    kept = tmp / 'cache/pdcc'
    for name, where in (('made', tmp / 'cache'), ('found', tmp / 'cache'), ('nowhere', '/proc')):
        before = [f.stat().st_ino for f in kept.glob('*')] if kept.exists() else []
        p, _ = loop_run(t, tmp, 2, XDG_CACHE_HOME=str(where))
        after = [f.stat().st_ino for f in kept.glob('*')]
        yield f'cache: {name}', p.returncode == 0 and len(after) == 1 and before in ([], after), f'{before} {after}\n{p.stdout}'


def nest_feeds(name):
    """Seeded inputs of a program in tests/codegen; many equal elements, for ties."""
    import numpy as np
    random = np.random.default_rng(7)
    few = random.integers(-4, 5, (2, 2500)).astype(np.float32)
    corners = 3 * random.random((1, 400, 2), np.float32)
    return {
        'cuda_nest': {'x': random.standard_normal((3, 8, 40), np.float32), 'b': random.standard_normal(40, np.float32),
                      'c': random.standard_normal((8, 1), np.float32), 'odd': random.standard_normal((3, 3, 7), np.float32),
                      'd': random.standard_normal((3, 1), np.float32), 'm': random.integers(0, 2, 64).astype(bool),
                      'h': np.array([65504, np.nan, 2 ** -24], np.float16), 'i': np.array([-3, 0, 2 ** 40])},
        'cuda_reduce': {'x': random.standard_normal((8, 1001), np.float32),
                        'y': random.integers(-99, 99, (8, 4096)).astype(np.float32),
                        'z': random.integers(-99, 99, (3, 512)).astype(np.int8),
                        'w': random.standard_normal((3, 4, 1), np.float32), 'p': random.standard_normal(20000, np.float32),
                        'q': random.integers(-2**31, 2**31 - 1, 16411).astype(np.int32),
                        'r': random.standard_normal((9000, 40), np.float32)},
        'cuda_turn': {'x': random.standard_normal((3, 40, 70), np.float32), 'y': random.standard_normal((3, 70, 40), np.float32),
                      'h': random.standard_normal((3, 33, 2, 5)).astype(np.float16),
                      'g': random.standard_normal((37, 18)).astype(np.float16)},
        'cuda_select': {'x': few[:1, :300].reshape(3, 100), 'long': few, 'm': np.array([True, False, True]), 'flat': few[0],
                        'boxes': np.concatenate([corners, corners + random.random((1, 400, 2), np.float32)], 2),
                        'which': np.stack([random.permutation(400)[:300] for _ in range(80)]).astype(np.int32),
                        'many': random.integers(0, 301, 80).astype(np.int32)},
    }[name]


def nests(t, tmp):
    """Programs of tests/codegen, emulated, give what the interpreter gives."""
    import numpy as np
    for name in ('cuda_nest', 'cuda_reduce', 'cuda_select', 'cuda_turn'):
        feeds = nest_feeds(name)
        given = []
        for feed, value in feeds.items():
            np.save(tmp / f'{name}.{feed}.npy', value)
            given += ['--in', f'{feed}={tmp / f"{name}.{feed}.npy"}']
        model = SRC / f'tests/codegen/{name}.pdir'
        want, have = tmp / f'{name}.interp', tmp / f'{name}.cuda'
        run([t.pdcc, 'run', model, '--target', 'interp', *given, '--out-dir', want])
        p = run([t.pdcc, 'run', model, '--target', 'cuda', *given, '--out-dir', have],
                env=emulated.environment(CUDAEMU_SEED='3'))
        files = sorted(f.name for f in (want / '0').glob('*.npy'))
        yield f'{name} runs', p.returncode == 0 and files, p.stdout[-2000:]
        for f in files if p.returncode == 0 else ():
            a, b = np.load(want / '0' / f), np.load(have / '0' / f)
            close = a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-4, equal_nan=True)
            yield f'{name}, {f}', close, f'{a}\n{b}'


def programs(t):
    """Recorded programs; those whose threads work together under more orders."""
    for seed, cases in (('5', sorted(p.name for p in emulated.RECORDED.iterdir())), ('6', TOGETHER), ('7', TOGETHER)):
        p = emulated.score(t, [emulated.RECORDED / name for name in cases], emulated.environment(CUDAEMU_SEED=seed, CUDAEMU_RACES='1'),
                           emulated.QUICK_SCORE)
        yield f'{len(cases)} recorded programs, order {seed}', p.returncode == 0, p.stdout[-3000:]


def suite(t):
    with emulated.folder() as tmp:
        yield from emulator(tmp)
        yield from banks(tmp / 'check', tmp / 'banks')
        yield from loops(t, tmp)
        yield from nests(t, tmp)
        yield from cache(t, tmp)
        yield from complex_numbers(t, tmp)
        yield from programs(t)
