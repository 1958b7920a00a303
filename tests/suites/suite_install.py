"""What `make install` puts below prefix works: the compiler, its manual, pkg-config, completion, CMake."""
import os, pathlib, shutil, tempfile

from pdcc_tests import SRC, run

SLOW = False
PREFIX = '/opt/pdcc'
FILES = ('bin/pdcc include/pdrt.h include/pdrt_threads.h include/pdrt_cuda.h include/pdrt_cuda_device.h share/pdcc/pdrt.c share/pdcc/pdrt_threads.c share/man/man1/pdcc.1 lib/pkgconfig/pdcc.pc '
         'lib/cmake/pdcc/pdccConfig.cmake lib/cmake/pdcc/pdccConfigVersion.cmake share/bash-completion/completions/pdcc share/zsh/site-functions/_pdcc '
         'share/fish/vendor_completions.d/pdcc.fish').split()

CMAKE = '''cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(pdcc {version} REQUIRED)
pdcc_add_model(digits MODEL "{model}" ISA generic OPTIONS --weights=inline)
add_executable(app "{main}")
target_link_libraries(app PRIVATE digits)
'''
MAIN = '''#include <stdio.h>
#include "digits.h"

PDRT_ALIGN64 static unsigned char workspace[1 << 16];

int main(void)
{
	digits net;
	float image[64] = {0}, out[10], sum = 0;
	digits_inputs in = {.dims = {.n = 1}, .image = image};
	digits_outputs to = {.save_infer_model_scale_0_tmp_0 = out};
	if (digits_init(&net, NULL, 0, workspace, sizeof workspace) != PD_OK || digits_run(&net, &in, &to) != PD_OK)
		return 1;
	for (int i = 0; i < 10; i++)
		sum += out[i];
	printf("sum %.3f\\n", sum);
	return 0;
}
'''


def manual(root):
    """The manual page formats without complaint."""
    if not shutil.which('groff'):
        return
    p = run(['groff', '-man', '-Tutf8', '-ww', '-z', root / 'share/man/man1/pdcc.1'])
    yield 'the manual page formats', p.returncode == 0 and not p.stdout, p.stdout


def completion(root):
    """Completing `pdcc info --js` in bash."""
    script = (f'. {root}/share/bash-completion/completions/pdcc; COMP_WORDS=(pdcc info --js); COMP_CWORD=2; _pdcc; '
              'echo "${COMPREPLY[@]}"')
    p = run(['bash', '-c', script])
    yield 'bash completes', '--json' in p.stdout.split(), p.stdout


def pkg_config(root, dest):
    if not shutil.which('pkg-config'):
        return
    env = dict(os.environ, PKG_CONFIG_LIBDIR=str(root / 'lib/pkgconfig'), PKG_CONFIG_SYSROOT_DIR=str(dest))
    p = run(['pkg-config', '--cflags', 'pdcc'], env=env)
    q = run(['pkg-config', '--variable=stubdir', 'pdcc'], env=env)
    yield 'pkg-config', f'-I{root}/include' in p.stdout and q.stdout.strip().endswith('/share/pdcc'), p.stdout + q.stdout


def cmake(root, tmp):
    if not shutil.which('cmake'):
        return
    src = tmp / 'app'
    src.mkdir()
    (src / 'main.c').write_text(MAIN)
    version = run([root / 'bin/pdcc', '--version']).stdout.split()[1]
    lists = CMAKE.format(model=SRC / 'samples/digits/digits.pdmodel', main=src / 'main.c', version=version)
    (src / 'CMakeLists.txt').write_text(lists)
    p = run(['cmake', '-S', src, '-B', tmp / 'build', f'-Dpdcc_DIR={root}/lib/cmake/pdcc'])
    if p.returncode == 0:
        p = run(['cmake', '--build', tmp / 'build'])
    q = run([tmp / 'build/app']) if p.returncode == 0 else p
    yield 'pdcc_add_model() in CMake', q.returncode == 0 and q.stdout == 'sum 1.000\n', p.stdout[-2500:] + q.stdout
    (src / 'CMakeLists.txt').write_text(lists.replace(version, '99.0'))
    p = run(['cmake', '-S', src, '-B', tmp / 'newer', f'-Dpdcc_DIR={root}/lib/cmake/pdcc'])
    yield 'find_package() of a version that is not there', p.returncode != 0 and version in p.stdout, p.stdout


REBUILD = '''cmake_minimum_required(VERSION 3.20)
project(app C)
find_package(pdcc REQUIRED)
pdcc_add_model(digits MODEL digits.pdmodel ISA native OPTIONS --weights=file)
'''


def rebuilds(root, tmp):
    """What CMake makes again: code and weights, when parameters change or the weights are not there, and only then."""
    if not shutil.which('cmake'):
        return
    for generator in ('Unix Makefiles', *(['Ninja'] if shutil.which('ninja') else [])):
        src, build = tmp / f'src {generator}', tmp / f'build {generator}'
        src.mkdir()
        for name in ('digits.pdmodel', 'digits.pdiparams'):
            shutil.copy(SRC / 'samples/digits' / name, src)
        (src / 'CMakeLists.txt').write_text(REBUILD)
        p = run(['cmake', '-S', src, '-B', build, '-G', generator, f'-Dpdcc_DIR={root}/lib/cmake/pdcc'])
        out, weights = p.stdout, build / 'pdcc/digits/digits.weights'

        def built():
            nonlocal out
            p = run(['cmake', '--build', build])
            out += p.stdout
            return weights.read_bytes() if p.returncode == 0 and weights.exists() else b'', 'pdcc digits' in p.stdout

        first, made = built()
        yield f'{generator}: ISA native', made and len(first) > 1000, out[-2500:]
        again, made = built()
        yield f'{generator}: nothing changed', first == again and not made, out[-2500:]
        weights.unlink()
        again, made = built()
        yield f'{generator}: weights deleted', first == again and made, out[-2500:]
        data = bytearray((src / 'digits.pdiparams').read_bytes())
        data[-1] ^= 1
        (src / 'digits.pdiparams').write_bytes(data)
        again, made = built()
        yield f'{generator}: parameters changed', made and len(again) == len(first) and again != first, out[-2500:]


def suite(t):
    with tempfile.TemporaryDirectory() as tmp:
        dest = pathlib.Path(tmp) / 'dest'
        root = dest / PREFIX.lstrip('/')
        p = run(['make', '-s', '-C', t.build, 'install', f'DESTDIR={dest}', f'prefix={PREFIX}'])
        yield 'make install', p.returncode == 0, p.stdout[-2000:]
        there = sorted(str(f.relative_to(root)) for f in root.rglob('*') if f.is_file())
        yield 'these files and no others', there == sorted(FILES), '\n'.join(there)
        p = run([root / 'bin/pdcc', '--version'])
        yield 'the installed compiler runs', p.returncode == 0 and p.stdout.startswith('pdcc '), p.stdout
        yield from manual(root)
        yield from completion(root)
        yield from pkg_config(root, dest)
        yield from cmake(root, pathlib.Path(tmp))
        yield from rebuilds(root, pathlib.Path(tmp))
