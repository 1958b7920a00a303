"""The interface of generated CUDA, on the emulator: instances, memory, streams, and every way to fail (cudaemu/instances.c);
`run`, `verify` and `bench` with --target cuda."""
import json, os, re

import emulated
from pdcc_tests import SRC, run

SLOW = True
EMU = SRC / 'runtime_stub/cudaemu'
X, N = 'tensor<4 x 16 x f32>', 'tensor<1 x i64>'
FEEDS = f'''  %x = pd.feed() {{col = 0, name = "x"}} : () -> ({X})
  %n = pd.feed() {{col = 1, name = "n"}} : () -> ({N})
  %w = builtin.constant() {{value = dense<16 x 16 x f32 [{", ".join(str(1 / (i + 4)) for i in range(256))}]>}} : () -> (tensor<16 x 16 x f32>)
'''
FETCH = f'  pd.fetch(%y) {{col = 0, name = "y"}} : ({X}) -> ()\n'
MATMUL = f'pd.matmul(%v, %w) : ({X}, tensor<16 x 16 x f32>) -> ({X})'
COUNTER = f'''  %zero = pd.full() {{dtype = i64, shape = dims [1], value = 0.0}} : () -> ({N})
'''
LESS = f'''      %less = pd.less_than(%i, %n) : ({N}, {N}) -> (tensor<1 x bool>)
'''
NEXT = f'''      %next = pd.scale(%i) {{bias = 1.0}} : ({N}) -> ({N})
'''
PLAIN = FEEDS + f'''  %f = pd.cast(%n) {{dtype = f32}} : ({N}) -> (tensor<1 x f32>)
  %v = pd.add(%x, %f) : ({X}, tensor<1 x f32>) -> ({X})
  %m = {MATMUL}
  %y = pd.softmax(%m) {{axis = -1}} : ({X}) -> ({X})
''' + FETCH


def loop(body):
    """x goes round n times."""
    return FEEDS + COUNTER + f'''  %last, %y = pd.while(%zero, %x) : ({N}, {X}) -> ({N}, {X}) cond {{
    ^0(%i: {N}, %v: {X}):
{LESS}      cf.cond_yield(%less, %i, %v) : (tensor<1 x bool>, {N}, {X}) -> ()
  }} body {{
    ^0(%i: {N}, %v: {X}):
{NEXT}{body}      cf.yield(%next, %r) : ({N}, {X}) -> ()
  }}
''' + FETCH


BRANCH = f'''      %one = pd.full() {{dtype = i64, shape = dims [1], value = 1.0}} : () -> ({N})
      %same = pd.equal(%i, %one) : ({N}, {N}) -> (tensor<1 x bool>)
      %r = pd.if(%same) : (tensor<1 x bool>) -> ({X}) then {{
          %t = {MATMUL}
          cf.yield(%t) : ({X}) -> ()
      }} else {{
          %e = pd.exp(%v) : ({X}) -> ({X})
          %d = pd.softmax(%e) {{axis = 0}} : ({X}) -> ({X})
          cf.yield(%d) : ({X}) -> ()
      }}
'''
# Pushes n elements, then takes the last.
ARRAY = FEEDS + COUNTER + f'''  %none = pd.create_array() : () -> (array<4 x 16 x f32>)
  %last, %a, %end = pd.while(%zero, %none, %x) : ({N}, array<4 x 16 x f32>, {X}) -> ({N}, array<4 x 16 x f32>, {X}) cond {{
    ^0(%i: {N}, %b: array<4 x 16 x f32>, %v: {X}):
{LESS}      cf.cond_yield(%less, %i, %b, %v) : (tensor<1 x bool>, {N}, array<4 x 16 x f32>, {X}) -> ()
  }} body {{
    ^0(%i: {N}, %b: array<4 x 16 x f32>, %v: {X}):
{NEXT}      %k = pd.array_length(%b) : (array<4 x 16 x f32>) -> ({N})
      %c = pd.array_write(%b, %k, %v) : (array<4 x 16 x f32>, {N}, {X}) -> (array<4 x 16 x f32>)
      %r = {MATMUL}
      cf.yield(%next, %c, %r) : ({N}, array<4 x 16 x f32>, {X}) -> ()
  }}
  %at = pd.scale(%n) {{bias = -1.0}} : ({N}) -> ({N})
  %y = pd.array_read(%a, %at) : (array<4 x 16 x f32>, {N}) -> ({X})
''' + FETCH
# A product through cuBLASLt and a convolution through cuDNN.
IMAGE = 'tensor<1 x 4 x 4 x 4 x f32>'
LIBRARIES = f'''      %p = {MATMUL}
      %image = pd.reshape(%p) {{shape = dims [1, 4, 4, 4]}} : ({X}) -> ({IMAGE})
      %filter = pd.full() {{dtype = f32, shape = dims [4, 4, 3, 3], value = 0.0625}} : () -> (tensor<4 x 4 x 3 x 3 x f32>)
      %bias = builtin.constant() {{value = dense<4 x 1 x 1 x f32 [0.25, 0.5, 0.75, 1.0]>}} : () -> (tensor<4 x 1 x 1 x f32>)
      %conv = pd.conv2d(%image, %filter) {{strides = [1, 1], paddings = [1, 1]}} : ({IMAGE}, tensor<4 x 4 x 3 x 3 x f32>) -> ({IMAGE})
      %sum = pd.add(%conv, %bias) : ({IMAGE}, tensor<4 x 1 x 1 x f32>) -> ({IMAGE})
      %relu = pd.relu(%sum) : ({IMAGE}) -> ({IMAGE})
      %r = pd.reshape(%relu) {{shape = dims [4, 16]}} : ({IMAGE}) -> ({X})
'''
PROGRAMS = {'plain': PLAIN, 'while': loop(f'      %r = {MATMUL}\n'), 'branch': loop(BRANCH), 'array': ARRAY,
            'library': loop(LIBRARIES), 'kernel': ARRAY.replace(MATMUL, f'pd.exp(%v) : ({X}) -> ({X})')}
WITHOUT_NODES = {'CUDAEMU_FAIL': 'cudaGraphConditionalHandleCreate:1:cudaErrorNotSupported'}
LIBRARY = FEEDS.replace('"n"', '"count"') + f'''  %s = pd.feed() {{col = 2, name = "s"}} : () -> (tensor<?n x 16 x f32>)
  %b = pd.feed() {{col = 3, name = "b"}} : () -> (tensor<3 x 4 x 16 x f32>)
  %bias = pd.feed() {{col = 4, name = "bias"}} : () -> (tensor<16 x f32>)
  %v = pd.add(%x, %bias) : ({X}, tensor<16 x f32>) -> ({X})
  %l = {MATMUL}
  %p = pd.add(%l, %bias) : ({X}, tensor<16 x f32>) -> ({X})
  %y0 = pd.relu(%p) : ({X}) -> ({X})
  %y1 = pd.matmul(%s, %w) {{transpose_y = true}} : (tensor<?n x 16 x f32>, tensor<16 x 16 x f32>) -> (tensor<?n x 16 x f32>)
  %y2 = pd.matmul(%b, %b) {{transpose_x = true}} : (tensor<3 x 4 x 16 x f32>, tensor<3 x 4 x 16 x f32>) -> (tensor<3 x 16 x 16 x f32>)
  %y3 = pd.matmul(%v, %b) {{transpose_y = true}} : ({X}, tensor<3 x 4 x 16 x f32>) -> (tensor<3 x 4 x 4 x f32>)
  %y4 = pd.matmul(%x, %v) {{transpose_x = true}} : ({X}, {X}) -> (tensor<16 x 16 x f32>)
  pd.fetch(%y0) {{col = 0, name = "y0"}} : ({X}) -> ()
  pd.fetch(%y1) {{col = 1, name = "y1"}} : (tensor<?n x 16 x f32>) -> ()
  pd.fetch(%y2) {{col = 2, name = "y2"}} : (tensor<3 x 16 x 16 x f32>) -> ()
  pd.fetch(%y3) {{col = 3, name = "y3"}} : (tensor<3 x 4 x 4 x f32>) -> ()
  pd.fetch(%y4) {{col = 4, name = "y4"}} : (tensor<16 x 16 x f32>) -> ()
'''
CHECKS = ('plain', 'calls', 'several', 'memory', 'misuse', 'failures')


def instances(t, tmp):
    stub = SRC / 'runtime_stub'
    cxx = ['g++', '-std=c++17', '-O1', f'-I{EMU}', f'-I{stub}', '-c', '-x', 'c++']
    runtime = [tmp / f'{source.stem}.o' for source in sorted(EMU.glob('*.cc'))]
    for o in runtime:
        p = run([*cxx, EMU / o.with_suffix('.cc').name, '-o', o])
        if p.returncode:
            yield f'emulator {o.name}', False, p.stdout
            return
    for name, text in PROGRAMS.items():
        d = tmp / name
        d.mkdir()
        (d / 'model.pdir').write_text('builtin.module {\n' + text + '}\n')
        weights = ['file', 'inline'][name in ('branch', 'kernel')]
        libraries = ['--cuda-libs'] if name == 'library' else []
        p = run([t.pdcc, d / 'model.pdir', '-o', d / 'model.cu', '--max-array', '7', f'--weights={weights}', *libraries])
        if p.returncode == 0:
            p = run([*cxx, '-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', d / 'model.cu', '-o', d / 'model.o'])
        if p.returncode == 0:
            p = run(['gcc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-pedantic', '-O1', f'-I{EMU}', f'-I{stub}', f'-I{d}',
                     SRC / 'tests/cudaemu/instances.c', stub / 'pdrt.c', d / 'model.o', *runtime, '-o', d / 'instances', '-lstdc++', '-lm'])
        yield f'{name}: builds', p.returncode == 0, p.stdout[-2000:]
        if p.returncode:
            continue
        given = [d / 'model.weights'] if weights == 'file' else []
        p = run([t.pdcc, 'info', d / 'model.pdir', '--json', '--target', 'cuda'], env={**os.environ, 'NVCC': '/nonexistent/nvcc'})
        info = json.loads(p.stdout or '{}')
        text = (d / 'model.h').read_text()
        total = int(re.search(r'MODEL_WORKSPACE_BYTES (\d+)u', text)[1])
        state = -8 * int(re.search(r'told\[(\d+)\]', text)[1]) // 64 * -64
        if name not in ('array', 'library', 'kernel'):  # whose room is an option of the compiler
            yield (f'{name}: info says how much', info.get('workspace', 0) + info.get('weights', 0) + state == total,
                   f'{info} {state} {total}')
        data = ('data',) if name in ('array', 'kernel') else ()
        for check in data:
            p = run([d / 'instances', check, *given], env={**os.environ, **WITHOUT_NODES})
            yield f'{name}: {check}, without conditional nodes', p.returncode == 0, p.stdout
        for check in CHECKS + data:
            if check == 'memory' and libraries:  # the library leaves scratch memory as it likes
                continue
            for seed in ('1', '2') if check == 'several' else ('1',):
                p = run([d / 'instances', check, *given], env={**os.environ, 'CUDAEMU_SEED': seed})
                yield f'{name}: {check}, order {seed}', p.returncode == 0, p.stdout


def without_gpu(t, tmp):
    """run emulates and says so, verify too, bench does not; what the emulator is made to fail with is told."""
    image = tmp / 'image.npy'
    run([t.python, SRC / 'tests/mknpy.py', image, 'f32', '2,1,8,8', '0.5'])
    model = [SRC / 'samples/digits/digits.pdmodel', '--in', f'image={image}']
    for why, env in (('PDCC_EMULATE is set', {'PDCC_EMULATE': '1'}), ('the driver knows of none', fake_driver(tmp, 'none', 0, 0)),
                     ('the driver says error 100', fake_driver(tmp, 'broken', 100, 0))):
        env = {**os.environ, 'PDCC_EMULATE': '', **env}
        p = run([t.pdcc, 'bench', *model, '--target', 'cuda'], env=env)
        yield f'bench: {why}', p.returncode == 1 and f'error: no GPU here ({why})' in p.stdout, p.stdout
    env = emulated.environment(CUDAEMU_LEAKS='1')
    p = run([t.pdcc, 'run', *model, '--target', 'cuda', '--out-dir', tmp / 'out'], env=env)
    yield 'run emulates', p.returncode == 0 and 'no GPU here (PDCC_EMULATE is set): the CUDA code is emulated' in p.stdout, p.stdout
    p = run([t.pdcc, 'verify', *model, '--target', 'cuda'], env=env)
    yield 'verify emulates', p.returncode == 0 and 'and the generated code: no difference' in p.stdout, p.stdout
    for call, want in (('cudaMalloc:1', 'cudaErrorMemoryAllocation in cudaMalloc'),
                       ('cudaStreamCreate:1:cudaErrorInsufficientDriver', 'cudaErrorInsufficientDriver in cudaStreamCreate'),
                       ('cudaGetDevice:1:cudaErrorNoDevice', 'cudaErrorNoDevice in cudaGetDevice')):
        p = run([t.pdcc, 'run', *model, '--target', 'cuda', '--out-dir', tmp / 'out'], env={**env, 'CUDAEMU_LEAKS': '', 'CUDAEMU_FAIL': call})
        yield f'{call}: said', p.returncode == 1 and f'the accelerator reported a failure: {want}' in p.stdout, p.stdout


def products(t, tmp):
    """Through cuBLASLt: rows that the caller counts, batches, one matrix for all, transposes, epilogues; none of its text without."""
    model = tmp / 'products.pdir'
    model.write_text('builtin.module {\n' + LIBRARY + '}\n')
    feeds = []
    for name, kind, shape in (('x', 'f32', '4,16'), ('count', 'i64', '1'), ('s', 'f32', '5,16'), ('b', 'f32', '3,4,16'), ('bias', 'f32', '16')):
        size = eval(shape.replace(',', '*'))
        values = [str((i * 7 % 13 - 6) / 4 if kind == 'f32' else 1) for i in range(size)]
        run([t.python, SRC / 'tests/mknpy.py', tmp / f'{name}.npy', kind, shape, *values])
        feeds += ['--in', f'{name}={tmp}/{name}.npy']
    env = emulated.environment(CUDAEMU_SEED='3')
    p = run([t.pdcc, 'verify', model, '--target', 'cuda', '--cuda-libs', *feeds], env=env)
    yield 'products of cuBLASLt', p.returncode == 0 and 'no difference' in p.stdout, p.stdout
    for options, want in ((['--cuda-libs'], 5), ([], 0)):
        text = run([t.pdcc, model, '--emit=cuda', '-o', '-', *options]).stdout
        yield f'{want} products go there', text.count('\tpd_lt_matmul(') == want and ('cublasLt' in text) == bool(want), text[-3000:]


def fake_driver(tmp, name, error, devices):
    """A libcuda.so.1 that says so much and no more; the environment in which it is found."""
    d = tmp / f'driver-{name}'
    d.mkdir()
    (d / 'cuda.c').write_text(f'int cuInit(unsigned flags) {{ return flags ? 1 : {error}; }}\n'
                              f'int cuDeviceGetCount(int *n) {{ *n = {devices}; return 0; }}\n')
    run(['gcc', '-shared', '-fPIC', d / 'cuda.c', '-o', d / 'libcuda.so.1'])
    return {'LD_LIBRARY_PATH': str(d)}


def with_gpu(t, tmp):
    """Where a driver has a device, nvcc makes the program; which here finds that there is no driver after all."""
    model = tmp / 'plain.pdir'
    model.write_text('builtin.module {\n' + PLAIN + '}\n')
    for name, kind, shape in (('x', 'f32', '4,16'), ('n', 'i64', '1')):
        run([t.python, SRC / 'tests/mknpy.py', tmp / f'{name}.npy', kind, shape, '1'])
    log, nvcc = tmp / 'nvcc.log', tmp / 'nvcc.sh'
    nvcc.write_text(f'#!/bin/sh\necho "$@" > {log}\nunset LD_LIBRARY_PATH\nexec {t.config.get("NVCC") or "false"} "$@"\n')
    nvcc.chmod(0o755)
    env = {**os.environ, 'PDCC_EMULATE': '', **fake_driver(tmp, 'one', 0, 1)}
    cmd = [t.pdcc, 'run', model, '--target', 'cuda', '--in', f'x={tmp}/x.npy', '--in', f'n={tmp}/n.npy', '--out-dir', tmp / 'out']
    p = run([*cmd, '--arch', 'sm_80,sm_90', '--cflags', '-lineinfo'], env={**env, 'NVCC': str(nvcc)})
    line = log.read_text() if log.exists() else ''
    want = ('-O3 -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_90,code=compute_90 '
            '-lineinfo -I ')
    yield 'nvcc gets --arch and --cflags', line.startswith(want) and 'model.cu' in line and 'emulated' not in p.stdout, line + p.stdout
    if t.config.get('NVCC'):
        yield 'the program says what is wrong', p.returncode == 1 and 'the accelerator reported a failure: cudaError' in p.stdout, p.stdout
    else:
        yield 'the compiler failed', p.returncode == 1 and f"the compiler '{nvcc}' failed" in p.stdout, p.stdout
    p = run([*cmd], env={**env, 'NVCC': '/nonexistent/nvcc'})
    yield 'no nvcc', p.returncode == 1 and "a GPU is here, but not '/nonexistent/nvcc'" in p.stdout, p.stdout


def suite(t):
    with emulated.folder() as tmp:
        yield from instances(t, tmp)
        yield from without_gpu(t, tmp)
        yield from with_gpu(t, tmp)
        yield from products(t, tmp)
