import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_memory.text import tokens

# Tokens in o200k_base, counted with bpe-openai 0.1.4, which is not what the project counts with.
ZH_DEPLOY = (
    "部署之前先停掉旧实例，确认健康检查通过以后，再把流量切到新实例上。"
    "如果十分钟内错误率超过百分之一，就立即回滚，并在群里通知值班同事。"
)
ZH_SEARCH = (
    "向量检索和全文检索各有长处：前者能找到换了说法的内容，后者对编号、文件名和专有名词更可靠。"
    "我们把两边的名次融合起来，再按置信度和时间衰减排序。"
)
ZH_TRADITIONAL = (
    "部署之前先停掉舊實例，確認健康檢查通過以後，再把流量切到新實例上。"
    "如果十分鐘內錯誤率超過百分之一，就立即回滾，並在群組裡通知值班同事。"
)
EN = (
    "Stop the old instance before you deploy, wait until the health check passes, and only then "
    "move the traffic to the new one. If more than one request in a hundred fails within ten "
    "minutes, roll back at once and tell whoever is on call."
)
MIXED = (
    "周五晚上 MySQL 主从延迟到了 300 秒，原因是 orders 表的大事务。处理：先 STOP SLAVE，再按主键分批 "
    "DELETE，每批 5000 行，最后用 pt-table-checksum 校验。"
)
CODE = """def retry(call, attempts=3, delay=0.5):
    for attempt in range(attempts):
        try:
            return call()
        except ConnectionError as error:
            if attempt + 1 == attempts:
                raise
            time.sleep(delay * 2**attempt)
"""
JA = (
    "本番環境のデータベースを更新する前に、必ずバックアップを取ってください。"
    "復元の手順は週に一度、別のサーバーで確認しています。"
)
KO = (
    "운영 데이터베이스를 갱신하기 전에 반드시 백업을 받아야 합니다. "
    "복구 절차는 매주 다른 서버에서 확인하고 있습니다."
)
RU = (
    "Перед обновлением базы данных обязательно сделайте резервную копию. "
    "Восстановление проверяется раз в неделю на другом сервере."
)
NUMBERS = "2026-11-30T08:15:42Z, 1048576, 3.14159, 192.168.10.24, 8765, 65536, 1700000000, 42"
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
MARKUP = (
    '```\n{"ok": true, "hits": [], "notice": null}\n```\n\n- [x] done\n- [ ] open\n\n'
    "| a | b |\n|---|---|\n"
)
REAL = {
    ZH_DEPLOY: 45, ZH_SEARCH: 60, ZH_TRADITIONAL: 59, EN: 50, MIXED: 50, CODE: 59, JA: 44, KO: 33,
    RU: 27, NUMBERS: 50, HEX: 43, MARKUP: 39, "": 0, "-" * 60: 2, "啊" * 300: 300, "hello world": 2,
}  # fmt: skip


def near(texts):
    return sum(map(tokens.estimate, texts)) / sum(REAL[text] for text in texts)


def test_a_page_is_estimated_within_fifteen_percent():
    assert 0.95 < near([ZH_DEPLOY, ZH_SEARCH, ZH_TRADITIONAL]) < 1.15
    assert 0.95 < near([EN, CODE, MARKUP]) < 1.15
    assert 0.95 < near([MIXED, EN, ZH_SEARCH]) < 1.15
    assert 0.85 < near([NUMBERS, HEX]) < 1.15


def test_a_single_sentence_is_never_far_below():
    for text, real in REAL.items():
        assert tokens.estimate(text) >= 0.8 * real, text
        assert tokens.estimate(text) <= 1.4 * real + 2, text


def test_chinese_is_not_a_quarter_of_its_characters():
    # 300 Han characters: four characters a token would make 75, models make 180 to 390 of them.
    assert 180 <= tokens.estimate("部署之前停掉旧实例确认健康检查" * 20) <= 390


def test_count_is_the_real_tokeniser_where_it_is_installed():
    assert {text: tokens.count(text) for text in REAL} == REAL


def test_count_is_the_estimate_where_it_is_not():
    code = (
        "import sys; sys.modules['toktok'] = None\n"
        "from datasette_memory.text import tokens\n"
        f"text = {MIXED!r}\n"
        "print(tokens.count(text) == tokens.estimate(text))"
    )
    assert run(code) == "True"


def test_an_estimate_loads_no_tokeniser():
    code = (
        "import sys; from datasette_memory.text import tokens; tokens.estimate('部署 deploy')\n"
        "print([name for name in ('toktok', 'tiktoken', 'tokenizers') if name in sys.modules])"
    )
    assert run(code) == "[]"


def test_a_count_opens_no_connection_and_needs_no_home(tmp_path):
    code = (
        "import sys\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith(('socket.', 'urllib.', 'subprocess.')): raise SystemExit(event)\n"
        "sys.addaudithook(refuse)\n"
        "from datasette_memory.text import tokens\n"
        f"print(tokens.count({EN!r}))"
    )
    assert run(code, HOME=str(tmp_path)) == "50"
    assert list(tmp_path.iterdir()) == []


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONIOENCODING": "utf-8", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("price", [tokens.count, tokens.estimate])
def test_half_a_surrogate_pair_is_text_too(price):
    assert price("a \ud83d b") >= 3


@given(st.text())
def test_any_text_has_a_price(text):
    for price in (tokens.estimate, tokens.count):
        assert isinstance(price(text), int)
        assert (price(text) >= 1) == bool(text)


@given(st.text(), st.text())
def test_more_text_is_never_cheaper(text, more):
    # A cut inside a word or a number costs no more than the pieces, apart from rounding.
    assert tokens.estimate(text + "\n" + more) >= tokens.estimate(text) - 1
