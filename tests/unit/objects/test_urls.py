"""URLs are parsed as in Go."""

from __future__ import annotations

import pytest

from lamina.objects.urls import BadUrl, Url, parse, parse_in_request


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://a.example:80/p/q?k=v#f",
         Url(scheme="https", host="a.example:80", path="/p/q", query="k=v", fragment="f")),
        ("HTTPS://user:pass@a/",   Url(scheme="https", host="a", user="user:pass", path="/")),
        ("http://[::1]:8080/",     Url(scheme="http", host="[::1]:8080", path="/")),
        ("http://[fe80::1%25en0]", Url(scheme="http", host="[fe80::1%en0]")),
        ("http://%C3%A9/",         Url(scheme="http", host="é", path="/")),
        ("mailto:a@b?c",           Url(scheme="mailto", query="c")),
        ("/only/a/path",           Url(path="/only/a/path")),
        ("relative/path",          Url(path="relative/path")),
        ("//host/path",            Url(host="host", path="/path")),
        ("*",                      Url(path="*")),
        ("",                       Url()),
    ],
)  # fmt: skip
def test_a_url_is_taken_apart(text: str, url: Url) -> None:
    assert parse(text) == url


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("http://a b/",      'parse "http://a b/": invalid character " " in host name'),
        ("http://a:x/",      'parse "http://a:x/": invalid port ":x" after host'),
        ("http://[1.2.3.4]", 'parse "http://[1.2.3.4]": invalid host: ParseAddr("1.2.3.4"): unable to parse IP'),
        ("http://[::1",      "parse \"http://[::1\": missing ']' in host"),
        ("http://a[::1]/",   'parse "http://a[::1]/": invalid IP-literal'),
        ("http://a/%zz",     'parse "http://a/%zz": invalid URL escape "%zz"'),
        ("http://a/#%zz",    'parse "http://a/#%zz": invalid URL escape "%zz"'),
        ("http://%41/",      'parse "http://%41/": invalid URL escape "%41"'),
        (":80",              'parse ":80": missing protocol scheme'),
        ("a:b/c:d@",         None),
        ("1a:b",             'parse "1a:b": first path segment in URL cannot contain colon'),
        ("http://a\x7f/",    'parse "http://a\\x7f/": net/url: invalid control character in URL'),
    ],
)  # fmt: skip
def test_what_is_no_url_is_refused_with_the_reason(text: str, problem: str | None) -> None:
    if problem is None:
        parse(text)
        return
    with pytest.raises(BadUrl) as refused:
        parse(text)
    assert str(refused.value) == problem


def test_a_request_has_an_absolute_path_or_url() -> None:
    assert parse_in_request("/a?b=c") == Url(path="/a", query="b=c")
    for text in ("", "a/b", "#"):
        with pytest.raises(BadUrl):
            parse_in_request(text)
