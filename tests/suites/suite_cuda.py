"""Generated CUDA compiles with nvcc for several GPUs without warnings, without spilled registers and local memory (no GPU
needed); and so does the program that tests the emulator."""
import pathlib, re, tempfile

from pdcc_tests import SHARED, SRC, Skip, run
from suite_generated import params_for

SLOW = True
ARCHS = ('80', '90')
CASES = ('auto_scan_reduce_ops-0', 'auto_scan_softmax-1', 'auto_scan_scatter-2', 'ifelse-1', 'nonzero-0', 'rnn-lstm-bi', 'sp-cast-complex', 'topk-0',
         'while-3')


GATES = [*(f'-gencode=arch=compute_{a},code=sm_{a}' for a in ARCHS), '-Werror', 'all-warnings', '-Xptxas', '-warn-spills,-warn-lmem-usage']


def nvcc_compile(nvcc, source, *flags):
    return run([nvcc, *GATES, *flags, '-I', SRC / 'runtime_stub', '-c', source, '-o', source.with_suffix('.o')])


def tensor_cores(t, model, *flags):
    """What runs on tensor cores compiles under the gates, and the instructions of each type are there."""
    nvcc, source, ptx = t.config['NVCC'], model.with_suffix('.cu'), model.with_suffix('.ptx')
    p = run([t.pdcc, model, '-o', source, *flags])
    p = nvcc_compile(nvcc, source) if p.returncode == 0 else p
    yield 'nvcc', p.returncode == 0, p.stdout[-2000:]
    p = run([nvcc, '-arch=sm_80', '-ptx', '-I', SRC / 'runtime_stub', source, '-o', ptx])
    have = set(re.findall(r'mma\.sync\.aligned\.m16n8k\d+\.row\.col\.f32\.(\w+)', ptx.read_text())) if p.returncode == 0 else p.stdout
    yield 'tensor cores', have == {'tf32', 'f16', 'bf16'}, have


def sources(t, todo, tmp):
    """The generated CUDA of each model, and what pdcc said."""
    for name, model, params in todo:
        out = pathlib.Path(tmp) / (name.replace('-', '_') + '.cu')
        p = run([t.pdcc, model, *params, '-o', out])
        yield name, out if p.returncode == 0 else None, p.stdout


PRINTED = ('append', 'cuda_attention', 'cuda_control', 'cuda_index', 'cuda_loop', 'cuda_narrow', 'cuda_nest', 'cuda_reduce', 'cuda_rows', 'cuda_rows_across',
           'cuda_rows_half', 'cuda_select', 'cuda_switch',
           'cuda_turn')


def wide_accesses(t, nvcc, tmp):
    """Every kernel of an elementwise nest loads and stores 16 bytes at once."""
    source, ptx = pathlib.Path(tmp) / 'wide.cu', pathlib.Path(tmp) / 'wide.ptx'
    run([t.pdcc, SRC / 'tests/codegen/cuda_nest.pdir', '-o', source])
    p = run([nvcc, '-arch=compute_80', '-ptx', '-I', SRC / 'runtime_stub', source, '-o', ptx])
    kernels = ptx.read_text().split('.entry ')[1:] if p.returncode == 0 else []
    narrow = [k.split('(')[0] for k in kernels if not all(re.search(fr'{way}\.global(\.nc)?\.v(4\.[fbu]32|2\.[fbu]64)', k)
                                                          for way in ('ld', 'st'))]
    yield 'elementwise kernels move 16 bytes at once', kernels and not narrow, p.stdout[-2000:] + f'{narrow}'


def chain(text):
    """Of the nodes that the text of a graph without conditions adds: how many, and the longest chain of them."""
    lengths, names, after = [], {}, None
    for line in re.search(r'static void (?:graph_make|program_queue)\(.*?\n}\n', text, re.S)[0].split('\n'):
        wait, node, name = (re.match(form, line) for form in (
            r'\tpd_after(?:_nothing)?\(queue(?:, )?(.*)\);', r'\tpd_(?:launch|launch_at|copy)\(', r'\tconst cudaGraphNode_t (\w+) = pd_last'))
        if wait:
            after = [names[w] for w in wait[1].split(', ') if w]
        elif node:
            lengths.append(1 + (lengths[-1] if after is None and lengths else max(after or [0])))
            after = None
        elif name:
            names[name[1]] = lengths[-1]
    return len(lengths), max(lengths)


def branches(t, tmp):
    """What models have side by side may run side by side."""
    for name, most in (('googlenet', 0.5), ('squeezenet1_1', 0.9)):
        source = pathlib.Path(tmp) / f'{name}.cu'
        p = run([t.pdcc, SHARED / f'corpus/models/{name}/model.pdmodel', *params_for(t, name, tmp), '-o', source])
        nodes, longest = chain(source.read_text()) if p.returncode == 0 else (0, 1)
        yield f'{name}: branches side by side', 0 < longest <= most * nodes, f'{nodes} nodes, a chain of {longest}\n{p.stdout}'


def suite(t):
    nvcc = t.config.get('NVCC')
    if not nvcc:
        raise Skip('nvcc is not installed')
    with tempfile.TemporaryDirectory() as tmp:
        todo = [('digits', SRC / 'samples/digits/digits.pdmodel', [])]
        for name in CASES:
            case = SRC / 'tests/corpus/cases' / name
            params = case / 'model.pdiparams'
            todo.append((name, case / 'model.pdmodel', ['--params', params] if params.exists() else []))
        todo += [(name, SRC / f'tests/codegen/{name}.pdir', []) for name in PRINTED]
        todo.append(('m', SRC / 'tests/codegen/names.pdir', []))  # words for names, and a type that parameters are called after
        if SHARED.exists():
            for name in ('lenet', 'resnet18'):
                todo.append((name, SHARED / f'corpus/models/{name}/model.pdmodel', params_for(t, name, tmp)))
        for name, source, said in sources(t, todo, tmp):
            p = nvcc_compile(nvcc, source) if source else None
            yield name, p is not None and p.returncode == 0, (p.stdout if p else said)[-2000:]
        control = pathlib.Path(tmp) / 'cuda_control.cu'
        p = nvcc_compile(nvcc, control, '-DPD_CONDITIONS=0')
        yield 'cuda_control without conditional nodes', p.returncode == 0, p.stdout[-2000:]
        if SHARED.exists():
            yield from branches(t, tmp)
        yield from wide_accesses(t, nvcc, tmp)
        check = pathlib.Path(tmp) / 'check.cu'
        check.write_bytes((SRC / 'tests/cudaemu/check.cu').read_bytes())
        p = nvcc_compile(nvcc, check, '-I', SRC / 'codegen/cuda/kernels', '-I', SRC / 'codegen/text/kernels')
        yield 'check.cu', p.returncode == 0, p.stdout[-2000:]
