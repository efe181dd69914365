"""Credentials and personal data in a text: which class and where, never the text itself.

A reminder for whoever writes a note, no security boundary. False alarms make people ignore it, so
a doubtful case is let through: what is found has a vendor's own shape, or a name such as
`password` or `密码` in front of a value that reads like one, and not like a reference, a
placeholder or code.

A text of nothing but findings costs no more than another: a thousand of one pattern are told apart,
and what follows them, to the end of the text, is one finding of the class `more`. So it is where ten
thousand values had to be judged one by one, whatever they were.

The patterns stand in `_credentials` and `_personal`. They are loaded for the first text that holds
one of the trigger words below; a text without any costs a few substring searches.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .bounds import MORE
from .lazy import lazy


@dataclass(frozen=True, slots=True)
class Finding:
    """Something of class `kind` stands at `[start, end)` of the text, counted in characters."""

    kind: str
    start: int
    end: int


# Whatever `_credentials` finds stands in a text that holds one of these, in lower case ...
TRIGGERS = (
    "key", "pass", "token", "secret", "pw", "密", "秘", "口令", "令牌", "授权码", "授權碼",
    "パスワード", "비밀번호", "пароль", "contraseña", "@", "bearer", "auth", "cred", "identified",
    "-----begin", "hook", " -p", " -a ", " -u", " --user", " /p:", "net use", "sudo -s", "chpasswd",
)  # fmt: skip
# ... or one of these, that keys of vendors begin with, in a long run.
PREFIXES = (
    "akia", "asia", "ltai", "akid", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
    "gldt-", "glrt-", "glptt-", "glcbt-", "xox", "xapp-", "sk-", "aiza", "gocspx-", "ya29.", "hf_",
    "npm_", "pypi-", "k_live_", "k_test_", "whsec_", ":aa", "sg.", "eyj", "dapi", "dckr_pat_",
    "dop_v1_", "glsa_", "gsk_", "hvs.", "lin_api_", "ntn_",
    "pplx-", "sbp_", "shpat_", "tvly-", "xai-",
)  # fmt: skip
_LONG_RUN = lazy("[a-z0-9_.:-]{16,}+")

# Eleven digits are the shortest that `_personal` finds.
_LONG_NUMBER = lazy("[0-9](?:[ -]?[0-9]){10}")

_Span = tuple[int, int, str]


def find_secrets(text: str) -> tuple[Finding, ...]:
    """The credentials in `text`, sorted and disjoint.

    What overlaps becomes one finding, named by the more telling class.
    """
    lowered = text.replace("İ", "\ufffd").lower()  # the one character that grows in lower case
    held = [trigger for trigger in TRIGGERS if trigger in lowered]
    if runs := " ".join(_LONG_RUN.findall(lowered)):
        held += [prefix for prefix in PREFIXES if prefix in runs]
    if not held:
        return ()
    from ._credentials import credentials

    return _findings(credentials(text, lowered, held))


def find_personal(text: str) -> tuple[Finding, ...]:
    """Identity cards, bank cards and mobile numbers of mainland China, sorted and disjoint.

    Kinds: `id_card` (GB 11643: region, date, check digit), `bank_card` (ISO/IEC 7812: prefix,
    length, check digit; foreign ones too) and `phone` (by shape alone).
    """
    if not _LONG_NUMBER.search(text):
        return ()
    from ._personal import numbers

    return _findings(numbers(text))


def mask(text: str, findings: Iterable[Finding]) -> str:
    """`text` with each finding replaced by `[masked: KIND]`; overlapping ones by one mask."""
    pieces: list[str] = []
    done = 0
    for start, end, kind in _merged((f.start, f.end, f.kind) for f in findings):
        pieces += [text[done:start], f"[masked: {kind}]"]
        done = end
    return "".join([*pieces, text[done:]])


def describe(findings: Iterable[Finding]) -> tuple[str, ...]:
    """One line a finding, fit to be shown and logged: `jwt, characters 12 to 52`.

    Positions count from 0, the end is not included.
    """
    return tuple(f"{f.kind}, characters {f.start} to {f.end}" for f in findings)


def _findings(spans: Iterable[_Span]) -> tuple[Finding, ...]:
    return tuple([Finding(kind, start, end) for start, end, kind in _merged(spans)])


# Classes that say how something was found; a class that says what it is goes before them.
_GENERAL = frozenset(("password", "secret", "connection_password", "http_authorization"))


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """Sorted, and overlapping ones joined."""
    out: list[_Span] = []
    last = 0
    for span in sorted(spans):
        if span[0] < last:
            start, end, kind = out.pop()
            if span[2] == MORE or (
                kind in _GENERAL and (span[2] not in _GENERAL or kind == "http_authorization")
            ):
                kind = span[2]
            span = (start, max(end, span[1]), kind)
        out.append(span)
        last = span[1]
    return out
