"""The samples: accuracy of the digits program, of one that trains it for an epoch, and of the one that reads text; the C beside
the first, the benchmark's recipe for weights; what the README shows."""
import pathlib, re, tempfile

from pdcc_tests import SRC, run

SLOW = False


def digits(t, tmp):
    folder = SRC / 'samples/digits'
    p = run(['make', '-s', '-C', folder, f'PDCC={t.pdcc}', f"CC={t.config['CC']}", f'OUT={tmp}/digits', 'run'])
    found = re.search(r'(\d+) of (\d+) held-out images right', p.stdout)
    yield 'digits runs', p.returncode == 0 and found is not None, p.stdout
    yield 'digits is as right as Paddle', bool(found) and found.groups() == ('356', '360'), p.stdout
    for name in ('digits.c', 'digits.h'):
        same = (folder / name).read_text() == (pathlib.Path(tmp) / 'digits' / name).read_text()
        yield f'{name} is what pdcc writes', same, 'renew it with: make -C samples/digits golden'


def mobilenet(t, tmp):
    out = pathlib.Path(tmp) / 'mobilenet'
    p = run(['make', '-s', '-C', SRC / 'samples/mobilenet_v1', f'PDCC={t.pdcc}', f'PYTHON={t.python}', f'OUT={out}',
             'ISA=generic', 'code'])
    yield 'mobilenet_v1 compiles', p.returncode == 0 and (out / 'mobilenet_v1.c').exists(), p.stdout


def heights(picture):
    """Of the points of a plot, downwards."""
    points = re.search(r'points="([^"]*)"', picture.read_text())
    return [float(xy.split(',')[1]) for xy in points[1].split()]


def train(t, tmp):
    """One epoch of eight, and one step of six: the programs themselves say whether that is right enough. The losses fall, and their
    pictures have all steps."""
    out = pathlib.Path(tmp) / 'train'
    p = run(['make', '-s', '-C', SRC / 'samples/train', f'PDCC={t.pdcc}', f"CC={t.config['CC']}", f'OUT={out}', 'EPOCHS=1', 'STEPS=250',
             'run'])
    yield 'train learns', p.returncode == 0 and 'epoch 1: loss' in p.stdout and 'step 250: loss' in p.stdout, p.stdout
    for name, steps in (('loss', 22), ('add', 250)):
        points = heights(out / f'{name}.svg') if p.returncode == 0 else []
        yield f'train plots {name}.svg', len(points) == steps and points[0] < points[-1], points
    found = re.search(r'(\d+) of 1000 sums of up to 40 bits right', p.stdout)
    yield 'what was trained on 7 bits adds 40', bool(found) and int(found[1]) >= 900, p.stdout


def ocr(t, tmp):
    folder = SRC / 'samples/ocr'
    p = run(['make', '-s', '-C', folder, f'PDCC={t.pdcc}', f"CC={t.config['CC']}", f'OUT={tmp}/ocr', 'run'])
    yield 'ocr reads its page', p.returncode == 0, p.stdout
    shown = re.search(r'\n\n((?:    +[^\n]*\n)+)', (folder / 'README.md').read_text().partition('What it prints')[2])[1]
    yield "ocr's README", [line.strip() for line in shown.splitlines()] == [line.strip() for line in p.stdout.splitlines()], p.stdout


def readme(t, tmp):
    """What the README shows is what pdcc prints and writes."""
    text = (SRC / 'README.md').read_text()
    shown = re.search(r'    \$ \./pdcc (info \S+ --isa=generic)\n(.*?)\n\n', text, re.S)
    p = run([t.pdcc, *shown[1].split()], cwd=SRC)
    yield "README's info", p.stdout.strip() == re.sub('^    ', '', shown[2], flags=re.M), p.stdout
    code = (SRC / 'samples/digits/digits.c').read_text()
    example = re.search(r'```c\n(\t/\* conv2d.*?)```', text, re.S)[1]
    wrong = [line for line in example.splitlines() if line.strip() not in ('', '...') and line not in code.splitlines()]
    yield "README's code", not wrong, '\n'.join(wrong)
    for sample in (text, (SRC / 'samples/digits/README.md').read_text()):
        line = re.search(r'^ +(\d+ of \d+ held-out images right.*)$', sample, re.M)[1]
        p = run(['make', '-s', '-C', SRC / 'samples/digits', f'PDCC={t.pdcc}', f'OUT={tmp}/digits', 'run'])
        yield "README's accuracy", line in p.stdout.splitlines(), p.stdout


def suite(t):
    with tempfile.TemporaryDirectory() as tmp:
        yield from readme(t, tmp)
        yield from digits(t, tmp)
        yield from train(t, tmp)
        yield from ocr(t, tmp)
        yield from mobilenet(t, tmp)
