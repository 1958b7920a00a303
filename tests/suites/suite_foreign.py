"""The digits program where mistakes show: under sanitizers and valgrind, and as NEON code under qemu; the one that reads text, too."""
import pathlib, re, tempfile

from pdcc_tests import SRC, run

SLOW = True
FOLDER = SRC / 'samples/digits'
RIGHT = '356 of 360 held-out images right'
SANITIZE = '-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all'


def build(t, tmp, name, *settings):
    """Builds the sample with these make variables; (message, program's arguments)."""
    out = pathlib.Path(tmp) / name
    p = run(['make', '-s', '-C', FOLDER, f'PDCC={t.pdcc}', f'OUT={out}', *settings, f'{out}/digits'])
    return p, [out / 'digits', out / 'digits.weights', FOLDER / 'heldout.bin']


def verdict(name, built, *wrapper):
    p, command = built
    if p.returncode == 0:
        p = run([*wrapper, *command])
    return name, p.returncode == 0 and RIGHT in p.stdout, p.stdout[-2500:]


def reads_text(t, tmp, name, *settings):
    """The OCR sample built with these make variables; it fails when it reads less than it should."""
    p = run(['make', '-s', '-C', SRC / 'samples/ocr', f'PDCC={t.pdcc}', f'OUT={tmp}/ocr-{name.split()[0]}', *settings, 'run'])
    return f'ocr, {name}', p.returncode == 0, p.stdout[-2500:]


def native_isas():
    """The instruction sets that this machine runs."""
    flags = set(re.findall(r'\w+', pathlib.Path('/proc/cpuinfo').read_text()))
    yield 'generic'
    for isa, need in (('sse4', 'sse4_2'), ('avx2', 'fma'), ('avx512', 'avx512dq')):
        if need in flags:
            yield isa


def suite(t):
    with tempfile.TemporaryDirectory() as tmp:
        for isa in native_isas():
            yield verdict(f'sanitizers, {isa}', build(t, tmp, f'sanitize-{isa}', f'ISA={isa}', f'CFLAGS={SANITIZE}', 'CC=gcc'))
        yield reads_text(t, tmp, 'sanitizers', 'ISA=native', f'CFLAGS={SANITIZE}', 'CC=gcc')
        if t.config.get('VALGRIND'):
            # Valgrind does not know AVX-512.
            yield verdict('valgrind', build(t, tmp, 'valgrind', 'ISA=generic', 'CC=gcc', 'CFLAGS=-O1 -g'),
                          t.config['VALGRIND'], '-q', '--error-exitcode=9', '--leak-check=full')
        if t.config.get('QEMU_AARCH64') and t.config.get('CC_AARCH64'):
            yield verdict('neon under qemu', build(t, tmp, 'neon', 'ISA=neon', f"CC={t.config['CC_AARCH64']}", 'LDFLAGS=-static'),
                          t.config['QEMU_AARCH64'])
            yield reads_text(t, tmp, 'neon under qemu', 'ISA=neon', f"CC={t.config['CC_AARCH64']}", 'LDFLAGS=-static',
                             f"WRAPPER={t.config['QEMU_AARCH64']}")
