"""What the page of `pdcc info --html` promises: it is well-formed and asks nobody for anything; steps, buffers, operators of the
model and lines of C that belong together have keys in common; there is one part per batch size, of which the first is shown."""
import html.parser, json, pathlib, re, shutil, tempfile

from pdcc_tests import SRC, run

SLOW = False
VOID = {'meta', 'input', 'line', 'rect', 'path'}
OPTIONAL = {'html', 'p', 'td', 'th', 'tr', 'option'}  # whose end may be left out
BROWSERS = 'chromium', 'chromium-browser', 'google-chrome'


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.keys, self.sections, self.links = [], [], {}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        have = dict(attributes)
        self.links += [v for k, v in attributes if k in ('src', 'href')]
        if tag == 'section':
            self.sections.append((have['data-batch'], 'hidden' in have))
        if 'data-ops' in have:
            pane = next((i for t, i in reversed(self.open) if i), tag)
            self.keys.setdefault(pane if tag == 'i' else tag, set()).update(have['data-ops'].split())
        if tag not in VOID and tag not in OPTIONAL:
            self.open.append((tag, have.get('id')))

    def handle_endtag(self, tag):
        if tag in OPTIONAL or tag in VOID:
            return
        if not self.open or self.open.pop()[0] != tag:
            self.wrong.append(f'{tag} ends at {self.getpos()}')


def page_of(t, tmp, name, *options):
    out = pathlib.Path(tmp) / f'{name}.html'
    p = run([t.pdcc, 'info', SRC / 'samples/digits/digits.pdmodel', '--isa=generic', '--html', out, *options])
    return out.read_text() if p.returncode == 0 else '', p.stdout, out


def measured(t, tmp):
    """Costs that a run has measured stand beside the steps that they are of; those of another model are refused."""
    times, digits = pathlib.Path(tmp) / 'times.json', SRC / 'samples/digits/digits.pdmodel'
    p = run([t.pdcc, 'bench', digits, '--isa=generic', '--repeat', '3', '--profile', '--json'])
    times.write_text(p.stdout)
    text, said, _ = page_of(t, tmp, 'measured', '--measured', times)
    steps = len(json.loads(p.stdout)['steps']) if p.returncode == 0 else 0
    first = text[:text.find('</section>')]
    yield 'page/measured', steps > 5 and first.count("<td class='num us'>") == steps and 'Measured: ' in first, said + p.stdout
    times.write_text(p.stdout.replace('"variable": "', '"variable": "other_'))
    q = run([t.pdcc, 'info', digits, '--isa=generic', '--html', pathlib.Path(tmp) / 'other.html', '--measured', times])
    yield 'page/measured elsewhere', q.returncode == 1 and 'none of its steps is one of this model' in q.stdout, q.stdout
    times.write_text('{"us": 1, "steps": [{"kernel": 3}]}')
    q = run([t.pdcc, 'info', digits, '--isa=generic', '--html', pathlib.Path(tmp) / 'other.html', '--measured', times])
    yield 'page/measured damaged', q.returncode == 1 and 'no steps as' in q.stdout, q.stdout


def suite(t):
    with tempfile.TemporaryDirectory() as tmp:
        text, said, out = page_of(t, tmp, 'open')
        page = Page(text)
        yield 'page/well-formed', bool(text) and not page.wrong and not page.open, said + '\n'.join(page.wrong)
        yield 'page/alone', text.count('<script>') == 1 and not page.links, '\n'.join(page.links)
        steps, source, code, buffers = (page.keys.get(k, set()) for k in ('tr', 'source', 'code', 'rect'))
        yield 'page/keys', len(code) > 10 and code <= source and buffers <= steps <= source and '0.1' in code & buffers, \
            f'{sorted(source)}\n{sorted(steps)}\n{sorted(code)}\n{sorted(buffers)}'
        yield 'page/batches', [hidden for _, hidden in page.sections] == [False, True, True, True], str(page.sections)
        peaks = [int(n) for n in re.findall(r'>peak (\d+) bytes', text)]
        rams = [int(n) for n in re.findall(r'workspace \(RAM\) (\d+) bytes', text)]
        yield 'page/peak', len(peaks) == 4 and peaks == sorted(peaks) and all(0 < p <= r for p, r in zip(peaks, rams)), f'{peaks} {rams}'
        fixed = Page(page_of(t, tmp, 'fixed', '--shape', 'image=2,1,8,8')[0])
        yield 'page/fixed', [hidden for _, hidden in fixed.sections] == [False], str(fixed.sections)
        yield from measured(t, tmp)
        browser = next((b for b in map(shutil.which, BROWSERS) if b), None)
        if not browser:
            print('page: no Chromium is installed: whether the script runs is not known', flush=True)
            return
        out.write_text(text.replace('</html>', '<script>document.querySelector("rect[data-ops]").dispatchEvent(new Event("click"))</script></html>'))
        p = run([browser, '--headless', '--no-sandbox', '--dump-dom', f'file://{out}'])
        yield 'page/click', p.stdout.count('class="on"') > 2, p.stdout[-2000:]
