"""Draws text as a camera or a scanner might give it: pages of lines for detection, single lines for recognition.

An image is a uint8 array, 0 black to 255 white. Needs Pillow and the DejaVu fonts (package fonts-dejavu)."""
import functools, random

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

CHARACTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.,:;-+/()%$#&!?\'" '
FONTS = '/usr/share/fonts/truetype/dejavu/DejaVu'
TRAINED = ['Sans', 'Sans-Bold', 'SansMono', 'SansMono-Bold', 'Serif', 'Serif-Bold', 'Sans-Oblique', 'SerifCondensed']
HELD_OUT = ['SansCondensed', 'SerifCondensed-Bold', 'SansMono-Oblique']  # no line of these is trained on
LINE_HEIGHT = 24  # of what recognition reads; the width follows


@functools.lru_cache(None)
def face(name, size):
    return ImageFont.truetype(f'{FONTS}{name}.ttf', size)


def font(rng, size, names=TRAINED):
    return face(rng.choice(names), size)


def words(rng, longest):
    """Random text: numbers, words in three cases, some marks."""
    out = ''
    while len(out) < 3 or rng.random() < 0.75 and len(out) < longest:
        letters = ''.join(rng.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(rng.randint(1, 8)))
        kind = rng.random()
        if kind < 0.25:
            word = ''.join(rng.choice('0123456789') for _ in range(rng.randint(1, 6)))
        elif kind < 0.45:
            word = ''.join(rng.choice(CHARACTERS[:-1]) for _ in range(rng.randint(1, 7)))
        else:
            word = rng.choice([letters, letters.capitalize(), letters.upper()])
        word += rng.choice(['', '', '', '.', ',', ':', '-', '!', '?', '%', ')'])
        out += ' ' * bool(out) + word
    return out[:longest].strip()


def colours(rng):
    paper, ink = rng.randint(150, 255), rng.randint(0, 90)
    return (paper, ink) if rng.random() < 0.85 else (ink, paper)


def worn(rng, image):
    """With blur and noise, as an array."""
    if rng.random() < 0.5:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.7)))
    pixels = np.asarray(image, 'float32')
    noise = np.random.RandomState(rng.randrange(1 << 30)).normal(0, rng.uniform(0, 9), pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype('uint8')


def line(rng, text=None):
    """(image of LINE_HEIGHT rows, text): what a detector cuts out, not always exactly."""
    text = text or words(rng, 12)
    size = rng.randint(11, 30)
    f, (paper, ink) = font(rng, size), colours(rng)
    left, top, right, bottom = f.getbbox(text)
    # The detector's box is about the glyphs, with a margin on each side.
    high, margin = bottom - top, [rng.uniform(-0.02, 0.45) * (bottom - top) for _ in range(4)]
    w, h = int(right - left + margin[0] + margin[1]) + 1, max(4, int(high + margin[2] + margin[3]) + 1)
    image = Image.new('L', (w, h), paper)
    ImageDraw.Draw(image).text((margin[0] - left, margin[2] - top), text, ink, f)
    image = image.resize((max(8, round(w * LINE_HEIGHT / h)), LINE_HEIGHT), Image.BILINEAR)
    return worn(rng, image), text


def page(rng, width, height, names=TRAINED, texts=None):
    """(image, boxes, texts): lines that do not touch; a box is left, top, right, bottom about the glyphs."""
    paper, ink = colours(rng)
    image, boxes, lines = Image.new('L', (width, height), paper), [], []
    pen, y = ImageDraw.Draw(image), rng.randint(4, 24)
    while True:
        size = rng.randint(12, 26)
        f = font(rng, size, names)
        text = words(rng, rng.randint(3, 22)) if texts is None else texts[len(lines)] if len(lines) < len(texts) else ''
        left, top, right, bottom = f.getbbox(text or 'x')
        if not text or y + bottom - top > height - 4:
            break
        x = rng.randint(4, max(5, width - (right - left) - 6))
        if right - left < width - 8:
            pen.text((x - left, y - top), text, ink, f)
            boxes.append((x, y, x + right - left, y + bottom - top))
            lines.append(text)
        y += bottom - top + rng.randint(7, 26)
    if texts is None and rng.random() < 0.5:  # what is no text
        for _ in range(rng.randint(1, 3)):
            x0, y0 = rng.randrange(width), rng.randrange(height)
            if not any(b[0] - 9 < x0 < b[2] + 9 and b[1] - 9 < y0 < b[3] + 9 for b in boxes):
                pen.line((x0, y0, x0 + rng.randint(0, 3), min(y0 + rng.randint(2, 6), height)), ink)
    return worn(rng, image), boxes, lines
