"""Bad input: one diagnostic, exit status 1 (2 for usage), no output file left behind, never a crash."""
import os, pathlib, random, shutil, struct, tempfile

from pdcc_tests import SHARED, SRC, run

SLOW = False
MODEL = SRC / 'samples/digits/digits.pdmodel'
PARAMS = SRC / 'samples/digits/digits.pdiparams'


class Probe:
    """Runs pdcc on a model made of given bytes and judges how it fails."""

    def __init__(self, t, tmp):
        self.t, self.tmp, self.out = t, pathlib.Path(tmp), pathlib.Path(tmp) / 'out'
        self.out.mkdir()

    def fails_well(self, model, params, want=1):
        m, p = self.tmp / 'model.pdmodel', self.tmp / 'model.pdiparams'
        m.write_bytes(model)
        p.write_bytes(params)
        r = run([self.t.pdcc, m, '--params', p, '-o', self.out / 'x.c'], timeout=60)
        left = list(self.out.iterdir())
        for f in left:
            f.unlink()
        if r.returncode == 0 and want is None:
            return True, ''
        ok = r.returncode == 1 and 'error:' in r.stdout and not left
        return ok, f'exit status {r.returncode}, left {[f.name for f in left]}\n{r.stdout[-800:]}'


def gather(name, outcomes):
    """One result for many probes: the first that went wrong speaks for all."""
    n = 0
    for what, (ok, message) in outcomes:
        n += 1
        if not ok:
            return name, False, f'{what}: {message}'
    return f'{name} ({n})', n > 0, ''


def cuts(probe, model, params, step):
    for n in range(0, len(model), step):
        yield f'model cut at {n}', probe.fails_well(model[:n], params, None if n else 1)


def param_cuts(probe, model, params):
    places = list(range(0, 200, 7)) + list(range(200, len(params), 9973)) + [len(params) - 1]
    for n in places:
        yield f'parameters cut at {n}', probe.fails_well(model, params[:n])
    yield 'parameters too long', probe.fails_well(model, params + b'more')


def noise(probe, model, params, count):
    rng = random.Random(1)
    for i in range(count):
        if i % 2:
            data = bytearray(model)
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        else:
            data = rng.randbytes(rng.randint(1, 400))
        yield f'random bytes {i}', probe.fails_well(bytes(data), params, None)


def configs(t, tmp):
    """The .yml beside a program, cut short and with bytes of its own elsewhere."""
    folder, rng = pathlib.Path(tmp) / 'shipped', random.Random(2)
    folder.mkdir()
    shutil.copy(SRC / 'tests/frontend/Inputs/pir-same.json', folder / 'inference.json')
    text = (SRC / 'tests/frontend/Inputs/recognise.yml').read_bytes()
    for i in range(120):
        data = bytearray(text[:i * 7] if i % 2 else text)
        for _ in range(rng.randint(0, 6) if data else 0):
            data[rng.randrange(len(data))] = rng.choice(text + b'\0\xff&*!|>%@`?{}[]')
        (folder / 'inference.yml').write_bytes(data)
        r = run([t.pdcc, 'info', folder], timeout=60)
        ok = r.returncode == 0 or (r.returncode == 1 and 'inference.yml' in r.stdout and 'error:' in r.stdout)
        yield f'damaged .yml {i}', (ok, f'exit status {r.returncode}\n{r.stdout[-800:]}')


def usage(t, tmp):
    out = pathlib.Path(tmp) / 'u.c'
    cases = {
        'no model': ([], 2), 'unknown option': ([MODEL, '--nonsense'], 2), 'no output': ([MODEL], 2),
        'missing value': ([MODEL, '-o'], 2), 'bad isa': ([MODEL, '-o', out, '--isa=mips'], 2),
        'unknown suffix': ([MODEL, '-o', out.with_suffix('.xyz')], 2), 'bad prefix': ([MODEL, '-o', out, '--prefix=1a'], 2),
        'bad arch': ([MODEL, '-o', out, '--arch=sm_80,sm_81'], 2), 'empty arch': ([MODEL, '-o', out, '--arch=sm_80,'], 2),
        'arch of the toolkit': ([MODEL, '-o', out, '--arch=compute_80'], 2),
        'the interpreter on the clock': (['bench', MODEL, '--target=interp'], 2),
        'no such model': ([pathlib.Path(tmp) / 'none.pdmodel', '-o', out], 1),
        'unwritable output': ([MODEL, '-o', '/nonexistent/folder/x.c'], 1),
        'output is a folder': ([MODEL, '-o', pathlib.Path(tmp), '--emit=c'], 1),
        'bad shape': ([MODEL, '-o', out, '--shape=image=1,3,8,8'], 1),
        'no second model': (['diff', MODEL], 2), 'no such second model': (['diff', MODEL, pathlib.Path(tmp) / 'none.pdmodel'], 2),
        'a damaged second model': (['diff', MODEL, PARAMS], 2),
        'unknown feed in --shape': ([MODEL, '-o', out, '--shape=nobody=1'], 1),
    }
    for name, (args, want) in cases.items():
        p = run([t.pdcc, *args])
        yield name, p.returncode == want and 'error' in p.stdout and not out.exists(), f'{p.returncode}: {p.stdout[-500:]}'
    text = pathlib.Path(tmp) / 'model.pdir'
    run([t.pdcc, MODEL, '-o', text])
    other = SRC / 'tests/corpus/cases/relu-0/model.pdmodel'
    for name, args, want in ('the same', [text, '--other-params', PARAMS], 0), ('another', [other], 1):
        p = run([t.pdcc, 'diff', MODEL, *args])
        yield f'diff: {name}', p.returncode == want, f'{p.returncode}: {p.stdout[-500:]}'
    if os.path.exists('/dev/full'):
        with open('/dev/full', 'w') as full:
            p = run([t.pdcc, MODEL, '--emit=ir', '-o', '-'], stdout=full, stderr=-1)
        yield 'full disk', p.returncode == 1, f'{p.returncode}'
    for args in (['--help'], ['--version'], ['run', '--help'], ['--completion=bash'], ['--completion=zsh'],
                 ['--completion=fish'], ['--man']):
        p = run([t.pdcc, *args])
        yield ' '.join(args), p.returncode == 0 and len(p.stdout) > 4, p.stdout[-300:]


def unsupported(t, tmp):
    """Every unsupported operator is listed, not the first alone."""
    data = MODEL.read_bytes().replace(b'relu', b'relX').replace(b'pool2d', b'poolXd')
    m = pathlib.Path(tmp) / 'unsupported.pdmodel'
    m.write_bytes(data)
    p = run([t.pdcc, m, '--params', PARAMS, '-o', pathlib.Path(tmp) / 'n.c'])
    ok = p.returncode == 1 and "'relX'" in p.stdout and "'poolXd'" in p.stdout and 'block 0, op' in p.stdout
    yield 'all unsupported operators are listed', ok, p.stdout


def suite(t):
    model, params = MODEL.read_bytes(), PARAMS.read_bytes()
    with tempfile.TemporaryDirectory() as tmp:
        probe = Probe(t, tmp)
        yield gather('model cut short', cuts(probe, model, params, 61))
        yield gather('parameters cut short', param_cuts(probe, model, params))
        yield gather('random bytes', noise(probe, model, params, 150))
        yield gather('damaged .yml', configs(t, tmp))
        yield from usage(t, tmp)
        yield from unsupported(t, tmp)
    if t.all or t.only:
        import attributes
        yield from attributes.check_all(t)
