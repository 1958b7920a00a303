"""What CONTRIBUTING.md tells a newcomer to do, done in a copy of the tree: its examples build, and their tests pass. Called by
suites/suite_docs.py."""
import os, pathlib, re, shutil, tempfile

from pdcc_tests import SRC, run

# A step: what to do with the block of text that follows.
STEP = re.compile(r'<!-- (append|new|in|run) ?(.*?) -->\n```[a-z]*\n(.*?)```\n', re.S)


def steps():
    """(section, what, where, text) in the order of the page."""
    for part in re.split(r'(?m)^## ', (SRC / 'CONTRIBUTING.md').read_text())[1:]:
        title = part.splitlines()[0]
        for what, where, text in STEP.findall(part):
            yield title, what, where, text


def apply(tree, what, where, text):
    """Carries out a step that writes; returns what is wrong with it, or None."""
    if what == 'in':
        where, after = where.split(' after ', 1)
        path = tree / where
        old = path.read_text()
        if old.count(after + '\n') != 1:
            return f'{where} has no line {after!r}'
        path.write_text(old.replace(after + '\n', after + '\n' + text))
    elif what == 'new':
        if (tree / where).exists():
            return f'{where} is there'
        (tree / where).write_text(text)
    else:
        with open(tree / where, 'a') as f:
            f.write(text)
    return None


def copy_tree(t, tree):
    """The sources, without what was built; configured as this build is, to compile fast."""
    ignore = shutil.ignore_patterns('.git', 'obj', 'pdcc', 'config.mk', 'config.log', '__pycache__', 'lit-out')
    shutil.copytree(SRC, tree, ignore=ignore)
    env = dict(os.environ, PYTHON=t.python)
    return run([tree / 'configure', f"CC={t.config.get('CC', 'cc')}", 'CFLAGS=-O0'], cwd=tree, env=env)


def check(t):
    """(name, passed, message), as a suite gives them; nothing where lit or FileCheck is not installed."""
    if not t.config.get('LIT') or not t.config.get('FILECHECK'):
        return
    with tempfile.TemporaryDirectory() as tmp:
        tree = pathlib.Path(tmp) / 'tree'
        p = copy_tree(t, tree)
        yield 'configure', p.returncode == 0, p.stdout[-2000:]
        todo = list(steps())
        for title, what, where, text in todo:
            if what != 'run':
                wrong = apply(tree, what, where, text)
                yield f'{title}: {where.split(" after ")[0]}', not wrong, wrong
        p = run(['make', '-s', '-j2', '-C', tree], timeout=1800)
        yield 'make', p.returncode == 0 and 'warning' not in p.stdout, p.stdout[-3000:]
        (pathlib.Path(tmp) / 'python3').symlink_to(shutil.which(t.python))
        env = dict(os.environ, PDCC=str(tree / 'pdcc'), FILECHECK=t.config['FILECHECK'], PYTHON=t.python,
                   PATH=f"{tmp}:{os.environ['PATH']}")
        for title, what, where, text in todo:
            if what == 'new' and where.startswith('tests/'):
                p = run(t.config['LIT'].split() + ['-v', tree / where], env=env)
                yield f'{title}: {where} passes', p.returncode == 0, p.stdout[-3000:]
            if what == 'run':
                p = run(['bash', '-ec', text], cwd=tree, env=env, timeout=1800)
                yield f'{title}: {text.strip()}', p.returncode == 0, p.stdout[-3000:]
