"""The interface of generated CUDA, on the emulator: instances, memory, streams, and every way to fail (cudaemu/instances.c);
`run`, `verify` and `bench` with --target cuda."""
import os, pathlib, shutil, tempfile

from pdcc_tests import SRC, Skip, run

SLOW = True
EMU = SRC / 'tests/cudaemu'
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
PROGRAMS = {'plain': PLAIN, 'while': loop(f'      %r = {MATMUL}\n'), 'branch': loop(BRANCH), 'array': ARRAY}
CHECKS = ('plain', 'several', 'misuse', 'failures')


def instances(t, tmp):
    stub = SRC / 'runtime_stub'
    cxx = ['g++', '-std=c++17', '-O1', f'-I{EMU}', f'-I{stub}', '-c', '-x', 'c++']
    runtime = [tmp / 'api.o', tmp / 'block.o']
    for o in runtime:
        p = run([*cxx, EMU / o.with_suffix('.cc').name, '-o', o])
        if p.returncode:
            yield f'emulator {o.name}', False, p.stdout
            return
    for name, text in PROGRAMS.items():
        d = tmp / name
        d.mkdir()
        (d / 'model.pdir').write_text('builtin.module {\n' + text + '}\n')
        weights = ['file', 'inline'][name == 'branch']
        p = run([t.pdcc, d / 'model.pdir', '-o', d / 'model.cu', '--max-array', '7', f'--weights={weights}'])
        if p.returncode == 0:
            p = run([*cxx, '-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', d / 'model.cu', '-o', d / 'model.o'])
        if p.returncode == 0:
            p = run(['gcc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-pedantic', '-O1', f'-I{EMU}', f'-I{stub}', f'-I{d}',
                     EMU / 'instances.c', stub / 'pdrt.c', d / 'model.o', *runtime, '-o', d / 'instances', '-lstdc++', '-lm'])
        yield f'{name}: builds', p.returncode == 0, p.stdout[-2000:]
        if p.returncode:
            continue
        given = [d / 'model.weights'] if weights == 'file' else []
        for check in CHECKS + (('data',) if name == 'array' else ()):
            for seed in ('1', '2') if check == 'several' else ('1',):
                p = run([d / 'instances', check, *given], env={**os.environ, 'CUDAEMU_SEED': seed})
                yield f'{name}: {check}, order {seed}', p.returncode == 0, p.stdout


def suite(t):
    if not shutil.which('g++'):
        raise Skip('g++ is not installed')
    with tempfile.TemporaryDirectory() as tmp:
        yield from instances(t, pathlib.Path(tmp))
