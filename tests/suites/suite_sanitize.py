"""Reliability: damaged models under sanitizers, memory and files that fail, generated code under sanitizers and valgrind."""
import concurrent.futures, os, pathlib, random, re, shutil, subprocess, sys, tempfile

import pdcc_tests
from pdcc_tests import SHARED, SMALL, SRC, Skip, corpus_cases, run, score

SLOW = True
DIGITS = SRC / 'samples/digits/digits.pdmodel'
CASES = SRC / 'tests/corpus/cases'
SANITIZE = '-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -O1'
VALGRIND = ['valgrind', '-q', '--error-exitcode=9', '--leak-check=full', '--track-fds=yes']


def built(t, target, product):
    p = pdcc_tests.build(t, target)
    if p.returncode or not (t.build / product).exists():
        if 'cannot find' in p.stdout and 'asan' in p.stdout:
            raise Skip('no sanitizers for ' + t.config.get('CC', 'cc'))
        raise RuntimeError(f'make {target}: {p.stdout[-2000:]}')
    return t.build / product


def clean(p, status):
    """The status that was expected, and nothing from a sanitizer."""
    return p.returncode in status and 'Sanitizer' not in p.stdout and 'runtime error' not in p.stdout


def fuzz(t, asan, tmp):
    """The mutator on what suite_fuzz leaves out: text, programs of Paddle 3, and the interpreter, for a time.

    What failed once is in tests/frontend/hostile*.test.
    """
    mutate = SRC / 'tests/fuzz/mutate.py'
    models = sorted(CASES.glob('*/model.pdmodel')) + [DIGITS]
    programs, texts = sorted(CASES.glob('*/model.json')), []
    for m in models:
        out = pathlib.Path(tmp) / f'{m.parent.name}.pdir'
        if run([t.pdcc, m, '-o', out]).returncode == 0:
            texts.append(out)
    for name, seconds, stage, seeds in (('interpreter', 25, 'interp', models),
                                        ('text', 40, 'opt,generic,avx2', texts), ('json', 30, 'ir,generic,info', programs)):
        p = run([sys.executable, mutate, '--pdcc', asan, '--rounds', 100000, '--seconds', seconds, '--stage', stage, *seeds])
        yield f'fuzz/{name} ({p.stdout.split(chr(10))[-2]})', p.returncode == 0, p.stdout[-3000:]


def cuts(asan, tmp):
    """A small model cut at every byte, and garbage."""
    data, rng = (CASES / 'relu-0/model.pdmodel').read_bytes(), random.Random(2)
    inputs = [data[:n] for n in range(len(data))] + [rng.randbytes(n) for n in range(1, 200)]

    def wrong(k):
        path, out = pathlib.Path(tmp) / f'cut{k}.pdmodel', pathlib.Path(tmp) / f'cut{k}.c'
        path.write_bytes(inputs[k])
        p = run([asan, path, '-o', out])
        whole = p.returncode == 0 and k < len(data) # a program may end between two fields
        ok = whole or (clean(p, [1]) and p.stdout.count('error:') >= 1 and not out.exists())
        for made in (path, out, out.with_suffix('.h')):
            made.unlink(missing_ok=True)
        return '' if ok else f'input {k}, status {p.returncode}\n{p.stdout[-2000:]}\n'

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = ''.join(pool.map(wrong, range(len(inputs))))
    yield f'every cut of a model, and garbage ({len(inputs)})', not said, said[-3000:]


def commands(asan, tmp):
    """No command leaks, whether it succeeds or fails."""
    tmp = pathlib.Path(tmp)
    case = CASES / 'nn_Conv2D-1'
    feed, name = next(iter(feeds(case).items()))
    bad = tmp / 'bad.pdmodel'
    bad.write_bytes(DIGITS.read_bytes().replace(b'relu', b'relX'))
    ir = tmp / 'leak.pdir'
    for label, args, status in (
            ('compile', [DIGITS, '-o', tmp / 'l.c', '-MD'], 0), ('cuda', [DIGITS, '-o', tmp / 'device.cu'], 0),
            ('ir', [DIGITS, '-o', ir], 0), ('dot', [DIGITS, '-o', tmp / 'l.dot'], 0), ('json', [DIGITS, '-o', tmp / 'l.json'], 0),
            ('text', [ir, '--params', DIGITS.with_suffix('.pdiparams'), '-o', tmp / 'm.c'], 0),
            ('info', ['info', DIGITS], 0), ('html', ['info', DIGITS, f'--html={tmp}/i.html'], 0),
            ('opt', ['opt', ir, '--passes=canonicalize,dce', '-o', tmp / 'o.pdir'], 0),
            ('interpreter', ['run', case / 'model.pdmodel', '--target=interp', f'--in={feed}={name}', '--out-dir', tmp / 'r'], 0),
            ('run', ['run', case / 'model.pdmodel', f'--in={feed}={name}', '--out-dir', tmp / 'r'], 0),
            ('verify', ['verify', case / 'model.pdmodel', f'--in={feed}={name}'], 0),
            ('missing input', ['run', case / 'model.pdmodel', '--target=interp', '--out-dir', tmp / 'r'], 1),
            ('unsupported', [bad, '--params', DIGITS.with_suffix('.pdiparams'), '-o', tmp / 'n.c'], 1),
            ('bad pass', ['opt', ir, '--passes=nonsense'], 1), ('usage', ['--nonsense'], 2), ('help', ['--help'], 0)):
        p = run([asan, *args])
        yield f'no leak: {label}', clean(p, [status]), f'exit status {p.returncode}\n{p.stdout[-2000:]}'


def feeds(case):
    """{name: path} of a recorded case's first run."""
    text = (case / 'case.yaml').read_text()
    text = text[text.find('feeds:'):text.find('fetches:')]
    return {name.strip("'"): case / file for name, file in re.findall(r'^ +(\S+): \{file: ([^,}]+)', text, re.M)}


def failing_calls(fault):
    sys.path.insert(0, str(SRC / 'tests/fault'))
    import sweep
    for label, count, failures in sweep.sweep_all(fault, ['alloc', 'io', 'short'], 5):
        yield f'failing calls: {label} ({count})', count > 0 and not failures, '\n'.join(failures[:3])


def generated(t):
    flags = f'--isa=generic --cflags "{SANITIZE}"'
    quick = flags.replace('-O1', '-O0')  # a third of the compiler's time; sanitizers see what -O1 removes
    yield from score(t, [CASES], 'sanitized', quick)
    yield from score(t, sorted(CASES.iterdir())[::3], 'sanitized-avx2', quick.replace('generic', 'avx2')) # a third of them: time
    if SHARED.exists():
        yield from score(t, corpus_cases(SMALL + ['models/wide_deep']), 'sanitized', flags)


def valgrind(t, tmp):
    if not shutil.which('valgrind'):
        raise Skip('valgrind is not installed')
    tmp = pathlib.Path(tmp)
    p = run([*VALGRIND, t.pdcc, DIGITS, '-o', tmp / 'v.c', '--isa=avx2'])
    yield 'valgrind: pdcc', p.returncode == 0, p.stdout[-3000:]
    case, keep = CASES / 'nn_Conv2D-1', tmp / 'keep'
    args = [f'--in={name}={path}' for name, path in feeds(case).items()]
    p = run([t.pdcc, 'run', case / 'model.pdmodel', '--isa=generic', '--cflags', '-O1 -g', '--keep', keep, '--out-dir', tmp / 'w', *args])
    weights = ['--weights', keep / 'model.weights'] if (keep / 'model.weights').exists() else []
    if p.returncode == 0:
        words = [w for a in args for w in ('--in', a.removeprefix('--in='))]
        p = run([*VALGRIND, keep / 'model.run', '--out-dir', tmp / 'w', *weights, *words])
    yield 'valgrind: a generated program', p.returncode == 0, p.stdout[-3000:]


def suite(t):
    asan, fault = built(t, 'asan', 'obj/asan/pdcc'), built(t, 'fault', 'obj/fault/pdcc')
    with tempfile.TemporaryDirectory() as tmp:
        yield from fuzz(t, asan, tmp)
        yield from cuts(asan, tmp)
        yield from commands(asan, tmp)
        yield from failing_calls(fault)
        yield from generated(t)
        yield from valgrind(t, tmp)
