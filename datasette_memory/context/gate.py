"""Whether a turn of a conversation says anything that cards can be looked for with.

A hook asks at every turn, and most turns say `继续` or `looks good`. A search for these brings up
any card at all, which then misleads the answer. So a turn is admitted by what it holds:

1. **Anchors** open the gate by themselves: a file name (`query_signal.py`), a path, an address, an
   identifier (`user_id`, `getUserById`), a module (`os.path`), a version, a date, the number of an
   issue (`#12`), code in backticks, words in quotation marks, and the domain of recall (`BM25`).
2. **Content words** open it: what is left when the words of `words.py` are taken out. In Latin and
   other alphabets a content word has two letters; in Chinese it is two characters side by side, one
   of which is more than a common verb, number or particle. It does not matter whether they stand in
   a question (`私钥放在哪`), an instruction (`把登录页的按钮改成蓝色`) or alone (`kubernetes`): whoever
   names a thing may want to know what is remembered of it.
3. **Weak words** (`memory`, `代码`, `提交`, `昨天`) name what every session has. They open it in what
   is shaped like a question, with or without a question mark (`昨天做了什么`, `how do we commit`), and
   alone they do not.
4. What the index **knows**, a title, alias, tag or project, opens it last, and only if it is more
   than empty and weak words: no card called `继续` lets `继续` in.

All else is stopped. `继续`, `ok go on`, `改一下`, `为什么` and `do it` are about what was said before,
which the model has in front of it, and a number or a letter chooses from a list.

Script (Traditional, Simplified), width, case and emoji make no difference. A long prompt is read at
both of its ends.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from ..text.lazy import lazy
from . import words

#: So many characters are read at the beginning of a prompt, and so many at its end.
READ = 4000
#: So many anchors and terms are given, each cut at so many characters.
MOST, LONGEST = 20, 80


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate decided: `open` or not, and why, as short sentences.

    `anchors` are `kind:word`, such as `file:query_signal.py` or `title:阿里云 私钥`. `terms` are the
    content and weak words that the prompt holds, folded; those of a stopped one are a recall gap.
    """

    open: bool
    reasons: tuple[str, ...]
    anchors: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


def decide(prompt: str, known: Callable[[str], list[tuple[str, str]]] | None = None) -> Decision:
    """Whether `prompt` is worth a search.

    `known(prompt)` gives `(kind, phrase)` of the titles, aliases, tags and projects that stand in
    it. It is asked only when nothing else opened the gate and something is left to know. Raises
    nothing but what `known` raises.
    """
    text = _cut(prompt)
    if not text.isascii() and not _is_plainly_empty(text):
        text = _folded(text)
    anchors = _anchors(text)
    lower = text.casefold()
    content, weak, rest = _terms(lower)
    terms = _first([*content, *weak])
    if anchors:
        reasons = [f"It names {_NAMES[kind]}: {word}." for kind, word in anchors[:3]]
        return Decision(True, tuple(reasons), tuple(f"{k}:{w}" for k, w in anchors), terms)
    asks = _asks(lower)
    if content:
        shown = ", ".join(_first(content)[:3])
        verb = "asks about" if asks else "speaks of"
        return Decision(True, (f"It {verb}: {shown}.",), (), terms)
    if weak and asks:
        return Decision(True, (f"It asks about: {', '.join(_first(weak)[:3])}.",), (), terms)
    if known is not None and (weak or rest):
        found = [pair for pair in known(prompt) if _says_something(pair[1])]
        if found:
            reasons = [f"The index knows the {kind} {phrase}." for kind, phrase in found[:3]]
            anchors = _first(f"{kind}:{phrase}" for kind, phrase in found)
            return Decision(True, tuple(reasons), anchors, terms)
    if weak:
        reason = f"It holds general words only: {', '.join(_first(weak)[:3])}."
    elif lower.strip():
        reason = "It holds nothing to search for."
    else:
        reason = "It is empty."
    return Decision(False, (reason,), (), terms)


def _cut(prompt: str) -> str:
    return prompt if len(prompt) <= 2 * READ else f"{prompt[:READ]}\n{prompt[-READ:]}"


def _folded(text: str) -> str:
    """The form that is compared: NFKC, Simplified Chinese; case is kept, for camelCase."""
    if text.isascii():
        return text
    from ..text.normalise import normalise

    return unicodedata.normalize("NFKC", normalise(text))


_WIDE = frozenset(map(chr, range(0xFF01, 0xFF5F))) - frozenset("，！？：；（）")


def _is_plainly_empty(text: str) -> bool:
    """Whether a text, as it was typed, holds empty words only. Folding changes none of these, and
    its tables take as long to load as all the rest of a stopped turn."""
    content, weak, rest = _terms(text.casefold())
    return not (content or weak or rest) and _WIDE.isdisjoint(text)


def _first(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word[:LONGEST] for word in found))[:MOST]


# --- anchors ------------------------------------------------------------------------------------

_NAMES = {
    "address": "an address",
    "code": "code",
    "date": "a date",
    "domain": "the domain of recall",
    "file": "a file",
    "identifier": "an identifier",
    "issue": "an issue",
    "module": "a module",
    "path": "a path",
    "quote": "words in quotation marks",
    "version": "a version",
}

# Possessive, and each looks at a character once: long prompts are what a hook gets pasted.
_CHUNK = lazy(r"[A-Za-z0-9_.~/\\:@#+-]{2,}+")
_SUFFIX = lazy(r"\.([A-Za-z0-9]{1,10})(?![A-Za-z0-9_])")
_STEM = lazy(r"[A-Za-z0-9_.+~-]{0,100}\Z")
_ANY_STEM = lazy(r"[\w.+~-]{1,100}\Z")
_QUOTED = lazy(
    r'"([^"\n]{2,100})"|“([^“”\n]{2,100})”|「([^「」\n]{2,100})」|『([^『』\n]{2,100})』|《([^《》\n]{2,100})》'
)
_QUOTES = frozenset('"“「『《')
_CODE = lazy(r"`([^`\n]{2,100})`")
_URL = lazy(r"(?:https?|ssh|git|ftp|file)://[^\s/]", re.IGNORECASE)
_VERSION = lazy(r"v\d+(?:\.\d+)*|\d+(?:\.\d+){2,}", re.IGNORECASE)
_DATE = lazy(r"(?:19|20)\d\d(?:[-/]\d{1,2}){1,2}|(?:19|20)\d\d(?:\.\d{1,2}){2}")
_ISSUE = lazy(r"#\d{2,7}")  # one digit chooses from a list
_DOTFILE = lazy(r"\.[A-Za-z]\w{2,40}")
_HUMP = lazy(r"[a-z][A-Z]")
_SNAKE = lazy(r"[A-Za-z0-9]_+[A-Za-z0-9]")
_MODULE = lazy(r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)++")
_DRIVE = lazy(r"[A-Za-z]:[/\\]")
_NAMED_FILES = frozenset(
    "makefile dockerfile jenkinsfile vagrantfile procfile gemfile readme changelog license".split()
)


def _anchors(text: str) -> list[tuple[str, str]]:
    """`(kind, word)` of what names a thing by its shape; at most MOST."""
    found: dict[tuple[str, str], None] = {}

    def add(kind: str, word: str) -> None:
        if len(found) < MOST:
            found[kind, word[:LONGEST]] = None

    if "." in text:
        for match in _SUFFIX.finditer(text):
            if match[1].lower() not in words.SUFFIXES:
                continue
            before = text[max(0, match.start() - 100) : match.start()]
            stem = _STEM.search(before).group() or _ANY_STEM.search(before)
            if stem:
                name = stem if isinstance(stem, str) else stem.group()
                add("file", name.lstrip(".~+-") + match.group())
            if len(found) >= MOST:
                break
    if "`" in text:
        for match in _CODE.finditer(text):
            if _says_something(match[1], weak=1):
                add("code", match[1].strip())
    if not _QUOTES.isdisjoint(text):
        for match in _QUOTED.finditer(text):
            quoted = match[match.lastindex]
            if _says_something(quoted, weak=1):
                add("quote", quoted.strip())
    for match in _CHUNK.finditer(text):
        chunk = match.group().strip(".:+-@")
        if _DOTFILE.fullmatch(match.group()) and _is_content(chunk.casefold()):
            add("file", match.group())
        elif ("file", chunk) not in found and (kind := _shape(chunk)):
            add(kind, chunk)
    lower = text.casefold()
    for phrase in words.DOMAIN_PHRASES:
        if phrase in lower:
            add("domain", phrase)
    for word in _words(lower):
        if word in words.DOMAIN_WORDS:
            add("domain", word)
    return list(found)


def _shape(chunk: str) -> str | None:
    """What kind of name a run of ASCII is, if it is one."""
    if len(chunk) < 2:
        return None
    if _ISSUE.fullmatch(chunk):
        return "issue"
    if chunk.isalnum():
        if _VERSION.fullmatch(chunk):
            return "version"
        if chunk.casefold() in _NAMED_FILES:
            return "file"
        if _HUMP.search(chunk) and _is_content(chunk.casefold()):
            return "identifier"
        return None
    if _URL.match(chunk):
        return "address"
    if _DATE.fullmatch(chunk):
        return "date"
    if _VERSION.fullmatch(chunk):
        return "address" if chunk.count(".") == 3 else "version"
    if _is_path(chunk):
        return "path"
    word = chunk.strip("_/\\.:#~")
    if _SNAKE.search(word):
        return "identifier"
    if _MODULE.fullmatch(word) and not any(
        part.casefold() in words.EMPTY_WORDS for part in word.split(".")
    ):
        return "module"
    if _HUMP.search(word) and _is_content(word.casefold()):
        return "identifier"
    return None


def _is_path(chunk: str) -> bool:
    """`a/b/c`, `~/a`, `./a`, `/a/b`, `a/`, `C:\\a`; not `and/or`, and not `/help`."""
    if _DRIVE.match(chunk):
        return True
    slashed = chunk.replace("\\", "/")
    parts = [part for part in slashed.split("/") if part.strip(".~")]
    rooted = slashed.startswith(("~/", "./", "../")) and len(parts) >= 1
    deep = len(parts) >= 2 and (slashed.startswith("/") or slashed.count("/") >= 2)
    folder = len(parts) == 1 and len(slashed) > 2 and slashed.endswith("/")
    if not (rooted or deep or folder):
        return False
    return any(part.casefold() not in words.EMPTY_WORDS and not part.isdigit() for part in parts)


# --- words --------------------------------------------------------------------------------------

_LETTERS = lazy(r"[^\W_]++")
# Where letters begin to be kana, Han and Hangul.
_FIRST_KANA = "\u3041"
_REPEATED = lazy(r"(.)\1{2,}+")
_LAUGHTER = lazy(r"(?:h+[aeiou]+)+h*|(?:l+o+)+l+|z+|w+|(?:ok){2,}|\d+")
_HIRAGANA_LAST = "\u309f"
_LONGEST_PHRASE = max(map(len, words.EMPTY_PHRASES | words.WEAK_PHRASES))
_FIRST_CHARACTERS = frozenset(phrase[0] for phrase in words.EMPTY_PHRASES | words.WEAK_PHRASES)


def _terms(lower: str) -> tuple[list[str], list[str], bool]:
    """The content words, the weak words, and whether more is left than empty words."""
    content: list[str] = []
    weak: list[str] = []
    rest = False
    for run in _runs(lower):
        if run[0] >= _FIRST_KANA:
            rest |= _chinese(run, content, weak)
        elif run in words.WEAK_WORDS:
            weak.append(run)
        elif _is_content(run):
            content.append(run)
        else:
            rest |= run not in words.EMPTY_WORDS
    return content, weak, rest


def _runs(lower: str) -> Iterator[str]:
    """Letters and digits that stand together, cut where Chinese, Japanese or Korean begins or ends."""
    for run in _LETTERS.findall(lower):
        if run.isascii():
            yield run
        else:
            # A class of these characters would take milliseconds to compile, at every turn.
            for _, piece in groupby(run, _FIRST_KANA.__le__):
                yield "".join(piece)


def _words(lower: str) -> list[str]:
    """The words of alphabets."""
    return [run for run in _runs(lower) if run[0] < _FIRST_KANA]


def _is_content(word: str) -> bool:
    """Whether a word of an alphabet, folded, is one."""
    if len(word) < 2 or word.isdigit() or word in words.EMPTY_WORDS or word in words.WEAK_WORDS:
        return False
    if _LAUGHTER.fullmatch(word):
        return False
    if _REPEATED.search(word):
        short = _REPEATED.sub(r"\1", word)
        double = _REPEATED.sub(r"\1\1", word)
        return len(short) > 1 and not {short, double} & words.EMPTY_WORDS
    return True


def _chinese(run: str, content: list[str], weak: list[str]) -> bool:
    """Cut a run of Han, kana or Hangul; True if anything is left but empty words.

    Phrases are taken out from the left, the longest first. What stands between two of them is a
    content word if it has two characters and not only light ones; two single ones that are not
    light are one as well (锁怎么解).
    """
    if "\uac00" <= run[0] <= "\ud7a3":  # Korean has blanks: a run is a word
        if run in words.WEAK_PHRASES:
            weak.append(run)
        elif run not in words.EMPTY_PHRASES:
            if len(run) > 1:
                content.append(run)
            return True
        return False
    rest = False
    single: list[str] = []
    begin = at = 0
    end = len(run)
    while at <= end:
        phrase = ""
        if at < end:
            if run[at] in words.EMPTY_CHARACTERS:
                phrase = run[at]
            if run[at] in _FIRST_CHARACTERS:
                phrase = _phrase(run, at) or phrase
            if not phrase:
                at += 1
                continue
        piece = run[begin:at]
        if len(piece) > 1 and not all(map(_is_light, piece)):
            content.append(piece)
        elif len(piece) == 1 and not _is_light(piece):
            single.append(piece)
        elif len(piece) > 1:
            rest = True
        if phrase in words.WEAK_PHRASES:
            weak.append(phrase)
        at += len(phrase) or 1
        begin = at
    if len(single) > 1:
        content.append("".join(single))
    return rest or bool(single)


def _phrase(run: str, at: int) -> str:
    """The longest phrase that begins at `at`, or an empty string."""
    for length in range(min(_LONGEST_PHRASE, len(run) - at), 1, -1):
        piece = run[at : at + length]
        if piece in words.EMPTY_PHRASES or piece in words.WEAK_PHRASES:
            return piece
    return ""


def _is_light(character: str) -> bool:
    return character in words.LIGHT_CHARACTERS or character <= _HIRAGANA_LAST


def _asks(lower: str) -> bool:
    """Whether a text is shaped like a question."""
    if any(mark in lower for mark in words.QUESTION_MARKS):
        return True
    spoken = _words(lower)
    if not words.QUESTION_WORDS.isdisjoint(spoken):
        return True
    first, second = [*spoken[:2], "", ""][:2]
    return first in words.QUESTION_STARTS or (
        first in ("do", "have") and second in ("we", "you", "i", "they")
    )


def _says_something(phrase: str, weak: int = 2) -> bool:
    """Whether a phrase is more than empty words and fewer than `weak` weak ones."""
    content, general, rest = _terms(_folded(phrase).casefold())
    return bool(content) or rest or len(general) >= weak
