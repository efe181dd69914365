"""Numbers that belong to a person in mainland China: see `secrets.find_personal`."""

import re
from collections.abc import Iterator

from .bounds import bounded

_Span = tuple[int, int, str]


def numbers(text: str) -> Iterator[_Span]:
    """Start, end and class of identity cards, bank cards and mobile numbers, in no order."""
    for find in (_id_cards, _bank_cards, _phones):
        yield from bounded(find(text), len(text))


# What begins inside a longer number is passed over at once: it may overlap one that does not.

# --- identity cards -------------------------------------------------------------------------

# GB 11643: region of six digits, date of birth, sequence, check digit.
_ID_CARD = re.compile(
    r"[1-8](?<![0-9].)[0-9]{5}([ -]?)((?:19|20)[0-9]{2})([01][0-9])([0-3][0-9])\1([0-9]{3}[0-9Xx])"
    "(?![0-9A-Za-z])"
)
# GB/T 2260
_PROVINCES = frozenset(
    "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65"
    " 71 81 82 83".split()
)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _id_cards(text: str) -> Iterator[_Span]:
    for match in _ID_CARD.finditer(text):
        number = match.group().replace(" ", "").replace("-", "")
        if (
            number[:2] in _PROVINCES
            and _is_date(int(match[2]), int(match[3]), int(match[4]))
            and _check_digit(number) == number[17].upper()
            and _starts_a_number(text, match.start())
        ):
            yield *match.span(), "id_card"


def _is_date(year: int, month: int, day: int) -> bool:
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]):
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return leap or (month, day) != (2, 29)


def _check_digit(number: str) -> str:
    """ISO 7064 MOD 11-2 over the first 17 digits."""
    return "10X98765432"[sum(int(d) * weight for d, weight in zip(number, _WEIGHTS)) % 11]


# --- bank cards -----------------------------------------------------------------------------

_BANK_CARD = re.compile(
    r"[2-69](?<![0-9].)(?<![0-9]-.)[0-9]{3}(?:[0-9]{9,15}+"  # in one
    r"|([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{1,4}(?:\1[0-9]{3})?"  # in fours
    "|[ -][0-9]{6}[ -][0-9]{5}"  # American Express
    "|[0-9]{2}[ -][0-9]{10,13}+)"  # after the bank's six
    "(?![0-9A-Za-z]|[.-][0-9])"
)
# Prefix and length as the card networks have them; what else is a card needs the word.
_ISSUER = re.compile(
    "62[0-9]{14,17}|4[0-9]{15}|5[1-5][0-9]{14}|3[47][0-9]{13}|35[2-8][0-9]{13}"
    "|6(?:011|5[0-9]{2})[0-9]{12}"
)
_CARD_WORD = re.compile(
    "[卡户戶]|银行|銀行|收款|[工农建中招交]行"
    "|(?<![a-z_])card|mastercard|(?<![a-z])(?:visa|iban)(?![a-z])",
    re.IGNORECASE,
)
_DOUBLED = str.maketrans("0123456789", "0246813579")


def _bank_cards(text: str) -> Iterator[_Span]:
    line_end = -1
    named = False
    for match in _BANK_CARD.finditer(text):
        start, end = match.span()
        number = match.group().replace(" ", "").replace("-", "")
        if not (_luhn(number) and _starts_a_number(text, start)):
            continue
        if not _ISSUER.fullmatch(number):
            if start > line_end:
                line_end = text.find("\n", start)
                line_end = len(text) if line_end < 0 else line_end
                line = text[text.rfind("\n", 0, start) + 1 : line_end]
                named = _CARD_WORD.search(line) is not None
            if not named:
                continue
        if not _is_something_else(text, start, end):
            yield start, end, "bank_card"


def _luhn(number: str) -> bool:
    """ISO/IEC 7812-1, annex B; a repeated digit is nobody's number."""
    total = sum(map(int, number[-2::-2].translate(_DOUBLED))) + sum(map(int, number[-1::-2]))
    return total % 10 == 0 and number.count(number[0]) < len(number)


# --- mobile numbers -------------------------------------------------------------------------

_PHONE = re.compile(
    "1(?:(?<![0-9].)|(?<=86.))[3-9][0-9]"
    "(?:[0-9]{8}| [0-9]{4} [0-9]{4}(?! [0-9]{1,3}(?![0-9]))|-[0-9]{4}-[0-9]{4})"
    "(?![0-9A-Za-z]|[.-][0-9])"
)
# Behind another number, `138 1234 5678` is three columns of a table.
_IN_COLUMN = re.compile("(?<![0-9-])[0-9]{1,3} {1,4}$")
_COUNTRY = re.compile("(?:[+＋]|00)?86[ -]?$|[(（][+＋]?86[)）][ -]?$")


def _phones(text: str) -> Iterator[_Span]:
    for match in _PHONE.finditer(text):
        start, end = match.span()
        if text.find("86", max(start - 4, 0), start) >= 0 and (
            country := _COUNTRY.search(text[max(start - 7, 0) : start])
        ):
            start -= len(country.group())
        elif text[start + 3] == " " and _IN_COLUMN.search(text[max(start - 8, 0) : start]):
            continue
        if _starts_a_number(text, start) and not _is_something_else(text, start, end):
            yield start, end, "phone"


# --- what stands around a number ------------------------------------------------------------


def _starts_a_number(text: str, at: int) -> bool:
    """Whether a number begins at `at`, and is no part of a longer one, of a word or an amount."""
    before = text[at - 1 : at] if at else ""
    if text[at] in "+＋(（":
        return True
    if before == "-":
        before = text[max(at - 2, 0) : at - 1] or "-"
    return before not in ("_", ".", "#", "$", "+", "-") and not (
        before.isascii() and before.isalnum()
    )


_UNIT = re.compile(
    "[ \t]?(?:bytes?|[KMG]?B(?![A-Za-z])|[mnuμ]?s(?![A-Za-z])|rows?|tokens?"
    "|字节|毫秒|秒|行|条|次|个|元)"
)
_ADDRESS = re.compile(r"[^/:]*+://|[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++/")
# `sum(138...`, `runs/138...`
_CODE_OR_PATH = re.compile(r"(?<![A-Za-z0-9_])[a-z_][a-z0-9_]*+[/(]$")
# The name of a setting, in lower case, and what such a name holds when the number is a person's.
_SETTING = re.compile(
    r"(?:[\"']([a-z][a-z0-9_. -]{0,30})[\"'] ?: ?|([a-z][a-z0-9_.-]{0,30})=)[\"']?$"
)
_PERSONAL = re.compile(
    "phone|mobile|tel|cell|contact|whatsapp|wechat|sms|fax|card|bank|account|acct|pan|iban|num|no$"
    "|name|user$|login|value|text|to$|from$"
)
# A number behind one of these words is no card and no phone.
_SAID_HAN = tuple("编号 单号 流水 流水号 序号 时间戳 大小 版本 版本号 qq qq号".split())
_SAID = re.compile(
    "(?:(?<![A-Za-z])(?:[iI][dD]|uid|mid|pid|ts|timestamp|size|count|seq|offset|version|build|hash"
    "|trace|span|seed|epoch|rows?|order|isbn|ISBN|ean|EAN|chr[0-9XY]{1,2}|used|of|free|total|inode"
    "|rss|mem|memory|bytes|length|limit|max|min|sum|runs?|lines?)|Id|ID)$"
)
_LEADS = " \t\"'`:：=＝#是为)）]"


def _is_something_else(text: str, start: int, end: int) -> bool:
    """Whether a number is said to be a count or an identifier, or stands in an address."""
    if _UNIT.match(text, end):
        return True
    before = text[max(start - 36, 0) : start]
    if before[-1:] in ("/", "(") and _CODE_OR_PATH.search(before):
        return True
    if before[-1:] in ("=", "-", "&"):
        if _ADDRESS.match(text[max(start - 160, 0) : start].rsplit(None, 1)[-1]):
            return True
    said = before.rstrip(_LEADS)
    if not said or not said[-1].isascii():
        return said.endswith(_SAID_HAN)
    led = before[len(said) :]
    if (":" in led or "=" in led) and (setting := _SETTING.search(before.lower())):
        return _PERSONAL.search(setting[1] or setting[2]) is None
    return _SAID.search(said[-10:]) is not None or said.lower().endswith(_SAID_HAN)
