import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.text import _credentials, secrets
from datasette_memory.text.secrets import Finding, describe, find_personal, find_secrets, mask

# --- the lists: ⟦kind|what must be found⟧, ↵ is a new line, ‖ nothing -----------------------

_MARKED = re.compile(r"⟦(\w+)\|(.*?)⟧", re.DOTALL)


def notes(name):
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return [
        line.replace("‖", "").replace("↵", "\n")
        for line in lines
        if line and not line.startswith("%%")
    ]


def marked(note):
    """The text of a note without its marks, and the findings that they ask for."""
    text, findings, done = "", [], 0
    for match in _MARKED.finditer(note):
        text += note[done : match.start()]
        findings.append(Finding(match[1], len(text), len(text) + len(match[2])))
        text += match[2]
        done = match.end()
    return text + note[done:], tuple(findings)


REAL_SECRETS = [marked(note) for note in notes("secrets_real.txt")]
REAL_PERSONAL = [marked(note) for note in notes("personal_real.txt")]
HARMLESS_SECRETS = notes("secrets_harmless.txt")
HARMLESS_PERSONAL = notes("personal_harmless.txt")
EVERY_NOTE = (
    [text for text, _ in REAL_SECRETS + REAL_PERSONAL] + HARMLESS_SECRETS + HARMLESS_PERSONAL
)


@pytest.mark.parametrize(
    ("find", "real", "harmless"),
    [
        (find_secrets, REAL_SECRETS, HARMLESS_SECRETS),
        (find_personal, REAL_PERSONAL, HARMLESS_PERSONAL),
    ],
)
def test_rates(find, real, harmless):
    missed = [text for text, findings in real if find(text) != findings]
    flagged = [text for text in harmless if find(text)]
    rates = (
        f"{len(real) - len(missed)} of {len(real)} real ones found as they are marked, "
        f"{len(flagged)} of {len(harmless)} harmless notes flagged"
    )
    assert not missed and not flagged, "\n".join([rates, *missed, *flagged])


def test_the_lists_are_large_enough():
    assert len(REAL_SECRETS) >= 60
    assert len(HARMLESS_SECRETS) >= 120
    assert all(findings for _, findings in REAL_SECRETS + REAL_PERSONAL)


def test_no_note_with_a_secret_holds_personal_data():
    # Keys are full of digits.
    assert [text for text, _ in REAL_SECRETS if find_personal(text)] == []
    assert [text for text, _ in REAL_PERSONAL if find_secrets(text)] == []


# --- what a finding tells -------------------------------------------------------------------


def test_a_finding_is_a_class_and_a_span():
    assert Finding.__slots__ == ("kind", "start", "end")
    (finding,) = find_secrets("密码：Abc12345")
    assert finding == Finding("password", 3, 11)
    with pytest.raises(AttributeError):
        finding.kind = "x"


def test_nothing_that_is_shown_carries_the_text():
    kinds = set()
    for text, findings in REAL_SECRETS + REAL_PERSONAL:
        found = find_secrets(text) + find_personal(text)
        kinds.update(finding.kind for finding in found)
        shown = repr(found) + " ".join(describe(found))
        for finding in findings:
            assert text[finding.start : finding.end] not in shown
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", kind) for kind in kinds)
    assert len(kinds) < 40


def test_describe():
    assert describe(find_secrets("x 密码：Abc12345，手机 13812345678")) == (
        "password, characters 5 to 13",
    )
    assert describe([Finding("jwt", 12, 52), Finding("phone", 60, 71)]) == (
        "jwt, characters 12 to 52",
        "phone, characters 60 to 71",
    )
    assert describe(()) == ()


def test_mask():
    text = "密码：Abc12345，手机 13812345678。"
    assert mask(text, find_secrets(text)) == "密码：[masked: password]，手机 13812345678。"
    both = find_personal(text) + find_secrets(text)  # in any order
    assert mask(text, both) == "密码：[masked: password]，手机 [masked: phone]。"
    assert mask(text, ()) == text


def test_overlapping_findings_are_masked_once():
    assert mask("abcdefgh", [Finding("phone", 2, 5), Finding("bank_card", 4, 7)]) == (
        "ab[masked: phone]h"
    )
    assert mask("abcdefgh", [Finding("phone", 4, 6), Finding("bank_card", 1, 8)]) == (
        "a[masked: bank_card]"
    )
    assert mask("abcd", [Finding("phone", 0, 2), Finding("phone", 2, 4)]) == (
        "[masked: phone][masked: phone]"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("password: ghp_" + "k3J9" * 9, "github_token"),
        ("Authorization: Bearer glpat-" + "a1B2c3D4" * 3, "gitlab_token"),
        ("https://u:sk-ant-" + "api03-a1B2c3D4e5F6g7H8" * 2 + "@h/", "anthropic_key"),
    ],
)
def test_what_overlaps_is_named_by_the_class_that_tells_more(text, kind):
    assert [finding.kind for finding in find_secrets(text)] == [kind]


# --- single rules, by published values ------------------------------------------------------


def test_the_identity_card_of_the_standard():
    # The example of GB 11643-1999, and the same with each other check digit.
    assert find_personal("11010519491231002X") == (Finding("id_card", 0, 18),)
    assert find_personal("11010519491231002x") == (Finding("id_card", 0, 18),)
    for wrong in "0123456789":
        assert find_personal("11010519491231002" + wrong) == ()


@pytest.mark.parametrize(
    "number",
    [
        # Test numbers that card networks and payment services publish.
        "4111111111111111",
        "4242 4242 4242 4242",
        "5555555555554444",
        "5105-1051-0510-5100",
        "378282246310005",
        "3714 496353 98431",
        "6011111111111117",
        "3530111333300000",
    ],
)
def test_published_test_cards(number):
    assert find_personal(f"卡 {number}。") == (Finding("bank_card", 2, 2 + len(number)),)
    last = "0" if number[-1] != "0" else "1"
    assert find_personal(f"卡 {number[:-1]}{last}。") == ()


def test_29_february():
    # The weighted sums are 114 and 121: check digits 8 and 1. 1900 was no leap year.
    assert find_personal("110101200002290018") == (Finding("id_card", 0, 18),)
    assert find_personal("110101190002290011") == ()


# --- any text -------------------------------------------------------------------------------

# Pieces of notes side by side, as they stand in one card.
ANY_CARD = st.lists(
    st.one_of(
        st.sampled_from(EVERY_NOTE),
        st.sampled_from(EVERY_NOTE).flatmap(
            lambda note: st.integers(0, len(note)).map(lambda at: note[at:])
        ),
        st.text(max_size=20),
    ),
    max_size=5,
).map("\n".join)
# What the patterns look for, in any order.
PIECES = [
    "password", "pass", "token", "api_key", "auth", "密码", "口令", "=", ":", "：", "=>", "|", "is", "是",
    "(", ")", "[", "]", '"', "'", "`", "**", " ", "\n", "\\n", "\\", "a", "1", "a1B2c3", "-", "_",
    ".",
    "/", "@", "://", "-----BEGIN ", "PRIVATE KEY-----", "-----END ", "eyJ", "ghp_", "AKIA",
    "curl -u ",
    "mysql -p", "authorization:", "basic ", "bearer ", "identified by ", "13812345678", "6222",
    "86",
    "+", "19900307", "X", "卡", "…", "***", "[masked: ", "K", "İ", "\ud800",
]  # fmt: skip
ANY_TEXT = st.one_of(
    st.text(st.characters()),  # lone surrogates too
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    ANY_CARD,
)


@given(ANY_TEXT)
def test_findings_are_sorted_disjoint_and_inside(text):
    for find in (find_secrets, find_personal):
        done = 0
        for finding in find(text):
            assert done <= finding.start < finding.end <= len(text)
            done = finding.end


@given(ANY_CARD)
def test_masking_leaves_nothing_to_find(text):
    for find in (find_secrets, find_personal):
        findings = find(text)
        masked = mask(text, findings)
        assert find(masked) == ()
        kept = [text[a:b] for a, b in _gaps(findings, len(text))]
        assert re.split(r"\[masked: (?:%s)\]" % "|".join({f.kind for f in findings}), masked) == (
            kept if findings else [text]
        )


def _gaps(findings, length):
    ends = [0, *(finding.end for finding in findings)]
    starts = [*(finding.start for finding in findings), length]
    return zip(ends, starts)


@given(st.sampled_from(REAL_SECRETS), st.text(max_size=10), st.text(max_size=10))
def test_what_stands_on_other_lines_changes_nothing(real, before, after):
    text, findings = real
    before, after = f"{before}\n--\n", f"\n--\n{after}"
    moved = {Finding(f.kind, f.start + len(before), f.end + len(before)) for f in findings}
    assert moved <= set(find_secrets(before + text + after))


def test_lower_case_keeps_positions():
    # Patterns run over the lowered text: no other character may grow.
    assert [c for c in map(chr, range(sys.maxunicode + 1)) if len(c.lower()) != 1] == ["İ"]
    assert find_secrets("İİİ password: Abc12345") == (Finding("password", 14, 22),)


# --- very many of them ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("find", "line", "kind"),
    [
        (find_secrets, "密码：⟦Abc{:05}⟧\n", "password"),
        (find_secrets, "AKIA⟦⟧QWERTYUIOPA{:05}\n", "aws_access_key"),
        (find_secrets, "see ftp://u:⟦x1y{:05}⟧@h/\n", "connection_password"),
        (find_secrets, "mysql -p⟦x1y{:05}⟧ a\n", "password"),
        (find_personal, "手机 ⟦138123{:05}⟧\n", "phone"),
    ],
)
@pytest.mark.parametrize("count", [1000, 1001, 3000])
def test_a_thousand_are_told_apart_and_the_rest_is_one(find, line, kind, count):
    lines = [line.format(number) for number in range(count)]
    starts, text = [], ""
    for one in lines:
        starts.append(len(text) + (one.index("⟦") if "⟦⟧" not in one else 0))
        text += one.replace("⟦", "").replace("⟧", "")
    text += "the end"
    found = find(text)
    assert [one.start for one in found] == starts[:1001]
    assert {one.kind for one in found[:1000]} == {kind}
    if count > 1000:
        assert found[1000] == Finding("more", starts[1000], len(text))
    masked = mask(text, found)
    assert find(masked) == ()
    assert masked.endswith("the end" if count == 1000 else "[masked: more]")


def test_the_rest_hides_nothing_before_it():
    # What stands in front of the first that is not told apart is found as ever.
    token = "ghp_" + "k3J9" * 9
    text = "".join(f"密码：Abc{number:05}\n" for number in range(1500))
    at = text.index("Abc01000")
    assert Finding("github_token", 0, 40) in find_secrets(f"{token}\n{text}")
    found = find_secrets(f"{text}{token}")
    assert found[-1] == Finding("more", at, len(text) + 40)


def test_values_that_are_none_are_judged_so_many_times():
    # A path is no password, ten thousand times; what is not looked at any more is said.
    assert find_secrets("pw=a/b/c1 " * 10_000) == ()
    (found,) = find_secrets("pw=a/b/c1 " * 10_001)
    assert found == Finding("more", 100_003, 100_010)
    assert find_secrets("mysql -pa/b/c1\n" * 10_000) == ()
    (found,) = find_secrets("mysql -pa/b/c1\n" * 10_001)
    assert found == Finding("more", 150_008, 150_015)


@given(ANY_TEXT)
def test_every_pattern_gives_its_first_finding_first(text):
    for _, find in _credentials.FINDERS:
        starts = [start for start, _, _ in find(text, text.replace("İ", "x").lower())]
        assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("form", "value", "ends_it"),
    [
        ("x://us{}er:Zq8w3e5r@h", "Zq8w3e5r", ":/@\"'<>`[](){}|\\^"),
        ("x://user:Zq8w{}3e5r@h", "Zq8w{}3e5r", "/?\"'<>`[](){}|\\^"),
        ("thin:user/Zq8w{}3e5r@h", "Zq8w{}3e5r", "/@\"'<>[](){}"),
    ],
)
def test_which_characters_stand_in_an_address(form, value, ends_it):
    for character in map(chr, range(0x80)):
        text = form.format(character)
        found = [text[one.start : one.end] for one in find_secrets(text)]
        holds = not (character.isspace() or character in ends_it or character == "\x7f")
        assert (found == [value.format(character)]) == holds
    others = [*range(0x80, 0x10000), *range(0x10000, sys.maxunicode + 1, 31)]
    assert find_secrets("\n".join(form.format(chr(code)) for code in others)) == ()


# --- cost -----------------------------------------------------------------------------------


def test_every_pattern_has_its_trigger():
    asked = frozenset().union(*(triggers for triggers, _ in _credentials.FINDERS))
    assert asked == {*secrets.TRIGGERS, *secrets.PREFIXES}


def test_a_text_without_a_trigger_loads_no_pattern():
    program = (
        "import sys\n"
        "from datasette_memory.text.secrets import find_secrets, find_personal\n"
        "assert not find_secrets('阿里云 ecs-prod-01 在 2024-03-05 重启') + find_personal('v3, 8765')\n"
        "print([m for m in sys.modules if m.startswith('datasette_memory.text._')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


SIZE = 300_000


def repeated(unit):
    return (unit * (SIZE // len(unit) + 1))[:SIZE]


WORST = [
    *(
        repeated(unit)
        for unit in [
            "a", "1", " ", "\n", '"', "'", "`", "中", "-", "(", ")", "a.", "é", "[masked: ",
            "password=", "password=a1b2c3 ", "password=xxx1a2b", "pwd=", "pw=a1", "pass ",
            "pass is ",
            "token", "token: aB1-cD2-", "secret key ", "密码", "密码：", "密码是", "密码：a1b2c3",
            "密码　　　　", "'\"password': 'a1b2c3', ", "password='\"`", "password\"']*)`",
            "password      |", "pw |a.b.c.1", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----" + " " * 40, "eyJ", "eyJ.", "eyJaaaaaaaa.", "://", "://a:",
            "://a:a@", "thin:a/", "sk-", "sk-ant-", "AKIA", "AKIAA1B2C3D4E5F6G7H8 ", "LTAI",
            "xoxb-",
            "hf_", "SG.a", "12345678:AA", "https://hooks.slack.com/services/", "bearer ",
            "authorization: basic ", "curl -u a:", "mysql -p", "net use /user:", "echo a:",
            "identified by '", "授权码", "13812345678 ", "138 1234 5678 ", "+86", "4444 ",
            "4532954061358955 ", "110101199003076376", "token: " + "a" * 40 + "1x ",
            "token: " + "1." * 60 + "a! ", "password=" + "Aa" * 60 + "1!\n",
            "pw=" * 600 + ")" * 2200 + "1a ", "pw='" * 700 + "1", "a/" * 60 + "=password: 1 ",
        ]
    ),
    "eyJ" + "a" * SIZE + ".eyJ",
    "://a:" + "b@" * (SIZE // 2),
    "-----BEGIN PRIVATE KEY-----\n" + ("A" * 64 + "\n") * (SIZE // 65),
    "password='" + "a1 " * (SIZE // 3),
    "ab\n" * (SIZE // 3) + "mysql -u",
    "".join(EVERY_NOTE) * 5,
]  # fmt: skip


@pytest.mark.parametrize("text", WORST, ids=lambda text: repr(text[:24]))
def test_hostile_text_comes_to_an_end(text):
    # A pattern that backtracks badly would take minutes to hours here.
    for find in (find_secrets, find_personal):
        assert all(0 <= f.start < f.end <= len(text) for f in find(text))
