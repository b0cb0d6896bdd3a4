
from ironic_rules.text import enumeration, is_storable, misspelt, nearest, pointer_token, printable
from tests.walking import walking


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


def test_a_token_of_a_pointer_is_escaped_and_bounded():
    assert pointer_token("a/b~c\n" + "x" * 80) == "a~1b~0c\\n" + "x" * 57 + "… (22 more characters)"


@walking("name, found", [("physical_net", "physical-network"), ("zzz", None), ("p" * 65, None)])
def test_the_nearest_name_is_told_whatever_the_hyphens(name, found):
    assert nearest(name, ["physical-network", "ports"]) == found


@walking("name, found", [
    ("prot", "port"), ("por", None), ("Ports", "port"), ("enable-iu", "enable_ui"), ("enable_ssl_api", None),
    ("verify_step", None), ("claen_step", "clean_step"), ("clean_step", None), ("p" * 65, None), ("", None)])
def test_only_a_misspelling_is_told_what_is_meant(name, found):
    assert misspelt(name, ["port", "enable_ui", "clean_step"]) == found


@walking("text, storable", [("Straße", True), ("a\x00", False), ("\ud800", False)])
def test_what_no_database_stores_is_known(text, storable):
    assert is_storable(text) is storable
