"""The operator tables: any parser of YAML reads them, the generator refuses what only libyaml would read, and what is known of
an operator stands there: few other files name it. Commit subjects are short, and the C sources look as .clang-format says.

A place of an operator is a file that must know it. `compose:` expressions of tables are left out: they use what an operator
means to everybody, as a program does that calls it, and know nothing of how it is inferred, defined or lowered. C files that
build it are places. Names of other operators that contain its name (`fused_bias_dropout_residual_layer_norm`) are none."""
import builtins, pathlib, re, shutil, symtable, tempfile

from pdcc_tests import SRC, Skip, run

SLOW = False
# Subjects were not counted up to here.
BASE, MAX_SUBJECT = 'e4979aa63df6e46bc8e1e146f023ee7b48781cac', 72
# True with the commit that formats the tree (make format).
FORMATTED = True
# Files and functions stay short, and few are tangled: this many may have a cyclomatic complexity over 15, as lizard counts.
FLOORS = ('ir', 'lower', 'codegen', 'frontend', 'runtime_stub')
MAX_FILE, MAX_FUNCTION, MAX_TANGLED = 700, 60, 0
FACTS = SRC / 'ir/ops/paddle3.yaml' # of another program: it holds no operator of ours
TABLES = sorted(p for p in (SRC / 'ir/ops').glob('*.yaml') if p != FACTS)

# An entry with a mistake, and what opgen says of it.
WRONG = {
    'plain question mark': ('- op: f\n  kind: map\n  operands: {x: any?}\n', "'any?' needs quotes"),
    'plain comma': ('- op: f\n  kind: map\n  results: {out: like(x, bool)}\n', 'there is no value'),
    'plain list': ('- op: f\n  kind: control\n  regions: [body, init?]\n', "'init?' needs quotes"),
    'no such enumeration': ('- op: f\n  kind: map\n  attributes: {how: enum way}\n  results: {out: given}\n',
                            "unknown attribute kind 'enum way'"),
    'default of an enumeration': ('- enum: way\n  values: [up, down]\n- op: f\n  kind: map\n'
                                  '  attributes: {how: enum way = left}\n  results: {out: given}\n', "\"left\" is not in 'way'"),
    'word twice': ('- enum: way\n  values: [up, up]\n', "'up' is there twice"),
    'enumeration twice': ('- enum: way\n  values: [up]\n- enum: way\n  values: [up]\n', 'a name of its own'),
}


# Operators, the patterns of what names them in code, and how many C files, headers and tables may. Templates are not counted.
PLACES = {
    'conv2d': (r'conv2d|(kernel|cuda)[._](conv|depthwise)(?!_transpose)|hook_conv\b|: conv\b', 15),
    'softmax': (r'(?<![a-z]_)softmax(?!_with|_cross)|(pd_|log_|kernel[._]|cuda_|hook_)softmax(?!_with|_cross)', 8),
    'layer_norm': (r'(?<!residual_)(?<!pre_)layer_norm', 8),
    'nms': (r'(kernel|cuda)[._]nms|\bnms_keys', 7),
    'gather': (r'(pd[._]|hook_|op: )gather(?![a-z_])', 5),
    'relu6': (r'relu6', 2),
    'squeeze': (r'(pd[._]|hook_|op: )squeeze(?![a-z_])', 4),
}


def code(path):
    """The text of a file without comments, explanations, and compositions of other operators."""
    text = path.read_text()
    if path.suffix == '.yaml':
        return re.sub(r'(?m)^  (doc|compose):.*\n(    .*\n)*|(^|\s)#.*$', '', text)
    return re.sub(r'//[^\n]*|/\*.*?\*/', '', text, flags=re.S)


def places():
    """(operator, files that name it, how many may)"""
    sources = {p: code(p) for f in FLOORS for p in sorted((SRC / f).rglob('*')) if p.suffix in ('.c', '.h', '.yaml') and p != FACTS}
    for name, (pattern, most) in PLACES.items():
        yield name, [str(p.relative_to(SRC)) for p in sources if re.search(pattern, sources[p], re.I)], most


def functions(lines):
    """(where it begins, how many lines it has) of each function: its signature stands at the margin, and so do its braces."""
    begin = None
    for n, line in enumerate(lines, 1):
        if re.match(r'[A-Za-z_][^;={]*\(', line):
            begin = n
        elif line == '}' and begin:
            yield begin, n - begin + 1
        if line.startswith('}'):
            begin = None


def sizes():
    """Files and functions that are too long."""
    for path in (p for f in FLOORS for p in sorted((SRC / f).rglob('*.[ch]'))):
        lines = path.read_text().splitlines()
        name = path.relative_to(SRC)
        if len(lines) > MAX_FILE:
            yield f'{name} has {len(lines)} lines'
        yield from (f'{name}:{at} has {n} lines' for at, n in functions(lines) if n > MAX_FUNCTION)


def tangled():
    """Functions that lizard counts more than 15 ways through; None without lizard."""
    if not shutil.which('lizard'):
        return None
    p = run(['lizard', '-l', 'c', '-w', '-C', '15', *(SRC / f for f in FLOORS)])
    return [line for line in p.stdout.splitlines() if 'warning' in line]


def texts(value):
    """All texts in a value of YAML; an absent one is None."""
    if isinstance(value, dict):
        for key, v in value.items():
            yield key
            yield from texts(v)
    elif isinstance(value, list):
        for v in value:
            yield from texts(v)
    else:
        yield value


def style(t):
    """Of the commits, where there is git and this is no archive and no shallow copy, and of the sources, where there is clang-format-14."""
    p = shutil.which('git') and run(['git', '-C', SRC, 'log', '--format=%s', f'{BASE}..HEAD'])
    for subject in p.stdout.splitlines() if p and p.returncode == 0 else []:
        yield subject[:40], len(subject) <= MAX_SUBJECT, f'{len(subject)} characters: {subject}'
    if FORMATTED and t.config.get('CLANG_FORMAT'):
        p = run(['make', '-s', '-C', t.build, 'format-check'])
        yield 'format', p.returncode == 0, p.stdout[-2000:]


def undefined(path):
    """Names that a script uses as globals and defines nowhere: they would fail only where that line runs."""
    def own(s):
        return s.is_assigned() or s.is_imported() or s.is_namespace() or s.is_parameter()

    def names(table):
        for symbol in table.get_symbols():
            # A function called "top" is taken for the module by symtable, its own names for global ones.
            if symbol.is_referenced() and (symbol.is_global() and not own(symbol) or table.get_type() == 'module'):
                yield symbol.get_name()
        for inner in table.get_children():
            yield from names(inner)

    def bound(table):
        yield from (s.get_name() for s in table.get_symbols() if own(s)
                    and (table.get_type() == 'module' or s.is_declared_global()))
        for inner in table.get_children():
            yield from bound(inner)

    module = symtable.symtable(path.read_text(), str(path), 'exec')
    known = {*bound(module), *dir(builtins), '__file__', '__name__', '__doc__'}
    return sorted(set(names(module)) - known)


def scripts():
    """The Python of the tree."""
    found = [f'{p.relative_to(SRC)}: {name}' for f in (*FLOORS, 'tests', 'samples', 'docs') for p in sorted((SRC / f).rglob('*.py'))
             if p.name != 'lit.cfg.py' for name in undefined(p)] # lit gives its configuration a name
    yield 'names of scripts', not found, ', '.join(found)
    with tempfile.TemporaryDirectory() as tmp:
        wrong = pathlib.Path(tmp) / 'wrong.py'
        wrong.write_text('import os\ndef f(a):\n    return [os.sep + b for b in sys.argv + a]\n')
        yield 'a name of no module', undefined(wrong) == ['sys'], str(undefined(wrong))


def models():
    """Bundled models say nothing of the machine that wrote them."""
    found = [str(p.relative_to(SRC)) for f in ('samples', 'tests') for p in (SRC / f).rglob('*.pdmodel') if b'op_callstack' in p.read_bytes()]
    yield 'models without call stacks', not found, ' '.join(found)


def suite(t):
    yield from style(t)
    yield from models()
    yield from scripts()
    long = list(sizes())
    yield 'sizes', not long, '\n'.join(long)
    found = tangled()
    if found is None:
        print('house: no lizard: complexity is not counted')
    else:
        yield 'complexity', len(found) <= MAX_TANGLED, f'{len(found)} functions over 15, at most {MAX_TANGLED}'
    try:
        import yaml
    except ImportError:
        raise Skip('python has no yaml')
    for path in TABLES:
        try:
            entries = yaml.safe_load(path.read_text())
            odd = [e for e in entries if not {'op', 'enum', 'ignored'} & set(e) or None in texts(e)]
            yield path.name, not odd, f'no operator, or a value is missing: {odd}'
        except yaml.YAMLError as e:
            yield path.name, False, str(e)
    for name, files, most in places():
        yield f'places of {name}', 0 < len(files) <= most, f'{len(files)} files, at most {most}: ' + ' '.join(files)
    with tempfile.TemporaryDirectory() as tmp:
        table = pathlib.Path(tmp) / 'wrong.yaml'
        for name, (text, want) in WRONG.items():
            table.write_text(text)
            p = run([t.build / 'obj/opgen', tmp, table])
            yield name, p.returncode == 1 and want in p.stdout, p.stdout
