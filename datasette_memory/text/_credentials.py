"""The patterns of `secrets.find_secrets`.

Each is linear in the text: runs are possessive or bounded, and what needs the rest of its line
goes through the lines once. `\\b` is not used, since it sees no border between Latin and Chinese
letters.
"""

import base64
import re
from collections.abc import Callable, Iterator

from ._values import (
    NO_VALUE,
    is_filler,
    is_identifier,
    is_password,
    is_token,
    is_uuid,
    stands_in,
)
from .bounds import MORE, bounded
from .lazy import lazy

_Span = tuple[int, int, str]
#: Takes a text and the same in lower case, of the same length; gives the first finding first.
_Finder = Callable[[str, str], Iterator[_Span]]


def credentials(text: str, lowered: str, held: list[str]) -> Iterator[_Span]:
    """Start, end and class of what looks like a credential, in no order; they may overlap.

    `held` names the triggers that stand in `lowered`.
    """
    for triggers, find in FINDERS:
        if not triggers.isdisjoint(held):
            yield from bounded(find(text, lowered), len(text))


# --- vendors' own shapes --------------------------------------------------------------------

_BODY = "[A-Za-z0-9_-]"
_END = "(?![A-Za-z0-9_]|-[A-Za-z0-9_])"

# Class, triggers in lower case, pattern. A pattern begins with a literal where it can, since the
# engine searches for those fast; what must not stand in front is looked at afterwards.
_SHAPES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("aws_access_key", ("akia", "asia"), "A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("alibaba_access_key", ("ltai",), "LTAI[A-Za-z0-9]{12,24}+(?![A-Za-z0-9])"),
    ("tencent_access_key", ("akid",), "AKID[A-Za-z0-9]{28,40}+(?![A-Za-z0-9])"),
    ("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "gh[pousr]_[A-Za-z0-9]{30,}+"),
    ("github_token", ("github_pat_",), "github_pat_[A-Za-z0-9_]{40,}+"),
    (
        "gitlab_token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"),
        f"gl(?:pat|dt|rt|ptt|cbt)-{_BODY}{{20,}}+",
    ),
    ("slack_token", ("xox",), "xox[abeoprs]-(?=[A-Za-z-]{0,12}[0-9])[A-Za-z0-9-]{16,}+"),
    ("slack_token", ("xapp-",), "xapp-[0-9]-[A-Za-z0-9-]{16,}+"),
    ("anthropic_key", ("sk-",), f"sk-ant-{_BODY}{{24,}}+"),
    (
        "openai_key",
        ("sk-",),
        f"sk-(?:proj|svcacct|admin|or-v1)-{_BODY}{{24,}}+",
    ),
    ("openai_key", ("sk-",), f"sk-(?=[A-Za-z]{{0,40}}[0-9])[A-Za-z0-9]{{20,}}+{_END}"),
    ("google_api_key", ("aiza",), f"AIza{_BODY}{{35}}{_END}"),
    ("google_secret", ("gocspx-",), f"GOCSPX-{_BODY}{{24,}}+"),
    ("google_secret", ("ya29.",), f"ya29\\.{_BODY}{{24,}}+"),
    ("huggingface_token", ("hf_",), f"hf_[A-Za-z0-9]{{30,}}+{_END}"),
    ("npm_token", ("npm_",), f"npm_[A-Za-z0-9]{{30,}}+{_END}"),
    ("pypi_token", ("pypi-",), f"pypi-{_BODY}{{50,}}+"),
    ("stripe_key", ("k_live_", "k_test_"), "[rs]k_(?:live|test)_[A-Za-z0-9]{16,}+"),
    ("stripe_key", ("whsec_",), "whsec_[A-Za-z0-9+/=]{24,}+"),
    ("telegram_token", (":aa",), f"[0-9]{{8,10}}+:AA{_BODY}{{33}}{_END}"),
    ("sendgrid_key", ("sg.",), f"SG\\.{_BODY}{{20,24}}+\\.{_BODY}{{40,}}+"),
    (
        "webhook_url",
        ("hook",),
        "https://hooks\\.slack\\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/-]{30,}+",
    ),
    (
        "webhook_url",
        ("hook",),
        f"https://[a-z.]{{0,12}}discord(?:app)?\\.com/api/webhooks/[0-9]{{10,}}+/{_BODY}{{30,}}+",
    ),
    (
        "webhook_url",
        ("hook",),
        "https://(?:qyapi\\.weixin\\.qq\\.com/cgi-bin/webhook/send\\?key="
        f"|open\\.(?:feishu\\.cn|larksuite\\.com)/open-apis/bot/v2/hook/)[0-9a-f-]{{36}}{_END}",
    ),
    # Only here does the look behind belong into the pattern: a run of `eyJ` has many beginnings.
    (
        "jwt",
        ("eyj",),
        f"eyJ(?<!{_BODY}eyJ){_BODY}{{8,}}+\\.eyJ{_BODY}{{8,}}+\\.{_BODY}{{10,}}+",
    ),
    ("vendor_token", ("secret",), "AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    *(
        (
            "vendor_token",
            (prefix,),
            f"{re.escape(prefix)}(?=[A-Za-z_-]{{0,40}}[0-9]){_BODY}{{24,}}+",
        )
        for prefix in (
            "dapi", "dckr_pat_", "dop_v1_", "glsa_", "gsk_", "hvs.", "lin_api_", "ntn_", "pplx-",
            "sbp_", "shpat_", "tvly-", "xai-",
        )
    ),
)  # fmt: skip


def _shape_finder(kind: str, pattern: str) -> _Finder:
    def find(text: str, lowered: str) -> Iterator[_Span]:
        # Compiled when the trigger is met for the first time; `re` keeps what it compiled.
        for match in re.compile(pattern).finditer(text):
            start, end = match.span()
            if _starts_a_word(text, start) and not is_filler(match.group()):
                yield start, end, kind

    return find


def _starts_a_word(text: str, at: int) -> bool:
    """Whether no ASCII letter, digit or `_` stands before `at`; an escape such as `\\n` may."""
    before = text[at - 1 : at] if at else ""
    if before != "_" and not (before.isascii() and before.isalnum()):
        return True
    return text[max(at - 2, 0) : at] in ("\\n", "\\r", "\\t")


# --- private keys ---------------------------------------------------------------------------

# What may stand between the pieces of a key: white space, and marks of quoting and of diffs.
_GAP = r"(?:[\s>|#+\"',]|\\[nrt]){1,40}+"
_PRIVATE_KEY = lazy(
    r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_GAP}(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset): [^\n\\]{{0,100}}+"
    r"|[A-Za-z0-9+/=]{16,}+))*+"
    rf"(?:(?:{_GAP}[A-Za-z0-9+/=]{{1,15}}+){{0,2}}{_GAP}-----END [A-Z0-9 ]{{0,60}}-----)?+"
)
# A header that other words, an ellipsis or a closing quote follow is talk about the shape.
_KEY_MAY_FOLLOW = lazy(
    r"[ \t]*+(?:\Z|(?:[\r\n]|\\[rn])(?!(?:[\s>|#+]|\\[nrt])*+(?:[.…<*\[{]|[xX]{3}|your|YOUR)))"
)


def _private_keys(text: str, lowered: str) -> Iterator[_Span]:
    for match in _PRIVATE_KEY.finditer(text):
        start, end = match.span()
        body = match.group().split("-----")[2]
        if not body:
            found = _KEY_MAY_FOLLOW.match(text, end) is not None
        else:
            found = not text.startswith(("...", "…"), end) and not is_filler(body.strip())
        if found:
            yield start, end, "private_key"


# --- secrets of cloud accounts, beside their ids --------------------------------------------

_LONE_SECRET = lazy(
    "(?<![A-Za-z0-9_/+=-])(?:[A-Za-z0-9/+]{40}|[A-Za-z0-9]{32}|[A-Za-z0-9]{30})(?![A-Za-z0-9_/+=-])"
)
_ACCOUNT = lazy("(?:A[KS]IA|LTAI|AKID)[A-Za-z0-9]{12,40}+")
_NEAR = 200


def _account_secrets(text: str, lowered: str) -> Iterator[_Span]:
    """What looks random behind the id of an account, on the same line or the next."""
    if not _ACCOUNT.search(text):
        return
    for match in _LONE_SECRET.finditer(text):
        value = match.group()
        if value == value.lower() or value == value.upper() or is_filler(value):
            continue
        near = text[max(match.start() - _NEAR, 0) : match.start()].rpartition("]")[2]
        account = _ACCOUNT.search("\n".join(near.rsplit("\n", 2)[-2:]))
        if account and not is_filler(account.group()):
            is_aws = account.group().startswith(("AKIA", "ASIA")) and len(value) == 40
            yield *match.span(), "aws_secret_key" if is_aws else "secret"


# --- passwords in addresses -----------------------------------------------------------------

# What an address holds anywhere. That is all ASCII: a class that leaves out a few characters and all
# of Unicode behind ASCII takes milliseconds to compile.
_ANYWHERE = "-\0-\x08\x0e-\x1b!#$%&*+,.0-9;=A-Z_a-z~"
_IN_URL = lazy(f"://([{_ANYWHERE}?]{{0,80}}+):([{_ANYWHERE}:@]{{1,200}})@(?=[A-Za-z0-9_$%])")
_IN_THIN = lazy(rf"thin:([A-Za-z0-9_.$#-]{{1,40}}+)/([{_ANYWHERE}:?`|\\^]{{1,80}}+)@")


def _address_finder(pattern: re.Pattern[str]) -> _Finder:
    def find(text: str, lowered: str) -> Iterator[_Span]:
        for match in pattern.finditer(text):
            if not stands_in(match[1], match[2]):
                yield *match.span(2), "connection_password"

    return find


# --- names in front of values ---------------------------------------------------------------

# Names of a password, and of the longer secrets. All begin with a literal, for the engine's sake.
_PASSWORD_NAMES = (
    "passw(?:or)?[dt]|passphrase|passcode|pass(?<!bypass)(?<!compass)(?<!surpass)(?<!trespass)"
    "|requirepass|pwd|pw(?<![a-z0-9]pw)|密[ \u3000]{0,2}[码碼]|口令|パスワード|비밀번호|пароль|contraseña"
)
_KEY_OF = (
    "access", "account", "api", "app", "auth", "client", "encryption", "master", "private",
    "shared", "signing", "storage",
)  # fmt: skip
_TOKEN_NAMES = (
    "secret(?:[-_. ]?(?:access[-_. ]?)?key(?:_base)?)?|token|credentials?|creds|auth(?<![a-z]auth)"
    "|密[钥鑰]|秘[钥鑰]|令牌|授权码|授權碼|key(?:"
    + "|".join(f"(?<={word}key)|(?<={word}[-_. ]key)" for word in _KEY_OF)
    + ")"
)
_PASSWORD_NAME = lazy(_PASSWORD_NAMES)
_BLANK = "[ \t\u3000]"
_COPULA = (
    "(?:现在|目前|暂时|暂|分别|默认|初始|统一|重新|临时|已经?|被|都|均|也|就|应){0,3}+"
    "(?:是|(?:改|设|設|换|換|定|设置|設置|重置|更新|变更|修改|统一)?(?:为|為|成|到))了?"
)
# A name and what leads to its value, applied to the text in lower case. `strict` holds the ways
# that prose also uses for other things.
_NAMED = lazy(
    rf"""
    (?:{_PASSWORD_NAMES}|{_TOKEN_NAMES})
    (?:[-_.](?:prod|dev|test|stag(?:e|ing)|root|admin|old|new)
      |[-_.]?(?:str(?:ing)?|val(?:ue)?|[0-9]{{1,3}}))?
    [\\"'`*\])）】」』]{{0,4}}+
    (?:{_BLANK}?[(（][^\n()（）]{{1,24}}[)）])?+
    (?>
        {_BLANK}{{0,8}}+
        (?:=>|:=|->|→|:\ ?(?:&?str|string)\ ?=|[:：=＝](?![=~]))
        (?P<wrapped>{_BLANK}{{0,8}}\r?\n)?
      | {_BLANK}?{_COPULA}[:：]?
      | (?P<strict>
            {_BLANK}{{0,40}}\|
          | (?<=["']),{_BLANK}?(?=["'])
          | {_BLANK}{{1,4}}(?:is|was|to)(?:\ ?:|(?={_BLANK}))
          | {_BLANK}{{1,8}}+
          | (?<=[码碼令])
        )
      | (?<=[】」』])
      | (?P<tag>>)
    )
    {_BLANK}{{0,40}}+(?:\*\*|__)?{_BLANK}{{0,4}}+
    (?P<quote>\\?["'`]|[“‘「『【])?+(?:pass:)?+
    (?=[!-~])(?=\S{{6}})(?=[^\s0-9]{{0,64}}+[0-9])
    """,
    re.VERBOSE,
)
_CLOSING = {"“": "”", "‘": "’", "「": "」", "『": "』", "【": "】"}
_RUN = lazy("[!-~]{0,4096}+")
# Where a value without quotes ends before its run does: at a quote, or where the next name begins.
_BARE_END = lazy(
    r"""
    ["'`<>\\&;,]                    # one charset first: the engine skips to it fast
    (?:
        (?<=["'`<>])
      | (?<=\\)[nrt"']
      | (?<=[&;,])(?:(?=[A-Za-z_{"'][\w.\[\]%-]{0,40}["']?\s?[=:])|\Z)
    )
    """,
    re.VERBOSE,
)
_FAR = 256
# What belongs to the sentence at the end of a value, a few at most.
_MAY_FOLLOW = frozenset(".,;:?\\)]}")
_OPENING = {")": "(", "]": "[", "}": "{"}
_MARKS = 8
_PAIR_BEFORE = lazy(
    f"(?:[账帐]号|账户|用户名?|username|user|login|account){_BLANK}?(?:[/／、&和及]{_BLANK}?)?$"
)
_SETTING = lazy(r"[A-Za-z_][\w.-]{0,63}+[=:]")
# Behind a blank alone: no setting, no markup, and no name that is a common word or command.
_STRICT = lazy(rf"(?!{_SETTING.pattern})[^()\[\]{{}}]*")
_BY_WORD = lazy("pass(?!word|phrase|code)")
# What stands before the names of tokens that open no door.
_OF_NO_DOOR = (
    "next", "page", "paging", "pagination", "start", "starting", "continue", "continuation",
    "forward", "backward", "sync", "update", "cursor", "public", "csrf", "xsrf", "idempotency",
)  # fmt: skip
_LINE_ENDS = lazy(r"[ \t]*+(?:[\r\n]|\Z)")


# Every value that follows a name holds one; without any, the long pattern need not be compiled.
_DIGIT = lazy("[0-9]")
# So many values are judged, one by one; what has more of them is no note.
_MOST_VALUES = 10_000


def _named(text: str, lowered: str) -> Iterator[_Span]:
    if not _DIGIT.search(lowered):
        return
    done = run_end = judged = 0
    for match in _NAMED.finditer(lowered):
        start = match.end()
        if start < done or text[start] in NO_VALUE:
            continue
        if start >= run_end:
            run_end = _RUN.match(text, start).end()
        end = _value_end(text, start, run_end, match["quote"])
        if end - start < 6:
            continue
        judged += 1
        if judged > _MOST_VALUES:
            yield start, len(text), MORE
            return
        if kind := _named_kind(text, lowered, match, end):
            yield start, end, kind
            done = end


def _value_end(text: str, start: int, run_end: int, quote: str | None) -> int:
    """Where the value at `start` ends; `start` if it has no end or is more than one word."""
    if quote:
        end = text.find(_CLOSING.get(quote, quote), start, run_end + 1)
        if end >= 0:
            return end
        if not _LINE_ENDS.match(text, run_end):
            return start
    cut = _BARE_END.search(text, start, min(run_end, start + _FAR))
    end = cut.start() if cut else run_end
    for _ in range(_MARKS):
        last = text[end - 1] if end > start else ""
        opening = _OPENING.get(last)
        if last not in _MAY_FOLLOW or (opening and text.find(opening, start, end) >= 0):
            break
        end -= 1
    return end


def _named_kind(text: str, lowered: str, match: re.Match[str], end: int) -> str | None:
    """The class of the value between the end of `match` and `end`, if it is a credential."""
    start, value = match.start(), text[match.end() : end]
    before = lowered[max(start - 24, 0) : start]
    if "[masked: " in before and "]" not in before.rpartition("[")[2]:
        return None  # the name of a mask
    name = _PASSWORD_NAME.match(lowered, start)
    if not name and len(value) < 10:
        return None
    strict = _is_strict(text, match, value, before)
    if strict is None:
        return None
    if not name:
        return _token_kind(match.group(), value, before, strict)
    after = text[end : end + 1]
    if strict or "\u3400" <= after <= "\u9fff" or _is_bare_pass(lowered, *name.span()):
        return "password" if is_token(value, 8) else None
    pair = "/" in value and _PAIR_BEFORE.search(before) is not None
    return "password" if is_password(value, pair) else None


def _is_strict(text: str, match: re.Match[str], value: str, before: str) -> bool | None:
    """Whether the value has to be beyond doubt; None if it is none by what leads to it."""
    wrapped, strict, tag, quote = match.groups()
    end = match.end() + len(value)
    if not quote and (text[end : end + 1] in ("(", "[") or is_identifier(value)):
        return None
    if strict is None:
        if tag:
            return False if text.startswith("</", end) else None
        return None if wrapped and not _LINE_ENDS.match(text, end) else False
    if strict.isspace():
        if quote or before.rpartition(" ")[2].lstrip("\n\t").startswith("-"):
            return False
        if _BY_WORD.match(match.group()):
            return None
    return True if _STRICT.fullmatch(value[:_FAR]) else None


def _token_kind(lead: str, value: str, before: str, strict: bool) -> str | None:
    """The class of a value behind the name of something longer than a password."""
    if before.rstrip("-_ ").endswith(_OF_NO_DOOR):
        return None
    if before[-1:] == ":" and before[-2:-1].isdigit():
        return None  # the last part of a resource's name
    if is_uuid(value):
        return "secret" if lead.startswith("key") and not strict and len(set(value)) > 8 else None
    if not is_token(value, 16 if strict or lead.startswith("auth") else 10):
        return None
    if len(value) == 40 and lead.startswith("secret") and ("access" in lead or "aws" in before):
        return "aws_secret_key"
    return "secret"


def _is_bare_pass(lowered: str, start: int, end: int) -> bool:
    """`pass` by itself says as often that a test has passed."""
    before = lowered[start - 1 : start] if start else ""
    return end - start == 4 and before != "_" and not before.isalnum()


# What mail providers call 授权码 is sixteen letters.
_MAIL_CODE = lazy(
    f"(?:授权码|授權碼){_BLANK}?(?:[:：=]|是|为)?{_BLANK}{{0,4}}([a-z]{{16}}|[A-Z]{{16}})(?![A-Za-z0-9_])"
)


def _mail_codes(text: str, lowered: str) -> Iterator[_Span]:
    for match in _MAIL_CODE.finditer(text):
        if not is_filler(match[1]):
            yield *match.span(1), "secret"


# --- SQL, HTTP, commands --------------------------------------------------------------------

_SQL = lazy("identified[ \t]+by[ \t]+(?:password[ \t]+)?(['\"])([!-~]{6,128}?)\\1")


def _sql_passwords(text: str, lowered: str) -> Iterator[_Span]:
    for match in _SQL.finditer(lowered):
        start, end = match.span(2)
        if is_password(text[start:end]):
            yield start, end, "password"


_BEARER = lazy(r"bearer[ \t:]{1,4}([a-z0-9._~+/=-]{12,}+)")
_AUTHORIZATION = lazy(
    r"authorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?"
    r"(basic[ \t]{1,4})?([a-z0-9._~+/-]{8,4000}+={0,2})"
)


def _bearers(text: str, lowered: str) -> Iterator[_Span]:
    for match in _BEARER.finditer(lowered):
        start, end = match.span(1)
        if is_token(text[start:end].rstrip(".")):
            yield start, end, "http_authorization"


def _authorizations(text: str, lowered: str) -> Iterator[_Span]:
    for match in _AUTHORIZATION.finditer(lowered):
        start, end = match.span(2)
        value = text[start:end]
        if _is_basic(value) if match[1] else is_token(value, 16) or is_uuid(value):
            yield start, end, "http_authorization"


def _is_basic(value: str) -> bool:
    """Whether a value is the base64 form of `user:password` (RFC 7617), and no placeholder."""
    value = value.rstrip("=")
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return False
    user, colon, password = plain.decode("utf-8", "replace").partition(":")
    return bool(colon) and user.isprintable() and not stands_in(user, password)


_OPTION_P = lazy(r"(?<=\s)-p\s{0,2}['\"]?([^\s'\"]{6,}+)")
_OPTION_P_JOINED = lazy(r"(?<=\s)-p['\"]?([^\s'\"]{6,}+)")
_OPTION_A = lazy(r"(?<=\s)-a\s{1,2}['\"]?([^\s'\"]{6,}+)")
_OPTION_U = lazy(r"(?<=\s)(?:-u|--user)[ =]{0,3}['\"]?[^\s:'\"]{0,64}['\"]?:['\"]?([^\s'\"]{6,}+)")
_OPTION_U_PERCENT = lazy(r"(?<=\s)-U\s{0,2}['\"]?[^\s%'\"]{1,64}%([^\s'\"]{6,}+)")
# For MySQL's tools, `-p` and a space is no password.
_TOOLS = {
    "mysql": _OPTION_P_JOINED,
    "mariadb": _OPTION_P_JOINED,
    "redis-cli": _OPTION_A,
    "curl": _OPTION_U,
    "sshpass": _OPTION_P,
    "docker login": _OPTION_P,
    "podman login": _OPTION_P,
    "mongo": _OPTION_P,
    "winrm": _OPTION_P,
    "mapexec": _OPTION_P,
    "netexec": _OPTION_P,
    "7z": _OPTION_P_JOINED,
    "smbclient": _OPTION_U_PERCENT,
    "rpcclient": _OPTION_U_PERCENT,
    "freerdp": lazy(r"(?<=\s)/p:['\"]?([^\s'\"]{6,}+)"),
    "net user": lazy(r"\s{1,2}[^\s/]\S{0,63}\s{1,2}([^\s/]\S{5,}+)"),
    "net use": lazy(r"/user:\S{1,64}\s{1,2}([^\s/]\S{5,}+)", re.IGNORECASE),
}
_TOOL = lazy("|".join(_TOOLS))
# A blank, `-p` and six characters.
_SHORTEST_OPTION = 9
_COMMAND_END = lazy(r"(?<![\\])\r?\n|\Z")


def _commands(text: str, lowered: str) -> Iterator[_Span]:
    """Passwords that a letter names among the options of a command, as far as the line goes."""
    line_end = -1
    judged = 0
    tools = _TOOL.finditer(lowered)
    following = next(tools, None)
    while match := following:
        following = next(tools, None)
        start = match.end()
        if following and following.start() - start < _SHORTEST_OPTION:
            continue
        if start > line_end:
            line_end = _COMMAND_END.search(text, start).start()
        end = min(line_end, following.start()) if following else line_end
        for found in _TOOLS[match[0]].finditer(text, start, end):
            judged += 1
            if judged > _MOST_VALUES:
                yield found.start(1), len(text), MORE
                return
            value = found[1]
            if is_password(value) and not (is_identifier(value) or _SETTING.match(value)):
                yield *found.span(1), "password"


_PIPED = lazy(
    r"echo\s{1,3}(?:-n\s)?['\"]?(?:[a-z_][a-z0-9_-]{0,31}:)?([^\s'\"|]{6,128}+)['\"]?"
    r"\s{0,3}\|\s{0,3}"
    r"(?:sudo\s{1,3}-s|(?:sudo\s{1,3})?chpasswd)"
)


def _piped(text: str, lowered: str) -> Iterator[_Span]:
    """A password that is handed to `sudo -S`, or `user:password` to `chpasswd`."""
    for match in _PIPED.finditer(lowered):
        start, end = match.span(1)
        if is_password(text[start:end]):
            yield start, end, "password"


_NAME_TRIGGERS = (
    "key", "pass", "token", "secret", "pw", "auth", "cred", "密", "秘", "口令", "令牌", "授权码",
    "授權碼", "パスワード", "비밀번호", "пароль", "contraseña",
)  # fmt: skip

#: What is called for a text that holds one of the triggers.
FINDERS: tuple[tuple[frozenset[str], _Finder], ...] = tuple(
    (frozenset(triggers), find)
    for triggers, find in (
        (("-----begin",), _private_keys),
        *((triggers, _shape_finder(kind, pattern)) for kind, triggers, pattern in _SHAPES),
        (("akia", "asia", "ltai", "akid"), _account_secrets),
        (("@",), _address_finder(_IN_URL)),
        (("@",), _address_finder(_IN_THIN)),
        (("bearer",), _bearers),
        (("auth",), _authorizations),
        (_NAME_TRIGGERS, _named),
        (("授权码", "授權碼"), _mail_codes),
        (("identified",), _sql_passwords),
        ((" -p", " -a ", " -u", " --user", " /p:", "net use"), _commands),
        (("sudo -s", "chpasswd"), _piped),
    )
)
