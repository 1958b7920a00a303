"""Training steps whose loops may keep little: with --stack-budget and with any --remat, what three steps leave in the parameters and in
the optimizer is the same to the bit, in the interpreter, as sanitized C and as emulated CUDA."""
import pathlib, re, shutil, subprocess, sys, tempfile

import emulated, gradients
from pdcc_tests import SRC, run

SLOW = False
RECIPE = 'loss: {type: fetch, of: loss, reduction: sum}\noptimizer: {type: adam}\nlearning_rate: 0.05\nmetrics: [loss]\n'
SANITIZE = '-fsanitize=address,undefined -fno-sanitize-recover=all'
BRANCH = 's = sum y\nt = const 1.5\np = greater s t\nif p {{\n{0}\n}}\n'


def inner(rounds, body):
    return f'k = int 0\nm = int {rounds}\nd = less k m\nwhile d {{\n{body}\nk = inc k\nd = less k m\n}}\n'


# name -> program of x and the parameter w, a budget that checkpoints fit into, and how many of its loops have some then
PROGRAMS = {
    'a long loop': ('y = assign x\n' + gradients.loop(40, 'h = mul y w\ny = tanh h'), 200, 1),
    'if in while in while': ('y = mul x w\n' + gradients.loop(12, inner(9, BRANCH.format('y = tanh y\ny = mul y w') + 'y = add y w')
                                                            + 'y = tanh y\ny = mul y x'), 300, 2),
    'while in if in while': ('y = mul x w\n' + gradients.loop(12, BRANCH.format(inner(8, 'y = tanh y\ny = mul y w')) + 'y = mul y x\n'
                                                            'y = add y w'), 300, 2),
    'a loop that ends early': ('y = assign x\ni = int 0\nn = int 60\nc = less i n\nwhile c {\ny = mul y x\ny = tanh y\ny = add y w\n'
                               't = const 0\nq = sum y\nb = greater q t\ni = inc i\nc = less i n\nc = and c b\n}', 250, 1),
    'an array beside it': ('h = assign x\ni = int 0\na = write x i\n' + gradients.loop(24, 'h = mul h w\nh = tanh h\na = write h i')
                           + '\nt = stack a\ny = mul t t', 250, 1),
    'a vector that grows': ('y = cat x w\n' + gradients.loop(40, 'h = tanh y\ny = cat h w'), 3000, 1),
    'a vector that branches make grow': ('y = mul x w\n' + gradients.loop(
        40, 's = sum y\nt = const 0.2\np = greater s t\nif p {\nh = tanh y\ny = cat h w\nu = const 2\nq = greater s u\nif q {\n'
            'y = cat y x\n}\n}\nr = not p\nif r {\ny = cat w y\n}\ny = tanh y'), 6000, 1),
    'a vector that grows, in a loop in a loop': ('y = assign x\n' + gradients.loop(
        10, inner(5, 'h = tanh y\ny = cat h w') + 'y = scale y 0.5'), 6000, 2),
}
ON_CUDA = ('while in if in while', 'a vector that grows')


def model_of(text, folder):
    lines = gradients.Model({'x': [0.7, 0.4], 'w': [0.9, 1.1]}, text).text().split('\n')
    lines = ['param w f64 2 = 0.9,1.1' if line.startswith('var w ') else line for line in lines if not line.startswith('feed w ')]
    (folder / 'm.txt').write_text('\n'.join(lines))
    subprocess.run([sys.executable, SRC / 'tests/mkmodel.py', folder / 'm.txt', folder / 'm.pdmodel', folder / 'm.pdiparams'], check=True)
    (folder / 'recipe.yml').write_text(RECIPE)
    run([sys.executable, SRC / 'tests/mknpy.py', folder / 'x.npy', 'f64', '2', '0.7', '0.4'])
    return folder / 'm.pdmodel'


def state(t, folder, model, *flags, env=None):
    """What three steps leave; text: why there is none."""
    out = folder / 'state'
    out.unlink(missing_ok=True)
    x = ['--in', f'x={folder / "x.npy"}']
    p = run([t.pdcc, 'run', model, '--train', folder / 'recipe.yml', *x, '--next', *x, '--next', *x, '--out-dir', folder / 'out', '--save-state', out, *flags], env=env)
    return out.read_bytes() if p.returncode == 0 else p.stdout


def checkpoints(t, folder, model, budget):
    p = run([t.pdcc, model, '--train', folder / 'recipe.yml', '--stack-budget', budget, '--emit=ir', '-o', '-'])
    return len(re.findall(r'checkpoints = \[\d+, \d+, \d+\]', p.stdout))


def check(t, folder, name, text, budget, loops):
    """What is wrong; '': nothing."""
    model, wrong, within = model_of(text, folder), [], ['--stack-budget', str(budget)]
    targets = [(['--target', 'interp'], None, (within, ['--remat', 'always'], ['--remat', 'never'])),
               (['--redzone', '--cflags', SANITIZE], None, (within, ['--remat', 'always']))]
    if name in ON_CUDA and shutil.which('g++'):
        targets.append((['--target', 'cuda'], emulated.environment(CUDAEMU_SEED='3', CUDAEMU_RACES='1'), (within,)))
    found = checkpoints(t, folder, model, budget)
    if found != loops:
        wrong.append(f'{found} loops with checkpoints, not {loops}')
    for flags, env, hows in targets:
        want = state(t, folder, model, *flags, env=env)
        if isinstance(want, str):
            return want
        for how in hows:
            got = state(t, folder, model, *flags, *how, env=env)
            if got != want:
                wrong.append(f'{" ".join(flags + how)}: {got if isinstance(got, str) else "other bits"}')
    return '; '.join(wrong)


def suite(t):
    for name, (text, budget, loops) in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as tmp:
            wrong = check(t, pathlib.Path(tmp), name, text, budget, loops)
        yield f'steps within a budget: {name}', not wrong, wrong
