"""What a value says about itself: credential, or reference, placeholder, name, code."""

import re

from .lazy import lazy

# More of a value than this is not needed to judge it.
_JUDGED = 64

# The patterns below are applied to a value in lower case.

# Stands for a value, wherever in it this occurs.
_PLACEHOLDER = lazy(
    # Each begins with one character, not with a set: the engine then knows where to look.
    r"change[-_ ]?(?:me|this|it)|your[-_ ]?[a-z]|example|placeholder|redacted|masked|dummy|sample"
    r"|insert[-_ ]|replace[-_ ]?|xxx|\*\*\*|\.\.\.|…|\$[{(]|\{\{|%\(|<|>|todo|fixme"
)

# A word for a secret with a number is a name for one: `password1`, `my_token_2`.
_NAME = lazy(
    "(?:[a-z]{1,12}[-_]){0,3}(?:a|my|the|new|old|user|root|admin|db|test|some|app|s3)?"
    "(?:pass(?:word|wd|phrase)?|pwd|pw|secret|token|(?:(?:access|api|private|secret)[-_]?)?key)s?"
    "[-_]?[0-9]{0,3}"
)

_EXTENSIONS = frozenset(
    "asc bak cer cfg conf crt csv db doc docx env gpg gz htm html ini java jks jpeg jpg js json"
    " kdbx key log md p12 pdf pem pfx php png pub py rb rs sh sql tgz toml ts tsx txt xls xlsx"
    " xml yaml yml zip".split()
)

#: What no value begins with, but a path, a variable, an anchor or code.
NO_VALUE = "~/.$*{([<:"

# Something else than a secret, by its shape; each form holds a character of `_MAY_BE_OTHER`.
_OTHER = lazy(
    r"""
      --?[a-z][a-z-]*+(?:=.*)?                                                  # option
    | [a-z]:[\\/].* | \\\\.*                                                    # path on Windows
    | (?:arn|urn):.*                              # name of a resource
    | [\w.+-]++@[\w-]++(?:\.[\w-]++)*?\.[a-z]{2,12}                             # mail address
    | [a-z_]\w*+(?:(?:\.|::|->)[a-z_]\w*+)*+[(\[].*                             # call, index
    | (?:cmd|env|exec|fd|file|keyring|op|ref|secret|sops|ssm|var|vault):.*      # where to look
    | (?:sha-?\d{1,3}|md5|pbkdf2\w*|bcrypt|argon2\w*|scrypt)[:$].*              # hash
    | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}                               # UUID
    | \d{4}-\d\d-\d\d(?:[t_].*)?                                                # date
    | v?\d++(?:\.\d++)++(?:[-+.]?[a-z]++[.\d]*+)*+                              # version
    | [\d.]++:[\d:]++(?:/(?:tc|ud)p)?                                           # address and port
    """,
    re.VERBOSE,
)
# An attribute or the name of a host, if its parts are words.
_DOTTED = lazy(r"[a-z_]\w*+(?:(?:\.|::|->)[a-z_]\w*+)++!?")
_MAY_BE_OTHER = lazy(r"[-.:/\\~$*{(\[<@>]")
_AMOUNT = lazy(
    r"\d++(?:\.\d++)?(?:ms|s|secs?|mins?|h|hours?|d|days?|[kmgt]i?b?|bytes?|bits?|chars?|tokens?|x)"
    r"|(?:\d++[dhms]){2,3}"
)

# What stands between the parts of a name.
_JOINT = "[-_/+.,:@>]"


def _made_of(part: str) -> re.Pattern[str]:
    """Parts of one kind with a joint between each two."""
    return lazy(rf"(?:(?:{part})(?:{_JOINT}|\Z))++")


# Names of algorithms and types: pbkdf2_sha256, AES-256-GCM, utf8mb4, int64.
_TECHNICAL = _made_of(
    "(?:aes|argon|base|bcrypt|blake|bytes?|char|curve|des|dsa|ec|ed|es|float|gpt|hmac|hs|http|ipv"
    "|md|n?varchar|nchar|oauth|p|pbkdf|pkcs|porter|ps|ripemd|rs|rsa|scrypt|secp|sha|sm|ssh|str"
    "|string|tls|totp|u?int|unicode|utf|uuid|v|x)?[0-9]{0,4}"
    "(?:array|b|bit|cbc|ctr|d|encoded|gcm|hashed|hex|i|id|k1|mb[34]|ms|r1|salt|t|with|words?)?"
)

# These ask for the value as it is written.

# Words and small numbers: `session`, `deployKey2`, `APP2`, `2024`, `k8s`.
_WORDS = _made_of("(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+)++[0-9]{0,4}|[0-9]{1,8}|[A-Za-z0-9]{0,3}")
_SNAKE = lazy("[a-z]+[0-9]{0,2}(?:_(?:[a-z]+[0-9]{0,2}|[0-9]{1,2}))+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_LETTER = lazy("[A-Za-z]")
_DIGIT = lazy("[0-9]")
_UUID = lazy("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

_FILLER = lazy(r"example|placeholder|redacted|your[-_]|x{4}|\.\.\.")
_STAND_IN = lazy(r"\$.*|%[a-z(].*|.{0,3}|[A-Z_]+|[a-z]{1,16}[-_](?:pass(?:word|wd)?|pwd|pw)")


def is_password(value: str, pair: bool = False) -> bool:
    """Whether a value that a password's name points at holds letters and digits and reads like one.

    `pair` lets `user/password` pass, which is otherwise a path.
    """
    value = value[:_JUDGED]
    if len(value) < 6 or _is_elsewhere(value):
        return False
    lowered = value.lower()
    if value.isalnum():
        if value.isalpha() or value.isdigit() or _TECHNICAL.fullmatch(lowered):
            return False
    elif not (_DIGIT.search(value) and _LETTER.search(value)):
        return False
    if _PLACEHOLDER.search(lowered) or _NAME.fullmatch(lowered) or len(set(lowered)) < 4:
        return False
    if lowered[0].isdigit() and _AMOUNT.fullmatch(lowered):
        return False
    if value.isalnum():
        return True
    if _MAY_BE_OTHER.search(lowered) and (
        _OTHER.fullmatch(lowered)
        or _is_file(lowered)
        or (_DOTTED.fullmatch(lowered) and reads_like_words(value.rstrip("!")))
    ):
        return False
    if _TECHNICAL.fullmatch(lowered):
        return False
    return pair or "/" not in value or not reads_like_words(value)


def _is_elsewhere(value: str) -> bool:
    return value[0] in NO_VALUE or "://" in value[:_JUDGED]


def _is_file(lowered: str) -> bool:
    stem, _, extension = lowered.rpartition(".")
    return bool(stem) and extension.partition(":")[0] in _EXTENSIONS


def is_token(value: str, least: int = 10) -> bool:
    """Whether a value is no words, `least` characters or longer, and reads like a password."""
    return (
        len(value) >= least
        and not _is_elsewhere(value)
        and not reads_like_words(value)
        and is_password(value)
    )


def reads_like_words(value: str) -> bool:
    """Whether a value is made of words and small numbers, as names and paths are."""
    return _WORDS.fullmatch(value[:_JUDGED]) is not None


def is_identifier(value: str) -> bool:
    """Whether a value without quotes is a name in code: `new_password2`, `DB_PASSWORD_1`."""
    return "_" in value and _SNAKE.fullmatch(value[:_JUDGED]) is not None


def is_uuid(value: str) -> bool:
    """Whether a value is a UUID: as a rule an identifier."""
    return _UUID.fullmatch(value) is not None


def is_filler(value: str) -> bool:
    """Whether a value of a vendor's shape merely shows the shape."""
    value = value[:_JUDGED].lower()
    kinds = set(value)
    if not value:
        return True
    if len(kinds) < 16 and max(map(value.count, kinds)) * 2 > len(value):
        return True
    return _FILLER.search(value) is not None


def stands_in(user: str, password: str) -> bool:
    """Whether the password of an address only shows where one would stand."""
    lowered = password.lower()
    return (
        password == user
        or _STAND_IN.fullmatch(password) is not None
        or _NAME.fullmatch(lowered) is not None
        or _PLACEHOLDER.search(lowered) is not None
    )
