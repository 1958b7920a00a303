"""What generated code promises: no warnings under strict flags, C and C++, no allocation, no writable globals, the same
bytes from another folder and locale, small models, small differences, exact weights modes; and that printers only print."""
import concurrent.futures, os, pathlib, re, shutil, subprocess, tempfile, zlib

import insert_op
from pdcc_tests import SHARED, SRC, Skip, run

SLOW = False
STRICT = '-Wall -Wextra -Wpedantic -Werror -O1 -fno-math-errno -ffp-contract=fast -c'.split()
CXX = 'g++ -x c++ -std=gnu++17 -fsyntax-only'.split()
STRICTER = ['-Wconversion', '-Wshadow']  # of C
SIMD = {'avx512': '-mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma'.split(), 'avx2': '-mavx2 -mfma'.split(),
        'sse4': ['-msse4.2'], 'generic': []}


def digits():
    return SRC / 'samples/digits/digits.pdmodel'


def models(t):
    """Models to compile: the sample, complex numbers, and with --all some of the shared corpus with their recipes."""
    yield 'digits', digits(), []
    yield 'complex', SRC / 'tests/codegen/complex.pdir', []
    if SHARED.exists() and (t.all or t.only):
        for name in ('lenet', 'mobilenet_v3_small', 'ernie_tiny_4x312', 'unet_b16'):
            yield name, SHARED / f'corpus/models/{name}/model.pdmodel', name


def recipe_params(t, recipe, out):
    code = ('import sys; sys.path.insert(0, sys.argv[1]); from seeded_params import write_params_from_recipe as w; '
            'w(sys.argv[2], sys.argv[3])')
    subprocess.run([t.python, '-c', code, SHARED / 'tools', recipe, out], check=True)


def params_for(t, name, folder):
    """--params for a corpus model whose parameters come from a recipe."""
    if not isinstance(name, str):
        return []
    case = SHARED / 'corpus/models' / name
    if (case / 'model.pdiparams').exists():
        return ['--params', case / 'model.pdiparams']
    out = pathlib.Path(folder) / f'{name}.pdiparams'
    if not out.exists():
        recipe_params(t, case / 'params.yaml', out)
    return ['--params', out]


def compilers(t):
    yield 'gcc'
    if t.config.get('CLANG'):
        yield t.config['CLANG']


def strict(t, tmp):
    for name, path, recipe in models(t):
        params = params_for(t, recipe, tmp)
        for isa, simd in SIMD.items():
            out = pathlib.Path(tmp) / f'{name}_{isa}.c'
            p = run([t.pdcc, path, '-o', out, f'--isa={isa}', *params])
            if p.returncode:
                yield f'{name}/{isa}/generate', False, p.stdout
                continue
            std = '-std=c11' if isa == 'generic' else '-std=gnu11'
            for cc in compilers(t):
                p = run([cc, std, *STRICT, *STRICTER, *simd, '-I', SRC / 'runtime_stub', out, '-o', out.with_suffix('.o')])
                yield f'{name}/{isa}/{cc}', p.returncode == 0, p.stdout[-2000:]
            if shutil.which('g++') and isa in ('generic', 'avx2'):
                p = run([*CXX, *STRICT, *simd, '-I', SRC / 'runtime_stub', out])
                yield f'{name}/{isa}/c++17', p.returncode == 0, p.stdout[-2000:]


# Every so many programs of a folder: a fair sample, the same every time.
SAMPLE = {SRC / 'tests/corpus/cases': 8, **{SHARED / 'corpus' / g: 40 for g in ('user', 'cf', 'p2o', 'paddle-ut')}}


def warnings_of(t, tmp, case):
    """(name, what compilers say) of the C for one recorded program, at -O1 and at -O3; nothing for one that is not supported."""
    name = f'{case.parent.name}-{case.name}'
    out = pathlib.Path(tmp) / f'{name}.c'
    if run([t.pdcc, case / 'model.pdmodel', '-o', out, '--isa=generic']).returncode:
        return []
    # What gcc says of the flow of values depends on the level; clang says all in front of it, and g++ what the language adds.
    commands = [[cc, '-std=c11', *STRICT, *STRICTER, level] for cc in compilers(t) for level in (('-O1', '-O3') if cc == 'gcc' else ('-O3',))]
    if shutil.which('g++'):
        commands.append([*CXX, *STRICT])
    found = []
    for c in commands:
        p = run([*c, '-I', SRC / 'runtime_stub', out, '-o', os.devnull])
        found.append((f"{name}/{c[0]}{c[-1]}", p.returncode == 0, p.stdout[-2000:]))
    return found


def sampled():
    """Some of the recorded programs; which ones does not change when others are added."""
    cases = []
    for folder, each in SAMPLE.items():
        found = sorted(p.parent for p in folder.glob('*/model.pdmodel') if p.stat().st_size < 300000)
        cases += [c for c in found if zlib.crc32(c.name.encode()) % each == 0]
    return cases


def sample(t, tmp):
    """Recorded programs of all kinds become C without warnings."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda c: warnings_of(t, tmp, c), sampled()):
            yield from found


# What the checkers say by design: tensors lie in one workspace of bytes; cppcheck misreads hexadecimal floats (0x1p63f);
# parts of a concat guard their loads each for itself, and what a part's condition implies of another is not found; logf(0) is -inf, as in
# Paddle.
CPPCHECK = ['cppcheck', '--quiet', '--max-configs=1', '--error-exitcode=1', '--std=c11', '--enable=warning,style,performance,portability',
            *(f'--suppress={s}' for s in ('missingIncludeSystem', 'unusedStructMember', 'invalidPointerCast', 'floatConversionOverflow',
                                          'knownConditionTrueFalse', 'toomanyconfigs', 'duplicateValueTernary',
                                          'invalidFunctionArg'))]
# Offsets within a tile are small; parameters of one type are many.
TIDY = '-*,bugprone-*,clang-analyzer-*,performance-*,-bugprone-easily-swappable-parameters,-bugprone-implicit-widening-*,' \
       '-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling'
# Programs that are analysed; with --all, the sample of the recorded programs besides.
ANALYSED = 'nn_Embedding-0', 'ops-loss', 'mini-bcast-loop-xy', 'ops-random', 'nn_Conv2D-1', 'seq-conv', 'dyn-rnn-old', 'train-recurrent'


def analysed(t, tmp):
    """cppcheck and clang-tidy find nothing in generated C, where they are installed."""
    tidy = shutil.which('clang-tidy') or shutil.which('clang-tidy-14')
    if not shutil.which('cppcheck') or not tidy:
        print('generated: cppcheck or clang-tidy is not installed: what it would find is not known', flush=True)
    cases = [digits(), *(SRC / f'tests/corpus/cases/{c}/model.pdmodel' for c in ANALYSED)]
    if t.all:
        cases += [c / 'model.pdmodel' for c in sampled() if c.name not in ANALYSED]
    for path in (c for c in cases if c.exists()):
        name = path.parent.name
        out = pathlib.Path(tmp) / f'analysed_{path.parent.parent.name}_{name}.c'
        if run([t.pdcc, path, '-o', out, '--isa=generic']).returncode:
            continue
        if shutil.which('cppcheck'):
            p = run([*CPPCHECK, '-I', SRC / 'runtime_stub', out])
            yield f'cppcheck: {name}', p.returncode == 0, p.stdout[-2000:]
        if tidy:
            p = run([tidy, '--quiet', f'--checks={TIDY}', '--warnings-as-errors=*', out, '--', '-std=c11', '-I', SRC / 'runtime_stub'])
            yield f'clang-tidy: {name}', p.returncode == 0, p.stdout[-2000:]


MISRA = ('ops-loss', 'nn_Embedding-0', 'seq-conv')


def misra(t, tmp):
    """What cppcheck's MISRA addon reports of generated C is a deviation that docs/misra.md lists, where the addon is installed."""
    listed = set(re.findall(r'^\| (\d+\.\d+) \| (?:required|advisory) \| \S', (SRC / 'docs/misra.md').read_text(), re.M))
    addon = ['cppcheck', '--quiet', '--max-configs=1', '--std=c11', '--addon=misra', '-I', SRC / 'runtime_stub']
    probe = pathlib.Path(tmp) / 'probe.c'
    probe.write_text('int f(int x);\nint f(int x) { goto out; out: return x; }\n')
    if not shutil.which('cppcheck') or 'misra-c2012-15.1' not in run([*addon, probe]).stdout:
        print('generated: cppcheck has no MISRA addon here: what it would report is not known', flush=True)
        return
    for path in (digits(), *(SRC / f'tests/corpus/cases/{c}/model.pdmodel' for c in MISRA)):
        out = pathlib.Path(tmp) / f'misra_{path.parent.name.replace("-", "_")}.c'
        run([t.pdcc, path, '-o', out, '--isa=generic'])
        found = set(re.findall(r'misra-c2012-(\d+\.\d+)', run([*addon, out]).stdout))
        yield f'misra: {path.parent.name}', len(found) > 3 and found <= listed, 'not in docs/misra.md: ' + ' '.join(sorted(found - listed))


def columns(t, tmp):
    """No line of C, CUDA or a header is longer than 100 columns (a tab is four), but for words that cannot be broken; and no
    loop of C has one round."""
    for path in (digits(), SRC / 'tests/corpus/cases/mini-bcast-loop-xy/model.pdmodel'):
        for suffix in ('.c', '.cu'):
            out = pathlib.Path(tmp) / f'columns_{path.parent.name.replace("-", "_")}_{suffix[1:]}{suffix}'
            run([t.pdcc, path, '-o', out])
            for f in (out, out.with_suffix('.h')):
                lines = f.read_text().splitlines()
                long = [l for l in lines if len(l.expandtabs(4)) > 100 and not l.startswith('#')]
                yield f'{path.parent.name}: columns of {f.name}', len(lines) > 20 and not long, '\n'.join(long[:5])
            if suffix == '.c':
                once = [l for l in out.read_text().splitlines() if re.search(r'for \(int\w* (\w+) = 0; \1 < 1;', l)]
                yield f'{path.parent.name}: no loop of one round', not once, '\n'.join(once[:5])


def symbols(t, tmp):
    """No calls but libm's and memory copies (bcmp is what clang makes of memcmp), nothing writable: what nm and objdump see."""
    libm = 'exp expm1 log log2 log10 log1p pow sqrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf floor ceil ' \
           'trunc rint round fmod fmax fmin'
    allowed = re.compile(rf"(mem(cpy|set|move|cmp)|bcmp|pd_\w+|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|({libm.replace(' ', '|')})f?)$")
    obj = pathlib.Path(tmp) / 'digits_generic.o'
    # Constants that hold addresses are in .data.rel.ro, which the loader seals.
    rows = re.findall(r'^\w+ .{7} (\S+)\t\w+ (\S+)$', run(['objdump', '-t', obj]).stdout, re.M)
    bad = [f'{name} in {section}' for section, name in rows
           if re.match(r'\.(data|bss|tdata|tbss)|\*COM\*', section) and not section.startswith('.data.rel.ro') and name != section]
    yield 'no writable globals', bool(rows) and not bad, '\n'.join(bad)
    out = run(['nm', obj]).stdout
    called = re.findall(r'\sU (\w+)', out)
    heap = [s for s in called if s in ('malloc', 'calloc', 'realloc', 'free', 'printf', 'fopen', 'abort', 'exit')]
    yield 'no allocation and no I/O', not heap, ' '.join(heap)
    odd = [s for s in called if not allowed.match(s)]
    yield 'only libm and memory functions', not odd, ' '.join(odd)


def determinism(t, tmp):
    a, b = pathlib.Path(tmp) / 'a', pathlib.Path(tmp) / 'elsewhere' / 'b'
    for folder, locale, source in ((a, 'C', digits()), (b, 'de_DE.UTF-8', None)):
        folder.mkdir(parents=True)
        if source is None:
            for f in ('digits.pdmodel', 'digits.pdiparams'):
                shutil.copy(SRC / 'samples/digits' / f, folder)
            source = folder / 'digits.pdmodel'
        run([t.pdcc, source, '-o', 'digits.c', '--isa=avx2'], cwd=folder, env=dict(os.environ, LC_ALL=locale))
    for f in ('digits.c', 'digits.h'):
        same = (a / f).exists() and (a / f).read_bytes() == (b / f).read_bytes()
        yield f'same bytes from another folder and locale: {f}', same, ''
    text = (a / 'digits.c').read_text()
    yield 'no paths in generated code', str(tmp) not in text and str(SRC) not in text, ''


def weights(t, tmp):
    for mode in ('inline', 'file', 'object'):
        folder = pathlib.Path(tmp) / mode
        folder.mkdir()
        p = run([t.pdcc, digits(), '-o', folder / 'digits.c', f'--weights={mode}'])
        ok = p.returncode == 0 and (folder / 'digits.weights').exists() == (mode != 'inline')
        yield f'--weights={mode}', ok, p.stdout


def weights_object(t, tmp):
    """--weights=object: the assembler is told where the file is, whatever the name and the working folder."""
    folder = pathlib.Path(tmp) / 'else where'
    folder.mkdir()
    p = run([t.pdcc, digits(), '-o', folder / 'a b.c', '--weights=object', '--prefix=digits'])
    for name, flags in {'-I': ['-I', folder], '-D': [f'-DDIGITS_WEIGHTS_FILE="{folder}/a b.weights"']}.items():
        q = run([*t.config['CC'].split(), '-c', '-I', SRC / 'runtime_stub', *flags, folder / 'a b.c',
                 '-o', folder / 'digits.o'], cwd='/') if p.returncode == 0 else p
        yield f'--weights=object found by {name}', q.returncode == 0, q.stdout


def same_name(t, tmp):
    """C and CUDA of one name would overwrite each other's header and weights."""
    folder = pathlib.Path(tmp) / 'same'
    folder.mkdir()
    p = run([t.pdcc, digits(), '-o', folder / 'digits.c'])
    q = run([t.pdcc, digits(), '-o', folder / 'digits.cu'])
    yield 'C and CUDA of one name in one folder', p.returncode == 0 and q.returncode == 1 and \
        'has the same header and weights' in q.stdout and not (folder / 'digits.cu').exists(), q.stdout


def library(t, tmp):
    """A shared library's one-call entry."""
    so = pathlib.Path(tmp) / 'libdigits.so'
    p = run([t.pdcc, digits(), '-o', so, '--shape=image=1,1,8,8'])
    code = ('import ctypes, sys, numpy as np\n'
            'f = ctypes.CDLL(sys.argv[1]).digits_call\n'
            'x, y = np.zeros((1, 1, 8, 8), "f"), np.zeros((1, 10), "f")\n'
            'a = (ctypes.c_void_p * 1)(x.ctypes.data); b = (ctypes.c_void_p * 1)(y.ctypes.data)\n'
            'assert f(a, b) == 0 and abs(y.sum() - 1) < 1e-5, y')
    q = run([t.python, '-c', code, so]) if p.returncode == 0 else p
    yield 'model_call of a shared library', q.returncode == 0, q.stdout


OPEN_LIBRARY = """
#include "libdigits.h"
#include <stdlib.h>
int main(void)
{
	static digits m;
	static float x[2 * 64], y[2 * 10];
	const digits_inputs in = {.dims = {2}, .image = x};
	digits_outputs out = {.save_infer_model_scale_0_tmp_0 = y};
	const size_t size = digits_workspace_size(&in.dims);
	pd_status s = digits_init(&m, NULL, 0, aligned_alloc(64, (size + 63) / 64 * 64), size);
	s = s == PD_OK ? digits_run(&m, &in, &out) : s;
	const float sum = y[0] + y[1] + y[2] + y[3] + y[4] + y[5] + y[6] + y[7] + y[8] + y[9];
	const int shape = out.save_infer_model_scale_0_tmp_0_dims[0] == 2 && digits_info()->symbols == 1;
	return s != PD_OK || !shape || sum < 0.999f || sum > 1.001f || y[0] != y[10];
}
"""


def open_library(t, tmp):
    """A shared library of a model with an open size has its header beside it and exports what that declares."""
    folder = pathlib.Path(tmp) / 'open'
    folder.mkdir()
    p = run([t.pdcc, digits(), '-o', folder / 'libdigits.so'])
    yield 'a shared library with an open size', p.returncode == 0 and (folder / 'libdigits.h').exists(), p.stdout
    (folder / 'main.c').write_text(OPEN_LIBRARY)
    p = run([*t.config['CC'].split(), '-std=c11', '-Wall', '-Wextra', '-Werror', '-I', SRC / 'runtime_stub',
             folder / 'main.c', '-o', folder / 'main', '-L', folder, '-ldigits', f'-Wl,-rpath,{folder}'])
    p = run([folder / 'main']) if p.returncode == 0 else p
    yield 'a program that uses it', p.returncode == 0, p.stdout


STILL_FOLDERS = ['cf', 'cf-beyond', 'p2o', 'paddle-ut', 'pir']
BROKEN = ['changed the IR', 'the module was valid before pass']
STILL_TARGETS = {'c': ['-o', os.devnull, '--emit=c', '--isa=avx2'], 'cuda': ['-o', os.devnull, '--emit=cuda']}
# A printer that notes something in the IR.
WRITES = '''#include "codegen/codegen.h"
bool __real_codegen(Context *c, const Op *module, const Target *t, const CodegenOptions *o, CodegenResult *out);
bool __wrap_codegen(Context *c, const Op *module, const Target *t, const CodegenOptions *o, CodegenResult *out)
{
	op_set_attr((Op *)module, "printed", attr_int(c, 1));
	return __real_codegen(c, module, t, o, out);
}
'''


def recorded(t):
    roots = [SRC / 'tests/corpus/cases']
    if SHARED.exists() and (t.all or t.only):
        roots += [SHARED / 'corpus' / folder for folder in STILL_FOLDERS]
    models = sorted(m for root in roots for name in ('model.pdmodel', 'model.json') for m in root.glob(f'*/{name}')
                    if not m.with_name('params.yaml').exists())
    return models + sorted((SRC / 'tests/codegen').glob('*.pdir'))


def changes(t, model):
    """Whether some code was made, and what is said of a change, or of a pass that leaves IR the verifier refuses."""
    texts = [(target, run([t.pdcc, model, *options, '--verify-each'])) for target, options in STILL_TARGETS.items()]
    said = [f'{target}: {p.stdout}' for target, p in texts if any(w in p.stdout for w in BROKEN) or p.returncode < 0]
    return any(p.returncode == 0 for _, p in texts), '\n'.join(said)


def still(t):
    """As --verify-each looks: printers only print, and behind every pass the IR is valid."""
    found = recorded(t)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for model, (made, said) in zip(found, pool.map(lambda m: changes(t, m), found)):
            if made or said: # what cannot be compiled is not for this suite
                name = model.name if model.suffix == '.pdir' else model.parent.name
                yield f'still/{model.parent.parent.name}/{name}', not said, said


def still_planted(t, tmp):
    """What still looks for is found: a compiler whose printers write to the IR, told from the same one as it is."""
    (tmp / 'writes.c').write_text(WRITES)
    sources = [c for room in ('ir', 'lower', 'codegen', 'frontend') for c in sorted((SRC / room).rglob('*.c'))]
    objects = [o for c in sources if (o := t.build / 'obj' / c.relative_to(SRC).with_suffix('.o')).exists()] # but for generators
    libraries = ' '.join(t.config.get(name, '') for name in ('PB_LIBS', 'JSON_LIBS', 'YAML_LIBS')).split()
    p = run([*t.config['CC'].split(), *t.config['CFLAGS'].split(), f'-I{SRC}', f'-I{t.build}/obj', tmp / 'writes.c', *objects,
             t.build / 'obj/program_desc.pb-c.o', '-Wl,--wrap=codegen', *t.config['LDFLAGS'].split(), *libraries, '-lm', '-ldl',
             '-o', tmp / 'pdcc'])
    if p.returncode:
        yield 'still-planted', False, p.stdout
        return
    for target, options in STILL_TARGETS.items():
        p = run([tmp / 'pdcc', digits(), *options, '--verify-each'])
        yield f'still-planted/{target}', p.returncode == 1 and 'code generation changed the IR' in p.stdout, p.stdout


# One operator more changes so many lines of C at most; more where what one layer of several reads gets a place of its own in memory, or
# is stacked over all layers, too, and where a loop ends as another value says.
INSERTED_LINES, INSERTED_LINES_OF_LAYERS, INSERTED_LINES_OF_END = 40, 44, 54
INSERTED = {'gpt2_greedy_kvcache': {
    INSERTED_LINES: ('embedding_1.tmp_0', 'concat_1.tmp_0', 'stack_0.tmp_0', 'matmul_v2_8.tmp_0', 'layer_norm_8.tmp_2', 'softmax_1.tmp_0',
                     'layer_norm_3.tmp_2', 'tmp_9', 'layer_norm_4.tmp_2', 'tmp_13', 'layer_norm_2.tmp_2', 'tmp_6', 'transpose_11.tmp_0',
                     'linear_9.tmp_1', 'linear_11.tmp_1', 'linear_13.tmp_1', 'linear_15.tmp_1', 'linear_4.tmp_1', 'gelu_1.tmp_0',
                     'linear_8.tmp_1', 'linear_10.tmp_1', 'gelu_3.tmp_0', 'linear_5.tmp_1', 'tmp_18', 'linear_2.tmp_0', 'linear_3.tmp_1',
                     'transpose_6.tmp_0', 'softmax_0.tmp_0', 'layer_norm_1.tmp_2', 'transpose_0.tmp_0', 'matmul_v2_1.tmp_0',
                     'transpose_13.tmp_0', 'reshape2_9.tmp_0', 'linear_0.tmp_1', 'gelu_0.tmp_0', 'split_0.tmp_2', 'reshape2_14.tmp_0',
                     'transpose_10.tmp_0', 'matmul_v2_2.tmp_0', 'matmul_v2_0.tmp_0', 'tmp_4', 'tmp_7', 'tmp_16'),
    INSERTED_LINES_OF_LAYERS: ('transpose_1.tmp_0', 'unsqueeze2_0.tmp_0'),
    INSERTED_LINES_OF_END: ('tmp_20',)}, 'lstm_forecaster_while': {
    INSERTED_LINES: ('series_slice_0', 'fill_constant_1.tmp_0', 'shape_1.tmp_0', 'stack_0.tmp_0', 'horizon', 'tmp_0', 'tmp_3', 'tmp_4')}}


def added(a, b):
    """The lines of file b that are not in a."""
    out = run(['diff', '-d', a, b]).stdout
    return [l for l in out.splitlines() if l.startswith('>')]


def inserted_op(t, tmp):
    """A model with one operator more is nearly the same C, with the same header: callers need not know."""
    cases = [('digits', digits(), [], {'pool2d_0.tmp_0': INSERTED_LINES})]
    if SHARED.exists() and (t.all or t.only):
        for name, variables in INSERTED.items():
            model = SHARED / f'corpus/models/{name}/model.pdmodel'
            cases.append((name, model, params_for(t, name, tmp), {v: most for most, names in variables.items() for v in names}))
    for name, model, params, variables in cases:
        made = {}
        for variable in ('', *variables):
            folder = pathlib.Path(tmp) / f'inserted_{name}_{variable}'
            folder.mkdir()
            changed, out = folder / 'model.pdmodel', folder / 'model.c'
            changed.write_bytes(insert_op.inserted(model.read_bytes(), variable) if variable else model.read_bytes())
            with_params = params or ['--params', model.with_suffix('.pdiparams')]
            p = run([t.pdcc, changed, '-o', out, '--isa=generic', '--weights=file', *with_params])
            made[variable] = out if p.returncode == 0 else None
        for variable, most in variables.items():
            if not made[''] or not made[variable]:
                yield f'inserted/{name}/{variable}', False, 'cannot be compiled'
                continue
            lines, header = (added(made[''].with_suffix(s), made[variable].with_suffix(s)) for s in ('.c', '.h'))
            yield f'inserted/{name}/{variable}', 0 < len(lines) <= most and not header, f'{len(lines)} lines\n' + '\n'.join(header[:5])


def suite(t):
    yield from still(t)
    with tempfile.TemporaryDirectory() as tmp:
        yield from still_planted(t, pathlib.Path(tmp))
        yield from strict(t, tmp)
        if t.all or t.only:
            yield from sample(t, tmp)
        yield from analysed(t, tmp)
        yield from misra(t, tmp)
        yield from inserted_op(t, tmp)
        yield from columns(t, tmp)
        yield from symbols(t, tmp)
        yield from determinism(t, tmp)
        yield from weights(t, tmp)
        yield from weights_object(t, tmp)
        yield from same_name(t, tmp)
        yield from library(t, tmp)
        yield from open_library(t, tmp)
