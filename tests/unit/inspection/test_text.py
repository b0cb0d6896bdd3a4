from ironic_rules.inspection.text import enumeration, printable


def test_controls_become_escapes_and_letters_stay():
    assert printable("Straße\r\n\x1b[31m\u202e") == "Straße\\r\\n\\x1b[31m\\u202e"


def test_a_long_text_is_cut_with_a_note():
    assert printable("abcdef", 4) == "abcd… (2 more characters)"


def test_escapes_do_not_make_a_text_longer_than_the_limit():
    assert printable("\x00" * 4, 4) == "\\x00"


def test_an_enumeration_names_the_first_and_counts_the_rest():
    assert enumeration(["a", "b", "c"], 2) == "a, b and 1 more"


def test_an_empty_enumeration_says_none():
    assert enumeration([]) == "none"
