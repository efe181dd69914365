"""Which terms are names, and how much of a question is held."""

import pytest

from datasette_memory.context.cover import share, strong_terms


@pytest.mark.parametrize(
    "text, names",
    [
        # Latin or digits among Chinese.
        ("阿里云 RDS 的快照怎么恢复", ["rds"]),
        ("orchid 站点部署在哪里", ["orchid"]),
        ("端口 8081 被谁占用", ["8081"]),
        ("为什么 parse_dates.py 会报错", ["parse dates py"]),
        ("Ｚｅｐｈｙｒ 项目的备份策略", ["zephyr"]),
        # Words that name nothing, amounts, years and counts are no names.
        ("帮我 review 一下这个 bug 的修复", []),
        ("写 500 字的总结", []),
        ("前 10 个用户是谁", []),
        ("2026 年的备份策略", []),
        ("2026-09-30 的故障原因", []),
        ("磁盘 50GB 够不够用", []),
        ("数据库备份怎么恢复", []),
        ("2026Q3 的费用和 H1 比", []),
        ("流水线 CI/CD 在哪里", ["ci cd"]),
        ("RDS 快照", ["rds"]),
        # Among English: signs, digits, humps, capitals inside a sentence.
        ("how does getUserById cache", ["getuserbyid"]),
        ("upgrade to v2.3.1 or not", ["v2 3 1"]),
        ("where is src/app/main.py", ["src app main py"]),
        ("How do we restore Postgres?", ["postgres"]),
        ("restart the NAS. Then what", ["nas"]),
        ("Restore the mail. Check the tape", []),
        ("HOW DO WE RESTORE POSTGRES", []),
        ("How To Restore The Mail Store", []),
        ("what's a long-term step-by-step plan, e.g. for tapes", []),
        ("restore the 3rd backup in 10min", []),
        ("how do I restore the 快照 from the console", []),
    ],
)
def test_what_looks_like_a_name(ask, text, names):
    question = ask(text)
    assert [" ".join(question.terms[n].phrases[0]) for n in strong_terms(question)] == names


def held(question, *words):
    return [term.phrases[0][0] in words for term in question.terms]


def test_the_share_is_by_worth(ask):
    question = ask("restore mail tape", rare={"restore": 1.0, "mail": 2.0, "tape": 5.0})
    assert share(held(question), question) == 0
    assert share(held(question, "restore", "mail"), question) == pytest.approx(3 / 8)
    assert share(held(question, "restore", "mail", "tape"), question) == 1


def test_a_pair_between_words_that_are_held_does_not_count(ask):
    # 数据 据库 库备 备份: 库备 leads from one word to the next.
    question = ask("数据库备份")
    assert share(held(question, "数据", "据库", "备份"), question) == 1
    # Here 库备 and 备份 are missing, each by half: 6 / (6 + 3).
    assert share(held(question, "数据", "据库"), question) == pytest.approx(6 / 9)


def test_without_terms_there_is_nothing_to_lack(ask):
    question = ask("……")
    assert share([], question) == 1
