"""strip-backward undoes --grad: each recorded program, differentiated and stripped, prints as before, to the byte. All of them in
check-all, else one of eight."""
import pathlib, re, tempfile

from pdcc_tests import SRC, run

SLOW = False
EVERY = 8
FETCH = re.compile(r'^  pd\.fetch\(.*?\) \{.*?name = "([^"]*)".*?\} : \(tensor<(?:.* )?f(?:32|64)>\) ->', re.M)
SOURCE = re.compile(r'^  %\S+ = (?:pd\.feed|builtin\.get_parameter)\(\) \{.*?name = "([^"]*)".*?\} : \(\) -> \(tensor<(?:[^>]* )?f(?:32|64)>\)',
                    re.M)
MOST = 4  # inputs and parameters that are asked for


def strip(t, model, folder):
    """'same', what is wrong, or why the program has no gradient (in brackets)."""
    before, with_gradient, after = (folder / f'{name}.pdir' for name in ('before', 'grad', 'after'))
    if run([t.pdcc, model, '--emit=ir', '-o', before]).returncode:
        return '(refused)'
    text = before.read_text()
    fetches, sources = FETCH.findall(text), SOURCE.findall(text)
    if not fetches or not sources:
        return '(nothing to differentiate)'
    ask = [before, '--grad', fetches[0], '--wrt', ','.join(sources[:MOST])]
    p = run([t.pdcc, 'opt', '--passes=', *ask, '-o', with_gradient])
    if p.returncode:
        return f'({p.stdout.strip()})'
    if with_gradient.read_text() == text:
        return 'the gradient changed nothing'
    p = run([t.pdcc, 'opt', '--passes=strip-backward', *ask, '-o', after])
    return p.stdout if p.returncode else 'same' if after.read_text() == text else 'another text'


def suite(t):
    cases = sorted(p for p in (SRC / 'tests/corpus/cases').glob('*/model.*') if p.suffix in ('.pdmodel', '.json'))[::1 if t.all else EVERY]
    same = 0
    with tempfile.TemporaryDirectory() as tmp:
        for model in cases:
            found = strip(t, model, pathlib.Path(tmp))
            same += found == 'same'
            if found[0] != '(':
                yield f'strip {model.parent.name}', found == 'same', found
    yield f'{same} of {len(cases)} programs stripped', same > len(cases) / 2, f'{same} of {len(cases)}'
