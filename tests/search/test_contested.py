from datasette_memory.search.contested import contested


def test_both_ends_of_a_contradiction_are_contested_until_one_is_superseded(make_searcher):
    def card(ref: str, more: str = "") -> str:
        return f"---\nid: {ref}\ntitle: {ref}\n{more}---\ntext\n"

    connection = make_searcher(
        {
            "1.md": card("D_0001", "relations: [{type: contradicts, target: D_0002}]\n"),
            "2.md": card("D_0002"),
            "3.md": card("D_0003", "relations: [{type: contradicted_by, target: D_0004}]\n"),
            "4.md": card("D_0004", "superseded_by: D_0005\n"),
            "5.md": card("D_0005", "relations: [{type: refers_to, target: D_0001}]\n"),
            "6.md": card("D_0006", "relations: [{type: contradicts, target: D_0006}]\n"),
            "7.md": card("D_0007", "relations: [{type: contradicts, target: D_0099}]\n"),
        }
    ).connection
    ids = dict(connection.execute("select ref, id from cards"))
    found = contested(connection, ids.values())
    assert {ref for ref, id in ids.items() if id in found} == {"D_0001", "D_0002"}
    assert contested(connection, [ids["D_0002"], ids["D_0005"]]) == {ids["D_0002"]}
    assert contested(connection, []) == set()
