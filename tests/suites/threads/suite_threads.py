"""Generated C that several threads share (--threads): the same bytes as from one thread, for pools of pdrt_threads.c and of the
caller, with instances side by side, under the sanitizer of threads; what is refused; no trace of it where it is not asked for."""
import pathlib, re, shutil, struct, sys, tempfile

from pdcc_tests import SRC, run

SLOW = False
THREADS = SRC / 'tests/threads'
STUB = SRC / 'runtime_stub'
FLAGS = '-fno-math-errno -fno-trapping-math -ffp-contract=fast'.split()
STRICT = '-Wall -Wextra -Wpedantic -Werror'.split()
FEEDS = {'images': {'x': ('f32', (1, 16, 30, 30))}, 'tokens': {'ids': ('i64', (2, 70))},
         'loop': {'x': ('f32', (130, 140)), 'ids': ('i64', (130,))}}


def numbers(n):
    """The same n numbers between -1 and 1 every time."""
    return [(i * 2654435761 >> 7) % 2001 / 1000 - 1 for i in range(1, n + 1)]


def model_make(t, name, tmp):
    """A program of tests/threads; `= ?` gives a parameter numbers, the smaller the more there are."""
    def fill(m):
        n = 1
        for d in m[2].split(','):
            n *= int(d)
        scale = 2 / n ** 0.5
        return f"{m[1]}{m[2]} = {','.join(f'{v * scale:.6f}' for v in numbers(n))}"
    text = re.sub(r'^(param \S+ f32 )(\S+) = \?$', fill, (THREADS / f'{name}.txt').read_text(), flags=re.M)
    (tmp / f'{name}.txt').write_text(text)
    p = run([t.python, SRC / 'tests/mkmodel.py', tmp / f'{name}.txt', tmp / f'{name}.pdmodel', tmp / f'{name}.pdiparams'])
    return p.returncode == 0, p.stdout


def feeds_make(name, tmp):
    out = []
    for feed, (dtype, shape) in FEEDS[name].items():
        n = 1
        for d in shape:
            n *= d
        data = struct.pack(f'<{n}f', *numbers(n)) if dtype == 'f32' else struct.pack(f'<{n}q', *(i * 7 % 5 for i in range(n)))
        head = f"{{'descr': '<{dtype[0]}{int(dtype[1:]) // 8}', 'fortran_order': False, 'shape': {shape!r}, }}".ljust(117) + '\n'
        (tmp / f'{feed}.npy').write_bytes(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data)
        out += ['--in', f'{feed}={tmp / feed}.npy']
    return out


def outputs(t, model, tmp, flags):
    out = tmp / 'out'
    shutil.rmtree(out, ignore_errors=True)
    p = run([t.pdcc, 'run', model, '--out-dir', out, *flags])
    files = {f.name: f.read_bytes() for f in sorted((out / '0').glob('*.npy'))} if p.returncode == 0 else p.stdout
    return files


def same_bytes(t, name, model, tmp, whole):
    """Through `pdcc run`, for several instruction sets."""
    feeds = feeds_make(name, tmp)
    for isa in ('native', 'generic') if whole else ('native',):
        want = outputs(t, model, tmp, [*feeds, f'--isa={isa}'])
        yield f'{name}/{isa}/one thread', isinstance(want, dict), str(want)[-2000:]
        for n in (1, 2, 3, 4) if whole and isa == 'native' else (3,):
            got = outputs(t, model, tmp, [*feeds, f'--isa={isa}', '--threads', n, '--verify-each'])
            yield f'{name}/{isa}/{n} threads', got == want, got if isinstance(got, str) else 'other bytes'


def program(t, name, model, tmp, label, cc, flags):
    """tests/threads/threads.c around the model."""
    folder = tmp / f'{name}_{label}'
    folder.mkdir()
    isa = 'native' if label == 'native' else 'generic'
    p = run([t.pdcc, model, '-o', folder / 'model.c', '--threads', 4, f'--isa={isa}', '--weights=file'])
    if p.returncode:
        yield f'{name}/{label}/generate', False, p.stdout
        return
    text = (folder / 'model.c').read_text()
    shared = len(re.findall(r'^\t+pd_share\(', text, re.M))
    yield f'{name}/{label}/much is shared', shared >= 4, f'{shared} calls'
    p = run([*cc, *flags, *STRICT, *FLAGS, '-pthread', '-I', folder, '-I', STUB, '-Wl,--wrap=pthread_create', THREADS / 'threads.c',
             folder / 'model.c', STUB / 'pdrt.c', STUB / 'pdrt_threads.c', '-o', folder / 'program', '-lm'])
    yield f'{name}/{label}/compiles', p.returncode == 0, p.stdout[-3000:]
    if p.returncode == 0:
        p = run([folder / 'program', folder / 'model.weights'], timeout=300)
        yield f'{name}/{label}/runs', p.returncode == 0 and 'all is well' in p.stdout, p.stdout[-3000:]


def programs(t, name, model, tmp, whole):
    cc = t.config['CC'].split()
    yield from program(t, name, model, tmp, 'native', cc, ['-std=gnu11', '-O3', '-march=native'])
    if not whole:
        return
    yield from program(t, name, model, tmp, 'generic', cc, ['-std=c11', '-O2'])
    if run(['gcc', '-fsanitize=thread', '-x', 'c', '/dev/null', '-shared', '-o', tmp / 'tsan.so']).returncode == 0:
        yield from program(t, name, model, tmp, 'tsan', ['gcc'], ['-std=c11', '-O1', '-g', '-fsanitize=thread'])


def languages(t, name, model, tmp):
    """As C++; the runtime's files, too."""
    out = tmp / f'{name}.c'
    p = run([t.pdcc, model, '-o', out, '--threads', 3, '--weights=file'])
    yield f'{name}/c++/generate', p.returncode == 0, p.stdout
    if not shutil.which('g++'):
        return
    for source in (out, STUB / 'pdrt_threads.c'):
        p = run(['g++', '-x', 'c++', '-std=c++17', *STRICT, *FLAGS, '-O1', '-pthread', '-I', STUB, '-c', source, '-o', tmp / 'x.o'])
        yield f'{name}/c++/{source.name}', p.returncode == 0, p.stdout[-2000:]


def cores(t, tmp):
    """Threads leave a core that they share for one that they may use."""
    p = run([*t.config['CC'].split(), '-std=c11', '-O1', *STRICT, '-pthread', '-I', STUB, THREADS / 'cores.c', STUB / 'pdrt_threads.c', '-o', tmp / 'cores'])
    yield 'cores/compiles', p.returncode == 0, p.stdout[-2000:]
    if p.returncode == 0:
        p = run([tmp / 'cores'], timeout=60)
        yield 'cores/runs', p.returncode == 0, p.stdout


def library(t, tmp):
    """model_call of a shared library has a pool of its own; the same model without threads gives the same."""
    import ctypes
    results = []
    for n in (1, 2):
        so = tmp / f'lib{n}.so'
        p = run([t.pdcc, tmp / 'images.pdmodel', '-o', so, '--prefix=images', '--shape', 'x=1,16,30,30', '--threads', n])
        yield f'library/{n}', p.returncode == 0, p.stdout
        if p.returncode:
            return
        x = (ctypes.c_float * 14400)(*numbers(14400))
        outs = [(ctypes.c_float * n)() for n in (24 * 225, 160 * 900)]
        call = ctypes.CDLL(str(so)).images_call
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(o) for o in outs))
        status = [call((ctypes.c_void_p * 1)(ctypes.addressof(x)), pointers) for _ in range(2)]
        results.append((status, [bytes(o) for o in outs]))
    yield 'library/same bytes', results[0] == results[1] and results[0][0] == [0, 0], str([r[0] for r in results])


def refused(t, tmp):
    model = tmp / 'images.pdmodel'
    for flags, status, words in ((['-o', tmp / 'x.cu', '--threads', 2], 1, '--threads is for C'),
                                 (['-o', tmp / 'x.c', '--threads', 65], 2, 'at most 64'),
                                 (['-o', tmp / 'x.c', '--threads', 0], 2, 'whole number'),
                                 (['-o', tmp / 'x.c', '--threads', 'all'], 2, 'whole number')):
        p = run([t.pdcc, model, *flags])
        yield f'refused {flags[-1]} {flags[1].name}', p.returncode == status and words in p.stdout, p.stdout
    p = run([t.pdcc, 'bench', model, '--target', 'cuda', '--threads', 2])
    yield 'refused bench', p.returncode == 2 and '--threads is for C' in p.stdout, p.stdout


def absent(t, tmp):
    """Who does not ask for threads gets the code as it was."""
    p = run([t.pdcc, tmp / 'images.pdmodel', '-o', tmp / 'plain.c', '--weights=file'])
    text = (tmp / 'plain.c').read_text() + (tmp / 'plain.h').read_text() if p.returncode == 0 else 'pd_share'
    yield 'absent', not re.search('thread|parallel|pd_share|pd_part', text), p.stdout


def suite(t):
    whole = t.all or t.only  # `make check`: for this machine, without the sanitizer
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for name in FEEDS:
            ok, why = model_make(t, name, tmp)
            yield f'{name}/made', ok, why
            model = tmp / f'{name}.pdmodel'
            yield from same_bytes(t, name, model, tmp, whole)
            yield from programs(t, name, model, tmp, whole)
            yield from languages(t, name, model, tmp)
        if sys.platform == 'linux':
            yield from cores(t, tmp)
        yield from library(t, tmp)
        yield from refused(t, tmp)
        yield from absent(t, tmp)
