"""What README.md says is so: each option, target, status and file that it names is there, each command that it shows does what the
line says, on a small model in place of `model.pdmodel` and the digits in place of MODEL, and what it shows of generated code and
of messages is what pdcc writes. Its first block and its accuracy: suite_samples. For the docs suite."""
import pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIGITS = ROOT / 'samples/digits/digits.pdmodel'

# With the names that the commands of the README use.
SMALL = """
var x f32 -1,4
param w_0 f32 4,3 = 0.5
var h f32 -1,3
var probabilities f32 -1,3
var loss f32 1
feed x 0
op matmul_v2 X=x Y=w_0 -> Out=h
op softmax X=h -> Out=probabilities {axis: -1}
op reduce_mean X=probabilities -> Out=loss {dim: [0], reduce_all: True, keep_dim: False}
fetch probabilities 0
fetch loss 1
"""
UNSUPPORTED = 'var x f32 4\n' + ''.join(f'var v{i} f32 4\n' for i in range(10)) + 'feed x 0\n' + \
    ''.join(f'op relu X={f"v{i - 1}" if i else "x"} -> Out=v{i}\n' for i in range(9)) + \
    'op pull_sparse Ids=v8 -> Out=x\nfetch x 0\n'
# What a C compiler is told for an instruction set is in the code, as a check of it.
HOST_ONLY = 'native', 'neon', 'generic'


def run(command, cwd):
    return subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def model(text, folder, name):
    (folder / f'{name}.txt').write_text(text)
    p = run([sys.executable, ROOT / 'tests/mkmodel.py', folder / f'{name}.txt', folder / f'{name}.pdmodel', folder / f'{name}.pdiparams'],
            folder)
    return p.returncode == 0, p.stdout


def named(t, text):
    """Options, targets, statuses and files."""
    helps = ''.join(run([t.pdcc, *c, '--help'], ROOT).stdout
                    for c in ([], ['run'], ['verify'], ['bench'], ['info'], ['opt'], ['diff']))
    configure = run(['./configure', '--help'], ROOT).stdout
    missing = sorted({o for o in re.findall(r'(?<![\w-])--[a-z][a-z-]+', text) if o not in helps + configure and o not in ('--man', '--help')})
    yield 'options', not missing, ' '.join(missing)
    targets = (ROOT / 'Makefile').read_text()
    missing = sorted({m for m in re.findall(r'`make ([a-z-]+)`|&& make ([a-z-]+)', text) for m in m
                      if m and not re.search(rf'^(?:[\w -]*\s)?{m}(?:\s[\w -]*)?:', targets, re.M)})
    yield 'targets of make', not missing, ' '.join(missing)
    stub = ''.join(p.read_text() for p in (ROOT / 'runtime_stub').glob('pdrt*.h'))
    missing = sorted({s for s in re.findall(r'\bPD_[A-Z_]+\b', text) if s not in stub})
    yield 'statuses', not missing, ' '.join(missing)
    missing = sorted({f for f in re.findall(r'\]\((?!http)([\w./-]+)', text) if not (ROOT / f).exists()})
    missing += [f for f in re.findall(r'`((?:samples|docs|tests|runtime_stub)/[\w./]+)`', text) if not (ROOT / f).exists()]
    yield 'files', not missing, ' '.join(missing)


def interface(t, text):
    """The functions that generated code has, and the flags that it asks a compiler for."""
    have = re.sub(r'\s+', ' ', (ROOT / 'samples/digits/digits.h').read_text())
    missing = [l for l in re.search(r'```c\n(size_t    digits.*?)```', text, re.S)[1].splitlines() if re.sub(r'\s+', ' ', l) not in have]
    yield 'interface', not missing, '\n'.join(missing)
    with tempfile.TemporaryDirectory() as tmp:
        p = run([t.pdcc, DIGITS, '-o', 'model.cu'], tmp)
        cuda = re.sub(r'\s+', ' ', (pathlib.Path(tmp) / 'model.h').read_text()) if p.returncode == 0 else ''
        wanted = re.findall(r'^    ((?:pd_status|void) +model_.*)$', text, re.M)
        missing = [l for l in wanted if re.sub(r'\s+', ' ', l) not in cuda]
        yield 'interface of CUDA', len(wanted) == 5 and not missing, p.stdout + '\n'.join(missing)
    for isa, flags in re.findall(r'^\| `(\w+)` \|[^|]*\| (?:as `avx512`, and )?`([^`]*)`', text, re.M):
        if isa in HOST_ONLY:
            continue
        code = run([t.pdcc, DIGITS, '--prefix=model', f'--isa={isa}', '-o', '-', '--emit=c'], ROOT).stdout
        wants = re.search(r'#error.*compile it with (.*)"', code)
        yield f'flags of {isa}', wants is not None and set(flags.split()) <= set(wants[1].split()), wants[1] if wants else code[:300]


def commands(text):
    """(as the README has it, its words)"""
    for line in re.findall(r'^    (pdcc .*)$', text, re.M):
        said = re.split(r'\s{3,}|\s+#', line)[0]
        yield said, said.split()


def commands_run(t, text, folder):
    small = folder / 'model.pdmodel'
    names = {'MODEL': DIGITS, 'OUT.c': folder / 'out/digits.c', 'OUT.so': folder / 'out/libdigits.so', 'X=x.npy': f'image={folder}/x.npy',
             'Y=y.npy': f'save_infer_model/scale_0.tmp_0={folder}/y.npy', 'D': folder / 'd', 'FILE.pdir': folder / 'file.pdir',
             'model.pdmodel': small}
    (folder / 'out').mkdir()
    run([sys.executable, ROOT / 'tests/mknpy.py', folder / 'x.npy', 'f32', '1,1,8,8', *['0'] * 64], folder)
    run([t.pdcc, DIGITS, '-o', folder / 'file.pdir'], folder)
    run([t.pdcc, small, '--grad', 'loss', '--wrt', 'x', '-o', folder / 'model_grad.pdir'], folder)
    for said, words in commands(text):
        command = [t.pdcc if w == 'pdcc' else names.get(w, w) for w in words]
        if words[1] == 'bench':
            command += ['--repeat', '3']
        p = run(command, folder)
        if words[1] == 'run' and (folder / 'd/0/0.npy').exists():
            (folder / 'y.npy').write_bytes((folder / 'd/0/0.npy').read_bytes())
        yield said, p.returncode == 0, p.stdout[-1500:]
    there = [f for f in ('out/digits.c', 'out/digits.h', 'out/digits.weights', 'out/libdigits.so', 'out/libdigits.h', 'd/0/0.npy') if
             (folder / f).exists()]
    yield 'what they write', len(there) == 6, ' '.join(there)
    header = (folder / 'model_grad.h').read_text()
    yield 'names of gradients', 'grad_x;' in header and 'grad_w_0;' in header and 'model_grad_run(' in header, header[-1500:]


def shown(t, text, folder):
    """The recipe and the message."""
    recipe = re.search(r'```yaml\n(.*?)```', text, re.S)[1]
    (folder / 'recipe.yml').write_text(recipe)
    made, said = model(SMALL.replace('fetch loss 1\n', ''), folder, 'inference')
    yield 'a model of inference', made, said
    p = run([t.pdcc, 'inference.pdmodel', '--train', 'recipe.yml', '-o', 'step.c', '--prefix=model'], folder)
    header = folder / 'step.h'
    yield 'recipe', p.returncode == 0 and 'model_train_step(' in header.read_text(), p.stdout[-1500:]
    message = re.search(r'^    model\.pdmodel: (.*)$', text, re.M)[1]
    made, said = model(UNSUPPORTED, folder, 'unsupported')
    p = run([t.pdcc, 'unsupported.pdmodel', '-o', 'u.c'], folder)
    yield 'message', made and p.returncode == 1 and message in p.stdout, said + p.stdout


def check(t):
    text = (ROOT / 'README.md').read_text()
    for part in (named, interface):
        for name, ok, said in part(t, text):
            yield f'README: {name}', ok, said
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        made, said = model(SMALL, folder, 'model')
        yield 'README: the small model', made, said
        for part in (commands_run, shown):
            for name, ok, said in part(t, text, folder):
                yield f'README: {name}', ok, said
