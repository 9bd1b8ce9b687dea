"""What the search reads: the finished pages, passage by passage; and the glossary's cards."""

import search
import symbols

PAGE = """
<nav>Contents</nav>
<article><section id="top">
<h1><span class="section-number">4. </span>Masks<a class="headerlink" href="#top">#</a></h1>
<p>Divide by <math><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></math>, as a
<a href="glossary.html#term-mask">mask</a> does.</p>
<section id="inner"><h2>Inner &amp; outer</h2><p>One<br>two.</p>
<div class="highlight"><pre>class <span>CausalMask</span>:
    def forward(self): ...
</pre></div>
<div class="hints"><p>a secret</p></div><script>var x = 1</script></section>
<p>After it.</p>
</section></article>
<footer>Feet</footer>
"""
GLOSSARY = """
<article><section id="glossary"><h1>Glossary</h1><dl class="simple glossary">
<dt id="term-key-value-cache">key/value cache<a class="headerlink" href="#">#</a></dt>
<dt id="term-KV-cache">KV cache<a class="headerlink" href="#term-KV-cache">#</a></dt><dd><p>What is
kept.</p></dd>
<dt id="term-mask">mask<a class="headerlink" href="#term-mask">#</a></dt><dd><p>See
<a href="#term-KV-cache">KV cache</a>.</p></dd>
</dl></section></article>
"""
NOTATION = """
<article><section id="notation"><h1>Notation</h1><table>
<tr id="symbol-d_k"><td><math><msub><mi>d</mi><mi>k</mi></msub></math></td><td>size of a key</td>
<td>all</td></tr></table></section></article>
"""


def test_a_page_is_read_section_by_section_and_nothing_hidden_is():
    top, inner = search.passages(PAGE)
    assert (top["at"], top["names"], top["terms"]) == (["top"], ["Masks"], ["term-mask"])
    assert top["text"] == "Divide by √d_k, as a mask does. After it."
    assert (inner["at"], inner["names"], inner["text"]) == (
        ["inner"],
        ["Inner & outer"],
        "One two.",
    )
    assert inner["defines"].split() == ["CausalMask", "forward"]
    said = str(search.passages(PAGE))
    assert not [word for word in ("secret", "var x", "Contents", "Feet") if word in said]


def test_the_names_of_an_entry_are_one_passage_and_a_symbol_is_one():
    _, cache, mask = search.passages(GLOSSARY)
    assert cache["names"] == ["key/value cache", "KV cache"]
    assert cache["at"] == ["term-key-value-cache", "term-KV-cache"]
    assert cache["text"] == "What is kept."
    assert mask["names"] == ["mask"] and mask["text"] == "See KV cache."
    _, size = search.passages(NOTATION)
    assert size["at"] == ["symbol-d_k"] and size["kind"] == "symbol"
    assert size["names"] == ["d_k", "size of a key"]


def test_each_name_of_an_entry_has_the_entry_s_card():
    cards = symbols.cards(GLOSSARY).split("\n<div data-card=")
    (cache,) = [card for card in cards if "term-KV-cache term" in card or "cache term-KV" in card]
    assert cache.startswith('"term-key-value-cache term-KV-cache"')
    assert "<strong>key/value cache</strong><span>, KV cache</span>" in cache
    assert 'href="../book/glossary.html#term-key-value-cache"' in cache
    assert 'href="../book/glossary.html#term-KV-cache"' in cards[-1], "a link in another's text"
    assert len(cards) == len(symbols.symbols()) + 2
